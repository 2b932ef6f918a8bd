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
//
// Gated products have the columns of both in one tile of B, [K][2 tn], so that one MM makes both
// and one V.MAP reads them from PSUM: act(first) * second. A bias of the second takes one more
// before.
#include "toolchain/lower/matmul.h"
#include "toolchain/lower/mm_plan.h"

#include <string.h>

// [batch...][n tile][k][columns]: the full tiles are one block, a narrower last one another; those
// of a gated product's second follow, each behind the first's columns of the same tile.
static struct lower_view pack_weights(struct lower *L, const struct lower_mm *mm, int64_t tn) {
    int64_t tiles = lower_ceil(mm->n, tn), whole = mm->n / tn, columns = mm_columns(mm, tn),
            batches = 1;
    int nb = mm->nbatch, n = 0;
    struct lower_view v = mm_packed(mm, tn);
    v.offset = 0;
    struct tile_block all = {.dtype = mm->b.dtype, .rank = nb + 3}, blocks[4];
    for (int d = 0; d < nb; d++) {
        all.size[d] = mm->b.stride[d] ? mm->batch[d] : 1;
        all.from_stride[d] = mm->b.stride[d];
        all.to_stride[d] = v.stride[d];
        batches *= all.size[d];
    }
    int64_t from[3] = {tn * mm->b.stride[nb + 1], mm->b.stride[nb], mm->b.stride[nb + 1]},
            to[3] = {mm->k * columns, columns, 1};
    memcpy(all.from_stride + nb, from, sizeof from);
    memcpy(all.to_stride + nb, to, sizeof to);
    for (int i = 0; i < (mm->gate.on ? 4 : 2); i++) {
        int part = i % 2, second = i / 2;
        int64_t size[3] = {part ? 1 : whole, mm->k, part ? mm->n - whole * tn : tn};
        if (!size[0] || !size[2]) continue;
        memcpy(all.size + nb, size, sizeof size);
        all.from = second ? mm->gate.data : mm->data;
        all.from_dtype = second ? mm->gate.data_dtype : mm->data_dtype;
        all.from_at = part * whole * from[0] + (mm->gate.on ? mm->gate.at[second] : 0);
        all.to_at = part * whole * to[0] + second * size[2];
        blocks[n++] = all;
    }
    int64_t bytes = batches * tiles * mm->k * columns * lower_dtype_bytes(mm->b.dtype);
    v.buf = tile_add_weight(L->p, mm->data_name, bytes, blocks, n);
    return v;
}

