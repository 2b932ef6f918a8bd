// SPDX-License-Identifier: Apache-2.0
//
// Normalisations, softmax and vector norms.

#include <math.h>
#include <string.h>

#include "toolchain/frontend/common/functions.h"
#include "toolchain/frontend/common/norm.h"
#include "toolchain/frontend/pt2/import.h"

// A scale or bias that was left out: `otherwise` for every channel.
static npu_status per_channel(struct pt2_node *n, const char *name, const struct graph_value *x,
                              double otherwise, struct graph_value **out) {
    *out = pt2_in(n, name);
    if (*out) return NULL;
    return build_expand(&n->b, build_new_scalar(&n->b, x->dtype, otherwise), 1, &x->dims[1], out);
}

static npu_status batch_norm(struct pt2_node *n) {
    struct graph_value *in[5] = {pt2_need(n, "input"), NULL, NULL, pt2_need(n, "running_mean"),
                                 pt2_need(n, "running_var")},
                       *y;
    if (n->failed) return NULL;
    if (in[0]->rank < 2)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 2 or more", in[0]->name,
                        in[0]->rank);
    NPU_TRY(per_channel(n, "weight", in[0], 1, &in[1]));
    NPU_TRY(per_channel(n, "bias", in[0], 0, &in[2]));
    struct graph_node *node = build_core(&n->b, GRAPH_BATCHNORM, 5, in);
    graph_set_float(n->m->g, node, GRAPH_ATTR_EPSILON, pt2_float(n, "eps"));
    NPU_TRY(build_emit(&n->b, node, &y));
    return pt2_bind(n, 0, y);
}

