// SPDX-License-Identifier: Apache-2.0
// Emits the attention kernel, an item (tile of scores) at a time:
//
//   S   scores = q k^T                                              matrix engine, into PSUM
//   R   top = max over the row's keys                               vector engine
//   A   streaming: m = max(m, top), sum *= exp(old m - m)           vector engine
//   P   power = exp(score - m), sum += power                        vector engine, into SPM
//   V   result = power v                                            matrix engine, into PSUM
//   O   streaming: total = total * exp(old m - m) + result          vector engine
//       last keys of the row: result / sum, store
//
// Engines are in-order queues, so the order of emission is software-pipelined: with lead 2 it is
// S(i) P(i-2) V(i-2) R(i-1) O(i-3) A(i-1), which keeps the matrix engine in V(i-2) and S(i+1) while
// the vector engine does R(i-1), O(i-3), P(i-1).
#include "toolchain/lower/attention.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define AHEAD 4 // items that are under way at most

struct run {
    struct lower *L;
    const struct attn *a;
    const struct attn_tile *t;
    struct attn_streams s;
    bool streaming;
    int score, out, power, top, high, fade, sum, total; // buffers; -1: none
    struct attn_held keys, values;
    struct attn_mean mean;
    struct attn_item item[AHEAD];
    int64_t results; // PSUM results begun
    struct lower_view sink;
};

// ---- views of the kernel's own buffers: dimensions (batch..., g, row, column)

static struct lower_view tile_view(const struct run *r, int buf, int64_t slot, enum isa_dtype dtype,
                                   int64_t row) {
    const struct attn_tile *t = r->t;
    int nb = r->a->nb;
    struct lower_view v = {.buf = buf, .dtype = dtype};
    v.slot = (int)(slot % r->L->p->bufs[buf]->slots);
    v.stride[nb + 2] = 1;
    v.stride[nb + 1] = row;
    v.stride[nb] = t->tm * row;
    v.stride[nb - 1] = t->tg * t->tm * row;
    return v;
}

// One value per row.
static struct lower_view stat_view(const struct run *r, int buf, int64_t slot) {
    struct lower_view v = tile_view(r, buf, slot, ISA_F32, 1);
    v.stride[r->a->nb + 2] = 0;
    return v;
}

// ---- instructions

static void operand(const struct run *r, struct tile_op *t, int k, const struct lower_view *v,
                    int ndim, const int64_t *size, const int64_t *stride) {
    tile_operand(t, k, r->L->p, (struct tile_place){v->buf, v->slot, v->dtype, v->offset}, ndim,
                 size, stride);
}

// Vector operand over (column, row, g, key head); `columns` 0: over (row, g, key head).
static void vector_operand(const struct run *r, struct tile_op *t, int k,
                           const struct lower_view *v, const struct attn_item *it,
                           int64_t columns) {
    int nb = r->a->nb;
    int64_t size[4] = {columns, it->tm, it->tg, it->tb};
    int64_t stride[4] = {v->stride[nb + 2], v->stride[nb + 1], v->stride[nb], v->stride[nb - 1]};
    int skip = columns ? 0 : 1;
    operand(r, t, k, v, 4 - skip, size + skip, stride + skip);
}

struct vec { // out = chain(in...), or its reduction over the columns
    const struct attn_pass *pass;
    const struct lower_view *out, *in[3], *red_out;
    enum isa_red red;
    bool accumulate;
};

static void set_pass(struct isa_insn *in, const struct attn_pass *p) {
    if (in->h.opcode == ISA_OP_VRED) {
        in->u.VRED.chain = p->chain;
        in->u.VRED.pred_base = p->pred_base;
        in->u.VRED.pred_row = p->pred_row;
        in->u.VRED.pred_col = p->pred_col;
    } else {
        in->u.VMAP.chain = p->chain;
        in->u.VMAP.pred_base = p->pred_base;
        in->u.VMAP.pred_row = p->pred_row;
        in->u.VMAP.pred_col = p->pred_col;
    }
}