// One trailing batch dimension joins m when B is the same for all of it and A, the result and the
// chain's operands allow it.
void mm_merge(struct lower_mm *mm) {
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

struct mm_work {
    struct lower *L;
    struct lower_mm mm;
    struct mm_streams s;
    struct mm_tile t;
    int64_t m; // rows of the current block
    int psum, pslots, pnext;
    enum isa_dtype acc;
    int64_t row; // elements of a PSUM row of D: n rounded up to whole rows of the array's columns
};

static void emit_mm(struct mm_work *r, const struct lower_view *a, const struct lower_view *b,
                    int slot, int64_t at, const int64_t size[3], bool init) {
    struct lower *L = r->L;
    int nb = r->mm.nbatch;
    int64_t m = size[0], n = size[1], k = size[2];
    struct tile_op *t = tile_emit(L->p, ISA_OP_MM, TILE_COMPUTE);
    t->insn.u.MM.init = init;
    tile_operand(t, 0, L->p, (struct tile_place){a->buf, a->slot, a->dtype, a->offset}, 2,
                 (int64_t[]){k, m}, (int64_t[]){a->stride[nb + 1], a->stride[nb]});
    int bk = r->mm.data ? nb + 1 : nb;
    tile_operand(t, 1, L->p, (struct tile_place){b->buf, b->slot, b->dtype, b->offset}, 2,
                 (int64_t[]){n, k}, (int64_t[]){b->stride[bk + 1], b->stride[bk]});
    tile_operand(t, 2, L->p, (struct tile_place){r->psum, slot, r->acc, at * r->t.tm * r->row * 4},
                 2, (int64_t[]){n, m}, (int64_t[]){1, r->row});
}

struct mm_gated mm_gated_chains(const struct lower_mm *mm) {
    struct mm_gated g = {.biased = {mm->e.has[1], mm->e.has[2]}};
    memset(&g.add, 0, sizeof g.add);
    memset(&g.all, 0, sizeof g.all);
    g.add.st[0] = (struct isa_stage){.op = ISA_VOP_ADD, .a = ISA_SRC_IN1};
    int n = 0;
    memcpy(g.all.imm, mm->gate.act.imm, sizeof g.all.imm);
    if (g.biased[0]) g.all.st[n++] = g.add.st[0];
    for (int i = 0; i < ISA_STAGES && mm->gate.act.st[i].op != ISA_VOP_NOP; i++) {
        struct isa_stage st = mm->gate.act.st[i];
        int64_t *src[2] = {&st.a, &st.b};
        for (int k = 0; k < isa_vop_operands((int)st.op) && g.biased[0]; k++) {
            if (*src[k] != ISA_SRC_IN0) continue;
            *src[k] = ISA_SRC_TMP;
            g.all.st[0].save = 1;
        }
        g.all.st[n++] = st;
    }
    int64_t other = g.biased[0] ? ISA_SRC_IN2 : ISA_SRC_IN1;
    g.all.st[n] = (struct isa_stage){.op = ISA_VOP_MUL, .a = other};
    return g;
}

// Both products of a tile, side by side in PSUM, become one. in[0]: the first; in[1], in[2]:
// biases.
static void gate(struct mm_work *r, const int64_t *size, const struct lower_view *const in[3],
                 const struct lower_view *out) {
    int rank = r->mm.nbatch + 2;
    struct lower_view second = *in[0];
    second.offset += size[rank - 1] * 4;
    struct mm_gated g = mm_gated_chains(&r->mm);
    if (g.biased[1])
        lower_map(r->L, rank, size, &g.add, (const struct lower_view *[]){&second, in[2], NULL},
                  &second);
    const struct lower_view *plain[3] = {in[0], &second, NULL}, *with[3] = {in[0], in[1], &second};
    lower_map(r->L, rank, size, &g.all, g.biased[0] ? with : plain, out);
}

// One (batch, m, n) tile: its k chunks, then the chain.
static void tile(struct mm_work *r, const int64_t *at) {
    struct lower *L = r->L;
    const struct lower_mm *mm = &r->mm;
    const struct mm_tile *t = &r->t;
    int nb = mm->nbatch;
    int64_t size[LOWER_DIMS], start[LOWER_DIMS];
    for (int d = 0; d < nb; d++)
        size[d] = 1;
    int64_t tb = 1;
    if (nb) tb = size[nb - 1] = lower_min(t->tb, mm->batch[nb - 1] - at[nb - 1]);
    size[nb] = lower_min(t->tm, r->m - at[nb]);
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
            bsize[nb + 2] = mm_columns(mm, t->tn);
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
            emit_mm(r, &ai, &bi, slot, i, (int64_t[]){size[nb], mm_columns(mm, size[nb + 1]), k},
                    k0 == 0);
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
    if (mm->gate.on)
        gate(r, size, in, &o);
    else
        lower_map(L, nb + 2, size, &mm->e.chain, in, &o);
    lower_sink_store(L, &r->s.out, &o, at, size);
}

struct mm_work *mm_open(struct lower *L, const struct lower_mm *mm, const struct mm_tile *t) {
    struct mm_work *w = ARENA_NEW(L->a, struct mm_work);
    *w = (struct mm_work){.L = L, .mm = *mm, .t = *t, .pslots = t->psum_slots};
    if (mm->data) w->mm.b = pack_weights(L, mm, t->tn);
    w->acc = isa_dtype_is_int((int)mm->a.dtype) ? ISA_I32 : ISA_F32;
    w->row = lower_ceil(mm_columns(mm, t->tn), L->hw->mxu_cols) * L->hw->mxu_cols;
    mm_streams_init(L, &w->mm, t, &w->s);
    lower_stream_open(L, &w->s.a);
    lower_stream_open(L, &w->s.b);
    for (int i = 1; i < 3; i++)
        lower_stream_open(L, &w->s.extra[i]);
    lower_stream_open(L, &w->s.out);
    return w;
}

void mm_psum(struct lower *L, struct mm_work *a, struct mm_work *b) {
    int64_t bytes = a->t.tb * a->t.tm * a->row * 4;
    int slots = a->pslots;
    if (b) {
        bytes = lower_max(bytes, b->t.tb * b->t.tm * b->row * 4);
        slots = (int)lower_max(slots, b->pslots);
        if (bytes * slots > hw_psum_bytes(L->hw)) {
            slots = (int)lower_min(a->pslots, b->pslots);
            a->pslots = b->pslots = slots;
        }
    }
    a->psum = tile_add_psum(L->p, "psum", bytes, slots);
    if (b) b->psum = a->psum;
}

void mm_prefetch(struct mm_work *w) {
    const struct lower_mm *mm = &w->mm;
    const struct mm_tile *t = &w->t;
    int nb = mm->nbatch;
    if (!mm->data) return;
    for (int i = 0; i < w->s.b.slots; i++) {
        int64_t start[LOWER_DIMS] = {0}, size[LOWER_DIMS] = {0}, chunks = lower_ceil(mm->k, t->tk);
        int64_t tile = i / chunks;
        if (tile >= lower_ceil(mm->n, t->tn) || (tile && !t->n_outer && mm->m > t->tm)) break;
        for (int d = 0; d < nb; d++)
            size[d] = d == nb - 1 ? lower_min(t->tb, mm->batch[d]) : 1;
        start[nb] = tile;
        start[nb + 1] = i % chunks * t->tk;
        size[nb] = 1;
        size[nb + 1] = lower_min(t->tk, mm->k - start[nb + 1]);
        size[nb + 2] = mm_columns(mm, t->tn);
        (void)lower_stream_fetch(w->L, &w->s.b, start, size);
    }
}

// A stream goes on with the operand of another block: nothing of the last one is there.
static void move_stream(struct lower_stream *s, int dim, int64_t shift, int64_t rows) {
    if (!s->present || !s->src.stride[dim]) return;
    int64_t at[LOWER_DIMS] = {0};
    at[dim] = shift;
    s->full[dim] = rows;
    s->src = lower_at(&s->src, s->rank, at);
    for (int i = 0; i < 8; i++)
        s->held[i].valid = false;
    s->loaded = NULL;
}

void mm_block(struct mm_work *w, int64_t rows, int64_t shift, int fixed, struct mm_work *next) {
    struct lower *L = w->L;
    const struct lower_mm *mm = &w->mm;
    const struct mm_tile *t = &w->t;
    int nb = mm->nbatch;
    int64_t batches = lower_elems(nb, mm->batch), columns = mm_columns(mm, mm->n);
    L->kernel->macs += batches * rows * columns * mm->k;
    L->kernel->vector_elems += batches * rows * columns;
    w->m = rows;
    struct lower_stream first[4] = {w->s.a, w->s.out, w->s.extra[1], w->s.extra[2]};
    if (shift) {
        if (!(fixed & 1)) move_stream(&w->s.a, nb, shift, rows);
        if (!(fixed & 2)) move_stream(&w->s.out, nb, shift, rows);
        for (int i = 1; i < 3; i++)
            move_stream(&w->s.extra[i], nb, shift, rows);
    }

    // Batch tiles outside, then the two loops in the chosen order.
    int64_t at[LOWER_DIMS] = {0}, step[LOWER_DIMS];
    for (int d = 0; d < nb; d++)
        step[d] = d == nb - 1 ? t->tb : 1;
    int64_t left = lower_ceil(rows, t->tm) * lower_ceil(mm->n, t->tn);
    for (int d = 0; d < nb; d++)
        left *= lower_ceil(mm->batch[d], step[d]);
    do {
        int outer = t->n_outer ? nb + 1 : nb, inner = t->n_outer ? nb : nb + 1;
        int64_t lim[2] = {rows, mm->n}, by[2] = {t->tm, t->tn};
        for (at[outer] = 0; at[outer] < lim[outer - nb]; at[outer] += by[outer - nb])
            for (at[inner] = 0; at[inner] < lim[inner - nb]; at[inner] += by[inner - nb]) {
                tile(w, at);
                if (--left <= 1 && next) {
                    mm_prefetch(next);
                    next = NULL;
                }
            }
    } while (lower_next(nb, mm->batch, step, at));
    // Where mm has them again.
    w->s.a.src = first[0].src;
    w->s.out.src = first[1].src;
    for (int i = 1; i < 3; i++)
        w->s.extra[i].src = first[1 + i].src;
}

npu_status lower_mm_run(struct lower *L, const struct lower_mm *given) {
    struct lower_mm mm = *given;
    struct mm_tile t;
    struct matvec v;
    mm_merge(&mm);
    npu_status st = mm_choose(L, &mm, &t);
    lower_product(L, lower_elems(mm.nbatch, mm.batch), mm.m, mm_columns(&mm, mm.n), mm.k,
                  mm.a.dtype);
    if (matvec_choose(L, &mm, &v) && (st || v.cycles < MATVEC_GAIN * t.cycles)) {
        npu_status_free(st);
        if (!L->node->kernel) L->kernel->kernel = "matvec";
        matvec_run(L, &mm, &v);
        return NULL;
    }
    if (st) return st;
    L->kernel->estimate_cycles += t.cycles;
    struct mm_work *w = mm_open(L, &mm, &t);
    mm_psum(L, w, NULL);
    mm_block(w, mm.m, 0, 0, NULL);
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
