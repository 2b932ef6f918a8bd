// SPDX-License-Identifier: Apache-2.0
//
// Constants, what is computed from shapes alone, and ops that do nothing at inference.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/onnx/import.h"

enum { FILLED_MAX = 1 << 26 };

// A Constant's value is in one of these attributes.
npu_status import_constant(struct onnx_node *n) {
    const Onnx__AttributeProto *a;
    struct graph_value *v = NULL;
    int64_t one[1];
    if ((a = onnx_attr(n, "value")) && a->t) {
        NPU_TRY(onnx_tensor_const(n, a->t, &v));
    } else if ((a = onnx_attr(n, "value_float"))) {
        v = onnx_new_const(n, ISA_F32, 0, NULL, &(float){a->f});
    } else if ((a = onnx_attr(n, "value_int"))) {
        v = onnx_new_ints(n, 0, NULL, &(int64_t){a->i});
    } else if ((a = onnx_attr(n, "value_floats"))) {
        one[0] = (int64_t)a->n_floats;
        v = onnx_new_const(n, ISA_F32, 1, one, a->floats);
    } else if ((a = onnx_attr(n, "value_ints"))) {
        one[0] = (int64_t)a->n_ints;
        v = onnx_new_ints(n, 1, one, a->ints);
    } else if (onnx_has(n, "value_string") || onnx_has(n, "value_strings") ||
               onnx_has(n, "sparse_value")) {
        return npu_fail(UNSUPPORTED, "a constant of strings or of a sparse tensor");
    } else {
        return npu_fail(
            BAD_INPUT,
            "attribute value is missing, expected value, value_float, value_int, value_floats or "
            "value_ints");
    }
    return onnx_bind(n, 0, v);
}

// A constant of one repeated element.
static npu_status filled(struct onnx_node *n, enum isa_dtype dtype, int rank, const int64_t *dims,
                         const void *element, struct graph_value **out) {
    size_t elems, bits = (size_t)isa_dtype_bits(dtype), size = bits / 8;
    for (int d = 0; d < rank; d++)
        if (dims[d] < 0)
            return npu_fail(BAD_INPUT, "dimension %d of the shape is %lld", d, (long long)dims[d]);
    if (!tensor_count(dims, rank, 8, &elems) || elems > FILLED_MAX)
        return npu_fail(UNSUPPORTED, "a constant of more than %d elements", FILLED_MAX);
    if (bits < 8) return npu_fail(UNSUPPORTED, "a filled constant of %s", isa_dtype_name(dtype));
    uint8_t *data = arena_alloc(n->m->arena, elems * size + 1);
    for (size_t k = 0; k < elems; k++)
        memcpy(data + k * size, element, size);
    *out = graph_add_const(n->m->g, n->label, dtype, rank, dims, data);
    return NULL;
}

npu_status import_constant_of_shape(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    int64_t dims[GRAPH_MAX_RANK];
    int rank;
    NPU_TRY(onnx_const_ints(n, 0, dims, GRAPH_MAX_RANK, &rank));
    const Onnx__AttributeProto *a = onnx_attr(n, "value");
    struct onnx_tensor t = {.dtype = ISA_F32};
    float zero = 0;
    t.data = &zero;
    if (a && a->t) {
        NPU_TRY(reader_tensor(n->m->r, a->t, &t));
        for (int d = 0; d < t.rank; d++)
            if (t.dims[d] != 1)
                return npu_fail(BAD_INPUT, "attribute value has more or less than one element");
    }
    struct graph_value *v;
    NPU_TRY(filled(n, t.dtype, rank, dims, t.data, &v));
    return onnx_bind(n, 0, v);
}

npu_status import_eyelike(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    const struct graph_value *x = n->in[0];
    enum isa_dtype dtype = x->dtype;
    if (x->rank != 2) return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 2", x->name, x->rank);
    if (onnx_has(n, "dtype")) NPU_TRY(onnx_dtype(onnx_int(n, "dtype", 0), &dtype));
    dtype = onnx_graph_dtype(dtype);
    int64_t k = onnx_int(n, "k", 0), elems = graph_value_elems(x);
    if (elems > FILLED_MAX)
        return npu_fail(UNSUPPORTED, "a constant of more than %d elements", FILLED_MAX);
    uint8_t *data = arena_alloc(n->m->arena, (size_t)elems * 8 + 1);
    for (int64_t r = 0; r < x->dims[0]; r++)
        if (k > -x->dims[0] && k < x->dims[1] && r + k >= 0 && r + k < x->dims[1])
            num_store_f32(dtype, data, r * x->dims[1] + r + k, 1.0f);
    return onnx_bind(n, 0, graph_add_const(n->m->g, n->label, dtype, 2, x->dims, data));
}

// Dimensions start..end-1; both count from the end when negative and are clamped.
npu_status import_shape(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    const struct graph_value *x = n->in[0];
    int64_t start = onnx_int(n, "start", 0), end = onnx_int(n, "end", x->rank);
    if (start < 0) start += x->rank;
    if (end < 0) end += x->rank;
    start = num_clamp_i64(start, 0, x->rank);
    end = num_clamp_i64(end, start, x->rank);
    return onnx_bind(n, 0, onnx_new_ints(n, 1, (int64_t[]){end - start}, x->dims + start));
}

npu_status import_size(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    return onnx_bind(n, 0, onnx_new_ints(n, 0, NULL, (int64_t[]){graph_value_elems(n->in[0])}));
}

npu_status import_range(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 3, 3));
    struct graph_value *y, *in[3];
    for (int k = 0; k < 3; k++) {
        NPU_TRY(onnx_need_const(n, k));
        enum isa_dtype t = n->in[k]->dtype;
        in[k] = n->in[k];
        if (graph_value_elems(in[k]) != 1)
            return npu_fail(BAD_INPUT, "input %d ('%s') is no scalar", k, in[k]->name);
        if (t != ISA_F32 && t != ISA_I32 && t != ISA_I64)
            NPU_TRY(onnx_cast(n, in[k], isa_dtype_is_int(t) ? ISA_I64 : ISA_F32, &in[k]));
    }
    NPU_TRY(onnx_emit(n, onnx_core(n, GRAPH_RANGE, 3, in), &y));
    NPU_TRY(onnx_cast(n, y, n->in[0]->dtype, &y));
    return onnx_bind(n, 0, y);
}

npu_status import_identity(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    return onnx_bind(n, 0, n->in[0]);
}

npu_status import_dropout(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 3));
    if (onnx_given(n, 2)) {
        NPU_TRY(onnx_need_const(n, 2));
        if (num_load_i64(n->in[2]->dtype, n->in[2]->data, 0))
            return npu_fail(UNSUPPORTED, "dropout in training mode");
    }
    if (onnx_used(n, 1)) {
        struct graph_value *mask;
        NPU_TRY(filled(n, ISA_BOOL, n->in[0]->rank, n->in[0]->dims, &(uint8_t){1}, &mask));
        NPU_TRY(onnx_bind(n, 1, mask));
    }
    return onnx_bind(n, 0, n->in[0]);
}
