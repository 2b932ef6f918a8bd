// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/: Einstein sums.
#ifndef NPU_FRONTEND_COMMON_EINSUM_H
#define NPU_FRONTEND_COMMON_EINSUM_H

#include "toolchain/frontend/common/build.h"

// "bij,bjk->bik" of one or two operands; "..." and a result that is not written are understood.
NPU_MUST_USE npu_status build_einsum(const struct build *b, const char *equation, int count,
                                     struct graph_value *const *x, struct graph_value **out);

#endif
