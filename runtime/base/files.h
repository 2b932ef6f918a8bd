// SPDX-License-Identifier: Apache-2.0
//
// The files that one command reads and writes, so that none is written that has another use in it,
// and none is asked for that cannot be written:
//
//     struct files f;
//     files_init(&f, a);
//     files_add(&f, FILES_READ, "the program", "p.npu");
//     files_add(&f, FILES_WRITE, "--report", "r.json");
//     NPU_TRY(files_check(&f)); // before the first is read
//
// Two paths are the same file when device and inode are, or, where there is no file yet, their
// folder and name: links of both kinds and detours are seen through. What is no regular file
// (/dev/null, a terminal, a pipe) may have any number of uses.
#ifndef RUNTIME_BASE_FILES_H
#define RUNTIME_BASE_FILES_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"

enum files_use {
    FILES_READ,
    FILES_WRITE,  // a file that appears, or is replaced
    FILES_FOLDER, // a folder that is made unless it is there
    FILES_OLD,    // read: a value that a FILES_NEW may take the place of, as a stream's state does
    FILES_NEW,    // written, when all that is FILES_OLD has been read
};

struct files_item;

struct files {
    struct arena *arena;
    struct files_item *ptr; // in the order of their addition
    size_t len, cap;
    size_t checked; // so many of them
};

/// No files but standard output and error, where these are redirected to one. The arena is lent and
/// holds everything; there is nothing to free.
void files_init(struct files *f, struct arena *a);

/// Adds a use of a file. `what` is what messages call it, "--report" or "the program", and is lent.
void files_add(struct files *f, enum files_use use, const char *what, const char *path);

/// Adds, as read, what was mapped into an arena and is not there yet: files that other files name.
void files_add_mapped(struct files *f, const struct arena *mapped, const char *what);

/// Judges what was added since the last check: USAGE names both uses of a file that is written and
/// has another; then IO for what cannot be written. All faults are listed.
NPU_MUST_USE npu_status files_check(struct files *f);

#endif
