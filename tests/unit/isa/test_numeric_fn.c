// SPDX-License-Identifier: Apache-2.0
//
// Special functions: errors against long double over every f16 value and a sweep of all f32, which
// must stay within what isa/numeric_fn.h states, and the values at the edges.

#include "isa/numeric.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

typedef float function(float x);
typedef long double reference(long double x);

static long double ref_sigmoid(long double x) {
    return 1 / (1 + expl(-x));
}
static long double ref_silu(long double x) {
    return x / (1 + expl(-x));
}
static long double ref_gelu(long double x) {
    return x * 0.5L * erfcl(-x / sqrtl(2.0L));
}
static long double ref_rsqrt(long double x) {
    return 1 / sqrtl(x);
}

struct entry {
    const char *name;
    function *f;
    reference *ref;
    double ulp;           // stated
    double subnormal_ulp; // stated, where the result is subnormal
};

static const struct entry entries[] = {
    {"exp", num_exp, expl, 1.0, 1.0},       {"log", num_log, logl, 0.9, 0.0},
    {"tanh", num_tanh, tanhl, 1.4, 0.0},    {"sigmoid", num_sigmoid, ref_sigmoid, 2.3, 1.0},
    {"erf", num_erf, erfl, 1.2, 0.6},       {"gelu", num_gelu, ref_gelu, 10.0, 5.0},
    {"silu", num_silu, ref_silu, 3.4, 1.2}, {"sin", num_sin, sinl, 1.0, 0.0},
    {"cos", num_cos, cosl, 1.0, 0.0},       {"rsqrt", num_rsqrt, ref_rsqrt, 1.5, 0.0},
    {"sqrt", num_sqrt, sqrtl, 0.5, 0.0},
};

// Error in ulp of the f32 result, 0 for right infinities and NaN, huge for wrong ones.
static double error_ulp(const struct entry *e, float x, bool *subnormal) {
    float y = e->f(x), rounded;
    long double r = e->ref((long double)x);
    *subnormal = false;
    if (isnan(r)) return isnan(y) ? 0.0 : HUGE_VAL;
    rounded = (float)r;
    if (isinf(rounded)) return y == rounded || fabsf(y) == 0x1.fffffep127f ? 0.0 : HUGE_VAL;
    if (rounded != 0.0f && !signbit(y) != !signbit(rounded)) return HUGE_VAL;
    *subnormal = fabsl(r) < 0x1p-126L;
    int exponent = *subnormal ? -149 : ilogbl(r) - 23;
    double err = (double)(fabsl((long double)y - r) / ldexpl(1.0L, exponent));
    return isnan(err) ? HUGE_VAL : err;
}

static void check_entry(const struct entry *e) {
    double worst = 0.0, worst_subnormal = 0.0;
    for (uint64_t u = 0; u < 0x100000000u + 65536u; u += u < 0x100000000u ? 9973 : 1) {
        uint32_t h = (uint32_t)(u - 0x100000000u);
        float x = u < 0x100000000u ? num_float((uint32_t)u) : num_f16_to_f32((uint16_t)h);
        bool subnormal;
        if (isinf(x) || isnan(x)) continue; // below
        double err = error_ulp(e, x, &subnormal);
        if (subnormal && err > worst_subnormal) worst_subnormal = err;
        if (!subnormal && err > worst) worst = err;
        cr_assert(err <= (subnormal ? e->subnormal_ulp : e->ulp), "%s(%a): %g ulp", e->name,
                  (double)x, err);
    }
    cr_log_info("%s: %.3f ulp, subnormal results %.3f", e->name, worst, worst_subnormal);
}

Test(numeric_fn, errors_within_what_is_stated) {
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        check_entry(&entries[i]);
}

static void expect(const char *what, float got, float want) {
    bool same = isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want);
    cr_expect(same, "%s: %a, expected %a", what, (double)got, (double)want);
}

