// SPDX-License-Identifier: Apache-2.0
// Text of instructions: the examples of insn.def, exact inverse over random instructions of every
// row, error positions, mutated text.
#include <criterion/criterion.h>
#include <string.h>

#include "isa/insn_text.h"
#include "tests/unit/isa/random_insn.h"

static bool parse(const char *text, struct isa_insn *in, struct isa_text_error *err) {
    return isa_parse(text, strlen(text), NULL, NULL, in, err);
}

Test(insn_text, examples_of_the_table_parse_and_print) {
    for (int i = 0; i < isa_ninsn; i++) {
        struct isa_insn in, back;
        struct isa_text_error err;
        char line[ISA_TEXT_BYTES], again[ISA_TEXT_BYTES];
        cr_assert(parse(isa_insns[i].example, &in, &err), "%s\n%zu: %s", isa_insns[i].example,
                  err.pos, err.what);
        cr_assert(in.h.opcode == (int64_t)isa_insns[i].op);
        isa_print(&in, NULL, line, sizeof line);
        cr_assert(parse(line, &back, &err), "%s\n%s", line, err.what);
        cr_assert(memcmp(&in, &back, sizeof in) == 0, "%s", line);
        isa_print(&back, NULL, again, sizeof again);
        cr_assert(strcmp(line, again) == 0);
    }
}

static void prints_as(const char *text, const char *want) {
    struct isa_insn in;
    struct isa_text_error err;
    char line[ISA_TEXT_BYTES];
    cr_assert(parse(text, &in, &err), "%s: %zu: %s", text, err.pos, err.what);
    isa_print(&in, NULL, line, sizeof line);
    cr_expect(strcmp(line, want) == 0, "%s\n%s", line, want);
}

static void same(const char *text) {
    prints_as(text, text);
}

Test(insn_text, canonical_lines) {
    same("sync @vec wait=3:1 signal=4:1:done");
    same("sync @cp wait1=3:1:mono signal1=4:15:start tag=4294967295 irq=1 crc=1 trace=1");
    same("seti rd=r1 imm=-9223372036854775808");
    same("alu rd=r1 rs1=r2 rs2=r3 func=cmpeq imm=64");
    same("br rs1=r1 rs2=r2 cond=lt offset=-4");
    same("lds rd=r2 space=spm width=4 sext=1 offset=256");
    same("hostcall id=4294967295 args=18446744073709551615");
    same("dma.fill @dma1 pred=r3 value=-0.1 dst=spm:f16+0x0[16:64,64:1]");
    same("dma.fill @dma0 value=#7fc00001 dst=dram:#0+0xffffffffffff+r15[1:0]");
    same("mm init=1 zero_a=-3 a=spm:i8+0x0+r3[2:5,64*r4:256,256:1] b=spm:u8+0x8000[256:128,128:1] "
         "d=psum:i32+0x0[64:128,128:1] wait=1:1 wait=2:4095:mono signal=3:1:read signal=4:2:start");
    same("v.map out=spm:f16+0x0[64:128,128:1] in0=psum:f32+0x0[64:128,128:1] "
         "chain=(sub in1;mul imm0 >tmp;exp;fma tmp imm1;#63 #13;neg none row) imm0=0.125 "
         "imm1=1e-30");
    same("v.map out=spm:i32+0x0[1:0] in0=spm:i64+0x0[1:0] chain=(add imm0) imm0=-5");
    same("v.pool kind=avgpad kh=2 kw=2 sh=1 sw=1 dh=1 dw=1");
    prints_as(" mm\tinit=0x1  tag=0x10\r\n", "mm init=1 tag=16");
    prints_as("mm a=spm:f16+0[*r2:64,64:1]", "mm a=spm:f16+0x0[1*r2:64,64:1]");
    prints_as("v.map imm0=0 chain=(add imm0) in0=spm:f32+0x0[4:1] out=spm:i32+0x0[4:1] imm1=3",
              "v.map out=spm:i32+0x0[4:1] in0=spm:f32+0x0[4:1] chain=(add imm0) imm1=3");
}

