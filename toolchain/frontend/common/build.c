// SPDX-License-Identifier: Apache-2.0
//
// Emitting core nodes: inference and folding of what is constant, moves, products, constants.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/common/build.h"

// Larger results are left to the compiler's folding pass.
enum { FOLD_OUT_ELEMS = 1 << 16, FOLD_IN_ELEMS = 1 << 20 };

enum isa_dtype build_dtype(enum isa_dtype file) {
    return file == ISA_F64 ? ISA_F32 : file == ISA_U64 ? ISA_I64 : file;
}

// ---- folding ---------------------------------------------------------------------------------

static bool folds(const struct graph_node *n) {
    const struct graph_value *out = n->outputs[0];
    if (!graph_value_elems(out)) return true; // nothing to compute
    int64_t elems = 0;
    for (int k = 0; k < n->nin; k++) {
        if (!n->inputs[k]->data) return false;
        elems += graph_value_elems(n->inputs[k]);
    }
    if (n->op == GRAPH_RANGE) return true;
    bool moves = n->op == GRAPH_GATHER || n->op == GRAPH_SLICE;
    return graph_value_elems(out) <= FOLD_OUT_ELEMS && (moves || elems <= FOLD_IN_ELEMS);
}

// Makes the node's result a constant and removes the node.
static npu_status fold(const struct build *b, struct graph_node *node) {
    struct graph_value *out = node->outputs[0];
    const void *in[GRAPH_MAX_RANK * 8 + 3];
    NPU_ASSERT(node->nin <= (int)(sizeof in / sizeof *in));
    for (int k = 0; k < node->nin; k++)
        in[k] = node->inputs[k]->data;
    void *data = arena_alloc(b->arena, (size_t)graph_value_bytes(out) + 1);
    npu_status failed = graph_eval_node(node, in, &data, b->temp);
    arena_reset(b->temp);
    NPU_TRY(failed);
    out->producer = NULL;
    out->data = data;
    graph_remove_node(b->g, node);
    return NULL;
}

struct graph_node *build_core(const struct build *b, enum graph_op op, int nin,
                              struct graph_value *const *in) {
    struct graph_node *node = graph_add_node(b->g, op, b->name, nin, in, NULL);
    graph_add_origin(b->g, node, b->name);
    return node;
}

npu_status build_emit(const struct build *b, struct graph_node *node, struct graph_value **out) {
    struct graph *g = b->g;
    NPU_TRY(graph_infer(g, node, b->label));
    struct graph_value *v = node->outputs[0], *x = node->inputs[0];
    *out = v;
    if (node->op == GRAPH_RESHAPE && x->data &&
        !node->has_chain) { // the same bytes under other dimensions
        v->producer = NULL;
        v->data = x->data;
        v->source = x->source;
        v->source_offset = x->source_offset;
        graph_remove_node(g, node);
        return NULL;
    }
    return folds(node) ? fold(b, node) : NULL;
}

// ---- moves -----------------------------------------------------------------------------------

static bool same_dims(const struct graph_value *v, int rank, const int64_t *dims) {
    return v->rank == rank && (!rank || !memcmp(v->dims, dims, (size_t)rank * sizeof *dims));
}

npu_status build_reshape(const struct build *b, struct graph_value *x, int rank,
                         const int64_t *dims, struct graph_value **out) {
    *out = x;
    if (same_dims(x, rank, dims)) return NULL;
    struct graph_node *node = build_core(b, GRAPH_RESHAPE, 1, &x);
    graph_set_ints(b->g, node, GRAPH_ATTR_SHAPE, rank, dims);
    return build_emit(b, node, out);
}

npu_status build_transpose(const struct build *b, struct graph_value *x, const int64_t *perm,
                           struct graph_value **out) {
    bool same = true;
    for (int d = 0; d < x->rank; d++)
        same &= perm[d] == d;
    *out = x;
    if (same) return NULL;
    struct graph_node *node = build_core(b, GRAPH_TRANSPOSE, 1, &x);
    graph_set_ints(b->g, node, GRAPH_ATTR_PERM, x->rank, perm);
    return build_emit(b, node, out);
}

npu_status build_expand(const struct build *b, struct graph_value *x, int rank, const int64_t *dims,
                        struct graph_value **out) {
    *out = x;
    if (same_dims(x, rank, dims)) return NULL;
    struct graph_node *node = build_core(b, GRAPH_EXPAND, 1, &x);
    graph_set_ints(b->g, node, GRAPH_ATTR_SHAPE, rank, dims);
    return build_emit(b, node, out);
}

