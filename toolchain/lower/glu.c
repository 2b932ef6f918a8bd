// SPDX-License-Identifier: Apache-2.0
// Gated products, act(x W0 + b0) * (x W1 + b1), and whole gated MLPs, which multiply the result by
// a third matrix.
//
// A gated product is one kernel: the columns of both products stand side by side in each tile of
// the packed weights, so that one MM leaves both in PSUM, and neither is ever stored (matmul.c).
//
// In an MLP the gated intermediate stays in the scratchpad: all rows of it when there is room, else
// blocks of rows, each of which runs through both products, the weights streaming in for every
// block. Where it is cheaper by the cost model it goes to DRAM, and each product is a kernel of its
// own. Both products are those of matmul.c.
#include "toolchain/graph/act.h"
#include "toolchain/lower/matmul.h"
#include "toolchain/lower/mm_plan.h"

#include <string.h>

// Strides of a [K, N] matrix, or of its transpose [N, K], over (k, n); no batch.
static void matrix(struct lower_mm *mm, const struct graph_value *w, bool turned) {
    int nb = mm->nbatch;
    mm->data = w->data;
    mm->data_dtype = graph_data_dtype(w);
    mm->data_name = w->name;
    mm->b = (struct lower_view){.buf = -1, .dtype = w->dtype};
    mm->b.stride[nb] = turned ? 1 : w->dims[1];
    mm->b.stride[nb + 1] = turned ? w->dims[1] : 1;
}

static npu_status constant(const struct graph_node *n, int input) {
    if (n->inputs[input]->data) return NULL;
    return npu_fail(UNSUPPORTED, "node '%s' (%s): weights '%s' must be a constant", n->name,
                    graph_ops[n->op].text, n->inputs[input]->name);
}

// Dimensions of x before the last as batch dimensions but for the last of them, which is m.
static void rows_of(struct lower_mm *mm, const struct graph_value *x) {
    mm->nbatch = x->rank > 2 ? x->rank - 2 : 0;
    for (int d = 0; d < mm->nbatch; d++)
        mm->batch[d] = x->dims[d];
    mm->m = x->rank > 1 ? x->dims[x->rank - 2] : 1;
}

// The place of a value of x's rows, its last dimension of any size.
static struct lower_view rows_view(const struct lower *L, const struct graph_value *v) {
    struct lower_view p = L->place[v->id];
    if (v->rank == 1) {
        p.stride[1] = p.stride[0];
        p.stride[0] = 0;
    }
    return p;
}

// Inputs of the gated product; *used: their number.
static npu_status gated(const struct lower *L, const struct graph_node *n, struct lower_mm *mm,
                        int *used) {
    const struct graph_value *x = n->inputs[0];
    int64_t halves = graph_int(n, GRAPH_ATTR_HALVES, 0);
    bool turned = graph_int(n, GRAPH_ATTR_TRANS_B, 0) != 0;
    int weights = halves ? 1 : 2;
    for (int i = 1; i <= weights; i++)
        NPU_TRY(constant(n, i));
    memset(mm, 0, sizeof *mm);
    rows_of(mm, x);
    mm->a = rows_view(L, x);
    mm->k = x->dims[x->rank - 1];
    matrix(mm, n->inputs[1], turned);
    mm->n = n->inputs[1]->dims[turned ? 0 : 1] / (halves ? 2 : 1);
    const struct graph_value *second = n->inputs[weights];
    mm->gate = (struct lower_gate){.on = true,
                                   .data = second->data,
                                   .data_dtype = graph_data_dtype(second)};
    mm->gate.act = graph_act_chain(graph_act_parse(graph_word(n, GRAPH_ATTR_ACT, "identity")));
    if (halves) mm->gate.at[halves == 1] = mm->n * mm->b.stride[mm->nbatch + 1];
    *used = 1 + weights;
    if (!graph_int(n, GRAPH_ATTR_BIASED, 0)) return NULL;
    for (int i = 0; i < 2; i++) {
        const struct graph_value *b = n->inputs[1 + weights + (halves ? 0 : i)];
        struct lower_view *v = &mm->e.in[1 + i];
        mm->e.has[1 + i] = true;
        *v = L->place[b->id];
        int64_t step = v->stride[0];
        memset(v->stride, 0, sizeof v->stride);
        v->stride[mm->nbatch + 1] = mm->n > 1 ? step : 0;
        if (halves && (halves == 1) == (i == 1))
            v->offset += mm->n * step * lower_dtype_bytes(v->dtype);
    }
    *used += weights;
    return NULL;
}

