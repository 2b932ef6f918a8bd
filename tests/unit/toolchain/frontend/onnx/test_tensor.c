// SPDX-License-Identifier: Apache-2.0
//
// Tensor data: every place where it can stand, and amounts that do not fit. Also the walk that
// comes first.

#define _XOPEN_SOURCE 700

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isa/numeric.h"
#include "runtime/base/alloc.h"
#include "tests/unit/toolchain/frontend/onnx/model.h"
#include "toolchain/frontend/onnx/wire.h"

static struct arena *arena;
static Onnx__TensorProto t;

static void setup(void) {
    arena = arena_new();
    onnx__tensor_proto__init(&t);
    t.has_data_type = 1;
}

static void teardown(void) {
    arena_free(arena);
}

TestSuite(tensor, .init = setup, .fini = teardown);

static npu_status parse(struct tensor_data *out) {
    size_t size = onnx__tensor_proto__get_packed_size(&t);
    uint8_t *bytes = arena_alloc(arena, size + 1);
    onnx__tensor_proto__pack(&t, bytes);
    return onnx_tensor_parse(arena, (struct span){bytes, size}, out, NULL);
}

static struct tensor_data parsed(void) {
    struct tensor_data out;
    npu_status st = parse(&out);
    cr_assert_null(st, "%s", npu_status_message(st));
    return out;
}

static void refused(const char *part) {
    struct tensor_data out;
    npu_status st = parse(&out);
    cr_assert_not_null(st, "accepted, expected: %s", part);
    cr_expect_not_null(strstr(npu_status_message(st), part), "'%s' lacks '%s'",
                       npu_status_message(st), part);
    npu_status_free(st);
}

static void dims(size_t rank, int64_t *d) {
    t.n_dims = rank;
    t.dims = d;
}

Test(tensor, typed_fields_small_and_large) {
    // Below and above the size from which data is left in the file.
    for (size_t n = 5; n <= 5000; n *= 1000) {
        int64_t d[1] = {(int64_t)n};
        dims(1, d);
        t.data_type = 1;
        t.n_float_data = n;
        t.float_data = ARENA_ARRAY(arena, float, n);
        for (size_t k = 0; k < n; k++)
            t.float_data[k] = (float)k / 3;
        struct tensor_data out = parsed();
        cr_assert_eq(memcmp(out.data, t.float_data, n * sizeof(float)), 0);
        t.n_float_data = 0;
        t.n_int32_data = n;
        t.int32_data = ARENA_ARRAY(arena, int32_t, n);
        for (size_t k = 0; k < n; k++)
            t.int32_data[k] = (int32_t)(k % 250) - 125;
        static const struct {
            int number;
            enum isa_dtype dtype;
        } kinds[] = {{3, ISA_I8},   {5, ISA_I16},  {6, ISA_I32},
                     {9, ISA_BOOL}, {10, ISA_F16}, {16, ISA_BF16}};
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            t.data_type = kinds[i].number;
            out = parsed();
            cr_assert_eq(out.dtype, kinds[i].dtype);
            int64_t want = t.int32_data[n - 1];
            uint16_t bits = (uint16_t)want;
            if (kinds[i].dtype == ISA_BOOL)
                cr_assert_eq(((const uint8_t *)out.data)[n - 1], want != 0);
            else if (isa_dtype_is_int(kinds[i].dtype))
                cr_assert_eq(num_load_i64(out.dtype, out.data, (int64_t)n - 1), want);
            else
                cr_assert_eq(memcmp((const uint8_t *)out.data + 2 * (n - 1), &bits, 2), 0);
        }
        t.n_int32_data = 0;
        t.n_int64_data = n;
        t.int64_data = ARENA_ARRAY(arena, int64_t, n);
        t.int64_data[n - 1] = INT64_MIN;
        t.data_type = 7;
        cr_assert_eq(((const int64_t *)parsed().data)[n - 1], INT64_MIN);
        t.n_int64_data = 0;
        t.n_double_data = n;
        t.double_data = ARENA_ARRAY(arena, double, n);
        t.double_data[n - 1] = 0.1;
        t.data_type = 11;
        out = parsed();
        cr_assert_eq(out.dtype, ISA_F32);
        cr_assert_eq(((const float *)out.data)[n - 1], 0.1f);
        t.n_double_data = 0;
        t.n_uint64_data = n;
        t.uint64_data = ARENA_ARRAY(arena, uint64_t, n);
        t.uint64_data[n - 1] = 4000000000u;
        t.data_type = 12;
        cr_assert_eq(((const uint32_t *)parsed().data)[n - 1], 4000000000u);
        t.n_uint64_data = 0;
    }
}

