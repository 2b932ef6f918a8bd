// SPDX-License-Identifier: Apache-2.0
// Where each value lies in DRAM, and which nodes move nothing because their result is a view.
//
//   1. fixed: graph inputs and outputs (a buffer each, row-major), constants (weight buffers of the
//   model's bytes)
//   2. from the last node to the first, for each node that could be a view:
//        result already placed    its input is placed inside the result where that stores well (the
//        producer then writes there) concat                   the result gets a buffer, the inputs
//        their parts of it other                    left for 3 when it will be a view of its
//        source; else as above with a buffer of its own
//   3. from the first node to the last: views of placed inputs; every other value gets a buffer in
//   its storage order
//
// A value "stores well" in a place when the dimension that is contiguous in its own storage order
// is contiguous there too, in runs of at least a burst. Results of nodes that ended up in a
// different place are copied by their kernels.
#include "toolchain/lower/internal.h"

#include <string.h>

static struct lower_view strided(const struct graph_value *v, int buf) {
    struct lower_view p = {.buf = buf, .dtype = v->dtype};
    graph_value_strides(v, p.stride);
    for (int d = 0; d < v->rank; d++)
        if (v->dims[d] == 1) p.stride[d] = 0;
    return p;
}

static void put(struct lower *L, const struct graph_value *v, const struct lower_view *place) {
    L->place[v->id] = *place;
    L->placed[v->id] = true;
}

static void own(struct lower *L, const struct graph_value *v, enum tile_kind kind,
                const void *data) {
    struct lower_view p =
        strided(v, tile_add_dram(L->p, v->name, kind, lower_max(graph_value_bytes(v), 1), data, v));
    put(L, v, &p);
}

// Constants are row-major in the model; one whose storage order differs is stored in that order, so
// that kernels load runs. Types of less than a byte are lent as they are.
static void own_constant(struct lower *L, const struct graph_value *v) {
    bool bytes = isa_dtype_bits((int)v->dtype) >= 8;
    struct graph_value as = *v;
    bool ordered = v->has_order && v->rank > 1 && bytes;
    as.has_order = ordered;
    int64_t size = lower_max(graph_value_bytes(v), 1);
    if (!ordered && graph_data_dtype(v) == v->dtype) {
        struct lower_view p =
            strided(&as, tile_add_dram(L->p, v->name, TILE_WEIGHT, size, v->data, v));
        put(L, v, &p);
        return;
    }
    struct tile_block whole = {.from = v->data,
                               .from_dtype = graph_data_dtype(v),
                               .dtype = v->dtype,
                               .rank = v->rank};
    memcpy(whole.size, v->dims, sizeof v->dims);
    graph_value_strides(&as, whole.to_stride);
    as.has_order = false;
    graph_value_strides(&as, whole.from_stride);
    int buf = tile_add_weight(L->p, v->name, size, &whole, 1);
    L->p->bufs[buf]->value = v;
    as.has_order = ordered;
    struct lower_view p = strided(&as, buf);
    put(L, v, &p);
}

// Strides of `to` (row-major order of the same elements) over the memory of `from`; false when
// there are none.
static bool reshaped(const struct graph_value *from, const struct lower_view *place,
                     const struct graph_value *to, struct lower_view *out) {
    int64_t size[LOWER_DIMS], stride[LOWER_DIMS];
    int n = 0;
    *out = *place;
    memset(out->stride, 0, sizeof out->stride);
    for (int d = 0; d < from->rank; d++) {
        if (from->dims[d] == 1) continue;
        if (n && stride[n - 1] == place->stride[d] * from->dims[d]) {
            size[n - 1] *= from->dims[d];
            stride[n - 1] = place->stride[d];
        } else {
            size[n] = from->dims[d];
            stride[n++] = place->stride[d];
        }
    }
    int at = n - 1;
    int64_t done = 1;
    for (int d = to->rank - 1; d >= 0; d--) {
        if (to->dims[d] == 1) continue;
        if (at < 0 || size[at] % (done * to->dims[d])) return false;
        out->stride[d] = stride[at] * done;
        done *= to->dims[d];
        if (done == size[at]) {
            at--;
            done = 1;
        }
    }
    return true;
}

