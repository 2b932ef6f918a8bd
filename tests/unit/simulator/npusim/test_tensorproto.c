// SPDX-License-Identifier: Apache-2.0
// ONNX TensorProto reader: every way of storing elements, and any bytes at all.
#include <criterion/criterion.h>

#include <string.h>

#include "simulator/npusim/tensorproto.h"

static npu_status parse(struct arena *a, const uint8_t *bytes, size_t n, struct tensor_data *out) {
    return tensorproto_parse(a, (struct span){bytes, n}, out);
}

// dims 2, 3 one by one; f32; raw_data
static const uint8_t raw[] = {0x08, 2,    0x08, 3, 0x10, 1,    0x42, 1, 'x', 0x4a, 24,   0,
                              0,    0x80, 0x3f, 0, 0,    0,    0x40, 0, 0,   0x40, 0x40, 0,
                              0,    0x80, 0x40, 0, 0,    0xa0, 0x40, 0, 0,   0xc0, 0x40};

Test(tensorproto, raw_data) {
    struct arena *a = arena_new();
    struct tensor_data t;
    cr_assert_null(parse(a, raw, sizeof raw, &t));
    cr_assert(t.dtype == ISA_F32 && t.rank == 2 && t.dims[0] == 2 && t.dims[1] == 3);
    const float *v = t.data;
    for (int i = 0; i < 6; i++)
        cr_assert_eq(v[i], (float)(i + 1));
    arena_free(a);
}

Test(tensorproto, typed_data) {
    struct arena *a = arena_new();
    struct tensor_data t;
    // packed dims [3], i64, packed int64_data 1, -1, 300
    static const uint8_t i64[] = {0x0a, 1,    3,    0x10, 7,    0x3a, 13,   1,    0xff, 0xff,
                                  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0xac, 0x02};
    cr_assert_null(parse(a, i64, sizeof i64, &t));
    cr_assert(t.dtype == ISA_I64 && t.rank == 1 && t.dims[0] == 3);
    const int64_t *v = t.data;
    cr_assert(v[0] == 1 && v[1] == -1 && v[2] == 300);
    // float_data one by one, a scalar
    static const uint8_t one[] = {0x10, 1, 0x25, 0, 0, 0x80, 0x3f};
    cr_assert_null(parse(a, one, sizeof one, &t));
    cr_assert(t.rank == 0 && *(const float *)t.data == 1.0f);
    // f16 in int32_data, bool in int32_data
    static const uint8_t half[] = {0x08, 1, 0x10, 10, 0x28, 0x80, 0x78};
    cr_assert_null(parse(a, half, sizeof half, &t));
    cr_assert(t.dtype == ISA_F16 && *(const uint16_t *)t.data == 0x3c00);
    static const uint8_t yes[] = {0x08, 2, 0x10, 9, 0x2a, 2, 1, 0};
    cr_assert_null(parse(a, yes, sizeof yes, &t));
    cr_assert(t.dtype == ISA_BOOL && ((const uint8_t *)t.data)[0] == 1 &&
              ((const uint8_t *)t.data)[1] == 0);
    // i4 in int32_data: -1 and 7 in one byte
    static const uint8_t nibbles[] = {0x08, 2,    0x10, 22,   0x2a, 11,   0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 7};
    cr_assert_null(parse(a, nibbles, sizeof nibbles, &t));
    cr_assert(t.dtype == ISA_I4 && t.size_bytes == 1 && *(const uint8_t *)t.data == 0x7f);
    // no elements
    static const uint8_t empty[] = {0x08, 0, 0x10, 1};
    cr_assert_null(parse(a, empty, sizeof empty, &t));
    cr_assert(t.rank == 1 && t.dims[0] == 0 && t.size_bytes == 0);
    arena_free(a);
}

static enum npu_code code_of(struct arena *a, const uint8_t *bytes, size_t n) {
    struct tensor_data t;
    npu_status st = parse(a, bytes, n, &t);
    enum npu_code code = npu_status_code(st);
    npu_status_free(st);
    return code;
}

Test(tensorproto, what_is_wrong_is_said) {
    struct arena *a = arena_new();
    static const uint8_t few[] = {0x08, 2, 0x10, 1, 0x25, 0, 0, 0x80, 0x3f};
    static const uint8_t text[] = {0x08, 1, 0x10, 8};
    static const uint8_t external[] = {0x08, 1, 0x10, 1, 0x70, 1};
    static const uint8_t negative[] = {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                       0xff, 0xff, 0xff, 1,    0x10, 1};
    static const uint8_t huge[] = {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x08, 0xff,
                                   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x10, 1,    0x4a, 0};
    cr_assert_eq(code_of(a, few, sizeof few), NPU_BAD_INPUT);
    cr_assert_eq(code_of(a, text, sizeof text), NPU_UNSUPPORTED);
    cr_assert_eq(code_of(a, external, sizeof external), NPU_UNSUPPORTED);
    cr_assert_eq(code_of(a, negative, sizeof negative), NPU_BAD_INPUT);
    cr_assert_eq(code_of(a, huge, sizeof huge), NPU_BAD_INPUT);
    arena_free(a);
}

Test(tensorproto, any_bytes_are_survived) {
    uint64_t seed = 3;
    for (int n = 0; n < 200000; n++) {
        struct arena *a = n % 1000 == 0 ? arena_new() : NULL;
        static struct arena *kept;
        if (a) {
            arena_free(kept);
            kept = a;
        }
        uint8_t bytes[sizeof raw];
        memcpy(bytes, raw, sizeof raw);
        size_t size = sizeof raw;
        for (int i = 0; i < 3; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            bytes[(seed >> 33) % sizeof raw] = (uint8_t)(seed >> 56);
        }
        if (n % 3 == 0) size = (size_t)(seed >> 40) % (sizeof raw + 1);
        code_of(kept, bytes, size);
    }
}
