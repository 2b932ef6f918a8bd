// SPDX-License-Identifier: Apache-2.0
//
// DMA engines, fetch and memory on programs; identities that hold for every run.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "isa/timing.h"
#include "tests/unit/simulator/units/synth.h"

static const struct synth_sync none;

static struct hw server(void) {
    struct hw hw;
    hw_defaults(&hw);
    return hw;
}

static struct units_result stream(const struct hw *hw, int engines, int copies, int64_t bytes,
                                  bool write) {
    struct synth s;
    synth_init(&s, hw);
    for (int i = 0; i < copies; i++)
        synth_copy(&s, ISA_ENGINE_DMA0 + i % engines, write, i * bytes, (i % 8) * bytes, 1, bytes,
                   0, false, none);
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    cr_assert_eq(r.end, UNITS_HALTED);
    cr_assert_eq(r.dram.read_bytes + r.dram.write_bytes, (uint64_t)(copies * bytes));
    synth_deinit(&s);
    return r;
}

static double rate(const struct units_result *r) {
    return (double)(r->dram.read_bytes + r->dram.write_bytes) / (double)r->cycles;
}

Test(dma, streams_come_near_the_peak_and_never_over) {
    for (int standard = HW_LPDDR4_2400; standard <= HW_HBM2_2000; standard++)
        for (int write = 0; write < 2; write++) {
            struct hw hw = server();
            hw.dram_standard = standard; // about 100 GB/s, 256 for HBM2
            hw.dram_channels = standard == HW_DDR4_3200 ? 4 : standard == HW_LPDDR5_6400 ? 8 : 16;
            hw.dram_channel_bits = standard == HW_DDR4_3200 || standard == HW_HBM2_2000 ? 64 : 16;
            hw.dma_outstanding = 1024;
            const struct units_result r = stream(&hw, 4, 64, 131072, write);
            const double share = rate(&r) / hw_dram_bytes_per_cycle(&hw);
            cr_expect(share <= 1.0, "standard %d: %f", standard, share);
            cr_expect(share >= 0.85, "standard %d write %d: %f of the peak", standard, write,
                      share);
        }
}

Test(dma, one_engine_fills_its_link_when_memory_does_not_refresh) {
    struct hw hw = server();
    hw.dram_refresh = 0;
    const struct units_result r = stream(&hw, 1, 16, 131072, false);
    cr_expect(rate(&r) <= 64 && rate(&r) > 61, "%f", rate(&r));
    cr_expect_eq(synth_class(&r, ISA_ENGINE_DMA0, TRACE_BUSY), 16 * 131072 / 64);
}

Test(dma, few_outstanding_bursts_leave_it_waiting_for_latency) {
    struct hw hw = server();
    hw.dma_outstanding = 8;
    const struct units_result r = stream(&hw, 1, 4, 65536, false);
    cr_expect(rate(&r) < 10, "%f", rate(&r));
    cr_expect(synth_class(&r, ISA_ENGINE_DMA0, TRACE_WAIT_DRAM) > r.cycles / 2);
}

Test(dma, random_accesses_are_much_slower_than_streams) {
    struct hw hw = server();
    hw.dma_start = 0;
    const int n = 512;
    uint64_t cycles[2];
    for (int random = 0; random < 2; random++) {
        struct synth s;
        synth_init(&s, &hw);
        uint64_t state = 3;
        for (int i = 0; i < n; i++)
            for (int e = 0; e < 4; e++) {
                state = state * UINT64_C(6364136223846793005) + 1;
                const int64_t at = random ? (int64_t)(state >> 36) * 64 : (int64_t)(i * 4 + e) * 64;
                synth_copy(&s, ISA_ENGINE_DMA0 + e, false, at, 0, 1, 64, 0, false, none);
            }
        synth_cp(&s, ISA_OP_HALT);
        const struct units_result r = synth_run(&s);
        cycles[random] = r.cycles;
        cr_expect(random ? r.dram.row_misses > (uint64_t)n * 3 : r.dram.row_misses < (uint64_t)n,
                  "%d", (int)r.dram.row_misses);
        synth_deinit(&s);
    }
    cr_expect(cycles[1] >= cycles[0]);
}

