// SPDX-License-Identifier: Apache-2.0
// The functional machine's state after a run, or where it was stopped: everything but memory.
#ifndef NPU_SIMULATOR_EXEC_STATE_H
#define NPU_SIMULATOR_EXEC_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "simulator/exec/exec.h"

enum { EXEC_FLIGHTS = 64 }; // most that one engine works on at a time and that are shown

// An instruction that an engine works on.
struct exec_flight {
    struct exec_place at;
    enum exec_point point; // STARTED or READ
    struct isa_insn insn;  // resolved
};

struct exec_sem_state {
    int signaller, waiter;        // engines, -1: nobody yet
    uint64_t signalled, consumed; // the count is their difference
};

struct exec_engine_state {
    uint32_t queued;         // instructions that have not started
    struct exec_place first; // of them, when there are any
    struct isa_insn first_insn;
    uint32_t nflight; // that it works on, oldest first; at most EXEC_FLIGHTS are kept
    struct exec_flight flight[EXEC_FLIGHTS];
};

struct exec_state {
    bool halted, stopped;
    uint64_t dispatched; // instructions so far; the next one's seq
    uint32_t pc;         // granule of the next instruction
    uint32_t tag_base;
    int64_t reg[ISA_REGS];
    int loop_depth, call_depth;
    struct {
        uint32_t body_granule, index;
        int64_t count;
    } loop[EXEC_NEST];
    struct {
        uint32_t return_granule, tag_base;
    } call[EXEC_NEST];
    struct exec_sem_state sem[ISA_SEMS];
    struct exec_engine_state engine[ISA_ENGINES];
};

// Fills it from the last run of the machine, which must have been one.
void exec_state_of(const struct exec *x, struct exec_state *out);

#endif
