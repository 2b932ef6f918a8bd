// SPDX-License-Identifier: Apache-2.0
//
// Checks every invariant of a graph. Nodes are walked in order, marking values as defined; shapes
// and types are checked by running the shape rule of each node into a copy of its output and
// comparing.

#include <string.h>

#include "runtime/base/map.h"
#include "toolchain/graph/shape.h"

static npu_status check_value(const struct graph *g, const struct graph_value *v) {
    if (v->id < 0 || v->id >= g->nvalue || g->values[v->id] != v)
        return npu_fail(BAD_INPUT, "value '%s' is not in the graph", v->name);
    if (graph_find_value(g, v->name) != v)
        return npu_fail(BAD_INPUT, "value '%s' has a name that is not its own", v->name);
    if (v->rank < 0 || v->rank > GRAPH_MAX_RANK || !isa_dtype_bits(v->dtype))
        return npu_fail(BAD_INPUT, "value '%s' has rank %d and type code %d", v->name, v->rank,
                        (int)v->dtype);
    for (int d = 0; d < v->rank; d++)
        if (v->dims[d] < 0)
            return npu_fail(BAD_INPUT, "value '%s' has a negative dimension", v->name);
    if ((v->data != NULL) + (v->producer != NULL) + v->is_input != 1)
        return npu_fail(BAD_INPUT, "value '%s' must be one of constant, input and result of a node",
                        v->name);
    if (v->has_order) {
        unsigned seen = 0;
        for (int d = 0; d < v->rank; d++)
            if (v->order[d] >= 0 && v->order[d] < v->rank) seen |= 1u << v->order[d];
        if (seen + 1 != 1u << v->rank)
            return npu_fail(BAD_INPUT, "value '%s' has a storage order that is no permutation",
                            v->name);
    }
    return NULL;
}

// The outputs must be what the shape rule gives.
static npu_status check_shapes(const struct graph *g, const struct graph_node *n) {
    struct arena *scratch = arena_scratch(g->arena);
    struct graph copy = {.arena = scratch};
    struct graph_value out = *n->outputs[0], *outs[1] = {&out};
    struct graph_node fresh = *n;
    fresh.outputs = outs;
    npu_status failed = n->nout == 1
                            ? graph_infer(&copy, &fresh, NULL)
                            : npu_fail(BAD_INPUT, "node '%s' has %d outputs", n->name, n->nout);
    const struct graph_value *v = n->outputs[0];
    if (!failed && (v->dtype != out.dtype || v->rank != out.rank ||
                    memcmp(v->dims, out.dims, (size_t)v->rank * sizeof *v->dims) != 0))
        failed = npu_fail(BAD_INPUT, "node '%s': '%s' is %s%s, the shape rule gives %s%s", n->name,
                          v->name, isa_dtype_name(v->dtype), shape_text(scratch, v->rank, v->dims),
                          isa_dtype_name(out.dtype), shape_text(scratch, out.rank, out.dims));
    arena_free(scratch);
    return failed;
}

static npu_status check_node(const struct graph *g, const struct graph_node *n,
                             const bool *defined) {
    if (n->nown > n->nin || n->nown < 0)
        return npu_fail(BAD_INPUT, "node '%s' has %d own inputs of %d", n->name, n->nown, n->nin);
    for (int k = 0; k < n->nin; k++) {
        const struct graph_value *v = n->inputs[k];
        NPU_TRY_NOTE(check_value(g, v), "input %d of node '%s'", k, n->name);
        if (!defined[v->id])
            return npu_fail(BAD_INPUT, "node '%s' reads '%s' before it is computed", n->name,
                            v->name);
    }
    for (int k = 0; k < n->nout; k++) {
        const struct graph_value *v = n->outputs[k];
        NPU_TRY_NOTE(check_value(g, v), "output %d of node '%s'", k, n->name);
        if (v->producer != n)
            return npu_fail(BAD_INPUT, "'%s', output of node '%s', names another producer", v->name,
                            n->name);
        if (defined[v->id])
            return npu_fail(BAD_INPUT, "node '%s' computes '%s' again", n->name, v->name);
    }
    if (n->nout < 1) return npu_fail(BAD_INPUT, "node '%s' has no output", n->name);
    return check_shapes(g, n);
}

static bool same_shape(const struct graph_value *a, const struct graph_value *b) {
    bool same = a->rank == b->rank;
    for (int d = 0; d < a->rank && same; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

// An output that is the next value of a state.
static npu_status check_state(const struct graph *g, const struct graph_value *v) {
    const struct graph_value *s = v->state;
    if (!s->is_input || !s->is_state)
        return npu_fail(BAD_INPUT, "output '%s' is the next value of '%s', which is no state",
                        v->name, s->name);
    if ((!v->producer && !v->data) || !same_shape(v, s) || v->dtype != s->dtype ||
        (s->initial && !same_shape(s->initial, s)))
        return npu_fail(BAD_INPUT, "state '%s' and its next value '%s' differ in shape or type",
                        s->name, v->name);
    for (int k = 0; k < g->noutput; k++)
        if (g->outputs[k] != v && g->outputs[k]->state == s)
            return npu_fail(BAD_INPUT, "state '%s' has two next values", s->name);
    return NULL;
}

static npu_status verify(const struct graph *g, bool *defined) {
    for (int k = 0; k < g->nvalue; k++) {
        const struct graph_value *v = g->values[k];
        if (v && !v->producer) {
            NPU_TRY(check_value(g, v));
            defined[k] = true;
        }
    }
    const struct graph_node *before = NULL;
    for (const struct graph_node *n = g->first; n; before = n, n = n->next) {
        if (n->prev != before) return npu_fail(BAD_INPUT, "node '%s' is linked wrongly", n->name);
        NPU_TRY(check_node(g, n, defined));
        for (int k = 0; k < n->nout; k++)
            defined[n->outputs[k]->id] = true;
    }
    if (g->last != before) return npu_fail(BAD_INPUT, "the list of nodes ends wrongly");
    for (int k = 0; k < g->ninput; k++)
        if (!g->inputs[k]->is_input)
            return npu_fail(BAD_INPUT, "input '%s' is not marked", g->inputs[k]->name);
    for (int k = 0; k < g->noutput; k++) {
        const struct graph_value *v = g->outputs[k];
        if (!v->is_output || g->values[v->id] != v || !defined[v->id])
            return npu_fail(BAD_INPUT, "output '%s' is not computed", v->name);
        if (v->state) NPU_TRY(check_state(g, v));
        for (int i = 0; i < k; i++)
            if (g->outputs[i] == v) return npu_fail(BAD_INPUT, "output '%s' stands twice", v->name);
    }
    return NULL;
}

npu_status graph_verify(const struct graph *g, const char *stage) {
    struct arena *scratch = arena_scratch(g->arena);
    npu_status failed = verify(g, ARENA_ARRAY(scratch, bool, (size_t)g->nvalue + 1));
    arena_free(scratch);
    return npu_note(failed, "graph check, %s", stage);
}
