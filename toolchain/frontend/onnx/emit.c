// SPDX-License-Identifier: Apache-2.0
//
// Emitting core nodes: inference, folding of what is constant, and chains in words.

#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/alloc.h"
#include "toolchain/frontend/onnx/import.h"

// Larger results are left to the compiler's folding pass.
enum { FOLD_OUT_ELEMS = 1 << 16, FOLD_IN_ELEMS = 1 << 20 };

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
static npu_status fold(struct onnx_node *n, struct graph_node *node) {
    struct importer *m = n->m;
    struct graph_value *out = node->outputs[0];
    const void *in[GRAPH_MAX_RANK * 8 + 3];
    NPU_ASSERT(node->nin <= (int)(sizeof in / sizeof *in));
    for (int k = 0; k < node->nin; k++)
        in[k] = node->inputs[k]->data;
    void *data = arena_alloc(m->arena, (size_t)graph_value_bytes(out) + 1);
    npu_status failed = graph_eval_node(node, in, &data, m->temp);
    arena_reset(m->temp);
    NPU_TRY(failed);
    out->producer = NULL;
    out->data = data;
    graph_remove_node(m->g, node);
    return NULL;
}

struct graph_node *onnx_core(struct onnx_node *n, enum graph_op op, int nin,
                             struct graph_value *const *in) {
    struct graph_node *node = graph_add_node(n->m->g, op, n->name, nin, in, NULL);
    graph_add_origin(n->m->g, node, n->name);
    return node;
}

npu_status onnx_emit(struct onnx_node *n, struct graph_node *node, struct graph_value **out) {
    struct graph *g = n->m->g;
    NPU_TRY(graph_infer(g, node, n->label));
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
    return folds(node) ? fold(n, node) : NULL;
}

// ---- chains ----------------------------------------------------------------------------------

struct chain_text {
    struct isa_chain c;
    int stages, imms;
    bool ints;
    const double *params;
};

static int64_t imm_bits(bool ints, double v) {
    if (!ints) return (int64_t)num_bits((float)v);
    double inside = v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v;
    return (int64_t)(uint32_t)(int32_t)inside;
}

// The source code of a value as an immediate; equal ones share a slot. -1: no slot is free.
static int64_t imm_source(struct chain_text *t, double v) {
    int64_t bits = imm_bits(t->ints, v);
    for (int k = 0; k < t->imms; k++)
        if (t->c.imm[k] == bits) return ISA_SRC_IMM0 + k;
    if (t->imms == ISA_IMMS) return -1;
    t->c.imm[t->imms] = bits;
    return ISA_SRC_IMM0 + t->imms++;
}

static int64_t operand_of(struct chain_text *t, const char *word) {
    static const struct {
        const char *word;
        int64_t src;
    } words[] = {{"acc", ISA_SRC_ACC},
                 {"in0", ISA_SRC_IN0},
                 {"in1", ISA_SRC_IN1},
                 {"in2", ISA_SRC_IN2},
                 {"tmp", ISA_SRC_TMP}};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (!strcmp(word, words[k].word)) return words[k].src;
    double v = *word == '$' ? t->params[word[1] - '0'] : strtod(word, NULL);
    int64_t src = imm_source(t, v);
    NPU_ASSERT(src >= 0);
    return src;
}

// The chains are the importers' own, so mistakes in them are ours.
static void parse_chain(struct chain_text *t, const char *text) {
    char copy[256];
    NPU_ASSERT(strlen(text) < sizeof copy);
    memcpy(copy, text, strlen(text) + 1);
    char *stage_end = NULL;
    for (char *stage = strtok_r(copy, ";", &stage_end); stage;
         stage = strtok_r(NULL, ";", &stage_end)) {
        NPU_ASSERT(t->stages < ISA_STAGES);
        struct isa_stage *st = &t->c.st[t->stages++];
        char *word_end = NULL, *word = strtok_r(stage, " ", &word_end);
        st->op = isa_vop_parse(word);
        NPU_ASSERT(st->op >= 0);
        int64_t *operand = &st->a;
        for (word = strtok_r(NULL, " ", &word_end); word; word = strtok_r(NULL, " ", &word_end)) {
            if (!strcmp(word, "=tmp")) {
                st->save = 1;
            } else {
                *operand = operand_of(t, word);
                operand = &st->b;
            }
        }
    }
}

