// SPDX-License-Identifier: Apache-2.0
//
// Shape rules of elementwise ops: MAP broadcasts its inputs, the others keep the first input's
// shape.

#include "toolchain/graph/shape.h"

#include <string.h>

npu_status shape_map(struct graph *g, struct graph_node *n) {
    int rank = 0;
    int64_t dims[GRAPH_MAX_RANK] = {0};
    enum isa_dtype dtype = n->inputs[0]->dtype;
    for (int k = 0; k < n->nown; k++) {
        const struct graph_value *v = n->inputs[k];
        if (!shape_broadcast(&rank, dims, v))
            return npu_fail(BAD_INPUT,
                            "input %d ('%s') has shape %s, which does not broadcast with %s", k,
                            v->name, shape_text(g->arena, v->rank, v->dims),
                            shape_text(g->arena, rank, dims));
        dtype = shape_promote(dtype, v->dtype);
    }
    shape_set(n->outputs[0], dtype, rank, dims);
    return NULL;
}

// SOFTMAX and BATCHNORM need an axis or channels that exist; COPY nothing.
npu_status shape_same(struct graph *g, struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    int axis;
    if (n->op == GRAPH_SOFTMAX) NPU_TRY(shape_axis(n, x->rank, &axis));
    if (n->op == GRAPH_BATCHNORM) {
        NPU_TRY(shape_rank(n, 0, 2, GRAPH_MAX_RANK));
        for (int k = 1; k < 5; k++) {
            const struct graph_value *v = n->inputs[k];
            if (v->rank != 1 || v->dims[0] != x->dims[1])
                return npu_fail(BAD_INPUT,
                                "input %d ('%s') has shape %s, expected [%lld], the channels "
                                "of '%s'",
                                k, v->name, shape_text(g->arena, v->rank, v->dims),
                                (long long)x->dims[1], x->name);
        }
    }
    shape_set(n->outputs[0], x->dtype, x->rank, x->dims);
    return NULL;
}

// LAYERNORM, RMSNORM: scale and bias broadcast to the normalised dimensions.
npu_status shape_layernorm(struct graph *g, struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    int axis;
    NPU_TRY(shape_axis(n, x->rank, &axis));
    for (int k = 1; k < n->nown; k++) {
        const struct graph_value *v = n->inputs[k];
        bool fits = v->rank == x->rank - axis;
        for (int d = 0; fits && d < v->rank; d++)
            fits = v->dims[d] == x->dims[axis + d];
        if (!fits)
            return npu_fail(BAD_INPUT,
                            "input %d ('%s') has shape %s, expected %s, the dimensions of "
                            "'%s' from axis %d on",
                            k, v->name, shape_text(g->arena, v->rank, v->dims),
                            shape_text(g->arena, x->rank - axis, x->dims + axis), x->name, axis);
    }
    shape_set(n->outputs[0], x->dtype, x->rank, x->dims);
    return NULL;
}

// Reduced dimensions become 1 or go; argmax gives i64.
npu_status shape_reduce(struct graph *g, struct graph_node *n) {
    (void)g;
    const struct graph_value *x = n->inputs[0];
    int mode;
    NPU_TRY(shape_word(n, GRAPH_ATTR_MODE, "sum|mean|max|min|sumsq|prod|argmax", NULL, &mode));
    const struct graph_attr *axes = graph_attr(n, GRAPH_ATTR_AXES);
    if (!axes) return npu_fail(BAD_INPUT, "attribute axes is missing");
    bool reduced[GRAPH_MAX_RANK] = {false};
    for (int k = 0; k < axes->n; k++) {
        int64_t d = axes->ints[k];
        if (d < 0 || d >= x->rank || (k && d <= axes->ints[k - 1]))
            return npu_fail(BAD_INPUT,
                            "attribute axes[%d] is %lld, expected ascending dimensions of '%s', "
                            "which has rank %d",
                            k, (long long)d, x->name, x->rank);
        reduced[d] = true;
        if (!x->dims[d] && mode >= 2 && mode != 4 && mode != 5)
            return npu_fail(BAD_INPUT, "the %s over dimension %lld of '%s', which has size 0",
                            graph_word(n, GRAPH_ATTR_MODE, ""), (long long)d, x->name);
    }
    if (mode == 6 && axes->n != 1)
        return npu_fail(BAD_INPUT, "argmax over %d axes, expected 1", axes->n);
    int rank = 0;
    int64_t dims[GRAPH_MAX_RANK] = {0};
    for (int d = 0; d < x->rank; d++) {
        if (!reduced[d])
            dims[rank++] = x->dims[d];
        else if (graph_int(n, GRAPH_ATTR_KEEPDIMS, 0))
            dims[rank++] = 1;
    }
    shape_set(n->outputs[0], mode == 6 ? ISA_I64 : x->dtype, rank, dims);
    return NULL;
}
