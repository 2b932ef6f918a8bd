// SPDX-License-Identifier: Apache-2.0
//
// Resize and Upsample: attributes and inputs to what common/resample.c does.

#include <math.h>
#include <string.h>

#include "toolchain/frontend/common/resample.h"
#include "toolchain/frontend/onnx/import.h"

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

static npu_status read_style(struct onnx_node *n, struct resize_style *s) {
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
        s->mode = (enum resize_mode)k;
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

npu_status import_resize(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 4));
    struct graph_value *y;
    struct resize r = {.by_sizes = false};
    struct resize_style s = {.has_roi = false};
    NPU_TRY(read_resize(n, &r));
    NPU_TRY(read_style(n, &s));
    const char *policy = onnx_string(n, "keep_aspect_ratio_policy", "stretch");
    if (strcmp(policy, "stretch") != 0)
        return npu_fail(UNSUPPORTED, "keep_aspect_ratio_policy '%s', expected stretch", policy);
    for (int d = 0; d < n->in[0]->rank; d++)
        if (r.sizes[d] < 0)
            return npu_fail(BAD_INPUT, "size %lld of dimension %d", (long long)r.sizes[d], d);
    NPU_TRY(build_resize(&n->b, n->in[0], &s, &r, &y));
    return onnx_bind(n, 0, y);
}
