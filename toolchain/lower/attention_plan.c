// SPDX-License-Identifier: Apache-2.0
// Tiles of the attention kernel: every combination of short lists is priced, the cheapest that fits
// wins.
//
//   an item is one tile of scores; its cycles are the longest of
//       the matrix engine's two products, the vector engine's passes,
//       the round from probabilities over the second product and the next scores to the next
//       probabilities, divided by the items under way (lead + 1)
//   all items, or all transfers when those take longer, and the first loads and the last item's way
#include "isa/timing.h"
#include "toolchain/lower/attention.h"

#include <string.h>

#define CHOICES 16
// Of the memory's time: what transfers hidden behind computing take from others.
#define TRAFFIC 0.1
// Loading every operand once may take that many times as long as the fastest way.
#define ONCE 1.25
#define LONGEST 65536 // of a pattern's dimension
#define TREE 7        // cycles of a reduction's halving tree

int attn_pair(const struct attn_tile *t) {
    return t->lead ? 2 : 1;
}

bool attn_streaming(const struct attn *a, const struct attn_tile *t) {
    struct lower_range k = attn_keys(a, 0, t->tm);
    for (int64_t m0 = 0; m0 < a->m; m0 += t->tm) {
        k = attn_keys(a, m0, lower_min(t->tm, a->m - m0));
        if (k.hi - k.lo > t->tn) return true;
        if (attn_even(a)) break;
    }
    return false;
}

// An integer mask becomes one byte per key on its way in.
static void narrow(struct lower_stream *s) {
    int64_t bytes = lower_dtype_bytes(s->dtype);
    if (s->src.chip || bytes == 1 || !isa_dtype_is_int((int)s->dtype)) return;
    s->dtype = ISA_BOOL;
    s->bytes = lower_ceil(s->bytes / bytes, 64) * 64;
}

void attn_streams_init(const struct lower *L, const struct attn *a, const struct attn_tile *t,
                       struct attn_streams *s) {
    int nb = a->nb, two = L->slots;
    int64_t full[LOWER_DIMS] = {0}, block[LOWER_DIMS] = {0}, rows = t->tb * t->tg * t->tm;
    int64_t cols = L->hw->mxu_cols, es = lower_dtype_bytes(a->dtype);
    memset(s, 0, sizeof *s);
    for (int d = 0; d < nb; d++) {
        full[d] = a->batch[d];
        block[d] = d == nb - 1 ? t->tb : 1;
    }
    full[nb] = a->g, block[nb] = t->tg;
    full[nb + 1] = a->m, block[nb + 1] = t->tm;
    full[nb + 2] = block[nb + 2] = a->d;
    const struct lower_grid grid = {nb + 3, full, block};
    lower_stream_init(&s->q, "q", &a->q, grid, two, false);
    full[nb + 2] = block[nb + 2] = a->dv;
    lower_stream_init(&s->out, "out", &a->out, grid, two, false);
    if (a->has_mask) {
        full[nb + 2] = a->s, block[nb + 2] = t->tn;
        lower_stream_init(&s->mask, "mask", &a->mask, grid, two, t->whole_mask);
        narrow(&s->mask);
    }
    full[nb + 1] = a->s, block[nb + 1] = t->heads ? a->s : t->tn;
    full[nb + 2] = block[nb + 2] = a->d;
    lower_stream_init(&s->k, "k", &a->k, grid, t->heads ? t->heads : two, false);
    full[nb + 2] = block[nb + 2] = a->dv;
    lower_stream_init(&s->v, "v", &a->v, grid, t->heads ? t->heads : two, false);
    s->score_row = lower_ceil(t->tn, cols) * cols;
    s->out_row = lower_ceil(t->tv, cols) * cols;
    s->parts = t->split ? lower_ceil(t->tn, L->hw->mxu_rows) : 1;
    s->score_bytes = rows * s->score_row * 4;
    s->out_bytes = rows * s->out_row * s->parts * 4;
    int64_t word = lower_max(1, L->hw->spm_bank_bytes / es);
    s->pitch = t->tn > word ? lower_ceil(t->tn, word) * word : t->tn;
    s->power_bytes = lower_ceil(rows * s->pitch * es, 64) * 64;
    s->stat_bytes = lower_ceil(rows * 4, 64) * 64;
    s->sum_bytes = attn_streaming(a, t) ? lower_ceil(rows * a->dv * 4, 64) * 64 : 0;
}

