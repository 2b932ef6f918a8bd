// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes.
//
//   dimensions: kept ones first, reduced ones last, each group merged
//   for each tile of kept dimensions, for each tile of reduced ones: load, V.RED into a wide
//   accumulator (the first overwrites, the others combine); then V.MAP: mean's 1/n and the node's
//   chain; store
#include "isa/timing.h"
#include "toolchain/lower/internal.h"

#include <string.h>

struct reduction {
    enum isa_red red;
    int rank, inner;
    int64_t size[LOWER_DIMS];
    struct lower_view x, out;
    struct isa_chain chain;
    bool direct; // V.RED writes the result itself
    bool tree;   // across rows: reduce_tree.c instead of V.RED
    struct lower_epilogue e;
};
struct streams {
    struct lower_stream x, out, extra[3];
    int64_t acc_bytes, temp_bytes;
};
struct pricing {
    const struct lower *L;
    const struct reduction *r;
};

static enum isa_dtype acc_dtype(const struct reduction *r) {
    return isa_dtype_is_int((int)r->x.dtype) ? ISA_I64 : ISA_F32;
}

static void streams_init(const struct lower *L, const struct reduction *r, const int64_t *tile,
                         struct streams *s) {
    memset(s, 0, sizeof *s);
    int kept = r->rank - r->inner;
    lower_stream_init(&s->x, "x", &r->x, (struct lower_grid){r->rank, r->size, tile}, L->slots,
                      false);
    if (!r->tree) lower_stream_spread(L, &s->x, r->rank - 1);
    lower_stream_init(&s->out, "out", &r->out, (struct lower_grid){kept, r->size, tile}, L->slots,
                      false);
    static const char *const names[3] = {"", "in1", "in2"};
    for (int i = 1; i < 3; i++)
        if (r->e.has[i])
            lower_stream_init(&s->extra[i], names[i], &r->e.in[i],
                              (struct lower_grid){kept, r->size, tile}, L->slots, false);
    s->acc_bytes =
        r->direct ? 0
                  : lower_ceil(lower_elems(kept, tile) * lower_dtype_bytes(acc_dtype(r)), 64) * 64;
    int64_t rows = lower_max(1, tile[r->rank - 1] / 2);
    if (r->tree)
        s->temp_bytes =
            lower_ceil(rows * lower_elems(kept, tile) * lower_dtype_bytes(acc_dtype(r)), 64) * 64;
}

static void price(void *ctx, struct lower_found *t) {
    const struct lower *L = ((struct pricing *)ctx)->L;
    const struct reduction *r = ((struct pricing *)ctx)->r;
    struct streams s;
    streams_init(L, r, t->tile, &s);
    int kept = r->rank - r->inner;
    double nk = 1, nr = 1;
    for (int d = 0; d < r->rank; d++)
        *(d < kept ? &nk : &nr) *= (double)lower_ceil(r->size[d], t->tile[d]);
    t->bytes = lower_stream_bytes(&s.x) + lower_stream_bytes(&s.out) +
               lower_stream_bytes(&s.extra[1]) + lower_stream_bytes(&s.extra[2]) + s.acc_bytes +
               s.temp_bytes;
    struct lower_step step = {0};
    step.dma_cycles = lower_dma_cycles(L, &s.x.src, r->rank, s.x.block) +
                      lower_dma_cycles(L, &s.out.src, kept, s.out.block) / nr;
    step.dma_bytes = lower_dma_bytes(L, &s.x.src, r->rank, s.x.block) +
                     lower_dma_bytes(L, &s.out.src, kept, s.out.block) / nr;
    int64_t rows = lower_elems(kept, t->tile), row = lower_elems(r->inner, t->tile + kept);
    struct isa_vec_shape vec = {.elems = rows * row, .steps = 1, .rows = rows, .row = row};
    double banks = lower_bank_cycles(L, r->x.dtype, 1, &t->tile[r->rank - 1],
                                     &s.x.pack[r->rank - 1], (double)(rows * row));
    if (r->tree) {
        step.vec_cycles = 2 * lower_vec_cycles(L, rows * row, 2, NULL);
        for (int64_t n = row; n > 1; n /= 2)
            step.vec_cycles += 2 * (double)(L->hw->vec_start + L->hw->vec_latency);
    }
    if (!r->tree)
        step.vec_cycles = banks + (double)isa_time_vec(L->hw, &vec).issue_cycles +
                          (double)L->hw->vec_start + lower_vec_cycles(L, rows, 1, &r->chain) / nr;
    step.spm_bytes = t->bytes;
    t->cycles = lower_steps_cycles(L, nk * nr, &step);
}

