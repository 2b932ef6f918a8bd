// SPDX-License-Identifier: Apache-2.0
//
// Offsets, bits and codes of mmio.def as constants, and job descriptors and completion records as
// structs with their wire form. Freestanding: host, firmware and simulator share it.
#ifndef ISA_MMIO_H
#define ISA_MMIO_H

#include <stddef.h>
#include <stdint.h>

/// Byte offsets: MMIO_STATUS, MMIO_DOORBELL (first entry), and the sizes of blocks.
enum mmio_offset {
#define MMIO_REG(NAME, offset, host, core, reset, meaning) MMIO_##NAME = (offset),
#define MMIO_BLOCK(NAME, offset, stride, count, host, core, meaning) \
    MMIO_##NAME = (offset), MMIO_##NAME##_STRIDE = (stride), MMIO_##NAME##_COUNT = (count),
#define MMIO_ENGINE(NAME, offset, meaning) MMIO_ENGINE_##NAME = (offset),
#include "isa/mmio.def"
    MMIO_BYTES = 0x500 // of the whole block
};

/// Power-on values: MMIO_RESET_ID.
enum mmio_reset {
#define MMIO_REG(NAME, offset, host, core, reset, meaning) MMIO_RESET_##NAME = (reset),
#include "isa/mmio.def"
};

/// Masks of bits: MMIO_STATUS_BUSY.
enum mmio_bit {
#define MMIO_BIT(REG, NAME, bit, meaning) MMIO_##REG##_##NAME = 1 << (bit),
#include "isa/mmio.def"
};

enum ring_flag {
#define RING_FLAG(NAME, bit, meaning) RING_FLAG_##NAME = 1 << (bit),
#include "isa/mmio.def"
    RING_FLAGS_KNOWN = 0
#define RING_FLAG(NAME, bit, meaning) | 1 << (bit)
#include "isa/mmio.def"
};

enum ring_status {
#define RING_STATUS(NAME, code, meaning) RING_STATUS_##NAME = (code),
#include "isa/mmio.def"
};

enum ring_error {
    RING_ERROR_NONE = 0,
#define RING_ERROR(NAME, code, meaning) RING_ERROR_##NAME = (code),
#include "isa/mmio.def"
};

// Wire forms as structs of bytes: no padding, so offsetof gives the position of a field.
struct ring_desc_wire {
#define RING_DESC(name, bytes, meaning) uint8_t name[bytes];
#define RING_DESC_ARRAY(name, bytes, count, meaning) uint8_t name[(bytes) * (count)];
#include "isa/mmio.def"
};
struct ring_done_wire {
#define RING_DONE(name, bytes, meaning) uint8_t name[bytes];
#include "isa/mmio.def"
};

enum {
    RING_DESC_VERSION = 1,
    RING_DESC_BYTES = sizeof(struct ring_desc_wire),
    RING_DONE_VERSION = 1,
    RING_DONE_BYTES = sizeof(struct ring_done_wire),
    RING_SIZE_MAX = 4096
};

/// A job descriptor; fields as in mmio.def.
struct ring_desc {
#define RING_DESC(name, bytes, meaning) uint64_t name;
#define RING_DESC_ARRAY(name, bytes, count, meaning) uint64_t name[count];
#include "isa/mmio.def"
};

/// A completion record; fields as in mmio.def.
struct ring_done {
#define RING_DONE(name, bytes, meaning) uint64_t name;
#include "isa/mmio.def"
};

/// Little-endian wire form and back. Values are cut to the width of their field.
void ring_desc_encode(const struct ring_desc *d, uint8_t out[RING_DESC_BYTES]);
void ring_desc_decode(const uint8_t in[RING_DESC_BYTES], struct ring_desc *out);
void ring_done_encode(const struct ring_done *d, uint8_t out[RING_DONE_BYTES]);
void ring_done_decode(const uint8_t in[RING_DONE_BYTES], struct ring_done *out);

/// Meaning of a RING_STATUS code for messages; "unknown status" for a code without a row.
const char *ring_status_meaning(uint32_t status);

#endif
