// SPDX-License-Identifier: Apache-2.0
// Small programs for tests of the functional machine.
#include "tests/unit/simulator/exec/prog.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/insn_text.h"
#include "runtime/base/str.h"

void prog_init_hw(struct prog *p, const struct hw *hw, int64_t dram_bytes) {
    *p = (struct prog){.code = calloc(1, PROG_BYTES), .hw = *hw};
    cr_assert(p->code);
    exec_dram_init(&p->dram);
    cr_assert_null(exec_dram_add(&p->dram, 0, dram_bytes));
    cr_assert_null(exec_new(&p->hw, &p->x));
    p->job = (struct exec_job){.dram = &p->dram, .dram_bytes = dram_bytes, .values = true};
}

void prog_init(struct prog *p) {
    struct hw hw;
    hw_defaults(&hw);
    hw.mxu_rows = hw.mxu_cols = 8;
    hw.spm_bytes = 65536;
    hw.psum_banks = 4;
    hw.psum_rows = 64;
    hw.dma_engines = 2;
    prog_init_hw(p, &hw, PROG_DRAM);
}

void prog_deinit(struct prog *p) {
    exec_free(p->x);
    exec_dram_deinit(&p->dram);
    free(p->code);
}

uint32_t prog_add(struct prog *p, const struct isa_insn *in) {
    uint8_t out[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
    const char *field = "";
    int n = isa_encode(in, out, &field);
    cr_assert(n > 0, "field %s does not fit", field);
    cr_assert(p->bytes + (size_t)n * ISA_GRANULE_BYTES <= PROG_BYTES);
    memcpy(p->code + p->bytes, out, (size_t)n * ISA_GRANULE_BYTES);
    uint32_t granule = (uint32_t)(p->bytes / ISA_GRANULE_BYTES);
    p->bytes += (size_t)n * ISA_GRANULE_BYTES;
    return granule;
}

uint32_t prog_text(struct prog *p, const char *lines) {
    uint32_t granule = 0;
    while (*lines) {
        const size_t len = strcspn(lines, "\n");
        struct isa_insn in;
        struct isa_text_error err;
        if (len > 0) {
            cr_assert(isa_parse(lines, len, NULL, NULL, &in, &err), "%.*s\n%*s^ %s", (int)len,
                      lines, (int)err.pos, "", err.what);
            granule = prog_add(p, &in);
        }
        lines += len + (lines[len] == '\n');
    }
    return granule;
}

enum exec_fault_kind prog_run(struct prog *p) {
    p->job.code = (struct span){p->code, p->bytes};
    npu_status st = exec_run(p->x, &p->job);
    const struct exec_fault *f = exec_fault_of(p->x);
    cr_assert_eq(st != NULL, f != NULL, "%s", npu_status_message(st));
    if (st) cr_assert_eq(npu_status_code(st), NPU_FAULT);
    npu_status_free(st);
    return f ? f->kind : EXEC_FAULT_NONE;
}

void prog_expect(const char *lines, enum exec_fault_kind want) {
    struct prog p;
    struct str s = {0};
    prog_init(&p);
    prog_text(&p, lines);
    enum exec_fault_kind got = prog_run(&p);
    if (got) fault_print(exec_fault_of(p.x), p.job.code, NULL, NULL, &s);
    cr_assert_eq(got, want, "wanted %s, got %s\n%s", fault_kind_text(want), fault_kind_text(got),
                 str_text(&s));
    str_free(&s);
    prog_deinit(&p);
}

void prog_put_floats(struct prog *p, int64_t address, const float *v, int n) {
    cr_assert_null(exec_dram_write(&p->dram, address,
                                   (struct span){(const uint8_t *)v, (size_t)n * sizeof *v}));
}

void prog_get_floats(struct prog *p, int64_t address, float *v, int n) {
    cr_assert_null(exec_dram_read(&p->dram, address, v, n * (int64_t)sizeof *v));
}
