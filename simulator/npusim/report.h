// SPDX-License-Identifier: Apache-2.0
// Runs and what is said about them: summary, cycle report, report.json, traces.
#ifndef NPUSIM_REPORT_H
#define NPUSIM_REPORT_H

#include "simulator/npusim/runs.h"

// Prints and writes what the options ask for. `log` is finished; it may be empty. `fault` not NULL:
// the run ended there, there are no outputs; nor when s->stopped.
NPU_MUST_USE npu_status npusim_report(struct npusim *s, const struct sim_totals *totals,
                                      const struct hw *hw, const struct trace_log *log,
                                      const struct npusim_runs *runs, const char *fault);

#endif
