// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/: normalisations.
#ifndef NPU_FRONTEND_COMMON_NORM_H
#define NPU_FRONTEND_COMMON_NORM_H

#include "toolchain/frontend/common/build.h"

// LAYERNORM or RMSNORM of in[0] over the dimensions from axis on; scale and bias follow.
NPU_MUST_USE npu_status build_norm(const struct build *b, enum graph_op op, int nin,
                                   struct graph_value *const *in, int axis, double epsilon,
                                   struct graph_value **out);
// A scale or bias v with exactly the dimensions of x from axis on.
NPU_MUST_USE npu_status norm_operand(const struct build *b, const struct graph_value *x, int axis,
                                     struct graph_value *v, struct graph_value **out);
// Mean, and 1 / sqrt(variance + epsilon), both f32, over axes, which stay with size 1.
NPU_MUST_USE npu_status norm_statistics(const struct build *b, struct graph_value *x, int count,
                                        const int64_t *axes, double epsilon,
                                        struct graph_value **mean, struct graph_value **inverse);
// Each of `groups` runs of channels of x[N,C,..] normalised on its own.
NPU_MUST_USE npu_status norm_groups(const struct build *b, struct graph_value *x, int64_t groups,
                                    double epsilon, struct graph_value **out);
// y * scale + bias, both [C], along dimension 1; bias or scale may be NULL.
NPU_MUST_USE npu_status norm_channels(const struct build *b, struct graph_value *y,
                                      struct graph_value *scale, struct graph_value *bias,
                                      struct graph_value **out);

#endif