npu_status lower_glu(struct lower *L, const struct graph_node *n) {
    struct lower_mm mm;
    int used;
    NPU_TRY(gated(L, n, &mm, &used));
    int act = graph_act_parse(graph_word(n, GRAPH_ATTR_ACT, "identity"));
    lower_kernel(L, n, arena_printf(L->a, "%s_mm", graph_acts[act].glu));
    mm.out = rows_view(L, n->outputs[0]);
    return lower_mm_run(L, &mm);
}

// ---- the whole MLP ---------------------------------------------------------------------------

struct mlp {
    struct lower_mm up, down;
    int64_t rows, inner; // of the intermediate
    enum isa_dtype dtype;
};

// Both products for a block of rows, and what they cost.
struct split {
    int64_t rows; // of a block
    struct mm_tile up, down;
    double cycles, score; // score: as that of mm_tile
};

static int64_t inner_bytes(const struct mlp *p, int64_t rows) {
    return lower_ceil(rows * p->inner * lower_dtype_bytes(p->dtype), 64) * 64;
}

// The intermediate of a block as the first product's result and the second's operand.
static void set_inner(struct mlp *p, const struct lower_view *at) {
    struct lower_view v = *at;
    int nb = p->up.nbatch;
    int64_t step = p->inner;
    memset(v.stride, 0, sizeof v.stride);
    v.stride[nb + 1] = p->inner > 1 ? 1 : 0;
    if (nb == 0) v.stride[0] = step;
    if (nb > 0) {
        v.stride[nb] = step;
        step *= p->up.m;
        for (int d = nb - 1; d >= 0; d--) {
            v.stride[d] = step;
            step *= p->up.batch[d];
        }
    }
    p->up.out = p->down.a = v;
}

// Prices a split; false when it does not fit. The buffers of both products are open all the time:
// each may take that share of what the intermediate leaves, in percent.
static bool price(const struct lower *given, const struct mlp *whole, int share, struct split *s) {
    struct lower L = *given;
    struct mlp p = *whole;
    struct lower_view at = {.chip = true, .buf = -1, .dtype = p.dtype};
    L.resident_bytes += inner_bytes(&p, s->rows * (whole->rows / p.up.m));
    int64_t left = L.hw->spm_bytes - L.resident_bytes;
    if (left < 1024) return false;
    p.up.m = p.down.m = s->rows;
    set_inner(&p, &at);
    L.resident_bytes = L.hw->spm_bytes - left * share / 100;
    L.opt.spm_percent = 100;
    npu_status st = mm_choose(&L, &p.up, &s->up);
    if (!st) st = mm_choose(&L, &p.down, &s->down);
    bool fits = !st;
    npu_status_free(st);
    double blocks = (double)lower_ceil(whole->up.m, s->rows);
    s->cycles = fits ? blocks * (s->up.cycles + s->down.cycles) : 0;
    s->score = fits ? blocks * (s->up.score + s->down.score) : 0;
    return fits;
}

// The cheapest share; smaller ones leave more to what comes before and behind.
static bool cheapest(const struct lower *L, const struct mlp *p, struct split *s) {
    static const int shares[] = {25, 35, 50};
    bool any = false;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        struct split tried = *s;
        if (!price(L, p, shares[i], &tried)) continue;
        if (any && tried.score > 0.99 * s->score) continue;
        *s = tried;
        any = true;
    }
    return any;
}

static bool choose(const struct lower *L, const struct mlp *p, struct split *best) {
    bool any = false;
    for (int64_t blocks = 1; blocks <= p->up.m && blocks <= 64; blocks *= 2) {
        struct split s = {.rows = lower_ceil(p->up.m, blocks)};
        if (blocks > 1 && p->up.nbatch) break;
        if (!cheapest(L, p, &s) || (any && s.score > 0.99 * best->score)) continue;
        *best = s;
        any = true;
    }
    return any;
}

static void run_blocks(struct lower *L, const struct mlp *whole, const struct split *s) {
    struct mlp p = *whole;
    int64_t bytes = inner_bytes(&p, s->rows * (p.rows / p.up.m));
    struct lower_view at = {.chip = true,
                            .buf = tile_add_spm(L->p, "gated", bytes, 1),
                            .dtype = p.dtype};
    p.up.m = p.down.m = s->rows;
    set_inner(&p, &at);
    struct mm_work *up = mm_open(L, &p.up, &s->up), *down = mm_open(L, &p.down, &s->down);
    mm_psum(L, up, down);
    for (int64_t row = 0; row < whole->up.m; row += s->rows) {
        int64_t rows = lower_min(s->rows, whole->up.m - row);
        mm_block(up, rows, row, 2, down);
        mm_block(down, rows, row, 1, row + rows < whole->up.m ? up : NULL);
    }
    L->kernel->estimate_cycles += s->cycles;
}

