// SPDX-License-Identifier: Apache-2.0
// struct trace_run from totals and a program.
#include "simulator/view.h"

#include <sys/resource.h>

#include "runtime/api.h"

// Element type of the program's products, for the bounds: of its first floating tensor, else i8.
static int product_dtype(const struct npu_program_image *image) {
    for (size_t i = 0; i < image->ntensors; i++)
        if (isa_dtype_is_float(image->tensors[i].dtype)) return image->tensors[i].dtype;
    return ISA_I8;
}

static struct trace_work *work_of(const struct core_names *names, const struct sim_traffic *traffic,
                                  struct arena *a, size_t *count) {
    struct trace_work *work = core_names_work(names, a, count);
    if (*count == 0) return NULL;
    for (size_t i = 0; i < *count; i++)
        if (!work[i].dtype) work[i].dtype = product_dtype(names->image);
    work[0].io_bytes += traffic->in_bytes;
    work[*count - 1].io_bytes += traffic->out_bytes;
    return work;
}

static uint64_t peak_rss_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

npu_status sim_view_init(struct sim_view *v, const struct npu_program *program, const struct hw *hw,
                         const struct sim_totals *t, const struct sim_traffic *traffic,
                         struct arena *a) {
    *v = (struct sim_view){.run = {.program = npu_program_name(program),
                                   .target = npu_program_target(program),
                                   .hw = hw,
                                   .cycles = t->cycles,
                                   .instructions = t->instructions,
                                   .engine = t->engine,
                                   .nengine = t->nengine,
                                   .tag = t->tag,
                                   .ntag = t->ntag,
                                   .dram = t->dram,
                                   .code = npu_program_image_of(program)->code,
                                   .spm_peak_bytes = (uint64_t)t->spm_peak_bytes,
                                   .lookup = core_names_lookup,
                                   .host_seconds = t->run_seconds,
                                   .peak_rss_bytes = peak_rss_bytes(),
                                   .runs = {.n = 1, .noise = "off"}}};
    v->run.lookup_ctx = &v->names;
    NPU_TRY(core_names_init(&v->names, npu_program_image_of(program)));
    v->run.work = work_of(&v->names, traffic, a, &v->run.nwork);
    return NULL;
}

void sim_view_deinit(struct sim_view *v) {
    core_names_deinit(&v->names);
}
