// SPDX-License-Identifier: Apache-2.0
//
// A DMA engine: front end (one instruction at a time: waits, start cost, address generator) and
// behind it pieces on their way to and from memory, over a link of dma.width bytes a cycle.
// Instructions start and complete in order; the next one may start while pieces of the ones before
// are under way.
//
//   read    piece out at the address generator's pace (1 cycle a burst, dma.row a run), as long as
//           dma.outstanding bursts allow; answer -> link -> released when the link has passed it
//   write   link -> piece out; released when the controller has accepted it
//   both    block by block: read, wait, write
//   neither link only
//
// Classes: cycles in which the link moves data are busy; before an answer the engine waits for
// memory, and the answer says for what (refresh, rows, the rest); with nothing under way the front
// end decides. The engine's count may lie ahead of time, because an answer books the link in
// advance.
#include "runtime/base/alloc.h"
#include "simulator/units/machine.h"

static uint64_t max64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static int log2_of(uint64_t n) {
    int shift = 0;
    while (shift < 40 && (UINT64_C(1) << shift) < n)
        shift++;
    return (UINT64_C(1) << shift) == n ? shift : -1;
}

// a / b, the shift being log2 of b where there is one.
static uint64_t divide(uint64_t a, uint64_t b, int shift) {
    return shift >= 0 ? a >> shift : a / b;
}

bool units_dma_init(struct units_dma *x, struct units_machine *m, int index) {
    x->m = m;
    x->index = index;
    x->window = (uint64_t)(m->hw.dma_outstanding * m->hw.dma_burst_bytes);
    x->width_shift = log2_of((uint64_t)m->hw.dma_width_bytes);
    x->burst_shift = log2_of((uint64_t)m->hw.dma_burst_bytes);
    // Small enough that the window spreads over all channels, and over a few quanta where there are
    // few.
    const uint64_t channels = (uint64_t)dram_channels(m->dram),
                   burst = (uint64_t)m->hw.dma_burst_bytes;
    uint64_t quantum = x->window / (channels > 4 ? channels : 4) / burst * burst;
    if (quantum < burst) quantum = burst;
    const int pieces = dram_channels(m->dram) * 4 < 64 ? 64 : dram_channels(m->dram) * 4;
    uint32_t ring = 16;
    while (ring < (uint64_t)m->hw.dma_outstanding + 2)
        ring *= 2;
    x->ring_mask = ring - 1;
    x->release = base_alloc_array(ring, sizeof *x->release);
    x->answer = base_alloc_array(ring, sizeof *x->answer);
    return x->release && x->answer &&
           dram_cut_init(&x->cut, m->dram, pieces,
                         (uint32_t)(quantum < DRAM_QUANTUM_BYTES ? quantum : DRAM_QUANTUM_BYTES));
}

void units_dma_deinit(struct units_dma *x) {
    base_free(x->release);
    base_free(x->answer);
    dram_cut_deinit(&x->cut);
}

void units_dma_reset(struct units_dma *x) {
    x->next_ps = DRAM_NEVER;
    x->issuing = x->writing = x->answer_wait = false;
    x->issue = x->link = x->inflight = 0;
    x->undecided = x->out = x->release_head = x->release_tail = x->answer_head = x->answer_tail =
        x->flight_head = x->flight_tail = 0;
    x->front = x->e.cls;
    x->front_engine = -1;
    x->demand = 0;
    dram_cut_clear(&x->cut, x->m->dram);
    x->piece = 0;
}

static struct units_flight *flight(struct units_dma *x, uint32_t i) {
    return &x->flight[i % UNITS_FLIGHTS];
}

// ---- classes ----

