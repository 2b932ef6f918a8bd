// SPDX-License-Identifier: Apache-2.0
//
// Draws by counter: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
// easy as 1, 2, 3" (SC 2011). A draw is a function of (seed, run, source, event) and of nothing
// else: who asks, in which order and in which process does not matter.
#ifndef SIMULATOR_NOISE_PHILOX_H
#define SIMULATOR_NOISE_PHILOX_H

#include <stdint.h>

#include "simulator/noise/noise.h"

/// The bijection itself: ten rounds over a counter of 128 bits under a key of 64.
void philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/// Further streams beside the sources, for draws that are no noise: resampling of statistics.
#define NOISE_STREAM_RESAMPLE 255
#define NOISE_EVENTS (UINT64_C(1) << 56) ///< events of a run are numbered below this

/// 64 bits. event < NOISE_EVENTS. `source`: enum noise_source, or a stream of its own.
uint64_t noise_bits(uint64_t seed, uint64_t run, int source, uint64_t event);

/// Uniform over (0, 1): an odd multiple of 2^-53, never 0 and never 1.
double noise_uniform(uint64_t seed, uint64_t run, int source, uint64_t event);

/// Uniform over 0 .. n - 1, n > 0; no number is likelier than another by more than n / 2^64.
uint64_t noise_below(uint64_t seed, uint64_t run, int source, uint64_t event, uint64_t n);

/// The product that noise_below takes bits to: bits * n / 2^64.
uint64_t noise_scale(uint64_t bits, uint64_t n);

#endif
