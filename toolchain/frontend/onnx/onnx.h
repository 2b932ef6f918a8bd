// SPDX-License-Identifier: Apache-2.0
//
// ONNX models as graphs. Opsets 1 to 23 of the default domain, local functions inlined, shape
// arithmetic evaluated while importing, so that every value of the result has a static shape.
#ifndef NPU_FRONTEND_ONNX_ONNX_H
#define NPU_FRONTEND_ONNX_ONNX_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "toolchain/frontend/common/options.h"
#include "toolchain/graph/graph.h"

// Reads a model file (and its external data files) into a new graph in the arena; the file stays
// mapped as long as the arena, large constants point into it. options may be NULL. BAD_INPUT: the
// file is damaged or contradicts itself, the message says where. UNSUPPORTED: every node that
// cannot be imported, gathered. USAGE: an option that names nothing or contradicts the model. An
// open dimension is BAD_INPUT, with the option that would fix it.
NPU_MUST_USE npu_status onnx_import(const char *path, const struct import_options *options,
                                    struct arena *arena, struct graph **out);

// The same of a file whose bytes were mapped already.
NPU_MUST_USE npu_status onnx_import_mapped(const char *path, struct span bytes,
                                           const struct import_options *options,
                                           struct arena *arena, struct graph **out);

// The same from bytes in memory, which must live as long as the graph; there is no folder for
// external data then.
NPU_MUST_USE npu_status onnx_import_bytes(struct span bytes, const struct import_options *options,
                                          struct arena *arena, struct graph **out);

// Whether the bytes of a file look like an ONNX model: a protobuf message whose fields are
// ModelProto's.
bool onnx_probe(struct span bytes);

// A serialized TensorProto (.pb), as test data comes. name may be NULL, else it gets the tensor's
// own ("" when it has none).
NPU_MUST_USE npu_status onnx_tensor_parse(struct arena *arena, struct span bytes,
                                          struct tensor_data *out, const char **name);

// The table of importers, for listings: one row per op and opset range.
struct onnx_op_info {
    const char *op;      // "Conv", "com.microsoft.Gelu"
    int since, until;    // opsets, inclusive
    const char *meaning; // what it becomes
};
// Number of rows; *list points at static storage.
int onnx_op_list(const struct onnx_op_info **list);

#endif
