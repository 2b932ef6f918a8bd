// SPDX-License-Identifier: Apache-2.0
// Stretches of a sequence of symbols that occur again.
#ifndef NPU_CODEGEN_REPEAT_H
#define NPU_CODEGEN_REPEAT_H

#include "runtime/base/arena.h"

// sa[first .. first + count) are the places where the same `length` symbols begin, in no order;
// `length` is the longest that all of them share.
struct repeat {
    int first, count, length;
};

struct repeats {
    int *sa; // every place of the sequence, by what stands there
    struct repeat *at;
    int n;
};

// All maximal repeats of at least `shortest` symbols. Symbols are 0 .. n - 1. Deterministic; time n
// log n. Everything lies in the arena.
struct repeats repeats_find(struct arena *a, const int *symbol, int n, int shortest);

#endif
