// SPDX-License-Identifier: Apache-2.0
// Footprints against a plain enumeration of every byte of every element.
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "simulator/exec/foot.h"

enum { WORLD = 4096 };

static uint64_t seed = 1;

static int64_t draw(int64_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

// A pattern whose bytes lie in 0..WORLD-1, of one of several element sizes.
static struct isa_pat draw_pattern(void) {
    static const int dtypes[] = {ISA_I8, ISA_F16, ISA_F32, ISA_I64};
    for (;;) {
        struct isa_pat p = {.space = ISA_SPM,
                            .dtype = dtypes[draw(4)],
                            .base = draw(WORLD) / 8 * 8};
        const int64_t bytes = isa_dtype_bits((int)p.dtype) / 8;
        int64_t lo = p.base, hi = p.base + bytes;
        for (int d = 0; d < ISA_DIMS; d++) {
            p.size[d] = draw(3) ? 1 + draw(4) : 1;
            p.stride[d] = p.size[d] > 1 ? draw(40) - 8 : 0;
            if (draw(3) == 0 && d > 0 && p.size[d] > 1)
                p.stride[d] = p.stride[d - 1] * p.size[d - 1];
            int64_t extent = p.stride[d] * (p.size[d] - 1) * bytes;
            lo += extent < 0 ? extent : 0;
            hi += extent > 0 ? extent : 0;
        }
        if (lo >= 0 && hi <= WORLD) return p;
    }
}

static void enumerate(const struct isa_pat *p, uint8_t *count) {
    const int64_t bytes = isa_dtype_bits((int)p->dtype) / 8;
    memset(count, 0, WORLD);
    int64_t i[ISA_DIMS];
    for (i[4] = 0; i[4] < p->size[4]; i[4]++)
        for (i[3] = 0; i[3] < p->size[3]; i[3]++)
            for (i[2] = 0; i[2] < p->size[2]; i[2]++)
                for (i[1] = 0; i[1] < p->size[1]; i[1]++)
                    for (i[0] = 0; i[0] < p->size[0]; i[0]++) {
                        int64_t at = p->base;
                        for (int d = 0; d < ISA_DIMS; d++)
                            at += i[d] * p->stride[d] * bytes;
                        for (int64_t b = 0; b < bytes; b++)
                            count[at + b]++;
                    }
}

Test(foot, runs_cover_exactly_the_bytes_of_the_elements) {
    static uint8_t want[WORLD], got[WORLD];
    for (int n = 0; n < 20000; n++) {
        struct isa_pat p = draw_pattern();
        struct exec_foot f;
        struct exec_foot_walk w;
        enumerate(&p, want);
        memset(got, 0, sizeof got);
        cr_assert(foot_init(&f, &p));
        foot_first(&f, &w);
        do {
            cr_assert(w.lo >= f.lo && w.hi <= f.hi);
            for (int64_t b = w.lo; b < w.hi; b++)
                got[b] = 1;
        } while (foot_next(&f, &w));
        int64_t lo = -1, hi = -1;
        for (int64_t b = 0; b < WORLD; b++) {
            cr_assert_eq(want[b] != 0, got[b], "case %d byte %d", n, (int)b);
            if (want[b] && lo < 0) lo = b;
            if (want[b]) hi = b + 1;
        }
        cr_assert_eq(lo, f.lo);
        cr_assert_eq(hi, f.hi);
    }
}

Test(foot, hits_and_overlaps_agree_with_the_bytes) {
    static uint8_t one[WORLD], two[WORLD];
    int met = 0;
    for (int n = 0; n < 20000; n++) {
        struct isa_pat p = draw_pattern(), q = draw_pattern();
        struct exec_foot f, g;
        enumerate(&p, one);
        enumerate(&q, two);
        cr_assert(foot_init(&f, &p) && foot_init(&g, &q));
        bool overlap = false;
        for (int b = 0; b < WORLD; b++)
            overlap |= one[b] && two[b];
        int64_t at = foot_overlap(&f, &g);
        cr_assert_eq(at >= 0, overlap, "case %d", n);
        if (at >= 0) cr_assert(one[at] && two[at]);
        met += overlap;
        int64_t lo = draw(WORLD), hi = lo + 1 + draw(64), first = -1;
        for (int64_t b = lo; b < hi && b < WORLD; b++)
            if (one[b]) first = first < 0 ? b : first;
        cr_assert_eq(foot_hit(&f, lo, hi) >= 0, first >= 0);
    }
    cr_assert_gt(met, 1000);
}

Test(foot, repeated_bytes_are_noticed) {
    static uint8_t count[WORLD];
    int repeats = 0, refused = 0;
    for (int n = 0; n < 20000; n++) {
        struct isa_pat p = draw_pattern();
        enumerate(&p, count);
        bool repeated = false;
        for (int b = 0; b < WORLD; b++)
            repeated |= count[b] > 1;
        bool said = foot_repeats(&p);
        if (repeated) cr_assert(said, "case %d", n);
        repeats += repeated;
        refused +=
            said && !repeated; // strides that do not nest are refused even where no byte repeats
    }
    cr_assert(repeats > 100 && refused < 8000);
}

Test(foot, a_dense_block_is_one_run_in_any_order_of_dimensions) {
    struct exec_foot f;
    struct isa_pat p = {.dtype = ISA_F16,
                        .base = 64,
                        .size = {8, 16, 4, 1, 1},
                        .stride = {64, 1, 16, 0, 0}};
    cr_assert(foot_init(&f, &p));
    cr_assert_eq(f.dims, 0);
    cr_assert_eq(f.lo, 64);
    cr_assert_eq(f.hi, 64 + 8 * 16 * 4 * 2);
    cr_assert_eq(foot_bytes(&f), 1024);
}

Test(foot, four_bit_rows_start_at_bytes) {
    struct exec_foot f;
    struct isa_pat p = {.dtype = ISA_I4,
                        .base = 10,
                        .size = {7, 3, 1, 1, 1},
                        .stride = {1, 8, 0, 0, 0}};
    cr_assert(foot_init(&f, &p));
    cr_assert_eq(f.run, 12); // three rows of four bytes, side by side
    cr_assert_eq(f.hi, 10 + 12);
    p.stride[1] = 7;
    cr_assert_not(foot_init(&f, &p));
}

Test(foot, addresses_beyond_reason_are_refused) {
    struct exec_foot f;
    struct isa_pat p = {.dtype = ISA_I64,
                        .size = {1 << 24, 1, 1, 1, 1},
                        .stride = {(int64_t)1 << 39, 0, 0, 0, 0}};
    cr_assert_not(foot_init(&f, &p));
    p.stride[0] = -p.stride[0];
    cr_assert_not(foot_init(&f, &p));
}
