// SPDX-License-Identifier: Apache-2.0
//
// Reference kernels of ROTARY, GROUPNORM, GLU and GLU_MLP. Products accumulate in f32 in ascending
// k, one fused multiply-add a step; elementwise work is in f32, and what a kernel would keep in the
// scratchpad between two products is rounded to the operands' type.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/graph/act.h"
#include "toolchain/graph/eval.h"

// ---- rotary ----------------------------------------------------------------------------------

// First element of the row of v that belongs to row `index` of x (dimensions before the last,
// aligned at the last).
static int64_t row_of(const struct graph_value *v, const struct graph_value *x, int64_t index) {
    int64_t at = 0, step = v->dims[v->rank - 1];
    for (int d = x->rank - 2, s = v->rank - 2; d >= 0; d--, s--) {
        if (s >= 0 && v->dims[s] > 1) at += index % x->dims[d] * step;
        if (s >= 0) step *= v->dims[s];
        index /= x->dims[d];
    }
    return at;
}

npu_status eval_rotary(struct graph_eval *e) {
    const struct graph_value *x = e->n->inputs[0], *table = e->n->inputs[1];
    const float *from = eval_floats(e, 0), *cosine = eval_floats(e, 1), *sine = eval_floats(e, 2);
    int64_t width = x->dims[x->rank - 1], dim = graph_int(e->n, GRAPH_ATTR_ROTARY_DIM, width);
    bool inter = graph_int(e->n, GRAPH_ATTR_INTERLEAVED, 0) != 0,
         wide = table->dims[table->rank - 1] == dim;
    int64_t rows = graph_value_elems(x) / width, half = dim / 2;
    for (int64_t r = 0; r < rows; r++) {
        const float *in = from + r * width, *c = cosine + row_of(table, x, r),
                    *s = sine + row_of(e->n->inputs[2], x, r);
        float *out = e->f + r * width;
        for (int64_t i = 0; i < half; i++) {
            int64_t a = inter ? 2 * i : i, b = inter ? a + 1 : a + half;
            float back = in[b] * s[wide ? a : i], forth = in[a] * s[wide ? b : i];
            out[a] = in[a] * c[wide ? a : i] - back;
            out[b] = in[b] * c[wide ? b : i] + forth;
        }
        memcpy(out + dim, in + dim, (size_t)(width - dim) * sizeof *out);
    }
    return NULL;
}

// ---- group normalisation ---------------------------------------------------------------------

npu_status eval_groupnorm(struct graph_eval *e) {
    const struct graph_node *n = e->n;
    const struct graph_value *x = n->inputs[0];
    int64_t group = graph_int(n, GRAPH_ATTR_GROUP, 1), channels = x->dims[1];
    int64_t runs = x->dims[0] * group, span = graph_value_elems(x) / runs;
    int64_t inner = graph_value_elems(x) / (x->dims[0] * channels);
    const float *from = eval_floats(e, 0);
    const float *scale = n->nown > 1 ? eval_floats(e, 1) : NULL,
                *bias = n->nown > 2 ? eval_floats(e, 2) : NULL;
    float eps = (float)graph_float(n, GRAPH_ATTR_EPSILON, 1e-5);
    for (int64_t r = 0; r < runs; r++) {
        const float *line = from + r * span;
        double sum = 0, square = 0;
        for (int64_t k = 0; k < span; k++)
            sum += (double)line[k];
        float mean = (float)(sum / (double)span);
        for (int64_t k = 0; k < span; k++)
            square += (double)(line[k] - mean) * (double)(line[k] - mean);
        float factor = num_rsqrt((float)(square / (double)span) + eps);
        for (int64_t k = 0; k < span; k++) {
            int64_t c = r % group * (channels / group) + k / inner;
            float y = (line[k] - mean) * factor;
            if (scale) y *= scale[c];
            if (bias) y += bias[c];
            e->f[r * span + k] = y;
        }
    }
    return NULL;
}

// ---- gated products --------------------------------------------------------------------------

