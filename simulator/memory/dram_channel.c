// SPDX-License-Identifier: Apache-2.0
//
// One channel of the detailed model. A decision takes one quantum out of the queues and books the
// bus for it; the next decision is due `lead` before the bus is free again, so that rows open
// behind transfers:
//
//   refresh      due ones first: rows closed, all banks (or one) blocked for tRFC. Long idle times
//   are
//                counted in closed form.
//   direction    reads, until DRAIN_START bytes of writes wait; then writes
//   down to DRAIN_STOP; and writes
//                whenever no read is there.
//   choice       urgent first; then the oldest quantum whose row is open (FR-FCFS), unless hit_cap
//   of them
//                have passed an older one already; then the oldest.
//   timing       a hit starts when the bus is free, at the earliest CL after its command; a miss
//   first
//                precharges and activates within tRAS, tRP, tRRD, tFAW, tRCD; a change of direction
//                costs the turn or tWTR. The transfer is accesses * burst.
//
// Reads that a queued write covers are answered from it. Writes are over when the buffer has taken
// them.
#include <string.h>

#include "simulator/memory/dram_model.h"

#define DRAIN_START 4096 // bytes
#define DRAIN_STOP 1024
#define WRITE_BUFFER 8192

static uint64_t max64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t due(const struct dram *d, const struct dram_channel *c) {
    return c->bus_ps > d->t.lead ? c->bus_ps - d->t.lead : 0;
}

static void push(struct dram_queue *q, const struct dram_quantum *e, uint64_t arrive_ps) {
    struct dram_quantum *last = &q->item[q->count++];
    *last = *e;
    last->arrive_ps = arrive_ps;
    q->bytes += e->at.bytes;
}

static struct dram_quantum take(struct dram_queue *q, int i) {
    const struct dram_quantum e = q->item[i];
    q->count--;
    memmove(&q->item[i], &q->item[i + 1], (size_t)(q->count - i) * sizeof *q->item);
    q->bytes -= e.at.bytes;
    return e;
}

// Whether a queued write holds every byte of the read.
static bool covered(const struct dram_queue *w, const struct dram_piece *p) {
    for (int i = 0; i < w->count; i++) {
        const struct dram_piece *q = &w->item[i].at;
        if (q->row == p->row && q->bank == p->bank && q->column != UINT32_MAX &&
            p->column != UINT32_MAX && q->column <= p->column &&
            p->column + p->bytes <= q->column + q->bytes)
            return true;
    }
    return false;
}

static void accepted(struct dram *d, const struct dram_quantum *e, uint64_t now) {
    const struct dram_reply r = {.done_ps = max64(now, e->arrive_ps) + d->there_ps};
    d->done(d->ctx, e, &r);
}

// Takes waiting writes in order as long as the buffer has room; a write may be larger than what is
// left.
static void accept(struct dram *d, struct dram_queue *w, uint64_t now) {
    for (int i = 0; i < w->count && w->accepted < WRITE_BUFFER; i++) {
        if (w->item[i].accepted) continue;
        w->item[i].accepted = true;
        w->accepted += w->item[i].at.bytes;
        accepted(d, &w->item[i], now);
    }
}

bool dram_channel_submit(struct dram *d, const struct dram_quantum *e, uint64_t arrive_ps) {
    const int index = e->at.channel;
    struct dram_channel *c = &d->channel[index];
    struct dram_queue *q = e->write ? &c->write : &c->read;
    if (q->count >= d->queue + (e->urgent ? DRAM_SLACK : 0)) {
        q->refused = true;
        c->waiting |= 1u << e->client;
        return false;
    }
    d->stats.quanta++;
    struct dram_reply r = {.done_ps = arrive_ps + d->there_ps};
    if (e->write) {
        d->stats.write_bytes += e->at.bytes;
    } else {
        d->stats.read_bytes += e->at.bytes;
        if (c->write.count && covered(&c->write, &e->at)) {
            d->stats.forwards++;
            r.done_ps += (e->at.bytes + d->t.burst_bytes - 1) / d->t.burst_bytes * d->t.burst;
            d->done(d->ctx, e, &r);
            return true;
        }
    }
    push(q, e, arrive_ps);
    if (e->write) d->writes_left[e->client]++;
    const uint64_t at = max64(arrive_ps, due(d, c));
    if (at < d->next[index]) dram_schedule(d, index, at);
    if (e->write) accept(d, q, arrive_ps);
    return true;
}

