// SPDX-License-Identifier: Apache-2.0
// Rules that hold for every operand of every instruction: the memory is one that exists and is
// reached, the type is one that engines take, the address is a multiple of the element, every byte
// is inside, a written block visits a byte once, and operands of one instruction meet only where
// they are the same.
#include "simulator/exec/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

bool check_fail(struct exec_fault *f, enum exec_fault_kind kind, const char *format, ...) {
    va_list args;
    va_start(args, format);
    f->kind = kind;
    vsnprintf(f->what, sizeof f->what, format, args);
    va_end(args);
    return false;
}

static bool on_chip(int64_t dtype) {
    static const bool on_chip_of[256] = {
#define ISA_DTYPE(N, text, code, bits, kind, chip, doc) [code] = (chip),
#include "isa/dtype.def"
    };
    return dtype >= 0 && dtype < 256 && on_chip_of[dtype];
}

// What the instruction does to operand k, given its init and accumulate flags.
static enum isa_access effective_access(const struct isa_insn *in, const struct isa_pat *p,
                                        enum isa_access access) {
    if (access != ISA_RW) return access;
    bool reads = true;
    if (p == &in->u.MM.d && in->h.opcode == ISA_OP_MM)
        reads = !in->u.MM.init;
    else if (p == &in->u.MMCONV.d && in->h.opcode == ISA_OP_MMCONV)
        reads = !in->u.MMCONV.init;
    else if (p == &in->u.VMAP.red_out && in->h.opcode == ISA_OP_VMAP)
        reads = in->u.VMAP.red_acc;
    else if (p == &in->u.VRED.out && in->h.opcode == ISA_OP_VRED)
        reads = in->u.VRED.red_acc;
    return reads ? ISA_RW : ISA_W;
}

// More elements than any memory holds: only repeating (stride 0) gets there, and it would never
// end.
#define MOST_ELEMS_CHIP ((int64_t)1 << 31)
#define MOST_ELEMS_DRAM ((int64_t)1 << 40)

bool check_collect(const struct isa_insn *in, struct check_operands *ops, struct exec_fault *f) {
    const struct isa_insn_desc *desc = isa_find((unsigned)in->h.opcode);
    ops->n = 0;
    for (int k = 0; desc && k < desc->npat && ops->n < CHECK_OPERANDS; k++) {
        const struct isa_pat *p = isa_pat_get(in, k);
        if (p->space == ISA_SPACE_NONE) continue;
        struct check_operand *o = &ops->op[ops->n++];
        *o = (struct check_operand){.pat = p,
                                    .name = desc->pat[k].name,
                                    .dram_capable = desc->pat[k].dram,
                                    .access = effective_access(in, p, desc->pat[k].access)};
        const int64_t limit = desc->pat[k].dram ? (int64_t)1 << 24 : 65536;
        for (int d = 0; d < ISA_DIMS; d++)
            if (p->size[d] < 1 || p->size[d] > limit)
                return check_fail(f, EXEC_FAULT_SIZES,
                                  "operand %s: size %" PRId64 " in dimension %d, 1 to %" PRId64
                                  " are possible",
                                  o->name, p->size[d], d, limit);
        const int64_t elems = isa_pat_elems(p);
        if (elems > (desc->pat[k].dram ? MOST_ELEMS_DRAM : MOST_ELEMS_CHIP))
            return check_fail(f, EXEC_FAULT_SIZES, "operand %s has %" PRId64 " elements", o->name,
                              elems);
        if (!on_chip(p->dtype))
            return check_fail(f, EXEC_FAULT_DTYPE,
                              "operand %s has type %s (code %" PRId64
                              "), which engines do not take",
                              o->name, isa_dtype_name((int)p->dtype), p->dtype);
        if (!foot_init(&o->foot, p)) {
            if (isa_dtype_bits((int)p->dtype) < 8)
                return check_fail(f, EXEC_FAULT_ALIGNMENT,
                                  "operand %s: 4-bit rows that do not start at whole bytes",
                                  o->name);
            return check_fail(f, EXEC_FAULT_RANGE, "operand %s reaches beyond 2^60 bytes", o->name);
        }
    }
    return true;
}

static int64_t space_bytes(const struct check_machine *m, int space) {
    return space == ISA_SPM ? m->spm_bytes : space == ISA_PSUM ? m->psum_bytes : m->dram_bytes;
}

