// SPDX-License-Identifier: Apache-2.0
// Draws of simulator/noise into the options of a run.
#include "simulator/units/jitter.h"

#include "simulator/memory/dram.h"

static bool next_request(void *ctx, uint64_t now_ps, struct units_traffic *out) {
    struct noise_request r;
    (void)now_ps; // others do not wait for an answer
    noise_traffic_next(ctx, &r);
    *out = (struct units_traffic){r.at_ps, r.address, r.bytes, r.write};
    return true;
}

void units_jitter(struct units_jitter *j, const struct hw *hw, const struct noise *noise,
                  const struct noise_place *at, struct units_options *options) {
    const uint64_t round = dram_refresh_round_ps(hw), period = dram_clock_ps(hw);
    if (noise_on(noise, NOISE_REFRESH) && round) {
        NPU_ASSERT(hw->dram_channels <= UNITS_CHANNELS);
        noise_refresh(noise, at, round, (int)hw->dram_channels, j->refresh_phase_ps);
        options->refresh_phase_ps = j->refresh_phase_ps;
    } else if (at->start_ps && round && hw->dram_channels <= UNITS_CHANNELS) { // they go on
        const uint64_t gone = at->start_ps % round;
        for (int i = 0; i < (int)hw->dram_channels; i++) {
            const uint64_t first = dram_refresh_first_ps(hw, i);
            j->refresh_phase_ps[i] = first >= gone ? first - gone : first + round - gone;
        }
        options->refresh_phase_ps = j->refresh_phase_ps;
    }
    if (noise_on(noise, NOISE_CONTENTION) && noise_traffic_begin(&j->traffic, hw, noise, at)) {
        options->traffic = next_request;
        options->traffic_ctx = &j->traffic;
    }
    if (noise_on(noise, NOISE_CLOCK) && period) {
        options->crossing = true;
        options->dram_edge_ps = noise_clock(noise, at, period);
    }
}
