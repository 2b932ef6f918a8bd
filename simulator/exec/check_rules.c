// SPDX-License-Identifier: Apache-2.0
// Rules of each instruction about its own operands: which must be there, in which memory, of which
// type, and how sizes agree. What holds for all operands alike is in check.c.
#include <inttypes.h>

#include "simulator/exec/check.h"

enum { IN_SPM = 1, IN_PSUM = 2 };

static bool present(const struct isa_pat *p) {
    return p->space != ISA_SPACE_NONE;
}

static bool need(const struct isa_pat *p, const char *name, int where, struct exec_fault *f) {
    if (!present(p)) return check_fail(f, EXEC_FAULT_OPERAND, "operand %s is absent", name);
    if (where == (IN_SPM | IN_PSUM)) return true;
    if (p->space != (where == IN_SPM ? ISA_SPM : ISA_PSUM))
        return check_fail(f, EXEC_FAULT_SPACE, "operand %s lies in %s, it must be in %s", name,
                          isa_space_name((int)p->space), where == IN_SPM ? "spm" : "psum");
    return true;
}

// Dimensions from..4 of both, shifted: a[from_a + i] == b[from_b + i]; what is left over has
// size 1.
static bool same_sizes(const struct isa_pat *a, int from_a, const char *name_a,
                       const struct isa_pat *b, int from_b, const char *name_b,
                       struct exec_fault *f) {
    for (int i = 0; from_a + i < ISA_DIMS || from_b + i < ISA_DIMS; i++) {
        int64_t x = from_a + i < ISA_DIMS ? a->size[from_a + i] : 1,
                y = from_b + i < ISA_DIMS ? b->size[from_b + i] : 1;
        if (x != y)
            return check_fail(f, EXEC_FAULT_SIZES,
                              "operand %s has size %" PRId64
                              " in dimension %d, operand %s has %" PRId64 " in dimension %d",
                              name_a, x, from_a + i, name_b, y, from_b + i);
    }
    return true;
}

static bool only_dims(const struct isa_pat *p, const char *name, int dims, struct exec_fault *f) {
    for (int d = dims; d < ISA_DIMS; d++)
        if (p->size[d] != 1)
            return check_fail(f, EXEC_FAULT_SIZES,
                              "operand %s has size %" PRId64
                              " in dimension %d, it has %d dimensions",
                              name, p->size[d], d, dims);
    return true;
}

static bool mm_type(int64_t dtype) {
    return dtype == ISA_F32 || dtype == ISA_F16 || dtype == ISA_BF16 || dtype == ISA_F8E4M3 ||
           dtype == ISA_F8E5M2 || dtype == ISA_I8 || dtype == ISA_U8 || dtype == ISA_I4 ||
           dtype == ISA_U4;
}