npu_status build_slice(const struct build *b, struct graph_value *x, const int64_t *starts,
                       const int64_t *sizes, const int64_t *steps, struct graph_value **out) {
    bool whole = true;
    for (int d = 0; d < x->rank; d++)
        whole &= sizes[d] == x->dims[d] && (steps[d] == 1 || sizes[d] <= 1);
    *out = x;
    if (whole) return NULL;
    struct graph_node *node = build_core(b, GRAPH_SLICE, 1, &x);
    graph_set_ints(b->g, node, GRAPH_ATTR_STARTS, x->rank, starts);
    graph_set_ints(b->g, node, GRAPH_ATTR_SIZES, x->rank, sizes);
    graph_set_ints(b->g, node, GRAPH_ATTR_STEPS, x->rank, steps);
    return build_emit(b, node, out);
}

// Empty parts are left out; more parts than a core concat takes are joined in groups first.
npu_status build_concat(const struct build *b, int count, struct graph_value *const *in, int axis,
                        struct graph_value **out) {
    const int most = graph_ops[GRAPH_CONCAT].max_in;
    struct graph_value **parts = ARENA_ARRAY(b->arena, struct graph_value *, (size_t)count);
    int kept = 0;
    for (int k = 0; k < count; k++)
        if (in[k]->dims[axis] || (k + 1 == count && !kept)) parts[kept++] = in[k];
    while (kept > most) {
        int groups = 0;
        for (int k = 0; k < kept; k += most, groups++)
            NPU_TRY(build_concat(b, kept - k < most ? kept - k : most, parts + k, axis,
                                 &parts[groups]));
        kept = groups;
    }
    *out = parts[0];
    if (kept == 1) return NULL;
    struct graph_node *node = build_core(b, GRAPH_CONCAT, kept, parts);
    graph_set_int(b->g, node, GRAPH_ATTR_AXIS, axis);
    return build_emit(b, node, out);
}

// Follows an index back to the graph inputs it is made of by moves and casts, and notes how large
// it may be there.
static void limit_index(struct graph_value *v, int64_t limit, int depth) {
    if (v->is_input && (!v->index_limit || limit < v->index_limit)) v->index_limit = limit;
    const struct graph_node *n = v->producer;
    if (!n || depth == 0) return;
    bool moves = n->op == GRAPH_RESHAPE || n->op == GRAPH_TRANSPOSE || n->op == GRAPH_SLICE ||
                 n->op == GRAPH_EXPAND || n->op == GRAPH_CONCAT || n->op == GRAPH_COPY ||
                 (n->op == GRAPH_GATHER && n->inputs[0]->producer);
    if (n->op == GRAPH_MAP) {
        moves = n->nin == 1;
        for (int s = 0; s < ISA_STAGES; s++)
            moves &= n->chain.st[s].op == ISA_VOP_NOP || n->chain.st[s].op == ISA_VOP_TRUNC;
    }
    for (int k = 0; moves && k < (n->op == GRAPH_GATHER ? 1 : n->nin); k++)
        limit_index(n->inputs[k], limit, depth - 1);
}

npu_status build_check_index(const struct graph_value *index, int64_t size) {
    for (int64_t k = 0; index->data && k < graph_value_elems(index); k++) {
        int64_t i = num_load_i64(index->dtype, index->data, k);
        if (i < -size || i >= size)
            return npu_fail(BAD_INPUT, "index %lld ('%s'[%lld]), expected %lld to %lld",
                            (long long)i, index->name, (long long)k, (long long)-size,
                            (long long)size - 1);
    }
    return NULL;
}

npu_status build_gather(const struct build *b, struct graph_value *x, struct graph_value *index,
                        int axis, struct graph_value **out) {
    struct graph_value *in[2] = {x, index};
    if (isa_dtype_is_int(index->dtype)) NPU_TRY(build_check_index(index, x->dims[axis]));
    struct graph_node *node = build_core(b, GRAPH_GATHER, 2, in);
    graph_set_int(b->g, node, GRAPH_ATTR_AXIS, axis);
    NPU_TRY(build_emit(b, node, out));
    limit_index(index, x->dims[axis], 16);
    return NULL;
}

