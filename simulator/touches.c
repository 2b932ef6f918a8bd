// SPDX-License-Identifier: Apache-2.0
#include "simulator/touches.h"

#include "simulator/exec/foot.h"

void sim_touches_add(struct trace_log *log, uint64_t seq, const struct exec_dyn *dyn) {
    const struct isa_insn_desc *d = isa_find((unsigned)dyn->insn->h.opcode);
    for (int k = 0; d && !dyn->skipped && k < d->npat; k++) {
        const struct isa_pat *p = isa_pat_get(dyn->insn, k);
        struct exec_foot f;
        if (p->space != ISA_SPM || !foot_init(&f, p)) continue;
        if (f.lo < 0 || f.hi > UINT32_MAX || f.lo >= f.hi) continue; // a fault by itself
        struct trace_touch t = {.seq = seq, .lo = (uint32_t)f.lo, .hi = (uint32_t)f.hi};
        if (d->pat[k].access & ISA_R) trace_log_touch(log, &t);
        t.write = true;
        if (d->pat[k].access & ISA_W) trace_log_touch(log, &t);
    }
}
