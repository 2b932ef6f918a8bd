// SPDX-License-Identifier: Apache-2.0
//
// Quantised ops. A scale or zero point is a scalar, one per element of `axis`, or (opset 21) one
// per block of `block_size` elements along axis.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/onnx/import.h"

// Parameter v made to broadcast against x.
static npu_status spread(struct onnx_node *n, const struct graph_value *x, struct graph_value *v,
                         struct graph_value **out) {
    int axis;
    *out = v;
    if (graph_value_elems(v) == 1) return v->rank ? onnx_reshape(n, v, 0, NULL, out) : NULL;
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", 1), x->rank, &axis));
    int64_t block = onnx_int(n, "block_size", 0), dims[GRAPH_MAX_RANK];
    if (!block) {
        if (v->rank != 1 || v->dims[0] != x->dims[axis])
            return npu_fail(BAD_INPUT, "'%s' has %lld elements, expected 1 or %lld", v->name,
                            (long long)graph_value_elems(v), (long long)x->dims[axis]);
        for (int d = 0; d < x->rank; d++)
            dims[d] = d == axis ? v->dims[0] : 1;
        return onnx_reshape(n, v, x->rank, dims, out);
    }
    if (v->rank != x->rank || x->rank >= GRAPH_MAX_RANK || block < 1 || x->dims[axis] % block ||
        v->dims[axis] != x->dims[axis] / block)
        return npu_fail(BAD_INPUT, "'%s' does not fit '%s' in blocks of %lld", v->name, x->name,
                        (long long)block);
    // [.., blocks, 1, ..] -> [.., blocks, block, ..] -> [.., size, ..]
    int rank = 0;
    for (int d = 0; d < x->rank; d++) {
        dims[rank++] = v->dims[d];
        if (d == axis) dims[rank++] = 1;
    }
    NPU_TRY(onnx_reshape(n, v, rank, dims, out));
    dims[axis + 1] = block;
    NPU_TRY(onnx_expand(n, *out, rank, dims, out));
    return onnx_reshape(n, *out, x->rank, x->dims, out);
}

static npu_status is_integer(struct onnx_node *n, const struct graph_value *v) {
    (void)n;
    if (isa_dtype_is_int(v->dtype)) return NULL;
    return npu_fail(UNSUPPORTED, "'%s' is %s, expected an integer type", v->name,
                    isa_dtype_name(v->dtype));
}

// Values of 4 bits in bytes: the engines read packed ones, they do not write them.
static npu_status quantize_to_4_bits(struct onnx_node *n, struct graph_value *x,
                                     struct graph_value *scale, struct graph_value *zero,
                                     bool negative, struct graph_value **out) {
    const double ends[2] = {negative ? -8 : 0, negative ? 7 : 15};
    enum isa_dtype type = negative ? ISA_I8 : ISA_U8;
    if (zero) NPU_TRY(onnx_cast(n, zero, type, &zero));
    return onnx_map(n, type,
                    zero ? "div in1; round; add in2; max $0; min $1"
                         : "div in1; round; max $0; min $1",
                    ends, zero ? 3 : 2, (struct graph_value *[]){x, scale, zero}, out);
}

// round(x / scale) + zero, saturated
npu_status import_quantize(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 3));
    struct graph_value *x = n->in[0], *scale, *zero = NULL, *y;
    enum isa_dtype type = ISA_U8;
    if (onnx_given(n, 2)) {
        type = n->in[2]->dtype;
        NPU_TRY(is_integer(n, n->in[2]));
        NPU_TRY(spread(n, x, n->in[2], &zero));
    } else if (onnx_int(n, "output_dtype", 0)) {
        NPU_TRY(onnx_dtype(onnx_int(n, "output_dtype", 0), &type));
        if (!isa_dtype_is_int(type))
            return npu_fail(UNSUPPORTED, "output_dtype %s", isa_dtype_name(type));
    }
    NPU_TRY(spread(n, x, n->in[1], &scale));
    NPU_TRY(onnx_cast(n, x, ISA_F32, &x));
    if (type == ISA_I4 || type == ISA_U4) {
        NPU_TRY(quantize_to_4_bits(n, x, scale, zero, type == ISA_I4, &y));
        return onnx_bind(n, 0, y);
    }
    NPU_TRY(onnx_map(n, type, zero ? "div in1; round; add in2" : "div in1; round", NULL,
                     zero ? 3 : 2, (struct graph_value *[]){x, scale, zero}, &y));
    return onnx_bind(n, 0, y);
}

