// SPDX-License-Identifier: Apache-2.0
// Chains of moves as one: see views.h. A reshape cuts atoms so that they line up with the new
// dimensions; a transpose permutes the lists; an expand adds atoms of distance 0. What is left is
// written as: split the root's dimensions into atoms, permute them, join them to dimensions.
#include "toolchain/passes/views.h"

#include <string.h>

struct view view_of(struct graph_value *v) {
    struct view w = {.root = v, .rank = v->rank, .path = {v}, .npath = 1};
    int64_t step = graph_value_elems(v);
    int n = 0;
    for (int d = 0; d < v->rank; d++) {
        step = v->dims[d] ? step / v->dims[d] : 0;
        w.first[d] = n;
        if (v->dims[d] == 1) continue;
        w.size[n] = v->dims[d];
        w.stride[n++] = step;
    }
    w.first[v->rank] = n;
    return w;
}

int64_t view_dim(const struct view *v, int d) {
    int64_t size = 1;
    for (int i = v->first[d]; i < v->first[d + 1]; i++)
        size *= v->size[i];
    return size;
}

bool view_has_repeats(const struct view *v, int d) {
    for (int i = v->first[d]; i < v->first[d + 1]; i++)
        if (!v->stride[i]) return true;
    return false;
}

bool view_repeats(const struct view *v, int d) {
    for (int i = v->first[d]; i < v->first[d + 1]; i++)
        if (v->stride[i]) return false;
    return true;
}

int64_t view_inner_repeats(const struct view *v, int d) {
    int64_t times = 1;
    int i = v->first[d + 1] - 1;
    for (; i >= v->first[d] && !v->stride[i]; i--)
        times *= v->size[i];
    for (; i >= v->first[d]; i--)
        if (!v->stride[i]) return -1;
    return times;
}

void view_drop_repeats(struct view *v, int d) {
    int n = v->first[d], end = v->first[d + 1], all = v->first[v->rank];
    for (int i = n; i < all; i++) {
        if (i < end && !v->stride[i]) continue;
        v->size[n] = v->size[i];
        v->stride[n++] = v->stride[i];
    }
    for (int k = d + 1; k <= v->rank; k++)
        v->first[k] -= all - n;
}

// Puts an atom behind the n that are there, into the last one where it continues that.
static int put(struct view *v, int n, int first, int64_t size, int64_t stride) {
    if (n > first && v->stride[n - 1] == stride * size) {
        v->size[n - 1] *= size;
        v->stride[n - 1] = stride;
        return n;
    }
    v->size[n] = size;
    v->stride[n] = stride;
    return n + 1;
}

bool view_reshape(struct view *v, int rank, const int64_t *dims) {
    struct view out = *v;
    int n = 0, at = 0, all = v->first[v->rank];
    int64_t left = at < all ? v->size[at] : 1; // of the atom that is being used up
    out.rank = rank;
    for (int d = 0; d < rank; d++) {
        out.first[d] = n;
        int64_t need = dims[d];
        while (need > 1) {
            while (left == 1 && at + 1 < all)
                left = v->size[++at];
            int64_t take = need % left == 0 ? left : need;
            if (left == 1 || n == VIEW_ATOMS || left % take) return false;
            left /= take;
            need /= take;
            n = put(&out, n, out.first[d], take, v->stride[at] * left);
        }
        if (need < 1) return false;
    }
    out.first[rank] = n;
    *v = out;
    return true;
}

void view_transpose(struct view *v, const int64_t *perm) {
    struct view out = *v;
    int n = 0;
    for (int d = 0; d < v->rank; d++) {
        out.first[d] = n;
        for (int i = v->first[perm[d]]; i < v->first[perm[d] + 1]; i++) {
            out.size[n] = v->size[i];
            out.stride[n++] = v->stride[i];
        }
    }
    *v = out;
}

void view_swap_last(struct view *v) {
    int64_t perm[GRAPH_MAX_RANK];
    for (int d = 0; d < v->rank; d++)
        perm[d] = d;
    perm[v->rank - 1] = v->rank - 2;
    perm[v->rank - 2] = v->rank - 1;
    view_transpose(v, perm);
}

