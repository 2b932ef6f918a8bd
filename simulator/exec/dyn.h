// SPDX-License-Identifier: Apache-2.0
// What the functional machine hands to whoever wants to know every executed instruction: the timing
// machine, tests, statistics. Nothing here knows about time.
//
// Dynamic instructions arrive in the order in which the command processor reached them, with
// operands resolved (registers added to bases, register sizes filled in, areg = sreg = 0). Rows of
// a gather are known only when its indices are, so they arrive later, when it executes, and before
// the pass ends.
#ifndef NPU_SIMULATOR_EXEC_DYN_H
#define NPU_SIMULATOR_EXEC_DYN_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/insn.h"
#include "runtime/base/status.h"

#define EXEC_NEST 8 // deepest nest of loops, and of calls

struct exec_dyn {
    uint64_t seq;                   // 0, 1, 2 ... in order of dispatch
    uint32_t pc_granule;            // where it stands in the code
    int granules;                   // its length
    int engine;                     // enum isa_engine; command-processor instructions come too
    uint32_t tag;                   // header tag + TAGBASE
    int loop_depth;                 // open loops
    uint32_t loop_index[EXEC_NEST]; // iteration of each, outermost first
    bool skipped;                   // predicate was 0: waits and signals happen, the work does not
    bool taken;           // BR, ENDL, CALL, RET: the next instruction is not the one after it
    int64_t dram_address; // LDS and STS: effective address; else 0
    const struct isa_insn *insn; // resolved; valid during the call
};

// A status other than NULL ends the pass and is returned by exec_run().
typedef npu_status exec_sink(void *ctx, const struct exec_dyn *dyn);

// Rows that the gather `seq` reads: row[i] is the row number of index i, -1 when nothing is read
// (skipped or zeros).
typedef npu_status exec_rows_sink(void *ctx, uint64_t seq, const int64_t *row, int64_t nrow);

#endif
