// SPDX-License-Identifier: Apache-2.0
//
// Ops that choose elements by index: common/indexing.h does the work.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/common/indexing.h"
#include "toolchain/frontend/onnx/import.h"

// Known indices at equal distances are a slice: *first and *step, false when they are not.
static bool is_slice(const struct graph_value *index, int64_t size, int64_t *first, int64_t *step) {
    int64_t count = graph_value_elems(index), last = 0;
    *step = 1;
    if (!index->data || !isa_dtype_is_int(index->dtype) || count < 1) return false;
    for (int64_t k = 0; k < count; k++) {
        int64_t i = num_load_i64(index->dtype, index->data, k);
        if (i < 0) i += size;
        if (k == 0) *first = i;
        if (k == 1) *step = i - last;
        if (*step == 0 || (k > 1 && i - last != *step)) return false;
        last = i;
    }
    return true;
}

npu_status import_gather(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    struct graph_value *x = n->in[0], *index = n->in[1], *y;
    int axis, rank = 0;
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", 0), x->rank, &axis));
    if (index->data && isa_dtype_is_int(index->dtype))
        NPU_TRY(build_check_index(index, x->dims[axis]));
    int64_t starts[GRAPH_MAX_RANK] = {0}, sizes[GRAPH_MAX_RANK], steps[GRAPH_MAX_RANK],
            dims[GRAPH_MAX_RANK];
    if (x->data || x->rank + index->rank - 1 > GRAPH_MAX_RANK ||
        !is_slice(index, x->dims[axis], &starts[axis], &steps[axis])) {
        NPU_TRY(onnx_gather(n, x, index, axis, &y));
        return onnx_bind(n, 0, y);
    }
    for (int d = 0; d < x->rank; d++) {
        sizes[d] = d == axis ? graph_value_elems(index) : x->dims[d];
        if (d != axis) steps[d] = 1;
        if (d != axis) dims[rank++] = x->dims[d];
        for (int k = 0; d == axis && k < index->rank; k++)
            dims[rank++] = index->dims[k];
    }
    NPU_TRY(onnx_slice(n, x, starts, sizes, steps, &y));
    NPU_TRY(onnx_reshape(n, y, rank, dims, &y));
    return onnx_bind(n, 0, y);
}

// Indices of elements that are one list along axis, repeated over all the rest of x: what choosing
// or replacing whole slices is written as. *list: [count]; NULL when they are not.
static npu_status one_list(struct onnx_node *n, const struct graph_value *x,
                           const struct graph_value *index, int axis, struct graph_value **list) {
    const struct graph_node *expand = index->producer;
    *list = NULL;
    if (!expand || expand->op != GRAPH_EXPAND || index->rank != x->rank) return NULL;
    struct graph_value *v = expand->inputs[0];
    int missing = index->rank - v->rank;
    for (int d = 0; d < x->rank; d++) {
        int64_t own = d < missing ? 1 : v->dims[d - missing];
        if (d == axis ? own != index->dims[d] : own != 1 || index->dims[d] != x->dims[d])
            return NULL;
    }
    return onnx_reshape(n, v, 1, &index->dims[axis], list);
}

npu_status import_gather_elements(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    struct graph_value *x = n->in[0], *y, *list;
    int axis;
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", 0), x->rank, &axis));
    NPU_TRY(one_list(n, x, n->in[1], axis, &list));
    if (list) {
        NPU_TRY(onnx_gather(n, x, list, axis, &y));
        return onnx_bind(n, 0, y);
    }
    NPU_TRY(index_elements(&n->b, x, n->in[1], axis, &y));
    return onnx_bind(n, 0, y);
}

// The first `count` dimensions of x and index are the same: their own numbers come before each row
// of the index.
static npu_status with_batches(struct onnx_node *n, const struct graph_value *x, int count,
                               struct graph_value *index, struct graph_value **out) {
    struct graph_value *parts[GRAPH_MAX_RANK + 1], *numbers;
    int64_t dims[GRAPH_MAX_RANK], own[GRAPH_MAX_RANK];
    for (int d = 0; d < index->rank; d++)
        dims[d] = d == index->rank - 1 ? 1 : index->dims[d];
    for (int k = 0; k < count; k++) {
        if (x->dims[k] != index->dims[k])
            return npu_fail(BAD_INPUT, "dimension %d of '%s' is %lld, of the indices '%s' %lld", k,
                            x->name, (long long)x->dims[k], index->name, (long long)index->dims[k]);
        int64_t *range = ARENA_ARRAY(n->m->arena, int64_t, (size_t)x->dims[k] + 1);
        for (int64_t i = 0; i < x->dims[k]; i++)
            range[i] = i;
        for (int d = 0; d < index->rank; d++)
            own[d] = d == k ? x->dims[k] : 1;
        numbers = onnx_new_ints(n, index->rank, own, range);
        NPU_TRY(onnx_expand(n, numbers, index->rank, dims, &parts[k]));
    }
    NPU_TRY(onnx_cast(n, index, ISA_I64, &parts[count]));
    return onnx_concat(n, count + 1, parts, index->rank - 1, out);
}

