// SPDX-License-Identifier: Apache-2.0
// Every row of fault.def is raised by a program that breaks its rule, and not by one that nearly
// does.
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"
#include "tests/unit/simulator/exec/prog.h"

#define FILL0 "dma.fill @dma0 value=1 dst=spm:f32+0x0[64:1]\n"

Test(fault, control_flow) {
    prog_expect("halt", EXEC_FAULT_NONE);
    prog_expect("seti rd=r1 imm=3", EXEC_FAULT_CODE_END);
    prog_expect("seti rd=r0 imm=3\nhalt", EXEC_FAULT_REGISTER);
    prog_expect("alu rd=r1 func=40 rs1=r1\nhalt", EXEC_FAULT_FIELD);
    prog_expect("freq index=1\nhalt", EXEC_FAULT_UNIMPLEMENTED);
    prog_expect("sync @dma2\nhalt", EXEC_FAULT_NO_ENGINE);
    prog_expect("trap code=7\nhalt", EXEC_FAULT_TRAP);
    prog_expect("seti rd=r1 imm=3\nassert cond=eq rs1=r1 imm=4\nhalt", EXEC_FAULT_ASSERT);
    prog_expect("seti rd=r1 imm=3\nassert cond=eq rs1=r1 imm=3\nhalt", EXEC_FAULT_NONE);
    prog_expect("br offset=-1\nhalt", EXEC_FAULT_BRANCH);
    prog_expect("br offset=3\nseti rd=r1 imm=1\nhalt", EXEC_FAULT_BRANCH);
    prog_expect("br offset=4\nseti rd=r1 imm=1\nhalt", EXEC_FAULT_NONE);
    prog_expect("loop count=2\nbr offset=2\nendl\nhalt", EXEC_FAULT_NONE);
    prog_expect("loop count=2\nbr offset=4\nsync @cp\nendl\nhalt", EXEC_FAULT_BRANCH);
    prog_expect("ret\nhalt", EXEC_FAULT_CALL);
    prog_expect("call offset=0\nhalt", EXEC_FAULT_CALL);
    prog_expect("call offset=1\nhalt", EXEC_FAULT_BRANCH);
    prog_expect("call offset=2\nhalt", EXEC_FAULT_CALL);
    prog_expect("call offset=3\nhalt\nret", EXEC_FAULT_NONE);
}

Test(fault, loops) {
    prog_expect("loop count=0\nendl\nhalt", EXEC_FAULT_LOOP);
    prog_expect("seti rd=r1 imm=-3\nloop rs=r1 count=3\nendl\nhalt", EXEC_FAULT_LOOP);
    prog_expect("endl\nhalt", EXEC_FAULT_LOOP);
    prog_expect("loop count=3\nhalt", EXEC_FAULT_LOOP);
    prog_expect("loop count=3 a0=r1 inc0=1 a1=r1 inc1=1\nendl\nhalt", EXEC_FAULT_LOOP);
    prog_expect("seti rd=r1 imm=1\nbr offset=0\nhalt", EXEC_FAULT_STEPS);
    struct str s = {0};
    for (int i = 0; i < 9; i++)
        str_puts(&s, "loop count=1\n");
    for (int i = 0; i < 9; i++)
        str_puts(&s, "endl\n");
    str_puts(&s, "halt");
    prog_expect(str_text(&s), EXEC_FAULT_LOOP);
    prog_expect(str_text(&s) + strlen("loop count=1\n"), EXEC_FAULT_LOOP);
    str_free(&s);
}

Test(fault, encoding) {
    struct prog p;
    prog_init(&p);
    prog_text(&p, "seti rd=r1 imm=3\nhalt");
    p.code[0] = 0xfe;
    cr_assert_eq(prog_run(&p), EXEC_FAULT_BRANCH); // the entry is no instruction
    p.code[0] = ISA_OP_SETI;
    p.code[p.bytes - ISA_GRANULE_BYTES] = 0xfe;
    cr_assert_eq(prog_run(&p), EXEC_FAULT_ENCODING);
    prog_deinit(&p);
}

