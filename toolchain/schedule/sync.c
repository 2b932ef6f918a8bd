// SPDX-License-Identifier: Apache-2.0
// Dependences become semaphores.
//
// Every engine runs its operations in order, and they complete in order; nothing else is ordered by
// itself. For each operation X (in program order) on engine A:
//
//   need = accesses of earlier operations Y that X's accesses conflict with (by address; strided
//   blocks that provably interleave
//          without touching do not conflict)
//   a conflict with Y on the same DMA queue sets X's fence, unless X's waits imply that Y is
//   complete; on the same MXU or VEC the engine's own
//   order is enough for another engine B: X must know that Y is complete, or, where Y only read,
//   that its operands were read what A knows already (vector clock: per engine the last operation
//   known complete / read) drops out for what remains: the latest Y of B signals semaphore (B, A,
//   epoch), X waits for one count of it
//
// A launch begins with all engines at rest, so nothing is needed of operations of launches before.
//
// The i-th wait on a semaphore meets the i-th signal, since both engines are in order and each
// needed Y is later than the last.
#include "toolchain/schedule/schedule.h"

#include <string.h>

#define ENGINES ((int)ISA_ENGINES)
#define BUCKETS 1024 // of DRAM, at least; one per operation of long programs
#define MOST_BUCKETS 65536
#define ONCHIP_BUCKETS 32 // of SPM and PSUM, where blocks are large against the whole
#define FLOOR_EVERY 16    // operations
#define PIECES 64         // of one access, at most
enum { AT_READ, AT_DONE, EPOCHS };

// seq[e][b]: operations of engine b up to this number are known to have reached epoch e.
struct clock {
    int seq[EPOCHS][ISA_ENGINES];
};

struct access {
    struct access *next; // of the same bucket
    const struct isa_pat *pat;
    int64_t lo, hi;      // absolute bytes
    int64_t run, stride; // bytes of a contiguous run; gcd of the distances between runs, 0: one run
    int op;              // index into p->ops
    int engine, seq;
    bool write, dense; // dense: every byte of [lo, hi)
    bool *dead;        // shared by the copies of one access in several buckets
};

struct memory {
    struct access **bucket;
    int nbucket;
    int64_t bucket_bytes;
};

#define SYNCS 8
struct extra { // SYNC operations that go next to an operation
    struct tile_op *before[SYNCS], *after[SYNCS];
    int nbefore, nafter;
};

struct sync {
    struct tile_program *p;
    struct memory mem[ISA_DRAM + 1];
    struct clock known[ISA_ENGINES]; // what the next operation of each engine knows
    struct clock *start;             // what operation i knew at its start
    int *seq;                        // number of operation i on its engine, from 1
    int count[ISA_ENGINES];
    int fenced[ISA_ENGINES]; // operations of a DMA queue up to this number are complete for the
                             // queue's later ones
    int floor[EPOCHS][ISA_ENGINES]; // operations of an engine up to this number are behind every
                                    // later operation of every engine
    bool used[ISA_ENGINES];
    int sem[EPOCHS][ISA_ENGINES][ISA_ENGINES]; // semaphore number, 0: none yet
    int nsem;
    struct extra *extra;
    struct arena *scratch;
    int64_t looked; // accesses compared: what the time goes with
};

static int bucket_of(const struct memory *m, int64_t byte) {
    int64_t b = byte / m->bucket_bytes;
    return b >= m->nbucket ? m->nbucket - 1 : (int)b;
}

