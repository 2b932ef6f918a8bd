// SPDX-License-Identifier: Apache-2.0
//
// Views and writes. Reading a view whose storage was written since takes it anew from its parent;
// writing through a view puts the new part back into the parent's value, and so on to the storage:
//
//   write(t, v): while t is a view: v = put_back(parent's value, t.view, v); t = parent
//                version of the storage + 1

#include "toolchain/frontend/pt2/alias.h"

#include <string.h>

static struct pt2_tensor *storage(struct pt2_tensor *t) {
    while (t->parent)
        t = t->parent;
    return t;
}

struct pt2_tensor *tensor_new(struct arena *a, struct graph_value *v) {
    struct pt2_tensor *t = ARENA_NEW(a, struct pt2_tensor);
    t->v = v;
    return t;
}

static npu_status take_view(const struct build *b, struct graph_value *x, const struct view *view,
                            struct graph_value **out) {
    switch (view->kind) {
    case VIEW_SAME: *out = x; return NULL;
    case VIEW_RESHAPE: return build_reshape(b, x, view->rank, view->dims, out);
    case VIEW_PERMUTE: return build_transpose(b, x, view->perm, out);
    case VIEW_SLICE: return build_slice(b, x, view->starts, view->dims, view->steps, out);
    case VIEW_EXPAND: return build_expand(b, x, view->rank, view->dims, out);
    }
    return NULL;
}

npu_status tensor_view(const struct build *b, struct pt2_tensor *of, const struct view *view,
                       struct pt2_tensor **out) {
    struct graph_value *x;
    struct pt2_tensor *t = ARENA_NEW(b->arena, struct pt2_tensor);
    NPU_TRY(tensor_read(b, of, &x));
    t->parent = of;
    t->view = *view;
    t->seen = of->seen;
    t->file = of->file;
    NPU_TRY(take_view(b, x, view, &t->v));
    *out = t;
    return NULL;
}

npu_status tensor_read(const struct build *b, struct pt2_tensor *t, struct graph_value **out) {
    const struct pt2_tensor *base = storage(t);
    if (base->lost)
        return npu_fail(UNSUPPORTED,
                        "'%s' may share memory with a tensor that was changed in place at %s; "
                        "expected a clone() before the change",
                        t->v->name, base->lost);
    if (t->seen != base->version) {
        struct graph_value *x;
        NPU_TRY(tensor_read(b, t->parent, &x));
        NPU_TRY(take_view(b, x, &t->view, &t->v));
        t->seen = base->version;
    }
    *out = t->v;
    return NULL;
}

// The parts of x before and behind the replaced range of one dimension, joined with it: a range
// without gaps.
static npu_status splice(const struct build *b, struct graph_value *x, int axis, int64_t start,
                         struct graph_value *part, struct graph_value **out) {
    struct graph_value *parts[3];
    int64_t starts[GRAPH_MAX_RANK] = {0}, sizes[GRAPH_MAX_RANK], steps[GRAPH_MAX_RANK];
    int64_t end = start + part->dims[axis];
    for (int d = 0; d < x->rank; d++) {
        sizes[d] = x->dims[d];
        steps[d] = 1;
    }
    sizes[axis] = start;
    NPU_TRY(build_slice(b, x, starts, sizes, steps, &parts[0]));
    parts[1] = part;
    starts[axis] = end < x->dims[axis] ? end : 0;
    sizes[axis] = x->dims[axis] - end;
    NPU_TRY(build_slice(b, x, starts, sizes, steps, &parts[2]));
    return build_concat(b, 3, parts, axis, out);
}

// A range with gaps: element i of the result is element (i - start) / step of the part where that
// divides, else x's own.
static npu_status interleave(const struct build *b, struct graph_value *x, int axis, int64_t start,
                             int64_t step, struct graph_value *part, struct graph_value **out) {
    int64_t size = x->dims[axis], shape[GRAPH_MAX_RANK];
    int64_t *from = ARENA_ARRAY(b->arena, int64_t, (size_t)size + 1);
    uint8_t *taken = arena_alloc(b->arena, (size_t)size + 1);
    for (int64_t i = 0; i < size; i++) {
        int64_t k = (i - start) / step;
        taken[i] = i >= start && (i - start) % step == 0 && k < part->dims[axis];
        from[i] = taken[i] ? k : 0;
    }
    for (int d = 0; d < x->rank; d++)
        shape[d] = d == axis ? size : 1;
    struct graph_value *in[3] = {NULL, NULL, x};
    in[0] = graph_add_const(b->g, b->label, ISA_BOOL, x->rank, shape, taken);
    struct graph_value *index = graph_add_const(b->g, b->label, ISA_I64, 1, &size, from);
    NPU_TRY(build_gather(b, part, index, axis, &in[1]));
    return build_map(b, x->dtype, "sel in1 in2", NULL, 3, in, out);
}

