// SPDX-License-Identifier: Apache-2.0
//
// Matrix products.

#include <string.h>

#include "toolchain/frontend/common/functions.h"
#include "toolchain/frontend/onnx/import.h"

npu_status import_matmul(struct onnx_node *n) {
    struct graph_value *y;
    NPU_TRY(onnx_need(n, 2, 2));
    NPU_TRY(build_product(&n->b, n->in[0], n->in[1], &y));
    return onnx_bind(n, 0, y);
}

// alpha * A' * B' + beta * C
npu_status import_gemm(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 3));
    double alpha = onnx_float(n, "alpha", 1), beta = onnx_float(n, "beta", 1);
    for (int k = 0; k < 2; k++)
        if (n->in[k]->rank != 2)
            return npu_fail(BAD_INPUT, "input %d ('%s') has rank %d, expected 2", k, n->in[k]->name,
                            n->in[k]->rank);
    struct graph_value *y;
    NPU_TRY(onnx_matmul(n, n->in[0], n->in[1], onnx_int(n, "transA", 0) != 0,
                        onnx_int(n, "transB", 0) != 0, &y));
    struct graph_value *in[2] = {y, onnx_given(n, 2) ? n->in[2] : NULL};
    double params[2] = {alpha, beta};
    bool scaled = alpha != 1, adds = in[1] && beta != 0;
    if (adds && in[1]->rank > 2)
        return npu_fail(BAD_INPUT, "input 2 ('%s') has rank %d, at most 2", in[1]->name,
                        in[1]->rank);
    if (adds && beta != 1) NPU_TRY(onnx_map(n, in[1]->dtype, "mul $1", params, 1, &in[1], &in[1]));
    if (adds)
        NPU_TRY(onnx_map(n, y->dtype, scaled ? "mul $0; add in1" : "add in1", params, 2, in, &y));
    else if (scaled)
        NPU_TRY(onnx_map(n, y->dtype, "mul $0", params, 1, in, &y));
    return onnx_bind(n, 0, y);
}

npu_status import_fused_matmul(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    if (onnx_int(n, "transBatchA", 0) || onnx_int(n, "transBatchB", 0))
        return npu_fail(UNSUPPORTED, "transBatchA, transBatchB");
    struct graph_value *y;
    double alpha = onnx_float(n, "alpha", 1);
    if (n->in[0]->rank < 2 || n->in[1]->rank < 2)
        NPU_TRY(build_product(&n->b, n->in[0], n->in[1], &y));
    else
        NPU_TRY(onnx_matmul(n, n->in[0], n->in[1], onnx_int(n, "transA", 0) != 0,
                            onnx_int(n, "transB", 0) != 0, &y));
    if (alpha != 1) NPU_TRY(onnx_map(n, y->dtype, "mul $0", &alpha, 1, &y, &y));
    return onnx_bind(n, 0, y);
}

npu_status import_cumsum(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    struct graph_value *x = n->in[0], *y;
    int64_t where;
    int count, axis;
    NPU_TRY(onnx_const_ints(n, 1, &where, 1, &count));
    if (count != 1)
        return npu_fail(BAD_INPUT, "input 1 ('%s') has %d elements, expected 1", n->in[1]->name,
                        count);
    NPU_TRY(onnx_axis(n, where, x->rank, &axis));
    NPU_TRY(build_cumsum(&n->b, x, axis, onnx_int(n, "exclusive", 0) != 0,
                         onnx_int(n, "reverse", 0) != 0, &y));
    return onnx_bind(n, 0, y);
}
