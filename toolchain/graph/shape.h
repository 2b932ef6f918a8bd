// SPDX-License-Identifier: Apache-2.0
//
// Inside graph/: shape rules and what they share. A rule checks its node's inputs and attributes
// and fills dtype, rank and dims of outputs[0], which exists. Its messages say what is wrong and
// what would be accepted; graph_infer() adds node and op.
#ifndef NPU_GRAPH_SHAPE_H
#define NPU_GRAPH_SHAPE_H

#include "toolchain/graph/graph.h"

#define GRAPH_OP(N, text, min_in, max_in, outs, traits, shape, ref, doc) \
    npu_status shape_##shape(struct graph *g, struct graph_node *n);
#include "toolchain/graph/ops.def"

// Input k has rank lo..hi, else BAD_INPUT.
NPU_MUST_USE npu_status shape_rank(const struct graph_node *n, int k, int lo, int hi);

// The attribute is there with `count` items, each within lo..hi; else BAD_INPUT. An absent one is
// accepted when `needed` is false.
NPU_MUST_USE npu_status shape_ints(const struct graph_node *n, enum graph_attr_key key, int count,
                                   int64_t lo, int64_t hi, bool needed);

// The attribute is there (or has a default) and is one of the words "a|b|c"; *which is its
// position.
NPU_MUST_USE npu_status shape_word(const struct graph_node *n, enum graph_attr_key key,
                                   const char *words, const char *otherwise, int *which);

// The attribute AXIS, within 0..rank-1.
NPU_MUST_USE npu_status shape_axis(const struct graph_node *n, int rank, int *axis);

// Broadcasts the dimensions of v into dims[*rank] (NumPy's rule); false when they do not fit.
bool shape_broadcast(int *rank, int64_t dims[GRAPH_MAX_RANK], const struct graph_value *v);

// The type that both convert to without losing range: f32 over f16/bf16 over integers; the wider
// integer.
enum isa_dtype shape_promote(enum isa_dtype a, enum isa_dtype b);

void shape_set(struct graph_value *v, enum isa_dtype dtype, int rank, const int64_t *dims);

// "[1,3,32,32]" in the arena, for messages.
const char *shape_text(struct arena *a, int rank, const int64_t *dims);

#endif
