// SPDX-License-Identifier: Apache-2.0
//
// Statistics of runs. A resample is a count per run, so that sorting happens once: quantiles of a
// resample are a walk along the sorted runs.
#include "simulator/noise/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "simulator/noise/block.h"
#include "simulator/noise/philox.h"

static const struct {
    const char *word, *key, *meaning;
    bool time;
    double quantile;
} rows[NOISE_STATS] = {
#define TIME true
#define RATIO false
#define NOISE_STAT(NAME, word, key, unit, quantile, meaning) {word, key, meaning, unit, quantile},
#include "simulator/noise/stats.def"
#undef TIME
#undef RATIO
};

const char *noise_stat_word(enum noise_stat stat) {
    return rows[stat].word;
}

const char *noise_stat_key(enum noise_stat stat) {
    return rows[stat].key;
}

const char *noise_stat_meaning(enum noise_stat stat) {
    return rows[stat].meaning;
}

bool noise_stat_is_time(enum noise_stat stat) {
    return rows[stat].time;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static npu_status no_memory(void) {
    return npu_fail(NO_MEMORY, "statistics of the runs: out of memory");
}

double noise_quantile(const double *t, uint64_t n, double p) {
    const double at = p * (double)(n - 1);
    const uint64_t i = (uint64_t)at;
    return i + 1 < n ? t[i] + (at - (double)i) * (t[i + 1] - t[i]) : t[n - 1];
}

// ---- one resample ------------------------------------------------------------------------------

// How a set of runs is resampled.
struct plan {
    uint64_t n, block, seed;
    const uint64_t *place; // of a run among the sorted ones; NULL: drawn as they are counted
};

// How often each of n runs is in resample number b.
static void draw(uint32_t *count, const struct plan *p, uint64_t b) {
    memset(count, 0, (size_t)p->n * sizeof *count);
    for (uint64_t i = 0, blocks = 0; i < p->n; blocks++) {
        uint64_t run = noise_below(p->seed, b, NOISE_STREAM_RESAMPLE, blocks, p->n);
        for (uint64_t k = 0; k < p->block && i < p->n; k++, i++) {
            count[p->place ? p->place[run] : run]++;
            if (++run == p->n) run = 0;
        }
    }
}

struct moments {
    double mean, std;
};

// count NULL: each run once. Sums are taken about the first value.
static struct moments moments_of(const double *t, const uint32_t *count, uint64_t n) {
    const double about = t[0];
    double sum = 0, square = 0;
    for (uint64_t i = 0; i < n; i++) {
        const double d = t[i] - about, k = count ? (double)count[i] : 1;
        sum += k * d;
        square += k * d * d;
    }
    const double mean = sum / (double)n, left = square - sum * mean;
    return (struct moments){about + mean, n > 1 && left > 0 ? sqrt(left / (double)(n - 1)) : 0};
}

// Element number k of the resample, ascending; *at and *below go along: runs before *at hold
// *below elements.
static double element(const double *t, const uint32_t *count, uint64_t k, uint64_t *at,
                      uint64_t *below) {
    while (*below + count[*at] <= k)
        *below += count[(*at)++];
    return t[*at];
}

// Quantiles in the order of the rows, which ascend.
static void quantiles_of(const double *t, const uint32_t *count, uint64_t n, double *out) {
    uint64_t at = 0, below = 0;
    for (int s = 0; s < NOISE_STATS; s++) {
        if (rows[s].quantile < 0) continue;
        const double where = rows[s].quantile * (double)(n - 1);
        const uint64_t k = (uint64_t)where;
        const double low = element(t, count, k, &at, &below);
        uint64_t ahead = at, ahead_below = below;
        const double high = k + 1 < n ? element(t, count, k + 1, &ahead, &ahead_below) : low;
        out[s] = low + (where - (double)k) * (high - low);
    }
}

// ---- intervals ---------------------------------------------------------------------------------

// Middle NOISE_LEVEL of the values of the resamples, which are sorted in place.
static void interval(double *value, struct noise_estimate *out) {
    qsort(value, NOISE_RESAMPLES, sizeof *value, ascending);
    out->lo = noise_quantile(value, NOISE_RESAMPLES, (1 - NOISE_LEVEL) / 2);
    out->hi = noise_quantile(value, NOISE_RESAMPLES, (1 + NOISE_LEVEL) / 2);
}

static void histogram(const double *t, uint64_t n, struct noise_summary *out) {
    const double width = (t[n - 1] - t[0]) / NOISE_BINS;
    out->from_us = t[0];
    out->width_us = width;
    for (uint64_t i = 0; i < n; i++) {
        const double at = width > 0 ? (t[i] - t[0]) / width : 0;
        out->bin[at < NOISE_BINS ? (int)at : NOISE_BINS - 1]++;
    }
}

static void resample(const double *t, uint32_t *count, const struct plan *p, double *value) {
    const uint64_t n = p->n;
    for (uint64_t b = 0; b < NOISE_RESAMPLES; b++) {
        double one[NOISE_STATS];
        draw(count, p, b);
        const struct moments m = moments_of(t, count, n);
        one[NOISE_STAT_MEAN] = m.mean;
        one[NOISE_STAT_STD] = m.std;
        one[NOISE_STAT_CV] = m.mean > 0 ? m.std / m.mean : 0;
        quantiles_of(t, count, n, one);
        for (int s = 0; s < NOISE_STATS; s++)
            value[s * NOISE_RESAMPLES + (int)b] = one[s];
    }
}

struct placed {
    double time;
    uint64_t run;
};

static int by_time(const void *a, const void *b) {
    const struct placed *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return (x->run > y->run) - (x->run < y->run);
}

// Place of each run among the sorted ones; owned. Runs that do not correlate are drawn among the
// sorted ones: *place is NULL.
static npu_status places(const double *t, uint64_t n, uint64_t block, uint64_t **place) {
    *place = NULL;
    if (block == 1) return NULL;
    struct placed *sorted = base_alloc_array((size_t)n, sizeof *sorted);
    *place = base_alloc_array((size_t)n, sizeof **place);
    npu_status st = sorted && *place ? NULL : no_memory();
    if (!st) {
        for (uint64_t i = 0; i < n; i++)
            sorted[i] = (struct placed){t[i], i};
        qsort(sorted, (size_t)n, sizeof *sorted, by_time);
        for (uint64_t i = 0; i < n; i++)
            (*place)[sorted[i].run] = i;
    }
    base_free(sorted);
    return st;
}

npu_status noise_summarise(const double *time_us, uint64_t n, bool related, uint64_t seed,
                           struct noise_summary *out) {
    *out = (struct noise_summary){.n = n};
    out->block = noise_block(time_us, n, &out->correlation);
    if (!related) out->block = 1;
    uint64_t *place;
    npu_status st = places(time_us, n, out->block, &place);
    double *t = base_alloc_array((size_t)n, sizeof *t);
    uint32_t *count = base_alloc_array((size_t)n, sizeof *count);
    double *value = base_alloc_array((size_t)NOISE_STATS * NOISE_RESAMPLES, sizeof *value);
    if (!st && (!t || !count || !value)) st = no_memory();
    if (!st) {
        const struct plan plan = {n, out->block, seed, place};
        memcpy(t, time_us, (size_t)n * sizeof *t);
        qsort(t, (size_t)n, sizeof *t, ascending);
        const struct moments m = moments_of(t, NULL, n);
        out->stat[NOISE_STAT_MEAN].value = m.mean;
        out->stat[NOISE_STAT_STD].value = m.std;
        out->stat[NOISE_STAT_CV].value = m.mean > 0 ? m.std / m.mean : 0;
        for (int s = 0; s < NOISE_STATS; s++)
            if (rows[s].quantile >= 0) out->stat[s].value = noise_quantile(t, n, rows[s].quantile);
        histogram(t, n, out);
        resample(t, count, &plan, value);
        for (int s = 0; s < NOISE_STATS; s++)
            interval(value + (ptrdiff_t)s * NOISE_RESAMPLES, &out->stat[s]);
    }
    base_free(value);
    base_free(count);
    base_free(t);
    base_free(place);
    return st;
}

// ---- two sets ----------------------------------------------------------------------------------

static struct plan plan_of_two(const double *a, const double *b, uint64_t n, bool related,
                               uint64_t seed) {
    if (!related) return (struct plan){.n = n, .block = 1, .seed = seed};
    const uint64_t first = noise_block(a, n, NULL), second = noise_block(b, n, NULL);
    return (struct plan){.n = n, .block = first > second ? first : second, .seed = seed};
}

static double ratio(double a, double b) {
    if (b > 0) return a / b;
    return a > 0 ? HUGE_VAL : 1;
}

static double share(double with, double without) {
    return with > 0 ? 1 - without / with * (without / with) : 0;
}

npu_status noise_ratios(const double *a, const double *b, uint64_t n, bool related, uint64_t seed,
                        struct noise_estimate *mean, struct noise_estimate *std) {
    uint32_t *count = base_alloc_array((size_t)n, sizeof *count);
    double *value = base_alloc_array(2 * NOISE_RESAMPLES, sizeof *value);
    npu_status st = count && value ? NULL : no_memory();
    if (!st) {
        const struct plan plan = plan_of_two(a, b, n, related, seed);
        const struct moments ma = moments_of(a, NULL, n), mb = moments_of(b, NULL, n);
        mean->value = ratio(ma.mean, mb.mean);
        std->value = ratio(ma.std, mb.std);
        for (uint64_t r = 0; r < NOISE_RESAMPLES; r++) {
            draw(count, &plan, r);
            const struct moments ra = moments_of(a, count, n), rb = moments_of(b, count, n);
            value[r] = ratio(ra.mean, rb.mean);
            value[NOISE_RESAMPLES + r] = ratio(ra.std, rb.std);
        }
        interval(value, mean);
        interval(value + NOISE_RESAMPLES, std);
    }
    base_free(value);
    base_free(count);
    return st;
}

npu_status noise_share(const double *all, const double *without, uint64_t n, bool related,
                       uint64_t seed, struct noise_estimate *out) {
    uint32_t *count = base_alloc_array((size_t)n, sizeof *count);
    double *value = base_alloc_array(NOISE_RESAMPLES, sizeof *value);
    npu_status st = count && value ? NULL : no_memory();
    if (!st) {
        const struct plan plan = plan_of_two(all, without, n, related, seed);
        out->value = share(moments_of(all, NULL, n).std, moments_of(without, NULL, n).std);
        for (uint64_t r = 0; r < NOISE_RESAMPLES; r++) {
            draw(count, &plan, r);
            value[r] = share(moments_of(all, count, n).std, moments_of(without, count, n).std);
        }
        interval(value, out);
    }
    base_free(value);
    base_free(count);
    return st;
}
