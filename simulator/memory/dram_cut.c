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

uint64_t dram_cut_run(struct dram_cut *c, const struct dram *d, uint64_t address, uint64_t bytes,
                      uint32_t runs) {
    const uint64_t unit = d->interleave, row_bytes = d->t.row_bytes;
    const uint64_t banks = (uint64_t)d->t.banks, channels = (uint64_t)d->channels;
    uint64_t taken = 0;
    while (taken < bytes) {
        const uint64_t a = address + taken;
        const uint64_t n = divide(a, unit, d->interleave_shift);
        const uint64_t in_unit = a - n * unit;
        const uint64_t round = divide(n, channels, d->channel_shift);
        const uint64_t channel = n - round * channels;
        const uint64_t local = round * unit + in_unit;
        const uint64_t line = divide(local, row_bytes, d->row_shift);
        const uint64_t column = local - line * row_bytes;
        const uint64_t row = divide(line, banks, d->bank_shift);
        uint64_t bank = line - row * banks;
        if (d->bank_shift >= 0) bank ^= row & (banks - 1);

        uint64_t size = bytes - taken;
        if (size > unit - in_unit) size = unit - in_unit;
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
        c->bytes += size;
    }
    return taken;
}
