// SPDX-License-Identifier: Apache-2.0
//
// Sessions on the fake device, whose program is y[i] = 2 x[i] + cache[0], cache[0] += 1.

#include <criterion/criterion.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/api.h"
#include "runtime/base/alloc.h"
#include "tests/unit/runtime/fake_device.h"
#include "tests/unit/runtime/sample_image.h"

enum { X = SAMPLE_IO_DRAM, IDS = SAMPLE_IO_DRAM + 64, Y = SAMPLE_IO_DRAM + 128, CACHE = 12288 };

static npu_status compute(struct fake_device *d, const struct npu_submission *s) {
    uint8_t *dram = fake_dram(d, s->dram_base);
    float state = num_load_f32(ISA_F16, dram + CACHE, 0);
    for (int i = 0; i < 6; i++)
        num_store_f32(ISA_F32, dram + Y, i, 2 * num_load_f32(ISA_F16, dram + X, i) + state);
    num_store_f32(ISA_F16, dram + CACHE, 0, state + 1);
    return NULL;
}

static npu_status break_rule(struct fake_device *d, const struct npu_submission *s) {
    (void)d;
    return s->code_offset == 32 ? npu_fail(FAULT, "cycle 17: out of range")
                                : npu_fail(FAULT, "cycle 5: deadlock");
}

struct fixture {
    struct arena *arena;
    struct span file;
    struct fake_config config;
    struct npu_device *device;
    struct npu_program *program;
    struct npu_session *session;
};

static void open_device(struct fixture *f, const struct npu_device_ops *ops) {
    f->arena = arena_new();
    f->file = sample_for_machine(f->arena, NULL);
    f->config = (struct fake_config){.dram_bytes = 1 << 20, .run = compute};
    hw_defaults(&f->config.machine);
    expect_ok(npu_device_open(ops, &f->config, &f->device));
    expect_ok(npu_program_load_memory(f->file.data, f->file.size, &f->program));
    f->session = NULL;
}

static void open_all(struct fixture *f) {
    open_device(f, &fake_ops);
    expect_ok(npu_session_new(f->device, f->program, &f->session));
    cr_assert_not_null(f->session);
}

static void close_all(struct fixture *f) {
    npu_session_free(f->session);
    npu_program_free(f->program);
    npu_device_close(f->device);
    arena_free(f->arena);
}

static const float x_values[6] = {1, 2, 3, -4, 0.5f, 1000};
static const int64_t ids_values[4] = {1, 2, 3, 4};

static void give_inputs(struct fixture *f) {
    expect_ok(npu_session_write(f->session, NPU_INPUT, 0, NPU_F32, x_values, sizeof x_values));
    expect_ok(npu_session_write(f->session, NPU_INPUT, 1, NPU_I64, ids_values, sizeof ids_values));
}

Test(session, loads_code_constants_and_state) {
    struct fixture f;
    open_all(&f);
    cr_expect_eq(f.config.mapped, 2); // code and constants
    cr_expect(f.config.map_data >= f.file.data && f.config.map_data < f.file.data + f.file.size,
              "the constants were copied");
    float state[8];
    expect_ok(npu_session_read(f.session, NPU_STATE, 0, NPU_F32, state, sizeof state));
    for (int i = 0; i < 8; i++)
        cr_expect(state[i] == 0);
    close_all(&f);
    cr_expect_eq(f.config.released, 1);
    cr_expect_eq(f.config.closed, 1);
}

