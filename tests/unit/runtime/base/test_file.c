// SPDX-License-Identifier: Apache-2.0
//
// Tests of runtime/base/file.h, each in a new folder under /tmp.

#define _XOPEN_SOURCE 700

#include "runtime/base/file.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/arena.h"

static char folder[64];

static void enter_folder(void) {
    (void)snprintf(folder, sizeof folder, "/tmp/test_file.XXXXXX");
    cr_assert(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
}

static int count_files(void) {
    int n = 0;
    DIR *d = opendir(".");
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.' || (e->d_name[1] && e->d_name[1] != '.');
    (void)closedir(d);
    return n;
}

static void leave_folder(void) {
    DIR *d = opendir(".");
    for (struct dirent *e; (e = readdir(d));)
        (void)(unlink(e->d_name) == 0 || rmdir(e->d_name) == 0);
    (void)closedir(d);
    (void)!chdir("/");
    (void)rmdir(folder);
}

TestSuite(file, .init = enter_folder, .fini = leave_folder);

static struct span text(const char *s) {
    return (struct span){(const uint8_t *)s, strlen(s)};
}

static void expect_content(const char *path, const char *wanted) {
    struct span got;
    npu_status st = file_map(path, &got);
    cr_assert_null(st, "%s", npu_status_message(st));
    cr_expect_eq(got.size, strlen(wanted));
    cr_expect(got.size == 0 || memcmp(got.data, wanted, got.size) == 0);
    file_unmap(got);
}

static void expect_io(npu_status st, const char *message) {
    cr_expect_eq(npu_status_code(st), NPU_IO);
    cr_expect_str_eq(npu_status_message(st), message);
    npu_status_free(st);
}

Test(file, write_and_map) {
    cr_assert_null(file_write_atomic("a", text("hello")));
    expect_content("a", "hello");
    cr_assert_null(file_write_atomic("a", text("again")));
    expect_content("a", "again");
    cr_assert_null(file_write_atomic("empty", text("")));
    expect_content("empty", "");
    cr_expect_eq(count_files(), 2);
}

Test(file, reading_failures_name_the_path) {
    struct span got;
    expect_io(file_map("missing", &got), "missing: No such file or directory");
    expect_io(file_map(".", &got), ".: is a directory");
}

Test(file, writing_failures_leave_nothing) {
    expect_io(file_write_atomic("no/such/x", text("x")),
              "no/such/x: cannot write: No such file or directory");
    cr_assert_eq(mkdir("d", 0777), 0);
    expect_io(file_write_atomic("d", text("x")), "d: cannot write: Is a directory");
    cr_expect_eq(count_files(), 1);
    struct file_out *f;
    cr_assert_null(file_out_open("b", &f));
    cr_assert_null(file_out_write(f, text("half")));
    file_out_abort(f);
    file_out_abort(NULL);
    cr_expect_eq(count_files(), 1);
}

Test(file, nothing_is_there_before_the_commit) {
    struct file_out *f;
    cr_assert_null(file_out_open("c", &f));
    cr_assert_null(file_out_write(f, text("one ")));
    cr_expect_eq(access("c", F_OK), -1);
    cr_assert_null(file_out_write(f, text("two")));
    cr_assert_null(file_out_commit(f));
    expect_content("c", "one two");
}

Test(file, full_device_is_a_failure) {
    if (access("/dev/full", W_OK) != 0) cr_skip_test("no /dev/full here");
    expect_io(file_write_atomic("/dev/full", text("x")),
              "/dev/full: cannot write: No space left on device");
    cr_assert_null(file_write_atomic("/dev/null", text("x")));
    cr_expect_eq(access("/dev/null", W_OK), 0);
}

Test(file, links_are_followed_and_modes_kept) {
    cr_assert_null(file_write_atomic("real", text("1")));
    cr_assert_eq(chmod("real", 0640), 0);
    cr_assert_eq(symlink("real", "link"), 0);
    cr_assert_null(file_write_atomic("link", text("2")));
    expect_content("real", "2");
    struct stat info;
    cr_assert_eq(lstat("link", &info), 0);
    cr_expect(S_ISLNK(info.st_mode));
    cr_assert_eq(stat("real", &info), 0);
    cr_expect_eq(info.st_mode & 0777, 0640);
}

Test(file, pipes_are_read_to_the_end) {
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    cr_assert_eq(system("(head -c 100000 /dev/zero | tr '\\0' x > pipe) &"), 0);
    struct span got;
    cr_assert_null(file_map("pipe", &got));
    cr_assert_eq(got.size, 100000);
    cr_expect(got.data[0] == 'x' && got.data[99999] == 'x');
    file_unmap(got);
}

Test(file, mapping_ends_with_the_arena) {
    struct arena *a = arena_new();
    struct span got;
    cr_assert_null(file_write_atomic("a", text("hello")));
    cr_assert_null(file_map_in(a, "a", &got));
    cr_expect_eq(memcmp(got.data, "hello", 5), 0);
    expect_io(file_map_in(a, "missing", &got), "missing: No such file or directory");
    arena_free(a);
}

Test(file, every_allocation_may_fail) {
    for (size_t n = 1;; n++) {
        base_alloc_fail_at(n, 0);
        npu_status st = file_write_atomic("a", text("hello"));
        size_t asked = base_alloc_count();
        base_alloc_fail_at(0, 0);
        enum npu_code code = npu_status_code(st);
        npu_status_free(st);
        cr_expect(code == NPU_OK || code == NPU_NO_MEMORY);
        if (asked < n) break;
        cr_expect_eq(code, NPU_NO_MEMORY);
        cr_expect_eq(count_files(), 0);
    }
    cr_expect_eq(count_files(), 1);
}
