// SPDX-License-Identifier: Apache-2.0
// Drops nodes that change nothing, and joins pairs that move data twice. Repeats until nothing
// changes:
//
//   map without stages, same type and shape      -> its input
//   transpose by the identity, reshape or expand to the same shape, full slice, copy, pad of
//   nothing -> its input
//   transpose that only moves dimensions of size 1     -> reshape
//   transpose of transpose, reshape of reshape         -> one
//   several of both that are one, or none, together    -> that
//   slices of a transpose that nobody else reads       -> transposes of slices
//   gather by constant indices in even steps           -> slice; by the same index again -> expand
#include <string.h>

#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"
#include "toolchain/passes/simplify.h"

static bool same_shape(const struct graph_value *a, const struct graph_value *b) {
    return a->rank == b->rank && a->dtype == b->dtype &&
           !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

static bool all_zero(const struct graph_node *n, enum graph_attr_key k) {
    const struct graph_attr *a = graph_attr(n, k);
    for (int i = 0; a && i < a->n; i++)
        if (a->ints[i]) return false;
    return true;
}

// The sequence of dimensions larger than 1 is kept, so elements stay where they are.
static bool moves_nothing(const struct graph_node *n) {
    int64_t last = -1;
    for (int d = 0; d < n->outputs[0]->rank; d++) {
        int64_t from = graph_ints_at(n, GRAPH_ATTR_PERM, d, d);
        if (n->inputs[0]->dims[from] == 1) continue;
        if (from < last) return false;
        last = from;
    }
    return true;
}

static bool does_nothing(const struct graph_node *n) {
    if (n->has_chain && n->op != GRAPH_MAP) return false;
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    if (!same_shape(x, y)) return false;
    switch (n->op) {
    case GRAPH_MAP: return n->nin == 1 && chain_length(&n->chain) == 0;
    case GRAPH_RESHAPE:
    case GRAPH_EXPAND:
    case GRAPH_COPY: return true;
    case GRAPH_TRANSPOSE: {
        for (int d = 0; d < y->rank; d++)
            if (graph_ints_at(n, GRAPH_ATTR_PERM, d, d) != d) return false;
        return true;
    }
    case GRAPH_SLICE: {
        for (int d = 0; d < y->rank; d++)
            if (graph_ints_at(n, GRAPH_ATTR_STEPS, d, 1) < 0 && y->dims[d] > 1) return false;
        return true;
    }
    case GRAPH_CONCAT: return n->nin == 1;
    case GRAPH_PAD:
        return all_zero(n, GRAPH_ATTR_PADS_BEFORE) && all_zero(n, GRAPH_ATTR_PADS_AFTER);
    case GRAPH_MATMUL:
    case GRAPH_CONV:
    case GRAPH_CONVT:
    case GRAPH_POOL:
    case GRAPH_REDUCE:
    case GRAPH_SOFTMAX:
    case GRAPH_ATTENTION:
    case GRAPH_LAYERNORM:
    case GRAPH_GROUPNORM:
    case GRAPH_ROTARY:
    case GRAPH_GLU:
    case GRAPH_GLU_MLP:
    case GRAPH_RMSNORM:
    case GRAPH_BATCHNORM:
    case GRAPH_GATHER:
    case GRAPH_RESIZE:
    case GRAPH_RANGE:
    case GRAPH_OPS: return false;
    }
    return false;
}

// The node's input takes its output's place, unless the output is the model's and the input is not
// free to become it.
static bool drop(struct pass_context *c, struct graph_node *n) {
    struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    if (y->is_output && (x->is_output || x->is_input || x->data)) return false;
    graph_replace_uses(c->g, y, x);
    if (x->producer) graph_add_origins(c->g, x->producer, n);
    graph_remove_node(c->g, n);
    return true;
}

static npu_status reshape_instead(struct pass_context *c, struct graph_node *n) {
    struct graph_value *in[] = {n->inputs[0]}, *y = n->outputs[0];
    struct graph_node *r = graph_add_node(c->g, GRAPH_RESHAPE, n->name, 1, in, n);
    graph_set_ints(c->g, r, GRAPH_ATTR_SHAPE, y->rank, y->dims);
    NPU_TRY(graph_infer(c->g, r, y->name));
    graph_add_origins(c->g, r, n);
    graph_replace_uses(c->g, y, r->outputs[0]);
    const char *name = y->name;
    graph_remove_node(c->g, n);
    if (!r->outputs[0]->is_output) graph_rename_value(c->g, r->outputs[0], name);
    return NULL;
}

// op(op(x)): reads x directly.
static bool bypass(struct pass_context *c, struct graph_node *n) {
    struct graph_node *before = n->inputs[0]->producer;
    if (!before || before->op != n->op || before->has_chain) return false;
    if (n->op == GRAPH_TRANSPOSE) {
        int64_t perm[GRAPH_MAX_RANK];
        int rank = n->outputs[0]->rank;
        for (int d = 0; d < rank; d++) {
            int64_t middle = graph_ints_at(n, GRAPH_ATTR_PERM, d, d);
            perm[d] = graph_ints_at(before, GRAPH_ATTR_PERM, (int)middle, middle);
        }
        graph_set_ints(c->g, n, GRAPH_ATTR_PERM, rank, perm);
    } else if (n->op != GRAPH_RESHAPE) {
        return false;
    }
    n->inputs[0] = before->inputs[0];
    graph_add_origins(c->g, n, before);
    return true;
}

static npu_status simplify(struct pass_context *c, struct graph_node *n, bool *changed) {
    bool done = false;
    NPU_TRY(simplify_moves(c, n, &done));
    if (!done && n->op == GRAPH_GATHER) NPU_TRY(simplify_gather(c, n, &done));
    if (!done && n->op == GRAPH_SLICE) NPU_TRY(simplify_slice(c, n, &done));
    *changed |= done;
    if (done) return NULL;
    *changed |= bypass(c, n);
    if (does_nothing(n)) {
        *changed |= drop(c, n);
    } else if (n->op == GRAPH_TRANSPOSE && moves_nothing(n)) {
        *changed = true;
        return reshape_instead(c, n);
    }
    return NULL;
}

npu_status pass_simplify(struct pass_context *c) {
    for (bool changed = true; changed;) {
        changed = false;
        for (struct graph_node *n = c->g->first, *next; n; n = next) {
            next = n->next;
            if (n->nin > 0) NPU_TRY(simplify(c, n, &changed));
        }
    }
    passes_drop_dead(c->g); // what was bypassed
    return NULL;
}
