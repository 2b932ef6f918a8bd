// SPDX-License-Identifier: Apache-2.0
//
// Tests of runtime/base/files.h, each in a new folder under /tmp.

#define _XOPEN_SOURCE 700

#include "runtime/base/files.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"

static char folder[64];
static struct arena *a;
static struct files f;

static void start(void) {
    (void)snprintf(folder, sizeof folder, "/tmp/test_files.XXXXXX");
    cr_assert(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
    cr_assert_eq(mkdir("d", 0777), 0);
    cr_assert_null(file_write_atomic("old", (struct span){(const uint8_t *)"x", 1}));
    a = arena_new();
    files_init(&f, a);
}

static void stop(void) {
    char command[80];
    arena_free(a);
    (void)!chdir("/");
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(files, .init = start, .fini = stop);

static void expect_code(npu_status st, enum npu_code code, const char *part) {
    cr_expect_eq(npu_status_code(st), code, "%s", npu_status_message(st));
    cr_expect(strstr(npu_status_message(st), part), "%s", npu_status_message(st));
    npu_status_free(st);
}

// Whether a file written as `second` is seen to be `first`, read or written.
static void expect_same(const char *first, const char *second, bool same) {
    for (int use = FILES_READ; use <= FILES_WRITE; use++) {
        files_init(&f, a);
        files_add(&f, (enum files_use)use, "the program", first);
        files_add(&f, FILES_WRITE, "--report", second);
        npu_status st = files_check(&f);
        cr_expect_eq(npu_status_code(st), same ? NPU_USAGE : NPU_OK, "%s, %s: %s", first, second,
                     npu_status_message(st));
        npu_status_free(st);
    }
}

Test(files, both_uses_are_named) {
    files_add(&f, FILES_READ, "the program", "old");
    files_add(&f, FILES_WRITE, "--report", "./old");
    files_add(&f, FILES_WRITE, "--crc", "new");
    expect_code(files_check(&f), NPU_USAGE,
                "the program old and --report ./old are the same file; what is written needs a "
                "file of its own");
    files_add(&f, FILES_WRITE, "--trace", "d/../new");
    expect_code(files_check(&f), NPU_USAGE, "--crc new and --trace d/../new are");
    cr_expect_eq(access("new", F_OK), -1);
}

Test(files, links_and_detours_are_seen_through) {
    char path[96];
    cr_assert_eq(link("old", "hard"), 0);
    cr_assert_eq(symlink("old", "soft"), 0);
    cr_assert_eq(symlink("d", "way"), 0);
    (void)snprintf(path, sizeof path, "%s/old", folder);
    const char *const old[] = {"old", "./old", "d/../old", "hard", "soft", path, "d//..//old"};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        expect_same("old", old[i], true);
    expect_same("d/new", "way/new", true);
    expect_same("d/new", "./d/./new", true);
    expect_same("new", "./new", true);
    expect_same("new", "d/new", false);
    expect_same("old", "new", false);
    expect_same("old", "d/old", false);
}

Test(files, a_link_that_leads_nowhere_is_replaced) {
    cr_assert_eq(symlink("nothing", "link"), 0);
    expect_same("link", "nothing", false);
    expect_same("link", "./link", true);
}

Test(files, what_is_read_may_be_read_twice) {
    files_add(&f, FILES_READ, "--input", "old");
    files_add(&f, FILES_READ, "--expect", "old");
    cr_expect_null(files_check(&f));
}

// A stream's state: what was read has the place of what is written.
Test(files, what_is_old_may_become_new) {
    files_add(&f, FILES_OLD, "--input", "old");
    files_add(&f, FILES_NEW, "--output", "d/../old");
    cr_expect_null(files_check(&f));
    files_add(&f, FILES_NEW, "--output", "./old");
    expect_code(files_check(&f), NPU_USAGE, "--output d/../old and --output ./old are");
    files_add(&f, FILES_READ, "--expect", "old");
    expect_code(files_check(&f), NPU_USAGE, "and --expect old are");
    for (int use = FILES_READ; use <= FILES_OLD; use++) {
        files_init(&f, a);
        files_add(&f, (enum files_use)use, "--report", "x");
        files_add(&f, FILES_NEW, "--output", "x");
        npu_status st = files_check(&f);
        cr_expect_eq(npu_status_code(st) == NPU_USAGE, use != FILES_OLD);
        npu_status_free(st);
    }
}

Test(files, devices_and_pipes_are_free) {
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    expect_same("/dev/null", "/dev/null", false);
    expect_same("pipe", "pipe", false);
    expect_same("/dev/stdout", "/dev/stdout", false);
    expect_same("/dev/stderr", "/dev/fd/2", false);
}

Test(files, standard_output_is_a_use) {
    const int fd = open("old", O_WRONLY), before = dup(STDOUT_FILENO);
    cr_assert(fd >= 0 && before >= 0 && dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
    files_init(&f, a);
    files_add(&f, FILES_WRITE, "--report", "old");
    npu_status st = files_check(&f);
    files_init(&f, a);
    files_add(&f, FILES_WRITE, "--report", "/dev/stdout");
    npu_status by_name = files_check(&f);
    npu_status written =
        file_write_atomic("/dev/stdout", (struct span){(const uint8_t *)"report", 6});
    cr_assert_eq(dup2(before, STDOUT_FILENO), STDOUT_FILENO);
    expect_code(st, NPU_USAGE, "standard output and --report old are");
    cr_expect_null(by_name);
    cr_expect_null(written);
    struct span got;
    cr_assert_null(file_map("old", &got));
    cr_expect(got.size == 6 && memcmp(got.data, "report", 6) == 0);
    file_unmap(got);
}

Test(files, what_cannot_be_written_is_known) {
    files_add(&f, FILES_WRITE, "--report", "no/such/x");
    expect_code(files_check(&f), NPU_IO, "no/such/x: cannot write: No such file or directory");
    files_add(&f, FILES_WRITE, "--report", "d");
    expect_code(files_check(&f), NPU_IO, "d: cannot write: Is a directory");
    files_add(&f, FILES_WRITE, "--report", "old/x");
    expect_code(files_check(&f), NPU_IO, "old/x: cannot write: Not a directory");
    files_add(&f, FILES_FOLDER, "--outputs", "no/such");
    expect_code(files_check(&f), NPU_IO, "--outputs no/such: No such file or directory");
    files_add(&f, FILES_FOLDER, "--outputs", "old");
    expect_code(files_check(&f), NPU_IO, "--outputs old: Not a directory");
    files_init(&f, a);
    files_add(&f, FILES_FOLDER, "--outputs", "d");
    files_add(&f, FILES_FOLDER, "--outputs", "fresh/");
    files_add(&f, FILES_WRITE, "--report", "old");
    cr_expect_null(files_check(&f));
    cr_expect_eq(access("fresh", F_OK), -1);
}

Test(files, a_folder_is_no_file) {
    files_add(&f, FILES_FOLDER, "--outputs", "o");
    files_add(&f, FILES_WRITE, "--report", "o");
    expect_code(files_check(&f), NPU_USAGE, "--outputs o and --report o are");
}

Test(files, what_was_mapped_is_read) {
    struct span bytes;
    npu_status_free(file_map_in(a, "missing", &bytes));
    cr_assert_null(file_map_in(a, "d/../old", &bytes));
    files_add(&f, FILES_WRITE, "--report", "old");
    cr_assert_null(files_check(&f));
    files_add_mapped(&f, a, "the input");
    expect_code(files_check(&f), NPU_USAGE, "--report old and the input d/../old are");
}
