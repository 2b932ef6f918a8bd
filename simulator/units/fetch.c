// SPDX-License-Identifier: Apache-2.0
//
// Instruction fetch: instruction memory is a direct-mapped store of blocks, filled from DRAM ahead
// of any other traffic. Entering a block asks for the next few as well, so straight code hides the
// latency, and the bodies of loops that fit are fetched once.
#include "isa/timing.h"
#include "runtime/base/alloc.h"
#include "simulator/units/machine.h"

bool units_fetch_init(struct units_machine *m) {
    struct units_cp *c = &m->cp;
    const struct isa_fetch f = isa_time_fetch(&m->hw);
    c->block_bytes = (uint64_t)f.block_bytes;
    c->nblock = (uint64_t)f.blocks;
    c->ahead = (uint64_t)f.ahead;
    c->code_blocks = (m->p->code_bytes + c->block_bytes - 1) / c->block_bytes;
    c->block = base_alloc_array((size_t)c->nblock, sizeof *c->block);
    return c->block && dram_cut_init(&c->cut, m->dram, 16, DRAM_QUANTUM_BYTES) &&
           dram_cut_init(&m->traffic_cut, m->dram, 1024, DRAM_QUANTUM_BYTES);
}

void units_fetch_reset(struct units_machine *m) {
    struct units_cp *c = &m->cp;
    for (uint64_t i = 0; i < c->nblock; i++)
        c->block[i] = (struct units_block){0};
    c->next = c->current = c->waited = c->fetched_bytes = 0;
    c->started = c->fetched = c->decoded = c->barrier = c->draining = c->loading = false;
    c->full = -1;
    dram_cut_clear(&m->traffic_cut, m->dram);
    m->traffic_piece = 0;
    m->traffic_blocked = false;
}

static void request(struct units_machine *m, uint64_t number, uint64_t cycle) {
    struct units_cp *c = &m->cp;
    const uint64_t slot = number % c->nblock;
    struct units_block *b = &c->block[slot];
    *b = (struct units_block){.number = number + 1, .ready = cycle};
    const uint64_t at = number * c->block_bytes, rest = m->p->code_bytes - at;
    const uint64_t bytes = rest < c->block_bytes ? rest : c->block_bytes;
    dram_cut_clear(&c->cut, m->dram);
    dram_cut_run(&c->cut, m->dram, m->p->code_address + at, bytes, 1);
    b->pending = (uint32_t)c->cut.count;
    for (int i = 0; i < c->cut.count; i++) {
        const struct dram_quantum q = {
            .arrive_ps = units_ps(m, cycle),
            .at = c->cut.piece[i],
            .client = UNITS_CLIENT_FETCH,
            .urgent = true,
            .cookie = (uint32_t)slot,
        };
        if (dram_submit(m->dram, &q)) {
            c->fetched_bytes += q.at.bytes;
            units_memory_poke(m, dram_next(m->dram));
        } else { // the channel is full: not here yet, to be asked for again
            b->pending--;
            b->number = 0;
        }
    }
}

// When a block of the code is there, UNITS_NEVER: not known yet. Asks for it, and for those after
// it.
uint64_t units_fetch(struct units_machine *m, uint64_t number, uint64_t cycle) {
    struct units_cp *c = &m->cp;
    if (number >= c->code_blocks) return 0;
    struct units_block *b = &c->block[number % c->nblock];
    if (b->number != number + 1 && !b->pending) request(m, number, cycle);
    for (uint64_t i = 1; i <= c->ahead && number + i < c->code_blocks; i++) {
        const struct units_block *a = &c->block[(number + i) % c->nblock];
        if (a->number != number + i + 1 && !a->pending) request(m, number + i, cycle);
    }
    if (b->number != number + 1 || b->pending) return UNITS_NEVER;
    return b->ready;
}

// Answer to a fetch, or to a load of the command processor.
void units_fetch_answer(struct units_machine *m, const struct dram_quantum *q,
                        const struct dram_reply *r) {
    struct units_cp *c = &m->cp;
    const uint64_t cycle = units_cycle(m, r->done_ps);
    if (q->client == UNITS_CLIENT_CP) {
        if (!c->loading) return;
        c->load = cycle;
        units_wake(m, &c->e, cycle);
        return;
    }
    struct units_block *b = &c->block[q->cookie];
    if (b->pending) b->pending--;
    if (cycle > b->ready) b->ready = cycle;
    if (!b->pending && c->waited && (c->waited - 1) % c->nblock == q->cookie)
        units_wake(m, &c->e, b->ready);
}
