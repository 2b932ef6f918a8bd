// SPDX-License-Identifier: Apache-2.0
//
// Numbers and near misses. A decimal number is kept as digits * 10^exponent, so that scaling by a
// unit rounds once. Units are rows: {name, kind, scale as numerator and power of ten}.

#include "runtime/base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int digit_value(char c) {
    if (is_digit(c)) return c - '0';
    c = lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

// Digits of a magnitude after the sign; false when there is none, another byte, or an overflow.
static bool parse_magnitude(const char *p, uint64_t *out) {
    uint64_t base = 10, value = 0;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        base = 16;
        p += 2;
    }
    if (*p == '_') return false;
    bool any = false;
    for (; *p; p++) {
        if (*p == '_' && any && p[1] && p[1] != '_') continue;
        int digit = digit_value(*p);
        if ((uint64_t)digit >= base) return false;
        if (value > (UINT64_MAX - (uint64_t)digit) / base) return false;
        value = value * base + (uint64_t)digit;
        any = true;
    }
    *out = value;
    return any;
}

bool text_parse_u64(const char *text, uint64_t *out) {
    return parse_magnitude(*text == '+' ? text + 1 : text, out);
}

bool text_parse_i64(const char *text, int64_t *out) {
    bool negative = *text == '-';
    uint64_t magnitude;
    if (!parse_magnitude(*text == '+' || *text == '-' ? text + 1 : text, &magnitude)) return false;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0)) return false;
    *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

// A decimal number as read: (digits, exact) * 10^exponent.
struct decimal {
    uint64_t digits;
    int exponent;
    bool negative, exact; // exact: no digit was dropped
};

// Reads a decimal number and returns where it ends; NULL when there is none.
static const char *scan_decimal(const char *p, struct decimal *d) {
    *d = (struct decimal){.exact = true};
    if (*p == '+' || *p == '-') d->negative = *p++ == '-';
    bool any = false, point = false;
    for (;; p++) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (*p == '_' && any && is_digit(p[1])) continue;
        if (!is_digit(*p)) break;
        any = true;
        if (d->digits <= (UINT64_MAX - 9) / 10) {
            d->digits = d->digits * 10 + (uint64_t)(*p - '0');
            d->exponent -= point;
        } else {
            d->exact = false;
            d->exponent += !point;
        }
    }
    if (!any) return NULL;
    if ((*p == 'e' || *p == 'E') &&
        (is_digit(p[1]) || ((p[1] == '-' || p[1] == '+') && is_digit(p[2])))) {
        bool down = p[1] == '-';
        p += is_digit(p[1]) ? 1 : 2;
        int e = 0;
        for (; is_digit(*p); p++)
            if (e < 100000) e = e * 10 + (*p - '0');
        d->exponent += down ? -e : e;
    }
    return p;
}

static double decimal_value(const struct decimal *d) {
    double value;
    if (d->exact && d->digits <= (uint64_t)1 << 53 && d->exponent >= -22 && d->exponent <= 0) {
        double divisor = 1; // exact up to 10^22, as the digits are: one rounding
        for (int e = d->exponent; e < 0; e++)
            divisor *= 10;
        value = (double)d->digits / divisor;
        return d->negative ? -value : value;
    }
    // The general case through strtod, on a copy that is only digits and exponent: no locale's
    // point.
    char copy[64];
    (void)snprintf(copy, sizeof copy, "%llue%d", (unsigned long long)d->digits, d->exponent);
    value = strtod(copy, NULL);
    return d->negative ? -value : value;
}

static bool word_is(const char *text, const char *word) {
    while (*text && lower(*text) == *word) {
        text++;
        word++;
    }
    return *text == '\0' && *word == '\0';
}

