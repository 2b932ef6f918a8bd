// SPDX-License-Identifier: Apache-2.0
// Counting semaphores without time: counts, owners, and the clocks that travel with the counts.
#ifndef NPU_SIMULATOR_EXEC_SEM_H
#define NPU_SIMULATOR_EXEC_SEM_H

#include <stdbool.h>
#include <stdint.h>

#include "simulator/exec/fault.h"
#include "simulator/exec/race.h"

enum { SEM_MAX_COUNT = 4095 };

// The count reached `total` increments at a point whose clock is `clock`.
struct sem_event {
    uint64_t total;
    struct race_clock clock;
};

struct exec_sem {
    int signaller, waiter;                     // engines, -1: nobody yet
    int when;                                  // epoch of its signals, -1: none yet
    struct exec_place signaller_at, waiter_at; // where they were first seen
    uint64_t signalled, consumed;              // increments; taken by acquiring waits
    uint64_t waited;                           // highest total that a wait has seen
    struct sem_event *event; // owned; those not yet waited for are first .. last-1
    uint32_t first, last, cap;
};

void exec_sem_init(struct exec_sem *s);
void exec_sem_deinit(struct exec_sem *s);
void exec_sem_reset(struct exec_sem *s);

// Notes who signals and waits; EXEC_FAULT_NONE, SIGNALLER, EPOCH or WAITER.
enum exec_fault_kind exec_sem_claim_signal(struct exec_sem *s, const struct exec_place *at,
                                           int when);
enum exec_fault_kind exec_sem_claim_wait(struct exec_sem *s, const struct exec_place *at);

uint64_t exec_sem_count(const struct exec_sem *s);
bool exec_sem_ready(const struct exec_sem *s, int64_t value);

// Ends a wait that is ready: joins the clock of the signal that reached the value, subtracts it
// when acquiring.
void exec_sem_take(struct exec_sem *s, int64_t value, bool acquire, struct race_clock *clock);

// Adds to the count. EXEC_FAULT_OVERFLOW above SEM_MAX_COUNT; *memory = false when out of memory.
enum exec_fault_kind exec_sem_signal(struct exec_sem *s, int64_t increment,
                                     const struct race_clock *clock, bool *memory);

#endif