// Place of n's result as a view of its input at `in`.
static bool forward(const struct graph_node *n, const struct lower_view *in,
                    struct lower_view *out) {
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    int64_t start[LOWER_DIMS] = {0};
    if (x->dtype != y->dtype || n->has_chain) return false;
    if (n->op == GRAPH_RESHAPE) return reshaped(x, in, y, out);
    *out = *in;
    memset(out->stride, 0, sizeof out->stride);
    for (int d = 0; d < y->rank; d++) {
        if (n->op == GRAPH_TRANSPOSE) {
            out->stride[d] = in->stride[graph_ints_at(n, GRAPH_ATTR_PERM, d, y->rank - 1 - d)];
        } else if (n->op == GRAPH_EXPAND) {
            int from = d - (y->rank - x->rank);
            out->stride[d] = from >= 0 && x->dims[from] > 1 ? in->stride[from] : 0;
        } else if (n->op == GRAPH_SLICE) {
            start[d] = graph_ints_at(n, GRAPH_ATTR_STARTS, d, 0);
            out->stride[d] =
                y->dims[d] > 1 ? in->stride[d] * graph_ints_at(n, GRAPH_ATTR_STEPS, d, 1) : 0;
        } else if (n->op == GRAPH_COPY) {
            out->stride[d] = in->stride[d];
        } else {
            return false;
        }
    }
    out->offset = lower_at(in, x->rank, start).offset;
    return true;
}

// Place of n's k-th input so that n's result at `out` is it, or contains it.
static bool backward(const struct graph_node *n, int k, const struct lower_view *out,
                     struct lower_view *in) {
    const struct graph_value *x = n->inputs[k], *y = n->outputs[0];
    if (x->dtype != y->dtype || n->has_chain) return false;
    if (n->op == GRAPH_RESHAPE) return reshaped(y, out, x, in);
    *in = *out;
    if (n->op == GRAPH_TRANSPOSE) {
        for (int d = 0; d < y->rank; d++)
            in->stride[graph_ints_at(n, GRAPH_ATTR_PERM, d, y->rank - 1 - d)] = out->stride[d];
        return true;
    }
    if (n->op != GRAPH_CONCAT) return false;
    int axis = (int)graph_int(n, GRAPH_ATTR_AXIS, 0);
    int64_t start[LOWER_DIMS] = {0};
    for (int i = 0; i < k; i++)
        start[axis] += n->inputs[i]->dims[axis];
    in->offset = lower_at(out, y->rank, start).offset;
    if (x->dims[axis] == 1) in->stride[axis] = 0;
    return true;
}

static int innermost(const struct graph_value *v, const struct lower_view *p) {
    int best = -1;
    for (int d = 0; d < v->rank; d++)
        if (v->dims[d] > 1 && p->stride[d] && (best < 0 || (p->stride[d] < p->stride[best])))
            best = d;
    return best;
}

static bool stores_well(const struct lower *L, const struct graph_value *v,
                        const struct lower_view *p) {
    struct lower_view want = strided(v, -1);
    bool same = true;
    for (int d = 0; d < v->rank; d++)
        same = same && (v->dims[d] == 1 || want.stride[d] == p->stride[d]);
    if (same) return true;
    int in = innermost(v, &want);
    if (in < 0 || in != innermost(v, p) || p->stride[in] != 1) return false;
    return v->dims[in] * lower_dtype_bytes(v->dtype) >= lower_min(64, L->hw->dma_burst_bytes);
}

// Does n read input k on the matrix engine, which takes its operands with any strides?
static bool by_matrix_engine(const struct graph_node *n, int k) {
    if (n->op == GRAPH_MATMUL) return k < 2;
    if ((n->op != GRAPH_CONV && n->op != GRAPH_CONVT) || k > 0) return false;
    return n->op == GRAPH_CONVT || n->inputs[1]->dims[1] > 1 || n->inputs[0]->dims[1] == 1;
}

// True when only the matrix engine reads v, so that just the runs of its place count.
static bool only_products(const struct lower *L, const struct graph_value *v,
                          const struct lower_view *p) {
    int in = innermost(v, p);
    if (in < 0 || p->stride[in] != 1 || v->is_output) return false;
    for (const struct graph_node *n = L->g->first; n; n = n->next)
        for (int k = 0; k < n->nin; k++)
            if (n->inputs[k] == v && !by_matrix_engine(n, k)) return false;
    return v->dims[in] * lower_dtype_bytes(v->dtype) >= L->hw->dma_burst_bytes;
}

static bool is_view(const struct graph_node *n) {
    return n && (n->op == GRAPH_RESHAPE || n->op == GRAPH_TRANSPOSE || n->op == GRAPH_SLICE ||
                 n->op == GRAPH_EXPAND || n->op == GRAPH_COPY);
}

