// SPDX-License-Identifier: Apache-2.0
//
// Order of elements, distances, and operators that are refused for a reason.

#include <math.h>
#include <string.h>

#include "toolchain/frontend/common/sort.h"
#include "toolchain/frontend/pt2/import.h"

static npu_status scalar_order(struct pt2_node *n, struct graph_value *x, bool values) {
    if (values) NPU_TRY(pt2_bind(n, 0, x));
    return pt2_bind(n, values, build_new_ints(&n->b, 0, NULL, (int64_t[]){0}));
}

// Values and indices, or indices alone.
static npu_status ordered(struct pt2_node *n, int64_t count, bool largest, bool values) {
    struct graph_value *x = pt2_need(n, "self"), *v, *i;
    int axis = pt2_axis(n, "dim", x->rank);
    if (n->failed) return NULL;
    if (!x->rank) return scalar_order(n, x, values);
    if (count < 0) count = x->dims[axis];
    NPU_TRY(build_sort(&n->b, x, axis, count, largest, &v, &i));
    if (values) NPU_TRY(pt2_bind(n, 0, v));
    return pt2_bind(n, values, i);
}

npu_status aten_topk(struct pt2_node *n) {
    return ordered(n, pt2_int(n, "k"), pt2_bool(n, "largest"), true);
}

npu_status aten_sort(struct pt2_node *n) {
    return ordered(n, -1, pt2_bool(n, "descending"), true);
}

npu_status aten_argsort(struct pt2_node *n) {
    return ordered(n, -1, pt2_bool(n, "descending"), false);
}

// Distances of every row of x1 to every row of x2.
npu_status aten_cdist(struct pt2_node *n) {
    struct graph_value *a = pt2_need(n, "x1"), *b = pt2_need(n, "x2"), *y;
    double p = pt2_float(n, "p");
    int64_t dims[2][GRAPH_MAX_RANK], axes[1];
    if (n->failed) return NULL;
    if (a->rank != b->rank || a->rank < 2 || a->rank >= GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "operands of ranks %d and %d", a->rank, b->rank);
    bool most = isinf(p) && p > 0;
    if (p != 1 && p != 2 && !most)
        return npu_fail(UNSUPPORTED, "distances of order %g, expected 1, 2 or inf", p);
    int rank = a->rank;
    for (int d = 0; d < rank - 2; d++) {
        dims[0][d] = a->dims[d];
        dims[1][d] = b->dims[d];
    }
    dims[0][rank - 2] = a->dims[rank - 2];
    dims[0][rank - 1] = 1;
    dims[0][rank] = a->dims[rank - 1];
    dims[1][rank - 2] = 1;
    dims[1][rank - 1] = b->dims[rank - 2];
    dims[1][rank] = b->dims[rank - 1];
    axes[0] = rank;
    NPU_TRY(build_reshape(&n->b, a, rank + 1, dims[0], &a));
    NPU_TRY(build_reshape(&n->b, b, rank + 1, dims[1], &b));
    NPU_TRY(build_map2(&n->b, p == 2 ? "sub in1; mul acc" : "sub in1; abs", a, b, &y));
    NPU_TRY(build_reduce(&n->b, y, most ? "max" : "sum", 1, axes, false, &y));
    if (p == 2) NPU_TRY(build_map1(&n->b, "sqrt", y, &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_refused(struct pt2_node *n) {
    return npu_fail(UNSUPPORTED, "%s: %s", n->target, n->row->chain);
}
