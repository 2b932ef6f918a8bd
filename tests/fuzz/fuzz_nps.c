// SPDX-License-Identifier: Apache-2.0
//
// Program text: any bytes are refused or assemble to an image whose text assembles to the same
// code.
//
// links: npu_asm

#include <stdlib.h>
#include <string.h>

#include "runtime/base/arena.h"
#include "tests/fuzz/fuzz.h"
#include "toolchain/asm/asm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *a = arena_new();
    struct npu_program_image *m, *back;
    npu_status st = asm_assemble(a, (struct span){data, size}, "fuzz.nps", NULL, &m);
    if (!st) {
        struct str text = {0};
        st = asm_print_image(m, NULL, NULL, &text);
        if (st) abort();
        st = asm_assemble(a, (struct span){(const uint8_t *)text.data, text.len}, "again", NULL,
                          &back);
        if (st || back->code.size != m->code.size) abort();
        if (memcmp(back->code.data, m->code.data, m->code.size) != 0) abort();
        str_free(&text);
    }
    npu_status_free(st);
    arena_free(a);
    return 0;
}
