// SPDX-License-Identifier: Apache-2.0
// Rows of attention that see no key, where hidden keys have a finite score: all keys of such a row
// weigh the same, so it gives the mean of all values, those outside the window too.
//
// The window's tiles alone do not know that mean. It comes from a product of ones and values, in
// blocks of keys whose sums stay apart (a block need not wait for the one before), added and
// divided by one reduction. Values that lie on chip with their heads side by side are averaged for
// all heads at once.
#include "isa/timing.h"
#include "toolchain/lower/attention.h"

#include <string.h>

#define MOST_PARTS 4
#define PSUM_SHARE 8 // of PSUM at most, for several heads at once

static void shape(const struct lower *L, const struct attn *a, struct attn_mean *m) {
    int64_t cols = L->hw->mxu_cols;
    m->row = lower_ceil(m->merged ? m->heads * a->dv : a->dv, cols) * cols;
    m->part_elems = m->merged ? m->row : m->heads * m->row;
}

void attn_mean_plan(const struct lower *L, const struct attn *a, const struct attn_tile *t,
                    struct attn_mean *m) {
    int nb = a->nb;
    memset(m, 0, sizeof *m);
    if (!a->mean) return;
    int64_t blocks = lower_ceil(a->s, L->hw->mxu_rows), per = lower_ceil(blocks, MOST_PARTS);
    m->block = lower_min(a->s, per * L->hw->mxu_rows);
    m->parts = lower_ceil(a->s, m->block);
    m->heads = a->batch[nb - 1];
    m->merged = a->v.chip && m->heads > 1 && m->heads * a->dv <= 65536 &&
                a->v.stride[nb - 1] == a->dv * a->v.stride[nb + 2];
    shape(L, a, m);
    if (m->merged && m->parts * m->part_elems * 4 <= hw_psum_bytes(L->hw) / PSUM_SHARE) return;
    m->merged = false;
    m->heads = t->tb;
    shape(L, a, m);
}

int64_t attn_mean_psum_bytes(const struct attn_mean *m) {
    return m->parts * m->part_elems * 4;
}

int64_t attn_mean_spm_bytes(const struct attn *a, const struct attn_mean *m) {
    return m->parts ? 64 + 2 * lower_ceil(m->heads * a->dv * 4, 64) * 64 : 0;
}

double attn_mean_cycles(const struct lower *L, const struct attn *a, const struct attn_mean *m) {
    if (!m->parts) return 0;
    struct isa_mm_shape s = {.m = 1,
                             .n = m->merged ? m->heads * a->dv : a->dv,
                             .k = m->block,
                             .dtype_a = (int)a->dtype,
                             .dtype_b = (int)a->dtype};
    double groups = (double)a->batch[a->nb - 1] / (double)(m->merged ? m->heads : 1);
    for (int d = 0; d < a->nb - 1; d++)
        groups *= (double)a->batch[d];
    return groups * (double)m->parts * (double)isa_time_mm(L->hw, &s).issue_cycles;
}

void attn_mean_open(struct lower *L, const struct attn *a, struct attn_mean *m) {
    if (!m->parts) return;
    m->ones = tile_add_spm(L->p, "ones", 64, 1);
    m->mean = tile_add_spm(L->p, "mean", lower_ceil(m->heads * a->dv * 4, 64) * 64, 2);
    m->sums = tile_add_psum(L->p, "value sums", attn_mean_psum_bytes(m), 1);
    struct lower_view one = {.buf = m->ones, .dtype = a->dtype};
    lower_fill(L, TILE_LOAD, 1, (int64_t[]){1}, &one, 1);
}

// Sum of one block of keys: for each head its columns, or those of all heads side by side.
static void block_sums(struct lower *L, const struct attn *a, const struct attn_mean *m,
                       const struct lower_view *values, int64_t part, int64_t heads) {
    int nb = a->nb;
    int64_t k0 = part * m->block, k = lower_min(m->block, a->s - k0);
    int64_t n = m->merged ? heads * a->dv : a->dv;
    for (int64_t h = 0; h < (m->merged ? 1 : heads); h++) {
        int64_t index[LOWER_DIMS] = {0};
        index[nb - 1] = h;
        index[nb + 1] = k0;
        struct lower_view v = lower_at(values, nb + 3, index);
        struct tile_op *t = tile_emit(L->p, ISA_OP_MM, TILE_COMPUTE);
        t->insn.u.MM.init = 1;
        tile_operand(t, 0, L->p, (struct tile_place){m->ones, 0, a->dtype, 0}, 1, &k,
                     (int64_t[]){0});
        tile_operand(t, 1, L->p, (struct tile_place){v.buf, v.slot, v.dtype, v.offset}, 2,
                     (int64_t[]){n, k}, (int64_t[]){v.stride[nb + 2], v.stride[nb + 1]});
        tile_operand(t, 2, L->p,
                     (struct tile_place){m->sums, 0, ISA_F32,
                                         (part * m->part_elems + h * m->row) * 4},
                     1, &n, (int64_t[]){1});
    }
}

void attn_mean_begin(struct lower *L, const struct attn *a, struct attn_mean *m,
                     const struct lower_view *values, int64_t heads, int64_t item) {
    for (int64_t part = 0; part < m->parts; part++)
        block_sums(L, a, m, values, part, heads);
    m->count++;
    m->now = heads;
    m->item = item;
}

void attn_mean_end(struct lower *L, const struct attn *a, struct attn_mean *m, int64_t item) {
    if (!m->now || item < m->item) return;
    int64_t heads = m->now;
    m->now = 0;
    struct tile_op *t = tile_emit(L->p, ISA_OP_VRED, TILE_COMPUTE);
    float scale = 1.0f / (float)a->s;
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    t->insn.u.VRED.red = ISA_RED_SUM;
    t->insn.u.VRED.red_dims = 1;
    t->insn.u.VRED.chain.st[0] = (struct isa_stage){.op = ISA_VOP_MUL, .a = ISA_SRC_IMM0};
    t->insn.u.VRED.chain.imm[0] = bits;
    int64_t size[3] = {m->parts, a->dv, heads};
    tile_operand(t, 1, L->p, (struct tile_place){m->sums, 0, ISA_F32, 0}, 3, size,
                 (int64_t[]){m->part_elems, 1, m->merged ? a->dv : m->row});
    tile_operand(t, 0, L->p, (struct tile_place){m->mean, (int)(m->count % 2), ISA_F32, 0}, 2,
                 size + 1, (int64_t[]){1, a->dv});
}

struct lower_view attn_mean_view(const struct attn *a, const struct attn_mean *m, int64_t head) {
    struct lower_view v = {.buf = m->mean, .slot = (int)(m->count % 2), .dtype = ISA_F32};
    v.stride[a->nb - 1] = a->dv;
    v.stride[a->nb + 2] = 1;
    v.offset = head % m->heads * a->dv * 4;
    return v;
}
