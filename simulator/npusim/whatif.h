// SPDX-License-Identifier: Apache-2.0
// What-ifs: the same program on machines with other timing parameters, predicted by the critical
// path of the run and timed again beside it.
#ifndef NPUSIM_WHATIF_H
#define NPUSIM_WHATIF_H

#include "simulator/npusim/report.h"
#include "simulator/trace/trace.h"

// Rows of whatif.def that `list` names (all, none, or keys with commas) as a set of bits. USAGE.
NPU_MUST_USE npu_status npusim_whatif_parse(const char *list, unsigned *set);

// Runs each row of the set again, without values; *out lives in the arena of s. `run` and `log` are
// of the run that took place. What running returns.
NPU_MUST_USE npu_status npusim_whatif(struct npusim *s, unsigned set, const struct trace_run *run,
                                      const struct trace_log *log, struct trace_whatif **out,
                                      size_t *count);

// A table of them.
void npusim_whatif_print(const struct trace_run *run, struct str *out);

#endif
