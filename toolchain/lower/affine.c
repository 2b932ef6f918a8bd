// SPDX-License-Identifier: Apache-2.0
// The core of everything that moves elements by an affine map: out[i] = chain(in0[i], in1[i],
// in2[i]) where every operand is a strided view of DRAM over one iteration space.
//
//   order the dimensions by the output's storage, merge what is contiguous everywhere
//   a plain copy whose runs are long on both sides: one DMA transfer from place to place; from DRAM
//   to DRAM they must be longer, since each costs the latency of a read and a write
//   else choose a tile by hill climbing over the cost of the whole kernel
//   for each tile: load the operands in their own storage order, one V.MAP through strides, store
#include "toolchain/lower/internal.h"

#include <string.h>

#define DIRECT_RUN_BYTES 64
#define BOTH_RUN_BYTES \
    4096             // of runs from DRAM to DRAM, which a DMA engine reads and writes in turn
#define BOTH_RUNS 16 // as few may be shorter
#define WHOLE_BYTES 4096

struct pricing {
    const struct lower *L;
    const struct lower_affine *a;
};

static struct lower_affine ordered(const struct lower_affine *a) {
    struct lower_affine r = *a;
    int order[LOWER_DIMS], n = 0;
    for (int d = 0; d < a->rank; d++) {
        if (a->size[d] == 1) continue;
        int at = n++;
        while (at > 0 && a->out.stride[order[at - 1]] < a->out.stride[d]) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = d;
    }
    struct lower_view *views[4] = {&r.out};
    int nview = 1;
    for (int k = 0; k < 3; k++)
        if (a->has[k]) views[nview++] = &r.in[k];
    for (int i = 0; i < n; i++)
        r.size[i] = a->size[order[i]];
    for (int i = 0; i < nview; i++)
        lower_permute(views[i], n, order);
    r.rank = lower_merge(n, r.size, nview, views);
    return r;
}

static bool operand_whole(const struct lower *L, const struct lower_view *v, int rank,
                          const int64_t *size) {
    int64_t elems = 1;
    for (int d = 0; d < rank; d++)
        if (v->stride[d]) elems *= size[d];
    return elems * lower_dtype_bytes(v->dtype) <= lower_min(WHOLE_BYTES, lower_spm(L, true) / 32);
}

// Streams of the result (0) and of operand k (k + 1). An operand whose contiguous dimension is not
// the result's is read across: its rows along the result's innermost dimension are spread over the
// banks.
static void streams_init(const struct lower *L, const struct lower_affine *a, const int64_t *tile,
                         struct lower_stream s[4]) {
    static const char *const names[4] = {"out", "in0", "in1", "in2"};
    memset(s, 0, 4 * sizeof *s);
    for (int k = -1; k < 3; k++) {
        const struct lower_view *v = k < 0 ? &a->out : &a->in[k];
        if (k >= 0 && !a->has[k]) continue;
        lower_stream_init(&s[k + 1], names[k + 1], v, (struct lower_grid){a->rank, a->size, tile},
                          L->slots, k >= 0 && operand_whole(L, v, a->rank, a->size));
        if (k >= 0) lower_stream_spread(L, &s[k + 1], a->rank - 1);
    }
}

static void price(void *ctx, struct lower_found *t) {
    const struct lower *L = ((struct pricing *)ctx)->L;
    const struct lower_affine *a = ((struct pricing *)ctx)->a;
    struct lower_step step = {0};
    double nstep = 1;
    struct lower_view on_chip[4];
    const struct lower_view *in[3] = {NULL, NULL, NULL};
    t->bytes = 0;
    for (int d = 0; d < a->rank; d++)
        nstep *= (double)lower_ceil(a->size[d], t->tile[d]);
    struct lower_stream s[4];
    streams_init(L, a, t->tile, s);
    for (int i = 0; i < 4; i++) {
        if (!s[i].present) continue;
        t->bytes += lower_stream_bytes(&s[i]);
        double loads = s[i].whole ? 1 / nstep : 1;
        step.dma_cycles += lower_dma_cycles(L, &s[i].src, a->rank, s[i].block) * loads;
        step.dma_bytes += lower_dma_bytes(L, &s[i].src, a->rank, s[i].block) * loads;
        on_chip[i] = (struct lower_view){.buf = -1, .slot = ISA_SPM, .dtype = s[i].dtype};
        memcpy(on_chip[i].stride, s[i].pack, sizeof s[i].pack);
        if (i > 0) in[i - 1] = &on_chip[i];
    }
    step.vec_cycles = lower_map_cycles(L, a->rank, t->tile, a->chain, in, &on_chip[0]);
    step.spm_bytes = t->bytes;
    t->cycles = lower_steps_cycles(L, nstep, &step);
}

