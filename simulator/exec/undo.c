// SPDX-License-Identifier: Apache-2.0
// Keeping and putting back what a rehearsal overwrites.
#include "simulator/exec/undo.h"

#include <string.h>

#include "runtime/base/alloc.h"

void undo_deinit(struct undo *u) {
    base_free(u->item);
    base_free(u->saved);
    *u = (struct undo){0};
}

static bool room(struct undo *u, int64_t bytes) {
    if (u->n == u->cap) {
        const uint64_t cap = u->cap ? u->cap * 2 : 256;
        struct undo_item *grown = base_realloc(u->item, cap * sizeof *grown);
        if (!grown) return false;
        u->item = grown;
        u->cap = cap;
    }
    if (u->saved_cap - u->nsaved >= bytes) return true;
    const int64_t twice = u->saved_cap * 2, least = u->nsaved + bytes,
                  cap = twice > least ? twice : least;
    uint8_t *grown = base_realloc(u->saved, (size_t)cap);
    if (!grown) return false;
    u->saved = grown;
    u->saved_cap = cap;
    return true;
}

static bool save_run(struct undo *u, const struct exec_dram *d, int64_t lo, int64_t bytes) {
    struct exec_dram_at at;
    if (!exec_dram_find(d, lo, lo + bytes, &at) || !at.bytes) return true; // a fault by itself
    const bool unwritten = bits_first_clear(at.written, at.offset, at.offset + bytes) >= 0;
    if (!room(u, unwritten ? 2 * bytes : bytes)) return false;
    u->item[u->n++] = (struct undo_item){lo, bytes, u->nsaved, unwritten};
    memcpy(u->saved + u->nsaved, at.bytes, (size_t)bytes);
    u->nsaved += bytes;
    for (int64_t i = 0; unwritten && i < bytes; i++)
        u->saved[u->nsaved++] = bits_first_clear(at.written, at.offset + i, at.offset + i + 1) < 0;
    return true;
}

bool undo_save(struct undo *u, const struct exec_dram *d, int64_t base, const struct exec_foot *f) {
    struct exec_foot_walk w;
    foot_first(f, &w);
    do {
        if (!save_run(u, d, base + w.lo, w.hi - w.lo)) return false;
    } while (foot_next(f, &w));
    return true;
}

void undo_restore(struct undo *u, struct exec_dram *d) {
    struct exec_dram_at at;
    while (u->n > 0) {
        const struct undo_item *i = &u->item[--u->n];
        if (!exec_dram_find(d, i->address, i->address + i->bytes, &at) || !at.bytes) continue;
        memcpy(at.bytes, u->saved + i->at, (size_t)i->bytes);
        const uint8_t *written = u->saved + i->at + i->bytes;
        for (int64_t k = 0; i->unwritten && k < i->bytes; k++)
            if (!written[k]) bits_clear(at.written, at.offset + k, at.offset + k + 1);
    }
    u->nsaved = 0;
}
