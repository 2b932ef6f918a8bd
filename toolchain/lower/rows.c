// SPDX-License-Identifier: Apache-2.0
// Softmax of rows. A row is one dimension, any strides.
//
//   m = max x; s = sum exp(x - m); exp(x - m) / s     (log: x - m - log s)
//
// Passes over the row with statistics per row between them, in f32. Rows that fit stay in the
// scratchpad over all passes; longer ones are loaded in chunks, once per pass.
#include "isa/timing.h"
#include "toolchain/lower/internal.h"

#include <string.h>

struct rows {
    bool log; // the logarithm of the result
    int rank, inner;
    int64_t size[LOWER_DIMS];
    struct lower_view x, out;
};
struct streams {
    struct lower_stream x, out;
    int64_t stat_bytes, wide_bytes;
};
struct pricing {
    const struct lower *L;
    const struct rows *r;
};
struct run {
    struct lower *L;
    const struct rows *r;
    struct streams s;
    const int64_t *tile;
    struct lower_view stat[2], wide;
};

static void streams_init(const struct lower *L, const struct rows *r, const int64_t *tile,
                         struct streams *s) {
    memset(s, 0, sizeof *s);
    lower_stream_init(&s->x, "x", &r->x, (struct lower_grid){r->rank, r->size, tile}, L->slots,
                      false);
    lower_stream_init(&s->out, "out", &r->out, (struct lower_grid){r->rank, r->size, tile},
                      L->slots, false);
    lower_stream_spread(L, &s->x, r->rank - 1);
    lower_stream_spread(L, &s->out, r->rank - 1);
    int64_t strides[LOWER_DIMS];
    s->stat_bytes = lower_ceil(lower_stat_strides(r->rank, r->inner, tile, strides) * 4, 64) * 64;
    // exp(x - m) of a tile, unrounded.
    if (!r->log && lower_whole_rows(r->rank, r->inner, r->size, tile))
        s->wide_bytes = lower_ceil(lower_elems(r->rank, tile) * 4, 64) * 64;
}

static void price(void *ctx, struct lower_found *t) {
    const struct lower *L = ((struct pricing *)ctx)->L;
    const struct rows *r = ((struct pricing *)ctx)->r;
    struct streams s;
    streams_init(L, r, t->tile, &s);
    int kept = r->rank - r->inner;
    double nk = 1, nr = 1, passes = lower_whole_rows(r->rank, r->inner, r->size, t->tile) ? 1 : 3;
    for (int d = 0; d < r->rank; d++)
        *(d < kept ? &nk : &nr) *= (double)lower_ceil(r->size[d], t->tile[d]);
    t->bytes =
        lower_stream_bytes(&s.x) + lower_stream_bytes(&s.out) + 2 * s.stat_bytes + s.wide_bytes;
    struct lower_step step = {0};
    step.dma_cycles = passes * lower_dma_cycles(L, &s.x.src, r->rank, s.x.block) +
                      lower_dma_cycles(L, &s.out.src, r->rank, s.out.block);
    step.dma_bytes = passes * lower_dma_bytes(L, &s.x.src, r->rank, s.x.block) +
                     lower_dma_bytes(L, &s.out.src, r->rank, s.out.block);
    int64_t rows = lower_elems(kept, t->tile), row = lower_elems(r->inner, t->tile + kept);
    struct isa_vec_shape reduce = {.elems = rows * row, .steps = 1, .rows = rows, .row = row};
    struct isa_vec_shape map = {
        .elems = rows * row, .steps = 1, .special = true, .rows = rows, .row = row};
    struct isa_vec_shape small = {.elems = rows, .steps = 1, .special = true};
    step.vec_cycles = 2 * (double)isa_time_vec(L->hw, &reduce).issue_cycles +
                      2 * (double)isa_time_vec(L->hw, &map).issue_cycles +
                      2 * (double)isa_time_vec(L->hw, &small).issue_cycles +
                      6 * (double)(L->hw->vec_start + L->hw->vec_latency);
    step.spm_bytes = t->bytes;
    t->cycles = lower_steps_cycles(L, nk * nr, &step);
}

