// SPDX-License-Identifier: Apache-2.0
// What layers stored, caught as they stored it: each write of a layer's instructions that falls on
// the place of one of its results is copied at once, so it does not matter who overwrites that
// place afterwards, nor in which order engines run.
#ifndef NPUSIM_SNAPSHOT_H
#define NPUSIM_SNAPSHOT_H

#include "isa/hw.h"
#include "runtime/container.h"
#include "simulator/exec/bits.h"
#include "simulator/exec/exec.h"

struct snapshot {
    const struct npu_image_result *result;
    int64_t lo, hi;        // bytes in the result's memory
    uint8_t *bytes;        // owned, hi - lo
    struct exec_bits seen; // owned: which of them the layer wrote
};

struct snapshots {
    struct snapshot *item; // owned, ascending by first tag
    size_t n;
    uint32_t reach; // largest difference between a result's last tag and its first
};

// One per result of the record, empty. BAD_INPUT when one lies outside the machine's scratchpad,
// NO_MEMORY. Release with snapshots_deinit, also after a failure.
NPU_MUST_USE npu_status snapshots_init(struct snapshots *s, const struct npu_image_record *record,
                                       const struct hw *hw);
void snapshots_deinit(struct snapshots *s);

// An exec_write_sink; ctx is the struct snapshots.
exec_write_sink snapshots_write;

// Elements of the result in row-major order, in its own type, into `out` (room for all of them);
// zeros where the layer wrote nothing. Returns how many elements it did not write, in whole.
uint64_t snapshot_unpack(const struct snapshot *s, void *out);

// Gives the memory of one back; it is empty then.
void snapshot_drop(struct snapshot *s);

#endif
