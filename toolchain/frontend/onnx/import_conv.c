// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and pools: attributes to a window.

#include <string.h>

#include "toolchain/frontend/common/window.h"
#include "toolchain/frontend/onnx/import.h"

static npu_status read_list(struct onnx_node *n, const char *name, int count, int64_t least,
                            int64_t *items, bool *given) {
    int has = onnx_ints_into(n, name, items, count);
    *given = has > 0;
    if (n->failed) return NULL;
    if (has > 0 && has != count)
        return npu_fail(BAD_INPUT, "attribute %s has %d items, expected %d", name, has, count);
    for (int k = 0; k < has; k++)
        if (items[k] < least || items[k] > 1 << 30)
            return npu_fail(BAD_INPUT, "attribute %s[%d] is %lld, expected %lld to 2^30", name, k,
                            (long long)items[k], (long long)least);
    return NULL;
}

// The last `spatial` of two entries.
static npu_status read_pair(struct onnx_node *n, const char *name, int spatial, int64_t least,
                            int64_t pair[2], bool *given) {
    return read_list(n, name, spatial, least, pair + 2 - spatial, given);
}

// auto_pad SAME: out = ceil(in / stride), the odd position at the end (UPPER) or the start (LOWER).
// For a transposed convolution out = in * stride, or output_shape.
static void same_pads(struct window *w, bool lower, bool transpose) {
    for (int d = 0; d < 2; d++) {
        int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1, total;
        if (transpose) {
            int64_t out = w->explicit_output ? w->out[d] : w->in[d] * w->stride[d];
            total = (w->in[d] - 1) * w->stride[d] + w->output_pad[d] + reach - out;
        } else {
            int64_t out = (w->in[d] + w->stride[d] - 1) / w->stride[d];
            total = (out - 1) * w->stride[d] + reach - w->in[d];
        }
        if (total < 0 && !transpose) total = 0;
        // Half of it rounded down, towards minus infinity where the output is larger than asked
        // for.
        int64_t small = lower && total < 0 ? (total - 1) / 2 : total / 2;
        w->pad[d] = lower ? total - small : small;
        w->pad[d + 2] = total - w->pad[d];
    }
}

