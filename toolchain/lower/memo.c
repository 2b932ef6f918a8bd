// SPDX-License-Identifier: Apache-2.0
// Choices that were made already: tile sizes by everything that their prices depend on. Layers that
// repeat are priced once.
#include "toolchain/lower/internal.h"

#include <string.h>

#define BUCKETS 256

struct entry {
    struct entry *next;
    uint64_t hash;
    const void *key;
    size_t bytes;
    void *choice;
};

struct lower_memo {
    struct arena *arena;
    struct entry *bucket[BUCKETS];
};

static uint64_t hash_of(const void *key, size_t bytes) {
    const uint8_t *p = key;
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}

struct lower_memo *lower_memo_new(struct arena *a) {
    struct lower_memo *m = ARENA_NEW(a, struct lower_memo);
    m->arena = a;
    return m;
}

void *lower_memo_at(const struct lower *L, const void *key, size_t key_bytes, size_t choice_bytes,
                    bool *known) {
    uint64_t h = hash_of(key, key_bytes);
    struct entry **at = &L->memo->bucket[h % BUCKETS];
    for (struct entry *e = *at; e; e = e->next) {
        if (e->hash != h || e->bytes != key_bytes || memcmp(e->key, key, key_bytes) != 0) continue;
        *known = true;
        return e->choice;
    }
    struct entry *e = ARENA_NEW(L->memo->arena, struct entry);
    *e = (struct entry){.next = *at,
                        .hash = h,
                        .key = arena_copy(L->memo->arena, key, key_bytes),
                        .bytes = key_bytes,
                        .choice = arena_alloc(L->memo->arena, choice_bytes)};
    *at = e;
    *known = false;
    return e->choice;
}
