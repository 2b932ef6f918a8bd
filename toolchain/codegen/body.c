// SPDX-License-Identifier: Apache-2.0
// Bodies of hardware calls.
//
//   symbol of an instruction = the instruction without its bases and its tag
//   repeats of symbols (repeat.c), most saved first; of each
//       occurrences: those that do not overlap, whose tags all differ by one amount from the first
//       one's, and whose bases differ from it in so few ways that registers can hold them
//   again, until nothing is saved: what was taken does not repeat any more
//
// A way to differ is one difference of bases per occurrence and one step per iteration of the loop
// around; patterns of the same way share a register.
#include "toolchain/codegen/body.h"

#include <stdlib.h>
#include <string.h>

#include "toolchain/codegen/repeat.h"

#define SHORTEST 4      // instructions of a body
#define FIRST_REG 7     // of those that hold differences; roll.c has the ones below
#define BODY_WAYS 9     // such registers
#define CALL_GRANULES 2 // a CALL, or a SETI
#define LEAST_SAVED 32  // granules by a body
#define LEAST_RATIO 4   // granules of an occurrence over those of its call
#define ROUNDS 12
#define WORK 100       // instructions compared, times those of the program
#define TRIES 3000     // candidates looked at in a round
#define LONGEST 200000 // instructions; beyond that the code is not looked at

// A way to differ while occurrences are compared: the difference in the occurrence that is looked
// at, and the step of the loop around the pattern.
struct way {
    int64_t step, amount;
};

// ---- occurrences --------------------------------------------------------------------------------

static int total_patterns(const struct bodies *c, const struct body *b) {
    return c->pattern[b->first + b->length] - c->pattern[b->first];
}

// No loop of the body needs more registers than one has.
static bool loops_fit(const struct bodies *c, const struct body *b, const int *way_of) {
    int k = 0, count = 0;
    bool used[BODY_WAYS] = {false}, kept[ISA_REGS] = {false};
    for (int i = 0; i < b->length; i++) {
        const struct isa_insn *in = &c->in[b->first + i];
        if (in->h.opcode == ISA_OP_LOOP) {
            count = 0;
            memset(used, 0, sizeof used);
            memset(kept, 0, sizeof kept);
        }
        for (int p = 0; p < isa_find((unsigned)in->h.opcode)->npat; p++, k++) {
            const struct isa_pat *f = isa_pat_get(in, p);
            int w = way_of[k];
            bool *seen = w ? &used[w - 1] : &kept[f->areg];
            if (!c->step[c->pattern[b->first] + k] || *seen) continue;
            *seen = true;
            if (++count > BODY_LOOP_REGS) return false;
        }
    }
    return true;
}

// Takes the occurrence at `at` into the body: ways are split where it differs. false: the
// tags are no common distance away, or registers do not suffice. fresh: room for an int per
// pattern.
static bool add_place(const struct bodies *c, struct body *b, int at, int *fresh) {
    struct way way[BODY_WAYS];
    int from[BODY_WAYS], nway = 0;
    int64_t tags = c->in[at].h.tag - c->in[b->first].h.tag;
    for (int i = 0; i < b->length; i++)
        if (c->in[at + i].h.tag - c->in[b->first + i].h.tag != tags) return false;
    int first = c->pattern[b->first], here = c->pattern[at], k = 0;
    for (int n = total_patterns(c, b); k < n; k++) {
        int64_t amount = c->base[here + k] - c->base[first + k], step = c->step[first + k];
        int old = b->way_of[k], w = 0;
        fresh[k] = 0;
        if (!old && !amount) continue;
        while (w < nway && (from[w] != old || way[w].amount != amount || way[w].step != step))
            w++;
        if (w == BODY_WAYS) return false;
        if (w == nway) {
            way[w] = (struct way){.step = step, .amount = amount};
            from[nway++] = old;
        }
        fresh[k] = w + 1;
    }
    if (!loops_fit(c, b, fresh)) return false;
    // Ways that were one until here, or none, have had the same values in the places before.
    struct place *all = b->place;
    for (int p = 0; p < b->count; p++) {
        int64_t value[BODY_WAYS];
        memcpy(value, all[p].value, sizeof value);
        for (int w = 0; w < nway; w++)
            all[p].value[w] = from[w] ? value[from[w] - 1] : 0;
    }
    struct place *mine = &all[b->count++];
    *mine = (struct place){.at = at, .tagbase = tags};
    for (int w = 0; w < nway; w++)
        mine->value[w] = way[w].amount;
    b->nway = nway;
    memcpy(b->way_of, fresh, (size_t)k * sizeof *fresh);
    return true;
}

