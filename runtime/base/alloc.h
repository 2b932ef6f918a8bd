// SPDX-License-Identifier: Apache-2.0
//
// The only place that asks the C library for memory. Everything hosted allocates through here, so
// that a test can make the n-th allocation fail.
#ifndef RUNTIME_BASE_ALLOC_H
#define RUNTIME_BASE_ALLOC_H

#include <stddef.h>

/// Zeroed block of `size` bytes (at least 1), aligned for any type; NULL when out of memory.
/// Release with base_free.
void *base_alloc(size_t size) __attribute__((warn_unused_result));

/// Zeroed block of `count` items of `size` bytes each; NULL when out of memory or on overflow.
void *base_alloc_array(size_t count, size_t size) __attribute__((warn_unused_result));

/// Grows or shrinks a block to `size` bytes (at least 1); bytes beyond the old size are undefined.
/// On failure returns NULL and leaves `block` as it was. `block` may be NULL.
void *base_realloc(void *block, size_t size) __attribute__((warn_unused_result));

/// Releases a block of base_alloc, base_alloc_array or base_realloc. NULL is allowed.
void base_free(void *block);

/// Test hook: the `n`-th allocation from now (1 = the next) fails, and every one after it too when
/// `sticky`. n = 0 switches the hook off. Not thread-safe: for tests only.
void base_alloc_fail_at(size_t n, int sticky);

/// Allocations asked for since the last base_alloc_fail_at, those that failed included.
size_t base_alloc_count(void);

#endif
