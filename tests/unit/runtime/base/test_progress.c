// SPDX-License-Identifier: Apache-2.0
//
// The bar on a pseudo terminal, and that there is none elsewhere.

#define _XOPEN_SOURCE 700

#include "runtime/base/progress.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct terminal {
    int outside, inside;
};

static struct terminal open_terminal(void) {
    struct terminal t = {.outside = posix_openpt(O_RDWR | O_NOCTTY)};
    cr_assert_geq(t.outside, 0);
    cr_assert_eq(grantpt(t.outside), 0);
    cr_assert_eq(unlockpt(t.outside), 0);
    t.inside = open(ptsname(t.outside), O_RDWR | O_NOCTTY);
    cr_assert_geq(t.inside, 0);
    cr_assert_eq(fcntl(t.outside, F_SETFL, O_NONBLOCK), 0);
    return t;
}

static void close_terminal(const struct terminal *t) {
    (void)close(t->inside);
    (void)close(t->outside);
}

// What was written to the terminal since the last call.
static const char *shown(const struct terminal *t) {
    static char text[4096];
    const ssize_t n = read(t->outside, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    return text;
}

static void wait_for(long milliseconds) {
    const struct timespec t = {.tv_nsec = milliseconds * 1000000};
    (void)nanosleep(&t, NULL);
}

Test(progress, bar_moves_and_goes_away) {
    struct terminal t = open_terminal();
    progress_start("npuc", t.inside, 0);
    progress_stage("lowering", 10, 40, 60);
    cr_expect_str_eq(shown(&t), "\r\033[Knpuc [=========               ]  40 % lowering");
    wait_for(110);
    progress_at(5);
    cr_expect_str_eq(shown(&t), "\r\033[Knpuc [============            ]  50 % lowering");
    progress_at(6); // too soon after the last
    cr_expect_str_eq(shown(&t), "");
    progress_end();
    cr_expect_str_eq(shown(&t), "\r\033[K");
    progress_at(9);
    cr_expect_str_eq(shown(&t), "");
    close_terminal(&t);
}

Test(progress, count_without_total) {
    struct terminal t = open_terminal();
    progress_start("npusim", t.inside, 0);
    progress_stage("values, instructions", 0, 0, 70);
    (void)shown(&t);
    wait_for(110);
    progress_at(1234);
    cr_expect_str_eq(shown(&t),
                     "\r\033[Knpusim [                        ]   0 % values, instructions, 1234");
    progress_end();
    close_terminal(&t);
}

Test(progress, short_work_shows_nothing) {
    struct terminal t = open_terminal();
    progress_start("npuc", t.inside, 60);
    progress_stage("reading", 1, 0, 100);
    progress_at(1);
    progress_end();
    cr_expect_str_eq(shown(&t), "");
    close_terminal(&t);
}

Test(progress, no_bar_without_a_terminal) {
    int pipes[2];
    char byte;
    cr_assert_eq(pipe(pipes), 0);
    progress_start("npuc", pipes[1], 0);
    progress_stage("reading", 1, 0, 100);
    progress_at(1);
    progress_end();
    (void)close(pipes[1]);
    cr_expect_eq(read(pipes[0], &byte, 1), 0);
    (void)close(pipes[0]);
}
