// SPDX-License-Identifier: Apache-2.0
//
// Bump allocation in zeroed blocks. Blocks double from 16 KiB to 1 MiB; what is larger than a
// quarter of a block gets one of its own, linked behind the current block so that the rest of that
// is still used. Under AddressSanitizer what is not handed out is poisoned, and 16 bytes between
// allocations too, so that running over the end of an object is found as it is with malloc.

#include "runtime/base/arena.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
enum { GUARD_BYTES = 16 };
#define POISON(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
enum { GUARD_BYTES = 0 };
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

enum { ALIGN_BYTES = 16, FIRST_BLOCK_BYTES = 16 * 1024, LAST_BLOCK_BYTES = 1024 * 1024 };

struct block {
    struct block *next;
    size_t size; // of data
    size_t used;
    _Alignas(ALIGN_BYTES) unsigned char data[];
};

struct deferred {
    struct deferred *next;
    void (*function)(void *);
    void *argument;
};

struct arena {
    struct block *blocks; // the first is the one being filled
    struct deferred *deferred;
    jmp_buf *oom;
    struct arena *parent;                       // of a scratch arena
    struct arena *scratch, *next_scratch, **at; // scratch arenas in a list; `at` points here
    size_t next_block_bytes;
    size_t used_bytes;
};

struct arena *arena_try_new(void) {
    struct arena *a = base_alloc(sizeof *a);
    if (a) a->next_block_bytes = FIRST_BLOCK_BYTES;
    return a;
}

static _Noreturn void end_program(void) {
    exit(npu_status_report(npu_fail(NO_MEMORY, "out of memory"), NULL));
}

struct arena *arena_new(void) {
    struct arena *a = arena_try_new();
    if (!a) end_program();
    return a;
}

_Noreturn void arena_out_of_memory(struct arena *a) {
    while (!a->oom && a->parent)
        a = a->parent;
    if (a->oom) longjmp(*a->oom, 1);
    end_program();
}

struct arena *arena_scratch(struct arena *parent) {
    struct arena *a = arena_try_new();
    if (!a) arena_out_of_memory(parent);
    a->parent = parent;
    a->next_scratch = parent->scratch;
    a->at = &parent->scratch;
    if (a->next_scratch) a->next_scratch->at = &a->next_scratch;
    parent->scratch = a;
    return a;
}

void arena_set_oom(struct arena *a, jmp_buf *where) {
    a->oom = where;
}

static struct block *new_block(struct arena *a, size_t size) {
    struct block *b = size <= SIZE_MAX - sizeof *b ? base_alloc(sizeof *b + size) : NULL;
    if (!b) arena_out_of_memory(a);
    b->size = size;
    POISON(b->data, size);
    return b;
}

static void *take(struct block *b, size_t size, size_t padded) {
    void *p = b->data + b->used;
    UNPOISON(p, size);
    b->used += padded;
    return p;
}

void *arena_alloc(struct arena *a, size_t size) {
    if (size > SIZE_MAX / 2) arena_out_of_memory(a);
    size_t padded = (size + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES + GUARD_BYTES;
    if (padded == 0) padded = ALIGN_BYTES;
    struct block *b = a->blocks;
    if (!b || b->size - b->used < padded) {
        if (b && padded > a->next_block_bytes / 4) { // a block of its own, behind the current one
            struct block *own = new_block(a, padded);
            own->next = b->next;
            b->next = own;
            b = own;
        } else {
            b = new_block(a, padded > a->next_block_bytes ? padded : a->next_block_bytes);
            b->next = a->blocks;
            a->blocks = b;
            if (a->next_block_bytes < LAST_BLOCK_BYTES) a->next_block_bytes *= 2;
        }
    }
    a->used_bytes += size;
    return take(b, size, padded);
}

void *arena_alloc_array(struct arena *a, size_t count, size_t size) {
    if (size != 0 && count > SIZE_MAX / size) arena_out_of_memory(a);
    return arena_alloc(a, count * size);
}

void *arena_copy(struct arena *a, const void *bytes, size_t size) {
    void *copy = arena_alloc(a, size);
    if (size) memcpy(copy, bytes, size);
    return copy;
}

char *arena_strndup(struct arena *a, const char *text, size_t length) {
    char *copy = arena_alloc(a, length + 1); // zeroed: the NUL is there
    if (length) memcpy(copy, text, length);
    return copy;
}

char *arena_strdup(struct arena *a, const char *text) {
    return arena_strndup(a, text, strlen(text));
}

char *arena_vprintf(struct arena *a, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) arena_out_of_memory(a);
    char *text = arena_alloc(a, (size_t)length + 1);
    (void)vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

char *arena_printf(struct arena *a, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(a, format, args);
    va_end(args);
    return text;
}

void arena_defer(struct arena *a, void (*function)(void *), void *argument) {
    struct deferred *d = ARENA_NEW(a, struct deferred);
    *d = (struct deferred){a->deferred, function, argument};
    a->deferred = d;
}

void *arena_deferred(const struct arena *a, void (*function)(void *), const void *argument) {
    const struct deferred *d = a->deferred;
    while (argument && d && (d->function != function || d->argument != argument))
        d = d->next;
    if (argument && d) d = d->next;
    while (d && d->function != function)
        d = d->next;
    return d ? d->argument : NULL;
}

static void run_deferred(struct arena *a) {
    while (a->scratch)
        arena_free(a->scratch);
    while (a->deferred) {
        struct deferred *d = a->deferred;
        a->deferred = d->next;
        d->function(d->argument);
    }
}

static void free_block(struct block *b) {
    UNPOISON(b->data, b->size);
    base_free(b);
}

void arena_reset(struct arena *a) {
    run_deferred(a);
    struct block *keep = a->blocks;
    if (!keep) return;
    for (struct block *b = keep->next, *next; b; b = next) {
        next = b->next;
        free_block(b);
    }
    keep->next = NULL;
    UNPOISON(keep->data, keep->size);
    memset(keep->data, 0, keep->used);
    POISON(keep->data, keep->size);
    keep->used = 0;
    a->used_bytes = 0;
}

void arena_free(struct arena *a) {
    if (!a) return;
    run_deferred(a);
    if (a->at) {
        *a->at = a->next_scratch;
        if (a->next_scratch) a->next_scratch->at = a->at;
    }
    for (struct block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        free_block(b);
    }
    base_free(a);
}

size_t arena_used_bytes(const struct arena *a) {
    return a->used_bytes;
}
