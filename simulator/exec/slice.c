// SPDX-License-Identifier: Apache-2.0
// Backward slice by repetition. A pass executes the whole program and computes only the set. When a
// value is used (by an LDS, by a gather's indices, or by an instruction of the set), every
// instruction whose writes may still be visible there joins the set: looking back, in the order of
// execution, to the newest write that covers all of the bytes. Passes repeat until the set stays
// the same; chains are short (an input is copied in, perhaps converted), so two or three passes do.
#include "simulator/exec/slice.h"

#include <string.h>

#include "runtime/base/alloc.h"

bool slice_init(struct slice *s, uint32_t ngranule) {
    *s = (struct slice){.on = true,
                        .ngranule = ngranule,
                        .needed = base_alloc(ngranule ? ngranule : 1)};
    return s->needed != NULL;
}

void slice_deinit(struct slice *s) {
    base_free(s->needed);
    base_free(s->undo);
    base_free(s->saved);
    *s = (struct slice){0};
}

bool slice_computes(const struct slice *s, uint32_t granule) {
    return !s->on || s->needed[granule];
}

// Whether a write touches the footprint.
static bool touches(const struct race *r, const struct race_access *a, const struct exec_foot *f) {
    if (a->lo >= f->hi || a->hi <= f->lo) return false;
    if (a->nfoot == 0) return foot_hit(f, a->lo, a->hi) >= 0;
    for (uint32_t k = 0; k < a->nfoot; k++)
        if (foot_overlap(&r->foot[a->foot + k], f) >= 0) return true;
    return false;
}

// The newest write that covers the whole footprint, as its order of execution; 0 when there is
// none.
static uint32_t newest_cover(const struct race *r, int space, const struct exec_foot *f) {
    uint32_t newest = 0;
    for (int e = 0; e < ISA_ENGINES; e++) {
        const struct race_list *l = &r->list[e][space - ISA_SPM][1];
        for (uint32_t i = l->len; i-- > 0;) {
            const struct race_access *a = &l->item[i];
            const uint32_t order = r->order[e][a->index - 1];
            if (order == r->begun - 1) continue;
            if (order <= newest) break;
            if (a->nfoot == 0 && a->lo <= f->lo && a->hi >= f->hi) newest = order;
        }
    }
    return newest;
}

void slice_use(struct slice *s, const struct race *r, int space, const struct exec_foot *f) {
    const uint32_t from = newest_cover(r, space, f);
    for (int e = 0; e < ISA_ENGINES; e++) {
        const struct race_list *l = &r->list[e][space - ISA_SPM][1];
        for (uint32_t i = l->len; i-- > 0;) {
            const struct race_access *a = &l->item[i];
            if (r->order[e][a->index - 1] < from) break;
            if (r->order[e][a->index - 1] == r->begun - 1 || !touches(r, a, f)) continue;
            uint8_t *bit = &s->needed[r->place[e][a->index - 1].pc_granule];
            if (!*bit) s->grew = true;
            *bit = 1;
        }
    }
}

static bool save_run(struct slice *s, const struct exec_dram *d, int64_t lo, int64_t bytes) {
    struct exec_dram_at at;
    if (!exec_dram_find(d, lo, lo + bytes, &at)) return true;
    if (s->nundo == s->undo_cap) {
        uint32_t cap = s->undo_cap ? s->undo_cap * 2 : 64;
        struct slice_undo *grown = base_realloc(s->undo, cap * sizeof *grown);
        if (!grown) return false;
        s->undo = grown;
        s->undo_cap = cap;
    }
    if (s->saved_cap - s->nsaved < bytes) {
        int64_t cap = s->saved_cap * 2 > s->nsaved + bytes ? s->saved_cap * 2 : s->nsaved + bytes;
        uint8_t *grown = base_realloc(s->saved, (size_t)cap);
        if (!grown) return false;
        s->saved = grown;
        s->saved_cap = cap;
    }
    memcpy(s->saved + s->nsaved, at.const_bytes, (size_t)bytes);
    s->undo[s->nundo++] = (struct slice_undo){lo, bytes, s->nsaved};
    s->nsaved += bytes;
    return true;
}

bool slice_save(struct slice *s, const struct exec_dram *d, int64_t base,
                const struct exec_foot *f) {
    struct exec_foot_walk w;
    foot_first(f, &w);
    do {
        if (!save_run(s, d, base + w.lo, w.hi - w.lo)) return false;
    } while (foot_next(f, &w));
    return true;
}

void slice_restore(struct slice *s, struct exec_dram *d) {
    struct exec_dram_at at;
    while (s->nundo > 0) {
        const struct slice_undo *u = &s->undo[--s->nundo];
        if (exec_dram_find(d, u->address, u->address + u->bytes, &at) && at.bytes)
            memcpy(at.bytes, s->saved + u->at, (size_t)u->bytes);
    }
    s->nsaved = 0;
}
