// SPDX-License-Identifier: Apache-2.0
// Fills struct trace_run from the device's totals and the program's names, and lets the views
// write.
#include "simulator/npusim/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <zlib.h>

#include "runtime/base/str.h"
#include "simulator/core/names.h"

// Element type of the program's products, for the bounds: of its first floating tensor, else i8.
static int product_dtype(const struct npu_program_image *image) {
    for (size_t i = 0; i < image->ntensors; i++)
        if (isa_dtype_is_float(image->tensors[i].dtype)) return image->tensors[i].dtype;
    return ISA_I8;
}

static struct trace_work *work_of(struct npusim *s, const struct core_names *names, size_t *count) {
    const struct npu_program_image *image = npu_program_image_of(s->program);
    struct trace_work *work = core_names_work(names, s->a, count);
    if (*count == 0) return NULL;
    for (size_t i = 0; i < *count; i++)
        if (!work[i].dtype) work[i].dtype = product_dtype(image);
    for (size_t i = 0; i < s->in.n; i++)
        work[0].io_bytes += s->in.item[i].info.bytes;
    for (size_t i = 0; i < s->out.n; i++)
        work[*count - 1].io_bytes += s->out.item[i].info.bytes;
    return work;
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

static uint64_t peak_rss_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

static void summary(const struct npusim *s, const struct sim_totals *t, const struct hw *hw,
                    const struct npusim_runs *runs) {
    printf("%s: %" PRIu64 " cycles, %.3f us at %" PRId64 " MHz", npu_program_name(s->program),
           t->cycles, (double)t->cycles / (double)hw->clock_npu_mhz, hw->clock_npu_mhz);
    printf("; %" PRIu64 " instructions", t->instructions);
    if (t->jobs > 1) printf(", %" PRIu64 " submissions", t->jobs);
    if (runs->median_seconds > 0)
        printf("; simulated at %.1f M cycles/s", (double)t->cycles / runs->median_seconds / 1e6);
    printf("\n");
    if (runs->n > 1)
        printf("%" PRIu64 " runs: spread 0 cycles; run loop %.3f ms (median)\n", runs->n,
               runs->median_seconds * 1e3);
}

static npu_status views(struct npusim *s, const struct trace_run *run,
                        const struct trace_log *log) {
    if (s->o->trace) {
        struct str text = {0};
        npu_status st = trace_text(run, &text);
        if (!st) fputs(str_text(&text), stdout);
        str_free(&text);
        NPU_TRY(st);
    }
    if (s->o->trace_file) NPU_TRY(trace_write(run, log, s->o->trace_file));
    return s->o->report ? trace_report_write(run, s->o->report) : NULL;
}

npu_status npusim_report(struct npusim *s, const struct sim_totals *t, const struct hw *hw,
                         const struct trace_log *log, const struct npusim_runs *runs,
                         const char *fault) {
    const struct npu_program_image *image = npu_program_image_of(s->program);
    struct core_names names;
    struct trace_output *outputs = NULL;
    struct trace_run run = {
        .program = npu_program_name(s->program),
        .target = npu_program_target(s->program),
        .hw = hw,
        .fault = fault,
        .cycles = t->cycles,
        .instructions = t->instructions,
        .engine = t->engine,
        .nengine = t->nengine,
        .tag = t->tag,
        .ntag = t->ntag,
        .dram = t->dram,
        .spm_peak_bytes = (uint64_t)t->spm_peak_bytes,
        .lookup = core_names_lookup,
        .lookup_ctx = &names,
        .host_seconds = runs->median_seconds * (double)runs->n,
        .peak_rss_bytes = peak_rss_bytes(),
        .runs = {.n = runs->n, .seed = s->o->seed, .noise = "off", .time_us = runs->time_us}};
    if (!s->o->quiet && !s->o->trace && !fault) summary(s, t, hw, runs);
    if (!s->o->trace && !s->o->report) return NULL;
    if (s->o->report && !s->o->no_data && !fault) {
        NPU_TRY(outputs_of(s, &outputs));
        run.output = outputs;
        run.noutput = s->out.n;
    }
    NPU_TRY(core_names_init(&names, image));
    run.input = inputs_of(s);
    run.ninput = s->in.n;
    run.work = work_of(s, &names, &run.nwork);
    npu_status st = views(s, &run, log);
    core_names_deinit(&names);
    return st;
}
