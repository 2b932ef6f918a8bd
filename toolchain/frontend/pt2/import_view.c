// SPDX-License-Identifier: Apache-2.0
//
// Operators whose result is another view of their argument: writes through it are seen by all.

#include <inttypes.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/pt2/import.h"

static npu_status self_view(struct pt2_node *n, const char *name, struct pt2_tensor **t) {
    *t = pt2_tensor(n, name);
    return *t || n->failed ? NULL : npu_fail(BAD_INPUT, "argument '%s' is no tensor", name);
}

// The value of a tensor, NULL after a failure that is noted.
static struct graph_value *value(struct pt2_node *n, const char *name) {
    return pt2_need(n, name);
}

// ---- reshapes --------------------------------------------------------------------------------

// Whether a tensor of these strides can be seen under other dimensions without moving elements:
// every run of dimensions that are contiguous among themselves must split into new ones.
static bool viewable(const struct tensor_meta *t, int rank, const int64_t *dims) {
    int to = rank - 1;
    int64_t below = 1, taken = 1; // elements of the run so far, of the new dimensions so far
    for (int d = t->rank - 1; d >= 0; d--) {
        if (t->strides[d] < 0) return true; // not known: as if it were contiguous
        below *= t->sizes[d];
        bool ends =
            d == 0 || (t->sizes[d - 1] != 1 && t->strides[d - 1] != t->strides[d] * t->sizes[d]);
        if (t->sizes[d] == 1 && d > 0 && t->strides[d - 1] != t->strides[d]) ends = below != 1;
        if (!ends) continue;
        while (to >= 0 && (taken < below || dims[to] == 1))
            taken *= dims[to--];
        if (taken != below) return false;
        below = taken = 1;
    }
    return to < 0;
}

static bool may_view(struct pt2_node *n, const char *name, int rank, const int64_t *dims) {
    struct tensor_meta t;
    for (size_t k = 0; k < json_array_size(n->inputs); k++) {
        const json_t *input = json_array_get(n->inputs, k);
        const char *own = json_string_value(json_object_get(input, "name"));
        if (!own || strcmp(own, name) != 0) continue;
        const char *tensor = schema_name(json_object_get(input, "arg"));
        const json_t *meta = tensor ? json_object_get(n->s->tensor_values, tensor) : NULL;
        npu_status odd = meta ? schema_meta(meta, &n->m->symbols, "", &t) : NULL;
        npu_status_free(odd);
        return !meta || odd || !t.known || viewable(&t, rank, dims);
    }
    return true;
}

static npu_status reshaped(struct pt2_node *n, const char *name, int rank, const int64_t *dims) {
    struct pt2_tensor *t;
    struct graph_value *y;
    struct view view = {.kind = VIEW_RESHAPE, .rank = rank};
    memcpy(view.dims, dims, (size_t)rank * sizeof *dims);
    NPU_TRY(self_view(n, name, &t));
    if (n->failed) return NULL;
    if (may_view(n, name, rank, dims)) return pt2_bind_view(n, 0, t, &view);
    NPU_TRY(build_reshape(&n->b, value(n, name), rank, dims, &y)); // a copy
    return pt2_bind(n, 0, y);
}

// One -1 takes what is left.
static npu_status resolve(struct pt2_node *n, int64_t elems, int rank, int64_t *dims) {
    int64_t known = 1;
    int open = -1;
    if (n->failed) return NULL;
    if (rank < 0) return npu_fail(BAD_INPUT, "the sizes are None");
    for (int d = 0; d < rank; d++) {
        if (dims[d] == -1 && open < 0) {
            open = d;
        } else if (dims[d] < 0 || (dims[d] && known > SYMBOL_LIMIT / dims[d])) {
            return npu_fail(BAD_INPUT, "size[%d] is %" PRId64, d, dims[d]);
        } else {
            known *= dims[d];
        }
    }
    if (open >= 0) {
        if (!known || elems % known)
            return npu_fail(BAD_INPUT, "%" PRId64 " elements do not divide by %" PRId64, elems,
                            known);
        dims[open] = elems / known;
    }
    return NULL;
}

npu_status aten_view(struct pt2_node *n) {
    int64_t dims[GRAPH_MAX_RANK];
    int rank = pt2_ints(n, strstr(n->row->args, "shape") ? "shape" : "size", dims, GRAPH_MAX_RANK);
    NPU_TRY(resolve(n, graph_value_elems(value(n, "self")), rank, dims));
    return n->failed ? NULL : reshaped(n, "self", rank, dims);
}