static struct isa_chain chain_of(int n, const struct isa_stage *st) {
    struct isa_chain c;
    memset(&c, 0, sizeof c);
    memcpy(c.st, st, (size_t)n * sizeof *st);
    return c;
}

// One value per row: stat[to] = chain(stat[from]).
static void per_row(struct run *u, const int64_t *size, int from, int to,
                    const struct isa_chain *c) {
    const struct lower_view *in[3] = {&u->stat[from], NULL, NULL};
    lower_map(u->L, u->r->rank - u->r->inner, size, c, in, &u->stat[to]);
}

// A reduction pass over the row's chunks: stat[to] = red of chain(x, stat[0]).
static void pass(struct run *u, int64_t *at, int64_t *size, enum isa_red red,
                 const struct isa_chain *c, bool with_stat, int to) {
    const struct rows *r = u->r;
    int kept = r->rank - r->inner;
    bool first = true;
    do {
        for (int d = kept; d < r->rank; d++)
            size[d] = lower_min(u->tile[d], r->size[d] - at[d]);
        if (!first) tile_step(u->L->p);
        struct lower_view x = lower_stream_fetch(u->L, &u->s.x, at, size);
        const struct lower_view *in[3] = {&x, with_stat ? &u->stat[0] : NULL, NULL};
        struct lower_red how = {red, !first, r->inner, c};
        lower_reduce_block(u->L, &how, r->rank, size, in, &u->stat[to]);
        first = false;
    } while (lower_next(r->inner, r->size + kept, u->tile + kept, at + kept));
}

static void softmax_chunk(struct run *u, const int64_t *size, const struct lower_view *x,
                          struct lower_view *out) {
    const struct lower_view *in[3] = {x, &u->stat[0], &u->stat[1]};
    struct isa_chain soft =
        chain_of(3, (struct isa_stage[]){{.op = ISA_VOP_SUB, .a = ISA_SRC_IN1},
                                         {.op = ISA_VOP_EXP},
                                         {.op = ISA_VOP_DIV, .a = ISA_SRC_IN2}});
    struct isa_chain log = chain_of(2, (struct isa_stage[]){{.op = ISA_VOP_SUB, .a = ISA_SRC_IN1},
                                                            {.op = ISA_VOP_SUB, .a = ISA_SRC_IN2}});
    lower_map(u->L, u->r->rank, size, u->r->log ? &log : &soft, in, out);
}

// Statistics of a tile of rows; a softmax whose rows fit leaves exp(x - m) in u->wide.
static void statistics(struct run *u, int64_t *at, int64_t *size) {
    const struct rows *r = u->r;
    struct isa_chain exp = chain_of(2, (struct isa_stage[]){{.op = ISA_VOP_SUB, .a = ISA_SRC_IN1},
                                                            {.op = ISA_VOP_EXP}});
    struct isa_chain log = chain_of(1, (struct isa_stage[]){{.op = ISA_VOP_LOG}});
    pass(u, at, size, ISA_RED_MAX, NULL, false, 0);
    if (u->wide.buf >= 0) {
        struct lower_view x = lower_stream_fetch(u->L, &u->s.x, at, size);
        const struct lower_view *in[3] = {&x, &u->stat[0], NULL};
        struct lower_red sum = {ISA_RED_SUM, false, r->inner, &exp};
        lower_map_reduce(u->L, &sum, r->rank, size, in, &u->wide, &u->stat[1]);
    } else {
        pass(u, at, size, ISA_RED_SUM, &exp, true, 1);
    }
    if (r->log) per_row(u, size, 1, 1, &log);
}

