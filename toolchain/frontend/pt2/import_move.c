// SPDX-License-Identifier: Apache-2.0
//
// Operators that copy elements into another arrangement: joins, repetitions, pads.

#include <inttypes.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/common/indexing.h"
#include "toolchain/frontend/pt2/import.h"

// ---- joins -----------------------------------------------------------------------------------

// A list of at least one tensor, all of the declared type.
static npu_status read_parts(struct pt2_node *n, const char *name, struct graph_value ***list,
                             int *count) {
    enum isa_dtype type = pt2_out_dtype(n, 0);
    *count = pt2_tensors(n, name, list);
    if (n->failed) return NULL;
    if (!*count) return npu_fail(BAD_INPUT, "an empty list of tensors");
    for (int k = 0; k < *count; k++) {
        if (!(*list)[k]) return npu_fail(BAD_INPUT, "tensor %d of the list is None", k);
        if (type != ISA_DTYPE_NONE) NPU_TRY(build_cast(&n->b, (*list)[k], type, &(*list)[k]));
    }
    return NULL;
}

static npu_status joined(struct pt2_node *n, int count, struct graph_value **list, int axis) {
    struct graph_value *y;
    for (int k = 0; k < count; k++)
        if (list[k]->rank != list[0]->rank)
            return npu_fail(BAD_INPUT, "'%s' has rank %d, '%s' has %d", list[k]->name,
                            list[k]->rank, list[0]->name, list[0]->rank);
    NPU_TRY(build_concat(&n->b, count, list, axis, &y));
    return pt2_bind(n, 0, y);
}

// An empty tensor of rank 1 joins with anything.
npu_status aten_cat(struct pt2_node *n) {
    struct graph_value **list;
    int count, kept = 0;
    NPU_TRY(read_parts(n, "tensors", &list, &count));
    if (n->failed) return NULL;
    for (int k = 0; k < count; k++)
        if (list[k]->rank != 1 || list[k]->dims[0] || kept + count - k == 1) list[kept++] = list[k];
    int axis = pt2_axis(n, "dim", list[0]->rank);
    if (n->failed) return NULL;
    if (!list[0]->rank) return npu_fail(BAD_INPUT, "scalars cannot be joined");
    return joined(n, kept, list, axis);
}

npu_status aten_stack(struct pt2_node *n) {
    struct graph_value **list;
    int count;
    NPU_TRY(read_parts(n, "tensors", &list, &count));
    if (n->failed) return NULL;
    int rank = list[0]->rank + 1, axis = pt2_axis(n, "dim", rank);
    if (n->failed) return NULL;
    if (rank > GRAPH_MAX_RANK) return npu_fail(UNSUPPORTED, "the result has rank %d", rank);
    for (int k = 0; k < count; k++) {
        int64_t dims[GRAPH_MAX_RANK];
        if (list[k]->rank != rank - 1) return npu_fail(BAD_INPUT, "tensors of different ranks");
        for (int d = 0; d < rank; d++)
            dims[d] = d < axis ? list[k]->dims[d] : d == axis ? 1 : list[k]->dims[d - 1];
        NPU_TRY(build_reshape(&n->b, list[k], rank, dims, &list[k]));
    }
    return joined(n, count, list, axis);
}

// Along dimension 1 of matrices and more (hstack), 0 otherwise; vectors are rows of vstack.
npu_status aten_hstack(struct pt2_node *n) {
    struct graph_value **list;
    int count;
    bool rows = *n->target == 'v';
    NPU_TRY(read_parts(n, "tensors", &list, &count));
    if (n->failed) return NULL;
    for (int k = 0; k < count; k++) {
        int64_t elems = graph_value_elems(list[k]);
        if (rows && list[k]->rank < 2)
            NPU_TRY(build_reshape(&n->b, list[k], 2, (int64_t[]){1, elems}, &list[k]));
        if (!list[k]->rank) NPU_TRY(build_reshape(&n->b, list[k], 1, &elems, &list[k]));
    }
    return joined(n, count, list, !rows && list[0]->rank > 1);
}

// ---- repetitions -----------------------------------------------------------------------------

// [outer, size, inner] to [outer, times, size, inner] (whole) or [outer, size, times, inner].
static npu_status repeated(struct pt2_node *n, struct graph_value *x, int axis, int64_t times,
                           bool whole, struct graph_value **out) {
    int64_t outer = 1, inner = 1, dims[GRAPH_MAX_RANK];
    if (times < 0 || (x->dims[axis] && times > SYMBOL_LIMIT / x->dims[axis]))
        return npu_fail(BAD_INPUT, "%" PRId64 " repetitions", times);
    *out = x;
    if (times == 1) return NULL;
    for (int d = 0; d < x->rank; d++) {
        dims[d] = x->dims[d];
        if (d < axis + !whole) outer *= x->dims[d];
        if (d >= axis + !whole) inner *= x->dims[d];
    }
    dims[axis] *= times;
    NPU_TRY(build_reshape(&n->b, x, 3, (int64_t[]){outer, 1, inner}, &x));
    NPU_TRY(build_expand(&n->b, x, 3, (int64_t[]){outer, times, inner}, &x));
    return build_reshape(&n->b, x, (*out)->rank, dims, out);
}

