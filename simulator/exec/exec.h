// SPDX-License-Identifier: Apache-2.0
// The functional machine: runs a program without time. It computes values, enforces the rules of
// the instruction set and hands every dynamic instruction, in order of dispatch, to a sink. No
// result depends on time, host or threads.
#ifndef NPU_SIMULATOR_EXEC_EXEC_H
#define NPU_SIMULATOR_EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/hw.h"
#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "simulator/exec/dram.h"
#include "simulator/exec/dyn.h"
#include "simulator/exec/fault.h"
#include "simulator/exec/foot.h"

enum { EXEC_DOORBELLS = 16 };

// Bytes that an instruction has just written: which one, where they lie in `space` (in DRAM: the
// program's own addresses), and the memory from foot->lo on. Once per operand that it writes, a
// gather that skips rows once per row; in the order of execution. Valid during the call.
typedef void exec_write_sink(void *ctx, const struct exec_place *at, int space,
                             const struct exec_foot *foot, const uint8_t *bytes);

// How far an instruction has come at the moment at which a run is to be stopped.
enum exec_point {
    EXEC_AHEAD,   // the command processor has not handed it on yet, or works on it
    EXEC_QUEUED,  // in its engine's queue
    EXEC_STARTED, // its waits are over
    EXEC_READ,    // its operands are read
    EXEC_DONE,    // what it writes is visible
};

// Of the instruction `seq`. Whatever an instruction waits for must have come far enough for it.
typedef enum exec_point exec_reached(void *ctx, uint64_t seq);

// One run: a program from its entry to HALT. Everything is lent for the call.
struct exec_job {
    struct span code;              // whole granules
    uint64_t code_version;         // not 0: a job with this one and the same span has the same code
    uint64_t entry_bytes;          // first instruction, from the start of the code
    struct exec_dram *dram;        // the device's memory
    int64_t dram_base, dram_bytes; // what the program sees as its DRAM 0 and its size
    int64_t doorbell[EXEC_DOORBELLS];
    bool values;          // false: compute only what feeds addresses, sizes and branches
    uint64_t step_limit;  // instructions; 0: the default, EXEC_STEP_LIMIT
    exec_sink *sink;      // may be NULL
    exec_rows_sink *rows; // may be NULL
    void *sink_ctx;
    exec_write_sink *written; // may be NULL; only called when values are computed
    void *written_ctx;
    bool rehearsal; // DRAM is as before when the run is over: bytes, and which were written
    // Stops the run: the command processor goes on to the first instruction that is AHEAD (of its
    // own: that is not DONE), engines to theirs that are not STARTED. Those between STARTED and
    // DONE have taken their waits and sent the signals of the points passed, and have written
    // nothing. NULL: runs to HALT.
    exec_reached *reached;
    void *reached_ctx;
};

#define EXEC_STEP_LIMIT 20000000u

struct exec_stats {
    uint64_t instructions; // dispatched, command processor's included
    uint64_t per_engine[ISA_ENGINES];
    int64_t spm_peak_bytes, psum_peak_bytes; // one past the highest byte touched
    uint32_t irq_status; // bits of IRQ instructions; the header's irq bit sets bit 0
    uint32_t passes;     // runs over the program: more than one only without values
};

struct exec;

// A machine of that description (copied). NO_MEMORY. Release with exec_free.
NPU_MUST_USE npu_status exec_new(const struct hw *hw, struct exec **out);
void exec_free(struct exec *x);

// Runs a job; on-chip memory starts unwritten, semaphores at 0. FAULT: the program broke a rule,
// see exec_fault_of(); what it wrote to DRAM before stays. NO_MEMORY, or what the sink returned.
NPU_MUST_USE npu_status exec_run(struct exec *x, const struct exec_job *job);

// The fault of the last run, NULL when there was none. Lives until the next run.
const struct exec_fault *exec_fault_of(const struct exec *x);
const struct exec_stats *exec_stats_of(const struct exec *x);

// On-chip memories after a run, for tests and debugging.
const uint8_t *exec_spm(const struct exec *x);
const uint8_t *exec_psum(const struct exec *x);
// Which of their bytes were written; NULL for other spaces.
const struct exec_bits *exec_written(const struct exec *x, int space);

#endif
