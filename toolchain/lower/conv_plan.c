// SPDX-License-Identifier: Apache-2.0
// Tile sizes of a convolution: combinations of short lists per dimension, priced; the cheapest that
// fits wins.
#include "isa/timing.h"
#include "toolchain/lower/conv.h"

#include <string.h>

#define CHOICES 10
#define PSUM_SLOTS 4

// Weights that pass through few slots keep the DMA queues from running ahead into the next kernels.
#define STREAMING 1.06
#define CHUNKED 1.7

struct lower_view conv_packed(const struct lower_conv *c, int64_t to) {
    struct lower_view v = {.buf = -1, .dtype = c->dtype};
    int64_t tiles = lower_ceil(c->og, to);
    to *= c->merge;
    v.stride[0] = c->group > 1 ? tiles * c->k_total * to : 0;
    v.stride[1] = tiles > 1 ? c->k_total * to : 0;
    v.stride[2] = to;
    v.stride[3] = 1;
    return v;
}

struct lower_range conv_needs(const struct lower_conv *c, const struct conv_phase *ph, int axis,
                              struct lower_range u, struct lower_range taps) {
    int64_t s = axis ? c->sw : c->sh, d = axis ? ph->dw : ph->dh, pad = axis ? ph->pl : ph->pt,
            n = axis ? c->w : c->h;
    int64_t first = u.lo * s + taps.lo * d - pad, last = (u.hi - 1) * s + (taps.hi - 1) * d - pad;
    int64_t lo = lower_max(0, lower_min(first, n - 1));
    return (struct lower_range){lo, lower_max(lo + 1, lower_min(last + 1, n))};
}

// Most input rows (axis 0) or columns that a tile of `t` needs: of one chunk of `taps`, or (0) of
// all phases together.
static int64_t span(const struct lower_conv *c, int axis, int64_t t, int64_t taps) {
    int64_t s = axis ? c->sw : c->sh, n = axis ? c->w : c->h, lo = INT64_MAX, hi = INT64_MIN,
            longest = 1;
    for (int i = 0; i < c->nphase; i++) {
        const struct conv_phase *ph = &c->phase[i];
        int64_t d = axis ? ph->dw : ph->dh, pad = axis ? ph->pl : ph->pt,
                k = axis ? ph->kw : ph->kh;
        lo = lower_min(lo, -pad);
        hi = lower_max(hi, (t - 1) * s + (k - 1) * d - pad);
        longest = lower_max(longest, (t - 1) * s + (lower_min(taps, k) - 1) * d + 1);
    }
    return lower_min(taps ? longest : hi - lo + 1, n);
}

bool conv_stepped(const struct lower_conv *c, const struct conv_tile *t) {
    return t->chunked && t->ti == 1 && c->sh > 1 && c->x.stride[CONV_Y] != 0;
}

