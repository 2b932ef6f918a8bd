// SPDX-License-Identifier: Apache-2.0
//
// Sorting without a branch, in two ways. x is [rows, n]; an element is before another when it is
// larger (smaller), or equal and has a smaller index.
//
//   all pairs   rank[i] = how many j are before i; value at place p = sum over i of
//               (rank[i] == p ? x[i] : 0), which has one term
//   one by one  the largest of those left; its index is the smallest that has it; it is taken
//               away; count times
//
// What is not a number is above infinity: it counts as infinity, and a flag decides between these.
#include "toolchain/frontend/common/sort.h"

#include <math.h>

// Comparisons of all pairs, and places taken one by one.
enum { PAIRS_MAX = 1 << 22, TURNS_MAX = 64 };

struct rows {
    const struct build *b;
    struct graph_value *x; // [rows, n]
    int64_t nrow, n, count;
    bool largest;
    struct graph_value *number; // i64 [n]: 0, 1, ..
    struct graph_value *finite; // x, infinity for what is not a number
    struct graph_value *odd;    // i8, as x: 1 where it is not a number; NULL: integers
};

static npu_status reshape3(const struct rows *r, struct graph_value *v, int64_t d1, int64_t d2,
                           struct graph_value **out) {
    return build_reshape(r->b, v, 3, (int64_t[]){r->nrow, d1, d2}, out);
}

