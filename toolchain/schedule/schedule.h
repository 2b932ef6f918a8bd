// SPDX-License-Identifier: Apache-2.0
// Order of operations, DMA queues, and semaphores.
//
//   schedule_split   cuts large loads into parts for several DMA engines
//   schedule_order   moves loads ahead of earlier steps' work, without breaking a dependence
//   schedule_queues  gives each DMA operation an engine
//   schedule_sync    turns dependences between engines into waits and signals; needs final
//   addresses
#ifndef NPU_SCHEDULE_SCHEDULE_H
#define NPU_SCHEDULE_SCHEDULE_H

#include "runtime/base/status.h"
#include "toolchain/tile/tile.h"

struct schedule_options {
    bool prefetch;       // move loads ahead inside a kernel
    bool across_kernels; // and over the border to the kernel before, where both kernels' buffers
                         // fit together
    int ahead_percent;   // of the scratchpad that buffers loaded ahead may fill; 0: 85
};

// Replaces p->ops.
void schedule_split(struct tile_program *p);

// Reorders p->ops in place.
void schedule_order(struct tile_program *p, const struct schedule_options *options);

// Chooses the DMA engine of every load and store: the same for the same place in each step, so that
// loops can be rolled.
void schedule_queues(struct tile_program *p);

// Adds waits, signals, fences and SYNC operations so that every dependence between operations (by
// final addresses) holds on engines that only keep their own order. Uses credits only: every wait
// takes one count of a semaphore that belongs to one pair of engines and one epoch (operands read,
// or complete). UNSUPPORTED when the machine has too few semaphores.
NPU_MUST_USE npu_status schedule_sync(struct tile_program *p);

// Cycles of a run, estimated from the final list; deterministic. For comparing schedules.
double schedule_estimate(const struct tile_program *p);

#endif
