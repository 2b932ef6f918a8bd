// SPDX-License-Identifier: Apache-2.0
//
// A user of the installed API, compiled as C17 and as C++11: compiles a model, runs the program on
// the simulated device and asks for its report. Arguments: a model, a file for the program.

#include <npu/compiler.h>
#include <npu/npu.h>
#include <npu/simulator.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(npu_status status, const char *what) {
    if (!status) return 0;
    printf("%s: %s\n", what, npu_status_message(status));
    npu_status_free(status);
    return 1;
}

// A file that is missing is an error, not an end.
static int missing(void) {
    struct npu_program *program = NULL;
    npu_status load = npu_program_load("/nonexistent.npu", &program);
    npu_status compile = npu_compile("/nonexistent.onnx", "/nonexistent.npu", NULL, 0);
    int good = program == NULL && npu_status_error(load) == NPU_ERROR_IO &&
               npu_status_error(compile) == NPU_ERROR_IO && *npu_status_message(load) != '\0';
    npu_status_free(load);
    npu_status_free(compile);
    return !good;
}

static int write_zeros(struct npu_session *session, const struct npu_program *program) {
    for (size_t i = 0; i < npu_program_tensor_count(program, NPU_INPUT); i++) {
        struct npu_tensor_info info;
        if (failed(npu_program_tensor(program, NPU_INPUT, i, &info), "tensor")) return 1;
        void *zeros = calloc(1, (size_t)info.bytes);
        int bad =
            failed(npu_session_write(session, NPU_INPUT, i, info.dtype, zeros, (size_t)info.bytes),
                   "write");
        free(zeros);
        if (bad) return 1;
    }
    return 0;
}

static int run(const char *path) {
    struct npu_program *program = NULL;
    struct npu_device *device = NULL;
    struct npu_session *session = NULL;
    struct npu_simulator_config config;
    char *json = NULL;
    memset(&config, 0, sizeof config);
    int bad = failed(npu_program_load(path, &program), "load");
    config.machine = bad ? NULL : npu_program_machine(program);
    bad = bad || failed(npu_device_open(npu_simulator_ops(), &config, &device), "open");
    bad = bad || failed(npu_session_new(device, program, &session), "session");
    bad = bad || write_zeros(session, program);
    bad = bad || failed(npu_simulator_begin(device), "begin");
    bad = bad || failed(npu_session_run(session, NULL), "run");
    bad = bad || failed(npu_simulator_report(session, &json), "report");
    bad = bad || strstr(json, "\"cycles\"") == NULL || strstr(json, "\"layers\"") == NULL;
    npu_simulator_report_free(json);
    npu_session_free(session);
    npu_device_close(device);
    npu_program_free(program);
    return bad;
}

int main(int argc, char **argv) {
    const char *options[] = {"--target=tiny", "--dtype", "f16"};
    if (argc != 3) return 2;
    int bad = strcmp(npu_version(), "") == 0 || missing() ||
              failed(npu_compile(argv[1], argv[2], options, 3), "compile") || run(argv[2]);
    printf("npu %s: %s\n", npu_version(), bad ? "wrong" : "good");
    return bad;
}
