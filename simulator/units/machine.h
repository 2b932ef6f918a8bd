// SPDX-License-Identifier: Apache-2.0
//
// Inside of the timing machine. Processes of the kernel: the command processor, MXU and VEC, one
// each, and the memory side (DMA engines, DRAM, instruction fetch, foreign traffic), which keeps
// times of its own and runs ahead of the kernel as long as nobody else is due. All times are cycles
// of the NPU clock but where a name ends in _ps.
//
// Who may run ahead: the command processor (its only inputs are room in queues, which never
// shrinks, and semaphores), and the issue of DMA pieces. Everything handed on carries its cycle, so
// the reader waits for it.
#ifndef SIMULATOR_UNITS_MACHINE_H
#define SIMULATOR_UNITS_MACHINE_H

#include "simulator/kernel/kernel.h"
#include "simulator/memory/banks.h"
#include "simulator/memory/dram.h"
#include "simulator/units/record.h"

#define UNITS_NEVER UINT64_MAX
#define UNITS_DMAS 4

enum units_client { // of the memory; 0..3 are the DMA engines
    UNITS_CLIENT_FETCH = UNITS_DMAS,
    UNITS_CLIENT_CP,
    UNITS_CLIENT_TRAFFIC,
};
enum units_user { // of the banks, in order of priority; 0..3 are the DMA engines
    UNITS_USER_MXU = UNITS_DMAS,
    UNITS_USER_VEC,
};

// ---- what all engines have ----

struct units_engine {
    int id;                         // enum isa_engine
    const uint32_t *list;           // its records, in order
    uint64_t n, head, tail;         // head: started; tail: dispatched
    uint64_t *dispatched;           // ring of queue_depth: when each entered the queue
    struct kernel_process *process; // NULL: on the memory side
    enum trace_class cls;           // what it does from `counted` on
    uint64_t counted;               // cycles before this one are in a class
    int wait_engine;                // cls is a wait for a semaphore: its signaller, or -1
    bool waiting;                   // asleep until a signal or a dispatch
    uint64_t ready, last_done;
    enum trace_class longest; // of the waits of the first instruction in the queue
    uint64_t longest_cycles;
    int longest_engine;
    uint64_t cause_seq, cause_cycle;
    struct trace_engine stats;
    trace_sink *sink; // takes STATE events; NULL: nobody does
    void *sink_ctx;
    struct trace_event state; // the latest, which may still become longer
};

// ---- semaphores ----

#define UNITS_SIGNALS 256 // pending signals of one semaphore; more merge with the last

struct units_signal {
    uint64_t cycle; // visible from
    uint32_t seq, increment;
};
struct units_sem {
    int64_t count;
    struct units_signal pending[UNITS_SIGNALS]; // ring, by cycle
    uint32_t head, tail;
    uint64_t last_seq, last_cycle; // of the latest signal counted
};

// ---- MXU, VEC ----

struct units_compute {
    struct units_engine e;
    struct units_machine *m;
    int user; // of the banks
    bool running, read_fired, psum_limits;
    uint64_t seq, start, last, entered, read_at;
    uint64_t left;                // cycles of issue left, in 1/BANKS_ONE
    uint64_t lost_spm, lost_psum; // in 1/BANKS_ONE
    uint32_t speed;
    uint64_t real; // instructions started that are not empty
    uint64_t done_at[UNITS_DEPS], accumulate_at[UNITS_DEPS]; // of the last ones, a ring by `real`
};

// ---- DMA ----

#define UNITS_FLIGHTS 64 // instructions of one DMA engine under way

struct units_flight {
    uint64_t seq, entered, ready, start, last_end, read_end;
    uint64_t cause_seq, cause_cycle;
    enum trace_class wait_class;
    int wait_engine;
    uint32_t pending; // pieces without an answer
    bool sent;        // some piece is out
    bool issued;      // all pieces are out
};
struct units_release {
    uint64_t cycle;
    uint32_t bytes;
};
struct units_span {
    uint64_t from, to;
};
struct units_answer { // that the link has not taken yet
    uint64_t done_ps;
    uint32_t refresh_ps, conflict_ps, bytes, flight;
};
struct units_runs { // position in a walk
    const struct units_walk *walk;
    const int64_t *row; // gather
    uint64_t nrow, at;
    uint32_t index[4];
    uint64_t address, left; // rest of the current run, in whole bursts
    uint32_t fresh;         // 1: nothing of this run was taken yet
    bool over;
};
struct units_dma {
    struct units_engine e;
    struct units_machine *m;
    int index;
    uint64_t next_ps;                   // when its step is due
    bool issuing, writing, answer_wait; // the last: for any answer
    uint64_t issue;                     // the address generator is free
    uint64_t link;                      // the link is free
    const struct units_rec *rec;
    const struct units_transfer *transfer;
    struct units_runs src, dst;
    struct dram_cut cut;
    int piece; // next of the cut
    uint64_t inflight, window;
    int width_shift, burst_shift;  // log2, or -1
    uint32_t out;                  // pieces that hold a place in the window
    uint32_t undecided;            // pieces without an answer
    struct units_release *release; // ring
    struct units_answer *answer;   // ring, by done_ps
    uint32_t release_head, release_tail, answer_head, answer_tail, ring_mask;
    struct units_flight flight[UNITS_FLIGHTS];
    uint32_t flight_head, flight_tail;
    struct units_span setup[UNITS_FLIGHTS]; // start costs that are not counted yet, a ring
    uint32_t setup_head, setup_tail;
    enum trace_class front; // class once nothing is undecided
    int front_engine;
    uint32_t demand; // what it holds of the SPM banks
};

