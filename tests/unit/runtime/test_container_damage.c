// SPDX-License-Identifier: Apache-2.0
//
// Damaged files: every truncation, every flipped byte, and wrong contents under right checksums are
// refused as bad input, never with a crash.

#include <criterion/criterion.h>
#include <string.h>
#include <zlib.h>

#include "runtime/container_internal.h"
#include "tests/unit/runtime/sample_image.h"

static uint8_t *copy_of(struct arena *a, struct span bytes) {
    return arena_copy(a, bytes.data, bytes.size);
}

// Reads what must be refused; the message must contain `text`.
static void refused(const uint8_t *bytes, size_t size, const char *text) {
    struct arena *a = arena_new();
    struct npu_program_image *image;
    uint8_t *exact = arena_copy(a, bytes, size); // so that a read beyond the end is seen
    expect_failure(container_read(a, (struct span){exact, size}, "t.npu", 0, &image), NPU_BAD_INPUT,
                   text);
    cr_expect_null(image);
    arena_free(a);
}

// Recomputes the checksums of table and header.
static void seal(uint8_t *file) {
    size_t table = container_get_u32(file + 12) * (size_t)CONTAINER_ENTRY_BYTES;
    container_put_u32(file + 24,
                      container_crc(0, (struct span){file + CONTAINER_HEADER_BYTES, table}));
    container_put_u32(file + 28, container_crc(0, (struct span){file, 28}));
}

static uint8_t *entry_of(uint8_t *file, size_t index) {
    return file + CONTAINER_HEADER_BYTES + index * CONTAINER_ENTRY_BYTES;
}

Test(container_damage, every_truncation) {
    struct arena *a = arena_new();
    struct span file = sample_bytes(a);
    for (size_t size = 0; size < file.size; size++)
        refused(file.data, size, size < 8 ? "not a .npu program" : "t.npu: ");
    arena_free(a);
}

