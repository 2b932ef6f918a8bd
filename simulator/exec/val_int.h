// SPDX-License-Identifier: Apache-2.0
//
// Inside of the value kernels: the table of functions of one code path, the scratch space, and
// walking the elements of a pattern in row-major order.
#ifndef SIMULATOR_EXEC_VAL_INT_H
#define SIMULATOR_EXEC_VAL_INT_H

#include "simulator/exec/val.h"

#include <stddef.h>

// Sizes of the matrix kernels: k taken at a time, distance of packed A rows in elements (more than
// VAL_KC, so that rows do not fall on the same cache sets), columns packed at a time.
enum { VAL_KC = 256, VAL_LDA = VAL_KC + 16, VAL_NC = 1024, VAL_MR_MAX = 12, VAL_NR_MAX = 32 };
// Products of at most this many rows are not packed; rows of B that a line takes at once.
enum { VAL_LINE_ROWS = 4, VAL_LINE_K = 8 };

// Elements of a block of the vector engine.
enum { VAL_BLOCK = 1024, VAL_BLOCK_BUFFERS = 13 };

// acc[i][0..nr) (+)= sum over k of a[i * VAL_LDA + k] * b[k * nr + n], k ascending, for `rows`
// rows; c[i] points at nr results; load: they are the starting values, else 0. NaN results are
// canonical.
typedef void val_kernel_f32(const float *a, const float *b, float *const *c, int kc, bool load);
// The same modulo 2^32 over pairs: a and b hold two consecutive k as int16 in one word; b[pair * nr
// + n].
typedef void val_kernel_i32(const int32_t *a, const int32_t *b, int32_t *const *c, int pairs,
                            bool load);

struct val_ops {
    const char *name;
    // As num_read_f32 and the like.
    void (*read_f32)(int dtype, const uint8_t *base, int64_t first, int64_t stride,
                     float *restrict out, size_t n);
    void (*read_i64)(int dtype, const uint8_t *base, int64_t first, int64_t stride,
                     int64_t *restrict out, size_t n);
    void (*write_f32)(int dtype, uint8_t *base, int64_t first, int64_t stride,
                      const float *restrict in, size_t n);
    void (*write_i64)(int dtype, uint8_t *base, int64_t first, int64_t stride,
                      const int64_t *restrict in, size_t n);
    void (*vops_f32)(int op, float *restrict out, const float *acc, const float *a, const float *b,
                     size_t n);
    void (*vops_i64)(int op, int64_t *restrict out, const int64_t *acc, const int64_t *a,
                     const int64_t *b, size_t n);
    // Matrix tiles: nr columns; kernels by rows, [r] for r = 1..mr (exact: the product is exact in
    // f32, so that a multiplication and an addition are a fused step).
    int mr, nr;
    val_kernel_f32 *f32[VAL_MR_MAX + 1];
    val_kernel_f32 *f32_exact[VAL_MR_MAX + 1];
    val_kernel_i32 *i32[VAL_MR_MAX + 1];
    // Writes n columns of 16-bit or 32-bit floats, contiguous, as packed panels of nr; b[k] at
    // base + k * stride elements. NULL: none, use read_f32.
    void (*pack_b)(int dtype, const uint8_t *base, int64_t stride, float *out, int kc, int n);
    // One row without packing, of the same types: c[n] += sum over k of a[k] b[k][n], k ascending.
    // NULL: none.
    void (*line)(int dtype, const uint8_t *base, int64_t stride, const float *a, float *c, int kc,
                 int64_t n);
};

// The path in use. The baseline is portable C, with SSE2 where there is one.
const struct val_ops *val_ops(void);
extern const struct val_ops val_ops_sse2;
#if defined(__x86_64__)
extern const struct val_ops val_ops_avx2, val_ops_avx512;
#endif

struct val_work {
    void *b;      // packed B: VAL_KC * VAL_NC words
    void *blocks; // a chain's block buffers: VAL_BLOCK_BUFFERS of VAL_BLOCK 8-byte elements
    float a[VAL_MR_MAX * VAL_LDA];
    float tile[VAL_MR_MAX * VAL_NR_MAX]; // results that are not in place
    float junk[VAL_NR_MAX];              // results of rows that are skipped
};

// Start of a pattern's element 0 in on-chip memory.
uint8_t *val_at(const struct val_mem *mem, const struct isa_pat *pat);

// Row-major walk over a pattern in runs. Dimensions of size 1 are dropped and neighbours whose
// strides continue are merged.
struct val_cursor {
    uint8_t *base;
    int dtype, dims;
    int64_t size[ISA_DIMS], stride[ISA_DIMS], index[ISA_DIMS];
    int64_t row; // element offset of index[1..]
};
void val_cursor_init(struct val_cursor *c, const struct val_mem *mem, const struct isa_pat *pat);
void val_cursor_read_f32(struct val_cursor *c, float *out, size_t n);
void val_cursor_read_i64(struct val_cursor *c, int64_t *out, size_t n);
void val_cursor_write_f32(struct val_cursor *c, const float *in, size_t n);
void val_cursor_write_i64(struct val_cursor *c, const int64_t *in, size_t n);
// Element offset of the current element; then one step on.
int64_t val_cursor_next(struct val_cursor *c);

#endif
