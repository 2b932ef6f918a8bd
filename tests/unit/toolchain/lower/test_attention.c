// SPDX-License-Identifier: Apache-2.0
//
// The fused attention kernel against the reference kernel: all masks, windows and options, odd
// sizes, few and many key heads, storage orders, tiles of every machine.
#include "tests/unit/toolchain/lower/lowered.h"

struct problem {
    int64_t batch, heads, share, m, s, d, dv; // heads: of keys; share: query heads of each
    enum isa_dtype dtype, mask;               // mask NONE: no mask
    int64_t mask_dims[4];                     // 0: the full size
    int64_t window[3];
    bool windowed, zero_rows, transposed;
    double scale, fill, cap; // 0: absent
};

// x[b, h, rows, columns] as it is, or as a transposed view of x[b, rows, h, columns].
static struct graph_value *operand(struct graph *g, const char *name, const struct problem *p,
                                   int64_t heads, int64_t rows, int64_t columns) {
    if (!p->transposed)
        return input(g, name, p->dtype, 4, (int64_t[]){p->batch, heads, rows, columns});
    struct graph_value *x =
        input(g, name, p->dtype, 4, (int64_t[]){p->batch, rows, heads, columns});
    struct graph_node *n = graph_add_node(g, GRAPH_TRANSPOSE, name, 1, &x, NULL);
    graph_set_ints(g, n, GRAPH_ATTR_PERM, 4, (int64_t[]){0, 2, 1, 3});
    npu_status st = graph_infer(g, n, arena_printf(g->arena, "%s_t", name));
    cr_assert(!st, "%s", npu_status_message(st));
    return n->outputs[0];
}

static struct graph_value *mask_of(struct graph *g, const struct problem *p) {
    int64_t full[4] = {p->batch, p->heads * p->share, p->m, p->s}, dims[4];
    for (int d = 0; d < 4; d++)
        dims[d] = p->mask_dims[d] ? p->mask_dims[d] : full[d];
    struct graph_value *mask = input(g, "mask", p->mask, 4, dims);
    if (isa_dtype_is_int((int)p->mask)) mask->index_limit = 3;
    return mask;
}

static struct graph_node *build(struct graph *g, const struct problem *p) {
    struct graph_value *in[4] = {operand(g, "q", p, p->heads * p->share, p->m, p->d),
                                 operand(g, "k", p, p->heads, p->s, p->d),
                                 operand(g, "v", p, p->heads, p->s, p->dv)};
    int nin = 3;
    if (p->mask) in[nin++] = mask_of(g, p);
    struct graph_node *n = graph_add_node(g, GRAPH_ATTENTION, "attention", nin, in, NULL);
    graph_set_float(g, n, GRAPH_ATTR_SCALE, p->scale);
    if (p->windowed) graph_set_ints(g, n, GRAPH_ATTR_WINDOW, 3, p->window);
    if (p->zero_rows) graph_set_int(g, n, GRAPH_ATTR_ZERO_ROWS, 1);
    if (p->fill < 0) graph_set_float(g, n, GRAPH_ATTR_FILL, p->fill);
    if (p->cap > 0) graph_set_float(g, n, GRAPH_ATTR_SOFTCAP, p->cap);
    finish(g, n);
    return n;
}

static double tolerance(enum isa_dtype t) {
    return t == ISA_F32 ? 2e-5 : t == ISA_F16 ? 3e-3 : 2e-2;
}

static void check(const struct problem *p, const char *what) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "attention");
    build(g, p);
    check_everywhere(g, tolerance(p->dtype), what);
    arena_free(a);
}

static struct problem plain(int64_t m, int64_t s, int64_t d) {
    return (struct problem){.batch = 1,
                            .heads = 2,
                            .share = 1,
                            .m = m,
                            .s = s,
                            .d = d,
                            .dv = d,
                            .dtype = ISA_F32,
                            .scale = 0.25};
}

