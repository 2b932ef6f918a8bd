// SPDX-License-Identifier: Apache-2.0
// Attention as products and a softmax, when the pass that fuses it does not run: what a model's own
// attention nodes become then is what they would have been taken from.
//
//   keys and values repeated for the heads that share them
//   scale (product), softcap, added mask, mask and window that hide, softmax, rows of NaN to 0
#include <math.h>
#include <string.h>

#include "toolchain/passes/pass.h"

struct plain {
    struct graph *g;
    struct graph_node *n; // the attention
    struct graph_value *score;
};

static npu_status made(const struct plain *p, struct graph_node *node, struct graph_value **out) {
    NPU_TRY(graph_infer(p->g, node, p->n->name));
    graph_add_origins(p->g, node, p->n);
    *out = node->outputs[0];
    return NULL;
}

static npu_status shaped(const struct plain *p, enum graph_op op, int rank, const int64_t *dims,
                         struct graph_value **v) {
    struct graph_node *node = graph_add_node(p->g, op, p->n->name, 1, v, p->n);
    graph_set_ints(p->g, node, GRAPH_ATTR_SHAPE, rank, dims);
    return made(p, node, v);
}

// Input k with every head as often as query heads read it.
static npu_status repeated(const struct plain *p, int k, struct graph_value **out) {
    struct graph_value *v = p->n->inputs[k];
    int r = v->rank;
    int64_t times = p->n->inputs[0]->dims[r - 3] / v->dims[r - 3], dims[GRAPH_MAX_RANK + 1];
    *out = v;
    if (times == 1) return NULL;
    if (r == GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "node '%s': grouped heads in rank %d", p->n->name, r);
    memcpy(dims, v->dims, (size_t)(r - 2) * sizeof *dims);
    dims[r - 2] = 1;
    dims[r - 1] = v->dims[r - 2];
    dims[r] = v->dims[r - 1];
    NPU_TRY(shaped(p, GRAPH_RESHAPE, r + 1, dims, out));
    dims[r - 2] = times;
    NPU_TRY(shaped(p, GRAPH_EXPAND, r + 1, dims, out));
    memcpy(dims, v->dims, (size_t)r * sizeof *dims);
    dims[r - 3] *= times;
    return shaped(p, GRAPH_RESHAPE, r, dims, out);
}

static npu_status product(const struct plain *p, struct graph_value *a, struct graph_value *b,
                          bool turned, struct graph_value **out) {
    struct graph_value *in[] = {a, b};
    struct graph_node *node = graph_add_node(p->g, GRAPH_MATMUL, p->n->name, 2, in, p->n);
    if (turned) graph_set_int(p->g, node, GRAPH_ATTR_TRANS_B, 1);
    return made(p, node, out);
}

static int64_t bits_of(double v) {
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (int64_t)u;
}

// A MAP of up to three stages, immediates x.
static npu_status map(const struct plain *p, int nin, struct graph_value *const *in,
                      const struct isa_stage st[3], double x, enum isa_dtype dtype,
                      struct graph_value **out) {
    struct isa_chain c = {.imm = {bits_of(x)}};
    memcpy(c.st, st, 3 * sizeof *st);
    NPU_TRY(graph_add_map(p->g, p->n->name, nin, in, &c, dtype, p->n, out));
    graph_add_origins(p->g, (*out)->producer, p->n);
    return NULL;
}

// keep ? score : fill
static npu_status hide(struct plain *p, struct graph_value *keep) {
    const struct isa_stage st[3] = {{ISA_VOP_SEL, ISA_SRC_IN1, ISA_SRC_IMM0, 0}};
    return map(p, 2, (struct graph_value *[]){keep, p->score}, st,
               graph_float(p->n, GRAPH_ATTR_FILL, -HUGE_VAL), p->score->dtype, &p->score);
}

static npu_status window(struct plain *p) {
    int64_t m = p->score->dims[p->score->rank - 2], s = p->score->dims[p->score->rank - 1];
    int64_t left = graph_ints_at(p->n, GRAPH_ATTR_WINDOW, 0, -1);
    int64_t right = graph_ints_at(p->n, GRAPH_ATTR_WINDOW, 1, -1);
    int64_t shift = graph_ints_at(p->n, GRAPH_ATTR_WINDOW, 2, 0);
    if (left < 0 && right < 0) return NULL;
    uint8_t *keep = arena_alloc(p->g->arena, (size_t)(m * s) + 1);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < s; j++)
            keep[i * s + j] =
                (left < 0 || j >= i + shift - left) && (right < 0 || j <= i + shift + right);
    return hide(p, graph_add_const(p->g, "window", ISA_BOOL, 2, (int64_t[]){m, s}, keep));
}