bool check_range(const struct check_machine *m, int space, int64_t lo, int64_t hi, bool write,
                 const char *name, struct exec_fault *f) {
    const int64_t bytes = space_bytes(m, space);
    struct exec_dram_at at;
    f->has_bytes = true;
    f->space = space;
    f->address = lo;
    f->bytes = hi - lo;
    if (lo < 0 || hi > bytes)
        return check_fail(f, EXEC_FAULT_RANGE,
                          "operand %s: bytes %" PRId64 " to %" PRId64 " of %s, which has %" PRId64,
                          name, lo, hi - 1, isa_space_name(space), bytes);
    if (space != ISA_DRAM) return true;
    if (!exec_dram_find(m->dram, m->dram_base + lo, m->dram_base + hi, &at))
        return check_fail(f, EXEC_FAULT_RANGE,
                          "operand %s: bytes 0x%" PRIx64 " to 0x%" PRIx64
                          " of dram are not inside one segment",
                          name, (uint64_t)lo, (uint64_t)hi - 1);
    if (write && !at.bytes)
        return check_fail(f, EXEC_FAULT_READ_ONLY,
                          "operand %s: bytes 0x%" PRIx64 " to 0x%" PRIx64 " of dram hold constants",
                          name, (uint64_t)lo, (uint64_t)hi - 1);
    return true;
}

bool check_memory(const struct check_machine *m, const struct check_operands *ops,
                  struct exec_fault *f) {
    for (int k = 0; k < ops->n; k++) {
        const struct check_operand *o = &ops->op[k];
        const struct isa_pat *p = o->pat;
        const int64_t element = (isa_dtype_bits((int)p->dtype) + 7) / 8;
        if (p->space != ISA_SPM && p->space != ISA_PSUM &&
            !(p->space == ISA_DRAM && o->dram_capable))
            return check_fail(f, EXEC_FAULT_SPACE, "operand %s lies in %s, %s can be reached",
                              o->name, isa_space_name((int)p->space),
                              o->dram_capable ? "spm, psum and dram" : "spm and psum");
        if (p->base % element != 0)
            return check_fail(f, EXEC_FAULT_ALIGNMENT,
                              "operand %s: address 0x%" PRIx64 " is not a multiple of %" PRId64
                              " bytes (%s)",
                              o->name, (uint64_t)p->base, element, isa_dtype_name((int)p->dtype));
        if (!check_range(m, (int)p->space, o->foot.lo, o->foot.hi, (o->access & ISA_W) != 0,
                         o->name, f))
            return false;
        if ((o->access & ISA_W) && foot_repeats(p))
            return check_fail(
                f, EXEC_FAULT_LAYOUT,
                "operand %s is written, and two of its elements lie on the same bytes", o->name);
    }
    f->has_bytes = false;
    return true;
}

static bool same_place(const struct isa_pat *a, const struct isa_pat *b) {
    if (a->base != b->base || isa_dtype_bits((int)a->dtype) != isa_dtype_bits((int)b->dtype))
        return false;
    for (int d = 0; d < ISA_DIMS; d++) {
        if (a->size[d] != b->size[d]) return false;
        if (a->size[d] > 1 && a->stride[d] != b->stride[d]) return false;
    }
    return true;
}

// Operands of one instruction that meet: only elementwise instructions may, element on the same
// element.
static bool check_meeting(const struct isa_insn *in, const struct check_operands *ops,
                          struct exec_fault *f) {
    const bool elementwise = in->h.opcode == ISA_OP_VMAP || in->h.opcode == ISA_OP_COPY;
    for (int w = 0; w < ops->n; w++) {
        const struct check_operand *a = &ops->op[w];
        if (!(a->access & ISA_W)) continue;
        for (int k = 0; k < ops->n; k++) {
            const struct check_operand *b = &ops->op[k];
            if (k == w || a->pat->space != b->pat->space || (k < w && (b->access & ISA_W)))
                continue;
            int64_t at = foot_overlap(&a->foot, &b->foot);
            if (at < 0 || (elementwise && !(b->access & ISA_W) && same_place(a->pat, b->pat)))
                continue;
            f->has_bytes = true;
            f->space = (int)a->pat->space;
            f->address = at;
            f->bytes = 1;
            return check_fail(
                f, EXEC_FAULT_LAYOUT,
                "operands %s and %s of one instruction overlap and are not the same block", a->name,
                b->name);
        }
    }
    return true;
}

bool check_insn(const struct check_machine *m, const struct isa_insn *in,
                struct check_operands *ops, struct exec_fault *f) {
    return check_collect(in, ops, f) && check_rules(m, in, f) && check_memory(m, ops, f) &&
           check_meeting(in, ops, f);
}
