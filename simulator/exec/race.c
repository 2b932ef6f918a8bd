// SPDX-License-Identifier: Apache-2.0
// Race detection with vector clocks.
//
// Instruction i of engine e, with clocks S (start), R (read), D (done):
//   S(i) = S(i-1) + clock of its dispatch + clocks of its waits (+ e's own done[] = i-1 when it has
//   a fence) R(i) = R(i-1) + S(i), knowing that e has read i D(i) = D(i-1) + R(i), knowing that e
//   is done with i
// A signal carries the clock of the point where it fires. A read by i is ordered before j when
// S(j).read[e] >= i, a write when S(j).done[e] >= i. Accesses of one engine other than DMA are
// ordered by the engine itself (interlocks); those of one DMA queue are not.
//
// Because engines know each other by counts, the accesses of e that j does not know about are a
// suffix of e's list: only those are compared, boxes first and exact footprints when the boxes
// meet. The work is proportional to real concurrency, not to the bytes moved; boxes around blocks
// of accesses keep long lists cheap.
#include "simulator/exec/race.h"

#include <string.h>

#include "runtime/base/alloc.h"

void clock_join(struct race_clock *c, const struct race_clock *other) {
    for (int e = 0; e < ISA_ENGINES; e++) {
        if (other->read[e] > c->read[e]) c->read[e] = other->read[e];
        if (other->done[e] > c->done[e]) c->done[e] = other->done[e];
    }
}

void race_init(struct race *r) {
    *r = (struct race){0};
}

void race_deinit(struct race *r) {
    for (int e = 0; e < ISA_ENGINES; e++) {
        for (int s = 0; s < RACE_SPACES; s++)
            for (int w = 0; w < 2; w++) {
                base_free(r->list[e][s][w].item);
                for (int k = 0; k < RACE_LEVELS; k++)
                    base_free(r->list[e][s][w].box[k]);
            }
        base_free(r->place[e]);
        base_free(r->order[e]);
    }
    base_free(r->foot);
    race_init(r);
}

void race_reset(struct race *r) {
    memset(r->start, 0, sizeof r->start);
    memset(r->read, 0, sizeof r->read);
    memset(r->done, 0, sizeof r->done);
    memset(r->count, 0, sizeof r->count);
    memset(r->cursor, 0, sizeof r->cursor);
    for (int e = 0; e < ISA_ENGINES; e++)
        for (int s = 0; s < RACE_SPACES; s++)
            for (int w = 0; w < 2; w++)
                r->list[e][s][w].len = 0;
    r->nfoot = r->begun = 0;
}

// Room for one more item of `bytes`; false when out of memory.
static bool grow(void **items, uint32_t len, uint32_t *cap, size_t bytes) {
    if (len < *cap) return true;
    if (*cap > UINT32_MAX / 4) return false;
    uint32_t wanted = *cap ? *cap * 2 : 64;
    void *grown = base_realloc(*items, wanted * bytes);
    if (!grown) return false;
    *items = grown;
    *cap = wanted;
    return true;
}

bool race_begin(struct race *r, const struct exec_place *at, const struct race_clock *before,
                bool fence) {
    const int e = at->engine;
    r->engine = e;
    struct race_clock *now = &r->start[e];
    clock_join(now, before);
    if (fence) now->read[e] = now->done[e] = r->count[e];
    void *places = r->place[e], *orders = r->order[e];
    if (!grow(&places, r->count[e], &r->place_cap[e], sizeof *at)) return false;
    r->place[e] = places;
    if (!grow(&orders, r->count[e], &r->order_cap[e], sizeof *r->order[e])) return false;
    r->order[e] = orders;
    r->order[e][r->count[e]] = r->begun++;
    r->place[e][r->count[e]++] = *at;
    return true;
}

// The access that is being checked: its footprints and the box around them.
struct probe {
    const struct exec_foot *foot;
    uint32_t n;
    int64_t lo, hi;
};

// Exact test of two accesses whose boxes meet: a byte that both touch, or -1.
static int64_t exact(const struct race *r, const struct race_access *a, const struct probe *p) {
    for (uint32_t i = 0; i < p->n; i++) {
        const struct exec_foot *f = &p->foot[i];
        if (a->lo >= f->hi || a->hi <= f->lo) continue;
        int64_t at = a->nfoot == 0 ? foot_hit(f, a->lo, a->hi) : -1;
        for (uint32_t k = 0; k < a->nfoot && at < 0; k++)
            at = foot_overlap(&r->foot[a->foot + k], f);
        if (at >= 0) return at;
    }
    return -1;
}

