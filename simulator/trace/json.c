// SPDX-License-Identifier: Apache-2.0
//
// Trace events (the "Trace Event Format"), the JSON that Perfetto and chrome://tracing read. Times
// are microseconds of the machine.
//
//   process 1  per engine a thread of what it did with its cycles (its states), and threads of its
//              instructions: MXU, VEC and the command processor one, from start to issued; a DMA
//              engine one per transfer under way at the same time, from start to done. Arrows go
//              from the instruction that signalled to the one that waited for it. Of an eager
//              program also the host, with arrows from what it launches to the start on the device.
//   process 2  layers; the program's own marks
//   process 3  counters (counters.h)
//
// Slices of one thread never overlap: what does is put on a further thread ("lane").
#include "simulator/trace/json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "simulator/trace/cause.h"

#define NONE SIZE_MAX

// Threads of one kind of slices, and until when each is taken.
struct lanes {
    uint64_t *end;
    size_t n, cap;
};

// First lane that is free from `from` on, taken until `to`; NONE: no memory. Lane n is a new one.
static size_t lane_for(struct lanes *l, uint64_t from, uint64_t to) {
    size_t i = 0;
    while (i < l->n && l->end[i] > from)
        i++;
    if (i == l->cap) {
        const size_t cap = l->cap ? l->cap * 2 : 8;
        uint64_t *grown = base_realloc(l->end, cap * sizeof *grown);
        if (!grown) return NONE;
        l->end = grown;
        l->cap = cap;
    }
    if (i == l->n) l->n++;
    l->end[i] = to;
    return i;
}

// Instructions by number, and who waited for the signal of each: chains of numbers + 1, 0 at the
// end.
struct arrows {
    const struct trace_event **insn;
    uint32_t *cause, *first, *next;
};

static npu_status no_memory(const struct json_view *v) {
    return npu_fail(NO_MEMORY, "no memory for the trace of %zu events", v->log->count);
}

static void arrows_deinit(struct arrows *a) {
    base_free(a->insn);
    base_free(a->cause);
}

static npu_status arrows_init(struct arrows *a, const struct json_view *v) {
    const struct trace_log *log = v->log;
    const size_t n = trace_instructions(log);
    *a = (struct arrows){.insn = base_alloc_array(n + 1, sizeof *a->insn),
                         .cause = base_alloc_array(3 * n + 1, sizeof *a->cause)};
    if (!a->insn || !a->cause) return no_memory(v);
    a->first = a->cause + n;
    a->next = a->first + n;
    for (size_t k = 0, i = 0; k < log->count; k++)
        if (log->event[k].kind == TRACE_EVENT_INSN) a->insn[i++] = &log->event[k];
    NPU_TRY(trace_causes(log, a->cause));
    for (size_t i = n; i-- > 0;) {
        if (!a->cause[i]) continue;
        a->next[i] = a->first[a->cause[i] - 1];
        a->first[a->cause[i] - 1] = (uint32_t)i + 1;
    }
    return NULL;
}

// One end of an arrow, bound to the slice around it.
static void arrow_end(struct json_view *v, const char *what, uint64_t id, bool start, int tid,
                      uint64_t at) {
    json_open(v, start ? 's' : 'f', JSON_ENGINES, tid);
    json_ts(v, at);
    str_printf(v->s, ",\"id\":%" PRIu64 ",\"cat\":\"%s\",\"name\":\"%s\"", id, what, what);
    if (!start) str_puts(v->s, ",\"bp\":\"e\"");
    json_close(v);
}

// The arrows that begin and end at a slice; their id is the waiting instruction's. They follow it
// in the file, so that readers which go by time and then by place take them for its own. A signal
// that fires when the slice is over already (the result is visible later than the engine is free)
// leaves from its last cycle.
static void arrows_of(struct json_view *v, const struct arrows *a, size_t i, int tid, uint64_t from,
                      uint64_t to) {
    const uint64_t latency = (uint64_t)v->run->hw->cp_semaphore;
    for (uint32_t k = a->first[i]; k; k = a->next[k - 1]) {
        const struct trace_event *w = a->insn[k - 1];
        uint64_t at = w->cause_cycle > latency ? w->cause_cycle - latency : 0;
        if (at >= to) at = to > from ? to - 1 : from;
        if (at < from) at = from;
        if (w->start >= at) arrow_end(v, "signal", w->seq, true, tid, at);
    }
    if (a->cause[i]) arrow_end(v, "signal", a->insn[i]->seq, false, tid, from);
}

