// SPDX-License-Identifier: Apache-2.0
// Operands that are the same constant everywhere become immediates of the chain, where one is free
// and the output's shape does not depend on them.
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

// Bits of the immediate: a binary32 for float chains, an i32 for integer ones.
static bool uniform(const struct graph_value *v, bool floating, int64_t *bits) {
    int64_t n = graph_value_elems(v);
    if (!v->data || n < 1 || isa_dtype_bits((int)v->dtype) < 8) return false;
    size_t size = (size_t)isa_dtype_bits((int)v->dtype) / 8;
    const char *at = v->data;
    // Each element equals the one before it.
    if (memcmp(at, at + size, (size_t)(n - 1) * size) != 0) return false;
    if (floating) {
        if (v->dtype == ISA_F64) return false;
        float f = num_load_f32(v->dtype, v->data, 0);
        uint32_t u;
        memcpy(&u, &f, sizeof u);
        *bits = u;
        return true;
    }
    int64_t i = num_load_i64(v->dtype, v->data, 0);
    *bits = (int64_t)(uint32_t)(int32_t)i;
    return i >= INT32_MIN && i <= INT32_MAX;
}

// Operand k becomes an immediate, if the node's result keeps its shape and the chain its kind.
static bool replace(const struct graph_node *n, struct chain *c, int k, int64_t bits) {
    struct chain without = *c;
    without.in[k] = NULL;
    if (n->op == GRAPH_MAP && !chain_fills(&without, n->outputs[0])) return false;
    int imm = chain_add_imm(&without.c, bits);
    if (imm < 0 || !chain_same_kind(n, &without)) return false;
    for (int i = 0; i < chain_length(&without.c); i++) {
        struct isa_stage *st = &without.c.st[i];
        if (st->a == ISA_SRC_IN0 + k) st->a = ISA_SRC_IMM0 + imm;
        if (st->b == ISA_SRC_IN0 + k) st->b = ISA_SRC_IMM0 + imm;
    }
    *c = without;
    return true;
}

static void rewrite(struct pass_context *ctx, struct graph_node *n) {
    bool floating = chain_is_float(n);
    int64_t bits;
    struct chain c = chain_of(n);
    // A chain that starts from the constant starts from another operand instead, where it can.
    for (int k = 1; k < 3 && n->op == GRAPH_MAP && c.in[0] && uniform(c.in[0], floating, &bits);
         k++)
        if (c.in[k] && !uniform(c.in[k], floating, &bits)) chain_start_from(&c, k);
    bool changed = false;
    for (int k = 1; k < 3; k++) {
        if (!c.in[k] || c.in[k] == c.in[0] || !uniform(c.in[k], floating, &bits)) continue;
        changed |= replace(n, &c, k, bits);
    }
    if (!changed) return;
    chain_store(ctx->g, n, &c);
    graph_set_int(ctx->g, n, GRAPH_ATTR_DTYPE, (int64_t)n->outputs[0]->dtype);
}

npu_status pass_immediate(struct pass_context *c) {
    for (struct graph_node *n = c->g->first; n; n = n->next)
        if (n->has_chain && n->nin > 1) rewrite(c, n);
    return NULL;
}
