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
#define TRIES 3000     // candidates looked at in a round
#define LONGEST 200000 // instructions; beyond that the code is not looked at

// A way to differ while occurrences are compared: the difference in the occurrence that is looked
// at, and the step of the loop around the pattern.
struct way {
    int64_t step, amount;
};

static int patterns(const struct isa_insn *in) {
    return isa_find((unsigned)in->h.opcode)->npat;
}

// ---- symbols ------------------------------------------------------------------------------------

struct entry {
    struct entry *next;
    const struct isa_insn *insn;
    int symbol;
};

static uint64_t hash_of(const uint8_t *p, size_t n) {
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h ^ h >> 32;
}

static size_t bare(const struct isa_insn *in, uint8_t *bytes) {
    struct isa_insn copy = *in;
    const char *field;
    copy.h.tag = 0;
    for (int k = 0; k < patterns(in); k++)
        isa_pat_at(&copy, k)->base = 0;
    return (size_t)isa_encode(&copy, bytes, &field) * ISA_GRANULE_BYTES;
}

static void name_symbols(struct bodies *c, struct arena *scratch) {
    uint8_t bytes[ISA_MAX_GRANULES * ISA_GRANULE_BYTES], other[sizeof bytes];
    const char *field;
    int named = 0, open = -1;
    size_t buckets = 2 * (size_t)c->n + 1;
    struct entry **bucket = ARENA_ARRAY(scratch, struct entry *, buckets);
    for (int i = 0; i < c->n; i++) {
        const struct isa_insn *in = &c->in[i];
        c->weight[i + 1] = c->weight[i] + isa_encode(in, bytes, &field);
        size_t size = bare(in, bytes);
        struct entry **at = &bucket[hash_of(bytes, size) % buckets], *e = *at;
        while (e && (bare(e->insn, other) != size || memcmp(bytes, other, size) != 0))
            e = e->next;
        if (!e) {
            e = ARENA_NEW(scratch, struct entry);
            *e = (struct entry){.next = *at, .insn = in, .symbol = named++};
            *at = e;
        }
        c->symbol[i] = e->symbol;
        c->loop[i] = open;
        if (in->h.opcode == ISA_OP_LOOP) {
            NPU_ASSERT(open < 0); // loops do not nest
            open = i;
        }
        if (in->h.opcode == ISA_OP_ENDL) open = -1;
    }
}

// ---- occurrences --------------------------------------------------------------------------------

int64_t body_step(const struct bodies *c, int i, const struct isa_pat *p) {
    if (c->loop[i] < 0 || !p->areg) return 0;
    const struct isa_LOOP *l = &c->in[c->loop[i]].u.LOOP;
    const int64_t reg[BODY_LOOP_REGS] = {l->a0, l->a1, l->a2, l->a3, l->a4, l->a5},
                  inc[BODY_LOOP_REGS] = {l->inc0, l->inc1, l->inc2, l->inc3, l->inc4, l->inc5};
    for (int k = 0; k < BODY_LOOP_REGS; k++)
        if (reg[k] == p->areg) return inc[k];
    return 0;
}

static int total_patterns(const struct bodies *c, const struct body *b) {
    int n = 0;
    for (int i = 0; i < b->length; i++)
        n += patterns(&c->in[b->first + i]);
    return n;
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
        for (int p = 0; p < patterns(in); p++, k++) {
            const struct isa_pat *f = isa_pat_get(in, p);
            int w = way_of[k];
            bool *seen = w ? &used[w - 1] : &kept[f->areg];
            if (!body_step(c, b->first + i, f) || *seen) continue;
            *seen = true;
            if (++count > BODY_LOOP_REGS) return false;
        }
    }
    return true;
}

// Takes the occurrence at `at` into the body: ways are split where it differs, new[] are the ways
// of the patterns with it. false: the tags are no common distance away, or registers do not
// suffice.
static bool add_place(const struct bodies *c, struct body *b, int at, int *fresh) {
    struct way way[BODY_WAYS];
    int from[BODY_WAYS], nway = 0, k = 0;
    int64_t tags = c->in[at].h.tag - c->in[b->first].h.tag;
    for (int i = 0; i < b->length; i++) {
        const struct isa_insn *here = &c->in[at + i], *first = &c->in[b->first + i];
        if (here->h.tag - first->h.tag != tags) return false;
        for (int p = 0; p < patterns(first); p++, k++) {
            const struct isa_pat *f = isa_pat_get(first, p);
            int64_t amount = isa_pat_get(here, p)->base - f->base,
                    step = body_step(c, b->first + i, f);
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
    for (int i = 0; i < length; i++)
        if (c->call[at + i]) return false;
    return true;
}

// The body that begins at at[first] and its occurrences among at[first + 1 ..]; saved is 0 when
// nothing is gained.
static struct body *try_body(const struct bodies *c, struct arena *scratch, const int *at, int n,
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
        if (add_place(c, b, here, fresh)) end = here + b->length;
    }
    int64_t call = CALL_GRANULES * (1 + b->nway);
    if (b->count > 1 && b->granules >= LEAST_RATIO * call)
        b->saved = (b->count - 1) * b->granules - b->count * call - 1;
    return b;
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

static struct candidate *candidates(const struct bodies *c, struct arena *scratch,
                                    const struct repeats *r, int *n) {
    struct candidate *out = ARENA_ARRAY(scratch, struct candidate, (size_t)r->n * LENGTHS + 1);
    *n = 0;
    for (int i = 0; i < r->n; i++) {
        const struct repeat *one = &r->at[i];
        int *at = r->sa + one->first, length[LENGTHS];
        // The places of a repeat that lies inside another are sorted again: n log n in all but
        // programs of one instruction over and over, which loops have taken.
        if (one->count > 4096) continue;
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
    struct candidate *all = candidates(c, scratch, &r, &n);
    for (int i = 0; i < n && i < TRIES; i++) {
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
        }
        if (best && best->saved >= LEAST_SAVED) take(c, best);
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
                         .weight = ARENA_ARRAY(a, int64_t, n + 1),
                         .body = ARENA_ARRAY(a, struct body *, n)};
    struct arena *scratch = arena_scratch(a);
    name_symbols(c, scratch);
    for (int k = 0; k < ROUNDS; k++) {
        arena_reset(scratch);
        if (!round_of(c, scratch)) break;
    }
    arena_free(scratch);
    return c;
}
