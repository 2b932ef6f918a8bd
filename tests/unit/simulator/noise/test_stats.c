// SPDX-License-Identifier: Apache-2.0
//
// Statistics against numpy: expected_stats.h is written by make_expected.py, which draws the
// same resamples with a Philox of its own.
#include <criterion/criterion.h>
#include <math.h>

#include "runtime/base/alloc.h"
#include "simulator/noise/block.h"
#include "simulator/noise/stats.h"
#include "tests/unit/simulator/noise/expected_stats.h"

#define EXPECT_NEAR(got, want)                                                                  \
    cr_expect(fabs((got) - (want)) <= 1e-9 * (fabs(want) + 1), "got %.17g, numpy %.17g", (got), \
              (want))

static void expect_estimate(const struct noise_estimate *got, const double want[3]) {
    EXPECT_NEAR(got->value, want[0]);
    EXPECT_NEAR(got->lo, want[1]);
    EXPECT_NEAR(got->hi, want[2]);
}

Test(stats, summary_is_numpys) {
    struct noise_summary s;
    cr_assert_null(noise_summarise(expected_a, EXPECTED_N, EXPECTED_SEED, &s));
    cr_expect_eq(s.n, EXPECTED_N);
    for (int i = 0; i < NOISE_STATS; i++)
        expect_estimate(&s.stat[i], expected_summary[i]);
    for (int i = 0; i < NOISE_BINS; i++)
        cr_expect_eq(s.bin[i], (uint64_t)expected_bin[i], "bin %d", i);
}

Test(stats, ratios_and_shares_are_numpys) {
    struct noise_estimate mean, std, share;
    cr_assert_null(noise_ratios(expected_b, expected_a, EXPECTED_N, EXPECTED_SEED, &mean, &std));
    expect_estimate(&mean, expected_mean_ratio);
    expect_estimate(&std, expected_std_ratio);
    cr_assert_null(noise_share(expected_a, expected_b, EXPECTED_N, EXPECTED_SEED, &share));
    expect_estimate(&share, expected_share);
}

// In blocks: runs resemble the one before.
Test(stats, correlated_runs_are_resampled_in_blocks) {
    struct noise_summary s;
    cr_assert_null(noise_summarise(expected_c, EXPECTED_N, EXPECTED_SEED, &s));
    cr_expect_eq(s.block, expected_block_c);
    cr_expect(s.correlation > 0.7 && s.correlation < 0.9, "%g", s.correlation);
    for (int i = 0; i < NOISE_STATS; i++)
        expect_estimate(&s.stat[i], expected_summary_c[i]);
    struct noise_estimate mean, std, share;
    cr_assert_null(noise_ratios(expected_d, expected_c, EXPECTED_N, EXPECTED_SEED, &mean, &std));
    expect_estimate(&mean, expected_mean_ratio_c);
    expect_estimate(&std, expected_std_ratio_c);
    cr_assert_null(noise_share(expected_c, expected_d, EXPECTED_N, EXPECTED_SEED, &share));
    expect_estimate(&share, expected_share_c);
}

// The longer one, whichever it is.
Test(stats, two_sets_are_resampled_in_one_length) {
    struct noise_estimate mean, std, again, unused;
    cr_expect_neq(expected_block_c, expected_block_d);
    cr_assert_null(noise_ratios(expected_d, expected_c, EXPECTED_N, EXPECTED_SEED, &mean, &std));
    cr_assert_null(
        noise_ratios(expected_c, expected_d, EXPECTED_N, EXPECTED_SEED, &again, &unused));
    cr_expect_float_eq(1 / again.hi, mean.lo, 1e-6); // the same resamples, turned over
    cr_expect_float_eq(1 / again.lo, mean.hi, 1e-6);
}

