// SPDX-License-Identifier: Apache-2.0
//
// Code path AVX2 + FMA + F16C: the loops of isa/numeric_loops.h compiled for it, f16 conversion by
// instruction, register tiles of 6 x 16.

#include "simulator/exec/val_int.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define NUM_TARGET __attribute__((target("avx2,fma,f16c")))
#define NUM_NAME(x) x##_c
#define NUM_FMA(a, b, c) __builtin_fmaf(a, b, c)
#include "isa/numeric_loops.h"

#define TILE NUM_TARGET

// f16 by instruction; it keeps signs and payloads of NaN, as num_f16_to_f32 does.
TILE static void widen_f16(const uint8_t *in, float *out, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(in + 2 * i))));
    read_f32_c(ISA_F16, in + 2 * i, 0, 1, out + i, n - i);
}

TILE static void narrow_f16(uint8_t *out, const float *in, size_t n) {
    const __m128i nan = _mm_set1_epi16(0x7e00);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 x = _mm256_loadu_ps(in + i);
        __m256i bad = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
        __m128i bad16 =
            _mm_packs_epi32(_mm256_castsi256_si128(bad), _mm256_extracti128_si256(bad, 1));
        __m128i h = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm_storeu_si128((void *)(out + 2 * i), _mm_blendv_epi8(h, nan, bad16));
    }
    write_f32_c(ISA_F16, out + 2 * i, 0, 1, in + i, n - i);
}

TILE static void read_f32(int dtype, const uint8_t *base, int64_t first, int64_t stride,
                          float *restrict out, size_t n) {
    if (dtype == ISA_F16 && stride == 1)
        widen_f16(base + 2 * first, out, n);
    else
        read_f32_c(dtype, base, first, stride, out, n);
}

TILE static void write_f32(int dtype, uint8_t *base, int64_t first, int64_t stride,
                           const float *restrict in, size_t n) {
    if (dtype == ISA_F16 && stride == 1)
        narrow_f16(base + 2 * first, in, n);
    else
        write_f32_c(dtype, base, first, stride, in, n);
}

// Eight floats of any of the three types that are packed directly.
TILE static inline __m256 load8(int dtype, const uint8_t *p) {
    if (dtype == ISA_F32) return _mm256_loadu_ps((const void *)p);
    __m128i h = _mm_loadu_si128((const void *)p);
    if (dtype == ISA_F16) return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

// Whole panels of 16; what is left of n is zero-filled through a small buffer.
TILE static void pack_b(int dtype, const uint8_t *base, int64_t stride, float *out, int kc, int n) {
    int64_t size = dtype == ISA_F32 ? 4 : 2;
    for (int n0 = 0; n0 < n; n0 += 16) {
        int left = n - n0;
        const uint8_t *p = base + n0 * size;
        for (int k = 0; k < kc; k++, p += stride * size, out += 16) {
            if (left >= 16) {
                _mm256_storeu_ps(out, load8(dtype, p));
                _mm256_storeu_ps(out + 8, load8(dtype, p + 8 * size));
                continue;
            }
            for (int j = left; j < 16; j++)
                out[j] = 0.0f;
            read_f32_c(dtype, p, 0, 1, out, (size_t)left);
        }
    }
}

#define V __m256
#define VI __m256i
#define W 8
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define SET1(x) _mm256_set1_ps(x)
#define ZERO() _mm256_setzero_ps()
#define LOADI(p) _mm256_loadu_si256((const void *)(p))
#define STOREI(p, v) _mm256_storeu_si256((void *)(p), v)
#define SET1I(x) _mm256_set1_epi32(x)
#define ZEROI() _mm256_setzero_si256()
#define MADD(acc, a, b) _mm256_add_epi32(acc, _mm256_madd_epi16(a, b))
#define FMA(a, b, acc) _mm256_fmadd_ps(a, b, acc)
#define CANON(v)                                                            \
    _mm256_blendv_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), \
                     _mm256_cmp_ps(v, v, _CMP_UNORD_Q))
#define KF(r) tile_f32_##r
#define KI(r) tile_i32_##r
#include "simulator/exec/val_mm_kernel.h"

F32_KERNEL(1)
F32_KERNEL(2)
F32_KERNEL(4)
F32_KERNEL(6)
I32_KERNEL(1)
I32_KERNEL(2)
I32_KERNEL(4)
I32_KERNEL(6)

// B streams row by row; VAL_LINE_K rows at a time go through each group of 8 results. Columns
// beyond a multiple of 8 go through a small buffer.
TILE static void line(int dtype, const uint8_t *base, int64_t stride, const float *a, float *c,
                      int kc, int64_t n) {
    int64_t size = dtype == ISA_F32 ? 4 : 2;
    for (int k = 0; k < kc; k += VAL_LINE_K) {
        int rows = kc - k < VAL_LINE_K ? kc - k : VAL_LINE_K;
        const uint8_t *p = base + k * stride * size;
        int64_t j = 0;
        for (; j + 8 <= n; j += 8) {
            __m256 acc = _mm256_loadu_ps(c + j);
            for (int i = 0; i < rows; i++) {
                __m256 b = load8(dtype, p + (i * stride + j) * size);
                acc = _mm256_fmadd_ps(_mm256_set1_ps(a[k + i]), b, acc);
            }
            _mm256_storeu_ps(c + j, CANON(acc));
        }
        for (int i = 0; i < rows && j < n; i++) {
            float b[8];
            read_f32_c(dtype, p, i * stride + j, 1, b, (size_t)(n - j));
            for (int64_t e = 0; e < n - j; e++)
                c[j + e] = num_canonical(__builtin_fmaf(a[k + i], b[e], c[j + e]));
        }
    }
}

const struct val_ops val_ops_avx2 = {
    .name = "avx2",
    .read_f32 = read_f32,
    .read_i64 = read_i64_c,
    .write_f32 = write_f32,
    .write_i64 = write_i64_c,
    .vops_f32 = vops_f32_c,
    .vops_i64 = vops_i64_c,
    .mr = 6,
    .nr = 16,
    .f32 = {[1] = tile_f32_1, [2] = tile_f32_2, [4] = tile_f32_4, [6] = tile_f32_6},
    .f32_exact = {[1] = tile_f32_1, [2] = tile_f32_2, [4] = tile_f32_4, [6] = tile_f32_6},
    .i32 = {[1] = tile_i32_1, [2] = tile_i32_2, [4] = tile_i32_4, [6] = tile_i32_6},
    .pack_b = pack_b,
    .line = line,
};
#else
typedef int val_avx2_absent; // an empty file is not C
#endif
