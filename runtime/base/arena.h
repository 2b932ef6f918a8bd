// SPDX-License-Identifier: Apache-2.0
//
// Memory that is released all at once: one arena per compilation, one scratch arena per pass.
// Nothing in an arena is freed one by one.
//
// Allocation never returns NULL. Out of memory jumps to the buffer given to arena_set_oom, or,
// without one, prints a message and ends the program with exit status 6:
//
//     struct arena *a = arena_try_new();
//     if (!a) return npu_fail(NO_MEMORY, "...");
//     jmp_buf oom;
//     if (setjmp(oom)) { arena_free(a); return npu_fail(NO_MEMORY, "..."); }
//     arena_set_oom(a, &oom);
#ifndef RUNTIME_BASE_ARENA_H
#define RUNTIME_BASE_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

/// New, empty arena; ends the program with exit status 6 when out of memory. Release with
/// arena_free.
struct arena *arena_new(void);

/// A short-lived arena inside another: out of memory goes where it goes for `parent`, and when that
/// jumps, `parent` releases it. Release with arena_free.
struct arena *arena_scratch(struct arena *parent);

/// As arena_new; NULL when out of memory. For libraries, which must not end the program.
struct arena *arena_try_new(void);

/// Runs what was deferred, then releases everything. NULL is allowed.
void arena_free(struct arena *a);

/// Runs what was deferred and releases everything but one block: empty again.
void arena_reset(struct arena *a);

/// Where to jump (with value 1) when out of memory; NULL goes back to ending the program. The
/// buffer is lent and must stay valid.
void arena_set_oom(struct arena *a, jmp_buf *where);

/// Ends as an allocation does that cannot be had: for whoever finds out of memory elsewhere.
_Noreturn void arena_out_of_memory(struct arena *a);

/// `size` zeroed bytes, 16-byte aligned. Never NULL, also for 0.
void *arena_alloc(struct arena *a, size_t size) __attribute__((returns_nonnull));

/// `count` zeroed items of `size` bytes; a product that overflows counts as out of memory.
void *arena_alloc_array(struct arena *a, size_t count, size_t size)
    __attribute__((returns_nonnull));

#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, count) ((type *)arena_alloc_array((a), (count), sizeof(type)))

/// Copy of a string.
char *arena_strdup(struct arena *a, const char *text);

/// Copy of the first `length` bytes of `text`, NUL-terminated.
char *arena_strndup(struct arena *a, const char *text, size_t length);

/// Copy of `size` bytes.
void *arena_copy(struct arena *a, const void *bytes, size_t size);

/// Formatted string.
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/// Formatted string.
char *arena_vprintf(struct arena *a, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/// Calls function(argument) when the arena is freed or reset, the last deferred first.
void arena_defer(struct arena *a, void (*function)(void *), void *argument);

/// Walks what was deferred to `function`, the last first: from an argument (NULL: from the start)
/// to the next; NULL at the end.
void *arena_deferred(const struct arena *a, void (*function)(void *), const void *argument);

/// Bytes handed out since the arena was new or reset.
size_t arena_used_bytes(const struct arena *a);

#endif
