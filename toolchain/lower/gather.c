// SPDX-License-Identifier: Apache-2.0
// Slices chosen by an index tensor: the indices are loaded, then DMA.GATHER moves rows from table
// to result in DRAM.
//
//   a row is the dimensions after the axis (one run when they merge, else one instruction per index
//   of the outer ones) dimensions before the axis: one instruction each
#include "toolchain/lower/internal.h"

#include <string.h>

#define INDEX_CHUNK 2048

// A row of the table and of the result: elements and the distances between them.
struct row {
    int64_t elems, in, out;
};

static void emit(struct lower *L, const struct lower_pick *g, const struct row *row,
                 const struct lower_view *index, int64_t count) {
    const struct lower_view *x = &g->x, *out = &g->out;
    struct tile_op *t = tile_emit(L->p, ISA_OP_GATHER, TILE_LOAD);
    t->insn.u.GATHER.neg = 1;
    tile_operand(t, 0, L->p, (struct tile_place){x->buf, x->slot, x->dtype, x->offset}, 2,
                 (int64_t[]){row->elems, g->dims[g->axis]},
                 (int64_t[]){row->in, x->stride[g->axis]});
    tile_operand(t, 1, L->p, (struct tile_place){out->buf, out->slot, out->dtype, out->offset}, 2,
                 (int64_t[]){row->elems, count}, (int64_t[]){row->out, out->stride[g->axis]});
    tile_operand(t, 2, L->p,
                 (struct tile_place){index->buf, index->slot, index->dtype, index->offset}, 1,
                 &count, (int64_t[]){1});
}

// The longest trailing dimensions that form one strided row on both sides; *first: the first of
// them.
static struct row row_of(const struct lower_pick *g, int *first) {
    struct row r = {1, 1, 1};
    *first = g->rank;
    for (int d = g->rank - 1; d > g->axis; d--) {
        if (g->dims[d] > 1) {
            if (r.elems > 1 &&
                (g->x.stride[d] != r.in * r.elems || g->out.stride[d] != r.out * r.elems))
                break;
            if (r.elems == 1) {
                r.in = g->x.stride[d];
                r.out = g->out.stride[d];
            }
            r.elems *= g->dims[d];
        }
        *first = d;
    }
    return r;
}

npu_status lower_pick_run(struct lower *L, const struct lower_pick *given) {
    struct lower_pick g = *given;
    if (g.index.dtype != ISA_I32 && g.index.dtype != ISA_I64)
        return npu_fail(UNSUPPORTED, "indices of type %s; i32 and i64 are possible",
                        isa_dtype_name((int)g.index.dtype));
    int first;
    struct row row = row_of(&g, &first);
    int64_t loops[LOWER_DIMS], one[LOWER_DIMS], at[LOWER_DIMS] = {0};
    for (int d = 0; d < g.rank; d++) {
        loops[d] = d == g.axis || d >= first ? 1 : g.dims[d];
        one[d] = 1;
    }
    int64_t chunk =
        lower_min(lower_min(INDEX_CHUNK, g.count),
                  lower_max(1, lower_spm(L, true) / 4 / lower_dtype_bytes(g.index.dtype)));
    int64_t parts =
        lower_max(1, lower_min(lower_max(L->hw->dma_engines - 1, 1),
                               chunk * row.elems * lower_dtype_bytes(g.x.dtype) / 16384));
    struct lower_stream index;
    lower_stream_init(&index, "index", &g.index, (struct lower_grid){1, &g.count, &chunk}, L->slots,
                      false);
    lower_stream_open(L, &index);
    for (int64_t i = 0; i < g.count; i += chunk) {
        int64_t n = lower_min(chunk, g.count - i), each = lower_ceil(n, parts);
        tile_step(L->p);
        struct lower_view ix =
            lower_stream_fetch(L, &index, (int64_t[LOWER_DIMS]){i}, (int64_t[LOWER_DIMS]){n});
        do {
            for (int64_t k = 0; k < n; k += each) {
                struct lower_pick part = g;
                struct lower_view in = lower_at(&ix, 1, &k);
                part.x = lower_at(&g.x, g.rank, at);
                at[g.axis] = i + k;
                part.out = lower_at(&g.out, g.rank, at);
                at[g.axis] = 0;
                emit(L, &part, &row, &in, lower_min(each, n - k));
            }
        } while (lower_next(g.rank, loops, one, at));
        double bytes = (double)(row.elems * lower_dtype_bytes(g.x.dtype));
        L->kernel->estimate_cycles +=
            (double)L->hw->dma_start + (double)n * (1 + bytes / (double)L->hw->dma_width_bytes);
    }
    return NULL;
}

npu_status lower_gather(struct lower *L, const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0], *ix = n->inputs[1], *out = n->outputs[0];
    int axis = (int)graph_int(n, GRAPH_ATTR_AXIS, 0), r = ix->rank;
    lower_kernel(L, n, "gather");
    struct lower_pick g = {.rank = x->rank,
                           .axis = axis,
                           .x = L->place[x->id],
                           .out = L->place[out->id]};
    memcpy(g.dims, x->dims, sizeof x->dims);
    for (int d = 0; d < x->rank; d++)
        if (d != axis) g.out.stride[d] = L->place[out->id].stride[d < axis ? d : d - 1 + r];
    // Index dimensions that do not merge with the last one are looped over.
    int64_t size[LOWER_DIMS] = {1}, one[LOWER_DIMS], at[LOWER_DIMS] = {0};
    struct lower_view vi = L->place[ix->id], vo = L->place[out->id];
    struct lower_view *views[] = {&vi, &vo};
    for (int d = 0; d < r; d++) {
        size[d] = ix->dims[d];
        vo.stride[d] = L->place[out->id].stride[axis + d];
    }
    int rank = lower_merge(r, size, 2, views);
    for (int d = 0; d < rank; d++)
        one[d] = 1;
    do {
        struct lower_view i = lower_at(&vi, rank - 1, at), o = lower_at(&vo, rank - 1, at);
        g.count = size[rank - 1];
        g.index = (struct lower_view){.buf = i.buf,
                                      .dtype = i.dtype,
                                      .offset = i.offset,
                                      .stride = {vi.stride[rank - 1]}};
        g.out.offset = o.offset;
        g.out.stride[axis] = vo.stride[rank - 1];
        NPU_TRY(lower_pick_run(L, &g));
    } while (lower_next(rank - 1, size, one, at));
    return NULL;
}