static struct graph_value *numbers(const struct build *b, int64_t n) {
    int64_t *v = ARENA_ARRAY(b->arena, int64_t, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        v[i] = i;
    return build_new_const(b, ISA_I64, 1, &n, v);
}

// Infinity and not a number, which compared as equal.
static npu_status odd_ranks(const struct rows *r, struct graph_value **before) {
    struct graph_value *in[3] = {*before};
    NPU_TRY(reshape3(r, r->odd, 1, r->n, &in[1])); // j
    NPU_TRY(reshape3(r, r->odd, r->n, 1, &in[2])); // i
    return build_map(r->b, ISA_I32,
                     r->largest ? "mov in1; ne in2; sel in1 in0" : "mov in1; ne in2; sel in2 in0",
                     NULL, 3, in, before);
}

// rank: i32 [rows, 1, n].
static npu_status ranks(const struct rows *r, struct graph_value **rank) {
    const int64_t n = r->n, square[2] = {n, n}, last[1] = {2};
    uint8_t *earlier = arena_alloc(r->b->arena, (size_t)(n * n));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            earlier[i * n + j] = j < i;
    struct graph_value *in[3], *before;
    NPU_TRY(reshape3(r, r->finite, 1, n, &in[0])); // j
    NPU_TRY(reshape3(r, r->finite, n, 1, &in[1])); // i
    in[2] = build_new_const(r->b, ISA_BOOL, 2, square, earlier);
    NPU_TRY(build_map(r->b, ISA_I32,
                      r->largest ? "eq in1; mul in2 =tmp; mov in0; gt in1; add tmp"
                                 : "eq in1; mul in2 =tmp; mov in0; lt in1; add tmp",
                      NULL, 3, in, &before));
    if (r->odd) NPU_TRY(odd_ranks(r, &before));
    NPU_TRY(build_reduce(r->b, before, "sum", 1, last, true, &before));
    return reshape3(r, before, 1, n, rank);
}

// What of v, [rows or 1, 1, n], has the ranks 0 .. count - 1: [rows, count].
static npu_status placed(const struct rows *r, struct graph_value *rank, struct graph_value *v,
                         struct graph_value **out) {
    const int64_t last[1] = {2};
    struct graph_value *in[3] = {rank, NULL, v};
    NPU_TRY(build_reshape(r->b, numbers(r->b, r->count), 2, (int64_t[]){r->count, 1}, &in[1]));
    NPU_TRY(build_map(r->b, v->dtype, "eq in1; sel in2 0", NULL, 3, in, out));
    return build_reduce(r->b, *out, "sum", 1, last, false, out);
}

static npu_status by_pairs(const struct rows *r, struct graph_value **values,
                           struct graph_value **indices) {
    struct graph_value *rank, *x;
    NPU_TRY(ranks(r, &rank));
    NPU_TRY(reshape3(r, r->x, 1, r->n, &x));
    NPU_TRY(placed(r, rank, x, values));
    return placed(r, rank, r->number, indices);
}

// One turn: left is 1 where an element has not been taken. order: distinct, below 2n; the smallest
// of equal elements is taken, and is what *index becomes.
static npu_status take(const struct rows *r, struct graph_value *order, struct graph_value **left,
                       struct graph_value **value, struct graph_value **index) {
    const int64_t last[1] = {1};
    const double none[1] = {r->largest ? (double)-INFINITY : (double)INFINITY};
    const double beyond[1] = {2 * (double)r->n};
    struct graph_value *hit;
    NPU_TRY(build_map(r->b, r->finite->dtype, "ne 0; sel in1 $0", none, 2,
                      (struct graph_value *[]){*left, r->finite}, value));
    NPU_TRY(build_reduce(r->b, *value, r->largest ? "max" : "min", 1, last, true, value));
    NPU_TRY(build_map(r->b, ISA_I64, "eq in1; mul in2", NULL, 3,
                      (struct graph_value *[]){r->finite, *value, *left}, &hit));
    NPU_TRY(build_map(r->b, ISA_I64, "ne 0; sel in1 $0", beyond, 2,
                      (struct graph_value *[]){hit, order}, index));
    NPU_TRY(build_reduce(r->b, *index, "min", 1, last, true, index));
    return build_map(r->b, ISA_I64, "ne in1; mul in2", NULL, 3,
                     (struct graph_value *[]){order, *index, *left}, left);
}

// order: the indices, n more for those that come last among what counts as infinite.
static npu_status turn_order(const struct rows *r, struct graph_value **order) {
    const double n = (double)r->n;
    struct graph_value *in[2] = {r->odd, r->number};
    return build_map(r->b, ISA_I64, r->largest ? "eq 0; mul $0; add in1" : "mul $0; add in1", &n, 2,
                     in, order);
}

static npu_status by_turns(const struct rows *r, struct graph_value **values,
                           struct graph_value **indices) {
    struct graph_value *value[TURNS_MAX], *index[TURNS_MAX], *left, *order;
    const double params[2] = {(double)r->n, (double)NAN};
    int64_t *ones = ARENA_ARRAY(r->b->arena, int64_t, (size_t)r->n);
    for (int64_t i = 0; i < r->n; i++)
        ones[i] = 1;
    left = build_new_const(r->b, ISA_I64, 1, &r->n, ones);
    NPU_TRY(turn_order(r, &order));
    for (int64_t k = 0; k < r->count; k++)
        NPU_TRY(take(r, order, &left, &value[k], &index[k]));
    NPU_TRY(build_concat(r->b, (int)r->count, value, 1, values));
    NPU_TRY(build_concat(r->b, (int)r->count, index, 1, indices));
    NPU_TRY(build_map(r->b, r->x->dtype, r->largest ? "lt $0; sel $1 in1" : "ge $0; sel $1 in1",
                      params, 2, (struct graph_value *[]){*indices, *values}, values));
    return build_map(r->b, ISA_I64, "mod $0", params, 1, indices, indices);
}

// [rows, count] to the shape of x, axis as it was.
static npu_status back(const struct rows *r, const struct graph_value *x, int axis,
                       struct graph_value **v) {
    int64_t dims[GRAPH_MAX_RANK], perm[GRAPH_MAX_RANK];
    for (int d = 0, at = 0; d < x->rank; d++)
        if (d != axis) dims[at++] = x->dims[d];
    dims[x->rank - 1] = r->count;
    NPU_TRY(build_reshape(r->b, *v, x->rank, dims, v));
    for (int d = 0; d < x->rank; d++)
        perm[d] = d < axis ? d : d == axis ? x->rank - 1 : d - 1;
    return build_transpose(r->b, *v, perm, v);
}

npu_status build_sort(const struct build *b, struct graph_value *x, int axis, int64_t count,
                      bool largest, struct graph_value **values, struct graph_value **indices) {
    int64_t perm[GRAPH_MAX_RANK];
    const int64_t n = x->dims[axis], nrow = n ? graph_value_elems(x) / n : 0;
    struct rows r = {b, x, nrow, n, count, largest, NULL, NULL, NULL};
    if (count < 1 || count > n)
        return npu_fail(BAD_INPUT, "%lld of %lld elements", (long long)count, (long long)n);
    for (int d = 0; d < x->rank; d++)
        perm[d] = d < axis ? d : d < x->rank - 1 ? d + 1 : axis;
    NPU_TRY(build_transpose(b, x, perm, &r.x));
    NPU_TRY(build_reshape(b, r.x, 2, (int64_t[]){nrow, n}, &r.x));
    r.number = numbers(b, n);
    r.finite = r.x;
    if (isa_dtype_is_float((int)x->dtype)) {
        NPU_TRY(build_map(b, ISA_I8, "ne in0", NULL, 1, &r.x, &r.odd));
        NPU_TRY(build_map(b, x->dtype, "ne in0; sel inf in0", NULL, 1, &r.x, &r.finite));
    }
    bool pairs = n <= PAIRS_MAX / n && nrow <= PAIRS_MAX / (n * n);
    if (!pairs && (count > TURNS_MAX || !isa_dtype_is_float((int)x->dtype)))
        return npu_fail(UNSUPPORTED,
                        "the order of %lld rows of %lld elements: sorted are at most %d pairs, or "
                        "up to %d floating elements chosen",
                        (long long)nrow, (long long)n, PAIRS_MAX, TURNS_MAX);
    NPU_TRY(pairs ? by_pairs(&r, values, indices) : by_turns(&r, values, indices));
    NPU_TRY(back(&r, x, axis, values));
    return back(&r, x, axis, indices);
}
