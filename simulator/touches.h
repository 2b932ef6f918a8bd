// SPDX-License-Identifier: Apache-2.0
//
// Which bytes of the scratchpad instructions touch, for the event log.
#ifndef SIMULATOR_TOUCHES_H
#define SIMULATOR_TOUCHES_H

#include <stdint.h>

#include "simulator/exec/dyn.h"
#include "simulator/trace/event.h"

/// Adds the boxes around an instruction's operands in the scratchpad; `seq` is its number in the
/// log. An instruction that is skipped touches nothing.
void sim_touches_add(struct trace_log *log, uint64_t seq, const struct exec_dyn *dyn);

#endif
