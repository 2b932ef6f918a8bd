// SPDX-License-Identifier: Apache-2.0
//
// Chains in words: parsing, small constants as immediates, MAP nodes.

#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/common/build.h"

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

// One number repeated to a shape that another operand has anyway is taken as the number.
static struct graph_value *unrepeated(int nin, struct graph_value *const *in, int k) {
    const struct graph_node *n = in[k]->producer;
    if (!n || n->op != GRAPH_EXPAND || n->has_chain) return in[k];
    struct graph_value *one = n->inputs[0];
    if (!one->data || graph_value_elems(one) != 1 || one->dtype != in[k]->dtype) return in[k];
    for (int j = 0; j < nin; j++) {
        int more = in[j]->rank - in[k]->rank;
        bool covers =
            j != k && more >= 0 && (!in[j]->producer || in[j]->producer->op != GRAPH_EXPAND);
        for (int d = 0; d < in[k]->rank && covers; d++)
            covers = in[j]->dims[more + d] == in[k]->dims[d];
        if (covers) return one;
    }
    return in[k];
}

npu_status build_map(const struct build *b, enum isa_dtype dtype, const char *chain,
                     const double *params, int nin, struct graph_value *const *in,
                     struct graph_value **out) {
    struct graph_value *operands[3];
    NPU_ASSERT(nin >= 1 && nin <= 3);
    struct chain_text t = {.ints = dtype == ISA_DTYPE_NONE || isa_dtype_is_int(dtype),
                           .params = params};
    for (int k = 0; k < nin; k++) {
        operands[k] = unrepeated(nin, in, k);
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
    struct graph_node *node = build_core(b, GRAPH_MAP, nin, operands);
    node->has_chain = true;
    node->chain = t.c;
    bool same = type == operands[0]->dtype;
    for (int k = 1; k < nin; k++)
        same &= operands[k]->dtype == type;
    if (type != ISA_DTYPE_NONE && !same) graph_set_int(b->g, node, GRAPH_ATTR_DTYPE, type);
    return build_emit(b, node, out);
}

npu_status build_map1(const struct build *b, const char *chain, struct graph_value *x,
                      struct graph_value **out) {
    return build_map(b, ISA_DTYPE_NONE, chain, NULL, 1, &x, out);
}

npu_status build_map2(const struct build *b, const char *chain, struct graph_value *x,
                      struct graph_value *y, struct graph_value **out) {
    return build_map(b, ISA_DTYPE_NONE, chain, NULL, 2, (struct graph_value *[]){x, y}, out);
}

npu_status build_cast(const struct build *b, struct graph_value *x, enum isa_dtype to,
                      struct graph_value **out) {
    bool from_float = isa_dtype_is_float(x->dtype);
    *out = x;
    if (x->dtype == to) return NULL;
    const char *chain = to == ISA_BOOL                       ? "ne 0"
                        : from_float && isa_dtype_is_int(to) ? "trunc"
                                                             : "nop";
    return build_map(b, to, chain, NULL, 1, &x, out);
}
