// SPDX-License-Identifier: Apache-2.0
// The program as the compiler makes it now, run beside one whose layer departs: what each of its
// instructions should have written.
#ifndef NPUSIM_FRESH_H
#define NPUSIM_FRESH_H

#include "simulator/npusim/tensors.h"
#include "simulator/npusim/writes.h"

// Compiles the program's model again as recorded, runs that with the same inputs, and says which
// instruction of `s` is the first whose output differs, or that both are the same program. Lines
// begin with two blanks. What fails on the way is said there too: only NO_MEMORY is returned.
NPU_MUST_USE npu_status fresh_compare(struct npusim *s, const struct writes *w,
                                      const struct trace_log *log, struct str *out);

#endif
