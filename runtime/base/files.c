// SPDX-License-Identifier: Apache-2.0
//
// Every new file against all others: commands name few.

#define _XOPEN_SOURCE 700

#include "runtime/base/files.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/diag.h"
#include "runtime/base/file.h"
#include "runtime/base/vec.h"

// Either inode or name says which file it is; neither: what may have any number of uses.
struct files_item {
    enum files_use use;
    const char *what, *path; // path NULL: standard output or error
    uint64_t device, inode;  // of the file, 0: there is none yet
    const char *name;        // where it would be made, NULL: it is there
};

// realpath in the arena; NULL when it leads nowhere.
static const char *real_path(struct arena *a, const char *path) {
    char *real = realpath(path, NULL);
    if (!real && errno == ENOMEM) arena_out_of_memory(a);
    const char *copy = real ? arena_strdup(a, real) : NULL;
    free(real);
    return copy;
}

static const char *folder_of(struct arena *a, const char *path, const char **name) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    const char *trimmed = arena_strndup(a, path, end), *slash = strrchr(trimmed, '/');
    *name = slash ? slash + 1 : trimmed;
    return !slash             ? "."
           : slash == trimmed ? "/"
                              : arena_strndup(a, path, (size_t)(slash - trimmed));
}

// Where a file that is not there would be made; NULL when its folder is not there either.
static const char *new_name(struct arena *a, const char *path) {
    const char *name, *folder = real_path(a, folder_of(a, path, &name));
    return folder ? arena_printf(a, "%s/%s", folder, name) : NULL;
}

static void identify(struct files_item *i, const struct stat *info) {
    if (!S_ISREG(info->st_mode) && !S_ISDIR(info->st_mode)) return;
    i->device = (uint64_t)info->st_dev;
    i->inode = (uint64_t)info->st_ino;
}

static void add_redirected(struct files *f, int fd, const char *what) {
    struct stat info;
    struct files_item i = {.use = FILES_READ, .what = what};
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) identify(&i, &info);
    if (i.inode) VEC_PUSH(f->arena, f, i);
}

void files_init(struct files *f, struct arena *a) {
    *f = (struct files){.arena = a};
    add_redirected(f, STDOUT_FILENO, "standard output");
    add_redirected(f, STDERR_FILENO, "standard error");
}

static bool is_written(enum files_use use) {
    return use == FILES_WRITE || use == FILES_NEW;
}

void files_add(struct files *f, enum files_use use, const char *what, const char *path) {
    struct stat info;
    struct files_item i = {.use = use, .what = what, .path = arena_strdup(f->arena, path)};
    if (!is_written(use) || !file_is_direct(path)) {
        if (stat(path, &info) == 0)
            identify(&i, &info);
        else
            i.name = new_name(f->arena, path);
    }
    VEC_PUSH(f->arena, f, i);
}

static bool same(const struct files_item *a, const struct files_item *b) {
    if (a->inode || b->inode) return a->inode == b->inode && a->device == b->device;
    return a->name && b->name && strcmp(a->name, b->name) == 0;
}

static bool is_known(const struct files *f, const struct files_item *read) {
    for (size_t i = 0; i < f->len; i++)
        if (!is_written(f->ptr[i].use) && same(&f->ptr[i], read)) return true;
    return false;
}

void files_add_mapped(struct files *f, const struct arena *mapped, const char *what) {
    for (const struct file_mapping *m = file_mapped_in(mapped, NULL); m;
         m = file_mapped_in(mapped, m)) {
        const struct files_item i = {.use = FILES_READ,
                                     .what = what,
                                     .path = arena_strdup(f->arena, m->path),
                                     .device = m->device,
                                     .inode = m->inode};
        if (!is_known(f, &i)) VEC_PUSH(f->arena, f, i);
    }
}

static npu_status compare(const struct files_item *a, const struct files_item *b) {
    if ((!is_written(a->use) && !is_written(b->use)) || !same(a, b)) return NULL;
    if (a->use == FILES_OLD && b->use == FILES_NEW) return NULL;
    return npu_fail(USAGE,
                    "%s%s%s and %s%s%s are the same file; what is written needs a file of its own",
                    a->what, a->path ? " " : "", a->path ? a->path : "", b->what,
                    b->path ? " " : "", b->path ? b->path : "");
}

static npu_status writable(struct arena *a, const struct files_item *i) {
    struct stat info;
    if (i->use == FILES_READ || i->use == FILES_OLD) return NULL;
    if (is_written(i->use)) return npu_note(file_out_check(i->path), "%s %s", i->what, i->path);
    const char *name;
    const bool there = stat(i->path, &info) == 0;
    const int failure = there && !S_ISDIR(info.st_mode) ? ENOTDIR
                        : access(there ? i->path : folder_of(a, i->path, &name), W_OK | X_OK)
                            ? errno
                            : 0;
    return failure ? npu_fail(IO, "%s %s: %s", i->what, i->path, strerror(failure)) : NULL;
}

npu_status files_check(struct files *f) {
    struct diag d = {0};
    for (size_t i = f->checked; i < f->len; i++)
        for (size_t k = 0; k < i; k++)
            diag_add(&d, compare(&f->ptr[k], &f->ptr[i]));
    for (size_t i = f->checked; i < f->len && !d.count; i++)
        diag_add(&d, writable(f->arena, &f->ptr[i]));
    f->checked = f->len;
    return diag_finish(&d);
}
