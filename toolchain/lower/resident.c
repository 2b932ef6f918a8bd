// SPDX-License-Identifier: Apache-2.0
// Which values stay in the scratchpad between the kernels that make and use them.
//
// A scratch buffer lives from the first node that writes it to the last that reads it. Buffers are
// taken in order of uses per node of life (a value read by the next kernel first, one that bridges
// many kernels last) while all that are live at any node stay within the given part of the
// scratchpad.
#include "toolchain/lower/internal.h"

#include <stdlib.h>
#include <string.h>

struct candidate {
    int buf, first, last, uses;
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

int64_t lower_reside(struct lower *L, int percent, int64_t *live) {
    int count = L->p->nbuf, at = 0, n = 0;
    struct candidate *all = ARENA_ARRAY(L->a, struct candidate, (size_t)count + 1),
                     *list = ARENA_ARRAY(L->a, struct candidate, (size_t)count + 1);
    for (int i = 0; i < count; i++)
        all[i] = (struct candidate){.buf = i,
                                    .first = -1,
                                    .bytes = lower_ceil(L->p->bufs[i]->bytes, 64) * 64};
    for (const struct graph_node *node = L->g->first; node; node = node->next, at++) {
        bool alias = lower_is_alias(L, node);
        for (int k = 0; k < node->nin; k++)
            touch(L, all, node->inputs[k], at, !alias);
        for (int k = 0; k < node->nout; k++)
            touch(L, all, node->outputs[k], at, false);
    }
    int64_t most = L->hw->spm_bytes * percent / 100;
    for (int i = 0; i < count; i++)
        if (L->p->bufs[i]->kind == TILE_SCRATCH && all[i].first >= 0 && all[i].bytes <= most)
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
        if (!L->placed[i] || L->place[i].buf >= count || !to[L->place[i].buf]) continue;
        L->place[i].buf = to[L->place[i].buf];
        L->place[i].chip = true;
    }
    int64_t peak = 0;
    for (int i = 0; i < at; i++)
        peak = lower_max(peak, live[i]);
    return peak;
}