static void rows_tile(struct run *u, int64_t *at) {
    const struct rows *r = u->r;
    int kept = r->rank - r->inner;
    int64_t size[LOWER_DIMS];
    for (int d = 0; d < r->rank; d++)
        size[d] = lower_min(u->tile[d], r->size[d] - at[d]);
    tile_step(u->L->p);
    statistics(u, at, size);
    bool first = true;
    do {
        for (int d = kept; d < r->rank; d++)
            size[d] = lower_min(u->tile[d], r->size[d] - at[d]);
        if (!first) tile_step(u->L->p);
        first = false;
        struct lower_view out = lower_sink_tile(&u->s.out, at);
        if (u->wide.buf >= 0) {
            struct isa_chain div =
                chain_of(1, (struct isa_stage[]){{.op = ISA_VOP_DIV, .a = ISA_SRC_IN1}});
            lower_map(u->L, r->rank, size, &div,
                      (const struct lower_view *[]){&u->wide, &u->stat[1], NULL}, &out);
        } else {
            struct lower_view x = lower_stream_fetch(u->L, &u->s.x, at, size);
            softmax_chunk(u, size, &x, &out);
        }
        lower_sink_store(u->L, &u->s.out, &out, at, size);
    } while (lower_next(r->inner, r->size + kept, u->tile + kept, at + kept));
}

static npu_status run(struct lower *L, struct rows *r) {
    struct pricing pricing = {L, r};
    struct run u = {.L = L, .r = r};
    int kept = r->rank - r->inner;
    int64_t from[LOWER_DIMS];
    bool longest_fits = true;
    for (int d = 0; d < r->rank; d++)
        from[d] = d < kept ? 1 : r->size[d];
    for (int d = kept; d < r->rank; d++)
        longest_fits = longest_fits && r->size[d] <= 65536;
    struct lower_climb climb = {
        .rank = r->rank, .size = r->size, .from = from, .price = price, .ctx = &pricing};
    struct lower_found t = lower_climb_run(L, &climb);
    if (t.bytes > lower_spm(L, true) || !longest_fits) {
        climb.from = NULL;
        t = lower_climb_run(L, &climb);
    }
    streams_init(L, r, t.tile, &u.s);
    const char *names[4] = {"input", "result", "statistics", "intermediate"};
    int64_t bytes[4] = {lower_stream_bytes(&u.s.x), lower_stream_bytes(&u.s.out),
                        2 * u.s.stat_bytes, u.s.wide_bytes};
    if (t.bytes > lower_spm(L, true)) return lower_no_fit(L, 4, names, bytes);
    L->kernel->estimate_cycles += t.cycles;
    L->kernel->vector_elems += 4 * lower_elems(r->rank, r->size);
    lower_stream_open(L, &u.s.x);
    lower_stream_open(L, &u.s.out);
    u.tile = t.tile;
    for (int i = 0; i < 2; i++) {
        u.stat[i] =
            (struct lower_view){.buf = tile_add_spm(L->p, i ? "stat1" : "stat0", u.s.stat_bytes, 1),
                                .dtype = ISA_F32};
        lower_stat_strides(r->rank, r->inner, t.tile, u.stat[i].stride);
    }
    u.wide =
        (struct lower_view){.buf =
                                u.s.wide_bytes ? tile_add_spm(L->p, "wide", u.s.wide_bytes, 1) : -1,
                            .dtype = ISA_F32};
    int64_t at[LOWER_DIMS] = {0}, n = 1;
    for (int d = r->rank - 1; d >= 0; d--) {
        u.wide.stride[d] = n;
        n *= t.tile[d];
    }
    do
        rows_tile(&u, at);
    while (lower_next(kept, r->size, t.tile, at));
    return NULL;
}

npu_status lower_softmax(struct lower *L, const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    int axis = (int)graph_int(n, GRAPH_ATTR_AXIS, x->rank - 1);
    bool marked[LOWER_DIMS] = {false};
    struct rows r = {.log = graph_int(n, GRAPH_ATTR_LOG, 0) != 0, .rank = x->rank};
    lower_kernel(L, n, "softmax_rows");
    memcpy(r.size, x->dims, sizeof x->dims);
    r.x = L->place[x->id];
    r.out = L->place[n->outputs[0]->id];
    marked[axis] = true;
    struct lower_view *views[] = {&r.x, &r.out};
    r.rank = lower_group(r.rank, r.size, marked, 2, views, &r.inner);
    return run(L, &r);
}
