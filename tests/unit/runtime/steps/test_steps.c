// SPDX-License-Identifier: Apache-2.0
// Runs of a session one after another: a decoder whose keys, values and position are buffers of its
// module (tests/data/pt2/decoder) gives torch's logits token for token, and starts anew after a
// reset.
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/npy.h"
#include "runtime/include/npu/compiler.h"
#include "runtime/include/npu/simulator.h"

#define FOLDER NPU_TEST_DATA "/pt2/decoder"

enum { TOKENS = 8, VOCABULARY = 24, LENGTH = 12, KEYS = 2 * LENGTH * 8 };

struct device {
    struct npu_device *device;
    struct npu_program *program;
    struct npu_session *session;
    char file[64];
};

static void need(npu_status st) {
    cr_assert_null(st, "%s", npu_status_message(st));
}

static struct device compiled(const char *model, const char *dtype) {
    struct device d = {0};
    (void)snprintf(d.file, sizeof d.file, "/tmp/npu-steps-XXXXXX");
    int fd = mkstemp(d.file);
    cr_assert_geq(fd, 0);
    close(fd);
    need(npu_compile(model, d.file, (const char *[]){"--target=edge", dtype}, 2));
    need(npu_program_load(d.file, &d.program));
    struct npu_simulator_config config = {.machine = npu_program_machine(d.program)};
    need(npu_device_open(npu_simulator_ops(), &config, &d.device));
    need(npu_session_new(d.device, d.program, &d.session));
    return d;
}

static void closed(struct device *d) {
    npu_session_free(d->session);
    npu_device_close(d->device);
    npu_program_free(d->program);
    unlink(d->file);
}

static void array(struct arena *a, const char *path, struct tensor_data *out) {
    struct span bytes;
    need(file_map_in(a, path, &bytes));
    need(npy_parse(a, bytes, out));
}

static void read_state(const struct device *d, const char *name, enum npu_dtype dtype, void *to,
                       size_t bytes) {
    size_t index;
    need(npu_program_find(d->program, NPU_STATE, name, &index));
    need(npu_session_read(d->session, NPU_STATE, index, dtype, to, bytes));
}

// Every token once; every element within atol.
static void decode(const struct device *d, const int64_t *tokens, const float *logits,
                   double atol) {
    for (int k = 0; k < TOKENS; k++) {
        float got[VOCABULARY];
        need(npu_session_write(d->session, NPU_INPUT, 0, NPU_I64, &tokens[k], sizeof *tokens));
        need(npu_session_run(d->session, NULL));
        need(npu_session_read(d->session, NPU_OUTPUT, 0, NPU_F32, got, sizeof got));
        for (int i = 0; i < VOCABULARY; i++) {
            double want = (double)logits[k * VOCABULARY + i];
            cr_assert(fabs((double)got[i] - want) <= atol, "token %d, logit %d: %g, expected %g", k,
                      i, (double)got[i], want);
        }
    }
}

static void steps(const char *model, const char *dtype, double atol) {
    struct arena *a = arena_new();
    struct device d = compiled(model, dtype);
    struct tensor_data tokens, logits;
    float seen, keys[KEYS];
    int64_t at;
    array(a, FOLDER "/tokens.npy", &tokens);
    array(a, FOLDER "/logits.npy", &logits);
    cr_assert_eq(npu_program_tensor_count(d.program, NPU_INPUT), 1);
    cr_assert_eq(npu_program_tensor_count(d.program, NPU_OUTPUT), 1);
    cr_assert_eq(npu_program_tensor_count(d.program, NPU_STATE), 4);
    for (int pass = 0; pass < 2; pass++) {
        read_state(&d, "seen", NPU_F32, &seen, sizeof seen);
        cr_assert_float_eq(seen, 3.0f, 0);
        decode(&d, tokens.data, logits.data, atol);
        read_state(&d, "at", NPU_I64, &at, sizeof at);
        read_state(&d, "seen", NPU_F32, &seen, sizeof seen);
        read_state(&d, "layers.0.k", NPU_F32, keys, sizeof keys);
        cr_assert_eq(at, TOKENS);
        cr_assert_float_eq(seen, 3.0f + TOKENS, 0);
        cr_assert(fabs((double)keys[(TOKENS - 1) * 8]) > 0, "the last key was written");
        cr_assert(fabs((double)keys[TOKENS * 8]) <= 0, "the next was not");
        need(npu_session_reset(d.session));
    }
    closed(&d);
    arena_free(a);
}

Test(steps, plain_f32) {
    steps(FOLDER "/model.pt2", "--dtype=f32", 2e-5);
}

Test(steps, plain_f16) {
    steps(FOLDER "/model.pt2", "--dtype=f16", 1e-2);
}

Test(steps, core_f32) {
    steps(FOLDER "/model.core.pt2", "--dtype=f32", 2e-5);
}

Test(steps, core_f16) {
    steps(FOLDER "/model.core.pt2", "--dtype=f16", 1e-2);
}

// A state that its user writes goes on from there.
Test(steps, a_state_can_be_written) {
    struct device d = compiled(FOLDER "/model.pt2", "--dtype=f32");
    size_t index;
    int64_t at = 4, token = 1;
    need(npu_program_find(d.program, NPU_STATE, "at", &index));
    need(npu_session_write(d.session, NPU_STATE, index, NPU_I64, &at, sizeof at));
    need(npu_session_write(d.session, NPU_INPUT, 0, NPU_I64, &token, sizeof token));
    need(npu_session_run(d.session, NULL));
    read_state(&d, "at", NPU_I64, &at, sizeof at);
    cr_assert_eq(at, 5);
    closed(&d);
}
