// SPDX-License-Identifier: Apache-2.0
//
// Normalisations and softmax.

#include <string.h>

#include "toolchain/frontend/common/norm.h"
#include "toolchain/frontend/onnx/import.h"

static struct graph_node *with_epsilon(struct onnx_node *n, struct graph_node *node,
                                       double otherwise) {
    graph_set_float(n->m->g, node, GRAPH_ATTR_EPSILON, onnx_float(n, "epsilon", otherwise));
    return node;
}

npu_status import_batchnorm(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 5, 5));
    for (int k = 1; k < n->nout; k++)
        if (onnx_used(n, k))
            return npu_fail(UNSUPPORTED, "output %d ('%s') of training", k, n->p->output[k]);
    if (!onnx_int(n, "spatial", 1)) return npu_fail(UNSUPPORTED, "spatial 0, expected 1");
    if (onnx_int(n, "training_mode", 0))
        return npu_fail(UNSUPPORTED, "training_mode 1, expected 0");
    struct graph_value *y;
    NPU_TRY(onnx_emit(n, with_epsilon(n, onnx_core(n, GRAPH_BATCHNORM, 5, n->in), 1e-5), &y));
    return onnx_bind(n, 0, y);
}

// x normalised over the dimensions from axis on.
static npu_status normalise(struct onnx_node *n, enum graph_op op, int nin,
                            struct graph_value *const *in, int axis, struct graph_value **out) {
    return build_norm(&n->b, op, nin, in, axis, onnx_float(n, "epsilon", 1e-5), out);
}

// Outputs 1 and 2, when they are used: mean and 1 / sqrt(variance + epsilon), reduced dimensions
// kept.
static npu_status bind_statistics(struct onnx_node *n, struct graph_value *x, int axis) {
    if (!onnx_used(n, 1) && !onnx_used(n, 2)) return NULL;
    int64_t axes[GRAPH_MAX_RANK];
    struct graph_value *mean, *inverse;
    for (int k = axis; k < x->rank; k++)
        axes[k - axis] = k;
    NPU_TRY(norm_statistics(&n->b, x, x->rank - axis, axes, onnx_float(n, "epsilon", 1e-5), &mean,
                            &inverse));
    NPU_TRY(onnx_bind(n, 1, mean));
    return onnx_bind(n, 2, inverse);
}

static npu_status layer_norm(struct onnx_node *n, bool rms) {
    struct graph_value *x = n->in[0], *in[3] = {x}, *y;
    int axis, nin = 1;
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", -1), x->rank, &axis));
    if (rms && (onnx_used(n, 1) || onnx_used(n, 2)))
        return npu_fail(UNSUPPORTED, "outputs beyond the first");
    for (int k = 1; k < (rms ? 2 : 3); k++)
        if (onnx_given(n, k)) NPU_TRY(norm_operand(&n->b, x, axis, n->in[k], &in[nin++]));
    NPU_TRY(normalise(n, rms ? GRAPH_RMSNORM : GRAPH_LAYERNORM, nin, in, axis, &y));
    NPU_TRY(onnx_bind(n, 0, y));
    return rms ? NULL : bind_statistics(n, x, axis);
}

npu_status import_layernorm(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 3));
    return layer_norm(n, false);
}

npu_status import_rmsnorm(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    return layer_norm(n, true);
}

// input, skip, gamma, [beta], [bias]; simplified: input, skip, gamma, [bias]. Output 3 is the sum
// before normalisation.
npu_status import_skip_layernorm(struct onnx_node *n) {
    bool rms = !strcmp(n->op, "SkipSimplifiedLayerNormalization");
    NPU_TRY(onnx_need(n, 3, rms ? 4 : 5));
    for (int k = 1; k < 3; k++)
        if (onnx_used(n, k))
            return npu_fail(UNSUPPORTED, "output %d ('%s'): mean and deviation", k,
                            n->p->output[k]);
    int bias = rms ? 3 : 4, nin = 2;
    bool biased = onnx_given(n, bias);
    struct graph_value *sum, *y;
    NPU_TRY(
        onnx_map(n, ISA_DTYPE_NONE, biased ? "add in1; add in2" : "add in1", NULL, biased ? 3 : 2,
                 (struct graph_value *[]){n->in[0], n->in[1], biased ? n->in[bias] : NULL}, &sum));
    struct graph_value *in[3] = {sum, n->in[2], NULL};
    if (!rms && onnx_given(n, 3)) in[nin++] = n->in[3];
    NPU_TRY(normalise(n, rms ? GRAPH_RMSNORM : GRAPH_LAYERNORM, nin, in, sum->rank - 1, &y));
    NPU_TRY(onnx_bind(n, 0, y));
    return onnx_bind(n, 3, sum);
}