Test(lower_attention, types_and_depths) {
    static const enum isa_dtype types[] = {ISA_F32, ISA_F16, ISA_BF16};
    static const int64_t depths[] = {1, 20, 64, 80};
    for (int i = 0; i < 12; i++) {
        struct problem p = plain(19, 33, depths[i % 4]);
        p.dtype = types[i % 3];
        check(&p, "types and depths");
    }
}

Test(lower_attention, deep_heads_on_a_small_machine) {
    struct hw hw = machine(MACHINE_TINY);
    for (int64_t d = 128; d <= 256; d += 128) {
        struct arena *a = arena_new();
        struct graph *g = graph_new(a, "deep");
        struct problem p = plain(21, 50, d);
        p.dv = d + 3;
        build(g, &p);
        for (int level = 1; level <= 2; level++)
            check_lowered(g, &hw, level, 2e-5, "deep heads");
        arena_free(a);
    }
}

Test(lower_attention, seven_heads_of_77_keys) {
    struct problem p = plain(77, 77, 20);
    p.heads = 7;
    p.batch = 2;
    p.transposed = true;
    check(&p, "seven heads");
    p.windowed = true;
    p.window[0] = -1;
    check(&p, "seven causal heads");
}

Test(lower_attention, windows) {
    static const int64_t windows[][3] = {{-1, 0, 0}, {8, 8, 0},   {3, 0, 0},    {0, 0, 0},
                                         {-1, 5, 0}, {70, -1, 0}, {2, 1, 20},   {-1, 0, 60},
                                         {5, 5, 40}, {1, 1, -3},  {400, 400, 0}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        struct problem p = plain(67, 80, 16);
        p.windowed = true;
        p.zero_rows = true; // some rows see nothing
        for (int k = 0; k < 3; k++)
            p.window[k] = windows[i][k];
        check(&p, "window");
    }
}

Test(lower_attention, masks) {
    static const enum isa_dtype types[] = {ISA_BOOL, ISA_I64, ISA_F32, ISA_F16, ISA_I32};
    for (int i = 0; i < 15; i++) {
        struct problem p = plain(30, 41, 16);
        p.batch = 2;
        p.mask = types[i % 5];
        p.dtype = i % 2 ? ISA_F16 : ISA_F32;
        int form = i % 4; // per key, full, per query, one for all heads
        p.mask_dims[0] = form == 3 ? 1 : 0;
        p.mask_dims[1] = form == 1 ? 0 : 1;
        p.mask_dims[2] = form == 0 ? 1 : 0;
        p.mask_dims[3] = form == 2 ? 1 : 0;
        p.zero_rows = true;
        if (i > 7) {
            p.windowed = true;
            p.window[0] = p.window[1] = 6;
        }
        check(&p, "mask");
    }
}

Test(lower_attention, hidden_keys_with_a_score) {
    struct problem p = plain(20, 45, 8);
    p.mask = ISA_BOOL;
    p.fill = -10000;
    check(&p, "fill and mask");
    p.windowed = true;
    p.window[0] = 4;
    p.window[2] = -9;
    check(&p, "fill, mask and window");
    p.mask = ISA_DTYPE_NONE;
    check(&p, "fill and window");
}

// The window's tiles suffice, and rows that see nothing give the mean of all values.
Test(lower_attention, hidden_rows_far_below) {
    for (int i = 0; i < 8; i++) {
        struct problem p = plain(60, i % 2 ? 60 : 90, 12);
        p.dv = 9;
        p.fill = i % 3 ? -3.4028234663852886e38 : -10000;
        p.heads = 3;
        p.batch = i < 4 ? 2 : 1;
        p.windowed = true;
        p.window[0] = i < 2 ? -1 : 5;
        p.window[1] = 3;
        p.window[2] = i % 2 ? -20 : 4;
        p.mask = i < 6 ? ISA_I64 : ISA_DTYPE_NONE;
        p.mask_dims[1] = p.mask_dims[2] = 1;
        p.transposed = i > 2;
        p.dtype = i % 4 == 3 ? ISA_F16 : ISA_F32;
        p.zero_rows = i == 5;
        check(&p, "far fill");
    }
}