// Types, and the result's place in PSUM: each row of D starts on a PSUM row, its elements side by
// side.
static bool check_product(const struct check_machine *m, const struct isa_pat *a,
                          const struct isa_pat *b, const struct isa_pat *d, int64_t zero_a,
                          int64_t zero_b, struct exec_fault *f) {
    if (!need(a, "a", IN_SPM, f) || !need(b, "b", IN_SPM, f) || !need(d, "d", IN_PSUM, f))
        return false;
    if (!mm_type(a->dtype) || !mm_type(b->dtype))
        return check_fail(
            f, EXEC_FAULT_DTYPE,
            "operand types %s and %s: f32, f16, bf16, f8, i8, u8, i4, u4 are multiplied",
            isa_dtype_name((int)a->dtype), isa_dtype_name((int)b->dtype));
    const bool floats = isa_dtype_is_float((int)a->dtype);
    if (floats != isa_dtype_is_float((int)b->dtype))
        return check_fail(f, EXEC_FAULT_DTYPE, "%s times %s: integers and floats do not mix",
                          isa_dtype_name((int)a->dtype), isa_dtype_name((int)b->dtype));
    if (d->dtype != (floats ? ISA_F32 : ISA_I32))
        return check_fail(f, EXEC_FAULT_DTYPE, "operand d has type %s, the sum is %s",
                          isa_dtype_name((int)d->dtype), floats ? "f32" : "i32");
    if (floats && (zero_a || zero_b))
        return check_fail(f, EXEC_FAULT_FIELD, "zero points with floats");
    if (d->base % m->psum_row_bytes != 0)
        return check_fail(f, EXEC_FAULT_ALIGNMENT,
                          "operand d: address 0x%" PRIx64
                          " is not the start of a PSUM row (%" PRId64 " bytes)",
                          (uint64_t)d->base, m->psum_row_bytes);
    if (d->size[0] > 1 && d->stride[0] != 1)
        return check_fail(f, EXEC_FAULT_LAYOUT,
                          "operand d: stride %" PRId64 " in dimension 0, results lie side by side",
                          d->stride[0]);
    for (int i = 1; i < ISA_DIMS; i++)
        if (d->size[i] > 1 && d->stride[i] * 4 % m->psum_row_bytes != 0)
            return check_fail(f, EXEC_FAULT_ALIGNMENT,
                              "operand d: stride %" PRId64 " in dimension %d is not a multiple of "
                              "the %" PRId64 " elements of a PSUM row",
                              d->stride[i], i, m->psum_row_bytes / 4);
    return true;
}

static bool rules_mm(const struct check_machine *m, const struct isa_MM *in, struct exec_fault *f) {
    if (!check_product(m, &in->a, &in->b, &in->d, in->zero_a, in->zero_b, f)) return false;
    if (!only_dims(&in->b, "b", 2, f)) return false;
    if (in->a.size[0] != in->b.size[1])
        return check_fail(f, EXEC_FAULT_SIZES,
                          "k: operand a has %" PRId64 ", operand b has %" PRId64, in->a.size[0],
                          in->b.size[1]);
    if (in->b.size[0] != in->d.size[0])
        return check_fail(f, EXEC_FAULT_SIZES,
                          "n: operand b has %" PRId64 ", operand d has %" PRId64, in->b.size[0],
                          in->d.size[0]);
    return same_sizes(&in->a, 1, "a", &in->d, 1, "d", f);
}

static bool rules_mmconv(const struct check_machine *m, const struct isa_MMCONV *in,
                         struct exec_fault *f) {
    if (!check_product(m, &in->a, &in->b, &in->d, in->zero_a, in->zero_b, f)) return false;
    if (!only_dims(&in->a, "a", 3, f) || !only_dims(&in->b, "b", 2, f) ||
        !only_dims(&in->d, "d", 3, f))
        return false;
    const int64_t k = in->kh * in->kw * in->a.size[0];
    if (in->b.size[1] != k)
        return check_fail(f, EXEC_FAULT_SIZES,
                          "k: operand b has %" PRId64 ", kh * kw * Cin is %" PRId64, in->b.size[1],
                          k);
    if (in->b.size[0] != in->d.size[0])
        return check_fail(f, EXEC_FAULT_SIZES,
                          "n: operand b has %" PRId64 ", operand d has %" PRId64, in->b.size[0],
                          in->d.size[0]);
    return true;
}

// ---- vector engine ------------------------------------------------------------------------------

struct vop_facts {
    int operands;
    bool special;
    int types;
};

static bool vop_facts(int64_t op, struct vop_facts *out) {
    enum { ALU = 0, SF = 1 };
    switch (op) {
#define ISA_VOP(N, text, code, operands, kind, types, doc)            \
    case (code):                                                      \
        *out = (struct vop_facts){(operands), (kind) == SF, (types)}; \
        return true;
#include "isa/vop.def"
    default: return false;
    }
}

