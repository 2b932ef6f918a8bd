// SPDX-License-Identifier: Apache-2.0
// The part "runs" of report.json.
#ifndef SIMULATOR_TRACE_REPORT_RUNS_H
#define SIMULATOR_TRACE_REPORT_RUNS_H

#include <jansson.h>

#include "simulator/trace/trace.h"

/// Distribution over the runs; of a run that has none, that of its one time. The caller owns *out,
/// NULL after a failure. NO_MEMORY.
NPU_MUST_USE npu_status trace_report_runs(const struct trace_run *run, json_t **out);

#endif