Test(session, converts_runs_and_keeps_state) {
    struct fixture f;
    open_all(&f);
    give_inputs(&f);
    struct npu_run_info info;
    for (int run = 0; run < 3; run++) {
        float y[6];
        double wide[6];
        expect_ok(npu_session_run(f.session, &info));
        expect_ok(npu_session_read(f.session, NPU_OUTPUT, 0, NPU_F32, y, sizeof y));
        expect_ok(npu_session_read(f.session, NPU_OUTPUT, 0, NPU_F64, wide, sizeof wide));
        for (int i = 0; i < 6; i++)
            cr_expect(y[i] == 2 * x_values[i] + (float)run && wide[i] == (double)y[i]);
        cr_expect_eq(info.start_cycle, (uint64_t)run * 110);
        cr_expect_eq(info.end_cycle, (uint64_t)run * 110 + 100);
        cr_expect(info.submissions == 1 && info.busy_cycles == 100);
    }
    const uint16_t zero[8] = {0};
    expect_ok(npu_session_write(f.session, NPU_STATE, 0, NPU_F16, zero, sizeof zero));
    float y[6];
    expect_ok(npu_session_run(f.session, NULL));
    expect_ok(npu_session_read(f.session, NPU_OUTPUT, 0, NPU_F32, y, sizeof y));
    cr_expect(y[0] == 2);
    cr_expect_eq(f.config.discarded, 4); // the scratch, before each run
    close_all(&f);
}

Test(session, bound_buffers) {
    struct fixture f;
    open_all(&f);
    float x[6] = {1, 1, 1, 1, 1, 1};
    double y[6] = {0};
    expect_ok(npu_session_bind_input(f.session, 0, NPU_F32, x, sizeof x));
    expect_ok(npu_session_bind_input(f.session, 1, NPU_I64, ids_values, sizeof ids_values));
    expect_ok(npu_session_bind_output(f.session, 0, NPU_F64, y, sizeof y));
    expect_ok(npu_session_run(f.session, NULL));
    cr_expect(y[5] == 2);
    x[5] = 7; // seen by the next run
    expect_ok(npu_session_run(f.session, NULL));
    cr_expect(y[5] == 15);
    expect_ok(npu_session_bind_output(f.session, 0, NPU_F64, NULL, 0));
    expect_ok(npu_session_bind_input(f.session, 0, NPU_F32, NULL, 0)); // keeps its last value
    expect_ok(npu_session_run(f.session, NULL));
    cr_expect(y[5] == 15);
    close_all(&f);
}

Test(session, what_is_submitted) {
    struct fixture f;
    open_all(&f);
    give_inputs(&f);
    expect_ok(npu_session_set_scalar(f.session, 15, 77));
    expect_failure(npu_session_set_scalar(f.session, 16, 1), NPU_USAGE, "scalar 16");
    expect_ok(npu_session_run(f.session, NULL));
    const struct npu_submission *s = &f.config.last;
    cr_expect_eq(s->dram_base % 4096, 0);
    cr_expect_eq(s->dram_bytes, 20480);
    cr_expect_eq(s->code_base, 0);
    cr_expect_eq(s->code_bytes, SAMPLE_CODE_BYTES);
    cr_expect_eq(s->code_offset, 0);
    cr_expect_eq(s->doorbell[15], 77);
    cr_expect_eq(s->image, npu_program_image_of(f.program));
    close_all(&f);
}

Test(session, entry_of_several_launches) {
    struct fixture f;
    open_all(&f);
    expect_ok(npu_session_write(f.session, NPU_INPUT, 0, NPU_F32, x_values, sizeof x_values));
    expect_failure(npu_session_set_entry(f.session, "lazy"), NPU_USAGE,
                   "no entry point 'lazy'; it has 'main', 'eager'");
    expect_ok(npu_session_set_entry(f.session, "eager")); // does not use ids
    struct npu_run_info info;
    expect_ok(npu_session_run(f.session, &info));
    cr_expect(info.submissions == 2 && info.busy_cycles == 200 && info.end_cycle == 210);
    cr_expect_eq(f.config.submitted, 2);
    cr_expect_eq(f.config.last.code_offset, 32);
    close_all(&f);
}

