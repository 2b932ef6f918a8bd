// SPDX-License-Identifier: Apache-2.0
// Length of a run, estimated: the same closed forms as the simulator, without its memory.
//
//   an instruction is dispatched in program order, decode cycles after the one before
//   it starts when it is dispatched, its engine is free and the counts that it takes were signalled
//   matrix and vector work: isa_time_insn; a transfer: its engine's link, and one memory that all
//   transfers share at peak rate
#include "isa/timing.h"
#include "toolchain/schedule/schedule.h"

// Signals of one semaphore in order of firing; a wait takes the next ones.
struct counts {
    double *at;
    int n, cap, taken;
};

struct machine {
    const struct hw *hw;
    struct arena *a;
    struct counts sem[ISA_SEMS];
    double free[ISA_ENGINES]; // the engine takes its next instruction
    double done[ISA_ENGINES]; // its last one is complete
    double dispatch, memory, end;
};

static void push(struct machine *m, int64_t sem, int64_t count, double at) {
    struct counts *c = &m->sem[sem];
    for (int64_t k = 0; sem && k < count; k++) {
        if (c->n == c->cap) {
            int cap = c->cap ? 2 * c->cap : 64;
            double *grown = ARENA_ARRAY(m->a, double, (size_t)cap);
            for (int i = 0; i < c->n; i++)
                grown[i] = c->at[i];
            c->at = grown;
            c->cap = cap;
        }
        c->at[c->n++] = at;
    }
}

static double take(struct machine *m, int64_t sem, int64_t count) {
    struct counts *c = &m->sem[sem];
    if (!sem || !count) return 0;
    NPU_ASSERT(c->taken + count <= c->n);
    c->taken += (int)count;
    return c->at[c->taken - 1] + (double)m->hw->cp_semaphore;
}

static void signal(struct machine *m, const struct isa_header *h, const double at[3]) {
    push(m, h->sig0_sem, h->sig0_inc, at[h->sig0_when]);
    push(m, h->sig1_sem, h->sig1_inc, at[h->sig1_when]);
}

// Bytes that a transfer moves through external memory.
static double memory_cycles(const struct machine *m, const struct isa_insn *in) {
    double rate = hw_dram_bytes_per_cycle(m->hw);
    for (int k = 0; rate > 0 && k < 2; k++) {
        const struct isa_pat *p = isa_pat_get(in, k);
        if (p && p->space == ISA_DRAM)
            return (double)(isa_pat_elems(p) * isa_dtype_bits((int)p->dtype) / 8) / rate;
    }
    return 0;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

static void step(struct machine *m, const struct isa_insn *in) {
    const struct isa_header *h = &in->h;
    uint8_t code[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
    const char *field;
    m->dispatch += (double)isa_time_decode(m->hw, isa_encode(in, code, &field));
    double start = larger(m->dispatch, m->free[h->engine]);
    start = larger(start, take(m, h->wait0_sem, h->wait0_value));
    start = larger(start, take(m, h->wait1_sem, h->wait1_value));
    struct isa_cost c = isa_time_insn(m->hw, in);
    double done = start + (double)c.done_cycles, next = start + (double)c.issue_cycles;
    if (isa_engine_class((int)h->engine) == ISA_CLASS_DMA && h->opcode != ISA_OP_SYNC) {
        m->memory = larger(m->memory, start) + memory_cycles(m, in);
        done = larger(done, m->memory + (double)m->hw->dma_start);
        next = larger(next, m->memory);
    }
    done = larger(done, m->done[h->engine]);
    m->free[h->engine] = next;
    m->done[h->engine] = done;
    m->end = larger(m->end, done);
    signal(m, h, (double[3]){start, larger(start + (double)c.read_cycles, start), done});
}

double schedule_estimate(const struct tile_program *p) {
    struct arena *a = arena_scratch(p->arena);
    struct machine *m = ARENA_NEW(a, struct machine);
    m->hw = p->hw;
    m->a = a;
    for (int i = 0; i < p->nop; i++)
        step(m, &p->ops[i]->insn);
    double end = m->end;
    arena_free(a);
    return end;
}
