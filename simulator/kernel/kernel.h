// SPDX-License-Identifier: Apache-2.0
//
// The event kernel as C sees it: processes that wake at a time, run a step and say when to wake
// next. kernel_systemc.cpp puts SystemC behind it and is the only C++ file of the project.
//
// Time is in picoseconds from the start of the run, 64 bits (213 days). A step runs without
// simulated time passing and must not leave by longjmp. Steps due at the same time run in an order
// that depends on nothing but the calls made: the same calls give the same run. All kernels of a
// host process share SystemC's one context: run one at a time, from one host thread.
#ifndef SIMULATOR_KERNEL_KERNEL_H
#define SIMULATOR_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KERNEL_NEVER UINT64_MAX

struct kernel;
struct kernel_process;

/// One step of a process; `self` is what kernel_spawn was given.
typedef void kernel_step(void *self);

/// How kernel_run ended.
enum kernel_end {
    KERNEL_QUIET,   ///< nothing is left to wake
    KERNEL_STOPPED, ///< a step called kernel_stop
    KERNEL_FAILED,  ///< SystemC refused; kernel_error says why
};

/// New kernel at time 0 without processes; NULL when out of memory or SystemC refuses
/// (kernel_error(NULL) then says why). Release with kernel_free.
struct kernel *kernel_new(void);

/// Releases the kernel and its processes. Not from inside a step. NULL is allowed.
void kernel_free(struct kernel *k);

/// Adds a process, asleep. `name` is for messages and need not be unique. Lives as long as the
/// kernel; NULL as kernel_new.
struct kernel_process *kernel_spawn(struct kernel *k, const char *name, kernel_step *step,
                                    void *self);

/// Wakes a process at a time, at the earliest now. A process has one pending wake: the earlier one
/// stays. When SystemC refuses, kernel_run ends with KERNEL_FAILED.
void kernel_wake(struct kernel_process *p, uint64_t at_ps);

/// The same, replacing the pending wake; KERNEL_NEVER: asleep until somebody wakes it.
void kernel_wake_only(struct kernel_process *p, uint64_t at_ps);

/// Now, in ps since kernel_new or kernel_reset.
uint64_t kernel_now(const struct kernel *k);

/// From inside a step: when anything else is due, now when another step still waits for its turn at
/// this time, KERNEL_NEVER when nothing is. Until then the caller may go ahead of time on its own.
uint64_t kernel_next(const struct kernel *k);

/// Ends kernel_run after the current step and what else is due at this time.
void kernel_stop(struct kernel *k);

/// Runs until nothing is pending or kernel_stop is called. May be called again.
enum kernel_end kernel_run(struct kernel *k);

/// Puts every process asleep and sets the time to 0. Not from inside a step.
void kernel_reset(struct kernel *k);

/// Steps taken since kernel_new: the cost of a run.
uint64_t kernel_steps(const struct kernel *k);

/// Why the last call failed, "" when none did. k may be NULL. Valid until the next call.
const char *kernel_error(const struct kernel *k);

// ---- clock domains ----

/// A clock: edge n is at ceil(n * 10^6 / mhz) ps, exact for any frequency over the whole run.
struct kernel_clock {
    uint64_t mhz;
    uint64_t period_ps; ///< 0: not a whole number of picoseconds
};

/// Clock of `mhz` >= 1.
static inline struct kernel_clock kernel_clock(uint64_t mhz) {
    struct kernel_clock c = {mhz, UINT64_C(1000000) % mhz == 0 ? UINT64_C(1000000) / mhz : 0};
    return c;
}

/// Time of an edge.
static inline uint64_t kernel_clock_ps(const struct kernel_clock *c, uint64_t cycle) {
    if (c->period_ps) return cycle * c->period_ps;
    const uint64_t q = cycle / c->mhz, r = cycle % c->mhz;
    return q * UINT64_C(1000000) + (r * UINT64_C(1000000) + c->mhz - 1) / c->mhz;
}

/// First edge at or after a time.
static inline uint64_t kernel_clock_cycle(const struct kernel_clock *c, uint64_t ps) {
    if (c->period_ps) return (ps + c->period_ps - 1) / c->period_ps;
    const uint64_t q = ps / UINT64_C(1000000), r = ps % UINT64_C(1000000);
    // edge(n) >= ps holds from n = floor(r * mhz / 10^6) or the one after it.
    const uint64_t n = q * c->mhz + r * c->mhz / UINT64_C(1000000);
    return kernel_clock_ps(c, n) >= ps ? n : n + 1;
}

#ifdef __cplusplus
}
#endif

#endif
