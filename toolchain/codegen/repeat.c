// SPDX-License-Identifier: Apache-2.0
// Repeats by a suffix array: places sorted by what stands there.
//
//   sort by doubling: places ordered by their first 1, 2, 4, ... symbols, each round by counting
//   sort over the ranks of the round before
//   shared length of neighbours (Kasai): from each place to the next it shrinks by one at most
//   runs of neighbours that share at least so much, with a stack: each is one repeat
#include "toolchain/codegen/repeat.h"

#include <string.h>

struct sorter {
    int n;
    int *sa, *rank, *next, *count;
};

static int rank_at(const struct sorter *s, int place) {
    return place < s->n ? s->rank[place] + 1 : 0; // the end is less than anything
}

// Stable sort of `from` by rank at place + offset.
static void counting_sort(struct sorter *s, const int *from, int *to, int offset) {
    memset(s->count, 0, ((size_t)s->n + 2) * sizeof *s->count);
    for (int i = 0; i < s->n; i++)
        s->count[rank_at(s, from[i] + offset) + 1]++;
    for (int i = 0; i <= s->n; i++)
        s->count[i + 1] += s->count[i];
    for (int i = 0; i < s->n; i++)
        to[s->count[rank_at(s, from[i] + offset)]++] = from[i];
}

static void sort_places(struct arena *a, const int *symbol, struct sorter *s) {
    int n = s->n, *temp = ARENA_ARRAY(a, int, (size_t)n + 1);
    s->sa = ARENA_ARRAY(a, int, (size_t)n + 1);
    s->rank = ARENA_ARRAY(a, int, (size_t)n + 1);
    s->next = ARENA_ARRAY(a, int, (size_t)n + 1);
    s->count = ARENA_ARRAY(a, int, (size_t)n + 3);
    for (int i = 0; i < n; i++) {
        s->rank[i] = symbol[i];
        temp[i] = i;
    }
    counting_sort(s, temp, s->sa, 0);
    for (int length = 1; length < n; length *= 2) {
        counting_sort(s, s->sa, temp, length);
        counting_sort(s, temp, s->sa, 0);
        int ranks = 0;
        for (int i = 0; i < n; i++) {
            int at = s->sa[i], before = i ? s->sa[i - 1] : at;
            if (i && (rank_at(s, at) != rank_at(s, before) ||
                      rank_at(s, at + length) != rank_at(s, before + length)))
                ranks++;
            s->next[at] = ranks;
        }
        memcpy(s->rank, s->next, (size_t)n * sizeof *s->rank);
        if (ranks == n - 1) break;
    }
}

// shared[i]: symbols that places sa[i - 1] and sa[i] share; 0 at both ends.
static int *shared_lengths(struct arena *a, const int *symbol, const struct sorter *s) {
    int n = s->n, *shared = ARENA_ARRAY(a, int, (size_t)n + 2), *where = s->next;
    for (int i = 0; i < n; i++)
        where[s->sa[i]] = i;
    for (int i = 0, h = 0; i < n; i++) {
        if (where[i] == 0) {
            h = 0;
            continue;
        }
        int j = s->sa[where[i] - 1];
        while (i + h < n && j + h < n && symbol[i + h] == symbol[j + h])
            h++;
        shared[where[i]] = h;
        if (h) h--;
    }
    return shared;
}

struct repeats repeats_find(struct arena *a, const int *symbol, int n, int shortest) {
    struct sorter s = {.n = n};
    sort_places(a, symbol, &s);
    const int *shared = shared_lengths(a, symbol, &s);
    struct repeats out = {.sa = s.sa, .at = ARENA_ARRAY(a, struct repeat, (size_t)n + 1)};
    struct repeat *stack = ARENA_ARRAY(a, struct repeat, (size_t)n + 1);
    int depth = 0;
    for (int i = 1; i <= n; i++) {
        int length = i < n ? shared[i] : 0, first = i - 1;
        while (depth && stack[depth - 1].length > length) {
            struct repeat r = stack[--depth];
            r.count = i - r.first;
            first = r.first;
            if (r.length >= shortest) out.at[out.n++] = r;
        }
        if (length && (!depth || stack[depth - 1].length < length))
            stack[depth++] = (struct repeat){.first = first, .length = length};
    }
    return out;
}
