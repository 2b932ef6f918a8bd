// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding: pairs of elements of each row turned by angles.
//
//   y1 = x1 cos - x2 sin; y2 = x2 cos + x1 sin
//
// The first elements of the pairs are one strided view of a row, the second ones another, so that
// halves and neighbours are the same kernel and nothing is cut or joined. A tile of rows is loaded
// once; each half of the result takes two instructions, a product in f32 and what it is subtracted
// from or added to. Elements behind the rotated ones are copied.
#include "toolchain/lower/internal.h"

#include <string.h>

enum { X, COSINE, SINE, OUT, VIEWS };

// Dimensions: those of the rows, then which of a pair (2), then the pair.
struct rotary {
    int rank;
    int64_t size[LOWER_DIMS];
    struct lower_view view[VIEWS];
};
struct pricing {
    const struct lower *L;
    const struct rotary *r;
};
struct streams {
    struct lower_stream s[VIEWS];
    int64_t temp_bytes;
};

// Strides of a tile's intermediate for one half, in the order of x in memory, its rows an odd
// number of scratchpad words apart in every dimension. Returns its bytes.
static int64_t temp_strides(const struct lower *L, const struct rotary *r, const int64_t *tile,
                            int64_t *stride) {
    int64_t word = lower_max(1, L->hw->spm_bank_bytes / 4), elems = 1;
    int order[LOWER_DIMS], from = X;
    for (int d = 0; d < r->rank; d++) // x repeats where the angles do not
        if (r->size[d] > 1 && !r->view[X].stride[d]) from = OUT;
    int n = lower_by_stride(&r->view[from], r->rank, order);
    memset(stride, 0, (size_t)r->rank * sizeof *stride);
    for (int i = n - 1; i >= 0; i--) {
        int d = order[i];
        if (d == r->rank - 2) continue;
        stride[d] = elems;
        elems *= tile[d];
        if (d < r->rank - 2 && elems > word) elems = (lower_ceil(elems, word) | 1) * word;
    }
    return lower_ceil(elems * 4, 64) * 64;
}

static int64_t half_bytes(const struct lower *L, const struct rotary *r, const int64_t *tile) {
    int64_t stride[LOWER_DIMS];
    return temp_strides(L, r, tile, stride);
}

static void streams_init(const struct lower *L, const struct rotary *r, const int64_t *tile,
                         struct streams *s) {
    static const char *const names[VIEWS] = {"x", "cos", "sin", "out"};
    memset(s, 0, sizeof *s);
    for (int i = 0; i < VIEWS; i++) {
        int64_t bytes = lower_dtype_bytes(r->view[i].dtype);
        for (int d = 0; d < r->rank; d++)
            if (r->view[i].stride[d]) bytes *= r->size[d];
        bool whole = (i == COSINE || i == SINE) && bytes <= lower_spm(L, true) / 16;
        lower_stream_init(&s->s[i], names[i], &r->view[i],
                          (struct lower_grid){r->rank, r->size, tile}, L->slots, whole);
    }
    s->temp_bytes = 2 * half_bytes(L, r, tile);
}

// One half of a tile as views of that half: sizes with one of each pair.
struct half {
    int64_t size[LOWER_DIMS];
    struct lower_view x[2], cosine[2], sine[2], out[2], temp[2];
};

static struct lower_view pick(const struct rotary *r, const struct lower_view *v, int which) {
    int64_t at[LOWER_DIMS] = {0};
    at[r->rank - 2] = which;
    return lower_at(v, r->rank, at);
}

static struct half halves_of(const struct lower *L, const struct rotary *r, const int64_t *size,
                             const struct lower_view v[VIEWS], const struct lower_view *temp,
                             const int64_t *tile) {
    struct half h = {.temp = {*temp, *temp}};
    memcpy(h.size, size, (size_t)r->rank * sizeof *size);
    h.size[r->rank - 2] = 1;
    h.temp[1].offset += half_bytes(L, r, tile);
    for (int k = 0; k < 2; k++) {
        h.x[k] = pick(r, &v[X], k);
        h.cosine[k] = pick(r, &v[COSINE], k);
        h.sine[k] = pick(r, &v[SINE], k);
        h.out[k] = pick(r, &v[OUT], k);
    }
    return h;
}

