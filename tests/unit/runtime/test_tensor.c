// SPDX-License-Identifier: Apache-2.0
//
// Types and conversions of the API.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/api.h"
#include "tests/unit/runtime/sample_image.h"

Test(tensor, names_and_sizes) {
    cr_expect_str_eq(npu_dtype_name(NPU_F16), "f16");
    cr_expect_str_eq(npu_dtype_name(NPU_U64), "u64");
    cr_expect_str_eq(npu_dtype_name((enum npu_dtype)7), "?");
    cr_expect_str_eq(npu_dtype_name((enum npu_dtype) - 1), "?");
    cr_expect_eq(npu_dtype_parse("bf16"), NPU_BF16);
    cr_expect_eq(npu_dtype_parse("f17"), NPU_DTYPE_NONE);
    cr_expect_eq(npu_dtype_bits(NPU_I4), 4);
    cr_expect_eq(npu_dtype_bytes(NPU_I4, 5), 3);
    cr_expect_eq(npu_dtype_bytes(NPU_F32, 5), 20);
    cr_expect_eq(npu_dtype_bytes(NPU_F32, 0), 0);
    cr_expect_eq(npu_dtype_bytes(NPU_U4, UINT64_MAX), UINT64_C(1) << 63);
}

Test(tensor, floats_round_once) {
    const float in[] = {1.0f, 65504.0f, 65520.0f, 1e-8f, -0.0f, 2049.0f};
    const uint16_t expected[] = {0x3c00, 0x7bff, 0x7c00, 0x0000, 0x8000, 0x6800};
    uint16_t out[6];
    expect_ok(npu_convert(NPU_F16, out, NPU_F32, in, 6));
    for (int i = 0; i < 6; i++)
        cr_expect_eq(out[i], expected[i], "element %d: %04x", i, out[i]);
    float back[6];
    expect_ok(npu_convert(NPU_F32, back, NPU_F16, expected, 6));
    cr_expect(back[0] == 1.0f && isinf(back[2]) && back[5] == 2048.0f);
}

Test(tensor, f64_is_not_rounded_twice) {
    // 1 + 2^-11 lies half way between two f16 numbers and would go down to even; a little more goes
    // up. Rounding to f32 first would lose the little more.
    const double in[] = {1.0 + 0x1p-11,
                         1.0 + 0x1p-11 + 0x1p-40,
                         1.0 + 3 * 0x1p-11 - 0x1p-40,
                         (double)NAN,
                         1e300,
                         -1e300,
                         0x1p-1074};
    const uint16_t expected[] = {0x3c00, 0x3c01, 0x3c01, 0x7e00, 0x7c00, 0xfc00, 0};
    uint16_t out[7];
    expect_ok(npu_convert(NPU_F16, out, NPU_F64, in, 7));
    for (int i = 0; i < 7; i++)
        cr_expect_eq(out[i], expected[i], "element %d: %04x", i, out[i]);
    float f[2];
    expect_ok(npu_convert(NPU_F32, f, NPU_F64, in, 2));
    cr_expect(f[1] == (float)in[1]);
    double d[2];
    expect_ok(npu_convert(NPU_F64, d, NPU_F32, f, 2));
    cr_expect(d[0] == 1.0 + 0x1p-11);
    expect_ok(npu_convert(NPU_F64, d, NPU_F64, in, 2));
    cr_expect(d[1] == in[1]);
}

Test(tensor, integers_must_fit) {
    const int64_t in[] = {0, 127, -128, 128};
    int8_t out[4];
    expect_ok(npu_convert(NPU_I8, out, NPU_I64, in, 3));
    cr_expect(out[1] == 127 && out[2] == -128);
    expect_failure(npu_convert(NPU_I8, out, NPU_I64, in, 4), NPU_BAD_INPUT,
                   "element 3 is 128, which i8 cannot hold");
    uint8_t bytes[2];
    expect_failure(npu_convert(NPU_U8, bytes, NPU_I64, in + 2, 1), NPU_BAD_INPUT,
                   "element 0 is -128");
    const uint64_t large[] = {UINT64_MAX};
    int64_t wide[1];
    expect_failure(npu_convert(NPU_I64, wide, NPU_U64, large, 1), NPU_BAD_INPUT,
                   "element 0 is 18446744073709551615");
    uint64_t same[1];
    expect_ok(npu_convert(NPU_U64, same, NPU_U64, large, 1));
    cr_expect_eq(same[0], UINT64_MAX);
    const int64_t negative[] = {-1};
    expect_failure(npu_convert(NPU_U64, same, NPU_I64, negative, 1), NPU_BAD_INPUT,
                   "element 0 is -1");
    uint8_t nibbles[2] = {0xff, 0xff};
    const int32_t three[] = {1, -8, 7};
    expect_ok(npu_convert(NPU_I4, nibbles, NPU_I32, three, 3));
    cr_expect_eq(nibbles[0], 0x81);
    cr_expect_eq(nibbles[1] & 15, 7);
}

Test(tensor, booleans_become_zero_or_one) {
    const uint8_t in[] = {0, 1, 2, 255};
    uint8_t out[4];
    expect_ok(npu_convert(NPU_BOOL, out, NPU_BOOL, in, 4));
    cr_expect(out[0] == 0 && out[1] == 1 && out[2] == 1 && out[3] == 1);
    const int64_t wide[] = {0, -5};
    expect_ok(npu_convert(NPU_BOOL, out, NPU_I64, wide, 2));
    cr_expect(out[0] == 0 && out[1] == 1);
    const uint64_t large[] = {UINT64_MAX};
    expect_ok(npu_convert(NPU_BOOL, out, NPU_U64, large, 1));
    cr_expect_eq(out[0], 1);
}

Test(tensor, kinds_do_not_mix) {
    float f[1] = {1};
    int32_t i[1] = {1};
    expect_failure(npu_convert(NPU_I32, i, NPU_F32, f, 1), NPU_UNSUPPORTED,
                   "f32 given for i32, accepted: integers and bool");
    expect_failure(npu_convert(NPU_F16, f, NPU_I32, i, 1), NPU_UNSUPPORTED, "accepted: floats");
    expect_failure(npu_convert((enum npu_dtype)99, f, NPU_F32, f, 1), NPU_USAGE, "type 99");
    expect_ok(npu_convert(NPU_F16, NULL, NPU_F32, NULL, 0));
}

Test(tensor, every_f16_survives_every_wider_float) {
    static uint16_t all[65536], back[65536];
    static double wide[65536];
    for (unsigned k = 0; k < 65536; k++)
        all[k] = (uint16_t)k;
    expect_ok(npu_convert(NPU_F64, wide, NPU_F16, all, 65536));
    expect_ok(npu_convert(NPU_F16, back, NPU_F64, wide, 65536));
    for (unsigned k = 0; k < 65536; k++) {
        bool nan = (k & 0x7c00) == 0x7c00 && (k & 0x3ff) != 0;
        cr_assert_eq(back[k], nan ? 0x7e00 : k, "%04x became %04x", k, back[k]);
    }
}
