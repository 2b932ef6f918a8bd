// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions and pooling: windows on the vector engine, whose chain follows in the same
// instruction.
//
//   for each image and (channels, rows, columns) tile: load the input rows that its windows touch
//   (padding is the instruction's), V.DW or V.POOL, store
//
// A depthwise convolution with several outputs per channel is one instruction per output of the
// channel.
#include "isa/timing.h"
#include "toolchain/lower/conv.h"

#include <string.h>

struct window {
    bool pool;
    int64_t kind, kh, kw, sh, sw, dh, dw, pt, pl;
    int64_t batch, c, h, w, p, q, mult;
    struct lower_view x, out, weights; // weights over (tap, output channel)
    struct lower_epilogue e;
};
struct tile_size {
    int64_t tc, tp, tq;
    double cycles;
    int64_t bytes;
};
struct streams {
    struct lower_stream x, w, out, extra[3];
};

static int64_t span(int64_t t, int64_t s, int64_t k, int64_t d, int64_t n) {
    return lower_min((t - 1) * s + (k - 1) * d + 1, n);
}

static void streams_init(const struct lower *L, const struct window *m, const struct tile_size *t,
                         struct streams *s) {
    memset(s, 0, sizeof *s);
    int64_t full[CONV_RANK] = {m->batch, m->c, m->h, m->w};
    int64_t block[CONV_RANK] = {1, t->tc, span(t->tp, m->sh, m->kh, m->dh, m->h),
                                span(t->tq, m->sw, m->kw, m->dw, m->w)};
    lower_stream_init(&s->x, "x", &m->x, (struct lower_grid){CONV_RANK, full, block}, L->slots,
                      false);
    if (s->x.pack[CONV_C] != 1) lower_stream_spread(L, &s->x, CONV_C);
    if (!m->pool) {
        int64_t taps = m->kh * m->kw, wf[2] = {taps, m->c * m->mult},
                wb[2] = {taps, t->tc * m->mult};
        bool whole = wf[0] * wf[1] * lower_dtype_bytes(m->weights.dtype) <= lower_spm(L, true) / 16;
        lower_stream_init(&s->w, "weights", &m->weights, (struct lower_grid){2, wf, wb}, L->slots,
                          whole);
    }
    int64_t of[CONV_RANK] = {m->batch, m->c * m->mult, m->p, m->q},
            ob[CONV_RANK] = {1, t->tc * m->mult, t->tp, t->tq};
    lower_stream_init(&s->out, "out", &m->out, (struct lower_grid){CONV_RANK, of, ob}, L->slots,
                      false);
    if (s->out.pack[CONV_C] != 1) lower_stream_spread(L, &s->out, CONV_C);
    static const char *const names[3] = {"", "in1", "in2"};
    for (int i = 1; i < 3; i++) {
        if (!m->e.has[i]) continue;
        int64_t bytes = lower_dtype_bytes(m->e.in[i].dtype);
        for (int d = 0; d < CONV_RANK; d++)
            if (m->e.in[i].stride[d]) bytes *= of[d];
        lower_stream_init(&s->extra[i], names[i], &m->e.in[i],
                          (struct lower_grid){CONV_RANK, of, ob}, L->slots,
                          bytes <= lower_min(16384, lower_spm(L, true) / 16));
    }
}

