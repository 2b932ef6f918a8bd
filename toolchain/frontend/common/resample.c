// SPDX-License-Identifier: Apache-2.0
//
// Resizing of images. What the core op knows (nearest and linear of the last two dimensions)
// becomes one node. Everything else is linear in x, one dimension at a time: a product with a
// constant matrix whose row i holds the weights of output position i.

#include "toolchain/frontend/common/resample.h"

#include <math.h>
#include <string.h>

// The position in the image that output position i of dimension d stands for.
static double position(const struct resize_style *s, const struct resize *r,
                       const struct graph_value *x, int d, int64_t i) {
    double in = (double)x->dims[d], out = (double)r->sizes[d], at = (double)i;
    double scale = r->by_sizes ? out / in : (double)r->scales[d];
    if (!strcmp(s->coord, "asymmetric")) return at / scale;
    if (!strcmp(s->coord, "align_corners")) return out > 1 ? at * (in - 1) / (out - 1) : 0;
    if (!strcmp(s->coord, "pytorch_half_pixel") && out <= 1) return 0;
    if (!strcmp(s->coord, "tf_half_pixel_for_nn")) return (at + 0.5) / scale;
    if (!strcmp(s->coord, "half_pixel_symmetric")) {
        double adjust = out / (scale * in), centre = in / 2;
        return centre * (1 - adjust) + (at + 0.5) / scale - 0.5;
    }
    if (s->has_roi) {
        double from = (double)s->roi[d], to = (double)s->roi[x->rank + d];
        return out > 1 ? from * (in - 1) + at * (to - from) * (in - 1) / (out - 1)
                       : 0.5 * (from + to) * (in - 1);
    }
    return (at + 0.5) / scale - 0.5;
}

