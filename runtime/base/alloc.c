// SPDX-License-Identifier: Apache-2.0
//
// Allocation with a test hook: a counter that is compared with the number of the allocation to
// fail.

#include "runtime/base/alloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static size_t asked_for; // allocations since the hook was set
static size_t fail_at;   // 0: never
static int fail_sticky;  // those after fail_at fail too

static bool allowed(void) {
    asked_for++;
    if (fail_at == 0) return true;
    return fail_sticky ? asked_for < fail_at : asked_for != fail_at;
}

void *base_alloc(size_t size) {
    return allowed() ? calloc(1, size ? size : 1) : NULL;
}

void *base_alloc_array(size_t count, size_t size) {
    if (size != 0 && count > SIZE_MAX / size) return NULL;
    return base_alloc(count * size);
}

void *base_realloc(void *block, size_t size) {
    return allowed() ? realloc(block, size ? size : 1) : NULL;
}

void base_free(void *block) {
    free(block);
}

void base_alloc_fail_at(size_t n, int sticky) {
    asked_for = 0;
    fail_at = n;
    fail_sticky = sticky;
}

size_t base_alloc_count(void) {
    return asked_for;
}
