// SPDX-License-Identifier: Apache-2.0
// A gated product that only a product by constant weights reads becomes one node with it, and with
// the bias and the residual that are in that product's chain:
//
//   h = glu(x, ..); y = matmul(h, W) [chain]   ->   glu_mlp(x, .., W) [chain], in the product's
//   place
#include <string.h>

#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

static struct graph_node *down_of(const struct graph *g, const struct graph_node *glu) {
    const struct graph_value *h = glu->outputs[0];
    struct graph_node *n = graph_single_user(g, h);
    if (!n || n->op != GRAPH_MATMUL || n->inputs[0] != h || graph_int(n, GRAPH_ATTR_TRANS_A, 0))
        return NULL;
    const struct graph_value *w = n->inputs[1];
    bool fits = w->data && w->rank == 2 && isa_dtype_is_float((int)w->dtype) &&
                isa_dtype_bits((int)w->dtype) >= 16 && w->dtype == glu->inputs[1]->dtype;
    return fits ? n : NULL;
}

static npu_status join(struct pass_context *c, struct graph_node *glu, struct graph_node *down) {
    static const enum graph_attr_key ints[] = {GRAPH_ATTR_HALVES, GRAPH_ATTR_BIASED,
                                               GRAPH_ATTR_TRANS_B};
    struct graph *g = c->g;
    struct graph_value *in[6], *y = down->outputs[0];
    memcpy(in, glu->inputs, (size_t)glu->nin * sizeof *in);
    in[glu->nin] = down->inputs[1];
    struct graph_node *n = graph_add_node(g, GRAPH_GLU_MLP, down->name, glu->nin + 1, in, down);
    graph_set_word(g, n, GRAPH_ATTR_ACT, graph_word(glu, GRAPH_ATTR_ACT, "identity"));
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        graph_set_int(g, n, ints[i], graph_int(glu, ints[i], 0));
    graph_set_int(g, n, GRAPH_ATTR_TRANS_DOWN, graph_int(down, GRAPH_ATTR_TRANS_B, 0));
    graph_set_int(g, n, GRAPH_ATTR_DTYPE, (int64_t)y->dtype);
    NPU_TRY(graph_infer(g, n, y->name));
    struct chain chain = chain_of(down);
    chain.in[0] = NULL;
    if (down->has_chain) {
        chain_store(g, n, &chain);
        NPU_TRY(graph_infer(g, n, NULL));
    }
    graph_add_origins(g, n, glu);
    graph_add_origins(g, n, down);
    graph_replace_uses(g, y, n->outputs[0]);
    const char *name = y->name;
    graph_remove_node(g, down);
    graph_remove_node(g, glu);
    if (!n->outputs[0]->is_output) graph_rename_value(g, n->outputs[0], name);
    c->log->fused++;
    return NULL;
}

npu_status pass_mlp(struct pass_context *c) {
    for (struct graph_node *n = c->g->first, *next; n; n = next) {
        next = n->next;
        struct graph_node *down = n->op == GRAPH_GLU ? down_of(c->g, n) : NULL;
        if (!down) continue;
        if (next == down) next = down->next;
        NPU_TRY(join(c, n, down));
    }
    return NULL;
}
