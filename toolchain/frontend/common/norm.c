// SPDX-License-Identifier: Apache-2.0
//
// Normalisations.

#include "toolchain/frontend/common/norm.h"

npu_status build_norm(const struct build *b, enum graph_op op, int nin,
                      struct graph_value *const *in, int axis, double epsilon,
                      struct graph_value **out) {
    struct graph_node *node = build_core(b, op, nin, in);
    graph_set_float(b->g, node, GRAPH_ATTR_EPSILON, epsilon);
    graph_set_int(b->g, node, GRAPH_ATTR_AXIS, axis);
    return build_emit(b, node, out);
}

// Scale and bias to the normalised dimensions exactly.
npu_status norm_operand(const struct build *b, const struct graph_value *x, int axis,
                        struct graph_value *v, struct graph_value **out) {
    *out = v;
    int rank = x->rank - axis;
    if (v->rank > rank) {
        int64_t ones = 0;
        for (int d = 0; d < v->rank - rank; d++)
            ones += v->dims[d] == 1;
        if (ones != v->rank - rank)
            return npu_fail(BAD_INPUT, "'%s' has rank %d, expected at most %d", v->name, v->rank,
                            rank);
        NPU_TRY(build_reshape(b, v, rank, v->dims + (v->rank - rank), &v));
    }
    return build_expand(b, v, rank, x->dims + axis, out);
}

npu_status norm_statistics(const struct build *b, struct graph_value *x, int count,
                           const int64_t *axes, double epsilon, struct graph_value **mean,
                           struct graph_value **inverse) {
    struct graph_value *d;
    NPU_TRY(build_reduce(b, x, "mean", count, axes, true, mean));
    NPU_TRY(
        build_map(b, ISA_F32, "sub in1; mul acc", NULL, 2, (struct graph_value *[]){x, *mean}, &d));
    NPU_TRY(build_reduce(b, d, "mean", count, axes, true, &d));
    return build_map(b, ISA_F32, "add $0; rsqrt", &epsilon, 1, &d, inverse);
}

// y * scale + bias, both [C], along dimension 1.
npu_status norm_channels(const struct build *b, struct graph_value *y, struct graph_value *scale,
                         struct graph_value *bias, struct graph_value **out) {
    int64_t dims[GRAPH_MAX_RANK] = {y->dims[1], 1, 1, 1, 1, 1, 1, 1};
    struct graph_value *given[2] = {scale, bias}, *in[3] = {y};
    int nin = 1;
    for (int k = 0; k < 2; k++) {
        if (!given[k]) continue;
        if (graph_value_elems(given[k]) != y->dims[1])
            return npu_fail(BAD_INPUT, "'%s' has %lld elements, expected %lld", given[k]->name,
                            (long long)graph_value_elems(given[k]), (long long)y->dims[1]);
        NPU_TRY(build_reshape(b, given[k], y->rank - 1, dims, &in[nin++]));
    }
    const char *chain = scale && bias ? "mul in1; add in2" : scale ? "mul in1" : "add in1";
    *out = y;
    return nin == 1 ? NULL : build_map(b, y->dtype, chain, NULL, nin, in, out);
}

// Each of `groups` runs of channels normalised on its own.
npu_status norm_groups(const struct build *b, struct graph_value *x, int64_t groups, double epsilon,
                       struct graph_value **out) {
    struct graph_value *y;
    if (x->rank < 3)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 3 or more", x->name, x->rank);
    if (groups < 1 || x->dims[1] % groups)
        return npu_fail(BAD_INPUT, "%lld channels in %lld groups", (long long)x->dims[1],
                        (long long)groups);
    int64_t elems = graph_value_elems(x), runs = x->dims[0] * groups;
    NPU_TRY(build_reshape(b, x, 3, (int64_t[]){x->dims[0], groups, runs ? elems / runs : 0}, &y));
    NPU_TRY(build_norm(b, GRAPH_LAYERNORM, 1, &y, 2, epsilon, &y));
    return build_reshape(b, y, x->rank, x->dims, out);
}