npu_status replace_slice(const struct build *b, struct graph_value *x, const int64_t *starts,
                         const int64_t *steps, struct graph_value *part, struct graph_value **out) {
    // From the outermost dimension in: the part of x that the ranges of dimensions 0..d choose.
    struct graph_value *inner[GRAPH_MAX_RANK + 1];
    int64_t first[GRAPH_MAX_RANK] = {0}, sizes[GRAPH_MAX_RANK], step[GRAPH_MAX_RANK];
    inner[0] = x;
    for (int d = 0; d < x->rank; d++) {
        sizes[d] = x->dims[d];
        step[d] = 1;
    }
    for (int d = 0; d < x->rank; d++) {
        first[d] = starts[d];
        sizes[d] = part->dims[d];
        step[d] = steps[d];
        NPU_TRY(build_slice(b, inner[d], first, sizes, step, &inner[d + 1]));
        first[d] = 0;
        step[d] = 1;
    }
    struct graph_value *y = part;
    for (int d = x->rank - 1; d >= 0; d--) {
        const struct graph_value *whole = inner[d];
        if (y->dims[d] == whole->dims[d]) continue;
        if (!y->dims[d])
            y = inner[d];
        else if (steps[d] == 1 || y->dims[d] == 1)
            NPU_TRY(splice(b, inner[d], d, starts[d], y, &y));
        else
            NPU_TRY(interleave(b, inner[d], d, starts[d], steps[d], y, &y));
    }
    *out = y;
    return NULL;
}

static npu_status put_back(const struct build *b, struct graph_value *x, const struct view *view,
                           struct graph_value *v, struct graph_value **out) {
    int64_t back[GRAPH_MAX_RANK];
    switch (view->kind) {
    case VIEW_SAME: *out = v; return NULL;
    case VIEW_RESHAPE: return build_reshape(b, v, x->rank, x->dims, out);
    case VIEW_PERMUTE:
        for (int d = 0; d < view->rank; d++)
            back[view->perm[d]] = d;
        return build_transpose(b, v, back, out);
    case VIEW_SLICE: return replace_slice(b, x, view->starts, view->steps, v, out);
    case VIEW_EXPAND:
        if (graph_value_elems(x) == graph_value_elems(v))
            return build_reshape(b, v, x->rank, x->dims, out);
    }
    return npu_fail(UNSUPPORTED, "a write into '%s', whose elements share memory", v->name);
}

void tensor_beside(struct pt2_tensor *a, struct pt2_tensor *b) {
    struct pt2_tensor *x = storage(a), *y = storage(b), *next;
    if (!x->beside) x->beside = x;
    if (!y->beside) y->beside = y;
    for (const struct pt2_tensor *k = x->beside; k != x; k = k->beside)
        if (k == y) return;
    if (x == y) return;
    next = x->beside; // two rings become one
    x->beside = y->beside;
    y->beside = next;
}

// The others of a ring do not have their values any more.
static npu_status lose_others(const struct build *b, const struct pt2_tensor *base) {
    for (struct pt2_tensor *k = base->beside; k && k != base; k = k->beside) {
        if (k->state)
            return npu_fail(UNSUPPORTED,
                            "a write into what may share memory with '%s', which keeps its value "
                            "after the run; expected a clone() before it",
                            k->v->name);
        k->lost = b->name;
    }
    return NULL;
}

npu_status tensor_write(const struct build *b, struct pt2_tensor *t, struct graph_value *v) {
    struct pt2_tensor *base = storage(t);
    struct graph_value *x;
    NPU_TRY(tensor_read(b, t, &x));
    NPU_TRY(lose_others(b, base));
    int64_t version = base->version + 1;
    for (;;) {
        struct pt2_tensor *parent = t->parent;
        if (parent) NPU_TRY(tensor_read(b, parent, &x));
        t->v = v;
        t->seen = version;
        if (!parent) break;
        NPU_TRY(put_back(b, x, &t->view, v, &v));
        t = parent;
    }
    base->version = version;
    return NULL;
}