Test(stats, block_lengths_are_numpys) {
    const double *at = expected_series;
    for (size_t i = 0; i < sizeof expected_length / sizeof *expected_length; i++) {
        cr_expect_eq(noise_block(at, expected_length[i].n, NULL), expected_length[i].block,
                     "phi %g, %d runs: %d, numpy %d", expected_length[i].phi,
                     (int)expected_length[i].n, (int)noise_block(at, expected_length[i].n, NULL),
                     (int)expected_length[i].block);
        at += expected_length[i].n;
    }
    cr_expect_eq(noise_block(expected_a, EXPECTED_N, NULL), 1);
    cr_expect_eq(noise_block(expected_b, EXPECTED_N, NULL), 1);
    cr_expect_eq(noise_block(expected_d, EXPECTED_N, NULL), expected_block_d);
}

// Every other run is slow: what lags add cancels, and the formula wants blocks without end.
Test(stats, blocks_have_a_greatest_length) {
    double t[40], correlation;
    for (int i = 0; i < 40; i++)
        t[i] = 1000 + i % 2;
    cr_expect_eq(noise_block(t, 40, &correlation), 14, "40 / 3, rounded up");
    cr_expect(correlation < -0.97);
    cr_expect_eq(noise_block(t, 9, NULL), 1);
    cr_expect_eq(noise_block(t, 1, NULL), 1);
}

Test(stats, equal_times_have_no_spread) {
    double t[100];
    for (int i = 0; i < 100; i++)
        t[i] = 0.1 + 0.2; // no sum of these is exact
    struct noise_summary s;
    cr_assert_null(noise_summarise(t, 100, 1, &s));
    for (int i = 0; i < NOISE_STATS; i++) {
        const bool spread = i == NOISE_STAT_STD || i == NOISE_STAT_CV;
        cr_expect_eq(s.stat[i].value, spread ? 0 : t[0]);
        cr_expect_eq(s.stat[i].lo, s.stat[i].value);
        cr_expect_eq(s.stat[i].hi, s.stat[i].value);
    }
    cr_expect_eq(s.bin[0], 100);
    cr_expect_eq(s.block, 1);
    cr_expect_eq(s.correlation, 0);
    struct noise_estimate mean, std, share;
    cr_assert_null(noise_ratios(t, t, 100, 1, &mean, &std));
    cr_expect_eq(std.value, 1);
    cr_expect_eq(mean.hi, 1);
    cr_assert_null(noise_share(t, t, 100, 1, &share));
    cr_expect_eq(share.value, 0);
}

Test(stats, one_run) {
    const double t = 7;
    struct noise_summary s;
    cr_assert_null(noise_summarise(&t, 1, 0, &s));
    cr_expect_eq(s.stat[NOISE_STAT_STD].value, 0);
    cr_expect_eq(s.stat[NOISE_STAT_P999].hi, 7);
    cr_expect_eq(s.stat[NOISE_STAT_MEAN].lo, 7);
}

Test(stats, a_ratio_to_nothing_is_infinite) {
    const double still[3] = {1, 1, 1}, moving[3] = {1, 2, 3};
    struct noise_estimate mean, std;
    cr_assert_null(noise_ratios(moving, still, 3, 0, &mean, &std));
    cr_expect(isinf(std.value));
    cr_expect_eq(mean.value, 2);
}

Test(stats, every_allocation_may_fail) {
    struct noise_summary s;
    struct noise_estimate e, f;
    npu_status st;
    for (size_t n = 1; n < 6; n++) {
        base_alloc_fail_at(n, 0);
        st = noise_summarise(expected_c, EXPECTED_N, 0, &s);
        base_alloc_fail_at(0, 0);
        cr_assert_eq(npu_status_code(st), NPU_NO_MEMORY);
        npu_status_free(st);
    }
    for (size_t n = 1; n < 3; n++) {
        base_alloc_fail_at(n, 0);
        st = noise_ratios(expected_a, expected_b, EXPECTED_N, 0, &e, &f);
        base_alloc_fail_at(0, 0);
        cr_assert_eq(npu_status_code(st), NPU_NO_MEMORY);
        npu_status_free(st);
        base_alloc_fail_at(n, 0);
        st = noise_share(expected_a, expected_b, EXPECTED_N, 0, &e);
        base_alloc_fail_at(0, 0);
        cr_assert_eq(npu_status_code(st), NPU_NO_MEMORY);
        npu_status_free(st);
    }
}
