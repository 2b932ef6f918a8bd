// SPDX-License-Identifier: Apache-2.0
// Placement by live ranges: blocks that live together never overlap, the peak is at least the
// bound, memory is used again, and what does not fit is an error that says where.
#include <criterion/criterion.h>
#include <string.h>

#include "toolchain/plan/plan.h"

static void touch(struct tile_program *p, int buf) {
    struct tile_op *t = tile_emit(p, ISA_OP_VMAP, TILE_COMPUTE);
    int64_t size = 1, stride = 1;
    tile_operand(t, 0, p, (struct tile_place){buf, 0, ISA_F32, 0}, 1, &size, &stride);
}

Test(plan, random_lives_do_not_overlap) {
    struct hw hw;
    hw_defaults(&hw);
    uint64_t x = 1;
    for (int round = 0; round < 30; round++) {
        struct arena *a = arena_new();
        struct tile_program *p = tile_program_new(a, &hw);
        tile_kernel_begin(p, "k", "map", "k", NULL, 0);
        for (int b = 0; b < 40; b++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            tile_add_spm(p, "b", 64 + (int64_t)(x >> 40) % 5000, 1);
        }
        for (int i = 0; i < 300; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            touch(p, (int)((unsigned)i / 8 + (x >> 50) % 4) % 40);
        }
        cr_assert_null(plan_onchip(p));
        for (int i = 0; i < p->nbuf; i++)
            for (int j = 0; j < i; j++) {
                const struct tile_buf *s = p->bufs[i], *t = p->bufs[j];
                bool together = s->first_op <= t->last_op && t->first_op <= s->last_op;
                bool overlap =
                    s->addr[0] < t->addr[0] + t->bytes && t->addr[0] < s->addr[0] + s->bytes;
                cr_assert(!(together && overlap && s->first_op >= 0 && t->first_op >= 0));
            }
        cr_assert_geq(p->spm_peak_bytes, p->spm_bound_bytes);
        cr_assert_leq(p->spm_peak_bytes, 2 * p->spm_bound_bytes);
        arena_free(a);
    }
}

Test(plan, dead_blocks_are_used_again) {
    struct hw hw;
    hw_defaults(&hw);
    struct arena *a = arena_new();
    struct tile_program *p = tile_program_new(a, &hw);
    tile_kernel_begin(p, "k", "map", "k", NULL, 0);
    for (int b = 0; b < 10; b++)
        touch(p, tile_add_spm(p, "b", 1024, 1));
    cr_assert_null(plan_onchip(p));
    cr_expect_eq(p->spm_peak_bytes, 1024);
    arena_free(a);
}

Test(plan, too_much_names_the_moment_and_the_excess) {
    struct hw hw;
    hw_defaults(&hw);
    hw.spm_bytes = 4096;
    struct arena *a = arena_new();
    struct tile_program *p = tile_program_new(a, &hw);
    tile_kernel_begin(p, "layer7", "map", "k", NULL, 0);
    int b[3];
    for (int i = 0; i < 3; i++)
        b[i] = tile_add_spm(p, "input", 2048, 1);
    for (int i = 0; i < 3; i++)
        touch(p, b[i]);
    for (int i = 0; i < 3; i++)
        touch(p, b[i]);
    npu_status st = plan_onchip(p);
    cr_assert_eq(npu_status_code(st), NPU_NO_FIT);
    cr_expect(strstr(npu_status_message(st), "layer7"));
    cr_expect(strstr(npu_status_message(st), "2048 too many"));
    npu_status_free(st);
    arena_free(a);
}