Test(lower_attention, capped_scores) {
    struct problem p = plain(23, 50, 12);
    p.cap = 1.5;
    check(&p, "softcap");
    p.mask = ISA_F32;
    p.mask_dims[1] = 1;
    p.windowed = true;
    p.window[0] = p.window[1] = 5;
    check(&p, "softcap, mask and window");
    p.mask = ISA_U8;
    p.zero_rows = true;
    p.scale = 1;
    check(&p, "softcap, integer mask and window");
}

Test(lower_attention, query_heads_share_keys) {
    struct problem p = plain(13, 40, 16);
    p.share = 4;
    p.dtype = ISA_F16;
    check(&p, "grouped");
    p.windowed = true;
    p.window[0] = -1;
    p.window[2] = 27;
    check(&p, "grouped, causal from the end");
    p.mask = ISA_F32;
    p.mask_dims[1] = p.mask_dims[2] = 1;
    check(&p, "grouped, mask");
}

Test(lower_attention, one_query) {
    for (int64_t share = 1; share <= 8; share *= 2) {
        struct problem p = plain(1, 300, 16);
        p.share = share;
        p.dtype = share % 4 ? ISA_F16 : ISA_F32;
        p.windowed = share > 2;
        p.window[0] = -1;
        p.window[2] = 250;
        check(&p, "one query");
    }
}

Test(lower_attention, rank_three) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "rank three");
    struct graph_value *in[3] = {input(g, "q", ISA_F32, 3, (int64_t[]){5, 9, 12}),
                                 input(g, "k", ISA_F32, 3, (int64_t[]){5, 11, 12}),
                                 input(g, "v", ISA_F32, 3, (int64_t[]){5, 11, 7})};
    struct graph_node *n = graph_add_node(g, GRAPH_ATTENTION, "attention", 3, in, NULL);
    graph_set_float(g, n, GRAPH_ATTR_SCALE, 0.3);
    finish(g, n);
    check_everywhere(g, 2e-5, "rank three");
    arena_free(a);
}

// Sizes, options and masks at random.
Test(lower_attention, random_problems) {
    static const enum isa_dtype types[] = {ISA_F32, ISA_F16, ISA_BF16};
    static const enum isa_dtype masks[] = {ISA_DTYPE_NONE, ISA_BOOL, ISA_F32, ISA_F16, ISA_I64};
    for (uint32_t seed = 1; seed <= 60; seed++) {
        uint32_t s = seed * 77;
        struct problem p = {.batch = rnd_in(&s, 1, 2),
                            .heads = rnd_in(&s, 1, 3),
                            .share = rnd_in(&s, 1, 3),
                            .m = rnd_in(&s, 1, 50),
                            .s = rnd_in(&s, 1, 90),
                            .d = rnd_in(&s, 1, 40),
                            .dv = rnd_in(&s, 1, 40),
                            .dtype = types[rnd(&s) % 3],
                            .mask = masks[rnd(&s) % 5],
                            .windowed = rnd(&s) % 2,
                            .zero_rows = true,
                            .transposed = rnd(&s) % 2,
                            .scale = rnd(&s) % 4 ? 0.3 : 1,
                            .cap = rnd(&s) % 4 ? 0 : 2};
        for (int d = 0; d < 4; d++)
            p.mask_dims[d] = rnd(&s) % 2;
        p.window[0] = rnd_in(&s, -1, 30);
        p.window[1] = rnd_in(&s, -1, 30);
        p.window[2] = rnd_in(&s, -20, 40);
        if (rnd(&s) % 4 == 0) p.fill = rnd(&s) % 2 ? -200 : -20000;
        if (p.fill < 0) p.zero_rows = rnd(&s) % 2;
        struct arena *a = arena_new();
        check(&p, arena_printf(a, "seed %u", seed));
        arena_free(a);
    }
}
