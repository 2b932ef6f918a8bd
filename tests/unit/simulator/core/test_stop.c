// SPDX-License-Identifier: Apache-2.0
// Stopping a job: which instructions have happened at a cycle, at every cycle of several programs;
// memory and semaphores there; places; faults.
#include <criterion/criterion.h>

#include <string.h>

#include "isa/numeric.h"
#include "simulator/core/core.h"
#include "simulator/exec/state.h"
#include "tests/unit/simulator/core/bench.h"

enum { DRAM_BYTES = 1 << 20 };

static struct core_where places[2];
static struct core_stop stop = {.where = places, .n = 1};

// From empty memory, to one place.
static npu_status run_to(struct bench *b, struct core_where where) {
    bench_clear(b);
    if (!where.nth) where.nth = 1;
    places[0] = where;
    b->job.stop = &stop;
    return bench_run(b);
}

static float spm_f32(const struct bench *b, int64_t at) {
    float v;
    memcpy(&v, exec_spm(core_exec(b->core)) + at, sizeof v);
    return v;
}

static bool spm_written(const struct bench *b, int64_t at) {
    return bits_first_clear(exec_written(core_exec(b->core), ISA_SPM), at, at + 1) < 0;
}

// Two engines hand a buffer to each other by credits; the results go to DRAM.
static const char pipeline[] =
    "sync @vec signal=2:1:read\n"
    "loop count=5 a0=r3 inc0=256\n"
    "dma.fill @dma0 value=1 dst=spm:f32+0x0[64:1] wait=2:1 signal=1:1:done\n"
    "v.map out=spm:f32+0x1000+r3[64:1] in0=spm:f32+0x0[64:1] chain=(exp) "
    "wait=1:1 signal=2:1:read signal=3:1:done tag=7\n"
    "dma.copy @dma1 src=spm:f32+0x1000+r3[64:1] "
    "dst=dram:f32+0x1000+r3[64:1] wait=3:1\n"
    "endl\n"
    "sts rs2=r0 space=dram width=8 offset=0x100\n"
    "halt\n";

// The machine asserts at each of them that what is done by then has run and nothing else.
static void every_cycle(const char *text) {
    struct bench b;
    bench_init(&b, text, DRAM_BYTES);
    npu_status st = bench_run(&b);
    cr_assert_null(st, "%s", npu_status_message(st));
    const uint64_t cycles = b.r.timing.cycles, instructions = b.r.exec.instructions;
    uint64_t dispatched = 0, completed = 0;
    struct exec_state s;
    for (uint64_t n = 0; n <= cycles; n++) {
        st = run_to(&b, (struct core_where){.kind = CORE_AT_CYCLE, .value = n});
        cr_assert_null(st, "cycle %d: %s", (int)n, npu_status_message(st));
        cr_assert(b.r.stopped.stopped);
        cr_assert_eq(b.r.stopped.cycle, n);
        cr_assert_eq(b.r.timing.cycles, n);
        exec_state_of(core_exec(b.core), &s);
        cr_assert_geq(s.dispatched, dispatched);
        cr_assert_geq(b.r.timing.instructions, completed, "cycle %d", (int)n);
        dispatched = s.dispatched;
        completed = b.r.timing.instructions;
    }
    cr_assert(s.halted);
    cr_assert_eq(dispatched, instructions);
    st = run_to(&b, (struct core_where){.kind = CORE_AT_CYCLE, .value = cycles + 1});
    cr_assert_null(st);
    cr_assert(!b.r.stopped.stopped, "the run is over before");
    cr_assert_eq(b.r.timing.cycles, cycles);
    bench_deinit(&b);
}

Test(stop, at_every_cycle_of_a_pipeline) {
    every_cycle(pipeline);
}

