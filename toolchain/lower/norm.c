// SPDX-License-Identifier: Apache-2.0
// Kernels that normalise rows: layer, RMS and group normalisation. A row is the normalised
// dimensions, any strides.
//
//   rms     v = sum x^2 / n;                                     x * f * scale + bias
//   layer   mean = sum x / n; v = sum (x - mean)^2 / n;   (x - mean) * f * scale + bias
//   f = rsqrt(max(v + epsilon, floor))
//
// then the node's chain. Statistics are exact sums in f32, one per row. Rows that fit stay in the
// scratchpad over all passes: x - mean is written once, unrounded, by the instruction that sums its
// squares, and what follows starts from it. Longer rows are loaded in chunks, once per pass. The
// last steps are packed into as few instructions as their operands allow (two beside the first).
// Rows whose elements are not neighbours in memory are summed across (reduce_tree.c).
#include "isa/timing.h"
#include "toolchain/lower/internal.h"

#include <string.h>

enum operand { NOTHING, MEAN, FACTOR, SCALE, BIAS, CHAIN1, CHAIN2, OPERANDS };

struct norm {
    bool centred;
    int rank, inner;
    int64_t size[LOWER_DIMS], length;   // elements of a row
    struct lower_view x, out, param[2]; // scale and bias
    bool has[2];
    float epsilon, floor;
    struct lower_epilogue e;
    bool tree;
};

// The instructions after the statistics. The first starts from x or, of whole centred rows, from
// x - mean; the others from what the one before left, in f32.
struct last {
    int n;
    struct {
        struct isa_chain chain;
        int stages;
        enum operand operand[3]; // of IN1, IN2
    } step[5];
};

struct streams {
    struct lower_stream x, out, param[2], extra[3];
    int64_t stat_bytes, wide_bytes, temp_bytes;
};
struct pricing {
    const struct lower *L;
    const struct norm *r;
};
struct run {
    struct lower *L;
    const struct norm *r;
    struct streams s;
    struct last last;
    const int64_t *tile;
    bool whole;
    struct lower_view stat[2], wide, temp;
};

static struct isa_chain chain_of(int n, const struct isa_stage *st) {
    struct isa_chain c;
    memset(&c, 0, sizeof c);
    memcpy(c.st, st, (size_t)n * sizeof *st);
    return c;
}

static void set_imm(struct isa_chain *c, int i, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    c->imm[i] = bits;
}

// ---- the last steps --------------------------------------------------------------------------

static void add_stage(struct last *l, enum isa_vop op, enum operand what) {
    int k = l->n - 1, at = 1;
    while (at < 3 && l->step[k].operand[at] != NOTHING)
        at++;
    if (at == 3) {
        k = l->n++;
        at = 1;
    }
    l->step[k].operand[at] = what;
    l->step[k].chain.st[l->step[k].stages++] =
        (struct isa_stage){.op = op, .a = (int64_t)ISA_SRC_IN0 + at};
}

static int chain_stages(const struct isa_chain *c) {
    int n = 0;
    for (int i = 0; i < ISA_STAGES; i++)
        if (c->st[i].op != ISA_VOP_NOP || c->st[i].save) n = i + 1;
    return n;
}

static bool reads_start(const struct isa_chain *c) {
    for (int i = 0; i < ISA_STAGES; i++)
        if (c->st[i].op != ISA_VOP_NOP && (c->st[i].a == ISA_SRC_IN0 || c->st[i].b == ISA_SRC_IN0))
            return true;
    return c->st[0].op == ISA_VOP_NOP;
}