Test(fault, operands) {
    prog_expect("dma.copy @dma0 dst=spm:f32+0x0[4:1]\nhalt", EXEC_FAULT_OPERAND);
    prog_expect("dma.copy @dma0 src=l2:f32+0x0[4:1] dst=spm:f32+0x0[4:1]\nhalt", EXEC_FAULT_SPACE);
    prog_expect("dma.copy @dma0 src=dram:f32+0x0[4:1] dst=spm:f32+0x0[5:1]\nhalt",
                EXEC_FAULT_SIZES);
    prog_expect("dma.fill @dma0 dst=spm:f32+0x2[4:1]\nhalt", EXEC_FAULT_ALIGNMENT);
    prog_expect("dma.fill @dma0 dst=spm:f64+0x0[4:1]\nhalt", EXEC_FAULT_DTYPE);
    prog_expect("dma.fill @dma0 dst=spm:f32+0x0[4:0]\nhalt", EXEC_FAULT_LAYOUT);
    prog_expect("dma.fill @dma0 dst=spm:f32+0x0[4:1,4:3]\nhalt", EXEC_FAULT_LAYOUT);
    prog_expect("dma.fill @dma0 dst=spm:f32+0xfff0[5:1]\nhalt", EXEC_FAULT_RANGE);
    prog_expect("dma.fill @dma0 dst=spm:f32+0x0[5:-1]\nhalt", EXEC_FAULT_RANGE);
    prog_expect("dma.fill @dma0 dst=dram:f32+0xffff0[5:1]\nhalt", EXEC_FAULT_RANGE);
    prog_expect("dma.fill @dma0 dst=dram:f32+0xffff0[4:1]\nhalt", EXEC_FAULT_NONE);
    prog_expect("seti rd=r1 imm=-4\ndma.fill @dma0 dst=spm:f32+0x0+r1[4:1]\nhalt",
                EXEC_FAULT_RANGE);
    prog_expect("dma.fill @dma0 dst=spm:f32+0x0[4*r1:2,2:1]\nhalt", EXEC_FAULT_SIZES);
    prog_expect(FILL0 "dma.copy @dma0 fence=1 src=spm:f32+0x0[8:1] dst=spm:f32+0x10[8:1]\nhalt",
                EXEC_FAULT_LAYOUT);
}

Test(fault, matrix_operands) {
#define A "a=spm:f16+0x0[4:8,8:1]"
#define B "b=spm:f16+0x400[8:8,8:1]"
#define D "d=psum:f32+0x0[4:8,8:1]"
#define MM_FILL "dma.fill @dma0 dst=spm:f16+0x0[1024:1] signal=1:1:done\n"
    prog_expect(MM_FILL "mm init=1 " A " " B " " D " wait=1:1\nhalt", EXEC_FAULT_NONE);
    prog_expect(MM_FILL "mm init=0 " A " " B " " D " wait=1:1\nhalt", EXEC_FAULT_UNWRITTEN);
    prog_expect("mm init=1 a=psum:f16+0x0[4:8,8:1] " B " " D "\nhalt", EXEC_FAULT_SPACE);
    prog_expect("mm init=1 " A " " B " d=spm:f32+0x0[4:8,8:1]\nhalt", EXEC_FAULT_SPACE);
    prog_expect("mm init=1 " A " " B " d=psum:i32+0x0[4:8,8:1]\nhalt", EXEC_FAULT_DTYPE);
    prog_expect("mm init=1 a=spm:i8+0x0[4:8,8:1] " B " " D "\nhalt", EXEC_FAULT_DTYPE);
    prog_expect("mm init=1 a=spm:i64+0x0[4:8,8:1] " B " " D "\nhalt", EXEC_FAULT_DTYPE);
    prog_expect("mm init=1 zero_a=3 " A " " B " " D "\nhalt", EXEC_FAULT_FIELD);
    prog_expect("mm init=1 " A " b=spm:f16+0x400[7:8,8:1] " D "\nhalt", EXEC_FAULT_SIZES);
    prog_expect("mm init=1 " A " " B " d=psum:f32+0x0[4:8,7:1]\nhalt", EXEC_FAULT_SIZES);
    prog_expect("mm init=1 " A " " B " d=psum:f32+0x0[3:8,8:1]\nhalt", EXEC_FAULT_SIZES);
    prog_expect("mm init=1 " A " " B " d=psum:f32+0x10[4:8,8:1]\nhalt", EXEC_FAULT_ALIGNMENT);
    prog_expect("mm init=1 " A " " B " d=psum:f32+0x0[4:12,8:1]\nhalt", EXEC_FAULT_ALIGNMENT);
    prog_expect("mm init=1 " A " " B " d=psum:f32+0x0[4:16,8:2]\nhalt", EXEC_FAULT_LAYOUT);
}

