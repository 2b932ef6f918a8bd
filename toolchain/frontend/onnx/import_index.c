// SPDX-License-Identifier: Apache-2.0
//
// Ops that choose elements by index. The core has one gather along one dimension; the others
// flatten their tensors and compute flat indices. Scattering is a gather too when the indices are
// known: each element of the result comes from the updates or from the data.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/onnx/import.h"

npu_status import_gather(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    struct graph_value *y;
    int axis;
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", 0), n->in[0]->rank, &axis));
    NPU_TRY(onnx_gather(n, n->in[0], n->in[1], axis, &y));
    return onnx_bind(n, 0, y);
}

static int64_t stride_of(const struct graph_value *v, int d) {
    int64_t stride = 1;
    for (int k = d + 1; k < v->rank; k++)
        stride *= v->dims[k];
    return stride;
}

// index < 0 ? index + size : index
static npu_status from_end(struct onnx_node *n, struct graph_value *index, int64_t size,
                           struct graph_value **out) {
    if (!isa_dtype_is_int(index->dtype))
        return npu_fail(BAD_INPUT, "the indices '%s' are no integers", index->name);
    if (size > INT32_MAX)
        return npu_fail(UNSUPPORTED, "indices into a dimension of %lld", (long long)size);
    double s = (double)size;
    return onnx_map(n, ISA_I64, "add $0 =tmp; mov in0; lt 0; sel tmp in0", &s, 1, &index, out);
}

// y[i0..] = x[i0.., index[i0..], ..]: flat index = index * stride + the position's own offset in
// the other dimensions.
npu_status import_gather_elements(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    struct graph_value *x = n->in[0], *index = n->in[1], *y;
    int axis;
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", 0), x->rank, &axis));
    if (index->rank != x->rank)
        return npu_fail(BAD_INPUT, "the indices '%s' have rank %d, '%s' has %d", index->name,
                        index->rank, x->name, x->rank);
    for (int d = 0; d < x->rank; d++)
        if (d != axis && index->dims[d] > x->dims[d])
            return npu_fail(BAD_INPUT, "dimension %d of the indices '%s' is %lld, '%s' has %lld", d,
                            index->name, (long long)index->dims[d], x->name, (long long)x->dims[d]);
    int64_t elems = graph_value_elems(index), total = graph_value_elems(x);
    if (elems > 1 << 26 || total > INT32_MAX)
        return npu_fail(UNSUPPORTED, "%lld indices into %lld elements", (long long)elems,
                        (long long)total);
    int64_t *offsets = ARENA_ARRAY(n->m->arena, int64_t, (size_t)elems + 1);
    for (int64_t k = 0; k < elems; k++) {
        int64_t rest = k;
        for (int d = x->rank - 1; d >= 0; d--) {
            if (d != axis) offsets[k] += rest % index->dims[d] * stride_of(x, d);
            rest /= index->dims[d];
        }
    }
    struct graph_value *base =
        graph_add_const(n->m->g, n->label, ISA_I64, index->rank, index->dims, offsets);
    double stride = (double)stride_of(x, axis);
    NPU_TRY(from_end(n, index, x->dims[axis], &index));
    NPU_TRY(onnx_map(n, ISA_I64, "mul $0; add in1", &stride, 2,
                     (struct graph_value *[]){index, base}, &index));
    NPU_TRY(onnx_reshape(n, x, 1, &total, &x));
    NPU_TRY(onnx_gather(n, x, index, 0, &y));
    return onnx_bind(n, 0, y);
}

// Flat row numbers of `index` [.., depth] into the first `depth` dimensions of x: [..].
static npu_status flat_rows(struct onnx_node *n, const struct graph_value *x,
                            struct graph_value *index, struct graph_value **out) {
    int last = index->rank - 1;
    int64_t depth = index->dims[last], stride = 1;
    int64_t starts[GRAPH_MAX_RANK] = {0}, steps[GRAPH_MAX_RANK], sizes[GRAPH_MAX_RANK];
    struct graph_value *flat = NULL, *part;
    for (int d = 0; d < index->rank; d++) {
        steps[d] = 1;
        sizes[d] = index->dims[d];
    }
    sizes[last] = 1;
    for (int d = (int)depth - 1; d >= 0; d--) {
        double factor = (double)stride;
        starts[last] = d;
        NPU_TRY(onnx_slice(n, index, starts, sizes, steps, &part));
        NPU_TRY(onnx_reshape(n, part, last, index->dims, &part));
        NPU_TRY(from_end(n, part, x->dims[d], &part));
        if (stride != 1) NPU_TRY(onnx_map(n, ISA_I64, "mul $0", &factor, 1, &part, &part));
        if (flat) NPU_TRY(onnx_map2(n, "add in1", flat, part, &part));
        flat = part;
        stride *= x->dims[d];
        if (stride > INT32_MAX)
            return npu_fail(UNSUPPORTED, "indices into %lld elements", (long long)stride);
    }
    *out = flat;
    return NULL;
}

