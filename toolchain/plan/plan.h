// SPDX-License-Identifier: Apache-2.0
// Addresses: scratchpad and PSUM slots, DRAM segments, from live ranges over the order of
// operations.
#ifndef NPU_PLAN_PLAN_H
#define NPU_PLAN_PLAN_H

#include "runtime/base/status.h"
#include "toolchain/tile/tile.h"

struct plan_options {
    bool reuse; // DRAM scratch of values that are dead is used again
};

// On-chip buffers: fills addr[] of every slot and p's peak and bound. NO_FIT when some moment needs
// more than the machine has: the message names the moment (kernel, step), the live buffers and the
// excess in bytes.
NPU_MUST_USE npu_status plan_onchip(struct tile_program *p);

// DRAM buffers: weights, states, inputs, outputs, scratch, each segment 64-byte aligned from
// address 0; fills addr[0], dram_bytes and the scratch peak and bound. NO_FIT when the machine's
// DRAM is smaller.
NPU_MUST_USE npu_status plan_dram(struct tile_program *p, const struct plan_options *options);

// Where segments begin, after plan_dram.
struct plan_segment {
    enum tile_kind kind;
    int64_t offset, bytes;
};
#define PLAN_SEGMENTS 5
int plan_segments(const struct tile_program *p, struct plan_segment out[PLAN_SEGMENTS]);

#endif
