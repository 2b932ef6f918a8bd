// SPDX-License-Identifier: Apache-2.0
#include "simulator/noise/block.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

// Lags in a row that must be quiet, and the least number of runs to tell by.
enum { QUIET = 5, FEWEST = 2 * QUIET };

struct series {
    const double *t;
    uint64_t n;
    double mean, variance;
};

// Autocovariance at a lag.
static double covariance(const struct series *s, uint64_t lag) {
    double sum = 0;
    for (uint64_t i = lag; i < s->n; i++)
        sum += (s->t[i] - s->mean) * (s->t[i - lag] - s->mean);
    return sum / (double)s->n;
}

static bool series_of(const double *t, uint64_t n, struct series *s) {
    double sum = 0, low = t[0], high = t[0];
    for (uint64_t i = 0; i < n; i++) {
        sum += t[i] - t[0];
        low = fmin(low, t[i]);
        high = fmax(high, t[i]);
    }
    *s = (struct series){.t = t, .n = n, .mean = t[0] + sum / (double)n};
    s->variance = covariance(s, 0);
    return low < high && s->variance > 0;
}

// The smallest lag with QUIET quiet ones behind it; without one, the last that is not quiet.
static uint64_t last_loud_lag(const struct series *s, uint64_t most) {
    const double least = 2 * sqrt(log10((double)s->n) / (double)s->n) * s->variance;
    uint64_t last = 0;
    for (uint64_t k = 1; k <= most && k <= last + QUIET; k++)
        if (fabs(covariance(s, k)) >= least) last = k;
    return last;
}

uint64_t noise_block(const double *time_us, uint64_t n, double *correlation) {
    struct series s;
    const bool varies = series_of(time_us, n, &s);
    if (correlation) *correlation = varies ? covariance(&s, 1) / s.variance : 0;
    if (!varies || n < FEWEST || covariance(&s, 1) <= 0) return 1;
    const double root = sqrt((double)n), most = ceil(fmin(3 * root, (double)n / 3));
    uint64_t lags = (uint64_t)ceil(root) + QUIET;
    if (lags > n - 1) lags = n - 1;
    uint64_t window = 2 * last_loud_lag(&s, lags);
    if (window > lags) window = lags;
    if (window == 0) return 1;
    double g = 0, d = s.variance;
    for (uint64_t k = 1; k <= window; k++) {
        const double at = (double)k / (double)window, w = at <= 0.5 ? 1 : 2 * (1 - at);
        const double r = 2 * w * covariance(&s, k);
        g += (double)k * r;
        d += r;
    }
    if (!(d > s.variance)) return 1; // later lags undo it: a mean of n runs varies no more
    const double b = cbrt(1.5 * (g / d) * (g / d) * (double)n);
    return !(b < most) ? (uint64_t)most : b < 1 ? 1 : (uint64_t)lround(b);
}
