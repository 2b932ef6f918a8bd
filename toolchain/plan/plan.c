// SPDX-License-Identifier: Apache-2.0
// Memory planning by live ranges.
//
// A range is a block of bytes that is live over operations [first, last]. Blocks whose lives
// overlap get disjoint addresses: greedy, lowest gap that fits, once in order of first use and once
// in order of size; the lower peak wins. The bound is the largest sum of live bytes at one
// operation, which no placement can beat.
#include "toolchain/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"

#define DRAM_ALIGN 64
#define SPM_ALIGN 64

struct block {
    struct tile_buf *buf;
    int slot;
    int first, last;
    int64_t bytes, addr;
};

static int64_t align_up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

static int by_first(const void *a, const void *b) {
    const struct block *x = *(struct block *const *)a, *y = *(struct block *const *)b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    if (x->buf->id != y->buf->id) return x->buf->id < y->buf->id ? -1 : 1;
    return x->slot - y->slot;
}

static int by_size(const void *a, const void *b) {
    const struct block *x = *(struct block *const *)a, *y = *(struct block *const *)b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return by_first(a, b);
}

static int by_addr(const void *a, const void *b) {
    const struct block *x = *(struct block *const *)a, *y = *(struct block *const *)b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

// Places the blocks in the given order; returns the peak address.
static int64_t place(struct block **order, int n, struct block **live) {
    int64_t peak = 0;
    for (int i = 0; i < n; i++) {
        struct block *b = order[i];
        int nlive = 0;
        for (int j = 0; j < i; j++)
            if (order[j]->first <= b->last && b->first <= order[j]->last) live[nlive++] = order[j];
        qsort(live, (size_t)nlive, sizeof *live, by_addr);
        int64_t at = 0;
        for (int j = 0; j < nlive && at + b->bytes > live[j]->addr; j++)
            if (live[j]->addr + live[j]->bytes > at) at = live[j]->addr + live[j]->bytes;
        b->addr = at;
        if (at + b->bytes > peak) peak = at + b->bytes;
    }
    return peak;
}

static int64_t plan_blocks(struct arena *a, struct block *blocks, int n) {
    struct block **order = ARENA_ARRAY(a, struct block *, (size_t)n + 1),
                 **live = ARENA_ARRAY(a, struct block *, (size_t)n + 1);
    for (int i = 0; i < n; i++)
        order[i] = &blocks[i];
    qsort(order, (size_t)n, sizeof *order, by_first);
    int64_t peak = place(order, n, live);
    int64_t *addr = ARENA_ARRAY(a, int64_t, (size_t)n + 1);
    for (int i = 0; i < n; i++)
        addr[i] = blocks[i].addr;
    qsort(order, (size_t)n, sizeof *order, by_size);
    int64_t other = place(order, n, live);
    if (other < peak) return other;
    for (int i = 0; i < n; i++)
        blocks[i].addr = addr[i];
    return peak;
}

// Largest sum of live bytes, and the operation where it is reached.
static int64_t bound(struct arena *a, const struct block *blocks, int n, int nop, int *where) {
    int64_t *delta = ARENA_ARRAY(a, int64_t, (size_t)nop + 2), sum = 0, most = 0;
    for (int i = 0; i < n; i++) {
        delta[blocks[i].first] += blocks[i].bytes;
        delta[blocks[i].last + 1] -= blocks[i].bytes;
    }
    *where = 0;
    for (int i = 0; i < nop; i++) {
        sum += delta[i];
        if (sum > most) {
            most = sum;
            *where = i;
        }
    }
    return most;
}

static npu_status no_fit(const struct tile_program *p, const struct block *blocks, int n,
                         enum isa_space space, int64_t need, int64_t have, int where) {
    struct str text = {0};
    for (int i = 0; i < n; i++)
        if (blocks[i].first <= where && where <= blocks[i].last)
            str_printf(&text, "%s%s of '%s' (%lld bytes)", text.len ? ", " : "",
                       blocks[i].buf->name,
                       blocks[i].buf->kernel >= 0 ? p->kernels[blocks[i].buf->kernel]->name
                                                  : "program",
                       (long long)blocks[i].bytes);
    const struct tile_op *t = p->ops[where];
    npu_status st =
        npu_fail(NO_FIT,
                 "%s: at operation %d (layer '%s', step %d) %lld bytes are needed, %lld too many "
                 "for the %lld of the target; live: %s",
                 space == ISA_SPM    ? "scratchpad"
                 : space == ISA_PSUM ? "PSUM"
                                     : "DRAM",
                 where, p->kernels[t->kernel]->name, t->step - p->kernels[t->kernel]->first_step,
                 (long long)need, (long long)(need - have), (long long)have,
                 text.len ? str_text(&text) : "nothing");
    str_free(&text);
    return st;
}

static int gather(struct tile_program *p, struct block *blocks, enum isa_space space,
                  enum tile_kind kind, int64_t alignment) {
    int n = 0;
    for (int i = 0; i < p->nbuf; i++) {
        struct tile_buf *b = p->bufs[i];
        if (b->space != space || b->kind != kind || b->first_op < 0) continue;
        for (int s = 0; s < b->slots; s++)
            blocks[n++] = (struct block){.buf = b,
                                         .slot = s,
                                         .first = b->first_op,
                                         .last = b->last_op,
                                         .bytes = align_up(b->bytes, alignment)};
    }
    return n;
}

static npu_status plan_space(struct tile_program *p, enum isa_space space, int64_t have,
                             int64_t alignment, int64_t *peak, int64_t *least) {
    int count = 0, where;
    for (int i = 0; i < p->nbuf; i++)
        count += p->bufs[i]->slots;
    struct block *blocks = ARENA_ARRAY(p->arena, struct block, (size_t)count + 1);
    int n = gather(p, blocks, space, TILE_ONCHIP, alignment);
    *peak = plan_blocks(p->arena, blocks, n);
    *least = bound(p->arena, blocks, n, p->nop, &where);
    if (*peak > have) return no_fit(p, blocks, n, space, *peak, have, where);
    for (int i = 0; i < n; i++)
        blocks[i].buf->addr[blocks[i].slot] = blocks[i].addr;
    return NULL;
}

npu_status plan_onchip(struct tile_program *p) {
    int64_t least;
    tile_live_ranges(p);
    NPU_TRY(plan_space(p, ISA_SPM, p->hw->spm_bytes, SPM_ALIGN, &p->spm_peak_bytes,
                       &p->spm_bound_bytes));
    return plan_space(p, ISA_PSUM, hw_psum_bytes(p->hw), hw_psum_row_bytes(p->hw),
                      &p->psum_peak_bytes, &least);
}

npu_status plan_dram(struct tile_program *p, const struct plan_options *options) {
    static const enum tile_kind straight[] = {TILE_WEIGHT, TILE_STATE, TILE_INPUT, TILE_OUTPUT};
    int64_t at = 0;
    int where;
    tile_live_ranges(p);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < p->nbuf; i++) {
            struct tile_buf *b = p->bufs[i];
            if (b->space != ISA_DRAM || b->kind != straight[k] ||
                (b->kind == TILE_WEIGHT && b->first_op < 0))
                continue;
            b->addr[0] = at;
            at += align_up(b->bytes, DRAM_ALIGN);
        }
    struct block *blocks = ARENA_ARRAY(p->arena, struct block, (size_t)p->nbuf + 1);
    int n = gather(p, blocks, ISA_DRAM, TILE_SCRATCH, DRAM_ALIGN);
    p->scratch_bound_bytes = bound(p->arena, blocks, n, p->nop, &where);
    if (options->reuse) {
        p->scratch_peak_bytes = plan_blocks(p->arena, blocks, n);
    } else {
        p->scratch_peak_bytes = 0;
        for (int i = 0; i < n; i++) {
            blocks[i].addr = p->scratch_peak_bytes;
            p->scratch_peak_bytes += blocks[i].bytes;
        }
    }
    for (int i = 0; i < n; i++)
        blocks[i].buf->addr[0] = at + blocks[i].addr;
    p->dram_bytes = at + p->scratch_peak_bytes;
    if (p->dram_bytes > p->hw->dram_bytes)
        return no_fit(p, blocks, n, ISA_DRAM, p->dram_bytes, p->hw->dram_bytes, where);
    return NULL;
}

int plan_segments(const struct tile_program *p, struct plan_segment out[PLAN_SEGMENTS]) {
    static const enum tile_kind kinds[PLAN_SEGMENTS] = {TILE_WEIGHT, TILE_STATE, TILE_INPUT,
                                                        TILE_OUTPUT, TILE_SCRATCH};
    int n = 0;
    for (int k = 0; k < PLAN_SEGMENTS; k++) {
        int64_t lo = -1, hi = 0;
        for (int i = 0; i < p->nbuf; i++) {
            const struct tile_buf *b = p->bufs[i];
            if (b->space != ISA_DRAM || b->kind != kinds[k] ||
                (b->first_op < 0 && (b->kind == TILE_WEIGHT || b->kind == TILE_SCRATCH)))
                continue;
            if (lo < 0 || b->addr[0] < lo) lo = b->addr[0];
            if (b->addr[0] + b->bytes > hi) hi = b->addr[0] + b->bytes;
        }
        if (lo >= 0) out[n++] = (struct plan_segment){kinds[k], lo, hi - lo};
    }
    return n;
}
