// SPDX-License-Identifier: Apache-2.0
// npu_compile: a model file becomes a program file without anything being printed or ended.
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/include/npu/compiler.h"

#define MODEL NPU_TEST_DATA "/models/encoder-static/model.onnx"

static char folder[64], program[96];

static void init(void) {
    snprintf(folder, sizeof folder, "/tmp/npu-api-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(program, sizeof program, "%s/model.npu", folder);
}

static void deinit(void) {
    char report[96];
    snprintf(report, sizeof report, "%s/report.json", folder);
    unlink(program);
    unlink(report);
    rmdir(folder);
}

TestSuite(api, .init = init, .fini = deinit);

static void expect_usage(const char *const *options, size_t count, const char *part) {
    npu_status st = npu_compile(MODEL, program, options, count);
    cr_assert_eq(npu_status_error(st), NPU_ERROR_USAGE, "%s", options[0]);
    cr_assert_not_null(strstr(npu_status_message(st), part), "%s", npu_status_message(st));
    cr_assert_eq(access(program, F_OK), -1, "%s wrote a program", options[0]);
    npu_status_free(st);
}

Test(api, compiles_with_options_as_words) {
    char report[96];
    snprintf(report, sizeof report, "--report=%s/report.json", folder);
    const char *const options[] = {"--target", "edge", "--dtype=f16", "-O1", report};
    npu_status st = npu_compile(MODEL, program, options, 5);
    cr_assert_null(st, "%s", npu_status_message(st));
    struct npu_program *p;
    cr_assert_null(npu_program_load(program, &p));
    cr_assert_str_eq(npu_program_target(p), "edge");
    struct npu_tensor_info info;
    cr_assert_null(npu_program_tensor(p, NPU_OUTPUT, 0, &info));
    cr_assert_eq(info.dtype, NPU_F16);
    cr_assert_eq(info.model_dtype, NPU_F32);
    npu_program_free(p);
    json_t *j = json_load_file(strchr(report, '=') + 1, 0, NULL);
    cr_assert_eq(json_integer_value(json_object_get(j, "level")), 1);
    json_decref(j);
}

Test(api, no_options_are_the_defaults) {
    npu_status st = npu_compile(MODEL, program, NULL, 0);
    cr_assert_null(st, "%s", npu_status_message(st));
    struct npu_program *p;
    cr_assert_null(npu_program_load(program, &p));
    cr_assert_str_eq(npu_program_target(p), "server");
    npu_program_free(p);
}

Test(api, options_that_make_no_sense_here) {
    expect_usage((const char *[]){"--dtype"}, 1, "--dtype");
    expect_usage((const char *[]){"--frobnicate"}, 1, "--frobnicate");
    expect_usage((const char *[]){"-Z"}, 1, "-Z");
    expect_usage((const char *[]){"--target", "tiny", "-O1", "--frob"}, 4, "'--frob'");
    expect_usage((const char *[]){"--target=tiny", "--dtype"}, 2, "'--dtype'");
    expect_usage((const char *[]){"--target"}, 1, "--target");
    expect_usage((const char *[]){"--dtype=f13"}, 1, "f13");
    expect_usage((const char *[]){"--help"}, 1, "--help");
    expect_usage((const char *[]){"--version"}, 1, "--version");
    expect_usage((const char *[]){"--list=ops"}, 1, "--list");
    expect_usage((const char *[]){"--info"}, 1, "--info");
    expect_usage((const char *[]){"--stats"}, 1, "--stats");
    expect_usage((const char *[]){"--dump-after=all"}, 1, "--dump-after");
    expect_usage((const char *[]){"--emit=asm"}, 1, "asm");
    expect_usage((const char *[]){"-o", "x.npu"}, 2, "-o");
    expect_usage((const char *[]){"other.onnx"}, 1, "other.onnx");
    expect_usage((const char *[]){"--", "other.onnx"}, 2, "other.onnx");
}

Test(api, faults_of_files) {
    npu_status st = npu_compile("/nonexistent/x.onnx", program, NULL, 0);
    cr_assert_eq(npu_status_error(st), NPU_ERROR_IO);
    npu_status_free(st);
    st = npu_compile(MODEL, "/nonexistent/x.npu", NULL, 0);
    cr_assert_eq(npu_status_error(st), NPU_ERROR_IO);
    npu_status_free(st);
    st = npu_compile(NPU_TEST_DATA "/onnxim_reference.csv", program, NULL, 0);
    cr_assert_eq(npu_status_error(st), NPU_ERROR_BAD_INPUT);
    npu_status_free(st);
    st = npu_compile(NULL, program, NULL, 0);
    cr_assert_eq(npu_status_error(st), NPU_ERROR_USAGE);
    npu_status_free(st);
}

// Whichever allocation fails, the call comes back, and the next one works.
Test(api, out_of_memory_is_a_status, .timeout = 120) {
    const char *const options[] = {"--target=tiny"};
    base_alloc_fail_at(0, 0);
    cr_assert_null(npu_compile(MODEL, program, options, 1));
    const size_t total = base_alloc_count();
    cr_assert_gt(total, 40);
    for (size_t i = 0; i < 40; i++) {
        unlink(program);
        base_alloc_fail_at(1 + i * (total - 1) / 39, 1);
        npu_status st = npu_compile(MODEL, program, options, 1);
        base_alloc_fail_at(0, 0);
        cr_assert_eq(npu_status_error(st), NPU_ERROR_NO_MEMORY, "allocation %zu of %zu: %s", i,
                     total, npu_status_message(st));
        cr_assert_eq(access(program, F_OK), -1);
        npu_status_free(st);
    }
    cr_assert_null(npu_compile(MODEL, program, options, 1));
}

// A program that uses jansson itself keeps its own allocator.
static void *own_malloc(size_t size) {
    return malloc(size);
}

Test(api, gives_the_json_allocator_back) {
    json_set_alloc_funcs(own_malloc, free);
    char report[96];
    snprintf(report, sizeof report, "--report=%s/report.json", folder);
    const char *const options[] = {report};
    cr_assert_null(npu_compile(MODEL, program, options, 1));
    json_malloc_t m;
    json_free_t f;
    json_get_alloc_funcs(&m, &f);
    cr_assert(m == own_malloc && f == free);
}