npu_status import_gather_nd(struct onnx_node *n) {
    struct graph_value *x, *index, *y;
    NPU_TRY(onnx_need(n, 2, 2));
    x = n->in[0];
    index = n->in[1];
    int64_t batches = onnx_int(n, "batch_dims", 0);
    if (batches < 0 || batches >= x->rank || batches >= index->rank)
        if (batches)
            return npu_fail(BAD_INPUT, "batch_dims %lld of '%s' of rank %d and '%s' of rank %d",
                            (long long)batches, x->name, x->rank, index->name, index->rank);
    if (batches) NPU_TRY(with_batches(n, x, (int)batches, index, &index));
    NPU_TRY(index_rows(&n->b, x, index, &y));
    return onnx_bind(n, 0, y);
}

// Slices of x along axis, replaced by those of updates at the list of indices.
static npu_status scatter_slices(struct onnx_node *n, struct graph_value *x,
                                 struct graph_value *updates, int axis, struct graph_value *list,
                                 struct graph_value **out) {
    struct scatter s = {
        x, updates, 1, x->dims[axis], 1, list->dims[0], onnx_string(n, "reduction", "none")};
    for (int d = 0; d < x->rank; d++)
        if (d != axis) *(d < axis ? &s.outer : &s.inner) *= x->dims[d];
    NPU_TRY(build_check_index(list, s.rows));
    NPU_TRY(index_from_end(&n->b, list, s.rows, &list));
    return scatter_rows(&n->b, &s, list, out);
}

// Rows of a tensor that was transposed for the purpose, as exporters write the replacing of slices
// along a later dimension: done there, and transposed behind it, where the way back cancels it.
static npu_status scatter_transposed(struct onnx_node *n, const struct graph_node *transpose,
                                     struct graph_value **out) {
    const struct graph_value *index = n->in[1];
    struct graph_value *x = transpose->inputs[0], *updates = n->in[2], *list;
    int64_t count = graph_value_elems(index), perm[GRAPH_MAX_RANK], back[GRAPH_MAX_RANK],
            dims[GRAPH_MAX_RANK];
    for (int d = 0; d < x->rank; d++) {
        perm[d] = graph_ints_at(transpose, GRAPH_ATTR_PERM, d, 0);
        back[perm[d]] = d;
        dims[d] = d ? x->dims[perm[d]] : count;
    }
    NPU_TRY(onnx_reshape(n, updates, x->rank, dims, &updates));
    NPU_TRY(onnx_transpose(n, updates, back, &updates));
    NPU_TRY(onnx_reshape(n, n->in[1], 1, &count, &list));
    NPU_TRY(scatter_slices(n, x, updates, (int)perm[0], list, out));
    return onnx_transpose(n, *out, perm, out);
}

npu_status import_scatter_nd(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 3, 3));
    const struct graph_value *x = n->in[0], *index = n->in[1];
    struct graph_value *rows, *y;
    struct scatter s = {n->in[0], n->in[2], 1, 1, 1, 0, onnx_string(n, "reduction", "none")};
    int64_t depth = index->rank ? index->dims[index->rank - 1] : 0;
    for (int d = 0; d < x->rank; d++)
        *(d < depth ? &s.rows : &s.inner) *= x->dims[d];
    s.count = depth ? graph_value_elems(index) / depth : 0;
    const struct graph_node *from = x->producer;
    if (depth == 1 && from && from->op == GRAPH_TRANSPOSE && x->rank > 1 &&
        isa_dtype_is_int(index->dtype) && graph_value_elems(n->in[2]) == s.count * s.inner) {
        NPU_TRY(scatter_transposed(n, from, &y));
        return onnx_bind(n, 0, y);
    }
    NPU_TRY(index_row_numbers(&n->b, x, n->in[1], &rows));
    NPU_TRY(scatter_rows(&n->b, &s, rows, &y));
    return onnx_bind(n, 0, y);
}

npu_status import_scatter_elements(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 3, 3));
    struct graph_value *index, *list, *y;
    int axis;
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", 0), n->in[0]->rank, &axis));
    NPU_TRY(one_list(n, n->in[0], n->in[1], axis, &list));
    if (list) {
        NPU_TRY(scatter_slices(n, n->in[0], n->in[2], axis, list, &y));
        return onnx_bind(n, 0, y);
    }
    NPU_TRY(scatter_positions(&n->b, n->in[0], n->in[1], axis, &index));
    struct scatter s = {n->in[0],
                        n->in[2],
                        1,
                        graph_value_elems(n->in[0]),
                        1,
                        graph_value_elems(n->in[1]),
                        onnx_string(n, "reduction", "none")};
    NPU_TRY(scatter_rows(&n->b, &s, index, &y));
    return onnx_bind(n, 0, y);
}