npu_status aten_view_as(struct pt2_node *n) {
    const struct graph_value *other = value(n, "other");
    return n->failed ? NULL : reshaped(n, "self", other->rank, other->dims);
}

npu_status aten_flatten(struct pt2_node *n) {
    const struct graph_value *x = value(n, "self");
    int first = pt2_axis(n, "start_dim", x->rank), last = pt2_axis(n, "end_dim", x->rank), rank = 0;
    int64_t dims[GRAPH_MAX_RANK] = {1};
    if (n->failed) return NULL;
    if (last < first) return npu_fail(BAD_INPUT, "start_dim is behind end_dim");
    for (int d = 0; d < x->rank; d++) {
        if (d > first && d <= last)
            dims[rank - 1] *= x->dims[d];
        else
            dims[rank++] = x->dims[d];
    }
    return reshaped(n, "self", rank ? rank : 1, dims);
}

npu_status aten_unflatten(struct pt2_node *n) {
    const struct graph_value *x = value(n, "self");
    int axis = pt2_axis(n, "dim", x->rank), rank = 0;
    int64_t sizes[GRAPH_MAX_RANK], dims[GRAPH_MAX_RANK];
    int count = pt2_ints(n, "sizes", sizes, GRAPH_MAX_RANK);
    if (n->failed || !x->rank) return npu_fail(BAD_INPUT, "a scalar has no dimension to split");
    NPU_TRY(resolve(n, x->dims[axis], count, sizes));
    if (x->rank - 1 + count > GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "the result has rank %d", x->rank - 1 + count);
    for (int d = 0; d < x->rank; d++) {
        if (d != axis) dims[rank++] = x->dims[d];
        for (int k = 0; d == axis && k < count; k++)
            dims[rank++] = sizes[k];
    }
    return reshaped(n, "self", rank, dims);
}

npu_status aten_unsqueeze(struct pt2_node *n) {
    const struct graph_value *x = value(n, "self");
    int axis = pt2_axis(n, "dim", x->rank + 1);
    int64_t dims[GRAPH_MAX_RANK];
    if (x->rank == GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "the result has rank %d, at most %d", x->rank + 1,
                        GRAPH_MAX_RANK);
    for (int d = 0; d <= x->rank; d++)
        dims[d] = d < axis ? x->dims[d] : d == axis ? 1 : x->dims[d - 1];
    return reshaped(n, "self", x->rank + 1, dims);
}

// A vector is a row, and a matrix of three dimensions has one column behind it.
npu_status aten_atleast(struct pt2_node *n) {
    const struct graph_value *x = value(n, "self");
    int rank = n->target[8] - '0'; // atleast_2d
    int64_t dims[3] = {1, 1, 1};
    struct pt2_tensor *t;
    NPU_TRY(self_view(n, "self", &t));
    if (n->failed) return NULL;
    if (x->rank >= rank) return pt2_bind_same(n, 0, t);
    for (int d = 0; d < x->rank; d++)
        dims[rank > 1 && x->rank == 1 ? 1 : d] = x->dims[d];
    return reshaped(n, "self", rank, dims);
}

// Dimensions of size 1 of those that are named go, or all of them.
npu_status aten_squeeze(struct pt2_node *n) {
    const struct graph_value *x = value(n, "self");
    int64_t axes[GRAPH_MAX_RANK], dims[GRAPH_MAX_RANK];
    bool named = strstr(n->row->args, " dim") != NULL;
    int count = named ? pt2_axes(n, "dim", x->rank, axes) : 0, rank = 0;
    for (int d = 0; d < x->rank; d++) {
        bool goes = !named;
        for (int k = 0; k < count; k++)
            goes |= axes[k] == d;
        if (!goes || x->dims[d] != 1) dims[rank++] = x->dims[d];
    }
    return reshaped(n, "self", rank, dims);
}

// ---- permutations ----------------------------------------------------------------------------

static npu_status permuted(struct pt2_node *n, const int64_t *perm, int rank) {
    struct pt2_tensor *t;
    struct view view = {.kind = VIEW_PERMUTE, .rank = rank};
    unsigned seen = 0;
    NPU_TRY(self_view(n, "self", &t));
    if (n->failed) return NULL;
    for (int d = 0; d < rank; d++) {
        view.perm[d] = perm[d];
        if (perm[d] >= 0 && perm[d] < rank) seen |= 1u << perm[d];
    }
    if (seen + 1 != 1u << rank) return npu_fail(BAD_INPUT, "no permutation of %d dimensions", rank);
    return pt2_bind_view(n, 0, t, &view);
}

