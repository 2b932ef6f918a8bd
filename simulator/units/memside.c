// SPDX-License-Identifier: Apache-2.0
//
// The memory side as one process of the kernel: DMA engines, channels of the DRAM and foreign
// traffic each have a next time; the earliest acts. It goes on without the kernel until somebody
// else is due (limit_ps), which is exact, because until then nobody can change anything here.
#include "simulator/units/machine.h"

// Wakes the memory side at a time; from inside it the loop looks again anyway.
void units_memory_poke(struct units_machine *m, uint64_t ps) {
    if (!m->in_memory) kernel_wake(m->memory, ps);
}

void units_memory_done(void *machine, const struct dram_quantum *q, const struct dram_reply *r) {
    struct units_machine *m = machine;
    if (q->client < UNITS_DMAS)
        units_dma_answer(&m->dma[q->client], q, r);
    else if (q->client != UNITS_CLIENT_TRAFFIC)
        units_fetch_answer(m, q, r);
}

void units_memory_room(void *machine, int client, uint64_t at_ps) {
    struct units_machine *m = machine;
    if (client < UNITS_DMAS)
        units_dma_room(&m->dma[client], units_cycle(m, at_ps));
    else if (client == UNITS_CLIENT_TRAFFIC)
        m->traffic_blocked = false;
    else
        units_wake(m, &m->cp.e, units_cycle(m, at_ps));
}

// Whether everything that the program wrote is in memory; then *cycle is at least when.
bool units_memory_written(const struct units_machine *m, uint64_t *cycle) {
    for (int i = 0; i < DRAM_CLIENTS; i++) {
        uint64_t ps;
        if (i == UNITS_CLIENT_TRAFFIC) continue;
        if (!dram_written(m->dram, i, &ps)) return false;
        const uint64_t at = units_cycle(m, ps);
        if (at > *cycle) *cycle = at;
    }
    return true;
}

// When foreign traffic is due.
static uint64_t traffic_at(const struct units_machine *m) {
    return m->traffic_next && !m->traffic_blocked ? m->traffic.at_ps : DRAM_NEVER;
}

// Sends the current foreign request, or as much of it as the queues take, and asks for the next
// one.
static void traffic(struct units_machine *m) {
    if (m->traffic_piece == m->traffic_cut.count) {
        dram_cut_clear(&m->traffic_cut, m->dram);
        dram_cut_run(&m->traffic_cut, m->dram, m->traffic.address, m->traffic.bytes, 1);
        m->traffic_piece = 0;
    }
    while (m->traffic_piece < m->traffic_cut.count) {
        const struct dram_quantum q = {
            .arrive_ps = m->memory_ps,
            .at = m->traffic_cut.piece[m->traffic_piece],
            .client = UNITS_CLIENT_TRAFFIC,
            .write = m->traffic.write,
        };
        if (!dram_submit(m->dram, &q)) {
            m->traffic_blocked = true;
            return;
        }
        m->traffic_piece++;
    }
    m->traffic_next = m->options.traffic(m->options.traffic_ctx, m->memory_ps, &m->traffic);
}

static void dram_act(struct units_machine *m) {
    uint64_t cycle = 0;
    dram_step(m->dram);
    if (m->cp.draining && units_memory_written(m, &cycle)) units_wake(m, &m->cp.e, cycle);
}

void units_memory_step(void *machine) {
    struct units_machine *m = machine;
    const uint64_t now = kernel_now(m->kernel);
    m->in_memory = true;
    m->limit_ps = kernel_next(m->kernel);
    while (!m->over) {
        uint64_t at = dram_next(m->dram);
        int who = UNITS_DMAS; // the DRAM
        for (int i = 0; i < m->ndma; i++)
            if (m->dma[i].next_ps <= at) {
                at = m->dma[i].next_ps;
                who = i;
            }
        if (traffic_at(m) < at) {
            at = traffic_at(m);
            who = UNITS_CLIENT_TRAFFIC;
        }
        if (at == DRAM_NEVER) break;
        if (at > now && at >= m->limit_ps) {
            kernel_wake(m->memory, at);
            break;
        }
        if (at > m->memory_ps) m->memory_ps = at;
        if (now > m->memory_ps) m->memory_ps = now;
        if (who == UNITS_DMAS)
            dram_act(m);
        else if (who == UNITS_CLIENT_TRAFFIC)
            traffic(m);
        else
            units_dma_step(&m->dma[who], units_cycle(m, m->memory_ps));
    }
    m->in_memory = false;
}
