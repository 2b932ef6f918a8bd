// SPDX-License-Identifier: Apache-2.0
// Order of operations: loads go ahead of the computing of earlier steps and kernels.
//
//   for each operation in the old order
//       if it is a load: walk back over the new order while the operation there
//           is no load itself, the load does not depend on it,
//           in the same kernel: belongs to a step within the lookahead of the load's buffer (slots
//           - 1; no end when the buffer has one slot, whose reuse is a dependence), in an earlier
//           kernel: the load's buffer also fits into the scratchpad from there on, and not so many
//           loads went over it already that they would fill the DMA queues and hold up dispatching
//       insert
//
// So while step t computes, the loads of step t + 1 already stand in the DMA queues, and weights of
// later kernels arrive while memory is idle.
#include "toolchain/schedule/schedule.h"

#include <stddef.h>
#include <string.h>

#define LONGEST_WALK 4096

struct orderer {
    const struct tile_program *p;
    const struct schedule_options *options;
    struct tile_op **op;
    int *over; // loads that went over this operation, by position in op
    int64_t
        *used; // by kernel: scratchpad of its own buffers, of values, and of buffers loaded ahead
    int *from; // by buffer: the kernel from which on it is live
    int64_t room;
    int most_over;
};

// The buffer that a load fills; NULL when it is no on-chip buffer of its kernel.
static const struct tile_buf *filled(const struct tile_program *p, const struct tile_op *t) {
    for (int k = 0; k < t->npat; k++) {
        int64_t lo, hi;
        enum isa_access access;
        if (!tile_access(t, k, &lo, &hi, &access) || !(access & ISA_W)) continue;
        const struct tile_buf *b = p->bufs[t->operand[k].buf];
        return b->kernel >= 0 ? b : NULL;
    }
    return NULL;
}

static bool fits(const struct orderer *s, const struct tile_buf *b, int kernel) {
    for (int k = kernel; k < s->from[b->id]; k++)
        if (s->used[k] + b->bytes * b->slots > s->room) return false;
    return true;
}

static bool may_pass(const struct orderer *s, const struct tile_op *load, const struct tile_buf *b,
                     int at) {
    const struct tile_op *earlier = s->op[at];
    if (earlier->phase == TILE_LOAD || s->over[at] >= s->most_over) return false;
    if (earlier->kernel == load->kernel) {
        bool endless = b && b->slots == 1;
        int ahead = b && b->slots > 1 ? b->slots - 1 : 1;
        if (!endless && earlier->step < load->step - ahead) return false;
    } else if (!b || !s->options->across_kernels || !fits(s, b, earlier->kernel)) {
        return false;
    }
    return !tile_depends(earlier, load);
}

// Position of operation i of the old order.
static int place(struct orderer *s, struct tile_op *t, int i) {
    int at = i;
    if (t->phase != TILE_LOAD) return at;
    const struct tile_buf *b = filled(s->p, t);
    while (at > 0 && i - at < LONGEST_WALK && may_pass(s, t, b, at - 1))
        s->over[--at]++;
    if (!b || at == i) return at;
    int kernel = s->op[at]->kernel;
    for (int k = kernel; k < s->from[b->id]; k++)
        s->used[k] += b->bytes * b->slots;
    if (kernel < s->from[b->id]) s->from[b->id] = kernel;
    return at;
}

