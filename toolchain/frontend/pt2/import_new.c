// SPDX-License-Identifier: Apache-2.0
//
// New tensors, types, copies, and numbers: sizes and what Python computes from them are known when
// the model is imported.

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/npy.h"
#include "toolchain/frontend/pt2/import.h"

enum { ELEMS_MAX = 1 << 26 };

// ---- new tensors -----------------------------------------------------------------------------

// start + k * step, in the declared type.
static npu_status ramp(struct pt2_node *n, double start, double step, double count) {
    enum isa_dtype type = pt2_out_dtype(n, 0);
    if (n->failed) return NULL;
    if (!(count >= 0) || count > ELEMS_MAX)
        return npu_fail(UNSUPPORTED, "%g elements, at most %d", count, ELEMS_MAX);
    int64_t elems = (int64_t)count;
    uint8_t *data = arena_alloc(n->m->arena, (size_t)elems * 8 + 1);
    for (int64_t k = 0; k < elems; k++) {
        double v = start + (double)k * step;
        if (isa_dtype_is_int(type))
            num_store_i64(type, data, k, (int64_t)v);
        else
            num_store_f32(type, data, k, (float)v);
    }
    return pt2_bind(n, 0, graph_add_const(n->m->g, n->b.label, type, 1, &elems, data));
}

npu_status aten_arange(struct pt2_node *n) {
    bool started = strstr(n->row->args, "start") != NULL, stepped = strstr(n->row->args, "step");
    double start = started ? pt2_float(n, "start") : 0, step = stepped ? pt2_float(n, "step") : 1;
    double end = pt2_float(n, "end");
    if (n->failed) return NULL;
    if (step == 0 || !isfinite(step) || !isfinite(start) || !isfinite(end))
        return npu_fail(BAD_INPUT, "arange from %g to %g by %g", start, end, step);
    double count = ceil((end - start) / step);
    return ramp(n, start, step, count > 0 ? count : 0);
}

npu_status aten_linspace(struct pt2_node *n) {
    double start = pt2_float(n, "start"), end = pt2_float(n, "end");
    int64_t steps = pt2_int(n, "steps");
    return ramp(n, start, steps > 1 ? (end - start) / (double)(steps - 1) : 0, (double)steps);
}

// A scalar everywhere.
static npu_status filled_with(struct pt2_node *n, struct graph_value *v, int rank,
                              const int64_t *dims) {
    enum isa_dtype type = pt2_out_dtype(n, 0);
    size_t elems;
    if (n->failed) return NULL;
    for (int d = 0; d < rank; d++)
        if (dims[d] < 0) return npu_fail(BAD_INPUT, "size[%d] is %" PRId64, d, dims[d]);
    if (!tensor_count(dims, rank, 8, &elems)) return npu_fail(BAD_INPUT, "the sizes are too large");
    if (type != ISA_DTYPE_NONE) NPU_TRY(pt2_cast(n, v, type, &v));
    NPU_TRY(build_expand(&n->b, v, rank, dims, &v));
    return pt2_bind(n, 0, v);
}

npu_status aten_scalar_tensor(struct pt2_node *n) {
    return filled_with(n, pt2_need(n, "s"), 0, NULL);
}

npu_status aten_full(struct pt2_node *n) {
    int64_t dims[GRAPH_MAX_RANK];
    int rank = pt2_ints(n, "size", dims, GRAPH_MAX_RANK);
    return filled_with(n, pt2_need(n, "fill_value"), rank, dims);
}

npu_status aten_full_like(struct pt2_node *n) {
    const struct graph_value *x = pt2_need(n, "self");
    return filled_with(n, pt2_need(n, "fill_value"), x->rank, x->dims);
}

// Ones, or zeros, which also stand for elements that are left open.
static struct graph_value *one_or_zero(struct pt2_node *n) {
    return build_new_scalar(&n->b, ISA_F32, strstr(n->target, "ones") != NULL);
}

npu_status aten_filled(struct pt2_node *n) {
    int64_t dims[GRAPH_MAX_RANK];
    int rank = pt2_ints(n, "size", dims, GRAPH_MAX_RANK);
    return filled_with(n, one_or_zero(n), rank, dims);
}

npu_status aten_filled_like(struct pt2_node *n) {
    const struct graph_value *x = pt2_need(n, "self");
    return filled_with(n, one_or_zero(n), x->rank, x->dims);
}

