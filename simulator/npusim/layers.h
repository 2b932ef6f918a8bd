// SPDX-License-Identifier: Apache-2.0
// --check-layers: every layer of a run against the reference kernels of the compiler's graph.
#ifndef NPUSIM_LAYERS_H
#define NPUSIM_LAYERS_H

#include "simulator/npusim/tensors.h"
#include "simulator/trace/event.h"

struct layers;

// Before the run: makes the program's graph again (the model is found as --check-layers says) and
// lets s->writes show it what layers store. The inputs must have been set. Release with
// layers_free, also after a failure. USAGE, BAD_INPUT, IO, NO_MEMORY.
NPU_MUST_USE npu_status layers_begin(struct npusim *s, struct layers **out);

// After the run: evaluates the graph layer by layer and prints a line for each. DIFFER when one
// departs, naming the first and the first instruction that stored a wrong element of it. `log` has
// the run's events.
NPU_MUST_USE npu_status layers_check(struct npusim *s, struct layers *l,
                                     const struct trace_log *log);

void layers_free(struct layers *l);

#endif
