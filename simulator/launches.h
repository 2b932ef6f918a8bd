// SPDX-License-Identifier: Apache-2.0
//
// The launches of an eager run on the simulated device: when each starts, and what it takes to time
// all of them again.
#ifndef SIMULATOR_LAUNCHES_H
#define SIMULATOR_LAUNCHES_H

#include "simulator/core/core.h"
#include "simulator/line.h"

struct sim_repeat;

/// A launch that ran.
struct sim_launch {
    struct units_program *program; ///< owned: its records; NULL: they were not kept
    int op_class;
    uint32_t views;
    uint64_t cycles;
};

/// Zero-initialised is empty: no launch has run.
struct sim_launches {
    struct sim_launch *launch; ///< owned
    size_t count, capacity;
    uint32_t views; ///< calls at the end that launch nothing
    struct sim_line line;
};

void sim_launches_deinit(struct sim_launches *s);

/// Launch number `launch` of an entry point is about to run; 0 forgets the run before. *gap: cycles
/// that the device waits for the host. BAD_INPUT as of sim_line_class, NO_MEMORY.
NPU_MUST_USE npu_status sim_launches_next(struct sim_launches *s, const struct host_model *model,
                                          const struct npu_image_entry *e, size_t launch,
                                          uint64_t clock_mhz, uint64_t *gap);

/// It has run. `keep` (may be NULL): takes its records out of the core. NO_MEMORY.
NPU_MUST_USE npu_status sim_launches_ran(struct sim_launches *s, struct core *keep,
                                         uint64_t cycles);

/// Latency of the run that was made, as the host sees it.
uint64_t sim_launches_latency_ps(const struct sim_launches *s);

/// Times all launches once more, with the draws of run number `run`. Where only the host differs
/// from the run that was made, the device takes the cycles that it took. USAGE when records were
/// not kept.
NPU_MUST_USE npu_status sim_launches_repeat(const struct sim_launches *s, struct core *core,
                                            const struct host_model *model, uint64_t clock_mhz,
                                            const struct noise *noise, uint64_t run,
                                            struct sim_repeat *out);

#endif
