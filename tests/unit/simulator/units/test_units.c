// SPDX-License-Identifier: Apache-2.0
//
// Engines, semaphores and the command processor on small programs whose cycles are known.
#include <criterion/criterion.h>
#include <string.h>

#include "isa/timing.h"
#include "tests/unit/simulator/units/synth.h"

static const struct synth_sync none;

static struct hw server(void) {
    struct hw hw;
    hw_defaults(&hw);
    return hw;
}

static struct isa_cost product(const struct hw *hw, int64_t m, int64_t n, int64_t k) {
    const struct isa_mm_shape s = {m, n, k, ISA_F16, ISA_F16, false};
    return isa_time_mm(hw, &s);
}

static uint64_t decode_of(const struct synth *s, uint32_t from) {
    return (uint64_t)isa_time_decode(&s->hw, (int)(s->pc - from));
}

Test(units, an_empty_program_halts) {
    const struct hw hw = server();
    struct synth s;
    synth_init(&s, &hw);
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    cr_expect_eq(r.end, UNITS_HALTED);
    cr_expect_eq(r.cycles, 1);
    cr_expect_eq(r.instructions, 1);
    synth_deinit(&s);
}

Test(units, one_product_takes_its_closed_form) {
    const struct hw hw = server();
    struct synth s;
    synth_init(&s, &hw);
    synth_mm(&s, 512, 128, 512, true, none);
    const uint64_t decode = decode_of(&s, 0);
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    const struct isa_cost c = product(&hw, 512, 128, 512);
    cr_expect_eq(r.cycles, decode + (uint64_t)c.done_cycles, "%d", (int)r.cycles);
    cr_expect_eq(synth_class(&r, ISA_ENGINE_MXU, TRACE_BUSY), 512 * 4);
    cr_expect_eq(synth_class(&r, ISA_ENGINE_MXU, TRACE_BUSY_PARTIAL),
                 (uint64_t)c.issue_cycles - 512 * 4);
    cr_expect_eq(synth_class(&r, ISA_ENGINE_MXU, TRACE_QUEUE_EMPTY), decode);
    cr_expect_eq(r.tag[0].macs, UINT64_C(512) * 128 * 512);
    cr_expect_eq(r.tag[0].start, decode);
    cr_expect_eq(r.tag[0].end, r.cycles);
    synth_deinit(&s);
}

Test(units, products_follow_each_other_at_the_issue_interval) {
    const struct hw hw = server();
    struct synth s;
    synth_init(&s, &hw);
    for (int i = 0; i < 20; i++)
        synth_mm(&s, 512, 128, 512, true, none);
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    const struct isa_cost c = product(&hw, 512, 128, 512);
    const uint64_t decode = (uint64_t)isa_time_decode(&hw, (int)(s.pc - 1) / 20);
    cr_expect_eq(r.cycles, decode + 19 * (uint64_t)c.issue_cycles + (uint64_t)c.done_cycles);
    synth_deinit(&s);
}

Test(units, accumulating_on_rows_in_flight_waits_for_them) {
    const struct hw hw = server();
    const struct isa_cost c = product(&hw, 16, 128, 128);
    cr_assert(c.accumulate_cycles > c.issue_cycles);
    uint64_t cycles[2];
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        struct synth s;
        synth_init(&s, &hw);
        for (int i = 0; i < 50; i++)
            synth_mm(&s, 16, 128, 128, i == 0 || !accumulate, none);
        synth_cp(&s, ISA_OP_HALT);
        const struct units_result r = synth_run(&s);
        cycles[accumulate] = r.cycles;
        const uint64_t psum = synth_class(&r, ISA_ENGINE_MXU, TRACE_PSUM);
        cr_expect_eq(psum, accumulate ? 49 * (uint64_t)(c.accumulate_cycles - c.issue_cycles) : 0);
        synth_deinit(&s);
    }
    cr_expect_eq(cycles[1] - cycles[0], 49 * (uint64_t)(c.accumulate_cycles - c.issue_cycles));
}

Test(units, a_vector_result_is_waited_for_by_the_next_one) {
    const struct hw hw = server();
    uint64_t cycles[2];
    for (int chained = 0; chained < 2; chained++) {
        struct synth s;
        synth_init(&s, &hw);
        for (int i = 0; i < 10; i++)
            synth_vec(&s, 8192, chained ? 0x10000 * i : 0, 0x10000 * (chained ? i + 1 : 20 + i),
                      none);
        synth_cp(&s, ISA_OP_HALT);
        const struct units_result r = synth_run(&s);
        cycles[chained] = r.cycles;
        cr_expect_eq(synth_class(&r, ISA_ENGINE_VEC, TRACE_DEPENDENCY) > 0, chained);
        synth_deinit(&s);
    }
    // start + latency of each but the last is exposed.
    cr_expect_eq(cycles[1] - cycles[0], 9 * (uint64_t)(hw.vec_start + hw.vec_latency));
}