Test(container_damage, every_flipped_byte) {
    struct arena *a = arena_new();
    struct span file = sample_bytes(a);
    uint8_t *bytes = copy_of(a, file);
    for (size_t i = 0; i < file.size; i++) {
        for (int bit = 0; bit < 8; bit += 7) {
            bytes[i] ^= (uint8_t)(1 << bit);
            refused(bytes, file.size, "t.npu: ");
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    arena_free(a);
}

Test(container_damage, appended_bytes) {
    struct arena *a = arena_new();
    struct span file = sample_bytes(a);
    uint8_t *bytes = arena_alloc(a, file.size + 8);
    memcpy(bytes, file.data, file.size);
    refused(bytes, file.size + 8, "its header says");
    container_put_u64(bytes + 16, file.size + 8);
    seal(bytes);
    refused(bytes, file.size + 8, "8 bytes after the last section");
    arena_free(a);
}

Test(container_damage, checksum_is_reported_with_the_section) {
    struct arena *a = arena_new();
    struct span file = sample_bytes(a);
    uint8_t *bytes = copy_of(a, file);
    bytes[file.size - 1] ^= 1; // the last byte of the constants
    refused(bytes, file.size, "t.npu: section WEIGHTS: checksum 0x");
    struct npu_program_image *image;
    expect_ok(container_read(a, (struct span){bytes, file.size}, "t.npu",
                             CONTAINER_SKIP_WEIGHTS_CRC, &image));
    arena_free(a);
}

Test(container_damage, versions) {
    struct arena *a = arena_new();
    struct span file = sample_bytes(a);
    uint8_t *bytes = copy_of(a, file);
    container_put_u16(bytes + 8, 2);
    refused(bytes, file.size, "format version 2.2, this program reads 1.x");
    container_put_u16(bytes + 8, 1);
    container_put_u16(bytes + 10, 9); // a later minor version is read
    seal(bytes);
    struct npu_program_image *image;
    expect_ok(container_read(a, (struct span){bytes, file.size}, "t.npu", 0, &image));
    arena_free(a);
}

// Puts one number into a table entry (position, width 4 or 8), reseals and expects a refusal.
static void refused_entry(size_t index, size_t position, int width, uint64_t value,
                          const char *text) {
    struct arena *a = arena_new();
    struct span file = sample_bytes(a);
    uint8_t *bytes = copy_of(a, file), *at = entry_of(bytes, index) + position;
    if (width == 4) {
        container_put_u32(at, (uint32_t)value);
    } else {
        container_put_u64(at, value);
    }
    seal(bytes);
    refused(bytes, file.size, text);
    arena_free(a);
}

Test(container_damage, table_entries) {
    refused_entry(3, 0, 4, 1, "section META (code 1): flags"); // DEBUG named META: not required
    refused_entry(0, 0, 4, 99, "section ? (code 99): unknown, and the program needs it");
    refused_entry(0, 4, 4, 7, "unknown flags 0x7");
    refused_entry(0, 4, 4, 1, "flags 0x1 are not those of its kind");
    refused_entry(4, 4, 4, 1, "section WEIGHTS (code 5): flags 0x1");
    refused_entry(1, 8, 8, 1, "is no multiple of 8");
    refused_entry(1, 8, 8, 8, "overlap what is before");
    refused_entry(4, 8, 8, UINT64_MAX - 63, "pass the end of the file");
    refused_entry(0, 16, 8, UINT64_MAX, "pass the end of the file");
    refused_entry(4, 16, 8, 100, "100 bytes stored for 200");
    refused_entry(2, 24, 8, UINT64_C(1) << 40, "at most 4294967296");
    refused_entry(2, 24, 8, 1 << 20, "compressed bytes cannot hold 1048576");
    refused_entry(2, 24, 8, 80, "compressed data is damaged or not 80");
    refused_entry(2, 24, 8, 32, "compressed data is damaged or not 32");
    refused_entry(0, 36, 4, 1, "reserved bytes");
}

Test(container_damage, header_counts) {
    struct arena *a = arena_new();
    struct span file = sample_bytes(a);
    uint8_t *bytes = copy_of(a, file);
    const uint32_t counts[] = {0, 65, UINT32_MAX, 64};
    for (size_t i = 0; i < 4; i++) {
        container_put_u32(bytes + 12, counts[i]);
        container_put_u32(bytes + 28, container_crc(0, (struct span){bytes, 28}));
        refused(bytes, file.size,
                i < 3 ? "sections, expected 1..64" : "ends inside the section table");
    }
    arena_free(a);
}

// The sample's file with the raw bytes of section `code` replaced, and everything else right. Raw
// bytes without data leave the section out; `extra` flags are put on an additional empty section
// 1000.
static struct span rebuilt(struct arena *a, uint32_t code, struct span raw, bool with_extra) {
    enum { ALIGNMENT = 64, ROOM = 1 << 20 };
    struct span file = sample_bytes(a);
    struct container_section_info s[CONTAINER_MAX_SECTIONS];
    size_t count, kept = 0;
    expect_ok(container_sections(file, "t", s, &count));
    uint8_t *bytes = arena_alloc(a, ROOM);
    size_t total = count + with_extra - (raw.data == NULL);
    size_t end = CONTAINER_HEADER_BYTES + total * CONTAINER_ENTRY_BYTES;
    for (size_t i = 0; i < count + with_extra; i++) {
        uint8_t *e = entry_of(bytes, kept);
        bool replaced = i < count && s[i].code == code;
        if (replaced && !raw.data) continue;
        kept++;
        end = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        uLongf stored = i < count ? (uLongf)s[i].stored_bytes : 0;
        if (replaced) {
            stored = ROOM - end;
            cr_assert_eq(compress2(bytes + end, &stored, raw.data, (uLong)raw.size, 6), Z_OK);
        } else if (i < count) {
            memcpy(bytes + end, file.data + s[i].offset, stored);
        }
        container_put_u32(e, i < count ? s[i].code : 1000);
        container_put_u32(e + 4, i < count ? s[i].flags : 0);
        container_put_u64(e + 8, end);
        container_put_u64(e + 16, stored);
        container_put_u64(e + 24, replaced ? raw.size : i < count ? s[i].raw_bytes : 0);
        container_put_u32(e + 32, container_crc(0, (struct span){bytes + end, stored}));
        end += stored;
    }
    memcpy(bytes, file.data, CONTAINER_HEADER_BYTES);
    container_put_u32(bytes + 12, (uint32_t)total);
    container_put_u64(bytes + 16, end);
    seal(bytes);
    return (struct span){bytes, end};
}

// The file with one section replaced must be refused with `text`.
static void refused_section(uint32_t code, const void *raw, size_t size, const char *text) {
    struct arena *a = arena_new();
    struct span file = rebuilt(a, code, (struct span){raw, size}, false);
    refused(file.data, file.size, text);
    arena_free(a);
}

Test(container_damage, sections_missing) {
    refused_section(CONTAINER_META, NULL, 0, "section META is missing");
    refused_section(CONTAINER_HW, NULL, 0, "section HW is missing");
    refused_section(CONTAINER_CODE, NULL, 0, "section CODE is missing");
    refused_section(CONTAINER_WEIGHTS, NULL, 0, "section WEIGHTS, which has 0");
}

Test(container_damage, optional_sections) {
    struct arena *a = arena_new();
    struct npu_program_image *image;
    expect_ok(
        container_read(a, rebuilt(a, CONTAINER_DEBUG, (struct span){0}, true), "t.npu", 0, &image));
    cr_assert_not_null(image);
    cr_expect_eq(image->ntags, 0);
    cr_expect_eq(image->ntensors, 5);
    arena_free(a);
}

Test(container_damage, wrong_contents_under_right_checksums) {
    static const char hw[] = "0123456789abcdefx: 1\0y: 2";
    refused_section(CONTAINER_HW, hw, sizeof hw - 1,
                    "section HW: the description contains a zero byte");
    refused_section(CONTAINER_HW, hw, 16, "section HW: 16 bytes, no description");
    refused_section(CONTAINER_CODE, hw, 15, "15 bytes of code");
    refused_section(CONTAINER_CODE, hw, 16, "expected all of its 16 bytes");
    refused_section(CONTAINER_META, hw, 16, "not a npu.Meta message");
    refused_section(CONTAINER_META, "", 0, "no entry point");
    refused_section(CONTAINER_DEBUG, hw, 16, "not a npu.Debug message");
}

static void meta_refused(struct span raw, const char *text) {
    struct arena *a = arena_new();
    struct npu_program_image image = {0};
    expect_failure(container_unpack_meta(a, raw, &image), NPU_BAD_INPUT, text);
    arena_free(a);
}

Test(container_damage, metadata_that_is_no_message) {
    static const uint8_t wrong_wire[] = {0x0b, 0x01, 0x0c};
    static const uint8_t cut[] = {0x0a, 0x20, 'a'};
    static const uint8_t many_dims[] = {0x2a, 0x0d, 0x0a, 0x00, 0x22, 0x09, 1, 1,
                                        1,    1,    1,    1,    1,    1,    1};
    meta_refused((struct span){wrong_wire, sizeof wrong_wire}, "not a npu.Meta message");
    meta_refused((struct span){cut, sizeof cut}, "not a npu.Meta message");
    meta_refused((struct span){many_dims, sizeof many_dims}, "rank 9, at most 8");
}

Test(container_damage, metadata_that_asks_for_much_memory) {
    struct arena *a = arena_new();
    size_t size = 8 << 20;
    uint8_t *raw = arena_alloc(a, size);
    for (size_t i = 0; i < size; i += 2) // empty Launches would be 100 times as large
        raw[i] = 0x2a;
    meta_refused((struct span){raw, size}, "hold too many items");
    arena_free(a);
}

Test(container_damage, every_byte_of_the_metadata) {
    struct arena *a = arena_new();
    struct sample *s = sample_new(a);
    struct span meta = container_pack_meta(&s->image, a),
                debug = container_pack_debug(&s->image, a);
    uint8_t *m = copy_of(a, meta), *d = copy_of(a, debug);
    // Any outcome is right as long as nothing crashes and what is accepted can be checked.
    for (size_t i = 0; i < meta.size + debug.size; i++) {
        uint8_t *at = i < meta.size ? &m[i] : &d[i - meta.size];
        for (int bit = 0; bit < 8; bit++) {
            struct arena *scratch = arena_new();
            struct npu_program_image image = s->image;
            *at ^= (uint8_t)(1 << bit);
            npu_status st = container_unpack_meta(scratch, (struct span){m, meta.size}, &image);
            if (!st) st = container_unpack_debug(scratch, (struct span){d, debug.size}, &image);
            if (!st) st = container_check(&image, "t");
            npu_status_free(st);
            *at ^= (uint8_t)(1 << bit);
            arena_free(scratch);
        }
    }
    arena_free(a);
}
