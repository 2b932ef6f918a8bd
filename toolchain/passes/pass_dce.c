// SPDX-License-Identifier: Apache-2.0
// Dead nodes: from the last to the first, a node none of whose outputs is used goes away.
#include "toolchain/passes/pass.h"

npu_status pass_dce(struct pass_context *c) {
    for (struct graph_node *n = c->g->last, *prev; n; n = prev) {
        prev = n->prev;
        int uses = 0;
        for (int i = 0; i < n->nout; i++)
            uses += graph_count_uses(c->g, n->outputs[i]);
        if (!uses) graph_remove_node(c->g, n);
    }
    return NULL;
}