// ---- masks and ranges ------------------------------------------------------------------------

// indices, depth, values [off, on]
npu_status import_onehot(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 3, 3));
    struct graph_value *index = n->in[0], *values = n->in[2], *on, *off, *y;
    NPU_TRY(onnx_need_const(n, 1));
    if (graph_value_elems(n->in[1]) != 1 || values->rank != 1 || values->dims[0] != 2)
        return npu_fail(BAD_INPUT, "depth must be one number and values two");
    int64_t depth = isa_dtype_is_int(n->in[1]->dtype)
                        ? num_load_i64(n->in[1]->dtype, n->in[1]->data, 0)
                        : num_f32_to_i64(num_load_f32(n->in[1]->dtype, n->in[1]->data, 0));
    if (depth < 1 || depth > 1 << 26) return npu_fail(BAD_INPUT, "depth %lld", (long long)depth);
    int rank = index->rank + 1, axis;
    if (rank > GRAPH_MAX_RANK) return npu_fail(UNSUPPORTED, "the result has rank %d", rank);
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", -1), rank, &axis));
    NPU_TRY(index_one_hot(&n->b, index, depth, axis, &y));
    NPU_TRY(onnx_slice(n, values, (int64_t[]){0}, (int64_t[]){1}, (int64_t[]){1}, &off));
    NPU_TRY(onnx_slice(n, values, (int64_t[]){1}, (int64_t[]){1}, (int64_t[]){1}, &on));
    NPU_TRY(onnx_map(n, values->dtype, "sel in1 in2", NULL, 3, (struct graph_value *[]){y, on, off},
                     &y));
    return onnx_bind(n, 0, y);
}

// Elements above (upper = 0) or below (upper = 1) the k-th diagonal become 0.
npu_status import_trilu(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 2));
    struct graph_value *x = n->in[0], *y;
    int64_t k = 0;
    int count = 1;
    if (onnx_given(n, 1)) NPU_TRY(onnx_const_ints(n, 1, &k, 1, &count));
    if (x->rank < 2 || count != 1)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 2 or more", x->name, x->rank);
    bool upper = onnx_int(n, "upper", 1) != 0;
    NPU_TRY(index_triangle(&n->b, x, k, upper, &y));
    return onnx_bind(n, 0, y);
}

// The first lens[b] elements along time_axis are reversed for each b of batch_axis.
npu_status import_reverse_sequence(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    struct graph_value *x = n->in[0], *y;
    int time, batch, count;
    NPU_TRY(onnx_axis(n, onnx_int(n, "time_axis", 0), x->rank, &time));
    NPU_TRY(onnx_axis(n, onnx_int(n, "batch_axis", 1), x->rank, &batch));
    if (time > 1 || batch > 1 || time == batch || x->rank < 2)
        return npu_fail(BAD_INPUT, "time_axis and batch_axis must be 0 and 1");
    int64_t rows = x->dims[0] * x->dims[1], steps = x->dims[time],
            width = rows ? graph_value_elems(x) / rows : 0;
    if (rows > 1 << 26) return npu_fail(UNSUPPORTED, "%lld rows", (long long)rows);
    int64_t *lens = ARENA_ARRAY(n->m->arena, int64_t, (size_t)x->dims[batch] + 1),
            *from = ARENA_ARRAY(n->m->arena, int64_t, (size_t)rows + 1);
    NPU_TRY(onnx_const_ints(n, 1, lens, (int)x->dims[batch], &count));
    if (count != x->dims[batch])
        return npu_fail(BAD_INPUT, "%d lengths, expected %lld", count, (long long)x->dims[batch]);
    for (int64_t b = 0; b < count; b++) {
        if (lens[b] < 0 || lens[b] > steps)
            return npu_fail(BAD_INPUT, "length %lld of %lld", (long long)lens[b], (long long)steps);
        for (int64_t t = 0; t < steps; t++) {
            int64_t source = t < lens[b] ? lens[b] - 1 - t : t;
            from[time ? b * steps + t : t * count + b] =
                time ? b * steps + source : source * count + b;
        }
    }
    struct graph_value *index = graph_add_const(n->m->g, n->label, ISA_I64, 1, &rows, from);
    NPU_TRY(onnx_reshape(n, x, 2, (int64_t[]){rows, width}, &y));
    NPU_TRY(onnx_gather(n, y, index, 0, &y));
    NPU_TRY(onnx_reshape(n, y, x->rank, x->dims, &y));
    return onnx_bind(n, 0, y);
}
