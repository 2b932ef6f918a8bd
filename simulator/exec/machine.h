// SPDX-License-Identifier: Apache-2.0
// Inside of the functional machine: shared by its command processor (interp.c), its engines
// (engine.c) and its life (exec.c). Nobody else includes this.
#ifndef NPU_SIMULATOR_EXEC_MACHINE_H
#define NPU_SIMULATOR_EXEC_MACHINE_H

#include "simulator/exec/check.h"
#include "simulator/exec/exec.h"
#include "simulator/exec/race.h"
#include "simulator/exec/sem.h"
#include "simulator/exec/slice.h"
#include "simulator/exec/state.h"
#include "simulator/exec/undo.h"
#include "simulator/exec/val.h"

// An instruction that waits in its engine's queue.
struct exec_entry {
    struct exec_entry *next;
    struct exec_place at;
    bool skipped;
    uint32_t clock; // of its dispatch: index into snap
    struct isa_insn insn;
};

struct exec_queue {
    struct exec_entry *first, *last;
    uint32_t len;
};

enum { EXEC_LOOP_REGS = 6 };

struct exec_loop {
    uint32_t body_granule; // first instruction of the body
    int call_depth;        // when it was opened
    uint32_t index;
    int64_t count;
    int64_t reg[EXEC_LOOP_REGS], inc[EXEC_LOOP_REGS], saved[EXEC_LOOP_REGS];
};

struct exec_call {
    uint32_t return_granule, tag_base;
    int loop_depth; // when it was called
};

struct exec {
    struct hw hw;
    struct check_machine m;
    uint8_t *spm, *psum; // owned pages
    struct exec_bits spm_written, psum_written;
    struct val_work *work; // owned
    struct exec_sem sem[ISA_SEMS];
    struct race race;
    struct exec_queue queue[ISA_ENGINES];
    struct exec_entry *spare; // owned, for reuse
    struct race_clock
        *snap; // owned: clocks of the command processor that queued instructions refer to
    uint32_t nsnap, snap_cap;
    int64_t *rows; // owned: row numbers of a gather
    int64_t rows_cap;
    struct exec_foot *feet; // owned: footprints of its rows
    int64_t feet_cap;
    // command processor
    const struct exec_job *job;
    uint32_t *code_map; // owned, per granule: 0 no instruction starts here, else 1 + granule after
                        // innermost LOOP
    uint32_t ngranule, map_cap;
    struct span scanned; // what code_map is of, of the version; 0: of the job's
    uint64_t scanned_version;
    bool code_loads; // the code has an LDS or a GATHER: values may feed addresses
    uint32_t pc;
    int64_t reg[ISA_REGS];
    struct exec_loop loop[EXEC_NEST];
    int loop_depth;
    struct exec_call call[EXEC_NEST];
    int call_depth;
    uint32_t tag_base;
    struct race_clock cp;     // what the command processor knows
    bool cp_changed;          // since the last snapshot
    bool signalled;           // a semaphore rose since the engines were last looked at
    bool halted, discovering; // discovering: a pass that only finds what must be computed
    uint64_t idle_steps;      // instructions since something was dispatched
    bool stopped;             // where job->reached says
    struct exec_flight flight[ISA_ENGINES][EXEC_FLIGHTS]; // started and not done when stopped
    uint32_t nflight[ISA_ENGINES];
    struct undo undo; // of a rehearsal
    struct slice slice;
    struct exec_fault fault;
    npu_status error; // owned: not the program's fault
    struct exec_stats stats;
};

// All of these return false when the run ends there: x->fault or x->error is set.

// Fault of an instruction, text as in check_fail.
bool exec_raise(struct exec *x, const struct exec_place *at, enum exec_fault_kind kind,
                const char *format, ...) __attribute__((format(printf, 4, 5)));
bool exec_no_memory(struct exec *x, const char *what);

// How far an instruction comes in this run: DONE when nothing stops it.
static inline enum exec_point exec_point_of(const struct exec *x, uint64_t seq) {
    return x->job->reached && !x->discovering ? x->job->reached(x->job->reached_ctx, seq)
                                              : EXEC_DONE;
}

// interp.c
bool interp_step(struct exec *x);

// code.c: boundaries of instructions and the loops around them.
bool code_scan(struct exec *x);
bool code_is_start(const struct exec *x, int64_t granule);

// engine.c
bool engine_push(struct exec *x, const struct exec_place *at, const struct isa_insn *in,
                 bool skipped);
bool engine_run_ready(struct exec *x); // until nothing more can start
bool engine_signal(struct exec *x, const struct exec_place *at, const struct isa_header *h,
                   const struct race_clock clock[3]);
bool engine_deadlock(struct exec *x, const struct exec_place *cp_at,
                     const struct isa_header *cp_waits); // always false
void engine_drop_queues(struct exec *x);

// access.c: one access of the instruction begun in x->race, made of n footprints.
bool access_read(struct exec *x, const struct exec_place *at, const char *name, int space,
                 const struct exec_foot *f, uint32_t n);
bool access_write(struct exec *x, const struct exec_place *at, const char *name, int space,
                  const struct exec_foot *f, uint32_t n);
void access_mark(struct exec *x, int space, const struct exec_foot *f);
// Shows them to the job's watcher.
void access_show(struct exec *x, const struct exec_place *at, int space, const struct exec_foot *f);
// gather.c: operands of a gather before its values (row numbers go to x->rows), and after.
bool gather_access(struct exec *x, const struct exec_place *at, const struct isa_insn *in,
                   const struct check_operands *ops);
void gather_mark(struct exec *x, const struct exec_place *at, const struct isa_GATHER *g);
// Memory operands of one engine instruction: checks, values, marks.
bool access_insn(struct exec *x, const struct exec_place *at, const struct isa_insn *in);
struct val_mem access_val_mem(struct exec *x);

#endif
