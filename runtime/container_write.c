// SPDX-License-Identifier: Apache-2.0
//
// Writing a .npu: the small sections are serialised and compressed into a scratch arena, then
// header, table and sections go out in order. The constants go out chunk by chunk, each made in a
// buffer that the next one uses again, or never copied; their checksum is known behind the last
// one, and the head is written once more with it. Where that cannot be done (a pipe), the constants
// are gone through twice.

#include <setjmp.h>
#include <string.h>
#include <zlib.h>

#include "runtime/base/alloc.h"
#include "runtime/container_internal.h"

enum { ZLIB_LEVEL = 6 }; // part of the format's determinism

// A section about to be written.
struct section {
    const struct container_row *row;
    struct span stored; // not for WEIGHTS
    uint64_t offset, stored_bytes, raw_bytes;
    uint32_t crc;
};

struct layout {
    struct section sections[CONTAINER_ROWS];
    size_t count;
    uint64_t file_bytes;
    uint8_t head[CONTAINER_HEADER_BYTES + CONTAINER_ROWS * CONTAINER_ENTRY_BYTES];
    size_t head_bytes;
};

/// Where bytes go: a file, memory of known size, or nowhere.
struct sink {
    struct file_out *file;
    uint8_t *memory;
};

static npu_status put(struct sink *sink, struct span bytes) {
    if (sink->file) return file_out_write(sink->file, bytes);
    if (!sink->memory) return NULL;
    if (bytes.size > 0) memcpy(sink->memory, bytes.data, bytes.size);
    sink->memory += bytes.size;
    return NULL;
}

static const uint8_t zeros[4096];

static npu_status put_zeros(struct sink *sink, uint64_t count) {
    while (count > 0) {
        size_t part = count < sizeof zeros ? (size_t)count : sizeof zeros;
        NPU_TRY(put(sink, (struct span){zeros, part}));
        count -= part;
    }
    return NULL;
}

// ---- sections
// --------------------------------------------------------------------------------------

static npu_status compress_into(struct arena *a, struct span raw, struct span *out) {
    uLongf size = compressBound((uLong)raw.size);
    uint8_t *bytes = arena_alloc(a, size);
    int rc = compress2(bytes, &size, raw.data, (uLong)raw.size, ZLIB_LEVEL);
    if (rc != Z_OK)
        return npu_fail(NO_MEMORY, "cannot compress %zu bytes: %s", raw.size, zError(rc));
    *out = (struct span){bytes, size};
    return NULL;
}

static npu_status add_section(struct layout *l, struct arena *a, enum container_row_index index,
                              struct span raw) {
    const struct container_row *row = &container_rows[index];
    if (raw.size > row->limit_bytes)
        return npu_fail(UNSUPPORTED, "section %s: %zu bytes, at most %llu", row->name, raw.size,
                        (unsigned long long)row->limit_bytes);
    struct section *s = &l->sections[l->count++];
    s->row = row;
    s->raw_bytes = raw.size;
    s->stored = raw;
    if (row->zlib) NPU_TRY(compress_into(a, raw, &s->stored));
    s->stored_bytes = s->stored.size;
    s->crc = container_crc(0, s->stored);
    return NULL;
}

static struct span hw_section(const struct npu_program_image *image, struct arena *a) {
    size_t text_bytes = strlen(image->hw_yaml);
    uint8_t *bytes = arena_alloc(a, CONTAINER_HW_HASH_BYTES + text_bytes);
    container_put_u64(bytes, image->hw_program_hash);
    container_put_u64(bytes + 8, image->hw_timing_hash);
    memcpy(bytes + CONTAINER_HW_HASH_BYTES, image->hw_yaml, text_bytes);
    return (struct span){bytes, CONTAINER_HW_HASH_BYTES + text_bytes};
}

static void add_weights(struct layout *l, const struct npu_program_image *image) {
    struct section *s = &l->sections[l->count++];
    s->row = &container_rows[CONTAINER_ROW_WEIGHTS];
    s->raw_bytes = s->stored_bytes = container_weights_bytes(image);
}

// Puts bytes and counts them into the checksum.
static npu_status put_counted(struct sink *sink, uint32_t *crc, struct span bytes) {
    *crc = container_crc(*crc, bytes);
    return put(sink, bytes);
}

static npu_status put_chunk(struct sink *sink, uint32_t *crc, const struct npu_image_weights *w,
                            uint8_t *buffer) {
    if (!w->make) return put_counted(sink, crc, w->bytes);
    w->make(w->of, buffer);
    return put_counted(sink, crc, (struct span){buffer, w->bytes.size});
}

// The constants, and their checksum.
static npu_status put_weights(struct sink *sink, const struct npu_program_image *image,
                              uint32_t *crc) {
    uint64_t end = 0;
    size_t largest = 0;
    for (size_t i = 0; i < image->nweights; i++)
        if (image->weights[i].make && image->weights[i].bytes.size > largest)
            largest = image->weights[i].bytes.size;
    uint8_t *buffer = base_alloc(largest);
    if (!buffer) return npu_fail(NO_MEMORY, "%zu bytes for a constant", largest);
    *crc = 0;
    npu_status st = NULL;
    for (size_t i = 0; i < image->nweights && !st; i++) {
        const struct npu_image_weights *w = &image->weights[i];
        for (uint64_t gap = w->offset - end; gap > 0 && !st;) {
            size_t part = gap < sizeof zeros ? (size_t)gap : sizeof zeros;
            st = put_counted(sink, crc, (struct span){zeros, part});
            gap -= part;
        }
        if (!st) st = put_chunk(sink, crc, w, buffer);
        end = w->offset + w->bytes.size;
    }
    base_free(buffer);
    return st;
}