// ---- command processor ----

struct units_block { // of instruction memory
    uint64_t number; // block of the code + 1; 0: nothing
    uint64_t ready;  // cycle; UNITS_NEVER: under way
    uint32_t pending;
};
struct units_cp {
    struct units_engine e; // e.counted is its own time, ahead of the kernel's
    uint64_t next;         // record
    bool started;          // its waits are over
    bool fetched;          // of `next`
    bool decoded;
    bool barrier;  // waits for the engines
    bool draining; // HALT: for the last write
    int full;      // engine whose queue is full, -1
    uint64_t load; // LDS: UNITS_NEVER while the answer is out
    bool loading;
    uint64_t decode_start;
    struct units_block *block;
    uint64_t nblock, block_bytes, code_blocks, ahead;
    uint64_t current, waited; // block + 1
    uint64_t fetched_bytes;
    struct dram_cut cut;
};

struct units_machine {
    struct hw hw;
    const struct units_program *p;
    struct kernel *kernel;
    struct kernel_process *memory, *stopper;
    struct kernel_clock clock;
    struct dram *dram;
    struct banks spm, psum;
    struct units_cp cp;
    struct units_compute mxu, vec;
    struct units_dma dma[UNITS_DMAS];
    int ndma;
    uint32_t dma_duty; // part of its link that an engine gets from memory when all are at work
    struct units_engine *engine[ISA_ENGINES]; // NULL: the machine lacks it
    struct units_sem sem[ISA_SEMS];
    uint32_t *list;       // record numbers by engine
    uint64_t *dispatched; // rings
    uint64_t memory_ps;   // time of the memory side
    uint64_t certain_ps;  // dram_certain_ps
    bool ahead;           // DMA pieces may go out ahead of time
    uint64_t limit_ps;    // until then it runs on its own
    bool in_memory, over;
    enum units_end end;
    uint64_t cycles, completed;
    struct units_options options;
    struct units_traffic traffic;
    bool traffic_next, traffic_blocked;
    struct dram_cut traffic_cut;
    int traffic_piece;
    struct trace_tag *tag;
    struct trace_engine stats[ISA_ENGINES];
};

// machine.c
void units_state(struct units_engine *e, uint64_t cycle, enum trace_class cls, int wait_engine);
void units_count(struct units_engine *e, uint64_t upto, enum trace_class cls);
void units_wake(struct units_machine *m, struct units_engine *e, uint64_t cycle);
bool units_stop_at(struct units_machine *m, uint64_t seq, uint64_t cycle);
void units_finish(struct units_machine *m, enum units_end end, uint64_t cycle);
void units_popped(struct units_machine *m, struct units_engine *e, uint64_t cycle);
void units_settled(struct units_machine *m, struct units_engine *e);
bool units_settled_at(const struct units_machine *m, int engine, uint64_t *cycle);
void units_share(struct units_machine *m, int user, uint32_t spm, uint32_t psum, uint64_t cycle);
static inline uint64_t units_ps(const struct units_machine *m, uint64_t cycle) {
    return kernel_clock_ps(&m->clock, cycle);
}
static inline uint64_t units_cycle(const struct units_machine *m, uint64_t ps) {
    return kernel_clock_cycle(&m->clock, ps);
}
void units_tally(struct units_machine *m, const struct units_rec *r, uint64_t start, uint64_t done,
                 uint64_t occupied);
void units_emit(struct units_machine *m, struct trace_event *e, const struct units_rec *r);

// sem.c
bool units_sem_ready(struct units_machine *m, const struct units_rec *r, uint64_t cycle,
                     uint64_t *when, int *sem);
void units_sem_take(struct units_machine *m, const struct units_rec *r, uint64_t cycle);
void units_sem_forget(struct units_machine *m);
void units_signal(struct units_machine *m, const struct units_rec *r, enum isa_when when,
                  uint64_t cycle);
void units_wait_state(struct units_machine *m, int sem, enum trace_class *cls, int *engine);

// compute.c, dma.c, cp.c, fetch.c, memside.c
void units_compute_step(void *compute);
void units_compute_retime(struct units_compute *c, uint64_t cycle);
void units_dma_step(struct units_dma *x, uint64_t cycle);
void units_dma_answer(struct units_dma *x, const struct dram_quantum *q,
                      const struct dram_reply *r);
void units_dma_room(struct units_dma *x, uint64_t cycle);
bool units_dma_init(struct units_dma *x, struct units_machine *m, int index);
void units_dma_reset(struct units_dma *x);
void units_dma_deinit(struct units_dma *x);
void units_runs_init(struct units_runs *w, const struct units_walk *walk);
void units_runs_gather(struct units_runs *w, const struct units_walk *walk, const int64_t *row,
                       uint64_t n);
void units_runs_load(struct units_runs *w, uint64_t burst);
void units_runs_took(struct units_runs *w, uint64_t bytes, uint64_t burst);
void units_cp_step(void *machine);
bool units_fetch_init(struct units_machine *m);
void units_fetch_reset(struct units_machine *m);
uint64_t units_fetch(struct units_machine *m, uint64_t block, uint64_t cycle);
void units_fetch_answer(struct units_machine *m, const struct dram_quantum *q,
                        const struct dram_reply *r);
void units_memory_step(void *machine);
void units_memory_poke(struct units_machine *m, uint64_t ps);
void units_memory_done(void *machine, const struct dram_quantum *q, const struct dram_reply *r);
bool units_memory_written(const struct units_machine *m, uint64_t *cycle);
void units_memory_room(void *machine, int client, uint64_t at_ps);

#endif
