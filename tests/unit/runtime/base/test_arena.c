// SPDX-License-Identifier: Apache-2.0
//
// Tests of runtime/base/arena.h, vec.h and map.h.

#include "runtime/base/arena.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "runtime/base/alloc.h"
#include "runtime/base/map.h"
#include "runtime/base/vec.h"

Test(arena, memory_is_zeroed_and_aligned) {
    struct arena *a = arena_new();
    size_t sizes[] = {0, 1, 15, 16, 17, 1000, 4096, 70000, 3, 2000000, 5};
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned char *p = arena_alloc(a, sizes[i]);
            cr_assert_eq((uintptr_t)p % 16, 0);
            for (size_t j = 0; j < sizes[i]; j++)
                cr_assert_eq(p[j], 0);
            if (sizes[i]) memset(p, 0xaa, sizes[i]);
        }
        cr_expect_eq(arena_used_bytes(a), 2075153);
        arena_reset(a);
    }
    arena_free(a);
}

Test(arena, strings) {
    struct arena *a = arena_new();
    cr_expect_str_eq(arena_strdup(a, "text"), "text");
    cr_expect_str_eq(arena_strndup(a, "text", 2), "te");
    cr_expect_str_eq(arena_printf(a, "%d-%s", 7, "x"), "7-x");
    cr_expect_eq(memcmp(arena_copy(a, "abc", 3), "abc", 3), 0);
    arena_free(a);
}

static void append_digit(void *argument) {
    static int next;
    ((char *)argument)[next] = (char)('0' + next);
    next++;
}

Test(arena, deferred_calls_run_at_reset_and_free) {
    struct arena *a = arena_new();
    static char first[4], second[4];
    arena_defer(a, append_digit, first);
    arena_defer(a, append_digit, second);
    arena_reset(a);
    cr_expect_eq(second[0], '0');
    cr_expect_eq(first[1], '1');
    arena_defer(a, append_digit, first);
    arena_free(a);
    cr_expect_eq(first[2], '2');
}

Test(arena, out_of_memory_jumps) {
    struct arena *a = arena_try_new();
    jmp_buf oom;
    volatile int jumps = 0;
    if (setjmp(oom) != 0) {
        jumps++;
    } else {
        arena_set_oom(a, &oom);
        (void)arena_alloc_array(a, SIZE_MAX / 2, 3);
    }
    if (jumps == 1) {
        base_alloc_fail_at(1, 0);
        (void)arena_alloc(a, 100);
    }
    base_alloc_fail_at(0, 0);
    cr_expect_eq(jumps, 2);
    arena_free(a);
}

Test(arena, out_of_memory_ends_with_6, .exit_code = 6) {
    struct arena *a = arena_new();
    base_alloc_fail_at(1, 1);
    (void)arena_alloc(a, 1 << 20);
}

Test(arena, try_new_without_memory) {
    base_alloc_fail_at(1, 0);
    cr_expect_null(arena_try_new());
    base_alloc_fail_at(0, 0);
}

struct pair {
    int x, y;
};

Test(vec, grows_and_keeps_items) {
    struct arena *a = arena_new();
    VEC(struct pair) v = {0};
    for (int i = 0; i < 1000; i++)
        VEC_PUSH(a, &v, (struct pair){i, 2 * i});
    cr_assert_eq(v.len, 1000);
    for (int i = 0; i < 1000; i++)
        cr_assert(v.ptr[i].x == i && v.ptr[i].y == 2 * i);
    cr_expect_eq(VEC_LAST(&v).x, 999);
    cr_expect_eq(VEC_POP(&v).x, 999);
    cr_expect_eq(v.len, 999);
    VEC_ADD(a, &v)->y = 5;
    cr_expect_eq(v.ptr[999].y, 5);
    VEC(int) w = {0};
    int some[] = {1, 2, 3};
    VEC_EXTEND(a, &w, some, 3);
    VEC_EXTEND(a, &w, some, 0);
    VEC_RESERVE(a, &w, 100);
    cr_expect(w.len == 3 && w.ptr[2] == 3 && w.cap >= 103);
    arena_free(a);
}

Test(map, keeps_insertion_order) {
    struct arena *a = arena_new();
    struct map m;
    map_init(&m, a);
    cr_expect_null(map_get(&m, "k0"));
    static int values[5000];
    char key[16];
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        cr_assert_null(map_put(&m, key, &values[i]));
    }
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        cr_assert_eq(map_get(&m, key), &values[i]);
        cr_assert_str_eq(m.entries[i].key, key);
    }
    cr_expect_eq(m.len, 5000);
    cr_expect_null(map_get(&m, "k5000"));
    cr_expect_eq(map_put(&m, "k7", NULL), &values[7]);
    cr_expect_null(map_get(&m, "k7"));
    cr_expect_eq(m.len, 5000);
    cr_expect_null(map_put_n(&m, "ab\0c", 4, &values[0]));
    cr_expect_null(map_get(&m, "ab"));
    cr_expect_eq(map_get_n(&m, "ab\0cd", 4), &values[0]);
    cr_expect_null(map_put(&m, "", &values[1]));
    cr_expect_eq(map_get(&m, ""), &values[1]);
    arena_free(a);
}

Test(arena, scratch_ends_with_its_parent_when_memory_does) {
    struct arena *volatile a = arena_new();
    jmp_buf oom;
    volatile int jumps = 0;
    if (setjmp(oom)) {
        jumps = jumps + 1;
    } else {
        arena_set_oom(a, &oom);
        struct arena *first = arena_scratch(a), *second = arena_scratch(a);
        arena_free(arena_scratch(second)); // in any order
        arena_free(first);
        arena_alloc(arena_scratch(second), 1);
        arena_alloc(arena_scratch(second), SIZE_MAX);
    }
    cr_assert_eq(jumps, 1);
    arena_free(a); // the leak checker sees what is left
}

static void count_up(void *n) {
    ++*(int *)n;
}

static void set_to_nine(void *n) {
    *(int *)n = 9;
}

Test(arena, what_was_deferred_can_be_walked) {
    struct arena *a = arena_new();
    int one = 0, two = 0, other = 0;
    arena_defer(a, count_up, &one);
    arena_defer(a, set_to_nine, &other);
    arena_defer(a, count_up, &two);
    cr_expect_eq(arena_deferred(a, count_up, NULL), &two);
    cr_expect_eq(arena_deferred(a, count_up, &two), &one);
    cr_expect_null(arena_deferred(a, count_up, &one));
    cr_expect_eq(arena_deferred(a, set_to_nine, NULL), &other);
    arena_free(a);
    cr_expect(one == 1 && two == 1 && other == 9);
}
