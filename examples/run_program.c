// SPDX-License-Identifier: Apache-2.0
//
// Runs a compiled program on the simulated device and prints what comes out:
//
//     run_program MODEL.npu [RUNS]
//
// Inputs are ramps (integers stay within what they index). Everything here is the installed API.

#include <npu/npu.h>
#include <npu/simulator.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8 };

// Prints a failed status, frees it and returns the exit status; 0 for success.
static int report(npu_status status) {
    char text[4096];
    int result = npu_status_exit(status);
    if (status) {
        (void)npu_status_text(status, text, sizeof text);
        fputs(text, stderr);
        npu_status_free(status);
    }
    return result;
}

static void print_tensor(const struct npu_tensor_info *t) {
    printf("%s[", npu_dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        printf("%s%lld", i ? "," : "", (long long)t->dims[i]);
    printf("] %s", t->name);
}

static int is_float(enum npu_dtype dtype) {
    return dtype <= NPU_F8E5M2 || dtype == NPU_F64;
}

// Writes a ramp: floats in [-1, 1), integers 0, 1, 2, ... below the tensor's limit.
static npu_status write_ramp(struct npu_session *session, size_t index,
                             const struct npu_tensor_info *t) {
    size_t count = (size_t)t->elements;
    int64_t limit = t->index_limit > 0 ? t->index_limit : 2;
    int64_t *integers = calloc(count + 1, sizeof *integers);
    float *floats = calloc(count + 1, sizeof *floats);
    npu_status status = NULL;
    if (integers && floats) {
        for (size_t i = 0; i < count; i++) {
            integers[i] = (int64_t)i % limit;
            floats[i] = (float)(i % 256) / 128.0f - 1.0f;
        }
        if (is_float(t->dtype))
            status = npu_session_write(session, NPU_INPUT, index, NPU_F32, floats,
                                       count * sizeof *floats);
        else
            status = npu_session_write(session, NPU_INPUT, index, NPU_I64, integers,
                                       count * sizeof *integers);
    }
    free(integers);
    free(floats);
    return status;
}

// Prints the first elements of an output, converted to f64 or i64.
static npu_status print_output(struct npu_session *session, size_t index,
                               const struct npu_tensor_info *t) {
    size_t count = (size_t)t->elements;
    double *floats = calloc(count + 1, sizeof *floats);
    int64_t *integers = calloc(count + 1, sizeof *integers);
    npu_status status = NULL;
    if (integers && floats) {
        if (is_float(t->dtype))
            status = npu_session_read(session, NPU_OUTPUT, index, NPU_F64, floats,
                                      count * sizeof *floats);
        else
            status = npu_session_read(session, NPU_OUTPUT, index, NPU_I64, integers,
                                      count * sizeof *integers);
        print_tensor(t);
        for (size_t i = 0; !status && i < count && i < SHOWN; i++) {
            if (is_float(t->dtype))
                printf(" %g", floats[i]);
            else
                printf(" %lld", (long long)integers[i]);
        }
        printf("%s\n", count > SHOWN ? " ..." : "");
    }
    free(integers);
    free(floats);
    return status;
}

static npu_status run(struct npu_session *session, const struct npu_program *program, long runs) {
    struct npu_tensor_info t;
    npu_status status = NULL;
    for (size_t i = 0; !status && i < npu_program_tensor_count(program, NPU_INPUT); i++) {
        status = npu_program_tensor(program, NPU_INPUT, i, &t);
        if (!status) status = write_ramp(session, i, &t);
    }
    for (long n = 0; !status && n < runs; n++) {
        struct npu_run_info info;
        status = npu_session_run(session, &info);
        if (!status)
            printf("run %ld: %llu cycles\n", n + 1,
                   (unsigned long long)(info.end_cycle - info.start_cycle));
    }
    for (size_t i = 0; !status && i < npu_program_tensor_count(program, NPU_OUTPUT); i++) {
        status = npu_program_tensor(program, NPU_OUTPUT, i, &t);
        if (!status) status = print_output(session, i, &t);
    }
    return status;
}

int main(int argc, char *argv[]) {
    struct npu_program *program = NULL;
    struct npu_device *device = NULL;
    struct npu_session *session = NULL;
    long runs = argc == 3 ? strtol(argv[2], NULL, 10) : 1;
    if (argc < 2 || argc > 3 || runs < 1) {
        fprintf(stderr, "usage: run_program MODEL.npu [RUNS]\n");
        return 2;
    }
    npu_status status = npu_program_load(argv[1], &program);
    if (!status) {
        // The machine that the program was compiled for.
        struct npu_simulator_config config;
        memset(&config, 0, sizeof config);
        config.machine = npu_program_machine(program);
        status = npu_device_open(npu_simulator_ops(), &config, &device);
    }
    if (!status) status = npu_session_new(device, program, &session);
    if (!status) status = run(session, program, runs);
    int result = report(status);
    npu_session_free(session);
    npu_device_close(device);
    npu_program_free(program);
    return result;
}
