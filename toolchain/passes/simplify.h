// SPDX-License-Identifier: Apache-2.0
// Parts of the pass simplify. Each sets *done when it put something simpler in the node's place;
// the node may be gone then.
#ifndef NPU_PASSES_SIMPLIFY_H
#define NPU_PASSES_SIMPLIFY_H

#include "toolchain/passes/pass.h"

// A RESHAPE or TRANSPOSE behind others that together are nothing, one RESHAPE or one TRANSPOSE.
npu_status simplify_moves(struct pass_context *c, struct graph_node *n, bool *done);

// A GATHER by constant indices: even steps are a SLICE; along dimensions of the indices in which
// they do not change it gathers once and EXPANDs.
npu_status simplify_gather(struct pass_context *c, struct graph_node *n, bool *done);

// A SLICE of a TRANSPOSE that only slices read: the part is taken first.
npu_status simplify_slice(struct pass_context *c, struct graph_node *n, bool *done);

#endif
