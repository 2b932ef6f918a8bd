// SPDX-License-Identifier: Apache-2.0
// Joins elementwise chains: a MAP whose result only feeds another MAP, with the same shape, becomes
// part of it. Intermediate rounding to a storage type disappears, so only floating intermediates
// (and 0/1 results of comparisons) are joined. A joint chain that has only integers around it would
// compute in integers: there the nodes stay two.
#include <string.h>

#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

static bool same_dims(const struct graph_value *a, const struct graph_value *b) {
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

static bool joinable_value(const struct graph_node *first) {
    const struct graph_value *v = first->outputs[0];
    if (isa_dtype_is_float((int)v->dtype)) return true;
    int n = chain_length(&first->chain);
    if (v->dtype != ISA_BOOL || n == 0) return false;
    int64_t op = first->chain.st[n - 1].op;
    return (op >= ISA_VOP_EQ && op <= ISA_VOP_GE) || op == ISA_VOP_NOT;
}

// Work of n comes after that of `first`.
static void put_origins_before(struct graph *g, struct graph_node *n,
                               const struct graph_node *first) {
    struct graph_node own = *n;
    n->origins = NULL;
    n->norigin = 0;
    graph_add_origins(g, n, first);
    graph_add_origins(g, n, &own);
}

// Tries to take the producer of operand k into n.
static bool take(struct pass_context *c, struct graph_node *n, int k) {
    struct graph_value *v = n->inputs[k];
    struct graph_node *first = v->producer;
    if (!first || first->op != GRAPH_MAP || graph_count_uses(c->g, v) != 1 ||
        !same_dims(v, n->outputs[0]))
        return false;
    if (!joinable_value(first) || chain_is_float(first) != chain_is_float(n)) return false;
    struct chain a = chain_of(first), b = chain_of(n), joint;
    if (!chain_join(chain_is_float(n) ? c->g : NULL, &a, &b, k, &joint) ||
        !chain_same_kind(n, &joint))
        return false;
    chain_store(c->g, n, &joint);
    graph_set_int(c->g, n, GRAPH_ATTR_DTYPE, (int64_t)n->outputs[0]->dtype);
    put_origins_before(c->g, n, first);
    graph_remove_node(c->g, first);
    c->log->fused++;
    return true;
}

npu_status pass_fuse_map(struct pass_context *c) {
    for (struct graph_node *n = c->g->first; n; n = n->next) {
        if (n->op != GRAPH_MAP) continue;
        for (int k = 0; k < n->nin;)
            k = take(c, n, k) ? 0 : k + 1;
    }
    return NULL;
}
