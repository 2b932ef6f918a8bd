// SPDX-License-Identifier: Apache-2.0
//
// Instruction bytes: what decodes encodes to the same bytes and goes through text and back.
//
// links: npu_isa

#include <stdlib.h>
#include <string.h>

#include "isa/insn_text.h"
#include "isa/timing.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct isa_insn in, back;
    struct isa_text_error err;
    struct hw hw;
    const char *why;
    uint8_t bytes[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
    char line[ISA_TEXT_BYTES];
    hw_defaults(&hw);
    while (size >= ISA_GRANULE_BYTES) {
        const int n = isa_decode(data, size, &in, &why);
        if (n) {
            const size_t len = (size_t)n * ISA_GRANULE_BYTES;
            if (isa_encode(&in, bytes, &why) != n || memcmp(bytes, data, len) != 0) abort();
            isa_print(&in, NULL, line, sizeof line);
            if (!isa_parse(line, strlen(line), NULL, NULL, &back, &err)) abort();
            if (memcmp(&in, &back, sizeof in) != 0) abort();
            const struct isa_cost c = isa_time_insn(&hw, &in);
            if (c.issue_cycles < 0 || c.done_cycles < c.read_cycles) abort();
        }
        const size_t step = n ? (size_t)n * ISA_GRANULE_BYTES : ISA_GRANULE_BYTES;
        data += step;
        size -= step;
    }
    return 0;
}
