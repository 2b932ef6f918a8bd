// SPDX-License-Identifier: Apache-2.0
//
// Reading a .npu from bytes that nobody vouches for. Header and table are checked first (magic,
// version, checksums, ranges, order, zero padding), then each known section is checked against its
// checksum, inflated to exactly its stated size, and parsed; at the end container_check looks at
// the image as a whole. No size is believed before it is compared with the bytes that are there:
// deflate cannot grow data more than 1032 times, so a larger claim is refused before anything is
// allocated.

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "runtime/container_internal.h"

enum { DEFLATE_MAX_RATIO = 1032 };

// ---- header and table
// ------------------------------------------------------------------------------

static npu_status read_header(struct span file, const char *where, size_t *count) {
    const uint8_t *h = file.data;
    if (file.size < CONTAINER_MAGIC_BYTES || memcmp(h, container_magic, CONTAINER_MAGIC_BYTES) != 0)
        return npu_fail(BAD_INPUT, "%s: not a .npu program (it starts with other bytes)", where);
    if (file.size < CONTAINER_HEADER_BYTES)
        return npu_fail(BAD_INPUT, "%s: %zu bytes, shorter than the header of a .npu program",
                        where, file.size);
    uint32_t crc = container_crc(0, (struct span){h, 28}), stated = container_get_u32(h + 28);
    // A newer version may have another header: say that rather than "checksum".
    unsigned major = container_get_u16(h + 8), minor = container_get_u16(h + 10);
#define CONTAINER_VERSION(known, unused)                                                       \
    if (major != (known))                                                                      \
        return npu_fail(BAD_INPUT, "%s: format version %u.%u, this program reads %d.x", where, \
                        major, minor, known);
#include "isa/container.def"
    if (crc != stated)
        return npu_fail(BAD_INPUT, "%s: header: checksum 0x%08" PRIx32 ", expected 0x%08" PRIx32,
                        where, crc, stated);
    uint64_t size = container_get_u64(h + 16);
    if (size != file.size)
        return npu_fail(BAD_INPUT, "%s: %zu bytes, its header says %" PRIu64, where, file.size,
                        size);
    uint32_t sections = container_get_u32(h + 12);
    if (sections == 0 || sections > CONTAINER_MAX_SECTIONS)
        return npu_fail(BAD_INPUT, "%s: %" PRIu32 " sections, expected 1..%d", where, sections,
                        CONTAINER_MAX_SECTIONS);
    size_t table_bytes = (size_t)sections * CONTAINER_ENTRY_BYTES;
    if (table_bytes > file.size - CONTAINER_HEADER_BYTES)
        return npu_fail(BAD_INPUT, "%s: ends inside the section table", where);
    crc = container_crc(0, (struct span){h + CONTAINER_HEADER_BYTES, table_bytes});
    stated = container_get_u32(h + 24);
    if (crc != stated)
        return npu_fail(BAD_INPUT,
                        "%s: section table: checksum 0x%08" PRIx32 ", expected 0x%08" PRIx32, where,
                        crc, stated);
    *count = sections;
    return NULL;
}

// What a section of the table is called in messages.
#define SECTION_FORMAT "%s: section %s (code %" PRIu32 ")"
#define SECTION_ARGS(where, s) (where), (s)->name[0] ? (s)->name : "?", (s)->code

static npu_status check_flags(const struct container_section_info *s, const char *where) {
    const struct container_row *row = container_find_row(s->code);
    if (s->flags & ~(uint32_t)(CONTAINER_FLAG_ZLIB | CONTAINER_FLAG_REQUIRED))
        return npu_fail(BAD_INPUT, SECTION_FORMAT ": unknown flags 0x%" PRIx32,
                        SECTION_ARGS(where, s), s->flags);
    bool zlib = s->flags & CONTAINER_FLAG_ZLIB, required = s->flags & CONTAINER_FLAG_REQUIRED;
    if (!row) {
        if (required)
            return npu_fail(BAD_INPUT, SECTION_FORMAT ": unknown, and the program needs it",
                            SECTION_ARGS(where, s));
        return NULL;
    }
    if (zlib != row->zlib || required != row->required)
        return npu_fail(BAD_INPUT, SECTION_FORMAT ": flags 0x%" PRIx32 " are not those of its kind",
                        SECTION_ARGS(where, s), s->flags);
    if (s->offset % row->alignment != 0)
        return npu_fail(BAD_INPUT, SECTION_FORMAT ": offset %" PRIu64 " is no multiple of %" PRIu32,
                        SECTION_ARGS(where, s), s->offset, row->alignment);
    if (s->raw_bytes > row->limit_bytes)
        return npu_fail(BAD_INPUT, SECTION_FORMAT ": %" PRIu64 " bytes, at most %" PRIu64,
                        SECTION_ARGS(where, s), s->raw_bytes, row->limit_bytes);
    if (!zlib && s->stored_bytes != s->raw_bytes)
        return npu_fail(BAD_INPUT,
                        SECTION_FORMAT ": %" PRIu64 " bytes stored for %" PRIu64
                                       ", though it is not compressed",
                        SECTION_ARGS(where, s), s->stored_bytes, s->raw_bytes);
    if (zlib && s->raw_bytes / DEFLATE_MAX_RATIO > s->stored_bytes)
        return npu_fail(BAD_INPUT,
                        SECTION_FORMAT ": %" PRIu64 " compressed bytes cannot hold %" PRIu64,
                        SECTION_ARGS(where, s), s->stored_bytes, s->raw_bytes);
    return NULL;
}