static int64_t gcd64(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

// Length of the contiguous run at the start of a pattern, and the gcd of the byte strides outside
// it (0: none).
static void shape_of(const struct isa_pat *p, int64_t *run_bytes, int64_t *stride_bytes) {
    int64_t bits = isa_dtype_bits((int)p->dtype), run = 1, g = 0;
    bool order[ISA_DIMS] = {false};
    for (bool grown = true; grown;) {
        grown = false;
        for (int d = 0; d < ISA_DIMS; d++) {
            if (order[d] || p->size[d] == 1 || p->stride[d] != run) continue;
            run *= p->size[d];
            order[d] = grown = true;
        }
    }
    for (int d = 0; d < ISA_DIMS; d++)
        if (!order[d] && p->size[d] > 1 && p->stride[d]) g = gcd64(g, p->stride[d] * bits / 8);
    *run_bytes = (run * bits + 7) / 8;
    *stride_bytes = g;
}

// True when two strided blocks share no byte because their runs lie in different residues of the
// common stride.
static bool interleave(const struct access *a, const struct access *b) {
    int64_t s = gcd64(a->stride, b->stride);
    if (!s) return false;
    int64_t d = (b->lo - a->lo) % s;
    if (d < 0) d += s;
    return d >= a->run && d + b->run <= s;
}

static bool conflict(const struct access *y, const struct access *x) {
    if (*y->dead || !(y->write || x->write) || y->lo >= x->hi || x->lo >= y->hi) return false;
    return !interleave(y, x);
}

static void join(struct clock *into, const struct clock *from) {
    for (int e = 0; e < EPOCHS; e++)
        for (int b = 0; b < ENGINES; b++)
            if (from->seq[e][b] > into->seq[e][b]) into->seq[e][b] = from->seq[e][b];
}

// A block whose outermost dimensions lie far apart, as pieces: what is between them belongs to
// others, and pieces are found by their own addresses.
struct pieces {
    int n;
    struct access at[PIECES];
};

// Dimensions, largest step first; returns how many have more than one step.
static int by_step(const struct isa_pat *p, int order[ISA_DIMS]) {
    int n = 0;
    for (int d = 0; d < ISA_DIMS; d++) {
        if (p->size[d] == 1 || p->stride[d] <= 0) continue;
        int at = n++;
        for (; at > 0 && p->stride[order[at - 1]] < p->stride[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    return n;
}

static void cut(const struct memory *m, const struct access *whole, struct pieces *out) {
    const struct isa_pat *p = whole->pat;
    int order[ISA_DIMS], dims = by_step(p, order);
    int64_t bits = isa_dtype_bits((int)p->dtype), extent = whole->hi - whole->lo;
    out->n = 1;
    out->at[0] = *whole;
    for (int i = 0; i < dims && !whole->dense; i++) {
        int d = order[i];
        int64_t step = p->stride[d] * bits / 8, size = p->size[d];
        extent -= step * (size - 1);
        // Pieces that overlap, or meet in one bucket, are not worth it.
        if (extent > step || step < m->bucket_bytes || size * out->n > PIECES) return;
        for (int k = out->n * (int)size - 1; k >= 0; k--) {
            struct access *piece = &out->at[k];
            *piece = out->at[k / size];
            piece->lo += step * (k % size);
            piece->hi = piece->lo + extent;
            piece->dense = piece->run == extent;
        }
        out->n *= (int)size;
    }
}

static bool absolute(const struct sync *s, int op, int k, struct access *out) {
    const struct tile_op *t = s->p->ops[op];
    enum isa_access access;
    if (!tile_access(t, k, &out->lo, &out->hi, &access)) return false;
    const struct tile_buf *b = s->p->bufs[t->operand[k].buf];
    int64_t base = b->addr[t->operand[k].slot];
    out->pat = isa_pat_get(&t->insn, k);
    out->lo += base;
    out->hi += base;
    out->op = op;
    out->engine = (int)t->insn.h.engine;
    out->seq = s->seq[op];
    out->write = access & ISA_W;
    shape_of(out->pat, &out->run, &out->stride);
    out->dense = out->run == out->hi - out->lo;
    return b->kind != TILE_WEIGHT && b->kind != TILE_INPUT; // never written: no dependence
}

// The next operation of engine `self` is behind y already: by its queue, a fence, or what it knows.
static bool ordered(const struct sync *s, int self, bool dma, const struct access *y) {
    if (y->engine == self) return !dma || y->seq <= s->fenced[self];
    return s->known[self].seq[y->write ? AT_DONE : AT_READ][y->engine] >= y->seq;
}

// Puts what an access of engine `self` must know of, in one bucket, into need; of the same queue
// the latest into *same: its number on the engine. Drops what is dead.
static void search(struct sync *s, struct access **at, const struct access *x, int self,
                   int need[EPOCHS][ISA_ENGINES], int *same) {
    bool dma = isa_engine_class(self) == ISA_CLASS_DMA;
    while (*at) {
        struct access *y = *at;
        if (*y->dead || y->seq <= s->floor[y->write ? AT_DONE : AT_READ][y->engine]) {
            *at = y->next;
            continue;
        }
        at = &y->next;
        s->looked++;
        if (ordered(s, self, dma, y) || !conflict(y, x)) continue;
        if (y->engine == self) {
            if (y->seq > *same) *same = y->seq;
            continue;
        }
        int *n = &need[y->write ? AT_DONE : AT_READ][y->engine];
        if (y->op + 1 > *n) *n = y->op + 1;
    }
}

// Latest operations that `op` must know of: need[epoch][engine] is an operation index + 1.
static void collect(struct sync *s, int op, int need[EPOCHS][ISA_ENGINES], int *same) {
    const struct tile_op *t = s->p->ops[op];
    int self = (int)t->insn.h.engine;
    for (int k = 0; k < t->npat; k++) {
        struct access x;
        struct pieces all;
        if (!absolute(s, op, k, &x)) continue;
        struct memory *m = &s->mem[x.pat->space];
        cut(m, &x, &all);
        for (int i = 0; i < all.n; i++)
            for (int b = bucket_of(m, all.at[i].lo); b <= bucket_of(m, all.at[i].hi - 1); b++)
                search(s, &m->bucket[b], &all.at[i], self, need, same);
    }
}

// Every byte of y is one of x: x is without gaps, or both have the same shape at the same place.
static bool covers(const struct access *x, const struct access *y) {
    if (y->lo < x->lo || y->hi > x->hi) return false;
    if (x->dense) return true;
    return x->lo == y->lo && x->hi == y->hi && x->pat->dtype == y->pat->dtype &&
           !memcmp(x->pat->size, y->pat->size, sizeof x->pat->size) &&
           !memcmp(x->pat->stride, y->pat->stride, sizeof x->pat->stride);
}

static void remember_piece(struct sync *s, struct memory *m, struct access *x) {
    x->dead = ARENA_NEW(s->scratch, bool);
    for (int b = bucket_of(m, x->lo); b <= bucket_of(m, x->hi - 1); b++) {
        for (struct access *y = m->bucket[b]; y; y = y->next) {
            // Whoever conflicts with y from now on conflicts with x too, and x is later.
            s->looked++;
            bool inside = y->op != x->op && covers(x, y);
            if (inside && (x->write || (!y->write && y->engine == x->engine))) *y->dead = true;
        }
        struct access *copy = ARENA_NEW(s->scratch, struct access);
        *copy = *x;
        copy->next = m->bucket[b];
        m->bucket[b] = copy;
    }
}

static void remember(struct sync *s, int op) {
    const struct tile_op *t = s->p->ops[op];
    for (int k = 0; k < t->npat; k++) {
        struct access x;
        struct pieces all;
        if (!absolute(s, op, k, &x)) continue;
        struct memory *m = &s->mem[x.pat->space];
        cut(m, &x, &all);
        for (int i = 0; i < all.n; i++)
            remember_piece(s, m, &all.at[i]);
    }
}

static struct tile_op *sync_op(struct sync *s, const struct tile_op *next_to) {
    struct tile_op *t = ARENA_NEW(s->p->arena, struct tile_op);
    isa_init(&t->insn, ISA_OP_SYNC);
    t->insn.h.engine = next_to->insn.h.engine;
    t->insn.h.tag = next_to->insn.h.tag;
    t->kernel = next_to->kernel;
    t->step = next_to->step;
    t->phase = next_to->phase;
    return t;
}

static bool put_wait(struct isa_header *h, int sem) {
    if (h->wait0_sem && h->wait1_sem) return false;
    if (!h->wait0_sem) {
        h->wait0_sem = sem;
        h->wait0_value = 1;
        h->acquire |= 1;
    } else {
        h->wait1_sem = sem;
        h->wait1_value = 1;
        h->acquire |= 2;
    }
    return true;
}

// Puts a wait into the operation, or into SYNCs before it when both places are taken.
static void add_wait(struct sync *s, int op, int sem) {
    if (put_wait(&s->p->ops[op]->insn.h, sem)) return;
    struct extra *x = &s->extra[op];
    if (x->nbefore && put_wait(&x->before[x->nbefore - 1]->insn.h, sem)) return;
    NPU_ASSERT(x->nbefore < SYNCS);
    struct tile_op *t = x->before[x->nbefore++] = sync_op(s, s->p->ops[op]);
    NPU_ASSERT(put_wait(&t->insn.h, sem));
}

static bool put_signal(struct isa_header *h, int sem, int when) {
    if (h->sig0_sem && h->sig1_sem) return false;
    if (!h->sig0_sem) {
        h->sig0_sem = sem;
        h->sig0_inc = 1;
        h->sig0_when = when;
    } else {
        h->sig1_sem = sem;
        h->sig1_inc = 1;
        h->sig1_when = when;
    }
    return true;
}

// All signals of a semaphore fire at its epoch. A SYNC behind the operation reaches each epoch
// after the operation did, since a queue's epochs come in order.
static void add_signal(struct sync *s, int op, int sem, int epoch) {
    int when = epoch == AT_READ ? ISA_AT_READ : ISA_AT_DONE;
    if (put_signal(&s->p->ops[op]->insn.h, sem, when)) return;
    struct extra *x = &s->extra[op];
    if (x->nafter && put_signal(&x->after[x->nafter - 1]->insn.h, sem, when)) return;
    NPU_ASSERT(x->nafter < SYNCS);
    struct tile_op *t = x->after[x->nafter++] = sync_op(s, s->p->ops[op]);
    NPU_ASSERT(put_signal(&t->insn.h, sem, when));
}

// True when some other need of `op` brings this knowledge along.
static bool implied(const struct sync *s, int need[EPOCHS][ISA_ENGINES], int epoch, int engine) {
    int target = s->seq[need[epoch][engine] - 1];
    for (int e = 0; e < EPOCHS; e++)
        for (int b = 0; b < ENGINES; b++) {
            if (!need[e][b] || (e == epoch && b == engine)) continue;
            const struct clock *c = &s->start[need[e][b] - 1];
            if (c->seq[AT_DONE][engine] >= target ||
                (epoch == AT_READ && c->seq[AT_READ][engine] >= target))
                return true;
        }
    return false;
}

static npu_status wait_for(struct sync *s, int op, int earlier, int epoch) {
    int from = (int)s->p->ops[earlier]->insn.h.engine, to = (int)s->p->ops[op]->insn.h.engine;
    int *sem = &s->sem[epoch][from][to];
    if (!*sem) {
        if (s->nsem + 1 >= ISA_SEMS)
            return npu_fail(UNSUPPORTED, "more than %d semaphores", ISA_SEMS - 1);
        *sem = ++s->nsem;
    }
    add_signal(s, earlier, *sem, epoch);
    add_wait(s, op, *sem);
    struct clock *k = &s->known[to];
    join(k, &s->start[earlier]);
    for (int e = AT_READ; e <= epoch; e++)
        if (s->seq[earlier] > k->seq[e][from]) k->seq[e][from] = s->seq[earlier];
    return NULL;
}

// What every engine knows, each of its own queue too: nobody has to look there again.
static void raise_floor(struct sync *s) {
    for (int e = 0; e < EPOCHS; e++)
        for (int b = 0; b < ENGINES; b++) {
            bool dma = isa_engine_class(b) == ISA_CLASS_DMA;
            int least = dma ? s->fenced[b] : s->count[b];
            for (int k = 0; k < ENGINES; k++)
                if (k != b && s->used[k] && s->known[k].seq[e][b] < least)
                    least = s->known[k].seq[e][b];
            s->floor[e][b] = least;
        }
}

// Another launch begins: everything before is over, and nobody has to wait for it.
static void barrier(struct sync *s) {
    for (int b = 0; b < ENGINES; b++) {
        s->fenced[b] = s->count[b];
        for (int e = 0; e < EPOCHS; e++) {
            s->floor[e][b] = s->count[b];
            for (int k = 0; k < ENGINES; k++)
                s->known[k].seq[e][b] = s->count[b];
        }
    }
}

static npu_status one(struct sync *s, int op) {
    struct tile_op *t = s->p->ops[op];
    int self = (int)t->insn.h.engine;
    int need[EPOCHS][ISA_ENGINES] = {{0}};
    int same = 0;
    s->seq[op] = ++s->count[self];
    collect(s, op, need, &same);
    struct clock *k = &s->known[self];
    for (int b = 0; b < ENGINES; b++) {
        if (need[AT_DONE][b] && k->seq[AT_DONE][b] >= s->seq[need[AT_DONE][b] - 1])
            need[AT_DONE][b] = 0;
        if (need[AT_READ][b] && (need[AT_READ][b] <= need[AT_DONE][b] ||
                                 k->seq[AT_READ][b] >= s->seq[need[AT_READ][b] - 1]))
            need[AT_READ][b] = 0;
    }
    for (int e = 0; e < EPOCHS; e++)
        for (int b = 0; b < ENGINES; b++)
            if (need[e][b] && implied(s, need, e, b)) need[e][b] = 0;
    for (int e = 0; e < EPOCHS; e++)
        for (int b = 0; b < ENGINES; b++)
            if (need[e][b]) NPU_TRY(wait_for(s, op, need[e][b] - 1, e));
    // Whoever the operation waited for may have waited for its own queue's conflict in turn.
    if (same > k->seq[AT_DONE][self]) {
        const struct isa_insn_desc *d = isa_find((unsigned)t->insn.h.opcode);
        for (int f = 0; f < d->nfield; f++)
            if (!strcmp(d->field[f].name, "fence"))
                memcpy((char *)&t->insn + d->field[f].offset, &(int64_t){1}, sizeof(int64_t));
        s->fenced[self] = s->seq[op] - 1;
    }
    s->start[op] = *k;
    remember(s, op);
    return NULL;
}

// Puts the SYNC operations into the list.
static void splice(struct sync *s) {
    struct tile_program *p = s->p;
    int more = 0;
    for (int i = 0; i < p->nop; i++)
        more += s->extra[i].nbefore + s->extra[i].nafter;
    struct tile_op **ops = ARENA_ARRAY(p->arena, struct tile_op *, (size_t)(p->nop + more) + 1);
    int n = 0;
    for (int i = 0; i < p->nop; i++) {
        for (int k = 0; k < s->extra[i].nbefore; k++)
            ops[n++] = s->extra[i].before[k];
        ops[n++] = p->ops[i];
        for (int k = 0; k < s->extra[i].nafter; k++)
            ops[n++] = s->extra[i].after[k];
    }
    p->ops = ops;
    p->nop = p->cap_op = n;
}

npu_status schedule_sync(struct tile_program *p) {
    struct arena *scratch = arena_scratch(p->arena);
    struct sync *s = ARENA_NEW(scratch, struct sync);
    s->p = p;
    s->scratch = scratch;
    s->start = ARENA_ARRAY(scratch, struct clock, (size_t)p->nop + 1);
    s->seq = ARENA_ARRAY(scratch, int, (size_t)p->nop + 1);
    s->extra = ARENA_ARRAY(scratch, struct extra, (size_t)p->nop + 1);
    int64_t bytes[ISA_DRAM + 1] = {0};
    bytes[ISA_SPM] = p->hw->spm_bytes;
    bytes[ISA_PSUM] = hw_psum_bytes(p->hw);
    bytes[ISA_DRAM] = p->dram_bytes;
    int wide = p->nop < BUCKETS ? BUCKETS : p->nop > MOST_BUCKETS ? MOST_BUCKETS : p->nop;
    for (int m = 0; m <= ISA_DRAM; m++) {
        s->mem[m].nbucket = m == ISA_DRAM ? wide : ONCHIP_BUCKETS;
        s->mem[m].bucket = ARENA_ARRAY(scratch, struct access *, (size_t)s->mem[m].nbucket);
        s->mem[m].bucket_bytes = bytes[m] / s->mem[m].nbucket + 64;
    }
    npu_status st = NULL;
    for (int i = 0; i < p->nop; i++)
        s->used[p->ops[i]->insn.h.engine] = true;
    for (int i = 0; i < p->nop && !st; i++) {
        if (i % FLOOR_EVERY == 0) raise_floor(s);
        if (i > 0 &&
            p->kernels[p->ops[i]->kernel]->launch != p->kernels[p->ops[i - 1]->kernel]->launch)
            barrier(s);
        st = one(s, i);
    }
    if (!st) splice(s);
    p->sync_work = s->looked;
    arena_free(scratch);
    return st;
}
