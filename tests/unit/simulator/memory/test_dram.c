// SPDX-License-Identifier: Apache-2.0
#include "simulator/memory/dram.h"

#include <criterion/criterion.h>
#include <string.h>

#include "isa/hw.h"

// A client that keeps `window` bytes under way.
struct client {
    struct dram *d;
    uint64_t now, last, bytes, answers, conflict, refresh;
    uint32_t order[64];
    uint64_t done_at[64];
    int rooms;
};

static void done(void *ctx, const struct dram_quantum *q, const struct dram_reply *r) {
    struct client *c = ctx;
    if (c->answers < 64) {
        c->order[c->answers] = q->cookie;
        c->done_at[c->answers] = r->done_ps;
    }
    c->answers++;
    c->bytes += q->at.bytes;
    c->refresh += r->refresh_ps;
    c->conflict += r->conflict_ps;
    if (r->done_ps > c->last) c->last = r->done_ps;
}

static void room(void *ctx, int client, uint64_t at_ps) {
    (void)client, (void)at_ps;
    ((struct client *)ctx)->rooms++;
}

static struct hw machine(int standard) {
    struct hw hw;
    hw_defaults(&hw);
    hw.dram_standard = standard;
    hw.dram_channels = 4;
    hw.dram_channel_bits = standard == HW_LPDDR4_2400 || standard == HW_LPDDR5_6400 ? 16 : 64;
    return hw;
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *state >> 33;
}

// Time of `total` bytes in pieces of `piece` bytes, at consecutive or random addresses, queues
// always full.
static uint64_t run(const struct hw *hw, uint64_t total, uint64_t piece, bool random, bool write,
                    struct dram_stats *stats) {
    struct client c = {0};
    c.d = dram_new(hw, done, room, &c);
    cr_assert(c.d);
    struct dram_cut cut;
    cr_assert(dram_cut_init(&cut, c.d, 64, DRAM_QUANTUM_BYTES));
    uint64_t at = 0, state = 1, sent = 0, now = 0;
    int i = 0;
    while (sent < total || i < cut.count || dram_next(c.d) != DRAM_NEVER) {
        bool more = true;
        while (more && (sent < total || i < cut.count)) {
            if (i == cut.count) {
                dram_cut_clear(&cut, c.d);
                i = 0;
                if (random) at = next_random(&state) % (UINT64_C(1) << 30) / piece * piece;
                cr_assert_eq(dram_cut_run(&cut, c.d, at, piece, 1), piece);
                at += piece;
                sent += piece;
            }
            const struct dram_quantum q = {.arrive_ps = now, .at = cut.piece[i], .write = write};
            more = dram_submit(c.d, &q);
            if (more) i++;
        }
        if (dram_next(c.d) == DRAM_NEVER) continue;
        now = dram_next(c.d);
        dram_step(c.d);
    }
    *stats = *dram_statistics(c.d);
    cr_assert_eq(c.bytes, sent);
    cr_assert_eq(write ? stats->write_bytes : stats->read_bytes, sent);
    dram_cut_deinit(&cut);
    dram_free(c.d);
    return write ? now : c.last;
}

// ps that the pins need at least.
static uint64_t least_ps(const struct hw *hw, uint64_t bytes) {
    return (uint64_t)((double)bytes / hw_dram_bytes_per_s(hw) * 1e12);
}

Test(dram, streams_reach_the_pins_less_refresh) {
    for (int standard = HW_LPDDR4_2400; standard <= HW_HBM2_2000; standard++)
        for (int write = 0; write < 2; write++) {
            struct hw hw = machine(standard);
            struct dram_stats s;
            const uint64_t n = 4 << 20, bound = least_ps(&hw, n);
            const uint64_t with = run(&hw, n, 16384, false, write, &s);
            cr_expect(with >= bound, "standard %d: faster than its pins", standard);
            hw.dram_refresh = 0;
            const uint64_t without = run(&hw, n, 16384, false, write, &s);
            cr_expect(without >= bound);
            cr_expect((double)without <= 1.03 * (double)bound,
                      "standard %d write %d: %f without refresh", standard, write,
                      (double)without / (double)bound);
            hw.dram_refresh = 1;
            // Closing rows before and opening them after it comes on top of the published tRFC /
            // tREFI.
            const double loss = (double)(with - without) / (double)with;
            const double published = (double)dram_refresh_loss_ppm(&hw) * 1e-6;
            cr_expect(loss >= 0.8 * published, "standard %d: loss %f of %f", standard, loss,
                      published);
            cr_expect(loss <= published + 0.03, "standard %d: loss %f of %f", standard, loss,
                      published);
        }
}

