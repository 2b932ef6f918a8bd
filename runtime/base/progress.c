// SPDX-License-Identifier: Apache-2.0
//
// The bar: one line that is written over, at most ten times a second. The clock is asked on each
// call; who starts no bar pays a test of a flag.

#define _POSIX_C_SOURCE 200809L

#include "runtime/base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CELLS = 24 };

bool progress_on;

static struct {
    const char *program, *what;
    int fd, from, to;
    uint64_t total;
    double next; // when the bar is drawn again
    bool drawn;
} bar;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// A terminal that takes no text is nobody's failure.
static void put(const char *text) {
    const ssize_t unused = write(bar.fd, text, strlen(text));
    (void)unused;
}

void progress_start(const char *program, int fd, double seconds) {
    progress_on = isatty(fd) == 1;
    bar.program = program;
    bar.what = "";
    bar.fd = fd;
    bar.from = bar.to = 0;
    bar.total = 0;
    bar.next = now() + seconds;
    bar.drawn = false;
}

void progress_show(uint64_t done) {
    const double time = now();
    char line[160], cells[CELLS + 1], count[40] = "";
    if (time < bar.next) return;
    bar.next = time + 0.1;
    if (bar.total && done > bar.total) done = bar.total;
    const double share = bar.total ? (double)done / (double)bar.total : 0;
    const int percent = bar.from + (int)((bar.to - bar.from) * share);
    memset(cells, ' ', CELLS);
    memset(cells, '=', (size_t)(percent * CELLS / 100));
    cells[CELLS] = 0;
    if (!bar.total && done) snprintf(count, sizeof count, ", %" PRIu64, done);
    snprintf(line, sizeof line, "\r\033[K%s [%s] %3d %% %.30s%s", bar.program, cells, percent,
             bar.what, count);
    put(line);
    bar.drawn = true;
}

void progress_stage(const char *what, uint64_t total, int from_percent, int to_percent) {
    if (!progress_on) return;
    bar.what = what;
    bar.total = total;
    bar.from = from_percent;
    bar.to = to_percent;
    progress_show(0);
}

void progress_end(void) {
    if (progress_on && bar.drawn) put("\r\033[K");
    progress_on = false;
}
