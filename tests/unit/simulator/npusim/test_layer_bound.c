// SPDX-License-Identifier: Apache-2.0
// Bounds of layers and comparison in f64.
#include <criterion/criterion.h>

#include <math.h>
#include <string.h>

#include "simulator/npusim/compare.h"
#include "simulator/npusim/layer_bound.h"

static struct graph_value value(enum isa_dtype t, int rank, int64_t d0, int64_t d1) {
    return (struct graph_value){.name = "v", .dtype = t, .rank = rank, .dims = {d0, d1}};
}

static struct layer_bound bound(enum graph_op op, enum isa_dtype t, int64_t span, double range) {
    struct graph_value x = value(t, 2, 4, span), y = value(t, 2, 4, op == GRAPH_REDUCE ? 1 : span);
    struct graph_value *in[] = {&x, &x}, *out[] = {&y};
    struct graph_attr axis = {.key = GRAPH_ATTR_AXIS, .i = 1};
    const struct graph_node n = {.op = op,
                                 .inputs = in,
                                 .nin = 2,
                                 .nown = 2,
                                 .outputs = out,
                                 .nout = 1,
                                 .attrs = &axis,
                                 .nattr = 1};
    return layer_bound_of(&n, range);
}

Test(layer_bound, one_unit_in_the_last_place_where_order_is_fixed) {
    struct layer_bound b = bound(GRAPH_MATMUL, ISA_F16, 1000, 50);
    cr_expect_eq(b.rtol, 0x1p-10);
    cr_expect_eq(b.atol, 0x1p-24);
    cr_expect_eq(bound(GRAPH_MAP, ISA_F32, 10, 50).rtol, 0x1p-23);
    cr_expect_eq(bound(GRAPH_MAP, ISA_BF16, 10, 50).rtol, 0x1p-7);
}

Test(layer_bound, grows_with_the_sum) {
    struct layer_bound few = bound(GRAPH_LAYERNORM, ISA_F32, 64, 10),
                       many = bound(GRAPH_LAYERNORM, ISA_F32, 64000, 10);
    cr_expect_float_eq(few.atol, 10 * 4 * 8 * 0x1p-23, 1e-12);
    cr_expect_gt(many.atol, 50 * few.atol);
    cr_expect_gt(bound(GRAPH_REDUCE, ISA_F32, 640, 1).atol,
                 bound(GRAPH_REDUCE, ISA_F32, 64, 1).atol);
    cr_expect_gt(bound(GRAPH_ATTENTION, ISA_F16, 64, 1).atol, 4 * 0x1p-11);
}

Test(layer_bound, integers_are_equal) {
    struct layer_bound b = bound(GRAPH_SOFTMAX, ISA_I64, 64, 10);
    cr_expect_eq(b.rtol, 0);
    cr_expect_eq(b.atol, 0);
}

Test(layer_bound, scores_behind_a_mask) {
    const double part[] = {-1e4, 0, -1e4, -1e4, -1e4, 0.0}, all[] = {0, 0, 0, -1e4, -2e4, -3e4};
    const double lowest[] = {-3.4e38, -3.4e38, -HUGE_VAL, -HUGE_VAL};
    cr_expect_eq(layer_bound_of_mask(part, 2, 3, 10, 1), 0); // a key with 0 leads each row
    cr_expect_float_eq(layer_bound_of_mask(all, 2, 3, 10, 2), 8e4 * 0x1p-24, 1e-9);
    cr_expect_eq(layer_bound_of_mask(lowest, 2, 2, 10, 1), 0); // every sum is the mask
    cr_expect_eq(layer_bound_of_mask(lowest, 1, 2, 1e32, 3), 6);
    const double x[] = {3, 4, 1, 2, 100, (double)NAN};
    cr_expect_eq(layer_bound_length(x, 3, 2), 5);
}

Test(compare, figures) {
    const double got[] = {1, 2, 3, (double)NAN}, want[] = {1, 2.5, 3, (double)NAN};
    struct npusim_comparison c = npusim_compare_f64(got, want, 4, 0, 0.25);
    cr_expect_eq(c.wrong, 1);
    cr_expect_eq(c.worst, 1);
    cr_expect_eq(c.ratio, 2);
    cr_expect_float_eq(c.snr_db, 10 * log10(16.25 / 0.25), 1e-9);
    cr_expect_float_eq(c.cosine, 15 / sqrt(14 * 16.25), 1e-12);
    c = npusim_compare_f64(want, want, 4, 0, 0);
    cr_expect_eq(c.wrong, 0);
    cr_expect_eq(c.ratio, 0);
    cr_expect(isinf(c.snr_db));
    const double inf = HUGE_VAL, none = (double)NAN;
    cr_expect_eq(npusim_compare_f64(&inf, &none, 1, 1, 1).wrong, 1);
    cr_expect_eq(npusim_compare_f64(&none, &inf, 1, 1, 1).wrong, 1);
    cr_expect_eq(npusim_compare_f64(&inf, &inf, 1, 0, 0).wrong, 0);
    cr_expect_eq(npusim_range(got, 4), 3);
}

// Heads 0 and 1 share the first values, 2 and 3 the second, which hold an infinity in column 1.
Test(layer_bound, what_hidden_keys_bring) {
    const double v[2 * 3 * 2] = {1, 2, 3, 4, 5, 6, 7, 8, 9, HUGE_VAL, 10, 11};
    double got[4 * 1 * 2], want[4 * 1 * 2];
    for (int i = 0; i < 8; i++) {
        got[i] = (double)NAN;
        want[i] = i;
    }
    got[7] = 70; // a number is no NaN
    layer_bound_hidden(v, 2, 3, 2, 4, 1, got, want);
    for (int i = 0; i < 8; i++)
        if (i == 5)
            cr_expect_eq(got[i], 5);
        else
            cr_expect(i == 7 ? got[i] == 70 : isnan(got[i]), "element %d", i);
}
