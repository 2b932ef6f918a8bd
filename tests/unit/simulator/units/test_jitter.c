// SPDX-License-Identifier: Apache-2.0
//
// What the sources do to a program that waits for memory: each alone changes cycles, none of them
// leaves them alone, and their means are those of closed forms.
#include <criterion/criterion.h>
#include <math.h>

#include "simulator/memory/dram.h"
#include "simulator/noise/stats.h"
#include "simulator/units/jitter.h"
#include "tests/unit/simulator/units/synth.h"

enum { RUNS = 100 };
static const struct synth_sync none;

struct bench {
    struct hw hw;
    struct synth s;
    struct units_machine *m;
    struct units_jitter j;
};

// Reads `copies` blocks of 64 KiB with all DMA engines.
static void init(struct bench *b, const struct hw *hw, int copies) {
    b->hw = *hw;
    synth_init(&b->s, hw);
    for (int i = 0; i < copies; i++)
        synth_copy(&b->s, ISA_ENGINE_DMA0 + i % (int)hw->dma_engines, false, i * 65536, 0, 1, 65536,
                   0, false, none);
    synth_cp(&b->s, ISA_OP_HALT);
    b->m = units_new(hw, b->s.p);
    cr_assert_not_null(b->m);
}

static void deinit(struct bench *b) {
    units_free(b->m);
    synth_deinit(&b->s);
}

static uint64_t cycles(struct bench *b, unsigned sources, uint64_t seed, struct noise_place at) {
    const struct noise noise = {sources, seed};
    struct units_options o = UNITS_OPTIONS_DEFAULT;
    struct units_result r;
    units_jitter(&b->j, &b->hw, &noise, &at, &o);
    units_reset(b->m);
    units_run(b->m, &o, &r);
    cr_assert_eq(r.end, UNITS_HALTED);
    return r.cycles;
}

static struct noise_summary spread(struct bench *b, unsigned sources) {
    double t[RUNS];
    struct noise_summary s;
    for (uint64_t i = 0; i < RUNS; i++)
        t[i] = (double)cycles(b, sources, 7, (struct noise_place){.run = i});
    cr_assert_null(noise_summarise(t, RUNS, false, 0, &s));
    return s;
}

static struct hw edge(void) {
    struct hw hw;
    hw_defaults(&hw);
    hw.clock_npu_mhz = 800;
    hw.dram_standard = HW_LPDDR4_2400; // 0.83 ns: no multiple of the NPU's 1.25
    hw.dram_channels = 4;
    hw.dram_channel_bits = 16;
    return hw;
}

Test(jitter, all_off_is_the_run_without) {
    const struct hw hw = edge();
    struct bench b;
    init(&b, &hw, 16);
    struct units_options o = UNITS_OPTIONS_DEFAULT;
    struct units_result r;
    units_run(b.m, &o, &r);
    const uint64_t quiet = r.cycles;
    const struct noise_summary s = spread(&b, NOISE_OFF);
    cr_expect_eq(s.stat[NOISE_STAT_STD].value, 0);
    cr_expect_eq(s.stat[NOISE_STAT_MAX].value, (double)quiet);
    cr_expect_eq(cycles(&b, 1U << NOISE_HOST, 1, (struct noise_place){0}),
                 quiet); // not of the device
    deinit(&b);
}

Test(jitter, each_source_alone_spreads_a_program_that_waits_for_memory) {
    const struct hw hw = edge();
    struct bench b;
    init(&b, &hw, 16);
    for (int i = 0; i < NOISE_HOST; i++) {
        const struct noise_summary s = spread(&b, 1U << i);
        cr_expect(s.stat[NOISE_STAT_STD].value > 0, "%s", noise_key((enum noise_source)i));
    }
    deinit(&b);
}

Test(jitter, keys_decide) {
    const struct hw hw = edge();
    struct bench b;
    init(&b, &hw, 16);
    const unsigned all = NOISE_ALL;
    const struct noise_place at = {.run = 5};
    const uint64_t one = cycles(&b, all, 1, at);
    cycles(&b, all, 1, (struct noise_place){.run = 6});
    cr_expect_eq(cycles(&b, all, 1, at), one); // whatever ran in between
    int other_seeds = 0, other_runs = 0, other_launches = 0;
    for (uint64_t i = 2; i < 10; i++) {
        other_seeds += cycles(&b, all, i, at) != one;
        other_runs += cycles(&b, all, 1, (struct noise_place){.run = 5 + i}) != one;
        other_launches += cycles(&b, all, 1, (struct noise_place){.run = 5, .launch = i}) != one;
    }
    cr_expect_geq(other_seeds, 6);
    cr_expect_geq(other_runs, 6);
    cr_expect_geq(other_launches, 6);
    deinit(&b);
}

