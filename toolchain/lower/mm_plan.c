// SPDX-License-Identifier: Apache-2.0
// Tile sizes of a matrix product: every combination of a short list per dimension is priced, the
// cheapest that fits wins.
#include "toolchain/lower/mm_plan.h"
#include "isa/timing.h"

#include <string.h>

#define CHOICES 12
#define PSUM_SLOTS 4

// Weights that pass through few slots keep the DMA queues from running ahead into the next kernels.
#define STREAMING 1.06

static int64_t psum_row_elems(const struct lower *L, int64_t tn) {
    return lower_ceil(tn, L->hw->mxu_cols) * L->hw->mxu_cols;
}

int64_t mm_columns(const struct lower_mm *mm, int64_t tn) {
    return mm->gate.on ? 2 * tn : tn;
}

struct lower_view mm_packed(const struct lower_mm *mm, int64_t tn) {
    struct lower_view v = mm->b;
    int nb = mm->nbatch;
    int64_t tiles = lower_ceil(mm->n, tn), columns = mm_columns(mm, tn),
            step = tiles * mm->k * columns;
    for (int d = nb - 1; d >= 0; d--) {
        if (!mm->b.stride[d]) continue;
        v.stride[d] = step;
        step *= mm->batch[d];
    }
    v.stride[nb] = tiles > 1 ? mm->k * columns : 0;
    v.stride[nb + 1] = columns;
    v.stride[nb + 2] = 1;
    return v;
}

void mm_streams_init(const struct lower *L, const struct lower_mm *mm, const struct mm_tile *t,
                     struct mm_streams *s) {
    int nb = mm->nbatch;
    int64_t full[LOWER_DIMS], block[LOWER_DIMS];
    memset(s, 0, sizeof *s);
    for (int d = 0; d < nb; d++) {
        full[d] = mm->batch[d];
        block[d] = d == nb - 1 ? t->tb : 1;
    }
    full[nb] = mm->m, block[nb] = t->tm;
    full[nb + 1] = mm->k, block[nb + 1] = t->tk;
    lower_stream_init(&s->a, "a", &mm->a, (struct lower_grid){nb + 2, full, block}, L->slots,
                      t->whole_a);
    if (s->a.pack[nb + 1] != 1) lower_stream_spread(L, &s->a, nb + 1);
    if (mm->data) {
        struct lower_view b = mm_packed(mm, t->tn);
        int64_t tiles = lower_ceil(mm->n, t->tn), columns = mm_columns(mm, t->tn);
        full[nb] = tiles, block[nb] = 1;
        full[nb + 1] = mm->k, block[nb + 1] = t->tk;
        full[nb + 2] = columns, block[nb + 2] = columns;
        lower_stream_init(&s->b, "b", &b, (struct lower_grid){nb + 3, full, block}, L->slots,
                          t->whole_b);
    } else {
        full[nb] = mm->k, block[nb] = t->tk;
        full[nb + 1] = mm->n, block[nb + 1] = t->tn;
        lower_stream_init(&s->b, "b", &mm->b, (struct lower_grid){nb + 2, full, block}, L->slots,
                          t->whole_b);
    }
    full[nb] = mm->m, block[nb] = t->tm;
    full[nb + 1] = mm->n, block[nb + 1] = t->tn;
    lower_stream_init(&s->out, "out", &mm->out, (struct lower_grid){nb + 2, full, block}, L->slots,
                      false);
    static const char *const names[3] = {"", "in1", "in2"};
    for (int i = 1; i < 3; i++) {
        if (!mm->e.has[i]) continue;
        const struct lower_view *v = &mm->e.in[i];
        int64_t bytes = lower_dtype_bytes(v->dtype);
        for (int d = 0; d < nb + 2; d++)
            if (v->stride[d]) bytes *= full[d];
        lower_stream_init(&s->extra[i], names[i], v, (struct lower_grid){nb + 2, full, block},
                          L->slots, bytes <= lower_min(16384, lower_spm(L, true) / 16));
    }
}

// Cycles of the vector engine for one tile.
static double tile_vec_cycles(const struct lower *L, const struct lower_mm *mm,
                              const struct mm_tile *t) {
    int64_t elems = (mm->nbatch ? t->tb : 1) * t->tm * t->tn;
    struct isa_vec_shape vec = {.elems = elems, .steps = 1, .psum_elems = elems};
    if (!mm->gate.on) {
        for (int i = 1; i < 3; i++)
            if (mm->e.has[i]) vec.in[i] = (struct isa_vec_port){elems, L->hw->vec_lanes};
        vec.stages = lower_chain_stages(&mm->e.chain, &vec.special);
        return (double)isa_time_vec(L->hw, &vec).issue_cycles;
    }
    struct mm_gated g = mm_gated_chains(mm);
    double cycles = 0;
    if (g.biased[1]) {
        vec.stages = 1;
        vec.psum_elems = 2 * elems;
        vec.in[1] = (struct isa_vec_port){t->tn, L->hw->vec_lanes};
        cycles += (double)(isa_time_vec(L->hw, &vec).issue_cycles + L->hw->vec_start);
    }
    vec.psum_elems = 2 * elems;
    vec.stages = lower_chain_stages(&g.all, &vec.special);
    return cycles + (double)isa_time_vec(L->hw, &vec).issue_cycles;
}

