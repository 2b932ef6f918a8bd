// SPDX-License-Identifier: Apache-2.0
// The code as a whole: where instructions start, and which loop's body each stands in. One pass
// from the first granule; a granule that does not decode is stepped over alone, so that what
// follows stays reachable.
#include <string.h>

#include "runtime/base/alloc.h"
#include "simulator/exec/machine.h"

bool code_scan(struct exec *x) {
    const struct span code = x->job->code;
    const uint64_t version = x->job->code_version;
    if (version && version == x->scanned_version && code.data == x->scanned.data &&
        code.size == x->scanned.size)
        return true;
    x->scanned_version = 0;
    x->ngranule = (uint32_t)(code.size / ISA_GRANULE_BYTES);
    if (x->ngranule > x->map_cap) {
        uint32_t *grown = base_realloc(x->code_map, x->ngranule * sizeof *grown);
        if (!grown) return exec_no_memory(x, "the map of the code");
        x->code_map = grown;
        x->map_cap = x->ngranule;
    }
    x->code_loads = false;
    uint32_t open[EXEC_NEST * 2];
    int depth = 0;
    for (uint32_t g = 0; g < x->ngranule;) {
        struct isa_insn in;
        const char *why;
        int n = isa_decode(code.data + (size_t)g * ISA_GRANULE_BYTES,
                           code.size - (size_t)g * ISA_GRANULE_BYTES, &in, &why);
        const int known = depth < EXEC_NEST * 2 ? depth : EXEC_NEST * 2;
        x->code_map[g] = n > 0 ? 1 + (known > 0 ? open[known - 1] : 0) : 0;
        for (int i = 1; i < n; i++)
            x->code_map[g + (uint32_t)i] = 0;
        if (n > 0 && in.h.opcode == ISA_OP_LOOP) {
            if (depth < EXEC_NEST * 2) open[depth] = g + 1;
            depth++;
        }
        if (n > 0 && in.h.opcode == ISA_OP_ENDL && depth > 0) depth--;
        if (n > 0 && (in.h.opcode == ISA_OP_LDS || in.h.opcode == ISA_OP_GATHER))
            x->code_loads = true;
        g += n > 0 ? (uint32_t)n : 1;
    }
    x->scanned = code;
    x->scanned_version = version;
    return true;
}

bool code_is_start(const struct exec *x, int64_t granule) {
    return granule >= 0 && granule < (int64_t)x->ngranule && x->code_map[granule] != 0;
}
