// SPDX-License-Identifier: Apache-2.0
//
// Chrome trace events, the JSON that Perfetto and chrome://tracing read. Times are microseconds.
//
//   process 1  a thread per engine: its instructions; a second one: what it waited for. Arrows go
//   from the
//              instruction that signalled to the one that waited.
//   process 2  layers, as asynchronous spans; the program's own marks
//   process 3  counters: instructions waiting per queue, bytes per cycle of memory
//
// Instructions of one engine overlap (a DMA engine has several under way); so that slices of a
// thread do not, each starts where the one before ends. The true start is in its arguments.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "simulator/trace/out.h"
#include "simulator/trace/trace.h"

struct view {
    const struct trace_run *run;
    const struct trace_log *log;
    struct trace_out *out;
    struct str *s;
    double us; // per cycle
    bool any;
    uint64_t *slice_end; // by seq: end of its slice, for arrows
    uint64_t seqs;
    uint64_t arrows;
};

static void open_event(struct view *v) {
    str_puts(v->s, v->any ? ",\n{" : "\n{");
    v->any = true;
}

static void close_event(struct view *v) {
    str_putc(v->s, '}');
    trace_out_flush(v->out);
}

static void stamp(struct view *v, const char *key, uint64_t cycle) {
    str_printf(v->s, "\"%s\":%.6f", key, (double)cycle * v->us);
}