bool view_expand(struct view *v, int rank, const int64_t *dims) {
    struct view out = *v;
    int n = 0, more = rank - v->rank;
    out.rank = rank;
    for (int d = 0; d < rank; d++) {
        int from = d - more;
        out.first[d] = n;
        if (from >= 0) {
            for (int i = v->first[from]; i < v->first[from + 1]; i++) {
                out.size[n] = v->size[i];
                out.stride[n++] = v->stride[i];
            }
            if (view_dim(v, from) == dims[d]) continue;
        }
        if (dims[d] == 1) continue;
        if (n == VIEW_ATOMS) return false;
        out.size[n] = dims[d];
        out.stride[n++] = 0;
    }
    out.first[rank] = n;
    *v = out;
    return true;
}

bool view_apply(struct view *v, const struct graph_node *n) {
    const struct graph_value *y = n->outputs[0];
    if (n->has_chain || graph_value_elems(y) == 0) return false;
    if (n->op == GRAPH_RESHAPE) return view_reshape(v, y->rank, y->dims);
    if (n->op == GRAPH_EXPAND) return view_expand(v, y->rank, y->dims);
    if (n->op != GRAPH_TRANSPOSE) return false;
    view_transpose(v, graph_attr(n, GRAPH_ATTR_PERM)->ints);
    return true;
}

struct view view_trace(struct graph_value *v, bool repeats,
                       struct graph_value *(*through)(struct graph_node *n, void *arg), void *arg) {
    struct graph_value *path[VIEW_PATH];
    struct graph_node *by[VIEW_PATH] = {
        NULL}; // that makes path[k] from path[k + 1]; NULL: as it is
    int n = 1;
    path[0] = v;
    for (struct graph_node *p; n < VIEW_PATH && (p = path[n - 1]->producer); n++) {
        bool moves = p->op == GRAPH_RESHAPE || p->op == GRAPH_TRANSPOSE ||
                     (p->op == GRAPH_EXPAND && repeats);
        struct graph_value *x = moves ? p->inputs[0] : through ? through(p, arg) : NULL;
        if (!x) break;
        by[n - 1] = moves ? p : NULL;
        path[n] = x;
    }
    // The longest part that is one view: from the far end on, cut where a step does not fit.
    struct view w = view_of(path[n - 1]);
    int root = n - 1;
    for (int k = n - 2; k >= 0; k--) {
        if (!by[k] || view_apply(&w, by[k])) continue;
        w = view_of(path[k]);
        root = k;
    }
    w.npath = root + 1;
    memcpy(w.path, path, (size_t)w.npath * sizeof *path);
    return w;
}

// Joins neighbouring atoms of a dimension that continue each other.
static void join_atoms(struct view *v) {
    struct view out = *v;
    int n = 0;
    for (int d = 0; d < v->rank; d++) {
        out.first[d] = n;
        for (int i = v->first[d]; i < v->first[d + 1]; i++)
            n = put(&out, n, out.first[d], v->size[i], v->stride[i]);
    }
    out.first[v->rank] = n;
    *v = out;
}

bool view_in_order(const struct view *v) {
    int64_t step = graph_value_elems(v->root);
    for (int i = 0; i < v->first[v->rank]; i++) {
        if (v->stride[i] * v->size[i] != step) return false;
        step = v->stride[i];
    }
    return true;
}

// Every dimension of the view is one of the root's.
bool view_is_transpose(const struct view *view, int64_t perm[GRAPH_MAX_RANK]) {
    struct view joined = *view, *v = &joined;
    join_atoms(v);
    struct view root = view_of(v->root);
    unsigned taken = 0;
    if (v->rank != root.rank) return false;
    for (int pass = 0; pass < 2; pass++) // dimensions of size 1 take what is left, in order
        for (int d = 0; d < v->rank; d++) {
            if ((view_dim(v, d) == 1) != (pass == 1)) continue;
            int from = 0;
            for (; from < v->rank; from++) {
                if (taken >> from & 1 || view_dim(&root, from) != view_dim(v, d)) continue;
                if (pass == 1 || (v->first[d + 1] == v->first[d] + 1 &&
                                  root.stride[root.first[from]] == v->stride[v->first[d]]))
                    break;
            }
            if (from == v->rank) return false;
            taken |= 1u << from;
            perm[d] = from;
        }
    return true;
}