// Without `out`: V.RED into red_out. columns 0: one value per row.
static void vector(const struct run *r, const struct attn_item *it, int64_t columns,
                   const struct vec *v) {
    struct tile_op *t = tile_emit(r->L->p, v->out ? ISA_OP_VMAP : ISA_OP_VRED, TILE_COMPUTE);
    set_pass(&t->insn, v->pass);
    for (int k = 0; k < 3; k++)
        if (v->in[k]) vector_operand(r, t, 1 + k, v->in[k], it, columns);
    if (!v->out) {
        t->insn.u.VRED.red = v->red;
        t->insn.u.VRED.red_dims = 1;
        vector_operand(r, t, 0, v->red_out, it, 0);
        return;
    }
    vector_operand(r, t, 0, v->out, it, columns);
    if (!v->red) return;
    t->insn.u.VMAP.red = v->red;
    t->insn.u.VMAP.red_dims = 1;
    t->insn.u.VMAP.red_acc = v->accumulate;
    vector_operand(r, t, 4, v->red_out, it, 0);
}

static struct attn_pass pass_of(int n, const struct isa_stage *st, float imm) {
    struct attn_pass p;
    uint32_t bits;
    memset(&p, 0, sizeof p);
    memcpy(p.chain.st, st, (size_t)n * sizeof *st);
    memcpy(&bits, &imm, sizeof bits);
    p.chain.imm[0] = bits;
    return p;
}

// d[m..., n] = a[m..., k] b[k, n] for each key head. ad, bd: dimension of a and of b that is k.
static void products(const struct run *r, const struct attn_item *it, const struct lower_view *a,
                     const struct lower_view *b, int bk, const struct lower_view *d, int64_t n,
                     int64_t k) {
    int nb = r->a->nb, bn = bk == nb + 1 ? nb + 2 : nb + 1;
    for (int64_t i = 0; i < it->tb; i++) {
        int64_t index[LOWER_DIMS] = {0};
        index[nb - 1] = i;
        struct lower_view ai = lower_at(a, nb, index), bi = lower_at(b, nb, index),
                          di = lower_at(d, nb, index);
        struct tile_op *t = tile_emit(r->L->p, ISA_OP_MM, TILE_COMPUTE);
        t->insn.u.MM.init = 1;
        operand(r, t, 0, &ai, 3, (int64_t[]){k, it->tm, it->tg},
                (int64_t[]){a->stride[nb + 2], a->stride[nb + 1], a->stride[nb]});
        operand(r, t, 1, &bi, 2, (int64_t[]){n, k}, (int64_t[]){b->stride[bn], b->stride[bk]});
        operand(r, t, 2, &di, 3, (int64_t[]){n, it->tm, it->tg},
                (int64_t[]){1, d->stride[nb + 1], d->stride[nb]});
    }
}

// ---- the steps of an item

static void emit_s(struct run *r, const struct attn_item *it) {
    const struct attn *a = r->a;
    int64_t start[LOWER_DIMS] = {0}, size[LOWER_DIMS] = {0};
    struct lower_view k = attn_fetch(r->L, a, &r->keys, it);
    attn_part(r->a, it, false, a->d, start, size);
    struct lower_view q = lower_stream_fetch(r->L, &r->s.q, start, size);
    struct lower_view d = tile_view(r, r->score, it->number, ISA_F32, r->s.score_row);
    products(r, it, &q, &k, a->nb + 2, &d, it->keys.hi - it->keys.lo, a->d);
    attn_fetch_ahead(r->L, a, &r->keys, it);
}

static void emit_r(struct run *r, struct attn_item *it) {
    int64_t n = it->keys.hi - it->keys.lo;
    struct lower_view s = tile_view(r, r->score, it->number, ISA_F32, r->s.score_row),
                      top = stat_view(r, r->top, it->number);
    if (r->a->has_mask) {
        int64_t start[LOWER_DIMS] = {0}, size[LOWER_DIMS] = {0};
        attn_part(r->a, it, false, n, start, size);
        start[r->a->nb + 2] = it->keys.lo;
        it->mask = lower_stream_fetch(r->L, &r->s.mask, start, size);
    }
    for (int i = 0; i < it->scores.n; i++) {
        const struct attn_pass *p = &it->scores.pass[i];
        bool last = i == it->scores.n - 1;
        vector(r, it, n,
               &(struct vec){.pass = p,
                             .out = it->scores.stored ? &s : NULL,
                             .in = {&s, p->mask ? &it->mask : NULL, NULL},
                             .red_out = &top,
                             .red = last ? ISA_RED_MAX : ISA_RED_NONE});
    }
}

