// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and pools. The core ops are two-dimensional; one-dimensional ones get a height of 1
// by reshape.

#include <string.h>

#include "toolchain/frontend/onnx/import.h"

// Attributes of a sliding window over `spatial` dimensions, with pads worked out. Arrays are in the
// core's order: top, left, bottom, right; a one-dimensional window is the second of each.
struct window {
    int spatial;
    int64_t in[2], kernel[2], stride[2], dilation[2], pad[4], output_pad[2];
    bool explicit_output; // output_shape was given
    int64_t out[2];
};

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

// [N,C,L] to [N,C,1,L].
static npu_status to_2d(struct onnx_node *n, struct graph_value *x, struct graph_value **out) {
    return onnx_reshape(n, x, 4, (int64_t[]){x->dims[0], x->dims[1], 1, x->dims[2]}, out);
}

static npu_status from_2d(struct onnx_node *n, const struct window *w, struct graph_value *y,
                          struct graph_value **out) {
    *out = y;
    if (w->spatial == 2) return NULL;
    return onnx_reshape(n, y, 3, (int64_t[]){y->dims[0], y->dims[1], y->dims[3]}, out);
}

static void set_window(struct onnx_node *n, struct graph_node *node, const struct window *w) {
    graph_set_ints(n->m->g, node, GRAPH_ATTR_STRIDES, 2, w->stride);
    graph_set_ints(n->m->g, node, GRAPH_ATTR_PADS, 4, w->pad);
    graph_set_ints(n->m->g, node, GRAPH_ATTR_DILATIONS, 2, w->dilation);
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
    if (x->rank < 3 || weights->rank != x->rank)
        return npu_fail(
            BAD_INPUT,
            "'%s' has rank %d and the weights '%s' have rank %d, expected equal ranks of 3 or 4",
            x->name, x->rank, weights->name, weights->rank);
    struct window w = {.spatial = 0};
    for (int d = 0; d < 2; d++)
        w.kernel[d] = weights->rank == 4 || d ? weights->dims[weights->rank - 2 + d] : 1;
    if (x->rank == 3) w.kernel[0] = 1;
    for (int d = 0; d < 2; d++)
        if (w.kernel[d] < 1 || w.kernel[d] > 1 << 30)
            return npu_fail(BAD_INPUT, "the weights '%s' are empty", weights->name);
    NPU_TRY(read_window(n, x, transpose, &w));
    NPU_TRY(check_kernel(n, &w, weights));
    if (w.spatial == 1) {
        NPU_TRY(to_2d(n, x, &x));
        NPU_TRY(to_2d(n, weights, &weights));
    }
    struct graph_value *in[2] = {x, weights}, *y;
    struct graph_node *node = onnx_core(n, transpose ? GRAPH_CONVT : GRAPH_CONV, 2, in);
    set_window(n, node, &w);
    graph_set_int(n->m->g, node, GRAPH_ATTR_GROUP, onnx_int(n, "group", 1));
    if (transpose && (w.output_pad[0] || w.output_pad[1]))
        graph_set_ints(n->m->g, node, GRAPH_ATTR_OUTPUT_PADS, 2, w.output_pad);
    NPU_TRY(onnx_emit(n, node, &y));
    return from_2d(n, &w, y, out);
}

// bias[C] over y[N,C,...]
static npu_status add_bias(struct onnx_node *n, struct graph_value *y, struct graph_value *bias,
                           struct graph_value **out) {
    int64_t dims[GRAPH_MAX_RANK] = {y->dims[1], 1, 1};
    if (bias->rank != 1 || bias->dims[0] != y->dims[1])
        return npu_fail(BAD_INPUT, "the bias '%s' has rank %d and %lld elements, expected [%lld]",
                        bias->name, bias->rank, (long long)graph_value_elems(bias),
                        (long long)y->dims[1]);
    NPU_TRY(onnx_reshape(n, bias, y->rank - 1, dims, &bias));
    return onnx_map(n, y->dtype, "add in1", NULL, 2, (struct graph_value *[]){y, bias}, out);
}

static npu_status import_convolution(struct onnx_node *n, bool transpose) {
    struct graph_value *y;
    NPU_TRY(onnx_need(n, 2, 3));
    NPU_TRY(convolution(n, n->in[0], n->in[1], transpose, &y));
    if (onnx_given(n, 2)) NPU_TRY(add_bias(n, y, n->in[2], &y));
    return onnx_bind(n, 0, y);
}

npu_status import_conv(struct onnx_node *n) {
    return import_convolution(n, false);
}

npu_status import_convt(struct onnx_node *n) {
    return import_convolution(n, true);
}

// ---- pools -----------------------------------------------------------------------------------

