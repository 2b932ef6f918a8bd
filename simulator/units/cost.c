// SPDX-License-Identifier: Apache-2.0
//
// From an instruction to the numbers of its record: cycles from isa/timing.h, demand of banks,
// transfers of DMA as walks over DRAM, and which of the last instructions of its engine it depends
// on.
#include "isa/timing.h"
#include "simulator/memory/banks.h"
#include "simulator/units/record.h"

static uint32_t clamp32(int64_t n) {
    return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static int64_t cdiv(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static int64_t max64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t pat_bytes(const struct isa_pat *p) {
    return cdiv(isa_sat_mul(isa_time_touched_elems(p), isa_dtype_bits((int)p->dtype)), 8);
}

// Part of all banks' cycles over `issue` cycles, from cycles of all banks in 1/256.
static uint32_t demand(int64_t all_banks_q8, int64_t issue) {
    const int64_t most = (int64_t)64 * BANKS_ONE;
    const int64_t q = cdiv(isa_sat_mul(all_banks_q8, BANKS_ONE / 256), max64(issue, 1));
    return (uint32_t)(q < most ? q : most);
}

// Cycles of all SPM banks, in 1/256, that `elems` elements of a pattern take.
static int64_t spm_q8(const struct hw *hw, const struct isa_pat *p, int64_t elems) {
    return cdiv(isa_sat_mul(elems, 256), isa_time_bank_rate(hw, p));
}

// An operand of the array as its memory is read: whichever dimension is dense goes innermost,
// because the loader and the transposer take blocks, not single elements.
static struct isa_pat block_order(const struct isa_pat *p) {
    struct isa_pat q = *p;
    for (int d = 1; d < ISA_DIMS; d++) {
        if (p->size[d] == 1 || (p->stride[d] != 1 && p->stride[d] != -1)) continue;
        if (p->size[0] > 1 && p->stride[0] == 1) break;
        q.size[0] = p->size[d];
        q.stride[0] = p->stride[d];
        q.size[d] = p->size[0];
        q.stride[d] = p->stride[0];
        break;
    }
    return q;
}

static void mxu_cost(const struct hw *hw, const struct isa_insn *in, struct units_rec *r) {
    struct isa_mm_shape s;
    if (!isa_time_mm_shape(in, &s)) return;
    const struct isa_cost c = isa_time_mm(hw, &s);
    const struct isa_pat a = block_order(isa_pat_get(in, 0)), b = block_order(isa_pat_get(in, 1));
    const bool init = in->h.opcode == ISA_OP_MM ? in->u.MM.init : in->u.MMCONV.init;
    const int64_t nb = cdiv(s.n, hw->mxu_cols), kb = cdiv(s.k, hw->mxu_rows);
    const int64_t moving = isa_sat_mul(isa_sat_mul(s.m, s.k), nb);
    r->accumulate = clamp32(c.accumulate_cycles);
    r->work = (uint64_t)c.macs;
    const int64_t half =
        max64(isa_time_row_half_cycles(hw, s.dtype_a), isa_time_row_half_cycles(hw, s.dtype_b));
    r->full = clamp32(isa_sat_mul(c.macs, half) / (2 * hw->mxu_rows * hw->mxu_cols));
    r->spm = demand(spm_q8(hw, &a, moving) + spm_q8(hw, &b, isa_sat_mul(s.k, s.n)), c.issue_cycles);
    // One row of PSUM written per moving row and pass, and read when the pass accumulates.
    const int64_t writes = isa_sat_mul(isa_sat_mul(s.m, nb), kb);
    const int64_t reads = isa_sat_mul(isa_sat_mul(s.m, nb), init ? kb - 1 : kb);
    r->psum = demand(isa_sat_mul(writes + reads, 256) / hw->psum_banks, c.issue_cycles);
    r->spm_bytes = clamp32(pat_bytes(&a) + pat_bytes(&b) + pat_bytes(isa_pat_get(in, 2)));
}

static void vec_cost(const struct hw *hw, const struct isa_insn *in, struct units_rec *r,
                     const struct isa_cost *c) {
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    struct isa_vec_shape s;
    if (!isa_time_vec_shape(hw, in, &s)) return;
    int64_t spm = 0, bytes = 0;
    for (int k = 0; k < d->npat; k++) {
        const struct isa_pat *p = isa_pat_get(in, k);
        if (p->space == ISA_SPACE_NONE) continue;
        bytes += pat_bytes(p);
    }
    for (int i = 0; i < 4; i++)
        if (s.in[i].elems)
            spm += cdiv(isa_sat_mul(s.in[i].elems, 256), max64(1, s.in[i].per_cycle));
    for (int i = 0; i < 2; i++)
        if (s.out[i].elems)
            spm += cdiv(isa_sat_mul(s.out[i].elems, 256), max64(1, s.out[i].per_cycle));
    r->spm = demand(spm, c->issue_cycles);
    const int64_t rows = cdiv(s.psum_elems, hw->mxu_cols);
    r->psum = demand(isa_sat_mul(rows, 256) / hw->psum_banks, c->issue_cycles);
    r->work = (uint64_t)c->elems;
    r->full = clamp32(cdiv(c->elems, hw->vec_lanes));
    r->spm_bytes = clamp32(bytes);
}

// ---- DMA ----

static void walk_of(const struct isa_pat *p, struct units_walk *w) {
    const int64_t bits = isa_dtype_bits((int)p->dtype);
    *w = (struct units_walk){.base = (uint64_t)p->base, .n = {1, 1, 1, 1}};
    int64_t run = 1;
    int outer = 0, d = 0;
    // Dimensions merge into the run as long as each continues the one below.
    for (; d < ISA_DIMS; d++) {
        if (p->size[d] == 1) continue;
        if (p->stride[d] != run) break;
        run = isa_sat_mul(run, p->size[d]);
    }
    for (; d < ISA_DIMS; d++) {
        if (p->size[d] == 1) continue;
        const int64_t bytes = p->stride[d] * bits / 8;
        if (outer && w->stride[outer - 1] * (int64_t)w->n[outer - 1] == bytes) {
            w->n[outer - 1] = clamp32(isa_sat_mul(w->n[outer - 1], p->size[d]));
        } else if (outer < 4) {
            w->n[outer] = clamp32(p->size[d]);
            w->stride[outer++] = bytes;
        } else { // five strided dimensions of one element each: no such walk; fold into the last
            w->n[3] = clamp32(isa_sat_mul(w->n[3], p->size[d]));
        }
    }
    w->run = clamp32(cdiv(isa_sat_mul(run, bits), 8));
}

static int64_t walk_runs(const struct units_walk *w) {
    int64_t n = 1;
    for (int i = 0; i < 4; i++)
        n = isa_sat_mul(n, w->n[i]);
    return n;
}

// Runs of a pattern in SPM for the address generator, and its full length in bytes.
static void side(const struct isa_pat *p, int64_t *runs, int64_t *bytes) {
    int64_t run;
    isa_pat_runs(p, runs, &run);
    *bytes = cdiv(isa_sat_mul(isa_pat_elems(p), isa_dtype_bits((int)p->dtype)), 8);
}

static void transfer_of(const struct hw *hw, const struct isa_insn *in, struct units_transfer *t,
                        struct units_rec *r) {
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    const struct isa_pat *src = NULL, *dst = NULL;
    for (int k = 0; k < d->npat; k++) {
        if (!d->pat[k].dram) continue;
        if (d->pat[k].access & ISA_W)
            dst = isa_pat_get(in, k);
        else
            src = isa_pat_get(in, k);
    }
    *t = (struct units_transfer){0};
    int64_t src_runs = 0, src_bytes = 0, dst_runs = 0, dst_bytes = 0, spm = 0;
    side(dst, &dst_runs, &dst_bytes);
    t->gather = in->h.opcode == ISA_OP_GATHER;
    if (src) {
        side(src, &src_runs, &src_bytes);
        if (t->gather) { // one row of the table per row of the result
            src_runs = max64(1, isa_pat_elems(dst) / max64(1, dst->size[0]));
            const int64_t row = cdiv(src->size[0] * isa_dtype_bits((int)src->dtype), 8);
            src_bytes = isa_sat_mul(src_runs, row);
            t->src = (struct units_walk){.base = (uint64_t)src->base,
                                         .run = clamp32(row),
                                         .n = {1, 1, 1, 1}};
            t->src.n[0] = clamp32(src_runs);
            t->src.stride[0] = src->stride[1] * isa_dtype_bits((int)src->dtype) / 8;
        } else {
            walk_of(src, &t->src);
        }
        t->src_dram = src->space == ISA_DRAM;
        if (src->space == ISA_SPM) spm += spm_q8(hw, src, isa_time_touched_elems(src));
    }
    walk_of(dst, &t->dst);
    t->dst_dram = dst->space == ISA_DRAM;
    if (dst->space == ISA_SPM) spm += spm_q8(hw, dst, isa_time_touched_elems(dst));
    t->read_bytes = t->src_dram ? (uint64_t)src_bytes : 0;
    t->write_bytes = t->dst_dram ? (uint64_t)dst_bytes : 0;

    const int64_t link = max64(src_bytes, dst_bytes), rows = max64(src_runs, dst_runs);
    const int64_t dram = t->src_dram ? src_bytes : dst_bytes;
    const int64_t dram_runs =
        t->src_dram ? (t->gather ? src_runs : walk_runs(&t->src)) : walk_runs(&t->dst);
    t->link_q8 = clamp32(max64(256, cdiv(isa_sat_mul(link, 256), max64(1, dram))));
    t->row_q8 = clamp32(max64(256, cdiv(isa_sat_mul(rows, 256), max64(1, dram_runs))));
    const int64_t moved = cdiv(link, hw->dma_width_bytes);
    t->chip_cycles = clamp32(moved + isa_sat_mul(rows, hw->dma_row));
    r->work = (uint64_t)link;
    r->full = clamp32(moved);
    r->spm = demand(spm, moved);
    r->spm_bytes = clamp32((src && !t->src_dram ? src_bytes : 0) + (t->dst_dram ? 0 : dst_bytes));
}

static bool dma_cost(struct units_program *p, const struct isa_insn *in, struct units_rec *r) {
    struct units_transfer t;
    transfer_of(&p->hw, in, &t, r);
    const int64_t fence = in->h.opcode == ISA_OP_COPY     ? in->u.COPY.fence
                          : in->h.opcode == ISA_OP_GATHER ? in->u.GATHER.fence
                                                          : in->u.FILL.fence;
    if (fence) r->flags |= UNITS_FENCE;
    r->extra = units_program_transfer(p, &t);
    return r->extra != UINT32_MAX;
}

// ---- command processor ----

// Cycles beyond decoding.
static void cp_cost(const struct exec_dyn *dyn, struct units_rec *r) {
    const struct isa_insn *in = dyn->insn;
    r->work = 0;
    switch (r->opcode) {
    case ISA_OP_LDS:
    case ISA_OP_STS: {
        const bool store = r->opcode == ISA_OP_STS;
        const int64_t space = store ? in->u.STS.space : in->u.LDS.space;
        r->issue = 3;
        if (space == ISA_DRAM) {
            r->flags |= UNITS_DRAM | (store ? UNITS_WRITES : 0);
            r->work = (uint64_t)dyn->dram_address;
        }
        break;
    }
    case ISA_OP_LDDB: r->issue = 7; break;
    case ISA_OP_LOOP: {
        const struct isa_LOOP *l = &in->u.LOOP;
        r->issue = (uint32_t)((l->a0 != 0) + (l->a1 != 0) + (l->a2 != 0) + (l->a3 != 0) +
                              (l->a4 != 0) + (l->a5 != 0));
        break;
    }
    case ISA_OP_BR: r->issue = dyn->taken ? 2 : 0; break;
    case ISA_OP_CALL:
    case ISA_OP_RET: r->issue = 1; break;
    case ISA_OP_TS: r->extra = (uint32_t)in->u.TS.id; break;
    case ISA_OP_MARK: r->extra = (uint32_t)(in->u.MARK.id | in->u.MARK.open << 31); break;
    case ISA_OP_IRQ: r->extra = (uint32_t)in->u.IRQ.id; break;
    default: break;
    }
}

// ---- dependences ----

static bool overlaps(const struct units_footprint *f, const struct isa_pat *p) {
    if (!f->valid || p->space != f->space) return false;
    int64_t lo, hi;
    isa_pat_extent(p, &lo, &hi);
    return lo < f->hi && f->lo < hi;
}

// Finds the latest of the last instructions whose result this one reads, then enters its own
// result.
static void depend(struct units_program *p, const struct isa_insn *in, struct units_rec *r,
                   int which) {
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    const bool init = (in->h.opcode == ISA_OP_MM && in->u.MM.init) ||
                      (in->h.opcode == ISA_OP_MMCONV && in->u.MMCONV.init);
    for (int i = 0; i < UNITS_DEPS && !r->dep; i++)
        for (int k = 0; k < d->npat; k++) {
            if (!(d->pat[k].access & ISA_R) || (which == 0 && init && k == 2)) continue;
            const struct isa_pat *pat = isa_pat_get(in, k);
            if (overlaps(&p->recent[which][i][0], pat) || overlaps(&p->recent[which][i][1], pat)) {
                r->dep = (uint8_t)(i + 1);
                if (which == 0 && k == 2) r->flags |= UNITS_ACCUMULATE;
            }
        }
    for (int i = UNITS_DEPS - 1; i > 0; i--) {
        p->recent[which][i][0] = p->recent[which][i - 1][0];
        p->recent[which][i][1] = p->recent[which][i - 1][1];
    }
    int n = 0;
    p->recent[which][0][0].valid = p->recent[which][0][1].valid = false;
    for (int k = 0; k < d->npat && n < 2; k++) {
        const struct isa_pat *pat = isa_pat_get(in, k);
        if (!(d->pat[k].access & ISA_W) || pat->space == ISA_SPACE_NONE) continue;
        struct units_footprint *f = &p->recent[which][0][n++];
        *f = (struct units_footprint){.valid = true, .space = pat->space};
        isa_pat_extent(pat, &f->lo, &f->hi);
    }
}

bool units_cost(struct units_program *p, const struct exec_dyn *dyn, struct units_rec *r) {
    const struct isa_insn *in = dyn->insn;
    const enum isa_class cls = isa_engine_class(r->engine);
    if (cls == ISA_CLASS_CP) {
        if (!dyn->skipped) cp_cost(dyn, r);
        return true;
    }
    r->issue = r->read = r->done = r->full = 1;
    if (dyn->skipped || r->opcode == ISA_OP_SYNC) {
        r->flags |= UNITS_SKIPPED;
        return true;
    }
    if (cls == ISA_CLASS_DMA) return dma_cost(p, in, r);
    const struct isa_cost c = isa_time_insn(&p->hw, in);
    r->issue = clamp32(max64(1, c.issue_cycles));
    r->read = clamp32(c.read_cycles);
    r->done = clamp32(max64(c.done_cycles, c.issue_cycles));
    if (cls == ISA_CLASS_MXU)
        mxu_cost(&p->hw, in, r);
    else
        vec_cost(&p->hw, in, r, &c);
    if (r->full > r->issue) r->full = r->issue;
    depend(p, in, r, cls == ISA_CLASS_MXU ? 0 : 1);
    return true;
}