static int64_t scratchpad(const struct attn_tile *t, const struct attn_streams *s) {
    int64_t stats = s->sum_bytes ? 5 : 4;
    return lower_stream_bytes(&s->q) + lower_stream_bytes(&s->k) + lower_stream_bytes(&s->v) +
           lower_stream_bytes(&s->mask) + lower_stream_bytes(&s->out) +
           s->power_bytes * attn_pair(t) + s->stat_bytes * stats * 2 + s->sum_bytes;
}

struct price { // of all items
    double items, round, matrix, vector, last;
};

static double product(const struct lower *L, int64_t m, int64_t n, int64_t k, enum isa_dtype t,
                      double *latency) {
    struct isa_mm_shape shape = {.m = m, .n = n, .k = k, .dtype_a = (int)t, .dtype_b = (int)t};
    struct isa_cost c = isa_time_mm(L->hw, &shape);
    if (latency) *latency = (double)(c.done_cycles - c.issue_cycles);
    return (double)c.issue_cycles;
}

static double vector(const struct lower *L, struct isa_vec_shape *s) {
    s->steps = 1;
    return (double)isa_time_vec(L->hw, s).issue_cycles;
}

// A tile of rows x n scores through its passes.
static double score_cycles(const struct lower *L, const struct attn *a,
                           const struct attn_streams *s, const struct attn_edge *e, int64_t rows,
                           int64_t n) {
    struct attn_scores c;
    attn_scores_of(a, e, &c);
    int64_t elems = rows * n, mask = a->mask.stride[a->nb + 1] ? elems : n;
    struct isa_vec_port port = {elems, L->hw->vec_lanes}, small = {mask, L->hw->vec_lanes};
    double cycles = 0;
    for (int i = 0; i < c.n; i++) {
        bool last = i == c.n - 1;
        struct isa_vec_shape v = {.elems = elems,
                                  .stages = c.pass[i].stages,
                                  .special = c.pass[i].special,
                                  .rows = last ? rows : 0,
                                  .row = last ? n : 0,
                                  .psum_elems = c.stored ? 2 * elems : elems};
        if (c.pass[i].mask) v.in[0] = small;
        cycles += vector(L, &v);
    }
    struct isa_vec_shape v = {.elems = elems,
                              .stages = c.power.stages,
                              .special = true,
                              .rows = rows,
                              .row = n,
                              .psum_elems = elems,
                              .out = {port}};
    if (c.power.mask) v.in[0] = small;
    if (s->sum_bytes) cycles += 3 * (double)L->hw->vec_min_ii;
    return cycles + vector(L, &v);
}

static double result_cycles(const struct lower *L, const struct attn *a, const struct attn_tile *t,
                            const struct attn_streams *s, int64_t rows, int64_t parts) {
    double cycles = 0;
    for (int64_t v0 = 0; v0 < a->dv; v0 += t->tv) {
        int64_t n = rows * lower_min(t->tv, a->dv - v0);
        struct isa_vec_port port = {n, L->hw->vec_lanes};
        struct isa_vec_shape v = {.elems = n * parts,
                                  .stages = 2,
                                  .psum_elems = n * parts,
                                  .out = {port}};
        if (parts > 1) v.rows = n, v.row = parts;
        if (s->sum_bytes) v.in[0] = port;
        cycles += vector(L, &v);
    }
    return cycles;
}

