// SPDX-License-Identifier: Apache-2.0
// Hardware loops: repeated instructions are rolled up.
//
//   at instruction i, for each period n up to PERIOD_MAX
//       repeats = how often instructions i..i+n-1 follow each other, equal but for pattern bases,
//       where every base grows by the
//                 same amount from one repeat to the next, with at most 6 different amounts
//   take the period that saves most granules:  LOOP repeats, registers += amounts;  body with bases
//   of the first repeat;  ENDL
//
// A register holds (iteration * amount): it is 0 before and after the loop, and each base with that
// amount names it.
#include <string.h>

#include "toolchain/codegen/codegen.h"

#define PERIOD_MAX 96
#define LOOP_REGS 6

struct roller {
    const struct isa_insn *in;
    uint64_t *hash; // of the instruction without its bases
    int *granules;
    int n;
    struct isa_insn *out;
    int nout;
};

static uint64_t hash_of(const struct isa_insn *in) {
    struct isa_insn bare = *in;
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    for (int k = 0; k < d->npat; k++)
        isa_pat_at(&bare, k)->base = 0;
    // All members are int64_t: hash field by field, so that padding of the union never counts.
    uint64_t h = UINT64_C(14695981039346656037);
    const struct isa_field_desc *tables[2] = {isa_header_fields, d->field};
    int counts[2] = {isa_nheader_field, d->nfield};
    for (int t = 0; t < 2; t++)
        for (int f = 0; f < counts[t]; f++) {
            int64_t v;
            memcpy(&v, (const char *)&bare + tables[t][f].offset, sizeof v);
            h = (h ^ (uint64_t)v) * UINT64_C(1099511628211);
            h ^= h >> 29;
        }
    return h;
}

static int64_t base_of(const struct isa_insn *in, int k) {
    return isa_pat_get(in, k)->base;
}
static int patterns(const struct isa_insn *in) {
    return isa_find((unsigned)in->h.opcode)->npat;
}

static bool rollable(const struct isa_insn *in) {
    return isa_engine_class((int)in->h.engine) != ISA_CLASS_CP;
}

// True when repeat r of the body at i equals the body with bases moved by r times their first step.
static bool repeats(const struct roller *r, int i, int n, int rep) {
    for (int k = 0; k < n; k++) {
        int at = i + rep * n + k;
        if (r->hash[at] != r->hash[i + k]) return false;
        for (int p = 0; p < patterns(&r->in[i + k]); p++) {
            int64_t first = base_of(&r->in[i + k], p), step = base_of(&r->in[i + n + k], p) - first;
            if (base_of(&r->in[at], p) != first + rep * step) return false;
        }
    }
    return true;
}

// Different non-zero steps of the body; -1 when there are more than the registers.
static int steps_of(const struct roller *r, int i, int n, int64_t step[LOOP_REGS]) {
    int count = 0;
    for (int k = 0; k < n; k++)
        for (int p = 0; p < patterns(&r->in[i + k]); p++) {
            int64_t s = base_of(&r->in[i + n + k], p) - base_of(&r->in[i + k], p);
            int at = 0;
            while (at < count && step[at] != s)
                at++;
            if (s == 0 || at < count) continue;
            if (count == LOOP_REGS) return -1;
            step[count++] = s;
        }
    return count;
}

static void emit_loop(struct roller *r, int i, int n, int count) {
    int64_t step[LOOP_REGS];
    int regs = steps_of(r, i, n, step);
    struct isa_insn *loop = &r->out[r->nout++];
    isa_init(loop, ISA_OP_LOOP);
    loop->h.tag = r->in[i].h.tag;
    struct isa_LOOP *l = &loop->u.LOOP;
    int64_t *reg[LOOP_REGS] = {&l->a0, &l->a1, &l->a2, &l->a3, &l->a4, &l->a5};
    int64_t *inc[LOOP_REGS] = {&l->inc0, &l->inc1, &l->inc2, &l->inc3, &l->inc4, &l->inc5};
    l->count = count;
    for (int k = 0; k < regs; k++) {
        *reg[k] = k + 1;
        *inc[k] = step[k];
    }
    for (int k = 0; k < n; k++) {
        struct isa_insn *to = &r->out[r->nout++];
        *to = r->in[i + k];
        for (int p = 0; p < patterns(to); p++) {
            int64_t s = base_of(&r->in[i + n + k], p) - base_of(&r->in[i + k], p);
            for (int q = 0; q < regs; q++)
                if (step[q] == s) isa_pat_at(to, p)->areg = q + 1;
        }
    }
    isa_init(&r->out[r->nout], ISA_OP_ENDL);
    r->out[r->nout++].h.tag = r->in[i].h.tag;
}

// Best period at i and its repeats; 0 when nothing is gained.
static int best_period(const struct roller *r, int i, int *count) {
    int best = 0;
    int64_t most = 0, body = 0;
    for (int n = 1; n <= PERIOD_MAX && i + 2 * n <= r->n && rollable(&r->in[i + n - 1]); n++) {
        body += r->granules[i + n - 1];
        if (r->hash[i] != r->hash[i + n] || !repeats(r, i, n, 1)) continue;
        int64_t step[LOOP_REGS];
        int regs = steps_of(r, i, n, step), reps = 2;
        if (regs < 0) continue;
        while (i + (reps + 1) * n <= r->n && repeats(r, i, n, reps))
            reps++;
        int64_t saved = (reps - 1) * body - (3 + (regs + 1) / 2);
        if (saved > most) {
            most = saved;
            best = n;
            *count = reps;
        }
    }
    return best;
}

void codegen_roll(struct arena *a, struct codegen_stream *s) {
    struct roller r = {.in = s->insn, .n = s->n};
    uint8_t bytes[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
    const char *field;
    r.hash = ARENA_ARRAY(a, uint64_t, (size_t)s->n + 1);
    r.granules = ARENA_ARRAY(a, int, (size_t)s->n + 1);
    r.out = ARENA_ARRAY(a, struct isa_insn, 2 * (size_t)s->n + 2);
    for (int i = 0; i < s->n; i++) {
        r.hash[i] = hash_of(&s->insn[i]);
        r.granules[i] = isa_encode(&s->insn[i], bytes, &field);
    }
    for (int i = 0; i < s->n;) {
        int count = 0, n = rollable(&s->insn[i]) ? best_period(&r, i, &count) : 0;
        if (n) {
            emit_loop(&r, i, n, count);
            i += n * count;
        } else {
            r.out[r.nout++] = s->insn[i++];
        }
    }
    s->insn = r.out;
    s->n = r.nout;
}