static bool check_source(int64_t src, const bool in[3], bool saved, int stage,
                         struct exec_fault *f) {
    if (src <= ISA_SRC_NONE || src >= ISA_SRCS)
        return check_fail(f, EXEC_FAULT_CHAIN,
                          "stage %d: its operation needs an operand, number %" PRId64 " is none",
                          stage, src);
    for (int i = 0; i < 3; i++)
        if (src == ISA_SRC_IN0 + i && !in[i])
            return check_fail(f, EXEC_FAULT_CHAIN, "stage %d uses in%d, which is absent", stage, i);
    if (src == ISA_SRC_TMP && !saved)
        return check_fail(f, EXEC_FAULT_CHAIN, "stage %d uses tmp, which no earlier stage saved",
                          stage);
    return true;
}

bool check_chain(const struct isa_chain *c, const bool in[3], bool integer, struct exec_fault *f) {
    int special = 0;
    bool saved = false;
    for (int i = 0; i < ISA_STAGES; i++) {
        const struct isa_stage *s = &c->st[i];
        struct vop_facts v;
        if (!vop_facts(s->op, &v))
            return check_fail(f, EXEC_FAULT_CHAIN, "stage %d: no operation has code %" PRId64, i,
                              s->op);
        if (integer ? v.types == 0 : v.types == 2)
            return check_fail(f, EXEC_FAULT_CHAIN, "stage %d: %s in a chain of %s", i,
                              isa_vop_name((int)s->op), integer ? "integers" : "f32");
        special += v.special;
        if (special > 1)
            return check_fail(f, EXEC_FAULT_CHAIN, "stage %d: %s is a second special function", i,
                              isa_vop_name((int)s->op));
        if (v.operands > 0 && !check_source(s->a, in, saved, i, f)) return false;
        if (v.operands > 1 && !check_source(s->b, in, saved, i, f)) return false;
        if (s->save) saved = true;
    }
    return true;
}

static bool integers(const struct isa_pat *out, const struct isa_pat *in0,
                     const struct isa_pat *in1, const struct isa_pat *in2) {
    const struct isa_pat *p[4] = {out, in0, in1, in2};
    for (int i = 0; i < 4; i++)
        if (present(p[i]) && !isa_dtype_is_int((int)p[i]->dtype)) return false;
    return true;
}

// Reduction fields, and that `out` has the sizes of in's outer dimensions.
static bool check_reduction(int64_t red, int64_t red_dims, int64_t red_acc,
                            const struct isa_pat *in, const char *in_name,
                            const struct isa_pat *out, const char *out_name, struct exec_fault *f) {
    if (red <= ISA_RED_NONE || red >= ISA_REDS)
        return check_fail(f, EXEC_FAULT_FIELD, "red %" PRId64 ", 1 to %d are reductions", red,
                          ISA_REDS - 1);
    if (red_dims < 1 || red_dims > ISA_DIMS)
        return check_fail(f, EXEC_FAULT_FIELD,
                          "red_dims %" PRId64 ", 1 to %d dimensions are reduced", red_dims,
                          ISA_DIMS);
    if (red == ISA_RED_ARGMAX && red_acc)
        return check_fail(f, EXEC_FAULT_FIELD,
                          "argmax with red_acc: an index cannot be combined with an older one");
    return same_sizes(out, 0, out_name, in, (int)red_dims, in_name, f);
}

static bool rules_vmap(const struct isa_VMAP *in, struct exec_fault *f) {
    const struct isa_pat *p[3] = {&in->in0, &in->in1, &in->in2};
    static const char *const name[3] = {"in0", "in1", "in2"};
    const bool given[3] = {present(p[0]), present(p[1]), present(p[2])};
    if (!need(&in->out, "out", IN_SPM | IN_PSUM, f)) return false;
    for (int i = 0; i < 3; i++)
        if (given[i] && !same_sizes(p[i], 0, name[i], &in->out, 0, "out", f)) return false;
    if (in->red != ISA_RED_NONE) {
        if (!need(&in->red_out, "red_out", IN_SPM | IN_PSUM, f)) return false;
        if (!check_reduction(in->red, in->red_dims, in->red_acc, &in->out, "out", &in->red_out,
                             "red_out", f))
            return false;
    } else if (present(&in->red_out) || in->red_dims || in->red_acc) {
        return check_fail(f, EXEC_FAULT_FIELD, "red_out, red_dims or red_acc without a reduction");
    }
    return check_chain(&in->chain, given, integers(&in->out, p[0], p[1], p[2]), f);
}