static npu_status masked(struct plain *p) {
    struct graph_value *mask = p->n->nown > 3 ? p->n->inputs[3] : NULL;
    double cap = graph_float(p->n, GRAPH_ATTR_SOFTCAP, 0);
    const struct isa_stage scale[3] = {{ISA_VOP_MUL, ISA_SRC_IMM0, 0, 0}};
    const struct isa_stage bound[3] = {{ISA_VOP_DIV, ISA_SRC_IMM0, 0, 0},
                                       {ISA_VOP_TANH, 0, 0, 0},
                                       {ISA_VOP_MUL, ISA_SRC_IMM0, 0, 0}};
    const struct isa_stage add[3] = {{ISA_VOP_ADD, ISA_SRC_IN1, 0, 0}};
    NPU_TRY(map(p, 1, &p->score, scale, graph_float(p->n, GRAPH_ATTR_SCALE, 1), p->score->dtype,
                &p->score));
    if (cap > 0) NPU_TRY(map(p, 1, &p->score, bound, cap, p->score->dtype, &p->score));
    if (mask && isa_dtype_is_float((int)mask->dtype))
        NPU_TRY(map(p, 2, (struct graph_value *[]){p->score, mask}, add, 0, p->score->dtype,
                    &p->score));
    else if (mask)
        NPU_TRY(hide(p, mask));
    return window(p);
}

static npu_status weights(struct plain *p) {
    struct graph_node *node = graph_add_node(p->g, GRAPH_SOFTMAX, p->n->name, 1, &p->score, p->n);
    graph_set_int(p->g, node, GRAPH_ATTR_AXIS, p->score->rank - 1);
    NPU_TRY(made(p, node, &p->score));
    if (!graph_int(p->n, GRAPH_ATTR_ZERO_ROWS, 0)) return NULL;
    if (!isinf(graph_float(p->n, GRAPH_ATTR_FILL, -HUGE_VAL)))
        return npu_fail(UNSUPPORTED,
                        "node '%s': zero_rows with a fill of %g needs the pass attention",
                        p->n->name, graph_float(p->n, GRAPH_ATTR_FILL, 0));
    struct graph_value *test;
    const struct isa_stage is_nan[3] = {{ISA_VOP_NE, ISA_SRC_IN0, 0, 0}};
    const struct isa_stage zero[3] = {{ISA_VOP_SEL, ISA_SRC_IMM0, ISA_SRC_IN1, 0}};
    NPU_TRY(map(p, 1, &p->score, is_nan, 0, ISA_BOOL, &test));
    return map(p, 2, (struct graph_value *[]){test, p->score}, zero, 0, p->score->dtype, &p->score);
}

static npu_status expand(struct pass_context *c, struct graph_node *n) {
    struct plain p = {.g = c->g, .n = n};
    struct graph_value *k, *v, *y = n->outputs[0], *out;
    const char *name = y->name;
    NPU_TRY(repeated(&p, 1, &k));
    NPU_TRY(repeated(&p, 2, &v));
    NPU_TRY(product(&p, n->inputs[0], k, true, &p.score));
    NPU_TRY(masked(&p));
    NPU_TRY(weights(&p));
    NPU_TRY(product(&p, p.score, v, false, &out));
    graph_replace_uses(c->g, y, out);
    graph_remove_node(c->g, n);
    if (!out->is_output) graph_rename_value(c->g, out, name);
    return NULL;
}

npu_status pass_attention_plain(struct pass_context *c) {
    const struct pass_options *o = c->options;
    if (o->level >= passes[PASS_attention].level && !o->skip[PASS_attention]) return NULL;
    for (struct graph_node *n = c->g->first, *next; n; n = next) {
        next = n->next;
        if (n->op == GRAPH_ATTENTION) NPU_TRY(expand(c, n));
    }
    return NULL;
}
