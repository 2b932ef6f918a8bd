// SPDX-License-Identifier: Apache-2.0
//
// What is said about the times of several runs. Intervals are percentile bootstrap intervals
// (Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13): NOISE_RESAMPLES
// times n runs are drawn with replacement, the number is computed of each, and the interval holds
// the middle NOISE_LEVEL of them. Runs that may be related, since something lasts from one to the
// next, are drawn in blocks of consecutive ones, the last followed by the first, if they correlate
// (block.h); the last block is cut to n runs. Runs that are independent by construction are drawn
// one by one, whatever correlation they happen to show. The draws come by counter
// (philox.h), so a seed gives the same intervals everywhere. Runs of two sets with the same number
// are drawn together, in the longer blocks of the two: they share whatever their draws of noise
// share.
//
// Of a smallest or largest run the bootstrap says little: the interval never lies beyond it.
#ifndef SIMULATOR_NOISE_STATS_H
#define SIMULATOR_NOISE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

#define NOISE_RESAMPLES 1000
#define NOISE_LEVEL 0.95
#define NOISE_BINS 20

enum noise_stat {
#define NOISE_STAT(NAME, word, key, unit, quantile, meaning) NOISE_STAT_##NAME,
#include "simulator/noise/stats.def"
    NOISE_STATS
};

const char *noise_stat_word(enum noise_stat stat);
const char *noise_stat_key(enum noise_stat stat);
const char *noise_stat_meaning(enum noise_stat stat);
bool noise_stat_is_time(enum noise_stat stat); ///< microseconds; else without a unit

/// A number and its interval.
struct noise_estimate {
    double value, lo, hi;
};

struct noise_summary {
    uint64_t n;
    uint64_t block;     ///< runs that are resampled together; 1: they do not correlate
    double correlation; ///< of a run with the next
    struct noise_estimate stat[NOISE_STATS];
    double from_us, width_us; ///< histogram: NOISE_BINS bins from the fastest run on
    uint64_t bin[NOISE_BINS];
};

/// Describes n >= 1 times, in the order of the runs. related: a run may resemble the one before.
/// Quantiles lie between two runs linearly (numpy's default). NO_MEMORY.
NPU_MUST_USE npu_status noise_summarise(const double *time_us, uint64_t n, bool related,
                                        uint64_t seed, struct noise_summary *out);

/// Share of the variance that goes when a source is turned off: 1 - var(without) / var(all), of the
/// same n runs with and without. 0 when nothing varies. NO_MEMORY.
NPU_MUST_USE npu_status noise_share(const double *all_us, const double *without_us, uint64_t n,
                                    bool related, uint64_t seed, struct noise_estimate *out);

/// Ratios of means and of standard deviations, a over b, of n runs each. A ratio to 0 is infinite,
/// 0 to 0 is 1. NO_MEMORY.
NPU_MUST_USE npu_status noise_ratios(const double *a_us, const double *b_us, uint64_t n,
                                     bool related, uint64_t seed, struct noise_estimate *mean,
                                     struct noise_estimate *std);

/// Value below which a share p of n >= 1 ascending numbers lies.
double noise_quantile(const double *ascending, uint64_t n, double p);

#endif
