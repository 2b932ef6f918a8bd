// SPDX-License-Identifier: Apache-2.0
//
// Inside of the critical path: the host of an eager program, from the log's launches. It makes one
// after the other; the device starts each when it is made and the one before is over; when the
// queue is full the host waits until the device has started the launch as many places before.
#ifndef SIMULATOR_TRACE_CRITICAL_HOST_H
#define SIMULATOR_TRACE_CRITICAL_HOST_H

#include "simulator/trace/trace.h"

struct critical_launch {
    const struct trace_event *event;
    int64_t lag;  ///< what the host works on it, and on the calls before that launch nothing
    size_t place; ///< launch whose start makes room for it; its own number: none
};

/// Launches in order; *count 0 without a host. *out is freed with base_free. NO_MEMORY.
NPU_MUST_USE npu_status critical_launches(const struct trace_run *run, const struct trace_log *log,
                                          struct critical_launch **out, size_t *count);

#endif
