// SPDX-License-Identifier: Apache-2.0
//
// Length of the blocks in which runs are resampled. Runs that resemble the one before tell less
// than as many independent ones: resampled one by one they give intervals that are too narrow, in
// blocks of consecutive runs they keep what they share.
//
// The length is that of Politis and White, "Automatic block-length selection for the dependent
// bootstrap", Econometric Reviews 23 (2004), with the correction of Patton, Politis and White,
// Econometric Reviews 28 (2009), for the circular block bootstrap and the mean:
//
//     b = (2 G^2 / D)^(1/3) n^(1/3)       G = sum over lags k of w(k/M) |k| R(k)
//                                         D = 4/3 (sum over lags k of w(k/M) R(k))^2
//
// R(k) is the autocovariance, w the flat-top window (1 up to 1/2, then falling to 0 at 1), M twice
// the smallest lag behind which 5 lags in a row have correlations below 2 sqrt(log10(n) / n).
#ifndef SIMULATOR_NOISE_BLOCK_H
#define SIMULATOR_NOISE_BLOCK_H

#include <stdint.h>

/// Runs in a block, for n >= 1 runs in their order. 1 when no correlation is found: up to lag 5, or
/// in fewer than 10 runs; and 1 when a run does not resemble the next, or all lags together make a
/// mean vary less: blocks make intervals wider than single runs, never narrower. At most 3 sqrt(n)
/// and n / 3, rounded up. *correlation (may be NULL) is that of a run with the next, 0 when nothing
/// varies.
uint64_t noise_block(const double *time_us, uint64_t n, double *correlation);

#endif