// The row's maximum so far, and what it makes of the sum. No maximum is below the lowest number, so
// that exp(-inf - m) is 0 and not NaN.
static void emit_a(struct run *r, const struct attn_item *it) {
    if (r->high < 0) return;
    struct lower_view top = stat_view(r, r->top, it->number), m = stat_view(r, r->high, it->number);
    if (it->first) {
        struct attn_pass p =
            pass_of(1, (struct isa_stage[]){{.op = ISA_VOP_MAX, .a = ISA_SRC_IMM0}}, -FLT_MAX);
        vector(r, it, 1, &(struct vec){.pass = &p, .out = &m, .in = {&top}});
        return;
    }
    struct lower_view old = stat_view(r, r->high, it->number + 1),
                      fade = stat_view(r, r->fade, it->number),
                      sum = stat_view(r, r->sum, it->tile);
    struct attn_pass max =
        pass_of(1, (struct isa_stage[]){{.op = ISA_VOP_MAX, .a = ISA_SRC_IN1}}, 0);
    struct isa_stage st[4] = {{.op = ISA_VOP_SUB, .a = ISA_SRC_IN1},
                              {.op = ISA_VOP_MIN, .a = ISA_SRC_IMM0},
                              {.op = ISA_VOP_EXP},
                              {.op = ISA_VOP_MUL, .a = ISA_SRC_IN2}};
    struct attn_pass exp = pass_of(3, st, 0), scale = pass_of(4, st, 0);
    vector(r, it, 1, &(struct vec){.pass = &max, .out = &m, .in = {&old, &top}});
    vector(r, it, 1, &(struct vec){.pass = &exp, .out = &fade, .in = {&old, &top}});
    vector(r, it, 1, &(struct vec){.pass = &scale, .out = &sum, .in = {&old, &top, &sum}});
}

static void emit_p(struct run *r, const struct attn_item *it) {
    const struct attn_pass *p = &it->scores.power;
    struct lower_view s = tile_view(r, r->score, it->number, ISA_F32, r->s.score_row),
                      m = stat_view(r, r->high < 0 ? r->top : r->high, it->number),
                      sum = stat_view(r, r->sum, it->tile),
                      out = tile_view(r, r->power, it->number, r->a->dtype, r->s.pitch);
    vector(r, it, it->keys.hi - it->keys.lo,
           &(struct vec){.pass = p,
                         .out = &out,
                         .in = {&s, p->mask ? &it->mask : NULL, &m},
                         .red_out = &sum,
                         .red = ISA_RED_SUM,
                         .accumulate = !it->first});
}

static struct lower_view result_view(const struct run *r, int64_t number) {
    return tile_view(r, r->out, number, ISA_F32, r->s.out_row);
}

// Bytes from one block of keys' results to the next one's.
static int64_t part_bytes(const struct run *r) {
    return r->t->tb * r->t->tg * r->t->tm * r->s.out_row * 4;
}

// Columns v0.. of the second product.
static void emit_v(struct run *r, const struct attn_item *it, const struct lower_view *values,
                   int64_t v0, int64_t number) {
    const struct attn *a = r->a;
    int64_t n = it->keys.hi - it->keys.lo, columns = lower_min(r->t->tv, a->dv - v0);
    int64_t block = r->t->split ? r->L->hw->mxu_rows : n;
    struct lower_view p = tile_view(r, r->power, it->number, a->dtype, r->s.pitch),
                      d = result_view(r, number);
    for (int64_t k0 = 0; k0 < n; k0 += block) {
        int64_t at_p[LOWER_DIMS] = {0}, at_v[LOWER_DIMS] = {0};
        at_p[a->nb + 2] = at_v[a->nb + 1] = k0;
        at_v[a->nb + 2] = v0;
        struct lower_view pi = lower_at(&p, a->nb + 3, at_p),
                          vi = lower_at(values, a->nb + 3, at_v);
        products(r, it, &pi, &vi, a->nb + 1, &d, columns, lower_min(block, n - k0));
        d.offset += part_bytes(r);
    }
}

