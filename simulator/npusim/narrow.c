// SPDX-License-Identifier: Apache-2.0
// Narrowing a departing layer down to an instruction.
//
// Everything that was written during the run is gone through once more in the order of execution;
// the last to write an element owns it, as in the copy of the result that was compared. Addresses
// count in elements of the result from its first byte on.
#include "simulator/npusim/narrow.h"

#include <inttypes.h>
#include <math.h>

#include "runtime/base/alloc.h"
#include "simulator/npusim/compare.h"

struct owners {
    int64_t size;    // bytes of an element
    uint32_t *owner; // owned: by address: 1 + index of the write, 0: nobody
};

struct tally {
    uint64_t stored, wrong, first, worst;
    double ratio;
};

static void claim(struct owners *o, const struct snapshot *s, const struct exec_foot *foot,
                  uint32_t who) {
    struct exec_foot_walk w;
    if (foot->hi <= s->lo || foot->lo >= s->hi) return;
    foot_first(foot, &w);
    do {
        const int64_t lo = w.lo > s->lo ? w.lo : s->lo, hi = w.hi < s->hi ? w.hi : s->hi;
        for (int64_t e = (lo - s->lo) / o->size; lo < hi && e <= (hi - 1 - s->lo) / o->size; e++)
            o->owner[e] = who;
    } while (foot_next(foot, &w));
}

static bool may_store(const struct snapshot *s, const struct write *w) {
    return w->at.tag >= s->result->first_tag && w->at.tag <= s->result->last_tag &&
           w->space == s->result->space;
}

// How far an element is off, as a part of what is allowed.
static double ratio_of(const struct narrow_result *r, uint64_t i) {
    return npusim_compare_f64(&r->got[i], &r->want[i], 1, r->rtol, r->atol).ratio;
}

static void count(const struct narrow_result *r, const struct owners *o, struct tally *tally) {
    const struct npu_image_result *result = r->stored->result;
    int64_t at[CONTAINER_MAX_RANK] = {0}, from = 0;
    for (uint64_t i = 0; i < r->n; i++) {
        const uint32_t who = o->owner[from];
        if (who) {
            struct tally *t = &tally[who - 1];
            const double ratio = ratio_of(r, i);
            if (ratio > 1 && !t->wrong++) t->first = i;
            if (!t->stored++ || ratio > t->ratio) {
                t->ratio = ratio;
                t->worst = i;
            }
        }
        for (int d = result->rank - 1; d >= 0; d--) {
            from += result->strides[d];
            if (++at[d] < result->dims[d]) break;
            from -= result->strides[d] * result->dims[d];
            at[d] = 0;
        }
    }
}

// The first that stored something wrong; when no element is wrong by itself (a cosine that is too
// small), who stored the worst.
static void choose(const struct writes *w, const struct narrow_result *r, const struct tally *tally,
                   struct narrow_found *out) {
    *out = (struct narrow_found){.write = SIZE_MAX};
    size_t worst = SIZE_MAX;
    for (size_t i = 0; i < w->n; i++) {
        const struct tally *t = &tally[i];
        out->writers += t->stored > 0;
        out->wrong_writers += t->wrong > 0;
        if (t->wrong && out->write == SIZE_MAX) out->write = i;
        if (t->stored && t->worst == r->worst) worst = i;
    }
    if (out->write == SIZE_MAX) out->write = worst;
    if (out->write == SIZE_MAX) return;
    const struct tally *t = &tally[out->write];
    out->wrong = t->wrong;
    out->stored = t->stored;
    out->first = t->first;
    out->worst = t->worst;
}

npu_status narrow_find(const struct writes *w, const struct narrow_result *r,
                       struct narrow_found *out) {
    const struct snapshot *s = r->stored;
    struct owners o = {.size = isa_dtype_bits(s->result->dtype) / 8};
    *out = (struct narrow_found){.write = SIZE_MAX};
    if (w->failed || w->n >= UINT32_MAX)
        return npu_fail(NO_MEMORY, "the list of what instructions wrote");
    struct tally *tally = base_alloc_array(w->n + 1, sizeof *tally);
    o.owner = base_alloc_array((size_t)((s->hi - s->lo) / o.size) + 1, sizeof *o.owner);
    npu_status st = tally && o.owner ? NULL : npu_fail(NO_MEMORY, "who stored a result");
    for (size_t i = 0; i < w->n && !st; i++)
        if (may_store(s, &w->item[i])) claim(&o, s, &w->item[i].foot, (uint32_t)i + 1);
    if (!st) {
        count(r, &o, tally);
        choose(w, r, tally, out);
    }
    base_free(tally);
    base_free(o.owner);
    return st;
}

static void print_element(struct str *out, const struct narrow_result *r, uint64_t i) {
    const struct npu_image_result *result = r->stored->result;
    npusim_print_index(out, result->dims, result->rank, i);
    str_printf(out, " is %.9g, expected %.9g", r->got[i], r->want[i]);
}

void narrow_print(struct str *out, const struct npu_program_image *image, const struct writes *w,
                  const struct trace_log *log, const struct narrow_result *r,
                  const struct narrow_found *f) {
    uint64_t start, done;
    if (f->write == SIZE_MAX) return;
    const struct write *e = &w->item[f->write];
    str_printf(out,
               "\n  %zu of the %zu writes that store it store wrong elements; the first:\n    ",
               f->wrong_writers, f->writers);
    writes_print_place(out, image, &e->at);
    if (writes_cycles(log, e, &start, &done))
        str_printf(out, "\n    cycles %" PRIu64 " to %" PRIu64, start, done);
    str_printf(out, "\n    %" PRIu64 " of %" PRIu64 " elements that it stores are wrong", f->wrong,
               f->stored);
    if (f->wrong) {
        str_puts(out, "; the first ");
        print_element(out, r, f->first);
    }
    str_puts(out, "\n    worst ");
    print_element(out, r, f->worst);
}
