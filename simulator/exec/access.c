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
                       const struct exec_foot *f, uint32_t n, bool write) {
    struct race_hit hit;
    enum race_result result = race_access(&x->race, space, f, n, write, &hit);
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
                 const struct exec_foot *f, uint32_t n) {
    int64_t byte = -1;
    for (uint32_t i = 0; i < n && byte < 0; i++)
        byte = first_unwritten(x, space, &f[i]);
    if (byte >= 0) {
        set_bytes(x, space, byte, 1);
        return exec_raise(x, at, EXEC_FAULT_UNWRITTEN,
                          "operand %s reads %s byte 0x%" PRIx64 ", which nothing has written", name,
                          isa_space_name(space), (uint64_t)byte);
    }
    return n == 0 || is_constant(x, space, f) || check_race(x, at, name, space, f, n, false);
}

bool access_write(struct exec *x, const struct exec_place *at, const char *name, int space,
                  const struct exec_foot *f, uint32_t n) {
    return n == 0 || check_race(x, at, name, space, f, n, true);
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

void access_show(struct exec *x, const struct exec_place *at, int space,
                 const struct exec_foot *f) {
    if (!x->job->written || !x->job->values) return;
    const uint8_t *bytes;
    if (space == ISA_DRAM) {
        struct exec_dram_at in;
        if (!exec_dram_find(x->m.dram, x->m.dram_base + f->lo, x->m.dram_base + f->hi, &in)) return;
        bytes = in.const_bytes;
    } else {
        bytes = (space == ISA_SPM ? x->spm : x->psum) + f->lo;
    }
    x->job->written(x->job->written_ctx, at, space, f, bytes);
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

// ---- one instruction ----------------------------------------------------------------------------

static bool save_outputs(struct exec *x, const struct check_operands *ops) {
    for (int k = 0; k < ops->n; k++)
        if ((ops->op[k].access & ISA_W) && ops->op[k].pat->space == ISA_DRAM &&
            !slice_save(&x->slice, x->m.dram, x->m.dram_base, &ops->op[k].foot))
            return exec_no_memory(x, "what a pass overwrites");
    return true;
}

// Keeps what is about to be overwritten in DRAM, of a gather all of its destination.
static bool rehearse(struct exec *x, const struct check_operands *ops) {
    if (!x->job->rehearsal || x->discovering) return true;
    for (int k = 0; k < ops->n; k++)
        if ((ops->op[k].access & ISA_W) && ops->op[k].pat->space == ISA_DRAM &&
            !undo_save(&x->undo, x->m.dram, x->m.dram_base, &ops->op[k].foot))
            return exec_no_memory(x, "what a rehearsal overwrites");
    return true;
}

bool access_insn(struct exec *x, const struct exec_place *at, const struct isa_insn *in) {
    struct check_operands ops;
    NPU_ASSERT(check_collect(in, &ops, &x->fault));
    const bool gather = in->h.opcode == ISA_OP_GATHER;
    if (gather && !gather_access(x, at, in, &ops)) return false;
    for (int k = 0; k < ops.n && !gather; k++) {
        const struct check_operand *o = &ops.op[k];
        const int space = (int)o->pat->space;
        if ((o->access & ISA_R) && !(o->access & ISA_W) &&
            !access_read(x, at, o->name, space, &o->foot, 1))
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
        if (!access_write(x, at, o->name, space, &o->foot, 1)) return false;
    }
    if (!rehearse(x, &ops)) return false;
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
            const int space = (int)ops.op[k].pat->space;
            if (gather) {
                gather_mark(x, at, &in->u.GATHER);
                continue;
            }
            access_mark(x, space, &ops.op[k].foot);
            access_show(x, at, space, &ops.op[k].foot);
        }
    return true;
}
