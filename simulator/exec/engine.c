// SPDX-License-Identifier: Apache-2.0
// Engines without time: a queue each, served in order. An instruction whose waits are satisfied
// runs at once, in full; its signals may let other engines go on. Engines are looked at in the
// order of their numbers until none can start, so the order of execution is always the same. It is
// one of the orders that the semaphores allow; the race check makes sure that every other one gives
// the same values.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "simulator/exec/machine.h"

static bool ready(const struct exec *x, const struct isa_header *h) {
    return (!h->wait0_sem || exec_sem_ready(&x->sem[h->wait0_sem], h->wait0_value)) &&
           (!h->wait1_sem || exec_sem_ready(&x->sem[h->wait1_sem], h->wait1_value));
}

static bool has_fence(const struct isa_insn *in) {
    switch (in->h.opcode) {
    case ISA_OP_COPY: return in->u.COPY.fence != 0;
    case ISA_OP_GATHER: return in->u.GATHER.fence != 0;
    case ISA_OP_FILL: return in->u.FILL.fence != 0;
    default: return false;
    }
}

static bool signal_one(struct exec *x, const struct exec_place *at, int64_t sem, int64_t increment,
                       int64_t when, const struct race_clock clock[3]) {
    bool memory;
    if (!sem) return true;
    enum exec_fault_kind kind = exec_sem_signal(&x->sem[sem], increment, &clock[when], &memory);
    if (!memory) return exec_no_memory(x, "signals of a semaphore");
    x->signalled = true;
    if (kind == EXEC_FAULT_NONE) return true;
    return exec_raise(x, at, kind,
                      "semaphore %" PRId64 " would count to %" PRIu64 ", %d is the most", sem,
                      exec_sem_count(&x->sem[sem]), SEM_MAX_COUNT);
}

bool engine_signal(struct exec *x, const struct exec_place *at, const struct isa_header *h,
                   const struct race_clock clock[3]) {
    return signal_one(x, at, h->sig0_sem, h->sig0_inc, h->sig0_when, clock) &&
           signal_one(x, at, h->sig1_sem, h->sig1_inc, h->sig1_when, clock);
}

// Whether it can start here and, where the run is to be stopped, has started by then.
static bool starts(const struct exec *x, const struct exec_place *at, const struct isa_header *h) {
    return ready(x, h) && exec_point_of(x, at->seq) >= EXEC_STARTED;
}

// An instruction that is under way where the run stops: signals of the points that it has passed.
static bool under_way(struct exec *x, const struct exec_place *at, const struct isa_insn *in,
                      enum exec_point point, const struct race_clock clock[3]) {
    const struct isa_header *h = &in->h;
    const int64_t last = point == EXEC_READ ? ISA_AT_READ : ISA_AT_START;
    uint32_t *n = &x->nflight[at->engine];
    if (*n < EXEC_FLIGHTS) x->flight[at->engine][*n] = (struct exec_flight){*at, point, *in};
    ++*n;
    return (h->sig0_when > last ||
            signal_one(x, at, h->sig0_sem, h->sig0_inc, h->sig0_when, clock)) &&
           (h->sig1_when > last ||
            signal_one(x, at, h->sig1_sem, h->sig1_inc, h->sig1_when, clock));
}

// Runs an instruction whose waits are satisfied.
static bool run(struct exec *x, const struct exec_place *at, const struct isa_insn *in,
                bool skipped, uint32_t clock) {
    struct race_clock before = x->snap[clock], points[3];
    const struct isa_header *h = &in->h;
    if (h->wait0_sem)
        exec_sem_take(&x->sem[h->wait0_sem], h->wait0_value, (h->acquire & 1) != 0, &before);
    if (h->wait1_sem)
        exec_sem_take(&x->sem[h->wait1_sem], h->wait1_value, (h->acquire & 2) != 0, &before);
    if (!race_begin(&x->race, at, &before, !skipped && has_fence(in)))
        return exec_no_memory(x, "the list of instructions");
    const enum exec_point point = exec_point_of(x, at->seq);
    if (point < EXEC_DONE) {
        race_end(&x->race, points);
        return under_way(x, at, in, point, points);
    }
    if (!skipped && h->opcode != ISA_OP_SYNC && !access_insn(x, at, in)) return false;
    race_end(&x->race, points);
    if (h->irq) x->stats.irq_status |= 1;
    return engine_signal(x, at, h, points);
}

