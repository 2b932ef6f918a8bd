// SPDX-License-Identifier: Apache-2.0
//
// Element conversions, one element each, inline and branch-free so that loops over them vectorise.
// Integer arithmetic on the bits, or one IEEE addition whose rounding does the work (a number added
// to 2^k leaves its nearest-even multiple of 2^(k-23) in the low bits). Freestanding.
//
// Rules: widening is exact; narrowing rounds to nearest even; f16, bf16 and f8e5m2 overflow to
// infinity, f8e4m3 saturates to 448; integers round to nearest even and saturate, NaN gives 0;
// every NaN stored is the canonical one: f32 0x7fc00000, f16 0x7e00, bf16 0x7fc0, e4m3 0x7f, e5m2
// 0x7e.
#ifndef NPU_ISA_NUMERIC_BITS_H
#define NPU_ISA_NUMERIC_BITS_H

#include <stdbool.h>
#include <stdint.h>

#define NUM_INLINE static inline __attribute__((always_inline, unused))

union num_pun32 {
    float f;
    uint32_t u;
};
union num_pun64 {
    double f;
    uint64_t u;
};

NUM_INLINE uint32_t num_bits(float f) {
    union num_pun32 p = {.f = f};
    return p.u;
}
NUM_INLINE float num_float(uint32_t u) {
    union num_pun32 p = {.u = u};
    return p.f;
}
NUM_INLINE uint64_t num_bits64(double f) {
    union num_pun64 p = {.f = f};
    return p.u;
}
NUM_INLINE double num_double(uint64_t u) {
    union num_pun64 p = {.u = u};
    return p.f;
}

#define NUM_NAN_F32 0x7fc00000u
#define NUM_INF_F32 0x7f800000u

// The same number; a NaN becomes the canonical one.
NUM_INLINE float num_canonical(float x) {
    return x == x ? x : num_float(NUM_NAN_F32);
}

// ---- to f32: exact
NUM_INLINE float num_f16_to_f32(uint16_t h) {
    uint32_t mag = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t normal = (mag << 13) + (112u << 23);
    uint32_t special = (mag << 13) | NUM_INF_F32 | (mag > 0x7c00u ? 0x400000u : 0u);
    // A subnormal m is 2^-14 + m * 2^-24 minus 2^-14.
    uint32_t tiny = num_bits(num_float((mag << 13) + (113u << 23)) - 0x1p-14f);
    uint32_t r = mag < 0x400u ? tiny : normal;
    r = mag >= 0x7c00u ? special : r;
    return num_float(r | sign);
}

NUM_INLINE float num_bf16_to_f32(uint16_t h) {
    return num_float((uint32_t)h << 16);
}

NUM_INLINE float num_f8e4m3_to_f32(uint8_t b) {
    uint32_t mag = b & 0x7fu, sign = (uint32_t)(b & 0x80u) << 24;
    uint32_t normal = (mag << 20) + (120u << 23);
    uint32_t tiny = num_bits((float)(int32_t)mag * 0x1p-9f);
    uint32_t r = mag < 8u ? tiny : normal;
    r = mag == 0x7fu ? NUM_NAN_F32 : r;
    return num_float(r | sign);
}

NUM_INLINE float num_f8e5m2_to_f32(uint8_t b) {
    return num_f16_to_f32((uint16_t)((uint32_t)b << 8));
}

// ---- from f32: nearest even
NUM_INLINE uint16_t num_f32_to_f16(float x) {
    uint32_t u = num_bits(x), mag = u & 0x7fffffffu, sign = (u >> 16) & 0x8000u;
    uint32_t normal = (mag + 0xc8000fffu + ((mag >> 13) & 1u)) >> 13;
    uint32_t tiny = num_bits(num_float(mag) + 0.5f) - 0x3f000000u;
    uint32_t r = mag < 0x38800000u ? tiny : normal;
    r = mag >= 0x47800000u ? 0x7c00u : r;
    r |= sign;
    r = mag > NUM_INF_F32 ? 0x7e00u : r;
    return (uint16_t)r;
}

NUM_INLINE uint16_t num_f32_to_bf16(float x) {
    uint32_t u = num_bits(x);
    uint32_t r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    r = (u & 0x7fffffffu) > NUM_INF_F32 ? 0x7fc0u : r;
    return (uint16_t)r;
}

NUM_INLINE uint8_t num_f32_to_f8e4m3(float x) {
    uint32_t u = num_bits(x), mag = u & 0x7fffffffu, sign = (u >> 24) & 0x80u;
    uint32_t normal = (mag + 0x7ffffu + ((mag >> 20) & 1u) - (120u << 23)) >> 20;
    uint32_t tiny = num_bits(num_float(mag) + 0x1p14f) - num_bits(0x1p14f);
    uint32_t r = mag < 0x3c800000u ? tiny : normal;
    r = mag >= 0x43e00000u ? 0x7eu : r; // 448 and above
    r |= sign;
    r = mag > NUM_INF_F32 ? 0x7fu : r;
    return (uint8_t)r;
}

NUM_INLINE uint8_t num_f32_to_f8e5m2(float x) {
    uint32_t u = num_bits(x), mag = u & 0x7fffffffu, sign = (u >> 24) & 0x80u;
    uint32_t normal = (mag + 0xfffffu + ((mag >> 21) & 1u) - (112u << 23)) >> 21;
    uint32_t tiny = num_bits(num_float(mag) + 0x1p7f) - num_bits(0x1p7f);
    uint32_t r = mag < 0x38800000u ? tiny : normal;
    r = mag >= 0x47800000u ? 0x7cu : r;
    r |= sign;
    r = mag > NUM_INF_F32 ? 0x7eu : r;
    return (uint8_t)r;
}

// ---- integers
// Nearest integer, ties to even; the sign of a zero is kept.
NUM_INLINE float num_fn_round(float x) {
    uint32_t u = num_bits(x);
    float mag = num_float(u & 0x7fffffffu);
    float near = (mag + 0x1p23f) - 0x1p23f;
    float r = mag < 0x1p23f ? near : mag;
    return num_float(num_bits(r) | (u & 0x80000000u));
}

// Saturates to [lo, hi], both of at most 16 bits.
NUM_INLINE int32_t num_f32_to_small(float x, float lo, float hi) {
    float c = x == x ? x : 0.0f;
    c = c < lo ? lo : c;
    c = c > hi ? hi : c;
    return (int32_t)(num_bits(c + 12582912.0f) - 0x4b400000u);
}

NUM_INLINE int32_t num_f32_to_i32(float x) {
    float r = num_fn_round(x);
    bool over = r >= 0x1p31f;
    r = r >= -0x1p31f ? r : -0x1p31f;
    r = x == x ? r : 0.0f;
    int32_t i = (int32_t)(over ? 0.0f : r);
    return over ? INT32_MAX : i;
}

NUM_INLINE int64_t num_f32_to_i64(float x) {
    float r = num_fn_round(x);
    if (!(r == r)) return 0;
    if (r >= 0x1p63f) return INT64_MAX;
    if (r < -0x1p63f) return INT64_MIN;
    return (int64_t)r;
}

NUM_INLINE int64_t num_clamp_i64(int64_t v, int64_t lo, int64_t hi) {
    int64_t r = v < lo ? lo : v;
    return r > hi ? hi : r;
}

#endif