Test(tensor, raw_data_and_four_bit_types) {
    uint8_t raw[2] = {0x21, 0x0f};
    int64_t d[1] = {3};
    dims(1, d);
    t.has_raw_data = 1;
    t.raw_data = (ProtobufCBinaryData){2, raw};
    t.data_type = 22; // int4: newer than the packaged schema
    struct tensor_data out = parsed();
    cr_assert_eq(out.dtype, ISA_I4);
    cr_assert_eq(num_load_i64(ISA_I4, out.data, 0), 1);
    cr_assert_eq(num_load_i64(ISA_I4, out.data, 1), 2);
    cr_assert_eq(num_load_i64(ISA_I4, out.data, 2), -1);
    uint8_t flags[3] = {0, 7, 1};
    t.raw_data = (ProtobufCBinaryData){3, flags};
    t.data_type = 9;
    cr_assert_eq(((const uint8_t *)parsed().data)[1], 1);
}

Test(tensor, amounts_must_fit) {
    int64_t d[2] = {2, 3};
    float f[6] = {0};
    dims(2, d);
    t.data_type = 1;
    refused("no data, the dimensions need 24 bytes");
    t.n_float_data = 5;
    t.float_data = f;
    refused("5 items of data, the dimensions need 6");
    t.n_float_data = 6;
    t.has_raw_data = 1;
    t.raw_data = (ProtobufCBinaryData){24, (uint8_t *)f};
    refused("the data is in 2 fields");
    t.n_float_data = 0;
    t.raw_data.len = 23;
    refused("23 bytes of data, the dimensions need 24");
    t.raw_data.len = 24;
    d[1] = -3;
    refused("dimension 1 is -3");
    d[0] = d[1] = (int64_t)1 << 40;
    refused("too large");
    d[0] = 2, d[1] = 3;
    t.data_type = 0;
    refused("unknown element type number 0");
    t.data_type = 8;
    refused("element type string is not supported");
    t.data_type = 7;
    t.has_raw_data = 0;
    t.n_float_data = 6;
    refused("data of type int64 in field 4");
    int64_t many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    dims(9, many);
    refused("9 dimensions, at most 8");
}

Test(tensor, large_unsigned_numbers_are_refused) {
    int64_t d[1] = {1};
    uint64_t v[1] = {UINT64_MAX};
    dims(1, d);
    t.data_type = 13;
    t.n_uint64_data = 1;
    t.uint64_data = v;
    refused("at most 2^63 - 1");
}

// ---- external files --------------------------------------------------------------------------

static Onnx__StringStringEntryProto *entry(const char *key, const char *value) {
    Onnx__StringStringEntryProto *e = ARENA_NEW(arena, Onnx__StringStringEntryProto);
    onnx__string_string_entry_proto__init(e);
    e->key = arena_strdup(arena, key);
    e->value = arena_strdup(arena, value);
    return e;
}

// A model whose weights lie in `location`, imported from a folder of its own.
static npu_status import_external(const char *folder, const char *location, const char *offset,
                                  struct graph **g) {
    struct model m;
    model_init(&m, arena, 18);
    model_input(&m, "x", 1, "4");
    Onnx__TensorProto *w = model_floats(&m, "w", 1, (int64_t[]){4}, (float[]){0, 0, 0, 0});
    w->has_raw_data = 0;
    w->has_data_location = 1;
    w->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    MODEL_PUSH(arena, w->external_data, w->n_external_data, entry("location", location));
    MODEL_PUSH(arena, w->external_data, w->n_external_data, entry("offset", offset));
    model_node(&m, "Add", "x w", "y");
    model_output(&m, "y");
    const char *path = arena_printf(arena, "%s/model.onnx", folder);
    NPU_TRY(file_write_atomic(path, model_bytes(&m)));
    return onnx_import(path, NULL, arena, g);
}

