// SPDX-License-Identifier: Apache-2.0
//
// Growing text buffer for everything that prints. A zero-initialised one is empty and ready:
//
//     struct str s = {0};
//     str_printf(&s, "%d nodes\n", n);
//     fputs(str_text(&s), stdout);
//     str_free(&s);
//
// Invariants: data == NULL (nothing stored) or data[len] == '\0' and len < cap. Once out of memory
// `failed` is set, the text stays as it was, and further output is dropped; check it before use.
#ifndef RUNTIME_BASE_STR_H
#define RUNTIME_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/status.h"

struct arena;

struct str {
    char *data; // NUL-terminated, or NULL when nothing was ever stored
    size_t len; // bytes, the NUL not counted
    size_t cap; // bytes allocated
    bool failed;
};

/// Appends formatted text.
void str_printf(struct str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/// Appends formatted text.
void str_vprintf(struct str *s, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/// Appends a NUL-terminated string.
void str_puts(struct str *s, const char *text);

/// Appends `size` bytes; they may contain NUL.
void str_append(struct str *s, const void *bytes, size_t size);

/// Appends one byte.
void str_putc(struct str *s, char c);

/// Appends blanks until the current line is `column` bytes long (at least one blank when it already
/// is longer): columns of a table.
void str_pad_to(struct str *s, size_t column);

/// Appends text as a JSON string with its quotes; bytes that are not valid UTF-8 become U+FFFD.
void str_json(struct str *s, const char *text);

/// Appends text for a terminal: a name from a file must neither command it nor break a line.
/// Control characters, those that turn the direction of writing and bytes that are not valid UTF-8
/// become \n, \t, \r, \xNN, \uNNNN.
void str_shown(struct str *s, const char *text);

/// The same for a text of ours in which such names stand: line feeds before two blanks stay.
void str_shown_lines(struct str *s, const char *text);

/// Appends the character at `text`, which must not be empty, as str_shown does, and returns where
/// the next one is.
const char *str_shown_char(struct str *s, const char *text);

/// Bytes of the character at `text` when it may be shown as it is, else 0.
size_t str_plain_char(const char *text);

/// The text; "" when nothing was stored. Valid until the next append.
const char *str_text(const struct str *s);

/// Copy of the text in the arena; frees the buffer. An append that was dropped counts as the arena
/// being out of memory.
char *str_move(struct str *s, struct arena *a);

/// Forgets the text, keeps the memory and clears `failed`.
void str_clear(struct str *s);

/// Releases the memory; the buffer is empty and ready again.
void str_free(struct str *s);

/// NO_MEMORY when an append was dropped.
NPU_MUST_USE npu_status str_status(const struct str *s);

#endif
