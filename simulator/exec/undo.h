// SPDX-License-Identifier: Apache-2.0
// What a run overwrites in DRAM, so that it can be put back: bytes, and which of them were written.
#ifndef NPU_SIMULATOR_EXEC_UNDO_H
#define NPU_SIMULATOR_EXEC_UNDO_H

#include <stdbool.h>
#include <stdint.h>

#include "simulator/exec/dram.h"
#include "simulator/exec/foot.h"

struct undo_item {
    int64_t address, bytes; // device address
    int64_t at;             // of the saved bytes in `saved`
    bool unwritten;         // some were: one byte each follows the saved ones, 1: written
};

// Zero-initialised is empty.
struct undo {
    struct undo_item *item; // owned
    uint64_t n, cap;
    uint8_t *saved; // owned
    int64_t nsaved, saved_cap;
};

void undo_deinit(struct undo *u);

// Keeps a footprint that is about to be written; `base` is the device address of its 0. False: out
// of memory.
bool undo_save(struct undo *u, const struct exec_dram *d, int64_t base, const struct exec_foot *f);

// Puts everything back, the newest first; empty afterwards.
void undo_restore(struct undo *u, struct exec_dram *d);

#endif
