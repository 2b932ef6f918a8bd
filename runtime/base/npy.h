// SPDX-License-Identifier: Apache-2.0
//
// NumPy's .npy files: one array, in format versions 1.0 to 3.0.
//
// Types map by name (f2 f4 f8, i1..i8, u1..u8, b1); a 2-byte void ("V2") is bf16, which is how
// NumPy stores that type. Complex, text, object and structured arrays, and 4-bit and 8-bit floats,
// which the format has no name for, are UNSUPPORTED. Byte order is converted. Fortran order is
// refused.
#ifndef RUNTIME_BASE_NPY_H
#define RUNTIME_BASE_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "isa/insn.h"
#include "runtime/base/arena.h"
#include "runtime/base/file.h"
#include "runtime/base/status.h"

enum { TENSOR_RANK_MAX = 8 };

/// A dense array in C order, elements in the byte order of the host.
struct tensor_data {
    enum isa_dtype dtype;
    int rank; // 0: a scalar
    int64_t dims[TENSOR_RANK_MAX];
    const void *data;  // lent; aligned for its type
    size_t size_bytes; // elements * bytes of one
};

/// Bytes of one element; 0 for types of less than a byte and for codes that are none.
size_t tensor_elem_bytes(enum isa_dtype dtype);

/// Number of elements of a shape: false when a dimension is negative or the product times
/// `elem_bytes` overflows 63 bits.
bool tensor_count(const int64_t *dims, int rank, size_t elem_bytes, size_t *count);

/// Reads an array out of the bytes of a file. `out->data` points into them when possible (it does
/// for what np.save writes, from a mapped file), else into the arena. BAD_INPUT and UNSUPPORTED say
/// where it is wrong; the caller adds the file's name.
NPU_MUST_USE npu_status npy_parse(struct arena *a, struct span bytes, struct tensor_data *out);

/// Reads a file; the array lives as long as the arena.
NPU_MUST_USE npu_status npy_read(struct arena *a, const char *path, struct tensor_data *out);

/// Writes an array as version 1.0, complete or not at all.
NPU_MUST_USE npu_status npy_write(const char *path, const struct tensor_data *t);

#endif
