// SPDX-License-Identifier: Apache-2.0
//
// Growing array in an arena, typed by a macro. Zero-initialised is empty:
//
//     VEC(struct edge) edges = {0};
//     VEC_PUSH(a, &edges, (struct edge){from, to});
//     for (size_t i = 0; i < edges.len; i++) use(&edges.ptr[i]);
//
// Pushing may move the items: keep indices, not pointers. The old copy stays in the arena until
// that is reset, so n pushes hold at most 3n items. `v` is evaluated more than once.
#ifndef RUNTIME_BASE_VEC_H
#define RUNTIME_BASE_VEC_H

#include <stddef.h>
#include <string.h>

#include "runtime/base/arena.h"

/// Type of an array; give it a tag with VEC_TYPE when it crosses a function boundary.
#define VEC(type)        \
    struct {             \
        type *ptr;       \
        size_t len, cap; \
    }

/// VEC_TYPE(edges, struct edge); declares `struct edges`.
#define VEC_TYPE(tag, type) \
    struct tag {            \
        type *ptr;          \
        size_t len, cap;    \
    }

/// Room for `more` items beyond len.
#define VEC_RESERVE(a, v, more) \
    ((void)((v)->ptr = vec_grow((a), (v)->ptr, (v)->len, &(v)->cap, (more), sizeof *(v)->ptr)))

/// Appends one item; the item may be a compound literal.
#define VEC_PUSH(a, v, ...) \
    (VEC_RESERVE((a), (v), 1), (v)->ptr[(v)->len] = (__VA_ARGS__), (void)(v)->len++)

/// Appends `count` items from `items`, which must not point into the array itself.
#define VEC_EXTEND(a, v, items, count)                                                           \
    (VEC_RESERVE((a), (v), (count)),                                                             \
     (count) ? (void)memcpy((v)->ptr + (v)->len, (items), (count) * sizeof *(v)->ptr) : (void)0, \
     (void)((v)->len += (count)))

/// Appends a zeroed item and gives its address.
#define VEC_ADD(a, v) (VEC_RESERVE((a), (v), 1), &(v)->ptr[(v)->len++])

/// The last item, removed; the array must not be empty.
#define VEC_POP(v) ((v)->ptr[--(v)->len])

/// The last item as an lvalue; the array must not be empty.
#define VEC_LAST(v) ((v)->ptr[(v)->len - 1])

/// Behind the macros: the items, moved when they do not fit. Room beyond `len` is zero where it was
/// never used.
static inline void *vec_grow(struct arena *a, void *items, size_t len, size_t *cap, size_t more,
                             size_t item_bytes) {
    if (more <= *cap - len) return items;
    size_t wanted = *cap < 4 ? 8 : *cap * 2;
    if (wanted < len + more) wanted = len + more;
    if (wanted < more) wanted = SIZE_MAX; // overflow: refused by the arena
    void *grown = arena_alloc_array(a, wanted, item_bytes);
    if (len) memcpy(grown, items, len * item_bytes);
    *cap = wanted;
    return grown;
}

#endif