// Rows of `index` (its last dimension) choose slices of x; the rows' parts are combined to one
// index into merged dimensions.
npu_status import_gather_nd(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    struct graph_value *x = n->in[0], *index = n->in[1], *flat = NULL, *y;
    if (onnx_int(n, "batch_dims", 0))
        return npu_fail(UNSUPPORTED, "batch_dims %lld, expected 0",
                        (long long)onnx_int(n, "batch_dims", 0));
    if (index->rank < 1 || x->rank < 1)
        return npu_fail(BAD_INPUT, "a scalar where a tensor is needed");
    int64_t depth = index->dims[index->rank - 1];
    if (depth < 1 || depth > x->rank)
        return npu_fail(BAD_INPUT, "the last dimension of '%s' is %lld, expected 1 to %d",
                        index->name, (long long)depth, x->rank);
    int64_t merged[GRAPH_MAX_RANK] = {1};
    int rank = 1;
    for (int d = 0; d < x->rank; d++) {
        if (d < depth)
            merged[0] *= x->dims[d];
        else
            merged[rank++] = x->dims[d];
    }
    NPU_TRY(flat_rows(n, x, index, &flat));
    NPU_TRY(onnx_reshape(n, x, rank, merged, &x));
    NPU_TRY(onnx_gather(n, x, flat, 0, &y));
    return onnx_bind(n, 0, y);
}

// ---- scatter, for known indices --------------------------------------------------------------

// result[e] = from[e] < 0 ? data[e] : combine(data[e], updates[from[e]]), over `rows` rows of data
// and updates.
static npu_status scatter_rows(struct onnx_node *n, struct graph_value *data,
                               struct graph_value *updates, const int64_t *from, int64_t rows,
                               const char *reduction, struct graph_value **out) {
    const char *chain = !strcmp(reduction, "none")  ? "sel in1 in2"
                        : !strcmp(reduction, "add") ? "mov in1; add in2 =tmp; mov in0; sel tmp in2"
                        : !strcmp(reduction, "mul") ? "mov in1; mul in2 =tmp; mov in0; sel tmp in2"
                        : !strcmp(reduction, "max") ? "mov in1; max in2 =tmp; mov in0; sel tmp in2"
                        : !strcmp(reduction, "min") ? "mov in1; min in2 =tmp; mov in0; sel tmp in2"
                                                    : NULL;
    if (!chain) return npu_fail(BAD_INPUT, "reduction '%s'", reduction);
    int64_t *index = ARENA_ARRAY(n->m->arena, int64_t, (size_t)rows + 1);
    uint8_t *taken = arena_alloc(n->m->arena, (size_t)rows + 1);
    for (int64_t k = 0; k < rows; k++) {
        taken[k] = from[k] >= 0;
        index[k] = from[k] >= 0 ? from[k] : 0;
    }
    struct graph_value *mask = graph_add_const(n->m->g, n->label, ISA_BOOL, 2, (int64_t[]){rows, 1},
                                               taken),
                       *chosen;
    struct graph_value *where = graph_add_const(n->m->g, n->label, ISA_I64, 1, &rows, index);
    NPU_TRY(onnx_gather(n, updates, where, 0, &chosen));
    return onnx_map(n, data->dtype, chain, NULL, 3, (struct graph_value *[]){mask, chosen, data},
                    out);
}

// Which update each row gets in each round, -1: none. Without a reduction the last update counts;
// with one, a row that is updated again takes the next round.
enum { ROUNDS = 16 };
struct rounds {
    int64_t rows, width, updates;
    const char *reduction;
    int count;
    int64_t *from[ROUNDS];
};

