// SPDX-License-Identifier: Apache-2.0
//
// Constants made of blocks: every byte against one element at a time.
#include <criterion/criterion.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/tile/tile.h"

static uint32_t seed = 7;

static int64_t rnd(int64_t lo, int64_t hi) {
    seed = seed * 1664525u + 1013904223u;
    return lo + (int64_t)(seed >> 8) % (hi - lo + 1);
}

static struct tile_program *program(struct arena *a) {
    struct hw *hw = ARENA_NEW(a, struct hw);
    hw_defaults(hw);
    return tile_program_new(a, hw);
}

// Strides of a compact array whose dimensions lie in a random order.
static void shuffled(int rank, const int64_t *size, int64_t *stride) {
    int order[TILE_BLOCK_DIMS];
    for (int d = 0; d < rank; d++)
        order[d] = d;
    for (int d = rank - 1; d > 0; d--) {
        int j = (int)rnd(0, d), t = order[d];
        order[d] = order[j];
        order[j] = t;
    }
    int64_t step = 1;
    for (int d = 0; d < rank; d++) {
        stride[order[d]] = step;
        step *= size[order[d]];
    }
}

static void slowly(const struct tile_block *b, uint8_t *to) {
    int64_t at[TILE_BLOCK_DIMS] = {0}, n = 1;
    for (int d = 0; d < b->rank; d++)
        n *= b->size[d];
    for (int64_t i = 0; i < n; i++) {
        int64_t f = b->from_at, t = b->to_at;
        for (int d = 0; d < b->rank; d++) {
            f += at[d] * b->from_stride[d];
            t += at[d] * b->to_stride[d];
        }
        num_store_f32((int)b->dtype, to, t, num_load_f32((int)b->from_dtype, b->from, f));
        for (int d = b->rank - 1; d >= 0 && ++at[d] == b->size[d]; d--)
            at[d] = 0;
    }
}

Test(weights, blocks_of_any_strides) {
    static const enum isa_dtype types[] = {ISA_F32, ISA_F16, ISA_BF16, ISA_I8};
    for (int round = 0; round < 300; round++) {
        struct arena *a = arena_new();
        struct tile_block b[2];
        memset(b, 0, sizeof b);
        b[0].rank = (int)rnd(0, 5);
        b[0].from_dtype = types[rnd(0, 3)];
        b[0].dtype = round % 2 ? b[0].from_dtype : types[rnd(0, 2)];
        int64_t n = 1;
        for (int d = 0; d < b[0].rank; d++)
            n *= b[0].size[d] = rnd(0, 3) ? rnd(1, 6) : rnd(1, 90);
        int64_t from_bytes = isa_dtype_bits((int)b[0].from_dtype) / 8,
                bytes = isa_dtype_bits((int)b[0].dtype) / 8;
        shuffled(b[0].rank, b[0].size, b[0].from_stride);
        shuffled(b[0].rank, b[0].size, b[0].to_stride);
        // Behind each other, with elements between that no block writes, and at odd addresses.
        uint8_t *from = (uint8_t *)arena_alloc(a, (size_t)(2 * n * from_bytes) + 1) + 1;
        for (int64_t i = 0; i < 2 * n; i++)
            num_store_f32((int)b[0].from_dtype, from, i, (float)rnd(-100, 100) * 0.37f);
        b[0].from = from;
        b[1] = b[0];
        b[1].from_at = n;
        b[1].to_at = n + 3;
        int blocks = (int)rnd(1, 2);
        int64_t all = (blocks == 1 ? n : 2 * n + 3) * bytes;
        struct tile_program *p = program(a);
        int id = tile_add_weight(p, "w", all, b, blocks);
        uint8_t *got = arena_alloc(a, (size_t)all + 8), *want = arena_alloc(a, (size_t)all + 8);
        memset(got, 0xa5, (size_t)all + 8);
        tile_fill(p->bufs[id], got);
        for (int k = 0; k < blocks; k++)
            slowly(&b[k], want);
        memset(want + all, 0xa5, 8);
        cr_assert_eq(memcmp(got, want, (size_t)all + 8), 0, "round %d", round);
        const void *lent = tile_lent(p->bufs[id]);
        cr_assert(!lent || (lent == from && !memcmp(lent, want, (size_t)all)), "round %d", round);
        arena_free(a);
    }
}

static const void *lent_of(struct tile_program *p, int64_t bytes, const struct tile_block *b) {
    int id = tile_add_weight(p, "w", bytes, b, 1);
    return tile_lent(p->bufs[id]);
}

Test(weights, lent_where_nothing_changes) {
    struct arena *a = arena_new();
    struct tile_program *p = program(a);
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    struct tile_block b = {.from = x,
                           .from_dtype = ISA_F32,
                           .dtype = ISA_F32,
                           .rank = 2,
                           .size = {2, 3},
                           .from_stride = {3, 1},
                           .to_stride = {3, 1}};
    cr_expect_eq(lent_of(p, 24, &b), x);
    cr_expect_null(lent_of(p, 28, &b)); // zeros behind it
    b.to_stride[0] = 1;
    b.to_stride[1] = 2;
    cr_expect_null(lent_of(p, 24, &b));
    b.to_stride[0] = 3;
    b.to_stride[1] = 1;
    b.dtype = ISA_F16;
    cr_expect_null(lent_of(p, 12, &b));
    int plain = tile_add_dram(p, "w", TILE_WEIGHT, 24, x, NULL);
    cr_expect_eq(tile_lent(p->bufs[plain]), x);
    arena_free(a);
}
