// SPDX-License-Identifier: Apache-2.0
// links: npu_frontend_pt2 npu_graph npu_base
//
// The .pt2 importer: any bytes end in a graph that the verifier accepts, or in a status. Input that
// starts as a zip archive is read as one. Anything else is the graph's JSON, then a zero byte, then
// the JSON of the list of tensors (weights and constants): an archive with right checksums is made
// of them.

#include <string.h>
#include <zlib.h>

#include "runtime/base/str.h"
#include "tests/fuzz/fuzz.h"
#include "toolchain/frontend/pt2/pt2.h"

enum { STORAGES = 4, STORAGE_BYTES = 256 };

static void put(struct str *out, uint64_t v, int bytes) {
    for (int k = 0; k < bytes; k++)
        str_putc(out, (char)(v >> 8 * k));
}

// A local header and the data; the directory's record of it.
static void add(struct str *zip, struct str *directory, const char *name, const void *data,
                size_t size) {
    uint32_t crc = (uint32_t)crc32_z(0, size ? data : (const void *)"", size);
    size_t offset = zip->len;
    str_append(zip, "PK\x03\x04", 4);
    str_append(directory, "PK\x01\x02\x14\0", 6);
    for (int k = 0; k < 2; k++) {
        struct str *out = k ? directory : zip;
        put(out, 20, 2); // version
        put(out, 0, 8);  // flags, stored, no time
        put(out, crc, 4);
        put(out, size, 4);
        put(out, size, 4);
        put(out, strlen(name), 2);
        put(out, 0, 2); // extra
    }
    put(directory, 0, 8); // comment, disk, attributes
    put(directory, 0, 2);
    put(directory, offset, 4);
    str_puts(zip, name);
    str_puts(directory, name);
    str_append(zip, data, size);
}

static void archive_of(const uint8_t *data, size_t size, struct str *zip) {
    static const uint8_t storage[STORAGE_BYTES] = {1, 0, 1, 0x3f, 7};
    struct str directory = {0};
    const uint8_t *second = memchr(data, 0, size);
    size_t first = second ? (size_t)(second - data) : size;
    add(zip, &directory, "m/archive_format", "pt2", 3);
    add(zip, &directory, "m/archive_version", "0", 1);
    add(zip, &directory, "m/byteorder", "little", 6);
    add(zip, &directory, "m/models/model.json", data, first);
    static const char *const lists[] = {"m/data/weights/model_weights_config.json",
                                        "m/data/constants/model_constants_config.json"};
    for (int k = 0; k < 2; k++)
        add(zip, &directory, lists[k], second ? (const void *)(second + 1) : "{\"config\":{}}",
            second ? size - first - 1 : 13);
    for (char k = '0'; k < '0' + STORAGES; k++) {
        char weight[] = "m/data/weights/weight_0", constant[] = "m/data/constants/tensor_0";
        weight[sizeof weight - 2] = constant[sizeof constant - 2] = k;
        add(zip, &directory, weight, storage, sizeof storage);
        add(zip, &directory, constant, storage, sizeof storage);
    }
    size_t start = zip->len;
    str_append(zip, str_text(&directory), directory.len);
    str_append(zip, "PK\x05\x06", 4);
    put(zip, 0, 4);
    put(zip, 6 + 2 * STORAGES, 2);
    put(zip, 6 + 2 * STORAGES, 2);
    put(zip, directory.len, 4);
    put(zip, start, 4);
    put(zip, 0, 2);
    str_free(&directory);
}

static void import(struct span bytes) {
    struct arena *a = arena_new();
    struct graph *g = NULL;
    npu_status failed = pt2_import_bytes(bytes, NULL, NULL, a, &g);
    if (!failed) {
        npu_status broken = graph_verify(g, "after import");
        NPU_ASSERT(broken == NULL);
        struct str text = {0};
        graph_print(g, &text);
        str_free(&text);
    }
    npu_status_free(failed);
    arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str zip = {0};
    if (pt2_probe((struct span){data, size})) {
        import((struct span){data, size});
        return 0;
    }
    archive_of(data, size, &zip);
    import((struct span){(const uint8_t *)str_text(&zip), zip.len});
    str_free(&zip);
    return 0;
}
