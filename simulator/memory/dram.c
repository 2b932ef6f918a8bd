// SPDX-License-Identifier: Apache-2.0
//
// Memory as its clients see it: building, resetting, the tree of next decisions, and the two
// fidelities that need no banks. `fast` is one bucket that fills at the pins' rate less the refresh
// share, and the latency of a row that has to be opened; `ideal` answers when asked.
#include "simulator/memory/dram.h"

#include <string.h>

#include "runtime/base/alloc.h"
#include "simulator/memory/dram_model.h"

static int shift_of(uint64_t n) {
    int s = 0;
    while (s < 63 && (UINT64_C(1) << s) < n)
        s++;
    return (UINT64_C(1) << s) == n ? s : -1;
}

static bool allocate(struct dram *d) {
    const size_t n = (size_t)d->channels, entries = (size_t)(d->queue + DRAM_SLACK);
    d->leaves = 1;
    while (d->leaves < d->channels)
        d->leaves *= 2;
    d->next = base_alloc_array((size_t)d->leaves, sizeof *d->next);
    d->winner = base_alloc_array((size_t)d->leaves * 2, sizeof *d->winner);
    d->channel = base_alloc_array(n, sizeof *d->channel);
    d->default_phase = base_alloc_array(n, sizeof *d->default_phase);
    if (!d->next || !d->winner || !d->channel || !d->default_phase) return false;
    for (size_t i = 0; i < n; i++) {
        struct dram_channel *c = &d->channel[i];
        c->bank = base_alloc_array((size_t)d->t.banks, sizeof *c->bank);
        c->read.item = base_alloc_array(entries, sizeof *c->read.item);
        c->write.item = base_alloc_array(entries, sizeof *c->write.item);
        if (!c->bank || !c->read.item || !c->write.item) return false;
        d->default_phase[i] = dram_first_ps(&d->t, i, n);
    }
    return true;
}

struct dram *dram_new(const struct hw *hw, dram_done *done, dram_space *space, void *ctx) {
    struct dram *d = base_alloc(sizeof *d);
    if (!d) return NULL;
    dram_timing_init(&d->t, hw);
    d->mode = hw->dram_standard == HW_IDEAL      ? DRAM_MODE_IDEAL
              : hw->dram_fidelity == HW_DETAILED ? DRAM_MODE_DETAILED
                                                 : DRAM_MODE_FAST;
    d->channels = d->mode == DRAM_MODE_DETAILED ? (int)hw->dram_channels : 1;
    d->queue = (int)hw->dram_queue;
    d->hit_cap = (int)hw->dram_row_hit_cap;
    d->there_ps = (uint64_t)hw->dram_latency_ps / 2;
    d->interleave = (uint64_t)hw->dram_interleave_bytes;
    d->interleave_shift = shift_of(d->interleave);
    d->channel_shift = shift_of((uint64_t)d->channels);
    d->row_shift = shift_of(d->t.row_bytes);
    d->bank_shift = shift_of((uint64_t)d->t.banks);
    const uint64_t rate = (uint64_t)d->t.burst_bytes * (uint64_t)hw->dram_channels;
    uint64_t ps = (d->t.burst * 1024 + rate - 1) / rate;
    if (d->mode == DRAM_MODE_FAST)
        ps = ps * 1000000 / (uint64_t)(1000000 - dram_refresh_loss_ppm(hw));
    d->ps_per_kib = d->mode == DRAM_MODE_IDEAL ? 0 : ps;
    d->done = done;
    d->space = space;
    d->ctx = ctx;
    if (!allocate(d)) {
        dram_free(d);
        return NULL;
    }
    dram_reset(d, NULL);
    return d;
}

void dram_free(struct dram *d) {
    if (!d) return;
    for (int i = 0; d->channel && i < d->channels; i++) {
        base_free(d->channel[i].bank);
        base_free(d->channel[i].read.item);
        base_free(d->channel[i].write.item);
    }
    base_free(d->channel);
    base_free(d->next);
    base_free(d->winner);
    base_free(d->default_phase);
    base_free(d);
}

