// SPDX-License-Identifier: Apache-2.0
//
// Chains of the vector engine: preparation, and the two instances of val_chain_run.h.

#include "simulator/exec/val_chain.h"

#include <string.h>

struct buffers_f32 {
    float in[3][VAL_BLOCK], turn[2][VAL_BLOCK], tmp[VAL_BLOCK], imm[ISA_IMMS][VAL_BLOCK];
    float row[VAL_BLOCK], col[VAL_BLOCK], predicate[VAL_BLOCK];
};
struct buffers_i64 {
    int64_t in[3][VAL_BLOCK], turn[2][VAL_BLOCK], tmp[VAL_BLOCK], imm[ISA_IMMS][VAL_BLOCK];
    int64_t row[VAL_BLOCK], col[VAL_BLOCK], predicate[VAL_BLOCK];
};
_Static_assert(sizeof(struct buffers_i64) == sizeof(int64_t) * VAL_BLOCK * VAL_BLOCK_BUFFERS,
               "val_work.blocks");

#define T float
#define K(x) x##_f32
#define IMM(bits) num_float((uint32_t)(bits))
#include "simulator/exec/val_chain_run.h"
#undef T
#undef K
#undef IMM

#define T int64_t
#define K(x) x##_i64
#define IMM(bits) ((int64_t)(int32_t)(uint32_t)(bits))
#include "simulator/exec/val_chain_run.h"
#undef T
#undef K
#undef IMM

static bool present(const struct isa_pat *p) {
    return p && p->space != ISA_SPACE_NONE;
}

static bool float_or_absent(const struct isa_pat *p) {
    return present(p) && isa_dtype_is_float((int)p->dtype);
}

void val_chain_init(struct val_chain *c, const struct val_mem *mem, const struct isa_chain *chain,
                    const struct isa_pat *out, const struct isa_pat *const in[3],
                    const struct isa_pat *sizes) {
    memset(c, 0, offsetof(struct val_chain, reduce));
    c->mem = mem;
    c->chain = chain;
    c->cols = sizes->size[0];
    c->rows = sizes->size[1];
    for (int s = 0; s < ISA_STAGES; s++) {
        const struct isa_stage *st = &chain->st[s];
        int operands = isa_vop_operands((int)st->op);
        if (operands > 0) c->used[st->a] = true;
        if (operands > 1) c->used[st->b] = true;
        if (st->op == ISA_VOP_APRED) c->predicate = true;
    }
    c->used[ISA_SRC_IN0] = true;
    c->integer = !float_or_absent(out);
    for (int i = 0; i < 3; i++) {
        if (float_or_absent(in[i])) c->integer = false;
        c->has[i] = present(in[i]) && c->used[ISA_SRC_IN0 + i];
        if (c->has[i]) val_cursor_init(&c->in[i], mem, in[i]);
    }
    c->writes = present(out);
    if (c->writes) val_cursor_init(&c->out, mem, out);
}

void val_chain_reduce(struct val_chain *c, int red, int64_t dims, bool acc,
                      const struct isa_pat *red_out, const struct isa_pat *sizes) {
    c->red = red;
    if (red == ISA_RED_NONE) return;
    c->red_acc = acc;
    c->span = 1;
    for (int d = 0; d < ISA_DIMS && d < dims; d++)
        c->span *= sizes->size[d];
    val_cursor_init(&c->red_out, c->mem, red_out);
    num_reduce_begin(&c->reduce, red);
}

void val_chain_block(struct val_chain *c, const float *acc0, int64_t pos, size_t n) {
    if (c->integer)
        run_block_i64(c, NULL, pos, n);
    else
        run_block_f32(c, acc0, pos, n);
}