// ---- writing a view as nodes

static npu_status add(struct graph *g, enum graph_op op, enum graph_attr_key key, const char *name,
                      int n, const int64_t *ints, struct graph_node *before,
                      struct graph_value **value) {
    struct graph_node *node = graph_add_node(g, op, name, 1, value, before);
    graph_set_ints(g, node, key, n, ints);
    NPU_TRY(graph_infer(g, node, name));
    *value = node->outputs[0];
    return NULL;
}

static npu_status reshape(struct graph *g, const char *name, int rank, const int64_t *dims,
                          struct graph_node *before, struct graph_value **v) {
    if ((*v)->rank == rank && (!rank || !memcmp((*v)->dims, dims, (size_t)rank * sizeof *dims)))
        return NULL;
    return add(g, GRAPH_RESHAPE, GRAPH_ATTR_SHAPE, name, rank, dims, before, v);
}

static bool same_view(const struct view *a, const struct view *b) {
    if (a->root != b->root || a->rank != b->rank) return false;
    for (int d = 0; d <= a->rank; d++)
        if (a->first[d] != b->first[d]) return false;
    size_t bytes = (size_t)a->first[a->rank] * sizeof *a->size;
    return !bytes || (!memcmp(a->size, b->size, bytes) && !memcmp(a->stride, b->stride, bytes));
}

// Gives dimensions of size 1 an atom too, where no dimension has several: then the transposed value
// has the view's dimensions already. They go first in the root.
static void spread(struct view *v, int *n) {
    int64_t size[GRAPH_MAX_RANK], stride[GRAPH_MAX_RANK];
    for (int d = 0; d < v->rank; d++) {
        int i = v->first[d];
        if (v->first[d + 1] > i + 1) return;
        size[d] = v->first[d + 1] > i ? v->size[i] : 1;
        stride[d] = v->first[d + 1] > i ? v->stride[i] : INT64_MAX;
    }
    for (int d = 0; d < v->rank; d++) {
        v->size[d] = size[d];
        v->stride[d] = stride[d];
    }
    *n = v->rank;
}

npu_status view_emit(struct graph *g, const struct view *view, const char *name,
                     struct graph_node *before, struct graph_value **out) {
    struct view v = *view;
    join_atoms(&v);
    for (int k = 0; k < v.npath; k++) {
        if (v.path[k]->dtype != v.root->dtype) continue;
        struct view w = view_trace(v.path[k], true, NULL, NULL);
        join_atoms(&w);
        if (!same_view(&w, &v)) continue;
        *out = v.path[k];
        return NULL;
    }
    int64_t dims[VIEW_ATOMS], perm[VIEW_ATOMS], size[VIEW_ATOMS];
    struct graph_value *x = v.root;
    int n = v.first[v.rank];
    if (view_is_transpose(&v, perm)) {
        NPU_TRY(add(g, GRAPH_TRANSPOSE, GRAPH_ATTR_PERM, name, v.rank, perm, before, &x));
        *out = x;
        return NULL;
    }
    if (n > GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "'%s' moved by more than %d dimensions", v.root->name,
                        GRAPH_MAX_RANK);
    bool moved = false;
    for (int d = 0; d < v.rank; d++)
        dims[d] = view_dim(&v, d);
    spread(&v, &n);
    for (int i = 0; i < n; i++) { // perm[i]: the place of atom i in the root, by distance
        int place = 0;
        for (int k = 0; k < n; k++)
            place += v.stride[k] > v.stride[i] || (v.stride[k] == v.stride[i] && k < i);
        perm[i] = place;
        size[place] = v.size[i];
        moved |= place != i;
    }
    if (moved) {
        NPU_TRY(reshape(g, name, n, size, before, &x));
        NPU_TRY(add(g, GRAPH_TRANSPOSE, GRAPH_ATTR_PERM, name, n, perm, before, &x));
    }
    NPU_TRY(reshape(g, name, v.rank, dims, before, &x));
    *out = x;
    return NULL;
}