Test(fault, vector_operands) {
#define OUT "out=spm:f32+0x400[64:1]"
#define IN "in0=spm:f32+0x0[64:1]"
#define FILL1 "dma.fill @dma0 value=1 dst=spm:f32+0x0[64:1] signal=1:1:done\n"
    prog_expect(FILL1 "v.map " OUT " " IN " chain=(add imm0) imm0=1 wait=1:1\nhalt",
                EXEC_FAULT_NONE);
    prog_expect(FILL1 "v.map out=spm:f32+0x0[64:1] " IN " chain=(neg) wait=1:1\nhalt",
                EXEC_FAULT_NONE);
    prog_expect("v.map " OUT " " IN " chain=(add in1)\nhalt", EXEC_FAULT_CHAIN);
    prog_expect("v.map " OUT " " IN " chain=(add tmp)\nhalt", EXEC_FAULT_CHAIN);
    prog_expect("v.map " OUT " " IN " chain=(exp;log)\nhalt", EXEC_FAULT_CHAIN);
    prog_expect("v.map " OUT " " IN " chain=(xor imm0)\nhalt", EXEC_FAULT_CHAIN);
    prog_expect("v.map out=spm:i32+0x400[64:1] in0=spm:i32+0x0[64:1] chain=(exp)\nhalt",
                EXEC_FAULT_CHAIN);
    prog_expect("v.map out=spm:f32+0x400[32:1] " IN "\nhalt", EXEC_FAULT_SIZES);
    prog_expect("v.map out=spm:f32+0x4[64:1] " IN "\nhalt", EXEC_FAULT_LAYOUT);
    prog_expect("v.map red=sum red_dims=1 " OUT " " IN "\nhalt", EXEC_FAULT_OPERAND);
    prog_expect("v.map red_dims=1 " OUT " " IN "\nhalt", EXEC_FAULT_FIELD);
    prog_expect("v.red red_dims=1 out=spm:f32+0x400[1:0] " IN "\nhalt", EXEC_FAULT_FIELD);
    prog_expect("v.red red=sum red_dims=1 out=spm:f32+0x400[2:1] " IN "\nhalt", EXEC_FAULT_SIZES);
    prog_expect("v.pool kind=9 kh=1 kw=1 sh=1 sw=1 dh=1 dw=1 out=spm:f32+0x400[8:8,8:1] "
                "in0=spm:f32+0x0[8:8,8:1]\nhalt",
                EXEC_FAULT_FIELD);
    prog_expect(FILL1
                "v.pool kind=1 kh=1 kw=2 sh=1 sw=2 dh=1 dw=1 pad_left=2 out=spm:f32+0x400[2:8,8:1] "
                "in0=spm:f32+0x0[2:8,8:1] wait=1:1\nhalt",
                EXEC_FAULT_WINDOW);
}

Test(fault, memory) {
    prog_expect("dma.copy @dma0 src=dram:f32+0x0[4:1] dst=spm:f32+0x0[4:1]\nhalt",
                EXEC_FAULT_UNWRITTEN);
    prog_expect("lds rd=r1 space=spm width=4 offset=0x100\nhalt", EXEC_FAULT_UNWRITTEN);
    prog_expect("lds rd=r1 space=spm width=4 offset=0x102\nhalt", EXEC_FAULT_ALIGNMENT);
    prog_expect("lds rd=r1 space=spm width=3 offset=0\nhalt", EXEC_FAULT_FIELD);
    prog_expect("lds rd=r1 space=spm width=4 offset=0x10000\nhalt", EXEC_FAULT_RANGE);
    prog_expect("lds rd=r1 space=dram width=4 offset=-4\nhalt", EXEC_FAULT_RANGE);
    prog_expect("sts rs2=r1 space=psum width=4 offset=0\nhalt", EXEC_FAULT_SPACE);
    prog_expect("sts rs2=r1 space=spm width=8 offset=0\nlds rd=r2 space=spm width=8 offset=0\nhalt",
                EXEC_FAULT_NONE);
}

Test(fault, constants_are_read_only) {
    static const uint8_t constant[64];
    struct prog p;
    prog_init(&p);
    cr_assert_null(exec_dram_map(&p.dram, 4096, (struct span){constant, sizeof constant}));
    prog_text(&p, "dma.fill @dma0 dst=dram:f32+0x1000[16:1]\nhalt");
    cr_assert_eq(prog_run(&p), EXEC_FAULT_READ_ONLY);
    p.bytes = 0;
    prog_text(&p, "dma.copy @dma0 src=dram:f32+0x1000[16:1] dst=spm:f32+0x0[16:1]\nhalt");
    cr_assert_eq(prog_run(&p), EXEC_FAULT_NONE);
    p.bytes = 0;
    prog_text(&p, "dma.copy @dma0 src=dram:f32+0x1000[17:1] dst=spm:f32+0x0[17:1]\nhalt");
    cr_assert_eq(prog_run(&p), EXEC_FAULT_RANGE);
    prog_deinit(&p);
}

