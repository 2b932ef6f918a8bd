// SPDX-License-Identifier: Apache-2.0
//
// Shape rules of MATMUL and of the ops that slide a window over an image: CONV, CONVT, POOL.

#include "toolchain/graph/shape.h"

#include <string.h>

enum { SPATIAL = 2 };
static const int64_t LARGEST =
    1 << 30; // of strides, dilations, pads: products stay far from overflow

// The matrix engine multiplies floats and integers of up to 8 bits.
static npu_status check_operands(const struct graph_node *n) {
    for (int k = 0; k < 2; k++) {
        const struct graph_value *v = n->inputs[k];
        if (isa_dtype_is_float(v->dtype) || isa_dtype_bits(v->dtype) <= 8) continue;
        return npu_fail(UNSUPPORTED,
                        "'%s' is %s: floats and integers of up to 8 bits are multiplied", v->name,
                        isa_dtype_name(v->dtype));
    }
    return NULL;
}

npu_status shape_matmul(struct graph *g, struct graph_node *n) {
    NPU_TRY(shape_rank(n, 0, 2, GRAPH_MAX_RANK));
    NPU_TRY(shape_rank(n, 1, 2, GRAPH_MAX_RANK));
    NPU_TRY(check_operands(n));
    const struct graph_value *a = n->inputs[0], *b = n->inputs[1];
    int ta = graph_int(n, GRAPH_ATTR_TRANS_A, 0) != 0,
        tb = graph_int(n, GRAPH_ATTR_TRANS_B, 0) != 0;
    int64_t m = a->dims[a->rank - 2 + ta], ka = a->dims[a->rank - 1 - ta];
    int64_t kb = b->dims[b->rank - 2 + tb], nn = b->dims[b->rank - 1 - tb];
    if (ka != kb)
        return npu_fail(BAD_INPUT,
                        "'%s' %s and '%s' %s do not multiply: %lld columns against %lld rows",
                        a->name, shape_text(g->arena, a->rank, a->dims), b->name,
                        shape_text(g->arena, b->rank, b->dims), (long long)ka, (long long)kb);
    struct graph_value batch_a = *a, batch_b = *b;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    int rank = 0;
    int64_t dims[GRAPH_MAX_RANK] = {0};
    if (!shape_broadcast(&rank, dims, &batch_a) || !shape_broadcast(&rank, dims, &batch_b))
        return npu_fail(BAD_INPUT, "the batch dimensions of '%s' %s and '%s' %s do not broadcast",
                        a->name, shape_text(g->arena, a->rank, a->dims), b->name,
                        shape_text(g->arena, b->rank, b->dims));
    dims[rank++] = m;
    dims[rank++] = nn;
    shape_set(n->outputs[0], graph_own_dtype(n), rank, dims);
    return NULL;
}

// strides, dilations >= 1; pads within range.
static npu_status check_window(const struct graph_node *n) {
    NPU_TRY(shape_ints(n, GRAPH_ATTR_STRIDES, SPATIAL, 1, LARGEST, false));
    NPU_TRY(shape_ints(n, GRAPH_ATTR_DILATIONS, SPATIAL, 1, LARGEST, false));
    return shape_ints(n, GRAPH_ATTR_PADS, 2 * SPATIAL, n->op == GRAPH_CONVT ? -LARGEST : 0, LARGEST,
                      false);
}

// Windows along dimension d: (in + pads - reach) / stride + 1, where reach is the dilated kernel.
static npu_status slide(const struct graph_node *n, int d, int64_t in, int64_t kernel,
                        int64_t *out) {
    int64_t reach = (kernel - 1) * graph_ints_at(n, GRAPH_ATTR_DILATIONS, d, 1) + 1;
    int64_t padded = in + graph_ints_at(n, GRAPH_ATTR_PADS, d, 0) +
                     graph_ints_at(n, GRAPH_ATTR_PADS, d + SPATIAL, 0);
    if (reach > padded)
        return npu_fail(BAD_INPUT,
                        "the window covers %lld positions %s, but '%s' has %lld with padding",
                        (long long)reach, d ? "across" : "down", n->inputs[0]->name,
                        (long long)padded);
    *out = (padded - reach) / graph_ints_at(n, GRAPH_ATTR_STRIDES, d, 1) + 1;
    return NULL;
}

static npu_status check_kernel(const struct graph_value *w) {
    for (int d = 2; d < 4; d++)
        if (w->dims[d] < 1 || w->dims[d] > LARGEST)
            return npu_fail(BAD_INPUT, "the kernel '%s' is %lld x %lld, expected 1 or more",
                            w->name, (long long)w->dims[2], (long long)w->dims[3]);
    return NULL;
}