static void external_refused(const char *folder, const char *location, const char *offset,
                             const char *part) {
    struct graph *g;
    npu_status st = import_external(folder, location, offset, &g);
    cr_assert_not_null(st, "accepted, expected: %s", part);
    cr_expect_not_null(strstr(npu_status_message(st), part), "'%s' lacks '%s'",
                       npu_status_message(st), part);
    npu_status_free(st);
}

Test(tensor, external_data_stays_in_its_folder) {
    char root[] = "/tmp/test_onnx_XXXXXX";
    cr_assert_not_null(mkdtemp(root));
    const char *folder = arena_printf(arena, "%s/model", root),
               *outside = arena_printf(arena, "%s/outside.bin", root);
    const char *inside = arena_printf(arena, "%s/data.bin", folder),
               *leaving = arena_printf(arena, "%s/link.bin", folder);
    cr_assert_eq(mkdir(folder, 0700), 0);
    float data[8] = {9, 9, 9, 9, 1, 2, 3, 4};
    struct span bytes = {(const uint8_t *)data, sizeof data};
    cr_assert_null(file_write_atomic(outside, bytes));
    cr_assert_null(file_write_atomic(inside, bytes));
    cr_assert_eq(symlink(outside, leaving), 0);
    struct graph *g = NULL;
    npu_status st = import_external(folder, "data.bin", "16", &g);
    cr_assert_null(st, "%s", npu_status_message(st));
    const struct graph_value *w = graph_find_value(g, "w");
    cr_assert_eq(((const float *)w->data)[3], 4);
    cr_assert_eq(w->source_offset, 16);
    external_refused(folder, "../outside.bin", "0", "outside the model's folder");
    external_refused(folder, "sub/../../outside.bin", "0", "outside the model's folder");
    external_refused(folder, outside, "0", "outside the model's folder");
    external_refused(folder, "link.bin", "0", "leads outside");
    external_refused(folder, "absent.bin", "0", "is not there");
    external_refused(folder, "data.bin", "20", "has 32 bytes, 16 at 20 are needed");
    external_refused(folder, "data.bin", "-4", "expected a number");
    unlink(leaving), unlink(inside), unlink(outside);
    unlink(arena_printf(arena, "%s/model.onnx", folder));
    rmdir(folder), rmdir(root);
}

// ---- the walk --------------------------------------------------------------------------------

static npu_status slim(const void *bytes, size_t size) {
    struct span out = {0};
    npu_status st = wire_slim((struct span){bytes, size}, WIRE_MODEL, &out);
    base_free((void *)(uintptr_t)out.data);
    return st;
}

static void slim_refused(const void *bytes, size_t size, const char *part) {
    npu_status st = slim(bytes, size);
    cr_assert_not_null(st, "accepted, expected: %s", part);
    cr_expect_not_null(strstr(npu_status_message(st), part), "'%s' lacks '%s'",
                       npu_status_message(st), part);
    npu_status_free(st);
}

Test(tensor, walk_checks_lengths) {
    cr_assert_null(slim("\x08\x07", 2));
    slim_refused("\x08", 1, "byte 0: truncated");
    slim_refused("\x3a\x05\x0a", 3, "byte 0: truncated");
    slim_refused("\x3a\x02\x0a\x05", 4, "byte 2: truncated");
    slim_refused("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "byte 0: truncated");
    slim_refused("\x0b", 1, "byte 0: truncated"); // a group
}

Test(tensor, walk_limits_the_nesting) {
    // model > graph > node > attribute > graph > ...: each level is a tag, a length and the rest,
    // made from the inside.
    enum { LEVELS = 200 };
    static const uint8_t tags[3] = {0x0a, 0x2a, 0x32}; // graph.node, node.attribute, attribute.g
    uint8_t bytes[4 * LEVELS], inner[4 * LEVELS];
    size_t size = 0;
    for (int k = 0; k < LEVELS; k++) {
        memcpy(inner, bytes, size);
        bytes[0] = k == LEVELS - 1 ? 0x3a : tags[(LEVELS - 2 - k) % 3];
        bytes[1] = (uint8_t)((size & 127) | 128);
        bytes[2] = (uint8_t)(size >> 7);
        memcpy(bytes + 3, inner, size);
        size += 3;
    }
    slim_refused(bytes, size, "nested deeper than 64");
}
