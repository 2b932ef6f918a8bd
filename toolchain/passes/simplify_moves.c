// SPDX-License-Identifier: Apache-2.0
// Moves that other moves undo. A chain of reshapes and transposes is read as one view of its first
// value (views.h); where that view is the value itself, a reshape of it, or one transpose in place
// of several, that is written. And gathers whose indices say that they are slices.
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/simplify.h"
#include "toolchain/passes/views.h"

// `v` takes the place of n's result; n goes.
static void replace(struct pass_context *c, struct graph_node *n, struct graph_value *v,
                    bool fresh) {
    struct graph_value *y = n->outputs[0];
    const char *name = y->name;
    if (v->producer) graph_add_origins(c->g, v->producer, n);
    graph_replace_uses(c->g, y, v);
    graph_remove_node(c->g, n);
    if (fresh && !v->is_output) graph_rename_value(c->g, v, name);
}

static npu_status move(struct pass_context *c, struct graph_node *n, enum graph_op op,
                       enum graph_attr_key key, int count, const int64_t *ints,
                       struct graph_value **v) {
    struct graph_node *made = graph_add_node(c->g, op, n->name, 1, v, n);
    graph_set_ints(c->g, made, key, count, ints);
    NPU_TRY(graph_infer(c->g, made, n->outputs[0]->name));
    graph_add_origins(c->g, made, n);
    *v = made->outputs[0];
    return NULL;
}

npu_status simplify_moves(struct pass_context *c, struct graph_node *n, bool *done) {
    struct graph_value *y = n->outputs[0];
    if ((n->op != GRAPH_RESHAPE && n->op != GRAPH_TRANSPOSE) || n->has_chain) return NULL;
    struct view w = view_trace(y, false, NULL, NULL);
    int transposes = 0;
    for (int k = 0; k + 1 < w.npath; k++)
        transposes += w.path[k]->producer->op == GRAPH_TRANSPOSE;
    if (w.npath < 3 || !transposes) return NULL;
    struct graph_value *v = w.root;
    int64_t perm[GRAPH_MAX_RANK];
    if (view_in_order(&w)) {
        bool same = v->rank == y->rank &&
                    (!y->rank || !memcmp(v->dims, y->dims, (size_t)y->rank * sizeof *y->dims));
        if (same && y->is_output && (v->is_output || v->is_input || v->data)) return NULL;
        if (!same) NPU_TRY(move(c, n, GRAPH_RESHAPE, GRAPH_ATTR_SHAPE, y->rank, y->dims, &v));
        replace(c, n, v, !same);
        *done = true;
    } else if (transposes > 1 && view_is_transpose(&w, perm)) {
        NPU_TRY(move(c, n, GRAPH_TRANSPOSE, GRAPH_ATTR_PERM, y->rank, perm, &v));
        replace(c, n, v, true);
        *done = true;
    }
    return NULL;
}

// ---- slices ----------------------------------------------------------------------------------

npu_status simplify_slice(struct pass_context *c, struct graph_node *n, bool *done) {
    struct graph_node *t = n->inputs[0]->producer;
    if (!t || t->op != GRAPH_TRANSPOSE || n->inputs[0]->is_output || n->outputs[0]->is_output)
        return NULL;
    for (const struct graph_node *p = c->g->first; p; p = p->next)
        for (int k = 0; k < p->nin; k++)
            if (p->inputs[k] == n->inputs[0] && p->op != GRAPH_SLICE) return NULL;
    int64_t perm[GRAPH_MAX_RANK], part[3][GRAPH_MAX_RANK];
    static const enum graph_attr_key keys[3] = {GRAPH_ATTR_STARTS, GRAPH_ATTR_SIZES,
                                                GRAPH_ATTR_STEPS};
    int rank = n->outputs[0]->rank;
    for (int d = 0; d < rank; d++) {
        perm[d] = graph_ints_at(t, GRAPH_ATTR_PERM, d, d);
        for (int k = 0; k < 3; k++)
            part[k][perm[d]] = graph_ints_at(n, keys[k], d, 1);
    }
    struct graph_node *s = graph_add_node(c->g, GRAPH_SLICE, n->name, 1, t->inputs, n);
    for (int k = 0; k < 3; k++)
        graph_set_ints(c->g, s, keys[k], rank, part[k]);
    NPU_TRY(graph_infer(c->g, s, n->outputs[0]->name));
    graph_add_origins(c->g, s, t);
    struct graph_value *v = s->outputs[0];
    NPU_TRY(move(c, n, GRAPH_TRANSPOSE, GRAPH_ATTR_PERM, rank, perm, &v));
    replace(c, n, v, true);
    *done = true;
    return NULL;
}

// ---- gathers ---------------------------------------------------------------------------------

struct indices {
    int rank;
    int64_t dims[GRAPH_MAX_RANK], n; // without what repeats
    bool repeats;
    int64_t *at; // never negative
};

