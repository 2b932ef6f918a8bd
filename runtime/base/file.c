// SPDX-License-Identifier: Apache-2.0
//
// Reading: mmap of a regular file; a pipe is read into an anonymous mapping, so that releasing is
// the same. Writing: a temporary file in the target's folder (after following links), renamed when
// complete.

#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE // MAP_ANONYMOUS

#include "runtime/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/arena.h"
#include "runtime/base/str.h"

static npu_status map_bytes(const char *path, int fd, size_t size, struct span *out) {
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE;
    int protection = fd < 0 ? PROT_READ | PROT_WRITE : PROT_READ;
    void *bytes = mmap(NULL, size, protection, flags, fd, 0);
    if (bytes == MAP_FAILED) {
        if (errno == ENOMEM) return npu_fail(NO_MEMORY, "%s: no room to map %zu bytes", path, size);
        return npu_fail(IO, "%s: cannot map: %s", path, strerror(errno));
    }
    *out = (struct span){bytes, size};
    return NULL;
}

static npu_status read_to_end(const char *path, int fd, struct span *out) {
    struct str all = {0};
    npu_status st = NULL;
    for (;;) {
        char buffer[16384];
        ssize_t n = read(fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) st = npu_fail(IO, "%s: %s", path, strerror(errno));
        if (n <= 0) break;
        str_append(&all, buffer, (size_t)n);
    }
    if (!st && all.failed) st = npu_fail(NO_MEMORY, "%s: no memory to read it", path);
    if (!st && all.len > 0) st = map_bytes(path, -1, all.len, out);
    if (!st && out->size > 0) {
        memcpy((void *)out->data, all.data, all.len);
        (void)mprotect((void *)out->data, all.len, PROT_READ);
    }
    str_free(&all);
    return st;
}

