// SPDX-License-Identifier: Apache-2.0
// Hardware calls: what equal layers have in common is stored once.
//
//   bodies of calls (body.c): the first occurrence with registers in its patterns, RET
//   in place of each occurrence: SETI for registers that have another value than it needs, CALL;
//   behind the first CALL: BR over the body, the body. So the first call goes where code is fetched
//   ahead
//
// A LOOP of a body steps its registers from where the SETIs put them and leaves them there. Loops
// outside of bodies, and patterns of a body that differ in no way, keep the registers that roll.c
// gave them, which are 0 outside of loops; the others are used by calls only.
//
// A jump costs the code that was fetched ahead for nothing, and a small instruction memory may not
// hold a body until its next call. So it is tried to leave out small bodies, and the code is taken
// of which least is stored and fetched: a sixth less than without calls, and fetching may take no
// longer than a thousandth of the run more.
#include <string.h>

#include "toolchain/codegen/body.h"

#define LONGEST 200000 // instructions; beyond that the code stays as it is

static int patterns(const struct isa_insn *in) {
    return isa_find((unsigned)in->h.opcode)->npat;
}

struct writer {
    struct isa_insn *out;
    int n;
    int64_t reg[BODY_WAYS]; // values of the registers
};

static struct isa_insn *append(struct writer *w, enum isa_op op, int64_t tag) {
    struct isa_insn *in = &w->out[w->n++];
    isa_init(in, op);
    in->h.tag = tag;
    return in;
}

static void write_call(const struct bodies *c, struct writer *w, const struct body *b,
                       const struct place *p) {
    for (int k = 0; k < b->nway; k++) {
        if (w->reg[k] == p->value[k]) continue;
        struct isa_insn *set = append(w, ISA_OP_SETI, c->in[p->at].h.tag);
        set->u.SETI.rd = BODY_FIRST_REG + k;
        set->u.SETI.imm = w->reg[k] = p->value[k];
    }
    struct isa_insn *call = append(w, ISA_OP_CALL, c->in[p->at].h.tag);
    call->u.CALL.offset = 1; // until link()
    call->u.CALL.tagbase = (int64_t)(uint32_t)p->tagbase;
}

// Registers and steps of a loop of the body: those that its patterns name.
static void write_loop(const struct bodies *c, const struct body *b, struct writer *w, int i,
                       int k) {
    struct isa_insn *loop = &w->out[w->n++];
    *loop = c->in[b->first + i];
    struct isa_LOOP *l = &loop->u.LOOP;
    int64_t *reg[BODY_LOOP_REGS] = {&l->a0, &l->a1, &l->a2, &l->a3, &l->a4, &l->a5};
    int64_t *inc[BODY_LOOP_REGS] = {&l->inc0, &l->inc1, &l->inc2, &l->inc3, &l->inc4, &l->inc5};
    for (int r = 0; r < BODY_LOOP_REGS; r++)
        *reg[r] = *inc[r] = 0;
    int count = 0;
    for (i++; c->in[b->first + i].h.opcode != ISA_OP_ENDL; i++)
        for (int p = 0; p < patterns(&c->in[b->first + i]); p++, k++) {
            const struct isa_pat *f = isa_pat_get(&c->in[b->first + i], p);
            int64_t step = c->step[c->pattern[b->first] + k],
                    name = b->way_of[k] ? BODY_FIRST_REG + b->way_of[k] - 1 : f->areg;
            int r = 0;
            while (r < count && *reg[r] != name)
                r++;
            if (!step || r < count) continue;
            *reg[count] = name;
            *inc[count++] = step;
        }
}

static void write_body(const struct bodies *c, const struct body *b, struct writer *w) {
    for (int i = 0, k = 0; i < b->length; i++) {
        const struct isa_insn *in = &c->in[b->first + i];
        if (in->h.opcode == ISA_OP_LOOP) {
            write_loop(c, b, w, i, k);
            continue;
        }
        struct isa_insn *to = &w->out[w->n++];
        *to = *in;
        for (int p = 0; p < patterns(in); p++, k++)
            if (b->way_of[k]) isa_pat_at(to, p)->areg = BODY_FIRST_REG + b->way_of[k] - 1;
    }
    append(w, ISA_OP_RET, c->in[b->first + b->length - 1].h.tag);
}

