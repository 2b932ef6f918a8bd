// SPDX-License-Identifier: Apache-2.0
//
// MXU and VEC: in-order engines whose instructions have a closed form. An instruction occupies the
// engine for `issue` cycles of work, more when the banks give it less than full speed; what it
// reads and shows later (read, done) follows at fixed distances, while the next one issues.
//
//   step: work on -> finished? count its cycles, fire its signals -> start the next one, or say why
//   not:
//         queue empty, semaphore, partial sums on their way (PSUM), operand of an earlier one
//         (DEPENDENCY)
#include "simulator/units/machine.h"

static uint64_t max64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static const struct units_rec *current(const struct units_compute *c) {
    return &c->m->p->rec[c->seq];
}

// Sets speed from what the banks give now.
static void set_speed(struct units_compute *c) {
    const uint32_t spm = c->m->spm.speed[c->user], psum = c->m->psum.speed[c->user];
    c->psum_limits = psum < spm;
    c->speed = c->psum_limits ? psum : spm;
}

static void work(struct units_compute *c, uint64_t cycle) {
    if (cycle <= c->last) return;
    const uint64_t cycles = cycle - c->last, gain = cycles * c->speed;
    const uint64_t lost = cycles * BANKS_ONE - gain;
    c->left -= gain < c->left ? gain : c->left;
    if (c->psum_limits)
        c->lost_psum += lost;
    else
        c->lost_spm += lost;
    c->last = cycle;
}

// Cycles of work left until the next thing to do: the read signal when it comes before the end, or
// the end.
static uint64_t until_next(const struct units_compute *c) {
    const struct units_rec *r = current(c);
    if (!c->read_fired) {
        const uint64_t after = (uint64_t)(r->issue - r->read) * BANKS_ONE;
        return c->left > after ? c->left - after : 0;
    }
    return c->left;
}

static void schedule(struct units_compute *c) {
    const uint64_t cycles = banks_cycles(until_next(c), c->speed);
    kernel_wake_only(c->e.process,
                     cycles == UINT64_MAX ? KERNEL_NEVER : units_ps(c->m, c->last + cycles));
}

void units_compute_retime(struct units_compute *c, uint64_t cycle) {
    if (!c->running) return;
    work(c, cycle);
    set_speed(c);
    schedule(c);
    if (c->m->in_memory) {
        const uint64_t cycles = banks_cycles(until_next(c), c->speed);
        const uint64_t at = cycles == UINT64_MAX ? UNITS_NEVER : units_ps(c->m, c->last + cycles);
        if (at < c->m->limit_ps) c->m->limit_ps = at;
    }
}

static void finish(struct units_compute *c, uint64_t cycle) {
    struct units_machine *m = c->m;
    const struct units_rec *r = current(c);
    const uint64_t slow = cycle - c->start > r->issue ? cycle - c->start - r->issue : 0;
    const uint64_t lost = c->lost_spm + c->lost_psum;
    const uint64_t psum = lost ? slow * (c->lost_psum >> 8) / ((lost >> 8) + !(lost >> 8)) : 0;
    units_count(&c->e, c->e.counted + r->full, TRACE_BUSY);
    units_count(&c->e, c->e.counted + (r->issue - r->full), TRACE_BUSY_PARTIAL);
    units_count(&c->e, c->e.counted + psum, TRACE_PSUM);
    units_count(&c->e, cycle, TRACE_BANK_CONFLICT);

    const uint64_t read = r->read >= r->issue ? cycle + (r->read - r->issue) : c->read_at;
    const uint64_t done = cycle + (r->done - r->issue);
    if (r->read >= r->issue) units_signal(m, r, ISA_AT_READ, read);
    units_signal(m, r, ISA_AT_DONE, done);
    c->e.last_done = max64(c->e.last_done, done);
    if (!(r->flags & UNITS_SKIPPED)) {
        c->done_at[c->real % UNITS_DEPS] = done;
        c->accumulate_at[c->real % UNITS_DEPS] =
            r->accumulate > r->issue ? cycle + (r->accumulate - r->issue) : cycle;
        c->real++;
    }
    c->running = false;
    units_tally(m, r, c->start, done, cycle - c->start);
    units_emit(m,
               &(struct trace_event){.seq = c->seq,
                                     .dispatched = c->entered,
                                     .ready = c->e.ready,
                                     .start = c->start,
                                     .read = read,
                                     .issued = cycle,
                                     .done = done,
                                     .wait_class = c->e.longest,
                                     .wait_engine = c->e.longest_engine,
                                     .cause_seq = c->e.cause_seq,
                                     .cause_cycle = c->e.cause_cycle},
               r);
    c->e.ready = cycle;
    c->e.longest = TRACE_BUSY;
    c->e.longest_cycles = 0;
    c->e.longest_engine = -1;
    c->e.cause_seq = TRACE_NO_SEQ;
}

