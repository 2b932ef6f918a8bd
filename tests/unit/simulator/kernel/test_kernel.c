// SPDX-License-Identifier: Apache-2.0
#include "simulator/kernel/kernel.h"

#include <criterion/criterion.h>

#include <malloc.h>

struct log {
    struct kernel *k;
    struct kernel_process *p[4];
    uint64_t at[64];
    int who[64];
    int n;
};

struct actor {
    struct log *log;
    int id;
    uint64_t period; // 0: does not wake itself
    int left;
};

static void record(struct actor *a) {
    struct log *l = a->log;
    if (l->n == 64) return;
    l->at[l->n] = kernel_now(l->k);
    l->who[l->n++] = a->id;
}

static void tick(void *self) {
    struct actor *a = self;
    record(a);
    if (a->left-- > 1) kernel_wake(a->log->p[a->id], kernel_now(a->log->k) + a->period);
}

static void stopper(void *self) {
    struct actor *a = self;
    record(a);
    kernel_stop(a->log->k);
}

// The order at equal times is SystemC's own; it has to be the same whenever the calls are.
Test(kernel, steps_come_in_time_order_and_ties_repeat) {
    struct log first = {0};
    for (int run = 0; run < 3; run++) {
        struct log l = {.k = kernel_new()};
        struct actor a = {&l, 0, 300, 3}, b = {&l, 1, 200, 4};
        l.p[0] = kernel_spawn(l.k, "a", tick, &a);
        l.p[1] = kernel_spawn(l.k, "b", tick, &b);
        kernel_wake(l.p[1], 0);
        kernel_wake(l.p[0], 0);
        cr_assert_eq((int)kernel_run(l.k), KERNEL_QUIET);
        const uint64_t at[] = {0, 0, 200, 300, 400, 600, 600};
        cr_assert_eq(l.n, 7);
        for (int i = 0; i < 7; i++)
            cr_expect_eq(l.at[i], at[i], "step %d", i);
        cr_expect(l.who[2] == 1 && l.who[3] == 0 && l.who[4] == 1);
        if (run == 0) first = l;
        for (int i = 0; i < 7; i++)
            cr_expect_eq(l.who[i], first.who[i], "run %d, step %d", run, i);
        cr_expect_eq(kernel_steps(l.k), 7);
        kernel_free(l.k);
    }
}

Test(kernel, the_earlier_wake_wins_unless_replaced) {
    struct log l = {.k = kernel_new()};
    struct actor a = {&l, 0, 0, 1};
    l.p[0] = kernel_spawn(l.k, "a", tick, &a);
    kernel_wake(l.p[0], 500);
    kernel_wake(l.p[0], 100);
    kernel_wake(l.p[0], 900);
    kernel_run(l.k);
    cr_assert_eq(l.n, 1);
    cr_expect_eq(l.at[0], 100);
    kernel_wake(l.p[0], 200);
    kernel_wake_only(l.p[0], 700);
    kernel_run(l.k);
    cr_assert_eq(l.n, 2);
    cr_expect_eq(l.at[1], 700);
    kernel_wake(l.p[0], 800);
    kernel_wake_only(l.p[0], KERNEL_NEVER);
    cr_expect_eq((int)kernel_run(l.k), KERNEL_QUIET);
    cr_expect_eq(l.n, 2);
    kernel_free(l.k);
}

Test(kernel, stops_and_resets_many_times_with_the_same_result) {
    struct log l = {.k = kernel_new()};
    struct actor a = {&l, 0, 10, 1000}, s = {&l, 1, 0, 1};
    l.p[0] = kernel_spawn(l.k, "a", tick, &a);
    l.p[1] = kernel_spawn(l.k, "s", stopper, &s);
    for (int run = 0; run < 200; run++) {
        l.n = 0;
        a.left = 1000;
        kernel_wake(l.p[1], 55);
        kernel_wake(l.p[0], 0);
        cr_assert_eq((int)kernel_run(l.k), KERNEL_STOPPED);
        cr_assert_eq(l.n, 7, "run %d", run);
        cr_assert_eq(l.at[6], 55, "run %d", run);
        kernel_reset(l.k);
        cr_assert_eq(kernel_now(l.k), 0);
    }
    kernel_free(l.k);
}

static void looker(void *self) {
    struct actor *a = self;
    record(a);
    a->period = kernel_next(a->log->k);
}

