// SPDX-License-Identifier: Apache-2.0
// Tiles of operands: DRAM blocks held in slots of an on-chip buffer, packed in the operand's own
// storage order so that transfers are runs as long as possible.
#include "toolchain/lower/internal.h"

#include <string.h>

#define WHOLE_AT_ONCE_BYTES 16384
#define WHOLE_PARTS 6

// Parts of a whole operand: a grid of cells, each loaded when something in it is first asked for.
// Cells are the blocks asked for, grown along memory to a share of the operand: few transfers, so
// that the queues can hold those of later kernels too.
static void cells(struct lower_stream *s) {
    int order[LOWER_DIMS], n = lower_by_stride(&s->src, s->rank, order);
    int64_t most = s->bytes / lower_dtype_bytes(s->dtype) / WHOLE_PARTS;
    for (int i = n - 1; i >= 0; i--) {
        int d = order[i];
        int64_t times = most / lower_elems(s->rank, s->first);
        if (s->bytes <= WHOLE_AT_ONCE_BYTES || times >= lower_ceil(s->full[d], s->first[d])) {
            s->first[d] = s->full[d];
            continue;
        }
        s->first[d] = lower_min(s->full[d], s->first[d] * lower_max(times, 1));
        if (times > 1) break;
    }
}

void lower_stream_init(struct lower_stream *s, const char *name, const struct lower_view *src,
                       struct lower_grid grid, int slots, bool whole) {
    const int64_t *full = grid.full, *block = grid.block;
    int rank = grid.rank;
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
    if (whole) cells(s);
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

// Loads the cells of a block that are not there yet.
static void fetch_cells(struct lower *L, struct lower_stream *s, const int64_t *at,
                        const int64_t *n) {
    int64_t from[LOWER_DIMS], count[LOWER_DIMS], one[LOWER_DIMS], cell[LOWER_DIMS] = {0}, all = 1;
    for (int d = 0; d < s->rank; d++) {
        from[d] = at[d] / s->first[d];
        count[d] = (at[d] + n[d] - 1) / s->first[d] - from[d] + 1;
        one[d] = 1;
        all *= lower_ceil(s->full[d], s->first[d]);
    }
    if (!s->loaded) s->loaded = ARENA_ARRAY(L->a, bool, (size_t)all);
    do {
        int64_t id = 0, start[LOWER_DIMS] = {0}, size[LOWER_DIMS] = {0};
        for (int d = 0; d < s->rank; d++) {
            id = id * lower_ceil(s->full[d], s->first[d]) + from[d] + cell[d];
            start[d] = (from[d] + cell[d]) * s->first[d];
            size[d] = lower_min(s->first[d], s->full[d] - start[d]);
        }
        if (!s->loaded[id]) load(L, s, 0, start, size);
        s->loaded[id] = true;
    } while (lower_next(s->rank, count, one, cell));
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
        fetch_cells(L, s, at, n);
        return lower_at(&v, s->rank, at);
    }
    for (int i = 0; i < s->slots; i++) {
        if (!s->held[i].valid || memcmp(s->held[i].start, at, sizeof at) != 0 ||
            memcmp(s->held[i].size, n, sizeof n) != 0)
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

void lower_stream_cost(const struct lower *L, const struct lower_stream *s, double loads,
                       bool first, struct lower_step *sum) {
    if (!s->present) return;
    if (s->whole) loads = lower_whole_loads(s);
    double cycles = lower_dma_cycles(L, &s->src, s->rank, s->first),
           bytes = lower_dma_bytes(L, &s->src, s->rank, s->first);
    sum->dma_cycles += loads * cycles;
    sum->dma_bytes += loads * bytes;
    if (!first) return;
    sum->first_cycles += cycles;
    sum->first_bytes += bytes;
}
