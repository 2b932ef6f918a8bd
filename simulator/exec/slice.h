// SPDX-License-Identifier: Apache-2.0
// Which instructions must compute values when nobody asked for results: those whose output reaches,
// through memory, an address, a size or a branch (an LDS, or the indices of a gather). Found by
// running the program until the set is stable.
#ifndef NPU_SIMULATOR_EXEC_SLICE_H
#define NPU_SIMULATOR_EXEC_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "simulator/exec/dram.h"
#include "simulator/exec/foot.h"
#include "simulator/exec/race.h"

// Bytes of DRAM before a pass changed them. Discovering passes leave the written maps of DRAM
// alone.
struct slice_undo {
    int64_t address, bytes; // device address
    int64_t at;             // of the saved bytes in `saved`
};

struct slice {
    bool on;         // only the set computes; off: everything does
    uint8_t *needed; // owned, per granule of the code
    uint32_t ngranule;
    bool grew;               // in this pass
    struct slice_undo *undo; // owned
    uint32_t nundo, undo_cap;
    uint8_t *saved; // owned
    int64_t nsaved, saved_cap;
};

// Starts with an empty set over a code of that size. false: out of memory.
bool slice_init(struct slice *s, uint32_t ngranule);
void slice_deinit(struct slice *s);

// Whether the instruction at a granule computes.
bool slice_computes(const struct slice *s, uint32_t granule);

// Bytes are used as a value: everything that wrote them so far belongs to the set.
void slice_use(struct slice *s, const struct race *r, int space, const struct exec_foot *f);

// Keeps what a discovering pass is about to overwrite, and puts it back. false: out of memory.
bool slice_save(struct slice *s, const struct exec_dram *d, int64_t base,
                const struct exec_foot *f);
void slice_restore(struct slice *s, struct exec_dram *d);

#endif
