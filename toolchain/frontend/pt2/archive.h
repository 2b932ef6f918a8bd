// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/pt2: the archive's entries as spans of the mapped file; deflated ones are
// unpacked.
#ifndef NPU_FRONTEND_PT2_ARCHIVE_H
#define NPU_FRONTEND_PT2_ARCHIVE_H

#include "runtime/base/arena.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "runtime/base/status.h"

struct archive_entry {
    const char *name; // below the root folder
    struct span data; // of a deflated entry its compressed bytes, until it is asked for
    uint64_t size;    // unpacked
    uint32_t crc;
    int method; // 0: stored
    bool encrypted;
    bool checked; // the checksum was right
};

struct archive {
    struct arena *arena;
    const char *path; // of the file; NULL for bytes in memory
    struct span bytes;
    const char *root;   // the one folder that all entries are in
    struct map entries; // name below the root -> struct archive_entry *
    bool trusting;      // checksums are not looked at
};

// Reads the directory. Every entry must lie within the bytes, under one folder and once. BAD_INPUT
// and UNSUPPORTED say which entry, or that this is no torch.export archive.
NPU_MUST_USE npu_status archive_open(struct archive *a, struct span bytes, const char *path,
                                     struct arena *arena);

// The bytes of an entry, its checksum compared on first use: in the map, or of a deflated entry in
// the arena. BAD_INPUT when it is not there or damaged, UNSUPPORTED when it is compressed
// otherwise.
NPU_MUST_USE npu_status archive_get(struct archive *a, const char *name, struct span *out);

// As archive_get; an entry of more than `limit` bytes is BAD_INPUT and is not unpacked.
NPU_MUST_USE npu_status archive_get_below(struct archive *a, const char *name, uint64_t limit,
                                          struct span *out);

// Where the bytes of an entry stand in the file; -1: it was unpacked.
int64_t archive_offset(const struct archive *a, struct span data);

#endif
