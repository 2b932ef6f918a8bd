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
    cr_assert_null(noise_summarise(expected_a, EXPECTED_N, true, EXPECTED_SEED, &s));
    cr_expect_eq(s.n, EXPECTED_N);
    for (int i = 0; i < NOISE_STATS; i++)
        expect_estimate(&s.stat[i], expected_summary[i]);
    for (int i = 0; i < NOISE_BINS; i++)
        cr_expect_eq(s.bin[i], (uint64_t)expected_bin[i], "bin %d", i);
}

Test(stats, ratios_and_shares_are_numpys) {
    struct noise_estimate mean, std, share;
    cr_assert_null(
        noise_ratios(expected_b, expected_a, EXPECTED_N, true, EXPECTED_SEED, &mean, &std));
    expect_estimate(&mean, expected_mean_ratio);
    expect_estimate(&std, expected_std_ratio);
    cr_assert_null(noise_share(expected_a, expected_b, EXPECTED_N, true, EXPECTED_SEED, &share));
    expect_estimate(&share, expected_share);
}

// In blocks: runs resemble the one before.
Test(stats, correlated_runs_are_resampled_in_blocks) {
    struct noise_summary s;
    cr_assert_null(noise_summarise(expected_c, EXPECTED_N, true, EXPECTED_SEED, &s));
    cr_expect_eq(s.block, expected_block_c);
    cr_expect(s.correlation > 0.7 && s.correlation < 0.9, "%g", s.correlation);
    for (int i = 0; i < NOISE_STATS; i++)
        expect_estimate(&s.stat[i], expected_summary_c[i]);
    struct noise_estimate mean, std, share;
    cr_assert_null(
        noise_ratios(expected_d, expected_c, EXPECTED_N, true, EXPECTED_SEED, &mean, &std));
    expect_estimate(&mean, expected_mean_ratio_c);
    expect_estimate(&std, expected_std_ratio_c);
    cr_assert_null(noise_share(expected_c, expected_d, EXPECTED_N, true, EXPECTED_SEED, &share));
    expect_estimate(&share, expected_share_c);
}

// The longer one, whichever it is.
Test(stats, two_sets_are_resampled_in_one_length) {
    struct noise_estimate mean, std, again, unused;
    cr_expect_neq(expected_block_c, expected_block_d);
    cr_assert_null(
        noise_ratios(expected_d, expected_c, EXPECTED_N, true, EXPECTED_SEED, &mean, &std));
    cr_assert_null(
        noise_ratios(expected_c, expected_d, EXPECTED_N, true, EXPECTED_SEED, &again, &unused));
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

// Twelve slow runs, twelve fast ones: what lags add nearly cancels, and the formula wants blocks
// without end.
Test(stats, blocks_have_a_greatest_length) {
    double t[100];
    for (int i = 0; i < 100; i++)
        t[i] = 1000 + i / 12 % 2;
    cr_expect_eq(noise_block(t, 100, NULL), 30, "3 sqrt(100), not %d",
                 (int)noise_block(t, 100, NULL));
    cr_expect_eq(noise_block(t, 9, NULL), 1);
    cr_expect_eq(noise_block(t, 1, NULL), 1);
}

// Every other run is slow: blocks would hold as many slow ones as fast ones, and all be alike.
Test(stats, runs_that_alternate_are_resampled_one_by_one) {
    double t[40], correlation;
    for (int i = 0; i < 40; i++)
        t[i] = 1000 + i % 2;
    cr_expect_eq(noise_block(t, 40, &correlation), 1);
    cr_expect(correlation < -0.97);
}

// Of 50 independent runs some seem to correlate. In blocks, intervals of those would be too narrow.
Test(stats, independent_runs_are_resampled_one_by_one) {
    struct noise_summary s, blocks;
    cr_assert_null(noise_summarise(expected_c, EXPECTED_N, false, EXPECTED_SEED, &s));
    cr_assert_null(noise_summarise(expected_c, EXPECTED_N, true, EXPECTED_SEED, &blocks));
    cr_expect_eq(s.block, 1);
    cr_expect(s.correlation > 0.7);
    const struct noise_estimate *one = &s.stat[NOISE_STAT_MEAN],
                                *other = &blocks.stat[NOISE_STAT_MEAN];
    cr_expect(one->hi - one->lo < (other->hi - other->lo) / 2);
    struct noise_estimate mean, std, wide;
    cr_assert_null(noise_ratios(expected_d, expected_c, EXPECTED_N, false, 0, &mean, &std));
    cr_assert_null(noise_ratios(expected_d, expected_c, EXPECTED_N, true, 0, &wide, &std));
    cr_expect(mean.hi - mean.lo < wide.hi - wide.lo);
    cr_assert_null(noise_share(expected_d, expected_c, EXPECTED_N, false, 0, &mean));
    cr_assert_null(noise_share(expected_d, expected_c, EXPECTED_N, true, 0, &wide));
    cr_expect_neq(mean.lo, wide.lo);
}

Test(stats, equal_times_have_no_spread) {
    double t[100];
    for (int i = 0; i < 100; i++)
        t[i] = 0.1 + 0.2; // no sum of these is exact
    struct noise_summary s;
    cr_assert_null(noise_summarise(t, 100, true, 1, &s));
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
    cr_assert_null(noise_ratios(t, t, 100, true, 1, &mean, &std));
    cr_expect_eq(std.value, 1);
    cr_expect_eq(mean.hi, 1);
    cr_assert_null(noise_share(t, t, 100, true, 1, &share));
    cr_expect_eq(share.value, 0);
}

Test(stats, one_run) {
    const double t = 7;
    struct noise_summary s;
    cr_assert_null(noise_summarise(&t, 1, true, 0, &s));
    cr_expect_eq(s.stat[NOISE_STAT_STD].value, 0);
    cr_expect_eq(s.stat[NOISE_STAT_P999].hi, 7);
    cr_expect_eq(s.stat[NOISE_STAT_MEAN].lo, 7);
}

Test(stats, a_ratio_to_nothing_is_infinite) {
    const double still[3] = {1, 1, 1}, moving[3] = {1, 2, 3};
    struct noise_estimate mean, std;
    cr_assert_null(noise_ratios(moving, still, 3, true, 0, &mean, &std));
    cr_expect(isinf(std.value));
    cr_expect_eq(mean.value, 2);
}

Test(stats, every_allocation_may_fail) {
    struct noise_summary s;
    struct noise_estimate e, f;
    npu_status st;
    for (size_t n = 1; n < 6; n++) {
        base_alloc_fail_at(n, 0);
        st = noise_summarise(expected_c, EXPECTED_N, true, 0, &s);
        base_alloc_fail_at(0, 0);
        cr_assert_eq(npu_status_code(st), NPU_NO_MEMORY);
        npu_status_free(st);
    }
    for (size_t n = 1; n < 3; n++) {
        base_alloc_fail_at(n, 0);
        st = noise_ratios(expected_a, expected_b, EXPECTED_N, true, 0, &e, &f);
        base_alloc_fail_at(0, 0);
        cr_assert_eq(npu_status_code(st), NPU_NO_MEMORY);
        npu_status_free(st);
        base_alloc_fail_at(n, 0);
        st = noise_share(expected_a, expected_b, EXPECTED_N, true, 0, &e);
        base_alloc_fail_at(0, 0);
        cr_assert_eq(npu_status_code(st), NPU_NO_MEMORY);
        npu_status_free(st);
    }
}
