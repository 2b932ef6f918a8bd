// SPDX-License-Identifier: Apache-2.0
//
// Tests of runtime/base/str.h.

#include "runtime/base/str.h"

#include <criterion/criterion.h>

#include "runtime/base/alloc.h"
#include "runtime/base/arena.h"

Test(str, appends) {
    struct str s = {0};
    cr_expect_str_eq(str_text(&s), "");
    str_puts(&s, "");
    str_puts(&s, "ab");
    str_putc(&s, 'c');
    str_printf(&s, "%d", 42);
    str_append(&s, "x\0y", 3);
    cr_expect_eq(s.len, 8);
    cr_expect_eq(memcmp(s.data, "abc42x\0y", 9), 0);
    str_clear(&s);
    cr_expect_str_eq(str_text(&s), "");
    for (int i = 0; i < 3000; i++)
        str_printf(&s, "%04d,", i);
    cr_expect_eq(s.len, 15000);
    cr_expect_eq(memcmp(s.data + 5 * 2999, "2999,", 6), 0);
    str_free(&s);
    cr_expect_eq(s.cap, 0);
}

Test(str, pads_columns) {
    struct str s = {0};
    str_puts(&s, "first line\nab");
    str_pad_to(&s, 5);
    str_puts(&s, "|");
    str_pad_to(&s, 3);
    str_puts(&s, "|");
    cr_expect_str_eq(str_text(&s), "first line\nab   | |");
    str_free(&s);
}

Test(str, json) {
    struct str s = {0};
    str_json(&s, "a\"b\\\n\t\x7f\xc3\xa9\xff\xe2\x82");
    cr_expect_str_eq(str_text(&s), "\"a\\\"b\\\\\\n\\u0009\\u007f\xc3\xa9\\ufffd\\ufffd\\ufffd\"");
    str_clear(&s);
    str_json(&s, "\xed\xa0\x80\xf0\x9f\x98\x80\xc0\x80");
    cr_expect_str_eq(str_text(&s), "\"\\ufffd\\ufffd\\ufffd\xf0\x9f\x98\x80\\ufffd\\ufffd\"");
    str_free(&s);
}

static void expect_shown(void (*show)(struct str *, const char *), const char *text,
                         const char *want) {
    struct str s = {0};
    show(&s, text);
    cr_expect_str_eq(str_text(&s), want);
    str_free(&s);
}

Test(str, names_do_not_command_the_terminal) {
    expect_shown(str_shown, "", "");
    expect_shown(str_shown, "plain \\ \"name\" \xc3\xa9 \xf0\x9f\x98\x80",
                 "plain \\ \"name\" \xc3\xa9 \xf0\x9f\x98\x80");
    expect_shown(str_shown, "a\nb\tc\rd", "a\\nb\\tc\\rd");
    expect_shown(str_shown, "\x1b[31m\x07\x7f", "\\x1b[31m\\x07\\x7f");
    expect_shown(str_shown,
                 "\xc2\x9b"
                 "31m\xe2\x80\xa8\xe2\x80\xae\xef\xbb\xbf", // C1, LS, RLO, BOM
                 "\\u009b"
                 "31m\\u2028\\u202e\\ufeff");
    expect_shown(str_shown, "\xff\xc0\xaf\xe2\x82", "\\xff\\xc0\\xaf\\xe2\\x82");
    expect_shown(str_shown_lines, "ours\n  and a\nname\t", "ours\n  and a\\nname\\t");
    cr_expect_eq(str_plain_char("\xc3\xa9"), 2);
    cr_expect_eq(str_plain_char("\xc3"), 0);
    cr_expect_eq(str_plain_char("\x01"), 0);
}

Test(str, running_out_of_memory_is_remembered) {
    struct str s = {0};
    str_puts(&s, "kept");
    base_alloc_fail_at(1, 0);
    str_printf(&s, "%0100d", 1);
    base_alloc_fail_at(0, 0);
    str_puts(&s, "dropped");
    cr_expect_str_eq(str_text(&s), "kept");
    npu_status st = str_status(&s);
    cr_expect_eq(npu_status_code(st), NPU_NO_MEMORY);
    npu_status_free(st);
    str_clear(&s);
    str_puts(&s, "again");
    cr_expect_str_eq(str_text(&s), "again");
    str_free(&s);
}

Test(str, moves_into_an_arena) {
    struct arena *a = arena_new();
    struct str s = {0};
    cr_expect_str_eq(str_move(&s, a), "");
    str_puts(&s, "some text");
    cr_expect_str_eq(str_move(&s, a), "some text");
    cr_expect_null(s.data);
    arena_free(a);
}

Test(str, what_was_dropped_is_the_arena_out_of_memory) {
    struct arena *a = arena_new();
    jmp_buf oom;
    volatile bool jumped = false;
    static struct str s;
    if (setjmp(oom)) {
        jumped = true;
    } else {
        arena_set_oom(a, &oom);
        str_puts(&s, "kept");
        s.failed = true;
        (void)str_move(&s, a);
    }
    cr_expect(jumped);
    cr_expect_null(s.data);
    arena_free(a);
}
