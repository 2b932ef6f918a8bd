// SPDX-License-Identifier: Apache-2.0
//
// Building, resetting and running the machine; and what its parts share: counting cycles into
// classes, waking, the end of the run, per-tag sums, events.
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/progress.h"
#include "simulator/units/machine.h"

// ---- counting ----

static void pass_state_on(const struct units_engine *e) {
    if (e->state.done > e->state.start) e->sink(e->sink_ctx, &e->state);
}

// Cycles up to `upto` as a STATE event: part of the latest one, or the next.
static void note_state(struct units_engine *e, uint64_t upto, enum trace_class cls) {
    const bool waits = cls == TRACE_WAIT_SEMAPHORE || cls == TRACE_WAIT_DMA;
    const int who = waits ? e->wait_engine : -1;
    if (e->state.wait_class != cls || e->state.wait_engine != who) {
        pass_state_on(e);
        e->state.start = e->counted;
        e->state.wait_class = cls;
        e->state.wait_engine = who;
    }
    e->state.done = upto;
}

// Puts the cycles up to `upto` that are not in a class yet into one.
void units_count(struct units_engine *e, uint64_t upto, enum trace_class cls) {
    if (upto <= e->counted) return;
    if (e->sink) note_state(e, upto, cls);
    e->stats.cycles[cls] += upto - e->counted;
    e->counted = upto;
}

// Enters a state at `cycle`; the cycles before belong to the state until now.
void units_state(struct units_engine *e, uint64_t cycle, enum trace_class cls, int wait_engine) {
    if (cycle > e->counted) {
        const uint64_t cycles = cycle - e->counted;
        units_count(e, cycle, e->cls);
        if (e->wait_engine >= 0) e->stats.wait_for[e->wait_engine] += cycles;
        if (cycles > e->longest_cycles) {
            e->longest_cycles = cycles;
            e->longest = e->cls;
            e->longest_engine = e->wait_engine;
        }
    }
    e->cls = cls;
    e->wait_engine = wait_engine;
}

void units_tally(struct units_machine *m, const struct units_rec *r, uint64_t start, uint64_t done,
                 uint64_t occupied) {
    struct trace_tag *t = &m->tag[r->tag_index];
    if (start < t->first) t->first = start;
    if (done > t->last) t->last = done;
    t->instructions++;
    t->spm_bytes += r->spm_bytes;
    const enum isa_class cls = isa_engine_class(r->engine);
    m->completed++;
    m->engine[r->engine]->stats.instructions++;
    if (r->flags & UNITS_SKIPPED || cls == ISA_CLASS_CP) return;
    if (cls == ISA_CLASS_DMA) {
        const struct units_transfer *x = &m->p->transfer[r->extra];
        t->dma_cycles += occupied;
        t->dram_read += x->read_bytes;
        t->dram_write += x->write_bytes;
        return;
    }
    if (start < t->start) t->start = start;
    if (done > t->end) t->end = done;
    if (cls == ISA_CLASS_MXU) {
        t->macs += r->work;
        t->mxu_cycles += occupied;
    } else {
        t->elems += r->work;
        t->vec_cycles += occupied;
    }
}

void units_emit(struct units_machine *m, struct trace_event *e, const struct units_rec *r) {
    progress_at(m->completed);
    if (!m->options.sink) return;
    e->engine = r->engine;
    e->opcode = r->opcode;
    e->tag = r->tag;
    e->pc = r->pc;
    if (e->kind == TRACE_EVENT_INSN && isa_engine_class(r->engine) != ISA_CLASS_CP &&
        !(r->flags & UNITS_SKIPPED)) {
        e->work = r->work;
        if (isa_engine_class(r->engine) == ISA_CLASS_DMA) {
            const struct units_transfer *x = &m->p->transfer[r->extra];
            e->dram_read = (uint32_t)(x->read_bytes < UINT32_MAX ? x->read_bytes : UINT32_MAX);
            e->dram_write = (uint32_t)(x->write_bytes < UINT32_MAX ? x->write_bytes : UINT32_MAX);
        }
    }
    m->options.sink(m->options.sink_ctx, e);
}

// ---- waking ----

void units_wake(struct units_machine *m, struct units_engine *e, uint64_t cycle) {
    const uint64_t ps = units_ps(m, cycle);
    if (!e->process) {
        struct units_dma *x = &m->dma[e->id - ISA_ENGINE_DMA0];
        if (ps < x->next_ps) x->next_ps = ps;
        units_memory_poke(m, ps);
        return;
    }
    kernel_wake(e->process, ps);
    if (m->in_memory && ps < m->limit_ps) m->limit_ps = ps;
}

