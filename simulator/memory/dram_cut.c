// SPDX-License-Identifier: Apache-2.0
//
// Cuts runs of addresses into pieces of one row each. Consecutive interleave units go to different
// channels, so each channel keeps its last piece open and adds to it as long as row and size allow:
// a long run becomes one piece per channel, and short runs that share a row become one piece too.
#include "runtime/base/alloc.h"
#include "simulator/memory/dram_model.h"

bool dram_cut_init(struct dram_cut *c, const struct dram *d, int capacity, uint32_t quantum_bytes) {
    *c = (struct dram_cut){.capacity = capacity};
    const uint32_t most = dram_quantum_bytes(d);
    c->quantum_bytes = quantum_bytes < most ? quantum_bytes : most;
    c->piece = base_alloc_array((size_t)capacity, sizeof *c->piece);
    c->open = base_alloc_array((size_t)d->channels, sizeof *c->open);
    if (!c->piece || !c->open) {
        dram_cut_deinit(c);
        return false;
    }
    dram_cut_clear(c, d);
    return true;
}

void dram_cut_deinit(struct dram_cut *c) {
    base_free(c->piece);
    base_free(c->open);
    *c = (struct dram_cut){0};
}

void dram_cut_clear(struct dram_cut *c, const struct dram *d) {
    for (int i = 0; i < d->channels; i++)
        c->open[i] = -1;
    c->count = 0;
    c->bytes = 0;
}

static uint64_t divide(uint64_t a, uint64_t b, int shift) {
    return shift >= 0 ? a >> shift : a / b;
}

// Adds `size` bytes of a channel from its own address `local` on; returns the bytes taken.
static uint64_t add_local(struct dram_cut *c, const struct dram *d, uint64_t channel,
                          uint64_t local, uint64_t bytes, uint32_t runs) {
    const uint64_t row_bytes = d->t.row_bytes, banks = (uint64_t)d->t.banks;
    uint64_t taken = 0;
    while (taken < bytes) {
        const uint64_t line = divide(local + taken, row_bytes, d->row_shift);
        const uint64_t column = local + taken - line * row_bytes;
        const uint64_t row = divide(line, banks, d->bank_shift);
        uint64_t bank = line - row * banks, size = bytes - taken;
        if (d->bank_shift >= 0) bank ^= row & (banks - 1);
        if (size > row_bytes - column) size = row_bytes - column;

        struct dram_piece *p = c->open[channel] >= 0 ? &c->piece[c->open[channel]] : NULL;
        if (p && p->row == (int32_t)row && p->bank == bank && p->bytes < c->quantum_bytes) {
            if (size > c->quantum_bytes - p->bytes) size = c->quantum_bytes - p->bytes;
            if (p->column != UINT32_MAX && p->column + p->bytes != column) p->column = UINT32_MAX;
        } else {
            if (c->count == c->capacity) break;
            if (size > c->quantum_bytes) size = c->quantum_bytes;
            c->open[channel] = (int16_t)c->count;
            p = &c->piece[c->count++];
            *p = (struct dram_piece){
                .row = (int32_t)row,
                .channel = (uint16_t)channel,
                .bank = (uint16_t)bank,
                .column = (uint32_t)column,
            };
        }
        p->bytes += (uint32_t)size;
        p->runs += runs;
        runs = 0;
        taken += size;
    }
    c->bytes += taken;
    return taken;
}

// A run that comes back to its first channel: what each channel gets of it lies together there.
// Needs room for every piece.
static void long_run(struct dram_cut *c, const struct dram *d, uint64_t address, uint64_t bytes,
                     uint64_t first, uint64_t last, uint32_t runs) {
    const uint64_t unit = d->interleave, channels = (uint64_t)d->channels, end = address + bytes;
    uint64_t round = divide(first, channels, d->channel_shift);
    uint64_t channel = first - round * channels;
    for (uint64_t n = first; n < first + channels; n++) {
        const uint64_t more = divide(last - n, channels, d->channel_shift);
        const uint64_t skip = n == first ? address - n * unit : 0;
        const uint64_t cut = n + more * channels == last ? (last + 1) * unit - end : 0;
        add_local(c, d, channel, round * unit + skip, (more + 1) * unit - skip - cut,
                  n == first ? runs : 0);
        if (++channel == channels) {
            channel = 0;
            round++;
        }
    }
}

uint64_t dram_cut_run(struct dram_cut *c, const struct dram *d, uint64_t address, uint64_t bytes,
                      uint32_t runs) {
    const uint64_t unit = d->interleave, channels = (uint64_t)d->channels;
    const uint64_t first = divide(address, unit, d->interleave_shift);
    const uint64_t last = divide(address + bytes - 1, unit, d->interleave_shift);
    // Per channel at most one piece is not full and one ends with a row, for each row that it
    // touches.
    const uint64_t most =
        bytes / c->quantum_bytes + channels * (2 + bytes / channels / d->t.row_bytes);
    if (last - first >= channels && most <= (uint64_t)(c->capacity - c->count)) {
        long_run(c, d, address, bytes, first, last, runs);
        return bytes;
    }
    uint64_t taken = 0;
    for (uint64_t n = first; taken < bytes; n++) {
        const uint64_t in_unit = address + taken - n * unit;
        const uint64_t round = divide(n, channels, d->channel_shift);
        uint64_t size = bytes - taken;
        if (size > unit - in_unit) size = unit - in_unit;
        const uint64_t got =
            add_local(c, d, n - round * channels, round * unit + in_unit, size, taken ? 0 : runs);
        taken += got;
        if (got < size) break;
    }
    return taken;
}
