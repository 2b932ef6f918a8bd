// SPDX-License-Identifier: Apache-2.0
// Elementwise chains and everything that only moves elements: each is one or a few affine maps
// (affine.c).
#include "toolchain/lower/internal.h"

#include <string.h>

static struct lower_affine copy_of(const struct lower *L, const struct graph_node *n) {
    const struct graph_value *out = n->outputs[0];
    struct lower_affine a = {.rank = out->rank, .has = {true, false, false}};
    memcpy(a.size, out->dims, sizeof out->dims);
    a.out = L->place[out->id];
    a.in[0] = L->place[n->inputs[0]->id];
    memset(a.in[0].stride, 0, sizeof a.in[0].stride);
    return a;
}

npu_status lower_map_node(struct lower *L, const struct graph_node *n) {
    const struct graph_value *out = n->outputs[0];
    lower_kernel(L, n, "map");
    struct lower_affine a = {.rank = out->rank, .chain = n->has_chain ? &n->chain : NULL};
    memcpy(a.size, out->dims, sizeof out->dims);
    a.out = L->place[out->id];
    for (int k = 0; k < 3; k++) {
        int i = n->has_chain ? n->chain_in[k] : k < n->nin ? k : -1;
        if (i < 0) continue;
        a.has[k] = true;
        a.in[k] = lower_broadcast(L, n->inputs[i], out->rank, out->dims);
    }
    return lower_affine_run(L, &a);
}

npu_status lower_recopy(struct lower *L, const struct graph_node *n) {
    lower_kernel(L, n, "copy");
    struct lower_affine a = copy_of(L, n);
    a.in[0] = L->place[n->inputs[0]->id];
    return lower_affine_run(L, &a);
}

npu_status lower_expand(struct lower *L, const struct graph_node *n) {
    lower_kernel(L, n, "expand");
    struct lower_affine a = copy_of(L, n);
    a.in[0] = lower_broadcast(L, n->inputs[0], a.rank, a.size);
    return lower_affine_run(L, &a);
}

npu_status lower_transpose(struct lower *L, const struct graph_node *n) {
    lower_kernel(L, n, "transpose");
    struct lower_affine a = copy_of(L, n);
    const struct lower_view *x = &L->place[n->inputs[0]->id];
    for (int d = 0; d < a.rank; d++)
        a.in[0].stride[d] = x->stride[graph_ints_at(n, GRAPH_ATTR_PERM, d, a.rank - 1 - d)];
    return lower_affine_run(L, &a);
}

npu_status lower_slice(struct lower *L, const struct graph_node *n) {
    lower_kernel(L, n, "slice");
    struct lower_affine a = copy_of(L, n);
    const struct lower_view *x = &L->place[n->inputs[0]->id];
    int64_t start[LOWER_DIMS] = {0};
    for (int d = 0; d < a.rank; d++) {
        start[d] = graph_ints_at(n, GRAPH_ATTR_STARTS, d, 0);
        a.in[0].stride[d] = x->stride[d] * graph_ints_at(n, GRAPH_ATTR_STEPS, d, 1);
    }
    a.in[0].offset = lower_at(x, a.rank, start).offset;
    return lower_affine_run(L, &a);
}

npu_status lower_concat(struct lower *L, const struct graph_node *n) {
    lower_kernel(L, n, "concat");
    int axis = (int)graph_int(n, GRAPH_ATTR_AXIS, 0);
    int64_t at[LOWER_DIMS] = {0};
    for (int i = 0; i < n->nin; i++) {
        const struct graph_value *v = n->inputs[i];
        struct lower_affine a = copy_of(L, n);
        a.in[0] = L->place[v->id];
        a.size[axis] = v->dims[axis];
        a.out.offset = lower_at(&L->place[n->outputs[0]->id], a.rank, at).offset;
        at[axis] += v->dims[axis];
        if (!lower_is_part(L, n, i)) NPU_TRY(lower_affine_run(L, &a));
    }
    return NULL;
}

// Same elements in row-major order where the input's storage has no such strides: the finest
// dimensions that divide both shapes are the iteration space; when there are none, the input goes
// through a row-major scratch copy.
npu_status lower_reshape(struct lower *L, const struct graph_node *n) {
    const struct graph_value *from = n->inputs[0], *to = n->outputs[0];
    lower_kernel(L, n, "reshape");
    struct lower_affine a = copy_of(L, n);
    struct lower_view in = L->place[from->id], out = L->place[to->id];
    int64_t fs[LOWER_DIMS] = {0}, ts[LOWER_DIMS] = {0}, fst[LOWER_DIMS] = {0},
            tst[LOWER_DIMS] = {0};
    int nf = from->rank, nt = to->rank;
    for (int d = 0; d < nf; d++) {
        fs[d] = from->dims[d];
        fst[d] = in.stride[d];
    }
    for (int d = 0; d < nt; d++) {
        ts[d] = to->dims[d];
        tst[d] = out.stride[d];
    }
    int i = nf - 1, j = nt - 1, rank = 0;
    int64_t size[LOWER_DIMS], si[LOWER_DIMS], so[LOWER_DIMS];
    bool aligned = true;
    while (aligned && (i >= 0 || j >= 0)) {
        while (i >= 0 && fs[i] == 1)
            i--;
        while (j >= 0 && ts[j] == 1)
            j--;
        if (i < 0 || j < 0) break;
        int64_t k = lower_min(fs[i], ts[j]);
        aligned = fs[i] % k == 0 && ts[j] % k == 0 && rank < LOWER_DIMS;
        if (!aligned) break;
        size[rank] = k;
        si[rank] = fst[i];
        so[rank++] = tst[j];
        fs[i] /= k;
        fst[i] *= k;
        ts[j] /= k;
        tst[j] *= k;
    }
    if (aligned) {
        a.rank = rank;
        for (int d = 0; d < rank; d++) {
            a.size[d] = size[rank - 1 - d];
            a.in[0].stride[d] = si[rank - 1 - d];
            a.out.stride[d] = so[rank - 1 - d];
        }
        if (!rank) a.size[a.rank++] = 1;
        return lower_affine_run(L, &a);
    }
    // Row-major copy of the input, then row-major to the output's storage.
    int64_t elems = graph_value_elems(from);
    struct lower_view flat = {.buf = tile_add_dram(L->p, to->name, TILE_SCRATCH,
                                                   graph_value_bytes(from), NULL, NULL),
                              .dtype = from->dtype};
    struct lower_affine one = {.rank = from->rank,
                               .has = {true, false, false},
                               .in = {in},
                               .out = flat};
    memcpy(one.size, from->dims, sizeof from->dims);
    int64_t step = 1;
    for (int d = from->rank - 1; d >= 0; d--) {
        one.out.stride[d] = step;
        step *= from->dims[d];
    }
    NPU_TRY(lower_affine_run(L, &one));
    struct lower_affine two = {.rank = to->rank,
                               .has = {true, false, false},
                               .in = {flat},
                               .out = out};
    memcpy(two.size, to->dims, sizeof to->dims);
    step = 1;
    for (int d = to->rank - 1; d >= 0; d--) {
        two.in[0].stride[d] = step;
        step *= to->dims[d];
    }
    NPU_ASSERT(step == elems);
    return lower_affine_run(L, &two);
}
