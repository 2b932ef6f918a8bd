// SPDX-License-Identifier: Apache-2.0
//
// Attention through the passes: bands of every size are found and nothing else is; random attention
// nodes, written as products and a softmax, are recognised again and compute the same.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "pass_run.h"
#include "toolchain/passes/mask.h"

static uint64_t seed;

static int draw(int n) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (int)((seed >> 11) % (uint64_t)n);
}

// ---- bands

enum { MOST = 12 };

static bool inside(const int64_t w[3], int64_t i, int64_t j) {
    return (w[0] < 0 || j >= i + w[2] - w[0]) && (w[1] < 0 || j <= i + w[2] + w[1]);
}

static bool same_band(const uint8_t *see, const uint8_t *column, int64_t m, int64_t s,
                      const int64_t w[3]) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < s; j++)
            if ((!column || column[j]) && see[i * s + j] != inside(w, i, j)) return false;
    return true;
}

Test(attention, bands_are_found) {
    uint8_t see[MOST * MOST], column[MOST];
    seed = 88172645463325252u;
    for (int round = 0; round < 20000; round++) {
        int64_t m = 1 + draw(MOST), s = 1 + draw(MOST), found[3];
        int64_t w[3] = {draw(3) ? draw(8) : -1, draw(3) ? draw(8) : -1, draw(13) - 6};
        bool columns = draw(2), any = false;
        for (int64_t j = 0; j < s; j++)
            column[j] = !columns || draw(3);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < s; j++) {
                see[i * s + j] = column[j] && inside(w, i, j);
                any |= see[i * s + j];
            }
        bool band = mask_band(see, columns ? column : NULL, m, s, found);
        cr_assert(band || !any, "%lld x %lld: %lld %lld %lld is not found", (long long)m,
                  (long long)s, (long long)w[0], (long long)w[1], (long long)w[2]);
        cr_assert(!band || same_band(see, columns ? column : NULL, m, s, found));
        cr_assert(!band || (found[0] >= -1 && found[1] >= -1));
    }
}

Test(attention, what_is_no_band_is_none) {
    uint8_t see[MOST * MOST];
    int bands = 0;
    seed = 9177264546332525u;
    for (int round = 0; round < 20000; round++) {
        int64_t m = 1 + draw(4), s = 1 + draw(5), found[3];
        for (int64_t k = 0; k < m * s; k++)
            see[k] = draw(4) > 0;
        if (!mask_band(see, NULL, m, s, found)) continue;
        cr_assert(same_band(see, NULL, m, s, found));
        bands++;
    }
    cr_assert(bands > 1000 && bands < 19000);
}

// ---- there and back

struct form {
    int64_t b, h, hk, m, s, d, dv;
    int mask; // 0 none, 1 keys, 2 queries and keys, 3 floats of the keys, 4 of all
    bool windowed, zero;
    int64_t w[3];
    double fill, cap;
};

static struct form any_form(void) {
    struct form f = {.b = 1 + draw(3), .hk = 1 + draw(3), .m = 1 + draw(6), .s = 2 + draw(7)};
    f.h = f.hk * (1 + draw(3));
    f.d = 1 + draw(5);
    f.dv = 1 + draw(5);
    f.mask = draw(5);
    f.windowed = draw(2);
    f.w[0] = draw(2) ? draw(5) : -1;
    f.w[1] = draw(2) ? draw(5) : -1;
    f.w[2] = draw(5) - 2;
    f.fill = draw(2) ? -HUGE_VAL : -3.4028234663852886e38;
    f.zero = isinf(f.fill) && draw(2);
    f.cap = draw(3) ? 0 : 2;
    return f;
}

static struct graph_value *input(struct graph *g, const char *name, enum isa_dtype t, int64_t a,
                                 int64_t b, int64_t c, int64_t d) {
    struct graph_value *v = graph_add_value(g, name, t, 4, (int64_t[]){a, b, c, d});
    graph_add_input(g, v);
    return v;
}

static struct graph *graph_of(struct arena *a, const struct form *f) {
    struct graph *g = graph_new(a, "attention");
    struct graph_value *in[4] = {input(g, "q", ISA_F32, f->b, f->h, f->m, f->d),
                                 input(g, "k", ISA_F32, f->b, f->hk, f->s, f->d),
                                 input(g, "v", ISA_F32, f->b, f->hk, f->s, f->dv), NULL};
    if (f->mask)
        in[3] = input(g, "mask", f->mask > 2 ? ISA_F32 : ISA_BOOL, f->b, f->mask == 4 ? f->h : 1,
                      f->mask == 2 || f->mask == 4 ? f->m : 1, f->s);
    struct graph_node *n = graph_add_node(g, GRAPH_ATTENTION, "a", in[3] ? 4 : 3, in, NULL);
    graph_set_float(g, n, GRAPH_ATTR_SCALE, 0.75);
    if (f->windowed) graph_set_ints(g, n, GRAPH_ATTR_WINDOW, 3, f->w);
    if (!isinf(f->fill)) graph_set_float(g, n, GRAPH_ATTR_FILL, f->fill);
    if (f->cap > 0) graph_set_float(g, n, GRAPH_ATTR_SOFTCAP, f->cap);
    if (f->zero) graph_set_int(g, n, GRAPH_ATTR_ZERO_ROWS, 1);
    npu_status st = graph_infer(g, n, "y");
    cr_assert_null(st, "%s", npu_status_message(st));
    graph_add_output(g, n->outputs[0]);
    return g;
}

Test(attention, written_as_parts_and_recognised_again) {
    int seen = 0;
    seed = 88172645463325252u;
    for (int round = 0; round < 300; round++) {
        struct arena *a = arena_new();
        struct form f = any_form();
        struct graph *before = graph_of(a, &f), *g = graph_of(a, &f);
        struct pass_options o;
        struct pass_log log = {0};
        pass_options_init(&o);
        o.skip[PASS_attention] = true;
        o.stop_after = PASS_attention_plain;
        run_passes(g, &o, &log);
        cr_assert_eq(count_ops(g, GRAPH_ATTENTION), 0);
        cr_assert_eq(count_ops(g, GRAPH_SOFTMAX), 1);
        check_same(before, g, 1e-5, a, "parts");
        pass_options_init(&o);
        run_passes(g, &o, &log);
        int found = count_ops(g, GRAPH_ATTENTION);
        seen += found;
        cr_assert_eq(count_ops(g, GRAPH_SOFTMAX) + found, 1);
        check_same(before, g, 1e-5, a, "recognised");
        const struct graph_value *k = g->inputs[1];
        for (const struct graph_node *n = g->first; n; n = n->next) // grouped heads stay grouped
            if (n->op == GRAPH_ATTENTION) cr_assert_eq(n->inputs[1], k);
        arena_free(a);
    }
    cr_assert(seen > 270, "%d of 300", seen); // a window that hides everything is left alone
}

// The mask of a node that has one already is taken apart; the values stay.
Test(attention, own_masks_are_simplified) {
    seed = 77172645463325252u;
    for (int round = 0; round < 300; round++) {
        struct arena *a = arena_new();
        struct form f = any_form();
        struct graph *before = graph_of(a, &f), *g = graph_of(a, &f);
        struct pass_options o;
        struct pass_log log = {0};
        pass_options_init(&o);
        run_passes(g, &o, &log);
        cr_assert_eq(count_ops(g, GRAPH_ATTENTION), 1);
        check_same(before, g, 1e-6, a, "simplified");
        arena_free(a);
    }
}