// Its rows are whole in that place, however short they are.
static bool whole_rows(const struct graph_value *v, const struct lower_view *p) {
    struct lower_view want = strided(v, -1);
    int in = innermost(v, &want);
    return in < 0 || (in == innermost(v, p) && p->stride[in] == 1);
}

// Attention loads its operands row by row, and reads each once or nearly so; a mean reads them too.
// Views between are views of what they are of.
static bool by_attention(const struct lower *L, const struct graph_value *v) {
    bool any = false;
    if (v->is_output) return false;
    for (const struct graph_node *n = L->g->first; n; n = n->next)
        for (int k = 0; k < n->nin; k++) {
            if (n->inputs[k] != v) continue;
            bool view = n->op == GRAPH_RESHAPE || n->op == GRAPH_TRANSPOSE || n->op == GRAPH_SLICE;
            if ((n->op == GRAPH_ATTENTION && k < 3) || (view && by_attention(L, n->outputs[0])))
                any = true;
            else if (n->op != GRAPH_REDUCE)
                return false;
        }
    return any;
}

// A part of another value that one node reads: copying it first would read the same short runs.
static bool read_once(const struct lower *L, const struct graph_node *n,
                      const struct lower_view *p) {
    const struct graph_value *y = n->outputs[0];
    bool once = n->op == GRAPH_SLICE && graph_count_uses(L->g, y) == 1;
    return (once || by_attention(L, y)) && whole_rows(y, p);
}

static bool good_view(const struct lower *L, const struct graph_node *n,
                      const struct lower_view *p) {
    const struct graph_value *y = n->outputs[0];
    return n->op == GRAPH_EXPAND || stores_well(L, y, p) || read_once(L, n, p) ||
           only_products(L, y, p);
}

// Would n's result be a good view if nothing above it moved? The source is taken to lie in its own
// order.
static bool will_view(const struct lower *L, const struct graph_node *n, struct lower_view *place) {
    const struct graph_value *x = n->inputs[0];
    struct lower_view from;
    if (L->placed[x->id])
        from = L->place[x->id];
    else if (!is_view(x->producer) || !will_view(L, x->producer, &from))
        from = strided(x, -1);
    return forward(n, &from, place) && good_view(L, n, place);
}

// Can input k of n lie where n's result at `out` wants it? Yes when whatever makes it can write
// there: a kernel, or a view whose own input can be moved in turn (a view that cannot be moved
// stays one, and n copies).
static bool can_push(const struct lower *L, const struct graph_node *n, int k,
                     const struct lower_view *out, struct lower_view *place) {
    const struct graph_value *x = n->inputs[k];
    struct lower_view above;
    if (L->placed[x->id] || (n->op == GRAPH_TRANSPOSE && graph_count_uses(L->g, x) > 1))
        return false;
    if (!backward(n, k, out, place)) return false;
    // Concatenation would write the same runs as whatever makes its input.
    struct lower_view want = strided(x, -1);
    // What attention writes goes in rows of one head: a copy would not write longer ones.
    bool rows = x->producer && x->producer->op == GRAPH_ATTENTION && whole_rows(x, place);
    if (!rows && !stores_well(L, x, place) &&
        (n->op != GRAPH_CONCAT || innermost(x, place) != innermost(x, &want)))
        return false;
    return !is_view(x->producer) || can_push(L, x->producer, 0, place, &above);
}

// In an eager program nobody writes to the place where a later call wants it, but for a result that
// is just read in another shape.
static bool may_push(const struct lower *L, const struct graph_node *n, int k) {
    const struct graph_node *from = n->inputs[k]->producer;
    return !L->opt.eager || n->op == GRAPH_RESHAPE || n->op == GRAPH_COPY ||
           (from && from->call == n->call);
}

static void push(struct lower *L, const struct graph_node *n) {
    for (int k = 0; k < (n->op == GRAPH_CONCAT ? n->nin : 1); k++) {
        struct lower_view p;
        if (!may_push(L, n, k)) continue;
        if (can_push(L, n, k, &L->place[n->outputs[0]->id], &p)) put(L, n->inputs[k], &p);
    }
}

static bool same_place(const struct graph_value *v, const struct lower_view *a,
                       const struct lower_view *b) {
    bool same = a->buf == b->buf && a->offset == b->offset;
    for (int d = 0; d < v->rank && same; d++)
        same = v->dims[d] == 1 || a->stride[d] == b->stride[d];
    return same;
}

static bool moves_nothing(const struct graph_node *n) {
    return n && (n->op == GRAPH_RESHAPE || n->op == GRAPH_TRANSPOSE);
}