Test(dma, short_rows_pay_whole_bursts_and_row_cycles) {
    const struct hw hw = server();
    struct synth s;
    synth_init(&s, &hw);
    synth_copy(&s, ISA_ENGINE_DMA0, false, 32, 0, 1000, 48, 4096, false,
               none); // each straddles a burst's edge
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    cr_expect_eq(r.dram.read_bytes, 1000 * 128);
    cr_expect_eq(r.tag[0].dram_read, 1000 * 48);
    cr_expect(r.cycles >= 64 + 1000 * 3);
    synth_deinit(&s);
}

Test(dma, every_start_costs_its_cycles) {
    const struct hw hw = server();
    const struct units_result r = stream(&hw, 1, 200, 64, false);
    cr_expect(r.cycles >= 200 * 64 && r.cycles < 200 * 64 + 600, "%d", (int)r.cycles);
    cr_expect(synth_class(&r, ISA_ENGINE_DMA0, TRACE_BUSY_PARTIAL) > 190 * 60);
}

Test(dma, a_fence_waits_for_the_earlier_ones) {
    const struct hw hw = server();
    uint64_t cycles[2];
    for (int fence = 0; fence < 2; fence++) {
        struct synth s;
        synth_init(&s, &hw);
        for (int i = 0; i < 32; i++)
            synth_copy(&s, ISA_ENGINE_DMA0, false, i * 4096, i * 4096, 1, 4096, 0, fence, none);
        synth_cp(&s, ISA_OP_HALT);
        cycles[fence] = synth_run(&s).cycles;
        synth_deinit(&s);
    }
    cr_expect(cycles[1] > cycles[0] + 31 * 60, "%d and %d", (int)cycles[0], (int)cycles[1]);
}

Test(dma, memory_to_memory_reads_and_writes) {
    const struct hw hw = server();
    struct synth s;
    synth_init(&s, &hw);
    struct isa_insn in;
    isa_init(&in, ISA_OP_COPY);
    in.u.COPY.src.space = in.u.COPY.dst.space = ISA_DRAM;
    in.u.COPY.src.dtype = in.u.COPY.dst.dtype = ISA_U8;
    in.u.COPY.dst.base = 1 << 24;
    in.u.COPY.src.size[0] = in.u.COPY.dst.size[0] = 1 << 16;
    in.u.COPY.src.stride[0] = in.u.COPY.dst.stride[0] = 1;
    synth_add(&s, ISA_ENGINE_DMA0, &in, none);
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    cr_expect_eq(r.end, UNITS_HALTED);
    cr_expect_eq(r.dram.read_bytes, 1 << 16);
    cr_expect_eq(r.dram.write_bytes, 1 << 16);
    cr_expect(r.cycles > 2 * (1 << 16) / 64);
    synth_deinit(&s);
}

Test(dma, on_chip_copies_use_the_link_only) {
    const struct hw hw = server();
    struct synth s;
    synth_init(&s, &hw);
    struct isa_insn in;
    isa_init(&in, ISA_OP_COPY);
    in.u.COPY.src.space = in.u.COPY.dst.space = ISA_SPM;
    in.u.COPY.src.dtype = in.u.COPY.dst.dtype = ISA_F16;
    in.u.COPY.dst.base = 1 << 20;
    in.u.COPY.src.size[0] = in.u.COPY.dst.size[0] = 32768;
    in.u.COPY.src.stride[0] = in.u.COPY.dst.stride[0] = 1;
    synth_add(&s, ISA_ENGINE_DMA0, &in, none);
    const uint64_t decode = (uint64_t)isa_time_decode(&hw, (int)s.pc);
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    cr_expect_eq(r.cycles, decode + 64 + 65536 / 64 + 1);
    cr_expect_eq(r.dram.read_bytes, 0);
    synth_deinit(&s);
}

