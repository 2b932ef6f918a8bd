// SPDX-License-Identifier: Apache-2.0
//
// The machine: functional pass and timing run of one job, put together. Values come first and never
// depend on time; the timing machine then replays what was executed. A fault found without time
// gets its cycle by replaying the program up to the instruction at fault.
//
//     core_new(&hw, &core);
//     core_run(core, &job, &result);      // again with other jobs
//     core_repeat(core, NULL, sink, ctx, &result); // the last job's timing once more: the same
//     cycles
#ifndef SIMULATOR_CORE_CORE_H
#define SIMULATOR_CORE_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/hw.h"
#include "runtime/base/status.h"
#include "simulator/exec/exec.h"
#include "simulator/noise/draw.h"
#include "simulator/units/units.h"

struct npu_program_image;
struct core;

struct core_job {
    struct exec_job exec;                  // its sinks are the core's; leave them 0
    uint64_t code_address;                 // device address of the code: instruction fetch reads it
    const struct npu_program_image *image; // names for faults; may be NULL
    trace_sink *events;                    // may be NULL
    void *events_ctx;
};

struct core_result {
    struct units_result timing; // lent until the next run
    struct exec_stats exec;
    const struct exec_fault *fault;   // NULL: halted; with its cycle. Lent likewise
    double exec_seconds, run_seconds; // host time of the functional pass and of the timing run loop
};

/// Machine of that description (copied). NO_MEMORY. Release with core_free.
NPU_MUST_USE npu_status core_new(const struct hw *hw, struct core **out);
void core_free(struct core *c);

/// Runs a job to its end. FAULT with the whole story (cycle, engine, instruction, tag, node, rule,
/// bytes, other side) when the program broke a rule; *out is filled then too. NO_MEMORY.
NPU_MUST_USE npu_status core_run(struct core *c, const struct core_job *job,
                                 struct core_result *out);

/// Which draws of noise a timing run sees: refresh, contention and clock of them.
struct core_noise {
    const struct noise *noise; // lent; noise_check accepts the machine
    struct noise_place at;
};

/// Times the last job that halted once more, on the same machine reset. `noise` NULL: none. USAGE
/// when there is no such job.
NPU_MUST_USE npu_status core_repeat(struct core *c, const struct core_noise *noise,
                                    trace_sink *events, void *events_ctx, struct core_result *out);

#endif