static void slice(struct json_view *v, const struct trace_event *e, int tid, uint64_t to) {
    const struct trace_name name = trace_name_of(v->run, e->tag);
    const struct isa_insn_desc *d = isa_find((unsigned)e->opcode);
    json_open(v, 'X', JSON_ENGINES, tid);
    json_ts(v, e->start);
    json_dur(v, e->start, to);
    str_printf(v->s,
               ",\"cat\":\"insn\",\"name\":\"%s\",\"args\":{\"seq\":%" PRIu64 ",\"tag\":%" PRIu32,
               d ? d->text : "?", e->seq, e->tag);
    json_text(v, "layer", name.name);
    json_text(v, "node", name.node);
    str_printf(v->s,
               ",\"queued\":%" PRIu64 ",\"start\":%" PRIu64 ",\"read\":%" PRIu64
               ",\"issued\":%" PRIu64 ",\"done\":%" PRIu64,
               e->dispatched, e->start, e->read, e->issued, e->done);
    if (e->wait_class != TRACE_BUSY && e->start > e->ready) {
        str_printf(v->s, ",\"waited\":%" PRIu64, e->start - e->ready);
        json_text(v, "wait_class", trace_class_key(e->wait_class));
        if (e->wait_engine >= 0) json_text(v, "wait_for", isa_engine_name(e->wait_engine));
    }
    if (e->work) str_printf(v->s, ",\"work\":%" PRIu64, e->work);
    if (e->dram_read || e->dram_write)
        str_printf(v->s, ",\"dram_read\":%" PRIu32 ",\"dram_write\":%" PRIu32, e->dram_read,
                   e->dram_write);
    str_putc(v->s, '}');
    json_close(v);
}

// A lane's thread gets its name when it is first used.
static void name_lane(struct json_view *v, int pid, int tid, const char *what, size_t lane) {
    char name[64];
    if (lane)
        snprintf(name, sizeof name, "%s (%zu)", what, lane + 1);
    else
        snprintf(name, sizeof name, "%s", what);
    json_thread(v, pid, tid, name);
}

static npu_status instructions(struct json_view *v, const struct arrows *a) {
    struct lanes lanes[ISA_ENGINES] = {0};
    const size_t n = trace_instructions(v->log);
    npu_status st = NULL;
    for (size_t i = 0; i < n && !st; i++) {
        const struct trace_event *e = a->insn[i];
        const bool dma = isa_engine_class(e->engine) == ISA_CLASS_DMA;
        const uint64_t end = dma ? e->done : e->issued, to = end > e->start ? end : e->start;
        struct lanes *l = &lanes[e->engine];
        const size_t known = l->n, lane = lane_for(l, e->start, to);
        if (lane == NONE) {
            st = no_memory(v);
            break;
        }
        const int tid = JSON_THREAD_ENGINE * (1 + e->engine) + (int)lane;
        if (lane == known) name_lane(v, JSON_ENGINES, tid, isa_engine_name(e->engine), lane);
        slice(v, e, tid, to);
        arrows_of(v, a, i, tid, e->start, to);
    }
    for (int i = 0; i < ISA_ENGINES; i++)
        base_free(lanes[i].end);
    return st;
}

static int state_thread(int engine) {
    return JSON_THREAD_ENGINE * (1 + engine) + JSON_THREAD_STATE;
}

