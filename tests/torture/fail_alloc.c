// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a program: makes one of its allocations fail. They are counted from main on: what
// libraries allocate while they are loaded is not ours to handle.
//
//     FAIL_ALLOC_AT=N       the N-th fails, once
//     FAIL_ALLOC_ALL=1      and so do all after it
//     FAIL_ALLOC_SITES=F    nothing fails; at exit F gets their count, then the number of the first
//                           from each place of the program, one a line
//     FAIL_ALLOC_SPARE=LIB  places whose last call stands in a library of this name are left out
//
// A place is the chain of calls that leads to the allocation, told apart by a hash of its return
// addresses. Other ways to get memory (mmap) are left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

enum { MOST_SITES = 1 << 16, DEPTH = 24 };

static long seen, fail_at, all;
static int counting;
static const char *sites_path, *spare;
static uint64_t site[MOST_SITES]; // hash of a place, 0: free
static long first[MOST_SITES];    // the sites' first allocations, in order
static long nfirst;

static int spared(void *caller) {
    Dl_info info;
    return spare && dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, spare);
}

static void note_site(void) {
    void *frame[DEPTH];
    counting = 0; // what finding the calls allocates is not the program's
    int n = backtrace(frame, DEPTH);
    counting = 1;
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < n; i++)
        hash = (hash ^ (uintptr_t)frame[i]) * 0x100000001b3u;
    hash |= 1;
    size_t slot = (size_t)(hash >> 40) % MOST_SITES;
    while (site[slot] && site[slot] != hash)
        slot = (slot + 1) % MOST_SITES;
    if (site[slot] || nfirst == MOST_SITES / 2) return;
    site[slot] = hash;
    first[nfirst++] = seen;
}

__attribute__((noinline)) static int fails(void *caller) {
    if (!counting) return 0;
    seen++;
    if (sites_path && !spared(caller)) note_site();
    if (fail_at == 0 || (all ? seen < fail_at : seen != fail_at)) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void **out, size_t alignment, size_t size) {
    if (fails(__builtin_return_address(0))) return ENOMEM;
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

static int (*real_main)(int, char **, char **);

static int counted_main(int argc, char **argv, char **env) {
    const char *at = getenv("FAIL_ALLOC_AT"), *every = getenv("FAIL_ALLOC_ALL");
    void *frame[1];
    spare = getenv("FAIL_ALLOC_SPARE");
    sites_path = getenv("FAIL_ALLOC_SITES");
    if (sites_path) backtrace(frame, 1); // loads the unwinder
    if (at) fail_at = strtol(at, NULL, 10);
    all = every && *every == '1';
    counting = 1;
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
    counting = 0;
    FILE *f = sites_path ? fopen(sites_path, "w") : NULL;
    if (!f) return;
    fprintf(f, "%ld\n", seen);
    for (long i = 0; i < nfirst; i++)
        fprintf(f, "%ld\n", first[i]);
    fclose(f);
}