// Both products of one row on the vector engine, where that is faster. false: not done.
static bool run_row(struct lower *L, const struct mlp *given, double cycles) {
    struct mlp p = *given;
    struct matvec up, down;
    struct lower_view at = {.chip = true, .buf = -1, .dtype = p.dtype};
    set_inner(&p, &at);
    if (!matvec_choose(L, &p.up, &up) || !matvec_choose(L, &p.down, &down)) return false;
    int64_t bytes = inner_bytes(&p, 1);
    if (up.cycles + down.cycles >= MATVEC_GAIN * cycles ||
        up.bytes + down.bytes + bytes > lower_spm(L, true))
        return false;
    at.buf = tile_add_spm(L->p, "gated", bytes, 1);
    set_inner(&p, &at);
    matvec_run(L, &p.up, &up);
    matvec_run(L, &p.down, &down);
    return true;
}

// As two kernels with the intermediate in DRAM, each with the whole scratchpad for its tiles, where
// nothing else fits or that is clearly cheaper. *done: it was.
static npu_status run_apart(struct lower *L, const struct graph_node *n, const struct mlp *given,
                            const struct split *fused, bool *done) {
    struct mlp p = *given;
    struct lower_view at = {.buf = -1, .dtype = p.dtype};
    struct mm_tile tile[2];
    set_inner(&p, &at);
    npu_status st = mm_choose(L, &p.up, &tile[0]);
    if (!st) st = mm_choose(L, &p.down, &tile[1]);
    *done = !st && (!fused || tile[0].score + tile[1].score < 0.97 * fused->score);
    if (!fused) NPU_TRY(st);
    npu_status_free(fused ? st : NULL);
    if (!*done) return NULL;
    at.buf = tile_add_dram(L->p, "gated", TILE_SCRATCH, inner_bytes(&p, p.rows), NULL, NULL);
    set_inner(&p, &at);
    struct lower_mm *mm[2] = {&p.up, &p.down};
    for (int i = 0; i < 2; i++) {
        if (i) L->kernel = tile_kernel_begin(L->p, n->name, "", "mm_ws", n->origins, n->norigin);
        struct mm_work *w = mm_open(L, mm[i], &tile[i]);
        mm_psum(L, w, NULL);
        mm_block(w, mm[i]->m, 0, 0, NULL);
        L->kernel->estimate_cycles += tile[i].cycles;
    }
    return NULL;
}

npu_status lower_glu_mlp(struct lower *L, const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    bool turned = graph_int(n, GRAPH_ATTR_TRANS_DOWN, 0) != 0;
    int act = graph_act_parse(graph_word(n, GRAPH_ATTR_ACT, "identity")), used;
    struct mlp p = {.dtype = x->dtype};
    NPU_TRY(gated(L, n, &p.up, &used));
    NPU_TRY(constant(n, used));
    const struct graph_value *w = n->inputs[used];
    lower_kernel(L, n, arena_printf(L->a, "%s_fused", graph_acts[act].glu));
    rows_of(&p.down, x);
    matrix(&p.down, w, turned);
    p.inner = p.down.k = p.up.n;
    p.down.n = w->dims[turned ? 0 : 1];
    p.down.out = rows_view(L, y);
    p.down.e = lower_epilogue_of(L, n);
    for (int i = 1; i < 3 && y->rank == 1; i++) {
        p.down.e.in[i].stride[1] = p.down.e.in[i].stride[0];
        p.down.e.in[i].stride[0] = 0;
    }
    p.rows = graph_value_elems(x) / p.up.k;
    struct lower_view anywhere = {.buf = -1, .dtype = p.dtype};
    set_inner(&p, &anywhere);
    struct mlp apart = p;
    mm_merge(&p.up);
    mm_merge(&p.down);
    if (p.up.nbatch != p.down.nbatch) p = apart; // a block is the same rows in both products
    struct split best;
    bool fits = choose(L, &p, &best), done;
    NPU_TRY(run_apart(L, n, &p, fits ? &best : NULL, &done));
    if (done) return NULL;
    if (p.rows > 1 || !run_row(L, &p, best.cycles)) run_blocks(L, &p, &best);
    return NULL;
}