npu_status aten_permute(struct pt2_node *n) {
    int64_t perm[GRAPH_MAX_RANK];
    int rank = value(n, "self")->rank, count = pt2_ints(n, "dims", perm, GRAPH_MAX_RANK);
    if (n->failed) return NULL;
    if (count != rank) return npu_fail(BAD_INPUT, "%d dimensions for rank %d", count, rank);
    for (int d = 0; d < rank; d++)
        if (perm[d] < 0) perm[d] += rank;
    return permuted(n, perm, rank);
}

static npu_status swapped(struct pt2_node *n, int a, int b) {
    int64_t perm[GRAPH_MAX_RANK];
    int rank = value(n, "self")->rank;
    for (int d = 0; d < rank; d++)
        perm[d] = d == a ? b : d == b ? a : d;
    return permuted(n, perm, rank);
}

npu_status aten_transpose(struct pt2_node *n) {
    int rank = value(n, "self")->rank;
    return swapped(n, pt2_axis(n, "dim0", rank), pt2_axis(n, "dim1", rank));
}

npu_status aten_swapaxes(struct pt2_node *n) {
    int rank = value(n, "self")->rank;
    return swapped(n, pt2_axis(n, "axis0", rank), pt2_axis(n, "axis1", rank));
}

// All dimensions backwards; t of a matrix.
npu_status aten_t(struct pt2_node *n) {
    int64_t perm[GRAPH_MAX_RANK];
    int rank = value(n, "self")->rank;
    for (int d = 0; d < rank; d++)
        perm[d] = rank - 1 - d;
    return permuted(n, perm, rank);
}

npu_status aten_mt(struct pt2_node *n) {
    int rank = value(n, "self")->rank;
    if (rank < 2) return npu_fail(BAD_INPUT, "a tensor of rank %d, expected 2 or more", rank);
    return swapped(n, rank - 2, rank - 1);
}

npu_status aten_movedim(struct pt2_node *n) {
    int rank = value(n, "self")->rank;
    int64_t from[GRAPH_MAX_RANK], to[GRAPH_MAX_RANK], perm[GRAPH_MAX_RANK];
    int count = pt2_ints(n, "source", from, GRAPH_MAX_RANK);
    if (pt2_ints(n, "destination", to, GRAPH_MAX_RANK) != count || count < 0)
        return npu_fail(BAD_INPUT, "source and destination differ in number");
    unsigned moved = 0;
    for (int d = 0; d < rank; d++)
        perm[d] = -1;
    for (int k = 0; k < count; k++) {
        if (from[k] < 0) from[k] += rank;
        if (to[k] < 0) to[k] += rank;
        if (from[k] < 0 || from[k] >= rank || to[k] < 0 || to[k] >= rank || perm[to[k]] >= 0)
            return npu_fail(BAD_INPUT, "source[%d] or destination[%d]", k, k);
        perm[to[k]] = from[k];
        moved |= 1u << from[k];
    }
    for (int d = 0, next = 0; d < rank; d++) {
        if (perm[d] >= 0) continue;
        while (moved >> next & 1)
            next++;
        perm[d] = next++;
    }
    return permuted(n, perm, rank);
}

// ---- parts -----------------------------------------------------------------------------------

static void whole(const struct graph_value *x, struct view *view) {
    *view = (struct view){.kind = VIEW_SLICE, .rank = x->rank};
    for (int d = 0; d < x->rank; d++) {
        view->dims[d] = x->dims[d];
        view->steps[d] = 1;
    }
}

// x[.., start:end:step, ..] by Python's rules; INT64_MAX: to the end.
void pt2_slice_view(const struct graph_value *x, int axis, int64_t start, int64_t end, int64_t step,
                    struct view *view) {
    int64_t size = x->dims[axis];
    whole(x, view);
    if (start < 0) start += size;
    if (end < 0) end += size;
    start = num_clamp_i64(start, 0, size);
    end = num_clamp_i64(end, start, size);
    view->starts[axis] = start < end ? start : 0;
    view->dims[axis] = (end - start + step - 1) / step;
    view->steps[axis] = view->dims[axis] > 1 ? step : 1;
}

npu_status aten_slice(struct pt2_node *n) {
    struct pt2_tensor *t;
    struct view view;
    const struct graph_value *x = value(n, "self");
    int axis = pt2_axis(n, "dim", x->rank);
    int64_t start = pt2_given(n, "start") ? pt2_int(n, "start") : 0;
    int64_t end = pt2_given(n, "end") ? pt2_int(n, "end") : INT64_MAX, step = pt2_int(n, "step");
    NPU_TRY(self_view(n, "self", &t));
    if (n->failed) return NULL;
    if (step < 1 || step > 1 << 30 || !x->rank)
        return npu_fail(BAD_INPUT, "a step of %" PRId64 " along rank %d", step, x->rank);
    pt2_slice_view(x, axis, start, end, step, &view);
    return pt2_bind_view(n, 0, t, &view);
}

