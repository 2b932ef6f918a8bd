// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of one element: fused multiply-add, selections, and the special functions of vop.def
// as polynomials. Every operation is one IEEE 754 addition, subtraction, multiplication, division
// or square root, rounded on its own (compile with -ffp-contract=off), or integer work on the bits;
// so the bits are the same on every host. No libm. Inline and almost branch-free: loops over these
// functions vectorise. Freestanding.
//
// Largest errors, measured by tests/unit/isa/test_numeric_fn.c over every f16 value and a dense
// sweep of all f32, against long double, in ulp of the f32 result (subnormal results: in units of
// 2^-149):
//
//   exp      1.0            log      0.9
//   tanh     1.4            sigmoid  2.3
//   erf      1.2            silu     3.4
//   gelu     10, far out on the negative side: x * Phi(x), Phi from erfc, so without cancellation
//   sin cos  1.0, every finite argument
//   rsqrt    1.5            recip, sqrt, div 0.5 (correctly rounded)
#ifndef NPU_ISA_NUMERIC_FN_H
#define NPU_ISA_NUMERIC_FN_H

#include "isa/numeric_bits.h"

NUM_INLINE float num_fn_abs(float x) {
    return num_float(num_bits(x) & 0x7fffffffu);
}
NUM_INLINE float num_fn_copysign(float mag, float sign) {
    return num_float((num_bits(mag) & 0x7fffffffu) | (num_bits(sign) & 0x80000000u));
}

// a * b + c rounded once, on any host: the product is exact in binary64, TwoSum gives the sum's
// rounding error, and setting the sum's last bit when there is one (round to odd) makes the second
// rounding, to binary32, harmless.
NUM_INLINE float num_fn_fma_soft(float a, float b, float c) {
    double p = (double)a * (double)b, d = (double)c;
    double s = p + d, v = s - p;
    double err = (p - (s - v)) + (d - v);
    uint64_t u = num_bits64(s);
    uint64_t inexact = (err > 0.0) | (err < 0.0);
    // Away from zero when the error has the sum's sign, towards zero otherwise; only even s moves.
    uint64_t away = (err > 0.0) == (s > 0.0);
    uint64_t odd = away ? u + 1u : u - 1u;
    u = (inexact & ~u & 1u) ? odd : u;
    return (float)num_double(u);
}

NUM_INLINE float num_fn_fma(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c); // one instruction here, never a library call
#else
    return num_fn_fma_soft(a, b, c);
#endif
}

NUM_INLINE float num_fn_sqrt(float x) {
    return __builtin_sqrtf(x); // one instruction: IEEE 754 square root
}

// NaN if either is NaN; -0 orders below +0.
NUM_INLINE float num_fn_max(float x, float y) {
    float r = x > y ? x : y;
    r = x == y ? num_float(num_bits(x) & num_bits(y)) : r;
    return ((x == x) & (y == y)) ? r : x + y;
}
NUM_INLINE float num_fn_min(float x, float y) {
    float r = x < y ? x : y;
    r = x == y ? num_float(num_bits(x) | num_bits(y)) : r;
    return ((x == x) & (y == y)) ? r : x + y;
}

NUM_INLINE float num_fn_floor(float x) {
    float r = num_fn_round(x);
    return num_fn_copysign(r > x ? r - 1.0f : r, x);
}
NUM_INLINE float num_fn_ceil(float x) {
    float r = num_fn_round(x);
    return num_fn_copysign(r < x ? r + 1.0f : r, x);
}
NUM_INLINE float num_fn_trunc(float x) {
    float a = num_fn_abs(x), r = num_fn_round(a);
    return num_fn_copysign(r > a ? r - 1.0f : r, x);
}

