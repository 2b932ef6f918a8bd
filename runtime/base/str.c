// SPDX-License-Identifier: Apache-2.0
//
// Growing text buffer: capacity doubles, so that n bytes cost O(n).

#include "runtime/base/str.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/arena.h"

// Makes room for `more` bytes and the NUL.
static bool reserve(struct str *s, size_t more) {
    if (s->failed) return false;
    if (more < s->cap && s->len < s->cap - more) return true;
    size_t cap = s->cap ? s->cap : 64;
    if (more >= SIZE_MAX / 4 || s->len >= SIZE_MAX / 4) {
        s->failed = true;
        return false;
    }
    while (cap <= s->len + more)
        cap *= 2;
    char *grown = base_realloc(s->data, cap);
    if (!grown) {
        s->failed = true;
        return false;
    }
    s->data = grown;
    s->cap = cap;
    s->data[s->len] = '\0';
    return true;
}

void str_append(struct str *s, const void *bytes, size_t size) {
    if (size == 0 || !reserve(s, size)) return;
    memcpy(s->data + s->len, bytes, size);
    s->len += size;
    s->data[s->len] = '\0';
}

void str_puts(struct str *s, const char *text) {
    str_append(s, text, strlen(text));
}

void str_putc(struct str *s, char c) {
    str_append(s, &c, 1);
}

void str_vprintf(struct str *s, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    size_t room = s->cap > s->len ? s->cap - s->len : 0;
    int length = vsnprintf(room ? s->data + s->len : NULL, room, format, again);
    va_end(again);
    if (s->failed || length < 0) {
        if (room) s->data[s->len] = '\0';
        s->failed = true;
        return;
    }
    if ((size_t)length >= room) { // did not fit: grow and print again
        if (room) s->data[s->len] = '\0';
        if (!reserve(s, (size_t)length)) return;
        (void)vsnprintf(s->data + s->len, s->cap - s->len, format, args);
    }
    s->len += (size_t)length;
}

void str_printf(struct str *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    str_vprintf(s, format, args);
    va_end(args);
}

void str_pad_to(struct str *s, size_t column) {
    size_t start = s->len;
    while (start > 0 && s->data[start - 1] != '\n')
        start--;
    do {
        str_putc(s, ' ');
    } while (!s->failed && s->len - start < column);
}

// Length in bytes of the valid UTF-8 sequence at `p` (which is NUL-terminated), 0 when it is not
// valid.
static size_t utf8_length(const unsigned char *p) {
    size_t n = p[0] < 0x80   ? 1
               : p[0] < 0xc2 ? 0
               : p[0] < 0xe0 ? 2
               : p[0] < 0xf0 ? 3
               : p[0] < 0xf5 ? 4
                             : 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (n == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0))) return 0;
    if (n == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))) return 0;
    return n;
}

void str_json(struct str *s, const char *text) {
    str_putc(s, '"');
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t n = utf8_length(p);
        if (n == 0) {
            str_puts(s, "\\ufffd");
            p++;
        } else if (*p == '"' || *p == '\\') {
            str_printf(s, "\\%c", *p++);
        } else if (*p == '\n') {
            str_puts(s, "\\n");
            p++;
        } else if (*p < 0x20 || *p == 0x7f) {
            str_printf(s, "\\u%04x", *p++);
        } else {
            str_append(s, p, n);
            p += n;
        }
    }
    str_putc(s, '"');
}

// Control characters, separators of lines, marks that turn the direction of writing.
static bool commands(unsigned code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069) || code == 0x200e || code == 0x200f || code == 0xfeff;
}

static unsigned code_of(const unsigned char *p, size_t n) {
    return n == 1   ? p[0]
           : n == 2 ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
           : n == 3 ? (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu)
                    : 0x10000; // whichever it is
}

size_t str_plain_char(const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    const size_t n = utf8_length(p);
    return n && !commands(code_of(p, n)) ? n : 0;
}

const char *str_shown_char(struct str *s, const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    const size_t n = utf8_length(p);
    if (str_plain_char(text))
        str_append(s, text, n);
    else if (*p == '\n' || *p == '\t' || *p == '\r')
        str_printf(s, "\\%c", *p == '\n' ? 'n' : *p == '\t' ? 't' : 'r');
    else if (n > 1)
        str_printf(s, "\\u%04x", code_of(p, n));
    else
        str_printf(s, "\\x%02x", *p);
    return text + (n ? n : 1);
}

void str_shown(struct str *s, const char *text) {
    while (*text)
        text = str_shown_char(s, text);
}

void str_shown_lines(struct str *s, const char *text) {
    while (*text) {
        if (strncmp(text, "\n  ", 3) == 0)
            str_putc(s, *text++);
        else
            text = str_shown_char(s, text);
    }
}

const char *str_text(const struct str *s) {
    return s->data ? s->data : "";
}

char *str_move(struct str *s, struct arena *a) {
    if (s->failed) {
        str_free(s);
        arena_out_of_memory(a);
    }
    char *text = arena_strndup(a, str_text(s), s->len);
    str_free(s);
    return text;
}

void str_clear(struct str *s) {
    s->len = 0;
    s->failed = false;
    if (s->data) s->data[0] = '\0';
}

void str_free(struct str *s) {
    base_free(s->data);
    *s = (struct str){0};
}

npu_status str_status(const struct str *s) {
    if (s->failed) return npu_fail(NO_MEMORY, "out of memory while printing");
    return NULL;
}
