// SPDX-License-Identifier: Apache-2.0
//
// upsample_*: sizes or factors of the spatial dimensions.

#include <math.h>
#include <string.h>

#include "toolchain/frontend/common/resample.h"
#include "toolchain/frontend/pt2/import.h"

static bool is(const struct pt2_node *n, const char *part) {
    return strstr(n->target, part) != NULL;
}

// Factors: a list (.vec), or an argument per dimension. Returns how many.
static int factors(struct pt2_node *n, int spatial, double out[2]) {
    static const char *const names[2] = {"scales_h", "scales_w"};
    if (is(n, ".vec")) return pt2_floats(n, "scale_factors", out, spatial);
    for (int d = 0; d < spatial; d++) {
        const char *name = spatial == 1 ? "scales" : names[d];
        if (!pt2_given(n, name)) return 0;
        out[d] = pt2_float(n, name);
    }
    return spatial;
}

static npu_status read_sizes(struct pt2_node *n, const struct graph_value *x, int spatial,
                             struct resize *r, double *scales) {
    int64_t sizes[2];
    int given = pt2_ints(n, "output_size", sizes, spatial), scaled = factors(n, spatial, scales);
    if (n->failed) return NULL;
    if (given != spatial && scaled != spatial)
        return npu_fail(BAD_INPUT, "neither output_size nor factors for %d dimensions", spatial);
    *r = (struct resize){.by_sizes = scaled != spatial};
    for (int d = 0; d < x->rank; d++) {
        int k = d - (x->rank - spatial);
        r->scales[d] = 1;
        r->sizes[d] = x->dims[d];
        if (k < 0) continue;
        if (scaled == spatial) {
            if (!(scales[k] > 0) || scales[k] * (double)x->dims[d] > 1 << 30)
                return npu_fail(BAD_INPUT, "factor %g of dimension %d", scales[k], d);
            r->scales[d] = (float)scales[k];
            r->sizes[d] = (int64_t)floor((double)x->dims[d] * scales[k]);
        }
        if (given == spatial) r->sizes[d] = sizes[k];
        if (r->sizes[d] < 1 || r->sizes[d] > 1 << 30)
            return npu_fail(BAD_INPUT, "size %lld of dimension %d", (long long)r->sizes[d], d);
    }
    return NULL;
}

// The elements that nearest takes along a dimension, in floats as PyTorch computes them. Returns
// whether they are those of floor(i / scale), which the core op takes.
static bool nearest_elements(const struct resize *r, double factor, int64_t size, int d, bool exact,
                             bool image, int64_t *at) {
    const int64_t out = r->sizes[d];
    const float step = r->by_sizes ? (float)size / (float)out : (float)(1 / factor);
    const double scale = r->by_sizes ? (double)out / (double)size : (double)r->scales[d];
    // Images once and twice as large are special, rows are not.
    bool same = true, plain = !exact && image && (out == size || out == 2 * size);
    for (int64_t i = 0; i < out; i++) {
        double core = floor((double)i / scale);
        at[i] = exact ? (int64_t)floorf((float)(((double)i + 0.5) * (double)step))
                      : (int64_t)floorf((float)i * step);
        if (plain) at[i] = i / (out / size);
        if (at[i] > size - 1) at[i] = size - 1;
        same &= (double)at[i] == (core > (double)(size - 1) ? (double)(size - 1) : core);
    }
    return same;
}

static npu_status upsample_nearest(struct pt2_node *n, struct graph_value *x, struct resize *r,
                                   const double *scales, bool exact) {
    static const struct resize_style style = {.mode = NEAREST,
                                              .mode_word = "nearest",
                                              .coord = "asymmetric",
                                              .nearest = "floor"};
    int64_t *at[GRAPH_MAX_RANK] = {NULL};
    bool core = true;
    for (int d = 2; d < x->rank; d++) {
        at[d] = ARENA_ARRAY(n->m->arena, int64_t, (size_t)r->sizes[d]);
        core &= nearest_elements(r, scales[d - 2], x->dims[d], d, exact, x->rank == 4, at[d]);
    }
    if (core) {
        NPU_TRY(build_resize(&n->b, x, &style, r, &x));
        return pt2_bind(n, 0, x);
    }
    for (int d = 2; d < x->rank; d++) {
        struct graph_value *index = build_new_ints(&n->b, 1, &r->sizes[d], at[d]);
        NPU_TRY(build_gather(&n->b, x, index, d, &x));
    }
    return pt2_bind(n, 0, x);
}

npu_status aten_upsample(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, is(n, ".vec") ? "input" : "self"), *y;
    int spatial = is(n, "1d") ? 1 : 2;
    bool nearest = is(n, "nearest"), exact = is(n, "exact"), cubic = is(n, "cubic");
    bool aligned = !nearest && pt2_bool(n, "align_corners");
    struct resize r;
    double scales[2] = {1, 1};
    struct resize_style s = {.mode = cubic ? CUBIC : LINEAR,
                             .mode_word = cubic ? "cubic" : "linear",
                             .coord = aligned ? "align_corners" : "half_pixel",
                             .nearest = "floor",
                             .cubic = -0.75,
                             .antialias = is(n, "_aa")};
    if (s.antialias) s.cubic = -0.5;
    if (n->failed) return NULL;
    if (x->rank != spatial + 2)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected %d", x->name, x->rank, spatial + 2);
    NPU_TRY(read_sizes(n, x, spatial, &r, scales));
    if (n->failed) return NULL;
    if (nearest) return upsample_nearest(n, x, &r, scales, exact);
    NPU_TRY(build_resize(&n->b, x, &s, &r, &y));
    return pt2_bind(n, 0, y);
}