static void evaluate(const struct lower *L, const struct lower_mm *mm, struct mm_tile *t) {
    struct mm_streams s;
    mm_streams_init(L, mm, t, &s);
    int nb = mm->nbatch;
    int64_t columns = mm_columns(mm, t->tn);
    t->bytes = lower_stream_bytes(&s.a) + lower_stream_bytes(&s.b) + lower_stream_bytes(&s.out) +
               lower_stream_bytes(&s.extra[1]) + lower_stream_bytes(&s.extra[2]);
    double mt = (double)lower_ceil(mm->m, t->tm), nt = (double)lower_ceil(mm->n, t->tn),
           kt = (double)lower_ceil(mm->k, t->tk), bt = 1;
    for (int d = 0; d < nb; d++)
        bt *= (double)lower_ceil(mm->batch[d], d == nb - 1 ? t->tb : 1);
    struct lower_step sum = {0};
    double reload_a = t->n_outer || kt > 1 ? nt : 1, reload_b = !t->n_outer || kt > 1 ? mt : 1;
    if (mt * kt == 1) reload_a = 1;
    if (nt * kt == 1) reload_b = 1;
    bool b_batched = false;
    for (int d = 0; d < nb; d++)
        b_batched = b_batched || mm->b.stride[d];
    double bb = b_batched || nt * kt > 1 ? bt : 1;
    lower_stream_cost(L, &s.a, bt * mt * kt * reload_a, true, &sum);
    lower_stream_cost(L, &s.b, bb * nt * kt * reload_b, true, &sum);
    lower_stream_cost(L, &s.out, bt * mt * nt, false, &sum);
    for (int i = 1; i < 3; i++)
        lower_stream_cost(L, &s.extra[i], bt * mt * nt, false, &sum);
    struct isa_mm_shape shape = {.m = t->tm,
                                 .n = columns,
                                 .k = t->tk,
                                 .dtype_a = (int)mm->a.dtype,
                                 .dtype_b = (int)mm->b.dtype,
                                 .transposed_a = mm->k > 1 && s.a.pack[nb + 1] != 1};
    struct isa_cost c = isa_time_mm(L->hw, &shape);
    double tb = nb ? (double)t->tb : 1, steps = bt * mt * nt * kt;
    int bk = mm->data ? nb + 1 : nb;
    double passes = (double)lower_ceil(columns, L->hw->mxu_cols);
    double banks =
        lower_bank_cycles(L, s.a.dtype, 2, (int64_t[]){t->tk, t->tm},
                          (int64_t[]){s.a.pack[nb + 1], s.a.pack[nb]},
                          (double)(t->tk * t->tm) * passes) +
        lower_bank_cycles(L, s.b.dtype, 2, (int64_t[]){columns, t->tk},
                          (int64_t[]){s.b.pack[bk + 1], s.b.pack[bk]}, (double)(t->tk * columns));
    sum.mxu_cycles = steps * tb * ((double)c.issue_cycles > banks ? (double)c.issue_cycles : banks);
    sum.vec_cycles = bt * mt * nt * tile_vec_cycles(L, mm, t);
    struct lower_step step = {sum.dma_cycles / steps,
                              sum.dma_bytes / steps,
                              sum.mxu_cycles / steps,
                              sum.vec_cycles / steps,
                              t->bytes,
                              sum.first_cycles,
                              sum.first_bytes};
    t->cycles = lower_psum_cycles(L, steps, &step, bt * mt * nt,
                                  (double)(c.done_cycles - c.issue_cycles), t->psum_slots);
    t->score = t->cycles * (mm->data && s.b.slots > 1 ? STREAMING : 1);
}

static int splits(int64_t n, int64_t unit, int64_t most, int64_t *out) {
    static const int64_t parts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128};
    int64_t units = lower_ceil(n, unit);
    int count = 0;
    for (int i = 0; i < (int)(sizeof parts / sizeof *parts) && count < CHOICES; i++) {
        if (parts[i] > units) break;
        int64_t t = lower_min(lower_ceil(units, parts[i]) * unit, n);
        if (t <= most && (!count || out[count - 1] != t)) out[count++] = t;
    }
    if (count < CHOICES && (!count || out[count - 1] > unit)) out[count++] = lower_min(unit, n);
    return count;
}

