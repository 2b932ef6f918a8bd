// SPDX-License-Identifier: Apache-2.0
// Interpolation of the last two dimensions.
//
//   nearest, whole factors   one affine map: each input element repeats, stride 0 along the copies
//   other                    per tile of the result: load the rows and columns that it needs;
//   V.MAPs across give the columns, then
//                            V.MAPs down the rows: lower + (upper - lower) * weight. Outputs whose
//                            sources advance evenly and whose weights agree share an instruction (a
//                            factor 2 takes two, and the edges).
#include "toolchain/lower/internal.h"

#include <math.h>
#include <string.h>

// Output i of an axis is between inputs lo[i] and hi[i]; both tables ascend. period: outputs i and
// i + period are alike.
struct axis {
    int64_t in, out, period;
    int32_t *lo, *hi;
    float *weight;
    bool copy;
};

static double source(const char *coord, int64_t i, double scale, int64_t in, int64_t out) {
    if (!strcmp(coord, "asymmetric")) return (double)i / scale;
    if (!strcmp(coord, "align_corners"))
        return out > 1 ? (double)i * (double)(in - 1) / (double)(out - 1) : 0;
    if (!strcmp(coord, "pytorch_half_pixel") && out <= 1) return 0;
    return ((double)i + 0.5) / scale - 0.5;
}

