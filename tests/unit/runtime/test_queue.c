// SPDX-License-Identifier: Apache-2.0
//
// Queues of runs of several sessions.

#include <criterion/criterion.h>

#include "runtime/api.h"
#include "tests/unit/runtime/fake_device.h"
#include "tests/unit/runtime/sample_image.h"

static int order[64], runs; // numbers that the runs read from doorbell 0

static npu_status note_order(struct fake_device *d, const struct npu_submission *s) {
    (void)d;
    order[runs++ % 64] = (int)s->doorbell[0];
    return s->doorbell[0] == 66 ? npu_fail(FAULT, "cycle 1: broken") : NULL;
}

enum { SESSIONS = 4 };

struct fixture {
    struct arena *arena;
    struct fake_config config;
    struct npu_device *device;
    struct npu_program *program;
    struct npu_session *sessions[SESSIONS];
    struct npu_queue *queue;
};

static void set_up(struct fixture *f, size_t depth) {
    runs = 0;
    f->arena = arena_new();
    struct span file = sample_for_machine(f->arena, NULL);
    f->config = (struct fake_config){.dram_bytes = 1 << 20, .run = note_order};
    hw_defaults(&f->config.machine);
    expect_ok(npu_device_open(&fake_ops, &f->config, &f->device));
    expect_ok(npu_program_load_memory(file.data, file.size, &f->program));
    static const float x[6];
    static const int64_t ids[4];
    for (unsigned i = 0; i < SESSIONS; i++) {
        expect_ok(npu_session_new(f->device, f->program, &f->sessions[i]));
        expect_ok(npu_session_bind_input(f->sessions[i], 0, NPU_F32, x, sizeof x));
        expect_ok(npu_session_bind_input(f->sessions[i], 1, NPU_I64, ids, sizeof ids));
        expect_ok(npu_session_set_scalar(f->sessions[i], 0, i));
    }
    expect_ok(npu_queue_new(f->device, depth, &f->queue));
}

static void tear_down(struct fixture *f) {
    npu_queue_free(f->queue);
    for (int i = 0; i < SESSIONS; i++)
        npu_session_free(f->sessions[i]);
    npu_program_free(f->program);
    npu_device_close(f->device);
    arena_free(f->arena);
}

Test(queue, runs_in_order_and_is_waited_for_in_any) {
    struct fixture f;
    set_up(&f, SESSIONS);
    uint64_t jobs[SESSIONS];
    struct npu_run_info info;
    for (int i = 0; i < SESSIONS; i++) {
        expect_ok(npu_queue_submit(f.queue, f.sessions[i], &jobs[i]));
        cr_expect_eq(jobs[i], (uint64_t)i + 1);
    }
    cr_expect_eq(npu_queue_pending(f.queue), 4);
    expect_ok(npu_queue_wait(f.queue, jobs[2], &info));
    cr_expect_eq(info.start_cycle, 220); // of the third
    cr_expect_eq(runs, 3);
    expect_ok(npu_queue_wait(f.queue, jobs[0], &info));
    cr_expect_eq(info.start_cycle, 0);
    cr_expect_eq(npu_queue_pending(f.queue), 2);
    expect_failure(npu_queue_wait(f.queue, jobs[0], NULL), NPU_USAGE,
                   "job 1 does not exist or was");
    expect_failure(npu_queue_wait(f.queue, 99, NULL), NPU_USAGE, "job 99");
    expect_failure(npu_queue_wait(f.queue, 0, NULL), NPU_USAGE, "job 0");
    tear_down(&f); // waits for the fourth
    cr_expect_eq(runs, 4);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(order[i], i);
}

Test(queue, is_full_until_the_oldest_was_waited_for) {
    struct fixture f;
    set_up(&f, 2);
    uint64_t a, b, c;
    expect_ok(npu_queue_submit(f.queue, f.sessions[0], &a));
    expect_ok(npu_queue_submit(f.queue, f.sessions[1], &b));
    expect_failure(npu_queue_submit(f.queue, f.sessions[2], &c), NPU_USAGE, "wait for job 1");
    expect_ok(npu_queue_wait(f.queue, b, NULL));
    expect_failure(npu_queue_submit(f.queue, f.sessions[2], &c), NPU_USAGE, "wait for job 1");
    expect_ok(npu_queue_wait(f.queue, a, NULL));
    expect_ok(npu_queue_submit(f.queue, f.sessions[2], &c));
    expect_failure(npu_queue_submit(f.queue, f.sessions[2], &a), NPU_USAGE, "wait for it first");
    expect_ok(npu_queue_wait(f.queue, c, NULL));
    tear_down(&f);
}

Test(queue, a_fault_stays_with_its_job) {
    struct fixture f;
    set_up(&f, 3);
    uint64_t jobs[3];
    expect_ok(npu_session_set_scalar(f.sessions[1], 0, 66));
    for (int i = 0; i < 3; i++)
        expect_ok(npu_queue_submit(f.queue, f.sessions[i], &jobs[i]));
    expect_ok(npu_queue_wait(f.queue, jobs[2], NULL));
    expect_failure(npu_queue_wait(f.queue, jobs[1], NULL), NPU_FAULT, "broken");
    expect_ok(npu_queue_wait(f.queue, jobs[0], NULL));
    tear_down(&f);
}

Test(queue, unclaimed_faults_are_freed) {
    struct fixture f;
    set_up(&f, 3);
    uint64_t job;
    expect_ok(npu_session_set_scalar(f.sessions[0], 0, 66));
    expect_ok(npu_queue_submit(f.queue, f.sessions[0], &job));
    tear_down(&f);
    cr_expect_eq(runs, 1);
}

Test(queue, many_rounds) {
    struct fixture f;
    set_up(&f, 3);
    for (int round = 0; round < 50; round++) {
        uint64_t a, b;
        expect_ok(npu_queue_submit(f.queue, f.sessions[0], &a));
        expect_ok(npu_queue_submit(f.queue, f.sessions[1], &b));
        expect_ok(npu_queue_wait(f.queue, a, NULL));
        expect_ok(npu_queue_wait(f.queue, b, NULL));
        cr_expect_eq(npu_queue_pending(f.queue), 0);
    }
    tear_down(&f);
    cr_expect_eq(runs, 100);
}

Test(queue, refusals) {
    struct fixture f, other;
    set_up(&f, 3);
    set_up(&other, 3);
    uint64_t job;
    struct npu_queue *q;
    expect_failure(npu_queue_new(f.device, 0, &q), NPU_USAGE, "depth 0");
    expect_failure(npu_queue_new(f.device, 5000, &q), NPU_USAGE, "depth 5000");
    expect_failure(npu_queue_submit(f.queue, other.sessions[0], &job), NPU_USAGE, "another device");
    npu_queue_free(NULL);
    tear_down(&other);
    tear_down(&f);
}
