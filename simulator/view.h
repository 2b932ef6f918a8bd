// SPDX-License-Identifier: Apache-2.0
//
// A run as its views want it: struct trace_run filled from the device's totals and from the names
// and the work that a program records. Whoever shows it adds what only it knows: inputs, outputs,
// runs, a fault.
//
//     struct sim_view v;
//     sim_view_init(&v, program, hw, totals, &(struct sim_traffic){in, out}, arena);
//     v.run.output = outputs, v.run.noutput = n;
//     trace_report_text(&v.run, &text);
//     sim_view_deinit(&v);
#ifndef SIMULATOR_VIEW_H
#define SIMULATOR_VIEW_H

#include "isa/hw.h"
#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "simulator/core/names.h"
#include "simulator/totals.h"
#include "simulator/trace/trace.h"

struct npu_program;

struct sim_view {
    struct trace_run run;
    struct core_names names;
};

/// Bytes of the inputs and outputs that the run had: they pass DRAM whatever the program does.
struct sim_traffic {
    uint64_t in_bytes, out_bytes;
};

/// Program, machine and totals are lent until deinit; what is computed here lives in the arena. `v`
/// must not move. Undo with sim_view_deinit, on failure too. NO_MEMORY.
NPU_MUST_USE npu_status sim_view_init(struct sim_view *v, const struct npu_program *program,
                                      const struct hw *hw, const struct sim_totals *totals,
                                      const struct sim_traffic *traffic, struct arena *a);
void sim_view_deinit(struct sim_view *v);

#endif