Test(numeric_fn, edges) {
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        expect(entries[i].name, entries[i].f(NAN), NAN);
    expect("exp(inf)", num_exp(INFINITY), INFINITY);
    expect("exp(-inf)", num_exp(-INFINITY), 0.0f);
    expect("exp(88.72)", num_exp(88.72f), expf(88.72f));
    expect("exp(88.73)", num_exp(88.73f), INFINITY);
    expect("exp(-103)", num_exp(-103.0f), 0x1p-149f);
    expect("exp(-104)", num_exp(-104.0f), 0.0f);
    expect("exp(-0)", num_exp(-0.0f), 1.0f);
    expect("log(0)", num_log(0.0f), -INFINITY);
    expect("log(-0)", num_log(-0.0f), -INFINITY);
    expect("log(-1)", num_log(-1.0f), NAN);
    expect("log(-inf)", num_log(-INFINITY), NAN);
    expect("log(inf)", num_log(INFINITY), INFINITY);
    expect("log(1)", num_log(1.0f), 0.0f);
    expect("log(2^-149)", num_log(0x1p-149f), -103.2789306640625f);
    expect("tanh(inf)", num_tanh(INFINITY), 1.0f);
    expect("tanh(-inf)", num_tanh(-INFINITY), -1.0f);
    expect("tanh(-0)", num_tanh(-0.0f), -0.0f);
    expect("sigmoid(inf)", num_sigmoid(INFINITY), 1.0f);
    expect("sigmoid(-inf)", num_sigmoid(-INFINITY), 0.0f);
    expect("sigmoid(0)", num_sigmoid(0.0f), 0.5f);
    expect("erf(inf)", num_erf(INFINITY), 1.0f);
    expect("erf(-5)", num_erf(-5.0f), -1.0f);
    expect("erf(-0)", num_erf(-0.0f), -0.0f);
    expect("gelu(inf)", num_gelu(INFINITY), INFINITY);
    expect("gelu(-inf)", num_gelu(-INFINITY), -0.0f);
    expect("gelu(1e30)", num_gelu(1e30f), 1e30f);
    expect("gelu(-1e30)", num_gelu(-1e30f), -0.0f);
    expect("gelu(-0)", num_gelu(-0.0f), -0.0f);
    expect("silu(inf)", num_silu(INFINITY), INFINITY);
    expect("silu(-inf)", num_silu(-INFINITY), -0.0f);
    expect("silu(-1e30)", num_silu(-1e30f), -0.0f);
    expect("silu(-0)", num_silu(-0.0f), -0.0f);
    expect("sin(inf)", num_sin(INFINITY), NAN);
    expect("cos(-inf)", num_cos(-INFINITY), NAN);
    expect("sin(-0)", num_sin(-0.0f), -0.0f);
    expect("cos(0)", num_cos(0.0f), 1.0f);
    expect("sin(2^127)", num_sin(0x1p127f), sinf(0x1p127f));
    expect("rsqrt(0)", num_rsqrt(0.0f), INFINITY);
    expect("rsqrt(-0)", num_rsqrt(-0.0f), -INFINITY);
    expect("rsqrt(inf)", num_rsqrt(INFINITY), 0.0f);
    expect("rsqrt(-1)", num_rsqrt(-1.0f), NAN);
    expect("sqrt(-0)", num_sqrt(-0.0f), -0.0f);
    expect("sqrt(-1)", num_sqrt(-1.0f), NAN);
}

// The array form goes the same way, large sin and cos arguments and remainders of a vector
// included.
Test(numeric_fn, arrays_are_the_scalars) {
    static float x[1027], y[1027];
    for (uint32_t i = 0; i < 1027; i++)
        x[i] = num_float(i * 4182043u);
    for (int op = ISA_VOP_EXP; op <= ISA_VOP_COS; op++) {
        num_vops_f32(op, y, x, NULL, NULL, 1027);
        for (uint32_t i = 0; i < 1027; i++)
            cr_assert(num_bits(num_canonical(y[i])) ==
                      num_bits(num_canonical(num_vop_f32(op, x[i], 0, 0))));
    }
}
