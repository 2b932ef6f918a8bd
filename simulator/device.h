// SPDX-License-Identifier: Apache-2.0
//
// The simulated device from the inside: what npusim asks beyond the runtime's table. The device
// itself is opened through npu_device_open(npu_simulator_ops(), ...).
#ifndef SIMULATOR_DEVICE_H
#define SIMULATOR_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa/hw.h"
#include "runtime/base/status.h"
#include "simulator/core/core.h"
#include "simulator/exec/exec.h"
#include "simulator/exec/state.h"
#include "simulator/noise/noise.h"
#include "simulator/totals.h"
#include "simulator/trace/trace.h"

struct host_model;
struct sim_host;
struct npu_device;
struct sim_device;

/// The simulated device behind a runtime device; NULL when that is another kind.
struct sim_device *sim_device_of(const struct npu_device *device);

/// Starts counting anew. Events of the jobs to come go to `log`, times counted from here; NULL:
/// nowhere. Lent.
void sim_device_begin(struct sim_device *d, struct trace_log *log);

/// Shows what the jobs to come write (exec.h); NULL: no longer.
void sim_device_watch(struct sim_device *d, exec_write_sink *written, void *ctx);

/// Lets the jobs to come stop at the first of `n` places; cycles count from sim_device_begin. Jobs
/// behind the one that stopped are completed without being run. Lent; n 0: no longer.
void sim_device_stop_at(struct sim_device *d, struct core_where *where, size_t n);

/// Where they stopped, its cycle counted from sim_device_begin; NULL: nowhere.
const struct core_stopped *sim_device_stopped(const struct sim_device *d);

/// The machine's state at the end of the last job, or where it stopped.
void sim_device_state(const struct sim_device *d, struct exec_state *out);

/// Copies bytes of a memory then, SPM, PSUM or DRAM (the last job's own addresses), and says of
/// each whether it was written. False: they are not inside it, in DRAM not inside what is
/// allocated.
bool sim_device_peek(const struct sim_device *d, int space, int64_t address, int64_t bytes,
                     uint8_t *out, bool *written);

/// What ran since then. Lives until the next begin.
const struct sim_totals *sim_device_totals(const struct sim_device *d);

const struct hw *sim_device_hw(const struct sim_device *d);

/// Whether it computes values, not just cycles.
bool sim_device_values(const struct sim_device *d);

/// One more timing of what ran.
struct sim_repeat {
    uint64_t cycles;     // of the device, from its start to its end
    uint64_t latency_ps; // of the run as the host sees it
    uint64_t sampled_ps; // part of it that is drawn from a fitted model (the host), not simulated
    double seconds;      // host time of the run loop
};

/// The host in front of the device (noise/host.h): latencies below are as it sees them, with its
/// submission and its wait. Launches of an eager program start when it has made them, and the
/// cycles before count for the class HOST. NULL, as at first: it takes no time. Lent.
void sim_device_set_host(struct sim_device *d, const struct host_model *host);

/// Latency of a run without noise that takes so many cycles: the host at its medians.
uint64_t sim_device_latency_ps(const struct sim_device *d, uint64_t cycles);

/// What the host did in the run of an eager program since sim_device_begin, without the calls at
/// its end; NULL: the program was submitted whole.
const struct sim_host *sim_device_host(const struct sim_device *d);

/// Times the one job since sim_device_begin, or all launches of the one run of an eager program,
/// once more without computing them again, with the draws of run number `run`; `noise` NULL or off:
/// it takes the cycles that it took. USAGE when there was not exactly one.
NPU_MUST_USE npu_status sim_device_repeat(struct sim_device *d, const struct noise *noise,
                                          uint64_t run, struct sim_repeat *out);

#endif
