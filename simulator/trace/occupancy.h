// SPDX-License-Identifier: Apache-2.0
//
// How much of the scratchpad holds data that somebody will still read.
#ifndef SIMULATOR_TRACE_OCCUPANCY_H
#define SIMULATOR_TRACE_OCCUPANCY_H

#include "simulator/trace/trace.h"

struct occupancy_change {
    uint64_t cycle;
    int64_t bytes;
};

/// Changes of the bytes that live, in no order: data live from the start of the instruction that
/// writes them to when their last reader has read them, or, without a reader, to the end of the
/// writer. Counted in lines of 64 bytes, or 1/65536 of the scratchpad when that is more; an operand
/// counts as the box around it (struct trace_touch). *out is released with base_free; *count is 0
/// when the log has no touches. NO_MEMORY.
NPU_MUST_USE npu_status trace_occupancy(const struct trace_run *run, const struct trace_log *log,
                                        struct occupancy_change **out, size_t *count);

#endif
