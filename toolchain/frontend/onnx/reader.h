// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/onnx: the model file as protobuf-c structures whose large data stays in the map,
// and its tensors.
#ifndef NPU_FRONTEND_ONNX_READER_H
#define NPU_FRONTEND_ONNX_READER_H

#include "onnx/onnx.pb-c.h"

#include "runtime/base/arena.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "runtime/base/status.h"
#include "toolchain/graph/graph.h"

struct reader {
    struct arena *arena;
    const char *path; // of the model; NULL for bytes in memory
    const char
        *folder; // where external data lies: real path without a final '/'; NULL when there is none
    struct span bytes;
    Onnx__ModelProto *model;
    struct map externals; // real path -> struct span *
};

// Unpacks a model, of a file that is mapped or of bytes in memory; everything lives in the arena.
NPU_MUST_USE npu_status reader_open(struct reader *r, const char *path, struct span bytes,
                                    struct arena *arena);
NPU_MUST_USE npu_status reader_bytes(struct reader *r, struct span bytes, struct arena *arena);

// Unpacks an attribute that the schema of the package does not know as one
// (FunctionProto.attribute_proto). NULL when damaged.
Onnx__AttributeProto *reader_attribute(struct reader *r, size_t size, const uint8_t *bytes);

// A tensor as the graph takes it: f64 became f32, u64 became i64. data is never NULL.
struct onnx_tensor {
    enum isa_dtype dtype, file_dtype;
    int rank;
    int64_t dims[GRAPH_MAX_RANK];
    const void *data;
    const char *source; // path of the mapped file it points into, or NULL
    int64_t source_offset;
};

// Checks dims, type and the amount of data; the data is borrowed from the map when it lies there
// aligned.
NPU_MUST_USE npu_status reader_tensor(struct reader *r, const Onnx__TensorProto *p,
                                      struct onnx_tensor *out);

// TensorProto.DataType by number. UNSUPPORTED names the type when the compiler has none like it.
NPU_MUST_USE npu_status onnx_dtype(int64_t number, enum isa_dtype *out);

// What the graph computes in for a type of the file: f32 for f64, i64 for u64, else the same.
enum isa_dtype onnx_graph_dtype(enum isa_dtype file);

#endif