static npu_status map_file(const char *path, struct span *out, struct stat *info) {
    *out = (struct span){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return npu_fail(IO, "%s: %s", path, strerror(errno));
    npu_status st = NULL;
    if (fstat(fd, info) != 0) {
        st = npu_fail(IO, "%s: %s", path, strerror(errno));
    } else if (S_ISDIR(info->st_mode)) {
        st = npu_fail(IO, "%s: is a directory", path);
    } else if (!S_ISREG(info->st_mode)) {
        st = read_to_end(path, fd, out);
    } else if (info->st_size > 0) {
        st = map_bytes(path, fd, (size_t)info->st_size, out);
    }
    (void)close(fd);
    return st;
}

npu_status file_map(const char *path, struct span *out) {
    struct stat info;
    return map_file(path, out, &info);
}

void file_unmap(struct span bytes) {
    if (bytes.size > 0) (void)munmap((void *)bytes.data, bytes.size);
}

static void unmap_deferred(void *argument) {
    file_unmap(((struct file_mapping *)argument)->bytes);
}

npu_status file_map_in(struct arena *a, const char *path, struct span *out) {
    // First: what may jump away comes before the map.
    struct file_mapping *kept = ARENA_NEW(a, struct file_mapping);
    const char *copy = arena_strdup(a, path);
    struct stat info;
    arena_defer(a, unmap_deferred, kept);
    NPU_TRY(map_file(path, &kept->bytes, &info));
    kept->path = copy;
    if (S_ISREG(info.st_mode)) {
        kept->device = (uint64_t)info.st_dev;
        kept->inode = (uint64_t)info.st_ino;
    }
    *out = kept->bytes;
    return NULL;
}

const struct file_mapping *file_mapped_in(const struct arena *a, const struct file_mapping *after) {
    do
        after = arena_deferred(a, unmap_deferred, after);
    while (after && !after->path);
    return after;
}

struct file_out {
    int fd;
    bool failed;   // a write did; committing removes
    bool direct;   // not a regular file, or the program's own output: no temporary
    char *path;    // as the user wrote it, for messages
    char *target;  // links followed
    char *scratch; // the temporary file
};

static void free_out(struct file_out *f) {
    base_free(f->path);
    base_free(f->target);
    base_free(f->scratch);
    base_free(f);
}

static char *copy_with(const char *text, const char *suffix) {
    size_t n = strlen(text), m = strlen(suffix);
    char *copy = base_alloc(n + m + 1);
    if (copy) {
        memcpy(copy, text, n);
        memcpy(copy + n, suffix, m);
    }
    return copy;
}

// Descriptor that a path names, -1: none. Opening such a name again would start at its beginning,
// or replace the file that output was redirected to.
static int standard_descriptor(const char *path) {
    static const char *const names[][3] = {{"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"},
                                           {"/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"}};
    for (int fd = 1; fd <= 2; fd++)
        for (int i = 0; i < 3; i++)
            if (strcmp(path, names[fd - 1][i]) == 0) return fd;
    return -1;
}

bool file_is_direct(const char *path) {
    struct stat info;
    return standard_descriptor(path) >= 0 ||
           (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
}

// Opens what the file_out's paths name; errno tells why not.
static int open_target(struct file_out *f) {
    struct stat info;
    const int standard = standard_descriptor(f->path);
    if (standard >= 0) {
        f->direct = true;
        return fflush(stdout) == 0 ? dup(standard) : -1; // what was printed comes first
    }
    bool exists = stat(f->path, &info) == 0;
    if (!*f->path) return -1; // a temporary file could be made all the same; errno is of stat
    if (exists && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    f->direct = exists && !S_ISREG(info.st_mode);
    if (f->direct) return open(f->path, O_WRONLY | O_CLOEXEC);
    if (exists && access(f->path, W_OK) != 0) return -1; // a rename would not ask
    int fd = mkstemp(f->scratch);
    if (fd < 0) return -1;
    mode_t mask = umask(0);
    (void)umask(mask);
    (void)fchmod(fd, exists ? info.st_mode & 0777 : 0666 & ~mask);
    return fd;
}

npu_status file_out_open(const char *path, struct file_out **out) {
    *out = NULL;
    struct file_out *f = base_alloc(sizeof *f);
    if (!f) return npu_fail(NO_MEMORY, "%s: out of memory", path);
    errno = 0;
    char *real = realpath(path, NULL); // NULL when the file does not exist yet
    bool failed = !real && errno == ENOMEM;
    f->path = copy_with(path, "");
    f->target = copy_with(real ? real : path, "");
    f->scratch = copy_with(real ? real : path, ".XXXXXX");
    free(real);
    if (failed || !f->path || !f->target || !f->scratch) {
        free_out(f);
        return npu_fail(NO_MEMORY, "%s: out of memory", path);
    }
    f->fd = open_target(f);
    if (f->fd < 0) {
        npu_status st = npu_fail(IO, "%s: cannot write: %s", path, strerror(errno));
        free_out(f);
        return st;
    }
    *out = f;
    return NULL;
}

npu_status file_out_write(struct file_out *f, struct span bytes) {
    while (bytes.size > 0) {
        ssize_t n = write(f->fd, bytes.data, bytes.size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            f->failed = true;
            return npu_fail(IO, "%s: cannot write: %s", f->path, strerror(errno));
        }
        bytes.data += n;
        bytes.size -= (size_t)n;
    }
    return NULL;
}

bool file_out_rewritable(const struct file_out *f) {
    return !f->direct;
}

npu_status file_out_rewrite(struct file_out *f, uint64_t offset, struct span bytes) {
    while (bytes.size > 0) {
        ssize_t n = pwrite(f->fd, bytes.data, bytes.size, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            f->failed = true;
            return npu_fail(IO, "%s: cannot write: %s", f->path, strerror(errno));
        }
        bytes.data += n;
        bytes.size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return NULL;
}

void file_out_abort(struct file_out *f) {
    if (!f) return;
    if (f->fd >= 0) (void)close(f->fd);
    if (!f->direct) (void)unlink(f->scratch);
    free_out(f);
}

npu_status file_out_commit(struct file_out *f) {
    npu_status st = NULL;
    if (f->failed) st = npu_fail(IO, "%s: not written completely", f->path);
    int closed = close(f->fd);
    f->fd = -1;
    if (!st && closed != 0) st = npu_fail(IO, "%s: cannot write: %s", f->path, strerror(errno));
    if (!st && !f->direct && rename(f->scratch, f->target) != 0)
        st = npu_fail(IO, "%s: cannot rename %s to it: %s", f->path, f->scratch, strerror(errno));
    if (st) {
        file_out_abort(f);
    } else {
        free_out(f);
    }
    return st;
}

npu_status file_out_check(const char *path) {
    if (standard_descriptor(path) >= 0) return NULL;
    if (file_is_direct(path)) {
        if (access(path, W_OK) == 0) return NULL;
        return npu_fail(IO, "%s: cannot write: %s", path, strerror(errno));
    }
    struct file_out *f;
    NPU_TRY(file_out_open(path, &f));
    file_out_abort(f);
    return NULL;
}

npu_status file_write_atomic(const char *path, struct span bytes) {
    struct file_out *f;
    NPU_TRY(file_out_open(path, &f));
    npu_status st = file_out_write(f, bytes);
    if (st) {
        file_out_abort(f);
        return st;
    }
    return file_out_commit(f);
}