// All refreshes that are due at `now`.
static void refresh(struct dram *d, struct dram_channel *c, uint64_t now) {
    const struct dram_timing *t = &d->t;
    const uint64_t round = t->per_bank ? t->refi * (uint64_t)t->banks : t->refi;
    if (now - c->refresh_ps >= round) { // idle for long: every row was closed meanwhile
        const uint64_t rounds = (now - c->refresh_ps) / round;
        const uint64_t n = rounds * (t->per_bank ? (uint64_t)t->banks : 1);
        d->stats.refreshes += n;
        d->stats.refresh_ps += n * t->rfc;
        c->refresh_ps += rounds * round;
        for (int b = 0; b < t->banks; b++) {
            struct dram_bank *k = &c->bank[b];
            if (k->row != DRAM_CLOSED) k->ready_ps = max64(k->ready_ps, k->close_ps + t->rp);
            k->row = DRAM_CLOSED;
        }
    }
    while (c->refresh_ps <= now) {
        const int first = t->per_bank ? c->refresh_bank : 0;
        const int last = t->per_bank ? first + 1 : t->banks;
        uint64_t start = c->refresh_ps;
        for (int b = first; b < last; b++) {
            const struct dram_bank *k = &c->bank[b];
            start = max64(start, k->row != DRAM_CLOSED ? k->close_ps + t->rp : k->ready_ps);
        }
        for (int b = first; b < last; b++) {
            c->bank[b].row = DRAM_CLOSED;
            c->bank[b].ready_ps = start + t->rfc;
        }
        c->blocked_from_ps = start;
        c->blocked_ps = start + t->rfc;
        c->blocked_bank = first;
        c->refresh_bank = c->refresh_bank + 1 == t->banks ? 0 : c->refresh_bank + 1;
        c->refresh_ps += t->refi;
        d->stats.refreshes++;
        d->stats.refresh_ps += t->rfc;
    }
}

// Index of the quantum to serve, or -1 when none has arrived.
static int choose(const struct dram *d, struct dram_channel *c, const struct dram_queue *q,
                  uint64_t now) {
    if (q->count == 1 && !q->item[0].urgent) { // often: nothing to choose
        c->passed = 0;
        return q->item[0].arrive_ps > now ? -1 : 0;
    }
    int hit = -1, oldest = -1, blocked = -1;
    uint64_t hit_ps = DRAM_NEVER, oldest_ps = DRAM_NEVER, blocked_ps = DRAM_NEVER;
    for (int i = 0; i < q->count; i++) {
        const struct dram_quantum *e = &q->item[i];
        const struct dram_bank *b = &c->bank[e->at.bank];
        if (e->arrive_ps > now) continue;
        if (e->urgent) return i;
        if (b->row == e->at.row) {
            if (e->arrive_ps < hit_ps) hit = i, hit_ps = e->arrive_ps;
        } else if (b->row == DRAM_CLOSED && b->ready_ps > now + d->t.lead) { // in refresh
            if (e->arrive_ps < blocked_ps) blocked = i, blocked_ps = e->arrive_ps;
        } else if (e->arrive_ps < oldest_ps) {
            oldest = i, oldest_ps = e->arrive_ps;
        }
    }
    const bool passes = hit >= 0 && oldest >= 0 && oldest_ps < hit_ps;
    if (passes && c->passed < d->hit_cap) {
        c->passed++;
        return hit;
    }
    c->passed = 0;
    if (hit >= 0 && !passes) return hit;
    return oldest >= 0 ? oldest : blocked;
}

// Opens the row and returns when a column command may go to it.
static uint64_t open_row(struct dram *d, struct dram_channel *c, const struct dram_quantum *e,
                         uint64_t now) {
    const struct dram_timing *t = &d->t;
    struct dram_bank *b = &c->bank[e->at.bank];
    uint64_t at = max64(now, b->ready_ps);
    if (b->row != DRAM_CLOSED) {
        at = max64(now, b->close_ps) + t->rp;
        d->stats.row_conflicts++;
    }
    const int last = c->opened_at, first = last + 1 == t->faw_count ? 0 : last + 1;
    const uint64_t one = t->rrd * (uint64_t)t->activates;
    if (c->opened[last]) at = max64(at, c->opened[last] + one);
    if (c->opened[first]) at = max64(at, c->opened[first] + t->faw);
    c->opened_at = first;
    c->opened[first] = at;
    b->row = e->at.row;
    b->close_ps = at + t->ras;
    // The gang's other banks open tRRD apart, and are wanted one burst apart.
    const uint64_t lag = t->rrd > t->burst ? (t->rrd - t->burst) * (uint64_t)(t->activates - 1) : 0;
    b->col_ps = at + t->rcd_read + lag;
    b->write_ps = at + t->rcd_write + lag;
    return e->write ? b->write_ps : b->col_ps;
}

