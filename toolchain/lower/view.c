// SPDX-License-Identifier: Apache-2.0
// Strided views: moving, broadcasting, packing, merging of dimensions.
#include "toolchain/lower/internal.h"

#include <string.h>

int64_t lower_ceil(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}
int64_t lower_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}
int64_t lower_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

int64_t lower_elems(int rank, const int64_t *size) {
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= size[d];
    return n;
}

int64_t lower_dtype_bytes(enum isa_dtype t) {
    return isa_dtype_bits((int)t) / 8;
}

struct lower_view lower_at(const struct lower_view *v, int rank, const int64_t *index) {
    struct lower_view r = *v;
    int64_t elems = 0;
    for (int d = 0; d < rank; d++)
        elems += index[d] * v->stride[d];
    r.offset += elems * lower_dtype_bytes(v->dtype);
    return r;
}

struct lower_view lower_broadcast(const struct lower *L, const struct graph_value *v, int rank,
                                  const int64_t *size) {
    const struct lower_view *p = &L->place[v->id];
    struct lower_view r = *p;
    memset(r.stride, 0, sizeof r.stride);
    for (int d = 0; d < v->rank; d++) {
        int to = rank - v->rank + d;
        NPU_ASSERT(to >= 0 ? v->dims[d] == size[to] || v->dims[d] == 1 : v->dims[d] == 1);
        if (to >= 0 && v->dims[d] > 1) r.stride[to] = p->stride[d];
    }
    return r;
}

static int64_t magnitude(int64_t x) {
    return x < 0 ? -x : x;
}

int lower_by_stride(const struct lower_view *v, int rank, int *order) {
    int n = 0;
    for (int d = 0; d < rank; d++) {
        if (v->stride[d] == 0) continue;
        int at = n++;
        while (at > 0 && magnitude(v->stride[order[at - 1]]) < magnitude(v->stride[d])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = d;
    }
    return n;
}

int64_t lower_pack(const struct lower_view *v, int rank, const int64_t *block, int64_t *pack) {
    int order[LOWER_DIMS];
    int n = lower_by_stride(v, rank, order);
    int64_t elems = 1;
    for (int d = 0; d < rank; d++)
        pack[d] = 0;
    for (int i = n - 1; i >= 0; i--) {
        pack[order[i]] = elems;
        elems *= block[order[i]];
    }
    return elems;
}

int lower_merge(int rank, int64_t *size, int nview, struct lower_view *const *views) {
    int n = 0;
    for (int d = 0; d < rank; d++) {
        if (size[d] == 1) continue;
        bool joins = n > 0;
        for (int i = 0; i < nview && joins; i++)
            joins = views[i]->stride[n - 1] == views[i]->stride[d] * size[d];
        int to = joins ? n - 1 : n++;
        size[to] = joins ? size[to] * size[d] : size[d];
        for (int i = 0; i < nview; i++)
            views[i]->stride[to] = views[i]->stride[d];
    }
    if (n == 0) {
        size[0] = 1;
        for (int i = 0; i < nview; i++)
            views[i]->stride[0] = 0;
        n = 1;
    }
    return n;
}

void lower_permute(struct lower_view *v, int rank, const int *order) {
    int64_t old[LOWER_DIMS];
    memcpy(old, v->stride, sizeof old);
    for (int d = 0; d < rank; d++)
        v->stride[d] = old[order[d]];
}

bool lower_next(int rank, const int64_t *size, const int64_t *tile, int64_t *at) {
    for (int d = rank - 1; d >= 0; d--) {
        at[d] += tile[d];
        if (at[d] < size[d]) return true;
        at[d] = 0;
    }
    return false;
}

void lower_permute_last(struct lower_view *v, int d) {
    int64_t s = v->stride[d];
    v->stride[d] = v->stride[d + 1];
    v->stride[d + 1] = s;
}

bool lower_chain_prepend(struct isa_chain *chain, enum isa_vop op, float imm) {
    bool taken[ISA_IMMS] = {false};
    int free_imm = -1;
    if (chain->st[ISA_STAGES - 1].op != ISA_VOP_NOP) return false;
    for (int i = 0; i < ISA_STAGES; i++) {
        const int64_t src[2] = {chain->st[i].a, chain->st[i].b};
        for (int k = 0; k < 2 && k < isa_vop_operands((int)chain->st[i].op); k++)
            if (src[k] >= ISA_SRC_IMM0 && src[k] <= ISA_SRC_IMM3)
                taken[src[k] - ISA_SRC_IMM0] = true;
    }
    for (int i = ISA_IMMS - 1; i >= 0; i--)
        if (!taken[i]) free_imm = i;
    // A later stage that reads IN0 would miss the new one.
    for (int i = 0; i < ISA_STAGES; i++)
        if (chain->st[i].op != ISA_VOP_NOP &&
            (chain->st[i].a == ISA_SRC_IN0 || chain->st[i].b == ISA_SRC_IN0))
            return false;
    if (free_imm < 0) return false;
    memmove(chain->st + 1, chain->st, (ISA_STAGES - 1) * sizeof *chain->st);
    chain->st[0] = (struct isa_stage){.op = op, .a = ISA_SRC_IMM0 + free_imm};
    uint32_t bits;
    memcpy(&bits, &imm, sizeof bits);
    chain->imm[free_imm] = bits;
    return true;
}

int lower_group(int rank, int64_t *size, const bool *marked, int nview,
                struct lower_view *const *views, int *inner) {
    int64_t sizes[LOWER_DIMS];
    struct lower_view part[2][TILE_OPERANDS + 1];
    int n[2] = {0, 0};
    for (int group = 0; group < 2; group++) {
        int order[LOWER_DIMS], count = 0;
        for (int d = 0; d < rank; d++) {
            if (marked[d] != (group == 1) || size[d] == 1) continue;
            int at = count++;
            while (at > 0 &&
                   magnitude(views[0]->stride[order[at - 1]]) < magnitude(views[0]->stride[d])) {
                order[at] = order[at - 1];
                at--;
            }
            order[at] = d;
        }
        struct lower_view *local[TILE_OPERANDS + 1];
        for (int i = 0; i < nview; i++) {
            part[group][i] = *views[i];
            lower_permute(&part[group][i], count, order);
            local[i] = &part[group][i];
        }
        int64_t *to = sizes + n[0];
        for (int i = 0; i < count; i++)
            to[i] = size[order[i]];
        n[group] = group == 0 && count == 0 ? 0 : lower_merge(count, to, nview, local);
    }
    int total = n[0] + n[1];
    memcpy(size, sizes, (size_t)total * sizeof *size);
    for (int i = 0; i < nview; i++) {
        memcpy(views[i]->stride, part[0][i].stride, (size_t)n[0] * sizeof(int64_t));
        memcpy(views[i]->stride + n[0], part[1][i].stride, (size_t)n[1] * sizeof(int64_t));
    }
    *inner = n[1];
    return total;
}
