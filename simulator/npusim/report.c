// SPDX-License-Identifier: Apache-2.0
// Adds files, runs and outputs to the view of the run, and lets the views write.
#define _POSIX_C_SOURCE 200809L // nl_langinfo
#include "simulator/npusim/report.h"
#include "simulator/line.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "runtime/base/str.h"
#include "simulator/npusim/whatif.h"
#include "simulator/view.h"

static struct sim_traffic traffic_of(const struct npusim *s) {
    struct sim_traffic t = {0};
    for (size_t i = 0; i < s->in.n; i++)
        t.in_bytes += s->in.item[i].info.bytes;
    for (size_t i = 0; i < s->out.n; i++)
        t.out_bytes += s->out.item[i].info.bytes;
    return t;
}

static struct trace_input *inputs_of(struct npusim *s) {
    struct trace_input *in = ARENA_ARRAY(s->a, struct trace_input, s->in.n ? s->in.n : 1);
    for (size_t i = 0; i < s->in.n; i++)
        in[i] = (struct trace_input){s->in.item[i].info.name, s->in.item[i].source};
    return in;
}

static npu_status outputs_of(struct npusim *s, struct trace_output **out) {
    *out = ARENA_ARRAY(s->a, struct trace_output, s->out.n ? s->out.n : 1);
    for (size_t i = 0; i < s->out.n; i++) {
        struct tensor_data data;
        const struct npusim_tensor *t = &s->out.item[i];
        NPU_TRY(npusim_read_output(s, t, &data));
        (*out)[i] =
            (struct trace_output){.name = t->info.name,
                                  .dtype = npu_dtype_name(t->info.dtype),
                                  .rank = t->info.rank,
                                  .shape = t->info.dims,
                                  .crc32 = (uint32_t)crc32_z(0, data.data, data.size_bytes)};
    }
    return NULL;
}

static void summary(const struct npusim *s, const struct sim_totals *t, const struct hw *hw,
                    const struct npusim_runs *runs) {
    struct str name = {0};
    str_shown(&name, npu_program_name(s->program));
    printf("%s: %" PRIu64 " cycles, %.3f us at %" PRId64 " MHz", str_text(&name), t->cycles,
           (double)t->cycles / (double)hw->clock_npu_mhz, hw->clock_npu_mhz);
    str_free(&name);
    printf("; %" PRIu64 " instructions", t->instructions);
    if (t->jobs > 1) printf(", %" PRIu64 " submissions", t->jobs);
    if (s->host && sim_device_host(sim_device_of(s->device))) printf(", the host's time included");
    if (runs->median_seconds > 0)
        printf("; simulated at %.1f M cycles/s", (double)t->cycles / runs->median_seconds / 1e6);
    printf("\n");
    if (runs->n > 1)
        printf("%" PRIu64 " runs: %srun loop %.3f ms (median)\n", runs->n,
               s->o->noise == NOISE_OFF ? "spread 0 cycles; " : "", runs->median_seconds * 1e3);
}

static bool locale_is_utf8(void) {
    setlocale(LC_CTYPE, "");
    return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

// Several runs that may differ, or two programs.
static npu_status distributions(const struct npusim *s, const struct npusim_runs *runs) {
    if (!s->o->versus && s->o->noise == NOISE_OFF) return NULL;
    struct str text = {0};
    npusim_runs_print(&runs->view, locale_is_utf8(), &text);
    npu_status st = str_status(&text);
    if (!st) fputs(str_text(&text), stdout);
    str_free(&text);
    return st;
}

static bool is_html(const struct npusim *s) {
    for (int i = 0; i < s->o->trace_file.n; i++) {
        const char *dot = strrchr(s->o->trace_file.item[i].value, '.');
        if (dot && strcmp(dot, ".html") == 0) return true;
    }
    return false;
}

// Asked for, or what a page for people has.
static npu_status what_if(struct npusim *s, const struct trace_log *log, struct trace_run *run) {
    unsigned set = 0;
    struct trace_whatif *found;
    const char *list = s->o->what_if ? s->o->what_if : is_html(s) ? "all" : "none";
    NPU_TRY(npusim_whatif_parse(list, &set));
    if (!set || run->fault || run->stopped) return NULL;
    NPU_TRY(npusim_whatif(s, set, run, log, &found, &run->nwhatif));
    run->whatif = found;
    return NULL;
}

static npu_status views(struct npusim *s, const struct trace_run *run,
                        const struct trace_log *log) {
    if (s->o->trace) {
        struct str text = {0};
        npu_status st = trace_text(run, &text);
        if (s->o->what_if) npusim_whatif_print(run, &text);
        if (!st) fputs(str_text(&text), stdout);
        str_free(&text);
        NPU_TRY(st);
    } else if (s->o->what_if) {
        struct str text = {0};
        npusim_whatif_print(run, &text);
        fputs(str_text(&text), stdout);
        str_free(&text);
    }
    for (int i = 0; i < s->o->trace_file.n; i++)
        NPU_TRY(trace_write(run, log, s->o->trace_file.item[i].value));
    return s->o->report ? trace_report_write(run, s->o->report) : NULL;
}

static struct trace_host launches_of(const struct npusim *s, const struct sim_totals *t) {
    const struct sim_device *d = sim_device_of(s->device);
    const struct sim_host *h = sim_device_host(d);
    if (!h) return (struct trace_host){0};
    const double latency = (double)sim_device_latency_ps(d, t->cycles) * 1e-6;
    return (struct trace_host){.launches = h->launches,
                               .views = h->views,
                               .source = s->host ? host_model_source(s->host) : NULL,
                               .launch_us = (double)h->launch_ps * 1e-6,
                               .view_us = (double)h->view_ps * 1e-6,
                               .full_us = (double)h->full_ps * 1e-6,
                               .bubble_cycles = h->bubble_cycles,
                               .latency_us = latency};
}

npu_status npusim_report(struct npusim *s, const struct sim_totals *t, const struct hw *hw,
                         const struct trace_log *log, const struct npusim_runs *runs,
                         const char *fault) {
    const bool early = fault || s->stopped;
    if (!s->o->quiet && !s->o->trace && !early) summary(s, t, hw, runs);
    if (!s->o->quiet && !early) NPU_TRY(distributions(s, runs));
    if (!s->o->trace && !s->o->report && !s->o->what_if) return NULL;
    struct trace_output *outputs = NULL;
    if ((s->o->report || is_html(s)) && !s->o->no_data && !early) NPU_TRY(outputs_of(s, &outputs));
    const struct sim_traffic traffic = traffic_of(s);
    struct sim_view v;
    npu_status st = sim_view_init(&v, s->program, hw, t, &traffic, s->a);
    v.run.fault = fault;
    v.run.stopped = s->stopped;
    v.run.host_seconds = runs->host_seconds;
    if (!early) v.run.launches = launches_of(s, t);
    if (!early) v.run.runs = runs->view;
    v.run.input = inputs_of(s);
    v.run.ninput = s->in.n;
    v.run.output = outputs;
    v.run.noutput = outputs ? s->out.n : 0;
    if (!st) st = what_if(s, log, &v.run);
    if (!st) st = views(s, &v.run, log);
    sim_view_deinit(&v);
    return st;
}