static int64_t weight(const struct bodies *c, int first, int length) {
    return c->weight[first + length] - c->weight[first];
}

// Longest part of [*first, *first + *length) that opens and closes its loops; false when there is
// none worth the name.
static bool balance(const struct bodies *c, int *first, int *length) {
    int from = *first, to = *first + *length;
    while (from < to && (c->loop[from] >= 0 || c->in[from].h.opcode == ISA_OP_ENDL))
        from++;
    while (to > from && (c->loop[to - 1] >= 0 || c->in[to - 1].h.opcode == ISA_OP_LOOP) &&
           c->in[to - 1].h.opcode != ISA_OP_ENDL)
        to--;
    *first = from;
    *length = to - from;
    return *length >= SHORTEST;
}

static bool is_free(const struct bodies *c, int at, int length) {
    return c->next[at] >= at + length;
}

static void set_saved(struct body *b) {
    int64_t call = CALL_GRANULES * (1 + b->nway);
    if (b->count > 1 && b->granules >= LEAST_RATIO * call)
        b->saved = (b->count - 1) * b->granules - b->count * call - 1 - CALL_GRANULES;
}

// The body that begins at at[first] and its occurrences among at[first + 1 ..]; saved is 0 when
// nothing is gained.
static struct body *try_body(struct bodies *c, struct arena *scratch, const int *at, int n,
                             int length) {
    struct body *b = ARENA_NEW(scratch, struct body);
    int first = at[0];
    b->length = length;
    if (!balance(c, &first, &b->length)) return b;
    int shift = first - at[0], end = 0;
    b->first = first;
    b->place = ARENA_ARRAY(scratch, struct place, (size_t)n);
    int npat = total_patterns(c, b), *fresh = ARENA_ARRAY(scratch, int, (size_t)npat + 1);
    b->way_of = ARENA_ARRAY(scratch, int, (size_t)npat + 1);
    b->granules = weight(c, first, b->length);
    for (int i = 0; i < n; i++) {
        int here = at[i] + shift;
        if (here < end || !is_free(c, here, b->length)) {
            if (i == 0) return b;
            continue;
        }
        c->work += b->length;
        if (add_place(c, b, here, fresh)) end = here + b->length;
    }
    set_saved(b);
    return b;
}

// ---- all occurrences, in parts ------------------------------------------------------------------

// Ways of a part: by how much its patterns differ from the first occurrence in each of the others.
struct parts {
    const struct bodies *c;
    const int *at;
    int n;           // occurrences
    int64_t *amount; // [way][occurrence]
    int64_t step[BODY_WAYS];
    int nway;
};

// The way of pattern k of the first occurrence, which is pattern k + (distance) of the others; -1:
// there is no register left for it.
static int way_of_pattern(struct parts *p, int k) {
    const struct bodies *c = p->c;
    int64_t *fresh = p->amount + (ptrdiff_t)p->nway * p->n;
    bool differs = false;
    for (int i = 0; i < p->n; i++) {
        int there = k + c->pattern[p->at[i]] - c->pattern[p->at[0]];
        fresh[i] = c->base[there] - c->base[k];
        differs |= fresh[i] != 0;
    }
    if (!differs) return 0;
    for (int w = 0; w < p->nway; w++)
        if (p->step[w] == c->step[k] &&
            !memcmp(p->amount + (ptrdiff_t)w * p->n, fresh, (size_t)p->n * sizeof *fresh))
            return w + 1;
    if (p->nway == BODY_WAYS) return -1;
    p->step[p->nway] = c->step[k];
    return ++p->nway;
}

// The longest body from instruction `from` on before `to`; of length 0 when there is none.
static struct body *part(struct parts *p, struct arena *scratch, int from, int to) {
    const struct bodies *c = p->c;
    struct body *b = ARENA_NEW(scratch, struct body);
    int patterns_left = c->pattern[to] - c->pattern[from];
    b->first = from;
    b->way_of = ARENA_ARRAY(scratch, int, (size_t)patterns_left + 1);
    p->nway = 0;
    for (int i = from, w = 0; i < to && w >= 0; i++) {
        for (int k = c->pattern[i]; k < c->pattern[i + 1] && w >= 0; k++)
            b->way_of[k - c->pattern[from]] = w = way_of_pattern(p, k);
        bool inside = c->in[i].h.opcode == ISA_OP_LOOP ||
                      (c->loop[i] >= 0 && c->in[i].h.opcode != ISA_OP_ENDL);
        if (w < 0 || inside) continue;
        b->length = i + 1 - from;
        b->nway = p->nway;
    }
    if (!loops_fit(c, b, b->way_of)) b->length = 0;
    b->granules = weight(c, from, b->length);
    b->count = p->n;
    b->place = ARENA_ARRAY(scratch, struct place, (size_t)p->n);
    for (int i = 0; i < p->n; i++) {
        b->place[i].at = from + p->at[i] - p->at[0];
        b->place[i].tagbase = c->in[b->place[i].at].h.tag - c->in[from].h.tag;
        for (int w = 0; w < b->nway; w++)
            b->place[i].value[w] = p->amount[(ptrdiff_t)w * p->n + i];
    }
    set_saved(b);
    return b;
}

