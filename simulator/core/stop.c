// SPDX-License-Identifier: Apache-2.0
//
// Stopping a job on the way. Values know no time, so it takes three passes:
//
//   1. values as a rehearsal: every instruction gets its record, DRAM is put back afterwards
//   2. time: when each instruction was dispatched, started, had read and was done; with that the
//      cycle at which to stop is known
//   3. values of the instructions that are done by then
//
// What is done by a cycle is closed under dependence (a reader starts after its writer is done),
// and the race check has shown that no other order gives other values; so the third pass ends in
// the state that the machine is in.
#include <stdlib.h>

#include "runtime/base/alloc.h"
#include "simulator/core/inside.h"
#include "simulator/exec/state.h"

// When an instruction came how far. UINT64_MAX: never.
struct times {
    uint64_t dispatched, start, read, done;
    int engine;
};

struct clockwork {
    struct times *of; // owned, by seq
    uint64_t n;
    uint64_t cycle;   // to stop at
    uint64_t refused; // instruction that was never dispatched: a record stands in; or UINT64_MAX
};

static void collect(void *ctx, const struct trace_event *e) {
    struct clockwork *w = ctx;
    if (e->kind != TRACE_EVENT_INSN || e->seq >= w->n) return;
    w->of[e->seq] = (struct times){e->dispatched, e->start, e->read, e->done, e->engine};
}

static enum exec_point reached(void *ctx, uint64_t seq) {
    const struct clockwork *w = ctx;
    if (seq >= w->n || seq == w->refused || w->of[seq].dispatched > w->cycle) return EXEC_AHEAD;
    const struct times *t = &w->of[seq];
    return t->done <= w->cycle    ? EXEC_DONE
           : t->read <= w->cycle  ? EXEC_READ
           : t->start <= w->cycle ? EXEC_STARTED
                                  : EXEC_QUEUED;
}

// What never started stands in its queue at the end, up to where the command processor stands: at
// one of its own instructions, or before a queue that is full.
static void put_in_queues(const struct core *c, struct clockwork *w, uint64_t end) {
    int64_t queued[ISA_ENGINES] = {0};
    for (uint64_t i = 0; i < w->n; i++) {
        const int e = c->place[i].engine;
        if (w->of[i].start != UINT64_MAX) continue;
        if (e == ISA_ENGINE_CP || queued[e]++ == c->hw.cp_queue_depth) return;
        w->of[i].dispatched = end;
    }
}

// As the job is timed when nothing stops it.
static struct units_options options_of(struct core *c, const struct core_job *job) {
    struct units_options options = UNITS_OPTIONS_DEFAULT;
    const struct noise_place at = {.start_ps = job->start_ps};
    units_jitter(&c->jitter, &c->hw, NULL, &at, &options);
    return options;
}

static npu_status run_clock(struct core *c, const struct core_job *job, struct clockwork *w,
                            struct core_result *out) {
    struct units_options options = options_of(c, job);
    w->n = units_program_count(c->program);
    w->of = base_alloc_array((size_t)w->n + 1, sizeof *w->of);
    c->machine = units_new(&c->hw, c->program);
    if (!w->of || !c->machine) return core_no_memory();
    for (uint64_t i = 0; i < w->n; i++)
        w->of[i] = (struct times){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, -1};
    options.sink = collect;
    options.sink_ctx = w;
    NPU_TRY(core_time(c, &options, out));
    put_in_queues(c, w, out->timing.cycles);
    return NULL;
}

// ---- where --------------------------------------------------------------------------------------

static bool fits(const struct core *c, const struct core_job *job, const struct core_where *w,
                 uint64_t seq) {
    switch (w->kind) {
    case CORE_AT_PC: return c->place[seq].pc == w->value;
    case CORE_AT_INSN: return seq + job->stop->instructions == w->value;
    case CORE_AT_TAG:
        for (size_t i = 0; i < w->ntag; i++)
            if (c->place[seq].tag == w->tag[i]) return true;
        return false;
    case CORE_AT_CYCLE:
    case CORE_AT_FAULT: break;
    }
    return false;
}