static double cubic_weight(double a, double t) {
    t = fabs(t);
    if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

static double nearest_of(const struct resize_style *s, double p) {
    if (!strcmp(s->nearest, "floor")) return floor(p);
    if (!strcmp(s->nearest, "ceil")) return ceil(p);
    return !strcmp(s->nearest, "round_prefer_ceil") ? floor(p + 0.5) : ceil(p - 0.5);
}

// Weights of one output position in row[0..size).
static void fill_row(const struct resize_style *s, double p, int64_t size, double scale,
                     float *row) {
    if (s->mode == NEAREST) {
        double at = nearest_of(s, p);
        row[at < 0 ? 0 : at > (double)(size - 1) ? size - 1 : (int64_t)at] = 1;
        return;
    }
    // Antialiasing widens the kernel when the image shrinks.
    double stretch = s->antialias && scale < 1 ? 1 / scale : 1,
           reach = (s->mode == CUBIC ? 2 : 1) * stretch, sum = 0;
    bool renormalise = s->antialias || s->exclude_outside;
    for (int64_t k = 0; k <= (int64_t)(2 * reach) + 2; k++) {
        double tap = floor(p - reach) + (double)k;
        double t = (tap - p) / stretch;
        double w = s->mode == CUBIC ? cubic_weight(s->cubic, t) : fabs(t) < 1 ? 1 - fabs(t) : 0;
        bool outside = tap < 0 || tap > (double)(size - 1);
        if (outside && (s->exclude_outside || s->antialias)) continue;
        int64_t at = tap < 0 ? 0 : tap > (double)(size - 1) ? size - 1 : (int64_t)tap;
        row[at] += (float)w;
        sum += w;
    }
    for (int64_t k = 0; renormalise && sum > 0 && k < size; k++)
        row[k] = (float)((double)row[k] / sum);
}

// x with dimension d resized: the dimension last, times the matrix, and back. Positions outside the
// image give the extrapolation value when a region of interest is asked for.
static npu_status resize_dim(const struct build *b, const struct resize_style *s,
                             const struct resize *r, struct graph_value *x, int d,
                             const struct graph_value *image, struct graph_value **out) {
    int64_t in = x->dims[d], size = r->sizes[d], perm[GRAPH_MAX_RANK];
    if (in < 1 || size > (1 << 22) / in)
        return npu_fail(UNSUPPORTED, "%lld x %lld weights of a resize", (long long)in,
                        (long long)size);
    float *weights = ARENA_ARRAY(b->arena, float, (size_t)(in * size) + 1),
          *added = ARENA_ARRAY(b->arena, float, (size_t)size + 1);
    bool any_added = false;
    for (int64_t i = 0; i < size; i++) {
        double p = position(s, r, image, d, i), far = (double)in + 8;
        if (!isfinite(p)) return npu_fail(BAD_INPUT, "the region of interest is not finite");
        p = p < -far ? -far : p > 2 * far ? 2 * far : p; // as far outside as makes a difference
        if (s->has_roi && (p < 0 || p > (double)(in - 1))) {
            added[i] = (float)s->extrapolation;
            any_added = true;
        } else {
            fill_row(s, p, in, r->by_sizes ? (double)size / (double)in : (double)r->scales[d],
                     weights + i * in);
        }
    }
    enum isa_dtype type = x->dtype;
    struct graph_value *matrix =
        graph_add_const(b->g, b->label, ISA_F32, 2, (int64_t[]){size, in}, weights);
    for (int k = 0; k < x->rank; k++)
        perm[k] = k;
    perm[d] = x->rank - 1;
    perm[x->rank - 1] = d;
    NPU_TRY(build_cast(b, matrix, type, &matrix));
    NPU_TRY(build_transpose(b, x, perm, &x));
    if (x->rank == 1) NPU_TRY(build_reshape(b, x, 2, (int64_t[]){1, in}, &x));
    NPU_TRY(build_matmul(b, x, matrix, false, true, &x));
    if (any_added) {
        struct graph_value *v = graph_add_const(b->g, b->label, ISA_F32, 1, &size, added);
        NPU_TRY(build_map(b, type, "add in1", NULL, 2, (struct graph_value *[]){x, v}, &x));
    }
    if (image->rank == 1) NPU_TRY(build_reshape(b, x, 1, &size, &x));
    return build_transpose(b, x, perm, out);
}

static npu_status resize_by_products(const struct build *b, struct graph_value *image,
                                     const struct resize_style *s, const struct resize *r,
                                     struct graph_value **out) {
    struct graph_value *x = image;
    if (!isa_dtype_is_float(x->dtype))
        return npu_fail(UNSUPPORTED, "mode %s of %s", s->mode_word, isa_dtype_name(x->dtype));
    for (int d = 0; d < x->rank; d++) {
        bool kept = r->sizes[d] == image->dims[d] && (r->by_sizes || r->scales[d] == 1.0f) &&
                    (!s->has_roi || (s->roi[d] == 0.0f && s->roi[image->rank + d] == 1.0f));
        if (!kept) NPU_TRY(resize_dim(b, s, r, x, d, image, &x));
    }
    *out = x;
    return NULL;
}

// Whether the core op does it.
static bool is_core(const struct resize_style *s, const struct resize *r,
                    const struct graph_value *x) {
    static const char *const coords[] = {"half_pixel", "asymmetric", "align_corners",
                                         "pytorch_half_pixel"};
    bool known = false;
    for (int k = 0; k < 4; k++)
        known |= !strcmp(s->coord, coords[k]);
    for (int d = 0; d < x->rank - 2; d++)
        known &= r->sizes[d] == x->dims[d];
    return known && x->rank >= 2 && s->mode != CUBIC && !s->antialias &&
           !(s->exclude_outside && s->mode == LINEAR);
}

static npu_status resize_core(const struct build *b, struct graph_value *x,
                              const struct resize_style *s, const struct resize *r,
                              struct graph_value **out) {
    struct graph *g = b->g;
    struct graph_node *node = build_core(b, GRAPH_RESIZE, 1, &x);
    graph_set_word(g, node, GRAPH_ATTR_MODE, s->mode_word);
    graph_set_word(g, node, GRAPH_ATTR_COORD, s->coord);
    graph_set_word(g, node, GRAPH_ATTR_NEAREST, s->nearest);
    graph_set_ints(g, node, GRAPH_ATTR_SHAPE, x->rank, r->sizes);
    if (!r->by_sizes)
        graph_set_floats(g, node, GRAPH_ATTR_SCALES, 2,
                         (double[]){(double)r->scales[x->rank - 2],
                                    (double)r->scales[x->rank - 1]});
    return build_emit(b, node, out);
}

npu_status build_resize(const struct build *b, struct graph_value *x, const struct resize_style *s,
                        const struct resize *r, struct graph_value **out) {
    return is_core(s, r, x) ? resize_core(b, x, s, r, out) : resize_by_products(b, x, s, r, out);
}