npu_status aten_narrow(struct pt2_node *n) {
    struct pt2_tensor *t;
    struct view view;
    const struct graph_value *x = value(n, "self");
    int axis = pt2_axis(n, "dim", x->rank);
    int64_t start = pt2_int(n, "start"), length = pt2_int(n, "length");
    NPU_TRY(self_view(n, "self", &t));
    if (n->failed) return NULL;
    if (!x->rank) return npu_fail(BAD_INPUT, "a part of a scalar");
    if (start < 0) start += x->dims[axis];
    if (start < 0 || length < 0 || start > x->dims[axis] || length > x->dims[axis] - start)
        return npu_fail(BAD_INPUT, "%" PRId64 " elements from %" PRId64 " of %" PRId64, length,
                        start, x->dims[axis]);
    pt2_slice_view(x, axis, start, start + length, 1, &view);
    return pt2_bind_view(n, 0, t, &view);
}

// Part `at` of size `size` along axis as result k; without the dimension where `drop`.
static npu_status bind_part(struct pt2_node *n, int k, struct pt2_tensor *t, int axis, int64_t at,
                            int64_t size, bool drop) {
    struct view part, rest = {.kind = VIEW_RESHAPE};
    struct pt2_tensor *cut;
    const struct graph_value *x = value(n, "self");
    if (n->failed || !pt2_used(n, k)) return NULL;
    pt2_slice_view(x, axis, at, at + size, 1, &part);
    if (!drop) return pt2_bind_view(n, k, t, &part);
    NPU_TRY(tensor_view(&n->b, t, &part, &cut));
    for (int d = 0; d < x->rank; d++)
        if (d != axis) rest.dims[rest.rank++] = x->dims[d];
    return pt2_bind_view(n, k, cut, &rest);
}

npu_status aten_select(struct pt2_node *n) {
    struct pt2_tensor *t;
    const struct graph_value *x = value(n, "self");
    int axis = pt2_axis(n, "dim", x->rank);
    int64_t index = pt2_int(n, "index");
    NPU_TRY(self_view(n, "self", &t));
    if (n->failed) return NULL;
    if (x->rank && index < 0) index += x->dims[axis];
    if (!x->rank || index < 0 || index >= x->dims[axis])
        return npu_fail(BAD_INPUT, "index %" PRId64 " of dimension %d of '%s'", index, axis,
                        x->name);
    return bind_part(n, 0, t, axis, index, 1, true);
}

npu_status aten_unbind(struct pt2_node *n) {
    struct pt2_tensor *t;
    const struct graph_value *x = value(n, "self");
    int axis = pt2_axis(n, "dim", x->rank);
    NPU_TRY(self_view(n, "self", &t));
    if (n->failed) return NULL;
    if (!x->rank || n->nout != x->dims[axis])
        return npu_fail(BAD_INPUT, "%d results of '%s'", n->nout, x->name);
    for (int k = 0; k < n->nout; k++)
        NPU_TRY(bind_part(n, k, t, axis, k, 1, true));
    return NULL;
}

// Sizes of the parts: a list; one size for all but the last; a number of parts, all but the last
// equal (chunk) or the first ones one larger (tensor_split).
static npu_status part_sizes(struct pt2_node *n, int64_t size, int64_t *sizes) {
    bool list = strstr(n->target, "sizes") != NULL, even = !strncmp(n->target, "tensor", 6);
    const char *name = strstr(n->row->args, "split_sizes")  ? "split_sizes"
                       : strstr(n->row->args, "split_size") ? "split_size"
                       : strstr(n->row->args, "chunks")     ? "chunks"
                                                            : "sections";
    if (list) {
        if (pt2_ints(n, name, sizes, n->nout) != n->nout && !n->failed)
            return npu_fail(BAD_INPUT, "%d results, %s has another number", n->nout, name);
        return NULL;
    }
    int64_t number = pt2_int(n, name);
    if (n->failed) return NULL;
    if (number < 1) return npu_fail(BAD_INPUT, "%s is %" PRId64, name, number);
    bool parts = *name == 'c';
    int64_t each = parts ? (size + number - 1) / number : number;
    for (int k = 0; k < n->nout; k++)
        sizes[k] =
            even ? size / number + (k < size % number) : num_clamp_i64(size - k * each, 0, each);
    return NULL;
}

