// SPDX-License-Identifier: Apache-2.0
//
// The host's draws against the measurements that they come from, and against closed forms.

#include "simulator/noise/host.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "simulator/noise/host_model.h"

static const struct noise on = {.sources = 1U << NOISE_HOST, .seed = 42};

static struct host_model *built_in(void) {
    struct host_model *m;
    npu_status st = host_model_default(&m);
    cr_assert_null(st, "%s", npu_status_message(st));
    return m;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Share of sorted samples up to x.
static double share(const double *sorted, int n, double x) {
    int low = 0, high = n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (sorted[middle] <= x)
            low = middle + 1;
        else
            high = middle;
    }
    return (double)low / n;
}

// Kolmogorov and Smirnov: the largest distance between the two distributions exceeds
// 2.2 / sqrt(n) by chance once in 8000 cases (2 exp(-2 x 2.2^2)); there are 19 classes.
Test(host, draws_have_the_measured_quantiles) {
    enum { N = 40000 };
    static double sample[N];
    struct host_model *m = built_in();
    struct host_run run;
    host_run_begin(m, on, 3, &run);
    run.slow = 1; // the fast part alone
    for (int c = 0; c < HOST_CLASS_COUNT; c++) {
        const struct host_table *t = &m->fast[c];
        for (int i = 0; i < N; i++)
            sample[i] =
                (double)host_launch_ps(&run, c, (uint64_t)c * N + (uint64_t)i) / 1e6 / m->level;
        qsort(sample, N, sizeof *sample, ascending);
        double worst = 0;
        for (int k = 0; k < t->n; k++)
            worst = fmax(worst, fabs(share(sample, N, t->q[k]) - (double)k / (t->n - 1)));
        cr_expect_lt(worst, 2.2 / sqrt(N) + 1e-5, "%s: %g", host_class_name(c), worst);
    }
    host_model_free(m);
}

// A line of the graph vocabulary without a class would fail here.
Test(host, every_graph_op_has_a_class) {
    static const char *const ops[] = {
#define GRAPH_OP(NAME, text, min_in, max_in, outputs, traits, shape, reference, meaning) text,
#include "toolchain/graph/ops.def"
    };
    struct host_model *m = built_in();
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        cr_expect_geq(host_model_class(m, ops[i], NULL), 0, "%s", ops[i]);
    bool view = false;
    cr_expect_eq(host_model_class(m, "reshape", &view), HOST_VIEW);
    cr_expect(view);
    cr_expect_eq(host_model_class(m, "conv", &view), HOST_CONV);
    cr_expect_not(view);
    cr_expect_eq(host_model_class(m, "transpose_contiguous", NULL), HOST_COPY, "a class's name");
    cr_expect_eq(host_model_class(m, "Gemm", NULL), HOST_LINEAR, "a framework's operator");
    cr_expect_eq(host_model_class(m, "batch_norm", NULL), HOST_BATCH_NORM);
    cr_expect_eq(host_model_class(m, "no-such-op", &view), -1);
    host_model_free(m);
}

Test(host, off_is_medians) {
    struct host_model *m = built_in();
    for (uint64_t k = 0; k < 5; k++) {
        struct host_run run;
        host_run_begin(m, (struct noise){.sources = ~(1U << NOISE_HOST), .seed = k}, k, &run);
        // medians of the measured file, less the timer's 0.203
        double level = m->level;
        cr_expect_eq(host_launch_ps(&run, HOST_LINEAR, k),
                     (uint64_t)llround(level * (31.931 - 0.203) * 1e6));
        cr_expect_eq(host_view_ps(&run, k), (uint64_t)llround(level * (2.164 - 0.203) * 1e6));
        double both = (double)(host_submit_ps(&run) + host_finish_ps(&run)) / 1e6;
        cr_expect_float_eq(both, m->compiled.q[100], 1e-5);
    }
    host_model_free(m);
}

// Runs alone, in order and backwards give the same; another seed, run or event does not.
Test(host, draws_are_functions_of_their_key) {
    enum { RUNS = 24, EVENTS = 5 };
    struct host_model *m = built_in();
    uint64_t first[RUNS][EVENTS + 2];
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < RUNS; i++) {
            int r = pass ? RUNS - 1 - i : i;
            struct host_run run;
            host_run_begin(m, on, (uint64_t)r, &run);
            uint64_t now[EVENTS + 2];
            for (int e = 0; e < EVENTS; e++)
                now[e] = host_launch_ps(&run, HOST_ADD, (uint64_t)e);
            now[EVENTS] = host_submit_ps(&run);
            now[EVENTS + 1] = (uint64_t)llround(run.slow * 1e12);
            for (int e = 0; e < EVENTS + 2; e++) {
                if (!pass) first[r][e] = now[e];
                cr_expect_eq(first[r][e], now[e]);
                cr_expect(!r || first[r][e] != first[r - 1][e] || pass, "run %d, %d", r, e);
                cr_expect(!e || now[e] != now[e - 1], "run %d, %d", r, e);
            }
        }
    struct host_run run;
    host_run_begin(m, (struct noise){.sources = on.sources, .seed = 43}, 0, &run);
    cr_expect_neq(host_launch_ps(&run, HOST_ADD, 0), first[0][0]);
    host_model_free(m);
}

