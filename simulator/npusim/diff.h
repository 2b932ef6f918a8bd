// SPDX-License-Identifier: Apache-2.0
// --diff: two reports or traces compared.
#ifndef NPUSIM_DIFF_H
#define NPUSIM_DIFF_H

#include "simulator/npusim/options.h"

// Prints the comparison of o->program and o->second, and writes it to --report. BAD_INPUT and
// UNSUPPORTED when one of them is not what it should be, IO.
NPU_MUST_USE npu_status npusim_diff(const struct npusim_options *o, struct arena *a);

#endif
