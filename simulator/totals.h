// SPDX-License-Identifier: Apache-2.0
//
// Counters of several jobs added up, as if they were one run.
#ifndef SIMULATOR_TOTALS_H
#define SIMULATOR_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simulator/trace/trace.h"

struct core_result;

/// Everything that ran since sim_device_begin, added up: one job, or the launches of an eager run
/// one after the other. Counters are as in struct trace_run.
struct sim_totals {
    uint64_t jobs, cycles, instructions;
    struct trace_engine engine[ISA_ENGINES]; // those that the machine has
    size_t nengine;
    struct trace_tag *tag; // owned, in order of first appearance
    size_t ntag, tag_cap;
    struct trace_dram dram;
    int64_t spm_peak_bytes;
    double exec_seconds, run_seconds; // host time of functional passes, and of timing run loops
};

/// Adds a job behind those before it, for which all engines waited `gap` cycles (class HOST): times
/// of its tags move by those cycles and the ones before. False: out of memory.
bool sim_totals_add(struct sim_totals *t, const struct core_result *r, uint64_t gap);

/// Forgets everything, keeps the memory.
void sim_totals_clear(struct sim_totals *t);
void sim_totals_deinit(struct sim_totals *t);

#endif
