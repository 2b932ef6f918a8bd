// SPDX-License-Identifier: Apache-2.0
// npusim: load, open the simulated device, give inputs, run, report, write, compare.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/progress.h"
#include "runtime/base/standard.h"
#include "simulator/exec/val.h"
#include "simulator/npusim/break.h"
#include "simulator/npusim/crc.h"
#include "simulator/npusim/diff.h"
#include "simulator/npusim/layers.h"
#include "simulator/npusim/report.h"
#include "simulator/npusim/runs.h"
#include "simulator/npusim/uses.h"

// NPU_SIMD chooses the host's code path for values; results never depend on it.
static npu_status choose_code_path(void) {
    const char *name = getenv("NPU_SIMD");
    int path = name ? val_isa_parse(name) : VAL_AUTO;
    if (path < 0) return npu_fail(USAGE, "NPU_SIMD=%s: expected sse2, avx2, avx512 or auto", name);
    if (!val_set_isa((enum val_isa)path))
        return npu_fail(UNSUPPORTED, "NPU_SIMD=%s: this processor lacks it", name);
    return NULL;
}

// What ran until a fault is worth a look: the reports that were asked for, marked as ended by it.
static npu_status report_fault(struct npusim *s, struct sim_device *d, struct trace_log *log,
                               npu_status fault) {
    const double seconds = sim_device_totals(d)->run_seconds;
    const struct npusim_runs runs = {.n = 1, .median_seconds = seconds, .host_seconds = seconds};
    npu_status st = trace_log_finish(log);
    if (!st && npu_status_code(fault) == NPU_FAULT)
        st = npusim_report(s, sim_device_totals(d), sim_device_hw(d), log, &runs,
                           npu_status_message(fault));
    return npu_status_join(npu_note(fault, "running %s", s->o->program), st);
}

// A run that --break stopped: the reports that were asked for, up to there.
static npu_status report_stop(struct npusim *s, struct sim_device *d, struct trace_log *log) {
    const double seconds = sim_device_totals(d)->run_seconds;
    const struct npusim_runs runs = {.n = 1, .median_seconds = seconds, .host_seconds = seconds};
    const struct core_stopped *at = sim_device_stopped(d);
    s->stopped = arena_printf(s->a, "cycle %" PRIu64 ", --break %s", at->cycle,
                              s->o->stop.item[at->where].value);
    NPU_TRY(trace_log_finish(log));
    NPU_TRY(npusim_report(s, sim_device_totals(d), sim_device_hw(d), log, &runs, NULL));
    return s->o->crc ? crc_write(npu_program_image_of(s->program), s->writes, s->o->crc) : NULL;
}

static void show_progress(const struct npusim *s) {
    if (!s->o->quiet) progress_start("npusim", STDERR_FILENO, 1.0);
}

static npu_status run(struct npusim *s, struct npusim *other, struct trace_log *log,
                      struct layers **layers) {
    struct npusim_runs runs = {0}, other_runs;
    struct breaks breaks = {0};
    struct files files;
    bool stopped = false;
    NPU_TRY(npusim_files_named(s->o, s->a, &files));
    NPU_TRY(npusim_open(s, s->o->program));
    if (s->o->versus) NPU_TRY(npusim_versus_open(s, other));
    show_progress(s);
    struct sim_device *d = sim_device_of(s->device);
    const bool watched = s->o->check_layers || s->o->crc || s->o->crc_against;
    if (s->o->check_layers) NPU_TRY(layers_begin(s, layers));
    progress_end();
    NPU_TRY(breaks_begin(s, &breaks));
    NPU_TRY(npusim_files_found(s, &files));
    s->writes->device = d;
    if (watched) sim_device_watch(d, writes_add, s->writes);
    sim_device_begin(d, watched || s->o->trace_file.n || s->o->what_if ? log : NULL);
    show_progress(s);
    npu_status st = npu_session_run(s->session, NULL);
    progress_end();
    if (!st || npu_status_code(st) == NPU_FAULT)
        st = npu_status_join(st, breaks_show(s, &breaks, st != NULL, &stopped));
    if (st) return report_fault(s, d, log, st);
    if (stopped) return report_stop(s, d, log);
    if (s->o->verbose)
        fprintf(stderr, "npusim: functional pass %.3f s, timing %.3f s\n",
                sim_device_totals(d)->exec_seconds, sim_device_totals(d)->run_seconds);
    if (!s->o->no_data) NPU_TRY(npusim_check_outputs(s));
    sim_device_watch(d, NULL, NULL);
    NPU_TRY(trace_log_finish(log));
    show_progress(s);
    NPU_TRY(npusim_runs_take(s, &runs));
    if (s->o->versus) NPU_TRY(npusim_versus(s, other, &runs, &other_runs));
    progress_end();
    NPU_TRY(npusim_report(s, sim_device_totals(d), sim_device_hw(d), log, &runs, NULL));
    NPU_TRY(npusim_write_outputs(s));
    show_progress(s);
    if (s->o->crc) NPU_TRY(crc_write(npu_program_image_of(s->program), s->writes, s->o->crc));
    npu_status layers_differ = *layers ? layers_check(s, *layers, log) : NULL;
    npu_status crc_differ =
        s->o->crc_against ? crc_compare(s, s->writes, log, s->o->crc_against) : NULL;
    npu_status differ = s->o->expect.n || s->o->expects ? npusim_compare(s) : NULL;
    return npu_status_join(npu_status_join(layers_differ, crc_differ), differ);
}

int main(int argc, char **argv) {
    jmp_buf oom;
    standard_init("npusim");
    struct arena *volatile a = arena_new();
    struct npusim_options o;
    static struct npusim s, other;
    static struct trace_log log;
    static struct writes writes;
    static struct layers *layers;
    npu_status st = NULL;
    if (setjmp(oom)) {
        st = npu_fail(NO_MEMORY, "out of memory");
    } else {
        arena_set_oom(a, &oom);
        s = (struct npusim){.o = &o, .a = a, .writes = &writes};
        st = npusim_options_parse(argc, argv, a, &o);
        npu_status_show_source(o.verbose);
        if (!st) st = choose_code_path();
        if (!st) st = o.diff ? npusim_diff(&o, a) : run(&s, &other, &log, &layers);
    }
    progress_end();
    layers_free(layers);
    writes_deinit(&writes);
    npusim_close(&other);
    npusim_close(&s);
    trace_log_free(&log);
    arena_free(a);
    return npu_status_report(standard_finish(st), "npusim");
}