void conv_streams_init(const struct lower *L, const struct lower_conv *c,
                       const struct lower_view *w, const struct conv_tile *t,
                       struct conv_streams *s) {
    memset(s, 0, sizeof *s);
    int64_t channels = !t->chunked || t->tg > 1 ? t->tg * c->cg : t->tc;
    int64_t full[CONV_RANK + 1] = {c->batch, c->group * c->cg, c->h, c->w};
    int64_t block[CONV_RANK + 1] = {1, channels, span(c, 0, t->tu, t->chunked ? t->ti : 0),
                                    span(c, 1, t->tv, t->chunked ? t->tj : 0)};
    struct lower_view x = c->x;
    if (conv_stepped(c, t)) {
        full[CONV_Y] = lower_ceil(c->h, c->sh);
        full[CONV_RANK] = c->sh;
        block[CONV_Y] = lower_min(t->tu, full[CONV_Y]);
        block[CONV_RANK] = 1;
        x.stride[CONV_RANK] = c->x.stride[CONV_Y];
        x.stride[CONV_Y] = full[CONV_Y] > 1 ? c->x.stride[CONV_Y] * c->sh : 0;
    }
    lower_stream_init(&s->x, "x", &x,
                      (struct lower_grid){conv_stepped(c, t) ? CONV_RANK + 1 : CONV_RANK, full,
                                          block},
                      L->slots, t->whole_x);
    if (s->x.pack[CONV_C] != 1) lower_stream_spread(L, &s->x, CONV_C);
    int64_t k_block = t->chunked ? t->ti * t->tj * t->tc : c->k_total;
    int64_t columns = c->merge * t->to;
    int64_t w_full[4] = {c->group, lower_ceil(c->og, t->to), c->k_total, columns},
            w_block[4] = {t->tg, 1, k_block, columns};
    lower_stream_init(&s->w, "weights", w, (struct lower_grid){4, w_full, w_block}, L->slots,
                      t->whole_w);
    int64_t o_full[CONV_RANK] = {c->batch, c->group * c->og, c->p, c->q};
    int64_t o_block[CONV_RANK] = {1, t->tg * t->to, lower_min(t->tu * c->os_h, c->p),
                                  lower_min(t->tv * c->os_w, c->q)};
    lower_stream_init(&s->out, "out", &c->out, (struct lower_grid){CONV_RANK, o_full, o_block},
                      L->slots, false);
    static const char *const names[3] = {"", "in1", "in2"};
    for (int i = 1; i < 3; i++) {
        if (!c->e.has[i]) continue;
        const struct lower_view *v = &c->e.in[i];
        int64_t bytes = lower_dtype_bytes(v->dtype);
        for (int d = 0; d < CONV_RANK; d++)
            if (v->stride[d]) bytes *= o_full[d];
        lower_stream_init(&s->extra[i], names[i], v,
                          (struct lower_grid){CONV_RANK, o_full, o_block}, L->slots,
                          bytes <= lower_min(16384, lower_spm(L, true) / 16));
    }
}

static int64_t chunks(const struct conv_tile *t, const struct conv_phase *ph, int64_t cg) {
    return lower_ceil(ph->kh, t->ti) * lower_ceil(ph->kw, t->tj) * lower_ceil(cg, t->tc);
}

static void evaluate(const struct lower *L, const struct lower_conv *c, struct conv_tile *t) {
    struct conv_streams s;
    struct lower_view w = conv_packed(c, t->to);
    conv_streams_init(L, c, &w, t, &s);
    t->bytes = lower_stream_bytes(&s.x) + lower_stream_bytes(&s.w) + lower_stream_bytes(&s.out) +
               lower_stream_bytes(&s.extra[1]) + lower_stream_bytes(&s.extra[2]);
    double ut = (double)lower_ceil(c->u1 - c->u0, t->tu) * (double)lower_ceil(c->v1 - c->v0, t->tv);
    double ot = (double)lower_ceil(c->og, t->to), gt = (double)lower_ceil(c->group, t->tg),
           bt = (double)c->batch;
    double tiles = ut * ot * gt * bt, nchunk = 0;
    for (int i = 0; i < (c->merge > 1 ? 1 : c->nphase); i++)
        nchunk += (double)chunks(t, &c->phase[i], c->cg);
    struct lower_step sum = {0};
    double x_loads, w_loads;
    if (t->chunked) {
        x_loads = w_loads = tiles * nchunk;
    } else {
        x_loads = t->o_outer && ut > 1 ? tiles : bt * gt * ut;
        w_loads = !t->o_outer && ot > 1 ? tiles : ot * gt * (gt > 1 || ot > 1 ? bt : 1);
    }
    lower_stream_cost(L, &s.x, x_loads, true, &sum);
    lower_stream_cost(L, &s.w, w_loads, true, &sum);
    lower_stream_cost(L, &s.out, tiles, false, &sum);
    for (int i = 1; i < 3; i++)
        lower_stream_cost(L, &s.extra[i], tiles, false, &sum);
    double latency = 0;
    for (int i = 0; i < c->nphase; i++) {
        const struct conv_phase *ph = &c->phase[i];
        struct isa_mm_shape shape = {.m = t->tu * t->tv,
                                     .n = c->merge * t->to,
                                     .dtype_a = (int)c->x.dtype,
                                     .dtype_b = (int)c->dtype,
                                     .k = t->chunked ? lower_min(t->ti, ph->kh) *
                                                           lower_min(t->tj, ph->kw) * t->tc
                                                     : ph->kh * ph->kw * c->cg,
                                     .transposed_a = c->cg > 1 && s.x.pack[CONV_C] != 1};
        struct isa_cost cost = isa_time_mm(L->hw, &shape);
        int64_t size[3] = {lower_min(t->tc, c->cg), s.x.block[CONV_X], s.x.block[CONV_Y]};
        int64_t stride[3] = {s.x.pack[CONV_C], s.x.pack[CONV_X], s.x.pack[CONV_Y]};
        double passes = (double)lower_ceil(c->merge * t->to, L->hw->mxu_cols),
               cycles = (double)cost.issue_cycles;
        double banks =
            lower_bank_cycles(L, s.x.dtype, 3, size, stride, (double)(shape.m * shape.k) * passes);
        if (banks > cycles) cycles = banks;
        if (i == 0 || c->merge == 1)
            sum.mxu_cycles += tiles * (double)t->tg * (double)chunks(t, ph, c->cg) * cycles;
        latency = (double)(cost.done_cycles - cost.issue_cycles);
        struct isa_vec_shape vec = {.elems = t->tu * t->tv * t->to * t->tg,
                                    .steps = 1,
                                    .psum_elems = t->tu * t->tv * t->to * t->tg};
        for (int k = 1; k < 3; k++)
            if (c->e.has[k]) vec.in[k] = (struct isa_vec_port){vec.elems, L->hw->vec_lanes};
        vec.stages = lower_chain_stages(&c->e.chain, &vec.special);
        sum.vec_cycles += tiles * (double)isa_time_vec(L->hw, &vec).issue_cycles;
    }
    double steps = tiles * (t->chunked ? nchunk : 1);
    struct lower_step step = {sum.dma_cycles / steps,
                              sum.dma_bytes / steps,
                              sum.mxu_cycles / steps,
                              sum.vec_cycles / steps,
                              t->bytes,
                              sum.first_cycles,
                              sum.first_bytes};
    t->cycles =
        lower_psum_cycles(L, steps, &step, tiles * c->nphase / c->merge, latency, t->psum_slots);
    t->score = t->cycles * (t->chunked ? CHUNKED : s.w.slots > 1 ? STREAMING : 1);
}