// Keys [k.lo, k.hi) of query rows [m0, m0 + rows): added to the price.
static void price_item(const struct lower *L, const struct attn *a, const struct attn_tile *t,
                       const struct attn_streams *s, int64_t m0, int64_t m, struct lower_range k,
                       struct price *p) {
    int64_t rows = t->tg * m, all = t->tb * rows, n = k.hi - k.lo, block = L->hw->mxu_rows;
    struct attn_edge e = attn_edge_of(a, m0, m, k);
    double latency, second = 0;
    double first = product(L, rows, n, a->d, a->dtype, &latency) * (double)t->tb;
    for (int64_t v0 = 0; v0 < a->dv; v0 += t->tv) {
        int64_t cols = lower_min(t->tv, a->dv - v0);
        if (s->parts > 1)
            second += product(L, rows, cols, lower_min(n, block), a->dtype, NULL) *
                      (double)lower_ceil(n, block);
        else
            second += product(L, rows, cols, n, a->dtype, NULL);
    }
    second *= (double)t->tb;
    // A pass whose operand the pass before made waits until that is complete.
    double wait = (double)(L->hw->vec_start + L->hw->vec_latency + TREE);
    bool carries = s->sum_bytes || a->zero_rows; // a step between maximum and exponential
    double scores = score_cycles(L, a, s, &e, all, n),
           results = result_cycles(L, a, t, s, all, t->split ? lower_ceil(n, block) : 1);
    double vec = scores + results + wait * ((carries ? 2 : 0) + (t->lead < 2 ? 1 : 0)),
           mxu = first + second;
    double way = first + scores + second + latency + wait * (carries ? 5 : 3) +
                 4 * (double)L->hw->cp_semaphore + (double)L->hw->vec_sf_latency;
    if (!t->lead) way += results + latency + wait;
    double round = way / (t->lead + 1);
    round = round > mxu ? round : mxu;
    // Columns in several parts: the vector engine waits for each part but the last.
    int64_t parts = lower_ceil(a->dv, t->tv);
    if (parts > 1) {
        double turn = scores + wait * (carries ? 3 : 2) + (double)L->hw->vec_sf_latency +
                      (second / (double)t->tb + results) * (double)(parts - 1) / (double)parts +
                      latency * (double)(parts - 1);
        round = round > turn ? round : turn;
    }
    p->items += 1;
    p->matrix += mxu;
    p->vector += vec;
    p->round += (round > vec ? round : vec) + (double)L->hw->cp_semaphore;
    // What the last item takes beyond its round.
    double behind = first + second * (t->lead + 1);
    p->last = (way > behind ? way : behind) - round;
    if (t->lead) p->last += results + latency;
    if (p->last < 0) p->last = 0;
}

// All items of one group of heads, and loads of keys when they come tile by tile.
static struct price price_rows(const struct lower *L, const struct attn *a,
                               const struct attn_tile *t, const struct attn_streams *s) {
    struct price p = {0};
    bool same = attn_even(a);
    for (int64_t m0 = 0; m0 < a->m;) {
        int64_t m = lower_min(t->tm, a->m - m0), times = same ? (a->m - m0) / m : 1;
        struct lower_range k = attn_keys(a, m0, m);
        struct price one = {0};
        for (int64_t k0 = k.lo; k0 < k.hi;) {
            int64_t n = lower_min(t->tn, k.hi - k0);
            int64_t equal = same ? (k.hi - k0) / n : 1;
            struct price item = {0};
            price_item(L, a, t, s, m0, m, (struct lower_range){k0, k0 + n}, &item);
            one.items += item.items * (double)equal;
            one.round += item.round * (double)equal;
            one.matrix += item.matrix * (double)equal;
            one.vector += item.vector * (double)equal;
            one.last = item.last;
            k0 += n * equal;
        }
        p.items += one.items * (double)times;
        p.round += one.round * (double)times;
        p.matrix += one.matrix * (double)times;
        p.vector += one.vector * (double)times;
        p.last = one.last;
        m0 += m * times;
    }
    return p;
}

