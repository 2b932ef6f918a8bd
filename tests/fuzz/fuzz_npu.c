// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a .npu program: as they are; with every checksum made right, so that what is behind
// them is reached; and as the contents of its metadata sections, which in a file are
// compressed. What is accepted must write and read back, and its tables can be walked.
//
// links: npu_runtime

#include <stdlib.h>
#include <string.h>

#include "runtime/container_internal.h"
#include "tests/fuzz/fuzz.h"

static volatile uint8_t sink;

static void touch(const void *bytes, size_t size) {
    uint8_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)bytes)[i]);
    sink = sum;
}

static void touch_text(const char *text) {
    touch(text, strlen(text));
}

static void walk(const struct npu_program_image *m) {
    for (size_t i = 0; i < m->ntensors; i++) {
        touch_text(m->tensors[i].name);
        if (container_find_tensor(m, m->tensors[i].role, m->tensors[i].name) != (int)i) abort();
    }
    for (size_t i = 0; i < m->nsegments; i++) {
        struct span bytes = container_segment_bytes(m, &m->segments[i]);
        touch(bytes.data, bytes.size);
        if (container_find_segment(m, m->segments[i].dram_offset) != &m->segments[i]) abort();
    }
    for (size_t i = 0; i < m->nentries; i++)
        touch(m->entries[i].launches, m->entries[i].nlaunches * sizeof *m->entries[i].launches);
    for (size_t i = 0; i < m->ntags; i++) {
        const struct npu_image_tag *t = &m->tags[i];
        touch_text(t->layer);
        touch_text(t->op);
        touch_text(t->kernel);
        touch_text(t->text);
        for (size_t k = 0; k < t->nnodes; k++)
            touch_text(t->nodes[k]);
        if (container_find_tag(m, t->tag) != t) abort();
    }
    for (size_t i = 0; i < m->nbuffers; i++)
        touch_text(m->buffers[i].name);
    const struct npu_image_record *r = m->record;
    for (size_t i = 0; r && i < r->noptions; i++) {
        touch_text(r->options[i].name);
        touch_text(r->options[i].value);
    }
    for (size_t i = 0; r && i < r->nresults; i++) {
        touch_text(r->results[i].name);
        if (!container_find_tag(m, r->results[i].last_tag)) abort();
    }
    touch_text(m->hw_yaml);
}

static void read_file(const uint8_t *data, size_t size) {
    struct arena *a = arena_new();
    struct npu_program_image *image, *again;
    struct span bytes;
    npu_status st = container_read(a, (struct span){data, size}, "fuzz", 0, &image);
    if (!st) {
        walk(image);
        if (container_write_memory(image, a, &bytes) ||
            container_read(a, bytes, "again", 0, &again) || again->ntensors != image->ntensors)
            abort();
    }
    npu_status_free(st);
    arena_free(a);
}

// The file with its size and every checksum right.
static void read_sealed(const uint8_t *data, size_t size) {
    if (size < CONTAINER_HEADER_BYTES) return;
    uint8_t *file = malloc(size);
    if (!file) return;
    memcpy(file, data, size);
    uint64_t count = container_get_u32(file + 12);
    uint64_t most = (size - CONTAINER_HEADER_BYTES) / CONTAINER_ENTRY_BYTES;
    if (count > most) count = most;
    for (uint64_t i = 0; i < count; i++) {
        uint8_t *e = file + CONTAINER_HEADER_BYTES + i * CONTAINER_ENTRY_BYTES;
        uint64_t offset = container_get_u64(e + 8), stored = container_get_u64(e + 16);
        if (offset <= size && stored <= size - offset)
            container_put_u32(e + 32, container_crc(0, (struct span){file + offset, stored}));
    }
    container_put_u64(file + 16, size);
    container_put_u32(file + 24, container_crc(0, (struct span){file + CONTAINER_HEADER_BYTES,
                                                                count * CONTAINER_ENTRY_BYTES}));
    container_put_u32(file + 28, container_crc(0, (struct span){file, 28}));
    read_file(file, size);
    free(file);
}

// The bytes as Meta, Debug and Record, checked as one image.
static void read_messages(const uint8_t *data, size_t size) {
    static const uint8_t code[16];
    struct arena *a = arena_new();
    struct npu_program_image image = {.hw_yaml = "x", .code = {code, sizeof code}};
    npu_status meta = container_unpack_meta(a, (struct span){data, size}, &image);
    npu_status debug = container_unpack_debug(a, (struct span){data, size}, &image);
    npu_status record = container_unpack_record(a, (struct span){data, size}, &image);
    npu_status st = meta || debug || record ? NULL : container_check(&image, "fuzz");
    if (!meta && !debug && !record && !st) walk(&image);
    npu_status_free(record);
    npu_status_free(meta);
    npu_status_free(debug);
    npu_status_free(st);
    arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_file(data, size);
    read_sealed(data, size);
    read_messages(data, size);
    return 0;
}
