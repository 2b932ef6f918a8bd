// SPDX-License-Identifier: Apache-2.0
// Any code at all: bits of programs are flipped and fields set at random. A run ends well or with a
// fault; sanitizers watch.
#include <criterion/criterion.h>

#include <string.h>

#include "tests/unit/simulator/exec/prog.h"

static uint64_t seed = 17;

static uint64_t draw(uint64_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

static const char program[] =
    "dma.fill @dma0 value=1 dst=spm:f32+0x0[1024:1] signal=1:1:done\n"
    "dma.fill @dma1 value=2 dst=dram:f16+0x100[4:64,32:1]\n"
    "sync @vec wait=1:1 signal=2:1:done signal=3:1:done\n"
    "barrier\n"
    "seti rd=r1 imm=3\nseti rd=r2 imm=64\nsts rs2=r1 space=spm width=4 offset=0x2000\n"
    "loop count=3 a0=r3 inc0=64\n"
    "mm init=1 a=spm:f32+0x0+r3[4:8,8:1] b=spm:f32+0x400[8:8,8:1] d=psum:f32+0x0[4:8,8:1] "
    "signal=4:1:done\n"
    "v.map out=spm:f16+0x4000[4:8,8:1] in0=psum:f32+0x0[4:8,8:1] chain=(mul imm0;exp;max in1) "
    "imm0=2 "
    "in1=spm:f32+0x0[4:0,8:1] wait=4:1 red=sum red_dims=1 red_out=spm:f32+0x5000[4:1] "
    "signal=5:1:done\n"
    "dma.copy @dma0 fence=1 src=spm:f16+0x4000[4:8,8:1] dst=dram:f32+0x8000+r3[4:8,8:1] wait=5:1\n"
    "barrier\n"
    "endl\n"
    "lds rd=r4 space=spm width=4 offset=0x2000\n"
    "alu rd=r4 func=add rs1=r4 imm=-2\n"
    "br cond=gt rs1=r4 rs2=r0 offset=2\n"
    "dma.gather @dma1 src=dram:f16+0x100[4:64,32:1] dst=spm:f16+0x6000[1:32,32:1] "
    "idx=spm:i32+0x2000[1:1] mode=1\n"
    "v.red red=max red_dims=2 out=spm:f32+0x5100[1:0] in0=spm:f32+0x0[8:8,8:1]\n"
    "v.dw kh=3 kw=3 sh=1 sw=1 dh=1 dw=1 pad_top=1 pad_left=1 out=spm:f16+0x5200[4:32,4:8,8:1] "
    "in0=spm:f32+0x0[4:32,4:8,8:1] w=spm:f32+0x200[9:8,8:1]\n"
    "v.pool kind=2 kh=2 kw=2 sh=2 sw=2 dh=1 dw=1 out=spm:f16+0x5400[2:16,2:8,8:1] "
    "in0=spm:f32+0x0[4:32,4:8,8:1]\n"
    "mm.conv init=1 kh=3 kw=3 sh=1 sw=1 dh=1 dw=1 pad_top=1 pad_left=1 a=spm:f32+0x0[4:8,4:2,2:1] "
    "b=spm:f32+0x400[18:8,8:1] d=psum:f32+0x400[4:32,4:8,8:1]\n"
    "call offset=3\nhalt\nsync @mxu tag=9\nret\n";

// Windows of many taps take long, and are not what is tested here.
static bool slow(const struct prog *p) {
    for (size_t at = 0; at < p->bytes; at += ISA_GRANULE_BYTES) {
        struct isa_insn in;
        const char *why;
        if (isa_decode(p->code + at, p->bytes - at, &in, &why) == 0) continue;
        if (in.h.opcode == ISA_OP_VDW && in.u.VDW.kh * in.u.VDW.kw > 64) return true;
        if (in.h.opcode == ISA_OP_VPOOL && in.u.VPOOL.kh * in.u.VPOOL.kw > 64) return true;
        if (in.h.opcode == ISA_OP_MM && in.u.MM.a.size[0] > 4096) return true;
        if (in.h.opcode == ISA_OP_MMCONV && in.u.MMCONV.kh * in.u.MMCONV.kw > 64) return true;
    }
    return false;
}

Test(any, code_ends_well_or_with_a_fault) {
    static uint8_t original[PROG_BYTES];
    struct prog p;
    int kinds[EXEC_FAULT_KINDS] = {0}, raised = 0;
    prog_init(&p);
    prog_text(&p, program);
    p.job.step_limit = 500;
    cr_assert_eq(prog_run(&p), EXEC_FAULT_NONE, "%s", exec_fault_of(p.x)->what);
    const size_t bytes = p.bytes;
    memcpy(original, p.code, bytes);
    for (int n = 0; n < 8000; n++) {
        memcpy(p.code, original, bytes);
        for (uint64_t i = draw(3) + 1; i-- > 0;)
            p.code[draw(bytes)] ^= (uint8_t)(1 << draw(8));
        p.bytes = draw(50) ? bytes : draw(bytes / ISA_GRANULE_BYTES + 1) * ISA_GRANULE_BYTES;
        p.job.values = n % 4 == 0 && !slow(&p);
        kinds[prog_run(&p)]++;
        if (n % 100 == 0) cr_assert_null(exec_dram_discard(&p.dram, 0, PROG_DRAM));
    }
    for (int k = 1; k < EXEC_FAULT_KINDS; k++)
        raised += kinds[k] > 0;
    cr_assert(kinds[EXEC_FAULT_NONE] > 400 && raised > 15, "%d well, %d kinds",
              kinds[EXEC_FAULT_NONE], raised);
    prog_deinit(&p);
}