// Items from i on that a box tells to lie elsewhere: a whole block of some level, or 0.
static uint32_t clear_of(const struct race_list *l, uint32_t i, const struct probe *p) {
    uint32_t size = RACE_BLOCK * RACE_BLOCK;
    for (int k = RACE_LEVELS; k-- > 0; size /= RACE_BLOCK) {
        if (i % size || l->len - i < size) continue;
        const struct race_box *b = &l->box[k][i / size];
        if (b->lo >= p->hi || b->hi <= p->lo) return size;
    }
    return 0;
}

// Takes the newest item into the boxes around it.
static bool grow_boxes(struct race_list *l) {
    const struct race_access *a = &l->item[l->len];
    uint32_t size = RACE_BLOCK;
    for (int k = 0; k < RACE_LEVELS; k++, size *= RACE_BLOCK) {
        const uint32_t n = l->len / size;
        void *boxes = l->box[k];
        if (!grow(&boxes, n, &l->box_cap[k], sizeof *l->box[k])) return false;
        l->box[k] = boxes;
        struct race_box *b = &l->box[k][n];
        if (l->len % size == 0) *b = (struct race_box){a->lo, a->hi};
        if (a->lo < b->lo) b->lo = a->lo;
        if (a->hi > b->hi) b->hi = a->hi;
    }
    return true;
}

// Compares with the accesses of one list that are not ordered before the current instruction.
static bool scan(struct race *r, int e, int space, int write, uint32_t known, const struct probe *p,
                 struct race_hit *hit) {
    const struct race_list *l = &r->list[e][space][write];
    uint32_t *cursor = &r->cursor[r->engine][e][space][write];
    uint32_t i = *cursor;
    while (i < l->len && l->item[i].index <= known)
        i++;
    *cursor = i;
    const uint32_t own = e == r->engine ? r->count[e] : 0;
    for (; i < l->len; i++) {
        const uint32_t skip = clear_of(l, i, p);
        if (skip) {
            i += skip - 1;
            continue;
        }
        const struct race_access *a = &l->item[i];
        if (a->lo >= p->hi || a->hi <= p->lo || a->index == own) continue;
        int64_t at = exact(r, a, p);
        if (at < 0) continue;
        *hit = (struct race_hit){at, write, r->place[e][a->index - 1]};
        return true;
    }
    return false;
}

// Keeps an access for those to come.
static bool note(struct race *r, struct race_list *l, const struct probe *p) {
    void *items = l->item;
    if (!grow(&items, l->len, &l->cap, sizeof *l->item)) return false;
    l->item = items;
    struct race_access *a = &l->item[l->len];
    *a = (struct race_access){p->lo, p->hi, r->count[r->engine], r->nfoot, 0};
    for (uint32_t i = 0; i < p->n && (p->n > 1 || p->foot->dims > 0); i++) {
        void *feet = r->foot;
        if (!grow(&feet, r->nfoot, &r->foot_cap, sizeof *p->foot)) return false;
        r->foot = feet;
        r->foot[r->nfoot++] = p->foot[i];
        a->nfoot++;
    }
    if (!grow_boxes(l)) return false;
    l->len++;
    return true;
}

static bool is_dma(int engine) {
    return isa_engine_class(engine) == ISA_CLASS_DMA;
}

enum race_result race_access(struct race *r, int space, const struct exec_foot *f, uint32_t n,
                             bool write, struct race_hit *hit) {
    const int s = space - ISA_SPM, self = r->engine;
    const struct race_clock *now = &r->start[self];
    struct probe p = {f, n, f->lo, f->hi};
    for (uint32_t i = 1; i < n; i++) {
        if (f[i].lo < p.lo) p.lo = f[i].lo;
        if (f[i].hi > p.hi) p.hi = f[i].hi;
    }
    for (int e = 0; e < ISA_ENGINES; e++) {
        if (e == self && !is_dma(e)) continue;
        if (scan(r, e, s, 1, now->done[e], &p, hit)) return RACE_FOUND;
        if (write && scan(r, e, s, 0, now->read[e], &p, hit)) return RACE_FOUND;
    }
    return note(r, &r->list[self][s][write], &p) ? RACE_NONE : RACE_NO_MEMORY;
}

void race_end(struct race *r, struct race_clock out[3]) {
    const int e = r->engine;
    clock_join(&r->read[e], &r->start[e]);
    r->read[e].read[e] = r->count[e];
    clock_join(&r->done[e], &r->read[e]);
    r->done[e].done[e] = r->count[e];
    if (!out) return;
    out[ISA_AT_START] = r->start[e];
    out[ISA_AT_READ] = r->read[e];
    out[ISA_AT_DONE] = r->done[e];
}

void race_all_done(const struct race *r, struct race_clock *c) {
    for (int e = 0; e < ISA_ENGINES; e++)
        c->read[e] = c->done[e] = r->count[e];
}