static npu_status place(struct onnx_node *n, struct rounds *r, int64_t row, int64_t update) {
    int k = 0;
    bool replaces = !strcmp(r->reduction, "none");
    while (!replaces && k < r->count && r->from[k][row] >= 0)
        k++;
    if (k == ROUNDS)
        return npu_fail(UNSUPPORTED, "an element that is updated more than %d times", ROUNDS);
    if (k == r->count) {
        r->from[k] = ARENA_ARRAY(n->m->arena, int64_t, (size_t)r->rows + 1);
        for (int64_t i = 0; i < r->rows; i++)
            r->from[k][i] = -1;
        r->count++;
    }
    r->from[k][row] = update;
    return NULL;
}

static npu_status scattered(struct onnx_node *n, const struct rounds *r) {
    struct graph_value *data, *u;
    NPU_TRY(onnx_reshape(n, n->in[0], 2, (int64_t[]){r->rows, r->width}, &data));
    NPU_TRY(onnx_reshape(n, n->in[2], 2, (int64_t[]){r->updates, r->width}, &u));
    for (int k = 0; k < r->count; k++)
        NPU_TRY(scatter_rows(n, data, u, r->from[k], r->rows, r->reduction, &data));
    NPU_TRY(onnx_reshape(n, data, n->in[0]->rank, n->in[0]->dims, &data));
    return onnx_bind(n, 0, data);
}

// Indices that are not known: each update in turn replaces the row whose number is its index.
static npu_status scatter_each(struct onnx_node *n, int64_t rows, int64_t width, int64_t updates) {
    enum { MOST = 16 };
    struct graph_value *data, *u, *flat, *index, *row, *range, *hit;
    if (updates > MOST)
        return npu_fail(UNSUPPORTED, "%lld updates at indices computed at run time, at most %d",
                        (long long)updates, MOST);
    if (strcmp(onnx_string(n, "reduction", "none"), "none") != 0)
        return npu_fail(UNSUPPORTED, "a reduction at indices computed at run time");
    int64_t *numbers = ARENA_ARRAY(n->m->arena, int64_t, (size_t)rows + 1);
    for (int64_t k = 0; k < rows; k++)
        numbers[k] = k;
    range = graph_add_const(n->m->g, n->label, ISA_I64, 2, (int64_t[]){rows, 1}, numbers);
    NPU_TRY(flat_rows(n, n->in[0], n->in[1], &flat));
    NPU_TRY(onnx_reshape(n, flat, 2, (int64_t[]){updates, 1}, &flat));
    NPU_TRY(onnx_reshape(n, n->in[0], 2, (int64_t[]){rows, width}, &data));
    NPU_TRY(onnx_reshape(n, n->in[2], 2, (int64_t[]){updates, width}, &u));
    for (int64_t k = 0; k < updates; k++) {
        const int64_t start[2] = {k, 0}, one[2] = {1, 1}, line[2] = {1, width};
        NPU_TRY(onnx_slice(n, flat, start, one, one, &index));
        NPU_TRY(onnx_slice(n, u, start, line, one, &row));
        NPU_TRY(
            onnx_map(n, ISA_BOOL, "eq in1", NULL, 2, (struct graph_value *[]){range, index}, &hit));
        NPU_TRY(onnx_map(n, data->dtype, "sel in1 in2", NULL, 3,
                         (struct graph_value *[]){hit, row, data}, &data));
    }
    NPU_TRY(onnx_reshape(n, data, n->in[0]->rank, n->in[0]->dims, &data));
    return onnx_bind(n, 0, data);
}

npu_status import_scatter_nd(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 3, 3));
    const struct graph_value *x = n->in[0], *index = n->in[1];
    const char *reduction = onnx_string(n, "reduction", "none");
    int64_t depth = index->rank ? index->dims[index->rank - 1] : 0, rows = 1, width = 1;
    if (depth < 1 || depth > x->rank)
        return npu_fail(BAD_INPUT, "indices '%s' of depth %lld into rank %d", index->name,
                        (long long)depth, x->rank);
    for (int d = 0; d < x->rank; d++)
        *(d < depth ? &rows : &width) *= x->dims[d];
    int64_t updates = graph_value_elems(index) / depth;
    if (rows > 1 << 26 || updates * width != graph_value_elems(n->in[2]))
        return npu_fail(BAD_INPUT, "%lld updates of %lld elements, '%s' has %lld elements",
                        (long long)updates, (long long)width, n->in[2]->name,
                        (long long)graph_value_elems(n->in[2]));
    if (!index->data) return scatter_each(n, rows, width, updates);
    struct rounds r = {rows, width, updates, reduction, 0, {NULL}};
    for (int64_t k = 0; k < updates; k++) {
        int64_t row = 0;
        for (int64_t d = 0; d < depth; d++) {
            int64_t i = num_load_i64(index->dtype, index->data, k * depth + d);
            if (i < 0) i += x->dims[d];
            if (i < 0 || i >= x->dims[d])
                return npu_fail(BAD_INPUT, "index %lld into dimension %lld of size %lld",
                                (long long)i, (long long)d, (long long)x->dims[d]);
            row = row * x->dims[d] + i;
        }
        NPU_TRY(place(n, &r, row, k));
    }
    return scattered(n, &r);
}

