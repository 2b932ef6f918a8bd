// SPDX-License-Identifier: Apache-2.0
//
// Reductions.

#include <string.h>

#include "toolchain/frontend/common/functions.h"
#include "toolchain/frontend/pt2/import.h"

static bool starts(const struct pt2_node *n, const char *text) {
    return !strncmp(n->target, text, strlen(text));
}

static bool has_argument(const struct pt2_node *n, const char *name) {
    return strstr(n->row->args, name) != NULL;
}

// Dimensions and keepdim, of overloads that have them.
static int read_axes(struct pt2_node *n, const struct graph_value *x, int64_t *axes,
                     bool *keepdim) {
    *keepdim = has_argument(n, "keepdim") && pt2_bool(n, "keepdim");
    if (has_argument(n, " dim")) return pt2_axes(n, "dim", x->rank, axes);
    for (int d = 0; d < x->rank; d++)
        axes[d] = d;
    return x->rank;
}

npu_status aten_reduce(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self");
    int64_t axes[GRAPH_MAX_RANK];
    bool keepdim;
    int count = read_axes(n, x, axes, &keepdim);
    const char *mode = starts(n, "sum")           ? "sum"
                       : starts(n, "mean")        ? "mean"
                       : starts(n, "prod")        ? "prod"
                       : strstr(n->target, "max") ? "max"
                                                  : "min";
    enum isa_dtype type = pt2_out_dtype(n, 0);
    if (n->failed) return NULL;
    if (type == ISA_DTYPE_NONE) type = x->dtype;
    NPU_TRY(pt2_cast(n, x, type, &x));
    if (*mode == 's' || *mode == 'p') NPU_TRY(pt2_widen(n, x, &x));
    if (count) NPU_TRY(build_reduce(&n->b, x, mode, count, axes, keepdim, &x));
    NPU_TRY(pt2_cast(n, x, type, &x));
    return pt2_bind(n, 0, x);
}

// ---- largest and smallest --------------------------------------------------------------------

static npu_status where_largest(struct pt2_node *n, struct graph_value *x, int axis, bool most,
                                bool keepdim, struct graph_value **out) {
    // Unsigned integers need a signed type; -1 - x exists for every integer.
    bool whole = isa_dtype_is_int(x->dtype);
    enum isa_dtype type = whole ? ISA_I64 : x->dtype;
    if (!most) NPU_TRY(build_map(&n->b, type, whole ? "rsub -1" : "neg", NULL, 1, &x, &x));
    return build_argmax(&n->b, x, axis, keepdim, out);
}