npu_status aten_split(struct pt2_node *n) {
    struct pt2_tensor *t;
    const struct graph_value *x = value(n, "self");
    int axis = pt2_axis(n, "dim", x->rank);
    int64_t *sizes = ARENA_ARRAY(n->m->arena, int64_t, (size_t)n->nout + 1), at = 0;
    NPU_TRY(self_view(n, "self", &t));
    if (n->failed) return NULL;
    if (!x->rank) return npu_fail(BAD_INPUT, "parts of a scalar");
    NPU_TRY(part_sizes(n, x->dims[axis], sizes));
    for (int k = 0; k < n->nout && !n->failed; k++) {
        if (sizes[k] < 0 || sizes[k] > x->dims[axis] - at)
            return npu_fail(BAD_INPUT, "part %d has size %" PRId64 ", %" PRId64 " are left", k,
                            sizes[k], x->dims[axis] - at);
        NPU_TRY(bind_part(n, k, t, axis, at, sizes[k], false));
        at += sizes[k];
    }
    return NULL;
}

// ---- broadcasts ------------------------------------------------------------------------------

static npu_status expanded(struct pt2_node *n, int rank, const int64_t *sizes) {
    struct pt2_tensor *t;
    struct view view = {.kind = VIEW_EXPAND, .rank = rank};
    const struct graph_value *x = value(n, "self");
    NPU_TRY(self_view(n, "self", &t));
    if (n->failed) return NULL;
    if (rank < x->rank) return npu_fail(BAD_INPUT, "rank %d expanded to %d", x->rank, rank);
    for (int d = 0; d < rank; d++) {
        int from = d - (rank - x->rank);
        int64_t own = from >= 0 ? x->dims[from] : 1;
        view.dims[d] = sizes[d] == -1 ? own : sizes[d];
        if (view.dims[d] < 0 || (own != 1 && own != view.dims[d]) || (sizes[d] == -1 && from < 0))
            return npu_fail(BAD_INPUT,
                            "dimension %d of size %" PRId64 " does not expand to %" PRId64, d, own,
                            sizes[d]);
    }
    return pt2_bind_view(n, 0, t, &view);
}

npu_status aten_expand(struct pt2_node *n) {
    int64_t sizes[GRAPH_MAX_RANK];
    int rank = pt2_ints(n, "size", sizes, GRAPH_MAX_RANK);
    return n->failed ? NULL : expanded(n, rank, sizes);
}

npu_status aten_expand_as(struct pt2_node *n) {
    const struct graph_value *other = value(n, "other");
    return n->failed ? NULL : expanded(n, other->rank, other->dims);
}

npu_status aten_broadcast_tensors(struct pt2_node *n) {
    struct graph_value **list;
    struct view view = {.kind = VIEW_EXPAND};
    int count = pt2_tensors(n, "tensors", &list);
    if (n->failed) return NULL;
    if (count != n->nout) return npu_fail(BAD_INPUT, "%d tensors, %d results", count, n->nout);
    for (int k = 0; k < count; k++)
        if (list[k] && list[k]->rank > view.rank) view.rank = list[k]->rank;
    for (int d = 1; d <= view.rank; d++) // from the last on; take_view looks whether they fit
        for (int k = 0; k < count; k++) {
            int64_t own = list[k] && d <= list[k]->rank ? list[k]->dims[list[k]->rank - d] : 1;
            if (k == 0 || own != 1) view.dims[view.rank - d] = own;
        }
    for (int k = 0; k < count; k++) {
        struct pt2_tensor *t = pt2_listed(n, "tensors", (size_t)k);
        if (!t) return npu_fail(BAD_INPUT, "item %d of the list is no tensor", k);
        NPU_TRY(pt2_bind_view(n, k, t, &view));
    }
    return NULL;
}

// ---- the tensor itself -----------------------------------------------------------------------

npu_status aten_same(struct pt2_node *n) {
    struct pt2_tensor *t;
    NPU_TRY(self_view(n, "self", &t));
    return n->failed ? NULL : pt2_bind_same(n, 0, t);
}

npu_status aten_dropout(struct pt2_node *n) {
    struct pt2_tensor *t;
    if (pt2_bool(n, "train") && pt2_float(n, "p") != 0)
        return npu_fail(UNSUPPORTED, "dropout in training mode: export the model after eval()");
    NPU_TRY(self_view(n, "input", &t));
    return n->failed ? NULL : pt2_bind_same(n, 0, t);
}
