// SPDX-License-Identifier: Apache-2.0
// Which files a command of npuc reads and writes: none may be written that has another use in it.
#ifndef NPUC_USES_H
#define NPUC_USES_H

#include "runtime/base/files.h"
#include "toolchain/npuc/compile.h"

// What the options name, before anything is read. USAGE, or IO for what cannot be written.
NPU_MUST_USE npu_status npuc_files_named(const struct npuc_options *o, struct arena *a,
                                         struct files *f);

// And what the input turned out to consist of, before anything is written.
NPU_MUST_USE npu_status npuc_files_found(const struct npuc_options *o, const struct npuc_result *r,
                                         struct arena *a, struct files *f);

// Where the program goes; NULL: none is written.
const char *npuc_output(const struct npuc_options *o, const struct npuc_result *r, struct arena *a);

#endif
