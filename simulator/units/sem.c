// SPDX-License-Identifier: Apache-2.0
//
// Counting semaphores. A signal becomes visible cp.semaphore cycles after it fires and is queued
// until then, so signals whose time is known already (a result that drains) need no event of their
// own.
#include "simulator/units/machine.h"

static void settle(struct units_sem *s, uint64_t cycle) {
    while (s->head != s->tail) {
        const struct units_signal *p = &s->pending[s->head % UNITS_SIGNALS];
        if (p->cycle > cycle) break;
        s->count += p->increment;
        s->last_seq = p->seq;
        s->last_cycle = p->cycle;
        s->head++;
    }
}

// When the count reaches `value` with the signals that are known.
static uint64_t reaches(const struct units_sem *s, int64_t value) {
    int64_t count = s->count;
    for (uint32_t i = s->head; i != s->tail; i++) {
        const struct units_signal *p = &s->pending[i % UNITS_SIGNALS];
        count += p->increment;
        if (count >= value) return p->cycle;
    }
    return UNITS_NEVER;
}

// Whether both waits of an instruction are satisfied at `cycle`. If not: the one it waits for, and
// when that will be, as far as known.
bool units_sem_ready(struct units_machine *m, const struct units_rec *r, uint64_t cycle,
                     uint64_t *when, int *sem) {
    bool ready = true;
    *when = 0;
    for (int i = 0; i < 2; i++) {
        if (!r->wait_sem[i]) continue;
        struct units_sem *s = &m->sem[r->wait_sem[i]];
        settle(s, cycle);
        if (s->count >= r->wait_value[i]) continue;
        const uint64_t at = reaches(s, r->wait_value[i]);
        if (ready || at > *when) {
            *when = at;
            *sem = r->wait_sem[i];
        }
        ready = false;
    }
    return ready;
}

static void note(const struct units_machine *m, uint64_t cycle, int sem, int change) {
    if (!m->options.sink) return;
    const struct trace_event e = {.kind = TRACE_EVENT_SEMAPHORE,
                                  .engine = ISA_ENGINE_CP,
                                  .id = (uint32_t)sem,
                                  .start = cycle,
                                  .change = change,
                                  .wait_engine = -1,
                                  .cause_seq = TRACE_NO_SEQ};
    m->options.sink(m->options.sink_ctx, &e);
}

// Takes what the waits of an instruction that starts at `cycle` subtract.
void units_sem_take(struct units_machine *m, const struct units_rec *r, uint64_t cycle) {
    for (int i = 0; i < 2; i++) {
        if (!r->wait_sem[i] || !(r->acquire >> i & 1)) continue;
        m->sem[r->wait_sem[i]].count -= r->wait_value[i];
        note(m, cycle, r->wait_sem[i], -(int)r->wait_value[i]);
    }
}

static void push(struct units_sem *s, struct units_signal p) {
    if (s->tail - s->head ==
        UNITS_SIGNALS) { // merges with the last one, at the later of both times
        struct units_signal *last = &s->pending[(s->tail - 1) % UNITS_SIGNALS];
        last->increment += p.increment;
        if (p.cycle > last->cycle) last->cycle = p.cycle;
        return;
    }
    uint32_t i = s->tail++;
    for (; i != s->head && s->pending[(i - 1) % UNITS_SIGNALS].cycle > p.cycle; i--)
        s->pending[i % UNITS_SIGNALS] = s->pending[(i - 1) % UNITS_SIGNALS];
    s->pending[i % UNITS_SIGNALS] = p;
}

// Fires those signals of an instruction that belong to `when`, at `cycle`.
void units_signal(struct units_machine *m, const struct units_rec *r, enum isa_when when,
                  uint64_t cycle) {
    for (int i = 0; i < 2; i++) {
        if (!r->sig_sem[i] || r->sig_when[i] != when) continue;
        const uint64_t visible = cycle + (uint64_t)m->hw.cp_semaphore;
        note(m, visible, r->sig_sem[i], r->sig_inc[i]);
        push(&m->sem[r->sig_sem[i]],
             (struct units_signal){visible, (uint32_t)(r - m->p->rec), r->sig_inc[i]});
        const int waiter = m->p->waiter[r->sig_sem[i]] - 1;
        if (waiter >= 0 && m->engine[waiter] && m->engine[waiter]->waiting)
            units_wake(m, m->engine[waiter], visible);
    }
}

// The next run begins with all of them at 0; the event log says so.
void units_sem_forget(struct units_machine *m) {
    for (int i = 0; m->options.sink && i < ISA_SEMS; i++) {
        const struct units_sem *s = &m->sem[i];
        uint64_t cycle = m->cycles;
        int64_t count = s->count;
        for (uint32_t k = s->head; k != s->tail; k++) {
            const struct units_signal *p = &s->pending[k % UNITS_SIGNALS];
            count += p->increment;
            if (p->cycle > cycle) cycle = p->cycle;
        }
        if (count) note(m, cycle, i, -(int)count);
    }
}

// Class of a wait for a semaphore, and who signals it.
void units_wait_state(struct units_machine *m, int sem, enum trace_class *cls, int *engine) {
    *engine = m->p->signaller[sem] - 1;
    *cls = *engine >= 0 && isa_engine_class(*engine) == ISA_CLASS_DMA ? TRACE_WAIT_DMA
                                                                      : TRACE_WAIT_SEMAPHORE;
}
