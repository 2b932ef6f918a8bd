// SPDX-License-Identifier: Apache-2.0
//
// Resize and Upsample. What the core op knows (nearest and linear of the last two dimensions)
// becomes one node. Everything else is linear in x, one dimension at a time: a product with a
// constant matrix whose row i holds the weights of output position i.

#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/onnx/import.h"

struct resize {
    float scales[GRAPH_MAX_RANK];
    int64_t sizes[GRAPH_MAX_RANK];
    bool by_sizes;
};

// Upsample: scales as attribute or input 1. Resize: scales are input 2, sizes input 3, for all
// dimensions or for `axes`.
static npu_status read_resize(struct onnx_node *n, struct resize *r) {
    const struct graph_value *x = n->in[0];
    int64_t axes[GRAPH_MAX_RANK], sizes[GRAPH_MAX_RANK];
    float scales[GRAPH_MAX_RANK];
    int count = 0, naxes = onnx_ints_into(n, "axes", axes, GRAPH_MAX_RANK);
    bool upsample = !strcmp(n->op, "Upsample");
    int scale_input = upsample ? 1 : 2;
    if (naxes < 0)
        for (naxes = 0; naxes < x->rank; naxes++)
            axes[naxes] = naxes;
    if (upsample && n->opset < 9) {
        const Onnx__AttributeProto *a = onnx_attr(n, "scales");
        if (!a || a->n_floats != (size_t)x->rank)
            return npu_fail(BAD_INPUT, "attribute scales needs %d items", x->rank);
        memcpy(scales, a->floats, a->n_floats * sizeof *scales);
        count = (int)a->n_floats;
    } else if (onnx_given(n, scale_input)) {
        NPU_TRY(onnx_const_floats(n, scale_input, scales, GRAPH_MAX_RANK, &count));
    }
    if (!count && onnx_given(n, 3)) {
        NPU_TRY(onnx_const_ints(n, 3, sizes, GRAPH_MAX_RANK, &count));
        r->by_sizes = true;
    }
    if (count != naxes) return npu_fail(BAD_INPUT, "%d scales or sizes, expected %d", count, naxes);
    for (int d = 0; d < x->rank; d++) {
        r->scales[d] = 1;
        r->sizes[d] = x->dims[d];
    }
    for (int k = 0; k < naxes; k++) {
        int d;
        NPU_TRY(onnx_axis(n, axes[k], x->rank, &d));
        if (r->by_sizes) {
            r->sizes[d] = sizes[k];
        } else {
            double size = floor((double)x->dims[d] * (double)scales[k]);
            if (!(scales[k] > 0) || size > 1 << 30)
                return npu_fail(BAD_INPUT, "scale %g of dimension %d", (double)scales[k], d);
            r->scales[d] = scales[k];
            r->sizes[d] = (int64_t)size;
        }
    }
    return NULL;
}

enum mode { NEAREST, LINEAR, CUBIC };

// How positions are taken; words of the node.
struct style {
    enum mode mode;
    const char *mode_word, *coord, *nearest;
    double cubic;         // the kernel's coefficient
    bool exclude_outside; // weights outside the image count as 0 and the rest is scaled to 1
    bool antialias;
    double extrapolation;
    float roi[2 * GRAPH_MAX_RANK];
    bool has_roi;
};

static npu_status read_style(struct onnx_node *n, struct style *s) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    const int rank = n->in[0]->rank;
    bool upsample = !strcmp(n->op, "Upsample");
    s->mode_word = onnx_string(n, "mode", "nearest");
    s->coord =
        upsample ? "asymmetric" : onnx_string(n, "coordinate_transformation_mode", "half_pixel");
    s->nearest = upsample ? "floor" : onnx_string(n, "nearest_mode", "round_prefer_floor");
    s->cubic = onnx_float(n, "cubic_coeff_a", -0.75);
    s->exclude_outside = onnx_int(n, "exclude_outside", 0) != 0;
    s->antialias = onnx_int(n, "antialias", 0) != 0;
    s->extrapolation = onnx_float(n, "extrapolation_value", 0);
    for (int k = 0; k < 3; k++) {
        s->mode = (enum mode)k;
        if (!strcmp(s->mode_word, modes[k])) break;
        if (k == 2)
            return npu_fail(BAD_INPUT, "mode '%s', expected nearest, linear or cubic",
                            s->mode_word);
    }
    if (strcmp(s->coord, "tf_crop_and_resize") != 0) return NULL;
    int count;
    s->has_roi = true;
    if (!onnx_given(n, 1)) return npu_fail(BAD_INPUT, "tf_crop_and_resize needs the input roi");
    NPU_TRY(onnx_const_floats(n, 1, s->roi, 2 * GRAPH_MAX_RANK, &count));
    if (count != 2 * rank || onnx_has(n, "axes"))
        return npu_fail(UNSUPPORTED, "roi of %d numbers, expected %d", count, 2 * rank);
    return NULL;
}