// An engine took an instruction out of its queue.
void units_popped(struct units_machine *m, struct units_engine *e, uint64_t cycle) {
    if (m->cp.full == e->id) units_wake(m, &m->cp.e, cycle);
}

// An engine has nothing left; a barrier may wait for that.
void units_settled(struct units_machine *m, struct units_engine *e) {
    if (m->cp.barrier) units_wake(m, &m->cp.e, e->last_done);
}

// Whether an engine has completed what it was given, and when.
bool units_settled_at(const struct units_machine *m, int engine, uint64_t *cycle) {
    const struct units_engine *e = m->engine[engine];
    if (!e) return true;
    if (e->head != e->tail) return false;
    if (engine == ISA_ENGINE_MXU && m->mxu.running) return false;
    if (engine == ISA_ENGINE_VEC && m->vec.running) return false;
    if (!e->process && (m->dma[engine - ISA_ENGINE_DMA0].issuing ||
                        m->dma[engine - ISA_ENGINE_DMA0].flight_head !=
                            m->dma[engine - ISA_ENGINE_DMA0].flight_tail))
        return false;
    if (e->last_done > *cycle) *cycle = e->last_done;
    return true;
}

// Sets what an engine wants of the banks and lets the others know when their speed changes.
void units_share(struct units_machine *m, int user, uint32_t spm, uint32_t psum, uint64_t cycle) {
    // The others work up to now at the speed they had.
    struct banks *const both[2] = {&m->spm, &m->psum};
    const uint32_t wants[2] = {spm, psum};
    for (int i = 0; i < 2; i++) {
        if (both[i]->demand[user] == wants[i]) continue;
        const uint32_t changed = banks_set(both[i], user, wants[i]);
        if (changed >> UNITS_USER_MXU & 1 && user != UNITS_USER_MXU)
            units_compute_retime(&m->mxu, cycle);
        if (changed >> UNITS_USER_VEC & 1 && user != UNITS_USER_VEC)
            units_compute_retime(&m->vec, cycle);
    }
}

// ---- the end of a run ----

void units_finish(struct units_machine *m, enum units_end end, uint64_t cycle) {
    if (m->over || (m->options.stop && cycle > m->options.stop_cycle)) return; // it runs ahead
    m->over = true;
    m->end = end;
    m->cycles = cycle;
    kernel_stop(m->kernel);
}

bool units_stop_at(struct units_machine *m, uint64_t seq, uint64_t cycle) {
    if (seq != m->options.stop_seq) return false;
    units_finish(m, UNITS_STOPPED, cycle);
    return true;
}

// The cycle at which the options stop the run.
static void stop_step(void *machine) {
    struct units_machine *m = machine;
    units_finish(m, UNITS_STOPPED, m->options.stop_cycle);
}

// ---- building ----

static void engine_init(struct units_machine *m, struct units_engine *e, int id, uint32_t **list,
                        uint64_t **ring) {
    e->id = id;
    e->list = *list;
    *list += m->p->per_engine[id];
    e->n = m->p->per_engine[id];
    e->dispatched = *ring;
    *ring += m->hw.cp_queue_depth;
    m->engine[id] = e;
}

static bool build(struct units_machine *m) {
    const struct units_program *p = m->p;
    m->list = base_alloc_array((size_t)p->count + 1, sizeof *m->list);
    m->dispatched =
        base_alloc_array((size_t)m->hw.cp_queue_depth * ISA_ENGINES, sizeof *m->dispatched);
    m->tag = base_alloc_array((size_t)p->ntag + 1, sizeof *m->tag);
    m->kernel = kernel_new();
    m->dram = dram_new(&m->hw, units_memory_done, units_memory_room, m);
    if (!m->list || !m->dispatched || !m->tag || !m->kernel || !m->dram) return false;

    m->certain_ps = dram_certain_ps(m->dram);
    // One bucket for all serves in order of asking, so nobody may ask early.
    m->ahead = m->hw.dram_fidelity == HW_DETAILED || m->hw.dram_standard == HW_IDEAL;
    const uint64_t kib = dram_ps_per_kib(m->dram),
                   links = (uint64_t)(m->ndma * m->hw.dma_width_bytes);
    const uint64_t duty = kib ? units_ps(m, 1024) * BANKS_ONE / (kib * links) : BANKS_ONE;
    m->dma_duty = (uint32_t)(duty < BANKS_ONE ? duty : BANKS_ONE);

    uint32_t *list = m->list;
    uint64_t *ring = m->dispatched;
    engine_init(m, &m->cp.e, ISA_ENGINE_CP, &list, &ring);
    for (int i = 0; i < m->ndma; i++) {
        engine_init(m, &m->dma[i].e, ISA_ENGINE_DMA0 + i, &list, &ring);
        if (!units_dma_init(&m->dma[i], m, i)) return false;
    }
    engine_init(m, &m->mxu.e, ISA_ENGINE_MXU, &list, &ring);
    engine_init(m, &m->vec.e, ISA_ENGINE_VEC, &list, &ring);
    uint64_t filled[ISA_ENGINES] = {0};
    for (uint64_t i = 0; i < p->count; i++) {
        const struct units_engine *e = m->engine[p->rec[i].engine];
        NPU_ASSERT(e != NULL);
        m->list[(e->list - m->list) + (ptrdiff_t)filled[e->id]++] = (uint32_t)i;
    }
    m->mxu.m = m->vec.m = m;
    m->mxu.user = UNITS_USER_MXU;
    m->vec.user = UNITS_USER_VEC;
    m->cp.e.process = kernel_spawn(m->kernel, "cp", units_cp_step, m);
    m->mxu.e.process = kernel_spawn(m->kernel, "mxu", units_compute_step, &m->mxu);
    m->vec.e.process = kernel_spawn(m->kernel, "vec", units_compute_step, &m->vec);
    m->memory = kernel_spawn(m->kernel, "memory", units_memory_step, m);
    m->stopper = kernel_spawn(m->kernel, "stop", stop_step, m);
    if (!m->cp.e.process || !m->mxu.e.process || !m->vec.e.process || !m->memory || !m->stopper)
        return false;
    return units_fetch_init(m);
}

