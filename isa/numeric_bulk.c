// SPDX-License-Identifier: Apache-2.0
//
// Arrays: the loops of numeric_loops.h for the instruction set that this file is compiled for.

#include "isa/numeric.h"

#define NUM_NAME(x) x
#define NUM_TARGET
#define NUM_FMA(a, b, c) num_fn_fma(a, b, c)
#include "isa/numeric_loops.h"

// Elements converted at a time by num_convert.
enum { BLOCK = 256 };

void num_read_f32(int dtype, const void *base, int64_t first, int64_t stride, float *out,
                  size_t n) {
    read_f32(dtype, base, first, stride, out, n);
}
void num_read_i64(int dtype, const void *base, int64_t first, int64_t stride, int64_t *out,
                  size_t n) {
    read_i64(dtype, base, first, stride, out, n);
}
void num_write_f32(int dtype, void *base, int64_t first, int64_t stride, const float *in,
                   size_t n) {
    write_f32(dtype, base, first, stride, in, n);
}
void num_write_i64(int dtype, void *base, int64_t first, int64_t stride, const int64_t *in,
                   size_t n) {
    write_i64(dtype, base, first, stride, in, n);
}

void num_f16_to_f32_n(const uint16_t *in, float *out, size_t n) {
    read_f32(ISA_F16, (const uint8_t *)in, 0, 1, out, n);
}
void num_f32_to_f16_n(const float *in, uint16_t *out, size_t n) {
    write_f32(ISA_F16, (uint8_t *)out, 0, 1, in, n);
}
void num_bf16_to_f32_n(const uint16_t *in, float *out, size_t n) {
    read_f32(ISA_BF16, (const uint8_t *)in, 0, 1, out, n);
}
void num_f32_to_bf16_n(const float *in, uint16_t *out, size_t n) {
    write_f32(ISA_BF16, (uint8_t *)out, 0, 1, in, n);
}

void num_convert(int dst_dtype, void *dst, int src_dtype, const void *src, size_t n) {
    bool same = dst_dtype == src_dtype;
    if (same && isa_dtype_bits(dst_dtype) >= 8) {
        const uint8_t *s = src;
        uint8_t *d = dst;
        size_t bytes = n * (size_t)isa_dtype_bits(dst_dtype) / 8;
        for (size_t i = 0; i < bytes; i++)
            d[i] = s[i];
        return;
    }
    bool integer = !isa_dtype_is_float(dst_dtype) && !isa_dtype_is_float(src_dtype);
    for (size_t done = 0; done < n; done += BLOCK) {
        size_t part = n - done < BLOCK ? n - done : BLOCK;
        int64_t at = (int64_t)done;
        if (integer) {
            int64_t block[BLOCK];
            read_i64(src_dtype, src, at, 1, block, part);
            write_i64(dst_dtype, dst, at, 1, block, part);
        } else {
            float block[BLOCK];
            read_f32(src_dtype, src, at, 1, block, part);
            write_f32(dst_dtype, dst, at, 1, block, part);
        }
    }
}

void num_vops_f32(int op, float *restrict out, const float *acc, const float *a, const float *b,
                  size_t n) {
    vops_f32(op, out, acc, a, b, n);
}
void num_vops_i64(int op, int64_t *restrict out, const int64_t *acc, const int64_t *a,
                  const int64_t *b, size_t n) {
    vops_i64(op, out, acc, a, b, n);
}

#define PARTIALS(R, expr)                     \
    case ISA_RED_##R:                         \
        for (size_t g = 0; g < groups; g++)   \
            for (size_t j = 0; j < 64; j++) { \
                float y = x[64 * g + j];      \
                p[j] = (expr);                \
            }                                 \
        break;
void num_partials_f32(int red, float *restrict p, const float *x, size_t groups) {
    switch (red) {
        PARTIALS(SUM, p[j] + y)
        PARTIALS(SUMSQ, p[j] + y * y)
        PARTIALS(MAX, num_fn_max(p[j], y))
        PARTIALS(MIN, num_fn_min(p[j], y))
        PARTIALS(PROD, p[j] * y)
    default: break;
    }
}
