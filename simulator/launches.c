// SPDX-License-Identifier: Apache-2.0
//
// Records are kept launch by launch, as small as they are (80 bytes an instruction):
// ModernBERT-base has 630 launches and 69,412 instructions, 7 MB.
#include "simulator/launches.h"

#include <inttypes.h>

#include "runtime/base/alloc.h"
#include "simulator/device.h"

static npu_status no_memory(void) {
    return npu_fail(NO_MEMORY, "out of memory for the records of launches");
}

static void forget(struct sim_launches *s) {
    for (size_t i = 0; i < s->count; i++)
        units_program_free(s->launch[i].program);
    s->count = 0;
    sim_line_deinit(&s->line);
}

void sim_launches_deinit(struct sim_launches *s) {
    forget(s);
    base_free(s->launch);
    *s = (struct sim_launches){0};
}

static npu_status add(struct sim_launches *s, const struct sim_launch *l) {
    if (s->count == s->capacity) {
        const size_t capacity = s->capacity ? s->capacity * 2 : 64;
        struct sim_launch *grown = base_realloc(s->launch, capacity * sizeof *grown);
        if (!grown) return no_memory();
        s->launch = grown;
        s->capacity = capacity;
    }
    s->launch[s->count++] = *l;
    return NULL;
}

npu_status sim_launches_next(struct sim_launches *s, const struct host_model *model,
                             const struct npu_image_entry *e, size_t launch, uint64_t clock_mhz,
                             uint64_t *gap) {
    struct sim_launch l = {.views = e->launches[launch].views};
    if (launch == 0) {
        forget(s);
        s->views = e->views;
        NPU_TRY(sim_line_begin(&s->line, model, NULL, 0, clock_mhz));
    }
    if (model)
        NPU_TRY_NOTE(sim_line_class(model, &e->launches[launch], &l.op_class), "launch %zu",
                     launch);
    NPU_TRY(add(s, &l));
    sim_line_launch(&s->line, l.op_class, l.views, gap);
    return NULL;
}

npu_status sim_launches_ran(struct sim_launches *s, struct core *keep, uint64_t cycles) {
    struct sim_launch *l = &s->launch[s->count - 1];
    l->cycles = cycles;
    sim_line_ran(&s->line, cycles);
    if (!keep) return NULL;
    l->program = core_take(keep);
    return l->program ? NULL : no_memory();
}

uint64_t sim_launches_latency_ps(const struct sim_launches *s) {
    struct sim_line end = s->line; // its queue is lent
    return sim_line_latency_ps(&end, s->views);
}

static npu_status run_line(const struct sim_launches *s, struct core *core, struct sim_line *line,
                           const struct noise *noise, uint64_t run, struct sim_repeat *out) {
    // The host moves the launches in time, which the machine does not see but by its refreshes.
    const bool device = !noise || noise->sources != 1U << NOISE_HOST;
    for (size_t i = 0; i < s->count; i++) {
        const struct sim_launch *l = &s->launch[i];
        const uint64_t start = sim_line_launch(line, l->op_class, l->views, NULL);
        uint64_t cycles = l->cycles;
        double seconds = 0;
        if (device && !l->program)
            return npu_fail(USAGE, "launch %zu cannot be timed again: its records are gone", i);
        const struct core_noise draws = {.noise = noise,
                                         .at = {.run = run,
                                                .launch = i,
                                                .start_ps = kernel_clock_ps(&line->clock, start)}};
        if (device) NPU_TRY(core_again(core, l->program, &draws, &cycles, &seconds));
        sim_line_ran(line, cycles);
        out->seconds += seconds;
    }
    out->cycles = line->free;
    out->latency_ps = sim_line_latency_ps(line, s->views);
    return NULL;
}

npu_status sim_launches_repeat(const struct sim_launches *s, struct core *core,
                               const struct host_model *model, uint64_t clock_mhz,
                               const struct noise *noise, uint64_t run, struct sim_repeat *out) {
    struct sim_line line;
    *out = (struct sim_repeat){0};
    NPU_TRY(sim_line_begin(&line, model, noise, run, clock_mhz));
    npu_status st = run_line(s, core, &line, noise, run, out);
    if (model)
        out->sampled_ps = kernel_clock_ps(&line.clock, line.sum.bubble_cycles) +
                          (out->latency_ps > kernel_clock_ps(&line.clock, line.free)
                               ? out->latency_ps - kernel_clock_ps(&line.clock, line.free)
                               : 0);
    sim_line_deinit(&line);
    return st;
}