// acc[j] = the stages of the activation of acc[j].
static void activate(struct graph_eval *e, int act, float *acc, size_t n) {
    const struct graph_act *f = &graph_acts[act];
    float *x = arena_copy(e->scratch, acc, n * sizeof *acc),
          *out = ARENA_ARRAY(e->scratch, float, n), *imm[4];
    for (int k = 0; k < 4; k++) {
        imm[k] = ARENA_ARRAY(e->scratch, float, n);
        for (size_t i = 0; i < n; i++)
            imm[k][i] = (float)f->imm[k];
    }
    for (int s = 0; s < f->stages; s++) {
        const float *operand[2];
        const int64_t src[2] = {f->st[s].a, f->st[s].b};
        for (int k = 0; k < 2; k++)
            operand[k] = src[k] >= ISA_SRC_IMM0 && src[k] <= ISA_SRC_IMM3
                             ? imm[src[k] - ISA_SRC_IMM0]
                         : src[k] == ISA_SRC_IN0 ? x
                                                 : acc;
        num_vops_f32((int)f->st[s].op, out, acc, operand[0], operand[1], n);
        memcpy(acc, out, n * sizeof *acc);
    }
}

// Row-major [k][n] elements of weights that may be stored turned.
static const float *upright(struct graph_eval *e, int input, bool turned) {
    const struct graph_value *v = e->n->inputs[input];
    const float *from = eval_floats(e, input);
    if (!turned) return from;
    int64_t n = v->dims[0], k = v->dims[1];
    float *to = ARENA_ARRAY(e->scratch, float, (size_t)(n * k));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++)
            to[j * n + i] = from[i * k + j];
    return to;
}

struct gate {
    int64_t rows, k, n, ld; // ld: columns of a row of the weights
    const float *x, *w[2], *bias[2];
    int act, used; // used: inputs
};

static struct gate gate_of(struct graph_eval *e) {
    const struct graph_node *n = e->n;
    const struct graph_value *x = n->inputs[0];
    int64_t halves = graph_int(n, GRAPH_ATTR_HALVES, 0);
    bool turned = graph_int(n, GRAPH_ATTR_TRANS_B, 0) != 0,
         biased = graph_int(n, GRAPH_ATTR_BIASED, 0) != 0;
    struct gate g = {.k = x->dims[x->rank - 1], .x = eval_floats(e, 0)};
    g.rows = graph_value_elems(x) / g.k;
    g.ld = n->inputs[1]->dims[turned ? 0 : 1];
    g.n = halves ? g.ld / 2 : g.ld;
    g.act = graph_act_parse(graph_word(n, GRAPH_ATTR_ACT, "identity"));
    for (int i = 0; i < 2; i++) {
        int64_t at = halves == 0 ? 0 : (halves == 1) == (i == 0) ? 0 : g.n;
        g.w[i] = upright(e, halves ? 1 : 1 + i, turned) + at;
        if (biased) g.bias[i] = eval_floats(e, halves ? 2 : 3 + i) + at;
    }
    g.used = (halves ? 1 : 2) * (biased ? 2 : 1) + 1;
    return g;
}

// One row of the gated product into a; b is room for as much.
static void gate_row(struct graph_eval *e, const struct gate *g, int64_t r, float *a, float *b) {
    float *part[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        memset(part[i], 0, (size_t)g->n * sizeof **part);
        eval_fma_rows(part[i], g->x + r * g->k, 1, g->w[i], (size_t)g->ld, (size_t)g->k,
                      (size_t)g->n);
        for (int64_t j = 0; g->bias[i] && j < g->n; j++)
            part[i][j] += g->bias[i][j];
    }
    activate(e, g->act, a, (size_t)g->n);
    for (int64_t j = 0; j < g->n; j++)
        a[j] *= b[j];
}

npu_status eval_glu(struct graph_eval *e) {
    struct gate g = gate_of(e);
    float *b = ARENA_ARRAY(e->scratch, float, (size_t)g.n);
    for (int64_t r = 0; r < g.rows; r++)
        gate_row(e, &g, r, e->f + r * g.n, b);
    return NULL;
}

npu_status eval_glu_mlp(struct graph_eval *e) {
    struct gate g = gate_of(e);
    const struct graph_value *w = e->n->inputs[g.used];
    bool turned = graph_int(e->n, GRAPH_ATTR_TRANS_DOWN, 0) != 0;
    const float *down = upright(e, g.used, turned);
    int64_t m = w->dims[turned ? 0 : 1];
    float *a = ARENA_ARRAY(e->scratch, float, (size_t)g.n),
          *b = ARENA_ARRAY(e->scratch, float, (size_t)g.n);
    memset(e->f, 0, (size_t)(g.rows * m) * sizeof *e->f);
    for (int64_t r = 0; r < g.rows; r++) {
        gate_row(e, &g, r, a, b);
        for (int64_t j = 0; j < g.n; j++)
            a[j] = num_round_to((int)e->n->inputs[0]->dtype, a[j]);
        eval_fma_rows(e->f + r * m, a, 1, down, (size_t)m, (size_t)g.n, (size_t)m);
    }
    return NULL;
}