// Sets cycles and bytes; rows: of one group of heads, priced before.
static void evaluate(const struct lower *L, const struct attn *a, const struct price *rows,
                     struct attn_tile *t) {
    struct attn_streams s;
    attn_streams_init(L, a, t, &s);
    struct attn_mean mean;
    attn_mean_plan(L, a, t, &mean);
    t->bytes = scratchpad(t, &s) + attn_mean_spm_bytes(a, &mean);
    double heads = (double)lower_ceil(a->batch[a->nb - 1], t->tb),
           groups = (double)lower_ceil(a->g, t->tg), tiles = (double)lower_ceil(a->m, t->tm);
    for (int d = 0; d < a->nb - 1; d++)
        heads *= (double)a->batch[d];
    double items = heads * groups * rows->items;
    double keys = t->heads ? heads : items;
    struct lower_step in = {0}, out = {0};
    lower_stream_cost(L, &s.q, heads * groups * tiles, true, &in);
    lower_stream_cost(L, &s.k, keys, true, &in);
    lower_stream_cost(L, &s.v, keys, false, &in);
    lower_stream_cost(L, &s.mask, items, true, &in);
    lower_stream_cost(L, &s.out, heads * groups * tiles, false, &out);
    double round = heads * groups * rows->round / items;
    if (t->heads == 1 && s.k.block[a->nb + 1] == a->s && s.k.full[a->nb - 1] > t->tb)
        round += lower_dma_cycles(L, &s.k.src, s.k.rank, s.k.first) * heads /
                 (double)L->hw->dma_engines / items;
    // A head's rows come in parts: in those of the first tiles, or one with each item.
    if (t->heads) {
        double parts = (double)lower_ceil(a->s, t->tn), most = groups * rows->items;
        in.dma_cycles += 2 * keys * ((parts < most ? parts : most) - 1) * (double)L->hw->dma_start;
    }
    double bytes = in.dma_bytes + out.dma_bytes;
    struct lower_step step = {(in.dma_cycles + out.dma_cycles) / items,
                              bytes / items,
                              round,
                              0,
                              t->bytes,
                              in.first_cycles,
                              in.first_bytes};
    t->cycles = lower_steps_cycles(L, items, &step) + rows->last + attn_mean_cycles(L, a, &mean);
    double rate = hw_dram_bytes_per_cycle(L->hw);
    t->score = t->cycles + (rate > 0 ? TRAFFIC * bytes / rate : 0);
}

static int halvings(int64_t n, int64_t most, int64_t *out) {
    int count = 0;
    int64_t t = lower_min(lower_min(n, most), LONGEST);
    for (int64_t last = 0; t >= 1 && count < CHOICES; t /= 2) {
        int64_t even = lower_ceil(n, lower_ceil(n, t));
        if (even != last) out[count++] = even;
        last = even;
    }
    return count;
}

// Keys of a tile: all that any tile of query rows sees, and whole columns of the array, halved down
// to one.
static int key_tiles(const struct lower *L, const struct attn *a, int64_t tm, int64_t *out) {
    int64_t cols = L->hw->mxu_cols, most = 0, n;
    bool same = attn_even(a);
    for (int64_t m0 = 0; m0 < a->m; m0 += tm) {
        struct lower_range k = attn_keys(a, m0, lower_min(tm, a->m - m0));
        most = lower_max(most, k.hi - k.lo);
        if (same) break;
    }
    int count = 0;
    if (most <= LONGEST) out[count++] = most;
    for (n = cols; 2 * n < most && 2 * n <= LONGEST; n *= 2)
        continue;
    for (; n >= cols && count < CHOICES; n /= 2)
        if (n < most) out[count++] = n;
    return count;
}

struct search {
    const struct lower *L;
    const struct attn *a;
    struct attn_tile best, once, least; // once: of those that load every operand once
};

static void keep_better(struct attn_tile *best, const struct attn_tile *t) {
    if (!best->tm || t->score < best->score) *best = *t;
}

// True when several tiles read the same part of the mask.
static bool shared_mask(const struct attn *a) {
    bool shared = a->mask.stride[a->nb] == 0 && a->g > 1;
    for (int d = 0; d < a->nb; d++)
        shared = shared || (a->mask.stride[d] == 0 && a->batch[d] > 1);
    shared = shared || (a->mask.stride[a->nb + 1] == 0 && a->m > 1);
    return a->has_mask && !a->mask.chip && shared;
}

static void consider(struct search *f, const struct price *rows, struct attn_tile t) {
    const struct attn *a = f->a;
    evaluate(f->L, a, rows, &t);
    if (!f->least.tm || t.bytes < f->least.bytes) f->least = t;
    if (t.bytes > lower_spm(f->L, true)) return;
    keep_better(&f->best, &t);
    bool keys = t.heads || (a->k.chip && a->v.chip) || (t.tm >= a->m && t.tg >= a->g);
    if (keys && (t.whole_mask || !shared_mask(a))) keep_better(&f->once, &t);
}

