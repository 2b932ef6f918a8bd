// SPDX-License-Identifier: Apache-2.0
// Batch normalisation with constant statistics is y = x * s + t per channel, s = scale / sqrt(var +
// epsilon), t = bias - mean * s.
//
//   conv (constant weights, no other user), perhaps + constant bias, batchnorm   ->   conv with
//   weights * s, + (bias * s + t) anything else ->   MAP fma(x, s, t)
//
// s and t are computed in f64 and rounded once, folded weights to their own type.
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

struct affine {
    double *s, *t;
    int64_t channels;
};

static bool constants(const struct graph_node *n) {
    for (int i = 1; i < 5; i++)
        if (!n->inputs[i]->data || !isa_dtype_is_float((int)n->inputs[i]->dtype)) return false;
    return true;
}

static double element(const struct graph_value *v, int64_t i) {
    return (double)num_load_f32((int)v->dtype, v->data, i);
}

static struct affine affine_of(struct pass_context *c, const struct graph_node *n) {
    struct affine a = {.channels = graph_value_elems(n->inputs[1])};
    double eps = graph_float(n, GRAPH_ATTR_EPSILON, 1e-5);
    a.s = ARENA_ARRAY(c->scratch, double, (size_t)a.channels);
    a.t = ARENA_ARRAY(c->scratch, double, (size_t)a.channels);
    for (int64_t i = 0; i < a.channels; i++) {
        a.s[i] = element(n->inputs[1], i) / sqrt(element(n->inputs[4], i) + eps);
        a.t[i] = element(n->inputs[2], i) - element(n->inputs[3], i) * a.s[i];
    }
    return a;
}

// Constant [C, 1, 1, ...] that broadcasts along dimension 1 of a value of this rank.
static struct graph_value *per_channel(struct pass_context *c, const char *name, const char *suffix,
                                       const double *v, int64_t channels, int rank) {
    int64_t dims[GRAPH_MAX_RANK];
    for (int d = 0; d < GRAPH_MAX_RANK; d++)
        dims[d] = 1;
    dims[0] = channels;
    float *data = ARENA_ARRAY(c->g->arena, float, (size_t)channels);
    for (int64_t i = 0; i < channels; i++)
        data[i] = (float)v[i];
    return graph_add_const(c->g, arena_printf(c->g->arena, "%s.%s", name, suffix), ISA_F32,
                           rank > 1 ? rank - 1 : 1, dims, data);
}

// The constant per-channel bias that MAP `m` adds, or NULL when it does something else.
static const struct graph_value *bias_of(const struct graph_node *m, const struct graph_value *x,
                                         int64_t channels) {
    struct chain c = chain_of(m);
    if (chain_length(&c.c) != 1 || c.c.st[0].op != ISA_VOP_ADD || c.c.st[0].a != ISA_SRC_IN1 ||
        c.in[0] != x)
        return NULL;
    const struct graph_value *b = c.in[1];
    if (!b->data || !isa_dtype_is_float((int)b->dtype) || graph_value_elems(b) != channels ||
        x->rank < 2 || b->rank > x->rank || x->dims[1] != channels)
        return NULL;
    int d = b->rank - (x->rank - 1);
    return d >= 0 && b->dims[d] == channels ? b : NULL;
}

static bool convolution(const struct graph *g, const struct graph_node *n,
                        const struct graph_value *result) {
    if ((n->op != GRAPH_CONV && n->op != GRAPH_CONVT) || n->has_chain) return false;
    if (n->op == GRAPH_CONVT && graph_int(n, GRAPH_ATTR_GROUP, 1) != 1) return false;
    const struct graph_value *w = n->inputs[1];
    return w->data && isa_dtype_is_float((int)w->dtype) && isa_dtype_bits((int)w->dtype) >= 16 &&
           w->dtype != ISA_F64 && graph_value_elems(w) > 0 && graph_count_uses(g, result) == 1;
}

// Output channel of weight element i: dimension 0 of a convolution, dimension 1 of a transposed
// one.
static void scale_weights(struct pass_context *c, struct graph_node *conv, const double *s,
                          const char *name) {
    const struct graph_value *w = conv->inputs[1];
    int64_t n = graph_value_elems(w), inner = n / w->dims[0];
    void *data = arena_alloc(c->g->arena, (size_t)graph_value_bytes(w));
    int64_t taps = conv->op == GRAPH_CONVT ? inner / w->dims[1] : inner;
    for (int64_t i = 0; i < n; i++) {
        int64_t channel = conv->op == GRAPH_CONVT ? i / taps % w->dims[1] : i / inner;
        num_store_f32((int)w->dtype, data, i, (float)(element(w, i) * s[channel]));
    }
    conv->inputs[1] = graph_add_const(c->g, arena_printf(c->g->arena, "%s.folded", name), w->dtype,
                                      w->rank, w->dims, data);
}

static npu_status rewrite(struct pass_context *c, struct graph_node *bn) {
    struct graph_value *x = bn->inputs[0], *y = bn->outputs[0], *fresh;
    struct affine a = affine_of(c, bn);
    struct graph_node *conv = x->producer, *add = NULL;
    const struct graph_value *bias = NULL;
    if (conv && conv->op == GRAPH_MAP && graph_count_uses(c->g, x) == 1 && conv->nin == 2) {
        add = conv;
        struct graph_value *inner = add->inputs[0];
        bias = bias_of(add, inner, a.channels);
        conv = bias ? inner->producer : NULL;
    }
    struct graph_value *result = bias ? add->inputs[0] : x;
    if (conv && convolution(c->g, conv, result)) {
        for (int64_t i = 0; bias && i < a.channels; i++)
            a.t[i] += element(bias, i) * a.s[i];
        scale_weights(c, conv, a.s, conv->inputs[1]->name);
        struct isa_chain chain = {.st = {{ISA_VOP_ADD, ISA_SRC_IN1, 0, 0}}};
        struct graph_value *in[] = {result,
                                    per_channel(c, bn->name, "shift", a.t, a.channels, x->rank)};
        NPU_TRY(graph_add_map(c->g, bn->name, 2, in, &chain, y->dtype, bn, &fresh));
        if (bias) graph_add_origins(c->g, fresh->producer, add);
    } else {
        struct isa_chain chain = {.st = {{ISA_VOP_FMA, ISA_SRC_IN1, ISA_SRC_IN2, 0}}};
        struct graph_value *in[] = {x, per_channel(c, bn->name, "scale", a.s, a.channels, x->rank),
                                    per_channel(c, bn->name, "shift", a.t, a.channels, x->rank)};
        NPU_TRY(graph_add_map(c->g, bn->name, 3, in, &chain, y->dtype, bn, &fresh));
    }
    graph_add_origins(c->g, fresh->producer, bn);
    graph_replace_uses(c->g, y, fresh);
    const char *value_name = y->name;
    graph_remove_node(c->g, bn);
    if (!fresh->is_output) graph_rename_value(c->g, fresh, value_name);
    if (bias && !graph_count_uses(c->g, x)) graph_remove_node(c->g, add);
    return NULL;
}

npu_status pass_batchnorm(struct pass_context *c) {
    for (struct graph_node *n = c->g->first, *next; n; n = next) {
        next = n->next;
        if (n->op != GRAPH_BATCHNORM) continue;
        if (!constants(n))
            return npu_fail(UNSUPPORTED,
                            "node '%s' (batchnorm): scale, bias, mean and variance must be "
                            "constant floating tensors",
                            n->name);
        NPU_TRY(rewrite(c, n));
    }
    return NULL;
}