// (x - zero) * scale
npu_status import_dequantize(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 3));
    struct graph_value *x = n->in[0], *scale, *zero = NULL, *y;
    NPU_TRY(is_integer(n, x));
    NPU_TRY(spread(n, x, n->in[1], &scale));
    if (onnx_given(n, 2)) NPU_TRY(spread(n, x, n->in[2], &zero));
    if (zero && x->dtype != zero->dtype) NPU_TRY(onnx_cast(n, zero, x->dtype, &zero));
    if (zero)
        NPU_TRY(onnx_map(n, scale->dtype, "sub in1; mul in2", NULL, 3,
                         (struct graph_value *[]){x, zero, scale}, &y));
    else
        NPU_TRY(
            onnx_map(n, scale->dtype, "mul in1", NULL, 2, (struct graph_value *[]){x, scale}, &y));
    return onnx_bind(n, 0, y);
}

// Sum of x over one dimension, as i32, the dimension kept.
static npu_status sum_of(struct onnx_node *n, struct graph_value *x, int axis,
                         struct graph_value **out) {
    const int64_t axes[1] = {axis};
    NPU_TRY(onnx_cast(n, x, ISA_I32, &x));
    return onnx_reduce(n, x, "sum", 1, axes, true, out);
}

// y - zero * sums, or y - zero * sums + extra
static npu_status correct(struct onnx_node *n, struct graph_value *y, struct graph_value *zero,
                          struct graph_value *sums, struct graph_value **out) {
    NPU_TRY(onnx_map(n, ISA_I32, "mul in1", NULL, 2, (struct graph_value *[]){sums, zero}, &sums));
    return onnx_map(n, ISA_I32, "sub in1", NULL, 2, (struct graph_value *[]){y, sums}, out);
}

// A zero point per row of A ([M]) as a column.
static npu_status as_column(struct onnx_node *n, struct graph_value *zero,
                            struct graph_value **out) {
    *out = zero;
    if (!zero || zero->rank != 1 || zero->dims[0] == 1) return NULL;
    return onnx_reshape(n, zero, 2, (int64_t[]){zero->dims[0], 1}, out);
}

// (A - za)(B - zb) as i32, with 8-bit operands in the product:
// A B - za * colsum(B) - rowsum(A) * zb + K * za * zb
static npu_status integer_product(struct onnx_node *n, struct graph_value *a,
                                  struct graph_value *za, struct graph_value *b,
                                  struct graph_value *zb, struct graph_value **out) {
    struct graph_value *y, *sums;
    NPU_TRY(is_integer(n, a));
    NPU_TRY(is_integer(n, b));
    if (a->rank < 2 || b->rank < 2)
        return npu_fail(UNSUPPORTED, "vectors in an integer product, expected rank 2 or more");
    double k = (double)a->dims[a->rank - 1];
    NPU_TRY(onnx_matmul(n, a, b, false, false, &y));
    if (!onnx_all_zero(za)) {
        NPU_TRY(as_column(n, za, &za));
        NPU_TRY(sum_of(n, b, b->rank - 2, &sums));
        // colsum(B) - K * zb: both corrections that have za in them
        if (!onnx_all_zero(zb))
            NPU_TRY(onnx_map(n, ISA_I32, "mul $0; rsub in1", &k, 2,
                             (struct graph_value *[]){zb, sums}, &sums));
        NPU_TRY(correct(n, y, za, sums, &y));
    }
    if (!onnx_all_zero(zb)) {
        NPU_TRY(sum_of(n, a, a->rank - 1, &sums));
        NPU_TRY(correct(n, y, zb, sums, &y));
    }
    *out = y;
    return NULL;
}

npu_status import_matmul_integer(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 4));
    struct graph_value *y;
    NPU_TRY(integer_product(n, n->in[0], onnx_given(n, 2) ? n->in[2] : NULL, n->in[1],
                            onnx_given(n, 3) ? n->in[3] : NULL, &y));
    return onnx_bind(n, 0, y);
}

// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
npu_status import_qlinear_matmul(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 8, 8));
    struct graph_value *y, *scale, *scales[3] = {n->in[1], n->in[4], n->in[6]};
    for (int k = 0; k < 3; k++)
        if (graph_value_elems(scales[k]) != 1)
            return npu_fail(UNSUPPORTED, "scales per row or column");
    NPU_TRY(integer_product(n, n->in[0], n->in[2], n->in[3], n->in[5], &y));
    NPU_TRY(onnx_map(n, ISA_F32, "mul in1; div in2", NULL, 3, scales, &scale));
    NPU_TRY(onnx_map(n, n->in[7]->dtype, "mul in1; round; add in2", NULL, 3,
                     (struct graph_value *[]){y, scale, n->in[7]}, &y));
    return onnx_bind(n, 0, y);
}

