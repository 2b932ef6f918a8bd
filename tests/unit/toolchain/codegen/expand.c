// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/toolchain/codegen/expand.h"

#include <criterion/criterion.h>
#include <string.h>

#define NEST 8

struct loop {
    int start; // the instruction behind LOOP
    int64_t left, saved[ISA_REGS];
    const struct isa_LOOP *in;
};

static bool end_of_loop(struct loop *l, int64_t reg[ISA_REGS]) {
    const struct isa_LOOP *in = l->in;
    const int64_t a[] = {in->a0, in->a1, in->a2, in->a3, in->a4, in->a5},
                  inc[] = {in->inc0, in->inc1, in->inc2, in->inc3, in->inc4, in->inc5};
    if (--l->left == 0) {
        for (int k = 0; k < 6; k++)
            if (a[k]) reg[a[k]] = l->saved[a[k]];
        return true;
    }
    for (int k = 0; k < 6; k++)
        if (a[k]) reg[a[k]] += inc[k];
    return false;
}

// The instruction that begins `offset` granules from instruction i.
static int target(const struct codegen_stream *s, int i, int64_t offset) {
    uint8_t bytes[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
    const char *field;
    for (; offset > 0; i++)
        offset -= isa_encode(&s->insn[i], bytes, &field);
    for (; offset < 0; i--)
        offset += isa_encode(&s->insn[i - 1], bytes, &field);
    cr_assert_eq(offset, 0, "a jump into an instruction");
    return i;
}

int expand(const struct codegen_stream *s, struct isa_insn *out, int room) {
    int64_t reg[ISA_REGS] = {0}, tagbase = 0, tags[NEST];
    struct loop loop[NEST];
    int n = 0, nloop = 0, ncall = 0, back[NEST];
    for (int i = 0;;) {
        cr_assert_lt(i, s->n);
        const struct isa_insn *in = &s->insn[i];
        const unsigned op = (unsigned)in->h.opcode;
        int next = i + 1;
        if (op == ISA_OP_LOOP) {
            cr_assert_lt(nloop, NEST);
            loop[nloop] = (struct loop){.start = next, .left = in->u.LOOP.count, .in = &in->u.LOOP};
            memcpy(loop[nloop++].saved, reg, sizeof reg);
        } else if (op == ISA_OP_ENDL) {
            cr_assert_gt(nloop, 0);
            if (end_of_loop(&loop[nloop - 1], reg))
                nloop--;
            else
                next = loop[nloop - 1].start;
        } else if (op == ISA_OP_SETI) {
            reg[in->u.SETI.rd] = in->u.SETI.imm;
        } else if (op == ISA_OP_BR) {
            next = target(s, i, in->u.BR.offset);
        } else if (op == ISA_OP_CALL) {
            cr_assert_lt(ncall, NEST);
            back[ncall] = next;
            tags[ncall++] = tagbase;
            tagbase += in->u.CALL.tagbase;
            next = target(s, i, in->u.CALL.offset);
        } else if (op == ISA_OP_RET) {
            cr_assert_gt(ncall, 0);
            next = back[--ncall];
            tagbase = tags[ncall];
        } else {
            cr_assert_lt(n, room);
            out[n] = *in;
            out[n].h.tag = (int64_t)(uint32_t)(in->h.tag + tagbase);
            for (int k = 0; k < isa_find(op)->npat; k++) {
                struct isa_pat *p = isa_pat_at(&out[n], k);
                p->base += reg[p->areg];
                p->areg = 0;
            }
            n++;
            if (op == ISA_OP_HALT) break;
        }
        i = next;
    }
    cr_assert_eq(nloop, 0);
    cr_assert_eq(ncall, 0);
    return n;
}

void same_insn(const struct isa_insn *a, const struct isa_insn *b) {
    uint8_t x[ISA_MAX_GRANULES * ISA_GRANULE_BYTES], y[sizeof x];
    const char *field;
    int n = isa_encode(a, x, &field), m = isa_encode(b, y, &field);
    cr_assert(n > 0 && n == m);
    cr_assert_arr_eq(x, y, (size_t)n * ISA_GRANULE_BYTES);
}

struct isa_insn copy_insn(int64_t src, int64_t dst, int64_t engine) {
    struct isa_insn in;
    isa_init(&in, ISA_OP_COPY);
    in.h.engine = engine;
    in.u.COPY.src = (struct isa_pat){
        .space = ISA_DRAM, .dtype = ISA_F16, .base = src, .size = {64, 1, 1, 1, 1}, .stride = {1}};
    in.u.COPY.dst = (struct isa_pat){
        .space = ISA_SPM, .dtype = ISA_F16, .base = dst, .size = {64, 1, 1, 1, 1}, .stride = {1}};
    return in;
}
