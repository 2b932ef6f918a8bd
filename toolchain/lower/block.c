// SPDX-License-Identifier: Apache-2.0
// Instructions over blocks of any rank and size.
//
//   drop dimensions of size 1, merge neighbours that are contiguous in every operand
//   while a dimension is longer than a pattern holds: emit its two parts apart
//   while there are more dimensions than a pattern has: emit once per index of the outermost
//
// A reduction's inner dimensions stay inside one instruction.
#include "isa/timing.h"
#include "toolchain/lower/internal.h"

#include <string.h>

struct dims {
    int n, inner;
    int64_t size[LOWER_DIMS];
    int64_t stride[TILE_OPERANDS][LOWER_DIMS];
    int64_t offset[TILE_OPERANDS];
};

static void normalise(const struct lower_block *b, struct dims *s, int64_t longest) {
    int first_inner = b->rank - b->inner;
    memset(s, 0, sizeof *s);
    for (int i = 0; i < b->nuse; i++)
        s->offset[i] = b->use[i].view->offset;
    for (int d = 0; d < b->rank; d++) {
        bool in = d >= first_inner;
        if (b->size[d] == 1) continue;
        bool joins =
            s->n > 0 && (in ? s->inner > 0 : true) && s->size[s->n - 1] * b->size[d] <= longest;
        for (int i = 0; i < b->nuse && joins; i++) {
            if (in && b->use[i].outer) continue;
            joins = s->stride[i][s->n - 1] == b->use[i].view->stride[d] * b->size[d];
        }
        int to = joins ? s->n - 1 : s->n++;
        if (in && !joins) s->inner++;
        s->size[to] = joins ? s->size[to] * b->size[d] : b->size[d];
        for (int i = 0; i < b->nuse; i++)
            s->stride[i][to] = b->use[i].view->stride[d];
    }
    if ((b->inner && !s->inner) || s->n == 0) {
        s->size[s->n] = 1;
        s->n++;
        s->inner = b->inner ? 1 : 0;
    }
}

static void pattern(const struct lower *L, const struct lower_block *b, const struct dims *s, int i,
                    struct isa_insn *in) {
    const struct lower_view *v = b->use[i].view;
    struct isa_pat *p = isa_pat_at(in, b->use[i].pat);
    p->space = v->buf >= 0 ? (int64_t)L->p->bufs[v->buf]->space : (int64_t)v->slot;
    p->dtype = v->dtype;
    p->base = s->offset[i];
    int n = 0;
    for (int d = s->n - 1 - (b->use[i].outer ? s->inner : 0); d >= 0; d--, n++) {
        p->size[n] = s->size[d];
        p->stride[n] = s->size[d] > 1 ? s->stride[i][d] : 0;
    }
}

static struct isa_insn build(const struct lower *L, const struct lower_block *b,
                             const struct dims *s) {
    struct isa_insn in = *b->proto;
    for (int i = 0; i < b->nuse; i++)
        pattern(L, b, s, i, &in);
    if (b->inner && in.h.opcode == ISA_OP_VRED) in.u.VRED.red_dims = s->inner;
    if (b->inner && in.h.opcode == ISA_OP_VMAP) in.u.VMAP.red_dims = s->inner;
    return in;
}

// Moves dimension d behind all others of its group.
static void make_last(struct dims *s, int nuse, int d, int last) {
    for (; d < last; d++) {
        int64_t t = s->size[d];
        s->size[d] = s->size[d + 1];
        s->size[d + 1] = t;
        for (int i = 0; i < nuse; i++) {
            t = s->stride[i][d];
            s->stride[i][d] = s->stride[i][d + 1];
            s->stride[i][d + 1] = t;
        }
    }
}

// Puts the dimension at `place` (counted from the outermost) that makes the instruction fastest.
static void choose_place(const struct lower *L, const struct lower_block *b, struct dims *s,
                         int place) {
    struct dims best = *s;
    struct isa_insn in = build(L, b, s);
    int64_t least = isa_time_insn(L->hw, &in).issue_cycles;
    for (int d = 0; d < place; d++) {
        struct dims t = *s;
        make_last(&t, b->nuse, d, place);
        in = build(L, b, &t);
        int64_t cycles = isa_time_insn(L->hw, &in).issue_cycles;
        if (cycles >= least) continue;
        least = cycles;
        best = t;
    }
    *s = best;
}

