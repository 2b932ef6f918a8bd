// SPDX-License-Identifier: Apache-2.0
//
// Values of hardware parameters: reading (exact decimal arithmetic: digits * 10^-places * unit must
// be an integer, so "1.2 GHz" is 1200 MHz and "1.0001 MHz" is refused) and printing.

#include "runtime/base/hw_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "isa/insn.h"
#include "runtime/base/hw_yaml.h"
#include "runtime/base/text.h"

// Units by kind; the first whose multiple a value is is the one that is printed.
struct unit {
    enum hw_unit kind;
    const char *name;
    int64_t scale;
};
static const struct unit units[] = {
    {HW_BYTES, "GiB", 1073741824},
    {HW_BYTES, "MiB", 1048576},
    {HW_BYTES, "KiB", 1024},
    {HW_BYTES, "B", 1},
    {HW_MHZ, "GHz", 1000},
    {HW_MHZ, "MHz", 1},
    {HW_PS, "us", 1000000},
    {HW_PS, "ns", 1000},
    {HW_PS, "ps", 1},
    {HW_CYCLES, "cycles", 1},
    {HW_BITS, "bits", 1},
    {HW_PERCENT, "%", 1},
};
enum { UNITS = (int)(sizeof units / sizeof units[0]) };

// What a value without a unit would be mistaken for is not guessed.
static bool needs_unit(enum hw_unit kind) {
    return kind == HW_BYTES || kind == HW_MHZ || kind == HW_PS;
}