npu_status import_instancenorm(struct onnx_node *n) {
    struct graph_value *y;
    NPU_TRY(onnx_need(n, 3, 3));
    if (n->in[0]->rank < 2)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 3 or more", n->in[0]->name,
                        n->in[0]->rank);
    NPU_TRY(norm_groups(&n->b, n->in[0], n->in[0]->dims[1], onnx_float(n, "epsilon", 1e-5), &y));
    NPU_TRY(norm_channels(&n->b, y, n->in[1], n->in[2], &y));
    return onnx_bind(n, 0, y);
}

// Opset 18: scale and bias per group; from 21 on per channel.
npu_status import_groupnorm(struct onnx_node *n) {
    struct graph_value *x, *y;
    NPU_TRY(onnx_need(n, 3, 3));
    x = n->in[0];
    int64_t groups = onnx_int(n, "num_groups", 0);
    NPU_TRY(norm_groups(&n->b, x, groups, onnx_float(n, "epsilon", 1e-5), &y));
    if (n->opset >= 21) {
        NPU_TRY(norm_channels(&n->b, y, n->in[1], n->in[2], &y));
        return onnx_bind(n, 0, y);
    }
    NPU_TRY(
        onnx_reshape(n, y, 3,
                     (int64_t[]){x->dims[0], groups, graph_value_elems(x) / (x->dims[0] * groups)},
                     &y));
    NPU_TRY(norm_channels(&n->b, y, n->in[1], n->in[2], &y));
    NPU_TRY(onnx_reshape(n, y, x->rank, x->dims, &y));
    return onnx_bind(n, 0, y);
}

// (x - mean) / (sqrt(mean of squares) + 1e-9): a layer norm over the axes, moved to the end.
npu_status import_mvn(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    int64_t axes[GRAPH_MAX_RANK] = {0, 2, 3}, sorted[GRAPH_MAX_RANK], perm[GRAPH_MAX_RANK],
            back[GRAPH_MAX_RANK];
    int count = onnx_ints_into(n, "axes", axes, GRAPH_MAX_RANK);
    unsigned mask;
    struct graph_value *y = n->in[0];
    int kept = 0;
    NPU_TRY(onnx_axes(n, axes, count < 0 ? 3 : count, y->rank, sorted, &mask));
    for (int pass = 0, at = 0; pass < 2; pass++) {
        for (int d = 0; d < y->rank; d++)
            if ((mask >> d & 1) == (unsigned)pass) perm[at++] = d;
        if (pass == 0) kept = at;
    }
    for (int d = 0; d < y->rank; d++)
        back[perm[d]] = d;
    NPU_TRY(onnx_transpose(n, y, perm, &y));
    NPU_TRY(build_norm(&n->b, GRAPH_LAYERNORM, 1, &y, kept, 1e-18, &y));
    NPU_TRY(onnx_transpose(n, y, back, &y));
    return onnx_bind(n, 0, y);
}

npu_status import_lpnorm(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    int64_t p = onnx_int(n, "p", 2), axes[1];
    int axis;
    struct graph_value *x = n->in[0], *norm;
    if (p != 1 && p != 2)
        return npu_fail(BAD_INPUT, "attribute p is %lld, expected 1 or 2", (long long)p);
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", -1), x->rank, &axis));
    axes[0] = axis;
    if (p == 1) {
        NPU_TRY(onnx_map1(n, "abs", x, &norm));
        NPU_TRY(onnx_reduce(n, norm, "sum", 1, axes, true, &norm));
    } else {
        NPU_TRY(onnx_reduce(n, x, "sumsq", 1, axes, true, &norm));
        NPU_TRY(onnx_map1(n, "sqrt", norm, &norm));
    }
    NPU_TRY(onnx_map2(n, "div in1", x, norm, &x));
    return onnx_bind(n, 0, x);
}

