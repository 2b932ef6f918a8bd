// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and pools. An image without a batch dimension gets one of size 1 for a while.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/common/window.h"
#include "toolchain/frontend/pt2/import.h"

// [C,..] to [1,C,..] where the operator's rank needs it.
static npu_status batched(struct pt2_node *n, struct graph_value **x, int rank, bool *added) {
    int64_t dims[GRAPH_MAX_RANK] = {1};
    *added = (*x)->rank == rank - 1;
    if ((*x)->rank != rank && !*added)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected %d or %d", (*x)->name, (*x)->rank,
                        rank - 1, rank);
    if (!*added) return NULL;
    memcpy(dims + 1, (*x)->dims, (size_t)(rank - 1) * sizeof *dims);
    return build_reshape(&n->b, *x, rank, dims, x);
}

static npu_status bind_image(struct pt2_node *n, struct graph_value *y, bool added) {
    if (added) NPU_TRY(build_reshape(&n->b, y, y->rank - 1, y->dims + 1, &y));
    return pt2_bind(n, 0, y);
}

// One number per spatial dimension into the last of two.
static npu_status pair(struct pt2_node *n, const char *name, int spatial, int64_t otherwise,
                       int64_t least, int64_t out[2]) {
    int64_t items[2];
    pt2_repeated(n, name, spatial, otherwise, items);
    for (int d = 0; d < spatial; d++) {
        out[2 - spatial + d] = items[d];
        if (items[d] < least || items[d] > 1 << 30)
            return npu_fail(BAD_INPUT, "argument '%s' has %lld, expected %lld to 2^30", name,
                            (long long)items[d], (long long)least);
    }
    return NULL;
}

static npu_status symmetric_pads(struct pt2_node *n, struct window *w) {
    int64_t pads[2] = {0, 0};
    NPU_TRY(pair(n, "padding", w->spatial, 0, 0, pads));
    for (int d = 0; d < 2; d++)
        w->pad[d] = w->pad[d + 2] = pads[d];
    return NULL;
}

// "same": half of what the kernel reaches over, the odd one behind; "valid": none.
static npu_status named_pads(struct pt2_node *n, struct window *w) {
    const char *mode = pt2_string(n, "padding");
    if (mode && !strcmp(mode, "valid")) return NULL;
    if (!mode || strcmp(mode, "same") != 0)
        return npu_fail(BAD_INPUT, "padding '%s', expected same or valid", mode ? mode : "None");
    for (int d = 0; d < 2; d++) {
        int64_t total = (w->kernel[d] - 1) * w->dilation[d];
        w->pad[d] = total / 2;
        w->pad[d + 2] = total - total / 2;
    }
    return NULL;
}

static npu_status convolve(struct pt2_node *n, bool transpose, bool named) {
    struct graph_value *x = pt2_need(n, "input"), *weights = pt2_need(n, "weight"),
                       *bias = pt2_in(n, "bias"), *y;
    struct window w;
    bool added;
    if (n->failed) return NULL;
    NPU_TRY(batched(n, &x, weights->rank, &added));
    NPU_TRY(window_weights(x, weights, &w));
    NPU_TRY(pair(n, "stride", w.spatial, 1, 1, w.stride));
    NPU_TRY(pair(n, "dilation", w.spatial, 1, 1, w.dilation));
    NPU_TRY(named ? named_pads(n, &w) : symmetric_pads(n, &w));
    if (transpose) NPU_TRY(pair(n, "output_padding", w.spatial, 0, 0, w.output_pad));
    int64_t groups = pt2_int(n, "groups");
    if (n->failed) return NULL;
    NPU_TRY(window_conv(&n->b, x, weights, &w, transpose, groups, &y));
    if (bias) NPU_TRY(window_bias(&n->b, y, bias, &y));
    return bind_image(n, y, added);
}

npu_status aten_conv(struct pt2_node *n) {
    return convolve(n, false, strstr(n->target, ".padding") != NULL);
}

npu_status aten_conv_transpose(struct pt2_node *n) {
    return convolve(n, true, false);
}

npu_status aten_convolution(struct pt2_node *n) {
    return convolve(n, pt2_bool(n, "transposed"), false);
}

// ---- pools -----------------------------------------------------------------------------------

static int spatial_of(const struct pt2_node *n) {
    return strstr(n->target, "1d") ? 1 : 2;
}

static npu_status read_pool(struct pt2_node *n, struct graph_value **x, struct window *w,
                            bool *added) {
    *w = (struct window){.spatial = spatial_of(n),
                         .kernel = {1, 1},
                         .stride = {1, 1},
                         .dilation = {1, 1}};
    *x = pt2_need(n, "self");
    if (n->failed) return NULL;
    if (isa_dtype_is_int((*x)->dtype) && isa_dtype_bits((*x)->dtype) > 16)
        return npu_fail(UNSUPPORTED, "windows of %s; expected floats, or integers of up to 16 bits",
                        isa_dtype_name((*x)->dtype));
    NPU_TRY(batched(n, x, w->spatial + 2, added));
    for (int d = 0; d < 2; d++)
        w->in[d] = d < 2 - w->spatial ? 1 : (*x)->dims[(*x)->rank - 2 + d];
    NPU_TRY(pair(n, "kernel_size", w->spatial, 1, 1, w->kernel));
    int64_t given[2];
    if (pt2_ints(n, "stride", given, 2) > 0)
        NPU_TRY(pair(n, "stride", w->spatial, 1, 1, w->stride));
    else
        memcpy(w->stride, w->kernel, sizeof w->stride);
    return symmetric_pads(n, w);
}

