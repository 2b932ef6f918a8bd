// SPDX-License-Identifier: Apache-2.0
// Code and launch table of an eager program: --eager.
#ifndef NPUC_EAGER_H
#define NPUC_EAGER_H

#include "toolchain/codegen/codegen.h"
#include "toolchain/npuc/compile.h"

// Machine code of one launch of r->tiles, which takes about `cycles`; counts r->instructions.
struct span npuc_code(const struct npuc_options *o, struct arena *a, struct npuc_result *r,
                      int launch, double cycles);

// Code of all launches one behind the other, each ending with HALT, and the launch table into `to`.
struct span npuc_launch_code(const struct npuc_options *o, struct arena *a, struct npuc_result *r,
                             struct codegen_options *to);

#endif
