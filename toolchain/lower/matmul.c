// SPDX-License-Identifier: Apache-2.0
// Matrix products on the matrix engine.
//
//   merge the last batch dimensions into m where B does not depend on them
//   choose tile sizes and loop order (mm_plan.c)
//   for each batch tile, (m, n) or (n, m) tile, k chunk: load A, load B, MM into PSUM (accumulating
//   over k) after the last chunk: V.MAP with the node's chain from PSUM, store
//
// A constant B is packed at compile time into one contiguous block [K][tn] per n tile, the last one
// filled with zeros.
#include "toolchain/lower/matmul.h"
#include "toolchain/lower/mm_plan.h"

#include <string.h>

// [batch...][n tile][k][tn]: the full tiles are one block, a narrower last one another.
static struct lower_view pack_weights(struct lower *L, const struct lower_mm *mm, int64_t tn) {
    int64_t tiles = lower_ceil(mm->n, tn), whole = mm->n / tn, batches = 1;
    int nb = mm->nbatch, n = 0;
    struct lower_view v = mm_packed(mm, tn);
    v.offset = 0;
    struct tile_block all = {.from = mm->data,
                             .from_dtype = mm->data_dtype,
                             .dtype = mm->b.dtype,
                             .rank = nb + 3},
                      blocks[2];
    for (int d = 0; d < nb; d++) {
        all.size[d] = mm->b.stride[d] ? mm->batch[d] : 1;
        all.from_stride[d] = mm->b.stride[d];
        all.to_stride[d] = v.stride[d];
        batches *= all.size[d];
    }
    int64_t from[3] = {tn * mm->b.stride[nb + 1], mm->b.stride[nb], mm->b.stride[nb + 1]},
            to[3] = {mm->k * tn, tn, 1};
    memcpy(all.from_stride + nb, from, sizeof from);
    memcpy(all.to_stride + nb, to, sizeof to);
    for (int part = 0; part < 2; part++) {
        int64_t size[3] = {part ? 1 : whole, mm->k, part ? mm->n - whole * tn : tn};
        if (!size[0] || !size[2]) continue;
        memcpy(all.size + nb, size, sizeof size);
        all.from_at = part * whole * from[0];
        all.to_at = part * whole * to[0];
        blocks[n++] = all;
    }
    int64_t bytes = batches * tiles * mm->k * tn * lower_dtype_bytes(mm->b.dtype);
    v.buf = tile_add_weight(L->p, mm->data_name, bytes, blocks, n);
    return v;
}

// One trailing batch dimension joins m when B is the same for all of it and A, the result and the
// chain's operands allow it.
static void merge_batch(struct lower_mm *mm) {
    for (int d = 0; d < mm->nbatch;) {
        if (mm->batch[d] > 1) {
            d++;
            continue;
        }
        struct lower_view *all[] = {&mm->a, &mm->b, &mm->out, &mm->e.in[1], &mm->e.in[2]};
        for (int i = 0; i < 5; i++)
            memmove(all[i]->stride + d, all[i]->stride + d + 1,
                    (size_t)(mm->nbatch + 1 - d) * sizeof(int64_t));
        memmove(mm->batch + d, mm->batch + d + 1, (size_t)(mm->nbatch - 1 - d) * sizeof(int64_t));
        mm->nbatch--;
    }
    struct lower_view *views[] = {&mm->a, &mm->out, &mm->e.in[1], &mm->e.in[2]};
    bool use[] = {true, true, mm->e.has[1], mm->e.has[2]};
    while (mm->nbatch > 0) {
        int d = mm->nbatch - 1;
        bool joins = mm->b.stride[d] == 0;
        for (int i = 0; i < 4 && joins; i++)
            joins = !use[i] || mm->m == 1 || views[i]->stride[d] == views[i]->stride[d + 1] * mm->m;
        if (!joins) return;
        for (int i = 0; i < 4; i++) {
            if (mm->m == 1) views[i]->stride[d + 1] = views[i]->stride[d];
            memmove(views[i]->stride + d, views[i]->stride + d + 1, 2 * sizeof(int64_t));
        }
        memmove(mm->b.stride + d, mm->b.stride + d + 1, 2 * sizeof(int64_t));
        mm->m *= mm->batch[d];
        mm->nbatch--;
    }
}

struct run {
    struct lower *L;
    const struct lower_mm *mm;
    struct mm_streams s;
    const struct mm_tile *t;
    int psum, pslots, pnext;
    enum isa_dtype acc;
    int64_t row; // elements of a PSUM row of D: n rounded up to whole rows of the array's columns
};