npu_status aten_repeat(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self");
    int64_t times[GRAPH_MAX_RANK], dims[GRAPH_MAX_RANK];
    int count = pt2_ints(n, *n->target == 't' ? "dims" : "repeats", times, GRAPH_MAX_RANK);
    if (n->failed) return NULL;
    int rank = count > x->rank ? count : x->rank;
    for (int d = 0; d < rank; d++)
        dims[d] = d < rank - x->rank ? 1 : x->dims[d - (rank - x->rank)];
    NPU_TRY(build_reshape(&n->b, x, rank, dims, &x));
    for (int d = 0; d < count; d++)
        NPU_TRY(repeated(n, x, rank - count + d, times[d], true, &x));
    return pt2_bind(n, 0, x);
}

npu_status aten_repeat_interleave(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self");
    int64_t times = pt2_int(n, "repeats");
    int axis = 0;
    if (pt2_given(n, "dim"))
        axis = pt2_axis(n, "dim", x->rank);
    else
        NPU_TRY(build_reshape(&n->b, x, 1, (int64_t[]){graph_value_elems(x)}, &x));
    if (n->failed) return NULL;
    if (!x->rank) return npu_fail(BAD_INPUT, "a scalar has no dimension to repeat");
    NPU_TRY(repeated(n, x, axis, times, false, &x));
    return pt2_bind(n, 0, x);
}

npu_status aten_meshgrid(struct pt2_node *n) {
    struct graph_value **list;
    int count;
    int64_t dims[GRAPH_MAX_RANK];
    const char *mode = strstr(n->row->args, "indexing") ? pt2_string(n, "indexing") : "ij";
    NPU_TRY(read_parts(n, "tensors", &list, &count));
    if (n->failed) return NULL;
    if (count > GRAPH_MAX_RANK || count != n->nout)
        return npu_fail(BAD_INPUT, "%d tensors, %d results", count, n->nout);
    bool swap = mode && !strcmp(mode, "xy") && count > 1;
    for (int k = 0; k < count; k++)
        dims[swap && k < 2 ? 1 - k : k] = graph_value_elems(list[k]);
    for (int k = 0; k < count; k++) {
        struct pt2_tensor *t = pt2_listed(n, "tensors", (size_t)k);
        struct view line = {.kind = VIEW_RESHAPE, .rank = count},
                    grid = {.kind = VIEW_EXPAND, .rank = count};
        if (!t) return npu_fail(BAD_INPUT, "item %d of the list is no tensor", k);
        for (int d = 0; d < count; d++) {
            line.dims[d] = 1;
            grid.dims[d] = dims[d];
        }
        line.dims[swap && k < 2 ? 1 - k : k] = graph_value_elems(list[k]);
        NPU_TRY(tensor_view(&n->b, t, &line, &t));
        NPU_TRY(pt2_bind_view(n, k, t, &grid));
    }
    return NULL;
}

// ---- order -----------------------------------------------------------------------------------

npu_status aten_flip(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    int64_t axes[GRAPH_MAX_RANK], starts[GRAPH_MAX_RANK] = {0}, steps[GRAPH_MAX_RANK];
    int count = pt2_ints(n, "dims", axes, GRAPH_MAX_RANK) ? pt2_axes(n, "dims", x->rank, axes) : 0;
    if (n->failed) return NULL;
    for (int d = 0; d < x->rank; d++)
        steps[d] = 1;
    for (int k = 0; k < count; k++) {
        if (!x->dims[axes[k]]) continue;
        starts[axes[k]] = x->dims[axes[k]] - 1;
        steps[axes[k]] = -1;
    }
    NPU_TRY(build_slice(&n->b, x, starts, x->dims, steps, &y));
    return pt2_bind(n, 0, y);
}

// The last `shift` elements come first.
static npu_status rolled(struct pt2_node *n, struct graph_value *x, int axis, int64_t shift,
                         struct graph_value **out) {
    int64_t size = x->dims[axis], starts[GRAPH_MAX_RANK] = {0}, sizes[GRAPH_MAX_RANK],
            steps[GRAPH_MAX_RANK];
    struct graph_value *parts[2];
    *out = x;
    if (!size || !(shift %= size)) return NULL;
    if (shift < 0) shift += size;
    for (int d = 0; d < x->rank; d++) {
        sizes[d] = x->dims[d];
        steps[d] = 1;
    }
    starts[axis] = size - shift;
    sizes[axis] = shift;
    NPU_TRY(build_slice(&n->b, x, starts, sizes, steps, &parts[0]));
    starts[axis] = 0;
    sizes[axis] = size - shift;
    NPU_TRY(build_slice(&n->b, x, starts, sizes, steps, &parts[1]));
    return build_concat(&n->b, 2, parts, axis, out);
}

