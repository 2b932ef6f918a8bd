// SPDX-License-Identifier: Apache-2.0
// What the search for bodies compares: an instruction without its bases and tag as a number, the
// loop around it, bases and steps of its patterns.
#include <string.h>

#include "toolchain/codegen/body.h"

static int patterns(const struct isa_insn *in) {
    return isa_find((unsigned)in->h.opcode)->npat;
}

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

static int64_t step_of(const struct bodies *c, int i, const struct isa_pat *p) {
    if (c->loop[i] < 0 || !p->areg) return 0;
    const struct isa_LOOP *l = &c->in[c->loop[i]].u.LOOP;
    const int64_t reg[BODY_LOOP_REGS] = {l->a0, l->a1, l->a2, l->a3, l->a4, l->a5},
                  inc[BODY_LOOP_REGS] = {l->inc0, l->inc1, l->inc2, l->inc3, l->inc4, l->inc5};
    for (int k = 0; k < BODY_LOOP_REGS; k++)
        if (reg[k] == p->areg) return inc[k];
    return 0;
}

// Patterns of all instructions, and where nothing is taken yet.
static void list_patterns(struct bodies *c) {
    for (int i = 0; i < c->n; i++)
        c->pattern[i + 1] = c->pattern[i] + patterns(&c->in[i]);
    c->base = ARENA_ARRAY(c->a, int64_t, (size_t)c->pattern[c->n] + 1);
    c->step = ARENA_ARRAY(c->a, int64_t, (size_t)c->pattern[c->n] + 1);
    for (int i = 0; i < c->n; i++) {
        c->next[i] = c->n;
        for (int p = 0; p < patterns(&c->in[i]); p++) {
            const struct isa_pat *pat = isa_pat_get(&c->in[i], p);
            c->base[c->pattern[i] + p] = pat->base;
            c->step[c->pattern[i] + p] = step_of(c, i, pat);
        }
    }
    c->next[c->n] = c->n;
}

void bodies_name(struct bodies *c, struct arena *scratch) {
    name_symbols(c, scratch);
    list_patterns(c);
}
