// SPDX-License-Identifier: Apache-2.0
//
// Philox against the known answers published with Random123 (kat_vectors), and what keys promise.
#include <criterion/criterion.h>
#include <string.h>

#include "simulator/noise/philox.h"

Test(philox, known_answers) {
    // philox 4x32, 10 rounds: counter, key, result.
    static const uint32_t kat[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (size_t i = 0; i < sizeof kat / sizeof *kat; i++) {
        uint32_t out[4];
        philox4x32_10(kat[i], kat[i] + 4, out);
        cr_expect_arr_eq(out, kat[i] + 6, sizeof out, "vector %zu", i);
    }
}

// The layout of the key is part of what a seed means: these draws may not change.
Test(philox, draws_are_the_block_of_their_key) {
    const uint32_t key[2] = {0x89abcdef, 0x01234567};
    const uint32_t counter[4] = {0x76543210, 0x02fedcba, 5, 6};
    uint32_t out[4];
    philox4x32_10(counter, key, out);
    cr_expect_eq(noise_bits(UINT64_C(0x0123456789abcdef), UINT64_C(0x600000005), NOISE_CLOCK,
                            UINT64_C(0xfedcba76543210)),
                 (uint64_t)out[1] << 32 | out[0]);
    cr_expect_eq(noise_bits(0, 0, NOISE_REFRESH, 0), UINT64_C(0xe169c58d6627e8d5));
}

Test(philox, every_part_of_the_key_counts) {
    const uint64_t d = noise_bits(1, 2, NOISE_CLOCK, 3);
    cr_expect_neq(d, noise_bits(2, 2, NOISE_CLOCK, 3));
    cr_expect_neq(d, noise_bits(UINT64_C(1) << 32 | 1, 2, NOISE_CLOCK, 3));
    cr_expect_neq(d, noise_bits(1, 3, NOISE_CLOCK, 3));
    cr_expect_neq(d, noise_bits(1, UINT64_C(1) << 32 | 2, NOISE_CLOCK, 3));
    cr_expect_neq(d, noise_bits(1, 2, NOISE_HOST, 3));
    cr_expect_neq(d, noise_bits(1, 2, NOISE_CLOCK, 4));
    cr_expect_neq(d, noise_bits(1, 2, NOISE_CLOCK, UINT64_C(1) << 40 | 3));
    cr_expect_eq(d, noise_bits(1, 2, NOISE_CLOCK, 3));
}

Test(philox, uniform_has_the_moments_of_one) {
    enum { N = 100000, CELLS = 64 };
    double sum = 0, square = 0;
    int cell[CELLS] = {0};
    for (uint64_t i = 0; i < N; i++) {
        const double u = noise_uniform(42, i / 1000, NOISE_HOST, i % 1000);
        cr_assert(u > 0 && u < 1);
        sum += u;
        square += u * u;
        cell[(int)(u * CELLS)]++;
    }
    // Five standard errors: 5 / sqrt(12 N), and of the second moment 5 * sqrt(4 / 45 / N).
    cr_expect_float_eq(sum / N, 0.5, 0.0046);
    cr_expect_float_eq(square / N, 1.0 / 3, 0.0048);
    double chi = 0;
    for (int i = 0; i < CELLS; i++) {
        const double off = cell[i] - (double)N / CELLS;
        chi += off * off * CELLS / N;
    }
    cr_expect(chi > 30 && chi < 125, "chi squared of 63 degrees of freedom: %g", chi);
}

Test(philox, scaling_is_the_high_half) {
    cr_expect_eq(noise_scale(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
    cr_expect_eq(noise_scale(UINT64_MAX, 10), 9);
    cr_expect_eq(noise_scale(0, 10), 0);
    cr_expect_eq(noise_scale(UINT64_C(1) << 63, 10), 5);
    cr_expect_eq(noise_scale(UINT64_C(0xfedcba9876543210), UINT64_C(0x123456789abcdef)),
                 UINT64_C(0x121fa00ad77d742));
    for (uint64_t i = 0; i < 1000; i++)
        cr_assert_lt(noise_below(3, 0, NOISE_REFRESH, i, 7), 7);
}
