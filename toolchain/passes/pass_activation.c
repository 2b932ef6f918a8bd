// SPDX-License-Identifier: Apache-2.0
// Activation functions written out as several elementwise nodes become one short chain:
//
//   for each MAP, in order: grow the group of MAPs behind it until all of it comes from one value
//   x; evaluate the group at sample points (probe.h) and compare with the table below; when it is
//   one of its functions, a MAP with that function's chain takes the place of the group
//
// so that the form does not matter: x * 0.5 * (1 + erf(x / sqrt 2)), its tanh form with x^3 as a
// power or as products, x * sigmoid(1.702 x), clip(x + 3, 0, 6) / 6, 1 / (1 + exp(-x)). A function
// without corners is compared with groups without corners only: two such functions that agree at
// all points agree between them too. Nothing is replaced by a chain that is no shorter.
#include <math.h>
#include <string.h>

#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"
#include "toolchain/passes/probe.h"

enum { POINTS = 64, MAX_NODES = 14 };

// ---- the functions ---------------------------------------------------------------------------

#define TANH_GELU_SCALE 1.5957691216057308 // 2 sqrt(2 / pi)

static double f_sigmoid(double x, double b) {
    (void)b;
    return 1 / (1 + exp(-x));
}
static double f_silu(double x, double b) {
    return x / (1 + exp(-b * x));
}
static double f_gelu(double x, double b) {
    (void)b;
    return x / 2 * erfc(-x / 1.4142135623730951);
}
static double f_tanh_gelu(double x, double b) {
    (void)b;
    return x / (1 + exp(-TANH_GELU_SCALE * (x + 0.044715 * x * x * x)));
}
static double f_tanh(double x, double b) {
    (void)b;
    return tanh(x);
}
static double f_rsqrt(double x, double b) {
    (void)b;
    return 1 / sqrt(x);
}
static double f_hardsigmoid(double x, double b) {
    (void)b;
    return fmin(1, fmax(0, x / 6 + 0.5));
}
static double f_hardswish(double x, double b) {
    return x * f_hardsigmoid(x, b);
}
static double f_mish(double x, double b) {
    (void)b;
    return x * tanh(log1p(exp(fmin(x, 300)) + 0.0) + (x > 300 ? x - 300 : 0));
}

// A function and its chain; imm[] are its constants, BETA stands for the one that was found.
#define BETA (-1e300)
#define BETA_INVERSE (-2e300)
struct activation {
    double (*f)(double x, double beta);
    bool smooth, positive, scaled; // domain x > 0; has a factor beta within
    int nstage;
    struct isa_stage st[7];
    double imm[4];
};

