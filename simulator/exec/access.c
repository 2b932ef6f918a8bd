// SPDX-License-Identifier: Apache-2.0
// Memory operands of one instruction that starts: every byte read was written, nothing races, then
// values are computed and the bytes written are marked. Ranges and rules were checked when it was
// dispatched.
#include <inttypes.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "simulator/exec/machine.h"

// ---- reading and writing ------------------------------------------------------------------------

static void set_bytes(struct exec *x, int space, int64_t address, int64_t bytes) {
    x->fault.has_bytes = true;
    x->fault.space = space;
    x->fault.address = address;
    x->fault.bytes = bytes;
}

// First byte of the footprint that nobody wrote, or -1.
static int64_t first_unwritten(const struct exec *x, int space, const struct exec_foot *f) {
    const struct exec_bits *written = space == ISA_SPM ? &x->spm_written : &x->psum_written;
    int64_t shift = 0;
    if (space == ISA_DRAM) {
        struct exec_dram_at at;
        if (x->discovering ||
            !exec_dram_find(x->m.dram, x->m.dram_base + f->lo, x->m.dram_base + f->hi, &at) ||
            !at.written)
            return -1;
        written = at.written;
        shift = at.offset - f->lo;
    }
    struct exec_foot_walk w;
    foot_first(f, &w);
    do {
        int64_t at = bits_first_clear(written, w.lo + shift, w.hi + shift);
        if (at >= 0) return at - shift;
    } while (foot_next(f, &w));
    return -1;
}

static bool is_constant(const struct exec *x, int space, const struct exec_foot *f) {
    struct exec_dram_at at;
    return space == ISA_DRAM &&
           exec_dram_find(x->m.dram, x->m.dram_base + f->lo, x->m.dram_base + f->hi, &at) &&
           !at.bytes;
}

static bool check_race(struct exec *x, const struct exec_place *at, const char *name, int space,
                       const struct exec_foot *f, bool write) {
    struct race_hit hit;
    enum race_result result = race_access(&x->race, space, f, write, &hit);
    if (result == RACE_NONE) return true;
    if (result == RACE_NO_MEMORY) return exec_no_memory(x, "the record of accesses");
    set_bytes(x, space, hit.address, 1);
    x->fault.has_other = true;
    x->fault.other = hit.other;
    return exec_raise(x, at, EXEC_FAULT_RACE,
                      "operand %s %s %s byte 0x%" PRIx64
                      ", which %s %s, and nothing orders the two",
                      name, write ? "writes" : "reads", isa_space_name(space),
                      (uint64_t)hit.address, isa_engine_name(hit.other.engine),
                      hit.other_writes ? "writes" : "reads");
}

bool access_read(struct exec *x, const struct exec_place *at, const char *name, int space,
                 const struct exec_foot *f) {
    int64_t byte = first_unwritten(x, space, f);
    if (byte >= 0) {
        set_bytes(x, space, byte, 1);
        return exec_raise(x, at, EXEC_FAULT_UNWRITTEN,
                          "operand %s reads %s byte 0x%" PRIx64 ", which nothing has written", name,
                          isa_space_name(space), (uint64_t)byte);
    }
    return is_constant(x, space, f) || check_race(x, at, name, space, f, false);
}

bool access_write(struct exec *x, const struct exec_place *at, const char *name, int space,
                  const struct exec_foot *f) {
    return check_race(x, at, name, space, f, true);
}

void access_mark(struct exec *x, int space, const struct exec_foot *f) {
    struct exec_bits *written = space == ISA_SPM ? &x->spm_written : &x->psum_written;
    int64_t *peak = space == ISA_SPM ? &x->stats.spm_peak_bytes : &x->stats.psum_peak_bytes;
    int64_t shift = 0;
    if (space == ISA_DRAM) {
        struct exec_dram_at at;
        if (x->discovering ||
            !exec_dram_find(x->m.dram, x->m.dram_base + f->lo, x->m.dram_base + f->hi, &at) ||
            !at.written)
            return;
        written = at.written;
        shift = at.offset - f->lo;
    } else if (f->hi > *peak) {
        *peak = f->hi;
    }
    struct exec_foot_walk w;
    foot_first(f, &w);
    do {
        bits_set(written, w.lo + shift, w.hi + shift);
    } while (foot_next(f, &w));
}