// The value of a constant with one element that an immediate can hold exactly.
static bool scalar_of(const struct graph_value *v, bool ints, double *out) {
    if (!v->data || graph_value_elems(v) != 1) return false;
    if (isa_dtype_is_int(v->dtype)) {
        int64_t i = num_load_i64(v->dtype, v->data, 0);
        *out = (double)i;
        return ints ? i >= INT32_MIN && i <= INT32_MAX : i > -(1 << 24) && i < 1 << 24;
    }
    *out = (double)num_load_f32(v->dtype, v->data, 0);
    return !ints;
}

static void rename_source(struct isa_chain *c, int64_t from, int64_t to) {
    for (int s = 0; s < ISA_STAGES; s++) {
        if (c->st[s].a == from) c->st[s].a = to;
        if (c->st[s].b == from) c->st[s].b = to;
    }
}

// Replaces in1 and in2 by immediates where they are constant scalars; neither the result's rank nor
// whether the chain runs on integers may depend on them.
static int immediates_for_inputs(struct chain_text *t, int nin, struct graph_value **in) {
    for (int k = nin - 1; k > 0; k--) {
        double v;
        int rank = 0;
        bool others_int = true;
        for (int i = 0; i < nin; i++) {
            if (i == k) continue;
            if (in[i]->rank > rank) rank = in[i]->rank;
            others_int &= isa_dtype_is_int(in[i]->dtype);
        }
        if (!scalar_of(in[k], t->ints, &v) || in[k]->rank > rank) continue;
        if (others_int && !isa_dtype_is_int(in[k]->dtype)) continue;
        int64_t src = imm_source(t, v);
        if (src < 0) continue;
        rename_source(&t->c, ISA_SRC_IN0 + k, src);
        for (int i = k; i + 1 < nin; i++) {
            in[i] = in[i + 1];
            rename_source(&t->c, ISA_SRC_IN0 + i + 1, ISA_SRC_IN0 + i);
        }
        nin--;
    }
    return nin;
}

// c op x with a constant c: x reversed-op c, so that the tensor is in0.
static void put_tensor_first(struct chain_text *t, int nin, struct graph_value **in) {
    static const int64_t reversed[][2] = {{ISA_VOP_ADD, ISA_VOP_ADD},  {ISA_VOP_MUL, ISA_VOP_MUL},
                                          {ISA_VOP_SUB, ISA_VOP_RSUB}, {ISA_VOP_DIV, ISA_VOP_RDIV},
                                          {ISA_VOP_MAX, ISA_VOP_MAX},  {ISA_VOP_MIN, ISA_VOP_MIN},
                                          {ISA_VOP_EQ, ISA_VOP_EQ},    {ISA_VOP_NE, ISA_VOP_NE},
                                          {ISA_VOP_LT, ISA_VOP_GT},    {ISA_VOP_GT, ISA_VOP_LT},
                                          {ISA_VOP_LE, ISA_VOP_GE},    {ISA_VOP_GE, ISA_VOP_LE},
                                          {ISA_VOP_AND, ISA_VOP_AND},  {ISA_VOP_OR, ISA_VOP_OR},
                                          {ISA_VOP_XOR, ISA_VOP_XOR}};
    struct isa_stage *st = &t->c.st[0];
    if (nin != 2 || t->stages != 1 || !in[0]->data || in[1]->data || st->a != ISA_SRC_IN1) return;
    for (size_t k = 0; k < sizeof reversed / sizeof *reversed; k++) {
        if (st->op != reversed[k][0]) continue;
        st->op = reversed[k][1];
        struct graph_value *first = in[0];
        in[0] = in[1];
        in[1] = first;
        return;
    }
}

