// SPDX-License-Identifier: Apache-2.0
// Rolling loops keeps the dynamic sequence of instructions and their effective addresses.
#include <criterion/criterion.h>
#include <string.h>

#include "toolchain/codegen/codegen.h"

// Runs LOOP and ENDL as the manual says; writes the instructions with effective bases.
static int expand(const struct codegen_stream *s, struct isa_insn *out) {
    int64_t reg[ISA_REGS] = {0}, saved[ISA_REGS];
    int n = 0, start = -1;
    int64_t left = 0;
    const struct isa_LOOP *l = NULL;
    for (int i = 0; i < s->n; i++) {
        const struct isa_insn *in = &s->insn[i];
        if (in->h.opcode == ISA_OP_LOOP) {
            cr_assert(start < 0);
            l = &in->u.LOOP;
            start = i;
            left = l->count;
            memcpy(saved, reg, sizeof reg);
        } else if (in->h.opcode == ISA_OP_ENDL) {
            const int64_t a[] = {l->a0, l->a1, l->a2, l->a3, l->a4, l->a5},
                          inc[] = {l->inc0, l->inc1, l->inc2, l->inc3, l->inc4, l->inc5};
            if (--left > 0) {
                for (int k = 0; k < 6; k++)
                    if (a[k]) reg[a[k]] += inc[k];
                i = start;
            } else {
                memcpy(reg, saved, sizeof reg);
                start = -1;
            }
        } else {
            out[n] = *in;
            for (int k = 0; k < isa_find((unsigned)in->h.opcode)->npat; k++) {
                struct isa_pat *p = isa_pat_at(&out[n], k);
                p->base += reg[p->areg];
                p->areg = 0;
            }
            n++;
        }
    }
    cr_assert(start < 0);
    return n;
}

static void same(const struct isa_insn *a, const struct isa_insn *b) {
    uint8_t x[ISA_MAX_GRANULES * ISA_GRANULE_BYTES], y[sizeof x];
    const char *field;
    int n = isa_encode(a, x, &field), m = isa_encode(b, y, &field);
    cr_assert(n > 0 && n == m);
    cr_assert_arr_eq(x, y, (size_t)n * ISA_GRANULE_BYTES);
}

static struct isa_insn copy_insn(int64_t src, int64_t dst, int64_t engine) {
    struct isa_insn in;
    isa_init(&in, ISA_OP_COPY);
    in.h.engine = engine;
    in.u.COPY.src = (struct isa_pat){
        .space = ISA_DRAM, .dtype = ISA_F16, .base = src, .size = {64, 1, 1, 1, 1}, .stride = {1}};
    in.u.COPY.dst = (struct isa_pat){
        .space = ISA_SPM, .dtype = ISA_F16, .base = dst, .size = {64, 1, 1, 1, 1}, .stride = {1}};
    return in;
}

static void check(struct isa_insn *in, int n, int at_most) {
    struct arena *a = arena_new();
    struct codegen_stream s = {.insn = in, .n = n};
    codegen_roll(a, &s);
    struct isa_insn *out = ARENA_ARRAY(a, struct isa_insn, (size_t)n + 1);
    cr_assert_leq(s.n, at_most);
    cr_assert_eq(expand(&s, out), n);
    for (int i = 0; i < n; i++)
        same(&in[i], &out[i]);
    arena_free(a);
}

Test(roll, a_run_with_constant_steps_is_one_loop) {
    struct isa_insn in[33];
    for (int i = 0; i < 32; i++)
        in[i] = copy_insn(4096 + i * 128, (i % 2) * 8192, ISA_ENGINE_DMA0);
    isa_init(&in[32], ISA_OP_HALT);
    check(in, 33, 5);
}

Test(roll, what_does_not_repeat_stays) {
    struct isa_insn in[8];
    for (int i = 0; i < 8; i++)
        in[i] = copy_insn(i * i * 64, 0, ISA_ENGINE_DMA0 + i % 3);
    check(in, 8, 8);
}

Test(roll, more_steps_than_registers_is_not_rolled) {
    struct isa_insn in[40];
    for (int i = 0; i < 40; i++)
        in[i] = copy_insn(1000000 + (i / 10) * (i % 10 + 1) * 64,
                          (i / 10) * (i % 10 + 1) * 128 + 64, ISA_ENGINE_DMA0);
    check(in, 40, 40);
}

Test(roll, random_streams_expand_to_themselves) {
    uint64_t x = 88172645463325252u;
    for (int round = 0; round < 200; round++) {
        struct isa_insn in[120];
        int n = 0;
        while (n < 100) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            int period = 1 + (int)(x % 5), count = 1 + (int)(x >> 8 & 7);
            int64_t step[5];
            for (int k = 0; k < 5; k++)
                step[k] = (int64_t)(x >> (16 + 4 * k) & 15) * 64;
            for (int r = 0; r < count && n + period <= 120; r++)
                for (int k = 0; k < period; k++)
                    in[n++] = copy_insn(65536 + k * 4096 + r * step[k], k * 1024 + r * step[4 - k],
                                        ISA_ENGINE_DMA0 + k % 4);
        }
        check(in, n, n);
    }
}
