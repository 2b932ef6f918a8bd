// SPDX-License-Identifier: Apache-2.0
//
// Tests of runtime/base/standard.h; tests/torture/run_endings.py has those of whole programs.

#define _XOPEN_SOURCE 700

#include "runtime/base/standard.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void print_to(const char *path) {
    cr_assert_not_null(freopen(path, "w", stdout));
    puts("text");
}

Test(standard, closed_ones_stay_unusable) {
    char byte = 0;
    standard_init("test");
    (void)close(0);
    (void)close(1);
    standard_init("test");
    int fd = open("/dev/null", O_RDWR);
    cr_expect_gt(fd, 2);
    cr_expect_eq(read(0, &byte, 1), -1);
    cr_expect_eq(errno, EBADF);
    cr_expect_eq(write(1, &byte, 1), -1);
    cr_expect_eq(errno, EBADF);
    (void)close(fd);
    npu_status_free(standard_finish(NULL));
}

Test(standard, lost_output_is_a_failure) {
    print_to("/dev/full");
    npu_status st = standard_finish(NULL);
    cr_expect_eq(npu_status_code(st), NPU_IO);
    npu_status_free(st);
    st = standard_finish(npu_fail(BAD_INPUT, "first"));
    cr_expect_eq(npu_status_code(st), NPU_BAD_INPUT);
    npu_status_free(st);
}

Test(standard, output_that_got_out_is_none) {
    print_to("/dev/null");
    cr_expect_null(standard_finish(NULL));
}

Test(standard, lost_output_ends_any_exit_with_6, .exit_code = 6) {
    standard_init("test");
    print_to("/dev/full");
    exit(0);
}
