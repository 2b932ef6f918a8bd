// SPDX-License-Identifier: Apache-2.0
//
// The host's and the device's time over the submissions of one eager run: who waits for whom.
//
//     the host makes the calls before a launch that launch nothing, then the launch; each takes
//     time (noise/host.h). Launches wait in a queue of host_model_queue() places until the device
//     takes them, in order; when it is full the host waits for the device to take the next ready(i)
//     = max(host, start(i - places)); start(i) = max(ready(i), end(i - 1))
//
// The host's times are picoseconds, the device's cycles of the NPU clock, both from the start of
// the run. The device starts at an edge.
#ifndef SIMULATOR_LINE_H
#define SIMULATOR_LINE_H

#include "runtime/container.h"
#include "simulator/kernel/kernel.h"
#include "simulator/noise/host.h"

/// What the host did in a run.
struct sim_host {
    uint64_t launches, views;
    uint64_t launch_ps, view_ps; ///< that they took
    uint64_t full_ps;            ///< that it waited since the queue was full
    uint64_t bubble_cycles;      ///< that the device waited for it
};

struct sim_line {
    struct host_run host; ///< model NULL: it takes no time
    struct kernel_clock clock;
    uint64_t *started_ps; ///< owned: of the last `places` launches
    uint64_t places;
    uint64_t host_ps;  ///< when the host is done with what it was given
    uint64_t free;     ///< cycle at which the device is done
    uint64_t event;    ///< launches and views so far
    uint64_t begin_ps; ///< of the last launch, on the host: begin_ps .. made_ps
    uint64_t made_ps;
    struct sim_host sum;
};

/// Class of a launch: by the model's own operator, else by the graph's. BAD_INPUT when the model
/// knows neither.
NPU_MUST_USE npu_status sim_line_class(const struct host_model *model,
                                       const struct npu_image_launch *launch, int *op_class);

/// Starts a run. `model` NULL: launches follow each other at once. NO_MEMORY. Again after
/// sim_line_deinit; zero-initialised is empty.
NPU_MUST_USE npu_status sim_line_begin(struct sim_line *l, const struct host_model *model,
                                       const struct noise *noise, uint64_t run, uint64_t clock_mhz);
void sim_line_deinit(struct sim_line *l);

/// The next launch, behind `views` calls that launch nothing: the cycle at which the device starts
/// it. *bubble (may be NULL): cycles that the device waited for it.
uint64_t sim_line_launch(struct sim_line *l, int op_class, uint32_t views, uint64_t *bubble);

/// It took so many cycles.
void sim_line_ran(struct sim_line *l, uint64_t cycles);

/// Latency of the run as the host sees it: `views` calls more, then the wait for the device.
uint64_t sim_line_latency_ps(struct sim_line *l, uint32_t views);

#endif
