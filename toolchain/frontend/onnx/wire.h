// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/onnx: the walk over the wire format that comes before protobuf-c sees the bytes.
#ifndef NPU_FRONTEND_ONNX_WIRE_H
#define NPU_FRONTEND_ONNX_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/file.h"
#include "runtime/base/status.h"

enum wire_root { WIRE_MODEL, WIRE_TENSOR };

// Copies a serialized message without the large data of its tensors: raw_data and packed typed data
// of WIRE_LARGE bytes and more. A tensor that lost data carries instead, as its doc_string,
// "FIELD:OFFSET:BYTES;..." with offsets into `bytes` (original doc_strings of tensors are dropped,
// so nothing else can stand there). Checks all lengths and that messages nest at most 64 deep.
// BAD_INPUT with the offset. *out is the caller's, base_free().
enum { WIRE_LARGE = 1024 };
NPU_MUST_USE npu_status wire_slim(struct span bytes, enum wire_root root, struct span *out);

// The next field of a message at *at: its number and wire type; for length-delimited ones *value is
// the length and *at the start of the payload, else *value is the number. False when the bytes are
// damaged or at their end.
bool wire_next(struct span bytes, size_t *at, uint32_t *field, int *type, uint64_t *value);

// One varint.
bool wire_varint(struct span bytes, size_t *at, uint64_t *value);

#endif
