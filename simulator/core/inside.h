// SPDX-License-Identifier: Apache-2.0
//
// Inside of the core: shared by running a job (core.c) and stopping one on the way (stop.c).
#ifndef SIMULATOR_CORE_INSIDE_H
#define SIMULATOR_CORE_INSIDE_H

#include "simulator/core/core.h"
#include "simulator/units/jitter.h"

// Of every dispatched instruction, for faults that the timing machine finds.
struct core_place {
    uint32_t pc, tag;
    int engine;
};

struct core {
    struct hw hw;
    struct exec *exec;             // owned
    struct units_program *program; // owned: records of the last job
    struct units_machine *machine; // owned; NULL: none of the last job
    struct core_place *place;      // owned, by seq
    uint64_t nplace, place_cap;
    exec_sink *seen; // of the job
    void *seen_ctx;
    struct exec_fault fault;
    struct units_jitter jitter;
    bool halted; // the last job did: it can be repeated
};

npu_status core_no_memory(void);

// Functional pass of a job, as `values` says, into the records. FAULT: exec_fault_of tells.
npu_status core_values(struct core *c, const struct core_job *job, const struct exec_job *values,
                       struct core_result *out);

// Runs the machine, which is as new, over the records.
npu_status core_time(struct core *c, const struct units_options *options, struct core_result *out);

// A record for an instruction that was refused at dispatch, so that its cycle can be asked for.
npu_status core_stand_in(struct core *c, const struct exec_fault *f);

// What the timing machine stands still at, as c->fault.
void core_timing_deadlock(struct core *c, const struct units_result *r);

// c->fault as a FAULT.
npu_status core_describe(const struct core *c, const struct core_job *job);

// Runs a job up to where job->stop says. *over: it was reached, and *out is filled (FAULT when it
// stands for the fault itself); else memory is as before.
npu_status core_run_until(struct core *c, const struct core_job *job, struct core_result *out,
                          bool *over);

#endif
