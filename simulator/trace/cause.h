// SPDX-License-Identifier: Apache-2.0
//
// Who let an instruction start: the arrows of every view. Instructions are numbered as they stand
// in a finished log, from 0.
#ifndef SIMULATOR_TRACE_CAUSE_H
#define SIMULATOR_TRACE_CAUSE_H

#include "runtime/base/status.h"
#include "simulator/trace/event.h"

/// Instructions in the log.
size_t trace_instructions(const struct trace_log *log);

/// Number + 1 of the instruction whose signal each waited for last, 0: none; room for all of them.
/// NO_MEMORY.
NPU_MUST_USE npu_status trace_causes(const struct trace_log *log, uint32_t *cause);

#endif
