// SPDX-License-Identifier: Apache-2.0
//
// Replacing rows by index is a gather too: each row of the result comes from the updates or from
// the data.
//
//   known indices      from[row] = number of its update, or -1: gather the updates, select
//   few, not known     one update after another: where the row's number is the index, select
//   many, not known    from[row] = largest number of an update whose index is the row
//
// Adding at indices that are not known is a product with the matrix of (row == index).

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/common/functions.h"
#include "toolchain/frontend/common/indexing.h"

enum { ROUNDS = 16, EACH_MAX = 4, ROWS_MAX = 1 << 26 };

// [outer, n, inner], without an outer dimension of 1.
static int shape_of(const struct scatter *s, int64_t n, bool wide, int64_t *dims) {
    int rank = 0;
    if (s->outer != 1) dims[rank++] = wide ? s->outer : 1;
    dims[rank++] = n;
    dims[rank++] = wide ? s->inner : 1;
    return rank;
}

static struct graph_value *row_numbers(const struct build *b, const struct scatter *s) {
    int64_t dims[3], *numbers = ARENA_ARRAY(b->arena, int64_t, (size_t)s->rows + 1);
    int rank = shape_of(s, s->rows, false, dims);
    for (int64_t k = 0; k < s->rows; k++)
        numbers[k] = k;
    return graph_add_const(b->g, b->label, ISA_I64, rank, dims, numbers);
}

// mask ? combine(data, chosen) : data
static npu_status combine(const struct build *b, const struct scatter *s, struct graph_value *mask,
                          struct graph_value *chosen, struct graph_value *data,
                          struct graph_value **out) {
    static const char *const chains[][2] = {{"none", "sel in1 in2"},
                                            {"add", "mov in1; add in2 =tmp; mov in0; sel tmp in2"},
                                            {"mul", "mov in1; mul in2 =tmp; mov in0; sel tmp in2"},
                                            {"max", "mov in1; max in2 =tmp; mov in0; sel tmp in2"},
                                            {"min", "mov in1; min in2 =tmp; mov in0; sel tmp in2"}};
    for (size_t k = 0; k < sizeof chains / sizeof *chains; k++)
        if (!strcmp(chains[k][0], s->reduction))
            return build_map(b, data->dtype, chains[k][1], NULL, 3,
                             (struct graph_value *[]){mask, chosen, data}, out);
    return npu_fail(BAD_INPUT, "reduction '%s'", s->reduction);
}

// ---- known indices ---------------------------------------------------------------------------

// Which update each row gets in each round, -1: none. Without a reduction the last update counts;
// with one, a row that is updated again takes the next round.
struct rounds {
    int count;
    int64_t *from[ROUNDS];
};

static npu_status place(const struct build *b, const struct scatter *s, struct rounds *r,
                        int64_t row, int64_t update) {
    int k = 0;
    bool replaces = !strcmp(s->reduction, "none");
    while (!replaces && k < r->count && r->from[k][row] >= 0)
        k++;
    if (k == ROUNDS)
        return npu_fail(UNSUPPORTED, "an element that is updated more than %d times", ROUNDS);
    if (k == r->count) {
        r->from[k] = ARENA_ARRAY(b->arena, int64_t, (size_t)s->rows + 1);
        for (int64_t i = 0; i < s->rows; i++)
            r->from[k][i] = -1;
        r->count++;
    }
    r->from[k][row] = update;
    return NULL;
}

static npu_status one_round(const struct build *b, const struct scatter *s, const int64_t *from,
                            struct graph_value *updates, struct graph_value *data,
                            struct graph_value **out) {
    int64_t dims[3], *index = ARENA_ARRAY(b->arena, int64_t, (size_t)s->rows + 1);
    int rank = shape_of(s, s->rows, false, dims);
    uint8_t *taken = arena_alloc(b->arena, (size_t)s->rows + 1);
    for (int64_t k = 0; k < s->rows; k++) {
        taken[k] = from[k] >= 0;
        index[k] = from[k] >= 0 ? from[k] : 0;
    }
    struct graph_value *mask = graph_add_const(b->g, b->label, ISA_BOOL, rank, dims, taken),
                       *where = graph_add_const(b->g, b->label, ISA_I64, 1, &s->rows, index),
                       *chosen;
    NPU_TRY(build_gather(b, updates, where, rank - 2, &chosen));
    return combine(b, s, mask, chosen, data, out);
}

