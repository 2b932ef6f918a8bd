// SPDX-License-Identifier: Apache-2.0
//
// One element at a time: load, store, one stage. Every function is the array form of
// numeric_loops.h with n = 1, or an inline function of numeric_fn.h given a symbol.

#include "isa/numeric.h"

float num_load_f32(int dtype, const void *base, int64_t index) {
    float out = 0.0f;
    num_read_f32(dtype, base, index, 1, &out, 1);
    return out;
}

int64_t num_load_i64(int dtype, const void *base, int64_t index) {
    int64_t out = 0;
    num_read_i64(dtype, base, index, 1, &out, 1);
    return out;
}

void num_store_f32(int dtype, void *base, int64_t index, float value) {
    num_write_f32(dtype, base, index, 1, &value, 1);
}

void num_store_i64(int dtype, void *base, int64_t index, int64_t value) {
    num_write_i64(dtype, base, index, 1, &value, 1);
}

float num_round_to(int dtype, float value) {
    uint8_t room[8] = {0};
    num_store_f32(dtype, room, 0, value);
    return num_load_f32(dtype, room, 0);
}

float num_fma(float a, float b, float c) {
    return num_fn_fma(a, b, c);
}

float num_vop_f32(int op, float acc, float a, float b) {
    float out = acc;
    num_vops_f32(op, &out, &acc, &a, &b, 1);
    return out;
}

int64_t num_vop_i64(int op, int64_t acc, int64_t a, int64_t b) {
    int64_t out = acc;
    num_vops_i64(op, &out, &acc, &a, &b, 1);
    return out;
}

// clang-format off
bool num_vop_has(int op, bool integer) {
    int types = -1;
    switch ((enum isa_vop)op) {
#define ISA_VOP(N, text, code, operands, kind, float_and_int, doc) \
    case ISA_VOP_##N: types = (float_and_int); break;
#include "isa/vop.def"
    }
    return types == 1 || types == (integer ? 2 : 0);
}

float num_exp(float x) { return num_fn_exp(x); }
float num_log(float x) { return num_fn_log(x); }
float num_tanh(float x) { return num_fn_tanh(x); }
float num_sigmoid(float x) { return num_fn_sigmoid(x); }
float num_erf(float x) { return num_fn_erf(x); }
float num_gelu(float x) { return num_fn_gelu(x); }
float num_silu(float x) { return num_fn_silu(x); }
float num_sin(float x) { return num_fn_sin_any(x); }
float num_cos(float x) { return num_fn_cos_any(x); }
float num_sqrt(float x) { return num_fn_sqrt(x); }
float num_rsqrt(float x) { return 1.0f / num_fn_sqrt(x); }
// clang-format on

struct num_angle num_reduce_large(float x) {
    // 2 / pi = 0.a2f9836e 4e441529 ... in base 2^32.
    static const uint32_t two_over_pi[8] = {0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                            0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u};
    uint32_t u = num_bits(x) & 0x7fffffffu;
    uint32_t e = (u >> 23) - 150u; // |x| = m 2^e, 0 <= e <= 104
    uint64_t m = (u & 0x7fffffu) | 0x800000u;
    // The 96 bits of 2 / pi with weights 2^-(e - 1) ... 2^-(e + 94); word i holds bits 32 i + 1 ...
    // .
    uint32_t w[3];
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t bit = e + 32u * k; // first wanted bit has weight 2^-(bit - 1)
        uint64_t pair;
        if (bit < 2u) {
            pair = (uint64_t)two_over_pi[0] << 32 | two_over_pi[1];
            w[k] = (uint32_t)(pair >> (34u - bit));
        } else {
            uint32_t at = bit - 2u;
            pair = (uint64_t)two_over_pi[at / 32u] << 32 | two_over_pi[at / 32u + 1u];
            w[k] = (uint32_t)(pair >> (32u - at % 32u));
        }
    }
    uint64_t low = m * w[2];
    uint64_t mid = m * w[1] + (low >> 32);
    uint64_t high = m * w[0] + (mid >> 32);
    uint64_t top = high << 32 | (mid & 0xffffffffu);
    uint32_t quadrant = (uint32_t)(top >> 62);
    uint64_t fraction = top << 2 | ((low & 0xffffffffu) >> 30);
    quadrant += (uint32_t)(fraction >> 63);
    double rest = (double)(int64_t)fraction * 0x1.921fb54442d18p-64;
    if (x < 0.0f) {
        rest = -rest;
        quadrant = 0u - quadrant;
    }
    struct num_angle a = {(float)rest, 0.0f, quadrant};
    a.low = (float)(rest - (double)a.r);
    return a;
}