Test(dma, a_gather_reads_the_rows_that_were_asked_for) {
    const struct hw hw = server();
    for (int repeated = 0; repeated < 2; repeated++) {
        struct synth s;
        synth_init(&s, &hw);
        struct isa_insn in;
        isa_init(&in, ISA_OP_GATHER);
        in.u.GATHER.src.space = ISA_DRAM;
        in.u.GATHER.dst.space = in.u.GATHER.idx.space = ISA_SPM;
        in.u.GATHER.src.dtype = in.u.GATHER.dst.dtype = ISA_F16;
        in.u.GATHER.idx.dtype = ISA_I64;
        in.u.GATHER.src.size[0] = in.u.GATHER.dst.size[0] = 64;
        in.u.GATHER.src.stride[0] = in.u.GATHER.dst.stride[0] = in.u.GATHER.idx.stride[0] = 1;
        in.u.GATHER.src.size[1] = 1 << 20;
        in.u.GATHER.src.stride[1] = 64;
        in.u.GATHER.dst.size[1] = in.u.GATHER.idx.size[0] = 500;
        in.u.GATHER.dst.stride[1] = 64;
        in.u.GATHER.idx.base = 0x100000;
        const uint64_t seq = synth_add(&s, ISA_ENGINE_DMA0, &in, none);
        int64_t row[500];
        for (int i = 0; i < 500; i++)
            row[i] = i % 10 == 0 ? -1 : repeated ? 5 : (int64_t)i * 7919 % (1 << 20);
        cr_assert_null(units_rows_sink(s.p, seq, row, 500));
        synth_cp(&s, ISA_OP_HALT);
        const struct units_result r = synth_run(&s);
        cr_expect(repeated ? r.dram.row_misses < 10 : r.dram.row_misses > 400, "%d",
                  (int)r.dram.row_misses);
        cr_expect_eq(r.dram.read_bytes, 450 * 128);
        cr_expect_eq(r.tag[0].dram_read, 450 * 128);
        synth_deinit(&s);
    }
}

Test(fetch, straight_code_is_prefetched_and_loops_hit) {
    struct hw hw = server();
    for (int loop = 0; loop < 2; loop++) {
        struct synth s;
        synth_init(&s, &hw);
        for (int i = 0; i < 400; i++) {
            if (loop && i % 10 == 0) s.pc = 0;
            synth_mm(&s, 128, 128, 128, true, none);
        }
        synth_cp(&s, ISA_OP_HALT);
        units_program_code(s.p, 1 << 24, (uint64_t)(loop ? 90 : s.pc) * ISA_GRANULE_BYTES);
        const struct units_result r = synth_run(&s);
        cr_expect_eq(r.end, UNITS_HALTED);
        const uint64_t fetch = synth_class(&r, ISA_ENGINE_CP, TRACE_FETCH);
        cr_expect(fetch > 50 && fetch < 500, "loop %d: %d", loop, (int)fetch);
        if (loop)
            cr_expect(r.dram.fetch_bytes <= 90 * 16 + 256, "%d", (int)r.dram.fetch_bytes);
        else
            cr_expect(r.dram.fetch_bytes >= (uint64_t)s.pc * 16);
        synth_deinit(&s);
    }
}

Test(fetch, code_larger_than_instruction_memory_is_fetched_again) {
    struct hw hw = server();
    hw.cp_imem_bytes = 4096;
    struct synth s;
    synth_init(&s, &hw);
    for (int i = 0; i < 400; i++) {
        if (i % 100 == 0) s.pc = 0;
        synth_mm(&s, 128, 128, 128, true, none);
    }
    const uint64_t code = (uint64_t)s.pc * 16;
    synth_cp(&s, ISA_OP_HALT);
    units_program_code(s.p, 1 << 24, code + 16);
    const struct units_result r = synth_run(&s);
    cr_expect_eq(r.end, UNITS_HALTED);
    cr_expect(r.dram.fetch_bytes > 3 * code);
    synth_deinit(&s);
}