// out = sum over blocks of keys of their results / sum.
static void join_parts(struct run *r, const struct attn_item *it, const struct attn_pass *p,
                       const struct lower_view *in, const struct lower_view *sum,
                       const struct lower_view *out, int64_t columns) {
    int nb = r->a->nb;
    int64_t n = lower_ceil(it->keys.hi - it->keys.lo, r->L->hw->mxu_rows);
    int64_t size[5] = {n, columns, it->tm, it->tg, it->tb};
    struct tile_op *t = tile_emit(r->L->p, ISA_OP_VRED, TILE_COMPUTE);
    set_pass(&t->insn, p);
    t->insn.u.VRED.red = ISA_RED_SUM;
    t->insn.u.VRED.red_dims = 1;
    vector_operand(r, t, 0, out, it, columns);
    const struct lower_view *v[2] = {in, sum};
    for (int k = 0; k < 2; k++)
        operand(r, t, 1 + k, v[k], 5, size,
                (int64_t[]){k ? 0 : part_bytes(r) / 4, v[k]->stride[nb + 2], v[k]->stride[nb + 1],
                            v[k]->stride[nb], v[k]->stride[nb - 1]});
}

// Marks rows whose keys are all hidden: with a finite fill those whose maximum is not above it.
// Where they give 0 their sum becomes infinite, where they give the mean of all values -1.
static void mark_hidden_rows(const struct run *r, const struct attn_item *it) {
    const struct attn *a = r->a;
    if (!a->mean && (!a->zero_rows || isinf((double)a->fill))) return;
    struct lower_view m = stat_view(r, r->high < 0 ? r->top : r->high, it->number),
                      sum = stat_view(r, r->sum, it->tile);
    struct attn_pass p =
        pass_of(2,
                (struct isa_stage[]){{.op = ISA_VOP_LE, .a = ISA_SRC_IMM0},
                                     {.op = ISA_VOP_SEL, .a = ISA_SRC_IMM1, .b = ISA_SRC_IN1}},
                a->fill);
    float mark = a->mean ? -1.0f : INFINITY;
    uint32_t bits;
    memcpy(&bits, &mark, sizeof bits);
    p.chain.imm[1] = bits;
    vector(r, it, 1, &(struct vec){.pass = &p, .out = &sum, .in = {&m, &sum}});
}

static struct lower_view columns_from(const struct run *r, const struct lower_view *v, int64_t v0) {
    int64_t index[LOWER_DIMS] = {0};
    index[r->a->nb + 2] = v0;
    return lower_at(v, r->a->nb + 3, index);
}

// out = in / sum; a row whose keys all have -infinity has sum 0 and gives 0 when the node says so.
static void divide(struct run *r, const struct attn_item *it, const struct lower_view *in,
                   const struct lower_view *out, int64_t v0, int64_t columns) {
    struct lower_view sum = stat_view(r, r->sum, it->tile);
    struct attn_pass plain =
        pass_of(1, (struct isa_stage[]){{.op = ISA_VOP_DIV, .a = ISA_SRC_IN1}}, 0);
    struct attn_pass guarded = pass_of(3,
                                       (struct isa_stage[]){{.op = ISA_VOP_MOV, .a = ISA_SRC_IN1},
                                                            {.op = ISA_VOP_MAX, .a = ISA_SRC_IMM0},
                                                            {.op = ISA_VOP_RDIV, .a = ISA_SRC_IN0}},
                                       FLT_MIN);
    struct attn_pass mean =
        pass_of(4,
                (struct isa_stage[]){{.op = ISA_VOP_DIV, .a = ISA_SRC_IN1, .save = 1},
                                     {.op = ISA_VOP_MOV, .a = ISA_SRC_IN1},
                                     {.op = ISA_VOP_GT, .a = ISA_SRC_IMM0},
                                     {.op = ISA_VOP_SEL, .a = ISA_SRC_TMP, .b = ISA_SRC_IN2}},
                0);
    const struct attn_pass *p = r->a->zero_rows ? &guarded : &plain;
    if (r->a->mean) {
        struct lower_view all = columns_from(r, &it->mean, v0);
        vector(r, it, columns, &(struct vec){.pass = &mean, .out = out, .in = {in, &sum, &all}});
    } else if (r->t->split)
        join_parts(r, it, p, in, &sum, out, columns);
    else
        vector(r, it, columns, &(struct vec){.pass = p, .out = out, .in = {in, &sum}});
}

