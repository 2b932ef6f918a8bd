// SPDX-License-Identifier: Apache-2.0
//
// A piece of work is one run of one set: set 0 has every source on, set k all but the k-th of those
// that are on. Sets use the same run numbers, so the draws of the sources that stay on are the
// same.
#include "simulator/npusim/runs.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/progress.h"
#include "simulator/noise/draw.h"
#include "simulator/npusim/shards.h"

struct job {
    struct npusim *s;
    struct sim_device *device;
    uint64_t n, share_n, first;
    struct noise noise[1 + NOISE_SOURCES]; // by set
    enum noise_source source[NOISE_SOURCES];
    int nsource;           // sets beside the first
    uint64_t quiet_cycles; // of the run without noise
};

// ---- one run -----------------------------------------------------------------------------------

static npu_status again(struct job *j, const struct noise *noise, uint64_t run,
                        struct shard_result *out) {
    struct sim_repeat r = {0};
    NPU_TRY(sim_device_repeat(j->device, noise, run, &r));
    *out = (struct shard_result){r.cycles, r.latency_ps, r.sampled_ps, r.seconds};
    if (noise->sources == NOISE_OFF) NPU_ASSERT(r.cycles == j->quiet_cycles);
    return NULL;
}

static npu_status work(void *ctx, uint64_t piece, struct shard_result *out) {
    struct job *j = ctx;
    const uint64_t set = piece < j->n ? 0 : 1 + (piece - j->n) / j->share_n;
    const uint64_t run = piece < j->n ? piece : (piece - j->n) % j->share_n;
    return again(j, &j->noise[set], j->first + run, out);
}

// ---- what is made of them ----------------------------------------------------------------------

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(struct arena *a, const double *v, uint64_t n) {
    double *sorted = ARENA_ARRAY(a, double, n);
    memcpy(sorted, v, n * sizeof *v);
    qsort(sorted, n, sizeof *v, by_value);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static double *times_us(struct arena *a, const struct shard_result *r, uint64_t n) {
    double *t = ARENA_ARRAY(a, double, n);
    for (uint64_t i = 0; i < n; i++)
        t[i] = (double)r[i].latency_ps * 1e-6;
    return t;
}

// Draws are of a run alone but for the host's state, which lasts.
static bool related(const struct job *j, const struct noise *noise) {
    return j->s->host && noise_on(noise, NOISE_HOST);
}

static npu_status sources(struct job *j, const struct shard_result *r, const double *all,
                          struct trace_runs *view) {
    struct trace_source *list = ARENA_ARRAY(j->s->a, struct trace_source, (size_t)j->nsource);
    for (int k = 0; k < j->nsource; k++) {
        const double *t = times_us(j->s->a, r + j->n + (uint64_t)k * j->share_n, j->share_n);
        struct noise_summary without;
        NPU_TRY(noise_summarise(t, j->share_n, related(j, &j->noise[1 + k]), j->noise[0].seed,
                                &without));
        list[k] = (struct trace_source){.name = noise_key(j->source[k]),
                                        .sampled = noise_kind(j->source[k]) == NOISE_SAMPLED,
                                        .mean_us = without.stat[NOISE_STAT_MEAN].value,
                                        .std_us = without.stat[NOISE_STAT_STD].value};
        NPU_TRY(noise_share(all, t, j->share_n, related(j, &j->noise[0]), j->noise[0].seed,
                            &list[k].share));
    }
    view->source = list;
    view->nsource = (size_t)j->nsource;
    view->source_runs = j->share_n;
    return NULL;
}

static npu_status summarise(struct job *j, const struct shard_result *r, uint64_t pieces,
                            struct npusim_runs *out) {
    struct arena *a = j->s->a;
    double *seconds = ARENA_ARRAY(a, double, pieces), sampled = 0;
    for (uint64_t i = 0; i < pieces; i++) {
        seconds[i] = r[i].seconds;
        out->host_seconds += seconds[i];
        if (i < j->n) sampled += (double)r[i].sampled_ps * 1e-6;
    }
    out->median_seconds = median(a, seconds, pieces);
    const double *t = times_us(a, r, j->n);
    NPU_TRY(noise_summarise(t, j->n, related(j, &j->noise[0]), j->noise[0].seed, &out->summary));
    char *text = arena_alloc(a, NOISE_TEXT_BYTES);
    out->view = (struct trace_runs){
        .program = npu_program_name(j->s->program),
        .n = j->n,
        .seed = j->noise[0].seed,
        .first = j->first,
        .noise = noise_text(j->noise[0].sources, text),
        .time_us = t,
        .summary = &out->summary,
        .quiet_us = (double)sim_device_latency_ps(j->device, j->quiet_cycles) * 1e-6,
        .sampled_us = sampled / (double)j->n,
    };
    NPU_ASSERT(j->noise[0].sources != NOISE_OFF || out->summary.stat[NOISE_STAT_STD].value == 0);
    return sources(j, r, t, &out->view);
}

// Which sets to make: shares need two sources at least.
static void plan(struct job *j, const struct npusim_options *o) {
    const unsigned on = o->noise;
    j->noise[0] = (struct noise){.sources = on, .seed = o->seed};
    const bool two = (on & (on - 1)) != 0, asked = o->by_source_given;
    uint64_t n = asked ? o->by_source : j->n >= NPUSIM_SHARE_FROM ? NPUSIM_SHARE_RUNS : 0;
    j->share_n = n < j->n ? n : j->n;
    if (!two || j->share_n < 2) return;
    for (int i = 0; i < NOISE_SOURCES; i++) {
        if (!(on >> i & 1U)) continue;
        j->source[j->nsource++] = (enum noise_source)i;
        j->noise[j->nsource] = (struct noise){.sources = on & ~(1U << i), .seed = o->seed};
    }
}

npu_status npusim_runs_take(struct npusim *s, struct npusim_runs *out) {
    struct sim_device *d = sim_device_of(s->device);
    const struct sim_totals first = *sim_device_totals(d);
    struct job j = {.s = s,
                    .device = d,
                    .n = s->o->runs,
                    .first = s->o->first_run,
                    .quiet_cycles = first.cycles};
    *out = (struct npusim_runs){.n = j.n, .cycles = first.cycles};
    plan(&j, s->o);
    const uint64_t pieces = j.n + (uint64_t)j.nsource * j.share_n;
    struct shard_result *r = ARENA_ARRAY(s->a, struct shard_result, pieces);
    progress_stage("runs", pieces, 0, 100);
    if (pieces == 1 && s->o->noise == NOISE_OFF &&
        !s->host) // that is the one that has just been made
        r[0] = (struct shard_result){first.cycles, sim_device_latency_ps(d, first.cycles), 0,
                                     first.run_seconds};
    else
        NPU_TRY(shards_run(s->o->threads ? (int)s->o->threads : shards_processors(), pieces, work,
                           &j, r));
    progress_stage("statistics", 0, 100, 100);
    return summarise(&j, r, pieces, out);
}