// Sections stand in ascending order, apart by at most some zero bytes, and the last ends the file.
static npu_status check_place(struct span file, const struct container_section_info *s,
                              const char *where, uint64_t end) {
    if (s->offset < end || s->offset > file.size || s->stored_bytes > file.size - s->offset)
        return npu_fail(BAD_INPUT,
                        SECTION_FORMAT ": %" PRIu64 " bytes at offset %" PRIu64
                                       " overlap what is before, or pass the end of the file",
                        SECTION_ARGS(where, s), s->stored_bytes, s->offset);
    if (s->offset - end > CONTAINER_MAX_PADDING)
        return npu_fail(BAD_INPUT, SECTION_FORMAT ": %" PRIu64 " unused bytes before it",
                        SECTION_ARGS(where, s), s->offset - end);
    for (uint64_t i = end; i < s->offset; i++)
        if (file.data[i] != 0)
            return npu_fail(BAD_INPUT, SECTION_FORMAT ": padding before it is not zero",
                            SECTION_ARGS(where, s));
    return NULL;
}

npu_status container_sections(struct span file, const char *where,
                              struct container_section_info out[CONTAINER_MAX_SECTIONS],
                              size_t *count) {
    *count = 0;
    size_t n;
    NPU_TRY(read_header(file, where, &n));
    uint64_t end = CONTAINER_HEADER_BYTES + (uint64_t)n * CONTAINER_ENTRY_BYTES;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = file.data + CONTAINER_HEADER_BYTES + i * CONTAINER_ENTRY_BYTES;
        struct container_section_info *s = &out[i];
        *s = (struct container_section_info){
            .code = container_get_u32(p),
            .flags = container_get_u32(p + 4),
            .offset = container_get_u64(p + 8),
            .stored_bytes = container_get_u64(p + 16),
            .raw_bytes = container_get_u64(p + 24),
            .crc = container_get_u32(p + 32),
        };
        const struct container_row *row = container_find_row(s->code);
        s->name = row ? row->name : "";
        if (container_get_u32(p + 36) != 0)
            return npu_fail(BAD_INPUT, SECTION_FORMAT ": reserved bytes of its entry are not zero",
                            SECTION_ARGS(where, s));
        NPU_TRY(check_flags(s, where));
        NPU_TRY(check_place(file, s, where, end));
        for (size_t k = 0; k < i; k++)
            if (out[k].code == s->code)
                return npu_fail(BAD_INPUT, SECTION_FORMAT ": occurs twice", SECTION_ARGS(where, s));
        end = s->offset + s->stored_bytes;
    }
    if (end != file.size)
        return npu_fail(BAD_INPUT, "%s: %" PRIu64 " bytes after the last section", where,
                        file.size - end);
    *count = n;
    return NULL;
}

// ---- contents
// --------------------------------------------------------------------------------------

struct reader {
    struct arena *arena;
    struct span file;
    const char *where;
    unsigned flags;
    struct container_section_info sections[CONTAINER_MAX_SECTIONS];
    size_t count;
};

static const struct container_section_info *find_section(const struct reader *r, uint32_t code) {
    for (size_t i = 0; i < r->count; i++)
        if (r->sections[i].code == code) return &r->sections[i];
    return NULL;
}

static npu_status check_crc(const struct reader *r, const struct container_section_info *s) {
    uint32_t crc =
        container_crc(0, (struct span){r->file.data + s->offset, (size_t)s->stored_bytes});
    if (crc == s->crc) return NULL;
    return npu_fail(BAD_INPUT, "%s: section %s: checksum 0x%08" PRIx32 ", expected 0x%08" PRIx32,
                    r->where, s->name, crc, s->crc);
}