// The front end enters a state; it counts only while no piece waits for its answer.
static void front(struct units_dma *x, uint64_t cycle, enum trace_class cls, int who) {
    x->front = cls;
    x->front_engine = who;
    if (x->undecided == 0) units_state(&x->e, cycle, cls, who);
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// Counts the cycles up to `until` in which the link had nothing: the start costs of instructions
// are work, the rest is waiting for memory, for what the answer says.
static void memory_wait(struct units_dma *x, uint64_t until, const struct units_answer *a) {
    struct units_engine *e = &x->e;
    uint64_t refresh = a->refresh_ps ? units_cycle(x->m, a->refresh_ps) : 0;
    uint64_t conflict = a->conflict_ps ? units_cycle(x->m, a->conflict_ps) : 0;
    while (e->counted < until) {
        while (x->setup_head != x->setup_tail &&
               x->setup[x->setup_head % UNITS_FLIGHTS].to <= e->counted)
            x->setup_head++;
        uint64_t end = until;
        if (x->setup_head != x->setup_tail) {
            const struct units_span *s = &x->setup[x->setup_head % UNITS_FLIGHTS];
            if (s->from <= e->counted) {
                units_count(e, least(until, s->to), TRACE_BUSY_PARTIAL);
                continue;
            }
            end = least(until, s->from);
        }
        const uint64_t from = e->counted;
        units_count(e, least(end, from + refresh), TRACE_REFRESH);
        refresh -= least(refresh, e->counted - from);
        const uint64_t then = e->counted;
        units_count(e, least(end, then + conflict), TRACE_DRAM_CONFLICT);
        conflict -= least(conflict, e->counted - then);
        units_count(e, end, TRACE_WAIT_DRAM);
    }
}

// The link moves data in [start, end).
static void moved(struct units_dma *x, uint64_t start, uint64_t end, const struct units_answer *a) {
    if (a) memory_wait(x, start, a);
    units_count(&x->e, end, TRACE_BUSY);
}

// ---- completion ----

// Holds its part of the SPM banks while instructions are under way; what memory can deliver at
// most, when all engines are at work, is what it takes.
static void hold_banks(struct units_dma *x, uint32_t demand) {
    if (demand == x->demand) return;
    x->demand = demand;
    units_share(x->m, x->index, demand, 0, units_cycle(x->m, x->m->memory_ps));
}

static void complete(struct units_dma *x) {
    struct units_machine *m = x->m;
    bool any = false;
    while (x->flight_head != x->flight_tail) {
        struct units_flight *f = flight(x, x->flight_head);
        if (!f->issued || f->pending) break;
        const struct units_rec *r = &m->p->rec[f->seq];
        const uint64_t done = max64(f->last_end, x->e.last_done);
        x->e.last_done = done;
        units_signal(m, r, ISA_AT_READ, f->read_end);
        units_signal(m, r, ISA_AT_DONE, done);
        units_tally(m, r, f->start, done, r->full);
        units_emit(m,
                   &(struct trace_event){.seq = f->seq,
                                         .dispatched = f->entered,
                                         .ready = f->ready,
                                         .start = f->start,
                                         .read = f->read_end,
                                         .issued = done,
                                         .done = done,
                                         .wait_class = f->wait_class,
                                         .wait_engine = f->wait_engine,
                                         .cause_seq = f->cause_seq,
                                         .cause_cycle = f->cause_cycle},
                   r);
        x->flight_head++;
        any = true;
    }
    if (!any) return;
    if (x->flight_head == x->flight_tail) {
        hold_banks(x, 0);
        if (!x->issuing && x->e.head == x->e.tail) units_settled(m, &x->e);
    }
}

static void release_at(struct units_dma *x, uint64_t cycle, uint32_t bytes) {
    struct units_release *last = &x->release[(x->release_tail - 1) & x->ring_mask];
    if (x->release_head != x->release_tail && last->cycle > cycle) cycle = last->cycle;
    x->release[x->release_tail++ & x->ring_mask] = (struct units_release){cycle, bytes};
}

static uint64_t link_cycles(const struct units_dma *x, const struct units_transfer *t,
                            uint32_t bytes) {
    const uint64_t width = (uint64_t)x->m->hw.dma_width_bytes;
    const uint64_t n =
        divide((uint64_t)bytes * t->link_q8 / 256 + width - 1, width, x->width_shift);
    return n ? n : 1;
}

// Keeps the answers of one engine in order of time; the link takes them in that order.
void units_dma_answer(struct units_dma *x, const struct dram_quantum *q,
                      const struct dram_reply *r) {
    if (q->write) { // often from inside submit
        struct units_flight *f = flight(x, q->cookie);
        const uint64_t answered = units_cycle(x->m, r->done_ps);
        release_at(x, answered, q->at.bytes);
        f->last_end = max64(f->last_end, answered);
        f->pending--;
        if (x->answer_wait && x->m->memory_ps < x->next_ps) x->next_ps = x->m->memory_ps;
        if (f->issued && !f->pending) complete(x);
        return;
    }
    uint32_t i = x->answer_tail++;
    for (; i != x->answer_head && x->answer[(i - 1) & x->ring_mask].done_ps > r->done_ps; i--)
        x->answer[i & x->ring_mask] = x->answer[(i - 1) & x->ring_mask];
    x->answer[i & x->ring_mask] =
        (struct units_answer){r->done_ps, (uint32_t)r->refresh_ps, (uint32_t)r->conflict_ps,
                              q->at.bytes, q->cookie};
    if (r->done_ps < x->next_ps) x->next_ps = r->done_ps;
}

// The link takes the answers that no later decision can come before.
static void take_answers(struct units_dma *x) {
    struct units_machine *m = x->m;
    const uint64_t certain = m->memory_ps + m->certain_ps;
    while (x->answer_head != x->answer_tail) {
        const struct units_answer *a = &x->answer[x->answer_head & x->ring_mask];
        if (a->done_ps > certain) {
            if (a->done_ps < x->next_ps) x->next_ps = a->done_ps;
            return;
        }
        x->answer_head++;
        struct units_flight *f = flight(x, a->flight);
        const struct units_transfer *t = &m->p->transfer[m->p->rec[f->seq].extra];
        const uint64_t start = max64(units_cycle(m, a->done_ps), x->link);
        const uint64_t end = start + link_cycles(x, t, a->bytes);
        moved(x, start, end, a);
        x->link = end;
        release_at(x, end, a->bytes);
        f->last_end = f->read_end = max64(f->last_end, end);
        f->pending--;
        if (--x->undecided == 0) {
            x->e.cls = x->front;
            x->e.wait_engine = x->front_engine;
        }
        if (f->issued && !f->pending) complete(x);
    }
}

void units_dma_room(struct units_dma *x, uint64_t cycle) {
    const uint64_t ps = units_ps(x->m, cycle);
    if (ps < x->next_ps) x->next_ps = ps;
}

// ---- front end: starting ----

static bool asleep(struct units_dma *x, uint64_t until) {
    if (until != UNITS_NEVER) {
        const uint64_t ps = units_ps(x->m, until);
        if (ps < x->next_ps) x->next_ps = ps;
    }
    return false;
}

static void launch(struct units_dma *x, const struct units_rec *r, uint64_t entered,
                   uint64_t cycle) {
    struct units_machine *m = x->m;
    struct units_engine *e = &x->e;
    struct units_flight *f = flight(x, x->flight_tail++);
    *f = (struct units_flight){
        .seq = (uint64_t)(r - m->p->rec),
        .entered = entered,
        .ready = e->ready,
        .start = cycle,
        .last_end = cycle,
        .read_end = cycle,
        .wait_class = e->longest,
        .wait_engine = e->longest_engine,
        .cause_seq = TRACE_NO_SEQ,
    };
    if (e->longest_engine >= 0 && r->wait_sem[0]) {
        f->cause_seq = m->sem[r->wait_sem[0]].last_seq;
        f->cause_cycle = m->sem[r->wait_sem[0]].last_cycle;
    }
    e->longest = TRACE_BUSY;
    e->longest_cycles = 0;
    e->longest_engine = -1;
    units_sem_take(m, r, cycle);
    units_signal(m, r, ISA_AT_START, cycle);
    x->issuing = true;
    x->writing = false;
    x->rec = r;
    x->piece = 0;
    dram_cut_clear(&x->cut, m->dram);
    front(x, cycle, TRACE_BUSY_PARTIAL, -1);
    x->transfer = NULL;
    if (r->flags & UNITS_SKIPPED) {
        x->issue = cycle + 1;
        f->last_end = f->read_end = x->issue;
        return;
    }
    const struct units_transfer *t = x->transfer = &m->p->transfer[r->extra];
    x->issue = cycle + (uint64_t)m->hw.dma_start;
    if (x->setup_tail - x->setup_head == UNITS_FLIGHTS) x->setup_head++;
    x->setup[x->setup_tail++ % UNITS_FLIGHTS] = (struct units_span){cycle, x->issue};
    if (t->gather && t->nrow)
        units_runs_gather(&x->src, &t->src, &m->p->row[t->first_row], t->nrow);
    else
        units_runs_init(&x->src, &t->src);
    units_runs_init(&x->dst, &t->dst);
    units_runs_load(&x->src, (uint64_t)m->hw.dma_burst_bytes);
    units_runs_load(&x->dst, (uint64_t)m->hw.dma_burst_bytes);
    if (r->spm) {
        const bool memory = t->src_dram || t->dst_dram;
        hold_banks(x, memory ? (uint32_t)((uint64_t)r->spm * m->dma_duty / BANKS_ONE) : r->spm);
    }
}

// Starts the next instruction; false: it cannot yet, and next_ps or somebody's wake says when to
// look again.
static bool begin(struct units_dma *x, uint64_t cycle) {
    struct units_machine *m = x->m;
    struct units_engine *e = &x->e;
    e->waiting = true;
    if (e->head == e->tail) {
        front(x, cycle, e->head == e->n ? TRACE_IDLE : TRACE_QUEUE_EMPTY, -1);
        if (x->flight_head == x->flight_tail) units_settled(m, e);
        return false;
    }
    const uint64_t entered = e->dispatched[e->head % (uint64_t)m->hw.cp_queue_depth];
    if (entered > cycle) {
        front(x, cycle, TRACE_QUEUE_EMPTY, -1);
        return asleep(x, entered);
    }
    e->ready = max64(max64(e->ready, entered), x->issue);
    const struct units_rec *r = &m->p->rec[e->list[e->head]];
    const bool under_way = x->flight_head != x->flight_tail;
    if (x->flight_tail - x->flight_head == UNITS_FLIGHTS || (r->flags & UNITS_FENCE && under_way)) {
        x->answer_wait = true;
        front(x, cycle, TRACE_WAIT_DRAM, -1);
        return false;
    }
    if (r->flags & UNITS_FENCE && e->last_done > cycle) {
        front(x, cycle, TRACE_WAIT_DRAM, -1);
        return asleep(x, e->last_done);
    }
    uint64_t when;
    int sem;
    if (!units_sem_ready(m, r, cycle, &when, &sem)) {
        enum trace_class cls;
        int who;
        units_wait_state(m, sem, &cls, &who);
        front(x, cycle, cls, who);
        return asleep(x, when);
    }
    if (units_stop_at(m, e->list[e->head], cycle)) return false;
    e->waiting = false;
    launch(x, r, entered, cycle);
    e->head++;
    units_popped(m, e, cycle);
    return true;
}

// ---- front end: issuing ----

// Cuts the next block of a walk into pieces; false: the walk is over.
static bool refill(struct units_dma *x, struct units_runs *w, uint64_t most) {
    const uint64_t burst = (uint64_t)x->m->hw.dma_burst_bytes;
    dram_cut_clear(&x->cut, x->m->dram);
    x->piece = 0;
    while (!w->over && x->cut.bytes < most) {
        const uint64_t room = most - x->cut.bytes;
        const uint64_t bytes = room < w->left ? (room + burst - 1) / burst * burst : w->left;
        const uint64_t took = dram_cut_run(&x->cut, x->m->dram, w->address, bytes, w->fresh);
        if (took) units_runs_took(w, took, burst);
        if (took < bytes) break;
    }
    return x->cut.count > 0;
}

// All pieces are out, or it moves nothing in DRAM.
static void issued(struct units_dma *x) {
    struct units_flight *f = flight(x, x->flight_tail - 1);
    x->issuing = false;
    f->issued = true;
    if (!f->sent) f->last_end = f->read_end = max64(f->last_end, x->issue); // the start cost alone
    x->e.ready = x->issue;
    front(x, x->issue, TRACE_WAIT_DRAM, -1);
    complete(x);
}

static void on_chip(struct units_dma *x) {
    struct units_flight *f = flight(x, x->flight_tail - 1);
    if (x->transfer) {
        const uint64_t start = max64(x->issue, x->link);
        if (x->undecided == 0) units_state(&x->e, start, TRACE_BUSY, -1);
        x->link = start + x->transfer->chip_cycles;
        units_count(&x->e, x->link, TRACE_BUSY);
        x->issue = x->link;
        f->last_end = f->read_end = x->link;
    }
    issued(x);
}

// Gets the next piece ready. 1: there is one; 0: the instruction is issued; -1: it has to wait for
// answers.
static int next_piece(struct units_dma *x) {
    const struct units_transfer *t = x->transfer;
    if (x->piece < x->cut.count) return 1;
    const uint64_t block = (uint64_t)x->cut.quantum_bytes * (uint64_t)dram_channels(x->m->dram);
    const uint64_t most = max64(block, (uint64_t)x->cut.quantum_bytes * 4);
    if (!t->src_dram || !t->dst_dram)
        return refill(x, t->src_dram ? &x->src : &x->dst, most) ? 1 : 0;
    // Memory to memory: what was read has to be here before it is written.
    if (!x->writing && x->cut.count) {
        if (flight(x, x->flight_tail - 1)->pending) {
            x->answer_wait = true;
            return -1;
        }
        x->issue = max64(x->issue, x->link);
        x->writing = true;
        if (refill(x, &x->dst, x->src.over ? UINT64_MAX : x->cut.bytes)) return 1;
    }
    if (x->writing && !x->dst.over && x->src.over) return refill(x, &x->dst, UINT64_MAX) ? 1 : 0;
    x->writing = false;
    if (refill(x, &x->src, most)) return 1;
    x->writing = true;
    return refill(x, &x->dst, UINT64_MAX) ? 1 : 0;
}

// Whether the window has room for `bytes`, after moving the issue time to when it has; false: it
// will only with a further answer.
static bool window(struct units_dma *x, uint32_t bytes) {
    for (;;) {
        while (x->release_head != x->release_tail &&
               x->release[x->release_head & x->ring_mask].cycle <= x->issue) {
            x->inflight -= x->release[x->release_head++ & x->ring_mask].bytes;
            x->out--;
        }
        if (x->out == 0 || (x->inflight + bytes <= x->window && x->out < x->ring_mask)) return true;
        if (x->release_head == x->release_tail) return false;
        x->issue = max64(x->issue, x->release[x->release_head & x->ring_mask].cycle);
    }
}

// Sends one piece or ends the instruction; false: it has to wait.
static bool issue(struct units_dma *x, uint64_t cycle) {
    struct units_machine *m = x->m;
    const struct units_transfer *t = x->transfer;
    if (!t || (!t->src_dram && !t->dst_dram)) {
        on_chip(x);
        return true;
    }
    if (x->answer_wait) { // it had to wait until now
        x->answer_wait = false;
        x->issue = max64(x->issue, cycle);
    }
    const int ready = next_piece(x);
    if (ready == 0) issued(x);
    if (ready <= 0) return ready == 0;
    if (x->issue > cycle && !m->ahead) return asleep(x, x->issue);
    const struct dram_piece *p = &x->cut.piece[x->piece];
    if (!window(x, p->bytes)) {
        x->answer_wait = true;
        front(x, x->issue, TRACE_WAIT_DRAM, -1);
        return false;
    }
    const bool write = !t->src_dram || x->writing;
    const uint64_t rows = ((uint64_t)p->runs * t->row_q8 / 256) * (uint64_t)m->hw.dma_row;
    const uint64_t bursts = divide(p->bytes + (uint64_t)m->hw.dma_burst_bytes - 1,
                                   (uint64_t)m->hw.dma_burst_bytes, x->burst_shift);
    const uint64_t link_start = max64(x->issue + rows, x->link);
    const uint64_t link_end = link_start + link_cycles(x, t, p->bytes);
    struct units_flight *f = flight(x, x->flight_tail - 1);
    const struct dram_quantum q = {
        .arrive_ps = units_ps(m, write ? link_end : x->issue),
        .at = *p,
        .client = (uint8_t)x->index,
        .write = write,
        .cookie = x->flight_tail - 1,
    };
    if (!write) {
        if (x->undecided++ == 0) units_state(&x->e, x->issue, TRACE_WAIT_DRAM, -1);
    }
    x->inflight += p->bytes;
    x->out++;
    f->pending++;
    if (!dram_submit(m->dram, &q)) {
        f->pending--;
        x->inflight -= p->bytes;
        x->out--;
        if (!write && --x->undecided == 0) x->front = TRACE_WAIT_DRAM;
        x->answer_wait = true;
        front(x, max64(x->issue, cycle), TRACE_WAIT_DRAM, -1);
        return false;
    }
    x->piece++;
    f->sent = true;
    if (write) {
        if (x->undecided == 0) units_state(&x->e, link_start, TRACE_WAIT_DRAM, -1);
        moved(x, link_start, link_end, NULL);
        x->link = link_end;
        f->read_end = max64(f->read_end, link_end);
        x->issue = link_end;
    } else {
        x->issue += rows + bursts;
    }
    return true;
}

void units_dma_step(struct units_dma *x, uint64_t cycle) {
    x->next_ps = DRAM_NEVER;
    while (!x->m->over) {
        take_answers(x);
        if (x->issuing) {
            // Pieces may go out ahead of time, but not before the start cost is over: others'
            // signals count.
            if (!issue(x, cycle)) return;
        } else {
            if (x->issue > cycle) {
                asleep(x, x->issue);
                return;
            }
            x->answer_wait = false;
            if (!begin(x, cycle)) return;
        }
    }
}
