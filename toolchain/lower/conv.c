// SPDX-License-Identifier: Apache-2.0
// Convolutions and transposed convolutions on the matrix engine (implicit im2col).
//
//   pack the weights per (group, tile of output channels) as [phase][kh][kw][c][o]
//   for each image, group tile, and (rows, channels) or (channels, rows) tile:
//       load the input rows that the tile's windows touch (only real ones; padding is the
//       instruction's) per phase: MM.CONV into PSUM, V.MAP with the chain into the result's tile
//       store
//   chunked, when the weights of the smallest tile do not fit: k goes in pieces, ascending in (kh,
//   kw, c), that accumulate
//
// A transposed convolution is one plain convolution per phase (output position modulo the strides)
// with the kernel's taps of that phase reversed; the results of all phases meet in the result's
// tile.
#include "toolchain/lower/conv.h"

#include <string.h>

// [group][o tile][phase][kh][kw][c][o in tile]: two blocks per phase, full tiles and a narrower
// last one. Merged phases stand side by side in the columns.
static struct lower_view pack_weights(struct lower *L, const struct lower_conv *c, int64_t to) {
    struct lower_view v = conv_packed(c, to);
    int64_t tiles = lower_ceil(c->og, to), whole = c->og / to, columns = c->merge * to,
            tile = c->k_total * columns;
    struct tile_block *blocks = ARENA_ARRAY(L->a, struct tile_block, 2 * (size_t)c->nphase);
    int n = 0;
    for (int i = 0; i < c->nphase; i++) {
        const struct conv_phase *ph = &c->phase[i];
        for (int part = 0; part < 2 && !ph->zero; part++) {
            int64_t many = part ? 1 : whole, wide = part ? c->og - whole * to : to;
            if (!many || !wide) continue;
            blocks[n++] = (struct tile_block){
                .from = c->data,
                .from_dtype = c->data_dtype,
                .dtype = c->dtype,
                .from_at = ph->i0 * c->ws[3] + ph->j0 * c->ws[4] + part * whole * to * c->ws[1],
                .to_at = ph->k_at * columns + (c->merge > 1 ? i * to : 0) + part * whole * tile,
                .rank = 6,
                .size = {c->group, many, ph->kh, ph->kw, c->cg, wide},
                .from_stride = {c->ws[0], to * c->ws[1], ph->istep * c->ws[3], ph->jstep * c->ws[4],
                                c->ws[2], c->ws[1]},
                .to_stride = {tiles * tile, tile, ph->kw * c->cg * columns, c->cg * columns,
                              columns, 1},
            };
        }
    }
    v.buf = tile_add_weight(L->p, c->data_name,
                            c->group * tiles * tile * lower_dtype_bytes(c->dtype), blocks, n);
    return v;
}

struct run {
    struct lower *L;
    const struct lower_conv *c;
    const struct conv_tile *t;
    struct conv_streams s;
    int psum, pnext;
    enum isa_dtype acc;
    int64_t cols; // columns of one group in PSUM, a multiple of the array's
};

// Where the loop stands: image, groups, output channels, rows and columns.
struct place {
    int64_t n, g, ng, o, no;
    struct lower_range u, v;
};

// Products to make: of one phase, or all of it that are merged.
struct job {
    const struct conv_phase *ph;
    struct lower_range u, v; // rows and columns of the results
    struct lower_range i, j; // taps
    struct lower_range h, w; // input rows and columns on chip
    int64_t c0, nc;          // channels
    struct lower_view x, weights;
    int slot;
};

// Rows u of `all` whose output row exists in the phase of remainder r.
static struct lower_range valid(struct lower_range all, int64_t os, int64_t r, int64_t crop,
                                int64_t size) {
    return (struct lower_range){lower_max(all.lo, lower_ceil(lower_max(crop - r, 0), os)),
                                lower_min(all.hi, lower_ceil(lower_max(crop + size - r, 0), os))};
}

static void fetch_x(struct run *r, const struct place *at, struct job *b) {
    int64_t start[LOWER_DIMS] = {at->n, b->c0, b->h.lo, b->w.lo},
            size[LOWER_DIMS] = {1, b->nc, b->h.hi - b->h.lo, b->w.hi - b->w.lo};
    b->x = lower_stream_fetch(r->L, &r->s.x, start, size);
}

static void fetch_weights(struct run *r, const struct place *at, struct job *b, int64_t k0,
                          int64_t k) {
    int64_t start[LOWER_DIMS] = {at->g, at->o / r->t->to, k0, 0},
            size[LOWER_DIMS] = {at->ng, 1, k, r->c->merge * r->t->to};
    b->weights = lower_stream_fetch(r->L, &r->s.w, start, size);
}

