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
#include "toolchain/lower/matmul.h"

#include <string.h>

static struct lower_view pack_weights(struct lower *L, const struct lower_conv *c, int64_t to) {
    struct lower_view v = conv_packed(c, to);
    int64_t es = lower_dtype_bytes(c->data_dtype), tiles = lower_ceil(c->og, to),
            columns = c->merge * to, bytes = c->group * tiles * c->k_total * columns * es;
    uint8_t *out = arena_alloc(L->a, L->dry ? 1 : (size_t)bytes);
    const uint8_t *in = c->data;
    for (int64_t g = 0; g < c->group && !L->dry; g++)
        for (int i = 0; i < c->nphase; i++) {
            const struct conv_phase *ph = &c->phase[i];
            if (ph->zero) continue;
            int64_t k = ph->k_at, first = c->merge > 1 ? i * to : 0;
            for (int64_t a = 0; a < ph->kh; a++)
                for (int64_t b = 0; b < ph->kw; b++)
                    for (int64_t ci = 0; ci < c->cg; ci++, k++)
                        for (int64_t o = 0; o < c->og; o++) {
                            int64_t from = g * c->ws[0] + o * c->ws[1] + ci * c->ws[2] +
                                           (ph->i0 + a * ph->istep) * c->ws[3] +
                                           (ph->j0 + b * ph->jstep) * c->ws[4];
                            int64_t at = (g * tiles + o / to) * c->k_total * columns + k * columns +
                                         first + o % to;
                            memcpy(out + at * es, in + from * es, (size_t)es);
                        }
        }
    v.buf = tile_add_dram(L->p, c->data_name, TILE_WEIGHT, bytes, out, NULL);
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

struct place { // where the loop stands
    int64_t n, g, ng, o, no, u0, u1, v0, v1;
};

// Rows u of [from, to) whose output row exists in this phase.
static void valid(int64_t from, int64_t to, int64_t os, int64_t r, int64_t crop, int64_t size,
                  int64_t *lo, int64_t *hi) {
    int64_t first = lower_ceil(lower_max(crop - r, 0), os),
            end = lower_ceil(lower_max(crop + size - r, 0), os);
    *lo = lower_max(from, first);
    *hi = lower_min(to, end);
}

static struct lower_view fetch_x(struct run *r, const struct place *at, int64_t c0, int64_t nc,
                                 int64_t h0, int64_t h1, int64_t w0, int64_t w1) {
    int64_t start[LOWER_DIMS] = {at->n, c0, h0, w0}, size[LOWER_DIMS] = {1, nc, h1 - h0, w1 - w0};
    return lower_stream_fetch(r->L, &r->s.x, start, size);
}

static struct lower_view fetch_w(struct run *r, const struct place *at, int64_t k0, int64_t k) {
    int64_t start[LOWER_DIMS] = {at->g, at->o / r->t->to, k0, 0},
            size[LOWER_DIMS] = {at->ng, 1, k, r->c->merge * r->t->to};
    return lower_stream_fetch(r->L, &r->s.w, start, size);
}

struct window {
    int64_t h0, h1, w0, w1;
}; // input rows and columns on chip

// The input row of kernel row a and u = 0 is sh * *q + the result.
static int64_t step_of(const struct lower_conv *c, const struct conv_phase *ph, int64_t a,
                       int64_t *q) {
    int64_t h = a * ph->dh - ph->pt, f = h % c->sh;
    if (f < 0) f += c->sh;
    *q = (h - f) / c->sh;
    return f;
}

// One MM.CONV: taps [i0, i1) x [j0, j1), nc channels, of group gi of the tile. x and w point at the
// first channel and tap.
static void emit(struct run *r, const struct place *at, const struct conv_phase *ph,
                 const struct lower_view *x, const struct lower_view *w, const struct window *in,
                 const int64_t tap[4], int64_t nc, int64_t gi, const int64_t uv[4], int slot,
                 bool init) {
    struct lower *L = r->L;
    const struct lower_conv *c = r->c;
    struct tile_op *op = tile_emit(L->p, ISA_OP_MMCONV, TILE_COMPUTE);
    struct isa_MMCONV *f = &op->insn.u.MMCONV;
    f->init = init;
    f->kh = tap[1] - tap[0];
    f->kw = tap[3] - tap[2];
    f->sh = c->sh;
    f->sw = c->sw;
    f->dh = ph->dh;
    f->dw = ph->dw;
    f->pad_top = in->h0 + ph->pt - uv[0] * c->sh - tap[0] * ph->dh;
    if (conv_stepped(c, r->t)) {
        int64_t q;
        step_of(c, ph, tap[0], &q);
        f->sh = 1;
        f->pad_top = in->h0 - uv[0] - q;
    }
    f->pad_left = in->w0 + ph->pl - uv[2] * c->sw - tap[2] * ph->dw;
    tile_operand(op, 0, L->p, x->buf, x->slot, x->dtype, x->offset, 3,
                 (int64_t[]){nc, in->w1 - in->w0, in->h1 - in->h0},
                 (int64_t[]){x->stride[CONV_C], x->stride[CONV_X], x->stride[CONV_Y]});
    tile_operand(op, 1, L->p, w->buf, w->slot, w->dtype, w->offset, 2,
                 (int64_t[]){c->merge * at->no, f->kh * f->kw * nc},
                 (int64_t[]){1, c->merge * r->t->to});
    int64_t row = r->t->tg * r->cols;
    tile_operand(op, 2, L->p, r->psum, slot, r->acc, gi * r->cols * 4, 3,
                 (int64_t[]){c->merge * at->no, uv[3] - uv[2], uv[1] - uv[0]},
                 (int64_t[]){1, row, row * r->t->tv});
}

// All of k at once: one instruction per group.
static void product(struct run *r, const struct place *at, const struct conv_phase *ph,
                    const struct lower_view *x, const struct lower_view *w, const struct window *in,
                    const int64_t uv[4], int slot) {
    const struct lower_conv *c = r->c;
    for (int64_t gi = 0; gi < at->ng; gi++) {
        struct lower_view xg = lower_at(x, CONV_RANK, (int64_t[]){0, gi * c->cg, 0, 0});
        struct lower_view wg = lower_at(w, 4, (int64_t[]){gi, 0, ph->k_at, 0});
        emit(r, at, ph, &xg, &wg, in, (int64_t[]){0, ph->kh, 0, ph->kw}, c->cg, gi, uv, slot, true);
    }
}

// Input rows of a chunk, in->h0 to in->h1; counted in strides when they are stepped.
static struct lower_view rows_of(struct run *r, const struct place *at, const struct conv_phase *ph,
                                 const int64_t uv[4], const int64_t tap[4], int64_t c0, int64_t nc,
                                 struct window *in) {
    const struct lower_conv *c = r->c;
    if (!conv_stepped(c, r->t)) {
        conv_needs(c, ph, 0, uv[0], uv[1], tap[0], tap[1], &in->h0, &in->h1);
        return fetch_x(r, at, c0, nc, in->h0, in->h1, in->w0, in->w1);
    }
    int64_t q, f = step_of(c, ph, tap[0], &q), rows = lower_ceil(c->h - f, c->sh);
    in->h0 = lower_max(0, lower_min(uv[0] + q, rows - 1));
    in->h1 = lower_max(in->h0 + 1, lower_min(uv[1] + q, rows));
    int64_t start[LOWER_DIMS] = {at->n, c0, in->h0, in->w0, f},
            size[LOWER_DIMS] = {1, nc, in->h1 - in->h0, in->w1 - in->w0, 1};
    return lower_stream_fetch(r->L, &r->s.x, start, size);
}

// k in chunks, each with its own loads.
static void product_chunked(struct run *r, const struct place *at, const struct conv_phase *ph,
                            const int64_t uv[4], int slot) {
    const struct lower_conv *c = r->c;
    const struct conv_tile *t = r->t;
    bool first = true;
    for (int64_t i = 0; i < ph->kh; i += t->ti)
        for (int64_t j = 0; j < ph->kw; j += t->tj)
            for (int64_t ch = 0; ch < c->cg; ch += t->tc) {
                int64_t tap[4] = {i, lower_min(i + t->ti, ph->kh), j, lower_min(j + t->tj, ph->kw)},
                        nc = lower_min(t->tc, c->cg - ch);
                struct window in;
                tile_step(r->L->p);
                conv_needs(c, ph, 1, uv[2], uv[3], tap[2], tap[3], &in.w0, &in.w1);
                struct lower_view x = rows_of(r, at, ph, uv, tap, at->g * c->cg + ch, nc, &in);
                int64_t k = (tap[1] - tap[0]) * (tap[3] - tap[2]) * nc;
                struct lower_view w = fetch_w(r, at, ph->k_at + (i * ph->kw + j) * c->cg + ch, k);
                emit(r, at, ph, &x, &w, &in, tap, nc, 0, uv, slot, first);
                first = false;
            }
}

// The products of a tile into the next PSUM buffer: a view over (row, column, group, channel).
static struct lower_view products(struct run *r, const struct place *at,
                                  const struct conv_phase *ph, const struct lower_view *x,
                                  const struct lower_view *w, const struct window *in,
                                  const int64_t uv[4]) {
    int64_t row = r->t->tg * r->cols;
    int slot = r->pnext;
    r->pnext = (r->pnext + 1) % r->t->psum_slots;
    if (r->t->chunked)
        product_chunked(r, at, ph, uv, slot);
    else
        product(r, at, ph, x, w, in, uv, slot);
    return (struct lower_view){.buf = r->psum,
                               .slot = slot,
                               .dtype = r->acc,
                               .stride = {row * r->t->tv, row, r->cols, 1}};
}

// The chain over one phase's results, from PSUM into the result's tile.
static void finish(struct run *r, const struct place *at, const struct conv_phase *ph,
                   const int64_t uv[4], const struct lower_view *psum,
                   const struct lower_view *tile, const struct lower_view *const extra[3],
                   int64_t y0, int64_t x0) {
    const struct lower_conv *c = r->c;
    int64_t size[4] = {uv[1] - uv[0], uv[3] - uv[2], at->ng, at->no};
    struct lower_view v[4];
    const struct lower_view *all[4] = {tile, NULL, extra[1], extra[2]};
    int64_t first[CONV_RANK] = {0, 0, c->os_h * uv[0] + ph->ry - c->crop_h - y0,
                                c->os_w * uv[2] + ph->rx - c->crop_w - x0};
    for (int i = 0; i < 4; i++) {
        if (!all[i]) continue;
        v[i] = lower_at(all[i], CONV_RANK, first);
        const int64_t *s = all[i]->stride;
        int64_t to[4] = {s[CONV_Y] * c->os_h, s[CONV_X] * c->os_w, s[CONV_C] * c->og, s[CONV_C]};
        memcpy(v[i].stride, to, sizeof to);
    }
    const struct lower_view *in[3] = {psum, extra[1] ? &v[2] : NULL, extra[2] ? &v[3] : NULL};
    lower_map(r->L, 4, size, &c->e.chain, in, &v[0]);
}

static void tile(struct run *r, const struct place *at) {
    struct lower *L = r->L;
    const struct lower_conv *c = r->c;
    int64_t y0 = lower_max(0, c->os_h * at->u0 - c->crop_h),
            y1 = lower_min(c->p, c->os_h * at->u1 - c->crop_h);
    int64_t x0 = lower_max(0, c->os_w * at->v0 - c->crop_w),
            x1 = lower_min(c->q, c->os_w * at->v1 - c->crop_w);
    if (y1 <= y0 || x1 <= x0) return;
    int64_t ostart[LOWER_DIMS] = {at->n, at->g * c->og + at->o, y0, x0},
            osize[LOWER_DIMS] = {1, at->ng * at->no, y1 - y0, x1 - x0};
    struct window in = {c->h, 0, c->w, 0};
    struct lower_view x, w, v[3], out = lower_sink_tile(&r->s.out, ostart);
    const struct lower_view *extra[3] = {NULL, NULL, NULL};
    tile_step(L->p);
    if (!r->t->chunked) {
        for (int i = 0; i < c->nphase; i++) {
            struct window one;
            conv_needs(c, &c->phase[i], 0, at->u0, at->u1, 0, c->phase[i].kh, &one.h0, &one.h1);
            conv_needs(c, &c->phase[i], 1, at->v0, at->v1, 0, c->phase[i].kw, &one.w0, &one.w1);
            in = (struct window){lower_min(in.h0, one.h0), lower_max(in.h1, one.h1),
                                 lower_min(in.w0, one.w0), lower_max(in.w1, one.w1)};
        }
        x = fetch_x(r, at, at->g * c->cg, at->ng * c->cg, in.h0, in.h1, in.w0, in.w1);
        w = fetch_w(r, at, 0, c->k_total);
    }
    for (int i = 1; i < 3; i++) {
        if (!c->e.has[i]) continue;
        v[i] = lower_stream_fetch(L, &r->s.extra[i], ostart, osize);
        extra[i] = &v[i];
    }
    int64_t all[4] = {at->u0, at->u1, at->v0, at->v1};
    struct lower_view psum;
    if (c->merge > 1) psum = products(r, at, &c->phase[0], &x, &w, &in, all);
    for (int i = 0; i < c->nphase; i++) {
        const struct conv_phase *ph = &c->phase[i];
        int64_t uv[4];
        valid(at->u0, at->u1, c->os_h, ph->ry, c->crop_h, c->p, &uv[0], &uv[1]);
        valid(at->v0, at->v1, c->os_w, ph->rx, c->crop_w, c->q, &uv[2], &uv[3]);
        if (uv[1] <= uv[0] || uv[3] <= uv[2]) continue;
        struct lower_view d;
        if (c->merge > 1)
            d = lower_at(&psum, 4, (int64_t[]){uv[0] - all[0], uv[2] - all[2], 0, i * c->og});
        else
            d = products(r, at, ph, &x, &w, &in, uv);
        finish(r, at, ph, uv, &d, &out, extra, y0, x0);
    }
    lower_sink_store(L, &r->s.out, &out, ostart, osize);
}

static void planes(struct run *r, struct place *at) {
    const struct lower_conv *c = r->c;
    for (int64_t u = c->u0; u < c->u1; u += r->t->tu)
        for (int64_t v = c->v0; v < c->v1; v += r->t->tv) {
            at->u0 = u;
            at->u1 = lower_min(u + r->t->tu, c->u1);
            at->v0 = v;
            at->v1 = lower_min(v + r->t->tv, c->v1);
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
    struct place at;
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

static void shapes(const struct lower *L, const struct graph_node *n, struct lower_conv *c) {
    const struct graph_value *x = n->inputs[0], *w = n->inputs[1], *out = n->outputs[0];
    memset(c, 0, sizeof *c);
    c->batch = x->dims[0], c->h = x->dims[2], c->w = x->dims[3];
    c->p = out->dims[2], c->q = out->dims[3];
    c->group = graph_int(n, GRAPH_ATTR_GROUP, 1);
    c->cg = x->dims[1] / c->group;
    c->og = out->dims[1] / c->group;
    c->sh = c->sw = c->os_h = c->os_w = 1;
    c->merge = 1;
    c->x = L->place[x->id];
    c->out = L->place[out->id];
    c->e = lower_epilogue_of(L, n);
    c->data = w->data;
    c->data_name = w->name;
    c->data_dtype = w->dtype;
}

static npu_status constant_weights(const struct graph_node *n) {
    if (n->inputs[1]->data) return NULL;
    return npu_fail(UNSUPPORTED,
                    "weights '%s' are computed by the model; constant weights are needed",
                    n->inputs[1]->name);
}

// A 1x1 convolution over contiguous pixels is a matrix product.
static bool as_matmul(const struct lower_conv *c, const struct conv_phase *ph,
                      struct lower_mm *mm) {
    if (c->group != 1 || ph->kh != 1 || ph->kw != 1 || c->sh != 1 || c->sw != 1 || c->p != c->h ||
        c->q != c->w || ph->pt || ph->pl)
        return false;
    const struct lower_view *views[] = {&c->x, &c->out, &c->e.in[1], &c->e.in[2]};
    struct lower_view *to[] = {&mm->a, &mm->out, &mm->e.in[1], &mm->e.in[2]};
    memset(mm, 0, sizeof *mm);
    mm->e = c->e;
    for (int i = 0; i < 4; i++) {
        const int64_t *s = views[i]->stride;
        if (i >= 2 && !c->e.has[i - 1]) continue;
        if (c->w > 1 && c->h > 1 && s[CONV_Y] != s[CONV_X] * c->w) return false;
        *to[i] = *views[i];
        int64_t strides[4] = {s[CONV_N], s[CONV_Y], s[CONV_X], s[CONV_C]};
        memcpy(to[i]->stride, strides, sizeof strides);
    }
    mm->nbatch = 2;
    mm->batch[0] = c->batch;
    mm->batch[1] = c->h;
    mm->m = c->w;
    mm->k = c->cg;
    mm->n = c->og;
    mm->b = (struct lower_view){.buf = -1,
                                .dtype = c->data_dtype,
                                .stride = {0, 0, c->ws[2], c->ws[1]}};
    mm->data = c->data;
    mm->data_name = c->data_name;
    return true;
}

npu_status lower_conv(struct lower *L, const struct graph_node *n) {
    struct lower_conv c;
    NPU_TRY(constant_weights(n));
    shapes(L, n, &c);
    if (c.group > 1 && c.cg == 1) return lower_depthwise(L, n);
    int64_t kh = n->inputs[1]->dims[2], kw = n->inputs[1]->dims[3];
    struct conv_phase ph = {.kh = kh, .kw = kw, .istep = 1, .jstep = 1};
    ph.dh = graph_ints_at(n, GRAPH_ATTR_DILATIONS, 0, 1),
    ph.dw = graph_ints_at(n, GRAPH_ATTR_DILATIONS, 1, 1);
    ph.pt = graph_ints_at(n, GRAPH_ATTR_PADS, 0, 0),
    ph.pl = graph_ints_at(n, GRAPH_ATTR_PADS, 1, 0);
    c.sh = graph_ints_at(n, GRAPH_ATTR_STRIDES, 0, 1),
    c.sw = graph_ints_at(n, GRAPH_ATTR_STRIDES, 1, 1);
    c.nphase = 1;
    c.phase = &ph;
    c.u1 = c.p, c.v1 = c.q;
    c.k_total = kh * kw * c.cg;
    int64_t ws[5] = {c.og * c.k_total, c.k_total, kh * kw, kw, 1};
    memcpy(c.ws, ws, sizeof ws);
    // One tap and a stride: only the rows, or pixels, that count are loaded.
    if (kh == 1 && ph.pt == 0 && c.sh > 1 && (c.p - 1) * c.sh < c.h) {
        c.x.stride[CONV_Y] *= c.sh;
        c.h = c.p;
        c.sh = 1;
    }
    if (kw == 1 && ph.pl == 0 && c.sw > 1 && (c.q - 1) * c.sw < c.w && c.x.stride[CONV_C] == 1 &&
        c.cg * lower_dtype_bytes(c.x.dtype) >= L->hw->dma_burst_bytes) {
        c.x.stride[CONV_X] *= c.sw;
        c.w = c.q;
        c.sw = 1;
    }
    if (c.sh > 256 || c.sw > 256 || ph.dh > 256 || ph.dw > 256)
        return npu_fail(UNSUPPORTED, "strides %lldx%lld, dilations %lldx%lld: at most 256 each",
                        (long long)c.sh, (long long)c.sw, (long long)ph.dh, (long long)ph.dw);
    struct lower_mm mm;
    if (as_matmul(&c, &ph, &mm)) {
        lower_kernel(L, n, "conv_1x1");
        return lower_mm_run(L, &mm);
    }
    lower_kernel(L, n, "conv_nhwc");
    return lower_conv_run(L, &c);
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

// Taps i of [0, k) with i * d = s * q + r: first, distance, count, q of the first, distance of q.
static int64_t taps(int64_t k, int64_t s, int64_t d, int64_t r, int64_t *i0, int64_t *istep,
                    int64_t *q0, int64_t *dq) {
    int64_t g = gcd(s, d);
    *istep = s / g;
    *dq = d / g;
    for (*i0 = 0; *i0 < k && *i0 < s; ++*i0)
        if (*i0 * d % s == r) {
            *q0 = (*i0 * d - r) / s;
            return (k - 1 - *i0) / *istep + 1;
        }
    return 0;
}

// Phases that read the same inputs (the kernel is a multiple of the strides) are one product with
// all their channels as columns.
static void merge(const struct lower *L, struct lower_conv *c) {
    const struct conv_phase *a = &c->phase[0];
    if (c->nphase == 1 || a->zero || c->nphase * c->og > 4 * L->hw->mxu_cols) return;
    for (int i = 1; i < c->nphase; i++) {
        const struct conv_phase *b = &c->phase[i];
        if (b->zero || a->kh != b->kh || a->kw != b->kw || a->pt != b->pt || a->pl != b->pl ||
            a->dh != b->dh || a->dw != b->dw)
            return;
    }
    c->merge = c->nphase;
    c->k_total = a->kh * a->kw * c->cg;
    for (int i = 0; i < c->nphase; i++)
        c->phase[i].k_at = 0;
}

npu_status lower_convt(struct lower *L, const struct graph_node *n) {
    struct lower_conv c;
    NPU_TRY(constant_weights(n));
    shapes(L, n, &c);
    int64_t kh = n->inputs[1]->dims[2], kw = n->inputs[1]->dims[3];
    int64_t dh = graph_ints_at(n, GRAPH_ATTR_DILATIONS, 0, 1),
            dw = graph_ints_at(n, GRAPH_ATTR_DILATIONS, 1, 1);
    c.os_h = graph_ints_at(n, GRAPH_ATTR_STRIDES, 0, 1),
    c.os_w = graph_ints_at(n, GRAPH_ATTR_STRIDES, 1, 1);
    c.crop_h = graph_ints_at(n, GRAPH_ATTR_PADS, 0, 0),
    c.crop_w = graph_ints_at(n, GRAPH_ATTR_PADS, 1, 0);
    c.u0 = c.crop_h / c.os_h, c.u1 = lower_ceil(c.crop_h + c.p, c.os_h);
    c.v0 = c.crop_w / c.os_w, c.v1 = lower_ceil(c.crop_w + c.q, c.os_w);
    int64_t ws[5] = {c.cg * c.og * kh * kw, kh * kw, c.og * kh * kw, kw, 1};
    memcpy(c.ws, ws, sizeof ws);
    c.phase = ARENA_ARRAY(L->a, struct conv_phase, (size_t)(c.os_h * c.os_w));
    for (int64_t ry = 0; ry < c.os_h; ry++)
        for (int64_t rx = 0; rx < c.os_w; rx++) {
            struct conv_phase *ph = &c.phase[c.nphase++];
            int64_t i0, istep, j0, jstep, q0 = 0, dq, e0 = 0, de;
            int64_t a = taps(kh, c.os_h, dh, ry, &i0, &istep, &q0, &dq),
                    b = taps(kw, c.os_w, dw, rx, &j0, &jstep, &e0, &de);
            *ph = (struct conv_phase){.kh = 1,
                                      .kw = 1,
                                      .dh = 1,
                                      .dw = 1,
                                      .ry = ry,
                                      .rx = rx,
                                      .zero = true,
                                      .k_at = c.k_total};
            if (a && b)
                *ph = (struct conv_phase){.kh = a,
                                          .kw = b,
                                          .dh = dq,
                                          .dw = de,
                                          .pt = q0 + (a - 1) * dq,
                                          .pl = e0 + (b - 1) * de,
                                          .i0 = i0 + (a - 1) * istep,
                                          .istep = -istep,
                                          .j0 = j0 + (b - 1) * jstep,
                                          .jstep = -jstep,
                                          .ry = ry,
                                          .rx = rx,
                                          .k_at = c.k_total};
            c.k_total += ph->kh * ph->kw * c.cg;
        }
    merge(L, &c);
    lower_kernel(L, n, c.merge > 1 ? "convt_merged" : "convt_phases");
    return lower_conv_run(L, &c);
}
