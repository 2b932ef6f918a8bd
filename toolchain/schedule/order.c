// SPDX-License-Identifier: Apache-2.0
// Order of operations: loads go ahead of the computing of earlier steps.
//
//   for each operation in the old order
//       if it is a load: walk back over the new order while the operation there
//           belongs to a step within the load's lookahead (slots of its buffer - 1, at least 1),
//           is no load itself, the load does not depend on it, and, across kernels, both kernels'
//           buffers fit together
//       insert
//
// So while step t computes, the loads of step t + 1 already stand in the DMA queues.
#include "toolchain/schedule/schedule.h"

#include <string.h>

static int lookahead(const struct tile_program *p, const struct tile_op *t) {
    for (int k = 0; k < t->npat; k++) {
        int64_t lo, hi;
        enum isa_access access;
        if (!tile_access(t, k, &lo, &hi, &access) || !(access & ISA_W)) continue;
        int slots = p->bufs[t->operand[k].buf]->slots;
        return slots > 1 ? slots - 1 : 1;
    }
    return 1;
}

static bool fit_together(const struct tile_program *p, int a, int b) {
    const struct tile_kernel *x = p->kernels[a], *y = p->kernels[b];
    int64_t resident =
        x->resident_bytes > y->resident_bytes ? x->resident_bytes : y->resident_bytes;
    return x->spm_bytes + y->spm_bytes + resident <= p->hw->spm_bytes;
}

static bool may_pass(const struct tile_program *p, const struct schedule_options *o,
                     const struct tile_op *load, const struct tile_op *earlier, int ahead) {
    if (earlier->phase == TILE_LOAD || earlier->step < load->step - ahead) return false;
    if (earlier->kernel != load->kernel &&
        (!o->across_kernels || !fit_together(p, earlier->kernel, load->kernel)))
        return false;
    return !tile_depends(earlier, load);
}

void schedule_order(struct tile_program *p, const struct schedule_options *options) {
    if (!options->prefetch) return;
    struct tile_op **order = ARENA_ARRAY(p->arena, struct tile_op *, (size_t)p->nop + 1);
    for (int i = 0; i < p->nop; i++) {
        struct tile_op *t = p->ops[i];
        int at = i;
        if (t->phase == TILE_LOAD) {
            int ahead = lookahead(p, t);
            while (at > 0 && may_pass(p, options, t, order[at - 1], ahead))
                at--;
        }
        memmove(order + at + 1, order + at, (size_t)(i - at) * sizeof *order);
        order[at] = t;
    }
    if (p->nop) memcpy(p->ops, order, (size_t)p->nop * sizeof *order);
}

void schedule_queues(struct tile_program *p) {
    int engines = (int)p->hw->dma_engines;
    int loaders = engines > 1 ? engines - 1 : 1;
    int step = -1, count = 0;
    for (int i = 0; i < p->nop; i++) {
        struct tile_op *t = p->ops[i];
        if (isa_find((unsigned)t->insn.h.opcode)->cls != ISA_CLASS_DMA) continue;
        if (t->phase != TILE_LOAD) {
            t->insn.h.engine = ISA_ENGINE_DMA0 + engines - 1;
            continue;
        }
        if (t->step != step) count = 0;
        step = t->step;
        t->insn.h.engine = ISA_ENGINE_DMA0 + count++ % loaders;
    }
}