// Bodies that together are what stands at all of at[], one behind the other, each as long as its
// registers suffice. Occurrences whose tags do not move together are left out. Returns the number
// of bodies that save something, with their sum in *saved.
static int in_parts(struct bodies *c, struct arena *scratch, const int *at, int n, int length,
                    struct body **out, int64_t *saved) {
    int *kept = ARENA_ARRAY(scratch, int, (size_t)n), from = at[0], end = 0, count = 0;
    struct parts p = {.c = c, .at = kept};
    for (int i = 0; i < n; i++) {
        bool good = at[i] >= end;
        for (int k = 1; k < length && good; k++)
            good = c->in[at[i] + k].h.tag - c->in[at[i]].h.tag ==
                   c->in[at[0] + k].h.tag - c->in[at[0]].h.tag;
        if (!good) continue;
        kept[p.n++] = at[i];
        end = at[i] + length;
    }
    *saved = 0;
    c->work += (int64_t)length * p.n;
    if (!balance(c, &from, &length) || p.n < 2) return 0;
    p.amount = ARENA_ARRAY(scratch, int64_t, (size_t)(BODY_WAYS + 1) * (size_t)p.n);
    for (int i = from; i < from + length;) {
        struct body *b = part(&p, scratch, i, from + length);
        if (b->length >= SHORTEST && b->saved >= LEAST_SAVED) {
            *saved += b->saved;
            out[count++] = b;
        }
        i += b->length > 0 ? b->length : 1;
        while (i < from + length && c->loop[i] >= 0)
            i++; // not into a loop
    }
    return count;
}

// ---- choice -------------------------------------------------------------------------------------

struct candidate {
    int repeat, length;
    int64_t saved;
};

static int by_place(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

static int by_saved(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->saved != y->saved) return x->saved > y->saved ? -1 : 1;
    if (x->length != y->length) return x->length > y->length ? -1 : 1;
    return x->repeat < y->repeat ? -1 : 1;
}

// Occurrences of that length that do not overlap, by place.
static int apart(const int *at, int n, int length) {
    int count = 0, end = 0;
    for (int i = 0; i < n; i++) {
        if (at[i] < end) continue;
        count++;
        end = at[i] + length;
    }
    return count;
}

// Lengths worth a look: the longest, and the distances between neighbours, which are the periods of
// what repeats over and over.
#define LENGTHS 6
static int lengths_of(const int *at, int n, int longest, int *out) {
    int count = 0;
    out[count++] = longest;
    for (int i = 1; i < n && count < LENGTHS; i++) {
        int gap = at[i] - at[i - 1], k = 0;
        while (k < count && out[k] != gap)
            k++;
        if (k == count && gap >= SHORTEST && gap < longest) out[count++] = gap;
    }
    return count;
}

// Every occurrence stands behind the same symbol: it is part of a longer repeat.
static bool goes_on_before(const struct repeat *r, const int *sa, const int *symbol) {
    for (int k = r->first; k < r->first + r->count; k++)
        if (!sa[k] || symbol[sa[k] - 1] != symbol[sa[r->first] - 1]) return false;
    return true;
}

static struct candidate *candidates(const struct bodies *c, struct arena *scratch,
                                    const struct repeats *r, const int *symbol, int *n) {
    struct candidate *out = ARENA_ARRAY(scratch, struct candidate, (size_t)r->n * LENGTHS + 1);
    *n = 0;
    for (int i = 0; i < r->n; i++) {
        const struct repeat *one = &r->at[i];
        int *at = r->sa + one->first, length[LENGTHS];
        // The places of a repeat that lies inside another are sorted again: n log n in all but
        // programs of one instruction over and over, which loops have taken.
        if (one->count > 4096 || goes_on_before(one, r->sa, symbol)) continue;
        int *sorted = ARENA_ARRAY(scratch, int, (size_t)one->count);
        memcpy(sorted, at, (size_t)one->count * sizeof *at);
        qsort(sorted, (size_t)one->count, sizeof *sorted, by_place);
        int many = lengths_of(sorted, one->count, one->length, length);
        for (int k = 0; k < many; k++) {
            int64_t times = apart(sorted, one->count, length[k]);
            int64_t body = weight(c, sorted[0], length[k]);
            int64_t saved = (times - 1) * body - times * CALL_GRANULES;
            if (saved >= LEAST_SAVED) out[(*n)++] = (struct candidate){i, length[k], saved};
        }
    }
    qsort(out, (size_t)*n, sizeof *out, by_saved);
    return out;
}