static void evaluate(const struct lower *L, const struct window *m, struct tile_size *t) {
    struct streams s;
    streams_init(L, m, t, &s);
    const struct lower_stream *all[5] = {&s.x, &s.w, &s.out, &s.extra[1], &s.extra[2]};
    double ct = (double)lower_ceil(m->c, t->tc),
           plane = (double)(lower_ceil(m->p, t->tp) * lower_ceil(m->q, t->tq)),
           tiles = (double)m->batch * ct * plane;
    struct lower_step step = {0};
    t->bytes = 0;
    for (int i = 0; i < 5; i++) {
        if (!all[i]->present) continue;
        t->bytes += lower_stream_bytes(all[i]);
        double loads = all[i]->whole ? 1 / tiles
                       : i == 1      ? ct / tiles * (ct > 1 ? (double)m->batch : 1)
                                     : 1;
        step.dma_cycles += loads * lower_dma_cycles(L, &all[i]->src, all[i]->rank, all[i]->block);
        step.dma_bytes += loads * lower_dma_bytes(L, &all[i]->src, all[i]->rank, all[i]->block);
    }
    struct isa_vec_shape vec = {.elems = t->tc * t->tp * t->tq, .steps = m->kh * m->kw};
    vec.stages = lower_chain_stages(&m->e.chain, &vec.special);
    step.vec_cycles = (double)m->mult * (double)isa_time_vec(L->hw, &vec).issue_cycles;
    step.spm_bytes = t->bytes;
    t->cycles = lower_steps_cycles(L, tiles, &step);
}

static npu_status choose(const struct lower *L, const struct window *m, struct tile_size *out) {
    struct tile_size best = {0}, least = {0};
    for (int64_t tc = m->c;; tc = lower_ceil(tc, 2)) {
        for (int64_t tq = m->q;; tq = lower_ceil(tq, 2)) {
            for (int64_t tp = m->p;; tp = lower_ceil(tp, 2)) {
                struct tile_size t = {tc, tp, tq, 0, 0};
                evaluate(L, m, &t);
                if (!least.tc || t.bytes < least.bytes) least = t;
                if (t.bytes <= lower_spm(L, true) && (!best.tc || t.cycles < best.cycles)) best = t;
                if (tp == 1) break;
            }
            if (tq == 1 || best.tc) break;
        }
        if (tc == 1) break;
    }
    *out = best;
    if (best.tc) return NULL;
    struct streams s;
    streams_init(L, m, &least, &s);
    const char *names[5] = {"input", "weights", "result", "operand 1", "operand 2"};
    int64_t bytes[5] = {lower_stream_bytes(&s.x), lower_stream_bytes(&s.w),
                        lower_stream_bytes(&s.out), lower_stream_bytes(&s.extra[1]),
                        lower_stream_bytes(&s.extra[2])};
    return lower_no_fit(L, 5, names, bytes);
}

// Input rows (axis 0) or columns that results `to` need: clipped to the input, at least one.
static struct lower_range needs(const struct window *m, int axis, struct lower_range to) {
    int64_t s = axis ? m->sw : m->sh, k = axis ? m->kw : m->kh, d = axis ? m->dw : m->dh,
            pad = axis ? m->pl : m->pt, n = axis ? m->w : m->h;
    int64_t lo = lower_max(0, lower_min(to.lo * s - pad, n - 1));
    return (struct lower_range){lo,
                                lower_max(lo + 1,
                                          lower_min((to.hi - 1) * s + (k - 1) * d - pad + 1, n))};
}

static void pattern(struct lower *L, struct tile_op *op, int k, const struct lower_view *v,
                    const int64_t size[3], int64_t mult) {
    tile_operand(op, k, L->p, (struct tile_place){v->buf, v->slot, v->dtype, v->offset}, 3, size,
                 (int64_t[]){v->stride[CONV_C] * mult, v->stride[CONV_X], v->stride[CONV_Y]});
}

// A tile on chip.
struct piece {
    struct lower_view x, w, out, extra[3];
    int64_t in_size[3], out_size[3]; // channels, columns, rows
    int64_t pad_top, pad_left;
};

