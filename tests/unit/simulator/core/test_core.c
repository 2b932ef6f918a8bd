// SPDX-License-Identifier: Apache-2.0
// Values and time put together: cycles of faults, deadlocks that only time shows, repeated timing.
#include <criterion/criterion.h>

#include <string.h>

#include "tests/unit/simulator/core/bench.h"

enum { DRAM_BYTES = 1 << 20 };

Test(core, runs_and_repeats_with_the_same_cycles) {
    struct bench b;
    bench_init(
        &b,
        "dma.fill @dma0 value=1 dst=spm:f32+0x0[4096:1] signal=1:1:done\n"
        "v.map out=spm:f32+0x8000[4096:1] in0=spm:f32+0x0[4096:1] chain=(exp) wait=1:1\nhalt\n",
        DRAM_BYTES);
    cr_assert_null(bench_run(&b));
    cr_assert_null(b.r.fault);
    cr_assert_eq(b.r.timing.end, UNITS_HALTED);
    cr_assert_eq(b.r.timing.instructions, 3);
    const uint64_t cycles = b.r.timing.cycles;
    cr_assert_gt(cycles, 100);
    for (int i = 0; i < 3; i++) {
        cr_assert_null(core_repeat(b.core, NULL, NULL, NULL, &b.r));
        cr_assert_eq(b.r.timing.cycles, cycles);
    }
    cr_assert_null(bench_run(&b));
    cr_assert_eq(b.r.timing.cycles, cycles);
    bench_deinit(&b);
}

Test(core, every_cycle_of_every_engine_is_in_one_class) {
    struct bench b;
    bench_init(
        &b,
        "dma.fill @dma0 value=1 dst=spm:f32+0x0[4096:1] signal=1:1:done\n"
        "v.map out=spm:f32+0x8000[4096:1] in0=spm:f32+0x0[4096:1] chain=(exp) wait=1:1\nhalt\n",
        DRAM_BYTES);
    cr_assert_null(bench_run(&b));
    cr_assert_gt(b.r.timing.nengine, 3);
    for (size_t i = 0; i < b.r.timing.nengine; i++) {
        uint64_t sum = 0;
        for (int c = 0; c < TRACE_CLASSES; c++)
            sum += b.r.timing.engine[i].cycles[c];
        cr_assert_eq(sum, b.r.timing.cycles);
    }
    bench_deinit(&b);
}

// The vector instruction can start only when the fill is done: a fault in it comes no earlier.
Test(core, a_fault_has_the_cycle_at_which_its_instruction_starts) {
    struct bench b;
    bench_init(&b,
               "dma.fill @dma0 value=1 dst=spm:f32+0x0[8192:1] signal=1:1:done\n"
               "v.map out=spm:f32+0xa000[64:1] in0=spm:f32+0x9000[64:1] wait=1:1 tag=9\nhalt\n",
               DRAM_BYTES);
    npu_status st = bench_run(&b);
    cr_assert_eq(npu_status_code(st), NPU_FAULT);
    cr_assert_eq(b.r.fault->kind, EXEC_FAULT_UNWRITTEN);
    cr_assert(b.r.fault->has_cycle);
    cr_assert_gt(b.r.fault->cycle, 8192 * 4 / 64); // bytes over the link
    cr_assert(strstr(npu_status_message(st), "at cycle "));
    cr_assert(strstr(npu_status_message(st), "v.map"));
    npu_status_free(st);
    cr_assert_eq(npu_status_code(st = core_repeat(b.core, NULL, NULL, NULL, &b.r)), NPU_USAGE);
    npu_status_free(st);
    bench_deinit(&b);
}

Test(core, a_fault_at_dispatch_has_a_cycle_too) {
    struct bench b;
    bench_init(&b, "barrier\nbarrier\nlds rd=r1 space=spm width=3 offset=0\nhalt\n", DRAM_BYTES);
    npu_status st = bench_run(&b);
    cr_assert_eq(npu_status_code(st), NPU_FAULT);
    cr_assert_eq(b.r.fault->kind, EXEC_FAULT_FIELD);
    cr_assert(b.r.fault->has_cycle && b.r.fault->cycle > 0 && b.r.fault->cycle < 10000);
    npu_status_free(st);
    bench_deinit(&b);
}

// vec waits for what mxu does last, and mxu's queue is full of instructions behind vec's: legal
// with long queues, a deadlock with short ones.
Test(core, short_queues_can_deadlock) {
    static const char text[] = "sync @vec wait=1:1\n"
                               "sync @vec\nsync @vec\nsync @vec\nsync @vec\nsync @vec\n"
                               "sync @mxu signal=1:1:done\nhalt\n";
    struct bench b;
    bench_init(&b, text, DRAM_BYTES);
    cr_assert_null(bench_run(&b));
    bench_deinit(&b);
    bench_init(&b, text, DRAM_BYTES);
    b.hw.cp_queue_depth = 2;
    npu_status st = bench_run(&b);
    cr_assert_eq(npu_status_code(st), NPU_FAULT);
    cr_assert_eq(b.r.fault->kind, EXEC_FAULT_DEADLOCK);
    cr_assert(strstr(npu_status_message(st), "queues hold 2"), "%s", npu_status_message(st));
    npu_status_free(st);
    bench_deinit(&b);
}

Test(core, cycles_do_not_depend_on_values) {
    struct bench b;
    bench_init(
        &b,
        "dma.fill @dma0 value=1 dst=spm:f32+0x0[4096:1] signal=1:1:done\n"
        "v.map out=spm:f32+0x8000[4096:1] in0=spm:f32+0x0[4096:1] chain=(exp) wait=1:1\nhalt\n",
        DRAM_BYTES);
    cr_assert_null(bench_run(&b));
    const uint64_t cycles = b.r.timing.cycles;
    b.job.exec.values = false;
    cr_assert_null(bench_run(&b));
    cr_assert_eq(b.r.timing.cycles, cycles);
    bench_deinit(&b);
}

// All rows skipped: nothing moves, and the start cost is paid before it is done.
Test(core, a_gather_of_no_rows_takes_its_start) {
    struct bench b;
    bench_init(&b,
               "dma.fill @dma0 value=1 dst=dram:f32+0x0[256:1]\n"
               "dma.fill @dma0 value=99 dst=spm:i32+0x0[4:1]\nbarrier\n"
               "dma.gather @dma1 mode=1 src=dram:f32+0x0[4:64,64:1] dst=spm:f32+0x100[4:64,64:1] "
               "idx=spm:i32+0x0[4:1]\nhalt\n",
               DRAM_BYTES);
    npu_status st = bench_run(&b);
    cr_assert_null(st, "%s", npu_status_message(st));
    const struct trace_engine *dma1 = NULL;
    for (size_t i = 0; i < b.r.timing.nengine; i++)
        if (b.r.timing.engine[i].engine == ISA_ENGINE_DMA0 + 1) dma1 = &b.r.timing.engine[i];
    cr_assert(dma1);
    cr_expect_eq(dma1->cycles[TRACE_BUSY], 0);
    cr_expect_eq(dma1->cycles[TRACE_BUSY_PARTIAL], (uint64_t)b.hw.dma_start);
    bench_deinit(&b);
}