static int by_number(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t when(const struct clockwork *t, const struct core_where *w, uint64_t seq) {
    return w->done ? t->of[seq].done : t->of[seq].start;
}

// The cycle in which the nth instruction that fits starts or is done, in the order of that; *found:
// false when there are fewer, and they are counted.
static npu_status nth_cycle(const struct core *c, const struct core_job *job,
                            const struct clockwork *t, struct core_where *w, uint64_t *cycle,
                            bool *found) {
    uint64_t n = 0, all = 0;
    uint64_t *at = base_alloc_array((size_t)t->n + 1, sizeof *at);
    if (!at) return core_no_memory();
    for (uint64_t i = 0; i < t->n; i++) {
        if (!fits(c, job, w, i)) continue;
        all++;
        if (when(t, w, i) != UINT64_MAX) at[n++] = when(t, w, i);
    }
    const bool last = w->kind == CORE_AT_TAG && w->done;
    *found = last ? n > 0 && n == all : w->nth - w->seen <= n;
    if (n) qsort(at, (size_t)n, sizeof *at, by_number);
    if (*found)
        *cycle = last ? at[n - 1] : at[w->nth - w->seen - 1];
    else
        w->seen += n;
    base_free(at);
    return NULL;
}

// The first of all; `end` is the last cycle of the job.
static npu_status choose(struct core *c, const struct core_job *job, const struct clockwork *t,
                         uint64_t end, struct core_stopped *out) {
    *out = (struct core_stopped){.seq = TRACE_NO_SEQ};
    for (size_t i = 0; i < job->stop->n; i++) {
        struct core_where *w = &job->stop->where[i];
        uint64_t cycle = 0;
        bool found = false;
        if (w->kind == CORE_AT_CYCLE) {
            // Between two jobs: when the second begins.
            cycle = w->value > job->stop->cycles ? w->value - job->stop->cycles : 0;
            found = true;
        } else if (w->kind == CORE_AT_FAULT) {
            cycle = end;
            found = c->fault.kind != EXEC_FAULT_NONE;
        } else {
            NPU_TRY(nth_cycle(c, job, t, w, &cycle, &found));
        }
        if (!found || cycle > end || (out->stopped && cycle >= out->cycle)) continue;
        out->stopped = true;
        out->where = i;
        out->cycle = cycle;
    }
    for (uint64_t i = 0; i < t->n && out->stopped; i++) {
        const struct core_where *w = &job->stop->where[out->where];
        if (!fits(c, job, w, i) || when(t, w, i) != out->cycle) continue;
        out->seq = i;
        break;
    }
    return NULL;
}

// ---- the third pass -----------------------------------------------------------------------------

// Everything that is done by that cycle has run, nothing else.
static bool complete(const struct core *c, const struct clockwork *t) {
    struct exec_state *s = base_alloc(sizeof *s);
    if (!s) return true;
    exec_state_of(c->exec, s);
    uint64_t started[ISA_ENGINES] = {0}, should[ISA_ENGINES] = {0};
    for (uint64_t i = 0; i < t->n && t->of[i].dispatched <= t->cycle; i++)
        if (t->of[i].engine > ISA_ENGINE_CP && t->of[i].start <= t->cycle)
            should[t->of[i].engine]++;
    bool same = true;
    for (int e = 0; e < ISA_ENGINES; e++) {
        started[e] = exec_stats_of(c->exec)->per_engine[e] - s->engine[e].queued;
        same &= e == ISA_ENGINE_CP || started[e] == should[e];
    }
    base_free(s);
    return same;
}

// Events of what is over by then: the command processor keeps a time ahead of the others'.
struct until {
    trace_sink *sink;
    void *ctx;
    uint64_t cycle;
};

static void forward(void *ctx, const struct trace_event *e) {
    const struct until *u = ctx;
    if (e->start <= u->cycle && e->done <= u->cycle) u->sink(u->ctx, e);
}

static npu_status stop_there(struct core *c, const struct core_job *job, struct clockwork *t,
                             struct core_result *out) {
    struct exec_job exec = job->exec;
    struct units_options options = options_of(c, job);
    const struct core_stopped stopped = out->stopped;
    exec.reached = reached;
    exec.reached_ctx = t;
    exec.sink = job->seen;
    exec.sink_ctx = job->seen_ctx;
    NPU_TRY(exec_run(c->exec, &exec));
    out->exec = *exec_stats_of(c->exec);
    NPU_ASSERT(complete(c, t));
    options.stop = true;
    options.stop_cycle = stopped.cycle;
    struct until until = {job->events, job->events_ctx, stopped.cycle};
    options.sink = job->events ? forward : NULL;
    options.sink_ctx = &until;
    units_reset(c->machine);
    NPU_TRY(core_time(c, &options, out));
    out->timing.instructions = 0;
    for (uint64_t i = 0; i < t->n; i++)
        out->timing.instructions += t->of[i].done <= stopped.cycle;
    if (job->stop->where[stopped.where].kind != CORE_AT_FAULT) return NULL;
    out->fault = &c->fault;
    return core_describe(c, job);
}

npu_status core_run_until(struct core *c, const struct core_job *job, struct core_result *out,
                          bool *over) {
    struct exec_job exec = job->exec;
    struct core_job unseen = *job;
    struct clockwork t = {.refused = UINT64_MAX};
    *over = false;
    c->fault = (struct exec_fault){0};
    exec.rehearsal = true;
    exec.written = NULL;
    unseen.seen = NULL;
    npu_status st = core_values(c, &unseen, &exec, out);
    if (st && npu_status_code(st) != NPU_FAULT) return st;
    const bool faulted = st != NULL;
    npu_status_free(st);
    if (faulted) c->fault = *exec_fault_of(c->exec);
    const bool stands = faulted && c->fault.kind != EXEC_FAULT_DEADLOCK;
    if (stands && c->fault.at.seq == units_program_count(c->program)) t.refused = c->fault.at.seq;
    st = stands ? core_stand_in(c, &c->fault) : NULL;
    if (!st) st = run_clock(c, job, &t, out);
    if (!st && out->timing.end == UNITS_QUIET && c->fault.kind == EXEC_FAULT_NONE)
        core_timing_deadlock(c, &out->timing);
    if (!st) {
        uint64_t end = out->timing.cycles;
        if (stands && t.of[c->fault.at.seq].start != UINT64_MAX) end = t.of[c->fault.at.seq].start;
        c->fault.has_cycle = true;
        c->fault.cycle = end;
        st = choose(c, job, &t, end, &out->stopped);
    }
    if (!st && out->stopped.stopped) {
        *over = true;
        t.cycle = out->stopped.cycle;
        st = stop_there(c, job, &t, out);
    }
    base_free(t.of);
    return st;
}