// Where x lies, a view of s that nothing else reads; false when it is no such view.
static bool sole_view(const struct lower *L, const struct graph_value *s,
                      const struct graph_value *x, struct lower_view *place) {
    struct lower_view of;
    if (graph_count_uses(L->g, x) != 1) return false;
    if (x == s) {
        *place = L->place[s->id];
        return true;
    }
    return moves_nothing(x->producer) && sole_view(L, s, x->producer->inputs[0], &of) &&
           forward(x->producer, &of, place);
}

// A state whose only reader makes its next value from it, element by element, is changed where
// it lies.
static bool in_place(const struct lower *L, const struct graph_value *next) {
    const struct graph_value *s = next->state, *v = next;
    struct lower_view to = L->place[s->id], from;
    if (s->has_order || next->has_order || s->dtype != next->dtype) return false;
    for (; moves_nothing(v->producer); v = v->producer->inputs[0]) {
        struct lower_view in;
        if (!backward(v->producer, 0, &to, &in)) return false;
        to = in;
    }
    const struct graph_node *n = v->producer;
    for (int k = 0; n && n->op == GRAPH_MAP && k < n->nin; k++) {
        const struct graph_value *x = n->inputs[k];
        bool same = x->rank == v->rank && sole_view(L, s, x, &from);
        for (int d = 0; d < v->rank && same; d++)
            same = x->dims[d] == v->dims[d];
        if (same) return same_place(v, &from, &to);
    }
    return false;
}

// A buffer that holds its first value.
static void own_state(struct lower *L, const struct graph_value *v) {
    own(L, v, TILE_STATE, NULL);
    if (!v->initial) return;
    struct tile_block whole = {.from = v->initial->data,
                               .from_dtype = graph_data_dtype(v->initial),
                               .dtype = v->dtype,
                               .rank = v->rank};
    memcpy(whole.size, v->dims, sizeof v->dims);
    graph_value_strides(v, whole.to_stride);
    memcpy(whole.from_stride, whole.to_stride, sizeof whole.to_stride);
    tile_set_blocks(L->p, L->place[v->id].buf, &whole, 1);
}

npu_status lower_storage(struct lower *L) {
    const struct graph *g = L->g;
    L->place = ARENA_ARRAY(L->a, struct lower_view, (size_t)g->nvalue + 1);
    L->placed = ARENA_ARRAY(L->a, bool, (size_t)g->nvalue + 1);
    for (int i = 0; i < g->ninput; i++) {
        if (g->inputs[i]->is_state)
            own_state(L, g->inputs[i]);
        else
            own(L, g->inputs[i], TILE_INPUT, NULL);
    }
    for (int i = 0; i < g->nvalue; i++)
        if (g->values[i] && g->values[i]->data && !L->placed[i]) own_constant(L, g->values[i]);
    for (int i = 0; i < g->noutput; i++) {
        const struct graph_value *v = g->outputs[i];
        if (v->state && in_place(L, v))
            put(L, v, &L->place[v->state->id]);
        else if (!L->placed[v->id])
            own(L, v, TILE_OUTPUT, NULL);
    }
    for (const struct graph_node *n = g->last; n; n = n->prev) {
        struct lower_view p;
        if (!is_view(n) && n->op != GRAPH_CONCAT) continue;
        const struct graph_value *y = n->outputs[0];
        if (!L->placed[y->id]) {
            if (is_view(n) && will_view(L, n, &p)) continue;
            own(L, y, TILE_SCRATCH, NULL);
        }
        push(L, n);
    }
    for (const struct graph_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nout; k++) {
            const struct graph_value *v = n->outputs[k];
            struct lower_view p;
            if (L->placed[v->id]) continue;
            if (is_view(n) && forward(n, &L->place[n->inputs[0]->id], &p) && good_view(L, n, &p))
                put(L, v, &p);
            else
                own(L, v, TILE_SCRATCH, NULL);
        }
    return NULL;
}

bool lower_is_part(const struct lower *L, const struct graph_node *n, int k) {
    struct lower_view p;
    return backward(n, k, &L->place[n->outputs[0]->id], &p) &&
           same_place(n->inputs[k], &p, &L->place[n->inputs[k]->id]);
}

bool lower_is_alias(const struct lower *L, const struct graph_node *n) {
    struct lower_view p;
    if (n->op == GRAPH_CONCAT) {
        for (int k = 0; k < n->nin; k++)
            if (!lower_is_part(L, n, k)) return false;
        return true;
    }
    return is_view(n) && forward(n, &L->place[n->inputs[0]->id], &p) &&
           same_place(n->outputs[0], &p, &L->place[n->outputs[0]->id]);
}
