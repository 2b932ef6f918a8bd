// SPDX-License-Identifier: Apache-2.0
// Tiles of operands: DRAM blocks held in slots of an on-chip buffer, packed in the operand's own
// storage order so that transfers are runs as long as possible.
#include "toolchain/lower/internal.h"

#include <string.h>

#define WHOLE_AT_ONCE_BYTES 16384

void lower_stream_init(struct lower_stream *s, const char *name, const struct lower_view *src,
                       int rank, const int64_t *full, const int64_t *block, int slots, bool whole) {
    memset(s, 0, sizeof *s);
    s->name = name;
    s->src = *src;
    s->dtype = src->dtype;
    s->rank = rank;
    s->slots = whole ? 1 : slots;
    s->whole = whole;
    s->present = true;
    s->buf = -1;
    bool fixed = true;
    for (int d = 0; d < rank; d++)
        s->first[d] = src->stride[d] ? lower_min(block[d], full[d]) : 1;
    for (int d = 0; d < rank; d++) {
        s->full[d] = src->stride[d] ? full[d] : 1;
        s->block[d] = whole ? s->full[d] : src->stride[d] ? lower_min(block[d], full[d]) : 1;
        fixed = fixed && s->block[d] == s->full[d];
    }
    if (fixed) s->slots = 1;
    if (src->chip) {
        memcpy(s->pack, src->stride, sizeof s->pack);
        s->slots = 1;
        return;
    }
    s->bytes =
        lower_ceil(lower_pack(&s->src, rank, s->block, s->pack) * lower_dtype_bytes(s->dtype), 64) *
        64;
}

void lower_stream_spread(const struct lower *L, struct lower_stream *s, int dim) {
    int64_t es = lower_dtype_bytes(s->dtype), word = lower_max(1, L->hw->spm_bank_bytes / es);
    if (!s->present || s->src.chip || s->block[dim] == 1 || s->pack[dim] <= word) return;
    int order[LOWER_DIMS];
    int n = lower_by_stride(&s->src, s->rank, order);
    int64_t elems = 1;
    for (int i = n - 1; i >= 0; i--) {
        if (order[i] == dim) elems = (lower_ceil(elems, word) | 1) * word;
        s->pack[order[i]] = elems;
        elems *= s->block[order[i]];
    }
    s->bytes = lower_ceil(elems * es, 64) * 64;
}

double lower_whole_loads(const struct lower_stream *s) {
    double n = 1;
    for (int d = 0; d < s->rank; d++)
        n *= (double)s->full[d] / (double)s->first[d];
    return n;
}

int64_t lower_stream_bytes(const struct lower_stream *s) {
    return s->present ? s->bytes * s->slots : 0;
}

void lower_stream_open(struct lower *L, struct lower_stream *s) {
    if (s->present && !s->src.chip) s->buf = tile_add_spm(L->p, s->name, s->bytes, s->slots);
}

static void load(struct lower *L, const struct lower_stream *s, int slot, const int64_t *start,
                 const int64_t *size) {
    struct lower_view from = lower_at(&s->src, s->rank, start),
                      to = {.buf = s->buf, .slot = slot, .dtype = s->dtype};
    memcpy(to.stride, s->pack, sizeof s->pack);
    if (s->whole) to = lower_at(&to, s->rank, start);
    lower_copy(L, TILE_LOAD, s->rank, size, &from, &to);
}

// The block in terms of a part that is already there: true when it lies inside, or continues it in
// one dimension *d.
static bool continues(const struct lower_stream *s, const struct lower_held *h, const int64_t *at,
                      const int64_t *n, int *d) {
    *d = -1;
    for (int i = 0; i < s->rank; i++) {
        int64_t end = at[i] + n[i], have = h->start[i] + h->size[i];
        if (at[i] < h->start[i] || at[i] > have) return false;
        if (end <= have) continue;
        if (*d >= 0) return false;
        *d = i;
    }
    for (int i = 0; i < s->rank && *d >= 0;
         i++) // then it must be as large as the part in all others
        if (i != *d && (at[i] != h->start[i] || n[i] != h->size[i])) return false;
    return true;
}

// A whole operand comes in the parts that are asked for, each once; a small one at once.
static void fetch_part(struct lower *L, struct lower_stream *s, const int64_t *at,
                       const int64_t *n) {
    static const int64_t zero[LOWER_DIMS];
    if (s->bytes <= WHOLE_AT_ONCE_BYTES) {
        if (!s->part.len) load(L, s, 0, zero, s->full);
        if (!s->part.len) VEC_PUSH(L->a, &s->part, (struct lower_held){.valid = true});
        return;
    }
    for (size_t i = 0; i < s->part.len; i++) {
        struct lower_held *h = &s->part.ptr[i];
        int64_t from[LOWER_DIMS], size[LOWER_DIMS];
        int d;
        if (!continues(s, h, at, n, &d)) continue;
        if (d < 0) return;
        memcpy(from, at, sizeof from);
        memcpy(size, n, sizeof size);
        from[d] = h->start[d] + h->size[d];
        size[d] = at[d] + n[d] - from[d];
        h->size[d] += size[d];
        load(L, s, 0, from, size);
        return;
    }
    struct lower_held part = {.valid = true};
    memcpy(part.start, at, sizeof part.start);
    memcpy(part.size, n, sizeof part.size);
    VEC_PUSH(L->a, &s->part, part);
    load(L, s, 0, at, n);
}

struct lower_view lower_stream_fetch(struct lower *L, struct lower_stream *s, const int64_t *start,
                                     const int64_t *size) {
    int64_t at[LOWER_DIMS] = {0}, n[LOWER_DIMS] = {0};
    for (int d = 0; d < s->rank; d++) {
        at[d] = s->src.stride[d] ? start[d] : 0;
        n[d] = s->src.stride[d] ? size[d] : 1;
        NPU_ASSERT(n[d] <= s->block[d] && at[d] + n[d] <= s->full[d]);
    }
    if (s->src.chip) return lower_at(&s->src, s->rank, at);
    struct lower_view v = {.buf = s->buf, .dtype = s->dtype};
    memcpy(v.stride, s->pack, sizeof s->pack);
    if (s->whole) {
        fetch_part(L, s, at, n);
        return lower_at(&v, s->rank, at);
    }
    for (int i = 0; i < s->slots; i++) {
        if (!s->held[i].valid || memcmp(s->held[i].start, at, sizeof at) ||
            memcmp(s->held[i].size, n, sizeof n))
            continue;
        v.slot = i;
        return v;
    }
    v.slot = s->next;
    s->next = (s->next + 1) % s->slots;
    s->held[v.slot].valid = true;
    memcpy(s->held[v.slot].start, at, sizeof at);
    memcpy(s->held[v.slot].size, n, sizeof n);
    load(L, s, v.slot, at, n);
    return v;
}

struct lower_view lower_sink_tile(struct lower_stream *s, const int64_t *start) {
    if (s->src.chip) return lower_at(&s->src, s->rank, start);
    struct lower_view v = {.buf = s->buf, .slot = s->next, .dtype = s->dtype};
    memcpy(v.stride, s->pack, sizeof s->pack);
    s->next = (s->next + 1) % s->slots;
    return v;
}

void lower_sink_store(struct lower *L, struct lower_stream *s, const struct lower_view *tile,
                      const int64_t *start, const int64_t *size) {
    if (s->src.chip) return;
    struct lower_view to = lower_at(&s->src, s->rank, start);
    lower_copy(L, TILE_STORE, s->rank, size, tile, &to);
}
