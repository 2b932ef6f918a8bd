// SPDX-License-Identifier: Apache-2.0
//
// Tests of runtime/base/alloc.h.

#include "runtime/base/alloc.h"

#include <criterion/criterion.h>
#include <stdint.h>

Test(alloc, gives_zeroed_memory) {
    unsigned char *block = base_alloc(100);
    cr_assert(block);
    for (int i = 0; i < 100; i++)
        cr_expect_eq(block[i], 0);
    base_free(block);
}

Test(alloc, refuses_array_overflow) {
    cr_expect_null(base_alloc_array(SIZE_MAX / 2, 3));
}

Test(alloc, fails_the_nth_once) {
    base_alloc_fail_at(2, 0);
    void *a = base_alloc(1), *b = base_alloc(1), *c = base_alloc(1);
    cr_expect(a);
    cr_expect_null(b);
    cr_expect(c);
    cr_expect_eq(base_alloc_count(), 3);
    base_alloc_fail_at(0, 0);
    base_free(a);
    base_free(c);
}

Test(alloc, fails_the_nth_and_all_after) {
    base_alloc_fail_at(2, 1);
    void *a = base_alloc(1);
    cr_expect(a);
    cr_expect_null(base_alloc(1));
    cr_expect_null(base_realloc(a, 50));
    base_alloc_fail_at(0, 0);
    base_free(a);
}
