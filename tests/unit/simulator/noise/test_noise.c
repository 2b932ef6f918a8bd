// SPDX-License-Identifier: Apache-2.0
//
// Words of the sources.
#include <criterion/criterion.h>
#include <string.h>

#include "simulator/noise/noise.h"

static unsigned parsed(const char *text) {
    unsigned sources = 99;
    npu_status st = noise_parse(text, &sources);
    cr_assert_null(st, "%s: %s", text, npu_status_message(st));
    return sources;
}

Test(noise, words) {
    char text[NOISE_TEXT_BYTES];
    cr_expect_eq(parsed("off"), NOISE_OFF);
    cr_expect_eq(parsed("all"), NOISE_ALL);
    cr_expect_eq(parsed("clock"), 1U << NOISE_CLOCK);
    cr_expect_eq(parsed("host,refresh"), 1U << NOISE_HOST | 1U << NOISE_REFRESH);
    cr_expect_str_eq(noise_text(parsed("host,refresh"), text), "refresh,host");
    cr_expect_str_eq(noise_text(NOISE_OFF, text), "off");
    cr_expect_str_eq(noise_text(NOISE_ALL, text), "refresh,contention,clock,host");
}

Test(noise, refuses_what_it_does_not_know) {
    static const char *const bad[] = {"",        "on",          "refresh,",   ",refresh",
                                      "Refresh", "refresh,off", "clock,all",  "refresh clock",
                                      "clock,,", "clock,clock", "refreshing", "refres"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned sources;
        npu_status st = noise_parse(bad[i], &sources);
        cr_assert_not_null(st, "'%s' was taken", bad[i]);
        cr_expect_eq(npu_status_code(st), NPU_USAGE);
        cr_expect(strstr(npu_status_message(st), "refresh,contention,clock,host"), "%s",
                  npu_status_message(st));
        npu_status_free(st);
    }
}