static void emit_mm(struct run *r, const struct lower_view *a, const struct lower_view *b, int slot,
                    int64_t at, const int64_t size[3], bool init) {
    struct lower *L = r->L;
    int nb = r->mm->nbatch;
    int64_t m = size[0], n = size[1], k = size[2];
    struct tile_op *t = tile_emit(L->p, ISA_OP_MM, TILE_COMPUTE);
    t->insn.u.MM.init = init;
    tile_operand(t, 0, L->p, (struct tile_place){a->buf, a->slot, a->dtype, a->offset}, 2,
                 (int64_t[]){k, m}, (int64_t[]){a->stride[nb + 1], a->stride[nb]});
    int bk = r->mm->data ? nb + 1 : nb;
    tile_operand(t, 1, L->p, (struct tile_place){b->buf, b->slot, b->dtype, b->offset}, 2,
                 (int64_t[]){n, k}, (int64_t[]){b->stride[bk + 1], b->stride[bk]});
    tile_operand(t, 2, L->p, (struct tile_place){r->psum, slot, r->acc, at * r->t->tm * r->row * 4},
                 2, (int64_t[]){n, m}, (int64_t[]){1, r->row});
}

// One (batch, m, n) tile: its k chunks, then the chain.
static void tile(struct run *r, const int64_t *at) {
    struct lower *L = r->L;
    const struct lower_mm *mm = r->mm;
    const struct mm_tile *t = r->t;
    int nb = mm->nbatch;
    int64_t size[LOWER_DIMS], start[LOWER_DIMS];
    for (int d = 0; d < nb; d++)
        size[d] = 1;
    int64_t tb = 1;
    if (nb) tb = size[nb - 1] = lower_min(t->tb, mm->batch[nb - 1] - at[nb - 1]);
    size[nb] = lower_min(t->tm, mm->m - at[nb]);
    size[nb + 1] = lower_min(t->tn, mm->n - at[nb + 1]);
    int slot = r->pnext;
    r->pnext = (r->pnext + 1) % r->pslots;
    for (int64_t k0 = 0; k0 < mm->k; k0 += t->tk) {
        int64_t k = lower_min(t->tk, mm->k - k0), bsize[LOWER_DIMS], asize[LOWER_DIMS],
                astart[LOWER_DIMS];
        tile_step(L->p);
        memcpy(start, at, sizeof start);
        memcpy(astart, at, sizeof astart);
        memcpy(asize, size, sizeof asize);
        memcpy(bsize, size, sizeof bsize);
        asize[nb + 1] = k;
        astart[nb + 1] = k0;
        struct lower_view a = lower_stream_fetch(L, &r->s.a, astart, asize), b;
        if (mm->data) {
            start[nb] = at[nb + 1] / t->tn;
            start[nb + 1] = k0;
            start[nb + 2] = 0;
            bsize[nb] = 1;
            bsize[nb + 1] = k;
            bsize[nb + 2] = t->tn;
        } else {
            start[nb] = k0;
            start[nb + 1] = at[nb + 1];
            bsize[nb] = k;
            bsize[nb + 1] = size[nb + 1];
        }
        b = lower_stream_fetch(L, &r->s.b, start, bsize);
        for (int64_t i = 0; i < tb; i++) {
            int64_t index[LOWER_DIMS] = {0};
            if (nb) index[nb - 1] = i;
            struct lower_view ai = lower_at(&a, nb, index), bi = lower_at(&b, nb, index);
            emit_mm(r, &ai, &bi, slot, i, (int64_t[]){size[nb], size[nb + 1], k}, k0 == 0);
        }
    }
    struct lower_view d = {.buf = r->psum, .slot = slot, .dtype = r->acc}, v[3], o;
    if (nb) d.stride[nb - 1] = t->tm * r->row;
    d.stride[nb] = r->row;
    d.stride[nb + 1] = 1;
    const struct lower_view *in[3] = {&d, NULL, NULL};
    for (int i = 1; i < 3; i++) {
        if (!mm->e.has[i]) continue;
        v[i] = lower_stream_fetch(L, &r->s.extra[i], at, size);
        in[i] = &v[i];
    }
    o = lower_sink_tile(&r->s.out, at);
    lower_map(L, nb + 2, size, &mm->e.chain, in, &o);
    lower_sink_store(L, &r->s.out, &o, at, size);
}

