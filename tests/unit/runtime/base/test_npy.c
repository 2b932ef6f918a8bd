// SPDX-License-Identifier: Apache-2.0
//
// Tests of runtime/base/npy.h: every type and version, refused files, and damage at every byte.

#define _XOPEN_SOURCE 700

#include "runtime/base/npy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/str.h"

// A .npy file in memory with the given version, header text and data.
static struct span build(struct arena *a, int version, const char *header, const char *data,
                         size_t size) {
    struct str s = {0};
    size_t n = strlen(header);
    str_append(&s, "\x93NUMPY", 6);
    str_putc(&s, (char)version);
    str_putc(&s, 0);
    str_putc(&s, (char)(n & 0xff));
    str_putc(&s, (char)(n >> 8));
    if (version > 1) str_append(&s, "\0\0", 2);
    str_append(&s, header, n);
    str_append(&s, data, size);
    struct span out = {arena_copy(a, s.data, s.len), s.len};
    str_free(&s);
    return out;
}

static void expect_refused(const char *header, enum npu_code code, const char *part) {
    struct arena *a = arena_new();
    struct tensor_data t;
    npu_status st = npy_parse(a, build(a, 1, header, "12345678", 8), &t);
    cr_expect_eq(npu_status_code(st), code, "%s", header);
    cr_expect(strstr(npu_status_message(st), part), "'%s' lacks '%s'", npu_status_message(st),
              part);
    npu_status_free(st);
    arena_free(a);
}

Test(npy, reads_versions_1_to_3) {
    struct arena *a = arena_new();
    for (int version = 1; version <= 3; version++) {
        struct tensor_data t;
        struct span file =
            build(a, version, "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2), }\n",
                  "\1\0\2\0", 4);
        npu_status st = npy_parse(a, file, &t);
        cr_assert_null(st, "%s", npu_status_message(st));
        cr_expect(t.dtype == ISA_I16 && t.rank == 2 && t.dims[0] == 1 && t.dims[1] == 2);
        cr_expect(t.size_bytes == 4 && ((const int16_t *)t.data)[1] == 2);
    }
    arena_free(a);
}

Test(npy, converts_byte_order_and_bools) {
    struct arena *a = arena_new();
    struct tensor_data t;
    struct span file = build(a, 1, "{'descr': '>u4', 'fortran_order': True, 'shape': (2L,)}",
                             "\0\0\1\2\0\0\0\7", 8);
    cr_assert_null(npy_parse(a, file, &t));
    cr_expect(((const uint32_t *)t.data)[0] == 0x102 && ((const uint32_t *)t.data)[1] == 7);
    file = build(a, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", "\0\1\5", 3);
    cr_assert_null(npy_parse(a, file, &t));
    cr_expect_eq(memcmp(t.data, "\0\1\1", 3), 0);
    file = build(a, 1, "{\"shape\":(), \"descr\":\"<f8\",\"fortran_order\":False}",
                 "\0\0\0\0\0\0\xf0\x3f", 8);
    cr_assert_null(npy_parse(a, file, &t));
    cr_expect(t.rank == 0 && *(const double *)t.data == 1.0);
    file = build(a, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9)}", "", 0);
    cr_assert_null(npy_parse(a, file, &t));
    cr_expect_eq(t.size_bytes, 0);
    arena_free(a);
}

Test(npy, refuses_with_a_reason) {
    expect_refused("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", NPU_UNSUPPORTED,
                   "Fortran");
    expect_refused("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", NPU_UNSUPPORTED,
                   "'<c8'");
    expect_refused("{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}", NPU_UNSUPPORTED,
                   "'<U3'");
    expect_refused("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", NPU_UNSUPPORTED,
                   "'|O'");
    expect_refused("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
                   NPU_UNSUPPORTED, "structured");
    expect_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", NPU_BAD_INPUT,
                   "8 bytes");
    expect_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
                   NPU_BAD_INPUT, "8 bytes");
    expect_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
                   NPU_UNSUPPORTED, "8 dimensions");
    expect_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", NPU_BAD_INPUT,
                   "shape");
    expect_refused("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", NPU_BAD_INPUT,
                   "order");
    expect_refused("{'descr': '<f4', 'fortran_order': False, 'what': 1}", NPU_BAD_INPUT, "'what'");
    expect_refused("{'descr': '<f4'}", NPU_BAD_INPUT, "lacks");
    expect_refused("", NPU_BAD_INPUT, "dictionary");
}

Test(npy, survives_damage_at_every_byte) {
    struct arena *a = arena_new();
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }\n";
    struct span whole = build(a, 1, header, "12345678", 8);
    for (size_t cut = 0; cut < whole.size; cut++) {
        uint8_t *copy = malloc(cut + 1); // a block of its own: reading beyond it is noticed
        memcpy(copy, whole.data, cut);
        struct tensor_data t;
        npu_status st = npy_parse(a, (struct span){copy, cut}, &t);
        cr_expect(st, "cut at %zu", cut);
        npu_status_free(st);
        free(copy);
    }
    for (size_t at = 0; at < whole.size; at++) {
        for (int value = 0; value < 256; value++) {
            uint8_t *copy = malloc(whole.size);
            memcpy(copy, whole.data, whole.size);
            copy[at] = (uint8_t)value;
            struct tensor_data t;
            npu_status_free(npy_parse(a, (struct span){copy, whole.size}, &t));
            free(copy);
        }
    }
    arena_free(a);
}

Test(npy, what_is_written_reads_back) {
    static const enum isa_dtype types[] = {ISA_F32, ISA_F16, ISA_BF16, ISA_F64, ISA_I8,
                                           ISA_I16, ISA_I32, ISA_I64,  ISA_U8,  ISA_U16,
                                           ISA_U32, ISA_U64, ISA_BOOL};
    char path[] = "/tmp/test_npy.XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    (void)close(fd);
    struct arena *a = arena_new();
    uint8_t data[6 * 8];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = i % 2;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        for (int rank = 0; rank <= 3; rank++) {
            struct tensor_data t = {types[k], rank, {rank == 1 ? 6 : 1, 2, 3}, data, 0}, back;
            size_t count;
            cr_assert(tensor_count(t.dims, rank, 1, &count));
            t.size_bytes = count * tensor_elem_bytes(t.dtype);
            npu_status st = npy_write(path, &t);
            if (!st) st = npy_read(a, path, &back);
            cr_assert_null(st, "%s", npu_status_message(st));
            cr_assert(back.dtype == t.dtype && back.rank == rank &&
                      back.size_bytes == t.size_bytes);
            cr_expect_eq(memcmp(back.dims, t.dims, sizeof(int64_t) * (size_t)rank), 0);
            cr_expect_eq(memcmp(back.data, data, t.size_bytes), 0);
            cr_expect_eq((uintptr_t)back.data % 64, 0);
        }
    }
    struct tensor_data t = {ISA_I4, 0, {0}, data, 1};
    npu_status st = npy_write(path, &t);
    cr_expect_eq(npu_status_code(st), NPU_UNSUPPORTED);
    cr_expect_str_eq(npu_status_message(st), "the .npy format has no type for i4");
    npu_status_free(st);
    arena_free(a);
    (void)unlink(path);
}

Test(npy, missing_file_is_an_io_error) {
    struct arena *a = arena_new();
    struct tensor_data t;
    npu_status st = npy_read(a, "/nonexistent.npy", &t);
    cr_expect_eq(npu_status_code(st), NPU_IO);
    npu_status_free(st);
    arena_free(a);
}
