// SPDX-License-Identifier: Apache-2.0
// Counting semaphores without time.
//
// Signals of one semaphore come from one engine at one epoch, so they happen in order, each one's
// clock containing those before it. A wait for value v ends after the signal that took the total to
// consumed + v: it joins that one clock. The waiter, being one engine, knows the older ones
// already, so events up to the total it waited for are forgotten.
#include "simulator/exec/sem.h"

#include <string.h>

#include "runtime/base/alloc.h"

void exec_sem_init(struct exec_sem *s) {
    *s = (struct exec_sem){.signaller = -1, .waiter = -1, .when = -1};
}

void exec_sem_deinit(struct exec_sem *s) {
    base_free(s->event);
    exec_sem_init(s);
}

void exec_sem_reset(struct exec_sem *s) {
    struct sem_event *event = s->event;
    uint32_t cap = s->cap;
    exec_sem_init(s);
    s->event = event;
    s->cap = cap;
}

enum exec_fault_kind exec_sem_claim_signal(struct exec_sem *s, const struct exec_place *at,
                                           int when) {
    if (s->signaller < 0) {
        s->signaller = at->engine;
        s->signaller_at = *at;
        s->when = when;
    }
    if (s->signaller != at->engine) return EXEC_FAULT_SIGNALLER;
    // The command processor finishes one instruction before the next: its epochs are one.
    if (s->when != when && at->engine != ISA_ENGINE_CP) return EXEC_FAULT_EPOCH;
    return EXEC_FAULT_NONE;
}

enum exec_fault_kind exec_sem_claim_wait(struct exec_sem *s, const struct exec_place *at) {
    if (s->waiter < 0) {
        s->waiter = at->engine;
        s->waiter_at = *at;
    }
    return s->waiter == at->engine ? EXEC_FAULT_NONE : EXEC_FAULT_WAITER;
}

uint64_t exec_sem_count(const struct exec_sem *s) {
    return s->signalled - s->consumed;
}

bool exec_sem_ready(const struct exec_sem *s, int64_t value) {
    return exec_sem_count(s) >= (uint64_t)value;
}

void exec_sem_take(struct exec_sem *s, int64_t value, bool acquire, struct race_clock *clock) {
    const uint64_t total = s->consumed + (uint64_t)value;
    if (total > s->waited) {
        while (s->event[s->first].total < total)
            s->first++;
        clock_join(clock, &s->event[s->first].clock);
        if (s->event[s->first].total == total) s->first++;
        s->waited = total;
    }
    if (acquire) s->consumed = total;
}

enum exec_fault_kind exec_sem_signal(struct exec_sem *s, int64_t increment,
                                     const struct race_clock *clock, bool *memory) {
    *memory = true;
    if (s->last == s->cap && s->first > s->cap / 2) {
        memmove(s->event, s->event + s->first, (s->last - s->first) * sizeof *s->event);
        s->last -= s->first;
        s->first = 0;
    }
    if (s->last == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 16;
        struct sem_event *grown = base_realloc(s->event, cap * sizeof *grown);
        if (!grown) {
            *memory = false;
            return EXEC_FAULT_NONE;
        }
        s->event = grown;
        s->cap = cap;
    }
    s->signalled += (uint64_t)increment;
    s->event[s->last++] = (struct sem_event){s->signalled, *clock};
    return exec_sem_count(s) > SEM_MAX_COUNT ? EXEC_FAULT_OVERFLOW : EXEC_FAULT_NONE;
}
