// SPDX-License-Identifier: Apache-2.0
// Happens-before between engines: each case is a pair of accesses, with and without what orders
// them.
#include <criterion/criterion.h>

#include <time.h>

#include "runtime/base/str.h"
#include "tests/unit/simulator/exec/prog.h"

#define OK EXEC_FAULT_NONE
#define RACE EXEC_FAULT_RACE
// Writers and readers of SPM bytes 0..255, and of others.
#define WRITE_DMA0 "dma.fill @dma0 dst=spm:f32+0x0[64:1]"
#define WRITE_DMA1 "dma.fill @dma1 dst=spm:f32+0x0[64:1]"
#define READ_VEC "v.map out=spm:f32+0x1000[64:1] in0=spm:f32+0x0[64:1]"
#define WRITE_VEC "v.map out=spm:f32+0x0[64:1]"
#define READ_DMA1 "dma.copy @dma1 src=spm:f32+0x0[64:1] dst=dram:f32+0x0[64:1]"

Test(race, write_then_read) {
    prog_expect(WRITE_DMA0 "\n" READ_VEC "\nhalt", RACE);
    prog_expect(WRITE_DMA0 " signal=1:1:done\n" READ_VEC " wait=1:1\nhalt", OK);
    prog_expect(WRITE_DMA0 " signal=1:1:done\n" READ_VEC " wait=1:1:mono\nhalt", OK);
    prog_expect(WRITE_DMA0 " signal=1:1:start\n" READ_VEC " wait=1:1\nhalt", RACE);
    prog_expect(WRITE_DMA0 " signal=1:1:read\n" READ_VEC " wait=1:1\nhalt", RACE);
    prog_expect(WRITE_DMA0 "\nbarrier\n" READ_VEC "\nhalt", OK);
}

Test(race, read_then_write) {
#define BEFORE "dma.fill @dma0 dst=spm:f32+0x0[64:1]\nbarrier\n"
    prog_expect(BEFORE READ_VEC "\n" WRITE_DMA0 "\nhalt", RACE);
    prog_expect(BEFORE READ_VEC " signal=1:1:read\n" WRITE_DMA0 " wait=1:1\nhalt", OK);
    prog_expect(BEFORE READ_VEC " signal=1:1:done\n" WRITE_DMA0 " wait=1:1\nhalt", OK);
    prog_expect(BEFORE READ_VEC " signal=1:1:start\n" WRITE_DMA0 " wait=1:1\nhalt", RACE);
    prog_expect(BEFORE READ_VEC "\n" READ_DMA1 "\nhalt", OK); // two reads
}

Test(race, write_then_write) {
    prog_expect(WRITE_DMA0 "\n" WRITE_DMA1 "\nhalt", RACE);
    prog_expect(WRITE_DMA0 " signal=1:1:done\n" WRITE_DMA1 " wait=1:1\nhalt", OK);
    prog_expect(WRITE_DMA0 " signal=1:1:read\n" WRITE_DMA1 " wait=1:1\nhalt", RACE);
    prog_expect(WRITE_VEC "\n" WRITE_VEC "\nhalt", OK); // one queue, in order
}

Test(race, one_dma_queue_needs_a_fence) {
    prog_expect(WRITE_DMA0 "\n" WRITE_DMA0 "\nhalt", RACE);
    prog_expect(WRITE_DMA0 "\n" WRITE_DMA0 " fence=1\nhalt", OK);
    prog_expect(WRITE_DMA0 "\ndma.fill @dma0 fence=1 dst=spm:f32+0x800[4:1]\n" WRITE_DMA0 "\nhalt",
                OK);
    prog_expect(WRITE_DMA0 "\ndma.copy @dma0 src=spm:f32+0x0[64:1] dst=dram:f32+0x0[64:1]\nhalt",
                RACE);
    prog_expect(WRITE_DMA0 " signal=1:1:done\nsync @vec wait=1:1 signal=2:1:done\n" WRITE_DMA0
                           " wait=2:1\nhalt",
                OK);
}