Test(session, inputs_not_given_are_named) {
    struct fixture f;
    open_all(&f);
    npu_status st = npu_session_run(f.session, NULL);
    char text[300];
    (void)npu_status_text(st, text, sizeof text);
    cr_expect_not_null(strstr(text, "input 'x' was never given"));
    cr_expect_not_null(strstr(text, "input 'ids' was never given"));
    cr_expect_eq(npu_status_error(st), NPU_ERROR_USAGE);
    npu_status_free(st);
    cr_expect_eq(f.config.submitted, 0);
    close_all(&f);
}

Test(session, wrong_buffers) {
    struct fixture f;
    open_all(&f);
    float x[6] = {0};
    int32_t i[6] = {0};
    expect_failure(npu_session_write(f.session, NPU_INPUT, 0, NPU_F32, x, 20), NPU_BAD_INPUT,
                   "input 'x': 20 bytes given, 6 elements of f32 are 24");
    expect_failure(npu_session_write(f.session, NPU_INPUT, 0, NPU_I32, i, 24), NPU_UNSUPPORTED,
                   "input 'x', elements from 0");
    expect_failure(npu_session_write(f.session, NPU_INPUT, 9, NPU_F32, x, 24), NPU_USAGE,
                   "input number 9");
    expect_failure(npu_session_write(f.session, NPU_INPUT, 0, (enum npu_dtype)50, x, 24), NPU_USAGE,
                   "unknown element type 50");
    expect_failure(npu_session_write(f.session, NPU_OUTPUT, 0, NPU_F32, x, 24), NPU_USAGE,
                   "output 'y' cannot be written");
    expect_failure(npu_session_read(f.session, NPU_INPUT, 0, NPU_F32, x, 24), NPU_USAGE,
                   "input 'x' cannot be read back");
    expect_failure(npu_session_bind_input(f.session, 0, NPU_F32, x, 23), NPU_BAD_INPUT, "23 bytes");
    expect_failure(npu_session_bind_output(f.session, 0, NPU_F16, x, 13), NPU_BAD_INPUT,
                   "13 bytes");
    expect_ok(npu_session_read(f.session, NPU_OUTPUT, 1, NPU_F32, x, 0)); // no elements
    close_all(&f);
}

Test(session, one_run_at_a_time) {
    struct fixture f;
    open_all(&f);
    give_inputs(&f);
    float x[6] = {0};
    expect_failure(npu_session_wait(f.session, NULL), NPU_USAGE, "was not submitted");
    expect_ok(npu_session_submit(f.session));
    expect_failure(npu_session_submit(f.session), NPU_USAGE, "wait for it first");
    expect_failure(npu_session_write(f.session, NPU_INPUT, 0, NPU_F32, x, 24), NPU_USAGE, "runs");
    expect_failure(npu_session_read(f.session, NPU_OUTPUT, 0, NPU_F32, x, 24), NPU_USAGE, "runs");
    expect_failure(npu_session_set_entry(f.session, NULL), NPU_USAGE, "runs");
    expect_ok(npu_session_wait(f.session, NULL));
    expect_ok(npu_session_submit(f.session));
    close_all(&f); // waits
    cr_expect_eq(f.config.waited, 2);
}

Test(session, faults_come_through_and_the_session_lives) {
    struct fixture f;
    open_all(&f);
    give_inputs(&f);
    f.config.run = break_rule;
    npu_status st = npu_session_run(f.session, NULL);
    cr_expect_eq(npu_status_exit(st), 5);
    expect_failure(st, NPU_FAULT, "deadlock");
    expect_ok(npu_session_set_entry(f.session, "eager"));
    expect_failure(npu_session_run(f.session, NULL), NPU_FAULT, "deadlock"); // the first of two
    cr_expect_eq(f.config.waited, 3);
    f.config.run = compute;
    expect_ok(npu_session_run(f.session, NULL));
    close_all(&f);
}