// The scratchpad gives more elements per cycle to some inner dimensions than to others, and to
// short rows by the distance of the next one: the elementwise instruction's innermost two
// dimensions are those that make it fastest.
static void choose_inner(const struct lower *L, const struct lower_block *b, struct dims *s) {
    if (b->proto->h.opcode != ISA_OP_VMAP || b->inner || s->n < 2) return;
    bool unit = true;
    for (int i = 0; i < b->nuse; i++)
        unit = unit && s->stride[i][s->n - 1] <= 1;
    if (unit && s->size[s->n - 1] >= L->hw->vec_lanes) return;
    choose_place(L, b, s, s->n - 1);
    choose_place(L, b, s, s->n - 2);
}

static void emit_one(struct lower *L, const struct lower_block *b, const struct dims *given) {
    struct dims s = *given;
    choose_inner(L, b, &s);
    struct isa_insn in = build(L, b, &s);
    if (b->price) {
        *b->price += (double)isa_time_insn(L->hw, &in).issue_cycles;
        return;
    }
    struct tile_op *t = tile_emit(L->p, (enum isa_op)b->proto->h.opcode, b->phase);
    struct isa_header h = t->insn.h;
    t->insn = in;
    t->insn.h = h;
    for (int i = 0; i < b->nuse; i++)
        t->operand[b->use[i].pat] =
            (struct tile_operand){b->use[i].view->buf, b->use[i].view->slot};
}

static void emit_dims(struct lower *L, const struct lower_block *b, const struct dims *s,
                      int64_t longest) {
    for (int d = 0; d < s->n; d++) {
        if (s->size[d] <= longest) continue;
        NPU_ASSERT(d < s->n - s->inner);
        struct dims part = *s;
        part.size[d] = longest;
        emit_dims(L, b, &part, longest);
        part.size[d] = s->size[d] - longest;
        for (int i = 0; i < b->nuse; i++)
            part.offset[i] += longest * s->stride[i][d] * lower_dtype_bytes(b->use[i].view->dtype);
        emit_dims(L, b, &part, longest);
        return;
    }
    if (s->n <= ISA_DIMS) {
        emit_one(L, b, s);
        return;
    }
    NPU_ASSERT(s->n > s->inner);
    struct dims sub = {.n = s->n - 1, .inner = s->inner};
    memcpy(sub.size, s->size + 1, sizeof sub.size - sizeof sub.size[0]);
    for (int i = 0; i < b->nuse; i++)
        memcpy(sub.stride[i], s->stride[i] + 1, sizeof sub.stride[i] - sizeof sub.stride[i][0]);
    for (int64_t at = 0; at < s->size[0]; at++) {
        for (int i = 0; i < b->nuse; i++)
            sub.offset[i] =
                s->offset[i] + at * s->stride[i][0] * lower_dtype_bytes(b->use[i].view->dtype);
        emit_dims(L, b, &sub, longest);
    }
}

void lower_block_emit(struct lower *L, const struct lower_block *b) {
    bool dma = isa_find((unsigned)b->proto->h.opcode)->cls == ISA_CLASS_DMA;
    int64_t longest = dma ? (int64_t)1 << 24 : 65536;
    struct dims s;
    normalise(b, &s, longest);
    emit_dims(L, b, &s, longest);
}

// Outermost first by the distance in memory, repeated dimensions before all others: then a run of
// the innermost dimensions is a contiguous row.
static void sort_dims(int rank, int64_t *size, struct lower_view *lead, struct lower_view *other) {
    for (int i = 1; i < rank; i++) {
        for (int j = i; j > 0; j--) {
            int64_t x = lead->stride[j - 1] < 0 ? -lead->stride[j - 1] : lead->stride[j - 1];
            int64_t y = lead->stride[j] < 0 ? -lead->stride[j] : lead->stride[j];
            bool swap = size[j] > 1 && (size[j - 1] == 1 || (x != 0 && (y == 0 || y > x)));
            if (!swap) break;
            struct lower_view *v[2] = {lead, other};
            for (int k = 0; k < 2; k++) {
                int64_t s = v[k]->stride[j];
                v[k]->stride[j] = v[k]->stride[j - 1];
                v[k]->stride[j - 1] = s;
            }
            int64_t n = size[j];
            size[j] = size[j - 1];
            size[j - 1] = n;
        }
    }
}

