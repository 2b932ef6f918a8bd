// SPDX-License-Identifier: Apache-2.0
//
// Reductions: the axes come as attribute or input, depending on op and opset.

#include <string.h>

#include "toolchain/frontend/common/functions.h"
#include "toolchain/frontend/onnx/import.h"

// The reduced dimensions, sorted. *noop: no axes were given and noop_with_empty_axes says to do
// nothing.
static npu_status read_axes(struct onnx_node *n, int64_t *sorted, int *count, bool *noop) {
    int64_t axes[GRAPH_MAX_RANK];
    int rank = n->in[0]->rank, given = onnx_ints_into(n, "axes", axes, GRAPH_MAX_RANK);
    unsigned mask;
    if (given < 0) given = 0;
    if (onnx_given(n, 1)) NPU_TRY(onnx_const_ints(n, 1, axes, GRAPH_MAX_RANK, &given));
    *noop = !given && onnx_int(n, "noop_with_empty_axes", 0) != 0;
    if (!given)
        for (given = 0; given < rank; given++)
            axes[given] = given;
    *count = given;
    return onnx_axes(n, axes, given, rank, sorted, &mask);
}

// What is done before and after the core reduction.
static const struct {
    const char *op, *before, *mode, *after;
} forms[] = {
    {"ReduceSum", NULL, "sum", NULL},     {"ReduceMean", NULL, "mean", NULL},
    {"ReduceMax", NULL, "max", NULL},     {"ReduceMin", NULL, "min", NULL},
    {"ReduceProd", NULL, "prod", NULL},   {"ReduceSumSquare", NULL, "sumsq", NULL},
    {"ReduceL1", "abs", "sum", NULL},     {"ReduceL2", NULL, "sumsq", "sqrt"},
    {"ReduceLogSum", NULL, "sum", "log"}, {"ReduceLogSumExp", NULL, "sum", "log"},
};

npu_status import_reduce(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 2));
    struct graph_value *y = n->in[0];
    int64_t axes[GRAPH_MAX_RANK];
    int count;
    bool noop, keepdims = onnx_int(n, "keepdims", 1) != 0;
    NPU_TRY(read_axes(n, axes, &count, &noop));
    if (noop) count = 0;
    size_t k = 0;
    while (strcmp(forms[k].op, n->op) != 0)
        NPU_ASSERT(++k < sizeof forms / sizeof *forms);
    if (!strcmp(n->op, "ReduceLogSumExp") && count) {
        NPU_TRY(build_log_sum_exp(&n->b, y, count, axes, keepdims, &y));
        return onnx_bind(n, 0, y);
    }
    if (noop && !forms[k].before && !forms[k].after && strcmp(forms[k].mode, "sumsq") != 0)
        return onnx_bind(n, 0, y);
    if (forms[k].before) NPU_TRY(onnx_map1(n, forms[k].before, y, &y));
    NPU_TRY(onnx_reduce(n, y, forms[k].mode, count, axes, keepdims, &y));
    if (forms[k].after) NPU_TRY(onnx_map1(n, forms[k].after, y, &y));
    return onnx_bind(n, 0, y);
}

// The last of equal elements is the first in reverse.
static npu_status reversed(struct onnx_node *n, struct graph_value *x, int axis,
                           struct graph_value **out) {
    int64_t starts[GRAPH_MAX_RANK] = {0}, steps[GRAPH_MAX_RANK];
    for (int d = 0; d < x->rank; d++)
        steps[d] = 1;
    starts[axis] = x->dims[axis] - 1;
    steps[axis] = -1;
    return onnx_slice(n, x, starts, x->dims, steps, out);
}

npu_status import_argmax(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *x = n->in[0], *y;
    int axis;
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", 0), x->rank, &axis));
    bool last = onnx_int(n, "select_last_index", 0) != 0;
    double size = (double)x->dims[axis];
    if (!x->dims[axis]) return npu_fail(BAD_INPUT, "dimension %d of '%s' is empty", axis, x->name);
    // Unsigned integers need a signed type; -1 - x exists for every integer.
    bool whole = isa_dtype_is_int(x->dtype);
    enum isa_dtype type = whole ? ISA_I64 : x->dtype;
    if (!strcmp(n->op, "ArgMin"))
        NPU_TRY(onnx_map(n, type, whole ? "rsub -1" : "neg", NULL, 1, &x, &x));
    if (last) NPU_TRY(reversed(n, x, axis, &x));
    NPU_TRY(build_argmax(&n->b, x, axis, onnx_int(n, "keepdims", 1) != 0, &y));
    if (last) {
        double top = size - 1;
        NPU_TRY(onnx_map(n, ISA_I64, "rsub $0", &top, 1, &y, &y));
    }
    return onnx_bind(n, 0, y);
}
