// SPDX-License-Identifier: Apache-2.0
//
// Code path AVX-512 (F, VL, BW, DQ): the loops of isa/numeric_loops.h compiled for it, f16
// conversion by instruction, register tiles of 12 x 32.

#include "simulator/exec/val_int.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define NUM_TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")))
#define NUM_NAME(x) x##_c
#define NUM_FMA(a, b, c) __builtin_fmaf(a, b, c)
#include "isa/numeric_loops.h"

#define TILE NUM_TARGET

// f16 by instruction; it keeps signs and payloads of NaN, as num_f16_to_f32 does.
TILE static void widen_f16(const uint8_t *in, float *out, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(in + 2 * i))));
    if (i == n) return;
    __mmask16 m = (__mmask16)((1u << (n - i)) - 1u);
    __m256i h = _mm256_maskz_loadu_epi16(m, in + 2 * i);
    _mm512_mask_storeu_ps(out + i, m, _mm512_cvtph_ps(h));
}

TILE static void narrow_f16(uint8_t *out, const float *in, size_t n) {
    const __m256i nan = _mm256_set1_epi16(0x7e00);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = (__mmask16)(n - i >= 16 ? 0xffffu : (1u << (n - i)) - 1u);
        __m512 x = _mm512_maskz_loadu_ps(m, in + i);
        __mmask16 bad = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
        __m256i h = _mm512_maskz_cvtps_ph(m, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm256_mask_storeu_epi16(out + 2 * i, m, _mm256_mask_blend_epi16(bad, h, nan));
    }
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

// Sixteen floats, or the first of them, of any of the three types that are packed directly.
TILE static inline __m512 load16(int dtype, const uint8_t *p, __mmask16 m) {
    if (dtype == ISA_F32) return _mm512_maskz_loadu_ps(m, p);
    __m256i h = _mm256_maskz_loadu_epi16(m, p);
    if (dtype == ISA_F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

// Panels of 32, zero-filled beyond n.
TILE static void pack_b(int dtype, const uint8_t *base, int64_t stride, float *out, int kc, int n) {
    int64_t size = dtype == ISA_F32 ? 4 : 2;
    for (int n0 = 0; n0 < n; n0 += 32) {
        int left = n - n0;
        uint32_t m = left >= 32 ? 0xffffffffu : (1u << left) - 1u;
        const uint8_t *p = base + n0 * size;
        for (int k = 0; k < kc; k++, p += stride * size, out += 32) {
            _mm512_storeu_ps(out, load16(dtype, p, (__mmask16)(m & 0xffffu)));
            _mm512_storeu_ps(out + 16, load16(dtype, p + 16 * size, (__mmask16)(m >> 16)));
        }
    }
}

#define V __m512
#define VI __m512i
#define W 16
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define SET1(x) _mm512_set1_ps(x)
#define ZERO() _mm512_setzero_ps()
#define LOADI(p) _mm512_loadu_si512(p)
#define STOREI(p, v) _mm512_storeu_si512(p, v)
#define SET1I(x) _mm512_set1_epi32(x)
#define ZEROI() _mm512_setzero_si512()
#define MADD(acc, a, b) _mm512_add_epi32(acc, _mm512_madd_epi16(a, b))
#define FMA(a, b, acc) _mm512_fmadd_ps(a, b, acc)
#define CANON(v)                                                    \
    _mm512_mask_blend_ps(_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), v, \
                         _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)))
#define KF(r) tile_f32_##r
#define KI(r) tile_i32_##r
#include "simulator/exec/val_mm_kernel.h"

F32_KERNEL(1)
F32_KERNEL(2)
F32_KERNEL(4)
F32_KERNEL(8)
F32_KERNEL(12)
I32_KERNEL(1)
I32_KERNEL(2)
I32_KERNEL(4)
I32_KERNEL(8)
I32_KERNEL(12)

// B streams row by row; VAL_LINE_K rows at a time go through each group of 16 results.
TILE static void line(int dtype, const uint8_t *base, int64_t stride, const float *a, float *c,
                      int kc, int64_t n) {
    int64_t size = dtype == ISA_F32 ? 4 : 2;
    for (int k = 0; k < kc; k += VAL_LINE_K) {
        int rows = kc - k < VAL_LINE_K ? kc - k : VAL_LINE_K;
        const uint8_t *p = base + k * stride * size;
        for (int64_t j = 0; j < n; j += 16) {
            __mmask16 m = (__mmask16)(n - j >= 16 ? 0xffffu : (1u << (n - j)) - 1u);
            __m512 acc = _mm512_maskz_loadu_ps(m, c + j);
            for (int i = 0; i < rows; i++) {
                __m512 b = load16(dtype, p + (i * stride + j) * size, m);
                acc = _mm512_fmadd_ps(_mm512_set1_ps(a[k + i]), b, acc);
            }
            _mm512_mask_storeu_ps(c + j, m, CANON(acc));
        }
    }
}

const struct val_ops val_ops_avx512 = {
    .name = "avx512",
    .read_f32 = read_f32,
    .read_i64 = read_i64_c,
    .write_f32 = write_f32,
    .write_i64 = write_i64_c,
    .vops_f32 = vops_f32_c,
    .vops_i64 = vops_i64_c,
    .mr = 12,
    .nr = 32,
    .f32 = {[1] = tile_f32_1,
            [2] = tile_f32_2,
            [4] = tile_f32_4,
            [8] = tile_f32_8,
            [12] = tile_f32_12},
    .f32_exact = {[1] = tile_f32_1,
                  [2] = tile_f32_2,
                  [4] = tile_f32_4,
                  [8] = tile_f32_8,
                  [12] = tile_f32_12},
    .i32 = {[1] = tile_i32_1,
            [2] = tile_i32_2,
            [4] = tile_i32_4,
            [8] = tile_i32_8,
            [12] = tile_i32_12},
    .pack_b = pack_b,
    .line = line,
};
#else
typedef int val_avx512_absent; // an empty file is not C
#endif
