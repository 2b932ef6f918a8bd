// SPDX-License-Identifier: Apache-2.0
//
// The rows of container.def as tables, numbers in a file's byte order, and looking things up in an
// image.

#include "runtime/container.h"

#include <string.h>
#include <zlib.h>

#include "runtime/container_internal.h"

const uint8_t container_magic[CONTAINER_MAGIC_BYTES] = {'N',  'P',  'U',  0x7f,
                                                        '\r', '\n', 0x1a, '\n'};

const struct container_row container_rows[CONTAINER_ROWS] = {
#define CONTAINER_SECTION(NAME, text, code, zlib, required, alignment, limit, meaning) \
    {text, code, zlib, required, alignment, (uint64_t)(limit) << 20},
#include "isa/container.def"
};

const struct container_row *container_find_row(uint32_t code) {
    for (size_t i = 0; i < CONTAINER_ROWS; i++)
        if (container_rows[i].code == code) return &container_rows[i];
    return NULL;
}

uint32_t container_crc(uint32_t crc, struct span bytes) {
    if (bytes.size == 0) return crc; // zlib takes a null pointer for a request of the initial value
    return (uint32_t)crc32_z(crc, bytes.data, bytes.size);
}

uint16_t container_get_u16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

uint32_t container_get_u32(const uint8_t *p) {
    return container_get_u16(p) | (uint32_t)container_get_u16(p + 2) << 16;
}

uint64_t container_get_u64(const uint8_t *p) {
    return container_get_u32(p) | (uint64_t)container_get_u32(p + 4) << 32;
}

void container_put_u16(uint8_t *p, uint16_t value) {
    p[0] = (uint8_t)(value & 0xff);
    p[1] = (uint8_t)(value >> 8);
}

void container_put_u32(uint8_t *p, uint32_t value) {
    container_put_u16(p, (uint16_t)(value & 0xffff));
    container_put_u16(p + 2, (uint16_t)(value >> 16));
}

void container_put_u64(uint8_t *p, uint64_t value) {
    container_put_u32(p, (uint32_t)(value & 0xffffffff));
    container_put_u32(p + 4, (uint32_t)(value >> 32));
}

const struct npu_image_tag *container_find_tag(const struct npu_program_image *image,
                                               uint32_t tag) {
    size_t low = 0, high = image->ntags;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (image->tags[middle].tag == tag) return &image->tags[middle];
        if (image->tags[middle].tag < tag) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

int container_find_tensor(const struct npu_program_image *image, enum container_role role,
                          const char *name) {
    for (size_t i = 0; i < image->ntensors; i++)
        if (image->tensors[i].role == role && strcmp(image->tensors[i].name, name) == 0)
            return (int)i;
    return -1;
}

int container_find_entry(const struct npu_program_image *image, const char *name) {
    for (size_t i = 0; i < image->nentries; i++)
        if (!name || strcmp(image->entries[i].name, name) == 0) return (int)i;
    return -1;
}

const struct npu_image_segment *container_find_segment(const struct npu_program_image *image,
                                                       uint64_t dram_offset) {
    size_t low = 0, high = image->nsegments;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct npu_image_segment *s = &image->segments[middle];
        if (dram_offset < s->dram_offset) {
            high = middle;
        } else if (dram_offset - s->dram_offset >= s->bytes) {
            low = middle + 1;
        } else {
            return s;
        }
    }
    return NULL;
}

struct span container_segment_bytes(const struct npu_program_image *image,
                                    const struct npu_image_segment *segment) {
    if (segment->kind == CONTAINER_SEGMENT_CODE) return image->code;
    const bool state = segment->kind == CONTAINER_SEGMENT_STATE;
    const uint64_t bytes = state ? segment->initial_bytes : segment->bytes;
    if ((segment->kind == CONTAINER_SEGMENT_WEIGHTS || state) && image->nweights == 1 && bytes)
        return (struct span){image->weights[0].bytes.data +
                                 (segment->section_offset - image->weights[0].offset),
                             bytes};
    return (struct span){0};
}

struct span container_chunk(const struct npu_image_weights *chunk, struct arena *a) {
    if (!chunk->make) return chunk->bytes;
    uint8_t *bytes = arena_alloc(a, chunk->bytes.size);
    chunk->make(chunk->of, bytes);
    return (struct span){bytes, chunk->bytes.size};
}

uint64_t container_weights_bytes(const struct npu_program_image *image) {
    if (image->nweights == 0) return 0;
    const struct npu_image_weights *last = &image->weights[image->nweights - 1];
    return last->offset + last->bytes.size;
}

const char *container_role_name(enum container_role role) {
    static const struct {
        int code;
        const char *text;
    } rows[] = {
#define CONTAINER_ROLE(NAME, text, code, meaning) {code, text},
#include "isa/container.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == (int)role) return rows[i].text;
    return "?";
}

const char *container_segment_name(enum container_segment_kind kind) {
    static const struct {
        int code;
        const char *text;
    } rows[] = {
#define CONTAINER_SEGMENT(NAME, text, code, meaning) {code, text},
#include "isa/container.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == (int)kind) return rows[i].text;
    return "?";
}

bool container_probe(struct span file) {
    return file.size >= CONTAINER_MAGIC_BYTES &&
           !memcmp(file.data, container_magic, CONTAINER_MAGIC_BYTES);
}