Test(dram, published_refresh_losses) {
    const double want[] = {4.6, 7.2, 4.5, 6.7};
    for (int standard = 0; standard < 4; standard++) {
        const struct hw hw = machine(standard);
        cr_expect_float_eq((double)dram_refresh_loss_ppm(&hw) * 1e-4, want[standard], 0.06);
    }
}

Test(dram, one_bank_at_a_time_loses_less) {
    for (int standard = 0; standard < 4; standard++) {
        struct hw hw = machine(standard);
        if (standard == HW_DDR4_3200) continue; // has none
        struct dram_stats s;
        const uint64_t all = run(&hw, 4 << 20, 16384, false, false, &s);
        hw.dram_refresh_mode = 1;
        const uint64_t one = run(&hw, 4 << 20, 16384, false, false, &s);
        cr_expect(one < all, "standard %d", standard);
        cr_expect(s.refreshes > 0);
    }
}

Test(dram, random_accesses_are_much_slower_and_miss) {
    for (int standard = 0; standard < 4; standard++) {
        const struct hw hw = machine(standard);
        struct dram_stats stream, random;
        const uint64_t a = run(&hw, 1 << 20, 16384, false, false, &stream);
        const uint64_t b = run(&hw, 1 << 20, 64, true, false, &random);
        // LPDDR4's accesses are so long that one row per access hardly limits it.
        const double least = standard == HW_LPDDR4_2400 ? 1.5 : 2;
        cr_expect((double)b > least * (double)a, "standard %d: %f", standard,
                  (double)b / (double)a);
        cr_expect(random.row_misses > 10 * stream.row_misses);
        cr_expect(random.row_hits + random.row_misses >= (1 << 20) / 64);
    }
}

Test(dram, same_calls_same_times_also_after_reset) {
    const struct hw hw = machine(HW_HBM2_2000);
    struct dram_stats a, b;
    cr_expect_eq(run(&hw, 1 << 20, 96, true, false, &a), run(&hw, 1 << 20, 96, true, false, &b));
    cr_expect_eq(memcmp(&a, &b, sizeof a), 0);

    struct client c = {0};
    c.d = dram_new(&hw, done, room, &c);
    uint64_t first = 0;
    for (int k = 0; k < 3; k++) {
        c.answers = c.last = 0;
        for (uint32_t i = 0; i < 40; i++) {
            const struct dram_quantum q = {
                .arrive_ps = i * 1000,
                .at = {.row = (int32_t)(i * 7 % 5),
                       .bank = (uint16_t)(i % 3),
                       .bytes = 512,
                       .column = 0},
                .cookie = i,
            };
            cr_assert(dram_submit(c.d, &q));
        }
        while (dram_next(c.d) != DRAM_NEVER)
            dram_step(c.d);
        cr_expect_eq(c.answers, 40);
        if (k == 0) first = c.last;
        cr_expect_eq(c.last, first);
        dram_reset(c.d, NULL);
    }
    dram_free(c.d);
}

static struct client queued(const struct hw *hw, const struct dram_quantum *q, int n) {
    struct client c = {0};
    c.d = dram_new(hw, done, room, &c);
    for (int i = 0; i < n; i++)
        cr_assert(dram_submit(c.d, &q[i]), "quantum %d", i);
    while (dram_next(c.d) != DRAM_NEVER)
        dram_step(c.d);
    return c;
}

Test(dram, open_rows_pass_an_older_miss_up_to_the_cap) {
    struct hw hw = machine(HW_HBM2_2000);
    hw.dram_refresh = 0;
    hw.dram_row_hit_cap = 4;
    struct dram_quantum q[20];
    for (uint32_t i = 0; i < 20; i++)
        q[i] = (struct dram_quantum){.arrive_ps = i,
                                     .cookie = i,
                                     .at = {.row = i == 1, .bytes = 1024}};
    struct client c = queued(&hw, q, 20);
    int at = -1;
    for (int i = 0; i < 20; i++)
        if (c.order[i] == 1) at = i;
    cr_expect_eq(at, 5, "the miss came %d-th", at); // the first one opens row 0, then 4 hits pass
    cr_expect_eq(dram_statistics(c.d)->row_conflicts, 2);
    dram_free(c.d);
}

Test(dram, urgent_quanta_go_first) {
    struct hw hw = machine(HW_HBM2_2000);
    struct dram_quantum q[10];
    for (uint32_t i = 0; i < 10; i++)
        q[i] = (struct dram_quantum){.arrive_ps = 0,
                                     .cookie = i,
                                     .at = {.bytes = 1024},
                                     .urgent = i == 9};
    struct client c = queued(&hw, q, 10);
    cr_expect_eq(c.order[0], 9);
    dram_free(c.d);
}

