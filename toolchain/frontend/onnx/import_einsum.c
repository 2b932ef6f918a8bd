// SPDX-License-Identifier: Apache-2.0
//
// Einsum, as common/einsum.c does it.

#include "toolchain/frontend/common/einsum.h"
#include "toolchain/frontend/onnx/import.h"

npu_status import_einsum(struct onnx_node *n) {
    struct graph_value *y;
    NPU_TRY(onnx_need(n, 1, 2));
    if (!n->in[n->nin - 1]) return npu_fail(BAD_INPUT, "input %d is missing", n->nin - 1);
    NPU_TRY(build_einsum(&n->b, onnx_string(n, "equation", ""), n->nin, n->in, &y));
    return onnx_bind(n, 0, y);
}