static void consider(const struct lower *L, const struct lower_conv *c, struct conv_tile t,
                     struct conv_tile *best, struct conv_tile *least) {
    evaluate(L, c, &t);
    if (!least->tu || t.bytes < least->bytes) *least = t;
    if (t.bytes <= lower_spm(L, true) && (!best->tu || t.score < best->score)) *best = t;
}

// Even splits of n into tiles that are multiples of unit.
static int splits(int64_t n, int64_t unit, int64_t most, int64_t *out) {
    static const int64_t parts[] = {1, 2, 3, 4, 6, 8, 12, 16, 32};
    int64_t units = lower_ceil(n, unit);
    int count = 0;
    for (int i = 0; i < (int)(sizeof parts / sizeof *parts) && parts[i] <= units; i++) {
        int64_t t = lower_min(lower_ceil(units, parts[i]) * unit, n);
        if (t <= most && (!count || out[count - 1] != t)) out[count++] = t;
    }
    if (!count || out[count - 1] > unit) out[count++] = lower_min(unit, n);
    return count;
}

static int halvings(int64_t n, int64_t most, int64_t *out) {
    int count = 0;
    int64_t last = 0;
    for (int64_t t = lower_min(n, most); t >= 1 && count < 2 * CHOICES; t /= 2) {
        int64_t even = lower_ceil(n, lower_ceil(n, t));
        if (even != last) out[count++] = even;
        last = even;
        if (t == 1) break;
    }
    return count;
}

