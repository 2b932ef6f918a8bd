// SPDX-License-Identifier: Apache-2.0
//
// v.map, v.red, v.dw and v.pool on every code path against the naive loops.

#include "naive.h"

#include "isa/numeric.h"

#include <criterion/criterion.h>

static struct naive_mem start;

static const int types[] = {ISA_F32, ISA_F16, ISA_BF16, ISA_F8E4M3, ISA_F8E5M2,
                            ISA_I4,  ISA_I8,  ISA_I16,  ISA_I32,    ISA_I64,
                            ISA_U4,  ISA_U8,  ISA_U16,  ISA_U32,    ISA_BOOL};
static const int int_types[] = {ISA_I8, ISA_I16, ISA_I32,  ISA_I64,
                                ISA_U8, ISA_U16, ISA_BOOL, ISA_I4};

static int pick_type(struct naive_rng *r, bool integer) {
    return integer ? int_types[naive_pick(r, 0, 7)] : types[naive_pick(r, 0, 14)];
}

// Stages that the kind of chain has, naming present operands only.
static void random_chain(struct naive_rng *r, struct isa_chain *c, bool integer, bool in1, bool in2,
                         bool predicate) {
    int stages = (int)naive_pick(r, 0, 5), special = 0;
    for (int s = 0; s < stages; s++) {
        struct isa_stage *st = &c->st[s];
        do {
            st->op = naive_pick(r, 0, 8) ? naive_pick(r, 0, 51) : ISA_VOP_APRED;
        } while (!num_vop_has((int)st->op, integer) || (isa_vop_is_sf((int)st->op) && special) ||
                 (st->op == ISA_VOP_APRED && !predicate));
        if (isa_vop_is_sf((int)st->op)) special = 1;
        int64_t *operand[2] = {&st->a, &st->b};
        for (int k = 0; k < isa_vop_operands((int)st->op); k++) {
            do
                *operand[k] = naive_pick(r, ISA_SRC_ACC, ISA_SRC_COL);
            while ((*operand[k] == ISA_SRC_IN1 && !in1) || (*operand[k] == ISA_SRC_IN2 && !in2) ||
                   (*operand[k] == ISA_SRC_TMP && s == 0));
        }
        st->save = s == 0 || naive_pick(r, 0, 4) == 0;
    }
    for (int i = 0; i < ISA_IMMS; i++) {
        float f = (float)naive_pick(r, -64, 64) / 16.0f;
        c->imm[i] = integer ? (int64_t)(uint32_t)naive_pick(r, -9, 9) : (int64_t)num_bits(f);
    }
}

static const int64_t PART = NAIVE_SPM / 4;

static void random_size(struct naive_rng *r, int64_t *size) {
    for (int d = 0; d < ISA_DIMS; d++)
        size[d] = naive_pick(r, 0, 1) ? naive_pick(r, 1, 6) : 1;
    if (naive_pick(r, 0, 2) == 0) size[0] = naive_pick(r, 60, 200), size[3] = size[4] = 1;
    while (size[0] * size[1] * size[2] * size[3] * size[4] > 2400)
        size[naive_pick(r, 0, 4)] = 1;
}

static void reduced(const int64_t *size, int64_t dims, int64_t *out) {
    for (int d = 0; d < ISA_DIMS; d++)
        out[d] = d + dims < ISA_DIMS ? size[d + dims] : 1;
}