// What becomes of columns v0.. of the second product.
static void emit_o(struct run *r, const struct attn_item *it, int64_t v0, int64_t number) {
    const struct attn *a = r->a;
    int64_t columns = lower_min(r->t->tv, a->dv - v0), start[LOWER_DIMS] = {0},
            size[LOWER_DIMS] = {0};
    struct lower_view d = result_view(r, number), total = {0}, out;
    if (!it->first || !it->last) {
        struct lower_view fade = stat_view(r, r->fade, it->number);
        struct attn_pass copy = pass_of(0, &(struct isa_stage){0}, 0);
        struct attn_pass add =
            pass_of(2,
                    (struct isa_stage[]){{.op = ISA_VOP_MOV, .a = ISA_SRC_IN1},
                                         {.op = ISA_VOP_FMA, .a = ISA_SRC_IN2, .b = ISA_SRC_IN0}},
                    0);
        total = tile_view(r, r->total, 0, ISA_F32, a->dv);
        total = columns_from(r, &total, v0);
        if (it->first)
            vector(r, it, columns, &(struct vec){.pass = &copy, .out = &total, .in = {&d}});
        else
            vector(r, it, columns,
                   &(struct vec){.pass = &add, .out = &total, .in = {&d, &total, &fade}});
    }
    if (!it->last) return;
    attn_part(r->a, it, false, a->dv, start, size);
    if (!v0) {
        attn_mean_end(r->L, a, &r->mean, it->number);
        r->sink = lower_sink_tile(&r->s.out, start);
        mark_hidden_rows(r, it);
    }
    out = columns_from(r, &r->sink, v0);
    divide(r, it, it->first ? &d : &total, &out, v0, columns);
    if (v0 + columns == a->dv) lower_sink_store(r->L, &r->s.out, &r->sink, start, size);
}

// ---- the order of items

// The next item of the grid; false after the last.
static bool next(const struct run *r, struct attn_item *it) {
    const struct attn *a = r->a;
    const struct attn_tile *t = r->t;
    int nb = a->nb;
    int64_t full[LOWER_DIMS], step[LOWER_DIMS];
    for (int d = 0; d < nb; d++) {
        full[d] = a->batch[d];
        step[d] = d == nb - 1 ? t->tb : 1;
    }
    full[nb] = a->g, step[nb] = t->tg;
    full[nb + 1] = a->m, step[nb + 1] = t->tm;
    if (it->number >= 0 && !it->last) {
        it->keys.lo = it->keys.hi;
        it->before++;
    } else {
        if (it->number >= 0 && !lower_next(nb + 2, full, step, it->at)) return false;
        it->tile++;
        it->before = 0;
        it->tb = lower_min(t->tb, a->batch[nb - 1] - it->at[nb - 1]);
        it->tg = lower_min(t->tg, a->g - it->at[nb]);
        it->tm = lower_min(t->tm, a->m - it->at[nb + 1]);
        it->keys.lo = attn_keys(a, it->at[nb + 1], it->tm).lo;
    }
    struct lower_range all = attn_keys(a, it->at[nb + 1], it->tm);
    it->keys.hi = lower_min(all.hi, it->keys.lo + t->tn);
    it->first = !it->before;
    it->last = it->keys.hi == all.hi;
    it->number++;
    struct attn_edge e = attn_edge_of(a, it->at[nb + 1], it->tm, it->keys);
    attn_scores_of(a, &e, &it->scores);
    return true;
}

