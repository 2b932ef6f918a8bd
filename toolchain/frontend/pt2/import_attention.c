// SPDX-License-Identifier: Apache-2.0
//
// scaled_dot_product_attention stays one node.

#include <math.h>
#include <string.h>

#include "toolchain/frontend/pt2/import.h"

// Batch dimensions of an operand as those of the query, for matrices with one head.
static npu_status as_query(struct pt2_node *n, const struct graph_value *q, struct graph_value *x,
                           struct graph_value **out) {
    int64_t dims[GRAPH_MAX_RANK];
    *out = x;
    if (x->rank != q->rank) return NULL; // the node's shape rule says what is wrong
    memcpy(dims, x->dims, sizeof dims);
    for (int d = 0; d < x->rank - 3; d++)
        if (dims[d] == 1) dims[d] = q->dims[d];
    return build_expand(&n->b, x, x->rank, dims, out);
}

npu_status aten_sdpa(struct pt2_node *n) {
    struct graph_value *in[4] = {pt2_need(n, "query"), pt2_need(n, "key"), pt2_need(n, "value"),
                                 pt2_in(n, "attn_mask")},
                       *y;
    bool causal = pt2_bool(n, "is_causal"), grouped = pt2_bool(n, "enable_gqa");
    double dropout = pt2_float(n, "dropout_p"), scale = 0;
    if (pt2_given(n, "scale")) scale = pt2_float(n, "scale");
    if (n->failed) return NULL;
    int rank = in[0]->rank;
    if (dropout != 0)
        return npu_fail(UNSUPPORTED, "dropout_p %g: export the model after eval()", dropout);
    if (rank < 2)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 2 or more", in[0]->name, rank);
    if (!pt2_given(n, "scale")) scale = 1 / sqrt((double)in[0]->dims[rank - 1]);
    if (rank > 2 && !grouped && in[1]->rank == rank && in[1]->dims[rank - 3] == 1 &&
        in[0]->dims[rank - 3] > 1)
        grouped = true; // one head of keys broadcasts over all
    for (int k = 0; k < 3; k++) {
        if (in[k]->rank == 2)
            NPU_TRY(build_reshape(&n->b, in[k], 3, (int64_t[]){1, in[k]->dims[0], in[k]->dims[1]},
                                  &in[k]));
        else if (k)
            NPU_TRY(as_query(n, in[0], in[k], &in[k]));
    }
    if (!grouped && in[1]->rank >= 3 &&
        in[1]->dims[in[1]->rank - 3] != in[0]->dims[in[0]->rank - 3])
        return npu_fail(BAD_INPUT,
                        "'%s' and '%s' have different numbers of heads, and enable_gqa is "
                        "False",
                        in[0]->name, in[1]->name);
    struct graph_node *node = build_core(&n->b, GRAPH_ATTENTION, in[3] ? 4 : 3, in);
    graph_set_float(n->m->g, node, GRAPH_ATTR_SCALE, scale);
    if (causal) graph_set_ints(n->m->g, node, GRAPH_ATTR_WINDOW, 3, (int64_t[]){-1, 0, 0});
    if (in[3]) graph_set_int(n->m->g, node, GRAPH_ATTR_ZERO_ROWS, 1); // as torch: no NaN
    NPU_TRY(build_emit(&n->b, node, &y));
    if (rank == 2) NPU_TRY(build_reshape(&n->b, y, 2, y->dims + 1, &y));
    return pt2_bind(n, 0, y);
}