static npu_status read_window(struct onnx_node *n, const struct graph_value *x, bool transpose,
                              struct window *w) {
    bool given;
    w->spatial = x->rank - 2;
    if (w->spatial < 1 || w->spatial > 2)
        return npu_fail(UNSUPPORTED, "'%s' has %d spatial dimensions, expected 1 or 2", x->name,
                        w->spatial);
    for (int d = 0; d < 2; d++) {
        w->stride[d] = w->dilation[d] = 1;
        w->in[d] = d < 2 - w->spatial ? 1 : x->dims[x->rank - 2 + d];
    }
    NPU_TRY(read_pair(n, "strides", w->spatial, 1, w->stride, &given));
    NPU_TRY(read_pair(n, "dilations", w->spatial, 1, w->dilation, &given));
    NPU_TRY(read_pair(n, "output_padding", w->spatial, 0, w->output_pad, &given));
    NPU_TRY(read_pair(n, "output_shape", w->spatial, 1, w->out, &w->explicit_output));
    if (w->spatial == 1) w->out[0] = 1;
    int64_t pads[4] = {0};
    NPU_TRY(read_list(n, "pads", 2 * w->spatial, 0, pads, &given));
    for (int d = 0; d < w->spatial; d++) {
        w->pad[2 - w->spatial + d] = pads[d];
        w->pad[4 - w->spatial + d] = pads[w->spatial + d];
    }
    const char *mode = onnx_string(n, "auto_pad", "NOTSET");
    if (!strcmp(mode, "SAME_UPPER") || !strcmp(mode, "SAME_LOWER"))
        same_pads(w, !strcmp(mode, "SAME_LOWER"), transpose);
    else if (!strcmp(mode, "VALID"))
        memset(w->pad, 0, sizeof w->pad);
    else if (strcmp(mode, "NOTSET") != 0)
        return npu_fail(
            BAD_INPUT,
            "attribute auto_pad is '%s', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode);
    else if (transpose && w->explicit_output)
        same_pads(w, true, true); // as SAME_LOWER: only SAME_UPPER puts the odd one last
    return NULL;
}

static npu_status check_kernel(struct onnx_node *n, const struct window *w,
                               const struct graph_value *weights) {
    int64_t declared[2];
    bool given;
    NPU_TRY(read_pair(n, "kernel_shape", w->spatial, 1, declared, &given));
    for (int d = 2 - w->spatial; given && d < 2; d++)
        if (declared[d] != w->kernel[d])
            return npu_fail(BAD_INPUT,
                            "attribute kernel_shape says %lld, the weights '%s' have %lld",
                            (long long)declared[d], weights->name, (long long)w->kernel[d]);
    return NULL;
}

static npu_status convolution(struct onnx_node *n, struct graph_value *x,
                              struct graph_value *weights, bool transpose,
                              struct graph_value **out) {
    struct window w;
    NPU_TRY(window_weights(x, weights, &w));
    NPU_TRY(read_window(n, x, transpose, &w));
    NPU_TRY(check_kernel(n, &w, weights));
    return window_conv(&n->b, x, weights, &w, transpose, onnx_int(n, "group", 1), out);
}

static npu_status import_convolution(struct onnx_node *n, bool transpose) {
    struct graph_value *y;
    NPU_TRY(onnx_need(n, 2, 3));
    NPU_TRY(convolution(n, n->in[0], n->in[1], transpose, &y));
    if (onnx_given(n, 2)) NPU_TRY(window_bias(&n->b, y, n->in[2], &y));
    return onnx_bind(n, 0, y);
}

npu_status import_conv(struct onnx_node *n) {
    return import_convolution(n, false);
}

npu_status import_convt(struct onnx_node *n) {
    return import_convolution(n, true);
}

// ---- pools -----------------------------------------------------------------------------------

static npu_status read_pool(struct onnx_node *n, const struct graph_value *x, struct window *w) {
    bool given;
    w->kernel[0] = w->kernel[1] = 1;
    if (x->rank < 3 || x->rank > 4)
        return npu_fail(UNSUPPORTED, "'%s' has rank %d, expected 3 or 4", x->name, x->rank);
    NPU_TRY(read_pair(n, "kernel_shape", x->rank - 2, 1, w->kernel, &given));
    if (!given) return npu_fail(BAD_INPUT, "attribute kernel_shape is missing");
    return read_window(n, x, false, w);
}

npu_status import_pool(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    if (onnx_used(n, 1))
        return npu_fail(UNSUPPORTED, "output 1 (the indices of the largest elements)");
    struct graph_value *x = n->in[0], *y;
    struct window w = {.spatial = 0};
    NPU_TRY(read_pool(n, x, &w));
    bool ceil_mode = onnx_int(n, "ceil_mode", 0) != 0,
         count_pads = onnx_int(n, "count_include_pad", 0) != 0;
    if (!strcmp(n->op, "AveragePool") && count_pads && ceil_mode) {
        NPU_TRY(window_average(&n->b, x, &w, &y));
    } else {
        if (ceil_mode) window_ceil(&w);
        NPU_TRY(window_pool(&n->b, x,
                            !strcmp(n->op, "MaxPool") ? "max"
                            : count_pads              ? "avgpad"
                                                      : "avg",
                            &w, &y));
    }
    return onnx_bind(n, 0, y);
}

// (sum of |x|^p)^(1/p), p = 1 or 2; padding counts as 0.
npu_status import_lppool(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    int64_t p = onnx_int(n, "p", 2);
    if (p != 1 && p != 2) return npu_fail(UNSUPPORTED, "p = %lld, expected 1 or 2", (long long)p);
    struct graph_value *x = n->in[0], *y;
    struct window w = {.spatial = 0};
    NPU_TRY(read_pool(n, x, &w));
    if (onnx_int(n, "ceil_mode", 0)) window_ceil(&w);
    double area = (double)(w.kernel[0] * w.kernel[1]);
    NPU_TRY(onnx_map1(n, p == 1 ? "abs" : "mul acc", x, &x));
    NPU_TRY(window_pool(&n->b, x, "avgpad", &w, &y));
    NPU_TRY(onnx_map(n, ISA_DTYPE_NONE, p == 1 ? "mul $0" : "mul $0; sqrt", &area, 1, &y, &y));
    return onnx_bind(n, 0, y);
}

npu_status import_global_pool(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *x = n->in[0], *y;
    int64_t axes[GRAPH_MAX_RANK];
    if (x->rank < 3)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 3 or more", x->name, x->rank);
    for (int d = 2; d < x->rank; d++)
        axes[d - 2] = d;
    NPU_TRY(onnx_reduce(n, x, !strcmp(n->op, "GlobalMaxPool") ? "max" : "mean", x->rank - 2, axes,
                        true, &y));
    return onnx_bind(n, 0, y);
}

// ---- integer convolutions --------------------------------------------------------------------

// 1 everywhere, as x.
static npu_status ones_like(struct onnx_node *n, const struct graph_value *x,
                            struct graph_value **out) {
    struct graph_value *one = onnx_new_scalar(n, x->dtype, 1);
    return onnx_expand(n, one, x->rank, x->dims, out);
}

// y - zero * conv(x, w), where zero is a scalar or one per output channel.
static npu_status less_product(struct onnx_node *n, struct graph_value *y, struct graph_value *x,
                               struct graph_value *w, struct graph_value *zero, bool negate,
                               struct graph_value **out) {
    struct graph_value *sums, *in[3] = {y, NULL, zero};
    NPU_TRY(convolution(n, x, w, false, &sums));
    in[1] = sums;
    return onnx_map(n, ISA_I32, negate ? "mov in1; mul in2; add in0" : "mov in1; mul in2; rsub in0",
                    NULL, 3, in, out);
}

// conv(x - zx, w - zw) as i32, with 8-bit operands in the products; the sums that the zero points
// take away are convolutions with ones, so that padding counts in none: conv(x, w) - zx conv(1, w)
// - zw conv(x, 1) + zx zw conv(1, 1)
static npu_status integer_conv(struct onnx_node *n, struct graph_value *x, struct graph_value *zx,
                               struct graph_value *w, struct graph_value *zw,
                               struct graph_value **out) {
    struct graph_value *y, *ones_x = NULL, *ones_w = NULL, *both;
    if (!isa_dtype_is_int(x->dtype) || !isa_dtype_is_int(w->dtype))
        return npu_fail(BAD_INPUT, "'%s' and '%s' must be integers", x->name, w->name);
    if (zw && zw->rank == 1 && zw->dims[0] != 1) {
        int64_t dims[GRAPH_MAX_RANK] = {zw->dims[0], 1, 1};
        NPU_TRY(onnx_reshape(n, zw, x->rank - 1, dims, &zw));
    }
    NPU_TRY(convolution(n, x, w, false, &y));
    if (!onnx_all_zero(zx)) NPU_TRY(ones_like(n, x, &ones_x));
    if (!onnx_all_zero(zw)) NPU_TRY(ones_like(n, w, &ones_w));
    if (ones_x) NPU_TRY(less_product(n, y, ones_x, w, zx, false, &y));
    if (ones_w) NPU_TRY(less_product(n, y, x, ones_w, zw, false, &y));
    if (ones_x && ones_w) {
        NPU_TRY(onnx_map(n, ISA_I32, "mul in1", NULL, 2, (struct graph_value *[]){zw, zx}, &both));
        NPU_TRY(less_product(n, y, ones_x, ones_w, both, true, &y));
    }
    *out = y;
    return NULL;
}

npu_status import_conv_integer(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 4));
    struct graph_value *y;
    NPU_TRY(integer_conv(n, n->in[0], onnx_given(n, 2) ? n->in[2] : NULL, n->in[1],
                         onnx_given(n, 3) ? n->in[3] : NULL, &y));
    return onnx_bind(n, 0, y);
}

// x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, [bias]
npu_status import_qlinear_conv(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 8, 9));
    struct graph_value *y, *scale;
    NPU_TRY(integer_conv(n, n->in[0], n->in[2], n->in[3], n->in[5], &y));
    if (onnx_given(n, 8)) NPU_TRY(window_bias(&n->b, y, n->in[8], &y));
    struct graph_value *scales[3] = {n->in[4], n->in[1], n->in[6]};
    NPU_TRY(onnx_map(n, ISA_F32, "mul in1; div in2", NULL, 3, scales, &scale));
    if (scale->rank == 1 && scale->dims[0] != 1) {
        int64_t dims[GRAPH_MAX_RANK] = {scale->dims[0], 1, 1};
        NPU_TRY(onnx_reshape(n, scale, y->rank - 1, dims, &scale));
    }
    NPU_TRY(onnx_map(n, n->in[7]->dtype, "mul in1; round; add in2", NULL, 3,
                     (struct graph_value *[]){y, scale, n->in[7]}, &y));
    return onnx_bind(n, 0, y);
}