static void random_vmap(struct naive_rng *r, struct isa_insn *in) {
    struct isa_VMAP *v = &in->u.VMAP;
    bool integer = naive_pick(r, 0, 3) == 0, has[3];
    int64_t size[ISA_DIMS], outer[ISA_DIMS];
    isa_init(in, ISA_OP_VMAP);
    random_size(r, size);
    struct isa_pat *inputs[3] = {&v->in0, &v->in1, &v->in2};
    for (int i = 0; i < 3; i++) {
        has[i] = naive_pick(r, 0, 3) != 0;
        if (!has[i]) continue;
        *inputs[i] =
            naive_pat(r, ISA_SPM, pick_type(r, integer), size, true, i * PART, (i + 1) * PART);
        naive_fill_pat(r, &start, inputs[i], naive_pick(r, 0, 2) == 0);
    }
    bool psum = naive_pick(r, 0, 3) == 0;
    v->out = naive_pat(r, psum ? ISA_PSUM : ISA_SPM,
                       psum ? (integer ? ISA_I32 : ISA_F32) : pick_type(r, integer), size, false,
                       psum ? 0 : 3 * PART, psum ? NAIVE_PSUM / 2 : 4 * PART - 8192);
    v->pred_base = naive_pick(r, -4, 4);
    v->pred_row = naive_pick(r, -2, 2);
    v->pred_col = naive_pick(r, -2, 2);
    random_chain(r, &v->chain, integer, has[1], has[2], true);
    v->red = naive_pick(r, 0, 1) ? naive_pick(r, 0, ISA_REDS - 1) : 0;
    v->red_dims = naive_pick(r, 1, 5);
    v->red_acc = v->red && v->red != ISA_RED_ARGMAX && naive_pick(r, 0, 1);
    if (v->red == ISA_RED_NONE) return;
    reduced(size, v->red_dims, outer);
    v->red_out = naive_pat(r, ISA_PSUM, integer ? ISA_I32 : ISA_F32, outer, false, NAIVE_PSUM / 2,
                           NAIVE_PSUM);
}

static void random_vred(struct naive_rng *r, struct isa_insn *in) {
    struct isa_VRED *v = &in->u.VRED;
    bool integer = naive_pick(r, 0, 3) == 0, has[3] = {true, false, false};
    int64_t size[ISA_DIMS], outer[ISA_DIMS];
    isa_init(in, ISA_OP_VRED);
    random_size(r, size);
    struct isa_pat *inputs[3] = {&v->in0, &v->in1, &v->in2};
    for (int i = 0; i < 3; i++) {
        if (i) has[i] = naive_pick(r, 0, 1) != 0;
        if (!has[i]) continue;
        *inputs[i] =
            naive_pat(r, ISA_SPM, pick_type(r, integer), size, true, i * PART, (i + 1) * PART);
        naive_fill_pat(r, &start, inputs[i], naive_pick(r, 0, 2) == 0);
    }
    v->red = naive_pick(r, 1, ISA_REDS - 1);
    v->red_dims = naive_pick(r, 1, 5);
    v->red_acc = v->red != ISA_RED_ARGMAX && naive_pick(r, 0, 1);
    reduced(size, v->red_dims, outer);
    v->out = naive_pat(r, ISA_SPM, pick_type(r, integer), outer, false, 3 * PART, 4 * PART);
    v->pred_base = naive_pick(r, -4, 4);
    v->pred_row = naive_pick(r, -2, 2);
    v->pred_col = naive_pick(r, -2, 2);
    random_chain(r, &v->chain, integer, has[1], has[2], true);
}

// v.pool, and v.dw by the fields that both have.
static void random_window(struct naive_rng *r, struct isa_insn *in, bool depthwise) {
    struct isa_VPOOL v = {0};
    struct isa_pat weights = {0};
    int64_t c = naive_pick(r, 0, 2) ? naive_pick(r, 1, 9) : naive_pick(r, 60, 70);
    int64_t h = naive_pick(r, 2, 8), w = naive_pick(r, 2, 8);
    isa_init(in, depthwise ? ISA_OP_VDW : ISA_OP_VPOOL);
    v.kind = naive_pick(r, 1, 4);
    v.kh = naive_pick(r, 1, 3);
    v.kw = naive_pick(r, 1, 3);
    v.sh = naive_pick(r, 1, 2);
    v.sw = naive_pick(r, 1, 2);
    v.dh = naive_pick(r, 1, 2);
    v.dw = naive_pick(r, 1, 2);
    v.pad_top = naive_pick(r, depthwise ? -2 : -1, 2);
    v.pad_left = naive_pick(r, depthwise ? -2 : -1, 2);
    int64_t size[ISA_DIMS] = {c, naive_pick(r, 1, 4), naive_pick(r, 1, 4), 1, 1};
    bool in1 = naive_pick(r, 0, 1);
    v.in0 = naive_pat(r, ISA_SPM, pick_type(r, false), (int64_t[]){c, w, h, 1, 1}, false, 0, PART);
    naive_fill_pat(r, &start, &v.in0, naive_pick(r, 0, 3) == 0);
    if (depthwise) {
        weights = naive_pat(r, ISA_SPM, pick_type(r, false), (int64_t[]){c, v.kh * v.kw, 1, 1, 1},
                            false, PART, 2 * PART);
        naive_fill_pat(r, &start, &weights, naive_pick(r, 0, 3) == 0);
    }
    v.in1 = (struct isa_pat){.size = {1, 1, 1, 1, 1}};
    v.in2 = v.in1;
    if (in1) {
        v.in1 = naive_pat(r, ISA_SPM, pick_type(r, false), size, true, 2 * PART, 3 * PART);
        naive_fill_pat(r, &start, &v.in1, false);
    }
    v.out = naive_pat(r, ISA_SPM, pick_type(r, false), size, false, 3 * PART, 4 * PART);
    random_chain(r, &v.chain, false, in1, false, false);
    if (!depthwise) {
        in->u.VPOOL = v;
        return;
    }
    in->u.VDW = (struct isa_VDW){.kh = v.kh,
                                 .kw = v.kw,
                                 .sh = v.sh,
                                 .sw = v.sw,
                                 .dh = v.dh,
                                 .dw = v.dw,
                                 .pad_top = v.pad_top,
                                 .pad_left = v.pad_left,
                                 .chain = v.chain,
                                 .out = v.out,
                                 .in0 = v.in0,
                                 .w = weights,
                                 .in1 = v.in1,
                                 .in2 = v.in2};
}

