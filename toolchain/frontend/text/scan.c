// SPDX-License-Identifier: Apache-2.0
//
// Scanner of graph text: characters, words, numbers, lists, names, types.

#include "toolchain/frontend/text/scan.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/text.h"

enum { MAX_FAULTS = 20, MAX_NUMBER = 64 };

// ---- faults

struct text_place text_here(struct text_state *s) {
    text_blank(s);
    return (struct text_place){s->line, (int)(s->p - s->line_start) + 1};
}

static bool wanted(struct text_state *s) {
    bool first = !s->failed;
    s->failed = true;
    if (first && s->faults.count >= MAX_FAULTS) s->full = true;
    return first && !s->full;
}

bool text_fault(struct text_state *s, struct text_place at, const char *format, ...) {
    if (!wanted(s)) return false;
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    diag_fail(&s->faults, BAD_INPUT, "%s:%d:%d: %s", s->where, at.line, at.column, text);
    return false;
}

bool text_status(struct text_state *s, struct text_place at, npu_status status) {
    if (!status) return true;
    if (wanted(s)) {
        enum npu_code code = npu_status_code(status);
        diag_add(&s->faults, npu_fail_at(__FILE__, __LINE__, code, "%s:%d:%d: %s", s->where,
                                         at.line, at.column, npu_status_message(status)));
    }
    npu_status_free(status);
    return false;
}

static bool word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

static bool name_char(char c) {
    return word_char(c) || c == '/' || c == ':' || c == '-';
}

bool text_expected(struct text_state *s, const char *what) {
    struct text_place at = text_here(s);
    if (text_at_end(s)) return text_fault(s, at, "expected %s, found the end of the line", what);
    int len = 1;
    while (word_char(*s->p) && s->p + len < s->end && len < 40 && word_char(s->p[len]))
        len++;
    unsigned char c = (unsigned char)*s->p;
    if (c < 32 || c > 126)
        return text_fault(s, at, "expected %s, found the byte 0x%02x", what, (unsigned)c);
    return text_fault(s, at, "expected %s, found '%.*s'", what, len, s->p);
}

// ---- characters

static bool comment(const struct text_state *s) {
    return *s->p == '#' || (*s->p == '/' && s->end - s->p > 1 && s->p[1] == '/');
}

static void new_line(struct text_state *s) {
    s->p++;
    s->line++;
    s->line_start = s->p;
}

void text_blank(struct text_state *s) {
    while (s->p < s->end) {
        if (*s->p == ' ' || *s->p == '\t' || *s->p == '\r') {
            s->p++;
        } else if (*s->p == '\n' && s->depth > 0) {
            new_line(s);
        } else if (comment(s)) {
            while (s->p < s->end && *s->p != '\n')
                s->p++;
        } else {
            return;
        }
    }
}

bool text_at_end(struct text_state *s) {
    text_blank(s);
    return s->p >= s->end || *s->p == '\n';
}

char text_peek(struct text_state *s) {
    return text_at_end(s) ? 0 : *s->p;
}

bool text_eat(struct text_state *s, char c) {
    if (text_peek(s) != c) return false;
    s->p++;
    return true;
}

bool text_need(struct text_state *s, char c) {
    char what[4] = {'\'', c, '\'', 0};
    return text_eat(s, c) || text_expected(s, what);
}

bool text_open(struct text_state *s, char c) {
    if (!text_need(s, c)) return false;
    s->depth++;
    return true;
}

bool text_close(struct text_state *s, char c) {
    if (!text_eat(s, c)) return false;
    s->depth--;
    return true;
}

void text_next_line(struct text_state *s) {
    s->depth = 0;
    while (s->p < s->end && *s->p != '\n')
        s->p++;
    if (s->p < s->end) new_line(s);
}

// ---- words

const char *text_word(struct text_state *s) {
    text_blank(s);
    const char *start = s->p;
    while (s->p < s->end && word_char(*s->p))
        s->p++;
    return s->p == start ? NULL : arena_strndup(s->arena, start, (size_t)(s->p - start));
}

bool text_read_word(struct text_state *s, const char *what, const char **out) {
    *out = text_word(s);
    return *out || text_expected(s, what);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 16;
}

