// SPDX-License-Identifier: Apache-2.0
//
// Shape rules of what transformer and image blocks are made of: ROTARY, GROUPNORM, GLU, GLU_MLP.

#include <string.h>

#include "toolchain/graph/act.h"
#include "toolchain/graph/shape.h"

static npu_status floating(const struct graph_node *n) {
    for (int k = 0; k < n->nown; k++)
        if (!isa_dtype_is_float((int)n->inputs[k]->dtype))
            return npu_fail(UNSUPPORTED, "input %d ('%s') is %s, expected a floating type", k,
                            n->inputs[k]->name, isa_dtype_name((int)n->inputs[k]->dtype));
    return NULL;
}

// A table of angles broadcasts to the dimensions of x before the last; its last one has a number
// for each rotated element or for each pair.
npu_status shape_rotary(struct graph *g, struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    NPU_TRY(floating(n));
    NPU_TRY(shape_rank(n, 0, 2, GRAPH_MAX_RANK));
    int64_t width = x->dims[x->rank - 1], dim = graph_int(n, GRAPH_ATTR_ROTARY_DIM, width);
    if (dim < 2 || dim % 2 || dim > width)
        return npu_fail(BAD_INPUT,
                        "attribute rotary_dim is %lld, expected an even number up to %lld",
                        (long long)dim, (long long)width);
    for (int k = 1; k < 3; k++) {
        const struct graph_value *v = n->inputs[k];
        bool fits = v->rank >= 1 && v->rank <= x->rank &&
                    (v->dims[v->rank - 1] == dim || v->dims[v->rank - 1] == dim / 2) &&
                    v->dims[v->rank - 1] == n->inputs[1]->dims[n->inputs[1]->rank - 1];
        for (int d = 0; fits && d < v->rank - 1; d++)
            fits = v->dims[d] == 1 || v->dims[d] == x->dims[x->rank - v->rank + d];
        if (!fits)
            return npu_fail(BAD_INPUT,
                            "input %d ('%s') has shape %s, expected one that broadcasts to '%s' %s "
                            "with %lld or %lld numbers in a row, as the other table",
                            k, v->name, shape_text(g->arena, v->rank, v->dims), x->name,
                            shape_text(g->arena, x->rank, x->dims), (long long)dim,
                            (long long)dim / 2);
    }
    shape_set(n->outputs[0], x->dtype, x->rank, x->dims);
    return NULL;
}

npu_status shape_groupnorm(struct graph *g, struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    NPU_TRY(floating(n));
    NPU_TRY(shape_rank(n, 0, 2, GRAPH_MAX_RANK));
    int64_t group = graph_int(n, GRAPH_ATTR_GROUP, 1);
    if (group < 1 || x->dims[1] % group)
        return npu_fail(BAD_INPUT,
                        "attribute group is %lld, expected a divisor of the %lld channels",
                        (long long)group, (long long)x->dims[1]);
    for (int k = 1; k < n->nown; k++) {
        const struct graph_value *v = n->inputs[k];
        if (v->rank != 1 || v->dims[0] != x->dims[1])
            return npu_fail(BAD_INPUT, "input %d ('%s') has shape %s, expected [%lld]", k, v->name,
                            shape_text(g->arena, v->rank, v->dims), (long long)x->dims[1]);
    }
    shape_set(n->outputs[0], x->dtype, x->rank, x->dims);
    return NULL;
}

// Checks inputs 0 .. of a gated product; *columns: of its result, *used: how many inputs it has.
static npu_status gated(struct graph *g, struct graph_node *n, int64_t *columns, int *used) {
    const struct graph_value *x = n->inputs[0];
    NPU_TRY(floating(n));
    NPU_TRY(shape_rank(n, 0, 1, GRAPH_MAX_RANK));
    const char *act = graph_word(n, GRAPH_ATTR_ACT, "identity");
    if (graph_act_parse(act) < 0)
        return npu_fail(BAD_INPUT, "attribute act is '%s', which is no activation", act);
    int64_t halves = graph_int(n, GRAPH_ATTR_HALVES, 0), k = x->dims[x->rank - 1];
    bool turned = graph_int(n, GRAPH_ATTR_TRANS_B, 0) != 0;
    if (halves < 0 || halves > 2)
        return npu_fail(BAD_INPUT, "attribute halves is %lld, expected 0, 1 or 2",
                        (long long)halves);
    int weights = halves ? 1 : 2, biases = graph_int(n, GRAPH_ATTR_BIASED, 0) ? weights : 0;
    *used = 1 + weights + biases;
    if (n->nown < *used) return npu_fail(BAD_INPUT, "%d inputs, expected %d", n->nown, *used);
    *columns = 0;
    for (int i = 1; i < *used; i++) {
        const struct graph_value *v = n->inputs[i];
        bool bias = i > weights;
        int64_t wide = v->rank ? v->dims[v->rank == 1 || !turned ? v->rank - 1 : 0] : 0;
        if (i == 1) *columns = wide;
        bool fits = v->rank == (bias ? 1 : 2) && wide == *columns &&
                    (bias || v->dims[turned ? 1 : 0] == k) && (!halves || wide % 2 == 0);
        if (!fits)
            return npu_fail(BAD_INPUT,
                            "input %d ('%s') has shape %s, which does not go with '%s' %s", i,
                            v->name, shape_text(g->arena, v->rank, v->dims), x->name,
                            shape_text(g->arena, x->rank, x->dims));
    }
    if (halves) *columns /= 2;
    return NULL;
}

npu_status shape_glu(struct graph *g, struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    int64_t dims[GRAPH_MAX_RANK], columns;
    int used;
    NPU_TRY(gated(g, n, &columns, &used));
    if (n->nown != used) return npu_fail(BAD_INPUT, "%d inputs, expected %d", n->nown, used);
    memcpy(dims, x->dims, sizeof dims);
    dims[x->rank - 1] = columns;
    shape_set(n->outputs[0], x->dtype, x->rank, dims);
    return NULL;
}

npu_status shape_glu_mlp(struct graph *g, struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    int64_t dims[GRAPH_MAX_RANK], columns;
    int used;
    NPU_TRY(gated(g, n, &columns, &used));
    if (n->nown != used + 1)
        return npu_fail(BAD_INPUT, "%d inputs, expected %d", n->nown, used + 1);
    const struct graph_value *w = n->inputs[used];
    int turned = graph_int(n, GRAPH_ATTR_TRANS_DOWN, 0) != 0;
    if (w->rank != 2 || w->dims[turned] != columns)
        return npu_fail(BAD_INPUT, "input %d ('%s') has shape %s, expected %lld rows", used,
                        w->name, shape_text(g->arena, w->rank, w->dims), (long long)columns);
    memcpy(dims, x->dims, sizeof dims);
    dims[x->rank - 1] = w->dims[1 - turned];
    shape_set(n->outputs[0], x->dtype, x->rank, dims);
    return NULL;
}