// ---- values -------------------------------------------------------------------------------------

static uint8_t *dram_bytes(void *ctx, uint64_t address, uint64_t bytes, bool write) {
    const struct exec *x = ctx;
    struct exec_dram_at at;
    const int64_t lo = x->m.dram_base + (int64_t)address;
    NPU_ASSERT(exec_dram_find(x->m.dram, lo, lo + (int64_t)bytes, &at) && (at.bytes || !write));
    if (at.bytes) return at.bytes;
    union {
        const uint8_t *in;
        uint8_t *out;
    } constants = {at.const_bytes}; // only read
    return constants.out;
}

struct val_mem access_val_mem(struct exec *x) {
    return (struct val_mem){
        .spm = x->spm, .psum = x->psum, .dram = dram_bytes, .dram_ctx = x, .work = x->work};
}

static bool compute(struct exec *x, const struct exec_place *at, const struct isa_insn *in) {
    struct val_fault vf;
    const struct val_mem mem = access_val_mem(x);
    if (val_exec(&mem, in, &vf)) return true;
    return exec_raise(x, at, in->h.opcode == ISA_OP_VPOOL ? EXEC_FAULT_WINDOW : EXEC_FAULT_INDEX,
                      "%s", vf.text);
}

// ---- gather -------------------------------------------------------------------------------------

// Row numbers of a gather into x->rows, -1 where nothing is read.
static bool gather_rows(struct exec *x, const struct exec_place *at, const struct isa_GATHER *g,
                        int64_t n) {
    if (n > x->rows_cap) {
        int64_t *grown = base_realloc(x->rows, (size_t)n * sizeof *grown);
        if (!grown) return exec_no_memory(x, "row numbers of a gather");
        x->rows = grown;
        x->rows_cap = n;
    }
    const struct val_mem mem = access_val_mem(x);
    val_read_i64(&mem, &g->idx, x->rows);
    for (int64_t i = 0; i < n; i++) {
        int64_t index = x->rows[i], row = g->neg && index < 0 ? index + g->src.size[1] : index;
        if (row < 0 || row >= g->src.size[1]) {
            // Discovering, the indices may not be computed yet: any row will do.
            if (x->discovering)
                row = 0;
            else if (g->mode != 0)
                row = -1;
            else
                return exec_raise(x, at, EXEC_FAULT_INDEX,
                                  "index %" PRId64 " (element %" PRId64
                                  " of idx), the table has %" PRId64 " rows",
                                  index, i, g->src.size[1]);
        }
        x->rows[i] = row;
    }
    return true;
}

// Row r of the pattern's dimensions 1..4 (row-major, dimension 1 innermost) as a pattern of its
// own.
static struct isa_pat row_of(const struct isa_pat *p, int64_t r) {
    struct isa_pat row = *p;
    const int64_t bits = isa_dtype_bits((int)p->dtype);
    for (int d = 1; d < ISA_DIMS; d++) {
        row.base += r % p->size[d] * p->stride[d] * bits / 8;
        r /= p->size[d];
        row.size[d] = 1;
        row.stride[d] = 0;
    }
    return row;
}

