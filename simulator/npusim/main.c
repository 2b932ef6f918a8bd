// SPDX-License-Identifier: Apache-2.0
// npusim: load, open the simulated device, give inputs, run, report, write, compare.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/hw_yaml.h"
#include "runtime/base/progress.h"
#include "runtime/base/standard.h"
#include "runtime/base/str.h"
#include "runtime/include/npu/simulator.h"
#include "simulator/exec/val.h"
#include "simulator/npusim/crc.h"
#include "simulator/npusim/layers.h"
#include "simulator/npusim/report.h"

// NPU_SIMD chooses the host's code path for values; results never depend on it.
static npu_status choose_code_path(void) {
    const char *name = getenv("NPU_SIMD");
    int path = name ? val_isa_parse(name) : VAL_AUTO;
    if (path < 0) return npu_fail(USAGE, "NPU_SIMD=%s: expected sse2, avx2, avx512 or auto", name);
    if (!val_set_isa((enum val_isa)path))
        return npu_fail(UNSUPPORTED, "NPU_SIMD=%s: this processor lacks it", name);
    return NULL;
}

// The program's machine with --set applied, as text for the device.
static npu_status open_device(struct npusim *s) {
    struct hw hw = s->program->machine;
    struct str yaml = {0};
    for (int i = 0; i < s->o->set.n; i++)
        NPU_TRY_NOTE(
            hw_set_text(&hw, s->o->set.item[i].value, HW_SET_TIMING),
            "--set %s: a parameter that decides which programs are legal belongs to npuc --set",
            s->o->set.item[i].value);
    hw_print_yaml(&hw, &yaml);
    npu_status st = str_status(&yaml);
    const struct npu_simulator_config config = {.machine = str_text(&yaml),
                                                .no_data = s->o->no_data};
    if (!st) st = npu_device_open(npu_simulator_ops(), &config, &s->device);
    str_free(&yaml);
    return st;
}

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

// The runs after the first. Without noise every run takes the same cycles: anything else is a
// mistake of ours.
static npu_status repeat(struct npusim *s, struct sim_device *d, struct npusim_runs *runs) {
    const struct sim_totals first = *sim_device_totals(d);
    const double mhz = (double)sim_device_hw(d)->clock_npu_mhz;
    runs->n = s->o->runs;
    runs->cycles = first.cycles;
    runs->time_us = ARENA_ARRAY(s->a, double, runs->n);
    runs->wall_seconds = ARENA_ARRAY(s->a, double, runs->n);
    for (uint64_t i = 0; i < runs->n; i++) {
        uint64_t cycles = first.cycles;
        double seconds = first.run_seconds;
        if (i > 0 && first.jobs == 1) {
            struct sim_repeat again;
            NPU_TRY(sim_device_repeat(d, NULL, i, &again));
            cycles = again.cycles;
            seconds = again.seconds;
        }
        if (i > 0 && first.jobs != 1) {
            sim_device_begin(d, NULL);
            NPU_TRY(npu_session_run(s->session, NULL));
            cycles = sim_device_totals(d)->cycles;
            seconds = sim_device_totals(d)->run_seconds;
        }
        NPU_ASSERT(cycles == first.cycles);
        runs->time_us[i] = (double)cycles / mhz;
        runs->wall_seconds[i] = seconds;
    }
    runs->median_seconds = median(s->a, runs->wall_seconds, runs->n);
    return NULL;
}

// What ran until a fault is worth a look: the reports that were asked for, marked as ended by it.
static npu_status report_fault(struct npusim *s, struct sim_device *d, struct trace_log *log,
                               npu_status fault) {
    struct npusim_runs runs = {.n = 1, .median_seconds = sim_device_totals(d)->run_seconds};
    npu_status st = trace_log_finish(log);
    if (!st && npu_status_code(fault) == NPU_FAULT)
        st = npusim_report(s, sim_device_totals(d), sim_device_hw(d), log, &runs,
                           npu_status_message(fault));
    return npu_status_join(npu_note(fault, "running %s", s->o->program), st);
}

static void show_progress(const struct npusim *s) {
    if (!s->o->quiet) progress_start("npusim", STDERR_FILENO, 1.0);
}

static npu_status run(struct npusim *s, struct trace_log *log, struct layers **layers) {
    struct npusim_runs runs = {0};
    NPU_TRY(npu_program_load(s->o->program, &s->program));
    NPU_TRY(open_device(s));
    NPU_TRY(npu_session_new(s->device, s->program, &s->session));
    if (s->o->entry) NPU_TRY(npu_session_set_entry(s->session, s->o->entry));
    NPU_TRY(npusim_tensors_list(s));
    NPU_TRY(npusim_set_scalars(s));
    NPU_TRY(npusim_set_inputs(s));
    show_progress(s);
    struct sim_device *d = sim_device_of(s->device);
    const bool watched = s->o->check_layers || s->o->crc || s->o->crc_against;
    if (s->o->check_layers) NPU_TRY(layers_begin(s, layers));
    progress_end();
    s->writes->device = d;
    if (watched) sim_device_watch(d, writes_add, s->writes);
    sim_device_begin(d, watched || s->o->trace_file ? log : NULL);
    show_progress(s);
    npu_status st = npu_session_run(s->session, NULL);
    progress_end();
    if (st) return report_fault(s, d, log, st);
    if (s->o->verbose)
        fprintf(stderr, "npusim: functional pass %.3f s, timing %.3f s\n",
                sim_device_totals(d)->exec_seconds, sim_device_totals(d)->run_seconds);
    if (!s->o->no_data) NPU_TRY(npusim_check_outputs(s));
    sim_device_watch(d, NULL, NULL);
    NPU_TRY(trace_log_finish(log));
    show_progress(s);
    NPU_TRY(repeat(s, d, &runs));
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
    static struct npusim s;
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
        if (!st) st = run(&s, &log, &layers);
    }
    progress_end();
    layers_free(layers);
    writes_deinit(&writes);
    npu_session_free(s.session);
    npu_device_close(s.device);
    npu_program_free(s.program);
    trace_log_free(&log);
    arena_free(a);
    return npu_status_report(standard_finish(st), "npusim");
}
