// SPDX-License-Identifier: Apache-2.0
//
// Conversions against a second definition of each format: the value is a sign times a significand
// times a power of two, rounding is nearbyint of the value over the format's quantum. All 16-bit
// and 8-bit codes, every midpoint between neighbours and its f32 neighbours, and a sweep over all
// f32.

#include "isa/numeric.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

struct format {
    int dtype, bits, mantissa, bias;
    bool finite; // no infinities, all ones is NaN, saturates
    double max;
    uint32_t nan;
};

static const struct format formats[] = {
    {ISA_F16, 16, 10, 15, false, 65504.0, 0x7e00},
    {ISA_BF16, 16, 7, 127, false, 0x1.fep127, 0x7fc0},
    {ISA_F8E4M3, 8, 3, 7, true, 448.0, 0x7f},
    {ISA_F8E5M2, 8, 2, 15, false, 57344.0, 0x7e},
};

static double decode(const struct format *f, uint32_t code) {
    uint32_t mag = code & ((1u << (f->bits - 1)) - 1u);
    int e = (int)(mag >> f->mantissa);
    uint32_t m = mag & ((1u << f->mantissa) - 1u);
    int top = (1 << (f->bits - 1 - f->mantissa)) - 1;
    double v;
    if (f->finite ? mag == 0x7fu : (e == top && m != 0)) return (double)NAN;
    if (!f->finite && e == top)
        v = (double)INFINITY;
    else if (e == 0)
        v = ldexp(m, 1 - f->bias - f->mantissa);
    else
        v = ldexp(m + (1u << f->mantissa), e - f->bias - f->mantissa);
    return code >> (f->bits - 1) ? -v : v;
}

// The value that x rounds to, or NaN.
static double rounded(const struct format *f, double x) {
    if (isnan(x)) return (double)NAN;
    double a = fabs(x), r;
    if (isinf(x)) {
        r = (double)INFINITY;
    } else {
        int e = a == 0.0 ? -2000 : ilogb(a);
        if (e < 1 - f->bias) e = 1 - f->bias;
        double quantum = ldexp(1.0, e - f->mantissa);
        r = nearbyint(a / quantum) * quantum;
    }
    if (r > f->max) r = f->finite ? f->max : HUGE_VAL;
    return copysign(r, x);
}

static uint32_t narrow(const struct format *f, float x) {
    uint32_t code = 0;
    num_store_f32(f->dtype, &code, 0, x);
    return code;
}

static void check_narrow(const struct format *f, float x) {
    uint32_t code = narrow(f, x);
    double want = rounded(f, (double)x), got = decode(f, code);
    if (isnan(want)) {
        cr_assert(code == f->nan, "%s of %a: %x", isa_dtype_name(f->dtype), (double)x, code);
        return;
    }
    cr_assert(got == want && !signbit(got) == !signbit(want), "%s of %a is %a, expected %a",
              isa_dtype_name(f->dtype), (double)x, got, want);
}

Test(numeric_conv, every_code_widens_exactly_and_comes_back) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const struct format *f = &formats[i];
        for (uint32_t code = 0; code < 1u << f->bits; code++) {
            float x = num_load_f32(f->dtype, &code, 0);
            double want = decode(f, code);
            if (isnan(want)) {
                cr_assert(isnan(x));
                cr_assert(narrow(f, x) == f->nan);
                continue;
            }
            cr_assert((double)x == want && !signbit(x) == !signbit(want), "%s %x: %a, expected %a",
                      isa_dtype_name(f->dtype), code, (double)x, want);
            cr_assert(narrow(f, x) == code, "%s %x came back as %x", isa_dtype_name(f->dtype), code,
                      narrow(f, x));
        }
    }
}

Test(numeric_conv, midpoints_round_to_even) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const struct format *f = &formats[i];
        for (uint32_t code = 0; code < 1u << f->bits; code++) {
            double v = decode(f, code), next = decode(f, code + 1);
            if (isnan(v) || isinf(v) || (code + 1) >> f->bits) continue;
            if (isnan(next) || isinf(next)) next = v + copysign(v - decode(f, code - 1), v);
            float mid = (float)((v + next) / 2);
            check_narrow(f, mid);
            check_narrow(f, nextafterf(mid, INFINITY));
            check_narrow(f, nextafterf(mid, -INFINITY));
        }
    }
}

Test(numeric_conv, sweep_of_f32) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        for (uint64_t u = 0; u < 0x100000000u; u += 10007)
            check_narrow(&formats[i], num_float((uint32_t)u));
}

Test(numeric_conv, arrays_are_the_scalars) {
    static uint16_t codes[65536], back[65536];
    static float wide[65536];
    for (uint32_t c = 0; c < 65536; c++)
        codes[c] = (uint16_t)c;
    num_f16_to_f32_n(codes, wide, 65536);
    num_f32_to_f16_n(wide, back, 65536);
    for (uint32_t c = 0; c < 65536; c++) {
        cr_assert(num_bits(wide[c]) == num_bits(num_load_f32(ISA_F16, codes, c)));
        cr_assert(back[c] == (isnan(wide[c]) ? 0x7e00 : c));
    }
    num_bf16_to_f32_n(codes, wide, 65536);
    num_f32_to_bf16_n(wide, back, 65536);
    for (uint32_t c = 0; c < 65536; c++) {
        cr_assert(num_bits(wide[c]) == c << 16);
        cr_assert(back[c] == (isnan(wide[c]) ? 0x7fc0 : c));
    }
}

