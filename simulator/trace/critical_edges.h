// SPDX-License-Identifier: Apache-2.0
//
// Inside of the critical path: its graph from an event log (critical.h says which edges).
#ifndef SIMULATOR_TRACE_CRITICAL_EDGES_H
#define SIMULATOR_TRACE_CRITICAL_EDGES_H

#include "simulator/trace/critical.h"
#include "simulator/trace/critical_host.h"
#include "simulator/trace/path.h"

/// What the graph is made from, and where instructions stand in it. Zero-initialised is empty.
struct critical_graph {
    const struct trace_run *run;
    const struct trace_event **event; ///< owned: instructions in order of start
    size_t n;
    uint32_t *enter, *begin; ///< owned: nodes of the two moments of each instruction
    uint32_t *insn;          ///< owned: instruction of each node, of a launch's one of its own
    struct critical_launch *launch; ///< owned: of the host, nlaunch of them
    size_t nlaunch;
    uint32_t *made, *started; ///< owned: nodes of each launch: on the host, on the device
    struct path_graph path;
};

/// NO_MEMORY. Undo with critical_graph_deinit, on failure too.
NPU_MUST_USE npu_status critical_graph_init(struct critical_graph *g, const struct trace_run *run,
                                            const struct trace_log *log);
void critical_graph_deinit(struct critical_graph *g);

#endif
