// SPDX-License-Identifier: Apache-2.0
// The device's external memory: ranges that somebody allocated, each with lazily filled zero pages
// and a map of written bytes, and constants that lie in host memory and are used in place, read
// only. Addresses are the device's own.
#ifndef NPU_SIMULATOR_EXEC_DRAM_H
#define NPU_SIMULATOR_EXEC_DRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "simulator/exec/bits.h"

// Constants mapped over a part of a range.
struct exec_dram_map {
    int64_t lo, hi;
    const uint8_t *bytes; // lent
};

struct exec_dram_range {
    int64_t lo, hi;
    uint8_t *pages;            // owned, hi - lo bytes
    struct exec_bits written;  // relative to lo
    struct exec_dram_map *map; // owned, ascending, nmap of them
    int nmap;
};

struct exec_dram {
    struct exec_dram_range *range; // owned, ascending
    int nrange, cap;
    uint64_t version; // of the constants: another one after each that was mapped or removed
};

// Where an access lies in host memory.
struct exec_dram_at {
    uint8_t *bytes;             // NULL: constants
    const uint8_t *const_bytes; // the same, or the constants
    struct exec_bits *written;  // NULL: constants, always written
    int64_t offset;             // of the access in *written
};

void exec_dram_init(struct exec_dram *d);
void exec_dram_deinit(struct exec_dram *d);

// Adds a range that no other overlaps, unwritten. NO_MEMORY.
NPU_MUST_USE npu_status exec_dram_add(struct exec_dram *d, int64_t address, int64_t bytes);
void exec_dram_remove(struct exec_dram *d, int64_t address); // unknown: ignored

// Shows host bytes at an address inside a range, instead of the range's own. BAD_INPUT when it does
// not lie in one range or meets another map; NO_MEMORY.
NPU_MUST_USE npu_status exec_dram_map(struct exec_dram *d, int64_t address, struct span bytes);

// Finds [lo, hi); false when it is not inside one range, or lies across the edge of mapped
// constants.
bool exec_dram_find(const struct exec_dram *d, int64_t lo, int64_t hi, struct exec_dram_at *at);

// The host's own accesses. BAD_INPUT out of range, or writing constants. Reading what nobody wrote
// gives zeros.
NPU_MUST_USE npu_status exec_dram_write(struct exec_dram *d, int64_t address, struct span bytes);
NPU_MUST_USE npu_status exec_dram_read(const struct exec_dram *d, int64_t address, void *out,
                                       int64_t bytes);

// First byte of [lo, hi) that nobody wrote, -1: none, or not in one range.
int64_t exec_dram_first_unwritten(const struct exec_dram *d, int64_t lo, int64_t hi);

// Makes bytes unwritten and zero; mapped constants inside stay.
NPU_MUST_USE npu_status exec_dram_discard(struct exec_dram *d, int64_t address, int64_t bytes);

#endif
