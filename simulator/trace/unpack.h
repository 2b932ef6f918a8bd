// SPDX-License-Identifier: Apache-2.0
//
// A gzip file in memory, unpacked.
#ifndef SIMULATOR_TRACE_UNPACK_H
#define SIMULATOR_TRACE_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/file.h"
#include "runtime/base/status.h"

/// *out, which was NULL, is freed with base_free, after a failure too; *size was 0. `name` is for
/// messages. BAD_INPUT: broken, cut off or over 2 GiB; NO_MEMORY.
NPU_MUST_USE npu_status trace_unpack(struct span packed, const char *name, uint8_t **out,
                                     size_t *size);

#endif
