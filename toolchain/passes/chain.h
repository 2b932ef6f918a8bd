// SPDX-License-Identifier: Apache-2.0
// Working with elementwise chains: joining, operands, limits of the vector engine.
#ifndef NPU_PASSES_CHAIN_H
#define NPU_PASSES_CHAIN_H

#include "toolchain/graph/graph.h"

// A chain with the values that its IN0..IN2 stand for. in[0] == NULL in an epilogue: IN0 is the
// op's own result.
struct chain {
    struct isa_chain c;
    struct graph_value *in[3];
};

// Brings a node's chain into the form that the passes expect: no gaps, TMP saved by stages that
// compute (mov acc where none does), nothing saved that is not read, nothing kept in operands and
// immediates that are not read. It computes the same.
void chain_normalise(struct graph_node *n);

struct chain chain_of(const struct graph_node *n);
int chain_length(const struct isa_chain *c); // stages in use
bool chain_has_sf(const struct isa_chain *c);
bool chain_reads(const struct isa_chain *c, enum isa_src src); // some stage names it
bool chain_is_float(
    const struct graph_node *n); // computes in f32: some operand or the output is floating

// Adds an immediate (bits), sharing an equal one; -1 when all are taken by others.
int chain_add_imm(struct isa_chain *c, int64_t bits);

// Rewrites `c` so that it starts from its operand k instead of IN0: possible when IN<k> is used by
// the first stage only and that stage can be mirrored. false: not possible, c unchanged.
bool chain_start_from(struct chain *c, int k);

// first, then second, whose operand k is first's result. Limits are checked. first.in[0] may be
// NULL (epilogue): then so is the result's. With g, immediates beyond the four of a chain become
// one-element f32 constants where an operand is free (float chains only). false: does not fit.
bool chain_join(struct graph *g, const struct chain *first, const struct chain *second, int k,
                struct chain *out);

// The chain would compute as chains of n do, in f32 or in integers: n has n's output and n's own
// result, or for MAP the chain's operands.
bool chain_same_kind(const struct graph_node *n, const struct chain *c);

// The chain's operands alone broadcast to the shape of y.
bool chain_fills(const struct chain *c, const struct graph_value *y);

// Puts a chain into a node: replaces chain and extra operands (for MAP: all inputs). Operands that
// are not read go, unless a MAP has its shape from them.
void chain_store(struct graph *g, struct graph_node *n, const struct chain *c);

#endif