npu_status import_scatter_elements(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 3, 3));
    NPU_TRY(onnx_need_const(n, 1));
    const struct graph_value *x = n->in[0], *index = n->in[1];
    const char *reduction = onnx_string(n, "reduction", "none");
    int axis;
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", 0), x->rank, &axis));
    int64_t rows = graph_value_elems(x), updates = graph_value_elems(index);
    if (index->rank != x->rank || rows > 1 << 26 || updates != graph_value_elems(n->in[2]))
        return npu_fail(BAD_INPUT, "indices '%s' of rank %d and %lld updates for '%s' of rank %d",
                        index->name, index->rank, (long long)graph_value_elems(n->in[2]), x->name,
                        x->rank);
    for (int d = 0; d < x->rank; d++)
        if (d != axis && index->dims[d] > x->dims[d])
            return npu_fail(BAD_INPUT, "dimension %d of '%s' is larger than that of '%s'", d,
                            index->name, x->name);
    struct rounds r = {rows, 1, updates, reduction, 0, {NULL}};
    for (int64_t k = 0; k < updates; k++) {
        int64_t rest = k, row = 0;
        for (int d = x->rank - 1; d >= 0; d--) {
            int64_t i = rest % index->dims[d];
            rest /= index->dims[d];
            if (d == axis) {
                i = num_load_i64(index->dtype, index->data, k);
                if (i < 0) i += x->dims[d];
                if (i < 0 || i >= x->dims[d])
                    return npu_fail(BAD_INPUT, "index %lld into dimension %d of size %lld",
                                    (long long)i, d, (long long)x->dims[d]);
            }
            row += i * stride_of(x, d);
        }
        NPU_TRY(place(n, &r, row, k));
    }
    return scattered(n, &r);
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
    int64_t dims[GRAPH_MAX_RANK], shape[GRAPH_MAX_RANK],
        *numbers = ARENA_ARRAY(n->m->arena, int64_t, (size_t)depth);
    for (int d = 0; d < rank; d++) {
        dims[d] = d < axis ? index->dims[d] : d == axis ? 1 : index->dims[d - 1];
        shape[d] = d == axis ? depth : 1;
    }
    for (int64_t k = 0; k < depth; k++)
        numbers[k] = k;
    struct graph_value *range = graph_add_const(n->m->g, n->label, ISA_I64, rank, shape, numbers);
    NPU_TRY(onnx_cast(n, index, ISA_I64, &index));
    NPU_TRY(from_end(n, index, depth, &index));
    NPU_TRY(onnx_reshape(n, index, rank, dims, &index));
    NPU_TRY(onnx_map(n, ISA_BOOL, "eq in1", NULL, 2, (struct graph_value *[]){index, range}, &y));
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
    int64_t rows = x->dims[x->rank - 2], cols = x->dims[x->rank - 1];
    if (rows && cols > (1 << 26) / rows)
        return npu_fail(UNSUPPORTED, "a mask of %lld x %lld", (long long)rows, (long long)cols);
    uint8_t *keep = arena_alloc(n->m->arena, (size_t)(rows * cols) + 1);
    k = num_clamp_i64(k, -rows - 1, cols + 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            keep[i * cols + j] = upper ? j - i >= k : j - i <= k;
    struct graph_value *mask =
        graph_add_const(n->m->g, n->label, ISA_BOOL, 2, (int64_t[]){rows, cols}, keep);
    NPU_TRY(onnx_map(n, x->dtype, "sel in1 0", NULL, 2, (struct graph_value *[]){mask, x}, &y));
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