static npu_status sum_weights(struct layout *l, const struct npu_program_image *image) {
    struct sink nowhere = {0};
    for (size_t i = 0; i < l->count; i++)
        if (l->sections[i].row->code == CONTAINER_WEIGHTS)
            NPU_TRY(put_weights(&nowhere, image, &l->sections[i].crc));
    return NULL;
}

// ---- file
// ------------------------------------------------------------------------------------------

// Offsets of the sections, then header and table.
static void lay_out(struct layout *l) {
    l->head_bytes = CONTAINER_HEADER_BYTES + l->count * CONTAINER_ENTRY_BYTES;
    uint64_t end = l->head_bytes;
    for (size_t i = 0; i < l->count; i++) {
        struct section *s = &l->sections[i];
        uint64_t alignment = s->row->alignment;
        s->offset = (end + alignment - 1) / alignment * alignment;
        end = s->offset + s->stored_bytes;
        uint8_t *p = l->head + CONTAINER_HEADER_BYTES + i * CONTAINER_ENTRY_BYTES;
        container_put_u32(p, s->row->code);
        container_put_u32(p + 4, (s->row->zlib ? CONTAINER_FLAG_ZLIB : 0) |
                                     (s->row->required ? CONTAINER_FLAG_REQUIRED : 0));
        container_put_u64(p + 8, s->offset);
        container_put_u64(p + 16, s->stored_bytes);
        container_put_u64(p + 24, s->raw_bytes);
        container_put_u32(p + 32, s->crc);
        container_put_u32(p + 36, 0);
    }
    l->file_bytes = end;
    uint8_t *h = l->head;
    memcpy(h, container_magic, CONTAINER_MAGIC_BYTES);
#define CONTAINER_VERSION(major, minor) \
    container_put_u16(h + 8, major);    \
    container_put_u16(h + 10, minor);
#include "isa/container.def"
    container_put_u32(h + 12, (uint32_t)l->count);
    container_put_u64(h + 16, l->file_bytes);
    struct span table = {h + CONTAINER_HEADER_BYTES, l->head_bytes - CONTAINER_HEADER_BYTES};
    container_put_u32(h + 24, container_crc(0, table));
    container_put_u32(h + 28, container_crc(0, (struct span){h, 28}));
}

static npu_status build(const struct npu_program_image *image, struct arena *a, struct layout *l) {
    NPU_TRY(add_section(l, a, CONTAINER_ROW_META, container_pack_meta(image, a)));
    NPU_TRY(add_section(l, a, CONTAINER_ROW_HW, hw_section(image, a)));
    NPU_TRY(add_section(l, a, CONTAINER_ROW_CODE, image->code));
    struct span debug = container_pack_debug(image, a);
    if (debug.size > 0) NPU_TRY(add_section(l, a, CONTAINER_ROW_DEBUG, debug));
    if (image->record)
        NPU_TRY(add_section(l, a, CONTAINER_ROW_RECORD, container_pack_record(image, a)));
    if (container_weights_bytes(image) > 0) add_weights(l, image);
    lay_out(l);
    return NULL;
}

static npu_status emit(const struct npu_program_image *image, struct layout *l, struct sink *sink) {
    NPU_TRY(put(sink, (struct span){l->head, l->head_bytes}));
    uint64_t end = l->head_bytes;
    for (size_t i = 0; i < l->count; i++) {
        struct section *s = &l->sections[i];
        NPU_TRY(put_zeros(sink, s->offset - end));
        if (s->row->code == CONTAINER_WEIGHTS) {
            NPU_TRY(put_weights(sink, image, &s->crc));
        } else {
            NPU_TRY(put(sink, s->stored));
        }
        end = s->offset + s->stored_bytes;
    }
    return NULL;
}

// build() with a scratch arena of its own; out of memory comes back as a status.
static npu_status build_in(const struct npu_program_image *image, const char *where,
                           struct arena *scratch, struct layout *l) {
    jmp_buf out_of_memory;
    if (setjmp(out_of_memory)) return npu_fail(NO_MEMORY, "%s: out of memory", where);
    arena_set_oom(scratch, &out_of_memory);
    npu_status st = npu_note(build(image, scratch, l), "writing %s", where);
    arena_set_oom(scratch, NULL);
    return st;
}

npu_status container_write(const struct npu_program_image *image, const char *path) {
    NPU_TRY(container_check(image, path));
    struct arena *scratch = arena_try_new();
    if (!scratch) return npu_fail(NO_MEMORY, "%s: out of memory", path);
    struct layout l = {0};
    struct sink sink = {0};
    npu_status st = build_in(image, path, scratch, &l);
    if (!st) st = file_out_open(path, &sink.file);
    bool again = !st && file_out_rewritable(sink.file);
    if (!st && !again) st = sum_weights(&l, image);
    if (!st && !again) lay_out(&l);
    if (!st) st = emit(image, &l, &sink);
    if (!st && again) {
        lay_out(&l);
        st = file_out_rewrite(sink.file, 0, (struct span){l.head, l.head_bytes});
    }
    if (st) {
        file_out_abort(sink.file);
    } else {
        st = file_out_commit(sink.file);
    }
    arena_free(scratch);
    return st;
}

npu_status container_write_memory(const struct npu_program_image *image, struct arena *a,
                                  struct span *out) {
    *out = (struct span){0};
    NPU_TRY(container_check(image, "program"));
    struct layout l = {0};
    NPU_TRY(build(image, a, &l));
    uint8_t *bytes = arena_alloc(a, (size_t)l.file_bytes);
    struct sink sink = {.memory = bytes};
    NPU_TRY(emit(image, &l, &sink));
    lay_out(&l);
    memcpy(bytes, l.head, l.head_bytes);
    *out = (struct span){bytes, (size_t)l.file_bytes};
    return NULL;
}