// The node's chain: behind the last step where it fits there, else a step of its own.
static void add_chain(struct last *l, const struct lower_epilogue *e) {
    int n = chain_stages(&e->chain), k = l->n - 1, used = 1;
    if (!n) return;
    while (used < 3 && l->step[k].operand[used] != NOTHING)
        used++;
    int need = (int)e->has[1] + (int)e->has[2];
    if (reads_start(&e->chain) || used + need > 3 || l->step[k].stages + n > ISA_STAGES) {
        k = l->n++;
        used = 1;
    }
    int64_t to[3] = {ISA_SRC_IN0, 0, 0};
    for (int i = 1; i < 3; i++) {
        if (!e->has[i]) continue;
        l->step[k].operand[used] = i == 1 ? CHAIN1 : CHAIN2;
        to[i] = (int64_t)ISA_SRC_IN0 + used++;
    }
    for (int i = 0; i < n; i++) {
        struct isa_stage st = e->chain.st[i];
        if (st.a == ISA_SRC_IN1 || st.a == ISA_SRC_IN2) st.a = to[st.a - ISA_SRC_IN0];
        if (st.b == ISA_SRC_IN1 || st.b == ISA_SRC_IN2) st.b = to[st.b - ISA_SRC_IN0];
        l->step[k].chain.st[l->step[k].stages++] = st;
    }
    memcpy(l->step[k].chain.imm, e->chain.imm, sizeof e->chain.imm);
}

static struct last last_steps(const struct norm *r, bool whole) {
    struct last l;
    memset(&l, 0, sizeof l);
    l.n = 1;
    if (r->centred && !whole) add_stage(&l, ISA_VOP_SUB, MEAN);
    add_stage(&l, ISA_VOP_MUL, FACTOR);
    if (r->has[0]) add_stage(&l, ISA_VOP_MUL, SCALE);
    if (r->has[1]) add_stage(&l, ISA_VOP_ADD, BIAS);
    add_chain(&l, &r->e);
    return l;
}

// ---- tiles -----------------------------------------------------------------------------------

static void streams_init(const struct lower *L, const struct norm *r, const int64_t *tile,
                         struct streams *s) {
    memset(s, 0, sizeof *s);
    struct lower_grid grid = {r->rank, r->size, tile};
    lower_stream_init(&s->x, "x", &r->x, grid, L->slots, false);
    lower_stream_init(&s->out, "out", &r->out, grid, L->slots, false);
    if (!r->tree) lower_stream_spread(L, &s->x, r->rank - 1);
    if (!r->tree) lower_stream_spread(L, &s->out, r->rank - 1);
    static const char *const names[2] = {"scale", "bias"}, *const extra[3] = {"", "in1", "in2"};
    for (int i = 0; i < 2; i++) {
        if (!r->has[i]) continue;
        int64_t elems = 1;
        for (int d = 0; d < r->rank; d++)
            if (r->param[i].stride[d]) elems *= r->size[d];
        bool whole = elems * lower_dtype_bytes(r->param[i].dtype) <= lower_spm(L, true) / 16;
        lower_stream_init(&s->param[i], names[i], &r->param[i], grid, L->slots, whole);
    }
    for (int i = 1; i < 3; i++)
        if (r->e.has[i])
            lower_stream_init(&s->extra[i], extra[i], &r->e.in[i], grid, L->slots, false);
    int64_t strides[LOWER_DIMS], elems = lower_elems(r->rank, tile);
    bool whole = lower_whole_rows(r->rank, r->inner, r->size, tile);
    s->stat_bytes = lower_ceil(lower_stat_strides(r->rank, r->inner, tile, strides) * 4, 64) * 64;
    if ((r->centred && whole) || last_steps(r, whole).n > 1)
        s->wide_bytes = lower_ceil(elems * 4, 64) * 64;
    if (r->tree) {
        int64_t row = tile[r->rank - 1];
        s->temp_bytes = lower_ceil(elems / row * lower_max(1, row / 2) * 4, 64) * 64;
    }
}

static int64_t all_bytes(const struct streams *s) {
    return lower_stream_bytes(&s->x) + lower_stream_bytes(&s->out) +
           lower_stream_bytes(&s->param[0]) + lower_stream_bytes(&s->param[1]) +
           lower_stream_bytes(&s->extra[1]) + lower_stream_bytes(&s->extra[2]) + 2 * s->stat_bytes +
           s->wide_bytes + s->temp_bytes;
}

static void add_dma(const struct lower *L, const struct norm *r, const struct lower_stream *s,
                    double loads, struct lower_step *step) {
    if (!s->present) return;
    step->dma_cycles += loads * lower_dma_cycles(L, &s->src, r->rank, s->block);
    step->dma_bytes += loads * lower_dma_bytes(L, &s->src, r->rank, s->block);
}

