// SPDX-License-Identifier: Apache-2.0
// Rolling loops keeps the dynamic sequence of instructions and their effective addresses.
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/toolchain/codegen/expand.h"

// n instructions and HALT become at most so many and HALT, and expand to themselves.
static void check(const struct isa_insn *in, int n, int at_most) {
    struct arena *a = arena_new();
    struct isa_insn *all = ARENA_ARRAY(a, struct isa_insn, (size_t)n + 1),
                    *out = ARENA_ARRAY(a, struct isa_insn, (size_t)n + 1);
    memcpy(all, in, (size_t)n * sizeof *in);
    isa_init(&all[n], ISA_OP_HALT);
    struct codegen_stream s = {.insn = all, .n = n + 1};
    codegen_roll(a, &s);
    cr_assert_leq(s.n, at_most + 1);
    cr_assert_eq(expand(&s, out, n + 1), n + 1);
    for (int i = 0; i < n; i++)
        same_insn(&in[i], &out[i]);
    arena_free(a);
}

Test(roll, a_run_with_constant_steps_is_one_loop) {
    struct isa_insn in[32];
    for (int i = 0; i < 32; i++)
        in[i] = copy_insn(4096 + i * 128, (i % 2) * 8192, ISA_ENGINE_DMA0);
    check(in, 32, 4);
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
