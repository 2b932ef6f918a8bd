// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/text: the state of one reading and the scanner. A read_ function skips blanks,
// reads one thing and moves behind it; or it adds a fault, which is told at most once a statement,
// and returns false.
#ifndef NPU_FRONTEND_TEXT_SCAN_H
#define NPU_FRONTEND_TEXT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/diag.h"
#include "runtime/base/map.h"
#include "runtime/base/vec.h"
#include "toolchain/frontend/text/text_graph.h"

/// A value's name that was met: its value, or NULL when its statement was wrong.
struct text_def {
    struct graph_value *value;
    int line;
};

struct text_state {
    struct arena *arena;
    const char *where;
    const char *p, *end, *line_start;
    int line;
    int depth;   // open brackets: inside, the end of a line is a blank
    bool failed; // this statement has a fault: nothing more is said about it
    struct diag faults;
    bool full;        // as many faults as are shown
    struct graph *g;  // NULL before the graph line
    struct map defs;  // name -> struct text_def
    struct map files; // path -> struct span, mapped
};

/// A place in the text, for faults found later than read.
struct text_place {
    int line, column;
};
struct text_place text_here(struct text_state *s); // after blanks

/// Adds "WHERE:LINE:COLUMN: message" unless this statement already has a fault. False.
bool text_fault(struct text_state *s, struct text_place at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/// The same of a failed status, which is taken over; NULL: true.
bool text_status(struct text_state *s, struct text_place at, npu_status status);
/// "expected WHAT, found ...", at the next thing. False.
bool text_expected(struct text_state *s, const char *what);

/// Blanks and comments; ends of lines too when `depth` is not 0.
void text_blank(struct text_state *s);
/// At the end of the statement.
bool text_at_end(struct text_state *s);
/// The next character, 0 at the end of the statement.
char text_peek(struct text_state *s);
/// Moves over the character when it is the next.
bool text_eat(struct text_state *s, char c);
/// Moves over the character, or a fault: expected.
bool text_need(struct text_state *s, char c);
/// Opens or closes a bracket: as text_eat() and text_need().
bool text_open(struct text_state *s, char c);
bool text_close(struct text_state *s, char c);
/// Goes to the start of the next line.
void text_next_line(struct text_state *s);

/// Letters, digits, '_' and '.'; NULL, without a fault, when there are none.
const char *text_word(struct text_state *s);
/// A word, or a fault: expected `what`.
bool text_read_word(struct text_state *s, const char *what, const char **out);
/// Text in double quotes, "\xHH" for bytes but 0.
bool text_read_string(struct text_state *s, const char **out);
/// A value's name behind '%'.
bool text_read_name(struct text_state *s, const char **out);
/// An integer from lo to hi, decimal or 0x hexadecimal.
bool text_read_int(struct text_state *s, int64_t lo, int64_t hi, int64_t *out);
/// An integer up to 2^64 - 1.
bool text_read_u64(struct text_state *s, uint64_t *out);
/// A number, inf or nan.
bool text_read_float(struct text_state *s, double *out);
/// The characters of a number, to be parsed later; NULL, without a fault, when there are none.
const char *text_number(struct text_state *s);
/// A type's name.
bool text_read_dtype(struct text_state *s, enum isa_dtype *out);
/// "[2,3]", in the arena.
bool text_read_ints(struct text_state *s, int *count, int64_t **out);
bool text_read_floats(struct text_state *s, int *count, double **out);
/// TYPE: dtype, rank, dims and storage order of *out, the rest is zeroed. At most 2^43 elements.
bool text_read_type(struct text_state *s, struct graph_value *out);

/// The value of that name, or a fault; false without one when its own statement was wrong.
bool text_find(struct text_state *s, struct text_place at, const char *name,
               struct graph_value **out);
/// Refuses a name that exists.
bool text_is_new(struct text_state *s, struct text_place at, const char *name);
/// Notes a name; `value` NULL: its statement was wrong.
void text_define(struct text_state *s, struct text_place at, const char *name,
                 struct graph_value *value);

/// What stands behind "=" of a const line, for a value of this type: its data, and for .incbin
/// source and source_offset.
bool text_read_constant(struct text_state *s, struct graph_value *v);

/// A node line, its first '%' not yet read.
bool text_read_node(struct text_state *s);

#endif
