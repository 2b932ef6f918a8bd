// SPDX-License-Identifier: Apache-2.0
// Selection of final addresses, and encoding.
#include <string.h>

#include "toolchain/codegen/codegen.h"

void codegen_select(const struct tile_program *p, struct codegen_stream *out) {
    out->insn = ARENA_ARRAY(p->arena, struct isa_insn, (size_t)p->nop + 1);
    out->n = 0;
    for (int i = 0; i < p->nop; i++) {
        const struct tile_op *t = p->ops[i];
        struct isa_insn *in = &out->insn[out->n++];
        *in = t->insn;
        for (int k = 0; k < t->npat; k++)
            if (t->operand[k].buf >= 0)
                isa_pat_at(in, k)->base += p->bufs[t->operand[k].buf]->addr[t->operand[k].slot];
    }
    isa_init(&out->insn[out->n++], ISA_OP_HALT);
}

struct span codegen_encode(struct arena *a, const struct codegen_stream *s) {
    uint8_t *code = arena_alloc(a, (size_t)s->n * ISA_MAX_GRANULES * ISA_GRANULE_BYTES);
    size_t size = 0;
    for (int i = 0; i < s->n; i++) {
        const char *field = NULL;
        int granules = isa_encode(&s->insn[i], code + size, &field);
        NPU_ASSERT(granules > 0);
        size += (size_t)granules * ISA_GRANULE_BYTES;
    }
    return (struct span){.data = code, .size = size};
}