// NOLINTBEGIN(readability-magic-numbers)
static const struct activation table[] = {
    {f_rsqrt, true, true, false, 1, {{.op = ISA_VOP_RSQRT}}, {0}},
    {f_sigmoid, true, false, false, 1, {{.op = ISA_VOP_SIGMOID}}, {0}},
    {f_tanh, true, false, false, 1, {{.op = ISA_VOP_TANH}}, {0}},
    {f_gelu, true, false, false, 1, {{.op = ISA_VOP_GELU}}, {0}},
    {f_tanh_gelu,
     true,
     false,
     false,
     5,
     {{.op = ISA_VOP_MUL, .a = ISA_SRC_ACC},
      {.op = ISA_VOP_FMA, .a = ISA_SRC_IMM0, .b = ISA_SRC_IMM1},
      {.op = ISA_VOP_MUL, .a = ISA_SRC_IN0},
      {.op = ISA_VOP_SIGMOID},
      {.op = ISA_VOP_MUL, .a = ISA_SRC_IN0}},
     {TANH_GELU_SCALE * 0.044715, TANH_GELU_SCALE}},
    {f_silu, true, false, false, 1, {{.op = ISA_VOP_SILU}}, {0}},
    {f_silu,
     true,
     false,
     true,
     3,
     {{.op = ISA_VOP_MUL, .a = ISA_SRC_IMM0},
      {.op = ISA_VOP_SILU},
      {.op = ISA_VOP_MUL, .a = ISA_SRC_IMM1}},
     {BETA, BETA_INVERSE}},
    // Three numbers, so that a chain has room for one more behind it.
    {f_hardsigmoid,
     false,
     false,
     false,
     4,
     {{.op = ISA_VOP_ADD, .a = ISA_SRC_IMM0},
      {.op = ISA_VOP_MAX, .a = ISA_SRC_IMM1},
      {.op = ISA_VOP_MIN, .a = ISA_SRC_IMM2},
      {.op = ISA_VOP_DIV, .a = ISA_SRC_IMM2}},
     {3, 0, 6}},
    {f_hardswish,
     false,
     false,
     false,
     5,
     {{.op = ISA_VOP_ADD, .a = ISA_SRC_IMM0},
      {.op = ISA_VOP_MAX, .a = ISA_SRC_IMM1},
      {.op = ISA_VOP_MIN, .a = ISA_SRC_IMM2},
      {.op = ISA_VOP_MUL, .a = ISA_SRC_IN0},
      {.op = ISA_VOP_DIV, .a = ISA_SRC_IMM2}},
     {3, 0, 6}},
    // x w / (w + 2), w = e (e + 2), e = exp(min(x, 20))
    {f_mish,
     false,
     false,
     false,
     7,
     {{.op = ISA_VOP_MIN, .a = ISA_SRC_IMM0},
      {.op = ISA_VOP_EXP, .save = 1},
      {.op = ISA_VOP_ADD, .a = ISA_SRC_IMM1},
      {.op = ISA_VOP_MUL, .a = ISA_SRC_TMP, .save = 1},
      {.op = ISA_VOP_ADD, .a = ISA_SRC_IMM1},
      {.op = ISA_VOP_RDIV, .a = ISA_SRC_TMP},
      {.op = ISA_VOP_MUL, .a = ISA_SRC_IN0}},
     {20, 2}},
};
// NOLINTEND(readability-magic-numbers)

// ---- comparing -------------------------------------------------------------------------------

// Points of either sign, dense where activations bend, and out to where f16 ends.
static void sample_points(double x[POINTS]) {
    for (int i = 0; i < POINTS / 2; i++) {
        double at = i < 24 ? 0.31 * i + 0.013 * (i % 5) : 8.5 * pow(2.6, i - 24);
        x[2 * i] = at;
        x[2 * i + 1] = -at;
    }
    x[1] = 1e-3;
}

struct seen {
    double x[POINTS], y[POINTS];
    double tolerance;
    bool smooth;
    int stages, specials;
};

static bool agrees(const struct seen *s, const struct activation *a, double beta) {
    int compared = 0;
    for (int i = 0; i < POINTS; i++) {
        if (a->positive && s->x[i] <= 0) continue;
        double want = a->f(s->x[i], beta), got = s->y[i];
        if (isnan(want) || isnan(got)) {
            // exp(-x) overflows long before x does: such a point says nothing.
            if (isnan(want) || fabs(s->x[i]) < 60) return false;
            continue;
        }
        compared++;
        double scale = a->positive ? fabs(want) : fmax(1, fabs(s->x[i]));
        if (isinf(want) || isinf(got) || fabs(want - got) > s->tolerance * scale) return false;
    }
    return compared > POINTS / 4;
}

// The factor b of x sigmoid(b x), from one point.
static double find_beta(const struct seen *s) {
    for (int i = 0; i < POINTS; i++) {
        double ratio = s->y[i] / s->x[i];
        if (s->x[i] > 0.5 && s->x[i] < 1.0 && ratio > 0.5 && ratio < 0.999)
            return log(ratio / (1 - ratio)) / s->x[i];
    }
    return (double)NAN;
}

static double rounded(double x) {
    double grid = 4096 * 16;
    double near = nearbyint(x * 1e4) / 1e4; // a factor of few digits is meant exactly
    return fabs(near - x) < 1 / grid ? near : x;
}

static const struct activation *recognise(const struct seen *s, double *beta) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct activation *a = &table[i];
        if (a->smooth && !s->smooth) continue;
        *beta = 1;
        if (a->scaled) *beta = find_beta(s);
        if (isnan(*beta)) continue;
        if (a->scaled) *beta = rounded(*beta);
        if (agrees(s, a, *beta)) return a;
    }
    return NULL;
}

