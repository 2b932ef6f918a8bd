// SPDX-License-Identifier: Apache-2.0
//
// Wire form of descriptors and completion records: one line per row of mmio.def, and the rules that
// the rows have to keep as static assertions below.

#include "isa/mmio.h"

static void store(uint8_t *out, unsigned bytes, uint64_t value) {
    for (unsigned i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t load(const uint8_t *in, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)in[i] << (8 * i);
    return value;
}

void ring_desc_encode(const struct ring_desc *d, uint8_t out[RING_DESC_BYTES]) {
#define RING_DESC(name, bytes, meaning) \
    store(out + offsetof(struct ring_desc_wire, name), (bytes), d->name);
#define RING_DESC_ARRAY(name, bytes, count, meaning) \
    for (unsigned i = 0; i < (count); i++)           \
        store(out + offsetof(struct ring_desc_wire, name) + i * (bytes), (bytes), d->name[i]);
#include "isa/mmio.def"
}

void ring_desc_decode(const uint8_t in[RING_DESC_BYTES], struct ring_desc *out) {
#define RING_DESC(name, bytes, meaning) \
    out->name = load(in + offsetof(struct ring_desc_wire, name), (bytes));
#define RING_DESC_ARRAY(name, bytes, count, meaning) \
    for (unsigned i = 0; i < (count); i++)           \
        out->name[i] = load(in + offsetof(struct ring_desc_wire, name) + i * (bytes), (bytes));
#include "isa/mmio.def"
}

void ring_done_encode(const struct ring_done *d, uint8_t out[RING_DONE_BYTES]) {
#define RING_DONE(name, bytes, meaning) \
    store(out + offsetof(struct ring_done_wire, name), (bytes), d->name);
#include "isa/mmio.def"
}

void ring_done_decode(const uint8_t in[RING_DONE_BYTES], struct ring_done *out) {
#define RING_DONE(name, bytes, meaning) \
    out->name = load(in + offsetof(struct ring_done_wire, name), (bytes));
#include "isa/mmio.def"
}

const char *ring_status_meaning(uint32_t status) {
#define RING_STATUS(NAME, code, meaning) \
    if (status == (code)) return meaning;
#include "isa/mmio.def"
    return "unknown status";
}

// Sizes are part of the contract.
_Static_assert(RING_DESC_BYTES == 192, "a descriptor is three 64-byte lines");
_Static_assert(RING_DONE_BYTES == 64,
               "a completion record is one 64-byte line, so rings never share one");
_Static_assert(offsetof(struct ring_done_wire, sequence) == RING_DONE_BYTES - 4,
               "the word that is written last is the last word");

// Every field is aligned to its own size.
#define RING_DESC(name, bytes, meaning) \
    _Static_assert(offsetof(struct ring_desc_wire, name) % (bytes) == 0, #name " is not aligned");
#define RING_DESC_ARRAY(name, bytes, count, meaning) RING_DESC(name, bytes, meaning)
#include "isa/mmio.def"

// Registers are words inside the block.
#define MMIO_REG(NAME, offset, host, core, reset, meaning) \
    _Static_assert((offset) % 4 == 0 && (offset) < MMIO_DOORBELL, #NAME " is misplaced");
#define MMIO_BLOCK(NAME, offset, stride, count, host, core, meaning)                 \
    _Static_assert((offset) % 8 == 0 && (offset) + (stride) * (count) <= MMIO_BYTES, \
                   #NAME " is misplaced");
#define MMIO_ENGINE(NAME, offset, meaning) \
    _Static_assert((offset) + 4 <= MMIO_ENGINE_STRIDE, #NAME " is misplaced");
#include "isa/mmio.def"