// m: halvings of what PSUM holds, down to one row.
static int rows(int64_t m, int64_t most, int64_t *out) {
    int count = 0;
    int64_t t = lower_min(lower_min(m, most), 65536);
    for (int64_t last = 0; t >= 1 && count < CHOICES; t /= 2) {
        int64_t even = lower_ceil(m, lower_ceil(m, t));
        if (even != last) out[count++] = even;
        last = even;
        if (t == 1) break;
    }
    return count;
}

static void search(const struct lower *L, const struct lower_mm *mm, struct mm_tile *best,
                   struct mm_tile *least) {
    int64_t tn[CHOICES], tk[CHOICES], tm[2 * CHOICES], cols = L->hw->mxu_cols;
    int64_t unit = mm->gate.on ? lower_max(1, cols / 2) : cols;
    int nn = splits(mm->n, unit, mm->gate.on ? 32768 : 65536, tn),
        nk = splits(mm->k, lower_min(L->hw->mxu_rows, mm->k), 65536, tk);
    int64_t last = mm->nbatch ? mm->batch[mm->nbatch - 1] : 1;
    for (int pslots = L->slots > 1 ? PSUM_SLOTS : 1; pslots >= 1; pslots--)
        for (int i = 0; i < nn; i++) {
            int64_t row = psum_row_elems(L, mm_columns(mm, tn[i])) / cols,
                    most = lower_psum_rows(L) / pslots / row;
            if (most < 1) continue;
            int nm = rows(mm->m, most, tm);
            for (int j = 0; j < nm; j++)
                for (int k = 0; k < nk; k++)
                    for (int64_t tb = 1; tb <= last && tb * tm[j] <= most; tb *= 2) {
                        if (tb > 1 && (tm[j] < mm->m || tn[i] < mm->n)) break;
                        for (int mode = 0; mode < 8; mode++) {
                            struct mm_tile t = {.tb = tb,
                                                .tm = tm[j],
                                                .tn = tn[i],
                                                .tk = tk[k],
                                                .n_outer = mode & 1,
                                                .whole_a = mode & 2,
                                                .whole_b = mode & 4,
                                                .psum_slots = pslots};
                            evaluate(L, mm, &t);
                            if (!least->tm || t.bytes < least->bytes) *least = t;
                            if (t.bytes <= lower_spm(L, true) &&
                                (!best->tm || t.score < best->score))
                                *best = t;
                        }
                    }
        }
}

// Everything that prices depend on: sizes, types, how operands lie, what is free.
struct key {
    int kind, slots, nbatch;
    bool constant, gated;
    int64_t spm[2], batch[LOWER_DIMS], m, n, k;
    struct {
        bool there, chip;
        enum isa_dtype dtype;
        int64_t stride[LOWER_DIMS];
    } view[5];
    struct isa_chain chain;
};

static void key_of(const struct lower *L, const struct lower_mm *mm, struct key *key) {
    const struct lower_view *views[] = {&mm->a, &mm->b, &mm->out, &mm->e.in[1], &mm->e.in[2]};
    memset(key, 0, sizeof *key);
    key->kind = ISA_OP_MM;
    key->slots = L->slots;
    key->nbatch = mm->nbatch;
    key->constant = mm->data != NULL;
    key->spm[0] = lower_spm(L, false);
    key->spm[1] = lower_spm(L, true);
    memcpy(key->batch, mm->batch, (size_t)mm->nbatch * sizeof *mm->batch);
    key->m = mm->m;
    key->n = mm->n;
    key->k = mm->k;
    for (int i = 0; i < 5; i++) {
        if (i >= 3 && !mm->e.has[i - 2]) continue;
        key->view[i].there = true;
        key->view[i].chip = views[i]->chip;
        key->view[i].dtype = views[i]->dtype;
        memcpy(key->view[i].stride, views[i]->stride, (size_t)(mm->nbatch + 2) * sizeof(int64_t));
    }
    key->gated = mm->gate.on;
    key->chain = mm->gate.on ? mm->gate.act : mm->e.chain;
}

npu_status mm_choose(const struct lower *L, const struct lower_mm *mm, struct mm_tile *out) {
    struct mm_tile best = {0}, least = {0};
    struct key key;
    bool known;
    key_of(L, mm, &key);
    struct mm_tile *memo = lower_memo_at(L, &key, sizeof key, sizeof *memo, &known);
    if (!known) {
        search(L, mm, &best, &least);
        *memo = best;
    }
    if (memo->tm) {
        *out = *memo;
        return NULL;
    }
    if (known) search(L, mm, &best, &least);
    NPU_ASSERT(least.tm);
    struct mm_streams s;
    mm_streams_init(L, mm, &least, &s);
    const char *names[5] = {"A", "B", "result", "operand 1", "operand 2"};
    int64_t bytes[5] = {lower_stream_bytes(&s.a), lower_stream_bytes(&s.b),
                        lower_stream_bytes(&s.out), lower_stream_bytes(&s.extra[1]),
                        lower_stream_bytes(&s.extra[2])};
    return lower_no_fit(L, 5, names, bytes);
}