static npu_status run(struct lower *L, struct reduction *r) {
    int kept = r->rank - r->inner;
    struct pricing pricing = {L, r};
    int64_t from[LOWER_DIMS];
    for (int d = 0; d < r->rank; d++)
        from[d] = d >= kept && (r->direct || r->red == ISA_RED_ARGMAX) ? r->size[d] : 1;
    struct lower_climb climb = {
        .rank = r->rank, .size = r->size, .from = from, .price = price, .ctx = &pricing};
    struct lower_found t = lower_climb_run(L, &climb);
    bool dims_fit = true;
    for (int d = kept; d < r->rank; d++)
        dims_fit = dims_fit && t.tile[d] <= 65536;
    if (r->direct && r->red != ISA_RED_ARGMAX && (t.bytes > lower_spm(L, true) || !dims_fit)) {
        r->direct = false;
        return run(L, r);
    }
    struct streams s;
    streams_init(L, r, t.tile, &s);
    const char *names[6] = {"input",     "accumulator", "result",
                            "operand 1", "operand 2",   "intermediate"};
    int64_t bytes[6] = {lower_stream_bytes(&s.x),        s.acc_bytes,
                        lower_stream_bytes(&s.out),      lower_stream_bytes(&s.extra[1]),
                        lower_stream_bytes(&s.extra[2]), s.temp_bytes};
    if (!dims_fit)
        return npu_fail(NO_FIT,
                        "kernel '%s' (reduce): one instruction reduces up to 65536 elements per "
                        "dimension",
                        L->node->name);
    if (t.bytes > lower_spm(L, true)) return lower_no_fit(L, 6, names, bytes);
    L->kernel->estimate_cycles += t.cycles;
    L->kernel->vector_elems += lower_elems(r->rank, r->size);
    lower_stream_open(L, &s.x);
    for (int i = 1; i < 3; i++)
        lower_stream_open(L, &s.extra[i]);
    lower_stream_open(L, &s.out);
    struct lower_view acc = {.buf = r->direct ? -1 : tile_add_spm(L->p, "acc", s.acc_bytes, 1),
                             .dtype = acc_dtype(r)};
    lower_pack(&r->out, kept, t.tile, acc.stride);
    struct lower_view temp = {.buf =
                                  s.temp_bytes ? tile_add_spm(L->p, "temp", s.temp_bytes, 1) : -1,
                              .dtype = acc_dtype(r)};
    if (r->tree) temp.stride[kept] = lower_pack(&r->x, kept, t.tile, temp.stride);
    int64_t at[LOWER_DIMS] = {0}, size[LOWER_DIMS];
    do {
        for (int d = 0; d < kept; d++)
            size[d] = lower_min(t.tile[d], r->size[d] - at[d]);
        struct lower_view out = lower_sink_tile(&s.out, at), v[3];
        bool first = true;
        do {
            for (int d = kept; d < r->rank; d++)
                size[d] = lower_min(t.tile[d], r->size[d] - at[d]);
            tile_step(L->p);
            struct lower_view x = lower_stream_fetch(L, &s.x, at, size);
            const struct lower_view *in[3] = {&x, NULL, NULL};
            struct lower_red how = {r->red, !first, r->inner, NULL};
            const struct lower_view *to = r->direct ? &out : &acc;
            if (r->tree)
                lower_reduce_tree(L, &how, r->rank, size, &x, &temp, to);
            else
                lower_reduce_block(L, &how, r->rank, size, in, to);
            first = false;
        } while (lower_next(r->inner, r->size + kept, t.tile + kept, at + kept));
        if (!r->direct) {
            const struct lower_view *in[3] = {&acc, NULL, NULL};
            for (int i = 1; i < 3; i++) {
                if (!r->e.has[i]) continue;
                v[i] = lower_stream_fetch(L, &s.extra[i], at, size);
                in[i] = &v[i];
            }
            lower_map(L, kept, size, &r->chain, in, &out);
        }
        lower_sink_store(L, &s.out, &out, at, size);
    } while (lower_next(kept, r->size, t.tile, at));
    return NULL;
}

