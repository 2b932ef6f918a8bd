// SPDX-License-Identifier: Apache-2.0
//
// Tests of runtime/base/status.h and diag.h: what users see, exit statuses, joining, lack of
// memory.

#include "runtime/base/status.h"

#include <criterion/criterion.h>
#include <signal.h>

#include "runtime/base/alloc.h"
#include "runtime/base/diag.h"
#include "runtime/base/str.h"

static npu_status check(int dilation) {
    if (dilation > 2)
        return npu_fail(UNSUPPORTED, "dilation %d, the hardware does at most 2", dilation);
    return NULL;
}

static npu_status import(int dilation, const char *name) {
    NPU_TRY_NOTE(check(dilation), "node '%s' (Conv)", name);
    return NULL;
}

static npu_status compile(int dilation) {
    NPU_TRY(import(1, "conv_6"));
    NPU_TRY_NOTE(import(dilation, "conv_7"), "reading model.onnx");
    return NULL;
}

static void expect_print(npu_status st, const char *wanted) {
    struct str s = {0};
    npu_status_print(st, "npuc", &s);
    cr_expect_str_eq(str_text(&s), wanted);
    str_free(&s);
    npu_status_free(st);
}

Test(status, success_is_null) {
    cr_expect_null(compile(2));
    cr_expect_eq(npu_status_code(NULL), NPU_OK);
    cr_expect_eq(npu_status_exit(NULL), 0);
    cr_expect_str_eq(npu_status_message(NULL), "");
    cr_expect_null(npu_note(NULL, "nothing"));
    cr_expect_null(npu_status_join(NULL, NULL));
    expect_print(NULL, "");
}

Test(status, notes_follow_the_fault) {
    npu_status st = compile(3);
    cr_assert(st);
    cr_expect_eq(npu_status_code(st), NPU_UNSUPPORTED);
    cr_expect_str_eq(npu_status_message(st), "dilation 3, the hardware does at most 2");
    expect_print(st, "npuc: error: dilation 3, the hardware does at most 2\n"
                     "  in: node 'conv_7' (Conv)\n"
                     "  in: reading model.onnx\n");
}

Test(status, source_is_shown_only_when_asked) {
    struct str s = {0};
    npu_status st = npu_fail(IO, "x");
    npu_status_show_source(true);
    npu_status_print(st, NULL, &s);
    npu_status_show_source(false);
    cr_expect(strstr(str_text(&s), "error: x  [system error, "));
    cr_expect(strstr(str_text(&s), "test_status.c:"));
    str_free(&s);
    npu_status_free(st);
}

Test(status, exit_statuses_are_the_contract) {
    static const int wanted[] = {0, 1, 2, 3, 3, 4, 5, 6, 6};
    cr_assert_eq(sizeof wanted / sizeof *wanted, NPU_CODE_COUNT);
    for (int code = 1; code < NPU_CODE_COUNT; code++) {
        npu_status st = npu_fail_at("f", 1, (enum npu_code)code, "m");
        cr_expect_eq(npu_status_exit(st), wanted[code]);
        npu_status_free(st);
    }
}

Test(status, joined_faults_are_all_printed) {
    npu_status a = npu_status_join(npu_fail(BAD_INPUT, "one"), import(9, "c"));
    npu_status b = npu_status_join(npu_fail(IO, "three"), npu_fail(IO, "four"));
    npu_status st = npu_note(npu_status_join(a, b), "model");
    cr_expect_eq(npu_status_code(st), NPU_BAD_INPUT);
    cr_expect_str_eq(npu_status_message(st), "one");
    expect_print(st, "npuc: error: one\n"
                     "npuc: error: dilation 9, the hardware does at most 2\n"
                     "  in: node 'c' (Conv)\n"
                     "npuc: error: three\n"
                     "npuc: error: four\n"
                     "  in: model\n");
}

Test(status, long_messages_are_kept) {
    char text[3000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    npu_status st = npu_fail(IO, "%s", text);
    cr_expect_str_eq(npu_status_message(st), text);
    npu_status_free(st);
}

Test(status, without_memory_there_is_still_a_status) {
    base_alloc_fail_at(1, 1);
    npu_status st = npu_fail(IO, "x");
    st = npu_note(st, "note");
    st = npu_status_join(st, NULL);
    base_alloc_fail_at(0, 0);
    cr_expect_eq(npu_status_code(st), NPU_NO_MEMORY);
    npu_status joined = npu_status_join(npu_fail(USAGE, "u"), st);
    cr_expect_eq(npu_status_code(joined), NPU_NO_MEMORY);
    expect_print(npu_note(joined, "note"), "npuc: error: out of memory\n  in: note\n");
}

Test(status, a_note_without_memory_keeps_the_fault) {
    npu_status st = npu_fail(IO, "x");
    base_alloc_fail_at(1, 0);
    st = npu_note(st, "note");
    base_alloc_fail_at(0, 0);
    expect_print(st, "npuc: error: x\n");
}

Test(status, assertion_aborts, .signal = SIGABRT) {
    NPU_ASSERT(1 + 1 == 3);
}

Test(diag, gathers_and_counts) {
    struct diag d = {0};
    cr_expect_null(diag_finish(&d));
    diag_add(&d, NULL);
    for (int i = 0; i < 1000; i++)
        diag_fail(&d, UNSUPPORTED, "op %d", i);
    cr_expect_eq(d.count, 1000);
    npu_status st = diag_finish(&d);
    struct str s = {0};
    npu_status_print(st, NULL, &s);
    cr_expect(strstr(str_text(&s), "error: op 0\n"));
    cr_expect(strstr(str_text(&s), "error: op 999\n"));
    str_free(&s);
    npu_status_free(st);
    cr_expect_eq(d.count, 0);
}
