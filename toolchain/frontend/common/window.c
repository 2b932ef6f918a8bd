// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and pools of one or two spatial dimensions. The core ops are two-dimensional;
// one-dimensional ones get a height of 1 by reshape.

#include "toolchain/frontend/common/window.h"

#include <string.h>

// [N,C,L] to [N,C,1,L].
static npu_status to_2d(const struct build *b, struct graph_value *x, struct graph_value **out) {
    return build_reshape(b, x, 4, (int64_t[]){x->dims[0], x->dims[1], 1, x->dims[2]}, out);
}

static npu_status from_2d(const struct build *b, const struct window *w, struct graph_value *y,
                          struct graph_value **out) {
    *out = y;
    if (w->spatial == 2) return NULL;
    return build_reshape(b, y, 3, (int64_t[]){y->dims[0], y->dims[1], y->dims[3]}, out);
}

static void set_window(const struct build *b, struct graph_node *node, const struct window *w) {
    graph_set_ints(b->g, node, GRAPH_ATTR_STRIDES, 2, w->stride);
    graph_set_ints(b->g, node, GRAPH_ATTR_PADS, 4, w->pad);
    graph_set_ints(b->g, node, GRAPH_ATTR_DILATIONS, 2, w->dilation);
}

// A border of zeros around the image becomes padding of the convolution: the value without it.
static struct graph_value *without_border(struct graph_value *x, struct window *w) {
    const struct graph_node *n = x->producer;
    if (!n || n->op != GRAPH_PAD || strcmp(graph_word(n, GRAPH_ATTR_MODE, "constant"), "constant"))
        return x;
    double value = graph_float(n, GRAPH_ATTR_VALUE, 0);
    bool plain = !(value < 0 || value > 0);
    for (int d = 0; d < x->rank; d++) {
        int64_t before = graph_ints_at(n, GRAPH_ATTR_PADS_BEFORE, d, 0),
                after = graph_ints_at(n, GRAPH_ATTR_PADS_AFTER, d, 0);
        plain = plain && (d < 2 ? !before && !after : before >= 0 && after >= 0);
    }
    if (!plain) return x;
    for (int d = 2; d < x->rank; d++) {
        int at = d - w->spatial;
        w->pad[at] += graph_ints_at(n, GRAPH_ATTR_PADS_BEFORE, d, 0);
        w->pad[at + 2] += graph_ints_at(n, GRAPH_ATTR_PADS_AFTER, d, 0);
    }
    return n->inputs[0];
}

// Weights [O,C/group,..] or, transposed, [C,O/group,..].
npu_status window_conv(const struct build *b, struct graph_value *x, struct graph_value *weights,
                       const struct window *asked, bool transpose, int64_t group,
                       struct graph_value **out) {
    struct window own = *asked;
    const struct window *w = &own;
    if (!transpose) x = without_border(x, &own);
    if (w->spatial == 1) {
        NPU_TRY(to_2d(b, x, &x));
        NPU_TRY(to_2d(b, weights, &weights));
    }
    struct graph_value *in[2] = {x, weights}, *y;
    struct graph_node *node = build_core(b, transpose ? GRAPH_CONVT : GRAPH_CONV, 2, in);
    set_window(b, node, w);
    graph_set_int(b->g, node, GRAPH_ATTR_GROUP, group);
    if (transpose && (w->output_pad[0] || w->output_pad[1]))
        graph_set_ints(b->g, node, GRAPH_ATTR_OUTPUT_PADS, 2, w->output_pad);
    NPU_TRY(build_emit(b, node, &y));
    return from_2d(b, w, y, out);
}

npu_status window_weights(const struct graph_value *x, const struct graph_value *weights,
                          struct window *w) {
    *w = (struct window){.spatial = x->rank - 2};
    if (x->rank < 3 || weights->rank != x->rank)
        return npu_fail(
            BAD_INPUT,
            "'%s' has rank %d and the weights '%s' have rank %d, expected equal ranks of 3 or 4",
            x->name, x->rank, weights->name, weights->rank);
    if (w->spatial > 2)
        return npu_fail(UNSUPPORTED, "'%s' has %d spatial dimensions, expected 1 or 2", x->name,
                        w->spatial);
    for (int d = 0; d < 2; d++) {
        w->stride[d] = w->dilation[d] = 1;
        w->in[d] = d < 2 - w->spatial ? 1 : x->dims[x->rank - 2 + d];
        w->kernel[d] = d < 2 - w->spatial ? 1 : weights->dims[weights->rank - 2 + d];
        if (w->kernel[d] < 1 || w->kernel[d] > 1 << 30)
            return npu_fail(BAD_INPUT, "the weights '%s' are empty", weights->name);
    }
    return NULL;
}

// bias[C] over y[N,C,...]
npu_status window_bias(const struct build *b, struct graph_value *y, struct graph_value *bias,
                       struct graph_value **out) {
    int64_t dims[GRAPH_MAX_RANK] = {y->dims[1], 1, 1};
    if (bias->rank != 1 || bias->dims[0] != y->dims[1])
        return npu_fail(BAD_INPUT, "the bias '%s' has rank %d and %lld elements, expected [%lld]",
                        bias->name, bias->rank, (long long)graph_value_elems(bias),
                        (long long)y->dims[1]);
    NPU_TRY(build_reshape(b, bias, y->rank - 1, dims, &bias));
    return build_map(b, y->dtype, "add in1", NULL, 2, (struct graph_value *[]){y, bias}, out);
}

// ---- pools -----------------------------------------------------------------------------------

// ceil_mode: more padding at the end, so that the last partial window counts; a window that would
// start in it does not. Returns whether it added any.
bool window_ceil(struct window *w) {
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

npu_status window_pool(const struct build *b, struct graph_value *x, const char *mode,
                       const struct window *w, struct graph_value **out) {
    if (w->spatial == 1) NPU_TRY(to_2d(b, x, &x));
    struct graph_node *node = build_core(b, GRAPH_POOL, 1, &x);
    graph_set_word(b->g, node, GRAPH_ATTR_MODE, mode);
    graph_set_ints(b->g, node, GRAPH_ATTR_KERNEL, 2, w->kernel);
    set_window(b, node, w);
    NPU_TRY(build_emit(b, node, &x));
    return from_2d(b, w, x, out);
}

// Averages that count the explicit padding but not what ceil_mode adds: the explicit part becomes
// zeros in the image.
npu_status window_average(const struct build *b, struct graph_value *x, struct window *w,
                          struct graph_value **out) {
    struct window plane = *w;
    const int64_t *p = w->pad;
    if (!window_ceil(&plane)) return window_pool(b, x, "avgpad", w, out);
    if (w->spatial == 1) NPU_TRY(to_2d(b, x, &x));
    NPU_TRY(build_pad(b, x, (int64_t[]){0, 0, p[0], p[1]}, (int64_t[]){0, 0, p[2], p[3]},
                      "constant", 0, &x));
    for (int k = 0; k < 4; k++)
        plane.pad[k] -= p[k];
    plane.spatial = 2;
    NPU_TRY(window_pool(b, x, "avg", &plane, &x));
    return from_2d(b, w, x, out);
}
