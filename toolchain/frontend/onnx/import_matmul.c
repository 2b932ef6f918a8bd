// SPDX-License-Identifier: Apache-2.0
//
// Matrix products.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/onnx/import.h"

// Vectors become a row (left) or a column (right); the dimension goes again afterwards.
static npu_status product(struct onnx_node *n, struct graph_value *a, struct graph_value *b,
                          struct graph_value **out) {
    if (!a->rank || !b->rank) return npu_fail(BAD_INPUT, "a scalar in a matrix product");
    bool row = a->rank == 1, column = b->rank == 1;
    if (row) NPU_TRY(onnx_reshape(n, a, 2, (int64_t[]){1, a->dims[0]}, &a));
    if (column) NPU_TRY(onnx_reshape(n, b, 2, (int64_t[]){b->dims[0], 1}, &b));
    struct graph_value *y;
    NPU_TRY(onnx_matmul(n, a, b, false, false, &y));
    int64_t dims[GRAPH_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < y->rank; d++)
        if (!(row && d == y->rank - 2) && !(column && d == y->rank - 1)) dims[rank++] = y->dims[d];
    return onnx_reshape(n, y, rank, dims, out);
}

npu_status import_matmul(struct onnx_node *n) {
    struct graph_value *y;
    NPU_TRY(onnx_need(n, 2, 2));
    NPU_TRY(product(n, n->in[0], n->in[1], &y));
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
        NPU_TRY(product(n, n->in[0], n->in[1], &y));
    else
        NPU_TRY(onnx_matmul(n, n->in[0], n->in[1], onnx_int(n, "transA", 0) != 0,
                            onnx_int(n, "transB", 0) != 0, &y));
    if (alpha != 1) NPU_TRY(onnx_map(n, y->dtype, "mul $0", &alpha, 1, &y, &y));
    return onnx_bind(n, 0, y);
}

// A running sum is a product with a triangle of ones: y[i] = sum over j of x[j] * t[j][i].
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
    bool exclusive = onnx_int(n, "exclusive", 0) != 0, reverse = onnx_int(n, "reverse", 0) != 0;
    int64_t size = x->dims[axis], perm[GRAPH_MAX_RANK];
    if (size > 4096)
        return npu_fail(UNSUPPORTED, "a running sum over %lld elements, at most 4096",
                        (long long)size);
    enum isa_dtype type = isa_dtype_is_int(x->dtype) ? ISA_F32 : x->dtype;
    size_t bytes = (size_t)isa_dtype_bits(type) / 8;
    uint8_t *ones = arena_alloc(n->m->arena, (size_t)(size * size) * bytes + 1);
    for (int64_t j = 0; j < size; j++)
        for (int64_t i = 0; i < size; i++) {
            bool taken = reverse ? (exclusive ? j > i : j >= i) : (exclusive ? j < i : j <= i);
            num_store_f32(type, ones, j * size + i, taken ? 1.0f : 0.0f);
        }
    struct graph_value *triangle =
        graph_add_const(n->m->g, n->label, type, 2, (int64_t[]){size, size}, ones);
    for (int d = 0; d < x->rank; d++)
        perm[d] = d;
    perm[axis] = x->rank - 1;
    perm[x->rank - 1] = axis;
    enum isa_dtype result = x->dtype;
    NPU_TRY(onnx_transpose(n, x, perm, &x));
    NPU_TRY(onnx_cast(n, x, type, &x));
    NPU_TRY(product(n, x, triangle, &y));
    NPU_TRY(onnx_transpose(n, y, perm, &y));
    NPU_TRY(onnx_cast(n, y, result, &y));
    return onnx_bind(n, 0, y);
}