struct units_machine *units_new(const struct hw *hw, const struct units_program *p) {
    struct units_machine *m = base_alloc(sizeof *m);
    if (!m) return NULL;
    m->hw = *hw;
    m->p = p;
    m->clock = kernel_clock((uint64_t)hw->clock_npu_mhz);
    m->ndma = (int)(hw->dma_engines < UNITS_DMAS ? hw->dma_engines : UNITS_DMAS);
    if (!build(m)) {
        units_free(m);
        return NULL;
    }
    units_reset(m);
    return m;
}

void units_free(struct units_machine *m) {
    if (!m) return;
    for (int i = 0; i < m->ndma; i++)
        units_dma_deinit(&m->dma[i]);
    base_free(m->cp.block);
    dram_cut_deinit(&m->cp.cut);
    dram_cut_deinit(&m->traffic_cut);
    kernel_free(m->kernel);
    dram_free(m->dram);
    base_free(m->list);
    base_free(m->dispatched);
    base_free(m->tag);
    base_free(m);
}

static void engine_reset(struct units_engine *e) {
    e->head = e->tail = 0;
    e->cls = e->n ? TRACE_QUEUE_EMPTY : TRACE_IDLE;
    e->counted = 0;
    e->wait_engine = e->longest_engine = -1;
    e->waiting = true;
    e->ready = e->last_done = 0;
    e->longest = TRACE_BUSY;
    e->longest_cycles = 0;
    e->cause_seq = TRACE_NO_SEQ;
    e->cause_cycle = 0;
    e->stats = (struct trace_engine){.engine = e->id};
}

static void compute_reset(struct units_compute *c) {
    engine_reset(&c->e);
    c->running = c->read_fired = c->psum_limits = false;
    c->real = 0;
}

void units_reset(struct units_machine *m) {
    kernel_reset(m->kernel);
    dram_reset(m->dram, NULL);
    banks_init(&m->spm);
    banks_init(&m->psum);
    for (int i = 0; i < ISA_SEMS; i++) {
        m->sem[i].count = 0;
        m->sem[i].head = m->sem[i].tail = 0;
        m->sem[i].last_seq = TRACE_NO_SEQ;
        m->sem[i].last_cycle = 0;
    }
    compute_reset(&m->mxu);
    compute_reset(&m->vec);
    for (int i = 0; i < m->ndma; i++) {
        engine_reset(&m->dma[i].e);
        units_dma_reset(&m->dma[i]);
    }
    engine_reset(&m->cp.e);
    m->cp.e.cls = TRACE_BUSY;
    units_fetch_reset(m);
    for (uint64_t i = 0; i < m->p->ntag; i++)
        m->tag[i] =
            (struct trace_tag){.tag = m->p->tag[i], .first = UINT64_MAX, .start = UINT64_MAX};
    m->memory_ps = m->limit_ps = 0;
    m->in_memory = m->over = m->traffic_next = false;
    m->cycles = m->completed = 0;
}

// ---- running ----

