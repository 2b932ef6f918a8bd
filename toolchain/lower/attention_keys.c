// SPDX-License-Identifier: Apache-2.0
// Keys and values of the attention kernel.
//
// Where they fit, all of a head stay in a slot while the head's query rows pass. The first rows of
// a head that nobody fetched ahead are loaded by the item that needs them, up to its last key; with
// two slots the next head's rows follow in small parts, one per item, so that the loads of queries
// and masks, which share the queues, never wait long.
#include "toolchain/lower/attention.h"

#include <string.h>

// A part takes each DMA engine at least that many times a transfer's start.
#define LEAST_STARTS 3

void attn_part(const struct attn *a, const struct attn_item *it, bool keys, int64_t columns,
               int64_t *start, int64_t *size) {
    int nb = a->nb;
    for (int d = 0; d < nb; d++) {
        start[d] = it->at[d];
        size[d] = 1;
    }
    size[nb - 1] = it->tb;
    start[nb] = it->at[nb];
    size[nb] = it->tg;
    start[nb + 1] = keys ? it->keys.lo : it->at[nb + 1];
    size[nb + 1] = keys ? it->keys.hi - it->keys.lo : it->tm;
    start[nb + 2] = 0;
    size[nb + 2] = columns;
}

// Items that pass while a head stays.
static int64_t items_of_head(const struct attn *a, const struct attn_tile *t) {
    int64_t n = 0;
    for (int64_t m0 = 0; m0 < a->m; m0 += t->tm) {
        struct lower_range k = attn_keys(a, m0, lower_min(t->tm, a->m - m0));
        n += lower_ceil(k.hi - k.lo, t->tn);
    }
    return n * lower_ceil(a->g, t->tg);
}

void attn_hold(const struct lower *L, const struct attn *a, const struct attn_tile *t,
               struct lower_stream *s, int64_t columns, struct attn_held *h) {
    int64_t last = (a->m - 1) / t->tm * t->tm;
    *h = (struct attn_held){.s = s, .columns = columns, .tb = t->tb};
    h->whole_heads = t->heads > 0 && !s->src.chip;
    h->rows.lo = a->mean ? 0 : attn_keys(a, 0, lower_min(t->tm, a->m)).lo;
    h->rows.hi = a->mean ? a->s : attn_keys(a, last, a->m - last).hi;
    h->done = h->ahead = h->rows.lo;
    int64_t row_bytes = t->tb * columns * lower_dtype_bytes(a->dtype);
    int64_t least =
        lower_ceil(LEAST_STARTS * L->hw->dma_start * L->hw->dma_width_bytes * L->hw->dma_engines,
                   row_bytes);
    h->chunk = lower_max(least, lower_ceil(h->rows.hi - h->rows.lo, items_of_head(a, t)));
}

// Rows lo .. hi - 1 of the heads at `at` into a slot.
static void load_rows(struct lower *L, const struct attn *a, const struct attn_held *h,
                      const int64_t *at, int slot, int64_t lo, int64_t hi) {
    const struct lower_stream *s = h->s;
    int nb = a->nb;
    int64_t start[LOWER_DIMS] = {0}, size[LOWER_DIMS], row[LOWER_DIMS] = {0};
    if (lo >= hi) return;
    for (int d = 0; d < nb; d++) {
        start[d] = s->src.stride[d] ? at[d] : 0;
        size[d] = 1;
    }
    size[nb - 1] = s->src.stride[nb - 1] ? lower_min(h->tb, a->batch[nb - 1] - at[nb - 1]) : 1;
    size[nb] = 1;
    start[nb + 1] = row[nb + 1] = lo;
    size[nb + 1] = s->src.stride[nb + 1] ? hi - lo : 1;
    size[nb + 2] = s->src.stride[nb + 2] ? h->columns : 1;
    struct lower_view from = lower_at(&s->src, nb + 3, start),
                      to = {.buf = s->buf, .slot = slot, .dtype = s->dtype};
    memcpy(to.stride, s->pack, sizeof s->pack);
    to = lower_at(&to, nb + 3, row);
    lower_copy(L, TILE_LOAD, nb + 3, size, &from, &to);
}

bool attn_begins_head(const struct attn *a, const struct attn_item *it) {
    return it->first && !it->at[a->nb] && !it->at[a->nb + 1];
}

struct lower_view attn_fetch(struct lower *L, const struct attn *a, struct attn_held *h,
                             const struct attn_item *it) {
    int64_t start[LOWER_DIMS] = {0}, size[LOWER_DIMS] = {0};
    int nb = a->nb;
    if (!h->whole_heads) {
        attn_part(a, it, true, h->columns, start, size);
        return lower_stream_fetch(L, h->s, start, size);
    }
    if (attn_begins_head(a, it) && it->number > h->begun) {
        h->begun = it->number;
        h->slot = (h->slot + 1) % h->s->slots;
        h->done = h->ahead;
        h->ahead = h->rows.lo;
    }
    load_rows(L, a, h, it->at, h->slot, h->done, it->keys.hi);
    h->done = lower_max(h->done, it->keys.hi);
    struct lower_view v = {.buf = h->s->buf, .slot = h->slot, .dtype = h->s->dtype};
    memcpy(v.stride, h->s->pack, sizeof h->s->pack);
    start[nb + 1] = it->keys.lo;
    return lower_at(&v, nb + 3, start);
}

struct lower_view attn_fetch_all(struct lower *L, const struct attn *a, struct attn_held *h,
                                 const struct attn_item *it, bool all_heads) {
    struct attn_item whole = *it;
    whole.keys = (struct lower_range){0, a->s};
    if (all_heads) whole.at[a->nb - 1] = 0;
    if (!h->s->src.chip) return attn_fetch(L, a, h, &whole);
    return lower_at(&h->s->src, a->nb, whole.at);
}

void attn_fetch_ahead(struct lower *L, const struct attn *a, struct attn_held *h,
                      const struct attn_item *it) {
    int nb = a->nb;
    int64_t at[LOWER_DIMS], step[LOWER_DIMS];
    if (!h->whole_heads || h->s->slots < 2) return;
    for (int d = 0; d < nb; d++)
        step[d] = d == nb - 1 ? h->tb : 1;
    memcpy(at, it->at, sizeof at);
    if (!lower_next(nb, a->batch, step, at)) return;
    int64_t to = lower_min(h->rows.hi, h->ahead + h->chunk);
    load_rows(L, a, h, at, (h->slot + 1) % h->s->slots, h->ahead, to);
    h->ahead = to;
}
