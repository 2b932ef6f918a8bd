// SPDX-License-Identifier: Apache-2.0
//
// v.map and v.red: all elements in row-major order, a block at a time, through the chain.

#include "simulator/exec/val_chain.h"

static void run(struct val_chain *c, const struct isa_pat *sizes) {
    int64_t elems = isa_pat_elems(sizes);
    for (int64_t pos = 0; pos < elems; pos += VAL_BLOCK) {
        int64_t left = elems - pos;
        val_chain_block(c, NULL, pos, (size_t)(left < VAL_BLOCK ? left : VAL_BLOCK));
    }
}

void val_vmap(const struct val_mem *mem, const struct isa_insn *in) {
    const struct isa_VMAP *v = &in->u.VMAP;
    const struct isa_pat *const inputs[3] = {&v->in0, &v->in1, &v->in2};
    struct val_chain c;
    val_chain_init(&c, mem, &v->chain, &v->out, inputs, &v->out);
    c.pred_base = v->pred_base;
    c.pred_row = v->pred_row;
    c.pred_col = v->pred_col;
    val_chain_reduce(&c, (int)v->red, v->red_dims, v->red_acc != 0, &v->red_out, &v->out);
    run(&c, &v->out);
}

void val_vred(const struct val_mem *mem, const struct isa_insn *in) {
    const struct isa_VRED *v = &in->u.VRED;
    const struct isa_pat *const inputs[3] = {&v->in0, &v->in1, &v->in2};
    struct val_chain c;
    val_chain_init(&c, mem, &v->chain, &v->out, inputs, &v->in0);
    c.writes = false; // out is the reduction's
    c.pred_base = v->pred_base;
    c.pred_row = v->pred_row;
    c.pred_col = v->pred_col;
    val_chain_reduce(&c, (int)v->red, v->red_dims, v->red_acc != 0, &v->out, &v->in0);
    run(&c, &v->in0);
}
