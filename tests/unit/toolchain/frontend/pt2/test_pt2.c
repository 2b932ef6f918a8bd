// SPDX-License-Identifier: Apache-2.0
//
// What a user is told about a .pt2: its operators by node, and what is wrong with a damaged one.
#define _POSIX_C_SOURCE 200809L

#include "toolchain/frontend/pt2/pt2.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"

#define ARCHIVE NPU_TEST_DATA "/reports/09-pt2-convtranspose-dilated/model.pt2"

static void refused(const char *path, enum npu_code code, const char *say, const char *note) {
    struct arena *a = arena_new();
    npu_status st = pt2_refuse(path, a);
    struct str text = {0};
    npu_status_print(st, NULL, &text);
    cr_assert(npu_status_code(st) == code, "%s", str_text(&text));
    cr_expect(strstr(str_text(&text), say), "'%s' is not in: %s", say, str_text(&text));
    cr_expect(strstr(str_text(&text), note), "'%s' is not in: %s", note, str_text(&text));
    str_free(&text);
    npu_status_free(st);
    arena_free(a);
}

// The first `bytes` bytes of the archive, one of them changed when `at` is one of them.
static void damaged(const char *path, size_t bytes, size_t at) {
    struct arena *a = arena_new();
    struct span file;
    npu_status st = file_map_in(a, ARCHIVE, &file);
    cr_assert_null(st);
    FILE *f = fopen(path, "wb");
    for (size_t k = 0; k < bytes && k < file.size; k++)
        fputc(file.data[k] ^ (k == at), f);
    fclose(f);
    arena_free(a);
}

// Where a text stands in the archive.
static size_t offset_of(const char *text) {
    struct arena *a = arena_new();
    struct span file;
    npu_status st = file_map_in(a, ARCHIVE, &file);
    cr_assert_null(st);
    size_t at = 0, n = strlen(text);
    while (at + n <= file.size && memcmp(file.data + at, text, n))
        at++;
    arena_free(a);
    return at;
}

Test(pt2, names_nodes_and_operators) {
    refused(ARCHIVE, NPU_UNSUPPORTED, "torch.ops.aten.conv_transpose2d.input (1 of them)",
            "node 'conv_transpose2d'");
    refused(NPU_TEST_DATA "/reports/10-pt2-kv-cache-block-edge/model.pt2", NPU_UNSUPPORTED,
            "torch.ops.aten.index_copy.default (2 of them)", "node 'index_copy'");
}

Test(pt2, damaged_archives) {
    char path[] = "/tmp/test_pt2_XXXXXX";
    cr_assert(mkstemp(path) >= 0);
    damaged(path, 100, SIZE_MAX);
    refused(path, NPU_BAD_INPUT, "no zip archive", path);
    damaged(path, SIZE_MAX, offset_of("torch.ops.aten"));
    refused(path, NPU_BAD_INPUT, "models/model.json is damaged", path);
    remove(path);
    refused(path, NPU_BAD_INPUT, "no zip archive", path);
}

Test(pt2, probe) {
    cr_expect(pt2_probe((struct span){.data = (const uint8_t *)"PK\x03\x04..", .size = 6}));
    cr_expect_not(pt2_probe((struct span){.data = (const uint8_t *)"PK\x03\x04", .size = 3}));
    cr_expect_not(pt2_probe((struct span){.data = (const uint8_t *)"PK..", .size = 4}));
}
