// SPDX-License-Identifier: Apache-2.0
//
// Loading and describing programs through the installed API.

#define _XOPEN_SOURCE 700

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/api.h"
#include "tests/unit/runtime/sample_image.h"

static struct npu_program *load(struct arena *a) {
    struct npu_program *program;
    struct span file = sample_for_machine(a, NULL);
    expect_ok(npu_program_load_memory(file.data, file.size, &program));
    cr_assert_not_null(program);
    return program;
}

Test(program, describes_itself) {
    struct arena *a = arena_new();
    struct npu_program *p = load(a);
    cr_expect_str_eq(npu_program_name(p), "sample");
    cr_expect_str_eq(npu_program_producer(p), "test 1");
    cr_expect_str_eq(npu_program_target(p), "server");
    cr_expect_not_null(strstr(npu_program_machine(p), "mxu"));
    cr_expect_eq(npu_program_dram_bytes(p), 20480);
    cr_expect_eq(npu_program_tensor_count(p, NPU_INPUT), 2);
    cr_expect_eq(npu_program_tensor_count(p, NPU_OUTPUT), 2);
    cr_expect_eq(npu_program_tensor_count(p, NPU_STATE), 1);
    cr_expect_eq(npu_program_tensor_count(p, (enum npu_role)0), 0);
    cr_expect_eq(npu_program_tensor_count(p, (enum npu_role)4), 0);
    cr_expect_eq(npu_program_entry_count(p), 2);
    cr_expect_str_eq(npu_program_entry(p, 1), "eager");
    cr_expect_null(npu_program_entry(p, 2));
    cr_expect_neq(npu_version()[0], 0);
    npu_program_free(p);
    npu_program_free(NULL);
    arena_free(a);
}

Test(program, describes_tensors) {
    struct arena *a = arena_new();
    struct npu_program *p = load(a);
    struct npu_tensor_info t;
    expect_ok(npu_program_tensor(p, NPU_INPUT, 0, &t));
    cr_expect_str_eq(t.name, "x");
    cr_expect(t.role == NPU_INPUT && t.dtype == NPU_F16 && t.model_dtype == NPU_F32);
    cr_expect(t.rank == 2 && t.dims[0] == 2 && t.dims[1] == 3);
    cr_expect(t.elements == 6 && t.bytes == 12 && t.index_limit == 0);
    expect_ok(npu_program_tensor(p, NPU_INPUT, 1, &t));
    cr_expect(t.index_limit == 100);
    expect_ok(npu_program_tensor(p, NPU_OUTPUT, 1, &t));
    cr_expect(t.elements == 0 && t.bytes == 0);
    expect_failure(npu_program_tensor(p, NPU_INPUT, 2, &t), NPU_USAGE,
                   "input number 2, the program has 2");
    size_t index;
    expect_ok(npu_program_find(p, NPU_INPUT, "ids", &index));
    cr_expect_eq(index, 1);
    expect_failure(npu_program_find(p, NPU_INPUT, "id", &index), NPU_USAGE,
                   "no input 'id'; it has 'x', 'ids'");
    expect_failure(npu_program_find(p, (enum npu_role)7, "id", &index), NPU_USAGE, "role 7");
    npu_program_free(p);
    arena_free(a);
}

Test(program, loads_from_a_file) {
    struct arena *a = arena_new();
    char path[] = "/tmp/test_program_XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    expect_ok(file_write_atomic(path, sample_for_machine(a, NULL)));
    struct npu_program *p;
    expect_ok(npu_program_load(path, &p));
    cr_expect_str_eq(npu_program_name(p), "sample");
    npu_program_free(p);
    unlink(path);
    expect_failure(npu_program_load(path, &p), NPU_IO, path);
    cr_expect_null(p);
    expect_failure(npu_program_load_memory("abc", 3, &p), NPU_BAD_INPUT, "not a .npu program");
    arena_free(a);
}

Test(program, description_must_match_its_hashes) {
    struct arena *a = arena_new();
    struct npu_program *p;
    struct span file = sample_bytes(a); // its hashes are made up
    expect_failure(npu_program_load_memory(file.data, file.size, &p), NPU_BAD_INPUT, "section HW");
    arena_free(a);
}

Test(program, errors_as_text) {
    struct npu_program *p;
    npu_status st = npu_program_load_memory("abc", 3, &p);
    cr_expect_eq(npu_status_error(st), NPU_ERROR_BAD_INPUT);
    cr_expect_eq(npu_status_exit(st), 3);
    char text[200], cut[10];
    size_t length = npu_status_text(st, text, sizeof text);
    cr_expect_eq(length, strlen(text));
    cr_expect_not_null(strstr(text, "not a .npu program"));
    cr_expect_eq(npu_status_text(st, cut, sizeof cut), length);
    cr_expect_eq(strlen(cut), 9);
    cr_expect_eq(npu_status_text(st, NULL, 0), length);
    npu_status_free(st);
    cr_expect_eq(npu_status_error(NULL), NPU_ERROR_NONE);
    cr_expect_eq(npu_status_text(NULL, text, sizeof text), 0);
}