Test(session, other_machines_are_refused_by_name) {
    struct fixture f;
    open_device(&f, &fake_ops);
    f.config.machine.psum_rows = 128;
    f.config.machine.spm_bytes = 1 << 20;
    f.config.machine.clock_npu_mhz = 800; // timing: makes no difference
    npu_status st = npu_session_new(f.device, f.program, &f.session);
    char text[500];
    (void)npu_status_text(st, text, sizeof text);
    cr_expect_not_null(
        strstr(text, "program 'sample' was compiled for another machine ('server')"));
    cr_expect_not_null(strstr(text, "psum.rows: 512, not 128"));
    cr_expect_not_null(strstr(text, "spm.bytes: 16 MiB, not 1 MiB"));
    cr_expect_null(strstr(text, "clock"));
    cr_expect_eq(npu_status_error(st), NPU_ERROR_BAD_INPUT);
    npu_status_free(st);
    cr_expect_null(f.session);
    hw_defaults(&f.config.machine);
    f.config.machine.clock_npu_mhz = 800;
    expect_ok(npu_session_new(f.device, f.program, &f.session));
    close_all(&f);
}

Test(session, device_too_small) {
    struct fixture f;
    open_device(&f, &fake_ops);
    struct npu_session *more[60];
    int count = 0;
    npu_status st = NULL;
    while (!st && count < 60)
        st = npu_session_new(f.device, f.program, &more[count++]);
    expect_failure(st, NPU_NO_FIT, "20480 bytes of device memory are wanted");
    cr_expect_eq(count, 52); // 51 of 20 KiB fit into 1 MiB
    for (int i = 0; i < count; i++)
        npu_session_free(more[i]);
    expect_ok(npu_session_new(f.device, f.program, &f.session));
    close_all(&f);
}

Test(session, device_without_optional_entries) {
    struct fixture f;
    open_device(&f, &fake_ops_bare);
    expect_ok(npu_session_new(f.device, f.program, &f.session));
    give_inputs(&f);
    expect_ok(npu_session_run(f.session, NULL));
    cr_expect_eq(f.config.mapped, 0);
    cr_expect_eq(f.config.discarded, 0);
    close_all(&f);
}

// Loads, runs and reads with every allocation that fails in turn: a status each time, nothing
// leaks.
Test(session, every_allocation_fails_once) {
    struct arena *a = arena_new();
    struct span file = sample_for_machine(a, NULL);
    struct fake_config config = {.dram_bytes = 1 << 16, .run = compute};
    hw_defaults(&config.machine);
    bool done = false;
    size_t n = 0;
    while (!done) {
        struct npu_device *device = NULL;
        struct npu_program *program = NULL;
        struct npu_session *session = NULL;
        struct npu_queue *queue = NULL;
        uint64_t job = 0;
        base_alloc_fail_at(++n, 0);
        npu_status st = npu_device_open(&fake_ops, &config, &device);
        if (!st) st = npu_program_load_memory(file.data, file.size, &program);
        if (!st) st = npu_session_new(device, program, &session);
        if (!st) st = npu_session_write(session, NPU_INPUT, 0, NPU_F32, x_values, sizeof x_values);
        if (!st)
            st = npu_session_write(session, NPU_INPUT, 1, NPU_I64, ids_values, sizeof ids_values);
        if (!st) st = npu_queue_new(device, 4, &queue);
        if (!st) st = npu_queue_submit(queue, session, &job);
        if (!st) st = npu_queue_wait(queue, job, NULL);
        done = !st && base_alloc_count() < n;
        base_alloc_fail_at(0, 0);
        cr_expect(!st || npu_status_error(st) == NPU_ERROR_NO_MEMORY, "n = %zu: %s", n,
                  npu_status_message(st));
        npu_status_free(st);
        npu_queue_free(queue);
        npu_session_free(session);
        npu_program_free(program);
        npu_device_close(device);
        cr_assert_lt(n, 10000);
    }
    cr_expect_gt(n, 10, "only %zu allocations", n);
    arena_free(a);
}
