// SPDX-License-Identifier: Apache-2.0
//
// Draws of the host: classes, quantile tables, the state of a run.
//
// The state is a normal variable z(run) = sum of sqrt(w) a(run), where a is an AR(1) process of
// variance 1. It is computed without a history: a(r) = sum of phi^k e(r - k) / norm over
// independent e keyed by their run, cut where what is left out is 10^-6 of the variance. Phi(z) is
// uniform and goes into the table of measured quantiles (a Gaussian copula).

#include "simulator/noise/host.h"

#include <math.h>
#include <string.h>

#include "simulator/noise/host_model.h"
#include "simulator/noise/philox.h"

// Streams of events, so that no two draws share a key.
enum stream { STREAM_CALL, STREAM_SLOW = 1, STREAM_COMPILED = 1 + 2 * (HOST_MAX_COMPONENTS + 1) };
enum { STREAM_SHIFT = 48 };

static const struct class_row {
    const char *text;
    bool view;
} class_rows[] = {
#define HOST_CLASS(NAME, text, kin, view, meaning) {text, view},
#include "simulator/noise/host_class.def"
};

static const struct op_row {
    const char *op;
    enum host_class op_class;
} op_rows[] = {
#define HOST_CALL(call, CLASS) {call, HOST_##CLASS},
#include "simulator/noise/host_class.def"
#define HOST_OP(op, CLASS, why) {op, HOST_##CLASS},
#include "simulator/noise/host_class.def"
};

const char *host_class_name(int op_class) {
    NPU_ASSERT(op_class >= 0 && op_class < HOST_CLASS_COUNT);
    return class_rows[op_class].text;
}

int host_model_class(const struct host_model *model, const char *op, bool *view) {
    (void)model; // every class has a distribution: its own or its kin's
    int found = -1;
    for (size_t i = 0; i < sizeof op_rows / sizeof *op_rows && found < 0; i++)
        if (strcmp(op_rows[i].op, op) == 0) found = (int)op_rows[i].op_class;
    for (int i = 0; i < HOST_CLASS_COUNT && found < 0; i++)
        if (strcmp(class_rows[i].text, op) == 0) found = i;
    if (view) *view = found >= 0 && class_rows[found].view;
    return found;
}

uint32_t host_model_queue(const struct host_model *model) {
    return model->queue;
}

const char *host_model_source(const struct host_model *model) {
    return model->source;
}

int host_model_nmeasured(const struct host_model *model) {
    return model->nmeasured;
}

struct host_measured host_model_measured(const struct host_model *model, int index) {
    NPU_ASSERT(index >= 0 && index < model->nmeasured);
    return model->measured[index];
}

// Between (p, a) and (q, b).
static double between(double p, double a, double q, double b, double u) {
    double t = (u - p) / (q - p);
    return p >= HOST_TAIL - 1e-9 ? a * pow(b / a, t) : a + t * (b - a);
}

double host_table_at(const struct host_table *t, double u) {
    NPU_ASSERT(u >= 0 && u <= 1);
    double last = t->n - 1;
    int i = (int)(u * last);
    if (i > t->n - 2) i = t->n - 2;
    double p = i / last, q = (i + 1) / last, a = t->q[i], b = t->q[i + 1];
    if (t->p999 > 0 && p < 0.999 && q > 0.999) {
        if (u < 0.999) return between(p, a, 0.999, t->p999, u);
        return between(0.999, t->p999, q, b, u);
    }
    return between(p, a, q, b, u);
}

// A standard normal variable (Box and Muller 1958) from the two halves of one draw: up to 6.8
// deviations.
static double normal(const struct noise *noise, uint64_t run, unsigned stream) {
    uint64_t bits = noise_bits(noise->seed, run, NOISE_HOST, (uint64_t)stream << STREAM_SHIFT);
    double radius = ((double)(bits >> 32) + 0.5) / 4294967296.0;
    double angle = (double)(bits & UINT32_MAX) / 4294967296.0;
    return sqrt(-2 * log(radius)) * cos(6.283185307179586 * angle);
}

// One AR(1) process at a run; run numbers before 0 wrap: they are keys, no times.
static double ar1(double phi, const struct noise *noise, uint64_t run, unsigned stream) {
    double sum = 0, squares = 0, power = 1;
    for (uint64_t k = 0; k == 0 || power > 1e-3; k++, power *= phi) {
        sum += power * normal(noise, run - k, stream);
        squares += power * power;
    }
    return sum / sqrt(squares);
}

// Quantile of the state at a run: uniform over (0, 1), correlated over runs.
static double state(const struct host_process *process, const struct noise *noise, uint64_t run,
                    unsigned stream) {
    double z = 0, white = 1;
    for (int c = 0; c < process->n; c++) {
        const struct host_component *k = &process->component[c];
        z += sqrt(k->weight) * ar1(k->phi, noise, run, stream + (unsigned)c);
        white -= k->weight;
    }
    if (white > 0) z += sqrt(white) * normal(noise, run, stream + HOST_MAX_COMPONENTS);
    return 0.5 * erfc(-z / sqrt(2.0));
}

void host_run_begin(const struct host_model *model, struct noise noise, uint64_t run,
                    struct host_run *out) {
    *out =
        (struct host_run){.model = model, .noise = noise, .run = run, .slow = 1, .compiled = 0.5};
    if (!noise_on(&noise, NOISE_HOST)) return;
    double u = state(&model->slow_process, &noise, run, STREAM_SLOW);
    out->slow = host_table_at(&model->slow, u);
    out->compiled = state(&model->compiled_process, &noise, run, STREAM_COMPILED);
}

static uint64_t picoseconds(double us) {
    return (uint64_t)llround(us * 1e6);
}

uint64_t host_launch_ps(const struct host_run *run, int op_class, uint64_t event) {
    NPU_ASSERT(op_class >= 0 && op_class < HOST_CLASS_COUNT);
    NPU_ASSERT(event >> STREAM_SHIFT == 0);
    double u = noise_on(&run->noise, NOISE_HOST)
                   ? noise_uniform(run->noise.seed, run->run, NOISE_HOST, event)
                   : 0.5;
    const struct host_model *m = run->model;
    return picoseconds(m->level * run->slow * host_table_at(&m->fast[op_class], u));
}

uint64_t host_view_ps(const struct host_run *run, uint64_t event) {
    return host_launch_ps(run, HOST_VIEW, event);
}

static double compiled_us(const struct host_run *run) {
    return host_table_at(&run->model->compiled, run->compiled);
}

uint64_t host_submit_ps(const struct host_run *run) {
    return picoseconds(compiled_us(run) * run->model->submit_share);
}

uint64_t host_finish_ps(const struct host_run *run) {
    return picoseconds(compiled_us(run) * (1 - run->model->submit_share));
}
