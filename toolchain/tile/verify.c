// SPDX-License-Identifier: Apache-2.0
// What must hold of a tile program after every stage:
//
//   every operand that an instruction needs is there, inside its buffer's slot, aligned to its
//   elements the matrix engine reads SPM and writes whole PSUM rows; the vector engine stays on
//   chip; only DMA touches DRAM operands of an elementwise instruction have equal sizes on-chip
//   buffers are used by their own kernel only; nothing reads a slot before something wrote to it;
//   weights and inputs are never written steps and kernels count upwards in the order of operations
//   of each kernel
#include "toolchain/tile/tile.h"

static const struct tile_buf *buffer(const struct tile_program *p, const struct tile_op *t, int k) {
    int id = t->operand[k].buf;
    return id >= 0 && id < p->nbuf ? p->bufs[id] : NULL;
}

static npu_status operand_bounds(const struct tile_program *p, const struct tile_op *t, int k) {
    const struct isa_insn_desc *d = isa_find((unsigned)t->insn.h.opcode);
    const struct isa_pat *pat = isa_pat_get(&t->insn, k);
    const struct tile_buf *b = buffer(p, t, k);
    if (!b)
        return npu_fail(UNSUPPORTED, "operand %s names buffer %d of %d", d->pat[k].name,
                        t->operand[k].buf, p->nbuf);
    if (t->operand[k].slot < 0 || t->operand[k].slot >= b->slots)
        return npu_fail(UNSUPPORTED, "operand %s uses slot %d of buffer '%s', which has %d",
                        d->pat[k].name, t->operand[k].slot, b->name, b->slots);
    if (b->kernel >= 0 && b->kernel != t->kernel)
        return npu_fail(UNSUPPORTED, "operand %s uses buffer '%s' of another kernel",
                        d->pat[k].name, b->name);
    int64_t lo, hi, bytes = isa_dtype_bits((int)pat->dtype) / 8;
    isa_pat_extent(pat, &lo, &hi);
    if (lo < 0 || hi > b->bytes)
        return npu_fail(UNSUPPORTED,
                        "operand %s touches bytes [%lld, %lld) of buffer '%s', which has %lld",
                        d->pat[k].name, (long long)lo, (long long)hi, b->name, (long long)b->bytes);
    if (bytes > 0 && pat->base % bytes)
        return npu_fail(UNSUPPORTED,
                        "operand %s: base %lld is no multiple of its element's %lld bytes",
                        d->pat[k].name, (long long)pat->base, (long long)bytes);
    int64_t longest = d->pat[k].dram ? (int64_t)1 << 24 : 65536,
            reach = d->pat[k].dram ? (int64_t)1 << 39 : (int64_t)1 << 23;
    for (int i = 0; i < ISA_DIMS; i++)
        if (pat->size[i] < 1 || pat->size[i] > longest || pat->stride[i] < -reach ||
            pat->stride[i] >= reach)
            return npu_fail(UNSUPPORTED,
                            "operand %s: size %lld, stride %lld of dimension %d cannot be encoded",
                            d->pat[k].name, (long long)pat->size[i], (long long)pat->stride[i], i);
    return NULL;
}

static npu_status operand_space(const struct tile_program *p, const struct tile_op *t, int k,
                                int64_t row_elems) {
    const struct isa_insn_desc *d = isa_find((unsigned)t->insn.h.opcode);
    const struct isa_pat *pat = isa_pat_get(&t->insn, k);
    const struct tile_buf *b = buffer(p, t, k);
    if (b->space == ISA_DRAM && d->cls != ISA_CLASS_DMA)
        return npu_fail(UNSUPPORTED, "operand %s lies in DRAM, which only DMA reaches",
                        d->pat[k].name);
    if (d->pat[k].access != ISA_R && (b->kind == TILE_WEIGHT || b->kind == TILE_INPUT) &&
        b->space == ISA_DRAM)
        return npu_fail(UNSUPPORTED, "operand %s writes '%s', which is read only", d->pat[k].name,
                        b->name);
    if (d->cls != ISA_CLASS_MXU) return NULL;
    if (b->space != (k == 2 ? ISA_PSUM : ISA_SPM))
        return npu_fail(UNSUPPORTED, "operand %s lies in %s", d->pat[k].name,
                        isa_space_name(b->space));
    if (k < 2) return NULL;
    bool whole = pat->base % (4 * row_elems) == 0 && (pat->size[0] == 1 || pat->stride[0] == 1);
    for (int i = 1; i < ISA_DIMS; i++)
        whole = whole && pat->stride[i] % row_elems == 0;
    return whole ? NULL
                 : npu_fail(UNSUPPORTED, "operand %s does not start at PSUM rows of %lld elements",
                            d->pat[k].name, (long long)row_elems);
}