static void open_buffers(struct run *r) {
    struct lower *L = r->L;
    const struct attn_streams *s = &r->s;
    int pair = attn_pair(r->t);
    lower_stream_open(L, &r->s.q);
    lower_stream_open(L, &r->s.k);
    lower_stream_open(L, &r->s.v);
    lower_stream_open(L, &r->s.mask);
    lower_stream_open(L, &r->s.out);
    r->power = tile_add_spm(L->p, "power", s->power_bytes, pair);
    r->top = tile_add_spm(L->p, "top", s->stat_bytes, 4);
    r->sum = tile_add_spm(L->p, "sum", s->stat_bytes, 2);
    r->high = r->fade = r->total = -1;
    if (r->streaming || r->a->zero_rows) r->high = tile_add_spm(L->p, "max", s->stat_bytes, 2);
    if (r->streaming) {
        r->fade = tile_add_spm(L->p, "fade", s->stat_bytes, 2);
        r->total = tile_add_spm(L->p, "total", s->sum_bytes, 1);
    }
    r->score = tile_add_psum(L->p, "scores", s->score_bytes, r->t->lead + 1);
    r->out = tile_add_psum(L->p, "results", s->out_bytes, pair);
}

// The second product and what follows it; the last columns' V.MAP waits for finish().
static void second(struct run *r, struct attn_item *it) {
    const struct attn *a = r->a;
    int64_t head = it->at[a->nb - 1];
    if (a->mean && attn_begins_head(a, it) && head % r->mean.heads == 0) {
        struct lower_view all = attn_fetch_all(r->L, a, &r->values, it, r->mean.merged);
        attn_mean_end(r->L, a, &r->mean, it->number); // an earlier head's
        attn_mean_begin(r->L, a, &r->mean, &all, r->mean.merged ? r->mean.heads : it->tb,
                        it->number);
    }
    if (a->mean) it->mean = attn_mean_view(a, &r->mean, head);
    struct lower_view values = attn_fetch(r->L, r->a, &r->values, it);
    for (int64_t v0 = 0; v0 < r->a->dv; v0 += r->t->tv) {
        if (v0 > 0) emit_o(r, it, v0 - r->t->tv, r->results - 1);
        emit_v(r, it, &values, v0, r->results++);
    }
    attn_fetch_ahead(r->L, r->a, &r->values, it);
}

static void finish(struct run *r, const struct attn_item *it, int64_t number) {
    emit_o(r, it, (r->a->dv - 1) / r->t->tv * r->t->tv, number);
}

void attn_run(struct lower *L, const struct attn *a, const struct attn_tile *t) {
    struct run r = {.L = L, .a = a, .t = t, .streaming = attn_streaming(a, t)};
    struct attn_item it = {.number = -1, .tile = -1};
    int64_t lead = t->lead, early = lead > 1 ? 1 : lead, late = lead ? 1 : 0, count = 0;
    bool more = true, chunks = a->dv > t->tv;
    attn_streams_init(L, a, t, &r.s);
    open_buffers(&r);
    attn_mean_plan(L, a, t, &r.mean);
    attn_mean_open(L, a, &r.mean);
    attn_hold(L, a, t, &r.s.k, a->d, &r.keys);
    attn_hold(L, a, t, &r.s.v, a->dv, &r.values);
    for (int64_t i = 0;; i++) {
        more = more && next(&r, &it);
        if (more) r.item[i % AHEAD] = it;
        if (more) count = i + 1;
        if (i >= count + lead + late) break;
        tile_step(L->p);
        struct attn_item *now = &r.item[(i + AHEAD - lead) % AHEAD];
        bool has = i >= lead && i - lead < count;
        bool looks = i >= early && i - early < count;
        struct attn_item *next_up = &r.item[(i + AHEAD - early) % AHEAD];
        if (more) emit_s(&r, &it);
        if (looks && lead < 2) emit_r(&r, next_up);
        if (looks && lead < 2) emit_a(&r, next_up);
        if (has) emit_p(&r, now);
        int64_t done = r.results - 1; // of the item before
        bool ends = late && i > lead && i - lead - 1 < count;
        const struct attn_item *before = &r.item[(i + AHEAD - lead - 1) % AHEAD];
        if (ends && chunks) finish(&r, before, done);
        if (has) second(&r, now);
        if (looks && lead > 1) emit_r(&r, next_up);
        if (ends && !chunks) finish(&r, before, done);
        if (looks && lead > 1) emit_a(&r, next_up);
        if (!late && has) finish(&r, now, r.results - 1);
    }
}
