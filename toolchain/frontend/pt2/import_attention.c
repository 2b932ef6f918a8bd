// SPDX-License-Identifier: Apache-2.0
//
// scaled_dot_product_attention stays one node. nn.TransformerEncoderLayer is one operator when no
// gradients are recorded; it becomes what it consists of.

#include <math.h>
#include <string.h>

#include "toolchain/frontend/common/norm.h"
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

static npu_status linear(struct pt2_node *n, struct graph_value *x, const char *weight,
                         const char *bias, struct graph_value **out) {
    struct graph_value *w = pt2_need(n, weight), *b = pt2_need(n, bias);
    if (n->failed) return NULL;
    NPU_TRY(build_matmul(&n->b, x, w, false, true, out));
    return build_map2(&n->b, "add in1", *out, b, out);
}

static npu_status norm(struct pt2_node *n, const char *weight, const char *bias,
                       struct graph_value **x) {
    struct graph_value *in[3] = {*x, pt2_need(n, weight), pt2_need(n, bias)};
    if (n->failed) return NULL;
    for (int k = 1; k < 3; k++)
        NPU_TRY(norm_operand(&n->b, *x, (*x)->rank - 1, in[k], &in[k]));
    return build_norm(&n->b, GRAPH_LAYERNORM, 3, in, (*x)->rank - 1, pt2_float(n, "eps"), x);
}

// Of x [B,T,D], projected: queries, keys and values side by side.
static npu_status attend(struct pt2_node *n, struct graph_value *x, int64_t heads,
                         struct graph_value **out) {
    struct graph_value *all, *in[3], *y;
    int64_t batch = x->dims[0], rows = x->dims[1], width = x->dims[2];
    NPU_TRY(linear(n, x, "qkv_weight", "qkv_bias", &all));
    if (n->failed) return NULL;
    if (all->rank != 3 || all->dims[0] != batch || all->dims[1] != rows ||
        all->dims[2] != 3 * width)
        return npu_fail(BAD_INPUT, "qkv_weight and qkv_bias do not give three times %lld columns",
                        (long long)width);
    for (int k = 0; k < 3; k++) {
        NPU_TRY(build_slice(&n->b, all, (int64_t[]){0, 0, k * width},
                            (int64_t[]){batch, rows, width}, (int64_t[]){1, 1, 1}, &in[k]));
        NPU_TRY(
            build_reshape(&n->b, in[k], 4, (int64_t[]){batch, rows, heads, width / heads}, &in[k]));
        NPU_TRY(build_transpose(&n->b, in[k], (int64_t[]){0, 2, 1, 3}, &in[k]));
    }
    struct graph_node *node = build_core(&n->b, GRAPH_ATTENTION, 3, in);
    graph_set_float(n->m->g, node, GRAPH_ATTR_SCALE, 1 / sqrt((double)(width / heads)));
    NPU_TRY(build_emit(&n->b, node, &y));
    NPU_TRY(build_transpose(&n->b, y, (int64_t[]){0, 2, 1, 3}, &y));
    NPU_TRY(build_reshape(&n->b, y, 3, (int64_t[]){batch, rows, width}, &y));
    return linear(n, y, "proj_weight", "proj_bias", out);
}

npu_status aten_encoder_layer(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "src"), *y;
    int64_t heads = pt2_int(n, "num_heads");
    bool first = pt2_bool(n, "norm_first"), gelu = pt2_bool(n, "use_gelu");
    if (n->failed) return NULL;
    if (pt2_given(n, "mask"))
        return npu_fail(UNSUPPORTED, "an encoder layer with a mask as one operator: "
                                     "torch.backends.mha.set_fastpath_enabled(False) parts it");
    if (x->rank != 3)
        return npu_fail(UNSUPPORTED, "'%s' has rank %d, expected 3", x->name, x->rank);
    if (heads < 1 || x->dims[2] % heads)
        return npu_fail(BAD_INPUT, "%lld columns do not split into %lld heads",
                        (long long)x->dims[2], (long long)heads);
    y = x;
    if (first) NPU_TRY(norm(n, "norm_weight_1", "norm_bias_1", &y));
    NPU_TRY(attend(n, y, heads, &y));
    if (n->failed) return NULL;
    NPU_TRY(build_map2(&n->b, "add in1", y, x, &x));
    if (!first) NPU_TRY(norm(n, "norm_weight_1", "norm_bias_1", &x));
    y = x;
    if (first) NPU_TRY(norm(n, "norm_weight_2", "norm_bias_2", &y));
    NPU_TRY(linear(n, y, "ffn_weight_1", "ffn_bias_1", &y));
    if (n->failed) return NULL;
    NPU_TRY(build_map1(&n->b, gelu ? "gelu" : "max 0", y, &y));
    NPU_TRY(linear(n, y, "ffn_weight_2", "ffn_bias_2", &y));
    if (n->failed) return NULL;
    NPU_TRY(build_map2(&n->b, "add in1", y, x, &x));
    if (!first) NPU_TRY(norm(n, "norm_weight_2", "norm_bias_2", &x));
    return n->failed ? NULL : pt2_bind(n, 0, x);
}
