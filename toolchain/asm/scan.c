// SPDX-License-Identifier: Apache-2.0
//
// Scanner of one line of program text: words, numbers, strings, and key=value arguments.

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "isa/insn.h"
#include "toolchain/asm/internal.h"

enum { MAX_FAULTS = 20 };

void asm_fault(struct asm_state *s, const struct asm_line *line, const char *at, const char *format,
               ...) {
    if (s->faults.count >= MAX_FAULTS) return;
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    diag_fail(&s->faults, BAD_INPUT, "%s:%d:%d: %s", s->where, line->number,
              (int)(at - line->start) + 1, text);
}

void asm_blank(struct asm_line *line) {
    while (line->p < line->end && (*line->p == ' ' || *line->p == '\t' || *line->p == '\r'))
        line->p++;
}

bool asm_end(struct asm_state *s, struct asm_line *line) {
    asm_blank(line);
    if (line->p >= line->end) return true;
    asm_fault(s, line, line->p, "the end of the line is expected");
    return false;
}

bool asm_eat(struct asm_line *line, char c) {
    asm_blank(line);
    if (line->p >= line->end || *line->p != c) return false;
    line->p++;
    return true;
}

static bool word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

size_t asm_word(struct asm_line *line, const char **at) {
    asm_blank(line);
    *at = line->p;
    while (line->p < line->end && word_char(*line->p))
        line->p++;
    return (size_t)(line->p - *at);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

bool asm_u64(struct asm_state *s, struct asm_line *line, uint64_t *out) {
    const char *at;
    size_t n = asm_word(line, &at);
    uint64_t base = 10, v = 0;
    size_t i = 0;
    if (n > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) {
        base = 16;
        i = 2;
    }
    for (; i < n; i++) {
        const uint64_t digit = (uint64_t)hex_digit(at[i]);
        if (digit >= base || v > (UINT64_MAX - digit) / base) break;
        v = v * base + digit;
    }
    if (n == 0 || i < n) {
        asm_fault(s, line, at, "a number below 2^64 is expected");
        return false;
    }
    *out = v;
    return true;
}

bool asm_i64(struct asm_state *s, struct asm_line *line, int64_t *out) {
    asm_blank(line);
    const char *at = line->p;
    const bool negative = asm_eat(line, '-');
    uint64_t v;
    if (!asm_u64(s, line, &v)) return false;
    if (v > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        asm_fault(s, line, at, "a number between -2^63 and 2^63 - 1 is expected");
        return false;
    }
    *out = (int64_t)(negative ? 0 - v : v);
    return true;
}

// One character after a backslash; -1 when it is none of ours.
static int escape(struct asm_line *line) {
    if (line->p >= line->end) return -1;
    const char c = *line->p++;
    if (c == 'n') return '\n';
    if (c == 't') return '\t';
    if (c == 'r') return '\r';
    if (c == '"' || c == '\\') return c;
    if (c != 'x' || line->end - line->p < 2) return -1;
    const int high = hex_digit(line->p[0]), low = hex_digit(line->p[1]);
    if (high > 15 || low > 15 || high + low == 0) return -1;
    line->p += 2;
    return 16 * high + low;
}

bool asm_string(struct asm_state *s, struct asm_line *line, const char **out, size_t *len) {
    if (!asm_eat(line, '"')) {
        asm_fault(s, line, line->p, "a string in double quotes is expected");
        return false;
    }
    const char *start = line->p;
    char *text = arena_alloc(s->arena, (size_t)(line->end - line->p) + 1);
    size_t n = 0;
    while (line->p < line->end && *line->p != '"') {
        int c = (unsigned char)*line->p++;
        if (c == '\\') c = escape(line);
        if (c <= 0) {
            asm_fault(s, line, line->p, "in a string: \\n \\t \\r \\\" \\\\ \\xHH, and no NUL");
            return false;
        }
        text[n++] = (char)c;
    }
    if (line->p >= line->end) {
        asm_fault(s, line, start, "the string does not end in this line");
        return false;
    }
    line->p++;
    *out = text;
    if (len) *len = n;
    return true;
}

static bool address(struct asm_state *s, struct asm_line *line, uint64_t *out) {
    asm_blank(line);
    if (line->p < line->end && *line->p >= '0' && *line->p <= '9') return asm_u64(s, line, out);
    struct asm_fixup f = {.line = *line, .bytes = out};
    const char *at;
    const size_t n = asm_word(line, &at);
    if (n == 0) {
        asm_fault(s, line, at, "a label or a number of bytes is expected");
        return false;
    }
    f.line.end = line->p;
    VEC_PUSH(s->arena, &s->fixups, f);
    return true;
}

static bool u32(struct asm_state *s, struct asm_line *line, uint32_t *out) {
    uint64_t v;
    const char *at = line->p;
    if (!asm_u64(s, line, &v)) return false;
    if (v > UINT32_MAX) {
        asm_fault(s, line, at, "a number below 2^32 is expected");
        return false;
    }
    *out = (uint32_t)v;
    return true;
}

static bool dtype(struct asm_state *s, struct asm_line *line, int *out) {
    const char *at;
    const size_t n = asm_word(line, &at);
    char name[16] = {0};
    if (n < sizeof name) memcpy(name, at, n);
    *out = isa_dtype_parse(name);
    if (*out) return true;
    asm_fault(s, line, at, "an element type is expected: f32 f16 bf16 i8 i32 i64 ...");
    return false;
}

static bool texts(struct asm_state *s, struct asm_line *line, const struct asm_arg *arg) {
    VEC(const char *) list = {0};
    do {
        const char *text;
        if (!asm_string(s, line, &text, NULL)) return false;
        VEC_PUSH(s->arena, &list, text);
    } while (asm_eat(line, ','));
    *(const char *const **)arg->out = list.ptr;
    *arg->count = list.len;
    return true;
}

static bool u32s(struct asm_state *s, struct asm_line *line, const struct asm_arg *arg) {
    VEC(uint32_t) list = {0};
    do {
        uint32_t v;
        if (!u32(s, line, &v)) return false;
        VEC_PUSH(s->arena, &list, v);
    } while (asm_eat(line, ','));
    *(const uint32_t **)arg->out = list.ptr;
    *arg->count = list.len;
    return true;
}

static bool value(struct asm_state *s, struct asm_line *line, const struct asm_arg *arg) {
    switch (arg->type) {
    case ASM_U64: return asm_u64(s, line, arg->out);
    case ASM_U32: return u32(s, line, arg->out);
    case ASM_I64: return asm_i64(s, line, arg->out);
    case ASM_TEXT: return asm_string(s, line, arg->out, NULL);
    case ASM_DTYPE: return dtype(s, line, arg->out);
    case ASM_ADDRESS: return address(s, line, arg->out);
    case ASM_U32S: return u32s(s, line, arg);
    case ASM_TEXTS: return texts(s, line, arg);
    }
    return false;
}

bool asm_args(struct asm_state *s, struct asm_line *line, struct asm_arg *args, size_t nargs) {
    for (;;) {
        const char *at;
        const size_t n = asm_word(line, &at);
        if (n == 0) return asm_end(s, line);
        struct asm_arg *arg = NULL;
        for (size_t i = 0; i < nargs && !arg; i++)
            if (strlen(args[i].key) == n && memcmp(args[i].key, at, n) == 0) arg = &args[i];
        if (!arg || arg->given) {
            asm_fault(s, line, at, arg ? "'%.*s' is given twice" : "there is no argument '%.*s'",
                      (int)n, at);
            return false;
        }
        arg->given = true;
        if (line->p >= line->end || *line->p != '=') {
            asm_fault(s, line, line->p, "'=' is expected");
            return false;
        }
        line->p++;
        if (!value(s, line, arg)) return false;
    }
}