static void accepted_units(enum hw_unit kind, struct str *out) {
    const char *sep = "";
    for (int i = UNITS - 1; i >= 0; i--) {
        if (units[i].kind != kind) continue;
        str_printf(out, "%s%s", sep, units[i].name);
        sep = ", ";
    }
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool multiply(int64_t *v, int64_t by) {
    if (*v > INT64_MAX / by) return false;
    *v *= by;
    return true;
}

// Digits and an optional fraction, without sign, exponent or leading zeros.
static const char *read_decimal(const char *p, int64_t *digits, int *places) {
    *digits = 0;
    *places = -1;
    if (!is_digit(*p) || (p[0] == '0' && is_digit(p[1]))) return NULL;
    for (; is_digit(*p) || (*p == '.' && *places < 0 && is_digit(p[1])); p++) {
        if (*p == '.') {
            *places = 0;
            continue;
        }
        if (*digits > (INT64_MAX - 9) / 10 || *places > 17) return NULL;
        *digits = *digits * 10 + (*p - '0');
        if (*places >= 0) ++*places;
    }
    if (*places < 0) *places = 0;
    return p;
}

static bool read_number(const struct hw_param_desc *p, const char *text, int64_t *out,
                        struct str *why) {
    int64_t v;
    int places;
    const char *end = read_decimal(text, &v, &places);
    if (!end) {
        str_printf(why, "'%s' is not a whole number (decimal, no sign, no leading zero)", text);
        return false;
    }
    while (*end == ' ')
        end++;
    int64_t scale = 1;
    if (*end) {
        const struct unit *u = NULL;
        for (int i = 0; i < UNITS && !u; i++)
            if (units[i].kind == p->unit && strcmp(units[i].name, end) == 0) u = &units[i];
        if (!u) {
            str_printf(why, "unit '%s' in '%s' does not fit", end, text);
            str_puts(why, p->unit == HW_COUNT || p->unit == HW_FLAG ? ": takes a number alone"
                                                                    : "; accepted: ");
            accepted_units(p->unit, why);
            return false;
        }
        scale = u->scale;
    } else if (needs_unit(p->unit)) {
        str_printf(why, "'%s' lacks its unit; accepted: ", text);
        accepted_units(p->unit, why);
        return false;
    }
    bool fits = multiply(&v, scale);
    for (int i = 0; i < places && fits; i++) {
        if (v % 10) {
            str_printf(why, "'%s' is not a whole number of ", text);
            str_puts(why, p->unit == HW_MHZ     ? "MHz"
                          : p->unit == HW_PS    ? "ps"
                          : p->unit == HW_BYTES ? "bytes"
                                                : "what is counted");
            return false;
        }
        v /= 10;
    }
    if (!fits || !hw_in_range(p, v)) {
        str_printf(why, "'%s' is out of range: ", text);
        hw_print_value(p, p->lo, why);
        str_puts(why, " to ");
        hw_print_value(p, p->hi, why);
        return false;
    }
    *out = v;
    return true;
}

bool hw_read_value(const struct hw_param_desc *p, const char *text, int64_t *out, struct str *why) {
    if (p->unit == HW_WORDS) {
        const int i = hw_word(p, text, strlen(text));
        *out = i;
        if (i < 0) str_printf(why, "'%s' is not one of %s", text, p->words);
        return i >= 0;
    }
    if (p->unit == HW_FLAG) {
        const bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
        *out = yes;
        if (yes || strcmp(text, "false") == 0 || strcmp(text, "0") == 0) return true;
        str_printf(why, "'%s' is neither true nor false", text);
        return false;
    }
    return read_number(p, text, out, why);
}

void hw_explain_unknown(const char *key, struct str *why) {
    const char *best = NULL;
    size_t distance = 0;
    for (int i = 0; i < hw_nparam; i++) {
        const char *dot = strchr(hw_params[i].key, '.') + 1;
        const size_t whole = text_edit_distance(key, hw_params[i].key);
        const size_t last = text_edit_distance(key, dot);
        const size_t n = whole < last ? whole : last;
        if (!best || n < distance) {
            best = hw_params[i].key;
            distance = n;
        }
    }
    str_printf(why, "there is no parameter '%s'", key);
    if (best && distance <= 1 + strlen(key) / 3) str_printf(why, "; did you mean '%s'?", best);
}

void hw_print_value(const struct hw_param_desc *p, int64_t value, struct str *out) {
    size_t len;
    const char *word = hw_word_text(p, value, &len);
    if (word) {
        str_append(out, word, len);
    } else if (p->unit == HW_FLAG) {
        str_puts(out, value ? "true" : "false");
    } else if (!needs_unit(p->unit)) {
        str_printf(out, "%" PRId64, value);
    } else {
        for (int i = 0; i < UNITS; i++) {
            if (units[i].kind != p->unit || value % units[i].scale != 0) continue;
            if (value == 0 && units[i].scale != 1) continue;
            str_printf(out, "%" PRId64 " %s", value / units[i].scale, units[i].name);
            return;
        }
    }
}

void hw_print_yaml(const struct hw *hw, struct str *out) {
    const char *group = NULL;
    for (int i = 0; i < hw_nparam; i++) {
        const struct hw_param_desc *p = &hw_params[i];
        const char *title = hw_group_title(p);
        const char *dot = strchr(p->key, '.');
        if (title != group) str_printf(out, "%.*s: # %s\n", (int)(dot - p->key), p->key, title);
        group = title;
        str_printf(out, "  %s: ", dot + 1);
        hw_print_value(p, hw_get(hw, p), out);
        str_putc(out, '\n');
    }
}

void hw_print_parameters(struct str *out) {
    const char *group = NULL;
    for (int i = 0; i < hw_nparam; i++) {
        const struct hw_param_desc *p = &hw_params[i];
        if (hw_group_title(p) != group) {
            group = hw_group_title(p);
            str_printf(out, "%s%s\n", i ? "\n" : "", group);
        }
        str_printf(out, "  %s", p->key);
        str_pad_to(out, 26);
        hw_print_value(p, p->def, out);
        str_pad_to(out, 40);
        if (p->words) {
            str_puts(out, p->words);
        } else if (p->unit == HW_FLAG) {
            str_puts(out, "true|false");
        } else {
            hw_print_value(p, p->lo, out);
            str_puts(out, "..");
            hw_print_value(p, p->hi, out);
            if (p->unit == HW_CYCLES) str_puts(out, " cycles");
            if (p->unit == HW_BITS) str_puts(out, " bits");
        }
        str_pad_to(out, 66);
        str_printf(out, "%s  %s\n", p->cls == HW_PROGRAM ? "program" : "timing ", p->doc);
    }
}

int hw_diff(const struct hw *a, const struct hw *b, unsigned classes, struct str *out) {
    int n = 0;
    for (int i = 0; i < hw_nparam; i++) {
        const struct hw_param_desc *p = &hw_params[i];
        if (!(classes >> p->cls & 1) || hw_get(a, p) == hw_get(b, p)) continue;
        str_printf(out, "%s: ", p->key);
        hw_print_value(p, hw_get(a, p), out);
        str_puts(out, ", not ");
        hw_print_value(p, hw_get(b, p), out);
        str_putc(out, '\n');
        n++;
    }
    return n;
}

static void rate_row(struct str *out, const char *what, double value, const char *unit) {
    char text[TEXT_NUMBER_BYTES];
    (void)snprintf(text, sizeof text, "%.4g", value);
    str_puts(out, what);
    str_pad_to(out, 32);
    str_printf(out, "%s %s\n", text, unit);
}

void hw_print_derived(const struct hw *hw, struct str *out) {
    static const struct {
        int dtype;
        const char *unit;
    } rows[] = {{2, "TFLOPS"}, {1, "TFLOPS"}, {9, "TOPS"}, {8, "TOPS"}, {4, "TFLOPS"}};
    char text[TEXT_NUMBER_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(text, sizeof text, "peak %s", isa_dtype_name(rows[i].dtype));
        rate_row(out, text, 2e-12 * hw_peak_macs_per_s(hw, rows[i].dtype), rows[i].unit);
    }
    rate_row(out, "vector", 1e-9 * (double)(hw->vec_lanes * hw->clock_npu_mhz) * 1e6,
             "G elements/s");
    rate_row(out, "special functions", 1e-9 * (double)(hw->vec_sf_lanes * hw->clock_npu_mhz) * 1e6,
             "G elements/s");
    str_printf(out, "scratchpad");
    str_pad_to(out, 32);
    str_printf(out, "%s, %" PRId64 " B/cycle\n", text_format_bytes(text, (uint64_t)hw->spm_bytes),
               hw_spm_bytes_per_cycle(hw));
    str_printf(out, "partial sums");
    str_pad_to(out, 32);
    str_printf(out, "%s, rows of %" PRId64 " B\n",
               text_format_bytes(text, (uint64_t)hw_psum_bytes(hw)), hw_psum_row_bytes(hw));
    const double link = (double)(hw->dma_engines * hw->dma_width_bytes * hw->clock_npu_mhz) * 1e6;
    rate_row(out, "DMA links", 1e-9 * link, "GB/s");
    if (hw->dram_standard == HW_IDEAL) {
        str_puts(out, "external memory");
        str_pad_to(out, 32);
        str_puts(out, "ideal: no latency, no limit\n");
        return;
    }
    rate_row(out, "external memory", 1e-9 * hw_dram_bytes_per_s(hw), "GB/s");
    rate_row(out, "external memory", hw_dram_bytes_per_cycle(hw), "B/cycle");
    rate_row(out, "ridge point f16", hw_ridge_macs_per_byte(hw, 2), "MAC/B");
    rate_row(out, "ridge point i8", hw_ridge_macs_per_byte(hw, 9), "MAC/B");
}