// ---- identities over random programs ----

static uint32_t random_below(uint64_t *state, uint32_t n) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)((*state >> 33) % n);
}

// A pipeline load -> product -> vector -> store with credits, of random sizes, and some of
// everything else.
static void random_program(struct synth *s, uint64_t seed) {
    uint64_t x = seed;
    synth_sync(s, ISA_ENGINE_MXU, (struct synth_sync){.sig0 = 10, .inc0 = 2});
    synth_sync(s, ISA_ENGINE_VEC, (struct synth_sync){.sig0 = 11, .inc0 = 2});
    const int engines = (int)s->hw.dma_engines;
    for (int i = 0; i < 60; i++) {
        s->tag = (uint32_t)i / 5;
        const int64_t bytes = 64 * (1 + random_below(&x, 256)), rows = 1 + random_below(&x, 40);
        synth_copy(s, ISA_ENGINE_DMA0, false, random_below(&x, 1 << 24), 0, rows, bytes, bytes * 3,
                   false,
                   (struct synth_sync){
                       .wait0 = 10, .value0 = 1, .acquire = 1, .sig0 = 12, .inc0 = 1, .when0 = 2});
        synth_mm(s, 1 + random_below(&x, 512), 1 + random_below(&x, 128),
                 1 + random_below(&x, 1024), true,
                 (struct synth_sync){.wait0 = 12,
                                     .value0 = 1,
                                     .wait1 = 11,
                                     .value1 = 1,
                                     .acquire = 3,
                                     .sig0 = 10,
                                     .inc0 = 1,
                                     .when0 = 1,
                                     .sig1 = 13,
                                     .inc1 = 1,
                                     .when1 = 2});
        synth_vec(s, 1 + random_below(&x, 65536), 0x10000, 0x80000,
                  (struct synth_sync){.wait0 = 13,
                                      .value0 = 1,
                                      .acquire = 1,
                                      .sig0 = 11,
                                      .inc0 = 1,
                                      .when0 = 1,
                                      .sig1 = 14,
                                      .inc1 = 1,
                                      .when1 = 2});
        synth_copy(s, ISA_ENGINE_DMA0 + (engines > 1), true, random_below(&x, 1 << 24), 0x80000,
                   rows, bytes, bytes, random_below(&x, 4) == 0,
                   (struct synth_sync){.wait0 = 14, .value0 = 1, .acquire = 1});
        if (random_below(&x, 10) == 0) synth_cp(s, ISA_OP_BARRIER);
    }
    synth_cp(s, ISA_OP_HALT);
    units_program_code(s->p, 1 << 25, (uint64_t)s->pc * 16);
}

static void machine_of(struct hw *hw, int which) {
    hw_defaults(hw);
    if (which == 1) { // like edge
        hw->clock_npu_mhz = 800;
        hw->dma_engines = 2;
        hw->dma_width_bytes = 16;
        hw->dma_outstanding = 32;
        hw->dram_standard = HW_LPDDR4_2400;
        hw->dram_channels = 4;
        hw->dram_channel_bits = 16;
    } else if (which == 2) { // like tiny
        hw->clock_npu_mhz = 500;
        hw->dma_engines = 1;
        hw->dma_width_bytes = 16;
        hw->dma_outstanding = 8;
        hw->cp_queue_depth = 1;
        hw->dram_standard = HW_LPDDR4_2400;
        hw->dram_channels = 1;
        hw->dram_channel_bits = 16;
        hw->spm_banks = 8;
        hw->spm_bank_bytes = 16;
        hw->dram_queue = 1;
    } else if (which == 3) {
        hw->dram_fidelity = HW_FAST;
    } else if (which == 4) {
        hw->dram_standard = HW_IDEAL;
    } else if (which == 5) {
        hw->dram_refresh_mode = 1;
        hw->clock_npu_mhz = 1337;
        hw->mxu_overlap = 0;
    }
}