Test(kernel, says_when_anybody_else_is_due) {
    struct log l = {.k = kernel_new()};
    struct actor a = {&l, 0, 0, 1}, b = {&l, 1, 0, 1}, c = {&l, 2, 0, 1};
    l.p[0] = kernel_spawn(l.k, "a", looker, &a);
    l.p[1] = kernel_spawn(l.k, "b", tick, &b);
    l.p[2] = kernel_spawn(l.k, "c", looker, &c);
    kernel_wake(l.p[0], 100);
    kernel_wake(l.p[1], 250);
    kernel_wake(l.p[2], 300);
    kernel_run(l.k);
    cr_expect_eq(a.period, 250);
    cr_expect_eq(c.period, KERNEL_NEVER);
    kernel_wake(l.p[0], 400); // due together: the first sees that the other waits
    kernel_wake(l.p[2], 400);
    kernel_run(l.k);
    cr_expect_eq(a.period, 400);
    cr_expect_eq(c.period, KERNEL_NEVER);
    kernel_free(l.k);
}

static void two_kernels(void) {
    struct log l = {.k = kernel_new()}, m = {.k = kernel_new()};
    struct actor a = {&l, 0, 10, 3}, b = {&m, 0, 7, 3};
    l.p[0] = kernel_spawn(l.k, "same", tick, &a);
    m.p[0] = kernel_spawn(m.k, "same", tick, &b);
    kernel_wake(l.p[0], 1);
    kernel_run(l.k);
    kernel_reset(m.k);
    kernel_wake(m.p[0], 1);
    kernel_run(m.k);
    cr_expect_eq(l.n, 3);
    cr_expect_eq(m.n, 3);
    cr_expect_eq(l.at[2], 21);
    cr_expect_eq(m.at[2], 15);
    kernel_free(l.k);
    kernel_reset(m.k);
    b.left = 2;
    kernel_wake(m.p[0], 3);
    kernel_run(m.k);
    cr_expect_eq(m.at[4], 10);
    kernel_free(m.k);
}

Test(kernel, several_live_side_by_side_and_one_after_another) {
    for (int i = 0; i < 20; i++)
        two_kernels();
}

// A freed kernel's process may serve the next one: nothing that was due comes with it.
Test(kernel, a_process_used_again_sleeps_until_it_is_woken) {
    for (int stopped = 0; stopped < 2; stopped++) {
        struct log l = {.k = kernel_new()}, m;
        struct actor a = {&l, 0, 10, 5}, b = {&m, 1, 10, 2}, s = {&l, 2, 0, 0};
        l.p[0] = kernel_spawn(l.k, "again", tick, &a);
        l.p[1] = kernel_spawn(l.k, "stop", stopper, &s);
        kernel_wake(l.p[0], 10);
        if (stopped) { // with a wake pending
            kernel_wake(l.p[1], 25);
            cr_expect_eq(kernel_run(l.k), KERNEL_STOPPED);
        }
        kernel_free(l.k);
        m = (struct log){.k = kernel_new()};
        m.p[1] = kernel_spawn(m.k, "again", tick, &b);
        cr_expect_eq(kernel_run(m.k), KERNEL_QUIET);
        cr_expect_eq(m.n, 0);
        kernel_wake(m.p[1], 7);
        cr_expect_eq(kernel_run(m.k), KERNEL_QUIET);
        cr_expect_eq(m.n, 2);
        cr_expect_eq(m.at[0], 7);
        cr_expect_eq(kernel_steps(m.k), 2);
        kernel_free(m.k);
    }
}

static size_t in_use(void) {
    return mallinfo2().uordblks; // 0 where a sanitizer allocates
}

Test(kernel, kernels_one_after_another_take_the_memory_of_one) {
    size_t before = 0;
    for (int i = 0; i < 3000; i++) {
        if (i == 100) before = in_use();
        struct kernel *k = kernel_new();
        for (int p = 0; p < 8; p++)
            cr_assert(kernel_spawn(k, "one", tick, NULL));
        kernel_free(k);
    }
    cr_expect_lt(in_use(), before + 65536);
}

Test(kernel, edges_of_clocks_are_exact) {
    const uint64_t mhz[] = {1, 3, 333, 800, 1000, 1250, 1700, 3000, 10000};
    for (size_t i = 0; i < sizeof mhz / sizeof *mhz; i++) {
        const struct kernel_clock c = kernel_clock(mhz[i]);
        for (uint64_t n = 0; n < 100000000; n = n * 5 / 3 + 1) {
            const uint64_t ps = kernel_clock_ps(&c, n);
            cr_assert(ps * mhz[i] >= n * 1000000 && (ps * mhz[i] - n * 1000000) < mhz[i]);
            cr_assert_eq(kernel_clock_cycle(&c, ps), n, "%d MHz", (int)mhz[i]);
            cr_assert_eq(kernel_clock_cycle(&c, ps + 1), n + 1, "%d MHz", (int)mhz[i]);
        }
    }
}
