// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/: resizing of images.
#ifndef NPU_FRONTEND_COMMON_RESAMPLE_H
#define NPU_FRONTEND_COMMON_RESAMPLE_H

#include "toolchain/frontend/common/build.h"

struct resize {
    float scales[GRAPH_MAX_RANK];
    int64_t sizes[GRAPH_MAX_RANK];
    bool by_sizes;
};

enum resize_mode { NEAREST, LINEAR, CUBIC };

// How positions are taken; words of the node.
struct resize_style {
    enum resize_mode mode;
    const char *mode_word, *coord, *nearest;
    double cubic;         // the kernel's coefficient
    bool exclude_outside; // weights outside the image count as 0 and the rest is scaled to 1
    bool antialias;
    double extrapolation;
    float roi[2 * GRAPH_MAX_RANK];
    bool has_roi;
};

NPU_MUST_USE npu_status build_resize(const struct build *b, struct graph_value *x,
                                     const struct resize_style *s, const struct resize *r,
                                     struct graph_value **out);

#endif