static void start(struct units_compute *c, const struct units_rec *r, uint64_t cycle) {
    struct units_machine *m = c->m;
    units_state(&c->e, cycle, TRACE_BUSY, -1);
    units_sem_take(m, r, cycle);
    units_signal(m, r, ISA_AT_START, cycle);
    c->running = true;
    c->seq = (uint64_t)(r - m->p->rec);
    c->start = c->last = cycle;
    c->left = (uint64_t)r->issue * BANKS_ONE;
    c->lost_spm = c->lost_psum = 0;
    c->read_fired = r->read >= r->issue;
    units_share(m, c->user, r->spm, r->psum, cycle);
    set_speed(c);
    schedule(c);
}

// Starts the first instruction of the queue, or enters the state that says why it cannot.
static void try_start(struct units_compute *c, uint64_t cycle) {
    struct units_machine *m = c->m;
    struct units_engine *e = &c->e;
    e->waiting = true;
    if (e->head == e->tail) {
        units_state(e, cycle, e->head == e->n ? TRACE_IDLE : TRACE_QUEUE_EMPTY, -1);
        units_settled(m, e);
        return;
    }
    const uint64_t entered = e->dispatched[e->head % (uint64_t)m->hw.cp_queue_depth];
    if (entered > cycle) {
        units_state(e, cycle, TRACE_QUEUE_EMPTY, -1);
        kernel_wake_only(e->process, units_ps(m, entered));
        return;
    }
    e->ready = max64(e->ready, entered);
    const uint32_t index = e->list[e->head];
    const struct units_rec *r = &m->p->rec[index];
    uint64_t when = 0;
    int sem = 0;
    if (!units_sem_ready(m, r, cycle, &when, &sem)) {
        enum trace_class cls;
        int who;
        units_wait_state(m, sem, &cls, &who);
        units_state(e, cycle, cls, who);
        kernel_wake_only(e->process, when == UNITS_NEVER ? KERNEL_NEVER : units_ps(m, when));
        return;
    }
    if (r->dep && r->dep <= c->real) {
        const uint64_t slot = (c->real - r->dep) % UNITS_DEPS;
        const bool accumulates = r->flags & UNITS_ACCUMULATE;
        const uint64_t at = accumulates ? c->accumulate_at[slot] : c->done_at[slot];
        if (at > cycle) {
            units_state(e, cycle, accumulates ? TRACE_PSUM : TRACE_DEPENDENCY, -1);
            kernel_wake_only(e->process, units_ps(m, at));
            return;
        }
    }
    if (units_stop_at(m, index, cycle)) return;
    e->waiting = false;
    if (cycle > e->ready && e->longest != TRACE_BUSY && r->wait_sem[0]) {
        e->cause_seq = m->sem[r->wait_sem[0]].last_seq;
        e->cause_cycle = m->sem[r->wait_sem[0]].last_cycle;
        if (r->wait_sem[1] && m->sem[r->wait_sem[1]].last_cycle > e->cause_cycle) {
            e->cause_seq = m->sem[r->wait_sem[1]].last_seq;
            e->cause_cycle = m->sem[r->wait_sem[1]].last_cycle;
        }
    }
    c->entered = entered;
    start(c, r, cycle);
    e->head++;
    units_popped(m, e, cycle);
}

void units_compute_step(void *compute) {
    struct units_compute *c = compute;
    if (c->m->over) return;
    const uint64_t cycle = units_cycle(c->m, kernel_now(c->m->kernel));
    if (c->running) {
        work(c, cycle);
        if (!c->read_fired && until_next(c) == 0) {
            c->read_fired = true;
            c->read_at = cycle;
            units_signal(c->m, current(c), ISA_AT_READ, cycle);
        }
        if (c->left > 0) {
            schedule(c);
            return;
        }
        finish(c, cycle);
    }
    try_start(c, cycle);
    if (!c->running) units_share(c->m, c->user, 0, 0, cycle);
}