static void take(struct bodies *c, const struct body *found) {
    struct body *b = arena_copy(c->a, found, sizeof *found);
    int npat = total_patterns(c, b);
    b->place = arena_copy(c->a, found->place, (size_t)b->count * sizeof *b->place);
    b->way_of = arena_copy(c->a, found->way_of, ((size_t)npat + 1) * sizeof *b->way_of);
    c->body[c->count++] = b;
    for (int p = 0; p < b->count; p++) {
        for (int i = 0; i < b->length; i++)
            c->call[b->place[p].at + i] = -1;
        c->call[b->place[p].at] = c->count;
        c->which[b->place[p].at] = p;
        for (int i = b->place[p].at + b->length - 1; i >= 0; i--) {
            if (i < b->place[p].at && c->call[i]) break;
            c->next[i] = i < b->place[p].at ? b->place[p].at : i;
        }
    }
}

// One round over the repeats of what is left; the number of bodies found.
static int round_of(struct bodies *c, struct arena *scratch) {
    int *left = ARENA_ARRAY(scratch, int, (size_t)c->n + 1), *last, before = c->count;
    // What was taken gets symbols of its own: those of places that are the only ones of theirs.
    for (int i = 0; i < c->n; i++)
        left[i] = c->symbol[i];
    last = ARENA_ARRAY(scratch, int, (size_t)c->n + 1);
    int next = 0;
    for (int i = 0; i < c->n; i++)
        if (!c->call[i]) last[c->symbol[i]] = 1;
    for (int i = 0; i < c->n; i++) {
        if (!c->call[i]) continue;
        while (next < c->n && last[next])
            next++;
        left[i] = next++;
    }
    struct repeats r = repeats_find(scratch, left, c->n, SHORTEST);
    int n;
    struct candidate *all = candidates(c, scratch, &r, left, &n);
    for (int i = 0; i < n && i < TRIES && c->work < WORK * ((int64_t)c->n + 1000); i++) {
        const struct repeat *one = &r.at[all[i].repeat];
        struct arena *one_try = arena_scratch(scratch);
        int *at = ARENA_ARRAY(one_try, int, (size_t)one->count), m = 0;
        for (int k = 0; k < one->count; k++)
            if (is_free(c, r.sa[one->first + k], all[i].length)) at[m++] = r.sa[one->first + k];
        qsort(at, (size_t)m, sizeof *at, by_place);
        struct body *best = NULL;
        for (int k = 0; k + 1 < m && k < 3; k++) {
            struct body *b = try_body(c, one_try, at + k, m - k, all[i].length);
            if (!best || b->saved > best->saved) best = b;
            if (b->count == m) break;
        }
        struct body **parts = ARENA_ARRAY(one_try, struct body *, (size_t)all[i].length + 1);
        int64_t saved = 0;
        int many = 0;
        if (best && best->count < m)
            many = in_parts(c, one_try, at, m, all[i].length, parts, &saved);
        if (many && saved > best->saved)
            for (int k = 0; k < many; k++)
                take(c, parts[k]);
        else if (best && best->saved >= LEAST_SAVED)
            take(c, best);
        arena_free(one_try);
    }
    return c->count - before;
}

struct bodies *bodies_find(struct arena *a, const struct codegen_stream *s) {
    struct bodies *c = ARENA_NEW(a, struct bodies);
    size_t n = (size_t)s->n + 1;
    *c = (struct bodies){.a = a,
                         .in = s->insn,
                         .n = s->n,
                         .symbol = ARENA_ARRAY(a, int, n),
                         .loop = ARENA_ARRAY(a, int, n),
                         .call = ARENA_ARRAY(a, int, n),
                         .which = ARENA_ARRAY(a, int, n),
                         .next = ARENA_ARRAY(a, int, n),
                         .pattern = ARENA_ARRAY(a, int, n),
                         .weight = ARENA_ARRAY(a, int64_t, n + 1),
                         .body = ARENA_ARRAY(a, struct body *, n)};
    struct arena *scratch = arena_scratch(a);
    bodies_name(c, scratch);
    for (int k = 0; k < ROUNDS; k++) {
        arena_reset(scratch);
        if (!round_of(c, scratch)) break;
    }
    arena_free(scratch);
    return c;
}
