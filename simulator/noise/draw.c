// SPDX-License-Identifier: Apache-2.0
//
// Phases and traffic. Only integers and the functions of isa/numeric.h, so that a draw is the same
// on every host.
#include "simulator/noise/draw.h"

#include <inttypes.h>

#include "isa/numeric.h"
#include "simulator/noise/philox.h"

#define LAUNCH_SHIFT 32 // events of a launch are numbered below 2^32
#define ONE (UINT64_C(1) << 32)

// ---- phases ------------------------------------------------------------------------------------

// What is left of a phase drawn at the start of the run when start_ps of it are over.
static uint64_t later(uint64_t phase, uint64_t start_ps, uint64_t period) {
    const uint64_t gone = start_ps % period;
    return phase >= gone ? phase - gone : phase + period - gone;
}

void noise_refresh(const struct noise *noise, const struct noise_place *at, uint64_t round_ps,
                   int n, uint64_t *phase_ps) {
    for (int i = 0; i < n; i++) {
        const uint64_t phase =
            noise_below(noise->seed, at->run, NOISE_REFRESH, (uint64_t)i, round_ps);
        phase_ps[i] = later(phase, at->start_ps, round_ps);
    }
}

uint64_t noise_clock(const struct noise *noise, const struct noise_place *at, uint64_t period_ps) {
    const uint64_t phase = noise_below(noise->seed, at->run, NOISE_CLOCK, 0, period_ps);
    return later(phase, at->start_ps, period_ps);
}

// ---- traffic -----------------------------------------------------------------------------------

npu_status noise_check(const struct hw *hw) {
    if (hw->noise_traffic_burst_percent < hw->noise_traffic_percent)
        return npu_fail(USAGE,
                        "noise.traffic_burst_percent is %" PRId64 ", noise.traffic_percent %" PRId64
                        ": bursts must not be slower than the average of bursts and silence",
                        hw->noise_traffic_burst_percent, hw->noise_traffic_percent);
    if (hw->noise_traffic_burst_bytes < hw->noise_traffic_request_bytes)
        return npu_fail(USAGE,
                        "noise.traffic_burst_bytes is %" PRId64
                        ", noise.traffic_request_bytes %" PRId64
                        ": a burst must hold at least one request",
                        hw->noise_traffic_burst_bytes, hw->noise_traffic_request_bytes);
    if (hw->noise_traffic_request_bytes > hw->dram_bytes)
        return npu_fail(USAGE,
                        "noise.traffic_request_bytes is %" PRId64 ", dram.bytes %" PRId64
                        ": a request must fit in memory",
                        hw->noise_traffic_request_bytes, hw->dram_bytes);
    return NULL;
}

static uint64_t bits(struct noise_traffic *t) {
    return noise_bits(t->noise->seed, t->at.run, NOISE_CONTENTION,
                      t->at.launch << LAUNCH_SHIFT | t->event++);
}

static uint64_t chance(int64_t percent) {
    return (uint64_t)percent * ONE / 100;
}

// Exponential with mean 1, by inversion: -log of (0, 1).
static double exponential(uint64_t b) {
    return -(double)num_log((float)((double)(b >> 40) + 0.5) * 0x1p-24F);
}

static void begin_burst(struct noise_traffic *t) {
    const uint64_t b = bits(t);
    t->inside = true;
    t->write = (b & UINT32_MAX) < t->writes;
    t->place = noise_scale(bits(t), t->places);
}

bool noise_traffic_begin(struct noise_traffic *t, const struct hw *hw, const struct noise *noise,
                         const struct noise_place *at) {
    const double rate = hw_dram_bytes_per_s(hw);
    if (rate <= 0 || hw->noise_traffic_percent == 0) return false;
    const double request = (double)hw->noise_traffic_request_bytes,
                 burst = (double)hw->noise_traffic_burst_bytes, peak_ps = request / rate * 1e12,
                 mean = (double)hw->noise_traffic_percent / 100,
                 inside = (double)hw->noise_traffic_burst_percent / 100;
    *t = (struct noise_traffic){
        .noise = noise,
        .at = *at,
        .step_ps = (uint64_t)(peak_ps / inside + 0.5),
        .silence_ps = burst / request * peak_ps * (1 / mean - 1 / inside),
        .stop = (uint64_t)(request / burst * (double)ONE),
        .local = chance(hw->noise_traffic_local_percent),
        .writes = chance(hw->noise_traffic_write_percent),
        .places = (uint64_t)(hw->dram_bytes / hw->noise_traffic_request_bytes),
        .bytes = (uint32_t)hw->noise_traffic_request_bytes,
    };
    // In the middle of a burst as often as bursts take of the time; both are memoryless.
    if ((double)(bits(t) & UINT32_MAX) < mean / inside * (double)ONE)
        begin_burst(t);
    else
        t->next_ps = (uint64_t)(exponential(bits(t)) * t->silence_ps);
    return true;
}

void noise_traffic_next(struct noise_traffic *t, struct noise_request *out) {
    if (!t->inside) begin_burst(t);
    *out = (struct noise_request){t->next_ps, t->place * t->bytes, t->bytes, t->write};
    const uint64_t b = bits(t);
    t->next_ps += t->step_ps;
    if ((b & UINT32_MAX) < t->stop) {
        t->inside = false;
        t->next_ps += (uint64_t)(exponential(bits(t)) * t->silence_ps);
    } else if (b >> 32 < t->local) {
        t->place = t->place + 1 == t->places ? 0 : t->place + 1;
    } else {
        t->place = noise_scale(bits(t), t->places);
    }
}