Test(units, a_signal_is_seen_after_the_semaphore_latency) {
    for (int latency = 0; latency < 50; latency += 7) {
        struct hw hw = server();
        hw.cp_semaphore = latency;
        struct synth s;
        synth_init(&s, &hw);
        synth_mm(&s, 512, 128, 512, true,
                 (struct synth_sync){.sig0 = 3, .inc0 = 1, .when0 = ISA_AT_DONE});
        const uint64_t decode = decode_of(&s, 0);
        synth_sync(&s, ISA_ENGINE_VEC, (struct synth_sync){.wait0 = 3, .value0 = 1});
        synth_cp(&s, ISA_OP_HALT);
        const struct units_result r = synth_run(&s);
        const struct isa_cost c = product(&hw, 512, 128, 512);
        cr_expect_eq(r.cycles, decode + (uint64_t)(c.done_cycles + latency + 1), "latency %d",
                     latency);
        cr_expect(synth_class(&r, ISA_ENGINE_VEC, TRACE_WAIT_SEMAPHORE) > 2000);
        synth_deinit(&s);
    }
}

Test(units, signals_at_start_read_and_done_come_in_that_order) {
    uint64_t cycles[3];
    for (int when = 0; when < 3; when++) {
        const struct hw hw = server();
        struct synth s;
        synth_init(&s, &hw);
        synth_mm(&s, 512, 128, 512, true, (struct synth_sync){.sig0 = 3, .inc0 = 1, .when0 = when});
        synth_vec(&s, 1 << 16, 0x200000, 0x600000, (struct synth_sync){.wait0 = 3, .value0 = 1});
        for (int i = 0; i < 40; i++)
            synth_vec(&s, 1 << 16, 0x200000, 0x600000, none);
        synth_cp(&s, ISA_OP_HALT);
        cycles[when] = synth_run(&s).cycles;
        synth_deinit(&s);
    }
    const struct hw hw = server();
    const struct isa_cost c = product(&hw, 512, 128, 512);
    cr_expect_eq(cycles[2] - cycles[1], (uint64_t)(c.done_cycles - c.read_cycles));
    cr_expect(cycles[1] - cycles[0] > 1500, "%d and %d", (int)cycles[0], (int)cycles[1]);
}

Test(units, credits_are_taken_and_monotonic_counts_stay) {
    const struct hw hw = server();
    for (int acquire = 0; acquire < 2; acquire++) {
        struct synth s;
        synth_init(&s, &hw);
        for (int i = 0; i < 3; i++)
            synth_mm(&s, 512, 128, 128, true,
                     (struct synth_sync){.sig0 = 9, .inc0 = 1, .when0 = ISA_AT_DONE});
        for (int i = 0; i < 3; i++)
            synth_sync(&s, ISA_ENGINE_VEC,
                       (struct synth_sync){.wait0 = 9, .value0 = 1, .acquire = acquire});
        synth_cp(&s, ISA_OP_HALT);
        const struct units_result r = synth_run(&s);
        cr_expect_eq(r.end, UNITS_HALTED);
        // Credits: one SYNC after each product; else all after the first.
        const uint64_t idle = synth_class(&r, ISA_ENGINE_VEC, TRACE_IDLE);
        cr_expect(acquire ? idle == 0 : idle > 1000, "acquire %d: idle %d", acquire, (int)idle);
        synth_deinit(&s);
    }
}

Test(units, two_waits_need_both) {
    const struct hw hw = server();
    struct synth s;
    synth_init(&s, &hw);
    synth_mm(&s, 2048, 128, 128, true,
             (struct synth_sync){.sig0 = 1, .inc0 = 1, .when0 = ISA_AT_DONE});
    const uint64_t decode = decode_of(&s, 0);
    synth_copy(&s, ISA_ENGINE_DMA0, false, 0, 0, 1, 64, 0, false,
               (struct synth_sync){.sig0 = 2, .inc0 = 2, .when0 = ISA_AT_DONE});
    synth_sync(&s, ISA_ENGINE_VEC,
               (struct synth_sync){.wait0 = 1, .value0 = 1, .wait1 = 2, .value1 = 2, .acquire = 3});
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    const struct isa_cost c = product(&hw, 2048, 128, 128);
    cr_expect_eq(r.cycles, decode + (uint64_t)(c.done_cycles + hw.cp_semaphore + 1));
    synth_deinit(&s);
}

Test(units, a_full_queue_stalls_the_command_processor) {
    struct hw hw = server();
    hw.cp_queue_depth = 2;
    struct synth s;
    synth_init(&s, &hw);
    for (int i = 0; i < 8; i++)
        synth_mm(&s, 2048, 128, 128, true, none);
    synth_vec(&s, 8192, 0, 0x100000, none);
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    cr_expect(synth_class(&r, ISA_ENGINE_CP, TRACE_QUEUE_FULL) > 4 * 2048);
    cr_expect(r.tag[0].vec_cycles > 0);
    // The vector instruction could only be dispatched when the sixth product had started.
    cr_expect(synth_class(&r, ISA_ENGINE_VEC, TRACE_QUEUE_EMPTY) > 5 * 2048);
    synth_deinit(&s);
}