// zlib counts input and output in 32 bits: both are handed over in parts. *complete: both are used
// up, and there was nothing wrong with the data.
static npu_status inflate_all(const uint8_t *in, uint64_t in_bytes, uint8_t *out,
                              uint64_t out_bytes, bool *complete) {
    const uint64_t part = 1u << 30;
    z_stream z = {0};
    int rc = inflateInit(&z);
    if (rc != Z_OK) return npu_fail(NO_MEMORY, "cannot start zlib: %s", zError(rc));
    while (rc == Z_OK) {
        if (z.avail_in == 0) {
            z.next_in = (Bytef *)in;
            z.avail_in = (uInt)(in_bytes < part ? in_bytes : part);
            in += z.avail_in;
            in_bytes -= z.avail_in;
        }
        if (z.avail_out == 0) {
            z.next_out = out;
            z.avail_out = (uInt)(out_bytes < part ? out_bytes : part);
            out += z.avail_out;
            out_bytes -= z.avail_out;
        }
        rc = inflate(&z, Z_NO_FLUSH); // Z_BUF_ERROR when it can go no further
    }
    *complete = rc == Z_STREAM_END && z.avail_in == 0 && in_bytes == 0 && z.avail_out == 0 &&
                out_bytes == 0;
    (void)inflateEnd(&z);
    if (rc == Z_MEM_ERROR) return npu_fail(NO_MEMORY, "inflating %" PRIu64 " bytes", out_bytes);
    return NULL;
}

// Bytes of a compressed section, NUL-terminated behind the end. NULL span data when it is not
// there.
static npu_status read_section(const struct reader *r, uint32_t code, struct span *out) {
    *out = (struct span){0};
    const struct container_section_info *s = find_section(r, code);
    if (!s) return NULL;
    NPU_TRY(check_crc(r, s));
    uint8_t *raw = arena_alloc(r->arena, (size_t)s->raw_bytes + 1);
    bool complete;
    NPU_TRY_NOTE(inflate_all(r->file.data + s->offset, s->stored_bytes, raw, s->raw_bytes,
                             &complete),
                 "%s: section %s", r->where, s->name);
    if (!complete)
        return npu_fail(BAD_INPUT,
                        "%s: section %s: its compressed data is damaged or not %" PRIu64 " bytes",
                        r->where, s->name, s->raw_bytes);
    *out = (struct span){raw, (size_t)s->raw_bytes};
    return NULL;
}

static npu_status read_hw(const struct reader *r, struct npu_program_image *image) {
    struct span hw;
    NPU_TRY(read_section(r, CONTAINER_HW, &hw));
    if (hw.size <= CONTAINER_HW_HASH_BYTES)
        return npu_fail(BAD_INPUT, "%s: section HW: %zu bytes, no description", r->where, hw.size);
    image->hw_program_hash = container_get_u64(hw.data);
    image->hw_timing_hash = container_get_u64(hw.data + 8);
    image->hw_yaml = (const char *)hw.data + CONTAINER_HW_HASH_BYTES;
    if (memchr(image->hw_yaml, 0, hw.size - CONTAINER_HW_HASH_BYTES))
        return npu_fail(BAD_INPUT, "%s: section HW: the description contains a zero byte",
                        r->where);
    return NULL;
}

static npu_status read_weights(const struct reader *r, struct npu_program_image *image) {
    const struct container_section_info *s = find_section(r, CONTAINER_WEIGHTS);
    if (!s || s->raw_bytes == 0) return NULL;
    if (!(r->flags & CONTAINER_SKIP_WEIGHTS_CRC)) NPU_TRY(check_crc(r, s));
    struct npu_image_weights *w = ARENA_NEW(r->arena, struct npu_image_weights);
    w->bytes = (struct span){r->file.data + s->offset, (size_t)s->raw_bytes};
    image->weights = w;
    image->nweights = 1;
    return NULL;
}

npu_status container_read(struct arena *a, struct span file, const char *where, unsigned flags,
                          struct npu_program_image **out) {
    *out = NULL;
    struct reader r = {.arena = a, .file = file, .where = where, .flags = flags};
    NPU_TRY(container_sections(file, where, r.sections, &r.count));
    for (size_t i = 0; i < CONTAINER_ROWS; i++)
        if (container_rows[i].required && !find_section(&r, container_rows[i].code))
            return npu_fail(BAD_INPUT, "%s: section %s is missing", where, container_rows[i].name);
    struct npu_program_image *image = ARENA_NEW(a, struct npu_program_image);
    struct span bytes;
    NPU_TRY(read_section(&r, CONTAINER_META, &bytes));
    NPU_TRY_NOTE(container_unpack_meta(a, bytes, image), "%s: section META", where);
    NPU_TRY(read_hw(&r, image));
    NPU_TRY(read_section(&r, CONTAINER_CODE, &image->code));
    NPU_TRY(read_section(&r, CONTAINER_DEBUG, &bytes));
    NPU_TRY_NOTE(container_unpack_debug(a, bytes, image), "%s: section DEBUG", where);
    NPU_TRY(read_section(&r, CONTAINER_RECORD, &bytes));
    if (bytes.data)
        NPU_TRY_NOTE(container_unpack_record(a, bytes, image), "%s: section RECORD", where);
    NPU_TRY(read_weights(&r, image));
    NPU_TRY(container_check(image, where));
    *out = image;
    return NULL;
}

npu_status container_open(struct arena *a, const char *path, unsigned flags,
                          struct npu_program_image **out) {
    *out = NULL;
    struct span file;
    NPU_TRY(file_map_in(a, path, &file));
    return container_read(a, file, path, flags, out);
}