Test(race, order_is_transitive) {
    prog_expect(WRITE_DMA0 " signal=1:1:done\nsync @mxu wait=1:1 signal=2:1:start\n" READ_VEC
                           " wait=2:1\nhalt",
                OK);
    prog_expect(WRITE_DMA0
                " signal=1:1:done\nsync @mxu wait=1:1\nsync @mxu signal=2:1:done\n" READ_VEC
                " wait=2:1\nhalt",
                OK);
    prog_expect(WRITE_DMA0
                " signal=1:1:done\nsync @mxu signal=2:1:done\nsync @mxu wait=1:1\n" READ_VEC
                " wait=2:1\nhalt",
                RACE);
    // The second fill is done no earlier than the first: its signal covers both.
    prog_expect(WRITE_DMA0 "\ndma.fill @dma0 dst=spm:f32+0x800[4:1] signal=1:1:done\n" READ_VEC
                           " wait=1:1\nhalt",
                OK);
    // It does not cover a later one.
    prog_expect("dma.fill @dma0 dst=spm:f32+0x800[4:1] signal=1:1:done\n" WRITE_DMA0 "\n" READ_VEC
                " wait=1:1\nhalt",
                RACE);
    // An engine's start says nothing about the end of the instruction before.
    prog_expect(WRITE_VEC "\nsync @vec signal=1:1:start\n" READ_DMA1 " wait=1:1\nhalt", RACE);
    prog_expect(WRITE_VEC "\nsync @vec signal=1:1:done\n" READ_DMA1 " wait=1:1\nhalt", OK);
}

Test(race, counts_say_which_signal) {
#define TWO \
    "dma.fill @dma0 dst=spm:f32+0x800[4:1] signal=1:1:done\n" WRITE_DMA0 " signal=1:1:done\n"
    prog_expect(TWO READ_VEC " wait=1:1\nhalt", RACE);
    prog_expect(TWO READ_VEC " wait=1:2\nhalt", OK);
    prog_expect(TWO "sync @vec wait=1:1\n" READ_VEC " wait=1:1\nhalt", OK); // credits add up
    prog_expect(TWO "sync @vec wait=1:1:mono\n" READ_VEC " wait=1:1:mono\nhalt", RACE);
    prog_expect(TWO "sync @vec wait=1:1:mono\n" READ_VEC " wait=1:2:mono\nhalt", OK);
}

Test(race, bytes_are_exact) {
    prog_expect(WRITE_DMA0 "\ndma.fill @dma1 dst=spm:f32+0x100[64:1]\nhalt", OK);
    prog_expect(WRITE_DMA0 "\ndma.fill @dma1 dst=spm:i8+0xff[1:1]\nhalt", RACE);
    // Columns of one matrix: even ones against odd ones.
    prog_expect(
        "dma.fill @dma0 dst=spm:f32+0x0[8:16,8:2]\ndma.fill @dma1 dst=spm:f32+0x4[8:16,8:2]\nhalt",
        OK);
    prog_expect(
        "dma.fill @dma0 dst=spm:f32+0x0[8:16,8:2]\ndma.fill @dma1 dst=spm:f32+0x4[8:16,4:3]\nhalt",
        RACE);
}

Test(race, scalars_of_the_command_processor) {
    prog_expect("sts rs2=r0 space=spm width=4 offset=0x10\nv.map out=spm:f32+0x1000[1:1] "
                "in0=spm:f32+0x10[1:1]\nhalt",
                OK);
    prog_expect(WRITE_DMA0 "\nlds rd=r1 space=spm width=4 offset=0x10\nhalt", RACE);
    prog_expect(WRITE_DMA0
                " signal=1:1:done\nlds rd=r1 space=spm width=4 offset=0x10 wait=1:1\nhalt",
                OK);
    prog_expect(WRITE_DMA0 "\nbarrier\nlds rd=r1 space=spm width=4 offset=0x10\nhalt", OK);
    prog_expect(BEFORE READ_VEC "\nsts rs2=r0 space=spm width=4 offset=0x10\nhalt", RACE);
    prog_expect(
        "dma.fill @dma0 dst=dram:f32+0x0[64:1]\nlds rd=r1 space=dram width=4 offset=0x10\nhalt",
        RACE);
}

