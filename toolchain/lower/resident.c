// SPDX-License-Identifier: Apache-2.0
// Which values stay in the scratchpad between the kernels that make and use them.
//
// A scratch buffer lives from the first node that writes it to the last that reads it. Buffers are
// taken in order of uses per node of life (a value read by the next kernel first, one that bridges
// many kernels last) while all that are live at any node stay within the given part of the
// scratchpad.
//
// A result takes the place of an operand that dies there when the kernel reads and writes element
// by element: both are one buffer then.
#include "toolchain/lower/internal.h"

#include <stdlib.h>
#include <string.h>

struct candidate {
    int buf, first, last, uses;
    int root; // the buffer whose place this one takes; its own number when none
    int64_t bytes;
};

static int by_worth(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    double p = (double)(1 + x->uses) / (x->last - x->first + 1),
           q = (double)(1 + y->uses) / (y->last - y->first + 1);
    if (p < q || p > q) return p > q ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->buf - y->buf;
}

static void touch(struct lower *L, struct candidate *c, const struct graph_value *v, int at,
                  bool reads) {
    struct candidate *x = &c[L->place[v->id].buf];
    if (x->first < 0) x->first = at;
    x->last = at;
    x->uses += reads;
}

static int root_of(const struct candidate *c, int buf) {
    while (c[buf].root != buf)
        buf = c[buf].root;
    return buf;
}

// The first operand that n reads element by element, as it writes its result: nin when there is
// none.
static int first_elementwise(const struct graph_node *n) {
    switch (n->op) {
    case GRAPH_MAP:
    case GRAPH_SOFTMAX:
    case GRAPH_LAYERNORM:
    case GRAPH_GROUPNORM:
    case GRAPH_RMSNORM: return 0;
    case GRAPH_MATMUL:
    case GRAPH_CONV:
    case GRAPH_CONVT:
    case GRAPH_GLU_MLP: return n->nown;
    case GRAPH_ATTENTION:
    case GRAPH_ROTARY:
    case GRAPH_GLU:
    case GRAPH_POOL:
    case GRAPH_REDUCE:
    case GRAPH_BATCHNORM:
    case GRAPH_RESHAPE:
    case GRAPH_TRANSPOSE:
    case GRAPH_SLICE:
    case GRAPH_CONCAT:
    case GRAPH_EXPAND:
    case GRAPH_PAD:
    case GRAPH_GATHER:
    case GRAPH_RESIZE:
    case GRAPH_RANGE:
    case GRAPH_COPY:
    case GRAPH_OPS: break;
    }
    return n->nin;
}

static bool same_elements(const struct lower *L, const struct graph_value *x,
                          const struct graph_value *y) {
    const struct lower_view *p = &L->place[x->id], *q = &L->place[y->id];
    bool same = x->rank == y->rank && lower_dtype_bytes(x->dtype) == lower_dtype_bytes(y->dtype) &&
                p->offset == 0 && q->offset == 0;
    for (int d = 0; d < x->rank && same; d++)
        same = x->dims[d] == y->dims[d] && p->stride[d] == q->stride[d];
    return same;
}

// Lets the result of n, the at-th node, take the place of an operand that no other node reads any
// more.
static void reuse(struct lower *L, struct candidate *c, const struct graph_node *n, int at) {
    const struct graph_value *y = n->outputs[0];
    struct candidate *to = &c[L->place[y->id].buf];
    if (L->p->bufs[to->buf]->kind != TILE_SCRATCH || to->first != at ||
        graph_value_bytes(y) != L->p->bufs[to->buf]->bytes)
        return;
    for (int k = first_elementwise(n); k < n->nin; k++) {
        const struct graph_value *x = n->inputs[k];
        struct candidate *from = &c[root_of(c, L->place[x->id].buf)];
        bool alone = L->p->bufs[from->buf]->kind == TILE_SCRATCH && from->last == at &&
                     L->p->bufs[from->buf]->bytes == L->p->bufs[to->buf]->bytes &&
                     same_elements(L, x, y);
        for (int j = 0; j < n->nin && alone; j++)
            if (root_of(c, L->place[n->inputs[j]->id].buf) == from->buf)
                alone = j >= first_elementwise(n) && same_elements(L, n->inputs[j], y);
        if (!alone) continue;
        to->root = from->buf;
        from->last = to->last;
        from->uses += to->uses;
        return;
    }
}

int64_t lower_reside(struct lower *L, int percent, int64_t *live) {
    int count = L->p->nbuf, at = 0, n = 0;
    struct candidate *all = ARENA_ARRAY(L->a, struct candidate, (size_t)count + 1),
                     *list = ARENA_ARRAY(L->a, struct candidate, (size_t)count + 1);
    for (int i = 0; i < count; i++)
        all[i] = (struct candidate){.buf = i,
                                    .root = i,
                                    .first = -1,
                                    .bytes = lower_ceil(L->p->bufs[i]->bytes, 64) * 64};
    for (const struct graph_node *node = L->g->first; node; node = node->next, at++) {
        bool alias = lower_is_alias(L, node);
        for (int k = 0; k < node->nin; k++)
            touch(L, all, node->inputs[k], at, !alias);
        for (int k = 0; k < node->nout; k++)
            touch(L, all, node->outputs[k], at, false);
    }
    at = 0;
    for (const struct graph_node *node = L->g->first; node; node = node->next, at++)
        if (!lower_is_alias(L, node)) reuse(L, all, node, at);
    int64_t most = L->hw->spm_bytes * percent / 100;
    for (int i = 0; i < count; i++)
        if (L->p->bufs[i]->kind == TILE_SCRATCH && all[i].root == i && all[i].first >= 0 &&
            all[i].bytes <= most)
            list[n++] = all[i];
    qsort(list, (size_t)n, sizeof *list, by_worth);
    int *to = ARENA_ARRAY(L->a, int, (size_t)count + 1);
    for (int i = 0; i < n; i++) {
        bool fits = true;
        for (int k = list[i].first; k <= list[i].last && fits; k++)
            fits = live[k] + list[i].bytes <= most;
        if (!fits) continue;
        for (int k = list[i].first; k <= list[i].last; k++)
            live[k] += list[i].bytes;
        const struct tile_buf *b = L->p->bufs[list[i].buf];
        to[list[i].buf] = tile_add_resident(L->p, b->name, b->bytes, b->value);
    }
    for (int i = 0; i < L->g->nvalue; i++) {
        if (!L->placed[i] || L->place[i].buf >= count) continue;
        int id = to[root_of(all, L->place[i].buf)];
        if (!id) continue;
        L->place[i].buf = id;
        L->place[i].chip = true;
    }
    int64_t peak = 0;
    for (int i = 0; i < at; i++)
        peak = lower_max(peak, live[i]);
    return peak;
}
