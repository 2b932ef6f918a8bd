// SPDX-License-Identifier: Apache-2.0
//
// A bar on a terminal for work that takes longer than a second. Where nobody started it, or the
// descriptor is no terminal, every call does nothing.
//
//     progress_start("npuc", STDERR_FILENO, 1.0);
//     progress_stage("lowering", nodes, 40, 60);      // moves the bar from 40 to 60 %
//     for (i = 0; i < nodes; i++) progress_at(i);     // cheap: as often as one likes
//     progress_end();                                 // before anything else is printed there
#ifndef RUNTIME_BASE_PROGRESS_H
#define RUNTIME_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/// Whether a bar may be drawn: written by progress_start and progress_end only.
extern bool progress_on;

/// From here on a bar is drawn to `fd` when that is a terminal, first after `seconds`. `program` is
/// lent. One at a time, from one thread.
void progress_start(const char *program, int fd, double seconds);

/// What is being done, in the words of the user (lent); `total` counts what progress_at is given,
/// 0: unknown, the count itself is shown. The stage takes the bar from one percentage to another.
void progress_stage(const char *what, uint64_t total, int from_percent, int to_percent);

/// Behind progress_at.
void progress_show(uint64_t done);

/// How far the stage is.
static inline void progress_at(uint64_t done) {
    if (progress_on) progress_show(done);
}

/// Removes the bar.
void progress_end(void);

#endif