// Drops dimensions along which the indices do not change.
static void narrow(struct indices *x) {
    for (int d = 0; d < x->rank; d++) {
        int64_t inner = 1, size = x->dims[d], kept = 0;
        for (int k = d + 1; k < x->rank; k++)
            inner *= x->dims[k];
        bool same = size > 1;
        for (int64_t k = 0; k < x->n && same; k++)
            same = k / inner % size == 0 || x->at[k] == x->at[k - inner];
        if (!same) continue;
        for (int64_t k = 0; k < x->n; k++)
            if (k / inner % size == 0) x->at[kept++] = x->at[k];
        x->n = kept;
        x->dims[d] = 1;
        x->repeats = true;
    }
}

static bool read_indices(struct pass_context *c, const struct graph_node *n, int64_t size,
                         struct indices *x) {
    const struct graph_value *v = n->inputs[1];
    if (!v->data || !isa_dtype_is_int((int)v->dtype) || !graph_value_elems(v)) return false;
    *x = (struct indices){.rank = v->rank, .n = graph_value_elems(v)};
    memcpy(x->dims, v->dims, sizeof x->dims);
    x->at = ARENA_ARRAY(c->g->arena, int64_t, (size_t)x->n);
    for (int64_t k = 0; k < x->n; k++) {
        x->at[k] = num_load_i64((int)v->dtype, v->data, k);
        if (x->at[k] < 0) x->at[k] += size;
        if (x->at[k] < 0 || x->at[k] >= size) return false;
    }
    narrow(x);
    return true;
}

static bool even(const struct indices *x, int64_t *step) {
    *step = x->n > 1 ? x->at[1] - x->at[0] : 1;
    for (int64_t k = 1; k < x->n; k++)
        if (x->at[k] - x->at[k - 1] != *step) return false;
    return *step > 0;
}

// The slices by the narrowed indices, [.., narrowed dimensions, ..].
static npu_status chosen(struct pass_context *c, struct graph_node *n, const struct indices *x,
                         int axis, int64_t step, const int64_t *dims, struct graph_value **v) {
    int64_t starts[GRAPH_MAX_RANK] = {0}, sizes[GRAPH_MAX_RANK], steps[GRAPH_MAX_RANK];
    struct graph_value *from = n->inputs[0];
    int rank = n->outputs[0]->rank;
    *v = from;
    if (!step) {
        struct graph_value *index =
            graph_add_const(c->g, n->inputs[1]->name, ISA_I64, x->rank, x->dims, x->at);
        struct graph_node *g = graph_add_node(c->g, GRAPH_GATHER, n->name, 2,
                                              (struct graph_value *[]){from, index}, n);
        graph_set_int(c->g, g, GRAPH_ATTR_AXIS, axis);
        NPU_TRY(graph_infer(c->g, g, n->outputs[0]->name));
        graph_add_origins(c->g, g, n);
        *v = g->outputs[0];
        return NULL;
    }
    for (int d = 0; d < from->rank; d++) {
        sizes[d] = d == axis ? x->n : from->dims[d];
        steps[d] = d == axis ? step : 1;
    }
    starts[axis] = x->at[0];
    if (x->n < from->dims[axis]) {
        struct graph_node *s = graph_add_node(c->g, GRAPH_SLICE, n->name, 1, v, n);
        graph_set_ints(c->g, s, GRAPH_ATTR_STARTS, from->rank, starts);
        graph_set_ints(c->g, s, GRAPH_ATTR_SIZES, from->rank, sizes);
        graph_set_ints(c->g, s, GRAPH_ATTR_STEPS, from->rank, steps);
        NPU_TRY(graph_infer(c->g, s, n->outputs[0]->name));
        graph_add_origins(c->g, s, n);
        *v = s->outputs[0];
    }
    return move(c, n, GRAPH_RESHAPE, GRAPH_ATTR_SHAPE, rank, dims, v);
}

npu_status simplify_gather(struct pass_context *c, struct graph_node *n, bool *done) {
    const struct graph_value *from = n->inputs[0], *y = n->outputs[0];
    int axis = (int)graph_int(n, GRAPH_ATTR_AXIS, 0);
    struct indices x;
    int64_t step, dims[GRAPH_MAX_RANK];
    if (from->data || !read_indices(c, n, from->dims[axis], &x)) return NULL;
    if (!even(&x, &step)) step = 0;
    if (!step && !x.repeats) return NULL;
    memcpy(dims, y->dims, sizeof dims);
    for (int d = 0; d < x.rank; d++)
        dims[axis + d] = x.dims[d];
    struct graph_value *v;
    NPU_TRY(chosen(c, n, &x, axis, step, dims, &v));
    if (x.repeats) NPU_TRY(move(c, n, GRAPH_EXPAND, GRAPH_ATTR_SHAPE, y->rank, y->dims, &v));
    replace(c, n, v, true);
    *done = true;
    return NULL;
}
