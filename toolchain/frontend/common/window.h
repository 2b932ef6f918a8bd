// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/: convolutions and pools of one or two spatial dimensions.
#ifndef NPU_FRONTEND_COMMON_WINDOW_H
#define NPU_FRONTEND_COMMON_WINDOW_H

#include "toolchain/frontend/common/build.h"

// Attributes of a sliding window over `spatial` dimensions, with pads worked out. Arrays are in the
// core's order: top, left, bottom, right; a one-dimensional window is the second of each.
struct window {
    int spatial;
    int64_t in[2], kernel[2], stride[2], dilation[2], pad[4], output_pad[2];
    bool explicit_output; // output_shape was given
    int64_t out[2];
};

// Ranks, sizes and the kernel out of x[N,C,..] and weights[..]; strides and dilations 1, no pads.
NPU_MUST_USE npu_status window_weights(const struct graph_value *x,
                                       const struct graph_value *weights, struct window *w);
// Weights [O,C/group,..] or, transposed, [C,O/group,..]. Zeros that were put around x before count
// as padding.
NPU_MUST_USE npu_status window_conv(const struct build *b, struct graph_value *x,
                                    struct graph_value *weights, const struct window *asked,
                                    bool transpose, int64_t group, struct graph_value **out);
// bias[C] over y[N,C,..].
NPU_MUST_USE npu_status window_bias(const struct build *b, struct graph_value *y,
                                    struct graph_value *bias, struct graph_value **out);

// ceil_mode: more padding at the end, so that the last partial window counts; a window that would
// start in it does not. Returns whether it added any.
bool window_ceil(struct window *w);
// mode: max, avg, avgpad (padding counts).
NPU_MUST_USE npu_status window_pool(const struct build *b, struct graph_value *x, const char *mode,
                                    const struct window *w, struct graph_value **out);
// Averages with ceil_mode that count the explicit padding but not what ceil_mode adds.
NPU_MUST_USE npu_status window_average(const struct build *b, struct graph_value *x,
                                       struct window *w, struct graph_value **out);

#endif
