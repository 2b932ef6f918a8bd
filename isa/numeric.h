// SPDX-License-Identifier: Apache-2.0
//
// The numerics contract, once: the simulator's value kernels and the compiler's reference kernels
// call the same functions. Conversions and their rounding, saturation and NaN rules are in
// numeric_bits.h, the special functions with their errors in numeric_fn.h. No allocation, no state,
// freestanding.
//
// Two kinds of chain: f32, and i64 when the output and every input are integers. A value of any
// dtype enters either through num_load_* and leaves through num_store_*. Integers enter an f32
// chain rounded to nearest even; f32 leaves to an integer rounded to nearest even and saturated,
// NaN as 0; i64 leaves to a narrower integer saturated, to a float rounded via f32. bool takes x !=
// 0 (NaN is not 0: 1).
//
// `base` points at element 0 and needs no alignment. Indices count elements and may be negative; i4
// and u4 are two to a byte, low nibble first. dtype: enum isa_dtype, u64 and f64 included (u64
// above INT64_MAX loads as INT64_MAX).
#ifndef NPU_ISA_NUMERIC_H
#define NPU_ISA_NUMERIC_H

#include "isa/insn.h"
#include "isa/numeric_fn.h"

#include <stddef.h>
#include <stdint.h>

// ---- one element
float num_load_f32(int dtype, const void *base, int64_t index);
int64_t num_load_i64(int dtype, const void *base, int64_t index);
void num_store_f32(int dtype, void *base, int64_t index, float value);
void num_store_i64(int dtype, void *base, int64_t index, int64_t value);

// What num_store_f32 and a load would give: `value` after a round trip through dtype.
float num_round_to(int dtype, float value);

// ---- runs: elements first, first + stride, ... of base; n of them
// The other side is contiguous and may not overlap base.
void num_read_f32(int dtype, const void *base, int64_t first, int64_t stride, float *out, size_t n);
void num_read_i64(int dtype, const void *base, int64_t first, int64_t stride, int64_t *out,
                  size_t n);
void num_write_f32(int dtype, void *base, int64_t first, int64_t stride, const float *in, size_t n);
void num_write_i64(int dtype, void *base, int64_t first, int64_t stride, const int64_t *in,
                   size_t n);

// n contiguous elements of one dtype to another, as dma.copy: equal dtypes keep their bits; integer
// to integer through i64, everything else through f32. The buffers may not overlap.
void num_convert(int dst_dtype, void *dst, int src_dtype, const void *src, size_t n);

// Contiguous 16-bit floats, host-aligned.
void num_f16_to_f32_n(const uint16_t *in, float *out, size_t n);
void num_f32_to_f16_n(const float *in, uint16_t *out, size_t n);
void num_bf16_to_f32_n(const uint16_t *in, float *out, size_t n);
void num_f32_to_bf16_n(const float *in, uint16_t *out, size_t n);

// ---- arithmetic

// a * b + c rounded once: the matrix engine's step.
float num_fma(float a, float b, float c);

// One stage of vop.def. For APRED, b is the predicate: b != 0 ? acc : a. Rows that the kind of
// chain does not have (integer-only in f32, float-only in i64) give acc unchanged: check
// num_vop_has() first.
float num_vop_f32(int op, float acc, float a, float b);
int64_t num_vop_i64(int op, int64_t acc, int64_t a, int64_t b);
bool num_vop_has(int op, bool integer);

// The same over n elements: out[i] = op(acc[i], a[i], b[i]). Operands that the row does not take
// may be NULL. out may not overlap the inputs.
void num_vops_f32(int op, float *restrict out, const float *acc, const float *a, const float *b,
                  size_t n);
void num_vops_i64(int op, int64_t *restrict out, const int64_t *acc, const int64_t *a,
                  const int64_t *b, size_t n);

// Special functions of one element, every argument.
float num_exp(float x);
float num_log(float x);
float num_tanh(float x);
float num_sigmoid(float x);
float num_erf(float x);
float num_gelu(float x);
float num_silu(float x);
float num_sin(float x);
float num_cos(float x);
float num_sqrt(float x);
float num_rsqrt(float x);

// ---- reductions
//
// v.red:
// element j of the span goes to partial j mod 64 in ascending j; the first element of a partial
// starts it; then p[i] op p[i + 32], 16, ... 1, absent ones skipped. sumsq adds rounded squares.
// argmax: lowest index of the largest; -0 equals +0; a NaN is larger than every number. SUM, PROD
// and SUMSQ of i64 are modulo 2^64. Feed the span in pieces of any length, in order.
struct num_reduce {
    int red;        // enum isa_red
    uint64_t count; // elements so far
    float f[64];
    int64_t i[64];
    int64_t index[64]; // argmax: where the partial's value was
};

void num_reduce_begin(struct num_reduce *r, int red);
void num_reduce_add_f32(struct num_reduce *r, const float *x, size_t n);
void num_reduce_add_i64(struct num_reduce *r, const int64_t *x, size_t n);
// The span's result, at least one element having been added; *r is used up. Not for argmax.
float num_reduce_end_f32(struct num_reduce *r);
int64_t num_reduce_end_i64(struct num_reduce *r);
// argmax of a span that was fed as f32, or as i64.
int64_t num_reduce_end_index_f32(struct num_reduce *r);
int64_t num_reduce_end_index_i64(struct num_reduce *r);

// p[j] = p[j] op x[64 g + j] for whole groups g of 64; red is SUM, SUMSQ, MAX, MIN or PROD. Any
// code that keeps num_reduce's order may stand in for it.
void num_partials_f32(int red, float *restrict p, const float *x, size_t groups);

// Running value with a span's result: the one combine after the tree.
float num_combine_f32(int red, float running, float result);
int64_t num_combine_i64(int red, int64_t running, int64_t result);

#endif