// temp[k] = other * sin, then out = x * cos -+ temp[k], for both halves: two and two instructions,
// so that none waits for the one before it. price: their cycles instead.
static void turn(struct lower *L, const struct rotary *r, const struct half *h, double *price) {
    struct isa_chain mul;
    memset(&mul, 0, sizeof mul);
    mul.st[0] = (struct isa_stage){.op = ISA_VOP_MUL, .a = ISA_SRC_IN1};
    for (int i = 0; i < 4; i++) {
        int k = i % 2;
        bool last = i >= 2;
        struct isa_chain c = mul;
        if (last)
            c.st[1] = (struct isa_stage){.op = k ? ISA_VOP_ADD : ISA_VOP_SUB, .a = ISA_SRC_IN2};
        const struct lower_view *in[3] = {&h->x[last ? k : 1 - k],
                                          last ? &h->cosine[k] : &h->sine[k],
                                          last ? &h->temp[k] : NULL},
                                *out = last ? &h->out[k] : &h->temp[k];
        if (price)
            *price += lower_map_cycles(L, r->rank, h->size, &c, in, out);
        else
            lower_map(L, r->rank, h->size, &c, in, out);
    }
}

static struct lower_view temp_view(const struct lower *L, const struct rotary *r,
                                   const int64_t *tile, int buf) {
    struct lower_view t = {.buf = buf, .slot = buf < 0 ? ISA_SPM : 0, .dtype = ISA_F32};
    temp_strides(L, r, tile, t.stride);
    return t;
}

static int64_t all_bytes(const struct streams *s) {
    int64_t n = s->temp_bytes;
    for (int i = 0; i < VIEWS; i++)
        n += lower_stream_bytes(&s->s[i]);
    return n;
}

static void price(void *ctx, struct lower_found *t) {
    const struct lower *L = ((struct pricing *)ctx)->L;
    const struct rotary *r = ((struct pricing *)ctx)->r;
    struct lower dry = *L;
    struct streams s;
    struct lower_view v[VIEWS];
    struct lower_step step = {0};
    double nstep = 1;
    streams_init(L, r, t->tile, &s);
    for (int d = 0; d < r->rank; d++)
        nstep *= (double)lower_ceil(r->size[d], t->tile[d]);
    for (int i = 0; i < VIEWS; i++) {
        double loads = s.s[i].whole ? 1 / nstep : 1;
        step.dma_cycles += loads * lower_dma_cycles(L, &s.s[i].src, r->rank, s.s[i].block);
        step.dma_bytes += loads * lower_dma_bytes(L, &s.s[i].src, r->rank, s.s[i].block);
        v[i] = (struct lower_view){.buf = -1, .slot = ISA_SPM, .dtype = s.s[i].dtype};
        memcpy(v[i].stride, s.s[i].pack, sizeof s.s[i].pack);
    }
    struct lower_view temp = temp_view(L, r, t->tile, -1);
    struct half h = halves_of(L, r, t->tile, v, &temp, t->tile);
    turn(&dry, r, &h, &step.vec_cycles);
    t->bytes = step.spm_bytes = all_bytes(&s);
    t->cycles = lower_steps_cycles(L, nstep, &step);
}

