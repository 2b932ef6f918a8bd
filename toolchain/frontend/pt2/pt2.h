// SPDX-License-Identifier: Apache-2.0
//
// torch.export archives (.pt2) as graphs: plain exports and those of run_decompositions(). In-place
// operations become new values, sizes are fixed while importing, so that every value of the result
// has a static shape.
//
// Inputs are called like forward()'s arguments, outputs out0, out1, .. in the order of the user's
// outputs. A buffer that the model changes is one more output under the buffer's name.
#ifndef NPU_FRONTEND_PT2_PT2_H
#define NPU_FRONTEND_PT2_PT2_H

#include "runtime/base/file.h"
#include "toolchain/frontend/common/options.h"

// Whether the bytes of a file are a zip archive, which a .pt2 is.
bool pt2_probe(struct span bytes);

// Imports an archive, whose bytes must live as long as the graph: large constants point into them.
// path is what constants and messages cite, NULL: bytes of no file. options may be NULL. BAD_INPUT:
// the archive is damaged or contradicts itself, the message says where. UNSUPPORTED: every node
// that cannot be imported, gathered. USAGE: an option that names nothing or contradicts the model.
// An open size is BAD_INPUT, with the option that would fix it.
NPU_MUST_USE npu_status pt2_import_bytes(struct span bytes, const char *path,
                                         const struct import_options *options, struct arena *arena,
                                         struct graph **out);

// Maps the file first; it stays mapped as long as the arena.
NPU_MUST_USE npu_status pt2_import(const char *path, const struct import_options *options,
                                   struct arena *arena, struct graph **out);

// The table of importers, for listings: one row per ATen overload.
struct pt2_op_info {
    const char *target;  // "conv2d.default"
    const char *args;    // names, and defaults of what may be left out
    const char *meaning; // what it becomes
};
// Number of rows; *list points at static storage.
int pt2_op_list(const struct pt2_op_info **list);

#endif
