// SPDX-License-Identifier: Apache-2.0
//
// What the sources draw for the machine: phases, and the traffic of others. A run may be made of
// several launches (an eager program): phases go on from one to the next, so the caller says when
// a launch starts; traffic is drawn anew for each, in its stationary state.
#ifndef SIMULATOR_NOISE_DRAW_H
#define SIMULATOR_NOISE_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/hw.h"
#include "simulator/noise/noise.h"

/// Which draws: of run number `run`, for its launch number `launch` (below 2^24), which starts
/// start_ps after the run did.
struct noise_place {
    uint64_t run, launch, start_ps;
};

/// First refresh after the start, of each of n channels: uniform over [0, round_ps). round_ps > 0.
void noise_refresh(const struct noise *noise, const struct noise_place *at, uint64_t round_ps,
                   int n, uint64_t *phase_ps);

/// First edge of the memory's clock after the start: uniform over [0, period_ps). period_ps > 0.
uint64_t noise_clock(const struct noise *noise, const struct noise_place *at, uint64_t period_ps);

/// A request of others.
struct noise_request {
    uint64_t at_ps, address;
    uint32_t bytes;
    bool write;
};

/// Their traffic is bursts with silence between them. Lengths of bursts are geometric, silences
/// exponential, so that noise.traffic_percent of the peak results; within a burst requests come at
/// noise.traffic_burst_percent of it.
struct noise_traffic {
    const struct noise *noise;
    struct noise_place at;
    uint64_t event;
    uint64_t step_ps;  ///< between requests of a burst
    double silence_ps; ///< mean
    uint64_t stop;     ///< of 2^32: chance that a request is the last of its burst
    uint64_t local;    ///< of 2^32: chance that a request follows on
    uint64_t writes;   ///< of 2^32: chance that a burst writes
    uint64_t places;   ///< requests that fit in memory
    uint32_t bytes;    ///< of a request
    uint64_t next_ps, place;
    bool inside, write; ///< a burst is under way; it writes
};

/// USAGE when the parameters contradict each other: bursts slower than the average, requests larger
/// than bursts or than memory.
NPU_MUST_USE npu_status noise_check(const struct hw *hw);

/// Starts the traffic of a launch. noise_check has passed. `noise` is lent. False: there is none
/// (a rate of 0, or a memory without limit).
bool noise_traffic_begin(struct noise_traffic *t, const struct hw *hw, const struct noise *noise,
                         const struct noise_place *at);

/// The next request; at_ps never falls.
void noise_traffic_next(struct noise_traffic *t, struct noise_request *out);

#endif