// The exact remainder of truncated division (integer steps of up to 40 bits), moved once by y when
// its sign is not y's.
NUM_INLINE float num_fn_mod(float x, float y) {
    uint32_t ux = num_bits(x) & 0x7fffffffu, uy = num_bits(y) & 0x7fffffffu;
    if (ux >= NUM_INF_F32 || uy > NUM_INF_F32 || uy == 0) return num_float(NUM_NAN_F32);
    float r = x;
    if (uy <= ux) {
        int ex = (int)(ux >> 23), ey = (int)(uy >> 23);
        uint64_t mx = (ux & 0x7fffffu) | (ex ? 0x800000u : 0u);
        uint64_t my = (uy & 0x7fffffu) | (ey ? 0x800000u : 0u);
        ex = ex ? ex : 1;
        ey = ey ? ey : 1;
        mx %= my;
        for (int left = ex - ey; left > 0 && mx;) {
            int step = left < 40 ? left : 40;
            mx = (mx << step) % my;
            left -= step;
        }
        // mx * 2^(ey - 150), exact.
        double scale = num_double((uint64_t)(ey - 150 + 1023) << 52);
        r = num_fn_copysign((float)((double)(int64_t)mx * scale), x);
    }
    if (r == 0.0f) return num_fn_copysign(0.0f, y);
    return (r < 0.0f) == (y < 0.0f) ? r : r + y;
}

// e^x as p * s1 * s2 with 1/2 < p < 2 and powers of two s1, s2: multiplying p by something first,
// and by s1 then s2 last, rounds once where the result is subnormal. x = n ln 2 + r; e^r = 1 + r +
// r^2 P(r).
struct num_exp_parts {
    float p, s1, s2;
};
NUM_INLINE struct num_exp_parts num_fn_exp_parts(float x) {
    float c = x < -120.0f ? -120.0f : x;
    c = c > 89.0f ? 89.0f : c;
    float t = c * 1.44269504f + 12582912.0f;
    uint32_t n = num_bits(t) - 0x4b400000u;
    float fn = t - 12582912.0f;
    float r = (c - fn * 0.693359375f) - fn * -2.12194440e-4f;
    float p = 1.979013468e-04f;
    p = p * r + 1.394486870e-03f;
    p = p * r + 8.333498612e-03f;
    p = p * r + 4.166629165e-02f;
    p = p * r + 1.666666567e-01f;
    p = p * r + 0.5f;
    p = (p * (r * r) + r) + 1.0f;
    uint32_t half = (uint32_t)((int32_t)n >> 1);
    struct num_exp_parts e = {p, num_float((half + 127u) << 23),
                              num_float((n - half + 127u) << 23)};
    return e;
}
NUM_INLINE float num_fn_exp(float x) {
    struct num_exp_parts e = num_fn_exp_parts(x);
    return e.p * e.s1 * e.s2;
}

// x = m 2^k with m in [sqrt 1/2, sqrt 2); log m = f - f^2/2 + f^3 P(f), f = m - 1.
NUM_INLINE float num_fn_log(float x) {
    float y = x < 0x1p-126f ? x * 0x1p23f : x;
    uint32_t u = num_bits(y), e = u - 0x3f3504f3u;
    int32_t k = (int32_t)e >> 23;
    float f = num_float(u - ((uint32_t)k << 23)) - 1.0f;
    float fk = (float)(x < 0x1p-126f ? k - 23 : k);
    float z = f * f;
    float p = 6.746640056e-02f;
    p = p * f + -1.167565212e-01f;
    p = p * f + 1.188816205e-01f;
    p = p * f + -1.240558922e-01f;
    p = p * f + 1.421955228e-01f;
    p = p * f + -1.666799635e-01f;
    p = p * f + 2.000211924e-01f;
    p = p * f + -2.500000894e-01f;
    p = p * f + 3.333331347e-01f;
    float r = f * z * p;
    r = r + fk * -2.12194440e-4f;
    r = r - 0.5f * z;
    r = (f + r) + fk * 0.693359375f;
    r = x == 0.0f ? num_float(0xff800000u) : r;
    r = x < 0.0f ? num_float(NUM_NAN_F32) : r;
    return x < num_float(NUM_INF_F32) ? r : x; // inf and NaN pass through
}

