// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/simulator/core/bench.h"

#include <criterion/criterion.h>
#include <string.h>

#include "toolchain/asm/asm.h"

void bench_init(struct bench *b, const char *text, int64_t dram_bytes) {
    *b = (struct bench){.a = arena_new(), .dram_bytes = dram_bytes};
    hw_defaults(&b->hw);
    b->hw.spm_bytes = 65536;
    b->hw.mxu_cols = b->hw.mxu_rows = 8;
    struct span code;
    npu_status st =
        asm_parse_code(b->a, (struct span){(const uint8_t *)text, strlen(text)}, "test", &code);
    cr_assert_null(st, "%s", npu_status_message(st));
    exec_dram_init(&b->dram);
    cr_assert_null(exec_dram_add(&b->dram, 0, dram_bytes));
    b->job = (struct core_job){
        .exec = {.code = code, .dram = &b->dram, .dram_bytes = dram_bytes, .values = true},
        .code_address = 0x8000};
}

void bench_deinit(struct bench *b) {
    core_free(b->core);
    exec_dram_deinit(&b->dram);
    arena_free(b->a);
}

npu_status bench_run(struct bench *b) {
    if (!b->core) cr_assert_null(core_new(&b->hw, &b->core));
    return core_run(b->core, &b->job, &b->r);
}

void bench_clear(struct bench *b) {
    cr_assert_null(exec_dram_discard(&b->dram, 0, b->dram_bytes));
}
