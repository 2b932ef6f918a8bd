// SPDX-License-Identifier: Apache-2.0
//
// The run as waveforms. One scope per engine:
//
//   busy                it works, at its peak rate or below
//   state, state_text   class of the cycle, by its row in class.def and by its title
//   wait_for            engine whose signal it waits for, by its number
//   insn_text, tag      instruction that has the engine (MXU, VEC, CP: from start to issued; DMA:
//   the
//                       one that started last of those not done); unknown: none
//   layer, layer_text   whose it is: number and name; unknown: none
//   under_way           instructions started and not done
//   queue               instructions dispatched and not started
//
// and the scopes dram (read, write: bytes per cycle), spm (live: bytes that will still be read),
// semaphores (s<number>: count; those in use).
#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/alloc.h"
#include "simulator/trace/counters.h"
#include "simulator/trace/vcd_out.h"

struct engine_vars {
    bool there;
    size_t busy, state, state_text, wait_for, insn_text, tag, layer, layer_text, under_way, queue;
};

struct waves {
    const struct trace_run *run;
    const struct trace_log *log;
    struct vcd vcd;
    struct engine_vars engine[ISA_ENGINES];
};

static void declare_engines(struct waves *w) {
    struct vcd *v = &w->vcd;
    for (size_t i = 0; i < w->run->nengine; i++) {
        const int id = w->run->engine[i].engine;
        struct engine_vars *e = &w->engine[id];
        vcd_scope(v, isa_engine_name(id));
        *e = (struct engine_vars){.there = true,
                                  .busy = vcd_bits(v, "busy", 1),
                                  .state = vcd_bits(v, "state", 5),
                                  .state_text = vcd_text(v, "state_text"),
                                  .wait_for = vcd_bits(v, "wait_for", 4),
                                  .insn_text = vcd_text(v, "insn_text"),
                                  .tag = vcd_bits(v, "tag", 32),
                                  .layer = vcd_bits(v, "layer", 16),
                                  .layer_text = vcd_text(v, "layer_text")};
        if (id == ISA_ENGINE_CP) continue; // has no queue
        e->under_way = vcd_bits(v, "under_way", 16);
        e->queue = vcd_bits(v, "queue", 16);
        vcd_set(v, 0, e->under_way, 0);
        vcd_set(v, 0, e->queue, 0);
    }
}

static void states(struct waves *w) {
    struct vcd *v = &w->vcd;
    for (size_t i = 0; i < w->log->states; i++) {
        const struct trace_state *s = &w->log->state[i];
        const struct engine_vars *e = &w->engine[s->engine];
        if (!e->there) continue;
        vcd_set(v, s->from, e->busy, s->cls == TRACE_BUSY || s->cls == TRACE_BUSY_PARTIAL);
        vcd_set(v, s->from, e->state, s->cls);
        vcd_set_text(v, s->from, e->state_text, trace_class_title((enum trace_class)s->cls));
        if (s->wait_engine >= 0)
            vcd_set(v, s->from, e->wait_for, (uint64_t)s->wait_engine);
        else
            vcd_set_unknown(v, s->from, e->wait_for);
    }
}

static void begins(struct waves *w, const struct trace_event *e) {
    struct vcd *v = &w->vcd;
    const struct engine_vars *vars = &w->engine[e->engine];
    const struct isa_insn_desc *d = isa_find((unsigned)e->opcode);
    const struct trace_name name = trace_name_of(w->run, e->tag);
    vcd_set_text(v, e->start, vars->insn_text, d ? d->text : "?");
    vcd_set(v, e->start, vars->tag, e->tag);
    if (name.layer >= 0)
        vcd_set(v, e->start, vars->layer, (uint64_t)name.layer);
    else
        vcd_set_unknown(v, e->start, vars->layer);
    vcd_set_text(v, e->start, vars->layer_text, name.name);
}

static void ends(struct waves *w, int engine, uint64_t cycle) {
    const struct engine_vars *vars = &w->engine[engine];
    vcd_set_text(&w->vcd, cycle, vars->insn_text, NULL);
    vcd_set_unknown(&w->vcd, cycle, vars->tag);
    vcd_set_unknown(&w->vcd, cycle, vars->layer);
    vcd_set_text(&w->vcd, cycle, vars->layer_text, NULL);
}

