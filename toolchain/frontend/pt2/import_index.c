// SPDX-License-Identifier: Apache-2.0
//
// Choosing and replacing elements by index.

#include <inttypes.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/common/indexing.h"
#include "toolchain/frontend/pt2/import.h"

static npu_status integers(const struct graph_value *index) {
    if (isa_dtype_is_int(index->dtype) && index->dtype != ISA_BOOL) return NULL;
    return npu_fail(UNSUPPORTED, "the indices '%s' are %s, expected integers", index->name,
                    isa_dtype_name(index->dtype));
}

// ---- gathers along one dimension -------------------------------------------------------------

static npu_status gathered(struct pt2_node *n, struct graph_value *x, struct graph_value *index,
                           int axis) {
    struct graph_value *y;
    NPU_TRY(integers(index));
    if (!x->rank) return npu_fail(BAD_INPUT, "an index into the scalar '%s'", x->name);
    NPU_TRY(build_gather(&n->b, x, index, axis, &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_embedding(struct pt2_node *n) {
    struct graph_value *table = pt2_need(n, "weight"), *index = pt2_need(n, "indices");
    return n->failed ? NULL : gathered(n, table, index, 0);
}

npu_status aten_index_select(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *index = pt2_need(n, "index");
    int axis = pt2_axis(n, "dim", x->rank);
    return n->failed ? NULL : gathered(n, x, index, axis);
}

npu_status aten_gather(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *index = pt2_need(n, "index"), *y;
    int axis = pt2_axis(n, "dim", x->rank);
    if (n->failed) return NULL;
    NPU_TRY(integers(index));
    NPU_TRY(index_elements(&n->b, x, index, axis, &y));
    return pt2_bind(n, 0, y);
}

// As gather, but the other dimensions broadcast; without dim of everything flattened.
npu_status aten_take_along(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *index = pt2_need(n, "indices"), *y;
    int axis = 0;
    int64_t from[GRAPH_MAX_RANK], to[GRAPH_MAX_RANK];
    if (pt2_given(n, "dim")) {
        axis = pt2_axis(n, "dim", x->rank);
    } else {
        NPU_TRY(build_reshape(&n->b, x, 1, (int64_t[]){graph_value_elems(x)}, &x));
        NPU_TRY(build_reshape(&n->b, index, 1, (int64_t[]){graph_value_elems(index)}, &index));
    }
    if (n->failed) return NULL;
    NPU_TRY(integers(index));
    if (x->rank != index->rank)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, the indices '%s' %d", x->name, x->rank,
                        index->name, index->rank);
    for (int d = 0; d < x->rank; d++) {
        int64_t size = x->dims[d] == 1 ? index->dims[d] : x->dims[d];
        from[d] = d == axis ? x->dims[d] : size;
        to[d] = d == axis ? index->dims[d] : size;
    }
    NPU_TRY(build_expand(&n->b, x, x->rank, from, &x));
    NPU_TRY(build_expand(&n->b, index, index->rank, to, &index));
    NPU_TRY(index_elements(&n->b, x, index, axis, &y));
    return pt2_bind(n, 0, y);
}

// ---- windows ---------------------------------------------------------------------------------

// Numbers start[i] + k * step as an index [count, size].
static struct graph_value *windows(struct pt2_node *n, int64_t count, int64_t stride, int64_t size,
                                   int64_t step, bool size_first) {
    int64_t *items = ARENA_ARRAY(n->m->arena, int64_t, (size_t)(count * size) + 1);
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < size; k++)
            items[size_first ? k * count + i : i * size + k] = i * stride + k * step;
    int64_t dims[2] = {size_first ? size : count, size_first ? count : size};
    return graph_add_const(n->m->g, n->b.label, ISA_I64, 2, dims, items);
}

// x.unfold(dimension, size, step): windows of one dimension, their elements in a new last one.
// Those side by side are a view; of others a write would have to reach several elements, or leave
// some.
npu_status aten_unfold(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    struct pt2_tensor *t = pt2_tensor(n, "self");
    int axis = pt2_axis(n, "dimension", x->rank);
    int64_t size = pt2_int(n, "size"), step = pt2_int(n, "step");
    struct view part, apart = {.kind = VIEW_RESHAPE, .rank = x->rank + 1},
                      last = {.kind = VIEW_PERMUTE, .rank = x->rank + 1};
    if (n->failed) return NULL;
    if (!x->rank || x->rank == GRAPH_MAX_RANK || size < 1 || step < 1 || size > x->dims[axis])
        return npu_fail(BAD_INPUT, "windows of %" PRId64 " of '%s' of rank %d", size, x->name,
                        x->rank);
    int64_t count = (x->dims[axis] - size) / step + 1;
    for (int d = 0; d <= x->rank; d++) {
        apart.dims[d] = d < axis        ? x->dims[d]
                        : d == axis     ? count
                        : d == axis + 1 ? size
                                        : x->dims[d - 1];
        last.perm[d] = d == x->rank ? axis + 1 : d <= axis ? d : d + 1;
    }
    if (t && (count == 1 || step == size)) {
        pt2_slice_view(x, axis, 0, count * size, 1, &part);
        NPU_TRY(tensor_view(&n->b, t, &part, &t));
        NPU_TRY(tensor_view(&n->b, t, &apart, &t));
        return pt2_bind_view(n, 0, t, &last);
    }
    NPU_TRY(build_gather(&n->b, x, windows(n, count, step, size, 1, false), axis, &y));
    NPU_TRY(build_transpose(&n->b, y, last.perm, &y));
    return pt2_bind_beside(n, 0, t, y);
}

// Columns of windows of an image: [N, C kh kw, oh ow].
npu_status aten_im2col(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    int64_t kernel[2], dilation[2], padding[2], stride[2], out[2];
    pt2_repeated(n, "kernel_size", 2, 1, kernel);
    pt2_repeated(n, "dilation", 2, 1, dilation);
    pt2_repeated(n, "padding", 2, 0, padding);
    pt2_repeated(n, "stride", 2, 1, stride);
    if (n->failed) return NULL;
    if (x->rank != 4)
        return npu_fail(UNSUPPORTED, "'%s' has rank %d, expected 4", x->name, x->rank);
    int64_t pads[4] = {0, 0, padding[0], padding[1]};
    NPU_TRY(build_pad(&n->b, x, pads, pads, "constant", 0, &y));
    for (int d = 0; d < 2; d++) {
        int64_t reach = (kernel[d] - 1) * dilation[d] + 1;
        if (kernel[d] < 1 || dilation[d] < 1 || stride[d] < 1 || reach > y->dims[2 + d])
            return npu_fail(BAD_INPUT, "windows of %" PRId64 " of '%s'", kernel[d], x->name);
        out[d] = (y->dims[2 + d] - reach) / stride[d] + 1;
    }
    NPU_TRY(
        build_gather(&n->b, y, windows(n, out[0], stride[0], kernel[0], dilation[0], true), 2, &y));
    NPU_TRY(
        build_gather(&n->b, y, windows(n, out[1], stride[1], kernel[1], dilation[1], true), 4, &y));
    NPU_TRY(build_transpose(&n->b, y, (int64_t[]){0, 1, 2, 4, 3, 5}, &y));
    NPU_TRY(
        build_reshape(&n->b, y, 3,
                      (int64_t[]){x->dims[0], x->dims[1] * kernel[0] * kernel[1], out[0] * out[1]},
                      &y));
    return pt2_bind(n, 0, y);
}

// Every (columns + 1)th element of the matrix as one row.
npu_status aten_diagonal(struct pt2_node *n) {
    const char *name = *n->row->args == 'A' ? "A" : "self";
    const struct graph_value *x = pt2_need(n, name);
    struct pt2_tensor *t = pt2_tensor(n, name);
    int64_t offset = pt2_int(n, "offset");
    int a = pt2_axis(n, "dim1", x->rank), b = pt2_axis(n, "dim2", x->rank), rank = 0;
    struct view order = {.kind = VIEW_PERMUTE, .rank = x->rank}, row = {.kind = VIEW_RESHAPE}, part;
    if (n->failed || !t) return n->failed ? NULL : npu_fail(BAD_INPUT, "'%s' is no tensor", name);
    if (a == b || x->rank < 2) return npu_fail(BAD_INPUT, "dim1 and dim2 are the same");
    for (int d = 0; d < x->rank; d++) {
        if (d == a || d == b) continue;
        row.dims[rank] = x->dims[d];
        order.perm[rank++] = d;
    }
    order.perm[rank] = a;
    order.perm[rank + 1] = b;
    int64_t rows = x->dims[a], cols = x->dims[b], down = offset < 0 ? -offset : 0,
            right = offset > 0 ? offset : 0;
    int64_t size = num_clamp_i64(rows - down < cols - right ? rows - down : cols - right, 0, rows);
    int64_t first = size ? down * cols + right : 0;
    row.dims[rank] = rows * cols;
    row.rank = rank + 1;
    NPU_TRY(tensor_view(&n->b, t, &order, &t));
    NPU_TRY(tensor_view(&n->b, t, &row, &t));
    pt2_slice_view(t->v, rank, first, size ? first + (size - 1) * (cols + 1) + 1 : 0, cols + 1,
                   &part);
    return pt2_bind_view(n, 0, t, &part);
}

// ---- several indices at once -----------------------------------------------------------------

// x[.., i, j, ..]: x with the indexed dimensions side by side, seen as [outer, rows, inner], and
// one flat index of rows.
struct places {
    struct graph_value *x; // transposed where the indexed dimensions were apart
    int64_t perm[GRAPH_MAX_RANK];
    int first, count; // indexed dimensions of x: first .. first + count - 1
    int64_t outer, rows, inner;
    struct graph_value *index;
};

static npu_status read_places(struct pt2_node *n, struct places *p) {
    struct graph_value **list, *index[GRAPH_MAX_RANK];
    int count = pt2_tensors(n, "indices", &list), last = -1;
    int64_t sizes[GRAPH_MAX_RANK];
    bool apart = false;
    *p = (struct places){.x = pt2_need(n, "self"), .outer = 1, .rows = 1, .inner = 1};
    if (n->failed) return NULL;
    if (count > p->x->rank)
        return npu_fail(BAD_INPUT, "%d indices into rank %d", count, p->x->rank);
    for (int d = 0; d < count; d++) {
        if (!list[d]) continue;
        NPU_TRY(integers(list[d]));
        apart |= p->count && d != last + 1;
        if (!p->count) p->first = d;
        last = d;
        index[p->count] = list[d];
        sizes[p->count++] = p->x->dims[d];
    }
    if (!p->count) return npu_fail(BAD_INPUT, "no index");
    int at = 0;
    for (int pass = 0; pass < 2; pass++) // where they are apart: the indexed ones first
        for (int d = 0; d < p->x->rank; d++)
            if (!apart ? pass == 0 : (d < count && list[d]) == (pass == 0)) p->perm[at++] = d;
    if (apart) p->first = 0;
    NPU_TRY(build_transpose(&n->b, p->x, p->perm, &p->x));
    for (int d = 0; d < p->x->rank; d++)
        *(d < p->first              ? &p->outer
          : d < p->first + p->count ? &p->rows
                                    : &p->inner) *= p->x->dims[d];
    return index_flat(&n->b, p->count, index, sizes, &p->index);
}

npu_status aten_index(struct pt2_node *n) {
    struct places p;
    struct graph_value *y;
    int64_t dims[GRAPH_MAX_RANK];
    int rank = 0;
    NPU_TRY(read_places(n, &p));
    if (n->failed) return NULL;
    for (int d = 0; d < p.x->rank; d++)
        if (d <= p.first || d >= p.first + p.count)
            dims[rank++] = d == p.first ? p.rows : p.x->dims[d];
    NPU_TRY(build_reshape(&n->b, p.x, rank, dims, &y));
    NPU_TRY(build_gather(&n->b, y, p.index, p.first, &y));
    return pt2_bind(n, 0, y);
}

// x[mask] = value: a selection.
static npu_status put_masked(struct pt2_node *n, struct graph_value *mask, bool *done) {
    struct graph_value *x = pt2_need(n, "self"), *v = pt2_need(n, "values"), *y;
    int64_t dims[GRAPH_MAX_RANK];
    *done = !n->failed && mask->dtype == ISA_BOOL && graph_value_elems(v) == 1 &&
            mask->rank <= x->rank && !pt2_bool(n, "accumulate");
    if (!*done) return NULL;
    for (int d = 0; d < x->rank; d++)
        dims[d] = d < mask->rank ? mask->dims[d] : 1;
    NPU_TRY(build_reshape(&n->b, mask, x->rank, dims, &mask));
    NPU_TRY(build_reshape(&n->b, v, 0, NULL, &v));
    NPU_TRY(build_map(&n->b, x->dtype, "sel in1 in2", NULL, 3, (struct graph_value *[]){mask, v, x},
                      &y));
    return pt2_bind(n, 0, y);
}

// scatter_rows() with sums and products that wrap; the result is of the type of s->data.
static npu_status scatter_wrapped(struct pt2_node *n, struct scatter *s, struct graph_value *index,
                                  struct graph_value **out) {
    enum isa_dtype type = s->data->dtype;
    NPU_TRY(pt2_cast(n, s->updates, type, &s->updates));
    if (!strcmp(s->reduction, "add") || !strcmp(s->reduction, "mul")) {
        NPU_TRY(pt2_widen(n, s->data, &s->data));
        NPU_TRY(pt2_widen(n, s->updates, &s->updates));
    }
    NPU_TRY(scatter_rows(&n->b, s, index, out));
    return pt2_cast(n, *out, type, out);
}

npu_status aten_index_put(struct pt2_node *n) {
    struct places p;
    struct graph_value **list, *v = pt2_need(n, "values"), *y;
    int64_t dims[GRAPH_MAX_RANK], back[GRAPH_MAX_RANK];
    int rank = 0, after = 0;
    bool done = false;
    if (pt2_tensors(n, "indices", &list) == 1 && list[0]) NPU_TRY(put_masked(n, list[0], &done));
    if (done) return NULL;
    NPU_TRY(read_places(n, &p));
    if (n->failed) return NULL;
    after = p.x->rank - p.first - p.count;
    if (p.first + p.index->rank + after > GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "values of rank %d", p.first + p.index->rank + after);
    for (int d = 0; d < p.first; d++)
        dims[rank++] = p.x->dims[d];
    for (int d = 0; d < p.index->rank; d++)
        dims[rank++] = p.index->dims[d];
    for (int d = 0; d < after; d++)
        dims[rank++] = p.x->dims[p.first + p.count + d];
    NPU_TRY(build_expand(&n->b, v, rank, dims, &v));
    struct scatter s = {p.x,
                        v,
                        p.outer,
                        p.rows,
                        p.inner,
                        graph_value_elems(p.index),
                        pt2_bool(n, "accumulate") ? "add" : "none"};
    NPU_TRY(scatter_wrapped(n, &s, p.index, &y));
    for (int d = 0; d < p.x->rank; d++)
        back[p.perm[d]] = d;
    NPU_TRY(build_transpose(&n->b, y, back, &y));
    return pt2_bind(n, 0, y);
}

// ---- one index along a dimension -------------------------------------------------------------

static npu_status replaced(struct pt2_node *n, struct graph_value *x, int axis,
                           struct graph_value *index, struct graph_value *updates,
                           const char *reduction) {
    struct graph_value *y;
    struct scatter s = {x, updates, 1, 1, 1, graph_value_elems(index), reduction};
    NPU_TRY(integers(index));
    for (int d = 0; d < x->rank; d++)
        *(d < axis ? &s.outer : d == axis ? &s.rows : &s.inner) *= x->dims[d];
    NPU_TRY(index_from_end(&n->b, index, x->rank ? x->dims[axis] : 1, &index));
    NPU_TRY(scatter_wrapped(n, &s, index, &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_index_copy(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *index = pt2_need(n, "index"),
                       *source = pt2_need(n, "source");
    int axis = pt2_axis(n, "dim", x->rank);
    return n->failed ? NULL : replaced(n, x, axis, index, source, "none");
}

npu_status aten_index_add(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *index = pt2_need(n, "index"),
                       *source = pt2_need(n, "source");
    int axis = pt2_axis(n, "dim", x->rank);
    double alpha = pt2_float(n, "alpha");
    if (n->failed) return NULL;
    if (alpha != 1) NPU_TRY(pt2_map(n, source->dtype, "mul $0", &alpha, 1, &source, &source));
    return replaced(n, x, axis, index, source, "add");
}

npu_status aten_index_fill(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *index = pt2_need(n, "index"),
                       *v = pt2_need(n, "value");
    int axis = pt2_axis(n, "dim", x->rank);
    int64_t dims[GRAPH_MAX_RANK];
    if (n->failed) return NULL;
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = graph_value_elems(index);
    NPU_TRY(build_cast(&n->b, v, x->dtype, &v));
    NPU_TRY(build_expand(&n->b, v, x->rank, dims, &v));
    return replaced(n, x, axis, index, v, "none");
}

// ---- element by element ----------------------------------------------------------------------

static npu_status scattered(struct pt2_node *n, struct graph_value *updates,
                            const char *reduction) {
    struct graph_value *x = pt2_need(n, "self"), *index = pt2_need(n, "index"), *y;
    int axis = pt2_axis(n, "dim", x->rank);
    int64_t starts[GRAPH_MAX_RANK] = {0}, steps[GRAPH_MAX_RANK];
    if (n->failed) return NULL;
    NPU_TRY(integers(index));
    for (int d = 0; d < GRAPH_MAX_RANK; d++)
        steps[d] = 1;
    if (updates->rank == index->rank) // the rest of the source is not used
        NPU_TRY(build_slice(&n->b, updates, starts, index->dims, steps, &updates));
    struct scatter s = {x,        updates, 1, graph_value_elems(x), 1, graph_value_elems(index),
                        reduction};
    NPU_TRY(scatter_positions(&n->b, x, index, axis, &index));
    NPU_TRY(scatter_wrapped(n, &s, index, &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_scatter(struct pt2_node *n) {
    struct graph_value *source = pt2_need(n, "src");
    return scattered(n, source, !strncmp(n->target, "scatter_add", 11) ? "add" : "none");
}

npu_status aten_scatter_value(struct pt2_node *n) {
    struct graph_value *v = pt2_need(n, "value"), *index = pt2_need(n, "index");
    if (n->failed) return NULL;
    NPU_TRY(build_expand(&n->b, v, index->rank, index->dims, &v));
    return scattered(n, v, "none");
}

npu_status aten_scatter_reduce(struct pt2_node *n) {
    static const char *const names[][2] = {{"sum", "add"},
                                           {"prod", "mul"},
                                           {"amax", "max"},
                                           {"amin", "min"}};
    struct graph_value *source = pt2_need(n, "src");
    const char *reduce = pt2_string(n, "reduce");
    if (!pt2_bool(n, "include_self")) return npu_fail(UNSUPPORTED, "include_self False");
    for (size_t k = 0; reduce && k < sizeof names / sizeof *names; k++)
        if (!strcmp(names[k][0], reduce)) return scattered(n, source, names[k][1]);
    return npu_fail(UNSUPPORTED, "reduce '%s', expected sum, prod, amax or amin",
                    reduce ? reduce : "None");
}

// ---- replaced parts --------------------------------------------------------------------------

static npu_status put_part(struct pt2_node *n, struct graph_value *x, const struct view *view,
                           struct graph_value *part) {
    struct graph_value *y;
    NPU_TRY(build_cast(&n->b, part, x->dtype, &part));
    NPU_TRY(build_expand(&n->b, part, view->rank, view->dims, &part));
    NPU_TRY(replace_slice(&n->b, x, view->starts, view->steps, part, &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_slice_scatter(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *part = pt2_need(n, "src");
    struct view view;
    int axis = pt2_axis(n, "dim", x->rank);
    int64_t start = pt2_given(n, "start") ? pt2_int(n, "start") : 0;
    int64_t end = pt2_given(n, "end") ? pt2_int(n, "end") : INT64_MAX, step = pt2_int(n, "step");
    if (n->failed) return NULL;
    if (!x->rank || step < 1) return npu_fail(BAD_INPUT, "a step of %" PRId64, step);
    pt2_slice_view(x, axis, start, end, step, &view);
    return put_part(n, x, &view, part);
}

npu_status aten_select_scatter(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *part = pt2_need(n, "src");
    struct view view;
    int axis = pt2_axis(n, "dim", x->rank);
    int64_t index = pt2_int(n, "index"), dims[GRAPH_MAX_RANK];
    if (n->failed) return NULL;
    if (x->rank && index < 0) index += x->dims[axis];
    if (!x->rank || index < 0 || index >= x->dims[axis] || part->rank != x->rank - 1)
        return npu_fail(BAD_INPUT, "index %" PRId64 " of '%s'", index, x->name);
    for (int d = 0; d < x->rank; d++)
        dims[d] = d < axis ? part->dims[d] : d == axis ? 1 : part->dims[d - 1];
    NPU_TRY(build_reshape(&n->b, part, x->rank, dims, &part));
    pt2_slice_view(x, axis, index, index + 1, 1, &view);
    return put_part(n, x, &view, part);
}

npu_status aten_one_hot(struct pt2_node *n) {
    struct graph_value *index = pt2_need(n, "self"), *y;
    int64_t classes = pt2_int(n, "num_classes");
    if (n->failed) return NULL;
    if (classes < 1 || classes > 1 << 26 || index->rank == GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "num_classes %" PRId64 ", expected 1 or more", classes);
    NPU_TRY(index_one_hot(&n->b, index, classes, index->rank, &y));
    NPU_TRY(build_cast(&n->b, y, ISA_I64, &y));
    return pt2_bind(n, 0, y);
}
