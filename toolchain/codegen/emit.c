// SPDX-License-Identifier: Apache-2.0
// Selection of final addresses, and encoding.
#include <string.h>

#include "toolchain/codegen/codegen.h"

// Operations stand in the order of their launches: the first one that is not before `launch`.
static int first_of(const struct tile_program *p, int launch) {
    int lo = 0, hi = p->nop;
    while (lo < hi) {
        const int middle = lo + (hi - lo) / 2;
        if (p->kernels[p->ops[middle]->kernel]->launch < launch)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

void codegen_select(const struct tile_program *p, int launch, struct codegen_stream *out) {
    const int first = first_of(p, launch), end = first_of(p, launch + 1);
    out->insn = ARENA_ARRAY(p->arena, struct isa_insn, (size_t)(end - first) + 1);
    out->n = 0;
    for (int i = first; i < end; i++) {
        const struct tile_op *t = p->ops[i];
        NPU_ASSERT(p->kernels[t->kernel]->launch == launch);
        struct isa_insn *in = &out->insn[out->n++];
        *in = t->insn;
        for (int k = 0; k < t->npat; k++)
            if (t->operand[k].buf >= 0)
                isa_pat_at(in, k)->base += p->bufs[t->operand[k].buf]->addr[t->operand[k].slot];
    }
    isa_init(&out->insn[out->n++], ISA_OP_HALT);
    if (p->nlaunch > 1 && end > first) // it is a part of its launch
        out->insn[out->n - 1].h.tag = out->insn[out->n - 2].h.tag;
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
