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
//       insert; or, when the load before it in memory stands two kernels ahead of its own or more:
//           join that, so that the queues reach further. But only where memory has time for it:
//           what is needed soon stays in small pieces, whose data can be used as they come
//
// So while step t computes, the loads of step t + 1 already stand in the DMA queues, and weights of
// later kernels arrive while memory is idle.
#include "toolchain/schedule/schedule.h"

#include <stddef.h>
#include <string.h>

#include "isa/timing.h"

#define LONGEST_WALK 4096
#define FAR 2      // kernels
#define EARLY 1.25 // time to compute over time to load

struct orderer {
    const struct tile_program *p;
    const struct schedule_options *options;
    struct tile_op **op;
    int *over; // loads that went over this operation, by position in op
    int64_t
        *used; // by kernel: scratchpad of its own buffers, of values, and of buffers loaded ahead
    int *from; // by buffer: the kernel from which on it is live
    struct tile_op **latest; // by buffer: the load placed last
    bool *early;             // by kernel: memory can bring what it loads long before it computes
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

// Bytes that an operation moves.
static int64_t bytes_of(const struct tile_op *t) {
    const struct isa_pat *pat = isa_pat_get(&t->insn, t->npat > 1 ? 1 : 0); // what is written
    return isa_pat_elems(pat) * isa_dtype_bits((int)pat->dtype) / 8;
}

static int64_t bytes_at(const struct isa_pat *p) {
    return p->size[0] * isa_dtype_bits((int)p->dtype) / 8;
}

// One run of bytes, the same on both sides.
static bool one_run(const struct tile_op *t) {
    const struct isa_pat *src = isa_pat_get(&t->insn, 0), *dst = isa_pat_get(&t->insn, 1);
    return t->insn.h.opcode == ISA_OP_COPY && src->dtype == dst->dtype &&
           isa_pat_elems(src) == src->size[0] && isa_pat_elems(dst) == dst->size[0] &&
           (src->size[0] == 1 || (src->stride[0] == 1 && dst->stride[0] == 1));
}

// t goes on where `before` ends, and both together are no more than a share of the buffer.
static bool continues(const struct orderer *s, const struct tile_op *before,
                      const struct tile_op *t) {
    const struct tile_buf *b = s->p->bufs[t->operand[1].buf];
    if (before->kernel != t->kernel || !one_run(before) || !one_run(t)) return false;
    int64_t first = 0, both = 0;
    for (int k = 0; k < 2; k++) {
        const struct isa_pat *x = isa_pat_get(&before->insn, k), *y = isa_pat_get(&t->insn, k);
        if (before->operand[k].buf != t->operand[k].buf ||
            before->operand[k].slot != t->operand[k].slot || x->dtype != y->dtype ||
            x->base + bytes_at(x) != y->base)
            return false;
        first = bytes_at(x);
        both = first + bytes_at(y);
    }
    return both <= b->bytes / (2 * s->p->hw->dma_engines);
}

// The kernel that computes where position `at` is.
static int kernel_at(const struct orderer *s, int at, int n) {
    while (at < n && s->op[at]->phase == TILE_LOAD)
        at++;
    return at < n ? s->op[at]->kernel : s->op[n - 1]->kernel;
}

// A kernel computes, at the earliest, behind all work before it; what it loads is there, at the
// earliest, behind all loads before.
static bool *early_kernels(const struct tile_program *p) {
    double rate = hw_dram_bytes_per_cycle(p->hw), computed = 0, loaded = 0;
    double *work = ARENA_ARRAY(p->arena, double, (size_t)p->nkernel + 1),
           *bytes = ARENA_ARRAY(p->arena, double, (size_t)p->nkernel + 1);
    bool *early = ARENA_ARRAY(p->arena, bool, (size_t)p->nkernel + 1);
    for (int i = 0; i < p->nop; i++) {
        const struct tile_op *t = p->ops[i];
        if (t->phase == TILE_COMPUTE)
            work[t->kernel] += (double)isa_time_insn(p->hw, &t->insn).issue_cycles;
        else
            bytes[t->kernel] += (double)bytes_of(t);
    }
    for (int k = 0; k < p->nkernel && rate > 0; k++) {
        loaded += bytes[k] / rate;
        early[k] = computed > EARLY * loaded;
        computed += work[k];
    }
    return early;
}

// Joins load t to the one before it in memory, where that was placed far ahead; false: it was not.
static bool join(struct orderer *s, const struct tile_op *t, int n) {
    const struct tile_buf *b = filled(s->p, t);
    struct tile_op *before = b && t->phase == TILE_LOAD ? s->latest[b->id] : NULL;
    if (!before || !s->early[t->kernel] || !continues(s, before, t)) return false;
    int at = n;
    while (at > 0 && n - at < LONGEST_WALK && s->op[at - 1] != before) {
        if (tile_depends(s->op[at - 1], t)) return false;
        at--;
    }
    if (at == 0 || s->op[at - 1] != before || kernel_at(s, at, n) > t->kernel - FAR) return false;
    struct tile_op *both = arena_copy(s->p->arena, before, sizeof *before);
    for (int k = 0; k < 2; k++)
        isa_pat_at(&both->insn, k)->size[0] += isa_pat_get(&t->insn, k)->size[0];
    for (int k = 0; k < 2; k++)
        isa_pat_at(&both->insn, k)->stride[0] = 1;
    s->op[at - 1] = s->latest[b->id] = both;
    return true;
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
        .early = early_kernels(p),
        .latest = ARENA_ARRAY(p->arena, struct tile_op *, (size_t)p->nbuf + 1),
        .room = p->hw->spm_bytes * (options->ahead_percent ? options->ahead_percent : 85) / 100,
        .most_over = (int)p->hw->cp_queue_depth * loaders * 3 / 4,
    };
    if (s.most_over < 2) s.most_over = 2;
    for (int k = 0; k < p->nkernel; k++)
        s.used[k] = p->kernels[k]->spm_bytes + p->kernels[k]->resident_bytes;
    for (int b = 0; b < p->nbuf; b++)
        s.from[b] = p->bufs[b]->kernel;
    int n = 0;
    for (int i = 0; i < p->nop; i++) {
        struct tile_op *t = p->ops[i];
        if (options->across_kernels && join(&s, t, n)) continue;
        int at = place(&s, t, n);
        memmove(s.op + at + 1, s.op + at, (size_t)(n - at) * sizeof(void *));
        memmove(s.over + at + 1, s.over + at, (size_t)(n - at) * sizeof *s.over);
        s.op[at] = t;
        s.over[at] = 0;
        n++;
        const struct tile_buf *b = t->phase == TILE_LOAD ? filled(p, t) : NULL;
        if (b) s.latest[b->id] = t;
    }
    if (n) memcpy(p->ops, s.op, (size_t)n * sizeof(void *));
    p->nop = n;
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