// |x| < 0.625: x + x^3 P(x^2); else 1 - 2 / (e^2|x| + 1).
NUM_INLINE float num_fn_tanh(float x) {
    float a = num_fn_abs(x), z = a * a;
    float p = -5.704986863e-03f;
    p = p * z + 2.063908614e-02f;
    p = p * z + -5.373971537e-02f;
    p = p * z + 1.333144158e-01f;
    p = p * z + -3.333328068e-01f;
    float small = a + a * z * p;
    float large = 1.0f - 2.0f / (num_fn_exp(a + a) + 1.0f);
    return num_fn_copysign(a < 0.625f ? small : large, x);
}

// With e = e^-|x|: 1 / (1 + e), or e / (1 + e) on the negative side.
NUM_INLINE float num_fn_sigmoid(float x) {
    float e = num_fn_exp(-num_fn_abs(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

// x sigmoid(x); the limit -0 at minus infinity.
NUM_INLINE float num_fn_silu(float x) {
    float c = x < -120.0f ? -120.0f : x;
    struct num_exp_parts e = num_fn_exp_parts(-num_fn_abs(c));
    float top = (x < 0.0f ? c * e.p * e.s1 * e.s2 : c);
    return top / (1.0f + e.p * e.s1 * e.s2);
}

// |x| < 0.92: x + x P(x^2); else 1 - e^-(t + t Q(t)), t = min(|x|, 4).
NUM_INLINE float num_fn_erf(float x) {
    float a = num_fn_abs(x), z = a * a;
    float p = 8.316774620e-05f;
    p = p * z + -8.130012429e-04f;
    p = p * z + 5.199906882e-03f;
    p = p * z + -2.685894072e-02f;
    p = p * z + 1.128368750e-01f;
    p = p * z + -3.761263192e-01f;
    p = p * z + 1.283791661e-01f;
    float small = a + a * p;
    float t = a > 4.0f ? 4.0f : a;
    float q = -2.135320246e-04f;
    q = q * t + 3.211310832e-03f;
    q = q * t + -2.287858911e-02f;
    q = q * t + 1.052446291e-01f;
    q = q * t + 6.357309818e-01f;
    q = q * t + 1.285107583e-01f;
    float large = 1.0f - num_fn_exp(-(t + t * q));
    return num_fn_copysign(a < 0.92f ? small : large, x);
}

// Phi(-a) = e^(-a^2 / 2) G((a - 3) / (a + 3)); a^2 with its rounding error (Dekker's product),
// which the exponential would magnify. x Phi(x), with Phi(x) = 1 - Phi(-x) on the positive side.
NUM_INLINE float num_fn_gelu(float x) {
    float a = num_fn_abs(x);
    a = a > 14.75f ? 14.75f : a;
    float high = num_float(num_bits(a) & 0xfffff000u), low = a - high, sq = a * a;
    float err = ((high * high - sq) + 2.0f * high * low) + low * low;
    float u = (a - 3.0f) / (a + 3.0f);
    float g = 5.316190072e-05f;
    g = g * u + 1.150136595e-04f;
    g = g * u + -3.390128259e-04f;
    g = g * u + -9.832881624e-04f;
    g = g * u + 2.904387424e-03f;
    g = g * u + 6.131942384e-03f;
    g = g * u + -4.621326178e-02f;
    g = g * u + 1.232250407e-01f;
    g = g * u + -2.064026147e-01f;
    g = g * u + 1.215139478e-01f;
    struct num_exp_parts e = num_fn_exp_parts(-0.5f * sq);
    float tail = (e.p - e.p * (0.5f * err)) * g;
    float c = x < -14.75f ? -14.75f : x;
    float left = c * tail * e.s1 * e.s2;
    return x < 0.0f ? left : c * (1.0f - tail * e.s1 * e.s2);
}

// From here on reduction takes the exact bits of 2 / pi.
#define NUM_TRIG_LIMIT 0x1p23f

// Remainder in [-pi/4, pi/4] as r + low, and the quadrant, of |x| < 2^23: binary64, the first
// product exact.
struct num_angle {
    float r, low;
    uint32_t quadrant;
};
NUM_INLINE struct num_angle num_fn_reduce(float x) {
    double d = (double)x;
    double t = d * 0x1.45f306dc9c883p-1 + 0x1.8p52;
    double n = t - 0x1.8p52;
    double rest = (d - n * 0x1.921fb54p+0) - n * 0x1.10b4611a62633p-30;
    struct num_angle a = {(float)rest, 0.0f, (uint32_t)num_bits64(t)};
    a.low = (float)(rest - (double)a.r);
    return a;
}

// Payne-Hanek for finite |x| >= 2^23: 96 bits of 2 / pi from where the quadrant's bits start, times
// the 24-bit significand, modulo 2^96.
struct num_angle num_reduce_large(float x);

// sin of the remainder (quadrant 0 or 2) or its cos (1 or 3), negated in 2 and 3.
NUM_INLINE float num_fn_sincos_poly(struct num_angle a, uint32_t quadrant) {
    float r = a.r, z = r * r;
    float s = -1.951697777e-04f;
    s = s * z + 8.332176134e-03f;
    s = s * z + -1.666665524e-01f;
    s = r == 0.0f ? r : r + (r * z * s + a.low);
    float c = 2.443278572e-05f;
    c = c * z + -1.388731296e-03f;
    c = c * z + 4.166664556e-02f;
    // 1 - z / 2 with its rounding error.
    float h = 0.5f * z, w = 1.0f - h;
    c = w + (((1.0f - w) - h) + (z * z * c - r * a.low));
    uint32_t v = quadrant & 1u ? num_bits(c) : num_bits(s);
    return num_float(v ^ ((quadrant & 2u) << 30));
}

// Correct for |x| < 2^23 and for inf and NaN; num_fn_sin_any and num_fn_cos_any for all.
NUM_INLINE float num_fn_sin(float x) {
    struct num_angle a = num_fn_reduce(x);
    return num_fn_sincos_poly(a, a.quadrant);
}
NUM_INLINE float num_fn_cos(float x) {
    struct num_angle a = num_fn_reduce(x);
    return num_fn_sincos_poly(a, a.quadrant + 1u);
}
NUM_INLINE bool num_fn_trig_is_large(float x) {
    float a = num_fn_abs(x);
    return a >= NUM_TRIG_LIMIT && a < num_float(NUM_INF_F32);
}
NUM_INLINE float num_fn_sin_any(float x) {
    if (!num_fn_trig_is_large(x)) return num_fn_sin(x);
    struct num_angle a = num_reduce_large(x);
    return num_fn_sincos_poly(a, a.quadrant);
}
NUM_INLINE float num_fn_cos_any(float x) {
    if (!num_fn_trig_is_large(x)) return num_fn_cos(x);
    struct num_angle a = num_reduce_large(x);
    return num_fn_sincos_poly(a, a.quadrant + 1u);
}

// ---- 64-bit integers, modulo 2^64
NUM_INLINE int64_t num_fn_iadd(int64_t x, int64_t y) {
    return (int64_t)((uint64_t)x + (uint64_t)y);
}
NUM_INLINE int64_t num_fn_isub(int64_t x, int64_t y) {
    return (int64_t)((uint64_t)x - (uint64_t)y);
}
NUM_INLINE int64_t num_fn_imul(int64_t x, int64_t y) {
    return (int64_t)((uint64_t)x * (uint64_t)y);
}
NUM_INLINE int64_t num_fn_idiv(int64_t x, int64_t y) {
    if (y == 0) return 0;
    return y == -1 ? num_fn_isub(0, x) : x / y;
}
NUM_INLINE int64_t num_fn_imod(int64_t x, int64_t y) {
    if (y == 0 || y == -1) return 0;
    int64_t r = x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
NUM_INLINE int64_t num_fn_ishl(int64_t x, int64_t y) {
    return (uint64_t)y >= 64u ? 0 : (int64_t)((uint64_t)x << y);
}
NUM_INLINE int64_t num_fn_ishr(int64_t x, int64_t y) {
    return x >> ((uint64_t)y >= 64u ? 63 : y);
}

#endif