static void states(struct json_view *v) {
    for (size_t i = 0; i < v->run->nengine; i++) {
        const int engine = v->run->engine[i].engine;
        char name[40];
        snprintf(name, sizeof name, "%s cycles", isa_engine_name(engine));
        json_thread(v, JSON_ENGINES, state_thread(engine), name);
    }
    for (size_t i = 0; i < v->log->states; i++) {
        const struct trace_state *s = &v->log->state[i];
        const enum trace_class cls = (enum trace_class)s->cls;
        json_open(v, 'X', JSON_ENGINES, state_thread(s->engine));
        json_ts(v, s->from);
        json_dur(v, s->from, s->to);
        str_printf(v->s, ",\"cat\":\"state\",\"name\":\"%s%s%s\",\"args\":{\"cycles\":%" PRIu64,
                   trace_class_title(cls), s->wait_engine >= 0 ? " " : "",
                   s->wait_engine >= 0 ? isa_engine_name(s->wait_engine) : "", s->to - s->from);
        json_text(v, "engine", isa_engine_name(s->engine));
        json_text(v, "class", trace_class_key(cls));
        str_putc(v->s, '}');
        json_close(v);
    }
}

// Launches that the host makes: behind the states, in which the arrows end.
static void dispatches(struct json_view *v) {
    bool any = false;
    for (size_t i = 0; i < v->log->count; i++) {
        const struct trace_event *e = &v->log->event[i];
        const struct trace_name name = trace_name_of(v->run, e->tag);
        if (e->kind != TRACE_EVENT_DISPATCH) continue;
        if (!any) json_thread(v, JSON_ENGINES, JSON_THREAD_HOST, "host");
        any = true;
        json_open(v, 'X', JSON_ENGINES, JSON_THREAD_HOST);
        json_ts(v, e->start);
        json_dur(v, e->start, e->done);
        str_printf(v->s,
                   ",\"cat\":\"launch\",\"name\":\"launch %" PRIu32
                   "\",\"args\":{\"launch\":%" PRIu32 ",\"tag\":%" PRIu32
                   ",\"views_before\":%" PRId32 ",\"device_start\":%" PRIu64,
                   e->id, e->id, e->tag, e->change, e->issued);
        json_text(v, "layer", name.name);
        json_text(v, "op", name.op);
        str_putc(v->s, '}');
        json_close(v);
        // To what the command processor does when the launch starts.
        arrow_end(v, "launch", e->id, true, JSON_THREAD_HOST,
                  e->done > e->start ? e->done - 1 : e->start);
        arrow_end(v, "launch", e->id, false, state_thread(ISA_ENGINE_CP), e->issued);
    }
}

static void marks(struct json_view *v) {
    bool any = false;
    for (size_t i = 0; i < v->log->count; i++) {
        const struct trace_event *e = &v->log->event[i];
        if (e->kind == TRACE_EVENT_INSN || e->kind == TRACE_EVENT_DISPATCH) continue;
        if (!any) json_thread(v, JSON_LAYERS, JSON_THREAD_MARK, "marks");
        any = true;
        const bool span = e->kind == TRACE_EVENT_OPEN || e->kind == TRACE_EVENT_CLOSE;
        json_open(v,
                  !span                         ? 'i'
                  : e->kind == TRACE_EVENT_OPEN ? 'b'
                                                : 'e',
                  JSON_LAYERS, JSON_THREAD_MARK);
        json_ts(v, e->start);
        str_printf(v->s, ",\"cat\":\"mark\",\"name\":\"%s %" PRIu32 "\"",
                   span                         ? "mark"
                   : e->kind == TRACE_EVENT_IRQ ? "irq"
                                                : "ts",
                   e->id);
        if (span)
            str_printf(v->s, ",\"id\":%" PRIu32, e->id);
        else
            str_puts(v->s, ",\"s\":\"t\"");
        json_close(v);
    }
}