// Offsets of calls and branches, once everything has its place. `to` is the instruction that each
// goes to; their size is the same wherever that is.
static void link(struct arena *a, struct writer *w, const int *to) {
    int64_t *granule = ARENA_ARRAY(a, int64_t, (size_t)w->n + 1);
    uint8_t bytes[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
    const char *field;
    for (int i = 0; i < w->n; i++)
        granule[i + 1] = granule[i] + isa_encode(&w->out[i], bytes, &field);
    for (int i = 0; i < w->n; i++) {
        int64_t offset = granule[to[i]] - granule[i];
        if (w->out[i].h.opcode == ISA_OP_CALL) w->out[i].u.CALL.offset = offset;
        if (w->out[i].h.opcode == ISA_OP_BR) w->out[i].u.BR.offset = offset;
    }
}

// Bodies of fewer than `least` granules stay where they are.
static struct codegen_stream write_code(const struct bodies *c, struct arena *a, int64_t least) {
    int most = c->n;
    for (int b = 0; b < c->count; b++)
        most += c->body[b]->length + 2 + c->body[b]->count * (1 + BODY_WAYS);
    struct writer w = {.out = ARENA_ARRAY(a, struct isa_insn, (size_t)most + 1)};
    int *at = ARENA_ARRAY(a, int, (size_t)c->count + 1), *to = ARENA_ARRAY(a, int, (size_t)most);
    for (int i = 0; i < c->n; i++) {
        int body = c->call[i] - 1;
        const struct body *b = body >= 0 ? c->body[body] : NULL;
        if (!b || b->granules < least) {
            w.out[w.n++] = c->in[i];
            continue;
        }
        write_call(c, &w, b, &b->place[c->which[i]]);
        int call = w.n - 1;
        if (!at[body]) {
            append(&w, ISA_OP_BR, c->in[i].h.tag)->u.BR.offset = 1;
            at[body] = w.n;
            write_body(c, b, &w);
            to[at[body] - 1] = w.n;
        }
        to[call] = at[body];
        i += b->length - 1;
    }
    link(a, &w, to);
    return (struct codegen_stream){w.out, w.n};
}

static int64_t stored(const struct codegen_stream *s) {
    uint8_t bytes[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
    const char *field;
    int64_t n = 0;
    for (int i = 0; i < s->n; i++)
        n += isa_encode(&s->insn[i], bytes, &field) * ISA_GRANULE_BYTES;
    return n;
}

// Cycles that a run would stand still for code if nothing else took time.
static double fetch_cycles(const struct hw *hw, const struct codegen_fetch *f) {
    double rate = hw_dram_bytes_per_cycle(hw),
           latency = (double)(hw->dram_latency_ps * hw->clock_npu_mhz) / 1e6;
    return (rate > 0 ? (double)f->bytes / rate : 0) + (double)f->misses * latency;
}

void codegen_call(struct arena *a, const struct hw *hw, double cycles, struct codegen_stream *s) {
    static const int64_t least[] = {0, 64, 128, 512};
    if (s->n > LONGEST) return;
    const struct codegen_stream plain = *s;
    struct arena *scratch = arena_scratch(a);
    const struct bodies *c = bodies_find(scratch, &plain);
    struct codegen_fetch fetch = codegen_fetched(scratch, hw, &plain);
    int64_t fewest = (stored(&plain) + fetch.bytes) * 5 / 6; // or it is not worth the jumps
    double longest = fetch_cycles(hw, &fetch);
    for (size_t i = 0; c->count && i < sizeof least / sizeof *least; i++) {
        struct codegen_stream made = write_code(c, scratch, least[i]);
        fetch = codegen_fetched(scratch, hw, &made);
        int64_t bytes = stored(&made) + fetch.bytes;
        if (bytes >= fewest || fetch_cycles(hw, &fetch) > longest + cycles / 1000) continue;
        fewest = bytes;
        *s = made;
    }
    if (s->insn != plain.insn) s->insn = arena_copy(a, s->insn, (size_t)s->n * sizeof *s->insn);
    arena_free(scratch);
}
