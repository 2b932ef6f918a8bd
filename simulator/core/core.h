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

/// Where a run stops: a cycle, or the cycle in which the nth instruction starts that fits, or that
/// of a fault. With `done`: in which it is done, for tags the last of all that fit.
enum core_where_kind { CORE_AT_CYCLE, CORE_AT_TAG, CORE_AT_PC, CORE_AT_INSN, CORE_AT_FAULT };

struct core_where {
    enum core_where_kind kind;
    uint64_t value;      // cycle or instruction of the run; granule
    const uint32_t *tag; // lent: CORE_AT_TAG: any of them, effective ones
    size_t ntag;
    bool done;     // not when it starts
    uint64_t nth;  // 1 and up
    uint64_t seen; // so far, in jobs before
};

/// Stops at the first of `where` that is reached.
struct core_stop {
    struct core_where *where; // lent; `seen` is counted on
    size_t n;
    uint64_t cycles, instructions; // of the run before this job
};

struct core_stopped {
    bool stopped;
    size_t where;   // which one
    uint64_t cycle; // of the job
    uint64_t seq;   // the instruction, TRACE_NO_SEQ: none
};

struct core_job {
    struct exec_job exec;  // its sinks are the core's; leave them 0
    uint64_t start_ps;     // after the start of the run, of a later launch: refreshes go on
    uint64_t code_address; // device address of the code: instruction fetch reads it
    const struct npu_program_image *image; // names for faults; may be NULL
    trace_sink *events;                    // may be NULL
    void *events_ctx;
    exec_sink *seen; // every instruction before it is timed; may be NULL
    void *seen_ctx;
    struct core_stop *stop; // NULL: run to the end
};

struct core_result {
    struct units_result timing; // lent until the next run
    struct exec_stats exec;
    const struct exec_fault *fault;   // NULL: halted; with its cycle. Lent likewise
    double exec_seconds, run_seconds; // host time of the functional pass and of the timing run loop
    struct core_stopped stopped;
};

/// Machine of that description (copied). NO_MEMORY. Release with core_free.
NPU_MUST_USE npu_status core_new(const struct hw *hw, struct core **out);
void core_free(struct core *c);

/// Runs a job to its end. FAULT with the whole story (cycle, engine, instruction, tag, node, rule,
/// bytes, other side) when the program broke a rule; *out is filled then too. NO_MEMORY.
NPU_MUST_USE npu_status core_run(struct core *c, const struct core_job *job,
                                 struct core_result *out);

/// With job->stop: the job is timed first, then memory, registers and semaphores are made what they
/// are at the end of the cycle in which it stops: of the instructions that are done by then and of
/// no other. One that is under way has taken its waits and sent the signals of the points that it
/// has passed; what it writes is not there. timing, events and statistics end in that cycle.

/// State at the end of the last job, or where it stopped; memories as exec.h gives them.
const struct exec *core_exec(const struct core *c);

/// Which draws of noise a timing run sees: refresh, contention and clock of them.
struct core_noise {
    const struct noise *noise; // lent; noise_check accepts the machine
    struct noise_place at;
};

/// Times the last job that halted once more, on the same machine reset. `noise` NULL: none. USAGE
/// when there is no such job.
NPU_MUST_USE npu_status core_repeat(struct core *c, const struct core_noise *noise,
                                    trace_sink *events, void *events_ctx, struct core_result *out);

/// Takes the records of the last job that halted out of the core, for core_again; free with
/// units_program_free. NULL: out of memory, or there is none.
struct units_program *core_take(struct core *c);

/// Times records that core_take gave once more: *cycles, and *seconds of the run loop. Then
/// core_repeat has no job any more.
NPU_MUST_USE npu_status core_again(struct core *c, const struct units_program *p,
                                   const struct core_noise *noise, uint64_t *cycles,
                                   double *seconds);

#endif