Test(units, a_barrier_waits_for_every_engine) {
    const struct hw hw = server();
    struct synth s;
    synth_init(&s, &hw);
    synth_mm(&s, 2048, 128, 128, true, none);
    const uint64_t decode = decode_of(&s, 0);
    synth_cp(&s, ISA_OP_BARRIER);
    synth_mm(&s, 2048, 128, 128, true, none);
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    const struct isa_cost c = product(&hw, 2048, 128, 128);
    // BARRIER's cycle is its decoding, which overlaps with the product.
    cr_expect_eq(r.cycles, 2 * (decode + (uint64_t)c.done_cycles), "%d", (int)r.cycles);
    synth_deinit(&s);
}

Test(units, stops_at_an_instruction_and_tells_its_start) {
    const struct hw hw = server();
    struct synth s;
    synth_init(&s, &hw);
    for (int i = 0; i < 4; i++)
        synth_mm(&s, 512, 128, 128, true,
                 (struct synth_sync){.sig0 = 1, .inc0 = 1, .when0 = ISA_AT_DONE});
    const uint64_t vec =
        synth_vec(&s, 8192, 0, 0x100000, (struct synth_sync){.wait0 = 1, .value0 = 3});
    const uint64_t halt = synth_cp(&s, ISA_OP_HALT);
    struct units_machine *m = units_new(&hw, s.p);
    struct units_options o = UNITS_OPTIONS_DEFAULT;
    struct units_result r;
    o.stop_seq = vec;
    units_run(m, &o, &r);
    cr_expect_eq(r.end, UNITS_STOPPED);
    const struct isa_cost c = product(&hw, 512, 128, 128);
    cr_expect_eq(r.cycles,
                 8 + 2 * (uint64_t)c.issue_cycles + (uint64_t)(c.done_cycles + hw.cp_semaphore));
    units_reset(m);
    o.stop_seq = halt;
    units_run(m, &o, &r);
    cr_expect_eq(r.end, UNITS_STOPPED);
    units_free(m);
    synth_deinit(&s);
}

Test(units, a_deadlock_goes_quiet_and_says_who_waits) {
    const struct hw hw = server();
    struct synth s;
    synth_init(&s, &hw);
    synth_mm(&s, 512, 128, 128, true,
             (struct synth_sync){.sig0 = 1, .inc0 = 1, .when0 = ISA_AT_DONE});
    const uint64_t seq =
        synth_sync(&s, ISA_ENGINE_VEC, (struct synth_sync){.wait0 = 1, .value0 = 2});
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    cr_expect_eq(r.end, UNITS_QUIET);
    cr_expect(r.blocked[ISA_ENGINE_VEC].blocked);
    cr_expect_eq(r.blocked[ISA_ENGINE_VEC].seq, seq);
    cr_expect_eq(r.blocked[ISA_ENGINE_VEC].semaphore, 1);
    cr_expect_eq(r.blocked[ISA_ENGINE_VEC].value, 2);
    cr_expect_eq(r.blocked[ISA_ENGINE_VEC].count, 1);
    cr_expect_not(r.blocked[ISA_ENGINE_MXU].blocked);
    cr_expect(r.blocked[ISA_ENGINE_CP].blocked);
    synth_deinit(&s);
}

Test(units, the_vector_engine_slows_down_when_others_want_the_banks) {
    struct hw hw = server();
    hw.spm_banks = 16; // 1 KiB a cycle: two operands of 512 f32 lanes already fill it
    uint64_t lost[2];
    for (int busy = 0; busy < 2; busy++) {
        struct synth s;
        synth_init(&s, &hw);
        for (int i = 0; i < 20; i++)
            synth_vec(&s, 1 << 16, 0, 0x400000, none);
        if (busy)
            for (int i = 0; i < 40; i++)
                synth_mm(&s, 2048, 128, 128, true, none);
        synth_cp(&s, ISA_OP_HALT);
        const struct units_result r = synth_run(&s);
        lost[busy] = synth_class(&r, ISA_ENGINE_VEC, TRACE_BANK_CONFLICT);
        cr_expect_eq(synth_class(&r, ISA_ENGINE_MXU, TRACE_BANK_CONFLICT), 0, "it goes first");
        synth_deinit(&s);
    }
    cr_expect(lost[1] > lost[0] + 1000, "%d and %d", (int)lost[0], (int)lost[1]);
}

Test(units, odd_clocks_count_whole_cycles) {
    for (int mhz = 1; mhz < 4000; mhz = mhz * 3 + 1) {
        struct hw hw = server();
        hw.clock_npu_mhz = mhz;
        struct synth s;
        synth_init(&s, &hw);
        synth_mm(&s, 512, 128, 512, true, none);
        const uint64_t decode = decode_of(&s, 0);
        synth_cp(&s, ISA_OP_HALT);
        cr_expect_eq(synth_run(&s).cycles,
                     decode + (uint64_t)product(&hw, 512, 128, 512).done_cycles, "%d MHz", mhz);
        synth_deinit(&s);
    }
}