bool text_parse_f64(const char *text, double *out) {
    const char *bare = *text == '+' || *text == '-' ? text + 1 : text;
    if (word_is(bare, "inf") || word_is(bare, "infinity")) {
        *out = *text == '-' ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    if (word_is(bare, "nan")) {
        *out = (double)NAN;
        return true;
    }
    struct decimal d;
    const char *end = scan_decimal(text, &d);
    if (!end || *end) return false;
    *out = decimal_value(&d);
    return true;
}

enum kind { BYTES, BITS, FREQUENCY, TIME, VOLTAGE, POWER, ENERGY, RATE, PERCENT };

// One row per unit: scale = factor * 10^exponent of its kind's base unit.
static const struct unit {
    const char *name;
    enum kind kind;
    uint64_t factor;
    int exponent;
} units[] = {
    {"B", BYTES, 1, 0},
    {"bytes", BYTES, 1, 0},
    {"byte", BYTES, 1, 0},
    {"KB", BYTES, 1, 3},
    {"kB", BYTES, 1, 3},
    {"MB", BYTES, 1, 6},
    {"GB", BYTES, 1, 9},
    {"TB", BYTES, 1, 12},
    {"KiB", BYTES, 1u << 10, 0},
    {"MiB", BYTES, 1u << 20, 0},
    {"GiB", BYTES, 1u << 30, 0},
    {"TiB", BYTES, 1ull << 40, 0},
    {"bit", BITS, 1, 0},
    {"bits", BITS, 1, 0},
    {"kbit", BITS, 1, 3},
    {"Mbit", BITS, 1, 6},
    {"Gbit", BITS, 1, 9},
    {"Hz", FREQUENCY, 1, 0},
    {"kHz", FREQUENCY, 1, 3},
    {"MHz", FREQUENCY, 1, 6},
    {"GHz", FREQUENCY, 1, 9},
    {"s", TIME, 1, 0},
    {"ms", TIME, 1, -3},
    {"us", TIME, 1, -6},
    {"ns", TIME, 1, -9},
    {"ps", TIME, 1, -12},
    {"V", VOLTAGE, 1, 0},
    {"mV", VOLTAGE, 1, -3},
    {"W", POWER, 1, 0},
    {"mW", POWER, 1, -3},
    {"uW", POWER, 1, -6},
    {"J", ENERGY, 1, 0},
    {"mJ", ENERGY, 1, -3},
    {"uJ", ENERGY, 1, -6},
    {"nJ", ENERGY, 1, -9},
    {"pJ", ENERGY, 1, -12},
    {"fJ", ENERGY, 1, -15},
    {"B/s", RATE, 1, 0},
    {"KB/s", RATE, 1, 3},
    {"kB/s", RATE, 1, 3},
    {"MB/s", RATE, 1, 6},
    {"GB/s", RATE, 1, 9},
    {"TB/s", RATE, 1, 12},
    {"KiB/s", RATE, 1u << 10, 0},
    {"MiB/s", RATE, 1u << 20, 0},
    {"GiB/s", RATE, 1u << 30, 0},
    {"TiB/s", RATE, 1ull << 40, 0},
    {"%", PERCENT, 1, 0},
};
enum { UNIT_COUNT = sizeof units / sizeof *units };

static const struct unit *find_unit(const char *name) {
    for (size_t i = 0; i < UNIT_COUNT; i++)
        if (strcmp(units[i].name, name) == 0) return &units[i];
    return NULL;
}

static npu_status bad_quantity(const char *text, const char *unit) {
    const struct unit *known = find_unit(unit);
    if (!known) {
        if (!*unit) return npu_fail(BAD_INPUT, "'%s' is not a number", text);
        return npu_fail(BAD_INPUT, "'%s': a number is expected, alone or followed by '%s'", text,
                        unit);
    }
    struct str list = {0};
    for (size_t i = 0; i < UNIT_COUNT; i++)
        if (units[i].kind == known->kind)
            str_printf(&list, "%s%s", list.len ? " " : "", units[i].name);
    npu_status st =
        npu_fail(BAD_INPUT, "'%s': a number is expected, in %s or with one of the units %s", text,
                 unit, str_text(&list));
    str_free(&list);
    return st;
}

npu_status text_parse_quantity(const char *text, const char *unit, double *out) {
    uint64_t integer;
    if (text[0] == '0' && lower(text[1]) == 'x' && text_parse_u64(text, &integer)) {
        *out = (double)integer;
        return NULL;
    }
    struct decimal d;
    const char *p = scan_decimal(text, &d);
    if (!p) return bad_quantity(text, unit);
    const char *end = p;
    while (*p == ' ')
        p++;
    if (*p == '\0' && p == end) {
        *out = decimal_value(&d);
        return NULL;
    }
    const struct unit *to = find_unit(unit), *from = find_unit(p);
    if (!to && *unit && strcmp(p, unit) == 0) {
        *out = decimal_value(&d);
        return NULL;
    }
    if (!to || !from || to->kind != from->kind) return bad_quantity(text, unit);
    // digits * from.factor * 10^(exponent + from.exponent - to.exponent) / to.factor
    if (from->factor > 1 && d.digits > UINT64_MAX / from->factor) {
        *out = decimal_value(&d) * (double)from->factor;
    } else {
        d.digits *= from->factor;
        d.exponent += from->exponent - to->exponent;
        *out = decimal_value(&d);
        *out /= (double)to->factor;
        return NULL;
    }
    *out *= pow(10, from->exponent - to->exponent);
    *out /= (double)to->factor;
    return NULL;
}

char *text_format_f64(char *text, double value) {
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(text, TEXT_NUMBER_BYTES, "%.*g", digits, value);
        double back;
        if (text_parse_f64(text, &back) && (back == value || (back != back && value != value)))
            break;
    }
    // %g turns integers into exponents early: 1e+06 is 1000000 for people.
    if (value == value && fabs(value) < 1e15 && value == trunc(value))
        (void)snprintf(text, TEXT_NUMBER_BYTES, "%.0f", value);
    return text;
}

