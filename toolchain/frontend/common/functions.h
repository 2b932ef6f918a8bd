// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/: functions of tensors that are more than one core node. The result has x's type.
#ifndef NPU_FRONTEND_COMMON_FUNCTIONS_H
#define NPU_FRONTEND_COMMON_FUNCTIONS_H

#include "toolchain/frontend/common/build.h"

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
NPU_MUST_USE npu_status build_tanh_gelu(const struct build *b, struct graph_value *x,
                                        struct graph_value **out);
NPU_MUST_USE npu_status build_tan(const struct build *b, struct graph_value *x,
                                  struct graph_value **out);
NPU_MUST_USE npu_status build_atan(const struct build *b, struct graph_value *x,
                                   struct graph_value **out);
NPU_MUST_USE npu_status build_asin(const struct build *b, struct graph_value *x,
                                   struct graph_value **out);
NPU_MUST_USE npu_status build_acos(const struct build *b, struct graph_value *x,
                                   struct graph_value **out);
NPU_MUST_USE npu_status build_asinh(const struct build *b, struct graph_value *x,
                                    struct graph_value **out);
NPU_MUST_USE npu_status build_acosh(const struct build *b, struct graph_value *x,
                                    struct graph_value **out);
NPU_MUST_USE npu_status build_softplus(const struct build *b, struct graph_value *x,
                                       struct graph_value **out);
// x to the power of y; a constant exponent becomes multiplications, roots or reciprocals where it
// can.
NPU_MUST_USE npu_status build_pow(const struct build *b, struct graph_value *x,
                                  struct graph_value *y, struct graph_value **out);

// log(sum(exp(x))) over axes.
NPU_MUST_USE npu_status build_log_sum_exp(const struct build *b, struct graph_value *x, int count,
                                          const int64_t *axes, bool keepdims,
                                          struct graph_value **out);
// Matrix product where a vector is a row (left) or a column (right) and goes again.
NPU_MUST_USE npu_status build_product(const struct build *b, struct graph_value *x,
                                      struct graph_value *w, struct graph_value **out);
// [.., M, K] x [.., K, N] of integers, exact modulo 2^64, as i64. UNSUPPORTED: more than 2^20
// multiplications, which the vector engine does.
NPU_MUST_USE npu_status build_integer_product(const struct build *b, struct graph_value *x,
                                              struct graph_value *w, struct graph_value **out);
// The remainder with the sign of x, and the quotient rounded down, of floats: f32.
NPU_MUST_USE npu_status build_fmod(const struct build *b, struct graph_value *x,
                                   struct graph_value *y, struct graph_value **out);
NPU_MUST_USE npu_status build_floor_division(const struct build *b, struct graph_value *x,
                                             struct graph_value *y, struct graph_value **out);
// The angle of (x, y): f32.
NPU_MUST_USE npu_status build_atan2(const struct build *b, struct graph_value *y,
                                    struct graph_value *x, struct graph_value **out);
// The index of the first of the largest elements along axis: i64.
NPU_MUST_USE npu_status build_argmax(const struct build *b, struct graph_value *x, int axis,
                                     bool keepdims, struct graph_value **out);
// Running sums along axis, of integers modulo 2^64 and then saturated.
NPU_MUST_USE npu_status build_cumsum(const struct build *b, struct graph_value *x, int axis,
                                     bool exclusive, bool reverse, struct graph_value **out);

#endif