// Cycles of one instruction over a tile with so many operands of the tile's size.
static double tile_cycles(const struct lower *L, const struct norm *r, const int64_t *tile,
                          int inputs, bool reduces) {
    int kept = r->rank - r->inner;
    int64_t rows = lower_elems(kept, tile), row = lower_elems(r->inner, tile + kept);
    struct isa_vec_shape shape = {.elems = rows * row, .steps = 1, .stages = 4};
    if (reduces) shape.rows = rows, shape.row = row;
    for (int i = 0; i < inputs; i++)
        shape.in[i] = (struct isa_vec_port){rows * row, L->hw->vec_lanes};
    return (double)(isa_time_vec(L->hw, &shape).issue_cycles + L->hw->vec_start);
}

static void price(void *ctx, struct lower_found *t) {
    const struct lower *L = ((struct pricing *)ctx)->L;
    const struct norm *r = ((struct pricing *)ctx)->r;
    struct streams s;
    streams_init(L, r, t->tile, &s);
    int kept = r->rank - r->inner;
    bool whole = lower_whole_rows(r->rank, r->inner, r->size, t->tile);
    double nk = 1, nr = 1, passes = whole ? 1 : r->centred ? 3 : 2;
    for (int d = 0; d < r->rank; d++)
        *(d < kept ? &nk : &nr) *= (double)lower_ceil(r->size[d], t->tile[d]);
    t->bytes = all_bytes(&s);
    struct lower_step step = {0};
    add_dma(L, r, &s.x, passes, &step);
    add_dma(L, r, &s.out, 1, &step);
    for (int i = 0; i < 2; i++)
        add_dma(L, r, &s.param[i], s.param[i].whole ? 1 / (nk * nr) : nr > 1 ? 1 : 1 / nk, &step);
    for (int i = 1; i < 3; i++)
        add_dma(L, r, &s.extra[i], 1, &step);
    struct last l = last_steps(r, whole);
    for (int i = 0; i < (r->centred ? 2 : 1); i++)
        step.vec_cycles += tile_cycles(L, r, t->tile, r->tree ? 2 : 1, !r->tree);
    for (int i = 0; i < l.n; i++) {
        int full = 1;
        for (int k = 1; k < 3; k++)
            full += l.step[i].operand[k] == CHAIN1 || l.step[i].operand[k] == CHAIN2;
        step.vec_cycles += tile_cycles(L, r, t->tile, full, false);
    }
    step.vec_cycles += 6.0 * (double)(L->hw->vec_start + L->hw->vec_latency);
    for (int64_t n = t->tile[r->rank - 1]; r->tree && n > 1; n /= 2)
        step.vec_cycles += 2 * (double)(L->hw->vec_start + L->hw->vec_latency);
    step.spm_bytes = t->bytes;
    t->cycles = lower_steps_cycles(L, nk * nr, &step);
}

// ---- instructions ----------------------------------------------------------------------------

// One value per row: stat = chain(stat).
static void per_row(struct run *u, const int64_t *size, int which, const struct isa_chain *c) {
    const struct lower_view *in[3] = {&u->stat[which], NULL, NULL};
    lower_map(u->L, u->r->rank - u->r->inner, size, c, in, &u->stat[which]);
}

static void mean_of(struct run *u, const int64_t *size) {
    struct isa_chain c = chain_of(1, (struct isa_stage[]){{.op = ISA_VOP_DIV, .a = ISA_SRC_IMM0}});
    set_imm(&c, 0, (float)u->r->length);
    per_row(u, size, 0, &c);
}

static void factor_of(struct run *u, const int64_t *size) {
    struct isa_stage st[4] = {{.op = ISA_VOP_DIV, .a = ISA_SRC_IMM0},
                              {.op = ISA_VOP_ADD, .a = ISA_SRC_IMM1}};
    int n = 2;
    if (u->r->floor > 0) st[n++] = (struct isa_stage){.op = ISA_VOP_MAX, .a = ISA_SRC_IMM2};
    st[n++] = (struct isa_stage){.op = ISA_VOP_RSQRT};
    struct isa_chain c = chain_of(n, st);
    set_imm(&c, 0, (float)u->r->length);
    set_imm(&c, 1, u->r->epsilon);
    if (u->r->floor > 0) set_imm(&c, 2, u->r->floor);
    per_row(u, size, 1, &c);
}

