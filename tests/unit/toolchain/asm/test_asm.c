// SPDX-License-Identifier: Apache-2.0
// Assembler and disassembler: text to image to text to the same bytes; labels; error places;
// mutated text.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "isa/insn_text.h"
#include "runtime/base/hw_yaml.h"
#include "tests/unit/isa/random_insn.h"
#include "tests/unit/runtime/sample_image.h"
#include "toolchain/asm/asm.h"

static struct span text_span(const char *text) {
    return (struct span){(const uint8_t *)text, strlen(text)};
}

static void same_bytes(struct span a, struct span b) {
    cr_assert(a.size == b.size, "%zu and %zu bytes", a.size, b.size);
    cr_assert(a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

// Image to file bytes, to text, assembled, to file bytes again.
static void round_trip(struct arena *a, const struct npu_program_image *image, const char *file) {
    struct span first, second;
    struct str text = {0}, again = {0};
    struct npu_program_image *read, *back;
    expect_ok(container_write_memory(image, a, &first));
    expect_ok(container_read(a, first, "first", 0, &read));
    expect_ok(asm_print_image(read, file, NULL, &text));
    expect_ok(
        asm_assemble(a, (struct span){(uint8_t *)text.data, text.len}, "again.nps", NULL, &back));
    expect_ok(container_write_memory(back, a, &second));
    same_bytes(first, second);
    expect_ok(asm_print_image(back, file, NULL, &again));
    cr_expect(strcmp(text.data, again.data) == 0);
    str_free(&text);
    str_free(&again);
}

Test(asm, sample_image_round_trips) {
    struct arena *a = arena_new();
    round_trip(a, &sample_new(a)->image, NULL);
    round_trip(a, &sample_with_record(a)->image, NULL);
    arena_free(a);
}

Test(asm, random_code_round_trips) {
    struct arena *a = arena_new();
    uint64_t state = 11;
    for (int n = 0; n < 30; n++) {
        uint8_t *code = arena_alloc(a, 1 << 16);
        size_t size = 0;
        while (size < 1 << 15) {
            struct isa_insn in;
            const char *field;
            random_insn(&in, (int)(random_next(&state) % (uint64_t)isa_ninsn), &state);
            if (random_next(&state) % 2 && in.h.opcode == ISA_OP_BR)
                in.u.BR.offset = (int64_t)(random_next(&state) % 400) - 200;
            if (random_next(&state) % 2 && in.h.opcode == ISA_OP_CALL)
                in.u.CALL.offset = (int64_t)(random_next(&state) % 400) - 200;
            size += 16 * (size_t)isa_encode(&in, code + size, &field);
            if (random_next(&state) % 20 == 0) code[size - 16] ^= 0x80; // may decode no longer
        }
        struct str text = {0};
        struct span back;
        expect_ok(asm_print_code((struct span){code, size}, &text));
        expect_ok(asm_parse_code(a, (struct span){(uint8_t *)text.data, text.len}, "x", &back));
        same_bytes((struct span){code, size}, back);
        str_free(&text);
        arena_reset(a);
    }
    arena_free(a);
}

static const char hand_written[] =
    "// a product on a small machine\n"
    ".program \"gemm\"\n"
    ".target \"tiny\"\n"
    ".set \"mxu.load_rows=2\"\n"
    ".input \"a // no comment\" f16[8,8] at=0\n"
    ".input \"b\" f16[8,8] at=0x100 model=f32\n"
    ".output \"d\" f32[8,8] at=512\n"
    ".tag 1 layer=\"gemm\" op=\"matmul\" macs=512\n"
    ".entry \"main\" at=start\n"
    "\n"
    "done: halt\n"
    "start:\n"
    "  seti rd=r1 imm=3            // counts down\n"
    "again:\n"
    "  dma.copy @dma0 src=dram:f16+0x0[8:8,8:1] dst=spm:f16+0x0[8:8,8:1] signal=1:1:done\n"
    "  alu rd=r1 rs1=r1 func=add imm=-1\n"
    "  br rs1=r1 cond=gt offset=again\n"
    "  call offset=body tagbase=1\n"
    "  br offset=done\n"
    "body:\n"
    "  mm init=1 a=spm:f16+0x0[8:8,8:1] b=spm:f16+0x80[8:8,8:1] d=psum:f32+0x0[8:8,8:1]\n"
    "  ret\n";

Test(asm, hand_written_text) {
    struct arena *a = arena_new();
    struct npu_program_image *m;
    expect_ok(asm_assemble(a, text_span(hand_written), "gemm.nps", NULL, &m));
    cr_assert(m->ntensors == 3 && m->nsegments == 2 && m->nentries == 1 && m->ntags == 1);
    cr_expect(strcmp(m->tensors[0].name, "a // no comment") == 0);
    cr_expect(m->tensors[1].model_dtype == ISA_F32 && m->tensors[1].dtype == ISA_F16);
    cr_expect(m->segments[0].bytes == 768 && m->segments[1].dram_offset == 4096);
    cr_expect(m->dram_bytes == 8192 && m->entries[0].code_offset == 16);
    struct hw hw;
    expect_ok(hw_parse(m->hw_yaml, strlen(m->hw_yaml), "x", &hw));
    cr_expect(hw.mxu_rows == 8 && hw.mxu_load_rows == 2);
    cr_expect(hw_hash(&hw, HW_TIMING) == m->hw_timing_hash);
    round_trip(a, m, NULL);

    // Between again and the branch: 7 granules of dma.copy, 2 of alu.
    struct isa_insn in;
    const char *why;
    size_t g = 0;
    int64_t branch = 0, call = 0;
    while (g < m->code.size / 16) {
        const int n = isa_decode(m->code.data + 16 * g, m->code.size - 16 * g, &in, &why);
        cr_assert(n > 0);
        if (in.h.opcode == ISA_OP_BR && in.u.BR.cond == ISA_GT) branch = in.u.BR.offset;
        if (in.h.opcode == ISA_OP_CALL) call = in.u.CALL.offset;
        g += (size_t)n;
    }
    cr_expect(branch == -9 && call == 4, "%d %d", (int)branch, (int)call);

    hw_defaults(&hw);
    const struct asm_machine machine = {&hw, "mine"};
    expect_ok(asm_assemble(a, text_span(hand_written), "gemm.nps", &machine, &m));
    cr_expect(strcmp(m->target, "mine") == 0);
    cr_expect(m->hw_program_hash == hw_hash(&hw, HW_PROGRAM));
    arena_free(a);
}

Test(asm, constants_are_referenced) {
    struct arena *a = arena_new();
    struct sample *s = sample_new(a);
    uint8_t *big = arena_alloc(a, 10000);
    for (int i = 0; i < 10000; i++)
        big[i] = (uint8_t)(i * 7 >> 3);
    s->image.weights = &(struct npu_image_weights){.bytes = {big, 10000}};
    s->image.nweights = 1;
    expect_ok(container_write(&s->image, "asm_test.npu"));
    struct npu_program_image *m;
    struct str text = {0};
    expect_ok(container_open(a, "asm_test.npu", 0, &m));
    expect_ok(asm_print_image(m, "asm_test.npu", NULL, &text));
    cr_expect(strstr(text.data, ".incbin \"asm_test.npu\", ") != NULL);
    cr_expect(text.len < 10000);
    round_trip(a, &s->image, "asm_test.npu");
    str_clear(&text);
    expect_ok(asm_print_image(m, NULL, "./asm_test.nps", &text));
    cr_expect(strstr(text.data, ".incbin \"asm_test.nps.weights\", 0, 10000, 0x") != NULL);
    struct npu_program_image *back;
    expect_ok(asm_assemble(a, (struct span){(uint8_t *)text.data, text.len}, "./asm_test.nps", NULL,
                           &back));
    same_bytes(back->weights[0].bytes, (struct span){big, 10000});

    FILE *f = fopen("asm_test.nps.weights", "r+");
    cr_assert(f != NULL);
    fputc(0x55, f);
    fclose(f);
    expect_failure(asm_assemble(a, (struct span){(uint8_t *)text.data, text.len}, "./asm_test.nps",
                                NULL, &back),
                   NPU_BAD_INPUT, "'asm_test.nps.weights' has changed");
    remove("asm_test.nps.weights");
    expect_failure(asm_assemble(a, (struct span){(uint8_t *)text.data, text.len}, "./asm_test.nps",
                                NULL, &back),
                   NPU_IO, "asm_test.nps.weights");
    remove("asm_test.npu");
    str_free(&text);
    round_trip(a, &s->image, NULL); // spelt out
    arena_free(a);
}

Test(asm, faults_have_a_place) {
    static const char *const rows[][2] = {
        {"halt\n  mmm\n", "f.nps:2:3: no such instruction"},
        {"halt\nmm inti=1\n", "f.nps:2:4: no such field of mm"},
        {"br offset=nowhere\n", "f.nps:1:1: its label is not defined"},
        {"a: halt\na: halt\n", "f.nps:2:1: label 'a' is already defined"},
        {"1a: halt\n", "f.nps:1:1: a label starts with a letter"},
        {".wat 1\n", "f.nps:1:2: there is no directive '.wat'"},
        {".program x\n", "f.nps:1:10: a string in double quotes is expected"},
        {".program \"x\n", "f.nps:1:11: the string does not end in this line"},
        {".program \"\\q\"\n", "in a string: \\n"},
        {".program \"x\" y\n", "f.nps:1:14: the end of the line is expected"},
        {".input \"x\" f17[1] at=0\n", "f.nps:1:12: an element type is expected"},
        {".input \"x\" f16[1\n", "',' or ']' is expected"},
        {".input \"x\" f16 at=0\n", "'[' and the dimensions are expected"},
        {".input \"x\" f16[1]\n", "at=BYTES is missing"},
        {".input \"x\" f16[1] at=0 at=1\n", "'at' is given twice"},
        {".input \"x\" f16[1] to=0\n", "there is no argument 'to'"},
        {".input \"x\" f16[1] at=18446744073709551616\n", "a number below 2^64"},
        {".input \"x\" f16[1,1,1,1,1,1,1,1,1] at=0\n", "more than 8 dimensions"},
        {".segment stack at=0\n", "a kind of segment is expected"},
        {".segment io at=0\n", "bytes=N is missing"},
        {".launch at=0\n", ".launch stands behind an .entry"},
        {".entry \"m\" at=there\nhalt\n", "f.nps:1:15: label 'there' is not defined"},
        {".tag 4294967296\n", "a number below 2^32"},
        {".result \"x\" psum f16[1] [1]\n", "f.nps:1:13: dram or spm is expected"},
        {".result \"x\" spm f16[1] at=0\n", "'[' and the strides are expected"},
        {".result \"x\" spm f16[1] [1,1] at=0\n", "2 strides for 1 dimensions"},
        {".option \"x\"\n", "a string in double quotes is expected"},
        {".hex 0g\n", "two hexadecimal digits"},
        {".hex 123\n", "two hexadecimal digits"},
        {".incbin \"x\"\n", "FILE, OFFSET, SIZE, CRC"},
        {".granule 1\n", "a number below 2^64"},
        {".target \"sever\"\nhalt\n", "did you mean 'server'?"},
        {".set \"mxu.rowz=1\"\nhalt\n", "did you mean 'mxu.rows'?"},
        {".yaml \"mxu: {rowz: 1}\\n\"\nhalt\n", "did you mean 'mxu.rows'?"},
        {"// nothing\n", "f.nps: 0 bytes of code"},
    };
    struct arena *a = arena_new();
    struct npu_program_image *m;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_status st = asm_assemble(a, text_span(rows[i][0]), "f.nps", NULL, &m);
        cr_expect(st != NULL, "accepted: %s", rows[i][0]);
        struct str s = {0};
        npu_status_print(st, NULL, &s);
        cr_expect(strstr(str_text(&s), rows[i][1]) != NULL, "%s\nlacks: %s", str_text(&s),
                  rows[i][1]);
        str_free(&s);
        npu_status_free(st);
        arena_reset(a);
    }
    struct span code;
    expect_failure(asm_parse_code(a, text_span(".target \"tiny\"\n"), "f.nps", &code),
                   NPU_BAD_INPUT, "only instructions");
    arena_free(a);
}

Test(asm, faults_are_gathered) {
    struct arena *a = arena_new();
    struct npu_program_image *m;
    npu_status st = asm_assemble(a, text_span("x\ny\nhalt\nz=1\n"), "f.nps", NULL, &m);
    struct str s = {0};
    npu_status_print(st, NULL, &s);
    cr_expect(strstr(s.data, "f.nps:1:") && strstr(s.data, "f.nps:2:") &&
              strstr(s.data, "f.nps:4:"));
    str_free(&s);
    npu_status_free(st);
    arena_free(a);
}

Test(asm, a_label_at_a_branch_to_itself) {
    struct arena *a = arena_new();
    struct span code;
    struct str text = {0};
    expect_ok(
        asm_parse_code(a, text_span("here: br offset=here\nthere: call offset=there tagbase=2\n"),
                       "x", &code));
    cr_expect(code.size == 16 + 32);
    expect_ok(asm_print_code(code, &text));
    cr_expect(strcmp(text.data, "L0:\n  br offset=L0\nL1:\n  call offset=L1 tagbase=2\n") == 0,
              "%s", text.data);
    str_free(&text);
    arena_free(a);
}

Test(asm, mutated_text_is_survived) {
    struct arena *a = arena_new();
    struct str text = {0};
    expect_ok(asm_print_image(&sample_new(a)->image, NULL, NULL, &text));
    str_puts(&text, hand_written);
    char *copy = arena_alloc(a, text.len);
    struct arena *scratch = arena_new();
    uint64_t state = 5;
    for (int n = 0; n < 4000; n++) {
        memcpy(copy, text.data, text.len);
        size_t len = text.len;
        for (uint64_t k = random_next(&state) % 6; k-- > 0;)
            copy[random_next(&state) % len] = (char)(random_next(&state) >> 20);
        if (n % 4 == 0) len = random_next(&state) % len;
        struct npu_program_image *m;
        npu_status_free(asm_assemble(scratch, (struct span){(uint8_t *)copy, len}, "x", NULL, &m));
        arena_reset(scratch);
    }
    arena_free(scratch);
    arena_free(a);
    str_free(&text);
}
