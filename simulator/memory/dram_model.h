// SPDX-License-Identifier: Apache-2.0
//
// Inside of the memory model, shared by dram.c, dram_channel.c, dram_cut.c and dram_timing.c.
#ifndef SIMULATOR_MEMORY_DRAM_MODEL_H
#define SIMULATOR_MEMORY_DRAM_MODEL_H

#include "simulator/memory/dram.h"

#define DRAM_CLOSED INT32_MIN
#define DRAM_SLACK 8 // entries of a queue that only urgent quanta take

enum dram_mode { DRAM_MODE_IDEAL, DRAM_MODE_FAST, DRAM_MODE_DETAILED };

/// Timing of a channel, in ps but for the shapes.
struct dram_timing {
    uint64_t clock, cl, cwl, rcd_read, rcd_write, rp, ras, faw, rrd, wtr, wr, rtp;
    uint64_t burst;         ///< one burst to the next on the bus
    uint64_t turn;          ///< bus idle between a read and a write
    uint64_t rfc, refi;     ///< of all banks, or of one when per_bank
    uint64_t lead;          ///< decisions are made this long before the bus is free
    uint32_t burst_bytes;   ///< of one burst
    uint32_t row_bytes;     ///< of a gang of banks
    int banks;              ///< gangs
    int activates;          ///< real banks of a gang
    int faw_count;          ///< gangs that tFAW allows to open
    bool per_bank, refresh; ///< refresh: whether there is any
};

struct dram_bank {
    int32_t row;       ///< open one, or DRAM_CLOSED
    uint64_t ready_ps; ///< closed: earliest activate
    uint64_t col_ps;   ///< open: earliest column command of a read (writes: write_ps)
    uint64_t write_ps;
    uint64_t close_ps; ///< open: earliest precharge
};

struct dram_queue {
    struct dram_quantum *item; ///< in order of submission
    int count;
    uint64_t bytes;
    uint64_t accepted; ///< writes: bytes that the controller has taken
    bool refused;      ///< somebody waits for room
};

struct dram_channel {
    struct dram_bank *bank;
    struct dram_queue read, write;
    uint64_t bus_ps;     ///< the data bus is free
    uint64_t read_ps;    ///< earliest read command (after a write)
    uint64_t opened[4];  ///< last activates, a ring
    uint64_t refresh_ps; ///< next one due
    uint64_t blocked_ps; ///< end of the last refresh, and its start
    uint64_t blocked_from_ps;
    int opened_at, refresh_bank, blocked_bank;
    int passed; ///< row hits served before an older miss
    bool wrote, draining;
    uint32_t waiting; ///< clients refused, a bit each
};

struct dram {
    struct dram_timing t;
    enum dram_mode mode;
    int channels, queue, hit_cap;
    uint64_t there_ps; ///< client to controller; the way back is as long
    uint64_t ps_per_kib;
    bool crossing; ///< arrivals wait for an edge of the clock, one of which is at edge_ps
    uint64_t edge_ps;
    // Address map; shifts are -1 when the divisor is no power of two.
    uint64_t interleave, stripe;
    int interleave_shift, channel_shift, row_shift, bank_shift;
    // Tree of next times: leaves are channels, each inner node the earlier child.
    uint64_t *next;
    uint16_t *winner;
    int leaves;
    uint64_t bucket_ps; ///< fast: when the bucket is free
    struct dram_channel *channel;
    uint64_t writes_left[DRAM_CLIENTS], written_ps[DRAM_CLIENTS]; ///< queued; end of the last
    struct dram_stats stats;
    dram_done *done;
    dram_space *space;
    void *ctx;
    uint64_t *default_phase;
};

/// Fills the timing of a description's standard and policy.
void dram_timing_init(struct dram_timing *t, const struct hw *hw);
/// First refresh of one of so many channels.
uint64_t dram_first_ps(const struct dram_timing *t, uint64_t channel, uint64_t channels);

/// Sets a channel's next decision.
void dram_schedule(struct dram *d, int channel, uint64_t at_ps);

/// detailed: queues a quantum (dram_submit), decides for a channel (dram_step).
bool dram_channel_submit(struct dram *d, const struct dram_quantum *q, uint64_t arrive_ps);
void dram_channel_step(struct dram *d, int channel, uint64_t now_ps);

#endif