// All tiles (rows, columns, modes) for given channels and chunk.
static void search_plane(const struct lower *L, const struct lower_conv *c, struct conv_tile t,
                         struct conv_tile *best, struct conv_tile *least) {
    int64_t tv[2 * CHOICES], tu[2 * CHOICES], cols = L->hw->mxu_cols;
    int64_t most = lower_psum_rows(L) / t.psum_slots / (t.tg * lower_ceil(c->merge * t.to, cols));
    if (most < 1) return;
    int nv = halvings(c->v1 - c->v0, most, tv);
    for (int i = 0; i < nv; i++) {
        int nu = halvings(c->u1 - c->u0, most / tv[i], tu);
        for (int j = 0; j < nu; j++) {
            t.tv = tv[i];
            t.tu = tu[j];
            for (int mode = 0; mode < (t.chunked ? 1 : 8); mode++) {
                t.o_outer = mode & 1;
                t.whole_x = mode & 2;
                t.whole_w = mode & 4;
                consider(L, c, t, best, least);
            }
        }
        if (best->tu && i >= 2) break; // narrow tiles only when wide ones do not fit
    }
}

static void search(const struct lower *L, const struct lower_conv *c, bool chunked,
                   struct conv_tile *best, struct conv_tile *least) {
    int64_t to[CHOICES + 2], tg[2 * CHOICES], cols = L->hw->mxu_cols, kh = 1, kw = 1;
    for (int i = 0; i < c->nphase; i++) {
        kh = lower_max(kh, c->phase[i].kh);
        kw = lower_max(kw, c->phase[i].kw);
    }
    if (!chunked && (kh > 256 || kw > 256)) return;
    int no = splits(c->og, cols, 65536, to), ng = halvings(c->group, 64, tg);
    for (int pslots = L->slots > 1 ? PSUM_SLOTS : 1; pslots >= 1; pslots--)
        for (int i = 0; i < no; i++)
            for (int g = 0; g < ng; g++) {
                struct conv_tile t = {.to = to[i],
                                      .tg = tg[g],
                                      .ti = kh,
                                      .tj = kw,
                                      .tc = c->cg,
                                      .chunked = chunked,
                                      .psum_slots = pslots};
                if (((t.tg > 1 || c->merge > 1) && t.to < c->og) || (t.tg > 1 && chunked)) continue;
                if (!chunked) {
                    search_plane(L, c, t, best, least);
                    continue;
                }
                for (t.ti = lower_min(kh, 256);; t.ti = lower_ceil(t.ti, 2)) {
                    search_plane(L, c, t, best, least);
                    if (t.ti == 1) break;
                }
                for (t.tj = lower_min(lower_ceil(kw, 2), 256); kw > 1; t.tj = lower_ceil(t.tj, 2)) {
                    search_plane(L, c, t, best, least);
                    if (t.tj == 1) break;
                }
                if (kw == 1) t.tj = 1;
                for (t.tc = lower_ceil(c->cg, 2); c->cg > 1 && !best->tu;
                     t.tc = lower_ceil(t.tc, 2)) {
                    search_plane(L, c, t, best, least);
                    if (t.tc == 1) break;
                }
            }
}

// The whole convolution as one product.
static double ideal(const struct lower *L, const struct lower_conv *c) {
    struct isa_mm_shape shape = {.m = c->batch * (c->u1 - c->u0) * (c->v1 - c->v0),
                                 .n = c->merge * c->og,
                                 .k = c->k_total,
                                 .dtype_a = (int)c->x.dtype,
                                 .dtype_b = (int)c->dtype};
    return (double)c->group * (double)isa_time_mm(L->hw, &shape).issue_cycles;
}

npu_status conv_choose(const struct lower *L, const struct lower_conv *c, struct conv_tile *out) {
    struct conv_tile best = {0}, least = {0};
    search(L, c, false, &best, &least);
    if (!best.tu || best.score > 1.3 * ideal(L, c)) search(L, c, true, &best, &least);
    if (best.tu) {
        *out = best;
        return NULL;
    }
    NPU_ASSERT(least.tu);
    struct conv_streams s;
    struct lower_view w = conv_packed(c, least.to);
    conv_streams_init(L, c, &w, &least, &s);
    const char *names[5] = {"input", "weights", "result", "operand 1", "operand 2"};
    int64_t bytes[5] = {lower_stream_bytes(&s.x), lower_stream_bytes(&s.w),
                        lower_stream_bytes(&s.out), lower_stream_bytes(&s.extra[1]),
                        lower_stream_bytes(&s.extra[2])};
    return lower_no_fit(L, 5, names, bytes);
}