static void reduce(struct run *u, const struct lower_red *how, const int64_t *size,
                   const struct lower_view *x, bool centre, int to) {
    const struct lower_view *in[3] = {x, centre ? &u->stat[0] : NULL, NULL};
    if (u->r->tree)
        lower_reduce_tree(u->L, how, u->r->rank, size, x, &u->temp, &u->stat[to]);
    else
        lower_reduce_block(u->L, how, u->r->rank, size, in, &u->stat[to]);
}

// A pass over the row's chunks: stat[to] = red of x, or of x - mean.
static void pass(struct run *u, int64_t *at, int64_t *size, enum isa_red red, bool centre, int to) {
    const struct norm *r = u->r;
    struct isa_chain sub = chain_of(1, (struct isa_stage[]){{.op = ISA_VOP_SUB, .a = ISA_SRC_IN1}});
    int kept = r->rank - r->inner;
    bool first = true;
    do {
        for (int d = kept; d < r->rank; d++)
            size[d] = lower_min(u->tile[d], r->size[d] - at[d]);
        if (!first) tile_step(u->L->p);
        struct lower_view x = lower_stream_fetch(u->L, &u->s.x, at, size);
        struct lower_red how = {red, !first, r->inner, centre ? &sub : NULL};
        if (!u->whole || !centre) {
            reduce(u, &how, size, &x, centre, to);
        } else if (r->tree) {
            lower_map(u->L, r->rank, size, &sub,
                      (const struct lower_view *[]){&x, &u->stat[0], NULL}, &u->wide);
            how.chain = NULL;
            reduce(u, &how, size, &u->wide, false, to);
        } else {
            lower_map_reduce(u->L, &how, r->rank, size,
                             (const struct lower_view *[]){&x, &u->stat[0], NULL}, &u->wide,
                             &u->stat[to]);
        }
        first = false;
    } while (lower_next(r->inner, r->size + kept, u->tile + kept, at + kept));
}

static void finish(struct run *u, const int64_t *at, const int64_t *size,
                   const struct lower_view *x, struct lower_view *out) {
    const struct norm *r = u->r;
    struct lower_view fetched[OPERANDS];
    const struct lower_view *operand[OPERANDS] = {NULL, &u->stat[0], &u->stat[1]};
    for (int i = 0; i < 2; i++) {
        if (!r->has[i]) continue;
        fetched[SCALE + i] = lower_stream_fetch(u->L, &u->s.param[i], at, size);
        operand[SCALE + i] = &fetched[SCALE + i];
    }
    for (int i = 0; i < 2; i++) {
        if (!r->e.has[1 + i]) continue;
        fetched[CHAIN1 + i] = lower_stream_fetch(u->L, &u->s.extra[1 + i], at, size);
        operand[CHAIN1 + i] = &fetched[CHAIN1 + i];
    }
    for (int i = 0; i < u->last.n; i++) {
        const struct lower_view *in[3] = {i || !x ? &u->wide : x,
                                          operand[u->last.step[i].operand[1]],
                                          operand[u->last.step[i].operand[2]]};
        lower_map(u->L, r->rank, size, &u->last.step[i].chain, in,
                  i + 1 < u->last.n ? &u->wide : out);
    }
}

static void rows_tile(struct run *u, int64_t *at) {
    const struct norm *r = u->r;
    int kept = r->rank - r->inner;
    int64_t size[LOWER_DIMS];
    for (int d = 0; d < r->rank; d++)
        size[d] = lower_min(u->tile[d], r->size[d] - at[d]);
    tile_step(u->L->p);
    if (r->centred) {
        pass(u, at, size, ISA_RED_SUM, false, 0);
        mean_of(u, size);
    }
    pass(u, at, size, ISA_RED_SUMSQ, r->centred, 1);
    factor_of(u, size);
    bool first = true;
    do {
        for (int d = kept; d < r->rank; d++)
            size[d] = lower_min(u->tile[d], r->size[d] - at[d]);
        if (!first) tile_step(u->L->p);
        first = false;
        struct lower_view out = lower_sink_tile(&u->s.out, at), x;
        bool from_wide = r->centred && u->whole;
        if (!from_wide) x = lower_stream_fetch(u->L, &u->s.x, at, size);
        finish(u, at, size, from_wide ? NULL : &x, &out);
        lower_sink_store(u->L, &u->s.out, &out, at, size);
    } while (lower_next(r->inner, r->size + kept, u->tile + kept, at + kept));
}

