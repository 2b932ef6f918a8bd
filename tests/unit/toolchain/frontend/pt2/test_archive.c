// SPDX-License-Identifier: Apache-2.0
//
// Archives that are damaged or pretend: each is refused with the place, none does harm. They are
// made out of a good one.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"
#include "toolchain/frontend/pt2/archive.h"
#include "toolchain/frontend/pt2/pt2.h"

#define GOOD NPU_TEST_DATA "/pt2/tied/model.pt2"

static struct arena *arena;
static uint8_t *bytes;
static size_t size;

static void setup(void) {
    struct span file;
    arena = arena_new();
    npu_status failed = file_map_in(arena, GOOD, &file);
    cr_assert_null(failed);
    bytes = arena_copy(arena, file.data, file.size);
    size = file.size;
}

static void teardown(void) {
    arena_free(arena);
}

static void refused(enum npu_code code, const char *part) {
    struct graph *g;
    struct str text = {0};
    npu_status failed = pt2_import_bytes((struct span){bytes, size}, NULL, NULL, arena, &g);
    npu_status_print(failed, NULL, &text);
    cr_expect_eq(npu_status_code(failed), code, "%s", str_text(&text));
    cr_expect(strstr(str_text(&text), part), "'%s' is not in: %s", part, str_text(&text));
    str_free(&text);
    npu_status_free(failed);
}

// Every occurrence becomes another text of the same length; how many there were.
static int replace(const char *from, const char *to) {
    size_t n = strlen(from);
    int count = 0;
    cr_assert_eq(n, strlen(to));
    for (size_t k = 0; k + n <= size; k++)
        if (!memcmp(bytes + k, from, n)) {
            memcpy(bytes + k, to, n);
            count++;
        }
    cr_assert(count > 0, "%s", from);
    return count;
}

Test(archive, good, .init = setup, .fini = teardown) {
    struct graph *g = NULL;
    cr_assert(pt2_probe((struct span){bytes, size}));
    npu_status failed = pt2_import_bytes((struct span){bytes, size}, NULL, NULL, arena, &g);
    cr_assert_null(failed);
    cr_expect_eq(g->ninput, 1);
    cr_expect_eq(g->noutput, 5);
    cr_expect_str_eq(g->inputs[0]->name, "i");
    cr_expect_str_eq(g->outputs[4]->name, "out4");
}

// Constants stay in the file, tied ones are one.
Test(archive, weights_are_borrowed_and_shared, .init = setup, .fini = teardown) {
    struct graph *g = NULL;
    int tables = 0;
    npu_status failed = pt2_import_bytes((struct span){bytes, size}, "model.pt2", NULL, arena, &g);
    cr_assert_null(failed);
    for (int k = 0; k < g->nvalue; k++) {
        const struct graph_value *v = g->values[k];
        if (!v || !v->source) continue;
        const uint8_t *data = v->data;
        cr_expect(data >= bytes && data < bytes + size);
        cr_expect_eq(v->source_offset, data - bytes);
        tables += v->rank == 2 && v->dims[0] == 10 && v->dims[1] == 4;
    }
    cr_expect_eq(tables, 1);
}

Test(archive, cut_off, .init = setup, .fini = teardown) {
    size_t whole = size;
    for (size = 0; size < whole; size += size < 200 || size + 200 > whole ? 1 : 61) {
        struct graph *g;
        npu_status failed = pt2_import_bytes((struct span){bytes, size}, NULL, NULL, arena, &g);
        cr_expect(failed, "cut to %zu", size);
        npu_status_free(failed);
    }
    size = whole / 2;
    refused(NPU_BAD_INPUT, "cut off?");
}

Test(archive, names_that_lead_elsewhere, .init = setup, .fini = teardown) {
    replace("model/data/weights/weight_1", "model/../../weights/weigh_1");
    refused(NPU_BAD_INPUT, "leads out of the archive");
    replace("model/../../weights/weigh_1", "/odel/data/weights/weight_1");
    refused(NPU_BAD_INPUT, "leads out of the archive");
}

Test(archive, path_in_the_list, .init = setup, .fini = teardown) {
    replace("weight_2\"", "../etc/x\"");
    refused(NPU_BAD_INPUT, "its checksum differs");
}

