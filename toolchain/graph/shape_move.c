// SPDX-License-Identifier: Apache-2.0
//
// Shape rules of the ops that move elements: RESHAPE, TRANSPOSE, SLICE, CONCAT, EXPAND, PAD,
// GATHER, RESIZE, RANGE.

#include "toolchain/graph/shape.h"

#include <math.h>
#include <string.h>

// The attribute SHAPE as dimensions; none may be negative.
static npu_status shape_attr(const struct graph_node *n, int *rank, int64_t dims[GRAPH_MAX_RANK]) {
    const struct graph_attr *a = graph_attr(n, GRAPH_ATTR_SHAPE);
    if (!a) return npu_fail(BAD_INPUT, "attribute shape is missing");
    if (a->n > GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "attribute shape has %d dimensions, at most %d", a->n,
                        GRAPH_MAX_RANK);
    NPU_TRY(shape_ints(n, GRAPH_ATTR_SHAPE, a->n, 0, (int64_t)1 << 43, true));
    *rank = a->n;
    if (a->n) memcpy(dims, a->ints, (size_t)a->n * sizeof *dims);
    return NULL;
}

npu_status shape_reshape(struct graph *g, struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    int rank = 0;
    int64_t dims[GRAPH_MAX_RANK] = {0}, elems = 1, has = graph_value_elems(x);
    NPU_TRY(shape_attr(n, &rank, dims));
    for (int d = 0; d < rank; d++) {
        if (dims[d] && elems > ((int64_t)1 << 43) / dims[d]) elems = -1;
        if (elems < 0) break;
        elems *= dims[d];
    }
    if (elems != has)
        return npu_fail(BAD_INPUT, "'%s' %s has %lld elements, which do not fill %s", x->name,
                        shape_text(g->arena, x->rank, x->dims), (long long)has,
                        shape_text(g->arena, rank, dims));
    shape_set(n->outputs[0], x->dtype, rank, dims);
    return NULL;
}

npu_status shape_transpose(struct graph *g, struct graph_node *n) {
    (void)g;
    const struct graph_value *x = n->inputs[0];
    NPU_TRY(shape_ints(n, GRAPH_ATTR_PERM, x->rank, 0, x->rank - 1, true));
    unsigned seen = 0;
    int64_t dims[GRAPH_MAX_RANK] = {0};
    for (int d = 0; d < x->rank; d++) {
        int64_t from = graph_ints_at(n, GRAPH_ATTR_PERM, d, 0);
        seen |= 1u << from;
        dims[d] = x->dims[from];
    }
    if (seen + 1 != 1u << x->rank)
        return npu_fail(BAD_INPUT, "attribute perm is no permutation of %d dimensions", x->rank);
    shape_set(n->outputs[0], x->dtype, x->rank, dims);
    return NULL;
}

npu_status shape_slice(struct graph *g, struct graph_node *n) {
    (void)g;
    const struct graph_value *x = n->inputs[0];
    NPU_TRY(shape_ints(n, GRAPH_ATTR_STARTS, x->rank, 0, INT64_MAX, true));
    NPU_TRY(shape_ints(n, GRAPH_ATTR_SIZES, x->rank, 0, INT64_MAX, true));
    NPU_TRY(shape_ints(n, GRAPH_ATTR_STEPS, x->rank, -((int64_t)1 << 43), (int64_t)1 << 43, true));
    int64_t dims[GRAPH_MAX_RANK] = {0};
    for (int d = 0; d < x->rank; d++) {
        int64_t start = graph_ints_at(n, GRAPH_ATTR_STARTS, d, 0);
        int64_t size = graph_ints_at(n, GRAPH_ATTR_SIZES, d, 0);
        int64_t step = graph_ints_at(n, GRAPH_ATTR_STEPS, d, 1), limit = x->dims[d];
        bool ok = step != 0 && size <= limit && (size == 0 || start < limit);
        if (ok && size > 1) {
            // The last index taken: no overflow, size <= limit < 2^43 and a step beyond the limit
            // fails first.
            ok = step < limit && step > -limit;
            if (ok) ok = start + (size - 1) * step >= 0 && start + (size - 1) * step < limit;
        }
        if (!ok)
            return npu_fail(BAD_INPUT,
                            "dimension %d of '%s' has size %lld: %lld elements from %lld by %lld "
                            "leave it",
                            d, x->name, (long long)limit, (long long)size, (long long)start,
                            (long long)step);
        dims[d] = size;
    }
    shape_set(n->outputs[0], x->dtype, x->rank, dims);
    return NULL;
}