static bool identity(const struct isa_chain *chain) {
    for (int i = 0; chain && i < ISA_STAGES; i++)
        if (chain->st[i].op != ISA_VOP_NOP) return false;
    return true;
}

// A copy by the DMA engines alone.
static bool direct(struct lower *L, const struct lower_affine *a) {
    if (!a->has[0] || a->has[1] || a->has[2] || !identity(a->chain) ||
        (a->in[0].chip && a->out.chip))
        return false;
    int last = a->rank - 1;
    int64_t run = a->size[last] * lower_dtype_bytes(a->out.dtype);
    bool contiguous = a->out.stride[last] == 1 && a->in[0].stride[last] == 1;
    if (a->size[last] > 1 && !(contiguous && run >= DIRECT_RUN_BYTES) &&
        lower_elems(a->rank, a->size) > 16)
        return false;
    if (!a->in[0].chip && !a->out.chip && run < BOTH_RUN_BYTES &&
        lower_elems(a->rank, a->size) > BOTH_RUNS * a->size[last])
        return false;
    tile_step(L->p);
    lower_copy(L, a->in[0].chip ? TILE_STORE : TILE_LOAD, a->rank, a->size, &a->in[0], &a->out);
    L->kernel->estimate_cycles +=
        lower_dma_cycles(L, a->out.chip ? &a->in[0] : &a->out, a->rank, a->size);
    return true;
}

npu_status lower_affine_run(struct lower *L, const struct lower_affine *given) {
    static const char *const names[4] = {"result", "operand 0", "operand 1", "operand 2"};
    struct lower_affine a = ordered(given);
    L->kernel->vector_elems += lower_elems(a.rank, a.size);
    if (direct(L, &a)) return NULL;
    struct pricing pricing = {L, &a};
    struct lower_found t = lower_climb_run(
        L, &(struct lower_climb){.rank = a.rank, .size = a.size, .price = price, .ctx = &pricing});
    struct lower_stream s[4];
    int64_t bytes[4];
    streams_init(L, &a, t.tile, s);
    for (int i = 0; i < 4; i++)
        bytes[i] = lower_stream_bytes(&s[i]);
    if (bytes[0] + bytes[1] + bytes[2] + bytes[3] > lower_spm(L, true))
        return lower_no_fit(L, 4, names, bytes);
    for (int i = 0; i < 4; i++)
        lower_stream_open(L, &s[i]);
    L->kernel->estimate_cycles += t.cycles;

    int64_t at[LOWER_DIMS] = {0}, size[LOWER_DIMS];
    for (bool more = true; more;) {
        for (int d = 0; d < a.rank; d++)
            size[d] = lower_min(t.tile[d], a.size[d] - at[d]);
        tile_step(L->p);
        struct lower_view v[3];
        const struct lower_view *use[3] = {NULL, NULL, NULL};
        for (int k = 0; k < 3; k++) {
            if (!a.has[k]) continue;
            v[k] = lower_stream_fetch(L, &s[k + 1], at, size);
            use[k] = &v[k];
        }
        struct lower_view o = lower_sink_tile(&s[0], at);
        lower_map(L, a.rank, size, a.chain, use, &o);
        lower_sink_store(L, &s[0], &o, at, size);
        more = lower_next(a.rank, a.size, t.tile, at);
    }
    return NULL;
}