Test(archive, two_roots_and_twice, .init = setup, .fini = teardown) {
    replace("model/data/weights/weight_1", "other/data/weights/weight_1");
    refused(NPU_BAD_INPUT, "is not in the folder 'model' of the others");
    replace("other/data/weights/weight_1", "model/data/weights/weight_2");
    refused(NPU_BAD_INPUT, "stands twice");
}

Test(archive, other_kinds, .init = setup, .fini = teardown) {
    replace("archive_format", "archive_farmat");
    refused(NPU_BAD_INPUT, "no entry archive_format");
}

Test(archive, checksum, .init = setup, .fini = teardown) {
    replace("\"nodes\"", "\"nodez\"");
    refused(NPU_BAD_INPUT, "model/models/model.json' is damaged: its checksum differs");
}

// The directory's record of the first weight.
static uint8_t *first_weight(void) {
    size_t at = 0;
    while (memcmp(bytes + at, "PK\x01\x02", 4) ||
           memcmp(bytes + at + 46, "model/data/weights/weight_0", 27))
        at++;
    return bytes + at;
}

Test(archive, compressed, .init = setup, .fini = teardown) {
    first_weight()[10] = 8;
    refused(NPU_BAD_INPUT, "");
}

Test(archive, compressed_otherwise, .init = setup, .fini = teardown) {
    first_weight()[10] = 14;
    refused(NPU_UNSUPPORTED, "weight_0' is compressed by LZMA (method 14), expected stored");
    first_weight()[10] = 99;
    refused(NPU_UNSUPPORTED, "something unknown (method 99)");
    first_weight()[10] = 0;
    first_weight()[8] |= 1;
    refused(NPU_UNSUPPORTED, "weight_0' is encrypted");
}

static void deflated(void) {
    struct span file;
    arena = arena_new();
    npu_status failed =
        file_map_in(arena, NPU_TEST_DATA "/pt2/plain-arguments/model.deflated.pt2", &file);
    cr_assert_null(failed);
    bytes = arena_copy(arena, file.data, file.size);
    size = file.size;
}

// Weights that were unpacked do not stand in the file.
Test(archive, deflated_entries, .init = deflated, .fini = teardown) {
    struct graph *g = NULL;
    npu_status failed = pt2_import_bytes((struct span){bytes, size}, "model.pt2", NULL, arena, &g);
    cr_assert_null(failed);
    for (int k = 0; k < g->nvalue; k++)
        cr_expect(!g->values[k] || !g->values[k]->source, "%s", g->values[k]->name);
}

Test(archive, deflated_entries_that_are_damaged, .init = deflated, .fini = teardown) {
    int harmless = 0;
    for (size_t k = 0; k < size; k += 3) {
        struct arena *own = arena_new();
        struct graph *g;
        bytes[k] ^= 0x5a;
        npu_status failed = pt2_import_bytes((struct span){bytes, size}, NULL, NULL, own, &g);
        harmless += !failed; // times, attributes
        npu_status_free(failed);
        arena_free(own);
        bytes[k] ^= 0x5a;
    }
    cr_expect(harmless < (int)size / 12, "%d", harmless);
    size_t local = 0, entry = 0; // both records of the graph, which say how long it is
    while (memcmp(bytes + local, "PK\x03\x04", 4) || memcmp(bytes + local + 30, "model/models", 12))
        local++;
    while (memcmp(bytes + entry, "PK\x01\x02", 4) || memcmp(bytes + entry + 46, "model/models", 12))
        entry++;
    bytes[local + 25] = bytes[entry + 27] = 0x7f; // 2 GB
    refused(NPU_BAD_INPUT, "bytes unpacked, at most 268435456");
    bytes[local + 25] = bytes[entry + 27] = 0;
    uint8_t third = bytes[local + 24];
    bytes[local + 24] = bytes[entry + 26] = 0xff; // 16 MB
    refused(NPU_BAD_INPUT, "deflated bytes declare");
    bytes[local + 24] = bytes[entry + 26] = third;
    bytes[local + 22] ^= 1;
    bytes[entry + 24] ^= 1;
    refused(NPU_BAD_INPUT, "its deflated bytes are damaged");
}