static void serve(struct dram *d, struct dram_channel *c, const struct dram_quantum *e,
                  uint64_t now) {
    const struct dram_timing *t = &d->t;
    struct dram_bank *b = &c->bank[e->at.bank];
    const uint64_t accesses = (e->at.bytes + t->burst_bytes - 1) / t->burst_bytes;
    const uint64_t latency = e->write ? t->cwl : t->cl;
    const bool hit = b->row == e->at.row;
    // What it would be with an open row, no refresh and no turn of the bus.
    const uint64_t smooth = max64(c->bus_ps, now + latency);
    uint64_t column = hit ? max64(now, e->write ? b->write_ps : b->col_ps) : open_row(d, c, e, now);
    if (!e->write) column = max64(column, c->read_ps);
    uint64_t bus = c->bus_ps;
    if (e->write && !c->wrote && bus) bus += t->turn;
    const uint64_t start = max64(bus, column + latency), end = start + accesses * t->burst;
    if (e->write != c->wrote) d->stats.turns++;

    uint64_t lost = start - smooth, waited = 0;
    if (c->blocked_ps > now && (!t->per_bank || e->at.bank == c->blocked_bank)) {
        waited = c->blocked_ps - max64(now, c->blocked_from_ps);
        if (waited > lost) waited = lost;
    }
    d->stats.row_hits += hit ? accesses : accesses - 1;
    d->stats.row_misses += !hit;
    d->stats.bus_ps += end - start;
    c->bus_ps = end;
    c->wrote = e->write;
    if (e->write) {
        c->read_ps = end + t->wtr;
        b->close_ps = max64(b->close_ps, end + t->wr);
        d->writes_left[e->client]--;
        if (end > d->written_ps[e->client]) d->written_ps[e->client] = end;
        return;
    }
    b->close_ps = max64(b->close_ps, end - t->burst - t->cl + t->rtp);
    const struct dram_reply r = {end + d->there_ps, waited, lost - waited};
    d->done(d->ctx, e, &r);
}

// When the channel has something to decide, seen from `now`.
static uint64_t next_decision(const struct dram *d, const struct dram_channel *c, uint64_t now) {
    const uint64_t at = max64(now, due(d, c));
    uint64_t first = DRAM_NEVER;
    for (int w = 0; w < 2; w++) {
        const struct dram_queue *q = w ? &c->write : &c->read;
        for (int i = 0; i < q->count; i++) {
            if (q->item[i].arrive_ps <= at) return at;
            if (q->item[i].arrive_ps < first) first = q->item[i].arrive_ps;
        }
    }
    return first;
}

// Tells clients that were refused that an entry is free.
static void room(struct dram *d, struct dram_channel *c, struct dram_queue *q, uint64_t now) {
    if (!q->refused) return;
    const uint32_t waiting = c->waiting;
    c->read.refused = c->write.refused = false;
    c->waiting = 0;
    for (int i = 0; i < DRAM_CLIENTS; i++)
        if (waiting >> i & 1) d->space(d->ctx, i, now);
}

void dram_channel_step(struct dram *d, int index, uint64_t now) {
    struct dram_channel *c = &d->channel[index];
    if (c->refresh_ps <= now) refresh(d, c, now);
    if (c->write.bytes >= DRAIN_START || c->write.count * 4 >= d->queue * 3) c->draining = true;
    if (c->write.bytes <= DRAIN_STOP && c->write.count * 4 <= d->queue) c->draining = false;

    struct dram_queue *q = c->draining ? &c->write : &c->read;
    int i = choose(d, c, q, now);
    if (i < 0) {
        q = c->draining ? &c->read : &c->write;
        i = choose(d, c, q, now);
    }
    if (i >= 0) {
        const struct dram_quantum e = take(q, i);
        serve(d, c, &e, now);
        if (e.write) {
            if (e.accepted)
                q->accepted -= e.at.bytes;
            else
                accepted(d, &e, now);
            accept(d, q, now);
        }
    }
    dram_schedule(d, index, next_decision(d, c, now));
    if (i >= 0) room(d, c, q, now);
}