// scale = (max(x, 0) - min(x, 0)) / 255, zero = saturate(round(-min / scale)), y = saturate(round(x
// / scale) + zero)
npu_status import_dynamic_quantize(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *x = n->in[0], *most, *least, *scale, *zero, *y;
    int64_t axes[GRAPH_MAX_RANK];
    for (int d = 0; d < x->rank; d++)
        axes[d] = d;
    NPU_TRY(onnx_reduce(n, x, "max", x->rank, axes, false, &most));
    NPU_TRY(onnx_reduce(n, x, "min", x->rank, axes, false, &least));
    NPU_TRY(onnx_map1(n, "min 0", least, &least));
    NPU_TRY(onnx_map2(n, "max 0; sub in1; div 255", most, least, &scale));
    NPU_TRY(onnx_map(n, ISA_U8, "neg; div in1; round", NULL, 2,
                     (struct graph_value *[]){least, scale}, &zero));
    NPU_TRY(onnx_map(n, ISA_U8, "div in1; round; add in2", NULL, 3,
                     (struct graph_value *[]){x, scale, zero}, &y));
    NPU_TRY(onnx_bind(n, 0, y));
    NPU_TRY(onnx_bind(n, 1, scale));
    return onnx_bind(n, 2, zero);
}

// Weights of 4 bits, [N, blocks, block / 2] bytes, low half first, with a scale and a zero point (8
// when absent) per block of K: B = ((q - zero) * scale)', y = A B.
npu_status import_matmul_nbits(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 3, 6));
    int64_t k = onnx_int(n, "K", 0), cols = onnx_int(n, "N", 0),
            block = onnx_int(n, "block_size", 0);
    if (onnx_int(n, "bits", 4) != 4)
        return npu_fail(UNSUPPORTED, "bits %lld, expected 4", (long long)onnx_int(n, "bits", 4));
    if (onnx_given(n, 4)) return npu_fail(UNSUPPORTED, "input 4 (g_idx)");
    if (k < 1 || cols < 1 || block < 2 || k > 1 << 28 || cols > 1 << 28 || block > 1 << 20 ||
        k % block || block % 2)
        return npu_fail(UNSUPPORTED, "K %lld, N %lld in blocks of %lld", (long long)k,
                        (long long)cols, (long long)block);
    NPU_TRY(onnx_need_const(n, 1));
    struct graph_value *q = n->in[1], *scale = n->in[2], *zero = NULL, *b, *y;
    int64_t blocks = k / block, weights[3] = {cols, blocks, block};
    if (q->dtype != ISA_U8 || graph_value_elems(q) * 2 != k * cols)
        return npu_fail(BAD_INPUT, "the weights '%s' do not fit", q->name);
    // The bytes are u4 elements in order already.
    q = graph_add_const(n->m->g, n->label, ISA_U4, 3, weights, q->data);
    NPU_TRY(onnx_reshape(n, scale, 3, (int64_t[]){cols, blocks, 1}, &scale));
    if (onnx_given(n, 3)) {
        NPU_TRY(onnx_need_const(n, 3));
        if (n->in[3]->dtype != ISA_U8 || blocks % 2 ||
            graph_value_elems(n->in[3]) * 2 != cols * blocks)
            return npu_fail(UNSUPPORTED, "zero points '%s' that are not packed in pairs",
                            n->in[3]->name);
        zero = graph_add_const(n->m->g, n->label, ISA_U4, 3, (int64_t[]){cols, blocks, 1},
                               n->in[3]->data);
        NPU_TRY(onnx_map(n, scale->dtype, "sub in1; mul in2", NULL, 3,
                         (struct graph_value *[]){q, zero, scale}, &b));
    } else {
        NPU_TRY(onnx_map(n, scale->dtype, "sub 8; mul in1", NULL, 2,
                         (struct graph_value *[]){q, scale}, &b));
    }
    NPU_TRY(onnx_reshape(n, b, 2, (int64_t[]){cols, k}, &b));
    NPU_TRY(onnx_matmul(n, n->in[0], b, false, true, &y));
    if (onnx_given(n, 5))
        NPU_TRY(
            onnx_map(n, y->dtype, "add in1", NULL, 2, (struct graph_value *[]){y, n->in[5]}, &y));
    return onnx_bind(n, 0, y);
}