static npu_status run(struct lower *L, const struct rotary *r) {
    struct pricing pricing = {L, r};
    int64_t from[LOWER_DIMS], at[LOWER_DIMS] = {0}, size[LOWER_DIMS];
    for (int d = 0; d < r->rank; d++)
        from[d] = d < r->rank - 2 ? 1 : r->size[d];
    struct lower_found t = lower_climb_run(L, &(struct lower_climb){.rank = r->rank,
                                                                    .size = r->size,
                                                                    .from = from,
                                                                    .price = price,
                                                                    .ctx = &pricing});
    struct streams s;
    streams_init(L, r, t.tile, &s);
    const char *names[5] = {"input", "cosines", "sines", "result", "intermediate"};
    int64_t bytes[5];
    for (int i = 0; i < VIEWS; i++)
        bytes[i] = lower_stream_bytes(&s.s[i]);
    bytes[VIEWS] = s.temp_bytes;
    if (t.bytes > lower_spm(L, true)) return lower_no_fit(L, 5, names, bytes);
    L->kernel->estimate_cycles += t.cycles;
    L->kernel->vector_elems += 2 * lower_elems(r->rank, r->size);
    for (int i = 0; i < VIEWS; i++)
        lower_stream_open(L, &s.s[i]);
    struct lower_view temp = temp_view(L, r, t.tile, tile_add_spm(L->p, "temp", s.temp_bytes, 1));
    do {
        struct lower_view v[VIEWS];
        for (int d = 0; d < r->rank; d++)
            size[d] = lower_min(t.tile[d], r->size[d] - at[d]);
        tile_step(L->p);
        for (int i = 0; i < OUT; i++)
            v[i] = lower_stream_fetch(L, &s.s[i], at, size);
        v[OUT] = lower_sink_tile(&s.s[OUT], at);
        struct half h = halves_of(L, r, size, v, &temp, t.tile);
        turn(L, r, &h, NULL);
        lower_sink_store(L, &s.s[OUT], &v[OUT], at, size);
    } while (lower_next(r->rank, r->size, t.tile, at));
    return NULL;
}

// The last dimension of a row's view becomes pair member and pair.
static void split_pairs(struct lower_view *v, int last, int64_t member, int64_t pair) {
    int64_t s = v->stride[last];
    v->stride[last] = s * member;
    v->stride[last + 1] = s * pair;
}

// Elements behind the rotated ones.
static npu_status copy_rest(struct lower *L, const struct graph_value *x,
                            const struct graph_value *y, int64_t dim) {
    int last = x->rank - 1;
    struct lower_affine rest = {.rank = x->rank,
                                .has = {true, false, false},
                                .in = {L->place[x->id]},
                                .out = L->place[y->id]};
    if (dim == x->dims[last]) return NULL;
    int64_t at[LOWER_DIMS] = {0};
    at[last] = dim;
    memcpy(rest.size, x->dims, sizeof x->dims);
    rest.size[last] -= dim;
    rest.in[0] = lower_at(&rest.in[0], x->rank, at);
    rest.out = lower_at(&rest.out, x->rank, at);
    return lower_affine_run(L, &rest);
}

npu_status lower_rotary(struct lower *L, const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    int last = x->rank - 1;
    int64_t dim = graph_int(n, GRAPH_ATTR_ROTARY_DIM, x->dims[last]), half = dim / 2;
    bool inter = graph_int(n, GRAPH_ATTR_INTERLEAVED, 0) != 0;
    int64_t member = inter ? 1 : half, pair = inter ? 2 : 1;
    lower_kernel(L, n, "rotary");
    struct rotary r = {.rank = x->rank + 1};
    memcpy(r.size, x->dims, sizeof x->dims);
    r.size[last] = 2;
    r.size[last + 1] = half;
    r.view[X] = L->place[x->id];
    r.view[OUT] = L->place[y->id];
    split_pairs(&r.view[X], last, member, pair);
    split_pairs(&r.view[OUT], last, member, pair);
    for (int i = 0; i < 2; i++) {
        const struct graph_value *v = n->inputs[1 + i];
        int64_t size[GRAPH_MAX_RANK], width = v->dims[v->rank - 1];
        memcpy(size, x->dims, sizeof x->dims);
        size[last] = width;
        struct lower_view *t = &r.view[COSINE + i];
        *t = lower_broadcast(L, v, x->rank, size);
        if (width == dim)
            split_pairs(t, last, member, pair);
        else
            split_pairs(t, last, 0, 1);
    }
    // A pair of size 1 has no stride, so that streams take it for one element.
    for (int i = 0; i < VIEWS; i++)
        if (half == 1) r.view[i].stride[last + 1] = 0;
    NPU_TRY(run(L, &r));
    return copy_rest(L, x, y, dim);
}
