// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/pt2: sizes that the export left open, and expressions of them.
#ifndef NPU_FRONTEND_PT2_SYMBOLS_H
#define NPU_FRONTEND_PT2_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/map.h"

// Sizes and what is computed from them stay below this in magnitude.
#define SYMBOL_LIMIT ((int64_t)1 << 48)

struct symbol {
    const char *name; // "s27"
    int64_t size;     // -1: open
    int64_t least, most;
    const char *from; // the option that fixed it
};

struct symbols {
    struct map table; // name -> struct symbol *
};

enum symbol_result {
    SYMBOL_KNOWN,
    SYMBOL_OPEN,   // a symbol in it has no size yet
    SYMBOL_STRANGE // not understood, or out of range
};

// The value of an expression as torch writes it: "Mul(Integer(2), Symbol('s27', positive=True,
// integer=True))" or "2*s27".
enum symbol_result symbol_eval(const struct symbols *s, const char *text, int64_t *out);

// The only open symbol that the expression has, NULL when there is none or more than one.
struct symbol *symbol_only(const struct symbols *s, const char *text);

#endif
