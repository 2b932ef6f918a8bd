// SPDX-License-Identifier: Apache-2.0
//
// The largest or smallest elements of rows, in order, out of comparisons, selections and sums.
#ifndef NPU_FRONTEND_COMMON_SORT_H
#define NPU_FRONTEND_COMMON_SORT_H

#include "toolchain/frontend/common/build.h"

// The first `count` of x's elements along axis, largest or smallest first; equal ones in their own
// order. values: x's shape with count at axis, x's type; indices: i64 of that shape. What is
// not a number is larger than infinity. UNSUPPORTED: rows too long for the comparison of all pairs
// and too many of them wanted.
NPU_MUST_USE npu_status build_sort(const struct build *b, struct graph_value *x, int axis,
                                   int64_t count, bool largest, struct graph_value **values,
                                   struct graph_value **indices);

#endif
