// SPDX-License-Identifier: Apache-2.0
//
// Stage operations against the C library's rounding functions, fused multiply-add against fmaf, and
// reductions against the order written out.

#include "isa/numeric.h"

#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <string.h>

static uint64_t state = 88172645463325252u;
static uint32_t rnd(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static bool same(float a, float b) {
    return isnan(a) ? isnan(b) : num_bits(a) == num_bits(b);
}

// Any bits, or small numbers, or numbers of like size.
static float sample(int kind) {
    uint32_t u = rnd();
    if (kind == 0) return num_float(u);
    if (kind == 1) return (float)((int32_t)(u % 2001u) - 1000) / 8;
    if (kind == 2) return num_float((u & 0x807fffffu) | ((120u + u % 16u) << 23));
    return num_float(u & 0x807fffffu); // subnormal
}

Test(numeric_vop, software_fma_is_fused) {
    for (int i = 0; i < 2000000; i++) {
        float a = sample(i % 4), b = sample(i / 4 % 4), c = sample(i / 16 % 4);
        if (i % 3 == 0) c = -a * b * (1.0f + (float)(i % 5) * 0x1p-22f); // cancellation
        if (i % 7 == 0) c = num_float(num_bits(a * b) ^ 1u);
        cr_assert(same(num_fn_fma_soft(a, b, c), fmaf(a, b, c)), "%a * %a + %a", (double)a,
                  (double)b, (double)c);
        cr_assert(same(num_fma(a, b, c), fmaf(a, b, c)));
    }
}

Test(numeric_vop, rounding_and_order) {
    for (int i = 0; i < 400000; i++) {
        float x = sample(i % 4), y = sample(i / 4 % 4);
        if (i % 100 == 0) x = copysignf(0.0f, x);
        if (i % 60 == 0) y = copysignf(0.0f, y);
        cr_assert(same(num_vop_f32(ISA_VOP_FLOOR, x, 0, 0), floorf(x)), "%a", (double)x);
        cr_assert(same(num_vop_f32(ISA_VOP_CEIL, x, 0, 0), ceilf(x)), "%a", (double)x);
        cr_assert(same(num_vop_f32(ISA_VOP_TRUNC, x, 0, 0), truncf(x)), "%a", (double)x);
        cr_assert(same(num_vop_f32(ISA_VOP_ROUND, x, 0, 0), rintf(x)), "%a", (double)x);
        float m = isnan(x) || isnan(y) ? NAN : fmaxf(x, y),
              n = isnan(x) || isnan(y) ? NAN : fminf(x, y);
        if (x == 0 && y == 0) m = signbit(x) ? y : x, n = signbit(x) ? x : y;
        cr_assert(same(num_vop_f32(ISA_VOP_MAX, x, y, 0), m), "%a %a", (double)x, (double)y);
        cr_assert(same(num_vop_f32(ISA_VOP_MIN, x, y, 0), n), "%a %a", (double)x, (double)y);
        float r = fmodf(x, y);
        if (!isnan(r)) r = r == 0 ? copysignf(0, y) : (r < 0) != (y < 0) ? r + y : r;
        cr_assert(same(num_vop_f32(ISA_VOP_MOD, x, y, 0), r), "%a mod %a", (double)x, (double)y);
        cr_assert(same(num_vop_f32(ISA_VOP_RSUB, x, y, 0), y - x));
        cr_assert(same(num_vop_f32(ISA_VOP_RDIV, x, y, 0), y / x));
        cr_assert(num_vop_f32(ISA_VOP_LE, x, y, 0) == (float)(x <= y));
        cr_assert(num_vop_f32(ISA_VOP_NE, x, y, 0) == (float)(x != y));
    }
    cr_assert(same(num_vop_f32(ISA_VOP_SEL, NAN, 1, 2), 1));
    cr_assert(same(num_vop_f32(ISA_VOP_SEL, -0.0f, 1, 2), 2));
    cr_assert(same(num_vop_f32(ISA_VOP_APRED, 5, 1, 0), 1));
    cr_assert(same(num_vop_f32(ISA_VOP_APRED, 5, 1, 1), 5));
    cr_assert(same(num_vop_f32(ISA_VOP_NEG, 0.0f, 0, 0), -0.0f));
    cr_assert(same(num_vop_f32(ISA_VOP_SHL, 3, 1, 0), 3));
}

Test(numeric_vop, integers) {
    const int64_t lo = INT64_MIN, hi = INT64_MAX;
    cr_assert(num_vop_i64(ISA_VOP_ADD, hi, 1, 0) == lo);
    cr_assert(num_vop_i64(ISA_VOP_MUL, lo, -1, 0) == lo);
    cr_assert(num_vop_i64(ISA_VOP_DIV, -7, 2, 0) == -3);
    cr_assert(num_vop_i64(ISA_VOP_DIV, lo, -1, 0) == lo);
    cr_assert(num_vop_i64(ISA_VOP_DIV, 5, 0, 0) == 0);
    cr_assert(num_vop_i64(ISA_VOP_RDIV, 2, 7, 0) == 3);
    cr_assert(num_vop_i64(ISA_VOP_MOD, -7, 3, 0) == 2);
    cr_assert(num_vop_i64(ISA_VOP_MOD, 7, -3, 0) == -2);
    cr_assert(num_vop_i64(ISA_VOP_MOD, lo, -1, 0) == 0);
    cr_assert(num_vop_i64(ISA_VOP_MOD, 7, 0, 0) == 0);
    cr_assert(num_vop_i64(ISA_VOP_SHL, 1, 63, 0) == lo);
    cr_assert(num_vop_i64(ISA_VOP_SHL, 1, 64, 0) == 0);
    cr_assert(num_vop_i64(ISA_VOP_SHR, -8, 1, 0) == -4);
    cr_assert(num_vop_i64(ISA_VOP_SHR, -8, 100, 0) == -1);
    cr_assert(num_vop_i64(ISA_VOP_FMA, 3, 4, 5) == 17);
    cr_assert(num_vop_i64(ISA_VOP_ABS, lo, 0, 0) == lo);
    cr_assert(num_vop_i64(ISA_VOP_NOT, 0, 0, 0) == 1);
    cr_assert(num_vop_i64(ISA_VOP_XOR, 6, 3, 0) == 5);
    cr_assert(num_vop_i64(ISA_VOP_SEL, 0, 1, 2) == 2);
    cr_assert(num_vop_has(ISA_VOP_ADD, true) && num_vop_has(ISA_VOP_ADD, false));
    cr_assert(num_vop_has(ISA_VOP_SHL, true) && !num_vop_has(ISA_VOP_SHL, false));
    cr_assert(!num_vop_has(ISA_VOP_EXP, true) && num_vop_has(ISA_VOP_EXP, false));
    cr_assert(!num_vop_has(63, true) && !num_vop_has(-1, false));
}

static float op_of(int red, float a, float b) {
    if (red == ISA_RED_MAX) return num_vop_f32(ISA_VOP_MAX, a, b, 0);
    if (red == ISA_RED_MIN) return num_vop_f32(ISA_VOP_MIN, a, b, 0);
    return red == ISA_RED_PROD ? a * b : a + b;
}

// The order of insn.def's v.red, word for word.
static float written_out(int red, const float *x, size_t n) {
    float p[64];
    size_t have = n < 64 ? n : 64;
    for (size_t j = 0; j < n; j++) {
        float v = red == ISA_RED_SUMSQ ? x[j] * x[j] : x[j];
        p[j % 64] = j < 64 ? v : op_of(red, p[j % 64], v);
    }
    for (size_t w = 32; w; w /= 2)
        for (size_t i = 0; i < w; i++)
            if (i + w < have && i < have) p[i] = op_of(red, p[i], p[i + w]);
    return p[0];
}

Test(numeric_vop, reduction_order) {
    static float x[1000];
    const int reds[] = {ISA_RED_SUM, ISA_RED_MAX, ISA_RED_MIN, ISA_RED_SUMSQ, ISA_RED_PROD};
    for (int round = 0; round < 600; round++) {
        size_t n = 1 + rnd() % (round % 2 ? 130u : 1000u);
        for (size_t i = 0; i < n; i++)
            x[i] = sample(1 + round % 2) * (round % 50 ? 1 : NAN);
        for (size_t r = 0; r < 5; r++) {
            struct num_reduce red;
            num_reduce_begin(&red, reds[r]);
            for (size_t at = 0; at < n;) {
                size_t part = 1 + rnd() % 200u;
                if (part > n - at) part = n - at;
                num_reduce_add_f32(&red, x + at, part);
                at += part;
            }
            float got = num_reduce_end_f32(&red), want = written_out(reds[r], x, n);
            cr_assert(same(got, want), "red %d n %zu: %a, expected %a", reds[r], n, (double)got,
                      (double)want);
        }
    }
}

Test(numeric_vop, tree_skips_absent_partials) {
    // 40 elements: partials 32..39 fold onto 0..7, never a zero for those that do not exist.
    float x[40];
    for (int i = 0; i < 40; i++)
        x[i] = -0.0f;
    struct num_reduce r;
    num_reduce_begin(&r, ISA_RED_SUM);
    num_reduce_add_f32(&r, x, 40);
    cr_assert(same(num_reduce_end_f32(&r), -0.0f));
}

Test(numeric_vop, argmax) {
    float x[200];
    int64_t y[200];
    struct num_reduce r;
    for (int i = 0; i < 200; i++)
        y[i] = (int64_t)(x[i] = (float)(i % 7 == 3 ? 9 : -i));
    num_reduce_begin(&r, ISA_RED_ARGMAX);
    num_reduce_add_f32(&r, x, 200);
    cr_assert(num_reduce_end_index_f32(&r) == 3);
    num_reduce_begin(&r, ISA_RED_ARGMAX);
    num_reduce_add_i64(&r, y, 200);
    cr_assert(num_reduce_end_index_i64(&r) == 3);
    x[150] = NAN;
    x[170] = NAN;
    num_reduce_begin(&r, ISA_RED_ARGMAX);
    num_reduce_add_f32(&r, x, 70);
    num_reduce_add_f32(&r, x + 70, 130);
    cr_assert(num_reduce_end_index_f32(&r) == 150);
    for (int i = 0; i < 200; i++)
        x[i] = i % 2 ? 0.0f : -0.0f;
    num_reduce_begin(&r, ISA_RED_ARGMAX);
    num_reduce_add_f32(&r, x, 200);
    cr_assert(num_reduce_end_index_f32(&r) == 0);
}

Test(numeric_vop, integer_reductions) {
    int64_t x[100], sum = 0, sq = 0;
    for (int i = 0; i < 100; i++) {
        x[i] = (int64_t)rnd() - 0x80000000;
        sum += x[i];
        sq = (int64_t)((uint64_t)sq + (uint64_t)x[i] * (uint64_t)x[i]);
    }
    struct num_reduce r;
    num_reduce_begin(&r, ISA_RED_SUM);
    num_reduce_add_i64(&r, x, 100);
    cr_assert(num_reduce_end_i64(&r) == sum);
    num_reduce_begin(&r, ISA_RED_SUMSQ);
    num_reduce_add_i64(&r, x, 100);
    cr_assert(num_reduce_end_i64(&r) == sq);
    cr_assert(num_combine_i64(ISA_RED_MAX, 4, 3) == 4);
    cr_assert(num_combine_f32(ISA_RED_SUMSQ, 4, 3) == 7);
}