// The input row of kernel row a and u = 0 is sh * *q + the result.
static int64_t step_of(const struct lower_conv *c, const struct conv_phase *ph, int64_t a,
                       int64_t *q) {
    int64_t h = a * ph->dh - ph->pt, f = h % c->sh;
    if (f < 0) f += c->sh;
    *q = (h - f) / c->sh;
    return f;
}

// One MM.CONV for group gi of the tile; x and weights point at its first channel and tap.
static void emit(struct run *r, const struct place *at, const struct job *b, int64_t gi,
                 bool init) {
    struct tile_program *p = r->L->p;
    const struct lower_conv *c = r->c;
    const struct lower_view *x = &b->x, *w = &b->weights;
    struct tile_op *op = tile_emit(p, ISA_OP_MMCONV, TILE_COMPUTE);
    struct isa_MMCONV *f = &op->insn.u.MMCONV;
    f->init = init;
    f->kh = b->i.hi - b->i.lo;
    f->kw = b->j.hi - b->j.lo;
    f->sh = c->sh;
    f->sw = c->sw;
    f->dh = b->ph->dh;
    f->dw = b->ph->dw;
    f->pad_top = b->h.lo + b->ph->pt - b->u.lo * c->sh - b->i.lo * b->ph->dh;
    if (conv_stepped(c, r->t)) {
        int64_t q;
        step_of(c, b->ph, b->i.lo, &q);
        f->sh = 1;
        f->pad_top = b->h.lo - b->u.lo - q;
    }
    f->pad_left = b->w.lo + b->ph->pl - b->v.lo * c->sw - b->j.lo * b->ph->dw;
    int64_t columns = c->merge * at->no, row = r->t->tg * r->cols;
    tile_operand(op, 0, p, (struct tile_place){x->buf, x->slot, x->dtype, x->offset}, 3,
                 (int64_t[]){b->nc, b->w.hi - b->w.lo, b->h.hi - b->h.lo},
                 (int64_t[]){x->stride[CONV_C], x->stride[CONV_X], x->stride[CONV_Y]});
    tile_operand(op, 1, p, (struct tile_place){w->buf, w->slot, w->dtype, w->offset}, 2,
                 (int64_t[]){columns, f->kh * f->kw * b->nc}, (int64_t[]){1, c->merge * r->t->to});
    tile_operand(op, 2, p, (struct tile_place){r->psum, b->slot, r->acc, gi * r->cols * 4}, 3,
                 (int64_t[]){columns, b->v.hi - b->v.lo, b->u.hi - b->u.lo},
                 (int64_t[]){1, row, row * r->t->tv});
}

// All of k at once: one instruction per group.
static void product(struct run *r, const struct place *at, const struct job *all) {
    struct job b = *all;
    b.i = (struct lower_range){0, b.ph->kh};
    b.j = (struct lower_range){0, b.ph->kw};
    b.nc = r->c->cg;
    for (int64_t gi = 0; gi < at->ng; gi++) {
        b.x = lower_at(&all->x, CONV_RANK, (int64_t[]){0, gi * r->c->cg, 0, 0});
        b.weights = lower_at(&all->weights, 4, (int64_t[]){gi, 0, b.ph->k_at, 0});
        emit(r, at, &b, gi, true);
    }
}

// Input rows of a chunk; counted in strides when they are stepped.
static void fetch_chunk(struct run *r, const struct place *at, struct job *b) {
    const struct lower_conv *c = r->c;
    b->w = conv_needs(c, b->ph, 1, b->v, b->j);
    if (!conv_stepped(c, r->t)) {
        b->h = conv_needs(c, b->ph, 0, b->u, b->i);
        fetch_x(r, at, b);
        return;
    }
    int64_t q, f = step_of(c, b->ph, b->i.lo, &q), rows = lower_ceil(c->h - f, c->sh);
    b->h.lo = lower_max(0, lower_min(b->u.lo + q, rows - 1));
    b->h.hi = lower_max(b->h.lo + 1, lower_min(b->u.hi + q, rows));
    int64_t start[LOWER_DIMS] = {at->n, b->c0, b->h.lo, b->w.lo, f},
            size[LOWER_DIMS] = {1, b->nc, b->h.hi - b->h.lo, b->w.hi - b->w.lo, 1};
    b->x = lower_stream_fetch(r->L, &r->s.x, start, size);
}