struct check {
    uint64_t last_start[ISA_ENGINES], last_done[ISA_ENGINES], events, hash;
    struct trace_engine state[ISA_ENGINES]; // added up from STATE events
    uint64_t state_end[ISA_ENGINES];
    int64_t semaphore[ISA_SEMS], signals;
};

// States of an engine follow each other without a gap.
static void check_state(struct check *c, const struct trace_event *e) {
    cr_expect_eq(e->start, c->state_end[e->engine], "engine %d", e->engine);
    cr_expect(e->done > e->start);
    c->state_end[e->engine] = e->done;
    c->state[e->engine].cycles[e->wait_class] += e->done - e->start;
    if (e->wait_engine >= 0) c->state[e->engine].wait_for[e->wait_engine] += e->done - e->start;
}

static void check_event(void *ctx, const struct trace_event *e) {
    struct check *c = ctx;
    if (e->kind == TRACE_EVENT_STATE) {
        check_state(c, e);
        return;
    }
    if (e->kind == TRACE_EVENT_SEMAPHORE) {
        c->semaphore[e->id] += e->change;
        c->signals += e->change > 0 ? e->change : 0;
        return;
    }
    const uint64_t word[] = {
        e->seq, e->start, e->read, e->issued, e->done, e->ready, (uint64_t)e->wait_class};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        c->hash = (c->hash ^ word[i]) * UINT64_C(1099511628211);
    c->events++;
    if (e->engine == ISA_ENGINE_CP) return;
    cr_expect(e->dispatched <= e->start && e->ready <= e->start, "seq %d", (int)e->seq);
    cr_expect(e->start <= e->read && e->read <= e->done && e->issued <= e->done);
    cr_expect(e->start >= c->last_start[e->engine], "engines start in order");
    if (e->engine < ISA_ENGINE_MXU)
        cr_expect(e->done >= c->last_done[e->engine], "DMA completes in order");
    c->last_start[e->engine] = e->start;
    c->last_done[e->engine] = e->done;
}

Test(identities, hold_on_random_programs_and_runs_repeat_after_reset, .timeout = 120) {
    for (int which = 0; which < 6; which++)
        for (uint64_t seed = 1; seed <= 6; seed++) {
            struct hw hw;
            machine_of(&hw, which);
            struct synth s;
            synth_init(&s, &hw);
            random_program(&s, seed);
            struct units_machine *m = units_new(&hw, s.p);
            uint64_t cycles = 0, hash = 0;
            for (int run = 0; run < 3; run++) {
                struct check check = {0};
                struct units_options o = UNITS_OPTIONS_DEFAULT;
                o.sink = check_event;
                o.sink_ctx = &check;
                struct units_result r;
                units_run(m, &o, &r);
                cr_assert_eq(r.end, UNITS_HALTED, "machine %d seed %d", which, (int)seed);
                cr_expect_eq(check.events, s.seq);
                cr_expect_eq(r.instructions, s.seq);
                if (run == 0) cycles = r.cycles, hash = check.hash;
                cr_expect_eq(r.cycles, cycles, "run %d", run);
                cr_expect_eq(check.hash, hash, "run %d", run);
                // Bytes cannot come faster than the pins, nor faster than the links.
                const double peak = hw_dram_bytes_per_cycle(&hw),
                             moved = (double)(r.dram.read_bytes + r.dram.write_bytes);
                if (peak > 0) cr_expect(moved <= peak * (double)r.cycles);
                uint64_t mxu = 0, vec = 0, bytes = 0;
                for (size_t i = 0; i < r.ntag; i++) {
                    mxu += r.tag[i].mxu_cycles;
                    vec += r.tag[i].vec_cycles;
                    bytes += r.tag[i].dram_read + r.tag[i].dram_write;
                    cr_expect(r.tag[i].last <= r.cycles && r.tag[i].first <= r.tag[i].last);
                }
                cr_expect(mxu <= r.cycles && vec <= r.cycles);
                cr_expect(bytes + r.dram.fetch_bytes <= r.dram.read_bytes + r.dram.write_bytes);
                // 2 + 2 credits; each of 60 rounds signals 10, 11, 12, 13 and 14 once.
                cr_expect_eq(check.signals, 4 + 60 * 5);
                for (int i = 0; i < ISA_SEMS; i++)
                    cr_expect_eq(check.semaphore[i], 0);
                for (size_t i = 0; i < r.nengine; i++) {
                    uint64_t sum = 0, waits = 0;
                    for (int c = 0; c < TRACE_CLASSES; c++)
                        sum += r.engine[i].cycles[c];
                    for (int w = 0; w < ISA_ENGINES; w++)
                        waits += r.engine[i].wait_for[w];
                    cr_expect_eq(sum, r.cycles, "machine %d engine %d", which, r.engine[i].engine);
                    const struct trace_engine *state = &check.state[r.engine[i].engine];
                    cr_expect_eq(check.state_end[r.engine[i].engine], r.cycles);
                    cr_expect_arr_eq(state->cycles, r.engine[i].cycles, sizeof state->cycles);
                    cr_expect_arr_eq(state->wait_for, r.engine[i].wait_for, sizeof state->wait_for);
                    cr_expect_eq(waits,
                                 r.engine[i].cycles[TRACE_WAIT_SEMAPHORE] +
                                     r.engine[i].cycles[TRACE_WAIT_DMA],
                                 "machine %d engine %d", which, r.engine[i].engine);
                }
                units_reset(m);
            }
            units_free(m);
            synth_deinit(&s);
        }
}