Test(val_vec, random_maps) {
    struct naive_rng r = {.state = 0xabcdef};
    naive_fill(&r, &start);
    for (int i = 0; i < 800; i++) {
        struct isa_insn in;
        random_vmap(&r, &in);
        naive_check(&start, &in);
    }
}

Test(val_vec, random_reductions) {
    struct naive_rng r = {.state = 0xfedcba};
    naive_fill(&r, &start);
    for (int i = 0; i < 800; i++) {
        struct isa_insn in;
        random_vred(&r, &in);
        naive_check(&start, &in);
    }
}

Test(val_vec, random_depthwise) {
    struct naive_rng r = {.state = 0x1010101};
    naive_fill(&r, &start);
    for (int i = 0; i < 300; i++) {
        struct isa_insn in;
        random_window(&r, &in, true);
        naive_check(&start, &in);
    }
}

Test(val_vec, random_pools) {
    struct naive_rng r = {.state = 0x2020202};
    naive_fill(&r, &start);
    for (int i = 0; i < 300; i++) {
        struct isa_insn in;
        random_window(&r, &in, false);
        naive_check(&start, &in);
    }
}

// In place: out is in0.
Test(val_vec, in_place) {
    struct naive_rng r = {.state = 5};
    naive_fill(&r, &start);
    struct isa_insn in;
    isa_init(&in, ISA_OP_VMAP);
    struct isa_VMAP *v = &in.u.VMAP;
    v->in0 = (struct isa_pat){ISA_SPM, ISA_F16, 0, 0, 64, {3000, 3, 1, 1, 1}, {1, 3000, 0, 0, 0}};
    v->out = v->in0;
    v->in1 = v->in0;
    v->chain.st[0] = (struct isa_stage){ISA_VOP_MUL, ISA_SRC_IN1, 0, 0};
    v->chain.st[1] = (struct isa_stage){ISA_VOP_GELU, 0, 0, 0};
    naive_fill_pat(&r, &start, &v->in0, true);
    naive_check(&start, &in);
}

Test(val_vec, empty_window_is_named) {
    static struct naive_mem mem;
    struct val_work *work = val_work_new();
    struct val_mem vm = naive_val_mem(&mem, work);
    struct val_fault fault;
    struct isa_insn in;
    isa_init(&in, ISA_OP_VPOOL);
    struct isa_VPOOL *v = &in.u.VPOOL;
    v->kind = ISA_POOL_MAX;
    v->kh = v->kw = 2;
    v->sh = v->sw = 2;
    v->pad_left = 2;
    v->in0 = (struct isa_pat){ISA_SPM, ISA_F16, 0, 0, 0, {1, 4, 4, 1, 1}, {1, 1, 4, 0, 0}};
    v->out = (struct isa_pat){ISA_SPM, ISA_F16, 0, 0, 256, {1, 2, 2, 1, 1}, {1, 1, 2, 0, 0}};
    cr_assert(!val_exec(&vm, &in, &fault));
    cr_assert_str_eq(fault.text,
                     "the pooling window of output row 0, column 0 lies wholly in the padding");
    val_work_free(work);
}