// A gather reads the rows that its indices name, and with mode 1 writes only those that exist.
static bool access_gather(struct exec *x, const struct exec_place *at, const struct isa_insn *in,
                          const struct check_operands *ops) {
    const struct isa_GATHER *g = &in->u.GATHER;
    const int64_t n = isa_pat_elems(&g->idx);
    const struct exec_foot *src = &ops->op[0].foot, *dst = &ops->op[1].foot,
                           *idx = &ops->op[2].foot;
    if (!access_read(x, at, "idx", (int)g->idx.space, idx)) return false;
    if (x->slice.on) slice_use(&x->slice, &x->race, (int)g->idx.space, idx);
    if (!gather_rows(x, at, g, n)) return false;
    const bool table_constant = is_constant(x, (int)g->src.space, src);
    for (int64_t i = 0; i < n && !table_constant; i++) {
        struct exec_foot f;
        if (x->rows[i] < 0) continue;
        struct isa_pat row = g->src;
        row.base += x->rows[i] * row.stride[1] * isa_dtype_bits((int)row.dtype) / 8;
        row.size[1] = 1;
        if (foot_init(&f, &row) && !access_read(x, at, "src", (int)g->src.space, &f)) return false;
    }
    if (g->mode != 1) return access_write(x, at, "dst", (int)g->dst.space, dst);
    for (int64_t i = 0; i < n; i++) {
        const struct isa_pat row = row_of(&g->dst, i);
        struct exec_foot f;
        if (x->rows[i] >= 0 && foot_init(&f, &row) &&
            !access_write(x, at, "dst", (int)g->dst.space, &f))
            return false;
    }
    return true;
}

static void mark_gather(struct exec *x, const struct isa_GATHER *g, const struct exec_foot *dst) {
    if (g->mode != 1) {
        access_mark(x, (int)g->dst.space, dst);
        return;
    }
    const int64_t n = isa_pat_elems(&g->idx);
    for (int64_t i = 0; i < n; i++) {
        const struct isa_pat row = row_of(&g->dst, i);
        struct exec_foot f;
        if (x->rows[i] >= 0 && foot_init(&f, &row)) access_mark(x, (int)g->dst.space, &f);
    }
}

// ---- one instruction ----------------------------------------------------------------------------

static bool save_outputs(struct exec *x, const struct check_operands *ops) {
    for (int k = 0; k < ops->n; k++)
        if ((ops->op[k].access & ISA_W) && ops->op[k].pat->space == ISA_DRAM &&
            !slice_save(&x->slice, x->m.dram, x->m.dram_base, &ops->op[k].foot))
            return exec_no_memory(x, "what a pass overwrites");
    return true;
}

bool access_insn(struct exec *x, const struct exec_place *at, const struct isa_insn *in) {
    struct check_operands ops;
    NPU_ASSERT(check_collect(in, &ops, &x->fault));
    const bool gather = in->h.opcode == ISA_OP_GATHER;
    if (gather && !access_gather(x, at, in, &ops)) return false;
    for (int k = 0; k < ops.n && !gather; k++) {
        const struct check_operand *o = &ops.op[k];
        const int space = (int)o->pat->space;
        if ((o->access & ISA_R) && !(o->access & ISA_W) &&
            !access_read(x, at, o->name, space, &o->foot))
            return false;
        if (!(o->access & ISA_W)) continue;
        int64_t byte = o->access & ISA_R ? first_unwritten(x, space, &o->foot) : -1;
        if (byte >= 0) {
            set_bytes(x, space, byte, 1);
            return exec_raise(x, at, EXEC_FAULT_UNWRITTEN,
                              "operand %s accumulates on %s byte 0x%" PRIx64
                              ", which nothing has written",
                              o->name, isa_space_name(space), (uint64_t)byte);
        }
        if (!access_write(x, at, o->name, space, &o->foot)) return false;
    }
    if (slice_computes(&x->slice, at->pc_granule)) {
        for (int k = 0; k < ops.n && x->slice.on; k++)
            if (ops.op[k].access & ISA_R)
                slice_use(&x->slice, &x->race, (int)ops.op[k].pat->space, &ops.op[k].foot);
        if (x->discovering && !save_outputs(x, &ops)) return false;
        if (!compute(x, at, in)) return false;
    }
    if (gather && !x->discovering && x->job->rows) {
        x->error =
            x->job->rows(x->job->sink_ctx, at->seq, x->rows, isa_pat_elems(&in->u.GATHER.idx));
        if (x->error) return false;
    }
    for (int k = 0; k < ops.n; k++)
        if (ops.op[k].access & ISA_W) {
            if (gather)
                mark_gather(x, &in->u.GATHER, &ops.op[k].foot);
            else
                access_mark(x, (int)ops.op[k].pat->space, &ops.op[k].foot);
        }
    return true;
}
