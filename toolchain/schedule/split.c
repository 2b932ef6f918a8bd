// SPDX-License-Identifier: Apache-2.0
// One DMA engine moves dma.width bytes per cycle; memory is usually faster. So a large load is cut
// along its outermost dimension into as many parts as there are engines.
#include <string.h>

#include "toolchain/schedule/schedule.h"

// A part smaller than this is not worth an instruction: its start cost would dominate.
static int64_t least_bytes(const struct hw *hw) {
    return hw->dma_width_bytes * hw->dma_start / 2;
}

static int outermost(const struct isa_pat *p) {
    int d = ISA_DIMS - 1;
    while (d > 0 && p->size[d] == 1)
        d--;
    return d;
}

// Elements of dimension d in each of `parts` parts; whole bursts where the dimension is the run.
static int64_t chunk_of(const struct tile_program *p, const struct isa_pat *pat, int d, int parts) {
    int64_t chunk = (pat->size[d] + parts - 1) / parts;
    if (d > 0) return chunk;
    int64_t burst = p->hw->dma_burst_bytes * 8 / isa_dtype_bits((int)pat->dtype);
    return burst > 0 ? (chunk + burst - 1) / burst * burst : pat->size[d];
}

static int parts_of(const struct tile_program *p, const struct tile_op *t) {
    if (t->insn.h.opcode != ISA_OP_COPY || t->phase != TILE_LOAD) return 1;
    const struct isa_pat *src = isa_pat_get(&t->insn, 0), *dst = isa_pat_get(&t->insn, 1);
    int bits = isa_dtype_bits((int)src->dtype);
    int64_t bytes = isa_pat_elems(src) * bits / 8, parts = bytes / least_bytes(p->hw);
    if (bits < 8 || isa_dtype_bits((int)dst->dtype) < 8) return 1;
    if (parts > p->hw->dma_engines) parts = p->hw->dma_engines;
    return parts < 1 ? 1 : (int)parts;
}

static int split(struct tile_program *p, const struct tile_op *t, struct tile_op **out) {
    int parts = parts_of(p, t), n = 0;
    const struct isa_pat *src = isa_pat_get(&t->insn, 0);
    int d = outermost(src);
    int64_t whole = src->size[d], chunk = chunk_of(p, src, d, parts);
    for (int64_t from = 0; from < whole; from += chunk) {
        struct tile_op *part = out[n++] = ARENA_NEW(p->arena, struct tile_op);
        *part = *t;
        for (int k = 0; k < 2; k++) {
            struct isa_pat *pat = isa_pat_at(&part->insn, k);
            pat->size[d] = whole - from < chunk ? whole - from : chunk;
            pat->base += from * pat->stride[d] * isa_dtype_bits((int)pat->dtype) / 8;
            if (pat->size[d] == 1) pat->stride[d] = 0;
        }
    }
    return n;
}

void schedule_split(struct tile_program *p) {
    int engines = (int)p->hw->dma_engines;
    if (engines < 2) return;
    struct tile_op **ops =
        ARENA_ARRAY(p->arena, struct tile_op *, (size_t)p->nop * (size_t)engines + 1);
    int n = 0;
    for (int i = 0; i < p->nop; i++) {
        if (parts_of(p, p->ops[i]) > 1)
            n += split(p, p->ops[i], ops + n);
        else
            ops[n++] = p->ops[i];
    }
    p->ops = ops;
    p->nop = p->cap_op = n;
}
