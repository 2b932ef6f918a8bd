// SPDX-License-Identifier: Apache-2.0
//
// The recurrence of line.h, one launch at a time.
#include "simulator/line.h"

#include "runtime/base/alloc.h"

npu_status sim_line_class(const struct host_model *model, const struct npu_image_launch *launch,
                          int *op_class) {
    *op_class = launch->op && *launch->op ? host_model_class(model, launch->op, NULL) : -1;
    if (*op_class < 0 && launch->graph_op)
        *op_class = host_model_class(model, launch->graph_op, NULL);
    if (*op_class >= 0) return NULL;
    return npu_fail(BAD_INPUT,
                    "the host's model has no class for a launch of '%s' (graph op '%s'); --host "
                    "none runs without a host",
                    launch->op ? launch->op : "", launch->graph_op ? launch->graph_op : "");
}

npu_status sim_line_begin(struct sim_line *l, const struct host_model *model,
                          const struct noise *noise, uint64_t run, uint64_t clock_mhz) {
    *l = (struct sim_line){.clock = kernel_clock(clock_mhz)};
    if (!model) return NULL;
    l->places = host_model_queue(model);
    l->started_ps = base_alloc_array((size_t)l->places, sizeof *l->started_ps);
    if (!l->started_ps)
        return npu_fail(NO_MEMORY, "out of memory for a queue of %llu launches",
                        (unsigned long long)l->places);
    host_run_begin(model, noise ? *noise : (struct noise){0}, run, &l->host);
    return NULL;
}

void sim_line_deinit(struct sim_line *l) {
    base_free(l->started_ps);
    *l = (struct sim_line){0};
}

static void make_views(struct sim_line *l, uint32_t views) {
    for (uint32_t i = 0; i < views; i++) {
        const uint64_t ps = host_view_ps(&l->host, l->event++);
        l->sum.view_ps += ps;
        l->host_ps += ps;
    }
}

uint64_t sim_line_launch(struct sim_line *l, int op_class, uint32_t views, uint64_t *bubble) {
    uint64_t start = l->free;
    l->sum.views += views;
    if (l->host.model) {
        const uint64_t place = l->sum.launches % l->places;
        make_views(l, views);
        l->begin_ps = l->host_ps;
        const uint64_t ps = host_launch_ps(&l->host, op_class, l->event++);
        l->sum.launch_ps += ps;
        l->host_ps += ps;
        // Of fewer launches than there are places none waits: their starts are still 0.
        if (l->started_ps[place] > l->host_ps) {
            l->sum.full_ps += l->started_ps[place] - l->host_ps;
            l->host_ps = l->started_ps[place];
        }
        l->made_ps = l->host_ps;
        const uint64_t ready = kernel_clock_cycle(&l->clock, l->host_ps);
        if (ready > start) start = ready;
        l->started_ps[place] = kernel_clock_ps(&l->clock, start);
    }
    l->sum.launches++;
    l->sum.bubble_cycles += start - l->free;
    if (bubble) *bubble = start - l->free;
    l->free = start;
    return start;
}

void sim_line_ran(struct sim_line *l, uint64_t cycles) {
    l->free += cycles;
}

uint64_t sim_line_latency_ps(struct sim_line *l, uint32_t views) {
    l->sum.views += views;
    if (l->host.model) make_views(l, views);
    const uint64_t device = kernel_clock_ps(&l->clock, l->free);
    const uint64_t both = device > l->host_ps ? device : l->host_ps;
    return l->host.model ? both + host_finish_ps(&l->host) : both;
}
