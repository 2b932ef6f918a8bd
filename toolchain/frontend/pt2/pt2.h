// SPDX-License-Identifier: Apache-2.0
//
// torch.export programs (.pt2): what is in them, for the message that refuses them.
#ifndef NPU_FRONTEND_PT2_PT2_H
#define NPU_FRONTEND_PT2_PT2_H

#include <stdbool.h>

#include "runtime/base/arena.h"
#include "runtime/base/file.h"
#include "runtime/base/status.h"

// Whether the bytes of a file start as a zip archive does.
bool pt2_probe(struct span bytes);

// Why the archive at `path` cannot be compiled; never NULL. UNSUPPORTED: each operator of the
// program with the first node that calls it, gathered. BAD_INPUT: no archive, or one without a
// torch.export program. IO: the file cannot be read.
NPU_MUST_USE npu_status pt2_refuse(const char *path, struct arena *arena);

#endif