Test(insn_text, random_round_trips) {
    uint64_t state = 99;
    for (int i = 0; i < isa_ninsn; i++) {
        for (int n = 0; n < 1000; n++) {
            struct isa_insn in, back;
            struct isa_text_error err;
            uint8_t b[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
            char line[ISA_TEXT_BYTES];
            const char *field;
            random_insn(&in, i, &state);
            in.h.length = isa_encode(&in, b, &field);
            const int len = isa_print(&in, NULL, line, sizeof line);
            cr_assert(len < ISA_TEXT_BYTES, "%d", len);
            cr_assert(parse(line, &back, &err), "%s\n%zu: %s", line, err.pos, err.what);
            cr_assert(memcmp(&in, &back, sizeof in) == 0, "%s", line);
        }
    }
}

static void stops_at(const char *text, const char *at, const char *what) {
    struct isa_insn in;
    struct isa_text_error err = {0};
    cr_assert(!parse(text, &in, &err), "accepted: %s", text);
    cr_expect(strncmp(text + err.pos, at, strlen(at)) == 0, "%s: at '%s'", text, text + err.pos);
    cr_expect(strstr(err.what, what) != NULL, "%s: %s", text, err.what);
}

Test(insn_text, errors_have_a_place) {
    stops_at("", "", "no such instruction");
    stops_at("mmm init=1", "mmm", "no such instruction");
    stops_at("mm inti=1", "inti", "no such field of mm");
    stops_at("mm init=2", "2", "value out of range for init");
    stops_at("mm init=1 init=1", "init=1", "given twice");
    stops_at("mm rsv0=0", "rsv0", "no such field");
    stops_at("mm init", "", "'=' expected");
    stops_at("mm init=", "", "value expected");
    stops_at("mm init=1x", "x", "blank expected");
    stops_at("mm @vec", "vec", "engine of another class");
    stops_at("mm @gpu", "gpu", "engine expected");
    stops_at("mm zero_a=99999", "99999", "out of range");
    stops_at("mm zero_a=99999999999999999999", "99999", "too large");
    stops_at("mm a=spm", "", "':'");
    stops_at("mm a=none:f16+0[1:0]", "none", "absent");
    stops_at("mm a=sram:f16+0[1:0]", "sram", "memory expected");
    stops_at("mm a=spm:f17+0[1:0]", "f17", "element type");
    stops_at("mm a=spm:f16+0x100000000[1:0]", "0x1", "out of range");
    stops_at("mm a=spm:f16+0+r16[1:0]", "r16", "register");
    stops_at("mm a=spm:f16+0[0:0]", "0:0", "size out of range");
    stops_at("mm a=spm:f16+0[1:8388608]", "8388608", "stride out of range");
    stops_at("mm a=spm:f16+0[1:0,1:0,1:0,1:0,1:0,1:0]", "1:0]", "more than 5");
    stops_at("mm a=spm:f16+0[2*r1:0]", "]", "dimension 1");
    stops_at("mm a=spm:f16+0[2*r0:0,1:0]", "2*r0", "size register");
    stops_at("mm a=spm:f16+0[1:0", "", "',' or ']'");
    stops_at("mm chain=(add)", "(", "no chain");
    stops_at("v.map chain=(addd)", "addd", "operation expected");
    stops_at("v.map chain=(add in9)", "in9", "operand expected");
    stops_at("v.map chain=(add in0 in1 in2)", "in2", "more than two");
    stops_at("v.map chain=(nop;nop;nop;nop;nop;nop;nop;nop;nop)", "nop)", "more than 8");
    stops_at("v.map imm0=abc", "abc", "number expected");
    stops_at("v.map imm4=1", "imm4", "no such field");
    stops_at("v.map out=spm:i32+0[1:0] imm0=1.5", ".5", "number expected");
    stops_at("sync @cp wait=0:1", "", "semaphore 1..255");
    stops_at("sync @cp wait=256:1", "256", "out of range");
    stops_at("sync @cp wait=1:4096", "4096", "out of range");
    stops_at("sync @cp wait=1:1:acq", "acq", "'mono'");
    stops_at("sync @cp wait=1:1 wait=2:1 wait=3:1", "3:1", "taken");
    stops_at("sync @cp signal=1:0:done", "0:done", "increment 1..15");
    stops_at("sync @cp signal=1:1", "", "start, read or done");
    stops_at("br cond=lt offset=somewhere", "somewhere", "value expected for offset");
    stops_at("seti rd=1 imm=0", "1", "register");
    stops_at("seti rd=r1 imm=-9223372036854775809", "-9", "too small");
    stops_at("hostcall args=-1", "-1", "out of range");
}

static bool label(void *ctx, const char *word, size_t len, int64_t *offset) {
    *offset = *(const int *)ctx;
    return len == 4 && memcmp(word, "loop", 4) == 0;
}

Test(insn_text, labels) {
    struct isa_insn in;
    struct isa_text_error err;
    int where = -7;
    char line[ISA_TEXT_BYTES];
    const char *text = "br cond=ne rs1=r1 offset=loop";
    cr_assert(isa_parse(text, strlen(text), label, &where, &in, &err));
    cr_expect(in.u.BR.offset == -7);
    isa_print(&in, "there", line, sizeof line);
    cr_expect(strcmp(line, "br rs1=r1 cond=ne offset=there") == 0, "%s", line);
    text = "br offset=elsewhere";
    cr_assert(!isa_parse(text, strlen(text), label, &where, &in, &err));
    cr_expect(strcmp(err.what, "no such label") == 0);
}

Test(insn_text, mutated_text_is_survived) {
    uint64_t state = 3;
    for (int n = 0; n < 60000; n++) {
        struct isa_insn in;
        struct isa_text_error err;
        char line[ISA_TEXT_BYTES];
        random_insn(&in, (int)(random_next(&state) % (uint64_t)isa_ninsn), &state);
        size_t len = (size_t)isa_print(&in, NULL, line, sizeof line);
        for (int k = 0; k < 3; k++)
            line[random_next(&state) % len] = (char)random_next(&state);
        if (n % 3 == 0) len = random_next(&state) % len;
        if (!isa_parse(line, len, NULL, NULL, &in, &err)) cr_assert(err.pos <= len);
    }
}

Test(insn_text, short_buffer_is_cut) {
    struct isa_insn in;
    struct isa_text_error err;
    char line[8];
    cr_assert(parse("sync @vec wait=3:1", &in, &err));
    cr_expect(isa_print(&in, NULL, line, sizeof line) == 18 && strcmp(line, "sync @v") == 0);
    cr_expect(isa_print(&in, NULL, NULL, 0) == 18);
}
