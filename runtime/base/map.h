// SPDX-License-Identifier: Apache-2.0
//
// Map from strings to pointers in an arena. Walking it is in order of first insertion, so that
// nothing printed depends on hashing:
//
//     struct map m;
//     map_init(&m, a);
//     map_put(&m, name, node);
//     for (size_t i = 0; i < m.len; i++) visit(m.entries[i].key, m.entries[i].value);
//
// A key stays in the map once put; NULL as value means that the key is absent.
#ifndef RUNTIME_BASE_MAP_H
#define RUNTIME_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"

struct map_entry {
    const char *key; // copy in the arena
    size_t key_bytes;
    uint64_t hash;
    void *value; // not owned; NULL: absent
};

struct map {
    struct arena *arena;
    struct map_entry *entries; // len of them, in order of insertion
    size_t len, cap;
    uint32_t *slots; // index + 1 into entries, 0: free; open addressing, at most 1/2 full
    size_t slot_count;
};

/// Empty map. The arena is lent and holds everything; there is nothing to free.
void map_init(struct map *m, struct arena *a);

/// Sets the value of a key (copied) and returns the one before, NULL if there was none.
void *map_put(struct map *m, const char *key, void *value);

/// Value of a key; NULL when absent.
void *map_get(const struct map *m, const char *key);

/// The same for keys that are not NUL-terminated.
void *map_put_n(struct map *m, const char *key, size_t key_bytes, void *value);
void *map_get_n(const struct map *m, const char *key, size_t key_bytes);

#endif