static npu_status at_known(const struct build *b, const struct scatter *s,
                           const struct graph_value *index, struct graph_value *updates,
                           struct graph_value **data) {
    struct rounds r = {.count = 0};
    for (int64_t k = 0; k < s->count; k++) {
        int64_t row = num_load_i64(index->dtype, index->data, k);
        if (row < 0 || row >= s->rows)
            return npu_fail(BAD_INPUT, "index %lld of %lld", (long long)row, (long long)s->rows);
        NPU_TRY(place(b, s, &r, row, k));
    }
    for (int k = 0; k < r.count; k++)
        NPU_TRY(one_round(b, s, r.from[k], updates, *data, data));
    return NULL;
}

// ---- indices of run time ---------------------------------------------------------------------

static npu_status one_by_one(const struct build *b, const struct scatter *s,
                             struct graph_value *index, struct graph_value *updates,
                             struct graph_value **data) {
    struct graph_value *range = row_numbers(b, s), *own, *row, *hit;
    int64_t start[3] = {0}, size[3], step[3] = {1, 1, 1}, one[3];
    int rank = shape_of(s, 1, true, size);
    shape_of(s, 1, false, one);
    for (int64_t k = 0; k < s->count; k++) {
        NPU_TRY(build_slice(b, index, &k, step, step, &own));
        NPU_TRY(build_reshape(b, own, rank, one, &own));
        start[rank - 2] = k;
        NPU_TRY(build_slice(b, updates, start, size, step, &row));
        NPU_TRY(
            build_map(b, ISA_BOOL, "eq in1", NULL, 2, (struct graph_value *[]){range, own}, &hit));
        NPU_TRY(combine(b, s, hit, row, *data, data));
    }
    return NULL;
}

// hit[row][k] = (row == index[k])
static npu_status hits(const struct build *b, const struct scatter *s, struct graph_value *index,
                       struct graph_value **out) {
    struct graph_value *range = row_numbers(b, s);
    if (s->count > ROWS_MAX / s->rows)
        return npu_fail(UNSUPPORTED, "%lld updates of %lld rows at indices computed at run time",
                        (long long)s->count, (long long)s->rows);
    NPU_TRY(build_reshape(b, range, 2, (int64_t[]){s->rows, 1}, &range));
    NPU_TRY(build_reshape(b, index, 2, (int64_t[]){1, s->count}, &index));
    return build_map(b, ISA_BOOL, "eq in1", NULL, 2, (struct graph_value *[]){range, index}, out);
}

static npu_status last_of_many(const struct build *b, const struct scatter *s,
                               struct graph_value *index, struct graph_value *updates,
                               struct graph_value **data) {
    struct graph_value *hit, *from, *mask, *chosen;
    int64_t dims[3], axis = 1, *numbers = ARENA_ARRAY(b->arena, int64_t, (size_t)s->count + 1);
    int rank = shape_of(s, s->rows, false, dims);
    for (int64_t k = 0; k < s->count; k++)
        numbers[k] = k + 1;
    struct graph_value *number =
        graph_add_const(b->g, b->label, ISA_I64, 2, (int64_t[]){1, s->count}, numbers);
    NPU_TRY(hits(b, s, index, &hit));
    NPU_TRY(build_map(b, ISA_I64, "mul in1", NULL, 2, (struct graph_value *[]){hit, number}, &hit));
    NPU_TRY(build_reduce(b, hit, "max", 1, &axis, false, &from)); // 0: no update
    NPU_TRY(build_map(b, ISA_BOOL, "gt 0", NULL, 1, &from, &mask));
    NPU_TRY(build_reshape(b, mask, rank, dims, &mask));
    NPU_TRY(build_map(b, ISA_I64, "sub 1; max 0", NULL, 1, &from, &from));
    NPU_TRY(build_gather(b, updates, from, rank - 2, &chosen));
    return combine(b, s, mask, chosen, *data, data);
}