// A straight table makes the values uniform; the correlation of uniforms under a Gaussian copula of
// correlation r is 6/pi asin(r/2) (Pearson 1907). Bound: four standard errors of a sample
// correlation of a correlated series (Bartlett 1946), sqrt((1 + 2 sum of r^2) / n).
Test(host, state_has_the_correlation_of_its_components) {
    enum { N = 20000, LAGS = 5 };
    static const char text[] =
        "{\"format\":\"npu-host-model\",\"version\":1,\"queue\":1,"
        "\"provenance\":{\"device\":\"\",\"framework\":\"\",\"host\":\"\"},"
        "\"dispatch\":{\"add\":{\"quantiles_us\":[1,2]},\"reshape_view\":{\"quantiles_us\":[1,1]}},"
        "\"slow\":{\"level\":1,\"quantiles\":[0.5,1.5],\"components\":[{\"weight\":0.5,\"phi\":0.9}"
        ","
        "{\"weight\":0.3,\"phi\":0.4}]},"
        "\"compiled\":{\"quantiles_us\":[1,1],\"submit_share\":0,\"components\":[]}}";
    static double v[N];
    struct host_model *m;
    npu_status st = host_model_parse(text, sizeof text - 1, "text", &m);
    cr_assert_null(st, "%s", npu_status_message(st));
    double mean = 0, square = 0;
    for (int i = 0; i < N; i++) {
        struct host_run run;
        host_run_begin(m, on, (uint64_t)i, &run);
        v[i] = run.slow;
        mean += v[i] / N;
    }
    for (int i = 0; i < N; i++)
        square += (v[i] - mean) * (v[i] - mean);
    cr_expect_float_eq(square / N, 1.0 / 12, 4 * 0.1 / sqrt(N / 20.0));
    double squares = 0;
    for (int k = 1; k < 200; k++)
        squares += pow(0.5 * pow(0.9, k) + 0.3 * pow(0.4, k), 2);
    double error = sqrt((1 + 2 * squares) / N);
    for (int k = 1; k <= LAGS; k++) {
        double product = 0;
        for (int i = 0; i + k < N; i++)
            product += (v[i] - mean) * (v[i + k] - mean);
        double r = 0.5 * pow(0.9, k) + 0.3 * pow(0.4, k);
        double expected = 6 / 3.141592653589793 * asin(r / 2);
        cr_expect_float_eq(product / square, expected, 4 * error, "lag %d: %g, expected %g", k,
                           product / square, expected);
    }
    host_model_free(m);
}

// The built-in model's slow part against what was measured: quantiles as in the table; the lags
// within the misfit of two components (0.02) and four standard errors.
Test(host, built_in_slow_part_is_the_measured_one) {
    enum { N = 4000 };
    static double v[N], sorted[N];
    struct host_model *m = built_in();
    double mean = 0, square = 0;
    for (int i = 0; i < N; i++) {
        struct host_run run;
        host_run_begin(m, on, (uint64_t)i, &run);
        sorted[i] = v[i] = run.slow;
        mean += v[i] / N;
        cr_assert(v[i] >= m->slow.q[0] && v[i] <= m->slow.q[m->slow.n - 1]);
    }
    for (int i = 0; i < N; i++)
        square += (v[i] - mean) * (v[i] - mean);
    static const double measured[] = {0.83488, 0.73807, 0.6726, 0.63548, 0.61384};
    for (int k = 1; k <= 5; k++) {
        double product = 0, r = measured[k - 1];
        for (int i = 0; i + k < N; i++)
            product += (v[i] - mean) * (v[i + k] - mean);
        // the component of phi 0.99 leaves N (1 - phi) / (1 + phi) = 20 independent values
        cr_expect_float_eq(product / square, r, 0.02 + 4 * (1 - r * r) / sqrt(20.0), "lag %d: %g",
                           k, product / square);
    }
    qsort(sorted, N, sizeof *sorted, ascending);
    cr_expect_float_eq(sorted[N / 2], 1, 4 * 0.5 / sqrt(20.0) * 0.5);
    cr_expect_float_eq(m->slow.q[100], 1, 1e-9, "median 1");
    host_model_free(m);
}
