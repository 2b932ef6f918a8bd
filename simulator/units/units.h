// SPDX-License-Identifier: Apache-2.0
//
// The timing machine: when every instruction of a program runs. It never sees a value.
//
//     struct units_program *p = units_program_new(&hw, &status);
//     exec_run(..., units_sink, units_rows_sink, p);      // functional pass: one record per
//     instruction units_program_finish(p); struct units_machine *m = units_new(&hw, p);
//     units_run(m, &options, &result);                    // again after units_reset(m)
//
// A program's records depend on the description only through the closed forms of isa/timing.h. Same
// records, description and options: same cycles, same events in the same order.
#ifndef SIMULATOR_UNITS_UNITS_H
#define SIMULATOR_UNITS_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa/hw.h"
#include "runtime/base/status.h"
#include "simulator/exec/dyn.h"
#include "simulator/trace/event.h"
#include "simulator/trace/trace.h"

struct units_program;
struct units_machine;

/// Empty program for machines of this description (copied); NULL when out of memory. Release with
/// units_program_free, after every machine that runs it.
struct units_program *units_program_new(const struct hw *hw);
void units_program_free(struct units_program *p);

/// Forgets the records, keeps the memory.
void units_program_clear(struct units_program *p);

/// Where the code lies in DRAM and how long it is: instruction fetch reads it. Without it (0 bytes)
/// fetching costs nothing.
void units_program_code(struct units_program *p, uint64_t address, uint64_t bytes);

/// exec_sink and exec_rows_sink; ctx is the struct units_program. NO_MEMORY.
npu_status units_sink(void *ctx, const struct exec_dyn *dyn);
npu_status units_rows_sink(void *ctx, uint64_t seq, const int64_t *row, int64_t nrow);

/// Gives back memory that the records do not take.
void units_program_trim(struct units_program *p);

/// Bytes that it takes.
uint64_t units_program_bytes(const struct units_program *p);

/// Records so far.
uint64_t units_program_count(const struct units_program *p);

/// Machine that runs the program, which must not change afterwards; NULL when out of memory. The
/// description may differ from the program's in dram.* and clock.* rows, cp.semaphore and
/// cp.queue_depth only; others are in the records.
struct units_machine *units_new(const struct hw *hw, const struct units_program *p);
void units_free(struct units_machine *m);

enum units_end {
    UNITS_HALTED,  ///< HALT completed
    UNITS_STOPPED, ///< the instruction of stop_seq started, or stop_cycle has come
    UNITS_QUIET,   ///< nothing can happen any more and there was no HALT: a deadlock, or a program
                   ///< cut short
    UNITS_FAILED,  ///< the kernel refused: error
};

struct units_traffic {
    uint64_t at_ps, address;
    uint32_t bytes; ///< 1 .. 65536
    bool write;
};

struct units_options {
    uint64_t stop_seq; ///< TRACE_NO_SEQ: run to the end
    bool stop;         ///< at the end of cycle stop_cycle, unless it ends before
    uint64_t stop_cycle;
    trace_sink *sink; ///< event log; may be NULL
    void *sink_ctx;
    const uint64_t *refresh_phase_ps; ///< one per DRAM channel: first refresh, within a round of
                                      ///< dram_refresh_round_ps; NULL: spread evenly
    /// The memory has a clock of its own: what crosses to it waits for the next edge, the first of
    /// which is dram_edge_ps after the start. False: it takes requests at any time.
    bool crossing;
    uint64_t dram_edge_ps;
    /// Foreign traffic on the memory (a co-runner, a pattern): called for the next request, the
    /// first time with 0; false: no more. at_ps must not fall. May be NULL.
    bool (*traffic)(void *ctx, uint64_t now_ps, struct units_traffic *out);
    void *traffic_ctx;
};

#define UNITS_OPTIONS_DEFAULT ((struct units_options){.stop_seq = TRACE_NO_SEQ})

/// Valid until the next units_run, units_reset or units_free of its machine.
struct units_result {
    enum units_end end;
    const char *error;     ///< UNITS_FAILED
    uint64_t cycles;       ///< length of the run; UNITS_STOPPED: when that instruction started
    uint64_t instructions; ///< completed
    const struct trace_engine *engine; ///< those that the machine has
    size_t nengine;
    const struct trace_tag *tag;
    size_t ntag;
    struct trace_dram dram;
    uint64_t kernel_steps; ///< host cost: steps of processes, and quanta of the memory
    uint64_t quanta;
    /// UNITS_QUIET: what each engine waits for.
    struct units_blocked {
        bool blocked;
        uint64_t seq;  ///< first instruction that has not started
        int semaphore; ///< it waits for, 0: none
        int value, count;
    } blocked[ISA_ENGINES];
};

/// Runs from the state of units_new or units_reset.
void units_run(struct units_machine *m, const struct units_options *options,
               struct units_result *out);

/// As new: for the next run. Allocates nothing.
void units_reset(struct units_machine *m);

#endif
