// SPDX-License-Identifier: Apache-2.0
#include "simulator/trace/counters.h"

#include <stdlib.h>

#include "runtime/base/alloc.h"
#include "simulator/trace/occupancy.h"

#define INTERVALS 1000
#define MOST (ISA_ENGINES * 2 + 3) // curves

static int by_cycle(const void *a, const void *b) {
    const struct trace_point *x = a, *y = b;
    return x->cycle < y->cycle ? -1 : x->cycle > y->cycle;
}

// From changes at cycles to values from cycles on; changes of one cycle become one point.
static void add_up(struct trace_counter *c) {
    if (c->n) qsort(c->point, c->n, sizeof *c->point, by_cycle);
    double value = 0;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        value += c->point[i].value;
        if (i + 1 < c->n && c->point[i + 1].cycle == c->point[i].cycle) continue;
        if (n == 0 ? value == 0 : value == c->point[n - 1].value) continue;
        c->point[n++] = (struct trace_point){c->point[i].cycle, value};
    }
    c->n = n;
}

// Instructions of an engine between two of their times.
static bool instructions(const struct trace_log *log, int engine, enum trace_counter_kind kind,
                         struct trace_counter *c) {
    const bool waiting = kind == TRACE_COUNTER_QUEUE;
    size_t n = 0;
    for (size_t i = 0; i < log->count; i++)
        n += log->event[i].kind == TRACE_EVENT_INSN && log->event[i].engine == engine;
    *c = (struct trace_counter){.kind = kind,
                                .engine = engine,
                                .group = waiting ? "queue" : "under way",
                                .name = isa_engine_name(engine),
                                .unit = "instructions",
                                .whole = true};
    c->point = base_alloc_array(n * 2 + 1, sizeof *c->point);
    if (!c->point) return false;
    for (size_t i = 0; i < log->count; i++) {
        const struct trace_event *e = &log->event[i];
        if (e->kind != TRACE_EVENT_INSN || e->engine != engine) continue;
        c->point[c->n++] = (struct trace_point){waiting ? e->dispatched : e->start, 1};
        c->point[c->n++] = (struct trace_point){waiting ? e->start : e->done, -1};
    }
    add_up(c);
    return true;
}

// Adds bytes that moved in [from, to) to the intervals that they fall into.
static void spread(struct trace_counter *c, uint64_t step, uint64_t from, uint64_t to,
                   double bytes) {
    for (uint64_t k = from / step; k <= (to - 1) / step && k < c->n; k++) {
        const uint64_t lo = k * step > from ? k * step : from;
        const uint64_t hi = (k + 1) * step < to ? (k + 1) * step : to;
        c->point[k].value += bytes * (double)(hi - lo) / (double)(to - from);
    }
}

static bool bandwidth(const struct trace_run *run, const struct trace_log *log, bool write,
                      struct trace_counter *c) {
    const uint64_t step = run->cycles / INTERVALS + 1, n = run->cycles / step + 1;
    *c = (struct trace_counter){.kind = write ? TRACE_COUNTER_WRITE : TRACE_COUNTER_READ,
                                .engine = -1,
                                .group = "dram",
                                .name = write ? "write" : "read",
                                .unit = "B/cycle"};
    c->point = base_alloc_array((size_t)n, sizeof *c->point);
    if (!c->point) return false;
    c->n = (size_t)n;
    for (size_t k = 0; k < n; k++)
        c->point[k] = (struct trace_point){.cycle = k * step};
    for (size_t i = 0; i < log->count; i++) {
        const struct trace_event *e = &log->event[i];
        const uint32_t bytes = write ? e->dram_write : e->dram_read;
        if (e->kind != TRACE_EVENT_INSN || !bytes) continue;
        spread(c, step, e->start, e->done > e->start ? e->done : e->start + 1, bytes);
    }
    for (size_t k = 0; k < n; k++) {
        const uint64_t rest = run->cycles - k * step; // the last interval may be shorter
        c->point[k].value /= (double)(rest < step && rest > 0 ? rest : step);
    }
    return true;
}

static bool scratchpad(const struct trace_run *run, const struct trace_log *log,
                       struct trace_counter *c) {
    struct occupancy_change *change;
    size_t n;
    npu_status st = trace_occupancy(run, log, &change, &n);
    *c = (struct trace_counter){.kind = TRACE_COUNTER_SPM,
                                .engine = -1,
                                .group = "spm",
                                .name = "live",
                                .unit = "bytes",
                                .whole = true};
    if (!st) c->point = base_alloc_array(n + 1, sizeof *c->point);
    for (size_t i = 0; c->point && i < n; i++)
        c->point[c->n++] = (struct trace_point){change[i].cycle, (double)change[i].bytes};
    if (c->point) add_up(c);
    if (!st) base_free(change);
    npu_status_free(st);
    return c->point != NULL;
}

npu_status trace_counters(const struct trace_run *run, const struct trace_log *log,
                          struct trace_counter **out, size_t *count) {
    struct trace_counter *c = base_alloc_array(MOST, sizeof *c);
    size_t n = 0;
    bool ok = c != NULL;
    for (size_t i = 0; ok && i < run->nengine; i++) {
        const int engine = run->engine[i].engine;
        if (engine == ISA_ENGINE_CP) continue;
        ok = instructions(log, engine, TRACE_COUNTER_QUEUE, &c[n++]);
        if (ok) ok = instructions(log, engine, TRACE_COUNTER_UNDER_WAY, &c[n++]);
    }
    for (int write = 0; ok && write < 2; write++)
        ok = bandwidth(run, log, write, &c[n++]);
    if (ok && log->touches) ok = scratchpad(run, log, &c[n++]);
    if (!ok) {
        trace_counters_free(c, n);
        return npu_fail(NO_MEMORY, "no memory for counters over %zu events", log->count);
    }
    *out = c;
    *count = n;
    return NULL;
}

void trace_counters_free(struct trace_counter *c, size_t count) {
    for (size_t i = 0; c && i < count; i++)
        base_free(c[i].point);
    base_free(c);
}
