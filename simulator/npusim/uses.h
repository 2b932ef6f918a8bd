// SPDX-License-Identifier: Apache-2.0
// Which files a command of npusim reads and writes: none may be written that has another use in it,
// and what cannot be written is known before the run.
#ifndef NPUSIM_USES_H
#define NPUSIM_USES_H

#include "runtime/base/files.h"
#include "simulator/npusim/tensors.h"

// What the options name, before anything is read. USAGE, IO.
NPU_MUST_USE npu_status npusim_files_named(const struct npusim_options *o, struct arena *a,
                                           struct files *f);

// What folders hold for the program's tensors, and what its model consists of, before anything runs
// or is written. USAGE also for --output of a tensor that there is not.
NPU_MUST_USE npu_status npusim_files_found(struct npusim *s, struct files *f);

#endif
