// SPDX-License-Identifier: Apache-2.0
// State for people and tests, copied out of the machine.
#include "simulator/exec/state.h"

#include <string.h>

#include "simulator/exec/machine.h"

static void fill_engine(const struct exec *x, int e, struct exec_engine_state *out) {
    const struct exec_queue *q = &x->queue[e];
    *out = (struct exec_engine_state){.queued = q->len, .nflight = x->nflight[e]};
    if (q->first) {
        out->first = q->first->at;
        out->first_insn = q->first->insn;
    }
    const uint32_t kept = out->nflight < EXEC_FLIGHTS ? out->nflight : EXEC_FLIGHTS;
    memcpy(out->flight, x->flight[e], kept * sizeof *out->flight);
}

void exec_state_of(const struct exec *x, struct exec_state *out) {
    *out = (struct exec_state){.halted = x->halted,
                               .stopped = x->stopped,
                               .dispatched = x->stats.instructions,
                               .pc = x->pc,
                               .tag_base = x->tag_base,
                               .loop_depth = x->loop_depth,
                               .call_depth = x->call_depth};
    memcpy(out->reg, x->reg, sizeof out->reg);
    for (int i = 0; i < x->loop_depth; i++) {
        out->loop[i].body_granule = x->loop[i].body_granule;
        out->loop[i].index = x->loop[i].index;
        out->loop[i].count = x->loop[i].count;
    }
    for (int i = 0; i < x->call_depth; i++) {
        out->call[i].return_granule = x->call[i].return_granule;
        out->call[i].tag_base = x->call[i].tag_base;
    }
    for (int i = 0; i < ISA_SEMS; i++)
        out->sem[i] = (struct exec_sem_state){.signaller = x->sem[i].signaller,
                                              .waiter = x->sem[i].waiter,
                                              .signalled = x->sem[i].signalled,
                                              .consumed = x->sem[i].consumed};
    for (int e = 0; e < ISA_ENGINES; e++)
        fill_engine(x, e, &out->engine[e]);
}

const struct exec_bits *exec_written(const struct exec *x, int space) {
    return space == ISA_SPM ? &x->spm_written : space == ISA_PSUM ? &x->psum_written : NULL;
}