Test(fault, gather_indices) {
    struct prog p;
    prog_init(&p);
    static const int32_t index[4] = {0, 3, 4, -1};
    static const float table[16];
    cr_assert_null(
        exec_dram_write(&p.dram, 0, (struct span){(const uint8_t *)index, sizeof index}));
    prog_put_floats(&p, 64, table, 16);
#define LOAD_IDX "dma.copy @dma0 src=dram:i32+0x0[4:1] dst=spm:i32+0x0[4:1]\n"
#define GATHER(n)                                                               \
    "dma.gather @dma0 fence=1 src=dram:f32+0x40[4:4,4:1] dst=spm:f32+0x100[" #n \
    ":4,4:1] idx=spm:i32+0x0[" #n ":1]"
    prog_text(&p, LOAD_IDX GATHER(2) "\nhalt");
    cr_assert_eq(prog_run(&p), EXEC_FAULT_NONE);
    p.bytes = 0;
    prog_text(&p, LOAD_IDX GATHER(3) "\nhalt");
    cr_assert_eq(prog_run(&p), EXEC_FAULT_INDEX);
    p.bytes = 0;
    prog_text(&p, LOAD_IDX GATHER(4) " mode=2 neg=1\ndma.copy @dma0 fence=1 "
                                     "src=spm:f32+0x100[16:1] dst=spm:f32+0x200[16:1]\nhalt");
    cr_assert_eq(prog_run(&p), EXEC_FAULT_NONE);
    p.bytes = 0; // mode 1 leaves the skipped row unwritten
    prog_text(&p, LOAD_IDX GATHER(4) " mode=1 neg=1\ndma.copy @dma0 fence=1 "
                                     "src=spm:f32+0x100[16:1] dst=spm:f32+0x200[16:1]\nhalt");
    cr_assert_eq(prog_run(&p), EXEC_FAULT_UNWRITTEN);
    cr_assert_eq(exec_fault_of(p.x)->address, 0x100 + 2 * 16);
    prog_deinit(&p);
}

Test(fault, semaphores) {
    prog_expect("sync @vec signal=1:1:done\nsync @mxu signal=1:1:done\nhalt", EXEC_FAULT_SIGNALLER);
    prog_expect("sync @vec signal=1:1:done\nsync @vec signal=1:1:start\nhalt", EXEC_FAULT_EPOCH);
    prog_expect("sync @vec signal=1:2:done\nsync @mxu wait=1:1\nsync @dma0 wait=1:1\nhalt",
                EXEC_FAULT_WAITER);
    prog_expect("sync @vec wait=1:1\nhalt", EXEC_FAULT_DEADLOCK);
    prog_expect("sync @cp wait=1:1\nhalt", EXEC_FAULT_DEADLOCK);
    prog_expect(
        "sync @vec wait=1:1 signal=2:1:done\nsync @mxu wait=2:1 signal=1:1:done\nbarrier\nhalt",
        EXEC_FAULT_DEADLOCK);
    prog_expect("sync @vec wait=1:1 wait=1:1\nhalt", EXEC_FAULT_FIELD);
    prog_expect("sync @vec signal=1:1:done\nloop count=1\nsync @mxu wait=1:1:mono\nendl\nhalt",
                EXEC_FAULT_MONOTONIC);
    prog_expect("sync @vec signal=1:1:done\nloop count=1\nsync @mxu wait=1:1\nendl\nhalt",
                EXEC_FAULT_NONE);
    prog_expect("loop count=273\nsync @vec signal=1:15:done\nendl\nhalt", EXEC_FAULT_NONE);
    prog_expect("loop count=274\nsync @vec signal=1:15:done\nendl\nhalt", EXEC_FAULT_OVERFLOW);
}

Test(fault, every_row_has_a_golden_program) {
    for (int k = 1; k < EXEC_FAULT_KINDS; k++) {
        char path[512];
        snprintf(path, sizeof path, "%s/tests/golden/sim/fault_%s.nps", NPU_SOURCE_DIR,
                 fault_kind_text((enum exec_fault_kind)k));
        for (char *c = strrchr(path, '/'); *c; c++)
            if (*c == '-') *c = '_';
        FILE *f = fopen(path, "r");
        cr_assert(f, "no %s", path);
        fclose(f);
    }
}

Test(fault, text_names_everything) {
    struct prog p;
    struct str s = {0};
    prog_init(&p);
    prog_text(&p, "dma.fill @dma0 tag=12 dst=spm:f32+0x0[64:1]\nv.map tag=34 "
                  "out=spm:f32+0x400[32:1] in0=spm:f32+0x80[32:1]\nhalt");
    cr_assert_eq(prog_run(&p), EXEC_FAULT_RACE);
    fault_print(exec_fault_of(p.x), p.job.code, NULL, NULL, &s);
    static const char *const parts[] = {"race", "vec",  "v.map",    "tag 34", "spm",
                                        "0x80", "dma0", "dma.fill", "tag 12", "rule:"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cr_assert(strstr(str_text(&s), parts[i]), "%s is missing in\n%s", parts[i], str_text(&s));
    str_free(&s);
    prog_deinit(&p);
}