static double within(double v, int64_t size) {
    return v < 0 ? 0 : v > (double)(size - 1) ? (double)(size - 1) : v;
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static struct axis table(struct lower *L, const struct graph_node *n, int which, bool linear) {
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    int d = x->rank - 2 + which;
    int64_t in = x->dims[d], out = y->dims[d];
    const struct graph_attr *scales = graph_attr(n, GRAPH_ATTR_SCALES);
    double scale = scales ? scales->floats[which] : (double)out / (double)in;
    const char *coord = graph_word(n, GRAPH_ATTR_COORD, "half_pixel"),
               *nearest = graph_word(n, GRAPH_ATTR_NEAREST, "round_prefer_floor");
    struct axis t = {in,
                     out,
                     1,
                     ARENA_ARRAY(L->a, int32_t, (size_t)out),
                     ARENA_ARRAY(L->a, int32_t, (size_t)out),
                     ARENA_ARRAY(L->a, float, (size_t)out),
                     in == out};
    bool corners = !strcmp(coord, "align_corners");
    t.period =
        corners ? (out - 1) / lower_max(1, gcd(out - 1, in - 1)) : out / lower_max(1, gcd(out, in));
    t.period = lower_max(1, t.period);
    for (int64_t i = 0; i < out; i++) {
        double p = source(coord, i, scale, in, out), at = within(p, in);
        if (!linear)
            at = within(!strcmp(nearest, "floor")               ? floor(p)
                        : !strcmp(nearest, "ceil")              ? ceil(p)
                        : !strcmp(nearest, "round_prefer_ceil") ? floor(p + 0.5)
                                                                : ceil(p - 0.5),
                        in);
        t.lo[i] = (int32_t)floor(at);
        t.weight[i] = linear ? (float)(at - floor(at)) : 0;
        t.hi[i] = t.weight[i] > 0 ? (int32_t)within(floor(at) + 1, in) : t.lo[i];
        t.copy = t.copy && t.lo[i] == i && t.weight[i] == 0;
    }
    return t;
}

// f when output i takes input i / f throughout; 0 otherwise.
static int64_t factor(const struct axis *t) {
    int64_t f = t->out / t->in;
    if (f < 1 || f * t->in != t->out) return 0;
    for (int64_t i = 0; i < t->out; i++)
        if (t->lo[i] != i / f) return 0;
    return f;
}

static npu_status repeat(struct lower *L, const struct graph_node *n, int64_t fh, int64_t fw) {
    const struct graph_value *x = n->inputs[0];
    int rank = x->rank;
    struct lower_affine a = {.rank = rank + 2,
                             .has = {true, false, false},
                             .in = {L->place[x->id]},
                             .out = L->place[n->outputs[0]->id]};
    const struct lower_view in = a.in[0], out = a.out;
    memcpy(a.size, x->dims, sizeof x->dims);
    int h = rank - 2, w = rank - 1;
    a.size[rank - 2] = x->dims[h], a.in[0].stride[rank - 2] = in.stride[h],
                  a.out.stride[rank - 2] = out.stride[h] * fh;
    a.size[rank - 1] = fh, a.in[0].stride[rank - 1] = 0, a.out.stride[rank - 1] = out.stride[h];
    a.size[rank] = x->dims[w], a.in[0].stride[rank] = in.stride[w],
    a.out.stride[rank] = out.stride[w] * fw;
    a.size[rank + 1] = fw, a.in[0].stride[rank + 1] = 0, a.out.stride[rank + 1] = out.stride[w];
    return lower_affine_run(L, &a);
}

struct resize {
    int lead;                 // dimensions before the last two
    int64_t size[LOWER_DIMS]; // of the result: lead..., rows, columns
    struct lower_view x, out;
    struct axis axis[2];
    enum isa_dtype wide; // of the intermediate
};
struct streams {
    struct lower_stream x, out;
    int64_t mid_bytes, mid[LOWER_DIMS];
};
struct pricing {
    const struct lower *L;
    const struct resize *r;
};

// Most inputs that a tile of t outputs needs.
static int64_t span(const struct axis *a, int64_t t) {
    int64_t most = 1;
    for (int64_t i = 0; i < a->out; i += t)
        most = lower_max(most, a->hi[lower_min(i + t, a->out) - 1] - a->lo[i] + 1);
    return most;
}

static void streams_init(const struct lower *L, const struct resize *r, const int64_t *tile,
                         struct streams *s) {
    int h = r->lead, w = h + 1;
    int64_t in_size[LOWER_DIMS], in_tile[LOWER_DIMS], mid[LOWER_DIMS];
    memset(s, 0, sizeof *s);
    memcpy(in_size, r->size, sizeof in_size);
    memcpy(in_tile, tile, sizeof in_tile);
    in_size[h] = r->axis[0].in, in_size[w] = r->axis[1].in;
    in_tile[h] = span(&r->axis[0], tile[h]), in_tile[w] = span(&r->axis[1], tile[w]);
    lower_stream_init(&s->x, "x", &r->x, (struct lower_grid){w + 1, in_size, in_tile}, L->slots,
                      false);
    lower_stream_init(&s->out, "out", &r->out, (struct lower_grid){w + 1, r->size, tile}, L->slots,
                      false);
    if (r->axis[0].copy || r->axis[1].copy) return;
    memcpy(mid, tile, sizeof mid);
    mid[h] = in_tile[h];
    int64_t elems = lower_pack(&r->out, w + 1, mid, s->mid);
    if (mid[h] > 1 && !s->mid[h]) { // the result has one row, which needs several
        s->mid[h] = elems;
        elems *= mid[h];
    }
    s->mid_bytes = lower_ceil(elems * lower_dtype_bytes(r->wide), 64) * 64;
}

static void price(void *ctx, struct lower_found *t) {
    const struct lower *L = ((struct pricing *)ctx)->L;
    const struct resize *r = ((struct pricing *)ctx)->r;
    struct streams s;
    streams_init(L, r, t->tile, &s);
    int rank = r->lead + 2;
    double nstep = 1;
    for (int d = 0; d < rank; d++)
        nstep *= (double)lower_ceil(r->size[d], t->tile[d]);
    t->bytes = lower_stream_bytes(&s.x) + lower_stream_bytes(&s.out) + s.mid_bytes;
    struct lower_step step = {0};
    step.dma_cycles = lower_dma_cycles(L, &r->x, rank, s.x.block) +
                      lower_dma_cycles(L, &r->out, rank, s.out.block);
    step.dma_bytes =
        lower_dma_bytes(L, &r->x, rank, s.x.block) + lower_dma_bytes(L, &r->out, rank, s.out.block);
    double insns = 0;
    for (int i = 0; i < 2; i++)
        insns += (double)lower_min(r->axis[i].period + 2, t->tile[r->lead + i]);
    step.vec_cycles = insns * (double)(L->hw->vec_start + L->hw->vec_min_ii) +
                      2 * lower_vec_cycles(L, lower_elems(rank, t->tile), 2, NULL);
    step.spm_bytes = t->bytes;
    t->cycles = lower_steps_cycles(L, nstep, &step);
}

// One axis of a tile, dimension d: outputs [to.lo, to.hi) from a view whose first element is input
// `base`.
struct line {
    const struct axis *axis;
    int d, rank;
    int64_t size[LOWER_DIMS]; // of the other dimensions
    struct lower_range to;
    int64_t base;
    struct lower_view src, dst;
};

// Outputs o, o + period, ... (count of them), whose inputs are `step` apart.
static void emit(struct lower *L, const struct line *l, int64_t o, int64_t count, int64_t step) {
    const struct axis *a = l->axis;
    int64_t n[LOWER_DIMS], lo[LOWER_DIMS] = {0}, hi[LOWER_DIMS] = {0}, at[LOWER_DIMS] = {0};
    memcpy(n, l->size, sizeof n);
    n[l->d] = count;
    lo[l->d] = a->lo[o] - l->base;
    hi[l->d] = a->hi[o] - l->base;
    at[l->d] = o - l->to.lo;
    struct lower_view lower = lower_at(&l->src, l->rank, lo),
                      upper = lower_at(&l->src, l->rank, hi), out = lower_at(&l->dst, l->rank, at);
    lower.stride[l->d] *= step;
    upper.stride[l->d] *= step;
    out.stride[l->d] *= a->period;
    struct isa_chain c;
    memset(&c, 0, sizeof c);
    uint32_t bits;
    memcpy(&bits, &a->weight[o], sizeof bits);
    c.imm[0] = bits;
    c.st[0] = (struct isa_stage){.op = ISA_VOP_SUB, .a = ISA_SRC_IN1};
    c.st[1] = (struct isa_stage){.op = ISA_VOP_MUL, .a = ISA_SRC_IMM0};
    c.st[2] = (struct isa_stage){.op = ISA_VOP_ADD, .a = ISA_SRC_IN1};
    bool mix = a->weight[o] > 0;
    lower_map(L, l->rank, n, mix ? &c : NULL,
              (const struct lower_view *[]){&upper, mix ? &lower : NULL, NULL}, &out);
}

static void interpolate(struct lower *L, const struct line *l) {
    const struct axis *a = l->axis;
    int64_t from = l->to.lo;
    bool *done = ARENA_ARRAY(L->a, bool, (size_t)(l->to.hi - from));
    for (int64_t o = from; o < l->to.hi; o++) {
        if (done[o - from]) continue;
        int64_t count = 0, step = 0;
        for (int64_t i = o; i < l->to.hi; i += a->period, count++) {
            if (count == 1) step = a->lo[i] - a->lo[o];
            if (done[i - from] || a->lo[i] - a->lo[o] != count * step ||
                a->hi[i] - a->hi[o] != count * step || fabsf(a->weight[i] - a->weight[o]) > 1e-6f)
                break;
            done[i - from] = true;
        }
        emit(L, l, o, count, step);
    }
}

static npu_status run(struct lower *L, const struct resize *r) {
    struct pricing pricing = {L, r};
    int rank = r->lead + 2, h = r->lead, w = h + 1;
    struct lower_found t = lower_climb_run(
        L, &(struct lower_climb){.rank = rank, .size = r->size, .price = price, .ctx = &pricing});
    struct streams s;
    streams_init(L, r, t.tile, &s);
    const char *names[3] = {"input", "result", "intermediate"};
    int64_t bytes[3] = {lower_stream_bytes(&s.x), lower_stream_bytes(&s.out), s.mid_bytes};
    if (t.bytes > lower_spm(L, true)) return lower_no_fit(L, 3, names, bytes);
    L->kernel->estimate_cycles += t.cycles;
    L->kernel->vector_elems += 2 * lower_elems(rank, r->size);
    lower_stream_open(L, &s.x);
    lower_stream_open(L, &s.out);
    struct lower_view mid = {.buf =
                                 s.mid_bytes ? tile_add_spm(L->p, "columns", s.mid_bytes, 1) : -1,
                             .dtype = r->wide};
    memcpy(mid.stride, s.mid, sizeof s.mid);
    int64_t at[LOWER_DIMS] = {0}, size[LOWER_DIMS] = {0}, start[LOWER_DIMS], in[LOWER_DIMS];
    do {
        for (int d = 0; d < rank; d++)
            size[d] = lower_min(t.tile[d], r->size[d] - at[d]);
        memcpy(start, at, sizeof start);
        memcpy(in, size, sizeof in);
        for (int i = 0; i < 2; i++) {
            start[h + i] = r->axis[i].lo[at[h + i]];
            in[h + i] = r->axis[i].hi[at[h + i] + size[h + i] - 1] - start[h + i] + 1;
        }
        tile_step(L->p);
        struct lower_view x = lower_stream_fetch(L, &s.x, start, in),
                          out = lower_sink_tile(&s.out, at), columns = x;
        struct line l = {.rank = rank};
        memcpy(l.size, in, sizeof l.size);
        if (!r->axis[1].copy) {
            columns = r->axis[0].copy ? out : mid;
            l.axis = &r->axis[1], l.d = w, l.base = start[w], l.src = x, l.dst = columns;
            l.to = (struct lower_range){at[w], at[w] + size[w]};
            interpolate(L, &l);
        }
        l.size[w] = size[w];
        l.axis = &r->axis[0], l.d = h, l.base = start[h], l.src = columns, l.dst = out;
        l.to = (struct lower_range){at[h], at[h] + size[h]};
        if (!r->axis[0].copy)
            interpolate(L, &l);
        else if (r->axis[1].copy)
            lower_map(L, rank, size, NULL, (const struct lower_view *[]){&x, NULL, NULL}, &out);
        lower_sink_store(L, &s.out, &out, at, size);
    } while (lower_next(rank, r->size, t.tile, at));
    return NULL;
}

npu_status lower_resize(struct lower *L, const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    bool linear = !strcmp(graph_word(n, GRAPH_ATTR_MODE, "nearest"), "linear");
    if (linear && isa_dtype_is_int((int)x->dtype))
        return npu_fail(UNSUPPORTED,
                        "linear interpolation of %s elements; convert to a floating type first",
                        isa_dtype_name((int)x->dtype));
    struct resize r = {.axis = {table(L, n, 0, linear), table(L, n, 1, linear)},
                       .x = L->place[x->id],
                       .out = L->place[y->id]};
    int64_t fh = factor(&r.axis[0]), fw = factor(&r.axis[1]);
    if (!linear && fh && fw) {
        lower_kernel(L, n, "resize_repeat");
        return repeat(L, n, fh, fw);
    }
    lower_kernel(L, n, linear ? "resize_linear" : "resize_nearest");
    r.wide = linear ? ISA_F32 : x->dtype;
    struct lower_view *views[] = {&r.x, &r.out};
    memcpy(r.size, y->dims, sizeof y->dims);
    r.lead = lower_merge(x->rank - 2, r.size, 2, views);
    for (int i = 0; i < 2; i++) {
        r.size[r.lead + i] = y->dims[x->rank - 2 + i];
        r.x.stride[r.lead + i] = L->place[x->id].stride[x->rank - 2 + i];
        r.out.stride[r.lead + i] = L->place[y->id].stride[x->rank - 2 + i];
    }
    return run(L, &r);
}
