// SPDX-License-Identifier: Apache-2.0
// Noise of one launch as options of the timing machine.
#ifndef SIMULATOR_UNITS_JITTER_H
#define SIMULATOR_UNITS_JITTER_H

#include "simulator/noise/draw.h"
#include "simulator/units/units.h"

#define UNITS_CHANNELS 128 // most that hw.def allows

struct units_jitter {
    uint64_t refresh_phase_ps[UNITS_CHANNELS];
    struct noise_traffic traffic;
};

/// Sets what `noise` has on of refresh, contention and clock (none when it is NULL, but that
/// refreshes go on from launch to launch), for a launch
/// on a machine of that description, which noise_check accepts. Storage and `noise` are lent to
/// the options.
void units_jitter(struct units_jitter *j, const struct hw *hw, const struct noise *noise,
                  const struct noise_place *at, struct units_options *options);

#endif