bool engine_run_ready(struct exec *x) {
    while (x->signalled) {
        x->signalled = false;
        for (int e = 0; e < ISA_ENGINES; e++) {
            struct exec_queue *q = &x->queue[e];
            while (q->first && starts(x, &q->first->at, &q->first->insn.h)) {
                struct exec_entry *entry = q->first;
                q->first = entry->next;
                q->len--;
                entry->next = x->spare;
                x->spare = entry;
                if (!run(x, &entry->at, &entry->insn, entry->skipped, entry->clock)) return false;
            }
        }
    }
    return true;
}

// Number of the command processor's clock as it is now.
static bool take_snapshot(struct exec *x) {
    if (x->nsnap > 0 && !x->cp_changed) return true;
    if (x->nsnap == x->snap_cap) {
        uint32_t cap = x->snap_cap ? x->snap_cap * 2 : 64;
        struct race_clock *grown = base_realloc(x->snap, cap * sizeof *grown);
        if (!grown) return exec_no_memory(x, "clocks of the command processor");
        x->snap = grown;
        x->snap_cap = cap;
    }
    x->snap[x->nsnap++] = x->cp;
    x->cp_changed = false;
    return true;
}

// Queues longer than any machine's: the engine will never move.
enum { QUEUE_LIMIT = 65536 };

bool engine_push(struct exec *x, const struct exec_place *at, const struct isa_insn *in,
                 bool skipped) {
    struct exec_queue *q = &x->queue[at->engine];
    if (!take_snapshot(x)) return false;
    if (!q->first && starts(x, at, &in->h))
        return run(x, at, in, skipped, x->nsnap - 1) && engine_run_ready(x);
    if (q->len >= QUEUE_LIMIT) return engine_deadlock(x, at, NULL);
    struct exec_entry *entry = x->spare;
    if (entry)
        x->spare = entry->next;
    else
        entry = base_alloc(sizeof *entry);
    if (!entry) return exec_no_memory(x, "an instruction in a queue");
    *entry = (struct exec_entry){.at = *at, .skipped = skipped, .clock = x->nsnap - 1, .insn = *in};
    if (q->first)
        q->last->next = entry;
    else
        q->first = entry;
    q->last = entry;
    q->len++;
    return true;
}

void engine_drop_queues(struct exec *x) {
    for (int e = 0; e < ISA_ENGINES; e++) {
        struct exec_queue *q = &x->queue[e];
        if (!q->first) continue;
        q->last->next = x->spare;
        x->spare = q->first;
        *q = (struct exec_queue){0};
    }
}

// ---- deadlock -----------------------------------------------------------------------------------

static void describe_wait(const struct exec *x, int64_t sem, int64_t value, char *text,
                          size_t room) {
    const size_t used = strlen(text);
    if (!sem || exec_sem_ready(&x->sem[sem], value)) return;
    const struct exec_sem *s = &x->sem[sem];
    snprintf(text + used, room - used,
             " waits for %" PRId64 " on semaphore %" PRId64 ", which is at %" PRIu64 " and %s%s",
             value, sem, exec_sem_count(s),
             s->signaller < 0 ? "has no signaller" : "is signalled by ",
             s->signaller < 0 ? "" : isa_engine_name(s->signaller));
}

bool engine_deadlock(struct exec *x, const struct exec_place *cp_at,
                     const struct isa_header *cp_waits) {
    char text[sizeof x->fault.what] = "";
    const struct exec_place *at = cp_at;
    if (cp_waits) {
        const bool waits = cp_waits->wait0_sem || cp_waits->wait1_sem;
        snprintf(text, sizeof text, waits ? "cp" : "cp waits for every engine to finish");
        describe_wait(x, cp_waits->wait0_sem, cp_waits->wait0_value, text, sizeof text);
        describe_wait(x, cp_waits->wait1_sem, cp_waits->wait1_value, text, sizeof text);
    }
    for (int e = 0; e < ISA_ENGINES; e++) {
        const struct exec_entry *first = x->queue[e].first;
        if (!first) continue;
        if (!cp_waits && !*text) at = &first->at;
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", used ? "; " : "", isa_engine_name(e));
        describe_wait(x, first->insn.h.wait0_sem, first->insn.h.wait0_value, text, sizeof text);
        describe_wait(x, first->insn.h.wait1_sem, first->insn.h.wait1_value, text, sizeof text);
    }
    return exec_raise(x, at, EXEC_FAULT_DEADLOCK, "%s", text);
}