// x / (bias + alpha / size * sum of x^2 over `size` channels)^beta
npu_status import_lrn(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *x = n->in[0], *s;
    int64_t size = onnx_int(n, "size", 0);
    double alpha = onnx_float(n, "alpha", 1e-4), beta = onnx_float(n, "beta", 0.75),
           bias = onnx_float(n, "bias", 1);
    if (x->rank < 2 || size < 1 || size > 1 << 20)
        return npu_fail(BAD_INPUT, "size %lld for an input of rank %d", (long long)size, x->rank);
    int64_t rest = 1;
    for (int d = 2; d < x->rank; d++)
        rest *= x->dims[d];
    NPU_TRY(onnx_map1(n, "mul acc", x, &s));
    NPU_TRY(onnx_reshape(n, s, 4, (int64_t[]){x->dims[0], 1, x->dims[1], rest}, &s));
    struct graph_node *node = onnx_core(n, GRAPH_POOL, 1, &s);
    graph_set_word(n->m->g, node, GRAPH_ATTR_MODE, "avgpad");
    graph_set_ints(n->m->g, node, GRAPH_ATTR_KERNEL, 2, (int64_t[]){size, 1});
    graph_set_ints(n->m->g, node, GRAPH_ATTR_PADS, 4,
                   (int64_t[]){(size - 1) / 2, 0, size - 1 - (size - 1) / 2, 0});
    NPU_TRY(onnx_emit(n, node, &s));
    NPU_TRY(onnx_reshape(n, s, x->rank, x->dims, &s));
    NPU_TRY(onnx_map(n, ISA_F32, "mul $0; add $1; log; mul $2", (double[]){alpha, bias, -beta}, 1,
                     &s, &s));
    NPU_TRY(onnx_map(n, x->dtype, "exp; mul in1", NULL, 2, (struct graph_value *[]){s, x}, &s));
    return onnx_bind(n, 0, s);
}

// ---- softmax ---------------------------------------------------------------------------------

// Before opset 13 the input counts as a matrix: the dimensions before axis, and those from axis on,
// which are normalised.
npu_status import_softmax(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *x = n->in[0], *y;
    bool logarithm = !strcmp(n->op, "LogSoftmax");
    int axis;
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", n->opset < 13 ? 1 : -1), x->rank, &axis));
    if (n->opset >= 13 || axis == x->rank - 1) {
        NPU_TRY(onnx_softmax(n, x, axis, logarithm, &y));
        return onnx_bind(n, 0, y);
    }
    int64_t dims[2] = {1, 1};
    for (int d = 0; d < x->rank; d++)
        dims[d >= axis] *= x->dims[d];
    NPU_TRY(onnx_reshape(n, x, 2, dims, &y));
    NPU_TRY(onnx_softmax(n, y, 1, logarithm, &y));
    NPU_TRY(onnx_reshape(n, y, x->rank, x->dims, &y));
    return onnx_bind(n, 0, y);
}

// 1 at the first largest element along axis, 0 elsewhere.
npu_status import_hardmax(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *x = n->in[0], *flat, *where;
    int axis;
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", n->opset < 13 ? 1 : -1), x->rank, &axis));
    int64_t dims[GRAPH_MAX_RANK], axes[1] = {axis};
    int rank = x->rank;
    memcpy(dims, x->dims, sizeof dims);
    if (n->opset < 13) { // as softmax: a matrix
        dims[0] = dims[1] = 1;
        for (int d = 0; d < x->rank; d++)
            dims[d >= axis] *= x->dims[d];
        rank = 2;
        axes[0] = axis = 1;
    }
    NPU_TRY(onnx_reshape(n, x, rank, dims, &flat));
    NPU_TRY(onnx_reduce(n, flat, "argmax", 1, axes, true, &where));
    int64_t size = dims[axis], *numbers = ARENA_ARRAY(n->m->arena, int64_t, (size_t)size + 1),
            shape[GRAPH_MAX_RANK];
    for (int64_t k = 0; k < size; k++)
        numbers[k] = k;
    for (int d = 0; d < rank; d++)
        shape[d] = d == axis ? size : 1;
    struct graph_value *range = onnx_new_ints(n, rank, shape, numbers);
    NPU_TRY(
        onnx_map(n, x->dtype, "eq in1", NULL, 2, (struct graph_value *[]){where, range}, &flat));
    NPU_TRY(onnx_reshape(n, flat, x->rank, x->dims, &flat));
    return onnx_bind(n, 0, flat);
}
