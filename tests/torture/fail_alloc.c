// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program: the allocation number FAIL_ALLOC_AT, counted from main on, fails once,
// and with FAIL_ALLOC_ALL=1 so do all after it. FAIL_ALLOC_COUNT=FILE writes how many there were at
// exit.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static long seen, fail_at = -1, all;
static int
    counting; // from main on: what libraries allocate while they are loaded is not ours to handle

static void start(void) {
    counting = 1;
    const char *at = getenv("FAIL_ALLOC_AT"), *every = getenv("FAIL_ALLOC_ALL");
    if (at) fail_at = strtol(at, NULL, 10);
    all = every && *every == '1';
}

static int fails(void) {
    if (!counting) return 0;
    seen++;
    if (fail_at < 0 || (all ? seen < fail_at : seen != fail_at)) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) {
    return fails() ? NULL : __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    return fails() ? NULL : __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
    return fails() ? NULL : __libc_realloc(old, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    return fails() ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void **out, size_t alignment, size_t size) {
    if (fails()) return ENOMEM;
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

static int (*real_main)(int, char **, char **);

static int counted_main(int argc, char **argv, char **env) {
    start();
    return real_main(argc, argv, env);
}

// The C library's entry, wrapped to learn when main begins.
int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void *stack_end);
int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void *stack_end) {
    int (*next)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                void (*)(void), void *);
    void *symbol = dlsym(RTLD_NEXT, "__libc_start_main");
    memcpy(&next, &symbol, sizeof next);
    real_main = program;
    return next(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

__attribute__((destructor)) static void finish(void) {
    const char *path = getenv("FAIL_ALLOC_COUNT");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f) return;
    fprintf(f, "%ld\n", seen);
    fclose(f);
}