struct range {
    int dtype;
    double lo, hi;
};
static const struct range ranges[] = {
    {ISA_I4, -8, 7},
    {ISA_U4, 0, 15},
    {ISA_I8, -128, 127},
    {ISA_U8, 0, 255},
    {ISA_I16, -32768, 32767},
    {ISA_U16, 0, 65535},
    {ISA_I32, -0x1p31, 0x1.fffffffcp30},
    {ISA_U32, 0, 0x1.fffffffep31},
};

Test(numeric_conv, integers_round_and_saturate) {
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const struct range *r = &ranges[i];
        for (uint64_t u = 0; u < 0x100000000u; u += 20011) {
            float x = num_float((uint32_t)u);
            double want = isnan(x) ? 0 : nearbyint((double)x);
            want = want < r->lo ? r->lo : want > r->hi ? r->hi : want;
            uint64_t room = 0;
            num_store_f32(r->dtype, &room, 0, x);
            int64_t got = num_load_i64(r->dtype, &room, 0);
            cr_assert(got == (int64_t)want, "%s of %a: %lld", isa_dtype_name(r->dtype), (double)x,
                      (long long)got);
        }
        for (int half = -140001; half < 140000; half += 2) { // ties
            double k = half / 2.0;
            double want = nearbyint(k);
            want = want < r->lo ? r->lo : want > r->hi ? r->hi : want;
            uint64_t room = 0;
            num_store_f32(r->dtype, &room, 0, (float)k);
            cr_assert(num_load_i64(r->dtype, &room, 0) == (int64_t)want);
        }
    }
}

Test(numeric_conv, wide_integers_and_bool) {
    int64_t v = 0;
    num_store_f32(ISA_I64, &v, 0, 0x1p63f);
    cr_assert(v == INT64_MAX);
    num_store_f32(ISA_I64, &v, 0, -INFINITY);
    cr_assert(v == INT64_MIN);
    num_store_f32(ISA_I64, &v, 0, NAN);
    cr_assert(v == 0);
    num_store_f32(ISA_I64, &v, 0, 2.5f);
    cr_assert(v == 2);
    uint64_t w = 0;
    num_store_f32(ISA_U64, &w, 0, -1.0f);
    cr_assert(w == 0);
    num_store_f32(ISA_U64, &w, 0, INFINITY);
    cr_assert(w == UINT64_MAX);
    cr_assert(num_load_i64(ISA_U64, &w, 0) == INT64_MAX);
    num_store_i64(ISA_I8, &v, 0, 300);
    cr_assert(num_load_i64(ISA_I8, &v, 0) == 127);
    num_store_i64(ISA_U32, &v, 0, -5);
    cr_assert(num_load_i64(ISA_U32, &v, 0) == 0);
    num_store_i64(ISA_F16, &v, 0, 2049);
    cr_assert(num_load_f32(ISA_F16, &v, 0) == 2048.0f);
    uint8_t b[4] = {9, 9, 9, 9};
    num_store_f32(ISA_BOOL, b, 0, 0.25f);
    num_store_f32(ISA_BOOL, b, 1, -0.0f);
    num_store_f32(ISA_BOOL, b, 2, NAN);
    num_store_i64(ISA_BOOL, b, 3, -7);
    cr_assert(b[0] == 1 && b[1] == 0 && b[2] == 1 && b[3] == 1);
    double d = 0.0;
    num_store_f32(ISA_F64, &d, 0, 0.1f);
    cr_assert(d == (double)0.1f);
    d = 1e300;
    cr_assert(num_load_f32(ISA_F64, &d, 0) == INFINITY);
}

Test(numeric_conv, nibbles_leave_their_neighbour) {
    uint8_t b[4] = {0xff, 0xff, 0xff, 0xff};
    num_store_i64(ISA_U4, b, 3, 5);
    cr_assert(b[0] == 0xff && b[1] == 0x5f);
    num_store_i64(ISA_I4, b, 2, -8);
    cr_assert(b[1] == 0x58);
    cr_assert(num_load_i64(ISA_I4, b, 2) == -8 && num_load_i64(ISA_U4, b, 2) == 8);
    cr_assert(num_load_i64(ISA_I4, b + 2, -1) == 5);
    cr_assert(num_load_i64(ISA_I4, b + 2, -2) == -8);
}

Test(numeric_conv, strided_runs_and_convert) {
    uint16_t in[64], out[64];
    float f[16];
    int8_t small[64];
    for (int i = 0; i < 64; i++)
        in[i] = num_f32_to_f16((float)(i * 5 - 150) / 2);
    num_read_f32(ISA_F16, in, 3, 4, f, 15);
    for (int i = 0; i < 15; i++)
        cr_assert(f[i] == (float)((3 + 4 * i) * 5 - 150) / 2);
    num_read_f32(ISA_F16, in + 63, 0, -1, f, 16);
    for (int i = 0; i < 16; i++)
        cr_assert(f[i] == (float)((63 - i) * 5 - 150) / 2);
    memset(out, 0, sizeof out);
    num_write_f32(ISA_F16, out, 1, 3, f, 16);
    for (int i = 0; i < 16; i++)
        cr_assert(out[1 + 3 * i] == in[63 - i]);
    num_convert(ISA_I8, small, ISA_F16, in, 64);
    for (int i = 0; i < 64; i++)
        cr_assert(small[i] == (int)nearbyint((i * 5 - 150) / 2.0));
    num_convert(ISA_F16, out, ISA_F16, in, 64);
    cr_assert(memcmp(in, out, sizeof in) == 0);
}
