// SPDX-License-Identifier: Apache-2.0
//
// Phases and traffic have the distributions that they promise.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "simulator/noise/draw.h"

static const struct noise noise = {NOISE_ALL, 3};

Test(draw, phases_are_uniform) {
    enum { N = 20000, ROUND = 3900000 };
    double sum = 0;
    for (uint64_t run = 0; run < N / 2; run++) {
        uint64_t phase[2];
        noise_refresh(&noise, &(struct noise_place){.run = run}, ROUND, 2, phase);
        cr_assert(phase[0] < ROUND && phase[1] < ROUND);
        cr_expect_neq(phase[0], phase[1]);
        sum += (double)phase[0] + (double)phase[1];
    }
    // Five standard errors of a mean of N uniform numbers.
    cr_expect_float_eq(sum / N / ROUND, 0.5, 5 / sqrt(12.0 * N));
}

Test(draw, phases_go_on_from_launch_to_launch) {
    const uint64_t round = 3900;
    uint64_t first, later;
    noise_refresh(&noise, &(struct noise_place){.run = 9}, round, 1, &first);
    for (uint64_t start = 0; start < 3 * round; start += 7) {
        const struct noise_place at = {.run = 9, .launch = 4, .start_ps = start};
        noise_refresh(&noise, &at, round, 1, &later);
        cr_assert_lt(later, round);
        cr_assert_eq((start + later) % round, first);
        cr_assert_eq((start + noise_clock(&noise, &at, 830)) % 830,
                     noise_clock(&noise, &(struct noise_place){.run = 9}, 830));
    }
}

struct observed {
    double bytes, span_ps, bursts, requests, local, writes, silence, silence_square;
};

static struct observed watch(const struct hw *hw, uint64_t requests) {
    struct observed o = {.requests = (double)requests};
    struct noise_traffic t;
    struct noise_request r, last = {0};
    cr_assert_null(noise_check(hw));
    cr_assert(noise_traffic_begin(&t, hw, &noise, &(struct noise_place){.run = 1}));
    for (uint64_t i = 0; i < requests; i++) {
        noise_traffic_next(&t, &r);
        cr_assert_geq(r.at_ps, last.at_ps);
        cr_assert_leq(r.address + r.bytes, (uint64_t)hw->dram_bytes);
        cr_assert_eq(r.address % r.bytes, 0);
        const bool fresh = i && r.at_ps - last.at_ps > t.step_ps;
        if (fresh) {
            const double gap = (double)(r.at_ps - last.at_ps - t.step_ps);
            o.bursts++;
            o.silence += gap;
            o.silence_square += gap * gap;
            o.writes += r.write;
        } else if (i) {
            cr_assert_eq(r.write, last.write);
            o.local += r.address == last.address + r.bytes;
        }
        o.bytes += r.bytes;
        last = r;
    }
    o.span_ps = (double)last.at_ps;
    return o;
}

static void expect_near(double got, double want, double share, const char *what) {
    cr_expect(fabs(got / want - 1) < share, "%s: %g, expected %g", what, got, want);
}

Test(draw, traffic_is_what_the_parameters_say) {
    struct hw hw;
    hw_defaults(&hw);
    hw.noise_traffic_percent = 10;
    hw.noise_traffic_burst_percent = 40;
    hw.noise_traffic_write_percent = 30;
    hw.noise_traffic_local_percent = 80;
    const struct observed o = watch(&hw, 400000);
    const double peak = hw_dram_bytes_per_s(&hw) * 1e-12; // bytes per ps
    expect_near(o.bytes / o.span_ps, 0.10 * peak, 0.03, "rate");
    expect_near(o.bytes / o.bursts, 65536, 0.03, "bytes of a burst");
    expect_near(o.local / (o.requests - o.bursts), 0.80, 0.01, "locality");
    expect_near(o.writes / o.bursts, 0.30, 0.05, "writes");
    const double mean = o.silence / o.bursts, std = sqrt(o.silence_square / o.bursts - mean * mean);
    expect_near(mean, 65536 / peak * (1 / 0.10 - 1 / 0.40), 0.03, "silence");
    expect_near(std, mean, 0.05, "deviation of an exponential");
}

Test(draw, traffic_without_silence) {
    struct hw hw;
    hw_defaults(&hw);
    hw.noise_traffic_percent = hw.noise_traffic_burst_percent = 50;
    hw.noise_traffic_write_percent = 0; // bursts cannot be told apart
    const struct observed o = watch(&hw, 10000);
    expect_near(o.bytes / o.span_ps, 0.5e-12 * hw_dram_bytes_per_s(&hw), 0.001, "rate");
}

Test(draw, no_traffic) {
    struct hw hw;
    struct noise_traffic t;
    hw_defaults(&hw);
    hw.noise_traffic_percent = 0;
    cr_expect_not(noise_traffic_begin(&t, &hw, &noise, &(struct noise_place){0}));
    hw_defaults(&hw);
    hw.dram_standard = HW_IDEAL;
    cr_expect_not(noise_traffic_begin(&t, &hw, &noise, &(struct noise_place){0}));
}

static void refuse(const struct hw *hw, const char *part) {
    npu_status st = noise_check(hw);
    cr_assert_not_null(st);
    cr_expect_eq(npu_status_code(st), NPU_USAGE);
    cr_expect(strstr(npu_status_message(st), part), "%s", npu_status_message(st));
    npu_status_free(st);
}

Test(draw, contradictions_are_refused) {
    struct hw hw;
    hw_defaults(&hw);
    hw.noise_traffic_percent = 26;
    refuse(&hw, "noise.traffic_percent 26");
    hw_defaults(&hw);
    hw.noise_traffic_burst_bytes = 2048;
    refuse(&hw, "noise.traffic_burst_bytes is 2048");
    hw_defaults(&hw);
    hw.dram_bytes = hw.noise_traffic_burst_bytes = hw.noise_traffic_request_bytes = 65536;
    hw.dram_bytes = 65535;
    refuse(&hw, "dram.bytes 65535");
}
