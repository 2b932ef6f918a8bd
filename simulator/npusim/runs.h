// SPDX-License-Identifier: Apache-2.0
//
// --runs: the program that ran, timed again and again with draws of noise, spread over processes;
// what the sources do to it; and the same of another program (--versus).
#ifndef NPUSIM_RUNS_H
#define NPUSIM_RUNS_H

#include "simulator/device.h"
#include "simulator/npusim/tensors.h"

#define NPUSIM_SHARE_RUNS 200 // runs for shares of the variance, unless --by-source says otherwise
#define NPUSIM_SHARE_FROM 100 // so many runs are asked for before shares are computed unasked

// Lives in the arena.
struct npusim_runs {
    uint64_t n, cycles;    // cycles: of the run without noise
    double median_seconds; // host time of one run's loop
    double host_seconds;   // of all runs, shares included
    struct trace_runs view;
    struct noise_summary summary;
};

// Runs --first-run .. + --runs of the program that has just run on the session's device, and again
// without each source in turn for the shares. Without noise every run must take the cycles of the
// first: anything else is a mistake of ours and ends the program. NO_MEMORY, IO.
NPU_MUST_USE npu_status npusim_runs_take(struct npusim *s, struct npusim_runs *out);

// Opens --versus in `other` with the options of `s`, and gives it inputs: before anything runs.
NPU_MUST_USE npu_status npusim_versus_open(const struct npusim *s, struct npusim *other);

// Runs it, and makes the same runs of it. Adds them to the view of `runs`.
NPU_MUST_USE npu_status npusim_versus(struct npusim *s, struct npusim *other,
                                      struct npusim_runs *runs, struct npusim_runs *other_runs);

// Distributions for people: numbers with their intervals, histogram, distribution function, shares
// of the sources. utf8: bars of eighths, else of #.
void npusim_runs_print(const struct trace_runs *runs, bool utf8, struct str *out);

// Loads the program, opens its device with --set applied, makes a session and gives it its inputs.
// USAGE also for parameters of noise that contradict each other.
// npusim_close releases what is there.
NPU_MUST_USE npu_status npusim_open(struct npusim *s, const char *path);
void npusim_close(struct npusim *s);

#endif
