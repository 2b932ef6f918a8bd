// SPDX-License-Identifier: Apache-2.0
//
// dma.copy, dma.fill and dma.gather on every code path against the naive loops.

#include "naive.h"

#include "isa/numeric.h"

#include <criterion/criterion.h>
#include <string.h>

static struct naive_mem start;

static const int types[] = {ISA_F32, ISA_F16, ISA_BF16, ISA_F8E4M3, ISA_F8E5M2,
                            ISA_I4,  ISA_I8,  ISA_I16,  ISA_I32,    ISA_I64,
                            ISA_U4,  ISA_U8,  ISA_U16,  ISA_U32,    ISA_BOOL};

static int pick_type(struct naive_rng *r) {
    return types[naive_pick(r, 0, 14)];
}

// Source in the lower half of a memory, destination in the upper.
static struct isa_pat place(struct naive_rng *r, int dtype, const int64_t *size, bool upper) {
    static const int spaces[] = {ISA_SPM, ISA_PSUM, ISA_DRAM};
    int space = spaces[naive_pick(r, 0, 2)];
    if (space == ISA_PSUM && isa_dtype_bits(dtype) != 32) space = ISA_SPM;
    int64_t half = (space == ISA_SPM ? NAIVE_SPM : NAIVE_PSUM) / 2;
    int64_t base = (upper ? half : 0) + (space == ISA_DRAM ? NAIVE_DRAM_BASE : 0);
    return naive_pat(r, space, dtype, size, !upper, base, base + half);
}

static void random_size(struct naive_rng *r, int64_t *size) {
    for (int d = 0; d < ISA_DIMS; d++)
        size[d] = naive_pick(r, 0, 1) ? naive_pick(r, 1, 5) : 1;
    if (naive_pick(r, 0, 3) == 0) size[0] = naive_pick(r, 60, 300), size[3] = size[4] = 1;
    while (size[0] * size[1] * size[2] * size[3] * size[4] > 1200)
        size[naive_pick(r, 0, 4)] = 1;
}

Test(val_dma, random_copies) {
    struct naive_rng r = {.state = 0x3030303};
    naive_fill(&r, &start);
    for (int i = 0; i < 600; i++) {
        struct isa_insn in;
        struct isa_COPY *v = &in.u.COPY;
        int64_t size[ISA_DIMS];
        isa_init(&in, ISA_OP_COPY);
        random_size(&r, size);
        int from = pick_type(&r), to = naive_pick(&r, 0, 1) ? from : pick_type(&r);
        v->src = place(&r, from, size, false);
        v->dst = place(&r, to, size, true);
        if (naive_pick(&r, 0, 1)) naive_fill_pat(&r, &start, &v->src, true);
        naive_check(&start, &in);
    }
}

Test(val_dma, random_fills) {
    struct naive_rng r = {.state = 0x4040404};
    naive_fill(&r, &start);
    for (int i = 0; i < 300; i++) {
        struct isa_insn in;
        struct isa_FILL *v = &in.u.FILL;
        int64_t size[ISA_DIMS];
        isa_init(&in, ISA_OP_FILL);
        random_size(&r, size);
        v->dst = place(&r, pick_type(&r), size, true);
        v->value = num_bits((float)naive_pick(&r, -500, 500) / 4.0f);
        if (naive_pick(&r, 0, 20) == 0) v->value = 0x7f812345;
        naive_check(&start, &in);
    }
}

Test(val_dma, random_gathers) {
    struct naive_rng r = {.state = 0x5050505};
    naive_fill(&r, &start);
    for (int i = 0; i < 400; i++) {
        struct isa_insn in;
        struct isa_GATHER *v = &in.u.GATHER;
        isa_init(&in, ISA_OP_GATHER);
        int64_t n = naive_pick(&r, 1, 40), rows = naive_pick(&r, 1, 20);
        int64_t a = naive_pick(&r, 1, 6), b = naive_pick(&r, 1, 4);
        int type = pick_type(&r);
        v->src = place(&r, type, (int64_t[]){n, rows, 1, 1, 1}, false);
        v->dst = place(&r, naive_pick(&r, 0, 3) ? type : pick_type(&r), (int64_t[]){n, a, b, 1, 1},
                       true);
        v->idx = naive_pat(&r, ISA_SPM, naive_pick(&r, 0, 1) ? ISA_I32 : ISA_I64,
                           (int64_t[]){a, b, 1, 1, 1}, false, NAIVE_SPM - 4096, NAIVE_SPM);
        v->mode = naive_pick(&r, 0, 2);
        v->neg = naive_pick(&r, 0, 1);
        naive_fill_pat(&r, &start, &v->src, true);
        bool wild = naive_pick(&r, 0, 2) == 0;
        for (int64_t e = 0; e < a * b; e++) {
            int64_t row = naive_pick(&r, wild ? -rows - 1 : 0, wild ? rows : rows - 1);
            int64_t at = e % a * v->idx.stride[0] + e / a * v->idx.stride[1];
            num_store_i64((int)v->idx.dtype, start.spm + v->idx.base, at, row);
        }
        naive_check(&start, &in);
    }
}

Test(val_dma, index_out_of_range_is_named) {
    struct val_work *work = val_work_new();
    struct val_mem vm = naive_val_mem(&start, work);
    struct val_fault fault;
    struct isa_insn in;
    isa_init(&in, ISA_OP_GATHER);
    struct isa_GATHER *v = &in.u.GATHER;
    int32_t idx[3] = {1, 4, 2};
    memcpy(start.spm, idx, sizeof idx);
    v->src = (struct isa_pat){ISA_SPM, ISA_F16, 0, 0, 64, {8, 4, 1, 1, 1}, {1, 8, 0, 0, 0}};
    v->dst = (struct isa_pat){ISA_SPM, ISA_F16, 0, 0, 512, {8, 3, 1, 1, 1}, {1, 8, 0, 0, 0}};
    v->idx = (struct isa_pat){ISA_SPM, ISA_I32, 0, 0, 0, {3, 1, 1, 1, 1}, {1, 0, 0, 0, 0}};
    cr_assert(!val_exec(&vm, &in, &fault));
    cr_assert_str_eq(fault.text, "index 4 (element 1) is outside the table's 4 rows");
    cr_assert(fault.element == 1 && fault.value == 4);
    in.h.opcode = ISA_OP_TRANS;
    cr_assert(!val_exec(&vm, &in, &fault));
    cr_assert_str_eq(fault.text, "dma.trans has no values on this revision");
    val_work_free(work);
}

Test(val_dma, code_paths_by_name) {
    cr_assert(val_isa_parse("avx2") == VAL_AVX2);
    cr_assert(val_isa_parse("auto") == VAL_AUTO);
    cr_assert(val_isa_parse("neon") == -1);
    cr_assert(val_set_isa(VAL_SSE2) && val_isa_used() == VAL_SSE2);
    cr_assert(val_set_isa(VAL_AUTO) && val_isa_used() != VAL_AUTO);
}
