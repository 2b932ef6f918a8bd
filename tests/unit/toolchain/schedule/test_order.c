// SPDX-License-Identifier: Apache-2.0
// Order of operations: what depends stays behind, loads go ahead, and those far ahead become one.
#include <criterion/criterion.h>
#include <string.h>

#include "toolchain/schedule/schedule.h"

#define LAYERS 8
#define PIECES 24

// Layers of one product each: weights in pieces, a long product that waits for all of them.
static struct tile_program *layers(struct arena *a, const struct hw *hw, int64_t columns) {
    struct tile_program *p = tile_program_new(a, hw);
    int x = tile_add_resident(p, "x", 65536, NULL);
    for (int k = 0; k < LAYERS; k++) {
        tile_kernel_begin(p, "k", "linear", "k", NULL, 0);
        int64_t piece = 4096, bytes = piece * 2 * PIECES;
        int from = tile_add_dram(p, "w", TILE_WEIGHT, bytes, NULL, NULL),
            to = tile_add_spm(p, "w", bytes, 1), psum = tile_add_psum(p, "psum", 512 * 512, 1);
        for (int i = 0; i < PIECES; i++) {
            struct tile_op *t = tile_emit(p, ISA_OP_COPY, TILE_LOAD);
            for (int side = 0; side < 2; side++)
                tile_operand(t, side, p,
                             (struct tile_place){side ? to : from, 0, ISA_F16, piece * 2 * i}, 1,
                             (int64_t[]){piece}, (int64_t[]){1});
        }
        struct tile_op *mm = tile_emit(p, ISA_OP_MM, TILE_COMPUTE);
        tile_operand(mm, 0, p, (struct tile_place){x, 0, ISA_F16, 0}, 2, (int64_t[]){128, 128},
                     (int64_t[]){1, 128});
        tile_operand(mm, 1, p, (struct tile_place){to, 0, ISA_F16, 0}, 2, (int64_t[]){columns, 128},
                     (int64_t[]){1, columns});
        tile_operand(mm, 2, p, (struct tile_place){psum, 0, ISA_F32, 0}, 2,
                     (int64_t[]){columns, 128}, (int64_t[]){1, columns});
        tile_kernel_begin(p, "pause", "linear", "k", NULL, 0); // something in between
        for (int i = 0; i < 12; i++) {
            struct tile_op *t = tile_emit(p, ISA_OP_MM, TILE_COMPUTE);
            *t = *mm;
            t->kernel = p->nkernel - 1;
        }
    }
    return p;
}

static int64_t loaded(const struct tile_program *p, int buf, int *loads) {
    int64_t bytes = 0;
    *loads = 0;
    for (int i = 0; i < p->nop; i++)
        if (p->ops[i]->phase == TILE_LOAD && p->ops[i]->operand[1].buf == buf) {
            bytes += isa_pat_elems(isa_pat_get(&p->ops[i]->insn, 1)) * 2;
            ++*loads;
        }
    return bytes;
}

static void run(bool join, int *first, int *last) {
    struct hw hw;
    hw_defaults(&hw);
    struct arena *a = arena_new();
    if (!join) hw.dram_channels = 1; // so slow that memory has no time to spare
    struct tile_program *p = layers(a, &hw, 512);
    int n = p->nop;
    struct tile_op **before = arena_copy(a, p->ops, (size_t)n * sizeof *before);
    schedule_order(p, &(struct schedule_options){.prefetch = true, .across_kernels = true});
    for (int i = 0; i < p->nop; i++) // what depends stays behind
        for (int j = 0; j < i; j++)
            cr_assert(!tile_depends(p->ops[i], p->ops[j]) || p->ops[i]->kernel >= p->ops[j]->kernel,
                      "operations %d and %d", j, i);
    for (int b = 0; b < p->nbuf; b++) {
        if (p->bufs[b]->space != ISA_SPM || p->bufs[b]->kernel < 0) continue;
        int loads;
        cr_assert_eq(loaded(p, b, &loads), p->bufs[b]->bytes);
        if (p->bufs[b]->kernel == 0) *first = loads;
        *last = loads;
    }
    int pieces = 0; // the operations that were there are as they were
    for (int i = 0; i < n; i++)
        pieces += before[i]->phase == TILE_LOAD &&
                  isa_pat_elems(isa_pat_get(&before[i]->insn, 0)) == 4096;
    cr_assert_eq(pieces, LAYERS * PIECES);
    arena_free(a);
}

Test(order, loads_far_ahead_are_joined) {
    int first = 0, last = 0;
    run(true, &first, &last);
    cr_expect_eq(first, PIECES); // needed at once
    cr_expect_lt(last, PIECES / 2);
}

Test(order, loads_stay_small_where_memory_is_the_limit) {
    int first = 0, last = 0;
    run(false, &first, &last);
    cr_expect_eq(first, PIECES);
    cr_expect_eq(last, PIECES);
}