// The position in the image that output position i of dimension d stands for.
static double position(const struct style *s, const struct resize *r, const struct graph_value *x,
                       int d, int64_t i) {
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

static double nearest_of(const struct style *s, double p) {
    if (!strcmp(s->nearest, "floor")) return floor(p);
    if (!strcmp(s->nearest, "ceil")) return ceil(p);
    return !strcmp(s->nearest, "round_prefer_ceil") ? floor(p + 0.5) : ceil(p - 0.5);
}

// Weights of one output position in row[0..size).
static void fill_row(const struct style *s, double p, int64_t size, double scale, float *row) {
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
static npu_status resize_dim(struct onnx_node *n, const struct style *s, const struct resize *r,
                             struct graph_value *x, int d, struct graph_value **out) {
    int64_t in = x->dims[d], size = r->sizes[d], perm[GRAPH_MAX_RANK];
    if (in < 1 || size > (1 << 22) / in)
        return npu_fail(UNSUPPORTED, "%lld x %lld weights of a resize", (long long)in,
                        (long long)size);
    float *weights = ARENA_ARRAY(n->m->arena, float, (size_t)(in * size) + 1),
          *added = ARENA_ARRAY(n->m->arena, float, (size_t)size + 1);
    bool any_added = false;
    for (int64_t i = 0; i < size; i++) {
        double p = position(s, r, n->in[0], d, i), far = (double)in + 8;
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
        graph_add_const(n->m->g, n->label, ISA_F32, 2, (int64_t[]){size, in}, weights);
    for (int k = 0; k < x->rank; k++)
        perm[k] = k;
    perm[d] = x->rank - 1;
    perm[x->rank - 1] = d;
    NPU_TRY(onnx_cast(n, matrix, type, &matrix));
    NPU_TRY(onnx_transpose(n, x, perm, &x));
    if (x->rank == 1) NPU_TRY(onnx_reshape(n, x, 2, (int64_t[]){1, in}, &x));
    NPU_TRY(onnx_matmul(n, x, matrix, false, true, &x));
    if (any_added) {
        struct graph_value *v = graph_add_const(n->m->g, n->label, ISA_F32, 1, &size, added);
        NPU_TRY(onnx_map(n, type, "add in1", NULL, 2, (struct graph_value *[]){x, v}, &x));
    }
    if (n->in[0]->rank == 1) NPU_TRY(onnx_reshape(n, x, 1, &size, &x));
    return onnx_transpose(n, x, perm, out);
}

static npu_status resize_by_products(struct onnx_node *n, const struct style *s,
                                     const struct resize *r, struct graph_value **out) {
    struct graph_value *x = n->in[0];
    if (!isa_dtype_is_float(x->dtype))
        return npu_fail(UNSUPPORTED, "mode %s of %s", s->mode_word, isa_dtype_name(x->dtype));
    for (int d = 0; d < x->rank; d++) {
        bool kept = r->sizes[d] == n->in[0]->dims[d] && (r->by_sizes || r->scales[d] == 1.0f) &&
                    (!s->has_roi || (s->roi[d] == 0.0f && s->roi[n->in[0]->rank + d] == 1.0f));
        if (!kept) NPU_TRY(resize_dim(n, s, r, x, d, &x));
    }
    *out = x;
    return NULL;
}

// Whether the core op does it.
static bool is_core(const struct style *s, const struct resize *r, const struct graph_value *x) {
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

static npu_status resize_core(struct onnx_node *n, const struct style *s, const struct resize *r,
                              struct graph_value **out) {
    struct graph_value *x = n->in[0];
    struct graph *g = n->m->g;
    struct graph_node *node = onnx_core(n, GRAPH_RESIZE, 1, &x);
    graph_set_word(g, node, GRAPH_ATTR_MODE, s->mode_word);
    graph_set_word(g, node, GRAPH_ATTR_COORD, s->coord);
    graph_set_word(g, node, GRAPH_ATTR_NEAREST, s->nearest);
    graph_set_ints(g, node, GRAPH_ATTR_SHAPE, x->rank, r->sizes);
    if (!r->by_sizes)
        graph_set_floats(g, node, GRAPH_ATTR_SCALES, 2,
                         (double[]){(double)r->scales[x->rank - 2],
                                    (double)r->scales[x->rank - 1]});
    return onnx_emit(n, node, out);
}

npu_status import_resize(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 4));
    struct graph_value *y;
    struct resize r = {.by_sizes = false};
    struct style s = {.has_roi = false};
    NPU_TRY(read_resize(n, &r));
    NPU_TRY(read_style(n, &s));
    const char *policy = onnx_string(n, "keep_aspect_ratio_policy", "stretch");
    if (strcmp(policy, "stretch") != 0)
        return npu_fail(UNSUPPORTED, "keep_aspect_ratio_policy '%s', expected stretch", policy);
    for (int d = 0; d < n->in[0]->rank; d++)
        if (r.sizes[d] < 0)
            return npu_fail(BAD_INPUT, "size %lld of dimension %d", (long long)r.sizes[d], d);
    if (is_core(&s, &r, n->in[0]))
        NPU_TRY(resize_core(n, &s, &r, &y));
    else
        NPU_TRY(resize_by_products(n, &s, &r, &y));
    return onnx_bind(n, 0, y);
}
