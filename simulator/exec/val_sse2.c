// SPDX-License-Identifier: Apache-2.0
//
// Baseline code path: portable C loops; the matrix tiles use SSE2 where there is one. No hardware
// FMA: f16 and fp8 products are exact in f32, so a multiplication and an addition are the fused
// step; f32 and bf16 take the software form (binary64, TwoSum, round to odd).

#include "simulator/exec/val_int.h"

#define NUM_TARGET
#define NUM_NAME(x) x##_c
#define NUM_FMA(a, b, c) num_fn_fma(a, b, c)
#include "isa/numeric_loops.h"

#define TILE
#if defined(__SSE2__) && !defined(VAL_PORTABLE)
#include <emmintrin.h>

// Two lanes of num_fn_fma_soft.
static inline __m128d fma_odd(__m128d p, __m128d c) {
    const __m128i one = _mm_set1_epi64x(1);
    const __m128d zero = _mm_setzero_pd();
    __m128d s = _mm_add_pd(p, c), v = _mm_sub_pd(s, p);
    __m128d err = _mm_add_pd(_mm_sub_pd(p, _mm_sub_pd(s, v)), _mm_sub_pd(c, v));
    __m128d inexact = _mm_or_pd(_mm_cmplt_pd(err, zero), _mm_cmpgt_pd(err, zero));
    __m128i bits = _mm_castpd_si128(s);
    // +1 when the error has the sum's sign, else -1, where the sum is even and inexact.
    __m128i differ = _mm_srai_epi32(_mm_castpd_si128(_mm_xor_pd(err, s)), 31);
    __m128i step = _mm_or_si128(_mm_shuffle_epi32(differ, 0xf5), one);
    __m128i odd = _mm_sub_epi64(_mm_setzero_si128(), _mm_and_si128(bits, one));
    step = _mm_and_si128(step, _mm_andnot_si128(odd, _mm_castpd_si128(inexact)));
    return _mm_castsi128_pd(_mm_add_epi64(bits, step));
}

static inline __m128 fma_soft(__m128 a, __m128 b, __m128 c) {
    __m128 a1 = _mm_movehl_ps(a, a), b1 = _mm_movehl_ps(b, b), c1 = _mm_movehl_ps(c, c);
    __m128d low = fma_odd(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), _mm_cvtps_pd(c));
    __m128d high = fma_odd(_mm_mul_pd(_mm_cvtps_pd(a1), _mm_cvtps_pd(b1)), _mm_cvtps_pd(c1));
    return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}

static inline __m128 canonical(__m128 v) {
    __m128 bad = _mm_cmpunord_ps(v, v);
    __m128 nan = _mm_castsi128_ps(_mm_set1_epi32(0x7fc00000));
    return _mm_or_ps(_mm_and_ps(bad, nan), _mm_andnot_ps(bad, v));
}

#define V __m128
#define VI __m128i
#define W 4
#define LOAD(p) _mm_loadu_ps(p)
#define STORE(p, v) _mm_storeu_ps(p, v)
#define SET1(x) _mm_set1_ps(x)
#define ZERO() _mm_setzero_ps()
#define LOADI(p) _mm_loadu_si128((const void *)(p))
#define STOREI(p, v) _mm_storeu_si128((void *)(p), v)
#define SET1I(x) _mm_set1_epi32(x)
#define ZEROI() _mm_setzero_si128()
#define MADD(acc, a, b) _mm_add_epi32(acc, _mm_madd_epi16(a, b))
#define CANON(v) canonical(v)
#define MUL_ADD(a, b, acc) _mm_add_ps(acc, _mm_mul_ps(a, b))
#define FUSED(a, b, acc) fma_soft(a, b, acc)

#else // one lane of portable C

static inline int32_t madd(int32_t acc, int32_t a, int32_t b) {
    int32_t low = (int32_t)(int16_t)(a & 0xffff) * (int16_t)(b & 0xffff);
    int32_t high = (a >> 16) * (b >> 16);
    return (int32_t)((uint32_t)acc + (uint32_t)low + (uint32_t)high);
}

#define V float
#define VI int32_t
#define W 1
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#define SET1(x) (x)
#define ZERO() 0.0f
#define LOADI(p) (*(p))
#define STOREI(p, v) (*(p) = (v))
#define SET1I(x) (x)
#define ZEROI() 0
#define MADD(acc, a, b) madd(acc, a, b)
#define CANON(v) num_canonical(v)
#define MUL_ADD(a, b, acc) ((acc) + (a) * (b))
#define FUSED(a, b, acc) num_fn_fma(a, b, acc)
#endif

#define KI(r) tile_i32_##r
#define KF(r) tile_exact_##r
#define FMA(a, b, acc) MUL_ADD(a, b, acc)
#include "simulator/exec/val_mm_kernel.h"
F32_KERNEL(1)
F32_KERNEL(2)
F32_KERNEL(4)
I32_KERNEL(1)
I32_KERNEL(2)
I32_KERNEL(4)
#undef KF
#undef FMA
#define KF(r) tile_fused_##r
#define FMA(a, b, acc) FUSED(a, b, acc)
F32_KERNEL(1)
F32_KERNEL(2)
F32_KERNEL(4)

const struct val_ops val_ops_sse2 = {
    .name = "sse2",
    .read_f32 = read_f32_c,
    .read_i64 = read_i64_c,
    .write_f32 = write_f32_c,
    .write_i64 = write_i64_c,
    .vops_f32 = vops_f32_c,
    .vops_i64 = vops_i64_c,
    .mr = 4,
    .nr = 2 * W,
    .f32 = {[1] = tile_fused_1, [2] = tile_fused_2, [4] = tile_fused_4},
    .f32_exact = {[1] = tile_exact_1, [2] = tile_exact_2, [4] = tile_exact_4},
    .i32 = {[1] = tile_i32_1, [2] = tile_i32_2, [4] = tile_i32_4},
};