// Mean and deviation of the batch itself, per channel.
npu_status aten_batch_norm_own(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "input"), *y, *mean, *inverse;
    double epsilon = pt2_float(n, "eps");
    int64_t axes[GRAPH_MAX_RANK];
    int count = 0;
    if (n->failed) return NULL;
    if (x->rank < 2)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 2 or more", x->name, x->rank);
    if (pt2_used(n, 1) || pt2_used(n, 2))
        return npu_fail(UNSUPPORTED, "results beyond the first: mean and deviation");
    if (x->rank > 2 && x->dims[0] == 1) {
        NPU_TRY(norm_groups(&n->b, x, x->dims[1], epsilon, &y));
    } else {
        for (int d = 0; d < x->rank; d++)
            if (d != 1) axes[count++] = d;
        NPU_TRY(norm_statistics(&n->b, x, count, axes, epsilon, &mean, &inverse));
        NPU_TRY(build_map(&n->b, x->dtype, "sub in1; mul in2", NULL, 3,
                          (struct graph_value *[]){x, mean, inverse}, &y));
    }
    NPU_TRY(norm_channels(&n->b, y, pt2_in(n, "weight"), pt2_in(n, "bias"), &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_batch_norm(struct pt2_node *n) {
    if (pt2_bool(n, "training")) {
        if (!pt2_given(n, "running_mean")) return aten_batch_norm_own(n);
        return npu_fail(UNSUPPORTED,
                        "batch norm in training mode: export the model after model.eval()");
    }
    for (int k = 1; k < n->nout; k++)
        if (pt2_used(n, k))
            return npu_fail(UNSUPPORTED, "result %d ('%s') of batch norm", k, n->out[k]);
    return batch_norm(n);
}

npu_status aten_batch_norm_inference(struct pt2_node *n) {
    return batch_norm(n);
}

npu_status aten_instance_norm(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "input"), *y;
    if (n->failed) return NULL;
    if (!pt2_bool(n, "use_input_stats")) return batch_norm(n);
    if (x->rank < 3)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 3 or more", x->name, x->rank);
    NPU_TRY(norm_groups(&n->b, x, x->dims[1], pt2_float(n, "eps"), &y));
    NPU_TRY(norm_channels(&n->b, y, pt2_in(n, "weight"), pt2_in(n, "bias"), &y));
    return pt2_bind(n, 0, y);
}

static npu_status grouped(struct pt2_node *n, const char *groups) {
    struct graph_value *x = pt2_need(n, "input"), *y;
    int64_t count = pt2_int(n, groups);
    if (n->failed) return NULL;
    if (pt2_used(n, 1) || pt2_used(n, 2))
        return npu_fail(UNSUPPORTED, "results beyond the first: mean and deviation");
    NPU_TRY(norm_groups(&n->b, x, count, pt2_float(n, "eps"), &y));
    NPU_TRY(norm_channels(&n->b, y, pt2_in(n, "weight"), pt2_in(n, "bias"), &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_group_norm(struct pt2_node *n) {
    return grouped(n, "num_groups");
}

npu_status aten_native_group_norm(struct pt2_node *n) {
    return grouped(n, "group");
}

// The first of the normalised dimensions, which are the last ones.
static npu_status first_axis(struct pt2_node *n, const struct graph_value *x, int *axis) {
    int64_t shape[GRAPH_MAX_RANK];
    int count = pt2_ints(n, "normalized_shape", shape, GRAPH_MAX_RANK);
    *axis = x->rank - count;
    if (count >= 1 && *axis >= 0 && !memcmp(shape, x->dims + *axis, (size_t)count * sizeof *shape))
        return NULL;
    return npu_fail(BAD_INPUT, "normalized_shape is not the end of the shape of '%s'", x->name);
}

static npu_status scaled_norm(struct pt2_node *n, enum graph_op op, int axis, double epsilon) {
    struct graph_value *x = pt2_need(n, "input"), *in[3] = {x}, *y;
    struct graph_value *weight = pt2_in(n, "weight"),
                       *bias = op == GRAPH_LAYERNORM ? pt2_in(n, "bias") : NULL;
    int nin = 1;
    if (n->failed) return NULL;
    if (bias && !weight) weight = build_new_scalar(&n->b, x->dtype, 1);
    if (weight) NPU_TRY(norm_operand(&n->b, x, axis, weight, &in[nin++]));
    if (bias) NPU_TRY(norm_operand(&n->b, x, axis, bias, &in[nin++]));
    NPU_TRY(build_norm(&n->b, op, nin, in, axis, epsilon, &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_layer_norm(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "input"), *mean, *inverse;
    double epsilon = pt2_float(n, "eps");
    int64_t axes[GRAPH_MAX_RANK];
    int axis;
    NPU_TRY(first_axis(n, x, &axis));
    NPU_TRY(scaled_norm(n, GRAPH_LAYERNORM, axis, epsilon));
    if (n->failed || (!pt2_used(n, 1) && !pt2_used(n, 2))) return NULL;
    for (int d = axis; d < x->rank; d++)
        axes[d - axis] = d;
    NPU_TRY(norm_statistics(&n->b, x, x->rank - axis, axes, epsilon, &mean, &inverse));
    NPU_TRY(build_cast(&n->b, mean, pt2_out_dtype(n, 1), &mean));
    NPU_TRY(pt2_bind(n, 1, mean));
    return pt2_bind(n, 2, inverse);
}

// Without eps: what separates 1 from the next number of the type.
npu_status aten_rms_norm(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "input");
    double epsilon = pt2_given(n, "eps")    ? pt2_float(n, "eps")
                     : x->dtype == ISA_F16  ? 0.0009765625
                     : x->dtype == ISA_BF16 ? 0.0078125
                                            : 1.1920928955078125e-07;
    int axis;
    if (pt2_used(n, 1)) return npu_fail(UNSUPPORTED, "result 1 ('%s')", n->out[1]);
    NPU_TRY(first_axis(n, x, &axis));
    return scaled_norm(n, GRAPH_RMSNORM, axis, epsilon);
}

// ---- softmax ---------------------------------------------------------------------------------

npu_status aten_softmax(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    int axis = pt2_axis(n, "dim", x->rank);
    bool logarithm = strstr(n->target, "log_") != NULL;
    enum isa_dtype type = pt2_out_dtype(n, 0);
    if (n->failed) return NULL;
    if (type != ISA_DTYPE_NONE) NPU_TRY(build_cast(&n->b, x, type, &x));
    if (!x->rank) NPU_TRY(build_reshape(&n->b, x, 1, (int64_t[]){1}, &x));
    NPU_TRY(build_softmax(&n->b, x, axis, logarithm, &y));
    if (!strncmp(n->target, "_safe", 5)) { // a row of -inf gives 0
        struct graph_value *most;
        double lowest = -HUGE_VAL;
        int64_t axes[1] = {axis};
        NPU_TRY(build_reduce(&n->b, x, "max", 1, axes, true, &most));
        NPU_TRY(build_map(&n->b, y->dtype, "mov in1; ne $0; sel in0 0", &lowest, 2,
                          (struct graph_value *[]){y, most}, &y));
    }
    return pt2_bind(n, 0, y);
}

// ---- norms -----------------------------------------------------------------------------------

static npu_status norm(struct pt2_node *n, double p, int count, const int64_t *axes, bool keepdim) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    enum isa_dtype type = pt2_out_dtype(n, 0);
    if (n->failed) return NULL;
    if (type != ISA_DTYPE_NONE) NPU_TRY(build_cast(&n->b, x, type, &x));
    if (p == 2) {
        NPU_TRY(build_reduce(&n->b, x, "sumsq", count, axes, keepdim, &y));
        NPU_TRY(build_map1(&n->b, "sqrt", y, &y));
        return pt2_bind(n, 0, y);
    }
    if (p == 0) {
        NPU_TRY(build_map(&n->b, x->dtype, "ne 0", NULL, 1, &x, &y));
    } else {
        NPU_TRY(build_map1(&n->b, "abs", x, &y));
        if (isfinite(p) && p != 1)
            NPU_TRY(build_pow(&n->b, y, build_new_scalar(&n->b, ISA_F32, p), &y));
    }
    NPU_TRY(build_reduce(&n->b, y,
                         isfinite(p) ? "sum"
                         : p > 0     ? "max"
                                     : "min",
                         count, axes, keepdim, &y));
    if (isfinite(p) && p != 0 && p != 1)
        NPU_TRY(build_pow(&n->b, y, build_new_scalar(&n->b, ISA_F32, 1 / p), &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_vector_norm(struct pt2_node *n) {
    int64_t axes[GRAPH_MAX_RANK];
    int count = pt2_axes(n, "dim", pt2_need(n, "self")->rank, axes);
    return norm(n, pt2_float(n, "ord"), count, axes, pt2_bool(n, "keepdim"));
}

npu_status aten_vector_norm_dim(struct pt2_node *n) {
    int64_t axes[GRAPH_MAX_RANK];
    int count = pt2_axes(n, "dim", pt2_need(n, "self")->rank, axes);
    return norm(n, pt2_given(n, "p") ? pt2_float(n, "p") : 2, count, axes, pt2_bool(n, "keepdim"));
}

npu_status aten_vector_norm_all(struct pt2_node *n) {
    int64_t axes[GRAPH_MAX_RANK];
    int rank = pt2_need(n, "self")->rank;
    for (int d = 0; d < rank; d++)
        axes[d] = d;
    return norm(n, pt2_float(n, "p"), rank, axes, false);
}