npu_status shape_concat(struct graph *g, struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    int axis;
    NPU_TRY(shape_axis(n, x->rank, &axis));
    int64_t dims[GRAPH_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    for (int k = 1; k < n->nown; k++) {
        const struct graph_value *v = n->inputs[k];
        bool fits = v->rank == x->rank && v->dtype == x->dtype;
        for (int d = 0; fits && d < x->rank; d++)
            fits = d == axis || v->dims[d] == x->dims[d];
        if (!fits)
            return npu_fail(BAD_INPUT,
                            "input %d ('%s', %s%s) does not join '%s' (%s%s) along axis %d", k,
                            v->name, isa_dtype_name(v->dtype),
                            shape_text(g->arena, v->rank, v->dims), x->name,
                            isa_dtype_name(x->dtype), shape_text(g->arena, x->rank, x->dims), axis);
        dims[axis] += v->dims[axis];
    }
    shape_set(n->outputs[0], x->dtype, x->rank, dims);
    return NULL;
}

npu_status shape_expand(struct graph *g, struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    int rank = 0;
    int64_t dims[GRAPH_MAX_RANK] = {0}, out[GRAPH_MAX_RANK] = {0};
    NPU_TRY(shape_attr(n, &rank, dims));
    int r = rank;
    memcpy(out, dims, sizeof out);
    if (!shape_broadcast(&r, out, x) || r != rank ||
        memcmp(out, dims, (size_t)r * sizeof *out) != 0)
        return npu_fail(BAD_INPUT, "'%s' %s does not expand to %s", x->name,
                        shape_text(g->arena, x->rank, x->dims), shape_text(g->arena, rank, dims));
    shape_set(n->outputs[0], x->dtype, rank, dims);
    return NULL;
}

npu_status shape_pad(struct graph *g, struct graph_node *n) {
    (void)g;
    const struct graph_value *x = n->inputs[0];
    const int64_t most = (int64_t)1 << 43;
    int mode;
    NPU_TRY(shape_word(n, GRAPH_ATTR_MODE, "constant|reflect|edge", "constant", &mode));
    NPU_TRY(shape_ints(n, GRAPH_ATTR_PADS_BEFORE, x->rank, -most, most, true));
    NPU_TRY(shape_ints(n, GRAPH_ATTR_PADS_AFTER, x->rank, -most, most, true));
    int64_t dims[GRAPH_MAX_RANK] = {0};
    for (int d = 0; d < x->rank; d++) {
        int64_t before = graph_ints_at(n, GRAPH_ATTR_PADS_BEFORE, d, 0);
        int64_t after = graph_ints_at(n, GRAPH_ATTR_PADS_AFTER, d, 0);
        dims[d] = x->dims[d] + before + after;
        if (dims[d] < 0)
            return npu_fail(BAD_INPUT,
                            "dimension %d of '%s' has size %lld, cannot crop by %lld and %lld", d,
                            x->name, (long long)x->dims[d], (long long)-before, (long long)-after);
        if (mode && (before > 0 || after > 0) && !x->dims[d])
            return npu_fail(BAD_INPUT, "dimension %d of '%s' is empty, nothing to repeat in it", d,
                            x->name);
        if (mode == 1 && (before >= x->dims[d] || after >= x->dims[d]) && (before > 0 || after > 0))
            return npu_fail(BAD_INPUT,
                            "reflect padding of %lld and %lld in dimension %d of '%s', which has "
                            "size %lld: each must be smaller",
                            (long long)before, (long long)after, d, x->name, (long long)x->dims[d]);
    }
    shape_set(n->outputs[0], x->dtype, x->rank, dims);
    return NULL;
}

npu_status shape_gather(struct graph *g, struct graph_node *n) {
    (void)g;
    const struct graph_value *x = n->inputs[0], *index = n->inputs[1];
    int axis, rank = 0;
    NPU_TRY(shape_axis(n, x->rank, &axis));
    if (!isa_dtype_is_int(index->dtype) || index->dtype == ISA_BOOL)
        return npu_fail(BAD_INPUT, "the indices '%s' are %s, expected integers", index->name,
                        isa_dtype_name(index->dtype));
    if (x->rank - 1 + index->rank > GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "the result has rank %d, at most %d",
                        x->rank - 1 + index->rank, GRAPH_MAX_RANK);
    int64_t dims[GRAPH_MAX_RANK] = {0};
    for (int d = 0; d < axis; d++)
        dims[rank++] = x->dims[d];
    for (int d = 0; d < index->rank; d++)
        dims[rank++] = index->dims[d];
    for (int d = axis + 1; d < x->rank; d++)
        dims[rank++] = x->dims[d];
    shape_set(n->outputs[0], x->dtype, rank, dims);
    return NULL;
}

// Only the last two dimensions change; scales are what the coordinates use (absent: the ratio of
// the sizes).
npu_status shape_resize(struct graph *g, struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    int which, rank = 0;
    int64_t dims[GRAPH_MAX_RANK] = {0};
    NPU_TRY(shape_word(n, GRAPH_ATTR_MODE, "nearest|linear", NULL, &which));
    NPU_TRY(shape_word(n, GRAPH_ATTR_COORD,
                       "half_pixel|asymmetric|align_corners|pytorch_half_pixel", "half_pixel",
                       &which));
    NPU_TRY(shape_word(n, GRAPH_ATTR_NEAREST, "floor|ceil|round_prefer_floor|round_prefer_ceil",
                       "round_prefer_floor", &which));
    NPU_TRY(shape_attr(n, &rank, dims));
    NPU_TRY(shape_rank(n, 0, 2, GRAPH_MAX_RANK));
    bool fits = rank == x->rank;
    for (int d = 0; fits && d < rank; d++)
        fits = d >= rank - 2 ? dims[d] == 0 || x->dims[d] > 0 : dims[d] == x->dims[d];
    if (!fits)
        return npu_fail(UNSUPPORTED,
                        "'%s' %s cannot be resized to %s: only the last two dimensions change",
                        x->name, shape_text(g->arena, x->rank, x->dims),
                        shape_text(g->arena, rank, dims));
    const struct graph_attr *scales = graph_attr(n, GRAPH_ATTR_SCALES);
    if (scales && scales->n != 2)
        return npu_fail(BAD_INPUT, "attribute scales has %d items, expected 2 (down, across)",
                        scales->n);
    for (int k = 0; scales && k < 2; k++)
        if (!(scales->floats[k] > 0) || isinf(scales->floats[k]))
            return npu_fail(BAD_INPUT, "attribute scales[%d] is %g, expected a positive number", k,
                            scales->floats[k]);
    shape_set(n->outputs[0], x->dtype, rank, dims);
    return NULL;
}

// The number of steps is known only from constants: max(ceil((limit - start) / delta), 0).
npu_status shape_range(struct graph *g, struct graph_node *n) {
    (void)g;
    double v[3];
    for (int k = 0; k < 3; k++) {
        const struct graph_value *c = n->inputs[k];
        if (!c->data || graph_value_elems(c) != 1 || c->dtype != n->inputs[0]->dtype)
            return npu_fail(UNSUPPORTED,
                            "input %d ('%s') of a range must be a constant scalar of one type", k,
                            c->name);
        float f;
        int32_t i;
        int64_t l;
        if (c->dtype == ISA_F32) {
            memcpy(&f, c->data, sizeof f);
            v[k] = (double)f;
        } else if (c->dtype == ISA_I32) {
            memcpy(&i, c->data, sizeof i);
            v[k] = i;
        } else if (c->dtype == ISA_I64) {
            memcpy(&l, c->data, sizeof l);
            v[k] = (double)l;
        } else {
            return npu_fail(UNSUPPORTED, "a range of %s; i32, i64 and f32 are possible",
                            isa_dtype_name(c->dtype));
        }
    }
    double count = ceil((v[1] - v[0]) / v[2]);
    if (isnan(count) || isinf(v[2]))
        return npu_fail(BAD_INPUT, "a range from %g to %g by %g has no length", v[0], v[1], v[2]);
    if (count > 1 << 24)
        return npu_fail(UNSUPPORTED, "a range of %g elements, at most 2^24", count);
    int64_t dims[1] = {count > 0 ? (int64_t)count : 0};
    shape_set(n->outputs[0], n->inputs[0]->dtype, 1, dims);
    return NULL;
}
