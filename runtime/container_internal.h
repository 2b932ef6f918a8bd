// SPDX-License-Identifier: Apache-2.0
//
// Shared by the files container*.c: the layout of a .npu file's header and section table, and the
// translation between an image and its protobuf messages.
#ifndef RUNTIME_CONTAINER_INTERNAL_H
#define RUNTIME_CONTAINER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/container.h"

enum {
    CONTAINER_MAGIC_BYTES = 8,
    CONTAINER_HEADER_BYTES = 32,
    CONTAINER_ENTRY_BYTES = 40,
    CONTAINER_HW_HASH_BYTES = 16, // before the YAML text of section HW
    CONTAINER_MAX_PADDING = 4095, // zero bytes between two sections
    CONTAINER_FLAG_ZLIB = 1,
    CONTAINER_FLAG_REQUIRED = 2,
};

/// "NPU", then bytes that a transfer in text mode would change.
extern const uint8_t container_magic[CONTAINER_MAGIC_BYTES];

enum { CONTAINER_DRAM_LIMIT_BITS = 48 }; // addresses of a program's DRAM fit these

/// A row of container.def.
struct container_row {
    const char *name;
    uint32_t code;
    bool zlib, required;
    uint32_t alignment; // of the section's offset in the file
    uint64_t limit_bytes;
};

enum container_row_index {
#define CONTAINER_SECTION(NAME, text, code, zlib, required, alignment, limit, meaning) \
    CONTAINER_ROW_##NAME,
#include "isa/container.def"
    CONTAINER_ROWS
};

extern const struct container_row container_rows[CONTAINER_ROWS];

/// Row of a section code; NULL when unknown.
const struct container_row *container_find_row(uint32_t code);

/// Little-endian numbers at any alignment.
uint16_t container_get_u16(const uint8_t *p);
uint32_t container_get_u32(const uint8_t *p);
uint64_t container_get_u64(const uint8_t *p);
void container_put_u16(uint8_t *p, uint16_t value);
void container_put_u32(uint8_t *p, uint32_t value);
void container_put_u64(uint8_t *p, uint64_t value);

/// Serialised sections META and DEBUG of an image, in the arena.
struct span container_pack_meta(const struct npu_program_image *image, struct arena *a);
struct span container_pack_debug(const struct npu_program_image *image, struct arena *a);

/// The same backwards into `image`, everything in the arena; BAD_INPUT without place when the bytes
/// are no such message, or would take far more memory than their size.
NPU_MUST_USE npu_status container_unpack_meta(struct arena *a, struct span bytes,
                                              struct npu_program_image *image);
NPU_MUST_USE npu_status container_unpack_debug(struct arena *a, struct span bytes,
                                               struct npu_program_image *image);

/// Section RECORD of an image that has one; of NULL bytes: the image has none.
struct span container_pack_record(const struct npu_program_image *image, struct arena *a);
NPU_MUST_USE npu_status container_unpack_record(struct arena *a, struct span bytes,
                                                struct npu_program_image *image);

/// The part of container_check about the record; NULL when there is none.
NPU_MUST_USE npu_status container_check_record(const struct npu_program_image *image,
                                               const char *where);

struct ProtobufCMessageDescriptor;

/// Parses bytes as a message whose strings and arrays stay in the arena. BAD_INPUT, as
/// container_unpack_meta.
NPU_MUST_USE npu_status container_unpack_message(struct arena *a, struct span bytes,
                                                 const struct ProtobufCMessageDescriptor *kind,
                                                 void **out);

/// Pointers to `count` new messages of `bytes` each, initialised by `init`.
void *container_new_messages(struct arena *a, size_t bytes, void (*init)(void *), size_t count);

/// Bytes of section WEIGHTS: up to the end of the last chunk.
uint64_t container_weights_bytes(const struct npu_program_image *image);

#endif