Test(identities, more_of_anything_is_not_slower) {
    struct hw hw = server();
    struct synth s;
    synth_init(&s, &hw);
    random_program(&s, 42);
    const uint64_t base = synth_run(&s).cycles;
    struct hw ideal = hw;
    ideal.dram_standard = HW_IDEAL;
    s.hw = ideal;
    cr_expect(synth_run(&s).cycles <= base);
    struct hw calm = hw;
    calm.dram_refresh = 0;
    s.hw = calm;
    cr_expect(synth_run(&s).cycles <= base);
    struct hw quick = hw;
    quick.cp_semaphore = 0;
    s.hw = quick;
    cr_expect(synth_run(&s).cycles <= base);
    synth_deinit(&s);
}

static bool pattern(void *ctx, uint64_t now_ps, struct units_traffic *out) {
    int *left = ctx;
    if ((*left)-- <= 0) return false;
    *out = (struct units_traffic){.at_ps = now_ps + 8000,
                                  .address = (uint64_t)*left * 4096,
                                  .bytes = 2048,
                                  .write = *left & 1};
    return true;
}

Test(identities, foreign_traffic_slows_a_program_down) {
    const struct hw hw = server();
    struct synth s;
    synth_init(&s, &hw);
    for (int i = 0; i < 64; i++)
        synth_copy(&s, ISA_ENGINE_DMA0 + i % 4, false, i * 65536, 0, 1, 65536, 0, false, none);
    synth_cp(&s, ISA_OP_HALT);
    struct units_machine *m = units_new(&hw, s.p);
    struct units_options o = UNITS_OPTIONS_DEFAULT;
    struct units_result r;
    units_run(m, &o, &r);
    const uint64_t alone = r.cycles;
    int left = 100000;
    o.traffic = pattern;
    o.traffic_ctx = &left;
    units_reset(m);
    units_run(m, &o, &r);
    cr_expect_eq(r.end, UNITS_HALTED);
    cr_expect(r.cycles > alone * 3 / 2, "%d against %d", (int)r.cycles, (int)alone);
    uint64_t phase[16] = {0};
    o.traffic = NULL;
    o.refresh_phase_ps = phase;
    units_reset(m);
    units_run(m, &o, &r);
    cr_expect_neq(r.cycles, alone);
    units_free(m);
    synth_deinit(&s);
}