// ---- the kernel ------------------------------------------------------------------------------

static npu_status choose(struct lower *L, const struct norm *r, struct lower_found *t) {
    struct pricing pricing = {L, r};
    int kept = r->rank - r->inner;
    int64_t from[LOWER_DIMS];
    bool longest_fits = true;
    for (int d = 0; d < r->rank; d++)
        from[d] = d < kept ? 1 : r->size[d];
    for (int d = kept; d < r->rank; d++)
        longest_fits = longest_fits && r->size[d] <= 65536;
    struct lower_climb climb = {
        .rank = r->rank, .size = r->size, .from = from, .price = price, .ctx = &pricing};
    *t = lower_climb_run(L, &climb);
    if (t->bytes > lower_spm(L, true) || !longest_fits) {
        climb.from = NULL;
        *t = lower_climb_run(L, &climb);
    }
    if (t->bytes <= lower_spm(L, true)) return NULL;
    struct streams s;
    streams_init(L, r, t->tile, &s);
    const char *names[8] = {"input",     "result",    "scale",        "bias",
                            "operand 1", "operand 2", "intermediate", "statistics"};
    int64_t bytes[8] = {lower_stream_bytes(&s.x),        lower_stream_bytes(&s.out),
                        lower_stream_bytes(&s.param[0]), lower_stream_bytes(&s.param[1]),
                        lower_stream_bytes(&s.extra[1]), lower_stream_bytes(&s.extra[2]),
                        s.wide_bytes + s.temp_bytes,     2 * s.stat_bytes};
    return lower_no_fit(L, 8, names, bytes);
}

static struct lower_view on_chip(struct lower *L, const char *name, int64_t bytes) {
    return (struct lower_view){.buf = bytes ? tile_add_spm(L->p, name, bytes, 1) : -1,
                               .dtype = ISA_F32};
}

static void open_all(struct run *u) {
    struct lower *L = u->L;
    const struct norm *r = u->r;
    int kept = r->rank - r->inner;
    lower_stream_open(L, &u->s.x);
    for (int i = 0; i < 2; i++)
        lower_stream_open(L, &u->s.param[i]);
    for (int i = 1; i < 3; i++)
        lower_stream_open(L, &u->s.extra[i]);
    lower_stream_open(L, &u->s.out);
    u->stat[0] = on_chip(L, "stat0", r->centred ? u->s.stat_bytes : 0);
    u->stat[1] = on_chip(L, "stat1", u->s.stat_bytes);
    for (int i = 0; i < 2; i++)
        lower_stat_strides(r->rank, r->inner, u->tile, u->stat[i].stride);
    u->wide = on_chip(L, "wide", u->s.wide_bytes);
    lower_pack(&r->out, r->rank, u->tile, u->wide.stride);
    u->temp = on_chip(L, "temp", u->s.temp_bytes);
    if (r->tree) u->temp.stride[kept] = lower_pack(&r->out, kept, u->tile, u->temp.stride);
}