Test(dram, a_single_read_has_the_latency_of_its_row) {
    struct hw hw = machine(HW_HBM2_2000);
    hw.dram_refresh = 0;
    const struct dram_quantum q = {.arrive_ps = 5000, .at = {.bytes = 64}};
    struct client c = queued(&hw, &q, 1);
    // 30 ns controller, tRCD 14 + tCL 14, the second bank of the gang opens tRRD later (4 - 2), 2
    // bursts of 2 ns.
    cr_expect_eq(c.last, 5000 + 30000 + 28000 + 2000 + 4000);
    dram_free(c.d);
}

Test(dram, writes_are_over_when_accepted_and_answer_reads) {
    struct hw hw = machine(HW_HBM2_2000);
    hw.dram_refresh = 0;
    struct dram_quantum q[2] = {
        {.arrive_ps = 1000, .write = true, .at = {.row = 3, .bytes = 1024, .column = 0}},
        {.arrive_ps = 1000, .cookie = 1, .at = {.row = 3, .bytes = 256, .column = 512}},
    };
    struct client c = queued(&hw, q, 2);
    cr_expect_eq(c.done_at[0], 1000 + 30000);
    cr_expect_eq(dram_statistics(c.d)->forwards, 1);
    cr_expect_eq(c.done_at[1], 1000 + 30000 + 8 * 2000);
    dram_free(c.d);
}

Test(dram, full_queues_refuse_and_say_when_there_is_room) {
    struct hw hw = machine(HW_LPDDR4_2400);
    hw.dram_queue = 2;
    struct client c = {0};
    c.d = dram_new(&hw, done, room, &c);
    const struct dram_quantum q = {.at = {.bytes = 512}};
    cr_expect(dram_submit(c.d, &q));
    cr_expect(dram_submit(c.d, &q));
    cr_expect_not(dram_submit(c.d, &q));
    dram_step(c.d);
    cr_expect_eq(c.rooms, 1);
    cr_expect(dram_submit(c.d, &q));
    dram_free(c.d);
}

Test(dram, fast_is_latency_and_a_bucket_and_ideal_is_nothing) {
    struct hw hw = machine(HW_HBM2_2000);
    hw.dram_fidelity = HW_FAST;
    struct dram_stats s;
    const uint64_t n = 1 << 20, t = run(&hw, n, 4096, false, false, &s);
    const double bound = (double)least_ps(&hw, n) / (1 - 0.0667);
    cr_expect((double)t > bound && (double)t < 1.03 * bound);
    cr_expect_eq(s.row_misses, 0);
    hw.dram_standard = HW_IDEAL;
    cr_expect_eq(run(&hw, n, 4096, false, false, &s), 0);
}

Test(dram, pieces_cover_the_run_and_stay_in_rows_and_quanta) {
    const int64_t channels[] = {1, 3, 4, 16}, unit[] = {64, 256, 4096};
    for (size_t ci = 0; ci < 4; ci++)
        for (size_t ui = 0; ui < 3; ui++) {
            struct hw hw = machine(HW_HBM2_2000);
            hw.dram_channels = channels[ci];
            hw.dram_interleave_bytes = unit[ui];
            struct client c = {0};
            c.d = dram_new(&hw, done, room, &c);
            struct dram_cut cut;
            cr_assert(dram_cut_init(&cut, c.d, 128, 768));
            uint64_t state = 7;
            for (int k = 0; k < 200; k++) {
                dram_cut_clear(&cut, c.d);
                uint64_t asked = 0, runs = 0;
                for (int r = 0; r < 4; r++) {
                    const uint64_t at = next_random(&state) % 100000 * 64,
                                   n = (1 + next_random(&state) % 100) * 64;
                    asked += dram_cut_run(&cut, c.d, at, n, 1);
                    runs++;
                }
                uint64_t bytes = 0, begun = 0;
                for (int i = 0; i < cut.count; i++) {
                    bytes += cut.piece[i].bytes;
                    begun += cut.piece[i].runs;
                    cr_assert(cut.piece[i].bytes > 0 && cut.piece[i].bytes <= 768);
                    cr_assert(cut.piece[i].channel < channels[ci]);
                    if (cut.piece[i].column != UINT32_MAX)
                        cr_assert(cut.piece[i].column + cut.piece[i].bytes <= 2048);
                }
                cr_assert_eq(bytes, asked);
                cr_assert_eq(cut.bytes, asked);
                cr_assert(begun == runs || cut.count == 128);
            }
            dram_cut_deinit(&cut);
            dram_free(c.d);
        }
}