// Double-buffered loop: DMA fills, VEC reads, two credits in flight; with one credit too many the
// DMA overtakes VEC.
static void double_buffer(int credits, enum exec_fault_kind want) {
    struct str s = {0};
    str_printf(&s, "sync @vec signal=2:%d:read\n", credits);
    str_puts(&s, "loop count=20 a0=r1 inc0=512\n"
                 "dma.fill @dma0 dst=spm:f32+0x0[64:1] wait=2:1 signal=1:1:done\n"
                 "v.map out=spm:f32+0x1000[64:1] in0=spm:f32+0x0[64:1] wait=1:1 signal=2:1:read\n"
                 "dma.fill @dma0 dst=spm:f32+0x100[64:1] wait=2:1 signal=1:1:done\n"
                 "v.map out=spm:f32+0x1000[64:1] in0=spm:f32+0x100[64:1] wait=1:1 signal=2:1:read\n"
                 "endl\nhalt");
    prog_expect(str_text(&s), want);
    str_free(&s);
}

Test(race, credits_of_a_double_buffer) {
    double_buffer(1, OK);
    double_buffer(2, OK);
    double_buffer(3, RACE);
}

// The size of a detection network: 20,000 instructions, 100 MB of traffic over the scratchpad.
Test(race, a_whole_network_is_checked_in_well_under_a_second) {
    struct prog p;
    struct hw hw;
    struct str s = {0};
    hw_defaults(&hw);
    prog_init_hw(&p, &hw, 1 << 28);
    // Per iteration: tiles of 64 rows of 64 bytes inside rows of 256 are loaded, multiplied,
    // stored; 6 instructions.
    str_puts(
        &s,
        "dma.fill @dma0 dst=dram:f16+0x0[65536:128,128:1]\n"
        "dma.fill @dma0 dst=dram:f16+0x1000000[16:4096,4096:1]\nbarrier\n"
        "sync @mxu signal=5:1:read\nsync @dma1 signal=7:1:read\n"
        "loop count=3300 a0=r1 inc0=1024\n"
        "dma.copy @dma0 wait=5:1 signal=6:1:done src=dram:f16+0x0+r1[64:128,32:1] "
        "dst=spm:f16+0x0[64:128,32:1]\n"
        "mm init=1 wait=6:1 wait=8:1 a=spm:f16+0x0[64:128,32:1] b=spm:f16+0x100000[32:128,128:1] "
        "d=psum:f32+0x0[64:128,128:1] signal=5:1:read signal=9:1:done\n"
        "v.map wait=9:1 wait=7:1 out=spm:f16+0x200000[64:256,128:1] in0=psum:f32+0x0[64:128,128:1] "
        "signal=8:1:read signal=10:1:done\n"
        "dma.copy @dma1 wait=10:1 src=spm:f16+0x200000[64:256,128:1] "
        "dst=dram:f16+0x2000000+r1[64:128,128:1] "
        "signal=7:1:read fence=1\n"
        "sync @mxu\nsync @vec\nendl\nhalt");
    prog_text(&p, "dma.fill @dma0 dst=spm:f16+0x100000[32:128,128:1]\nsync @vec signal=8:1:read");
    prog_text(&p, str_text(&s));
    p.job.values = false;
    struct timespec t0, t1;
    timespec_get(&t0, TIME_UTC);
    enum exec_fault_kind kind = prog_run(&p);
    timespec_get(&t1, TIME_UTC);
    str_clear(&s);
    if (kind) fault_print(exec_fault_of(p.x), p.job.code, NULL, NULL, &s);
    cr_assert_eq(kind, OK, "%s", str_text(&s));
    double seconds = (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
    cr_log_info("%d instructions checked in %.3f s", (int)exec_stats_of(p.x)->instructions,
                seconds);
    cr_assert_gt(exec_stats_of(p.x)->instructions, 20000);
    cr_assert_lt(seconds, 5.0); // sanitizers and a busy machine included
    str_free(&s);
    prog_deinit(&p);
}

// Two engines that never wait for each other, on bytes of their own: every access of one is
// unordered with all of the other's.
Test(race, engines_without_order_stay_cheap) {
    struct prog p;
    prog_init(&p);
    prog_text(&p, "loop count=100000\n"
                  "v.map out=spm:f32+0x0[64:1]\n"
                  "dma.fill @dma0 fence=1 dst=spm:f32+0x1000[8:16,8:1]\n"
                  "endl\nhalt");
    p.job.values = false;
    struct timespec t0, t1;
    timespec_get(&t0, TIME_UTC);
    cr_assert_eq(prog_run(&p), OK);
    timespec_get(&t1, TIME_UTC);
    cr_assert_lt(t1.tv_sec - t0.tv_sec, 20);
    prog_deinit(&p);
}
