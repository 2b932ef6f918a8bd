// SPDX-License-Identifier: Apache-2.0
//
// The table of core ops: one row each, so that a row without shape rule or reference kernel does
// not link.

#include "toolchain/graph/eval.h"
#include "toolchain/graph/graph.h"
#include "toolchain/graph/shape.h"

const struct graph_op_desc graph_ops[GRAPH_OPS] = {
#define GRAPH_OP(N, text, min_in, max_in, outs, traits, shape, ref, doc) \
    [GRAPH_##N] = {#N, text, doc, min_in, max_in, outs, traits, shape_##shape, eval_##ref},
#include "toolchain/graph/ops.def"
};
