// SPDX-License-Identifier: Apache-2.0
//
// The command processor: fetch, decode, then either hand the instruction to its engine's queue or
// carry it out. It keeps its own time (e.counted) and runs ahead of the kernel's until it meets
// something that it cannot know yet: a full queue, a block or a load on its way, a semaphore, the
// end of all engines.
#include "simulator/units/machine.h"

static uint64_t max64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

// Moves its time on; the cycles belong to `cls`.
static void pass(struct units_cp *c, uint64_t until, enum trace_class cls) {
    units_count(&c->e, until, cls);
}

// Instruction in instruction memory; false: asleep until it is.
static bool fetched(struct units_machine *m, const struct units_rec *r) {
    struct units_cp *c = &m->cp;
    const uint64_t first = (uint64_t)r->pc * ISA_GRANULE_BYTES;
    const uint64_t last = first + (uint64_t)r->granules * ISA_GRANULE_BYTES - 1;
    for (uint64_t b = first / c->block_bytes; b <= last / c->block_bytes; b++) {
        if (b + 1 == c->current) continue;
        c->e.cls = TRACE_FETCH;
        c->waited = b + 1;
        const uint64_t ready = units_fetch(m, b, c->e.counted);
        if (ready == UNITS_NEVER) return false;
        c->waited = 0;
        pass(c, ready, TRACE_FETCH);
        c->current = b + 1;
    }
    return true;
}

static void event(struct units_machine *m, const struct units_rec *r, enum trace_kind kind,
                  uint64_t start) {
    const uint64_t now = m->cp.e.counted;
    units_emit(m,
               &(struct trace_event){.kind = kind,
                                     .id = r->extra & INT32_MAX,
                                     .seq = m->cp.next,
                                     .dispatched = start,
                                     .ready = start,
                                     .start = start,
                                     .read = now,
                                     .issued = now,
                                     .done = now,
                                     .wait_engine = -1,
                                     .cause_seq = TRACE_NO_SEQ},
               r);
}

// Puts the instruction into its engine's queue; false: asleep until there is room.
static bool dispatch(struct units_machine *m, const struct units_rec *r) {
    struct units_cp *c = &m->cp;
    struct units_engine *e = m->engine[r->engine];
    const uint64_t depth = (uint64_t)m->hw.cp_queue_depth;
    if (e->tail - e->head == depth) {
        c->full = e->id;
        c->e.cls = TRACE_QUEUE_FULL;
        return false;
    }
    c->full = -1;
    const bool first = e->head == e->tail;
    e->dispatched[e->tail++ % depth] = c->e.counted;
    if (first && e->waiting) units_wake(m, e, c->e.counted);
    return true;
}

// LDS and STS of DRAM; false: asleep until the answer.
static bool memory(struct units_machine *m, const struct units_rec *r) {
    struct units_cp *c = &m->cp;
    c->e.cls = TRACE_WAIT_DRAM;
    if (!c->loading) {
        dram_cut_clear(&c->cut, m->dram);
        dram_cut_run(&c->cut, m->dram, r->work / 64 * 64, 64, 1);
        const struct dram_quantum q = {
            .arrive_ps = units_ps(m, c->e.counted),
            .at = c->cut.piece[0],
            .client = UNITS_CLIENT_CP,
            .write = r->flags & UNITS_WRITES,
            .urgent = true,
        };
        c->loading = true;
        c->load = UNITS_NEVER;
        if (!dram_submit(m->dram, &q)) {
            c->loading = false; // woken when there is room
            return false;
        }
        units_memory_poke(m, dram_next(m->dram));
    }
    if (c->load == UNITS_NEVER) return false;
    c->loading = false;
    pass(c, c->load, TRACE_WAIT_DRAM);
    return true;
}

// Waits until every engine has completed what it was given; false: asleep until one more has.
static bool barrier(struct units_machine *m) {
    struct units_cp *c = &m->cp;
    uint64_t end = c->e.counted;
    c->e.cls = TRACE_BARRIER;
    c->barrier = true;
    for (int i = 1; i < ISA_ENGINES; i++)
        if (!units_settled_at(m, i, &end)) return false;
    c->barrier = false;
    pass(c, end, TRACE_BARRIER);
    return true;
}