// Events come in the order of their starts; what ends at a cycle is said before what begins there.
static void instructions(struct waves *w) {
    uint64_t end[ISA_ENGINES] = {0};
    bool any[ISA_ENGINES] = {false};
    for (size_t i = 0; i < w->log->count; i++) {
        const struct trace_event *e = &w->log->event[i];
        if (e->kind != TRACE_EVENT_INSN || !w->engine[e->engine].there) continue;
        if (any[e->engine] && end[e->engine] <= e->start) ends(w, e->engine, end[e->engine]);
        const bool dma = isa_engine_class(e->engine) == ISA_CLASS_DMA;
        const uint64_t to = dma ? e->done : e->issued;
        if (!any[e->engine] || to > end[e->engine]) end[e->engine] = to;
        any[e->engine] = true;
        begins(w, e);
    }
    for (int i = 0; i < ISA_ENGINES; i++)
        if (any[i]) ends(w, i, end[i]);
}

static npu_status curves(struct waves *w) {
    struct vcd *v = &w->vcd;
    struct trace_counter *c;
    size_t n;
    NPU_TRY(trace_counters(w->run, w->log, &c, &n));
    for (size_t i = 0; i < n; i++) {
        const struct engine_vars *e = c[i].engine >= 0 ? &w->engine[c[i].engine] : NULL;
        size_t var = 0;
        vcd_scope(v, c[i].group);
        switch (c[i].kind) {
        case TRACE_COUNTER_QUEUE: var = e->queue; break;
        case TRACE_COUNTER_UNDER_WAY: var = e->under_way; break;
        case TRACE_COUNTER_READ:
        case TRACE_COUNTER_WRITE: var = vcd_real(v, c[i].name); break;
        case TRACE_COUNTER_SPM:
            var = vcd_bits(v, c[i].name, 32);
            vcd_set(v, 0, var, 0);
            break;
        }
        for (size_t k = 0; k < c[i].n; k++)
            if (c[i].whole)
                vcd_set(v, c[i].point[k].cycle, var, (uint64_t)c[i].point[k].value);
            else
                vcd_set_real(v, c[i].point[k].cycle, var, c[i].point[k].value);
    }
    trace_counters_free(c, n);
    return NULL;
}

static void semaphores(struct waves *w, char name[ISA_SEMS][16]) {
    struct vcd *v = &w->vcd;
    size_t var[ISA_SEMS];
    bool used[ISA_SEMS] = {false};
    int64_t count[ISA_SEMS] = {0};
    for (size_t i = 0; i < w->log->semaphores; i++)
        used[w->log->semaphore[i].id % ISA_SEMS] = true;
    vcd_scope(v, "semaphores");
    for (int i = 0; i < ISA_SEMS; i++) {
        if (!used[i]) continue;
        snprintf(name[i], sizeof name[i], "s%d", i);
        var[i] = vcd_bits(v, name[i], 16);
        vcd_set(v, 0, var[i], 0);
    }
    for (size_t i = 0; i < w->log->semaphores; i++) {
        const struct trace_semaphore *s = &w->log->semaphore[i];
        const uint32_t id = s->id % ISA_SEMS;
        count[id] += s->change;
        vcd_set(v, s->cycle, var[id], (uint64_t)count[id]);
    }
}

// What the numbers of the file mean.
static void legend(const struct trace_run *run, struct str *s) {
    str_puts(s, "program ");
    str_shown(s, run->program ? run->program : "");
    str_puts(s, ", target ");
    str_shown(s, run->target ? run->target : "");
    str_printf(s, ", %" PRId64 " MHz, %" PRIu64 " cycles\nstate:", run->hw->clock_npu_mhz,
               run->cycles);
    for (int i = 0; i < TRACE_CLASSES; i++)
        str_printf(s, " %d %s", i, trace_class_title((enum trace_class)i));
    str_puts(s, "\nwait_for:");
    for (size_t i = 0; i < run->nengine; i++)
        str_printf(s, " %d %s", run->engine[i].engine, isa_engine_name(run->engine[i].engine));
}

npu_status trace_vcd_write(const struct trace_run *run, const struct trace_log *log,
                           const char *path) {
    struct trace_out *o;
    struct waves *w = base_alloc(sizeof *w);
    if (!w) return npu_fail(NO_MEMORY, "no memory for writing '%s'", path);
    npu_status st = trace_out_open(path, &o);
    if (st) {
        base_free(w);
        return st;
    }
    char semaphore[ISA_SEMS][16];
    struct str comment = {0};
    w->run = run;
    w->log = log;
    declare_engines(w);
    states(w);
    instructions(w);
    trace_out_fail(o, curves(w));
    semaphores(w, semaphore);
    legend(run, &comment);
    trace_out_fail(o, str_status(&comment));
    vcd_write(&w->vcd, o, str_text(&comment), (uint64_t)run->hw->clock_npu_mhz, run->cycles);
    vcd_deinit(&w->vcd);
    str_free(&comment);
    base_free(w);
    return trace_out_close(o);
}
