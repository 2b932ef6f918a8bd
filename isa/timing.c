// SPDX-License-Identifier: Apache-2.0
// From a decoded instruction to its shape and cycles; DMA lower bound; decode.
#include "isa/timing.h"

#define SATURATED (INT64_C(1) << 60)

static int64_t cdiv(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

int64_t isa_sat_mul(int64_t a, int64_t b) {
    if (a == 0 || b == 0) return 0;
    return a > SATURATED / b ? SATURATED : a * b;
}

int64_t isa_time_decode(const struct hw *hw, int granules) {
    return hw->cp_insn + hw->cp_granule * (granules - 1);
}

struct isa_fetch isa_time_fetch(const struct hw *hw) {
    struct isa_fetch f = {.block_bytes = 256, .ahead = 8};
    while (f.block_bytes > 64 && f.block_bytes * 16 > hw->cp_imem_bytes)
        f.block_bytes /= 2;
    f.blocks = hw->cp_imem_bytes / f.block_bytes ? hw->cp_imem_bytes / f.block_bytes : 1;
    if (f.ahead > f.blocks / 2) f.ahead = f.blocks / 2;
    return f;
}

bool isa_time_mm_shape(const struct isa_insn *in, struct isa_mm_shape *out) {
    if (in->h.opcode == ISA_OP_MM) {
        const struct isa_MM *u = &in->u.MM;
        int64_t m = 1;
        for (int d = 1; d < ISA_DIMS; d++)
            m = isa_sat_mul(m, u->a.size[d]);
        *out = (struct isa_mm_shape){
            .m = m,
            .n = u->b.size[0],
            .k = u->a.size[0],
            .dtype_a = (int)u->a.dtype,
            .dtype_b = (int)u->b.dtype,
            .transposed_a = u->a.size[0] > 1 && u->a.stride[0] != 1,
        };
        return true;
    }
    if (in->h.opcode == ISA_OP_MMCONV) {
        const struct isa_MMCONV *u = &in->u.MMCONV;
        *out = (struct isa_mm_shape){
            .m = isa_sat_mul(u->d.size[1], u->d.size[2]),
            .n = u->b.size[0],
            .k = isa_sat_mul(u->kh * u->kw, u->a.size[0]),
            .dtype_a = (int)u->a.dtype,
            .dtype_b = (int)u->b.dtype,
            .transposed_a = u->a.size[0] > 1 && u->a.stride[0] != 1,
        };
        return true;
    }
    return false;
}

// Stages of a chain up to the last that does something, and whether one is a special function.
static void chain_shape(const struct isa_chain *c, struct isa_vec_shape *s) {
    for (int i = 0; i < ISA_STAGES; i++) {
        if (c->st[i].op == ISA_VOP_NOP) continue;
        s->stages = i + 1;
        if (isa_vop_is_sf((int)c->st[i].op)) s->special = true;
    }
}

// Windowed instructions read their first input once per window position.
static int64_t window_steps(const struct isa_insn *in) {
    if (in->h.opcode == ISA_OP_VDW) return in->u.VDW.kh * in->u.VDW.kw;
    if (in->h.opcode == ISA_OP_VPOOL) return in->u.VPOOL.kh * in->u.VPOOL.kw;
    return 1;
}

// Results and their length of an instruction that reduces `elems`.
static void reduction_shape(const struct isa_pat *over, int64_t dims, struct isa_vec_shape *s) {
    s->rows = s->row = 1;
    for (int d = 0; d < ISA_DIMS; d++) {
        if (d < dims)
            s->row = isa_sat_mul(s->row, over->size[d]);
        else
            s->rows = isa_sat_mul(s->rows, over->size[d]);
    }
}

bool isa_time_vec_shape(const struct hw *hw, const struct isa_insn *in, struct isa_vec_shape *out) {
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    if (!d || d->cls != ISA_CLASS_VEC) return false;
    *out = (struct isa_vec_shape){.steps = window_steps(in)};
    const bool window = in->h.opcode == ISA_OP_VDW || in->h.opcode == ISA_OP_VPOOL;

    if (in->h.opcode == ISA_OP_VRED) {
        out->elems = isa_pat_elems(&in->u.VRED.in0);
        reduction_shape(&in->u.VRED.in0, in->u.VRED.red_dims, out);
    } else {
        out->elems = isa_pat_elems(isa_pat_get(in, 0));
        if (in->h.opcode == ISA_OP_VMAP && in->u.VMAP.red)
            reduction_shape(&in->u.VMAP.out, in->u.VMAP.red_dims, out);
    }
    const struct isa_chain *chain = isa_chain_get(in);
    if (chain) chain_shape(chain, out);

    int nin = 0, nout = 0;
    for (int k = 0; k < d->npat; k++) {
        const struct isa_pat *p = isa_pat_get(in, k);
        if (p->space == ISA_SPACE_NONE) continue;
        if (p->dtype == ISA_I64) out->wide = true;
        // The tile of a windowed instruction passes once per step; d->pat[1] is in0.
        const int64_t n =
            window && k == 1 ? isa_sat_mul(out->elems, out->steps) : isa_time_touched_elems(p);
        if (p->space == ISA_PSUM) {
            out->psum_elems += n;
            continue;
        }
        const struct isa_vec_port port = {n, isa_time_bank_rate(hw, p)};
        if (d->pat[k].access & ISA_W) {
            if (nout < 2) out->out[nout++] = port;
        } else if (nin < 4) {
            out->in[nin++] = port;
        }
    }
    return true;
}

void isa_pat_runs(const struct isa_pat *p, int64_t *rows, int64_t *row_bytes) {
    int64_t run = 1, n = 1;
    bool open = true;
    for (int d = 0; d < ISA_DIMS; d++) {
        if (p->size[d] == 1) continue;
        open = open && p->stride[d] == run;
        if (open)
            run = isa_sat_mul(run, p->size[d]);
        else
            n = isa_sat_mul(n, p->size[d]);
    }
    *rows = n;
    *row_bytes = cdiv(isa_sat_mul(run, isa_dtype_bits((int)p->dtype)), 8);
}

struct isa_cost isa_time_dma_lower_bound(const struct hw *hw, int64_t rows, int64_t row_bytes,
                                         bool dram) {
    const int64_t link =
        isa_sat_mul(rows, hw->dma_row) + cdiv(isa_sat_mul(rows, row_bytes), hw->dma_width_bytes);
    int64_t longest = link;
    const int64_t rate = hw_dram_bytes_per_kcycle(hw);
    if (dram && rate) {
        const int64_t bursts = isa_sat_mul(rows, cdiv(row_bytes, hw->dma_burst_bytes));
        const int64_t bytes = isa_sat_mul(bursts, hw->dma_burst_bytes);
        const int64_t memory = cdiv(isa_sat_mul(bytes, 1000), rate);
        if (memory > longest) longest = memory;
    }
    const int64_t all = hw->dma_start + longest;
    return (struct isa_cost){.issue_cycles = all, .read_cycles = all, .done_cycles = all};
}

static struct isa_cost dma_cost(const struct hw *hw, const struct isa_insn_desc *d,
                                const struct isa_insn *in) {
    int64_t rows = 1, bytes = 0;
    bool dram = false;
    // The side with the more or the longer runs decides; index patterns count as nothing.
    for (int k = 0; k < d->npat; k++) {
        const struct isa_pat *p = isa_pat_get(in, k);
        if (p->space == ISA_SPACE_NONE || !d->pat[k].dram) continue;
        // A gather's table is not read whole.
        if (in->h.opcode == ISA_OP_GATHER && d->pat[k].access == ISA_R) {
            dram = dram || p->space == ISA_DRAM;
            continue;
        }
        int64_t r, b;
        isa_pat_runs(p, &r, &b);
        const int64_t total = isa_sat_mul(r, b), old = isa_sat_mul(rows, bytes);
        if (total > old || (total == old && r > rows)) {
            rows = r;
            bytes = b;
        }
        dram = dram || p->space == ISA_DRAM;
    }
    return isa_time_dma_lower_bound(hw, rows, bytes, dram);
}

struct isa_cost isa_time_insn(const struct hw *hw, const struct isa_insn *in) {
    struct isa_mm_shape mm;
    if (isa_time_mm_shape(in, &mm)) return isa_time_mm(hw, &mm);
    struct isa_vec_shape vec;
    if (isa_time_vec_shape(hw, in, &vec)) return isa_time_vec(hw, &vec);
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    if (d && d->cls == ISA_CLASS_DMA) return dma_cost(hw, d, in);
    return (struct isa_cost){1, 1, 1, 0, 0, 0, 0};
}