static void layer(struct json_view *v, const struct trace_layer *l, int tid, uint64_t from,
                  uint64_t to) {
    char unnamed[40];
    snprintf(unnamed, sizeof unnamed, "tag %" PRIu32, l->tag);
    json_open(v, 'X', JSON_LAYERS, tid);
    json_ts(v, from);
    json_dur(v, from, to);
    str_puts(v->s, ",\"cat\":\"layer\"");
    json_text(v, "name", l->name.name ? l->name.name : unnamed);
    str_printf(v->s, ",\"args\":{\"tag\":%" PRIu32, l->tag);
    json_text(v, "op", l->name.op);
    json_text(v, "kernel", l->name.kernel);
    json_text(v, "node", l->name.node);
    str_puts(v->s, ",\"nodes\":[");
    for (size_t i = 0; i < l->name.nnodes; i++) {
        if (i) str_putc(v->s, ',');
        str_json(v->s, l->name.nodes[i]);
    }
    str_putc(v->s, ']');
    str_printf(v->s,
               ",\"start_cycle\":%" PRIu64 ",\"end_cycle\":%" PRIu64 ",\"cycles\":%" PRIu64
               ",\"macs\":%" PRIu64 ",\"mxu_cycles\":%" PRIu64 ",\"vec_cycles\":%" PRIu64
               ",\"dma_cycles\":%" PRIu64 ",\"dram_read\":%" PRIu64 ",\"dram_write\":%" PRIu64
               ",\"bound\":\"%s\"}",
               from, to, l->cycles, l->total.macs, l->total.mxu_cycles, l->total.vec_cycles,
               l->total.dma_cycles, l->total.dram_read, l->total.dram_write, l->bound);
    json_close(v);
}

static npu_status layers(struct json_view *v) {
    struct lanes lanes = {0};
    struct trace_layer *l;
    size_t n;
    npu_status st = NULL;
    NPU_TRY(trace_layers(v->run, &l, &n));
    for (size_t i = 0; i < n; i++) {
        const struct trace_tag *t = &l[i].total;
        const uint64_t from = trace_tag_start(t), to = trace_tag_end(t);
        const size_t known = lanes.n, lane = lane_for(&lanes, from, to);
        if (lane == NONE) {
            st = no_memory(v);
            break;
        }
        const int tid = JSON_THREAD_LAYER + (int)lane;
        if (lane == known) name_lane(v, JSON_LAYERS, tid, "layers", lane);
        layer(v, &l[i], tid, from, to);
    }
    base_free(lanes.end);
    base_free(l);
    return st;
}

// otherData is for texts alone.
static void number(struct json_view *v, const char *key, uint64_t n) {
    str_printf(v->s, ",\"%s\":\"%" PRIu64 "\"", key, n);
}

static void head(struct json_view *v) {
    str_puts(v->s, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"npusim_trace\":\"1\"");
    json_text(v, "program", v->run->program ? v->run->program : "");
    json_text(v, "target", v->run->target ? v->run->target : "");
    json_text(v, "fault", v->run->fault);
    json_text(v, "stopped", v->run->stopped);
    number(v, "clock_mhz", (uint64_t)v->run->hw->clock_npu_mhz);
    number(v, "cycles", v->run->cycles);
    number(v, "instructions", v->run->instructions);
    str_puts(v->s, "},\"traceEvents\":[");
    json_process(v, JSON_ENGINES, v->run->target && *v->run->target ? v->run->target : "npu");
    json_process(v, JSON_LAYERS, "layers");
    json_process(v, JSON_COUNTERS, "counters");
}

npu_status trace_json_write(const struct trace_run *run, const struct trace_log *log,
                            const char *path) {
    struct json_view v = {.run = run, .log = log};
    struct arrows a;
    npu_status st = arrows_init(&a, &v);
    if (!st) st = trace_out_open(path, &v.out);
    if (st) {
        arrows_deinit(&a);
        return st;
    }
    v.s = trace_out_text(v.out);
    head(&v);
    trace_out_fail(v.out, layers(&v));
    trace_out_fail(v.out, instructions(&v, &a));
    states(&v);
    dispatches(&v);
    marks(&v);
    trace_out_fail(v.out, json_counters(&v));
    str_puts(v.s, "\n]}\n");
    arrows_deinit(&a);
    return trace_out_close(v.out);
}