static void fill_blocked(const struct units_machine *m, struct units_result *out) {
    for (int i = 0; i < ISA_ENGINES; i++) {
        const struct units_engine *e = m->engine[i];
        if (!e || i == ISA_ENGINE_CP || e->head == e->tail) continue;
        const struct units_rec *r = &m->p->rec[e->list[e->head]];
        out->blocked[i] = (struct units_blocked){.blocked = true, .seq = e->list[e->head]};
        for (int w = 1; w >= 0; w--)
            if (r->wait_sem[w] && m->sem[r->wait_sem[w]].count < r->wait_value[w]) {
                out->blocked[i].semaphore = r->wait_sem[w];
                out->blocked[i].value = r->wait_value[w];
                out->blocked[i].count = (int)m->sem[r->wait_sem[w]].count;
            }
    }
    if (m->cp.next < m->p->count)
        out->blocked[ISA_ENGINE_CP] = (struct units_blocked){.blocked = true, .seq = m->cp.next};
}

static void fill_dram(const struct units_machine *m, struct units_result *out) {
    const struct dram_stats *s = dram_statistics(m->dram);
    out->dram = (struct trace_dram){
        .read_bytes = s->read_bytes,
        .write_bytes = s->write_bytes,
        .fetch_bytes = m->cp.fetched_bytes,
        .row_hits = s->row_hits,
        .row_misses = s->row_misses,
        .row_conflicts = s->row_conflicts,
        .refreshes = s->refreshes,
        .refresh_ps = s->refresh_ps,
        .bus_ps = s->bus_ps,
        .channels = dram_channels(m->dram),
    };
    out->quanta = s->quanta;
}

// Closes the count of every engine at the end of the run.
static void close_counts(struct units_machine *m, struct units_result *out) {
    size_t n = 0;
    for (int i = 0; i < ISA_ENGINES; i++) {
        struct units_engine *e = m->engine[i];
        if (!e) continue;
        if (e->counted < m->cycles) units_state(e, m->cycles, e->cls, e->wait_engine);
        uint64_t sum = 0;
        for (int c = 0; c < TRACE_CLASSES; c++)
            sum += e->stats.cycles[c];
        NPU_ASSERT(sum == e->counted);
        // A run that was cut short may have booked work that lies after its end.
        NPU_ASSERT(m->end != UNITS_HALTED || sum == m->cycles);
        if (e->sink) pass_state_on(e);
        m->stats[n++] = e->stats;
    }
    out->engine = m->stats;
    out->nengine = n;
}

void units_run(struct units_machine *m, const struct units_options *options,
               struct units_result *out) {
    *out = (struct units_result){0};
    m->options = *options;
    for (int i = 0; i < ISA_ENGINES; i++) {
        if (!m->engine[i]) continue;
        m->engine[i]->sink = options->sink;
        m->engine[i]->sink_ctx = options->sink_ctx;
        m->engine[i]->state = (struct trace_event){.kind = TRACE_EVENT_STATE,
                                                   .engine = i,
                                                   .wait_engine = -1,
                                                   .cause_seq = TRACE_NO_SEQ};
    }
    if (options->refresh_phase_ps) dram_reset(m->dram, options->refresh_phase_ps);
    if (options->crossing) dram_cross(m->dram, options->dram_edge_ps);
    if (options->traffic) {
        m->traffic_next = options->traffic(options->traffic_ctx, 0, &m->traffic);
        if (m->traffic_next) units_memory_poke(m, m->traffic.at_ps);
    }
    const uint64_t steps = kernel_steps(m->kernel);
    kernel_wake(m->cp.e.process, 0);
    if (options->stop) kernel_wake(m->stopper, units_ps(m, options->stop_cycle));
    const enum kernel_end end = kernel_run(m->kernel);
    if (end == KERNEL_FAILED) {
        out->end = UNITS_FAILED;
        out->error = kernel_error(m->kernel);
        return;
    }
    if (!m->over) {
        m->end = UNITS_QUIET;
        m->over = true;
        for (int i = 0; i < ISA_ENGINES; i++) {
            if (!m->engine[i]) continue;
            if (m->engine[i]->last_done > m->cycles) m->cycles = m->engine[i]->last_done;
            if (m->engine[i]->counted > m->cycles) m->cycles = m->engine[i]->counted;
        }
        fill_blocked(m, out);
    }
    close_counts(m, out);
    units_sem_forget(m);
    for (uint64_t i = 0; i < m->p->ntag; i++) { // tags under which nothing ended
        if (m->tag[i].first == UINT64_MAX) m->tag[i].first = m->tag[i].last = 0;
        if (m->tag[i].start == UINT64_MAX) m->tag[i].start = m->tag[i].end = m->tag[i].first;
    }
    out->end = m->end;
    out->cycles = m->cycles;
    out->instructions = m->completed;
    out->tag = m->tag;
    out->ntag = (size_t)m->p->ntag;
    out->kernel_steps = kernel_steps(m->kernel) - steps;
    fill_dram(m, out);
}