npu_status build_pad(const struct build *b, struct graph_value *x, const int64_t *before,
                     const int64_t *after, const char *mode, double value,
                     struct graph_value **out) {
    bool none = true;
    for (int d = 0; d < x->rank; d++)
        none &= !before[d] && !after[d];
    *out = x;
    if (none) return NULL;
    struct graph_node *node = build_core(b, GRAPH_PAD, 1, &x);
    graph_set_ints(b->g, node, GRAPH_ATTR_PADS_BEFORE, x->rank, before);
    graph_set_ints(b->g, node, GRAPH_ATTR_PADS_AFTER, x->rank, after);
    graph_set_word(b->g, node, GRAPH_ATTR_MODE, mode);
    graph_set_float(b->g, node, GRAPH_ATTR_VALUE, value);
    return build_emit(b, node, out);
}

// ---- arithmetic ------------------------------------------------------------------------------

npu_status build_reduce(const struct build *b, struct graph_value *x, const char *mode, int count,
                        const int64_t *axes, bool keepdims, struct graph_value **out) {
    struct graph_node *node = build_core(b, GRAPH_REDUCE, 1, &x);
    graph_set_word(b->g, node, GRAPH_ATTR_MODE, mode);
    graph_set_ints(b->g, node, GRAPH_ATTR_AXES, count, axes);
    graph_set_int(b->g, node, GRAPH_ATTR_KEEPDIMS, keepdims);
    return build_emit(b, node, out);
}

// The matrix engine multiplies floats and integers of up to 8 bits: wider integers go through f32,
// which is exact below 2^24.
// Large constants with their last two dimensions swapped stay as they are: what they are made of,
// else NULL.
static struct graph_value *swapped_constant(const struct graph_value *v) {
    const struct graph_node *n = v->producer;
    if (!n || n->op != GRAPH_TRANSPOSE || n->has_chain || v->rank < 2) return NULL;
    for (int d = 0; d < v->rank; d++) {
        int64_t own = d < v->rank - 2 ? d : 2 * v->rank - 3 - d;
        if (graph_ints_at(n, GRAPH_ATTR_PERM, d, v->rank - 1 - d) != own) return NULL;
    }
    return n->inputs[0]->data ? n->inputs[0] : NULL;
}

npu_status build_matmul(const struct build *b, struct graph_value *x, struct graph_value *y,
                        bool tx, bool ty, struct graph_value **out) {
    struct graph_value *weights = swapped_constant(y);
    struct graph_value *in[2] = {x, weights ? weights : y};
    enum isa_dtype wide = ISA_DTYPE_NONE;
    for (int k = 0; k < 2; k++)
        if (isa_dtype_is_int(in[k]->dtype) && isa_dtype_bits(in[k]->dtype) > 8) wide = in[k]->dtype;
    for (int k = 0; k < 2 && wide != ISA_DTYPE_NONE; k++)
        NPU_TRY(build_cast(b, in[k], ISA_F32, &in[k]));
    struct graph_node *node = build_core(b, GRAPH_MATMUL, 2, in);
    if (tx) graph_set_int(b->g, node, GRAPH_ATTR_TRANS_A, 1);
    if (ty != (weights != NULL)) graph_set_int(b->g, node, GRAPH_ATTR_TRANS_B, 1);
    NPU_TRY(build_emit(b, node, out));
    return wide == ISA_DTYPE_NONE ? NULL : build_cast(b, *out, wide, out);
}

npu_status build_softmax(const struct build *b, struct graph_value *x, int axis, bool logarithm,
                         struct graph_value **out) {
    struct graph_node *node = build_core(b, GRAPH_SOFTMAX, 1, &x);
    graph_set_int(b->g, node, GRAPH_ATTR_AXIS, axis);
    if (logarithm) graph_set_int(b->g, node, GRAPH_ATTR_LOG, 1);
    return build_emit(b, node, out);
}

// ---- constants -------------------------------------------------------------------------------

struct graph_value *build_new_const(const struct build *b, enum isa_dtype dtype, int rank,
                                    const int64_t *dims, const void *data) {
    struct graph_value *v = graph_add_const(b->g, b->label, dtype, rank, dims, data);
    v->data = arena_copy(b->arena, data, (size_t)graph_value_bytes(v));
    return v;
}

struct graph_value *build_new_ints(const struct build *b, int rank, const int64_t *dims,
                                   const int64_t *items) {
    return build_new_const(b, ISA_I64, rank, dims, items);
}

struct graph_value *build_new_scalar(const struct build *b, enum isa_dtype dtype, double v) {
    uint8_t bytes[8] = {0};
    if (isa_dtype_is_int(dtype))
        num_store_i64(dtype, bytes, 0, (int64_t)v);
    else
        num_store_f32(dtype, bytes, 0, (float)v);
    return build_new_const(b, dtype, 0, NULL, bytes);
}