npu_status aten_roll(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y = x;
    int64_t shifts[GRAPH_MAX_RANK], dims[GRAPH_MAX_RANK];
    int count = pt2_ints(n, "shifts", shifts, GRAPH_MAX_RANK),
        axes = pt2_ints(n, "dims", dims, GRAPH_MAX_RANK);
    if (n->failed) return NULL;
    if (axes <= 0 && count == 1) {
        NPU_TRY(build_reshape(&n->b, x, 1, (int64_t[]){graph_value_elems(x)}, &y));
        NPU_TRY(rolled(n, y, 0, shifts[0], &y));
        NPU_TRY(build_reshape(&n->b, y, x->rank, x->dims, &y));
        return pt2_bind(n, 0, y);
    }
    if (axes != count) return npu_fail(BAD_INPUT, "%d shifts, %d dimensions", count, axes);
    for (int k = 0; k < count; k++) {
        int64_t d = dims[k] < 0 ? dims[k] + x->rank : dims[k];
        if (d < 0 || d >= x->rank) return npu_fail(BAD_INPUT, "dims[%d] is %" PRId64, k, dims[k]);
        NPU_TRY(rolled(n, y, (int)d, shifts[k], &y));
    }
    return pt2_bind(n, 0, y);
}

// [N, C r r, H, W] to [N, C, H r, W r] and back.
static npu_status pixels(struct pt2_node *n, int64_t r, bool back) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    if (n->failed) return NULL;
    int rank = x->rank;
    if (rank < 3 || rank > 6 || r < 1 || r > 1 << 15)
        return npu_fail(BAD_INPUT, "factor %" PRId64 " for '%s' of rank %d", r, x->name, rank);
    int64_t dims[GRAPH_MAX_RANK], batch = 1;
    for (int d = 0; d < rank - 3; d++)
        batch *= x->dims[d];
    int64_t c = x->dims[rank - 3], h = x->dims[rank - 2], w = x->dims[rank - 1];
    if (back ? h % r || w % r : c % (r * r))
        return npu_fail(BAD_INPUT, "factor %" PRId64 " does not divide '%s'", r, x->name);
    memcpy(dims, x->dims, sizeof dims);
    dims[rank - 3] = back ? c * r * r : c / (r * r);
    dims[rank - 2] = back ? h / r : h * r;
    dims[rank - 1] = back ? w / r : w * r;
    const int64_t apart[2][6] = {{batch, c / (r * r), r, r, h, w}, {batch, c, h / r, r, w / r, r}},
                  perm[2][6] = {{0, 1, 4, 2, 5, 3}, {0, 1, 3, 5, 2, 4}};
    NPU_TRY(build_reshape(&n->b, x, 6, apart[back], &y));
    NPU_TRY(build_transpose(&n->b, y, perm[back], &y));
    NPU_TRY(build_reshape(&n->b, y, rank, dims, &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_pixel_shuffle(struct pt2_node *n) {
    return pixels(n, pt2_int(n, "upscale_factor"), false);
}

npu_status aten_pixel_unshuffle(struct pt2_node *n) {
    return pixels(n, pt2_int(n, "downscale_factor"), true);
}

// ---- pads ------------------------------------------------------------------------------------

// Pairs from the last dimension on: left, right, top, bottom, ..
npu_status aten_pad(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    bool reflect = !strncmp(n->target, "reflection", 10), edge = !strncmp(n->target, "replic", 6);
    int64_t pads[2 * GRAPH_MAX_RANK], before[GRAPH_MAX_RANK] = {0}, after[GRAPH_MAX_RANK] = {0};
    int count = pt2_ints(n, reflect || edge ? "padding" : "pad", pads, 2 * GRAPH_MAX_RANK);
    double number =
        strstr(n->row->args, "value") && pt2_given(n, "value") ? pt2_float(n, "value") : 0;
    const char *mode = reflect ? "reflect" : edge ? "replicate" : "constant";
    if (strstr(n->row->args, "mode") && pt2_string(n, "mode")) mode = pt2_string(n, "mode");
    if (n->failed) return NULL;
    if (count < 0 || count % 2 || count / 2 > x->rank)
        return npu_fail(BAD_INPUT, "%d pads for '%s' of rank %d", count, x->name, x->rank);
    for (int k = 0; k < count / 2; k++) {
        before[x->rank - 1 - k] = pads[2 * k];
        after[x->rank - 1 - k] = pads[2 * k + 1];
    }
    if (!strcmp(mode, "replicate")) mode = "edge";
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0)
        return npu_fail(UNSUPPORTED, "mode '%s', expected constant, reflect or replicate", mode);
    NPU_TRY(build_pad(&n->b, x, before, after, mode, number, &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_triangle(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    int64_t k = pt2_int(n, "diagonal");
    if (n->failed) return NULL;
    NPU_TRY(index_triangle(&n->b, x, k, n->target[3] == 'u', &y));
    return pt2_bind(n, 0, y);
}