void schedule_order(struct tile_program *p, const struct schedule_options *options) {
    if (!options->prefetch) return;
    int loaders = p->hw->dma_engines > 1 ? (int)p->hw->dma_engines - 1 : 1;
    struct orderer s = {
        .p = p,
        .options = options,
        .op = ARENA_ARRAY(p->arena, struct tile_op *, (size_t)p->nop + 1),
        .over = ARENA_ARRAY(p->arena, int, (size_t)p->nop + 1),
        .used = ARENA_ARRAY(p->arena, int64_t, (size_t)p->nkernel + 1),
        .from = ARENA_ARRAY(p->arena, int, (size_t)p->nbuf + 1),
        .room = p->hw->spm_bytes * (options->ahead_percent ? options->ahead_percent : 85) / 100,
        .most_over = (int)p->hw->cp_queue_depth * loaders * 3 / 4,
    };
    if (s.most_over < 2) s.most_over = 2;
    for (int k = 0; k < p->nkernel; k++)
        s.used[k] = p->kernels[k]->spm_bytes + p->kernels[k]->resident_bytes;
    for (int b = 0; b < p->nbuf; b++)
        s.from[b] = p->bufs[b]->kernel;
    for (int i = 0; i < p->nop; i++) {
        struct tile_op *t = p->ops[i];
        int at = place(&s, t, i);
        memmove(s.op + at + 1, s.op + at, (size_t)(i - at) * sizeof(void *));
        memmove(s.over + at + 1, s.over + at, (size_t)(i - at) * sizeof *s.over);
        s.op[at] = t;
        s.over[at] = 0;
    }
    if (p->nop) memcpy(p->ops, s.op, (size_t)p->nop * sizeof(void *));
}

// Bytes that an operation moves.
static int64_t bytes_of(const struct tile_op *t) {
    const struct isa_pat *pat = isa_pat_get(&t->insn, t->npat > 1 ? 1 : 0); // what is written
    return isa_pat_elems(pat) * isa_dtype_bits((int)pat->dtype) / 8;
}

// How many of the engines are left to the stores of each kernel: their share of the bytes that it
// moves; one goes to loads. Where stores are the smaller part: none. They share the last engine
// with loads, which wait behind them for the same computing that frees their buffers.
static int *store_engines(const struct tile_program *p, int engines) {
    int64_t *moved = ARENA_ARRAY(p->arena, int64_t, 2 * (size_t)p->nkernel + 2);
    int *n = ARENA_ARRAY(p->arena, int, (size_t)p->nkernel + 1);
    for (int i = 0; i < p->nop; i++) {
        const struct tile_op *t = p->ops[i];
        if (t->insn.h.opcode != ISA_OP_COPY) continue;
        moved[2 * (ptrdiff_t)t->kernel + (t->phase == TILE_LOAD ? 0 : 1)] += bytes_of(t);
    }
    for (int k = 0; k < p->nkernel; k++) {
        int64_t stored = moved[2 * (ptrdiff_t)k + 1], all = moved[2 * (ptrdiff_t)k] + stored;
        if (5 * stored < 2 * all) continue;
        n[k] = all ? (int)((double)engines * (double)stored / (double)all + 0.5) : 1;
        if (n[k] > engines - 1) n[k] = engines - 1;
        if (n[k] < 1) n[k] = 1;
    }
    return n;
}

// A load goes to the engine that has the least to move for its kernel, stores in turn to theirs.
void schedule_queues(struct tile_program *p) {
    int engines = (int)p->hw->dma_engines;
    const int *stores = store_engines(p, engines);
    int64_t *busy = ARENA_ARRAY(p->arena, int64_t, (size_t)(p->nkernel * engines) + 1);
    for (int i = 0; i < p->nop; i++) {
        struct tile_op *t = p->ops[i];
        if (isa_find((unsigned)t->insn.h.opcode)->cls != ISA_CLASS_DMA) continue;
        int ns = stores[t->kernel], nl = engines > ns ? engines - ns : 1, at = 0;
        int64_t *sum = busy + (ptrdiff_t)t->kernel * engines;
        if (t->phase != TILE_LOAD) {
            int turn = (t->step - p->kernels[t->kernel]->first_step) % (ns > 0 ? ns : 1);
            at = engines - 1 - turn;
        }
        for (int e = 1; e < nl && t->phase == TILE_LOAD; e++)
            if (sum[e] < sum[at]) at = e;
        sum[at] += bytes_of(t) + p->hw->dma_start * p->hw->dma_width_bytes;
        t->insn.h.engine = ISA_ENGINE_DMA0 + at;
    }
}
