// SPDX-License-Identifier: Apache-2.0
//
// Insertion-ordered hash map: entries in an array, found through open addressing with linear
// probing over FNV-1a hashes.

#include "runtime/base/map.h"

#include <string.h>

#include "runtime/base/status.h"

static uint64_t hash_of(const char *key, size_t key_bytes) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < key_bytes; i++)
        h = (h ^ (unsigned char)key[i]) * 0x100000001b3u;
    return h ^ h >> 32;
}

void map_init(struct map *m, struct arena *a) {
    *m = (struct map){.arena = a};
}

// The slot that holds the key, or the free one where it would go. There is always a free one.
static size_t slot_of(const struct map *m, const char *key, size_t key_bytes, uint64_t hash) {
    size_t mask = m->slot_count - 1;
    size_t slot = (size_t)hash & mask;
    for (; m->slots[slot]; slot = (slot + 1) & mask) {
        const struct map_entry *e = &m->entries[m->slots[slot] - 1];
        if (e->hash == hash && e->key_bytes == key_bytes && memcmp(e->key, key, key_bytes) == 0)
            break;
    }
    return slot;
}

static void grow(struct map *m) {
    size_t count = m->slot_count ? m->slot_count * 2 : 16;
    NPU_ASSERT(m->len < UINT32_MAX / 2);
    struct map_entry *entries = ARENA_ARRAY(m->arena, struct map_entry, count / 2);
    if (m->len) memcpy(entries, m->entries, m->len * sizeof *entries);
    m->entries = entries;
    m->cap = count / 2;
    m->slots = ARENA_ARRAY(m->arena, uint32_t, count);
    m->slot_count = count;
    for (size_t i = 0; i < m->len; i++) {
        const struct map_entry *e = &m->entries[i];
        m->slots[slot_of(m, e->key, e->key_bytes, e->hash)] = (uint32_t)(i + 1);
    }
}

void *map_put_n(struct map *m, const char *key, size_t key_bytes, void *value) {
    uint64_t hash = hash_of(key, key_bytes);
    if (m->slot_count) {
        uint32_t found = m->slots[slot_of(m, key, key_bytes, hash)];
        if (found) {
            struct map_entry *e = &m->entries[found - 1];
            void *before = e->value;
            e->value = value;
            return before;
        }
    }
    if (m->len == m->cap) grow(m);
    size_t slot = slot_of(m, key, key_bytes, hash);
    m->entries[m->len++] =
        (struct map_entry){arena_strndup(m->arena, key, key_bytes), key_bytes, hash, value};
    m->slots[slot] = (uint32_t)m->len;
    return NULL;
}

void *map_get_n(const struct map *m, const char *key, size_t key_bytes) {
    if (!m->slot_count) return NULL;
    uint32_t found = m->slots[slot_of(m, key, key_bytes, hash_of(key, key_bytes))];
    return found ? m->entries[found - 1].value : NULL;
}

void *map_put(struct map *m, const char *key, void *value) {
    return map_put_n(m, key, strlen(key), value);
}

void *map_get(const struct map *m, const char *key) {
    return map_get_n(m, key, strlen(key));
}
