// SPDX-License-Identifier: Apache-2.0
//
// From a row of dram.def to the timing of a channel in ps.
#include <stddef.h>

#include "simulator/memory/dram_model.h"

struct standard {
    const char *word;
    int64_t mega_transfers, tck_ps, burst, cl, cwl, rcd_read, rcd_write, rp, ras, faw, rrd_s, rrd_l,
        ccd_s, ccd_l, wtr_s, wtr_l, wr, rtp, groups, banks, page_bytes, rfc_ps, rfc_bank_ps,
        refi_ps;
};

static const struct standard standards[] = {
#define DRAM_STANDARD(NAME, word, mega_transfers, tck_ps, burst, cl, cwl, rcd_rd, rcd_wr, rp, ras, \
                      faw, rrd_s, rrd_l, ccd_s, ccd_l, wtr_s, wtr_l, wr, rtp, groups, banks,       \
                      page_bytes, rfc_ps, rfc_bank_ps, refi_ps, source)                            \
    {word,  mega_transfers, tck_ps, burst,       cl,     cwl,   rcd_rd, rcd_wr, rp,  ras,          \
     faw,   rrd_s,          rrd_l,  ccd_s,       ccd_l,  wtr_s, wtr_l,  wr,     rtp, groups,       \
     banks, page_bytes,     rfc_ps, rfc_bank_ps, refi_ps},
#include "isa/dram.def"
};
#define STANDARDS ((int64_t)(sizeof standards / sizeof *standards))

static int64_t max64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t cdiv(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

void dram_timing_init(struct dram_timing *t, const struct hw *hw) {
    const int64_t which = hw->dram_standard < STANDARDS ? hw->dram_standard : 0;
    const struct standard *s = &standards[which];
    const uint64_t clock = (uint64_t)s->tck_ps;
    // Data clocks of a burst: transfers at twice the data clock, whatever the command clock is.
    const int64_t burst_ps = cdiv(s->burst * 1000000, s->mega_transfers);
    const int64_t gang = s->groups > 1 ? cdiv(s->ccd_l, s->ccd_s) : 1;
    *t = (struct dram_timing){
        .clock = clock,
        .cl = (uint64_t)s->cl * clock,
        .cwl = (uint64_t)s->cwl * clock,
        .rcd_read = (uint64_t)s->rcd_read * clock,
        .rcd_write = (uint64_t)s->rcd_write * clock,
        .rp = (uint64_t)s->rp * clock,
        .ras = (uint64_t)s->ras * clock,
        .faw = (uint64_t)s->faw * clock,
        .rrd = (uint64_t)s->rrd_s * clock,
        .wtr = (uint64_t)s->wtr_l * clock,
        .wr = (uint64_t)s->wr * clock,
        .rtp = (uint64_t)s->rtp * clock,
        .burst = (uint64_t)max64(burst_ps, s->ccd_s * s->tck_ps),
        .turn = 2 * clock,
        .burst_bytes = (uint32_t)max64(1, s->burst * hw->dram_channel_bits / 8),
        .row_bytes = (uint32_t)(s->page_bytes * gang),
        .banks = (int)max64(1, s->groups * s->banks / gang),
        .activates = (int)gang,
        .faw_count = (int)max64(1, 4 / gang),
        .refresh = hw->dram_refresh != 0,
        .per_bank = hw->dram_refresh_mode == 1 && s->rfc_bank_ps != 0,
    };
    t->lead = t->rp + t->rcd_read + t->cl;
    t->rfc = (uint64_t)(t->per_bank ? s->rfc_bank_ps : s->rfc_ps);
    t->refi = (uint64_t)(t->per_bank ? s->refi_ps / t->banks : s->refi_ps);
}

uint64_t dram_refresh_round_ps(const struct hw *hw) {
    if (hw->dram_standard >= STANDARDS || hw->dram_fidelity != HW_DETAILED) return 0;
    struct dram_timing t;
    dram_timing_init(&t, hw);
    if (!t.refresh) return 0;
    return t.per_bank ? t.refi * (uint64_t)t.banks : t.refi;
}

uint64_t dram_first_ps(const struct dram_timing *t, uint64_t channel, uint64_t channels) {
    return t->refi * (2 * channel + 1) / (2 * channels);
}

uint64_t dram_refresh_first_ps(const struct hw *hw, int channel) {
    struct dram_timing t;
    dram_timing_init(&t, hw);
    return dram_first_ps(&t, (uint64_t)channel, (uint64_t)hw->dram_channels);
}

uint64_t dram_clock_ps(const struct hw *hw) {
    return hw->dram_standard < STANDARDS ? (uint64_t)standards[hw->dram_standard].tck_ps : 0;
}

int64_t dram_refresh_loss_ppm(const struct hw *hw) {
    if (hw->dram_standard >= STANDARDS || !hw->dram_refresh) return 0;
    struct dram_timing t;
    dram_timing_init(&t, hw);
    // One bank of many hardly ever stops a channel that has work for the others.
    return t.per_bank ? 0 : (int64_t)(t.rfc * 1000000 / t.refi);
}
