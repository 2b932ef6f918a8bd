// SPDX-License-Identifier: Apache-2.0
//
// Files as bytes: reading by mapping, writing all or nothing. Messages name the path.
#ifndef RUNTIME_BASE_FILE_H
#define RUNTIME_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

struct arena;

/// Bytes that somebody else owns.
struct span {
    const uint8_t *data; // may be NULL when size is 0
    size_t size;         // bytes
};

/// Maps a file read-only; what is not a regular file (a pipe) is read to its end. IO when it cannot
/// be read. Release with file_unmap. The file must not be truncated meanwhile.
NPU_MUST_USE npu_status file_map(const char *path, struct span *out);

/// Releases what file_map gave; an empty span is allowed.
void file_unmap(struct span bytes);

/// file_map, released together with the arena.
NPU_MUST_USE npu_status file_map_in(struct arena *a, const char *path, struct span *out);

/// A file that was mapped into an arena.
struct file_mapping {
    struct span bytes;
    const char *path;       // as it was asked for; NULL: could not be mapped
    uint64_t device, inode; // 0 for what is not a regular file
};

/// Walks the files that were mapped into an arena, the last first: from one (NULL: from the start)
/// to the next; NULL at the end.
const struct file_mapping *file_mapped_in(const struct arena *a, const struct file_mapping *after);

/// A file being written. Until it is committed nothing stands under its name.
struct file_out;

/// Starts writing `path` into a temporary file next to it. What is no regular file (a terminal, a
/// pipe, /dev/null) is written directly; /dev/stdout and /dev/stderr go on where the program itself
/// prints, wherever that leads. End with file_out_commit or file_out_abort; what leaves by
/// longjmp or exit in between leaves the temporary file behind.
NPU_MUST_USE npu_status file_out_open(const char *path, struct file_out **out);

/// Appends bytes.
NPU_MUST_USE npu_status file_out_write(struct file_out *f, struct span bytes);

/// Whether bytes that were written can be written again: not in a pipe or terminal.
bool file_out_rewritable(const struct file_out *f);

/// Writes over bytes from `offset` on that were written before; what is appended stays at the end.
NPU_MUST_USE npu_status file_out_rewrite(struct file_out *f, uint64_t offset, struct span bytes);

/// Renames the temporary file to its name, or removes it when anything failed. Frees `f` either
/// way.
NPU_MUST_USE npu_status file_out_commit(struct file_out *f);

/// Removes the temporary file and frees `f`. NULL is allowed.
void file_out_abort(struct file_out *f);

/// Whether what is written goes straight to a path: standard output or error by name, or no regular
/// file.
bool file_is_direct(const char *path);

/// Fails as file_out_open would, and leaves nothing behind. What is no regular file is not opened.
NPU_MUST_USE npu_status file_out_check(const char *path);

/// Writes a whole file: complete under its name, or not at all.
NPU_MUST_USE npu_status file_write_atomic(const char *path, struct span bytes);

#endif
