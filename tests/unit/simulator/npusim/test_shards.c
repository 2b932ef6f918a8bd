// SPDX-License-Identifier: Apache-2.0
//
// Pieces over processes: the same results however many there are, and what happens when one fails,
// dies, or cannot be started.
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simulator/npusim/shards.h"

enum { N = 101 };
static pid_t parent;

struct trouble {
    uint64_t fails[2]; // pieces that fail, UINT64_MAX: none
    uint64_t dies;     // piece whose process is killed
    bool forked;       // every piece must be in a child
    uint64_t waits;    // pieces beyond this one never end
};

static npu_status work(void *ctx, uint64_t piece, struct shard_result *out) {
    const struct trouble *t = ctx;
    if (t->forked && getpid() == parent) return npu_fail(FAULT, "in the parent");
    if (piece == t->dies) raise(SIGKILL);
    while (piece > t->waits)
        pause();
    for (int i = 0; i < 2; i++)
        if (piece == t->fails[i])
            return npu_fail(FAULT, "piece %d: %s", (int)piece,
                            "a message that is a good deal longer than a record without one");
    *out = (struct shard_result){piece * piece, piece + 1, piece + 2, (double)piece / 3};
    return NULL;
}

static npu_status run(int processes, uint64_t n, struct trouble t, struct shard_result *out) {
    parent = getpid();
    memset(out, 0, N * sizeof *out);
    npu_status st = shards_run(processes, n, work, &t, out);
    errno = 0;
    cr_expect(waitpid(-1, NULL, WNOHANG) < 0, "a child is left");
    return st;
}

static const struct trouble no_trouble = {{UINT64_MAX, UINT64_MAX}, UINT64_MAX, false, UINT64_MAX};

Test(shards, any_number_of_processes_gives_the_same) {
    static const int processes[] = {1, 2, 3, 7, 100, 1000};
    for (size_t k = 0; k < sizeof processes / sizeof *processes; k++) {
        struct shard_result r[N];
        struct trouble t = no_trouble;
        t.forked = processes[k] > 1;
        cr_assert_null(run(processes[k], N, t, r));
        for (uint64_t i = 0; i < N; i++) {
            cr_assert_eq(r[i].cycles, i * i);
            cr_assert_eq(r[i].latency_ps, i + 1);
            cr_assert_eq(r[i].sampled_ps, i + 2);
            cr_assert_eq(r[i].seconds, (double)i / 3);
        }
    }
}

Test(shards, one_piece_needs_no_process) {
    struct shard_result r[N];
    cr_assert_null(run(8, 1, no_trouble, r));
    cr_expect_eq(r[0].latency_ps, 1);
}

static void expect(npu_status st, enum npu_code code, const char *part) {
    cr_assert_not_null(st);
    cr_expect_eq(npu_status_code(st), code);
    cr_expect(strstr(npu_status_message(st), part), "%s", npu_status_message(st));
    npu_status_free(st);
}

Test(shards, the_lowest_piece_that_fails_is_told) {
    for (int processes = 1; processes < 5; processes++) {
        struct shard_result r[N];
        struct trouble t = no_trouble;
        t.fails[0] = 60;
        t.fails[1] = 37;
        expect(run(processes, N, t, r), NPU_FAULT,
               "piece 37: a message that is a good deal longer");
    }
}

Test(shards, a_killed_process_is_an_error) {
    struct shard_result r[N];
    struct trouble t = no_trouble;
    t.dies = 40;
    expect(run(3, N, t, r), NPU_IO, "process 2 of 3, which made the runs, was ended by signal 9");
}

// Who is beyond the failure is not waited for.
Test(shards, a_failure_ends_the_others) {
    struct shard_result r[N];
    struct trouble t = no_trouble;
    t.dies = t.waits = 40;
    expect(run(3, N, t, r), NPU_IO, "process 2 of 3, which made the runs, was ended by signal 9");
    t = no_trouble;
    t.fails[0] = t.waits = 40;
    expect(run(4, N, t, r), NPU_FAULT, "piece 40: a message");
}

Test(shards, a_process_that_cannot_start_ends_the_others) {
    for (int k = 1; k <= 3; k++) {
        struct shard_result r[N];
        shards_fail_fork_at(k);
        expect(run(3, N, no_trouble, r), NPU_IO, "--threads 1 needs none");
        shards_fail_fork_at(0);
    }
}

Test(shards, there_is_a_processor) {
    cr_expect_geq(shards_processors(), 1);
}