static bool fits_psum(const struct lower *L, const struct attn *a, const struct attn_tile *t) {
    struct attn_streams s;
    int64_t rows = t->tb * t->tg * t->tm;
    s.score_row = lower_ceil(t->tn, L->hw->mxu_cols) * L->hw->mxu_cols;
    s.out_row = lower_ceil(t->tv, L->hw->mxu_cols) * L->hw->mxu_cols;
    s.parts = t->split ? lower_ceil(t->tn, L->hw->mxu_rows) : 1;
    struct attn_mean mean;
    attn_mean_plan(L, a, t, &mean);
    int64_t bytes = rows * 4 * (s.score_row * (t->lead + 1) + s.out_row * s.parts * attn_pair(t));
    return bytes + attn_mean_psum_bytes(&mean) <= hw_psum_bytes(L->hw);
}

// Ways to hold keys and mask for tiles that are settled otherwise.
static void holdings(struct search *f, struct attn_tile t) {
    const struct attn *a = f->a;
    struct attn_streams s;
    attn_streams_init(f->L, a, &t, &s);
    struct price rows = price_rows(f->L, a, &t, &s);
    int most = a->s > LONGEST ? 0 : f->L->slots, least = a->mean && !a->v.chip ? 1 : 0;
    for (t.heads = most; t.heads >= least; t.heads--)
        for (int whole = shared_mask(a) ? 1 : 0; whole >= 0; whole--) {
            t.whole_mask = whole;
            consider(f, &rows, t);
        }
}

// Columns of the result at once: as many as fit beside the scores.
static void columns(struct search *f, struct attn_tile t) {
    int64_t cols = f->L->hw->mxu_cols;
    t.tv = f->a->dv;
    while (!fits_psum(f->L, f->a, &t)) {
        if (t.tv <= cols) return;
        t.tv = lower_ceil(t.tv / 2, cols) * cols;
    }
    holdings(f, t);
}

static void tiles(struct search *f, struct attn_tile t) {
    int64_t tn[CHOICES], block = f->L->hw->mxu_rows;
    int count = key_tiles(f->L, f->a, t.tm, tn);
    for (int i = 0; i < count; i++)
        for (t.lead = f->L->slots > 1 ? 2 : 0; t.lead >= 0; t.lead--)
            for (int split = 0; split < 2; split++) {
                t.tn = tn[i];
                t.split = split;
                if (split && (i > 0 || f->a->mean || t.tn <= block || t.tg * t.tm > block ||
                              attn_streaming(f->a, &t)))
                    continue;
                columns(f, t);
            }
}

npu_status attn_choose(const struct lower *L, const struct attn *a, struct attn_tile *out) {
    struct search f = {.L = L, .a = a};
    int64_t tm[CHOICES], last = a->batch[a->nb - 1];
    int64_t psum_rows = hw_psum_bytes(L->hw) / hw_psum_row_bytes(L->hw);
    int nm = halvings(a->m, psum_rows, tm);
    for (int i = 0; i < nm; i++)
        for (int64_t tg = 1; tg <= a->g; tg = tg < a->g && 2 * tg > a->g ? a->g : 2 * tg) {
            if (tg > 1 && tm[i] < a->m) break;
            for (int64_t tb = 1; tb <= last; tb = tb < last && 2 * tb > last ? last : 2 * tb) {
                if (tb > 1 && (tg < a->g || tm[i] < a->m)) break;
                tiles(&f, (struct attn_tile){.tb = tb, .tg = tg, .tm = tm[i]});
            }
        }
    NPU_ASSERT(f.least.tm);
    if (f.best.tm) {
        bool once = f.once.tm && f.once.score <= ONCE * f.best.score;
        *out = once ? f.once : f.best;
        return NULL;
    }
    struct attn_streams s;
    attn_streams_init(L, a, &f.least, &s);
    const char *names[6] = {"queries", "keys",   "values",
                            "mask",    "result", "probabilities and sums"};
    int64_t bytes[6] = {lower_stream_bytes(&s.q), lower_stream_bytes(&s.k),
                        lower_stream_bytes(&s.v), lower_stream_bytes(&s.mask),
                        lower_stream_bytes(&s.out)};
    bytes[5] = f.least.bytes;
    for (int i = 0; i < 5; i++)
        bytes[5] -= bytes[i];
    return lower_no_fit(L, 6, names, bytes);
}
