// SPDX-License-Identifier: Apache-2.0
// Dead nodes: walking from the last node to the first with counts of uses, a node none of whose
// outputs is used goes away, and its inputs are used once less each.
#include "toolchain/passes/pass.h"

void passes_drop_dead(struct graph *g) {
    struct arena *scratch = arena_scratch(g->arena);
    int *uses = ARENA_ARRAY(scratch, int, (size_t)g->nvalue + 1);
    for (const struct graph_node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->nin; i++)
            uses[n->inputs[i]->id]++;
    for (int i = 0; i < g->noutput; i++)
        uses[g->outputs[i]->id]++;
    for (struct graph_node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        int used = 0;
        for (int i = 0; i < n->nout; i++)
            used += uses[n->outputs[i]->id];
        if (used) continue;
        for (int i = 0; i < n->nin; i++)
            uses[n->inputs[i]->id]--;
        graph_remove_node(g, n);
    }
    arena_free(scratch);
}

npu_status pass_dce(struct pass_context *c) {
    passes_drop_dead(c->g);
    return NULL;
}