char *text_format_bytes(char *text, uint64_t bytes) {
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    for (int i = 6; i > 0; i--) {
        uint64_t unit = (uint64_t)1 << (10 * i);
        if (bytes < unit) continue;
        // Thousandths are exact when the remainder is a multiple of unit/8: .125, .25, .5 ...
        if (bytes % (unit / 8) != 0) continue;
        uint64_t eighths = bytes % unit / (unit / 8);
        static const char *const fraction[] = {"",   ".125", ".25", ".375",
                                               ".5", ".625", ".75", ".875"};
        (void)snprintf(text, TEXT_NUMBER_BYTES, "%llu%s %s", (unsigned long long)(bytes / unit),
                       fraction[eighths], names[i]);
        return text;
    }
    (void)snprintf(text, TEXT_NUMBER_BYTES, "%llu B", (unsigned long long)bytes);
    return text;
}

char *text_format_grouped(char *text, uint64_t n) {
    char digits[TEXT_NUMBER_BYTES];
    const int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    size_t at = 0;
    for (int i = 0; i < len; i++) { // at most 20 digits and 6 commas
        if (i && (len - i) % 3 == 0) text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}

enum { WORD_BYTES = 64 };

// Optimal string alignment over three rows of the table.
size_t text_edit_distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n > WORD_BYTES || m > WORD_BYTES) return SIZE_MAX;
    size_t rows[3][WORD_BYTES + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    memset(before, 0, sizeof rows[0]);
    for (size_t j = 0; j <= m; j++)
        last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = last[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
            if (last[j] + 1 < best) best = last[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]) && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[m];
}

const char *text_did_you_mean(const char *word, const char *const *words, size_t count) {
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t distance = text_edit_distance(word, words[i]);
        size_t limit = strlen(words[i]) / 3;
        if (distance > limit || distance >= best_distance) continue;
        best = words[i];
        best_distance = distance;
    }
    return best;
}
