// SPDX-License-Identifier: Apache-2.0
//
// External memory: channels, banks, open rows, refresh. The unit of arbitration is the quantum: an
// access of up to DRAM_QUANTUM_BYTES to one row of one bank, whose transfer is a closed form. Who
// uses it cuts addresses into pieces (dram_cut), submits them as quanta and hears back when the
// data is there.
//
// Three fidelities behind one interface: `detailed` (dram_channel.c), `fast` (latency and one
// bandwidth bucket) and `ideal` (no time at all; hw dram.standard = ideal). Nothing allocates after
// dram_new.
//
// A channel's address is made of (from the low bits) byte in the interleave, channel, column, bank,
// row; the bank is exchanged by the row's low bits, so that streams a power of two apart do not
// meet in one bank. A bank here is as many banks of different groups as it takes to hide tCCD_L
// behind tCCD_S: their bursts alternate, their rows open together.
#ifndef SIMULATOR_MEMORY_DRAM_H
#define SIMULATOR_MEMORY_DRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/hw.h"

#define DRAM_QUANTUM_BYTES 1024
#define DRAM_CLIENTS 8
#define DRAM_NEVER UINT64_MAX

struct dram;

/// Where an access goes: one row of one bank of one channel.
struct dram_piece {
    int32_t row;
    uint16_t channel, bank;
    uint32_t bytes;  ///< on the bus: whole accesses of the caller's burst size
    uint32_t runs;   ///< contiguous runs that begin in it
    uint32_t column; ///< first byte in the row; UINT32_MAX when the bytes do not lie together
};

struct dram_quantum {
    uint64_t arrive_ps; ///< when the client sends it, may lie ahead of now; inside, arrival at the
                        ///< controller
    struct dram_piece at;
    uint8_t client; ///< 0 .. DRAM_CLIENTS - 1
    bool write;
    bool accepted;   ///< inside: a write that the controller has taken
    bool urgent;     ///< served before everything that is not
    uint32_t cookie; ///< the client's own
};

/// When a quantum is over, and what it lost on the way. All in ps.
struct dram_reply {
    uint64_t
        done_ps; ///< read: last byte is at the client; write: the client knows that it was accepted
    uint64_t refresh_ps;  ///< waited for a refresh
    uint64_t conflict_ps; ///< waited for a row to close and open, or for the bus to turn round
};

/// Called once per quantum, in order of decision (not of done_ps), possibly from inside
/// dram_submit.
typedef void dram_done(void *ctx, const struct dram_quantum *q, const struct dram_reply *r);

/// Called when a queue that refused the client has room again, at at_ps.
typedef void dram_space(void *ctx, int client, uint64_t at_ps);

struct dram_stats {
    uint64_t read_bytes, write_bytes; ///< on the bus
    uint64_t row_hits,
        row_misses; ///< accesses of the standard's burst: in an open row, or that opened one
    uint64_t row_conflicts; ///< those of the misses that had to close another row first
    uint64_t refreshes;     ///< all channels
    uint64_t refresh_ps;    ///< time of channels (per bank: of banks) spent in them
    uint64_t bus_ps;        ///< time of channels' data buses in use
    uint64_t turns;         ///< changes between reading and writing
    uint64_t forwards;      ///< reads answered from the write queue
    uint64_t quanta;
};

/// New memory of a description, which is copied; NULL when out of memory. The callbacks get ctx.
/// Release with dram_free.
struct dram *dram_new(const struct hw *hw, dram_done *done, dram_space *space, void *ctx);

/// Releases it; NULL is allowed.
void dram_free(struct dram *d);

/// Back to time 0: empty queues, closed rows, zero statistics, no crossing. phase_ps gives each
/// channel's first refresh (per bank: of bank 0), taken modulo the round; NULL spreads them evenly.
void dram_reset(struct dram *d, const uint64_t *phase_ps);

/// After a reset: the controller runs on the memory's own clock, whose first edge is at edge_ps.
/// Quanta arrive at its edges, and refreshes start at them. The client's clock rounds what comes
/// back. An ideal memory has no clock.
void dram_cross(struct dram *d, uint64_t edge_ps);

/// Between two refreshes of the same rows' counter: tREFI, of all banks in turn when they are
/// refreshed one by one. 0: this memory has no refresh that stops anybody (none, ideal, or fast).
uint64_t dram_refresh_round_ps(const struct hw *hw);

/// First refresh of a channel where nobody says otherwise: channels in turn. dram_refresh_round_ps
/// is not 0.
uint64_t dram_refresh_first_ps(const struct hw *hw, int channel);

/// Period of the memory's command clock; 0 for ideal.
uint64_t dram_clock_ps(const struct hw *hw);

/// Takes a quantum. False: that channel's queue is full, the space callback comes.
bool dram_submit(struct dram *d, const struct dram_quantum *q);

/// Whether every write that the client has sent is in memory, and since when.
bool dram_written(const struct dram *d, int client, uint64_t *ps);

/// When the next decision is due; DRAM_NEVER when nothing is queued.
uint64_t dram_next(const struct dram *d);

/// Makes that decision.
void dram_step(struct dram *d);

const struct dram_stats *dram_statistics(const struct dram *d);

/// Channels of the model (1 for fast and ideal).
int dram_channels(const struct dram *d);

/// A client's answers to quanta that are not decided yet come at least this long after now.
uint64_t dram_certain_ps(const struct dram *d);

/// Largest quantum worth cutting: DRAM_QUANTUM_BYTES, less when a row is shorter.
uint32_t dram_quantum_bytes(const struct dram *d);

/// ps that the whole memory needs per KiB at its pins; 0 for ideal.
uint64_t dram_ps_per_kib(const struct dram *d);

/// Time lost to refresh when every bank always has work, parts in 10^6.
int64_t dram_refresh_loss_ppm(const struct hw *hw);

// ---- cutting addresses ----

/// Pieces of a block of addresses, merged per channel as long as they stay in a row and a quantum.
struct dram_cut {
    struct dram_piece *piece; ///< capacity of them
    int16_t *open;            ///< per channel: the piece that may grow, or -1
    int count, capacity;
    uint32_t quantum_bytes; ///< 1 .. dram_quantum_bytes
    uint64_t bytes;         ///< of all pieces
};

/// Cut with room for `capacity` pieces >= 1 of at most quantum_bytes; false when out of memory.
bool dram_cut_init(struct dram_cut *c, const struct dram *d, int capacity, uint32_t quantum_bytes);
void dram_cut_deinit(struct dram_cut *c);

/// Forgets the pieces.
void dram_cut_clear(struct dram_cut *c, const struct dram *d);

/// Adds the run [address, address + bytes), counting it as `runs` (1, or 0 for the rest of one
/// begun). Returns the bytes taken: fewer when the pieces are full.
uint64_t dram_cut_run(struct dram_cut *c, const struct dram *d, uint64_t address, uint64_t bytes,
                      uint32_t runs);

#endif