void dram_reset(struct dram *d, const uint64_t *phase_ps) {
    for (int i = 0; i < d->channels; i++) {
        const struct dram_channel old = d->channel[i];
        struct dram_channel *c = &d->channel[i];
        *c = (struct dram_channel){.bank = old.bank};
        c->read.item = old.read.item;
        c->write.item = old.write.item;
        for (int b = 0; b < d->t.banks; b++)
            c->bank[b] = (struct dram_bank){.row = DRAM_CLOSED};
        c->refresh_ps = d->t.refresh ? d->default_phase[i] : DRAM_NEVER;
        if (d->t.refresh && phase_ps) { // per bank: those before it in the round come first
            const uint64_t before = d->t.per_bank ? phase_ps[i] / d->t.refi : 0;
            const int banks = d->t.banks;
            c->refresh_ps = phase_ps[i] % d->t.refi;
            c->refresh_bank = (banks - (int)(before % (uint64_t)banks)) % banks;
        }
    }
    for (int i = 0; i < d->leaves; i++)
        d->next[i] = DRAM_NEVER;
    for (int i = 2 * d->leaves - 1; i > 0; i--)
        d->winner[i] = (uint16_t)(i >= d->leaves ? i - d->leaves : d->winner[2 * i]);
    d->bucket_ps = 0;
    d->crossing = false;
    for (int i = 0; i < DRAM_CLIENTS; i++)
        d->writes_left[i] = d->written_ps[i] = 0;
    d->stats = (struct dram_stats){0};
}

// First edge of the memory's clock at or after a time.
static uint64_t edge_from(const struct dram *d, uint64_t ps) {
    const uint64_t off = (ps + d->t.clock - d->edge_ps) % d->t.clock;
    return off ? ps + d->t.clock - off : ps;
}

void dram_cross(struct dram *d, uint64_t edge_ps) {
    if (d->mode == DRAM_MODE_IDEAL) return;
    d->crossing = true;
    d->edge_ps = edge_ps % d->t.clock;
    for (int i = 0; i < d->channels; i++)
        if (d->channel[i].refresh_ps != DRAM_NEVER)
            d->channel[i].refresh_ps = edge_from(d, d->channel[i].refresh_ps);
}

void dram_schedule(struct dram *d, int channel, uint64_t at_ps) {
    d->next[channel] = at_ps;
    for (unsigned i = (unsigned)(channel + d->leaves) / 2; i > 0; i /= 2) {
        const uint16_t a = d->winner[2 * i], b = d->winner[2 * i + 1], old = d->winner[i];
        const uint16_t first = d->next[b] < d->next[a] ? b : a;
        d->winner[i] = first;
        // Another channel was first here and still is: nothing changes above.
        if (old != channel && first != channel) return;
    }
}

uint64_t dram_next(const struct dram *d) {
    return d->next[d->winner[1]];
}

void dram_step(struct dram *d) {
    const int channel = d->winner[1];
    dram_channel_step(d, channel, d->next[channel]);
}

static void answer_at_once(struct dram *d, const struct dram_quantum *q) {
    struct dram_reply r = {.done_ps = q->arrive_ps};
    d->stats.quanta++;
    if (q->write)
        d->stats.write_bytes += q->at.bytes;
    else
        d->stats.read_bytes += q->at.bytes;
    if (d->mode == DRAM_MODE_FAST) {
        const uint64_t start = q->arrive_ps > d->bucket_ps ? q->arrive_ps : d->bucket_ps;
        const uint64_t time = (q->at.bytes * d->ps_per_kib + 1023) / 1024;
        d->bucket_ps = start + time;
        d->stats.bus_ps += time;
        if (q->write) d->written_ps[q->client] = d->bucket_ps;
        r.done_ps = d->bucket_ps + d->there_ps + (q->write ? 0 : d->t.rcd_read + d->t.cl);
    }
    d->done(d->ctx, q, &r);
}

bool dram_submit(struct dram *d, const struct dram_quantum *sent) {
    uint64_t arrive_ps = sent->arrive_ps;
    if (d->mode != DRAM_MODE_IDEAL) arrive_ps += d->there_ps;
    if (d->crossing) arrive_ps = edge_from(d, arrive_ps);
    if (d->mode == DRAM_MODE_DETAILED) return dram_channel_submit(d, sent, arrive_ps);
    struct dram_quantum q = *sent;
    q.arrive_ps = arrive_ps;
    answer_at_once(d, &q);
    return true;
}

bool dram_written(const struct dram *d, int client, uint64_t *ps) {
    *ps = d->written_ps[client];
    return d->writes_left[client] == 0;
}

const struct dram_stats *dram_statistics(const struct dram *d) {
    return &d->stats;
}

int dram_channels(const struct dram *d) {
    return d->channels;
}

uint64_t dram_certain_ps(const struct dram *d) {
    if (d->mode != DRAM_MODE_DETAILED) return DRAM_NEVER / 2; // answers come at once and in order
    const uint64_t read = d->there_ps + d->t.cl, forward = 2 * d->there_ps;
    return read < forward ? read : forward;
}

uint32_t dram_quantum_bytes(const struct dram *d) {
    return d->t.row_bytes < DRAM_QUANTUM_BYTES ? d->t.row_bytes : DRAM_QUANTUM_BYTES;
}

uint64_t dram_ps_per_kib(const struct dram *d) {
    return d->ps_per_kib;
}