Test(stop, at_every_cycle_of_a_matrix_product_and_a_call) {
    every_cycle("dma.fill @dma0 value=1 dst=spm:f32+0x0[256:1] signal=1:1:done\n"
                "dma.fill @dma1 value=2 dst=spm:f32+0x1000[256:1] signal=2:1:done\n"
                "call offset=body tag=1\n"
                "lds rd=r1 space=spm width=4 offset=0\n"
                "assert cond=ne rs1=r1 rs2=r0\n"
                "halt\n"
                "body: mm init=1 a=spm:f32+0x0[8:16,16:1] b=spm:f32+0x1000[16:8,8:1] "
                "d=psum:f32+0x0[8:8,8:1] wait=1:1 wait=2:1 signal=3:1:done\n"
                "v.map out=spm:f32+0x2000[8:8,8:1] in0=psum:f32+0x0[8:8,8:1] wait=3:1\n"
                "barrier\n"
                "ret\n");
}

Test(stop, what_is_under_way_has_written_nothing) {
    struct bench b;
    bench_init(&b,
               "dma.fill @dma0 value=1 dst=spm:f32+0x0[64:1] signal=1:1:done\n"
               "v.map out=spm:f32+0x0[64:1] in0=spm:f32+0x0[64:1] chain=(add imm0) "
               "imm0=41 wait=1:1 signal=2:1:start tag=9\nsync @mxu wait=2:1\nhalt\n",
               DRAM_BYTES);
    const uint32_t nine = 9;
    npu_status st = run_to(&b, (struct core_where){.kind = CORE_AT_TAG, .tag = &nine, .ntag = 1});
    cr_assert_null(st, "%s", npu_status_message(st));
    cr_assert(b.r.stopped.stopped);
    cr_assert_eq(b.r.stopped.seq, 1);
    const uint64_t start = b.r.stopped.cycle;
    cr_expect_eq(spm_f32(&b, 0), 1);
    struct exec_state s;
    exec_state_of(core_exec(b.core), &s);
    cr_assert_eq(s.engine[ISA_ENGINE_VEC].nflight, 1);
    cr_expect_eq(s.engine[ISA_ENGINE_VEC].flight[0].at.tag, 9);
    cr_expect_eq(s.sem[1].signalled, 1);
    cr_expect_eq(s.sem[2].signalled, 1, "it has started");
    cr_expect_eq(s.sem[2].waiter, ISA_ENGINE_MXU);
    cr_expect_eq(b.r.timing.cycles, start);
    st = run_to(&b, (struct core_where){.kind = CORE_AT_CYCLE, .value = start - 1});
    cr_assert_null(st);
    exec_state_of(core_exec(b.core), &s);
    cr_expect_eq(s.engine[ISA_ENGINE_VEC].nflight, 0);
    cr_expect_eq(s.sem[2].signalled, 0);
    st = run_to(&b, (struct core_where){.kind = CORE_AT_INSN, .value = 3});
    cr_assert_null(st);
    cr_expect_eq(b.r.stopped.seq, 3);
    bench_deinit(&b);
}

Test(stop, memory_that_is_not_yet_written_is_not_written) {
    struct bench b;
    bench_init(&b, pipeline, DRAM_BYTES);
    npu_status st = run_to(&b, (struct core_where){.kind = CORE_AT_PC, .value = 3, .nth = 1});
    cr_assert_null(st, "%s", npu_status_message(st));
    cr_expect(!spm_written(&b, 0x1000) && !spm_written(&b, 0));
    cr_expect_eq(exec_dram_first_unwritten(&b.dram, 0x1000, 0x1001), 0x1000);
    const uint32_t seven = 7;
    const struct core_where third = {.kind = CORE_AT_TAG, .tag = &seven, .ntag = 1, .nth = 3};
    st = run_to(&b, third);
    cr_assert_null(st);
    cr_expect(spm_written(&b, 0x1100) && !spm_written(&b, 0x1200));
    cr_expect_eq(spm_f32(&b, 0x1100), num_exp(1));
    cr_expect_eq(exec_dram_first_unwritten(&b.dram, 0x1200, 0x1300), 0x1200);
    struct core_where done = third;
    done.done = true; // all of the tag
    st = run_to(&b, done);
    cr_assert_null(st);
    cr_expect(spm_written(&b, 0x1400));
    cr_expect_eq(b.r.stopped.seq, 19);
    struct core_where sixth = third;
    sixth.nth = 6; // there are five
    st = run_to(&b, sixth);
    cr_assert_null(st);
    cr_expect(!b.r.stopped.stopped);
    cr_expect_eq(places[0].seen, 5, "for the next job");
    cr_expect_eq(exec_dram_first_unwritten(&b.dram, 0x1000, 0x1500), -1);
    bench_deinit(&b);
}

