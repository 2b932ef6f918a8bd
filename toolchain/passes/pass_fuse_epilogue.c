// SPDX-License-Identifier: Apache-2.0
// Elementwise work after a matmul, convolution, pooling or reduction moves into its kernel: bias,
// activation, residual.
//
//   y = op(x, w) [chain];  z = map(y, others...)   ->   z = op(x, w) [chain + map's chain], placed
//   where the map was
//
// when y has no other user and z has y's shape. The other operands exist before the map, so that is
// where the kernel goes.
#include <string.h>

#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

static bool same_dims(const struct graph_value *a, const struct graph_value *b) {
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

static bool anchor(const struct graph_node *n) {
    return n->op != GRAPH_MAP && (graph_ops[n->op].traits & GRAPH_CHAIN) && n->nout == 1 &&
           isa_dtype_is_float((int)n->outputs[0]->dtype);
}

// The kernel takes the map's place in the list and its output; the kernel's old output goes away
// with the map.
static void take_place(struct graph *g, struct graph_node *n, struct graph_node *map) {
    struct graph_value *y = n->outputs[0], *z = map->outputs[0];
    if (n->prev)
        n->prev->next = n->next;
    else
        g->first = n->next;
    n->next->prev = n->prev;
    n->prev = map->prev;
    n->next = map;
    if (map->prev)
        map->prev->next = n;
    else
        g->first = n;
    map->prev = n;
    n->outputs[0] = z;
    z->producer = n;
    map->outputs[0] = y;
    y->producer = map;
    graph_add_origins(g, n, map);
    graph_remove_node(g, map);
}

static bool take(struct pass_context *c, struct graph_node *n, struct graph_node **gone) {
    struct graph_value *y = n->outputs[0];
    struct graph_node *map = graph_single_user(c->g, y);
    if (!map || map->op != GRAPH_MAP || !same_dims(y, map->outputs[0]) || y->is_output)
        return false;
    if (!isa_dtype_is_float((int)map->outputs[0]->dtype) || !chain_is_float(map)) return false;
    struct chain a = chain_of(n), b = chain_of(map), joint;
    a.in[0] = NULL;
    for (int k = 0; k < 3; k++) {
        if (b.in[k] != y) continue;
        if (!chain_join(chain_is_float(n) ? c->g : NULL, &a, &b, k, &joint)) return false;
        *gone = map;
        take_place(c->g, n, map);
        chain_store(c->g, n, &joint);
        graph_set_int(c->g, n, GRAPH_ATTR_DTYPE, (int64_t)n->outputs[0]->dtype);
        c->log->fused++;
        return true;
    }
    return false;
}

npu_status pass_fuse_epilogue(struct pass_context *c) {
    for (struct graph_node *n = c->g->first, *next; n; n = next) {
        next = n->next;
        if (!anchor(n)) continue;
        // The node moves down the list; those that it passes are still to come.
        for (struct graph_node *gone; take(c, n, &gone);)
            if (gone == next) next = n->next;
    }
    return NULL;
}