// Rows over the dimensions first .. last - 1 of x.
static npu_status run(struct lower *L, struct norm *r, const bool *marked) {
    struct lower_view *views[] = {&r->x,        &r->out,     &r->param[0],
                                  &r->param[1], &r->e.in[1], &r->e.in[2]};
    r->rank = lower_group(r->rank, r->size, marked, 6, views, &r->inner);
    int kept = r->rank - r->inner;
    for (int d = 0; d < kept && r->inner == 1; d++)
        r->tree = r->tree || (r->x.stride[d] == 1 && r->size[d] >= lower_min(L->hw->vec_lanes, 16));
    r->tree = r->tree && r->size[kept] > 1 && r->size[kept] <= 65536;
    struct lower_found t;
    NPU_TRY(choose(L, r, &t));
    if (r->tree && !lower_whole_rows(r->rank, r->inner, r->size, t.tile)) {
        r->tree = false;
        NPU_TRY(choose(L, r, &t));
    }
    struct run u = {.L = L,
                    .r = r,
                    .tile = t.tile,
                    .whole = lower_whole_rows(r->rank, r->inner, r->size, t.tile)};
    streams_init(L, r, t.tile, &u.s);
    u.last = last_steps(r, u.whole);
    L->kernel->estimate_cycles += t.cycles;
    L->kernel->vector_elems += 3 * lower_elems(r->rank, r->size);
    open_all(&u);
    int64_t at[LOWER_DIMS] = {0};
    do
        rows_tile(&u, at);
    while (lower_next(kept, r->size, t.tile, at));
    return NULL;
}

static struct norm norm_of(const struct lower *L, const struct graph_node *n, bool centred) {
    const struct graph_value *x = n->inputs[0];
    struct norm r = {.centred = centred, .rank = x->rank, .length = 1};
    memcpy(r.size, x->dims, sizeof x->dims);
    r.x = L->place[x->id];
    r.out = L->place[n->outputs[0]->id];
    r.e = lower_epilogue_of(L, n);
    r.epsilon = (float)graph_float(n, GRAPH_ATTR_EPSILON, 1e-5);
    r.floor = (float)graph_float(n, GRAPH_ATTR_FLOOR, 0);
    return r;
}

static npu_status trailing(struct lower *L, const struct graph_node *n, bool centred) {
    const struct graph_value *x = n->inputs[0];
    bool marked[LOWER_DIMS] = {false};
    lower_kernel(L, n, centred ? "layernorm_rows" : "rmsnorm_rows");
    struct norm r = norm_of(L, n, centred);
    for (int d = (int)graph_int(n, GRAPH_ATTR_AXIS, x->rank - 1); d < x->rank; d++) {
        marked[d] = true;
        r.length *= x->dims[d];
    }
    for (int i = 0; i < 2 && 1 + i < n->nown; i++) {
        r.has[i] = true;
        r.param[i] = lower_broadcast(L, n->inputs[1 + i], x->rank, x->dims);
    }
    return run(L, &r, marked);
}

// Dimension 1 becomes group and channel in group.
static void split_channels(struct lower_view *v, int rank, int64_t channels) {
    for (int d = rank; d > 1; d--)
        v->stride[d] = v->stride[d - 1];
    v->stride[1] = v->stride[2] * channels;
}

npu_status lower_groupnorm(struct lower *L, const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    int64_t group = graph_int(n, GRAPH_ATTR_GROUP, 1), channels = x->dims[1] / group;
    bool marked[LOWER_DIMS] = {false};
    lower_kernel(L, n, "groupnorm_rows");
    struct norm r = norm_of(L, n, true);
    for (int i = 0; i < 2 && 1 + i < n->nown; i++) {
        int64_t step = L->place[n->inputs[1 + i]->id].stride[0];
        r.has[i] = true;
        r.param[i] = L->place[n->inputs[1 + i]->id];
        memset(r.param[i].stride, 0, sizeof r.param[i].stride);
        r.param[i].stride[1] = step;
    }
    struct lower_view *views[] = {&r.x, &r.out, &r.param[0], &r.param[1], &r.e.in[1], &r.e.in[2]};
    for (int i = 0; i < 6; i++)
        split_channels(views[i], x->rank, channels);
    r.rank = x->rank + 1;
    for (int d = r.rank - 1; d > 2; d--)
        r.size[d] = r.size[d - 1];
    r.size[1] = group;
    r.size[2] = channels;
    for (int d = 2; d < r.rank; d++) {
        marked[d] = true;
        r.length *= r.size[d];
    }
    return run(L, &r, marked);
}

npu_status lower_layernorm(struct lower *L, const struct graph_node *n) {
    return trailing(L, n, true);
}
npu_status lower_rmsnorm(struct lower *L, const struct graph_node *n) {
    return trailing(L, n, false);
}