// ceil_mode: more padding at the end, so that the last partial window counts; a window that would
// start in it does not. Returns whether it added any.
static bool ceil_pads(struct window *w) {
    bool added = false;
    for (int d = 0; d < 2; d++) {
        int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1,
                padded = w->in[d] + w->pad[d] + w->pad[d + 2];
        if (padded < reach) continue;
        int64_t windows = (padded - reach + w->stride[d] - 1) / w->stride[d] + 1;
        if ((windows - 1) * w->stride[d] >= w->in[d] + w->pad[d]) windows--;
        int64_t more = (windows - 1) * w->stride[d] + reach - padded;
        if (more > 0) {
            w->pad[d + 2] += more;
            added = true;
        }
    }
    return added;
}

static npu_status pool(struct onnx_node *n, struct graph_value *x, const char *mode,
                       struct window *w, struct graph_value **out) {
    struct graph_node *node = onnx_core(n, GRAPH_POOL, 1, &x);
    graph_set_word(n->m->g, node, GRAPH_ATTR_MODE, mode);
    graph_set_ints(n->m->g, node, GRAPH_ATTR_KERNEL, 2, w->kernel);
    set_window(n, node, w);
    return onnx_emit(n, node, out);
}

// Averages that count the explicit padding but not what ceil_mode adds: the explicit part becomes
// zeros in the image.
static npu_status average_with_pads(struct onnx_node *n, struct graph_value *x, struct window *w,
                                    struct graph_value **out) {
    struct window explicit_pads = *w;
    if (!ceil_pads(w)) return pool(n, x, "avgpad", w, out);
    const int64_t *p = explicit_pads.pad;
    NPU_TRY(onnx_pad(n, x, (int64_t[]){0, 0, p[0], p[1]}, (int64_t[]){0, 0, p[2], p[3]}, "constant",
                     0, &x));
    for (int k = 0; k < 4; k++)
        w->pad[k] -= p[k];
    return pool(n, x, "avg", w, out);
}

static npu_status read_pool(struct onnx_node *n, struct graph_value **x, struct window *w) {
    bool given;
    w->kernel[0] = w->kernel[1] = 1;
    if ((*x)->rank < 3 || (*x)->rank > 4)
        return npu_fail(UNSUPPORTED, "'%s' has rank %d, expected 3 or 4", (*x)->name, (*x)->rank);
    NPU_TRY(read_pair(n, "kernel_shape", (*x)->rank - 2, 1, w->kernel, &given));
    if (!given) return npu_fail(BAD_INPUT, "attribute kernel_shape is missing");
    NPU_TRY(read_window(n, *x, false, w));
    return w->spatial == 1 ? to_2d(n, *x, x) : NULL;
}

npu_status import_pool(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    if (onnx_used(n, 1))
        return npu_fail(UNSUPPORTED, "output 1 (the indices of the largest elements)");
    struct graph_value *x = n->in[0], *y;
    struct window w = {.spatial = 0};
    NPU_TRY(read_pool(n, &x, &w));
    bool ceil_mode = onnx_int(n, "ceil_mode", 0) != 0,
         count_pads = onnx_int(n, "count_include_pad", 0) != 0;
    if (!strcmp(n->op, "AveragePool") && count_pads && ceil_mode) {
        NPU_TRY(average_with_pads(n, x, &w, &y));
    } else {
        if (ceil_mode) ceil_pads(&w);
        NPU_TRY(pool(n, x,
                     !strcmp(n->op, "MaxPool") ? "max"
                     : count_pads              ? "avgpad"
                                               : "avg",
                     &w, &y));
    }
    NPU_TRY(from_2d(n, &w, y, &y));
    return onnx_bind(n, 0, y);
}

// (sum of |x|^p)^(1/p), p = 1 or 2; padding counts as 0.
npu_status import_lppool(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    int64_t p = onnx_int(n, "p", 2);
    if (p != 1 && p != 2) return npu_fail(UNSUPPORTED, "p = %lld, expected 1 or 2", (long long)p);
    struct graph_value *x = n->in[0], *y;
    struct window w = {.spatial = 0};
    NPU_TRY(read_pool(n, &x, &w));
    if (onnx_int(n, "ceil_mode", 0)) ceil_pads(&w);
    double area = (double)(w.kernel[0] * w.kernel[1]);
    NPU_TRY(onnx_map1(n, p == 1 ? "abs" : "mul acc", x, &x));
    NPU_TRY(pool(n, x, "avgpad", &w, &y));
    NPU_TRY(onnx_map(n, ISA_DTYPE_NONE, p == 1 ? "mul $0" : "mul $0; sqrt", &area, 1, &y, &y));
    NPU_TRY(from_2d(n, &w, y, &y));
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
    if (onnx_given(n, 8)) NPU_TRY(add_bias(n, y, n->in[8], &y));
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