// k in chunks, each with its own loads.
static void product_chunked(struct run *r, const struct place *at, const struct job *all) {
    const struct lower_conv *c = r->c;
    const struct conv_tile *t = r->t;
    const struct conv_phase *ph = all->ph;
    struct job b = *all;
    bool first = true;
    int64_t size[3] = {ph->kh, ph->kw, c->cg}, step[3] = {t->ti, t->tj, t->tc}, k[3] = {0};
    do {
        b.i = (struct lower_range){k[0], lower_min(k[0] + t->ti, ph->kh)};
        b.j = (struct lower_range){k[1], lower_min(k[1] + t->tj, ph->kw)};
        b.c0 = at->g * c->cg + k[2];
        b.nc = lower_min(t->tc, c->cg - k[2]);
        tile_step(r->L->p);
        fetch_chunk(r, at, &b);
        fetch_weights(r, at, &b, ph->k_at + (k[0] * ph->kw + k[1]) * c->cg + k[2],
                      (b.i.hi - b.i.lo) * (b.j.hi - b.j.lo) * b.nc);
        emit(r, at, &b, 0, first);
        first = false;
    } while (lower_next(3, size, step, k));
}

// The products of a job into the next PSUM buffer: a view over (row, column, group, channel).
static struct lower_view products(struct run *r, const struct place *at, struct job *b) {
    int64_t row = r->t->tg * r->cols;
    b->slot = r->pnext;
    r->pnext = (r->pnext + 1) % r->t->psum_slots;
    if (r->t->chunked)
        product_chunked(r, at, b);
    else
        product(r, at, b);
    return (struct lower_view){.buf = r->psum,
                               .slot = b->slot,
                               .dtype = r->acc,
                               .stride = {row * r->t->tv, row, r->cols, 1}};
}

// A tile of the result: its place in the output, its view and those of the chain's operands.
struct result {
    int64_t start[LOWER_DIMS], size[LOWER_DIMS];
    bool has[3];
    struct lower_view tile, extra[3];
};

// The chain over one phase's results, from PSUM into the result's tile.
static void finish(struct run *r, const struct place *at, const struct job *b,
                   const struct lower_view *psum, const struct result *to) {
    const struct lower_conv *c = r->c;
    int64_t size[4] = {b->u.hi - b->u.lo, b->v.hi - b->v.lo, at->ng, at->no};
    int64_t first[CONV_RANK] = {0, 0, c->os_h * b->u.lo + b->ph->ry - c->crop_h - to->start[CONV_Y],
                                c->os_w * b->v.lo + b->ph->rx - c->crop_w - to->start[CONV_X]};
    struct lower_view v[3];
    const struct lower_view *in[3] = {psum, NULL, NULL};
    for (int i = 0; i < 3; i++) {
        if (i > 0 && !to->has[i]) continue;
        const struct lower_view *whole = i ? &to->extra[i] : &to->tile;
        const int64_t *s = whole->stride;
        v[i] = lower_at(whole, CONV_RANK, first);
        int64_t strides[4] = {s[CONV_Y] * c->os_h, s[CONV_X] * c->os_w, s[CONV_C] * c->og,
                              s[CONV_C]};
        memcpy(v[i].stride, strides, sizeof strides);
        if (i) in[i] = &v[i];
    }
    lower_map(r->L, 4, size, &c->e.chain, in, &v[0]);
}

// Input rows and columns that all phases of a tile need, and all weights.
static void fetch_all(struct run *r, const struct place *at, struct job *b) {
    const struct lower_conv *c = r->c;
    b->h = (struct lower_range){c->h, 0};
    b->w = (struct lower_range){c->w, 0};
    for (int i = 0; i < c->nphase; i++) {
        const struct conv_phase *ph = &c->phase[i];
        struct lower_range h = conv_needs(c, ph, 0, at->u, (struct lower_range){0, ph->kh}),
                           w = conv_needs(c, ph, 1, at->v, (struct lower_range){0, ph->kw});
        b->h = (struct lower_range){lower_min(b->h.lo, h.lo), lower_max(b->h.hi, h.hi)};
        b->w = (struct lower_range){lower_min(b->w.lo, w.lo), lower_max(b->w.hi, w.hi)};
    }
    b->c0 = at->g * c->cg;
    b->nc = at->ng * c->cg;
    fetch_x(r, at, b);
    fetch_weights(r, at, b, 0, c->k_total);
}

