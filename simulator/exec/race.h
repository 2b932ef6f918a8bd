// SPDX-License-Identifier: Apache-2.0
// Happens-before, and races between engines.
//
// Every engine (and the command processor) has three points in time per instruction: start,
// operands read, done. Within an engine each of the three is in order. A clock says of every engine
// how many of its instructions are known to have read, and to be done. Clocks travel with
// semaphores; see race.c for the rules.
#ifndef NPU_SIMULATOR_EXEC_RACE_H
#define NPU_SIMULATOR_EXEC_RACE_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/insn.h"
#include "simulator/exec/fault.h"
#include "simulator/exec/foot.h"

// Instructions 1..read[e] of engine e have read their operands, 1..done[e] are complete.
struct race_clock {
    uint32_t read[ISA_ENGINES], done[ISA_ENGINES];
};

void clock_join(struct race_clock *c, const struct race_clock *other);

enum { RACE_SPACES = 3 }; // SPM, PSUM, DRAM

// One access: a box, and its exact footprints when they are not the box itself.
struct race_access {
    int64_t lo, hi;
    uint32_t index;       // of the engine's instruction
    uint32_t foot, nfoot; // foot[foot ..] of the race; nfoot 0: the box
};

// Boxes around every RACE_BLOCK and every RACE_BLOCK^2 items, so that a long list is not read where
// nothing meets.
enum { RACE_BLOCK = 64, RACE_LEVELS = 2 };

struct race_box {
    int64_t lo, hi;
};

struct race_list {
    struct race_access *item; // owned, index ascends
    uint32_t len, cap;
    struct race_box *box[RACE_LEVELS]; // owned
    uint32_t box_cap[RACE_LEVELS];
};

struct race {
    struct race_clock start[ISA_ENGINES], read[ISA_ENGINES],
        done[ISA_ENGINES];                              // of the last instruction
    uint32_t count[ISA_ENGINES];                        // instructions begun
    struct race_list list[ISA_ENGINES][RACE_SPACES][2]; // [1]: writes
    uint32_t cursor[ISA_ENGINES][ISA_ENGINES][RACE_SPACES]
                   [2];                    // observer, engine: older ones are ordered before it
    struct exec_place *place[ISA_ENGINES]; // owned; of instruction index - 1
    uint32_t *order[ISA_ENGINES]; // owned; of instruction index - 1: how many ran before it
    uint32_t place_cap[ISA_ENGINES], order_cap[ISA_ENGINES];
    uint32_t begun;         // instructions of all engines
    struct exec_foot *foot; // owned
    uint32_t nfoot, foot_cap;
    int engine; // of the instruction between race_begin and race_end
};

struct race_hit {
    int64_t address; // a byte that both touch
    bool other_writes;
    struct exec_place other;
};

void race_init(struct race *r);
void race_deinit(struct race *r);
void race_reset(struct race *r); // keeps the memory

// Begins the next instruction of an engine. `before`: clock of its dispatch joined with those of
// its waits. `fence`: everything earlier on its queue is complete. false: out of memory.
bool race_begin(struct race *r, const struct exec_place *at, const struct race_clock *before,
                bool fence);

// Checks an access of that instruction, made of `n` footprints (1 and up), against all that are not
// ordered before it, and notes it.
enum race_result { RACE_NONE, RACE_FOUND, RACE_NO_MEMORY };
enum race_result race_access(struct race *r, int space, const struct exec_foot *f, uint32_t n,
                             bool write, struct race_hit *hit);

// Ends it; clock of its start, read and done points in *out when not NULL (index: enum isa_when).
void race_end(struct race *r, struct race_clock out[3]);

// Everything begun on every engine is complete: the clock after a barrier.
void race_all_done(const struct race *r, struct race_clock *c);

#endif