// One instruction for output j of each channel.
static void emit(struct lower *L, const struct window *m, int64_t j, const struct piece *t) {
    struct tile_op *op = tile_emit(L->p, m->pool ? ISA_OP_VPOOL : ISA_OP_VDW, TILE_COMPUTE);
    int64_t first[CONV_RANK] = {0, j, 0, 0};
    struct lower_view o = lower_at(&t->out, CONV_RANK, first);
    pattern(L, op, 0, &o, t->out_size, m->mult);
    pattern(L, op, 1, &t->x, t->in_size, 1);
    if (m->pool) {
        struct isa_VPOOL *f = &op->insn.u.VPOOL;
        f->kind = m->kind;
        f->kh = m->kh, f->kw = m->kw, f->sh = m->sh, f->sw = m->sw, f->dh = m->dh, f->dw = m->dw;
        f->pad_top = t->pad_top, f->pad_left = t->pad_left;
        f->chain = m->e.chain;
    } else {
        struct isa_VDW *f = &op->insn.u.VDW;
        f->kh = m->kh, f->kw = m->kw, f->sh = m->sh, f->sw = m->sw, f->dh = m->dh, f->dw = m->dw;
        f->pad_top = t->pad_top, f->pad_left = t->pad_left;
        f->chain = m->e.chain;
        struct lower_view w = lower_at(&t->w, 2, (int64_t[]){0, j});
        tile_operand(op, 2, L->p, (struct tile_place){w.buf, w.slot, w.dtype, w.offset}, 2,
                     (int64_t[]){t->out_size[0], m->kh * m->kw},
                     (int64_t[]){w.stride[1] * m->mult, w.stride[0]});
    }
    for (int i = 1; i < 3; i++) {
        if (!m->e.has[i]) continue;
        struct lower_view v = lower_at(&t->extra[i], CONV_RANK, first);
        pattern(L, op, (m->pool ? 1 : 2) + i, &v, t->out_size, m->mult);
    }
}

static void tile(struct lower *L, const struct window *m, struct streams *s, const int64_t *at,
                 const int64_t *size) {
    int64_t nc = size[1], np = size[2], nq = size[3];
    struct lower_range h = needs(m, 0, (struct lower_range){at[2], at[2] + np}),
                       w = needs(m, 1, (struct lower_range){at[3], at[3] + nq});
    int64_t xs[LOWER_DIMS] = {at[0], at[1], h.lo, w.lo},
            xn[LOWER_DIMS] = {1, nc, h.hi - h.lo, w.hi - w.lo};
    int64_t os[LOWER_DIMS] = {at[0], at[1] * m->mult, at[2], at[3]},
            on[LOWER_DIMS] = {1, nc * m->mult, np, nq};
    struct piece t = {.in_size = {nc, w.hi - w.lo, h.hi - h.lo},
                      .out_size = {nc, nq, np},
                      .pad_top = h.lo + m->pt - at[2] * m->sh,
                      .pad_left = w.lo + m->pl - at[3] * m->sw};
    tile_step(L->p);
    t.x = lower_stream_fetch(L, &s->x, xs, xn);
    if (!m->pool)
        t.w = lower_stream_fetch(L, &s->w, (int64_t[LOWER_DIMS]){0, at[1] * m->mult},
                                 (int64_t[LOWER_DIMS]){m->kh * m->kw, nc * m->mult});
    for (int i = 1; i < 3; i++)
        if (m->e.has[i]) t.extra[i] = lower_stream_fetch(L, &s->extra[i], os, on);
    t.out = lower_sink_tile(&s->out, os);
    for (int64_t j = 0; j < m->mult; j++)
        emit(L, m, j, &t);
    lower_sink_store(L, &s->out, &t.out, os, on);
}

static npu_status run(struct lower *L, const struct window *m) {
    struct tile_size t;
    NPU_TRY(choose(L, m, &t));
    struct streams s;
    streams_init(L, m, &t, &s);
    lower_stream_open(L, &s.x);
    lower_stream_open(L, &s.w);
    for (int i = 1; i < 3; i++)
        lower_stream_open(L, &s.extra[i]);
    lower_stream_open(L, &s.out);
    L->kernel->estimate_cycles += t.cycles;
    L->kernel->vector_elems += m->batch * m->c * m->mult * m->p * m->q * m->kh * m->kw;
    if (!m->pool) L->kernel->macs += m->batch * m->c * m->mult * m->p * m->q * m->kh * m->kw;
    int64_t size[CONV_RANK] = {m->batch, m->c, m->p, m->q}, step[CONV_RANK] = {1, t.tc, t.tp, t.tq},
            at[CONV_RANK] = {0};
    do {
        int64_t part[CONV_RANK];
        for (int d = 0; d < CONV_RANK; d++)
            part[d] = lower_min(step[d], size[d] - at[d]);
        tile(L, m, &s, at, part);
    } while (lower_next(CONV_RANK, size, step, at));
    return NULL;
}