// x[N,C,H,W], w[O,C/group,KH,KW] -> [N,O,OH,OW]
npu_status shape_conv(struct graph *g, struct graph_node *n) {
    NPU_TRY(shape_rank(n, 0, 4, 4));
    NPU_TRY(shape_rank(n, 1, 4, 4));
    NPU_TRY(check_operands(n));
    NPU_TRY(check_window(n));
    const struct graph_value *x = n->inputs[0], *w = n->inputs[1];
    NPU_TRY(check_kernel(w));
    int64_t group = graph_int(n, GRAPH_ATTR_GROUP, 1);
    if (group < 1 || w->dims[0] % group || x->dims[1] % group || x->dims[1] / group != w->dims[1])
        return npu_fail(BAD_INPUT,
                        "weights '%s' %s do not fit '%s' %s in %lld groups: expected %lld input "
                        "channels a group",
                        w->name, shape_text(g->arena, 4, w->dims), x->name,
                        shape_text(g->arena, 4, x->dims), (long long)group,
                        (long long)(group < 1 ? x->dims[1] : x->dims[1] / group));
    int64_t dims[4] = {x->dims[0], w->dims[0], 0, 0};
    for (int d = 0; d < SPATIAL; d++)
        NPU_TRY(slide(n, d, x->dims[2 + d], w->dims[2 + d], &dims[2 + d]));
    shape_set(n->outputs[0], graph_own_dtype(n), 4, dims);
    return NULL;
}

// x[N,C,H,W], w[C,O/group,KH,KW] -> [N,O,OH,OW], OH = (H - 1) * stride - pads + reach + output_pads
npu_status shape_convt(struct graph *g, struct graph_node *n) {
    NPU_TRY(shape_rank(n, 0, 4, 4));
    NPU_TRY(shape_rank(n, 1, 4, 4));
    NPU_TRY(check_operands(n));
    NPU_TRY(check_window(n));
    NPU_TRY(shape_ints(n, GRAPH_ATTR_OUTPUT_PADS, SPATIAL, 0, LARGEST, false));
    const struct graph_value *x = n->inputs[0], *w = n->inputs[1];
    NPU_TRY(check_kernel(w));
    int64_t group = graph_int(n, GRAPH_ATTR_GROUP, 1);
    if (group < 1 || group > x->dims[1] || x->dims[1] % group || x->dims[1] != w->dims[0])
        return npu_fail(BAD_INPUT, "weights '%s' %s do not fit '%s' %s in %lld groups", w->name,
                        shape_text(g->arena, 4, w->dims), x->name, shape_text(g->arena, 4, x->dims),
                        (long long)group);
    int64_t dims[4] = {x->dims[0], w->dims[1] * group, 0, 0};
    for (int d = 0; d < SPATIAL; d++) {
        int64_t reach = (w->dims[2 + d] - 1) * graph_ints_at(n, GRAPH_ATTR_DILATIONS, d, 1) + 1;
        dims[2 + d] = (x->dims[2 + d] - 1) * graph_ints_at(n, GRAPH_ATTR_STRIDES, d, 1) + reach -
                      graph_ints_at(n, GRAPH_ATTR_PADS, d, 0) -
                      graph_ints_at(n, GRAPH_ATTR_PADS, d + SPATIAL, 0) +
                      graph_ints_at(n, GRAPH_ATTR_OUTPUT_PADS, d, 0);
        if (dims[2 + d] < 1 || x->dims[2 + d] < 1)
            return npu_fail(BAD_INPUT, "the result would have %lld positions %s",
                            (long long)dims[2 + d], d ? "across" : "down");
    }
    shape_set(n->outputs[0], graph_own_dtype(n), 4, dims);
    return NULL;
}

npu_status shape_pool(struct graph *g, struct graph_node *n) {
    (void)g;
    int mode;
    NPU_TRY(shape_word(n, GRAPH_ATTR_MODE, "max|avg|avgpad", NULL, &mode));
    NPU_TRY(shape_rank(n, 0, 4, 4));
    NPU_TRY(shape_ints(n, GRAPH_ATTR_KERNEL, SPATIAL, 1, LARGEST, true));
    NPU_TRY(check_window(n));
    const struct graph_value *x = n->inputs[0];
    int64_t dims[4] = {x->dims[0], x->dims[1], 0, 0};
    for (int d = 0; d < SPATIAL; d++) {
        int64_t kernel = graph_ints_at(n, GRAPH_ATTR_KERNEL, d, 1);
        int64_t reach = (kernel - 1) * graph_ints_at(n, GRAPH_ATTR_DILATIONS, d, 1) + 1;
        int64_t pad = graph_ints_at(n, GRAPH_ATTR_PADS, d, 0);
        if (pad >= reach)
            return npu_fail(BAD_INPUT,
                            "attribute pads[%d] is %lld, expected less than the window's %lld: the "
                            "first window would lie in the padding alone",
                            d, (long long)pad, (long long)reach);
        NPU_TRY(slide(n, d, x->dims[2 + d], kernel, &dims[2 + d]));
        int64_t last = (dims[2 + d] - 1) * graph_ints_at(n, GRAPH_ATTR_STRIDES, d, 1) - pad;
        if (last >= x->dims[2 + d])
            return npu_fail(BAD_INPUT,
                            "attribute pads[%d] is %lld: the last window would lie in the padding "
                            "alone",
                            d + SPATIAL,
                            (long long)graph_ints_at(n, GRAPH_ATTR_PADS, d + SPATIAL, 0));
    }
    shape_set(n->outputs[0], x->dtype, 4, dims);
    return NULL;
}