static npu_status sum_of_many(const struct build *b, const struct scatter *s,
                              struct graph_value *index, struct graph_value *updates,
                              struct graph_value **data) {
    struct graph_value *hit, *sum;
    NPU_TRY(hits(b, s, index, &hit));
    bool wide = isa_dtype_is_int(updates->dtype) && isa_dtype_bits(updates->dtype) > 8;
    NPU_TRY(build_cast(b, hit, updates->dtype, &hit));
    if (wide) // the matrix engine would round them
        NPU_TRY(build_integer_product(b, hit, updates, &sum));
    else
        NPU_TRY(build_matmul(b, hit, updates, false, false, &sum));
    return build_map(b, (*data)->dtype, "add in1", NULL, 2, (struct graph_value *[]){*data, sum},
                     data);
}

npu_status scatter_rows(const struct build *b, const struct scatter *s, struct graph_value *index,
                        struct graph_value **out) {
    struct graph_value *data, *updates;
    int64_t dims[3], own[3];
    int rank = shape_of(s, s->rows, true, dims);
    shape_of(s, s->count, true, own);
    if (s->rows > ROWS_MAX || graph_value_elems(s->data) != s->outer * s->rows * s->inner ||
        graph_value_elems(s->updates) != s->outer * s->count * s->inner)
        return npu_fail(BAD_INPUT,
                        "%lld updates of %lld elements, '%s' has %lld elements, '%s' %lld",
                        (long long)s->count, (long long)(s->outer * s->inner), s->updates->name,
                        (long long)graph_value_elems(s->updates), s->data->name,
                        (long long)graph_value_elems(s->data));
    *out = s->data;
    if (!s->count || !graph_value_elems(s->data)) return NULL;
    NPU_TRY(build_reshape(b, index, 1, &s->count, &index));
    NPU_TRY(build_reshape(b, s->data, rank, dims, &data));
    NPU_TRY(build_reshape(b, s->updates, rank, own, &updates));
    if (index->data)
        NPU_TRY(at_known(b, s, index, updates, &data));
    else if (s->count <= EACH_MAX)
        NPU_TRY(one_by_one(b, s, index, updates, &data));
    else if (!strcmp(s->reduction, "none"))
        NPU_TRY(last_of_many(b, s, index, updates, &data));
    else if (!strcmp(s->reduction, "add"))
        NPU_TRY(sum_of_many(b, s, index, updates, &data));
    else
        return npu_fail(UNSUPPORTED,
                        "%lld updates with reduction %s at indices computed at run time, at most "
                        "%d",
                        (long long)s->count, s->reduction, EACH_MAX);
    return build_reshape(b, data, s->data->rank, s->data->dims, out);
}

npu_status scatter_positions(const struct build *b, const struct graph_value *x,
                             struct graph_value *index, int axis, struct graph_value **out) {
    int64_t elems = graph_value_elems(index), stride = 1;
    if (index->rank != x->rank || elems > ROWS_MAX || graph_value_elems(x) > ROWS_MAX)
        return npu_fail(BAD_INPUT, "indices '%s' of rank %d and %lld elements for '%s' of rank %d",
                        index->name, index->rank, (long long)elems, x->name, x->rank);
    for (int d = 0; d < x->rank; d++)
        if (d != axis && index->dims[d] > x->dims[d])
            return npu_fail(BAD_INPUT, "dimension %d of '%s' is larger than that of '%s'", d,
                            index->name, x->name);
    int64_t *offsets = ARENA_ARRAY(b->arena, int64_t, (size_t)elems + 1);
    for (int d = x->rank - 1; d >= 0; d--) {
        int64_t below = 1;
        for (int k = d + 1; k < x->rank; k++)
            below *= index->dims[k];
        for (int64_t k = 0; d != axis && k < elems; k++)
            offsets[k] += k / below % index->dims[d] * stride;
        stride *= x->dims[d];
    }
    double step = 1;
    for (int d = axis + 1; d < x->rank; d++)
        step *= (double)x->dims[d];
    struct graph_value *base =
        graph_add_const(b->g, b->label, ISA_I64, index->rank, index->dims, offsets);
    NPU_TRY(index_within(b, index, x->rank ? x->dims[axis] : 1, &index));
    return build_map(b, ISA_I64, "mul $0; add in1", &step, 2, (struct graph_value *[]){index, base},
                     out);
}
