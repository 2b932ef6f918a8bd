// SPDX-License-Identifier: Apache-2.0
// Runs and what is said about them: summary, cycle report, report.json, traces.
#ifndef NPUSIM_REPORT_H
#define NPUSIM_REPORT_H

#include "simulator/device.h"
#include "simulator/npusim/tensors.h"

// Times of --runs, in the order of running.
struct npusim_runs {
    uint64_t n, cycles;   // cycles: of every run, they are all the same
    double *time_us;      // simulated
    double *wall_seconds; // of the run loop
    double median_seconds;
};

// Prints and writes what the options ask for. `log` is finished; it may be empty. `fault` not NULL:
// the run ended there, there are no outputs.
NPU_MUST_USE npu_status npusim_report(struct npusim *s, const struct sim_totals *totals,
                                      const struct hw *hw, const struct trace_log *log,
                                      const struct npusim_runs *runs, const char *fault);

#endif