static bool rules_vred(const struct isa_VRED *in, struct exec_fault *f) {
    const bool given[3] = {true, present(&in->in1), present(&in->in2)};
    if (!need(&in->in0, "in0", IN_SPM | IN_PSUM, f) || !need(&in->out, "out", IN_SPM | IN_PSUM, f))
        return false;
    if (given[1] && !same_sizes(&in->in1, 0, "in1", &in->in0, 0, "in0", f)) return false;
    if (given[2] && !same_sizes(&in->in2, 0, "in2", &in->in0, 0, "in0", f)) return false;
    if (!check_reduction(in->red, in->red_dims, in->red_acc, &in->in0, "in0", &in->out, "out", f))
        return false;
    return check_chain(&in->chain, given, integers(&in->out, &in->in0, &in->in1, &in->in2), f);
}

// in0, out and the chain operands of the two window instructions.
static bool check_window(const struct isa_pat *out, const struct isa_pat *in0,
                         const struct isa_pat *in1, const struct isa_pat *in2,
                         const struct isa_chain *chain, bool integer, struct exec_fault *f) {
    const bool given[3] = {true, present(in1), present(in2)};
    if (!need(out, "out", IN_SPM | IN_PSUM, f) || !need(in0, "in0", IN_SPM | IN_PSUM, f))
        return false;
    if (!only_dims(out, "out", 3, f) || !only_dims(in0, "in0", 3, f)) return false;
    if (in0->size[0] != out->size[0])
        return check_fail(f, EXEC_FAULT_SIZES,
                          "channels: operand in0 has %" PRId64 ", operand out has %" PRId64,
                          in0->size[0], out->size[0]);
    if (given[1] && !same_sizes(in1, 0, "in1", out, 0, "out", f)) return false;
    if (given[2] && !same_sizes(in2, 0, "in2", out, 0, "out", f)) return false;
    return check_chain(chain, given, integer, f);
}

static bool rules_vdw(const struct isa_VDW *in, struct exec_fault *f) {
    if (!check_window(&in->out, &in->in0, &in->in1, &in->in2, &in->chain, false, f)) return false;
    if (!need(&in->w, "w", IN_SPM | IN_PSUM, f) || !only_dims(&in->w, "w", 2, f)) return false;
    if (in->w.size[0] != in->in0.size[0] || in->w.size[1] != in->kh * in->kw)
        return check_fail(f, EXEC_FAULT_SIZES,
                          "operand w is %" PRId64 " x %" PRId64
                          ", channels and kh * kw are %" PRId64 " x %" PRId64,
                          in->w.size[0], in->w.size[1], in->in0.size[0], in->kh * in->kw);
    return true;
}

// First output position whose window of k taps lies wholly outside 0..size-1, or -1.
static int64_t empty_window(int64_t outs, int64_t stride, int64_t pad, int64_t k, int64_t dilation,
                            int64_t size) {
    for (int64_t o = 0; o < outs; o++) {
        const int64_t first = o * stride - pad;
        const int64_t skip = first < 0 ? (-first + dilation - 1) / dilation : 0;
        if (skip >= k || first + skip * dilation >= size) return o;
    }
    return -1;
}