npu_status aten_eye(struct pt2_node *n) {
    int64_t rows = pt2_int(n, "n"), cols = strstr(n->row->args, " m") ? pt2_int(n, "m") : rows;
    enum isa_dtype type = pt2_out_dtype(n, 0);
    if (n->failed) return NULL;
    if (rows < 0 || cols < 0 || (rows && cols > ELEMS_MAX / rows))
        return npu_fail(UNSUPPORTED, "a matrix of %" PRId64 " x %" PRId64, rows, cols);
    uint8_t *data = arena_alloc(n->m->arena, (size_t)(rows * cols) * 8 + 1);
    for (int64_t k = 0; k < rows && k < cols; k++) {
        if (isa_dtype_is_int(type))
            num_store_i64(type, data, k * cols + k, 1);
        else
            num_store_f32(type, data, k * cols + k, 1.0f);
    }
    return pt2_bind(n, 0,
                    graph_add_const(n->m->g, n->b.label, type, 2, (int64_t[]){rows, cols}, data));
}

// ---- copies ----------------------------------------------------------------------------------

// A value of its own: writes into the copy do not reach the original.
npu_status aten_clone(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self");
    return pt2_bind(n, 0, x);
}

// The source, broadcast and converted to what it replaces.
static npu_status copied(struct pt2_node *n, struct graph_value *source) {
    const struct graph_value *x = pt2_need(n, "self");
    if (n->failed) return NULL;
    NPU_TRY(pt2_cast(n, source, x->dtype, &source));
    NPU_TRY(build_expand(&n->b, source, x->rank, x->dims, &source));
    return pt2_bind(n, 0, source);
}

npu_status aten_copy(struct pt2_node *n) {
    return copied(n, pt2_need(n, "src"));
}

npu_status aten_fill(struct pt2_node *n) {
    return copied(n, pt2_need(n, "value"));
}

npu_status aten_zero(struct pt2_node *n) {
    return copied(n, build_new_scalar(&n->b, ISA_F32, 0));
}

npu_status aten_native_dropout(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "input"), *mask = build_new_scalar(&n->b, ISA_BOOL, 1);
    if (pt2_given(n, "train") && pt2_bool(n, "train"))
        return npu_fail(UNSUPPORTED, "dropout in training mode: export the model after eval()");
    if (n->failed) return NULL;
    NPU_TRY(pt2_bind(n, 0, x));
    if (!pt2_used(n, 1)) return NULL;
    NPU_TRY(build_expand(&n->b, mask, x->rank, x->dims, &mask));
    return pt2_bind(n, 1, mask);
}

// ---- types -----------------------------------------------------------------------------------

static const json_t *argument(const struct pt2_node *n, const char *name) {
    for (size_t k = 0; k < json_array_size(n->inputs); k++) {
        const json_t *input = json_array_get(n->inputs, k);
        const char *own = json_string_value(json_object_get(input, "name"));
        if (own && !strcmp(own, name)) return json_object_get(input, "arg");
    }
    return NULL;
}

// How the file describes the first argument and the result.
static bool described(struct pt2_node *n, const char *name, struct tensor_meta *x,
                      struct tensor_meta *y) {
    const json_t *arg = argument(n, name);
    const char *own = arg ? schema_name(arg) : NULL;
    const char *names[2] = {own ? own : "", n->nout ? n->out[0] : ""};
    for (int k = 0; k < 2; k++) {
        const json_t *meta = json_object_get(n->s->tensor_values, names[k]);
        npu_status odd = meta ? schema_meta(meta, &n->m->symbols, "", k ? y : x) : NULL;
        npu_status_free(odd);
        if (!meta || odd) return false;
    }
    return true;
}

// Both lie in memory alike, as far as the file says.
static bool same_strides(const struct tensor_meta *x, const struct tensor_meta *y) {
    for (int d = 0; d < x->rank && d < y->rank; d++)
        if (x->sizes[d] != 1 && x->strides[d] != y->strides[d]) return false;
    return x->rank == y->rank;
}

// A conversion that changes nothing is the tensor itself, unless a copy is asked for. Types of the
// file count: f64 is f32 here, but no view of it.
static npu_status converted(struct pt2_node *n, const char *name, enum isa_dtype type) {
    struct graph_value *x = pt2_need(n, name), *y;
    struct pt2_tensor *t = pt2_tensor(n, name);
    struct tensor_meta from, to;
    if (n->failed) return NULL;
    const json_t *copy = argument(n, "copy"), *format = argument(n, "memory_format");
    bool copies =
        !strncmp(n->target, "_to_copy", 8) || json_is_true(json_object_get(copy, "as_bool"));
    if (described(n, name, &from, &to))
        copies |= from.dtype != to.dtype || !same_strides(&from, &to);
    NPU_TRY(pt2_cast(n, x, type, &y));
    if (!t || type != x->dtype || copies) return pt2_bind(n, 0, y);
    if (format && !json_object_get(format, "as_none")) return pt2_bind_beside(n, 0, t, y);
    return pt2_bind_same(n, 0, t);
}