npu_status lower_mm_run(struct lower *L, const struct lower_mm *given) {
    struct lower_mm mm = *given;
    merge_batch(&mm);
    struct mm_tile t;
    NPU_TRY(mm_choose(L, &mm, &t));
    int nb = mm.nbatch;
    int64_t batches = lower_elems(nb, mm.batch);
    L->kernel->macs += batches * mm.m * mm.n * mm.k;
    L->kernel->vector_elems += batches * mm.m * mm.n;
    lower_product(L, batches, mm.m, mm.n, mm.k, mm.a.dtype);
    L->kernel->estimate_cycles += t.cycles;
    if (mm.data) mm.b = pack_weights(L, &mm, t.tn);
    struct run r = {.L = L, .mm = &mm, .t = &t, .pslots = t.psum_slots};
    r.acc = isa_dtype_is_int((int)mm.a.dtype) ? ISA_I32 : ISA_F32;
    r.row = lower_ceil(t.tn, L->hw->mxu_cols) * L->hw->mxu_cols;
    mm_streams_init(L, &mm, &t, &r.s);
    lower_stream_open(L, &r.s.a);
    lower_stream_open(L, &r.s.b);
    for (int i = 1; i < 3; i++)
        lower_stream_open(L, &r.s.extra[i]);
    lower_stream_open(L, &r.s.out);
    r.psum = tile_add_psum(L->p, "psum", t.tb * t.tm * r.row * 4, r.pslots);

    // Batch tiles outside, then the two loops in the chosen order.
    int64_t at[LOWER_DIMS] = {0}, step[LOWER_DIMS];
    for (int d = 0; d < nb; d++)
        step[d] = d == nb - 1 ? t.tb : 1;
    do {
        int outer = t.n_outer ? nb + 1 : nb, inner = t.n_outer ? nb : nb + 1;
        int64_t lim[2] = {mm.m, mm.n}, by[2] = {t.tm, t.tn};
        for (at[outer] = 0; at[outer] < lim[outer - nb]; at[outer] += by[outer - nb])
            for (at[inner] = 0; at[inner] < lim[inner - nb]; at[inner] += by[inner - nb])
                tile(&r, at);
    } while (lower_next(nb, mm.batch, step, at));
    return NULL;
}

npu_status lower_matmul(struct lower *L, const struct graph_node *n) {
    const struct graph_value *a = n->inputs[0], *b = n->inputs[1], *out = n->outputs[0];
    lower_kernel(L, n, "mm_ws");
    bool ta = graph_int(n, GRAPH_ATTR_TRANS_A, 0) != 0,
         tb = graph_int(n, GRAPH_ATTR_TRANS_B, 0) != 0;
    struct lower_mm mm = {.nbatch = lower_max(lower_max(a->rank, b->rank), 2) > 2
                                        ? (int)lower_max(a->rank, b->rank) - 2
                                        : 0};
    int nb = mm.nbatch;
    mm.m = a->dims[a->rank - (ta ? 1 : 2)];
    mm.k = a->dims[a->rank - (ta ? 2 : 1)];
    mm.n = b->dims[b->rank - (tb ? 2 : 1)];
    for (int d = 0; d < nb; d++)
        mm.batch[d] = out->dims[d];
    int64_t asize[LOWER_DIMS], bsize[LOWER_DIMS];
    for (int d = 0; d < nb; d++)
        asize[d] = bsize[d] = out->dims[d];
    for (int d = 0; d < 2; d++) {
        asize[nb + d] = a->dims[a->rank - 2 + d];
        bsize[nb + d] = b->dims[b->rank - 2 + d];
    }
    mm.a = lower_broadcast(L, a, nb + 2, asize);
    mm.b = lower_broadcast(L, b, nb + 2, bsize);
    if (b->data) { // packed from the model's row-major elements, whatever order its own buffer has
        mm.data = b->data;
        mm.data_dtype = graph_data_dtype(b);
        mm.data_name = b->name;
        int64_t step = 1;
        for (int d = b->rank - 1; d >= 0; d--) {
            int to = nb + 2 - b->rank + d;
            if (to >= 0) mm.b.stride[to] = b->dims[d] > 1 ? step : 0;
            step *= b->dims[d];
        }
    }
    if (ta) lower_permute_last(&mm.a, nb);
    if (tb) lower_permute_last(&mm.b, nb);
    mm.out = L->place[out->id];
    mm.e = lower_epilogue_of(L, n);
    return lower_mm_run(L, &mm);
}
