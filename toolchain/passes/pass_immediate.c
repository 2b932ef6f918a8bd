// SPDX-License-Identifier: Apache-2.0
// Operands that are the same constant everywhere become immediates of the chain, where one is free
// and the output's shape does not depend on them.
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

#define UNIFORM_ELEMS 65536

// Bits of the immediate: a binary32 for float chains, an i32 for integer ones.
static bool uniform(const struct graph_value *v, bool floating, int64_t *bits) {
    int64_t n = graph_value_elems(v);
    if (!v->data || n < 1 || n > UNIFORM_ELEMS || isa_dtype_bits((int)v->dtype) < 8) return false;
    size_t size = (size_t)isa_dtype_bits((int)v->dtype) / 8;
    const char *at = v->data;
    for (int64_t i = 1; i < n; i++)
        if (memcmp(at, at + (size_t)i * size, size) != 0) return false;
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

// The other operands alone broadcast to the output's shape.
static bool shape_without(const struct graph_node *n, const struct graph_value *gone) {
    if (n->op != GRAPH_MAP) return true;
    const struct graph_value *y = n->outputs[0];
    bool any = false;
    for (int d = 0; d < y->rank; d++) {
        bool covered = y->dims[d] == 1;
        for (int i = 0; i < n->nin; i++) {
            const struct graph_value *v = n->inputs[i];
            int at = d - (y->rank - v->rank);
            if (v != gone && at >= 0 && v->dims[at] == y->dims[d]) covered = true;
        }
        if (!covered) return false;
    }
    for (int i = 0; i < n->nin; i++)
        if (n->inputs[i] != gone && n->inputs[i]->rank == y->rank) any = true;
    return any;
}

static bool replace(struct chain *c, int k, int64_t bits) {
    int imm = chain_add_imm(&c->c, bits);
    if (imm < 0) return false;
    for (int i = 0; i < chain_length(&c->c); i++) {
        if (c->c.st[i].a == ISA_SRC_IN0 + k) c->c.st[i].a = ISA_SRC_IMM0 + imm;
        if (c->c.st[i].b == ISA_SRC_IN0 + k) c->c.st[i].b = ISA_SRC_IMM0 + imm;
    }
    c->in[k] = NULL;
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
        if (!c.in[k] || c.in[k] == c.in[0] || !uniform(c.in[k], floating, &bits) ||
            !shape_without(n, c.in[k]))
            continue;
        changed |= replace(&c, k, bits);
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