Test(stop, the_first_of_several_places) {
    struct bench b;
    bench_init(&b, pipeline, DRAM_BYTES);
    places[1] = (struct core_where){.kind = CORE_AT_INSN, .value = 2, .nth = 1};
    stop.n = 2;
    npu_status st = run_to(&b, (struct core_where){.kind = CORE_AT_CYCLE, .value = 400});
    cr_assert_null(st);
    cr_expect_eq(b.r.stopped.where, 1);
    bench_deinit(&b);
}

Test(stop, a_fault_is_one_with_the_state_before_it) {
    struct bench b;
    bench_init(&b,
               "dma.fill @dma0 value=1 dst=spm:f32+0x0[64:1] signal=1:1:done\n"
               "v.map out=spm:f32+0xa000[64:1] in0=spm:f32+0x9000[64:1] wait=1:1 tag=9\n"
               "dma.fill @dma1 value=3 dst=dram:f32+0x0[65536:1]\nhalt\n",
               DRAM_BYTES);
    npu_status st = bench_run(&b);
    cr_assert_eq(npu_status_code(st), NPU_FAULT);
    npu_status_free(st);
    const uint64_t cycle = b.r.fault->cycle;
    st = run_to(&b, (struct core_where){.kind = CORE_AT_FAULT});
    cr_assert_eq(npu_status_code(st), NPU_FAULT);
    cr_expect(strstr(npu_status_message(st), "v.map"));
    npu_status_free(st);
    cr_assert(b.r.fault && b.r.stopped.stopped);
    cr_expect_eq(b.r.fault->cycle, cycle);
    cr_expect_eq(b.r.stopped.cycle, cycle);
    cr_expect_eq(spm_f32(&b, 0), 1);
    cr_expect(!spm_written(&b, 0xa000));
    st = run_to(&b, (struct core_where){.kind = CORE_AT_CYCLE, .value = cycle - 1});
    cr_expect_null(st, "stopped before it");
    npu_status_free(st);
    st = run_to(&b, (struct core_where){.kind = CORE_AT_CYCLE, .value = cycle + 1000});
    cr_expect_eq(npu_status_code(st), NPU_FAULT, "the fault comes first");
    npu_status_free(st);
    bench_deinit(&b);
}

Test(stop, a_deadlock_shows_who_waits) {
    struct bench b;
    bench_init(&b, "sync @vec wait=1:2\nsync @mxu signal=1:1:done\nsync @vec\nhalt\n", DRAM_BYTES);
    npu_status st = run_to(&b, (struct core_where){.kind = CORE_AT_FAULT});
    cr_assert_eq(npu_status_code(st), NPU_FAULT);
    npu_status_free(st);
    struct exec_state s;
    exec_state_of(core_exec(b.core), &s);
    cr_expect_eq(s.engine[ISA_ENGINE_VEC].queued, 2);
    cr_expect_eq(s.engine[ISA_ENGINE_VEC].first.seq, 0);
    cr_expect_eq(s.sem[1].signalled, 1);
    bench_deinit(&b);
}

Test(stop, memory_is_put_back_when_no_place_is_reached) {
    struct bench b;
    bench_init(&b,
               "lds rd=r1 space=dram width=8 offset=0x40\nassert cond=eq rs1=r1 rs2=r0 imm=5\n"
               "dma.fill @dma0 value=1 dst=dram:f32+0x40[64:1]\nhalt\n",
               DRAM_BYTES);
    const int64_t five = 5;
    cr_assert_null(exec_dram_write(&b.dram, 0x40, (struct span){(const uint8_t *)&five, 8}));
    places[0] = (struct core_where){.kind = CORE_AT_INSN, .value = 99, .nth = 1};
    b.job.stop = &stop;
    npu_status st = bench_run(&b);
    cr_assert_null(st, "%s", npu_status_message(st));
    cr_expect(!b.r.stopped.stopped);
    bench_deinit(&b);
}
