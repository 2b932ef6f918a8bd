// SPDX-License-Identifier: Apache-2.0
// Constant folding: nodes whose inputs are all constants are run by the reference kernels, in the
// order of the graph, so that whole constant expressions disappear in one sweep. Nodes without
// users, which a model may have, go too.
#include "toolchain/passes/pass.h"

#define LIMIT_BYTES (INT64_C(256) << 20)

static bool foldable(const struct graph_node *n) {
    if (n->nin == 0) return false;
    for (int i = 0; i < n->nin; i++)
        if (!n->inputs[i]->data) return false;
    for (int i = 0; i < n->nout; i++)
        if (graph_value_bytes(n->outputs[i]) > LIMIT_BYTES) return false;
    return true;
}

static npu_status fold(struct pass_context *c, struct graph_node *n) {
    const void **in = ARENA_ARRAY(c->scratch, const void *, (size_t)n->nin);
    void **out = ARENA_ARRAY(c->scratch, void *, (size_t)n->nout);
    for (int i = 0; i < n->nin; i++)
        in[i] = graph_constant(n->inputs[i], c->scratch);
    for (int i = 0; i < n->nout; i++)
        out[i] = arena_alloc(c->g->arena, (size_t)graph_value_bytes(n->outputs[i]));
    NPU_TRY_NOTE(graph_eval_node(n, in, out, c->scratch), "node '%s'", n->name);
    for (int i = 0; i < n->nout; i++) {
        n->outputs[i]->data = out[i];
        n->outputs[i]->producer = NULL;
    }
    n->nout = 0;
    graph_remove_node(c->g, n);
    return NULL;
}

npu_status pass_fold(struct pass_context *c) {
    passes_drop_dead(c->g); // large constants that nobody reads are not made
    for (struct graph_node *n = c->g->first, *next; n; n = next) {
        next = n->next;
        if (foldable(n)) NPU_TRY(fold(c, n));
    }
    passes_drop_dead(c->g);
    return NULL;
}