npu_status onnx_map(struct onnx_node *n, enum isa_dtype dtype, const char *chain,
                    const double *params, int nin, struct graph_value *const *in,
                    struct graph_value **out) {
    struct graph_value *operands[3];
    NPU_ASSERT(nin >= 1 && nin <= 3);
    struct chain_text t = {.ints = dtype == ISA_DTYPE_NONE || isa_dtype_is_int(dtype),
                           .params = params};
    for (int k = 0; k < nin; k++) {
        operands[k] = in[k];
        t.ints &= isa_dtype_is_int(in[k]->dtype);
    }
    parse_chain(&t, chain);
    put_tensor_first(&t, nin, operands);
    // The type is that of all inputs, the constants that become immediates included.
    enum isa_dtype type = dtype;
    if (type == ISA_DTYPE_NONE && nin > 1) {
        type = operands[0]->dtype;
        for (int k = 1; k < nin; k++)
            if (operands[k]->dtype != type) type = ISA_DTYPE_NONE;
    }
    nin = immediates_for_inputs(&t, nin, operands);
    struct graph_node *node = onnx_core(n, GRAPH_MAP, nin, operands);
    node->has_chain = true;
    node->chain = t.c;
    bool same = type == operands[0]->dtype;
    for (int k = 1; k < nin; k++)
        same &= operands[k]->dtype == type;
    if (type != ISA_DTYPE_NONE && !same) graph_set_int(n->m->g, node, GRAPH_ATTR_DTYPE, type);
    return onnx_emit(n, node, out);
}

npu_status onnx_map1(struct onnx_node *n, const char *chain, struct graph_value *x,
                     struct graph_value **out) {
    return onnx_map(n, ISA_DTYPE_NONE, chain, NULL, 1, &x, out);
}

npu_status onnx_map2(struct onnx_node *n, const char *chain, struct graph_value *x,
                     struct graph_value *y, struct graph_value **out) {
    return onnx_map(n, ISA_DTYPE_NONE, chain, NULL, 2, (struct graph_value *[]){x, y}, out);
}

npu_status onnx_cast(struct onnx_node *n, struct graph_value *x, enum isa_dtype to,
                     struct graph_value **out) {
    bool from_float = isa_dtype_is_float(x->dtype);
    *out = x;
    if (x->dtype == to) return NULL;
    const char *chain = to == ISA_BOOL                       ? "ne 0"
                        : from_float && isa_dtype_is_int(to) ? "trunc"
                                                             : "nop";
    return onnx_map(n, to, chain, NULL, 1, &x, out);
}

// ---- moves -----------------------------------------------------------------------------------

static bool same_dims(const struct graph_value *v, int rank, const int64_t *dims) {
    return v->rank == rank && (!rank || !memcmp(v->dims, dims, (size_t)rank * sizeof *dims));
}

npu_status onnx_reshape(struct onnx_node *n, struct graph_value *x, int rank, const int64_t *dims,
                        struct graph_value **out) {
    *out = x;
    if (same_dims(x, rank, dims)) return NULL;
    struct graph_node *node = onnx_core(n, GRAPH_RESHAPE, 1, &x);
    graph_set_ints(n->m->g, node, GRAPH_ATTR_SHAPE, rank, dims);
    return onnx_emit(n, node, out);
}

npu_status onnx_transpose(struct onnx_node *n, struct graph_value *x, const int64_t *perm,
                          struct graph_value **out) {
    bool same = true;
    for (int d = 0; d < x->rank; d++)
        same &= perm[d] == d;
    *out = x;
    if (same) return NULL;
    struct graph_node *node = onnx_core(n, GRAPH_TRANSPOSE, 1, &x);
    graph_set_ints(n->m->g, node, GRAPH_ATTR_PERM, x->rank, perm);
    return onnx_emit(n, node, out);
}

npu_status onnx_expand(struct onnx_node *n, struct graph_value *x, int rank, const int64_t *dims,
                       struct graph_value **out) {
    *out = x;
    if (same_dims(x, rank, dims)) return NULL;
    struct graph_node *node = onnx_core(n, GRAPH_EXPAND, 1, &x);
    graph_set_ints(n->m->g, node, GRAPH_ATTR_SHAPE, rank, dims);
    return onnx_emit(n, node, out);
}