static bool same_sizes(const struct isa_pat *a, const struct isa_pat *b) {
    for (int i = 0; i < ISA_DIMS; i++)
        if (a->size[i] != b->size[i]) return false;
    return true;
}

// Operands of an elementwise instruction: those from `from` on against the first.
static npu_status sizes(const struct tile_op *t) {
    int op = (int)t->insn.h.opcode, base = op == ISA_OP_VRED ? 1 : 0,
        last = op == ISA_OP_COPY ? 1 : 3;
    if (op != ISA_OP_VMAP && op != ISA_OP_VRED && op != ISA_OP_COPY) return NULL;
    for (int k = base + 1; k <= last; k++)
        if (t->operand[k].buf >= 0 &&
            !same_sizes(isa_pat_get(&t->insn, base), isa_pat_get(&t->insn, k)))
            return npu_fail(UNSUPPORTED, "operands %d and %d have different sizes", base, k);
    return NULL;
}

static npu_status check_op(const struct tile_program *p, const struct tile_op *t,
                           bool *const *written) {
    const struct isa_insn_desc *d = isa_find((unsigned)t->insn.h.opcode);
    if (!d || d->npat != t->npat) return npu_fail(UNSUPPORTED, "unknown instruction");
    for (int k = 0; k < t->npat; k++) {
        if (t->operand[k].buf < 0) continue;
        NPU_TRY(operand_bounds(p, t, k));
        NPU_TRY(operand_space(p, t, k, p->hw->mxu_cols));
        const struct tile_buf *b = buffer(p, t, k);
        bool *done = &written[b->id][t->operand[k].slot];
        if (d->pat[k].access == ISA_R && !*done && b->kind != TILE_WEIGHT &&
            b->kind != TILE_INPUT && b->kind != TILE_STATE)
            return npu_fail(UNSUPPORTED, "operand %s reads '%s' slot %d, which nothing wrote",
                            d->pat[k].name, b->name, t->operand[k].slot);
    }
    for (int k = 0; k < t->npat; k++)
        if (t->operand[k].buf >= 0 && d->pat[k].access != ISA_R)
            written[t->operand[k].buf][t->operand[k].slot] = true;
    if ((t->phase == TILE_COMPUTE) != (d->cls == ISA_CLASS_MXU || d->cls == ISA_CLASS_VEC))
        return npu_fail(UNSUPPORTED, "phase %d does not suit the instruction", (int)t->phase);
    return sizes(t);
}

npu_status tile_verify(const struct tile_program *p, const char *stage) {
    struct arena *scratch = arena_scratch(p->arena);
    bool **written = ARENA_ARRAY(scratch, bool *, (size_t)p->nbuf + 1);
    for (int i = 0; i < p->nbuf; i++)
        written[i] = ARENA_ARRAY(scratch, bool, (size_t)p->bufs[i]->slots);
    npu_status st = NULL;
    for (int i = 0; i < p->nop && !st; i++) {
        const struct tile_op *t = p->ops[i];
        const struct isa_insn_desc *d = isa_find((unsigned)t->insn.h.opcode);
        st = npu_note(check_op(p, t, written), "after %s: kernel '%s', operation %d (%s)", stage,
                      p->kernels[t->kernel]->name, i, d ? d->text : "?");
    }
    arena_free(scratch);
    return st;
}