static struct result result_of(struct run *r, const struct place *at, struct lower_range y,
                               struct lower_range x) {
    const struct lower_conv *c = r->c;
    struct result to = {.start = {at->n, at->g * c->og + at->o, y.lo, x.lo},
                        .size = {1, at->ng * at->no, y.hi - y.lo, x.hi - x.lo}};
    to.tile = lower_sink_tile(&r->s.out, to.start);
    for (int i = 1; i < 3; i++) {
        to.has[i] = c->e.has[i];
        if (to.has[i]) to.extra[i] = lower_stream_fetch(r->L, &r->s.extra[i], to.start, to.size);
    }
    return to;
}

static void tile(struct run *r, const struct place *at) {
    const struct lower_conv *c = r->c;
    struct lower_range y = {lower_max(0, c->os_h * at->u.lo - c->crop_h),
                            lower_min(c->p, c->os_h * at->u.hi - c->crop_h)},
                       x = {lower_max(0, c->os_w * at->v.lo - c->crop_w),
                            lower_min(c->q, c->os_w * at->v.hi - c->crop_w)};
    if (y.hi <= y.lo || x.hi <= x.lo) return;
    struct job b = {.ph = &c->phase[0], .u = at->u, .v = at->v};
    struct lower_view merged = {0};
    tile_step(r->L->p);
    if (!r->t->chunked) fetch_all(r, at, &b);
    struct result to = result_of(r, at, y, x);
    if (c->merge > 1) merged = products(r, at, &b);
    for (int i = 0; i < c->nphase; i++) {
        b.ph = &c->phase[i];
        b.u = valid(at->u, c->os_h, b.ph->ry, c->crop_h, c->p);
        b.v = valid(at->v, c->os_w, b.ph->rx, c->crop_w, c->q);
        if (b.u.hi <= b.u.lo || b.v.hi <= b.v.lo) continue;
        int64_t part[4] = {b.u.lo - at->u.lo, b.v.lo - at->v.lo, 0, i * c->og};
        struct lower_view psum = c->merge > 1 ? lower_at(&merged, 4, part) : products(r, at, &b);
        finish(r, at, &b, &psum, &to);
    }
    lower_sink_store(r->L, &r->s.out, &to.tile, to.start, to.size);
}

static void planes(struct run *r, struct place *at) {
    const struct lower_conv *c = r->c;
    for (int64_t u = c->u0; u < c->u1; u += r->t->tu)
        for (int64_t v = c->v0; v < c->v1; v += r->t->tv) {
            at->u = (struct lower_range){u, lower_min(u + r->t->tu, c->u1)};
            at->v = (struct lower_range){v, lower_min(v + r->t->tv, c->v1)};
            if (r->t->o_outer) {
                tile(r, at);
                continue;
            }
            for (at->o = 0; at->o < c->og; at->o += r->t->to) {
                at->no = lower_min(r->t->to, c->og - at->o);
                tile(r, at);
            }
        }
}

npu_status lower_conv_run(struct lower *L, const struct lower_conv *c) {
    struct conv_tile t;
    NPU_TRY(conv_choose(L, c, &t));
    struct run r = {.L = L, .c = c, .t = &t};
    L->kernel->estimate_cycles += t.cycles;
    int64_t outputs = c->batch * c->group * c->og * c->p * c->q;
    L->kernel->vector_elems += outputs;
    if (c->nphase == 1)
        lower_product(L, c->group, c->batch * c->p * c->q, c->og, c->k_total, c->x.dtype);
    L->kernel->macs += c->nphase == 1 || c->merge > 1
                           ? outputs * c->k_total
                           : c->batch * c->h * c->w * c->group * c->og * c->k_total;
    r.acc = isa_dtype_is_int((int)c->x.dtype) ? ISA_I32 : ISA_F32;
    r.cols = lower_ceil(c->merge * t.to, L->hw->mxu_cols) * L->hw->mxu_cols;
    struct lower_view w = pack_weights(L, c, t.to);
    conv_streams_init(L, c, &w, &t, &r.s);
    lower_stream_open(L, &r.s.x);
    lower_stream_open(L, &r.s.w);
    for (int i = 1; i < 3; i++)
        lower_stream_open(L, &r.s.extra[i]);
    lower_stream_open(L, &r.s.out);
    r.psum = tile_add_psum(L->p, "psum", t.tu * t.tv * t.tg * r.cols * 4, t.psum_slots);
    struct place at = {0};
    for (at.n = 0; at.n < c->batch; at.n++)
        for (at.g = 0; at.g < c->group; at.g += t.tg) {
            at.ng = lower_min(t.tg, c->group - at.g);
            if (!t.o_outer) {
                planes(&r, &at);
                continue;
            }
            for (at.o = 0; at.o < c->og; at.o += t.to) {
                at.no = lower_min(t.to, c->og - at.o);
                planes(&r, &at);
            }
        }
    return NULL;
}
