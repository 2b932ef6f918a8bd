// SPDX-License-Identifier: Apache-2.0
//
// What is asked about the simulated device beyond the runtime's table: where a run stopped, what
// memory holds then, what ran, how long it takes again.
#include <inttypes.h>
#include <string.h>

#include "runtime/include/npu/simulator.h"
#include "simulator/device_state.h"
#include "simulator/kernel/kernel.h"
#include "simulator/noise/host.h"

struct sim_device *sim_device_of(const struct npu_device *device) {
    return device->ops == npu_simulator_ops() ? device->handle : NULL;
}

void sim_device_begin(struct sim_device *d, struct trace_log *log) {
    sim_totals_clear(&d->totals);
    sim_launches_deinit(&d->launches);
    d->counting = true;
    d->stopped = (struct core_stopped){0};
    d->log = log;
}

void sim_device_watch(struct sim_device *d, exec_write_sink *written, void *ctx) {
    d->written = written;
    d->written_ctx = ctx;
}

void sim_device_stop_at(struct sim_device *d, struct core_where *where, size_t n) {
    d->stop = (struct core_stop){.where = where, .n = n};
}

const struct core_stopped *sim_device_stopped(const struct sim_device *d) {
    return d->stopped.stopped ? &d->stopped : NULL;
}

void sim_device_state(const struct sim_device *d, struct exec_state *out) {
    exec_state_of(core_exec(d->core), out);
}

bool sim_device_peek(const struct sim_device *d, int space, int64_t address, int64_t bytes,
                     uint8_t *out, bool *written) {
    const struct exec *x = core_exec(d->core);
    if (address < 0 || bytes < 0 || address > INT64_MAX / 4 || bytes > INT64_MAX / 4) return false;
    if (space == ISA_DRAM) {
        const int64_t lo = (int64_t)d->started.dram_base + address;
        npu_status st = exec_dram_read(&d->dram, lo, out, bytes);
        const bool inside = st == NULL;
        npu_status_free(st);
        for (int64_t i = 0; i < bytes && inside; i++)
            written[i] = exec_dram_first_unwritten(&d->dram, lo + i, lo + i + 1) < 0;
        return inside;
    }
    const struct exec_bits *map = exec_written(x, space);
    if (!map || bytes > map->bytes || address > map->bytes - bytes) return false;
    memcpy(out, (space == ISA_SPM ? exec_spm(x) : exec_psum(x)) + address, (size_t)bytes);
    for (int64_t i = 0; i < bytes; i++)
        written[i] = bits_first_clear(map, address + i, address + i + 1) < 0;
    return true;
}

const struct sim_totals *sim_device_totals(const struct sim_device *d) {
    return &d->totals;
}
const struct hw *sim_device_hw(const struct sim_device *d) {
    return &d->hw;
}
bool sim_device_values(const struct sim_device *d) {
    return d->values;
}

void sim_device_set_host(struct sim_device *d, const struct host_model *host) {
    d->model = host;
}

uint64_t sim_device_ps(const struct sim_device *d, uint64_t cycles) {
    const struct kernel_clock clock = kernel_clock((uint64_t)d->hw.clock_npu_mhz);
    return kernel_clock_ps(&clock, cycles);
}

// What the host adds to the device's time of one submission.
static uint64_t host_ps(const struct sim_device *d, const struct noise *noise, uint64_t run) {
    struct host_run host;
    if (!d->model) return 0;
    host_run_begin(d->model, noise ? *noise : (struct noise){0}, run, &host);
    return host_submit_ps(&host) + host_finish_ps(&host);
}

uint64_t sim_device_latency_ps(const struct sim_device *d, uint64_t cycles) {
    if (d->launches.count) return sim_launches_latency_ps(&d->launches);
    return sim_device_ps(d, cycles) + host_ps(d, NULL, 0);
}

const struct sim_host *sim_device_host(const struct sim_device *d) {
    return d->launches.count ? &d->launches.line.sum : NULL;
}

npu_status sim_device_repeat(struct sim_device *d, const struct noise *noise, uint64_t run,
                             struct sim_repeat *out) {
    struct core_result r;
    NPU_TRY(noise_check(&d->hw));
    if (d->launches.count && d->launches.count == d->totals.jobs)
        return sim_launches_repeat(&d->launches, d->core, d->model, (uint64_t)d->hw.clock_npu_mhz,
                                   noise, run, out);
    if (d->totals.jobs != 1)
        return npu_fail(USAGE,
                        "%" PRIu64 " jobs ran; one can be repeated, or the launches of one run",
                        d->totals.jobs);
    const uint64_t sampled = host_ps(d, noise, run);
    if (noise && noise->sources == 1U << NOISE_HOST) { // the device takes the cycles that it took
        *out = (struct sim_repeat){.cycles = d->totals.cycles,
                                   .latency_ps = sim_device_ps(d, d->totals.cycles) + sampled,
                                   .sampled_ps = sampled};
        return NULL;
    }
    const struct core_noise draws = {.noise = noise, .at = {.run = run}};
    NPU_TRY(core_repeat(d->core, &draws, NULL, NULL, &r));
    *out = (struct sim_repeat){.cycles = r.timing.cycles,
                               .latency_ps = sim_device_ps(d, r.timing.cycles) + sampled,
                               .sampled_ps = sampled,
                               .seconds = r.run_seconds};
    return NULL;
}
