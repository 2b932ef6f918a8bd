// SPDX-License-Identifier: Apache-2.0
//
// Tests of runtime/base/text.h.

#include "runtime/base/text.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

Test(text, integers) {
    int64_t i;
    uint64_t u;
    cr_expect(text_parse_i64("-9223372036854775808", &i) && i == INT64_MIN);
    cr_expect(text_parse_i64("9223372036854775807", &i) && i == INT64_MAX);
    cr_expect(text_parse_i64("+0x7f", &i) && i == 127);
    cr_expect(text_parse_i64("010", &i) && i == 10);
    cr_expect(text_parse_i64("1_000_000", &i) && i == 1000000);
    cr_expect(text_parse_u64("18446744073709551615", &u) && u == UINT64_MAX);
    static const char *const bad[] = {"",     "-",   "+",    "0x",
                                      "1.5",  "1 ",  " 1",   "a",
                                      "1__0", "_1",  "1_",   "0xg",
                                      "--1",  "1e3", "0x_1", "9223372036854775808"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        cr_expect_not(text_parse_i64(bad[k], &i), "'%s'", bad[k]);
    cr_expect_not(text_parse_u64("18446744073709551616", &u));
    cr_expect_not(text_parse_u64("-1", &u));
}

Test(text, numbers_are_correctly_rounded) {
    static const char *const good[] = {
        "0",
        "1",
        "-1.5",
        "0.1",
        "1e22",
        "1e23",
        "123456789012345678",
        "1.2e-5",
        ".5",
        "5.",
        "1e308",
        "1e-310",
        "1e999",
        "-1e-999",
        "9007199254740993",
        "0.3",
        "1234.5678e-30",
        "2.2250738585072014e-308",
        "3.14159265358979323846",
    };
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        double value, wanted = strtod(good[k], NULL);
        cr_assert(text_parse_f64(good[k], &value), "'%s'", good[k]);
        // Digits beyond 19 are dropped: within one unit in the last place.
        cr_expect(value == wanted || fabs(value - wanted) <= 2.3e-16 * fabs(wanted), "'%s'",
                  good[k]);
    }
    double value;
    cr_expect(text_parse_f64("-Inf", &value) && value < 0 && isinf(value));
    cr_expect(text_parse_f64("nan", &value) && isnan(value));
    static const char *const bad[] = {"", ".", "e5", "1e", "1e+", "0x10", "1,5", "1 ", "infx", "-"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        cr_expect_not(text_parse_f64(bad[k], &value), "'%s'", bad[k]);
}

static void expect_quantity(const char *text, const char *unit, double wanted) {
    double value = -1;
    npu_status st = text_parse_quantity(text, unit, &value);
    cr_expect_null(st, "%s", npu_status_message(st));
    cr_expect(value == wanted, "'%s' in %s gives %.17g, not %.17g", text, unit, value, wanted);
    npu_status_free(st);
}

Test(text, quantities) {
    expect_quantity("16 MiB", "bytes", 16777216);
    expect_quantity("16MiB", "bytes", 16777216);
    expect_quantity("4096", "bytes", 4096);
    expect_quantity("0x1000", "bytes", 4096);
    expect_quantity("0.5 KiB", "B", 512);
    expect_quantity("2 MiB", "KiB", 2048);
    expect_quantity("1.2 GHz", "MHz", 1200);
    expect_quantity("1200", "MHz", 1200);
    expect_quantity("0.1 us", "ns", 100);
    expect_quantity("1.25ns", "ps", 1250);
    expect_quantity("256 GB/s", "GB/s", 256);
    expect_quantity("256 GB/s", "B/s", 256e9);
    expect_quantity("16 TiB", "bytes", 17592186044416.0);
    expect_quantity("30 cycles", "cycles", 30);
    expect_quantity("30", "cycles", 30);
    expect_quantity("2 rows/cycle", "rows/cycle", 2);
    expect_quantity("-1.5", "", -1.5);
    expect_quantity("12 %", "%", 12);
}

Test(text, bad_quantities_say_what_is_accepted) {
    static const char *const bad[][2] = {
        {"16 Mib", "bytes"},   {"16 MHz", "bytes"}, {"x", "bytes"}, {"", "bytes"},
        {"5 lanes", "cycles"}, {"5 ", "cycles"},    {"5 x", ""},    {"1.2.3 GHz", "MHz"},
        {"1e", "MHz"},         {"0x10 MHz", "MHz"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        double value;
        npu_status st = text_parse_quantity(bad[k][0], bad[k][1], &value);
        cr_expect_eq(npu_status_code(st), NPU_BAD_INPUT, "'%s'", bad[k][0]);
        npu_status_free(st);
    }
    double value;
    npu_status st = text_parse_quantity("1 parsec", "MHz", &value);
    cr_expect_str_eq(
        npu_status_message(st),
        "'1 parsec': a number is expected, in MHz or with one of the units Hz kHz MHz GHz");
    npu_status_free(st);
}

Test(text, formats) {
    char t[TEXT_NUMBER_BYTES];
    cr_expect_str_eq(text_format_f64(t, 16), "16");
    cr_expect_str_eq(text_format_f64(t, 0.1), "0.1");
    cr_expect_str_eq(text_format_f64(t, 1e6), "1000000");
    cr_expect_str_eq(text_format_f64(t, 1.5e-7), "1.5e-07");
    cr_expect_str_eq(text_format_f64(t, 1.0 / 3), "0.3333333333333333");
    cr_expect_str_eq(text_format_f64(t, -(double)INFINITY), "-inf");
    cr_expect_str_eq(text_format_bytes(t, 0), "0 B");
    cr_expect_str_eq(text_format_bytes(t, 768), "768 B");
    cr_expect_str_eq(text_format_bytes(t, 1024), "1 KiB");
    cr_expect_str_eq(text_format_bytes(t, 1025), "1025 B");
    cr_expect_str_eq(text_format_bytes(t, 1536), "1.5 KiB");
    cr_expect_str_eq(text_format_bytes(t, 16777216), "16 MiB");
    cr_expect_str_eq(text_format_bytes(t, 1342177280), "1.25 GiB");
    cr_expect_str_eq(text_format_bytes(t, UINT64_MAX), "18446744073709551615 B");
}

Test(text, near_misses) {
    cr_expect_eq(text_edit_distance("kitten", "sitting"), 3);
    cr_expect_eq(text_edit_distance("ab", "ba"), 1);
    cr_expect_eq(text_edit_distance("", "abc"), 3);
    cr_expect_eq(text_edit_distance("Conv", "conv"), 0);
    char longer[100] = {0};
    memset(longer, 'x', 99);
    cr_expect_eq(text_edit_distance(longer, "x"), SIZE_MAX);
    static const char *const words[] = {"latency_cycles", "lanes", "clock_mhz"};
    cr_expect_str_eq(text_did_you_mean("latncy_cycles", words, 3), "latency_cycles");
    cr_expect_str_eq(text_did_you_mean("lane", words, 3), "lanes");
    cr_expect_null(text_did_you_mean("banks", words, 3));
}

Test(text, grouped_digits) {
    char text[TEXT_NUMBER_BYTES];
    cr_expect_str_eq(text_format_grouped(text, 0), "0");
    cr_expect_str_eq(text_format_grouped(text, 999), "999");
    cr_expect_str_eq(text_format_grouped(text, 1000), "1,000");
    cr_expect_str_eq(text_format_grouped(text, 1234567), "1,234,567");
    cr_expect_str_eq(text_format_grouped(text, UINT64_MAX), "18,446,744,073,709,551,615");
}