// HALT: what was written has to be in memory; false: asleep until it is.
static bool drain(struct units_machine *m) {
    struct units_cp *c = &m->cp;
    uint64_t end = c->e.counted;
    c->e.cls = TRACE_BARRIER;
    c->draining = true;
    if (!units_memory_written(m, &end)) return false;
    c->draining = false;
    pass(c, end, TRACE_BARRIER);
    return true;
}

// Carries out an instruction of its own after its waits; false: asleep.
static bool execute(struct units_machine *m, const struct units_rec *r) {
    struct units_cp *c = &m->cp;
    if (!c->started) {
        uint64_t when;
        int sem;
        if (!units_sem_ready(m, r, c->e.counted, &when, &sem)) {
            int who;
            units_wait_state(m, sem, &c->e.cls, &who);
            c->e.wait_engine = who;
            c->e.waiting = true;
            if (when == UNITS_NEVER) return false;
            units_state(&c->e, when, c->e.cls, -1);
            return execute(m, r); // counts what has become visible
        }
        c->e.waiting = false;
        units_sem_take(m, r, c->e.counted);
        units_signal(m, r, ISA_AT_START, c->e.counted);
        c->started = true;
    }
    if (r->flags & UNITS_DRAM && !memory(m, r)) return false;
    if ((r->opcode == ISA_OP_BARRIER || r->opcode == ISA_OP_HALT) && !(r->flags & UNITS_SKIPPED) &&
        !barrier(m))
        return false;
    if (r->opcode == ISA_OP_HALT && !(r->flags & UNITS_SKIPPED) && !drain(m)) return false;
    pass(c, c->e.counted + r->issue, TRACE_BUSY);
    units_signal(m, r, ISA_AT_READ, c->e.counted);
    units_signal(m, r, ISA_AT_DONE, c->e.counted);
    return true;
}

static void note(struct units_machine *m, const struct units_rec *r) {
    struct units_cp *c = &m->cp;
    units_tally(m, r, c->decode_start, c->e.counted, 0);
    event(m, r, TRACE_EVENT_INSN, c->decode_start);
    if (r->flags & UNITS_SKIPPED) return;
    if (r->opcode == ISA_OP_TS) event(m, r, TRACE_EVENT_STAMP, c->e.counted);
    if (r->opcode == ISA_OP_IRQ) event(m, r, TRACE_EVENT_IRQ, c->e.counted);
    if (r->opcode == ISA_OP_MARK)
        event(m, r, r->extra >> 31 ? TRACE_EVENT_OPEN : TRACE_EVENT_CLOSE, c->e.counted);
}

// One instruction; false: asleep.
static bool instruction(struct units_machine *m) {
    struct units_cp *c = &m->cp;
    const struct units_rec *r = &m->p->rec[c->next];
    if (!c->fetched) {
        if (!fetched(m, r)) return false;
        c->fetched = true;
    }
    if (!c->decoded) {
        if (r->engine == ISA_ENGINE_CP && units_stop_at(m, c->next, c->e.counted)) return false;
        const uint64_t width = (uint64_t)m->hw.cp_fetch_bytes;
        const uint64_t decode =
            (uint64_t)(m->hw.cp_insn + m->hw.cp_granule * (r->granules ? r->granules - 1 : 0));
        const uint64_t bytes = ((uint64_t)r->granules * ISA_GRANULE_BYTES + width - 1) / width;
        c->decode_start = c->e.counted;
        pass(c, c->e.counted + max64(decode, bytes), TRACE_BUSY);
        c->decoded = true;
        c->started = false;
    }
    if (r->engine != ISA_ENGINE_CP) {
        if (!dispatch(m, r)) return false;
    } else {
        if (!execute(m, r)) return false;
        note(m, r);
        if (r->opcode == ISA_OP_HALT && !(r->flags & UNITS_SKIPPED)) {
            units_finish(m, UNITS_HALTED, c->e.counted);
            return false;
        }
    }
    c->next++;
    c->fetched = c->decoded = false;
    return true;
}

void units_cp_step(void *machine) {
    struct units_machine *m = machine;
    struct units_cp *c = &m->cp;
    if (m->over) return;
    const uint64_t cycle = units_cycle(m, kernel_now(m->kernel));
    if (cycle > c->e.counted) units_state(&c->e, cycle, c->e.cls, c->e.wait_engine);
    c->e.wait_engine = -1;
    while (c->next < m->p->count)
        if (!instruction(m)) return;
    c->e.cls = TRACE_IDLE;
}