npu_status aten_max_pool(struct pt2_node *n) {
    struct graph_value *x, *y;
    struct window w;
    bool added = false;
    if (pt2_used(n, 1))
        return npu_fail(UNSUPPORTED, "result 1 ('%s'): the indices of the largest elements",
                        n->out[1]);
    NPU_TRY(read_pool(n, &x, &w, &added));
    NPU_TRY(pair(n, "dilation", w.spatial, 1, 1, w.dilation));
    if (pt2_bool(n, "ceil_mode")) window_ceil(&w);
    if (n->failed) return NULL;
    NPU_TRY(window_pool(&n->b, x, "max", &w, &y));
    return bind_image(n, y, added);
}

npu_status aten_avg_pool(struct pt2_node *n) {
    struct graph_value *x, *y;
    struct window w;
    bool added = false;
    NPU_TRY(read_pool(n, &x, &w, &added));
    bool ceil_mode = pt2_bool(n, "ceil_mode"), pads = pt2_bool(n, "count_include_pad");
    double divisor =
        w.spatial == 2 && pt2_given(n, "divisor_override") ? pt2_float(n, "divisor_override") : 0;
    if (n->failed) return NULL;
    if (divisor != 0) { // sums over the window, zeros where it leaves the image
        double factor = (double)(w.kernel[0] * w.kernel[1]) / divisor;
        if (ceil_mode) window_ceil(&w);
        NPU_TRY(window_pool(&n->b, x, "avgpad", &w, &y));
        NPU_TRY(build_map(&n->b, y->dtype, "mul $0", &factor, 1, &y, &y));
    } else if (pads && ceil_mode) {
        NPU_TRY(window_average(&n->b, x, &w, &y));
    } else {
        if (ceil_mode) window_ceil(&w);
        NPU_TRY(window_pool(&n->b, x, pads ? "avgpad" : "avg", &w, &y));
    }
    return bind_image(n, y, added);
}

// ---- adaptive pools --------------------------------------------------------------------------

// Window i of `out` windows over `in` elements: floor(i in / out) .. ceil((i + 1) in / out).
static npu_status averages(struct pt2_node *n, struct graph_value *x, int d, int64_t out,
                           struct graph_value **y) {
    int64_t in = x->dims[d], perm[GRAPH_MAX_RANK];
    float *weights = ARENA_ARRAY(n->m->arena, float, (size_t)(in * out) + 1);
    for (int64_t i = 0; i < out; i++) {
        int64_t from = i * in / out, to = ((i + 1) * in + out - 1) / out;
        for (int64_t k = from; k < to; k++)
            weights[i * in + k] = 1.0f / (float)(to - from);
    }
    struct graph_value *matrix =
        graph_add_const(n->m->g, n->b.label, ISA_F32, 2, (int64_t[]){out, in}, weights);
    for (int k = 0; k < x->rank; k++)
        perm[k] = k;
    perm[d] = x->rank - 1;
    perm[x->rank - 1] = d;
    NPU_TRY(build_cast(&n->b, matrix, x->dtype, &matrix));
    NPU_TRY(build_transpose(&n->b, x, perm, &x));
    NPU_TRY(build_matmul(&n->b, x, matrix, false, true, &x));
    return build_transpose(&n->b, x, perm, y);
}

static npu_status even_windows(struct pt2_node *n, struct graph_value *x, int spatial, bool most,
                               const int64_t *out, struct graph_value **y) {
    struct window w = {.spatial = spatial, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    for (int d = 0; d < spatial; d++) {
        int at = 2 - spatial + d;
        w.in[at] = x->dims[2 + d];
        w.kernel[at] = w.stride[at] = w.in[at] / out[d];
    }
    return window_pool(&n->b, x, most ? "max" : "avg", &w, y);
}

npu_status aten_adaptive_pool(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    int spatial = spatial_of(n);
    int64_t out[2], axes[2] = {2, 3};
    bool added, most = strstr(n->target, "max") != NULL, even = true, single = true;
    if (pt2_used(n, 1))
        return npu_fail(UNSUPPORTED, "result 1 ('%s'): the indices of the largest elements",
                        n->out[1]);
    pt2_repeated(n, "output_size", spatial, -1, out);
    if (n->failed) return NULL;
    NPU_TRY(batched(n, &x, spatial + 2, &added));
    for (int d = 0; d < spatial; d++) {
        if (out[d] == -1) out[d] = x->dims[2 + d];
        if (out[d] < 1 || out[d] > 1 << 20 || !x->dims[2 + d])
            return npu_fail(BAD_INPUT, "output_size %lld for %lld elements", (long long)out[d],
                            (long long)x->dims[2 + d]);
        even &= x->dims[2 + d] % out[d] == 0;
        single &= out[d] == 1;
    }
    y = x;
    if (single) {
        NPU_TRY(build_reduce(&n->b, x, most ? "max" : "mean", spatial, axes, true, &y));
    } else if (even) {
        NPU_TRY(even_windows(n, x, spatial, most, out, &y));
    } else if (most) {
        return npu_fail(UNSUPPORTED, "maxima of windows of different sizes");
    } else {
        for (int d = 0; d < spatial; d++)
            if (out[d] != x->dims[2 + d]) NPU_TRY(averages(n, y, 2 + d, out[d], &y));
    }
    return bind_image(n, y, added);
}