static void name_of(struct view *v, const char *what, int pid, int tid, const char *name) {
    open_event(v);
    str_printf(v->s, "\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"args\":{\"name\":", pid,
               tid, what);
    str_json(v->s, name);
    str_putc(v->s, '}');
    close_event(v);
    if (strcmp(what, "thread_name")) return;
    open_event(v);
    str_printf(v->s,
               "\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":{\"sort_"
               "index\":%d}",
               pid, tid, tid);
    close_event(v);
}

static int thread_of(int engine, bool waits) {
    return engine * 2 + 1 + waits;
}

static void names(struct view *v) {
    name_of(v, "process_name", 1, 0, v->run->target ? v->run->target : "npu");
    name_of(v, "process_name", 2, 0, "layers");
    name_of(v, "process_name", 3, 0, "counters");
    for (size_t i = 0; i < v->run->nengine; i++) {
        char waits[40];
        const char *name = isa_engine_name(v->run->engine[i].engine);
        snprintf(waits, sizeof waits, "%s waits", name);
        name_of(v, "thread_name", 1, thread_of(v->run->engine[i].engine, false), name);
        name_of(v, "thread_name", 1, thread_of(v->run->engine[i].engine, true), waits);
    }
}

static void lookup(const struct view *v, uint32_t tag, struct trace_name *name) {
    *name = (struct trace_name){.layer = -1};
    if (v->run->lookup && !v->run->lookup(v->run->lookup_ctx, tag, name))
        *name = (struct trace_name){.layer = -1};
}

static void slice(struct view *v, const struct trace_event *e, uint64_t from, uint64_t to) {
    struct trace_name name;
    lookup(v, e->tag, &name);
    const struct isa_insn_desc *d = isa_find((unsigned)e->opcode);
    const char *op = d ? d->text : "?";
    open_event(v);
    str_printf(v->s, "\"ph\":\"X\",\"pid\":1,\"tid\":%d,", thread_of(e->engine, false));
    stamp(v, "ts", from);
    str_putc(v->s, ',');
    stamp(v, "dur", to - from);
    str_printf(v->s,
               ",\"cat\":\"insn\",\"name\":\"%s\",\"args\":{\"seq\":%" PRIu64 ",\"tag\":%" PRIu32,
               op, e->seq, e->tag);
    if (name.name) {
        str_puts(v->s, ",\"layer\":");
        str_json(v->s, name.name);
    }
    if (name.node) {
        str_puts(v->s, ",\"node\":");
        str_json(v->s, name.node);
    }
    str_printf(v->s,
               ",\"start\":%" PRIu64 ",\"read\":%" PRIu64 ",\"issued\":%" PRIu64
               ",\"done\":%" PRIu64,
               e->start, e->read, e->issued, e->done);
    if (e->work) str_printf(v->s, ",\"work\":%" PRIu64, e->work);
    if (e->dram_read || e->dram_write)
        str_printf(v->s, ",\"dram_read\":%" PRIu32 ",\"dram_write\":%" PRIu32, e->dram_read,
                   e->dram_write);
    str_putc(v->s, '}');
    close_event(v);
}

static void wait_slice(struct view *v, const struct trace_event *e) {
    if (e->wait_class == TRACE_BUSY || e->start <= e->ready) return;
    open_event(v);
    str_printf(v->s, "\"ph\":\"X\",\"pid\":1,\"tid\":%d,", thread_of(e->engine, true));
    stamp(v, "ts", e->ready);
    str_putc(v->s, ',');
    stamp(v, "dur", e->start - e->ready);
    str_printf(v->s, ",\"cat\":\"wait\",\"name\":\"%s", trace_class_key(e->wait_class));
    if (e->wait_engine >= 0) str_printf(v->s, " %s", isa_engine_name(e->wait_engine));
    str_printf(v->s, "\",\"args\":{\"seq\":%" PRIu64 "}", e->seq);
    close_event(v);
}

// An arrow binds to the slices around its two ends, so the start is moved into the signaller's
// slice.
static void arrow(struct view *v, const struct trace_event *e, uint64_t from) {
    if (e->cause_seq >= v->seqs || e->wait_engine < 0) return;
    const uint64_t end = v->slice_end[e->cause_seq];
    if (!end) return;
    uint64_t at = e->cause_cycle < end ? e->cause_cycle : end - 1;
    if (at > from) at = from;
    for (int half = 0; half < 2; half++) {
        open_event(v);
        str_printf(v->s,
                   "\"ph\":\"%s\",\"pid\":1,\"tid\":%d,\"id\":%" PRIu64
                   ",\"cat\":\"signal\",\"name\":\"signal\",",
                   half ? "f" : "s", thread_of(half ? e->engine : e->wait_engine, false),
                   v->arrows);
        stamp(v, "ts", half ? from : at);
        if (half) str_puts(v->s, ",\"bp\":\"e\"");
        close_event(v);
    }
    v->arrows++;
}

static void instructions(struct view *v) {
    uint64_t free_at[ISA_ENGINES] = {0};
    for (size_t i = 0; i < v->log->count; i++) {
        const struct trace_event *e = &v->log->event[i];
        if (e->kind != TRACE_EVENT_INSN) continue;
        const uint64_t from = e->start > free_at[e->engine] ? e->start : free_at[e->engine];
        const uint64_t to = e->issued > from ? e->issued : from + 1;
        free_at[e->engine] = to;
        if (e->seq < v->seqs) v->slice_end[e->seq] = to;
        slice(v, e, from, to);
        wait_slice(v, e);
        arrow(v, e, from);
    }
}

static void marks(struct view *v) {
    for (size_t i = 0; i < v->log->count; i++) {
        const struct trace_event *e = &v->log->event[i];
        if (e->kind == TRACE_EVENT_INSN) continue;
        const bool span = e->kind == TRACE_EVENT_OPEN || e->kind == TRACE_EVENT_CLOSE;
        open_event(v);
        str_printf(v->s,
                   "\"ph\":\"%s\",\"pid\":2,\"tid\":0,\"cat\":\"mark\",\"name\":\"%s %" PRIu32
                   "\",",
                   span ? (e->kind == TRACE_EVENT_OPEN ? "b" : "e") : "i",
                   span                         ? "mark"
                   : e->kind == TRACE_EVENT_IRQ ? "irq"
                                                : "ts",
                   e->id);
        if (span)
            str_printf(v->s, "\"id\":\"mark %" PRIu32 "\",", e->id);
        else
            str_puts(v->s, "\"s\":\"p\",");
        stamp(v, "ts", e->start);
        close_event(v);
    }
}

static npu_status layer_spans(struct view *v) {
    struct trace_layer *l;
    size_t n;
    NPU_TRY(trace_layers(v->run, &l, &n));
    for (size_t i = 0; i < n; i++) {
        const struct trace_tag *t = &l[i].total;
        const uint64_t from = t->end > t->start ? t->start : t->first,
                       to = t->end > t->start ? t->end : t->last;
        for (int half = 0; half < 2; half++) {
            open_event(v);
            str_printf(v->s,
                       "\"ph\":\"%s\",\"pid\":2,\"tid\":0,\"cat\":\"layer\",\"id\":\"layer "
                       "%zu\",\"name\":",
                       half ? "e" : "b", i);
            if (l[i].name.name)
                str_json(v->s, l[i].name.name);
            else
                str_printf(v->s, "\"tag %" PRIu32 "\"", l[i].tag);
            str_putc(v->s, ',');
            stamp(v, "ts", half ? to : from);
            if (!half)
                str_printf(v->s, ",\"args\":{\"cycles\":%" PRIu64 ",\"bound\":\"%s\"}", l[i].cycles,
                           l[i].bound);
            close_event(v);
        }
    }
    base_free(l);
    return NULL;
}

static npu_status no_memory(const struct view *v) {
    return npu_fail(NO_MEMORY, "no memory for the trace of %zu events", v->log->count);
}

static void counter(struct view *v, const char *name, uint64_t cycle, double value) {
    open_event(v);
    str_printf(v->s, "\"ph\":\"C\",\"pid\":3,\"tid\":0,\"name\":\"%s\",", name);
    stamp(v, "ts", cycle);
    str_printf(v->s, ",\"args\":{\"value\":%.2f}", value);
    close_event(v);
}

// Bytes of DMA instructions, spread evenly from start to end, in intervals of 1/1000 of the run.
static npu_status bandwidth(struct view *v) {
    const uint64_t step = v->run->cycles / 1000 + 1, n = v->run->cycles / step + 1;
    double *bytes = base_alloc_array((size_t)n * 2, sizeof *bytes);
    if (!bytes) return no_memory(v);
    for (size_t i = 0; i < v->log->count; i++) {
        const struct trace_event *e = &v->log->event[i];
        if (e->kind != TRACE_EVENT_INSN || (!e->dram_read && !e->dram_write)) continue;
        const uint64_t to = e->done > e->start ? e->done : e->start + 1;
        for (uint64_t k = e->start / step; k <= (to - 1) / step && k < n; k++) {
            const uint64_t lo = k * step > e->start ? k * step : e->start;
            const uint64_t hi = (k + 1) * step < to ? (k + 1) * step : to;
            const double part = (double)(hi - lo) / (double)(to - e->start);
            bytes[2 * k] += part * e->dram_read;
            bytes[2 * k + 1] += part * e->dram_write;
        }
    }
    for (uint64_t k = 0; k < n; k++) {
        counter(v, "dram read B/cycle", k * step, bytes[2 * k] / (double)step);
        counter(v, "dram write B/cycle", k * step, bytes[2 * k + 1] / (double)step);
    }
    base_free(bytes);
    return NULL;
}

struct edge {
    uint64_t cycle;
    int engine, change;
};

static int by_cycle(const void *a, const void *b) {
    const struct edge *x = a, *y = b;
    if (x->cycle != y->cycle) return x->cycle < y->cycle ? -1 : 1;
    if (x->engine != y->engine) return x->engine - y->engine;
    return x->change - y->change;
}

// Instructions that wait in each queue.
static npu_status queues(struct view *v) {
    struct edge *edge = base_alloc_array(v->log->count * 2 + 1, sizeof *edge);
    if (!edge) return no_memory(v);
    size_t n = 0;
    for (size_t i = 0; i < v->log->count; i++) {
        const struct trace_event *e = &v->log->event[i];
        if (e->kind != TRACE_EVENT_INSN || e->engine == ISA_ENGINE_CP) continue;
        edge[n++] = (struct edge){e->dispatched, e->engine, 1};
        edge[n++] = (struct edge){e->start, e->engine, -1};
    }
    qsort(edge, n, sizeof *edge, by_cycle);
    int depth[ISA_ENGINES] = {0};
    for (size_t i = 0; i < n; i++) {
        depth[edge[i].engine] += edge[i].change;
        if (i + 1 < n && edge[i + 1].cycle == edge[i].cycle && edge[i + 1].engine == edge[i].engine)
            continue;
        char name[40];
        snprintf(name, sizeof name, "queue %s", isa_engine_name(edge[i].engine));
        counter(v, name, edge[i].cycle, depth[edge[i].engine]);
    }
    base_free(edge);
    return NULL;
}

npu_status trace_json_write(const struct trace_run *run, const struct trace_log *log,
                            const char *path) {
    struct view v = {.run = run, .log = log, .us = 1.0 / (double)run->hw->clock_npu_mhz};
    for (size_t i = 0; i < log->count; i++)
        if (log->event[i].seq >= v.seqs) v.seqs = log->event[i].seq + 1;
    v.slice_end = base_alloc_array((size_t)v.seqs + 1, sizeof *v.slice_end);
    if (!v.slice_end) return no_memory(&v);
    npu_status st = trace_out_open(path, &v.out);
    if (st) {
        base_free(v.slice_end);
        return st;
    }
    v.s = trace_out_text(v.out);
    str_puts(v.s, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":");
    str_json(v.s, run->program ? run->program : "");
    str_printf(v.s, ",\"clock_mhz\":%" PRId64 ",\"cycles\":%" PRIu64 "},\"traceEvents\":[",
               run->hw->clock_npu_mhz, run->cycles);
    names(&v);
    instructions(&v);
    marks(&v);
    trace_out_fail(v.out, layer_spans(&v));
    trace_out_fail(v.out, queues(&v));
    trace_out_fail(v.out, bandwidth(&v));
    str_puts(v.s, "\n]}\n");
    base_free(v.slice_end);
    return trace_out_close(v.out);
}