npu_status lower_reduce(struct lower *L, const struct graph_node *n) {
    static const struct {
        const char *mode;
        enum isa_red red;
    } modes[] = {{"sum", ISA_RED_SUM},      {"mean", ISA_RED_SUM},    {"max", ISA_RED_MAX},
                 {"min", ISA_RED_MIN},      {"sumsq", ISA_RED_SUMSQ}, {"prod", ISA_RED_PROD},
                 {"argmax", ISA_RED_ARGMAX}};
    const struct graph_value *x = n->inputs[0], *out = n->outputs[0];
    const char *mode = graph_word(n, GRAPH_ATTR_MODE, "sum");
    struct reduction r = {.red = ISA_RED_NONE};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(mode, modes[i].mode)) r.red = modes[i].red;
    if (r.red == ISA_RED_NONE) return npu_fail(UNSUPPORTED, "reduction mode '%s'", mode);
    bool mean = !strcmp(mode, "mean");
    lower_kernel(L, n, "reduce");
    const struct graph_attr *axes = graph_attr(n, GRAPH_ATTR_AXES);
    bool keep = graph_int(n, GRAPH_ATTR_KEEPDIMS, 0) != 0, marked[LOWER_DIMS] = {false};
    int64_t count = 1;
    for (int i = 0; axes && i < axes->n; i++)
        marked[axes->ints[i]] = true;
    struct lower_epilogue e = lower_epilogue_of(L, n);
    r.rank = x->rank;
    r.x = L->place[x->id];
    r.out = L->place[out->id];
    r.e = e;
    memcpy(r.size, x->dims, sizeof x->dims);
    for (int d = 0, o = 0; d < x->rank; d++) {
        if (marked[d]) count *= x->dims[d];
        r.out.stride[d] = marked[d] ? 0 : L->place[out->id].stride[o];
        for (int i = 1; i < 3; i++)
            r.e.in[i].stride[d] = marked[d] ? 0 : e.in[i].stride[o];
        if (!marked[d] || keep) o++;
    }
    struct lower_view *views[] = {&r.x, &r.out, &r.e.in[1], &r.e.in[2]};
    if (!x->rank) {
        r.size[0] = 1;
        r.rank = 1;
    }
    r.rank = lower_group(r.rank, r.size, marked, 4, views, &r.inner);
    r.chain = e.chain;
    if (mean && isa_dtype_is_int((int)x->dtype))
        return npu_fail(UNSUPPORTED, "the mean of %s elements; convert to a floating type first",
                        isa_dtype_name((int)x->dtype));
    if (mean && !lower_chain_prepend(&r.chain, ISA_VOP_DIV, (float)count))
        return npu_fail(UNSUPPORTED,
                        "the chain after the mean has no room for the division by %lld",
                        (long long)count);
    // The dimension that is contiguous in memory stays: then whole rows are combined.
    int kept = r.rank - r.inner;
    for (int d = 0; d < kept && r.inner == 1 && r.red != ISA_RED_ARGMAX; d++)
        r.tree = r.tree || (r.x.stride[d] == 1 && r.size[d] >= lower_min(L->hw->vec_lanes, 16));
    r.direct = !mean && !n->has_chain && lower_elems(r.inner, r.size + r.rank - r.inner) <= 65536;
    if (r.red == ISA_RED_ARGMAX) r.direct = !n->has_chain;
    return run(L, &r);
}
