// SPDX-License-Identifier: Apache-2.0
//
// Numbers over time, made from the event log: what the views draw as curves.
#ifndef SIMULATOR_TRACE_COUNTERS_H
#define SIMULATOR_TRACE_COUNTERS_H

#include "simulator/trace/trace.h"

enum trace_counter_kind {
    TRACE_COUNTER_QUEUE,     ///< instructions dispatched to an engine that have not started
    TRACE_COUNTER_UNDER_WAY, ///< instructions that have started and are not done
    TRACE_COUNTER_READ,      ///< DRAM
    TRACE_COUNTER_WRITE,
    TRACE_COUNTER_SPM, ///< bytes of the scratchpad that somebody will still read (occupancy.h)
};

struct trace_point {
    uint64_t cycle;
    double value; ///< from this cycle to the next point's
};

/// One curve. Its points are in order of their cycles, no two at the same; before the first it is
/// 0.
struct trace_counter {
    enum trace_counter_kind kind;
    int engine;        ///< enum isa_engine; -1: none
    const char *group; ///< "queue", "under way", "dram", "spm"
    const char *name;  ///< "mxu", "read", "live"
    const char *unit;  ///< "instructions", "B/cycle", "bytes"
    bool whole;        ///< values are integers
    struct trace_point *point;
    size_t n;
};

/// Curves of a run: queue and under way for each engine but the command processor; read and write,
/// the bytes per cycle that the program's instructions move, averaged over intervals of a
/// thousandth of the run, an instruction's bytes being spread evenly from its start to its end.
/// *out is released with trace_counters_free. NO_MEMORY.
NPU_MUST_USE npu_status trace_counters(const struct trace_run *run, const struct trace_log *log,
                                       struct trace_counter **out, size_t *count);
void trace_counters_free(struct trace_counter *counter, size_t count);

#endif
