// SPDX-License-Identifier: Apache-2.0
//
// The simulated device's own state: what the runtime's table over it (device_sim.c) and the answers
// to those who ask about a run (device_ask.c) share. Nobody else includes it.
#ifndef SIMULATOR_DEVICE_STATE_H
#define SIMULATOR_DEVICE_STATE_H

#include "firmware/port_host.h"
#include "runtime/api.h"
#include "simulator/core/core.h"
#include "simulator/device.h"
#include "simulator/launches.h"
#include "simulator/totals.h"

enum {
    RING_SLOTS = 16,
    HOST_RING = 0x1000, // host addresses of the two rings
    HOST_DONE = HOST_RING + (RING_SLOTS * RING_DESC_BYTES + 63) / 64 * 64,
    HOST_END = HOST_DONE + RING_SLOTS * RING_DONE_BYTES,
    DRAM_ALIGNMENT = 64,
};

// A submission from `submit` to `wait`.
struct sim_job {
    uint64_t ticket;
    const struct npu_program_image *image;
    const struct npu_image_entry *entry; // with launches: this is one of an eager run; else NULL
    size_t launch;
    npu_status fault; // owned: how the machine ended it, NULL: it halted
    struct ring_done done;
};

struct sim_device {
    struct hw hw;
    bool values;
    struct core *core;
    struct exec_dram dram;
    struct npu_ranges ranges;
    struct fw_host port;
    struct fw fw;
    uint8_t host[HOST_END - HOST_RING]; // host memory that the device reaches
    uint32_t tail;
    struct sim_job *jobs; // owned: submitted and not yet waited for
    size_t njobs, jobs_cap;
    struct sim_job *current; // whose job the firmware has started or will start
    struct fw_host_job started;
    bool pending; // it has started
    uint64_t clock, last_ticket;
    struct trace_log *log;
    const struct host_model *model; // of the host that submits; NULL: it takes no time. Lent
    exec_write_sink *written;
    void *written_ctx;
    struct core_stop stop; // n 0: jobs run to their end
    struct core_stopped stopped;
    uint64_t log_offset, log_seq; // cycles and instructions of the jobs before
    struct sim_totals totals;
    struct sim_launches launches;
    bool counting; // since sim_device_begin: launches are kept
    uint64_t all_jobs, all_instructions, all_read_bytes, all_write_bytes;
};

/// Picoseconds that so many cycles of the device take.
uint64_t sim_device_ps(const struct sim_device *d, uint64_t cycles);

#endif
