// SPDX-License-Identifier: Apache-2.0
//
// Distributions as JSON. Calls of jansson are not checked: the allocator of report.c notes what
// failed.
#include "simulator/trace/report_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"

#define POINTS 100 // of the empirical distribution: quantiles of 0, 1/100, ..., 1

static json_t *number(uint64_t n) {
    return json_integer((json_int_t)n);
}

// JSON has no infinity.
static json_t *real(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *text(const char *s) {
    json_t *t = json_string(s);
    return t ? t : json_string("?");
}

static json_t *pair(const struct noise_estimate *e) {
    json_t *list = json_array();
    json_array_append_new(list, real(e->lo));
    json_array_append_new(list, real(e->hi));
    return list;
}

static json_t *estimate(const struct noise_estimate *e) {
    json_t *o = json_object();
    json_object_set_new(o, "value", real(e->value));
    json_object_set_new(o, "interval", pair(e));
    return o;
}

static json_t *histogram(const struct noise_summary *s) {
    json_t *o = json_object(), *counts = json_array();
    for (int i = 0; i < NOISE_BINS; i++)
        json_array_append_new(counts, number(s->bin[i]));
    json_object_set_new(o, "from_us", real(s->from_us));
    json_object_set_new(o, "width_us", real(s->width_us));
    json_object_set_new(o, "counts", counts);
    return o;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static npu_status quantiles(const double *time_us, uint64_t n, json_t **out) {
    double *t = base_alloc_array((size_t)n, sizeof *t);
    if (!t) return npu_fail(NO_MEMORY, "report of the runs: out of memory");
    memcpy(t, time_us, (size_t)n * sizeof *t);
    qsort(t, (size_t)n, sizeof *t, ascending);
    *out = json_array();
    for (int i = 0; i <= POINTS; i++)
        json_array_append_new(*out, real(noise_quantile(t, n, (double)i / POINTS)));
    base_free(t);
    return NULL;
}

static void add_sources(json_t *o, const struct trace_runs *r) {
    json_t *shares = json_object(), *list = json_array();
    for (size_t i = 0; i < r->nsource; i++) {
        const struct trace_source *s = &r->source[i];
        json_t *one = json_object();
        json_object_set_new(shares, s->name, real(s->share.value));
        json_object_set_new(one, "name", text(s->name));
        json_object_set_new(one, "kind", text(s->sampled ? "sampled" : "simulated"));
        json_object_set_new(one, "share", real(s->share.value));
        json_object_set_new(one, "share_interval", pair(&s->share));
        json_object_set_new(one, "mean_without_us", real(s->mean_us));
        json_object_set_new(one, "std_without_us", real(s->std_us));
        json_array_append_new(list, one);
    }
    json_object_set_new(o, "by_source", shares);
    json_object_set_new(o, "sources", list);
}

static npu_status distribution(const struct trace_runs *r, json_t **out) {
    const struct noise_summary *s = r->summary;
    json_t *o = *out = json_object(), *intervals = json_object(), *points;
    if (r->program) json_object_set_new(o, "program", text(r->program));
    json_object_set_new(o, "n", number(r->n));
    json_object_set_new(o, "first_run", number(r->first));
    json_object_set_new(o, "seed", number(r->seed));
    json_object_set_new(o, "noise", text(r->noise ? r->noise : "off"));
    for (int i = 0; i < NOISE_STATS; i++) {
        const char *key = noise_stat_key((enum noise_stat)i);
        json_object_set_new(o, key, real(s->stat[i].value));
        json_object_set_new(intervals, key, pair(&s->stat[i]));
    }
    json_object_set_new(o, "interval_level", real(NOISE_LEVEL));
    json_object_set_new(o, "resamples", number(NOISE_RESAMPLES));
    json_object_set_new(o, "resample_block", number(s->block));
    json_object_set_new(o, "correlation", real(s->correlation));
    json_object_set_new(o, "intervals", intervals);
    json_object_set_new(o, "histogram", histogram(s));
    json_object_set_new(o, "quiet_us", real(r->quiet_us));
    json_object_set_new(o, "sampled_mean_us", real(r->sampled_us));
    json_object_set_new(o, "source_runs", number(r->source_runs));
    add_sources(o, r);
    NPU_TRY(quantiles(r->time_us, r->n, &points));
    json_object_set_new(o, "quantiles_us", points);
    json_t *times = json_array();
    for (uint64_t i = 0; i < r->n; i++)
        json_array_append_new(times, real(r->time_us[i]));
    json_object_set_new(o, "times_us", times);
    if (!r->versus) return NULL;
    json_t *other;
    npu_status st = distribution(r->versus, &other);
    json_object_set_new(other, "mean_ratio", estimate(&r->mean_ratio));
    json_object_set_new(other, "std_ratio", estimate(&r->std_ratio));
    json_object_set_new(o, "versus", other);
    return st;
}

npu_status trace_report_runs(const struct trace_run *run, json_t **out) {
    const double one = (double)run->cycles / (double)run->hw->clock_npu_mhz;
    struct trace_runs r = run->runs;
    struct noise_summary summary;
    *out = NULL;
    if (!r.n || !r.time_us) {
        r.n = 1;
        r.time_us = &one;
        r.quiet_us = one;
        r.summary = NULL;
    }
    if (!r.summary) NPU_TRY(noise_summarise(r.time_us, r.n, false, r.seed, &summary));
    if (!r.summary) r.summary = &summary;
    npu_status st = distribution(&r, out);
    if (!st) return NULL;
    json_decref(*out);
    *out = NULL;
    return st;
}
