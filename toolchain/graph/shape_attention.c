// SPDX-License-Identifier: Apache-2.0
//
// Shape rule of ATTENTION: three operands of one rank whose last three dimensions are heads, rows,
// depth; a mask that broadcasts to the scores; the result has the query's heads and rows and the
// values' depth.

#include <math.h>
#include <string.h>

#include "toolchain/graph/shape.h"

static npu_status check_types(const struct graph_node *n) {
    for (int k = 0; k < 3; k++) {
        const struct graph_value *v = n->inputs[k];
        if (!isa_dtype_is_float(v->dtype))
            return npu_fail(UNSUPPORTED, "'%s' is %s, attention takes floating operands", v->name,
                            isa_dtype_name(v->dtype));
        if (v->dtype != n->inputs[0]->dtype)
            return npu_fail(UNSUPPORTED, "'%s' is %s and '%s' is %s, attention takes one type",
                            n->inputs[0]->name, isa_dtype_name(n->inputs[0]->dtype), v->name,
                            isa_dtype_name(v->dtype));
    }
    return NULL;
}

// Batch dimensions are equal, so are the heads and rows of keys and values and the depths of
// queries and keys; the query's heads are a multiple of the keys'.
static npu_status check_dims(struct graph *g, const struct graph_node *n) {
    const struct graph_value *q = n->inputs[0], *k = n->inputs[1], *v = n->inputs[2];
    int rank = q->rank;
    bool fits = k->rank == rank && v->rank == rank;
    for (int d = 0; fits && d < rank - 3; d++)
        fits = k->dims[d] == q->dims[d] && v->dims[d] == q->dims[d];
    fits = fits && k->dims[rank - 3] == v->dims[rank - 3] &&
           k->dims[rank - 2] == v->dims[rank - 2] && k->dims[rank - 1] == q->dims[rank - 1];
    if (!fits)
        return npu_fail(BAD_INPUT,
                        "'%s' %s, '%s' %s and '%s' %s are no queries [..,H,M,D], keys [..,HK,S,D] "
                        "and values [..,HK,S,DV]",
                        q->name, shape_text(g->arena, rank, q->dims), k->name,
                        shape_text(g->arena, k->rank, k->dims), v->name,
                        shape_text(g->arena, v->rank, v->dims));
    int64_t heads = q->dims[rank - 3], key_heads = k->dims[rank - 3];
    if (heads && (!key_heads || heads % key_heads))
        return npu_fail(BAD_INPUT, "%lld query heads are no multiple of %lld key heads",
                        (long long)heads, (long long)key_heads);
    if (!k->dims[rank - 2]) return npu_fail(UNSUPPORTED, "attention over no keys ('%s')", k->name);
    return NULL;
}

static npu_status check_mask(struct graph *g, const struct graph_node *n) {
    if (n->nown < 4) return NULL;
    const struct graph_value *q = n->inputs[0], *mask = n->inputs[3];
    int rank = q->rank;
    int64_t scores[GRAPH_MAX_RANK], dims[GRAPH_MAX_RANK];
    memcpy(scores, q->dims, sizeof scores);
    scores[rank - 1] = n->inputs[1]->dims[rank - 2];
    memcpy(dims, scores, sizeof dims);
    if (shape_broadcast(&rank, dims, mask) && rank == q->rank &&
        !memcmp(dims, scores, (size_t)rank * sizeof *dims))
        return NULL;
    return npu_fail(BAD_INPUT, "the mask '%s' %s does not broadcast to the scores %s", mask->name,
                    shape_text(g->arena, mask->rank, mask->dims),
                    shape_text(g->arena, q->rank, scores));
}

static npu_status check_number(const struct graph_node *n, enum graph_attr_key key, double least,
                               bool needed) {
    const struct graph_attr *a = graph_attr(n, key);
    if (!a && needed) return npu_fail(BAD_INPUT, "attribute %s is missing", graph_attrs[key].text);
    if (a && (isnan(a->f) || a->f < least))
        return npu_fail(BAD_INPUT, "attribute %s is %g", graph_attrs[key].text, a->f);
    return NULL;
}

npu_status shape_attention(struct graph *g, struct graph_node *n) {
    const struct graph_value *q = n->inputs[0], *v = n->inputs[2];
    for (int k = 0; k < 3; k++)
        NPU_TRY(shape_rank(n, k, 3, GRAPH_MAX_RANK));
    NPU_TRY(check_types(n));
    NPU_TRY(check_dims(g, n));
    NPU_TRY(check_mask(g, n));
    NPU_TRY(check_number(n, GRAPH_ATTR_SCALE, -HUGE_VAL, true));
    NPU_TRY(check_number(n, GRAPH_ATTR_FILL, -HUGE_VAL, false));
    NPU_TRY(check_number(n, GRAPH_ATTR_SOFTCAP, 0, false));
    NPU_TRY(shape_ints(n, GRAPH_ATTR_WINDOW, 3, -((int64_t)1 << 43), (int64_t)1 << 43, false));
    for (int k = 0; k < 2; k++)
        if (graph_ints_at(n, GRAPH_ATTR_WINDOW, k, 0) < -1)
            return npu_fail(BAD_INPUT, "attribute window[%d] is %lld, expected -1 or more", k,
                            (long long)graph_ints_at(n, GRAPH_ATTR_WINDOW, k, 0));
    int64_t dims[GRAPH_MAX_RANK];
    memcpy(dims, q->dims, sizeof dims);
    dims[q->rank - 1] = v->dims[q->rank - 1];
    shape_set(n->outputs[0], q->dtype, q->rank, dims);
    return NULL;
}