static bool rules_vpool(const struct isa_VPOOL *in, struct exec_fault *f) {
    if (in->kind < ISA_POOL_MAX || in->kind > ISA_POOL_SUM)
        return check_fail(f, EXEC_FAULT_FIELD, "kind %" PRId64 ": 1 max, 2 avg, 3 avgpad, 4 sum",
                          in->kind);
    const bool integer = integers(&in->out, &in->in0, &in->in1, &in->in2);
    if (!check_window(&in->out, &in->in0, &in->in1, &in->in2, &in->chain, integer, f)) return false;
    int64_t p = empty_window(in->out.size[2], in->sh, in->pad_top, in->kh, in->dh, in->in0.size[2]);
    int64_t q =
        empty_window(in->out.size[1], in->sw, in->pad_left, in->kw, in->dw, in->in0.size[1]);
    if (p >= 0 || q >= 0)
        return check_fail(f, EXEC_FAULT_WINDOW,
                          "the window of output %s %" PRId64 " lies wholly in the padding",
                          p >= 0 ? "row" : "column", p >= 0 ? p : q);
    return true;
}

// ---- DMA ----------------------------------------------------------------------------------------

static bool rules_copy(const struct isa_COPY *in, struct exec_fault *f) {
    if (!need(&in->src, "src", IN_SPM | IN_PSUM, f) || !need(&in->dst, "dst", IN_SPM | IN_PSUM, f))
        return false;
    if (in->pad)
        return check_fail(f, EXEC_FAULT_FIELD, "pad %" PRId64 ", this revision has 0", in->pad);
    return same_sizes(&in->src, 0, "src", &in->dst, 0, "dst", f);
}

static bool rules_gather(const struct isa_GATHER *in, struct exec_fault *f) {
    if (!need(&in->src, "src", IN_SPM | IN_PSUM, f) ||
        !need(&in->dst, "dst", IN_SPM | IN_PSUM, f) || !need(&in->idx, "idx", IN_SPM | IN_PSUM, f))
        return false;
    if (in->mode > 2)
        return check_fail(f, EXEC_FAULT_FIELD, "mode %" PRId64 ": 0 fault, 1 skip, 2 zeros",
                          in->mode);
    if (in->idx.dtype != ISA_I32 && in->idx.dtype != ISA_I64)
        return check_fail(f, EXEC_FAULT_DTYPE, "operand idx has type %s, indices are i32 or i64",
                          isa_dtype_name((int)in->idx.dtype));
    if (!only_dims(&in->src, "src", 2, f)) return false;
    if (in->src.size[0] != in->dst.size[0])
        return check_fail(f, EXEC_FAULT_SIZES,
                          "row: operand src has %" PRId64 " elements, operand dst has %" PRId64,
                          in->src.size[0], in->dst.size[0]);
    int64_t rows = 1;
    for (int d = 1; d < ISA_DIMS; d++)
        rows = rows > (int64_t)1 << 40 ? rows : rows * in->dst.size[d];
    if (rows != isa_pat_elems(&in->idx))
        return check_fail(f, EXEC_FAULT_SIZES,
                          "operand dst has %" PRId64 " rows, operand idx has %" PRId64 " indices",
                          rows, isa_pat_elems(&in->idx));
    return true;
}

bool check_rules(const struct check_machine *m, const struct isa_insn *in, struct exec_fault *f) {
    switch (in->h.opcode) {
    case ISA_OP_SYNC: return true;
    case ISA_OP_COPY: return rules_copy(&in->u.COPY, f);
    case ISA_OP_GATHER: return rules_gather(&in->u.GATHER, f);
    case ISA_OP_FILL: return need(&in->u.FILL.dst, "dst", IN_SPM | IN_PSUM, f);
    case ISA_OP_MM: return rules_mm(m, &in->u.MM, f);
    case ISA_OP_MMCONV: return rules_mmconv(m, &in->u.MMCONV, f);
    case ISA_OP_VMAP: return rules_vmap(&in->u.VMAP, f);
    case ISA_OP_VRED: return rules_vred(&in->u.VRED, f);
    case ISA_OP_VDW: return rules_vdw(&in->u.VDW, f);
    case ISA_OP_VPOOL: return rules_vpool(&in->u.VPOOL, f);
    default:
        return check_fail(f, EXEC_FAULT_UNIMPLEMENTED, "opcode 0x%02x", (unsigned)in->h.opcode);
    }
}