// Behind a backslash: the byte, or -1.
static int escaped(struct text_state *s) {
    if (s->end - s->p < 3 || s->p[0] != 'x') return -1;
    int high = hex_digit(s->p[1]), low = hex_digit(s->p[2]);
    if (high > 15 || low > 15 || high + low == 0) return -1;
    s->p += 3;
    return 16 * high + low;
}

bool text_read_string(struct text_state *s, const char **out) {
    if (text_peek(s) != '"') return text_expected(s, "text in double quotes");
    struct text_place start = text_here(s);
    const char *at = ++s->p;
    while (at < s->end && *at != '"' && *at != '\n')
        at++;
    if (at >= s->end || *at != '"')
        return text_fault(s, start, "text in quotes that does not end in its line");
    char *text = arena_alloc(s->arena, (size_t)(at - s->p) + 1);
    size_t n = 0;
    while (*s->p != '"') {
        struct text_place here = {s->line, (int)(s->p - s->line_start) + 1};
        int c = (unsigned char)*s->p++;
        if (c == '\\') c = escaped(s);
        if (c <= 0)
            return text_fault(s, here, "in quotes a byte other than 0 or \\xHH is expected");
        text[n++] = (char)c;
    }
    s->p++;
    *out = text;
    return true;
}

bool text_read_name(struct text_state *s, const char **out) {
    if (text_peek(s) != '%') return text_expected(s, "a value's name, %NAME");
    s->p++;
    if (s->p < s->end && *s->p == '"') {
        struct text_place at = text_here(s);
        if (!text_read_string(s, out)) return false;
        return **out || text_fault(s, at, "a name that is empty");
    }
    const char *start = s->p;
    while (s->p < s->end && name_char(*s->p))
        s->p++;
    if (s->p == start)
        return text_expected(s, "a name of letters, digits and _./:-, or one in quotes");
    *out = arena_strndup(s->arena, start, (size_t)(s->p - start));
    return true;
}

bool text_read_dtype(struct text_state *s, enum isa_dtype *out) {
    struct text_place at = text_here(s);
    const char *word;
    if (!text_read_word(s, "a type as f32", &word)) return false;
    *out = (enum isa_dtype)isa_dtype_parse(word);
    if (*out != ISA_DTYPE_NONE) return true;
    return text_fault(s, at,
                      "'%.40s' is no type; there are f32 f16 bf16 f8e4m3 f8e5m2 f64 i4 i8 i16 i32 "
                      "i64 u4 u8 u16 u32 u64 bool",
                      word);
}

// ---- numbers

// The characters of a number as a string; 0: there are none, or too many.
static size_t digits(struct text_state *s, char text[MAX_NUMBER]) {
    text_blank(s);
    size_t n = 0;
    while (s->p + n < s->end && n < MAX_NUMBER - 1) {
        char c = s->p[n];
        bool sign = (c == '-' || c == '+') && (n == 0 || text[n - 1] == 'e' || text[n - 1] == 'E');
        if (!sign && !word_char(c)) break;
        text[n++] = c;
    }
    text[n] = 0;
    return n == MAX_NUMBER - 1 ? 0 : n;
}

bool text_read_int(struct text_state *s, int64_t lo, int64_t hi, int64_t *out) {
    char text[MAX_NUMBER];
    size_t n = digits(s, text);
    int64_t v = 0;
    if (n && text_parse_i64(text, &v) && v >= lo && v <= hi) {
        s->p += n;
        *out = v;
        return true;
    }
    return text_fault(s, text_here(s), "expected an integer from %lld to %lld, found '%s'",
                      (long long)lo, (long long)hi, text);
}

bool text_read_u64(struct text_state *s, uint64_t *out) {
    char text[MAX_NUMBER];
    size_t n = digits(s, text);
    if (n && text_parse_u64(text, out)) {
        s->p += n;
        return true;
    }
    return text_fault(s, text_here(s), "expected an integer from 0 to 2^64 - 1, found '%s'", text);
}

bool text_read_float(struct text_state *s, double *out) {
    char text[MAX_NUMBER];
    size_t n = digits(s, text);
    if (n && text_parse_f64(text, out)) {
        s->p += n;
        return true;
    }
    return text_fault(s, text_here(s), "expected a number, inf or nan, found '%s'", text);
}

const char *text_number(struct text_state *s) {
    char text[MAX_NUMBER];
    size_t n = digits(s, text);
    s->p += n;
    return n ? arena_strdup(s->arena, text) : NULL;
}

