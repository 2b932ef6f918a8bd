// SPDX-License-Identifier: Apache-2.0
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

static double bytes_per_cycle(const struct units_result *r) {
    return (double)(r->dram.read_bytes + r->dram.write_bytes) / (double)r->cycles;
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
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    const struct isa_mm_shape shape = {512, 128, 512, ISA_F16, ISA_F16, false};
    const struct isa_cost c = isa_time_mm(&hw, &shape);
    // Decode of its granules, then the product; HALT overlaps.
    const uint64_t decode = (uint64_t)isa_time_decode(&hw, (int)s.pc - 1);
    cr_expect_eq(r.cycles, decode + (uint64_t)c.done_cycles, "%d", (int)r.cycles);
    cr_expect_eq(synth_class(&r, ISA_ENGINE_MXU, TRACE_BUSY) +
                     synth_class(&r, ISA_ENGINE_MXU, TRACE_BUSY_PARTIAL),
                 (uint64_t)c.issue_cycles);
    cr_expect_eq(synth_class(&r, ISA_ENGINE_MXU, TRACE_QUEUE_EMPTY), decode);
    synth_deinit(&s);
}

static struct units_result stream(struct hw hw, int engines, int64_t copies, int64_t bytes,
                                  bool write) {
    struct synth s;
    synth_init(&s, &hw);
    for (int64_t i = 0; i < copies; i++)
        synth_copy(&s, ISA_ENGINE_DMA0 + (int)i % engines, write, i * bytes, (i % 8) * bytes, 1,
                   bytes, 0, false, none);
    synth_cp(&s, ISA_OP_HALT);
    const struct units_result r = synth_run(&s);
    cr_assert_eq(r.end, UNITS_HALTED);
    synth_deinit(&s);
    return r;
}

Test(units, streams_come_near_the_peak_and_never_over) {
    for (int standard = HW_LPDDR4_2400; standard <= HW_HBM2_2000; standard++)
        for (int write = 0; write < 2; write++) {
            struct hw hw = server();
            hw.dram_standard = standard; // about 100 GB/s, 256 for HBM2
            hw.dram_channels = standard == HW_DDR4_3200 ? 4 : standard == HW_LPDDR5_6400 ? 8 : 16;
            hw.dram_channel_bits = standard == HW_DDR4_3200 || standard == HW_HBM2_2000 ? 64 : 16;
            const struct units_result r = stream(hw, 4, 64, 131072, write);
            const double peak = hw_dram_bytes_per_cycle(&hw), share = bytes_per_cycle(&r) / peak;
            cr_expect(share <= 1.0, "standard %d: %f", standard, share);
            cr_expect(share >= 0.85, "standard %d write %d: %f of the peak", standard, write,
                      share);
        }
}