npu_status aten_argmax(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    bool keepdim = pt2_bool(n, "keepdim");
    int axis = 0, rank = x->rank;
    if (pt2_given(n, "dim")) {
        axis = pt2_axis(n, "dim", rank);
        if (!rank) NPU_TRY(build_reshape(&n->b, x, 1, (int64_t[]){1}, &x));
    } else {
        NPU_TRY(build_reshape(&n->b, x, 1, (int64_t[]){graph_value_elems(x)}, &x));
    }
    if (n->failed) return NULL;
    if (!x->dims[axis]) return npu_fail(BAD_INPUT, "dimension %d of '%s' is empty", axis, x->name);
    NPU_TRY(where_largest(n, x, axis, starts(n, "argmax"), keepdim && rank, &y));
    if (keepdim && !pt2_given(n, "dim")) {
        int64_t ones[GRAPH_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
        NPU_TRY(build_reshape(&n->b, y, rank, ones, &y));
    } else if (!rank) {
        NPU_TRY(build_reshape(&n->b, y, 0, NULL, &y));
    }
    return pt2_bind(n, 0, y);
}

// Results: the elements, their indices.
npu_status aten_max_dim(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    int axis = pt2_axis(n, "dim", x->rank);
    bool keepdim = pt2_bool(n, "keepdim"), most = starts(n, "max");
    int64_t axes[1] = {axis};
    if (n->failed) return NULL;
    if (!x->rank || !x->dims[axis])
        return npu_fail(UNSUPPORTED, "'%s' has no such dimension", x->name);
    if (pt2_used(n, 0)) {
        NPU_TRY(build_reduce(&n->b, x, most ? "max" : "min", 1, axes, keepdim, &y));
        NPU_TRY(pt2_bind(n, 0, y));
    }
    if (!pt2_used(n, 1)) return NULL;
    NPU_TRY(where_largest(n, x, axis, most, keepdim, &y));
    return pt2_bind(n, 1, y);
}

npu_status aten_any(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self");
    int64_t axes[GRAPH_MAX_RANK];
    bool keepdim;
    int count = read_axes(n, x, axes, &keepdim);
    if (n->failed) return NULL;
    NPU_TRY(build_cast(&n->b, x, ISA_BOOL, &x));
    if (count)
        NPU_TRY(build_reduce(&n->b, x, starts(n, "any") ? "max" : "min", count, axes, keepdim, &x));
    NPU_TRY(build_cast(&n->b, x, pt2_out_dtype(n, 0), &x));
    return pt2_bind(n, 0, x);
}

// ---- statistics ------------------------------------------------------------------------------

struct variance {
    struct graph_value *x;
    int64_t axes[GRAPH_MAX_RANK];
    int count;
    bool keepdim, root;
    double divisor; // elements less the correction
};

static npu_status read_variance(struct pt2_node *n, struct variance *v) {
    v->x = pt2_need(n, "self");
    v->count = read_axes(n, v->x, v->axes, &v->keepdim);
    v->root = starts(n, "std");
    double correction = 1;
    if (has_argument(n, "correction") && pt2_given(n, "correction"))
        correction = pt2_float(n, "correction");
    if (has_argument(n, "unbiased")) correction = pt2_bool(n, "unbiased");
    v->divisor = 1;
    for (int k = 0; k < v->count; k++)
        v->divisor *= (double)v->x->dims[v->axes[k]];
    v->divisor -= correction;
    if (v->divisor > 0) return NULL;
    return npu_fail(UNSUPPORTED, "a variance with %g degrees of freedom", v->divisor);
}

static npu_status variance(struct pt2_node *n, const struct variance *v, struct graph_value *mean,
                           struct graph_value **out) {
    struct graph_value *d;
    NPU_TRY(build_map(&n->b, ISA_F32, "sub in1; mul acc", NULL, 2,
                      (struct graph_value *[]){v->x, mean}, &d));
    NPU_TRY(build_reduce(&n->b, d, "sum", v->count, v->axes, v->keepdim, &d));
    return build_map(&n->b, v->x->dtype, v->root ? "div $0; sqrt" : "div $0", &v->divisor, 1, &d,
                     out);
}

npu_status aten_var(struct pt2_node *n) {
    struct variance v;
    struct graph_value *mean, *y;
    NPU_TRY(read_variance(n, &v));
    if (n->failed) return NULL;
    NPU_TRY(build_reduce(&n->b, v.x, "mean", v.count, v.axes, true, &mean));
    NPU_TRY(variance(n, &v, mean, &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_var_mean(struct pt2_node *n) {
    struct variance v;
    struct graph_value *mean, *y;
    NPU_TRY(read_variance(n, &v));
    if (n->failed) return NULL;
    NPU_TRY(build_reduce(&n->b, v.x, "mean", v.count, v.axes, true, &mean));
    NPU_TRY(variance(n, &v, mean, &y));
    NPU_TRY(pt2_bind(n, 0, y));
    NPU_TRY(build_reshape(&n->b, mean, y->rank, y->dims, &mean));
    return pt2_bind(n, 1, mean);
}

npu_status aten_logsumexp(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    int64_t axes[GRAPH_MAX_RANK];
    bool keepdim;
    int count = read_axes(n, x, axes, &keepdim);
    if (n->failed) return NULL;
    NPU_TRY(build_cast(&n->b, x, pt2_out_dtype(n, 0), &x));
    NPU_TRY(build_log_sum_exp(&n->b, x, count, axes, keepdim, &y));
    return pt2_bind(n, 0, y);
}

// x1 . x2 / (max(|x1|, eps) * max(|x2|, eps))
npu_status aten_cosine_similarity(struct pt2_node *n) {
    struct graph_value *in[2] = {pt2_need(n, "x1"), pt2_need(n, "x2")}, *dot, *norm[2];
    double eps = pt2_float(n, "eps");
    int rank = in[0]->rank > in[1]->rank ? in[0]->rank : in[1]->rank;
    int64_t axes[1] = {pt2_axis(n, "dim", rank)};
    if (n->failed) return NULL;
    if (in[0]->rank != in[1]->rank || !rank)
        return npu_fail(UNSUPPORTED, "operands of ranks %d and %d", in[0]->rank, in[1]->rank);
    NPU_TRY(build_map2(&n->b, "mul in1", in[0], in[1], &dot));
    NPU_TRY(build_reduce(&n->b, dot, "sum", 1, axes, false, &dot));
    for (int k = 0; k < 2; k++) {
        NPU_TRY(build_reduce(&n->b, in[k], "sumsq", 1, axes, false, &norm[k]));
        NPU_TRY(build_map(&n->b, ISA_DTYPE_NONE, "sqrt; max $0", &eps, 1, &norm[k], &norm[k]));
    }
    NPU_TRY(build_map(&n->b, dot->dtype, "div in1; div in2", NULL, 3,
                      (struct graph_value *[]){dot, norm[0], norm[1]}, &dot));
    return pt2_bind(n, 0, dot);
}