// ---- lists and types

bool text_read_ints(struct text_state *s, int *count, int64_t **out) {
    VEC(int64_t) items = {0};
    if (!text_open(s, '[')) return false;
    while (!text_close(s, ']')) {
        int64_t v = 0;
        if (items.len && !text_eat(s, ',')) return text_expected(s, "',' or ']'");
        if (!text_read_int(s, INT64_MIN, INT64_MAX, &v)) return false;
        VEC_PUSH(s->arena, &items, v);
    }
    *count = (int)items.len;
    *out = items.ptr;
    return true;
}

bool text_read_floats(struct text_state *s, int *count, double **out) {
    VEC(double) items = {0};
    if (!text_open(s, '[')) return false;
    while (!text_close(s, ']')) {
        double v = 0;
        if (items.len && !text_eat(s, ',')) return text_expected(s, "',' or ']'");
        if (!text_read_float(s, &v)) return false;
        VEC_PUSH(s->arena, &items, v);
    }
    *count = (int)items.len;
    *out = items.ptr;
    return true;
}

static bool read_dims(struct text_state *s, struct graph_value *out) {
    const int64_t most = (int64_t)1 << 43;
    struct text_place at = text_here(s);
    int64_t *dims = NULL, elems = 1;
    int rank = 0;
    if (text_peek(s) != '[') return text_expected(s, "dimensions as [2,3]; a scalar has []");
    if (!text_read_ints(s, &rank, &dims)) return false;
    if (rank > GRAPH_MAX_RANK)
        return text_fault(s, at, "%d dimensions, at most %d are possible", rank, GRAPH_MAX_RANK);
    for (int d = 0; d < rank; d++) {
        if (dims[d] < 0)
            return text_fault(s, at, "dimension %d is %lld, expected 0 or more", d,
                              (long long)dims[d]);
        if (dims[d] && elems > most / dims[d]) return text_fault(s, at, "more than 2^43 elements");
        elems *= dims[d] ? dims[d] : 1;
        out->dims[d] = dims[d];
    }
    out->rank = rank;
    return true;
}

bool text_read_type(struct text_state *s, struct graph_value *out) {
    *out = (struct graph_value){0};
    if (!text_read_dtype(s, &out->dtype) || !read_dims(s, out)) return false;
    text_blank(s);
    if (s->end - s->p < 6 || memcmp(s->p, "order=", 6) != 0) return true;
    s->p += 6;
    struct text_place at = text_here(s);
    int64_t *order = NULL;
    int n = 0;
    unsigned seen = 0;
    if (!text_read_ints(s, &n, &order)) return false;
    for (int k = 0; k < n && n == out->rank; k++) {
        if (order[k] < 0 || order[k] >= n) continue;
        seen |= 1u << order[k];
        out->order[k] = (int)order[k];
    }
    if (seen + 1 != 1u << out->rank)
        return text_fault(s, at, "order is no permutation of the dimensions 0 to %d",
                          out->rank - 1);
    out->has_order = true;
    return true;
}

// ---- names of values

bool text_find(struct text_state *s, struct text_place at, const char *name,
               struct graph_value **out) {
    const struct text_def *def = map_get(&s->defs, name);
    if (def) {
        *out = def->value;
        if (!def->value) s->failed = true;
        return def->value != NULL;
    }
    const char **known = ARENA_ARRAY(s->arena, const char *, s->defs.len + 1);
    for (size_t k = 0; k < s->defs.len; k++)
        known[k] = s->defs.entries[k].key;
    const char *near = text_did_you_mean(name, known, s->defs.len);
    if (near)
        return text_fault(s, at, "there is no value %%%.200s; did you mean %%%s?", name, near);
    return text_fault(s, at, "there is no value %%%.200s before this line", name);
}

bool text_is_new(struct text_state *s, struct text_place at, const char *name) {
    const struct text_def *def = map_get(&s->defs, name);
    return !def ||
           text_fault(s, at, "%%%.200s is defined again, first in line %d", name, def->line);
}

void text_define(struct text_state *s, struct text_place at, const char *name,
                 struct graph_value *value) {
    if (map_get(&s->defs, name)) return;
    struct text_def *def = ARENA_NEW(s->arena, struct text_def);
    *def = (struct text_def){value, at.line};
    map_put(&s->defs, name, def);
}