static npu_status shapes(const struct lower *L, const struct graph_node *n, struct window *m) {
    const struct graph_value *x = n->inputs[0], *out = n->outputs[0];
    m->batch = x->dims[0], m->c = x->dims[1], m->h = x->dims[2], m->w = x->dims[3];
    m->p = out->dims[2], m->q = out->dims[3];
    m->mult = out->dims[1] / x->dims[1];
    m->sh = graph_ints_at(n, GRAPH_ATTR_STRIDES, 0, 1),
    m->sw = graph_ints_at(n, GRAPH_ATTR_STRIDES, 1, 1);
    m->dh = graph_ints_at(n, GRAPH_ATTR_DILATIONS, 0, 1),
    m->dw = graph_ints_at(n, GRAPH_ATTR_DILATIONS, 1, 1);
    m->pt = graph_ints_at(n, GRAPH_ATTR_PADS, 0, 0),
    m->pl = graph_ints_at(n, GRAPH_ATTR_PADS, 1, 0);
    m->x = L->place[x->id];
    m->out = L->place[out->id];
    m->e = lower_epilogue_of(L, n);
    if (m->kh <= 256 && m->kw <= 256 && m->sh <= 256 && m->sw <= 256 && m->dh <= 256 &&
        m->dw <= 256)
        return NULL;
    return npu_fail(UNSUPPORTED,
                    "window %lldx%lld, strides %lldx%lld, dilations %lldx%lld: at most 256 each",
                    (long long)m->kh, (long long)m->kw, (long long)m->sh, (long long)m->sw,
                    (long long)m->dh, (long long)m->dw);
}

npu_status lower_depthwise(struct lower *L, const struct graph_node *n) {
    const struct graph_value *w = n->inputs[1];
    struct window m = {.kh = w->dims[2], .kw = w->dims[3]};
    NPU_TRY(shapes(L, n, &m));
    lower_kernel(L, n, "dw_nhwc");
    int64_t taps = m.kh * m.kw, channels = m.c * m.mult;
    struct tile_block packed = {.from = w->data,
                                .from_dtype = graph_data_dtype(w),
                                .dtype = w->dtype,
                                .rank = 2,
                                .size = {taps, channels},
                                .from_stride = {1, taps},
                                .to_stride = {channels, 1}};
    m.weights =
        (struct lower_view){.buf = tile_add_weight(L->p, w->name,
                                                   taps * channels * lower_dtype_bytes(w->dtype),
                                                   &packed, 1),
                            .dtype = w->dtype,
                            .stride = {channels, channels > 1 ? 1 : 0}};
    return run(L, &m);
}

npu_status lower_pool(struct lower *L, const struct graph_node *n) {
    static const struct {
        const char *mode;
        int64_t kind;
    } kinds[] = {{"max", ISA_POOL_MAX}, {"avg", ISA_POOL_AVG}, {"avgpad", ISA_POOL_AVGPAD}};
    struct window m = {.pool = true};
    m.kh = graph_ints_at(n, GRAPH_ATTR_KERNEL, 0, 1),
    m.kw = graph_ints_at(n, GRAPH_ATTR_KERNEL, 1, 1);
    const char *mode = graph_word(n, GRAPH_ATTR_MODE, "max");
    for (int i = 0; i < 3; i++)
        if (!strcmp(mode, kinds[i].mode)) m.kind = kinds[i].kind;
    if (!m.kind) return npu_fail(UNSUPPORTED, "pooling mode '%s'; max, avg and avgpad exist", mode);
    NPU_TRY(shapes(L, n, &m));
    lower_kernel(L, n, "pool_nhwc");
    return run(L, &m);
}
