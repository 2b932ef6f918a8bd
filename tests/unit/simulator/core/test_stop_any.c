// SPDX-License-Identifier: Apache-2.0
// Any code at all, stopped anywhere: bits of a program are flipped. A stop never changes how the
// program ends: the same fault with the same message and cycle, or the same memory. The machine
// asserts that what is done by the cycle has run, and nothing else.
#include <criterion/criterion.h>

#include <string.h>

#include "tests/unit/simulator/core/bench.h"

enum { DRAM_BYTES = 1 << 16, PROGRAMS = 500 };

static uint64_t seed = 23;

static uint64_t draw(uint64_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

static const char program[] =
    "dma.fill @dma0 value=1 dst=spm:f32+0x0[1024:1] signal=1:1:done\n"
    "dma.fill @dma1 value=2 dst=dram:f16+0x100[4:64,32:1]\n"
    "sync @vec wait=1:1 signal=2:1:done signal=3:1:read\n"
    "barrier\n"
    "seti rd=r1 imm=3\nseti rd=r2 imm=64\nsts rs2=r1 space=spm width=4 offset=0x2000\n"
    "loop count=3 a0=r3 inc0=64\n"
    "mm init=1 a=spm:f32+0x0+r3[4:8,8:1] b=spm:f32+0x400[8:8,8:1] d=psum:f32+0x0[4:8,8:1] "
    "signal=4:1:done\n"
    "v.map out=spm:f16+0x4000[4:8,8:1] in0=psum:f32+0x0[4:8,8:1] chain=(mul imm0;exp;max in1) "
    "imm0=2 in1=spm:f32+0x0[4:0,8:1] wait=4:1 red=sum red_dims=1 red_out=spm:f32+0x5000[4:1] "
    "signal=5:1:done\n"
    "dma.copy @dma0 fence=1 src=spm:f16+0x4000[4:8,8:1] dst=dram:f32+0x8000+r3[4:8,8:1] wait=5:1 "
    "signal=6:1:read\n"
    "sync @vec wait=6:1\n"
    "barrier\n"
    "endl\n"
    "lds rd=r4 space=spm width=4 offset=0x2000\n"
    "alu rd=r4 func=add rs1=r4 imm=-2\n"
    "br cond=gt rs1=r4 rs2=r0 offset=2\n"
    "dma.gather @dma1 src=dram:f16+0x100[4:64,32:1] dst=spm:f16+0x6000[1:32,32:1] "
    "idx=spm:i32+0x2000[1:1] mode=1\n"
    "v.red red=max red_dims=2 out=spm:f32+0x5100[1:0] in0=spm:f32+0x0[8:8,8:1]\n"
    "sts rs2=r4 space=dram width=8 offset=0x40\n"
    "call offset=3\nhalt\nsync @mxu tag=9\nret\n";

static uint8_t memory[DRAM_BYTES]; // what the last run left

// The outcome of one run from empty memory.
static npu_status run(struct bench *b, struct core_stop *stop) {
    bench_clear(b);
    b->job.stop = stop;
    npu_status st = bench_run(b);
    cr_assert_null(exec_dram_read(&b->dram, 0, memory, DRAM_BYTES));
    return st;
}

static void expect_same(npu_status a, npu_status b, uint64_t n) {
    cr_expect_eq(npu_status_code(a), npu_status_code(b), "program %d", (int)n);
    cr_expect_str_eq(npu_status_message(a), npu_status_message(b), "program %d", (int)n);
}

static void one(struct bench *b, uint64_t n) {
    static uint8_t left[DRAM_BYTES];
    npu_status plain = run(b, NULL);
    memcpy(left, memory, sizeof left);
    const uint64_t cycles = b->r.timing.cycles;
    const bool fault = plain != NULL;
    struct core_where where = {.kind = CORE_AT_FAULT, .nth = 1};
    struct core_stop stop = {.where = &where, .n = 1};
    npu_status st = run(b, &stop);
    expect_same(plain, st, n);
    cr_expect_eq(b->r.stopped.stopped, fault && npu_status_code(plain) == NPU_FAULT,
                 "program %d: %s", (int)n, npu_status_message(plain));
    npu_status_free(st);
    for (int i = 0; i < 4; i++) {
        where = (struct core_where){.nth = 1, .kind = CORE_AT_CYCLE, .value = draw(cycles + 2)};
        st = run(b, &stop);
        if (b->r.stopped.stopped) {
            cr_expect_null(st, "program %d: %s", (int)n, npu_status_message(st));
            cr_expect_eq(b->r.timing.cycles, where.value);
        } else {
            expect_same(plain, st, n);
            cr_expect(fault || !memcmp(left, memory, sizeof left), "program %d", (int)n);
        }
        npu_status_free(st);
    }
    where = (struct core_where){.nth = 1, .kind = CORE_AT_INSN, .value = 1u << 30};
    st = run(b, &stop);
    expect_same(plain, st, n);
    cr_expect(!memcmp(left, memory, sizeof left), "program %d: memory of a run that does not stop",
              (int)n);
    npu_status_free(st);
    npu_status_free(plain);
}

Test(stop_any, ends_as_without, .timeout = 300) {
    struct bench b;
    bench_init(&b, program, DRAM_BYTES);
    b.hw.cp_queue_depth = 4;
    const struct span code = b.job.exec.code;
    uint8_t *bytes = arena_alloc(b.a, code.size);
    b.job.exec.code.data = bytes;
    b.job.exec.step_limit = 400;
    b.job.code_address = 0xc000;
    for (uint64_t n = 0; n < PROGRAMS; n++) {
        memcpy(bytes, code.data, code.size);
        for (uint64_t flips = n ? 1 + draw(3) : 0; flips > 0; flips--)
            bytes[draw(code.size)] ^= (uint8_t)(1u << draw(8));
        b.job.exec.values = draw(4) != 0;
        one(&b, n);
    }
    bench_deinit(&b);
}