npu_status onnx_slice(struct onnx_node *n, struct graph_value *x, const int64_t *starts,
                      const int64_t *sizes, const int64_t *steps, struct graph_value **out) {
    bool whole = true;
    for (int d = 0; d < x->rank; d++)
        whole &= sizes[d] == x->dims[d] && (steps[d] == 1 || sizes[d] <= 1);
    *out = x;
    if (whole) return NULL;
    struct graph_node *node = onnx_core(n, GRAPH_SLICE, 1, &x);
    graph_set_ints(n->m->g, node, GRAPH_ATTR_STARTS, x->rank, starts);
    graph_set_ints(n->m->g, node, GRAPH_ATTR_SIZES, x->rank, sizes);
    graph_set_ints(n->m->g, node, GRAPH_ATTR_STEPS, x->rank, steps);
    return onnx_emit(n, node, out);
}

// Empty parts are left out; more parts than a core concat takes are joined in groups first.
npu_status onnx_concat(struct onnx_node *n, int count, struct graph_value *const *in, int axis,
                       struct graph_value **out) {
    const int most = graph_ops[GRAPH_CONCAT].max_in;
    struct graph_value **parts = ARENA_ARRAY(n->m->arena, struct graph_value *, (size_t)count);
    int kept = 0;
    for (int k = 0; k < count; k++)
        if (in[k]->dims[axis] || (k + 1 == count && !kept)) parts[kept++] = in[k];
    while (kept > most) {
        int groups = 0;
        for (int k = 0; k < kept; k += most, groups++)
            NPU_TRY(
                onnx_concat(n, kept - k < most ? kept - k : most, parts + k, axis, &parts[groups]));
        kept = groups;
    }
    *out = parts[0];
    if (kept == 1) return NULL;
    struct graph_node *node = onnx_core(n, GRAPH_CONCAT, kept, parts);
    graph_set_int(n->m->g, node, GRAPH_ATTR_AXIS, axis);
    return onnx_emit(n, node, out);
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

npu_status onnx_gather(struct onnx_node *n, struct graph_value *x, struct graph_value *index,
                       int axis, struct graph_value **out) {
    struct graph_value *in[2] = {x, index};
    struct graph_node *node = onnx_core(n, GRAPH_GATHER, 2, in);
    graph_set_int(n->m->g, node, GRAPH_ATTR_AXIS, axis);
    NPU_TRY(onnx_emit(n, node, out));
    limit_index(index, x->dims[axis], 16);
    return NULL;
}

npu_status onnx_pad(struct onnx_node *n, struct graph_value *x, const int64_t *before,
                    const int64_t *after, const char *mode, double value,
                    struct graph_value **out) {
    bool none = true;
    for (int d = 0; d < x->rank; d++)
        none &= !before[d] && !after[d];
    *out = x;
    if (none) return NULL;
    struct graph_node *node = onnx_core(n, GRAPH_PAD, 1, &x);
    graph_set_ints(n->m->g, node, GRAPH_ATTR_PADS_BEFORE, x->rank, before);
    graph_set_ints(n->m->g, node, GRAPH_ATTR_PADS_AFTER, x->rank, after);
    graph_set_word(n->m->g, node, GRAPH_ATTR_MODE, mode);
    graph_set_float(n->m->g, node, GRAPH_ATTR_VALUE, value);
    return onnx_emit(n, node, out);
}

// ---- arithmetic ------------------------------------------------------------------------------

npu_status onnx_reduce(struct onnx_node *n, struct graph_value *x, const char *mode, int count,
                       const int64_t *axes, bool keepdims, struct graph_value **out) {
    struct graph_node *node = onnx_core(n, GRAPH_REDUCE, 1, &x);
    graph_set_word(n->m->g, node, GRAPH_ATTR_MODE, mode);
    graph_set_ints(n->m->g, node, GRAPH_ATTR_AXES, count, axes);
    graph_set_int(n->m->g, node, GRAPH_ATTR_KEEPDIMS, keepdims);
    return onnx_emit(n, node, out);
}

// The matrix engine multiplies floats and integers of up to 8 bits: wider integers go through f32,
// which is exact below 2^24.
npu_status onnx_matmul(struct onnx_node *n, struct graph_value *a, struct graph_value *b, bool ta,
                       bool tb, struct graph_value **out) {
    struct graph_value *in[2] = {a, b};
    enum isa_dtype wide = ISA_DTYPE_NONE;
    for (int k = 0; k < 2; k++)
        if (isa_dtype_is_int(in[k]->dtype) && isa_dtype_bits(in[k]->dtype) > 8) wide = in[k]->dtype;
    for (int k = 0; k < 2 && wide != ISA_DTYPE_NONE; k++)
        NPU_TRY(onnx_cast(n, in[k], ISA_F32, &in[k]));
    struct graph_node *node = onnx_core(n, GRAPH_MATMUL, 2, in);
    if (ta) graph_set_int(n->m->g, node, GRAPH_ATTR_TRANS_A, 1);
    if (tb) graph_set_int(n->m->g, node, GRAPH_ATTR_TRANS_B, 1);
    NPU_TRY(onnx_emit(n, node, out));
    return wide == ISA_DTYPE_NONE ? NULL : onnx_cast(n, *out, wide, out);
}

npu_status onnx_softmax(struct onnx_node *n, struct graph_value *x, int axis, bool logarithm,
                        struct graph_value **out) {
    struct graph_node *node = onnx_core(n, GRAPH_SOFTMAX, 1, &x);
    graph_set_int(n->m->g, node, GRAPH_ATTR_AXIS, axis);
    if (logarithm) graph_set_int(n->m->g, node, GRAPH_ATTR_LOG, 1);
    return onnx_emit(n, node, out);
}

// ---- constants -------------------------------------------------------------------------------

struct graph_value *onnx_new_const(struct onnx_node *n, enum isa_dtype dtype, int rank,
                                   const int64_t *dims, const void *data) {
    struct graph_value *v = graph_add_const(n->m->g, n->label, dtype, rank, dims, data);
    v->data = arena_copy(n->m->arena, data, (size_t)graph_value_bytes(v));
    return v;
}

struct graph_value *onnx_new_ints(struct onnx_node *n, int rank, const int64_t *dims,
                                  const int64_t *items) {
    return onnx_new_const(n, ISA_I64, rank, dims, items);
}

struct graph_value *onnx_new_scalar(struct onnx_node *n, enum isa_dtype dtype, double v) {
    uint8_t bytes[8] = {0};
    if (isa_dtype_is_int(dtype))
        num_store_i64(dtype, bytes, 0, (int64_t)v);
    else
        num_store_f32(dtype, bytes, 0, (float)v);
    return onnx_new_const(n, dtype, 0, NULL, bytes);
}

npu_status onnx_tensor_const(struct onnx_node *n, const Onnx__TensorProto *p,
                             struct graph_value **out) {
    struct onnx_tensor t;
    NPU_TRY(reader_tensor(n->m->r, p, &t));
    struct graph_value *v = graph_add_const(n->m->g, n->label, t.dtype, t.rank, t.dims, t.data);
    v->source = t.source;
    v->source_offset = t.source_offset;
    v->file_dtype = t.file_dtype;
    *out = v;
    return NULL;
}

npu_status onnx_bind(struct onnx_node *n, int k, struct graph_value *v) {
    if (!onnx_used(n, k)) return NULL;
    const char *name = n->p->output[k];
    if (map_get(&n->s->values, name))
        return npu_fail(BAD_INPUT, "output '%s' is computed twice", name);
    map_put(&n->s->values, name, v);
    if (v->id >= n->first_value && v != &onnx_missing && !v->is_input) {
        const char *full =
            *n->s->prefix ? arena_printf(n->m->arena, "%s%s", n->s->prefix, name) : name;
        graph_rename_value(n->m->g, v, full);
    }
    return NULL;
}
