// SPDX-License-Identifier: Apache-2.0
//
// One job: functional pass into a units_program, then the timing machine over it.
//
// Cycle of a fault. Found when an instruction executes: the cycle at which it starts. Found when it
// is dispatched (it then has no record): a SYNC of the command processor stands for it, and the
// cycle is that of its decoding. A deadlock: the cycle at which nothing moves any more. The timing
// machine can also stop where the functional one did not, because its queues are short: that is a
// deadlock as well.
#include "simulator/core/core.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/base/alloc.h"
#include "runtime/base/progress.h"
#include "runtime/base/str.h"
#include "runtime/container.h"
#include "simulator/core/inside.h"
#include "simulator/core/names.h"

enum { VALUES_PERCENT = 70 }; // of the bar

static double now_seconds(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

npu_status core_no_memory(void) {
    return npu_fail(NO_MEMORY, "the simulated machine: out of memory");
}

npu_status core_new(const struct hw *hw, struct core **out) {
    struct core *c = base_alloc(sizeof *c);
    *out = NULL;
    if (!c) return core_no_memory();
    c->hw = *hw;
    c->program = units_program_new(hw);
    npu_status st = c->program ? exec_new(hw, &c->exec) : core_no_memory();
    if (st) {
        core_free(c);
        return st;
    }
    *out = c;
    return NULL;
}

void core_free(struct core *c) {
    if (!c) return;
    units_free(c->machine);
    units_program_free(c->program);
    exec_free(c->exec);
    base_free(c->place);
    base_free(c);
}

// ---- functional pass ---------------------------------------------------------------------------

static npu_status sink(void *ctx, const struct exec_dyn *dyn) {
    struct core *c = ctx;
    if (c->nplace == c->place_cap) {
        uint64_t cap = c->place_cap ? c->place_cap * 2 : 1024;
        struct core_place *grown = base_realloc(c->place, cap * sizeof *grown);
        if (!grown) return core_no_memory();
        c->place = grown;
        c->place_cap = cap;
    }
    progress_at(c->nplace);
    c->place[c->nplace++] = (struct core_place){dyn->pc_granule, dyn->tag, dyn->engine};
    if (c->seen) NPU_TRY(c->seen(c->seen_ctx, dyn));
    return units_sink(c->program, dyn);
}

static npu_status rows_sink(void *ctx, uint64_t seq, const int64_t *row, int64_t nrow) {
    struct core *c = ctx;
    return units_rows_sink(c->program, seq, row, nrow);
}

// A record for an instruction that was refused at dispatch, so that its cycle can be asked for.
npu_status core_stand_in(struct core *c, const struct exec_fault *f) {
    if (f->at.seq != units_program_count(c->program)) return NULL;
    struct isa_insn in;
    isa_init(&in, ISA_OP_SYNC);
    const struct exec_dyn dyn = {.seq = f->at.seq,
                                 .pc_granule = f->at.pc_granule,
                                 .granules = 1,
                                 .engine = ISA_ENGINE_CP,
                                 .tag = f->at.tag,
                                 .insn = &in};
    return sink(c, &dyn);
}

// ---- timing run --------------------------------------------------------------------------------

npu_status core_time(struct core *c, const struct units_options *options, struct core_result *out) {
    const double start = now_seconds();
    progress_stage("cycles: instructions", units_program_count(c->program), VALUES_PERCENT, 100);
    units_run(c->machine, options, &out->timing);
    out->run_seconds = now_seconds() - start;
    if (out->timing.end == UNITS_FAILED)
        return npu_fail(NO_MEMORY, "simulation kernel: %s",
                        out->timing.error ? out->timing.error : "failed");
    return NULL;
}

static npu_status time_program(struct core *c, uint64_t stop_seq, const struct core_noise *noise,
                               trace_sink *events, void *ctx, struct core_result *out) {
    struct units_options options = UNITS_OPTIONS_DEFAULT;
    options.stop_seq = stop_seq;
    options.sink = events;
    options.sink_ctx = ctx;
    if (noise) units_jitter(&c->jitter, &c->hw, noise->noise, &noise->at, &options);
    return core_time(c, &options, out);
}

// What the timing machine stands still at, as a fault.
void core_timing_deadlock(struct core *c, const struct units_result *r) {
    struct exec_fault *f = &c->fault;
    *f = (struct exec_fault){.kind = EXEC_FAULT_DEADLOCK};
    size_t used = 0;
    for (int e = 0; e < ISA_ENGINES; e++) {
        const struct units_blocked *b = &r->blocked[e];
        if (!b->blocked) continue;
        if (used == 0) {
            f->at = (struct exec_place){.seq = b->seq, .engine = e};
            if (b->seq < c->nplace) {
                f->at.pc_granule = c->place[b->seq].pc;
                f->at.tag = c->place[b->seq].tag;
            }
        }
        int n = b->semaphore ? snprintf(f->what + used, sizeof f->what - used,
                                        "%s%s waits for %d on semaphore %d, which is at %d",
                                        used ? "; " : "", isa_engine_name(e), b->value,
                                        b->semaphore, b->count)
                             : snprintf(f->what + used, sizeof f->what - used, "%s%s cannot go on",
                                        used ? "; " : "", isa_engine_name(e));
        used = n < 0 || used + (size_t)n >= sizeof f->what ? sizeof f->what - 1 : used + (size_t)n;
    }
    if (used < sizeof f->what)
        snprintf(f->what + used, sizeof f->what - used,
                 "; queues hold %" PRId64 " instructions each", c->hw.cp_queue_depth);
}

npu_status core_describe(const struct core *c, const struct core_job *job) {
    struct str s = {0};
    union {
        const void *in;
        void *out;
    } image = {job->image}; // only read
    fault_print(&c->fault, job->exec.code, core_tag_node, image.out, &s);
    npu_status st = s.failed ? core_no_memory() : npu_fail(FAULT, "%s", str_text(&s));
    str_free(&s);
    return st;
}

// Gives a fault of the functional pass its cycle.
static npu_status resolve_cycle(struct core *c, const struct core_job *job,
                                struct core_result *out) {
    struct exec_fault *f = &c->fault;
    const bool deadlock = f->kind == EXEC_FAULT_DEADLOCK;
    if (!deadlock) NPU_TRY(core_stand_in(c, f));
    c->machine = units_new(&c->hw, c->program);
    if (!c->machine) return core_no_memory();
    const struct core_noise later = {.at = {.start_ps = job->start_ps}};
    NPU_TRY(time_program(c, deadlock ? TRACE_NO_SEQ : f->at.seq, &later, job->events,
                         job->events_ctx, out));
    f->has_cycle = true;
    f->cycle = out->timing.cycles;
    return NULL;
}

npu_status core_values(struct core *c, const struct core_job *job, const struct exec_job *values,
                       struct core_result *out) {
    units_free(c->machine);
    c->machine = NULL;
    c->halted = false;
    c->nplace = 0;
    c->seen = job->seen;
    c->seen_ctx = job->seen_ctx;
    units_program_clear(c->program);
    units_program_code(c->program, job->code_address, job->exec.code.size);
    struct exec_job exec = *values;
    exec.sink = sink;
    exec.rows = rows_sink;
    exec.sink_ctx = c;
    const double start = now_seconds();
    progress_stage("values: instructions", 0, 0, VALUES_PERCENT);
    npu_status st = exec_run(c->exec, &exec);
    out->exec_seconds = now_seconds() - start;
    out->exec = *exec_stats_of(c->exec);
    return st;
}

npu_status core_run(struct core *c, const struct core_job *job, struct core_result *out) {
    *out = (struct core_result){0};
    if (job->stop) {
        bool over;
        npu_status stopped = core_run_until(c, job, out, &over);
        if (stopped || over) return stopped;
        *out = (struct core_result){0};
    }
    npu_status st = core_values(c, job, &job->exec, out);
    if (st) {
        if (npu_status_code(st) != NPU_FAULT) return st;
        npu_status_free(st);
        c->fault = *exec_fault_of(c->exec);
        out->fault = &c->fault;
        NPU_TRY(resolve_cycle(c, job, out));
        return core_describe(c, job);
    }
    c->machine = units_new(&c->hw, c->program);
    if (!c->machine) return core_no_memory();
    const struct core_noise later = {.at = {.start_ps = job->start_ps}};
    NPU_TRY(time_program(c, TRACE_NO_SEQ, &later, job->events, job->events_ctx, out));
    if (out->timing.end != UNITS_HALTED) {
        core_timing_deadlock(c, &out->timing);
        c->fault.has_cycle = true;
        c->fault.cycle = out->timing.cycles;
        out->fault = &c->fault;
        return core_describe(c, job);
    }
    c->halted = true;
    return NULL;
}

const struct exec *core_exec(const struct core *c) {
    return c->exec;
}

npu_status core_repeat(struct core *c, const struct core_noise *noise, trace_sink *events,
                       void *events_ctx, struct core_result *out) {
    *out = (struct core_result){0};
    if (!c->halted) return npu_fail(USAGE, "no finished job to time again");
    units_reset(c->machine);
    out->exec = *exec_stats_of(c->exec);
    return time_program(c, TRACE_NO_SEQ, noise, events, events_ctx, out);
}

struct units_program *core_take(struct core *c) {
    if (!c->halted) return NULL;
    struct units_program *fresh = units_program_new(&c->hw), *taken = c->program;
    if (!fresh) return NULL;
    units_free(c->machine);
    c->machine = NULL;
    c->halted = false;
    c->program = fresh;
    units_program_trim(taken);
    return taken;
}

npu_status core_again(struct core *c, const struct units_program *p, const struct core_noise *noise,
                      uint64_t *cycles, double *seconds) {
    struct core_result r = {0};
    c->halted = false;
    units_free(c->machine);
    c->machine = units_new(&c->hw, p);
    if (!c->machine) return core_no_memory();
    npu_status st = time_program(c, TRACE_NO_SEQ, noise, NULL, NULL, &r);
    if (!st) NPU_ASSERT(r.timing.end == UNITS_HALTED); // it did before, and noise stops nothing
    *cycles = r.timing.cycles;
    *seconds = r.run_seconds;
    units_free(c->machine); // the records are the caller's
    c->machine = NULL;
    return st;
}