// ---- rewriting -------------------------------------------------------------------------------

static int special_count(const struct activation *a) {
    int n = 0;
    for (int i = 0; i < a->nstage; i++)
        n += isa_vop_is_sf((int)a->st[i].op);
    return n;
}

// Different immediates that stages read.
static int numbers_in(const struct isa_chain *c) {
    int n = 0;
    for (int k = 0; k < ISA_IMMS; k++)
        n += chain_reads(c, (enum isa_src)(ISA_SRC_IMM0 + k));
    return n;
}

static int number_count(const struct activation *a) {
    struct isa_chain c;
    memset(&c, 0, sizeof c);
    memcpy(c.st, a->st, (size_t)a->nstage * sizeof *a->st);
    return numbers_in(&c);
}

static npu_status rewrite(struct pass_context *c, const struct probe *p, const struct activation *a,
                          double beta) {
    struct graph *g = c->g;
    struct graph_value *y = p->root->outputs[0], *x = p->source, *fresh;
    struct isa_chain chain;
    memset(&chain, 0, sizeof chain);
    memcpy(chain.st, a->st, (size_t)a->nstage * sizeof *a->st);
    for (int i = 0; i < 4; i++) {
        if (!chain_reads(&chain, (enum isa_src)(ISA_SRC_IMM0 + i))) continue;
        bool plain = a->imm[i] > BETA / 2;
        float f = (float)(plain ? a->imm[i] : a->imm[i] > BETA_INVERSE / 1.5 ? beta : 1 / beta);
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        chain.imm[i] = bits;
    }
    NPU_TRY(graph_add_map(g, p->root->name, 1, &x, &chain, y->dtype, p->root, &fresh));
    for (int i = p->n - 1; i >= 0; i--)
        graph_add_origins(g, fresh->producer, p->node[i]);
    graph_replace_uses(g, y, fresh);
    const char *name = y->name;
    for (int i = 0; i < p->n; i++)
        graph_remove_node(g, p->node[i]);
    if (!fresh->is_output) graph_rename_value(g, fresh, name);
    c->log->fused += p->n - 1;
    return NULL;
}

// The function that the group computes, when a chain of the table is shorter.
static const struct activation *match(struct pass_context *c, const struct probe *p, double *beta) {
    struct seen s = {.smooth = p->smooth, .stages = p->stages, .specials = p->specials};
    bool half = p->source->dtype != ISA_F32 || p->root->outputs[0]->dtype != ISA_F32;
    for (int i = 0; i < p->n; i++)
        half = half || p->node[i]->outputs[0]->dtype == ISA_F16;
    s.tolerance = half ? 5e-5 : 2e-6; // the constants are rounded to the type
    sample_points(s.x);
    if (!probe_run(p, s.x, POINTS, s.y, c->scratch)) return NULL;
    const struct activation *a = recognise(&s, beta);
    if (!a) return NULL;
    bool shorter = a->nstage < s.stages || special_count(a) < s.specials ||
                   (a->nstage == s.stages && number_count(a) < numbers_in(&p->root->chain));
    return shorter || (p->n > 1 && a->nstage <= s.stages) ? a : NULL;
}

static npu_status try_root(struct pass_context *c, struct graph_node *root) {
    struct probe p;
    double beta;
    probe_begin(&p, c->g, root);
    do {
        if (p.reduces || p.n > MAX_NODES) return NULL;
        if (p.stages < 2 || !probe_closed(&p)) continue;
        const struct activation *a = match(c, &p, &beta);
        if (a) return rewrite(c, &p, a, beta);
    } while (probe_extend(&p));
    return NULL;
}

npu_status pass_activation(struct pass_context *c) {
    for (struct graph_node *n = c->g->first, *next; n; n = next) {
        next = n->next;
        if (n->op == GRAPH_MAP && isa_dtype_is_float((int)n->outputs[0]->dtype))
            NPU_TRY(try_root(c, n));
    }
    return NULL;
}