void lower_copy(struct lower *L, enum tile_phase phase, int rank, const int64_t *size,
                const struct lower_view *src, const struct lower_view *dst) {
    struct isa_insn proto;
    isa_init(&proto, ISA_OP_COPY);
    struct lower_view s = *src, d = *dst;
    struct lower_block b = {.proto = &proto, .phase = phase, .rank = rank, .nuse = 2};
    memcpy(b.size, size, (size_t)rank * sizeof *size);
    bool to_dram = L->p->bufs[dst->buf]->space == ISA_DRAM;
    sort_dims(rank, b.size, to_dram ? &d : &s, to_dram ? &s : &d);
    b.use[0] = (struct lower_use){.view = &s, .pat = 0};
    b.use[1] = (struct lower_use){.view = &d, .pat = 1};
    lower_block_emit(L, &b);
}

void lower_fill(struct lower *L, enum tile_phase phase, int rank, const int64_t *size,
                const struct lower_view *dst, float value) {
    struct isa_insn proto;
    isa_init(&proto, ISA_OP_FILL);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    proto.u.FILL.value = bits;
    struct lower_view d = *dst, same = *dst;
    struct lower_block b = {.proto = &proto, .phase = phase, .rank = rank, .nuse = 1};
    memcpy(b.size, size, (size_t)rank * sizeof *size);
    sort_dims(rank, b.size, &d, &same);
    b.use[0] = (struct lower_use){.view = &d, .pat = 0};
    lower_block_emit(L, &b);
}

// The instruction over out and the inputs that are there.
static struct lower_block elementwise(const struct isa_insn *proto, int rank, const int64_t *size,
                                      const struct lower_view *const in[3],
                                      const struct lower_view *out) {
    struct lower_block b = {.proto = proto, .phase = TILE_COMPUTE, .rank = rank, .nuse = 1};
    memcpy(b.size, size, (size_t)rank * sizeof *size);
    b.use[0] = (struct lower_use){.view = out, .pat = 0};
    for (int k = 0; k < 3; k++)
        if (in[k]) b.use[b.nuse++] = (struct lower_use){.view = in[k], .pat = 1 + k};
    return b;
}

static struct isa_insn map_proto(const struct isa_chain *chain) {
    struct isa_insn proto;
    isa_init(&proto, ISA_OP_VMAP);
    if (chain) proto.u.VMAP.chain = *chain;
    return proto;
}

void lower_map(struct lower *L, int rank, const int64_t *size, const struct isa_chain *chain,
               const struct lower_view *const in[3], const struct lower_view *out) {
    struct isa_insn proto = map_proto(chain);
    struct lower_block b = elementwise(&proto, rank, size, in, out);
    lower_block_emit(L, &b);
}

double lower_map_cycles(const struct lower *L, int rank, const int64_t *size,
                        const struct isa_chain *chain, const struct lower_view *const in[3],
                        const struct lower_view *out) {
    double cycles = 0;
    struct lower dry = *L; // nothing is emitted
    struct isa_insn proto = map_proto(chain);
    struct lower_block b = elementwise(&proto, rank, size, in, out);
    b.price = &cycles;
    lower_block_emit(&dry, &b);
    return cycles + (double)L->hw->vec_start;
}

void lower_reduce_block(struct lower *L, const struct lower_red *red, int rank, const int64_t *size,
                        const struct lower_view *const in[3], const struct lower_view *out) {
    struct isa_insn proto;
    isa_init(&proto, ISA_OP_VRED);
    proto.u.VRED.red = red->red;
    proto.u.VRED.red_acc = red->accumulate;
    if (red->chain) proto.u.VRED.chain = *red->chain;
    struct lower_block b = elementwise(&proto, rank, size, in, out);
    b.inner = red->inner;
    b.use[0].outer = true;
    lower_block_emit(L, &b);
}

void lower_map_reduce(struct lower *L, const struct lower_red *red, int rank, const int64_t *size,
                      const struct lower_view *const in[3], const struct lower_view *out,
                      const struct lower_view *red_out) {
    struct isa_insn proto = map_proto(red->chain);
    proto.u.VMAP.red = red->red;
    proto.u.VMAP.red_acc = red->accumulate;
    struct lower_block b = elementwise(&proto, rank, size, in, out);
    b.inner = red->inner;
    b.use[b.nuse++] = (struct lower_use){.view = red_out, .pat = 4, .outer = true};
    lower_block_emit(L, &b);
}