// A stream on one channel loses tRFC of every tREFI: T / (1 - tRFC / tREFI) on average over phases.
Test(jitter, refresh_takes_its_share_on_average) {
    struct hw hw = edge();
    hw.dram_channels = 1;
    struct bench with, without;
    init(&with, &hw, 16); // 1 MiB at 4.8 GB/s: 218 us, 56 intervals
    hw.dram_refresh = 0;
    init(&without, &hw, 16);
    const double clear = (double)cycles(&without, 1U << NOISE_REFRESH, 7, (struct noise_place){0});
    const double loss = (double)dram_refresh_loss_ppm(&with.hw) * 1e-6;
    const struct noise_summary s = spread(&with, 1U << NOISE_REFRESH);
    const double expected = clear / (1 - loss), mean = s.stat[NOISE_STAT_MEAN].value;
    cr_expect(loss > 0.04);
    cr_expect(fabs(mean / expected - 1) < 0.01, "mean %f, derated %f, without refresh %f", mean,
              expected, clear);
    // Whoever starts just before a refresh has one more than who starts just behind one.
    const double range = s.stat[NOISE_STAT_MAX].value - s.stat[NOISE_STAT_MIN].value;
    cr_expect(range > 50 && range < 2 * 0.18 * 800, "%f cycles", range);
    deinit(&with);
    deinit(&without);
}

// Bank by bank the round is that of all banks, and whose turn is first is drawn too.
Test(jitter, refresh_by_bank_draws_the_bank) {
    struct hw hw = edge();
    hw.dram_refresh_mode = 1; // per_bank
    struct hw all = edge();
    cr_expect_eq(dram_refresh_round_ps(&hw), dram_refresh_round_ps(&all));
    struct bench b;
    init(&b, &hw, 16);
    cr_expect(spread(&b, 1U << NOISE_REFRESH).stat[NOISE_STAT_STD].value > 0);
    // Phases that differ by whole intervals differ in the bank alone.
    const uint64_t step = dram_refresh_round_ps(&hw) / 8;
    uint64_t phase[4], seen[8];
    int different = 0;
    for (uint64_t k = 0; k < 8; k++) {
        struct units_options o = UNITS_OPTIONS_DEFAULT;
        struct units_result r;
        for (int c = 0; c < 4; c++)
            phase[c] = 1000 + k * step;
        o.refresh_phase_ps = phase;
        units_reset(b.m);
        units_run(b.m, &o, &r);
        seen[k] = r.cycles;
        different += k && seen[k] != seen[0];
    }
    cr_expect_gt(different, 0);
    deinit(&b);
}

Test(jitter, more_traffic_takes_longer) {
    struct hw hw = edge();
    double before = 0;
    for (int percent = 0; percent <= 40; percent += 10) {
        hw.noise_traffic_percent = percent;
        hw.noise_traffic_burst_percent = 60;
        struct bench b;
        init(&b, &hw, 32);
        const double mean = spread(&b, 1U << NOISE_CONTENTION).stat[NOISE_STAT_MEAN].value;
        cr_expect(mean > before * (percent ? 1.05 : 1), "%d %%: %f after %f", percent, mean,
                  before);
        before = mean;
        deinit(&b);
    }
}

// A crossing costs every request less than a period, so a stream hardly notices, and a chain of
// dependent requests half a period each on average.
Test(jitter, the_crossing_costs_less_than_a_period_per_request) {
    struct hw hw = edge();
    hw.dram_refresh = 0;
    hw.dma_engines = 1;
    struct synth s;
    synth_init(&s, &hw);
    enum { CHAIN = 64 };
    for (int i = 0; i < CHAIN; i++)
        synth_copy(&s, ISA_ENGINE_DMA0, false, i * 65536, 0, 1, 64, 0, true, none);
    synth_cp(&s, ISA_OP_HALT);
    struct bench b = {.hw = hw, .s = s, .m = units_new(&hw, s.p)};
    const double quiet = (double)cycles(&b, NOISE_OFF, 0, (struct noise_place){0});
    const struct noise_summary n = spread(&b, 1U << NOISE_CLOCK);
    const double period = 0.83 * 0.8; // of the memory, in cycles of the NPU
    const double lost = n.stat[NOISE_STAT_MEAN].value - quiet;
    cr_expect(lost > 0 && lost < CHAIN * (period + 1), "%f cycles", lost);
    cr_expect(n.stat[NOISE_STAT_MIN].value >= quiet);
    deinit(&b);
}

Test(jitter, memory_without_time_has_none) {
    struct hw hw = edge();
    hw.dram_standard = HW_IDEAL;
    struct bench b;
    init(&b, &hw, 8);
    cr_expect_eq(spread(&b, NOISE_ALL).stat[NOISE_STAT_STD].value, 0);
    deinit(&b);
    hw = edge();
    hw.dram_fidelity = HW_FAST;
    init(&b, &hw, 8);
    cr_expect_eq(spread(&b, 1U << NOISE_REFRESH).stat[NOISE_STAT_STD].value, 0);
    cr_expect(spread(&b, 1U << NOISE_CONTENTION).stat[NOISE_STAT_STD].value > 0);
    deinit(&b);
}