// The tensor itself where it has that order in memory already.
npu_status aten_contiguous(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self");
    struct pt2_tensor *t = pt2_tensor(n, "self");
    struct tensor_meta from, to;
    if (n->failed || !t) return n->failed ? NULL : pt2_bind(n, 0, x);
    if (!described(n, "self", &from, &to)) return pt2_bind_beside(n, 0, t, x);
    return same_strides(&from, &to) ? pt2_bind_same(n, 0, t) : pt2_bind(n, 0, x);
}

npu_status aten_to(struct pt2_node *n) {
    const char *name = !strncmp(n->target, "prims.", 6) ? "a" : "self";
    return converted(n, name, pt2_dtype(n, "dtype", pt2_need(n, name)->dtype));
}

npu_status aten_type_as(struct pt2_node *n) {
    return converted(n, "self", pt2_need(n, "other")->dtype);
}

// ---- numbers ---------------------------------------------------------------------------------

npu_status aten_sym_size(struct pt2_node *n) {
    const struct graph_value *x = pt2_need(n, "self");
    int axis = pt2_axis(n, "dim", x->rank);
    if (!x->rank && !n->failed) return npu_fail(BAD_INPUT, "a size of a scalar");
    return pt2_bind_number(n, (double)x->dims[axis], true);
}

npu_status aten_sym_numel(struct pt2_node *n) {
    return pt2_bind_number(n, (double)graph_value_elems(pt2_need(n, "self")), true);
}

// The element of a constant.
npu_status aten_item(struct pt2_node *n) {
    const struct graph_value *x = pt2_need(n, "self");
    if (n->failed) return NULL;
    NPU_TRY(pt2_need_const(x, "self"));
    if (graph_value_elems(x) != 1) return npu_fail(BAD_INPUT, "'%s' is no scalar", x->name);
    if (isa_dtype_is_int(x->dtype))
        return pt2_bind_number(n, (double)num_load_i64(x->dtype, x->data, 0), true);
    return pt2_bind_number(n, (double)num_load_f32(x->dtype, x->data, 0), false);
}

static double operate(const char *op, double a, double b) {
    if (!strcmp(op, "add")) return a + b;
    if (!strcmp(op, "sub")) return a - b;
    if (!strcmp(op, "mul")) return a * b;
    if (!strcmp(op, "floordiv")) return floor(a / b);
    if (!strcmp(op, "truediv")) return a / b;
    if (!strcmp(op, "mod")) return a - b * floor(a / b);
    if (!strcmp(op, "pow")) return pow(a, b);
    if (!strcmp(op, "neg")) return -a;
    if (!strcmp(op, "eq")) return a == b;
    if (!strcmp(op, "ne")) return a != b;
    if (!strcmp(op, "lt")) return a < b;
    if (!strcmp(op, "le")) return a <= b;
    if (!strcmp(op, "gt")) return a > b;
    if (!strcmp(op, "ge")) return a >= b;
    if (!strcmp(op, "and_")) return a != 0 && b != 0;
    if (!strcmp(op, "or_")) return a != 0 || b != 0;
    if (!strcmp(op, "sym_not")) return a == 0;
    if (!strcmp(op, "sym_max")) return a > b ? a : b;
    if (!strcmp(op, "sym_min")) return a < b ? a : b;
    if (!strcmp(op, "floor")) return floor(a);
    if (!strcmp(op, "ceil")) return ceil(a);
    if (!strcmp(op, "sqrt")) return sqrt(a);
    if (!strcmp(op, "sym_float")) return a;
    return trunc(a); // trunc, sym_int
}

npu_status aten_number(struct pt2_node *n) {
    const char *op = strrchr(n->target, '.') + 1;
    bool x = *n->row->args == 'x';
    double a = pt2_float(n, x ? "x" : "a"), b = strchr(n->row->args, ' ') ? pt2_float(n, "b") : 0;
    if (n->failed) return NULL;
    double v = operate(op, a, b);
    if (!isfinite(v) || fabs(v) > 9e15) return npu_fail(BAD_INPUT, "%s of %g and %g", op, a, b);
    bool real = !strcmp(op, "truediv") || !strcmp(op, "sqrt") || !strcmp(op, "sym_float");
    return pt2_bind_number(n, v, !real && v == floor(v));
}

npu_status aten_assertion(struct pt2_node *n) {
    (void)n; // what it asserts was true for the export, and sizes are checked against it
    return NULL;
}
