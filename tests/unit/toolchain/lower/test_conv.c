// SPDX-License-Identifier: Apache-2.0
//
// Convolutions, grouped, depthwise and transposed, and pooling: random windows, strides, dilations,
// pads, storage orders.
#include "tests/unit/toolchain/lower/lowered.h"

struct form {
    int64_t n, c, h, w, o, group, kh, kw, sh, sw, dh, dw, pads[4];
    int order;
};

static struct form random_form(uint32_t *s, bool grouped) {
    struct form f = {.n = rnd_in(s, 1, 2),
                     .h = rnd_in(s, 5, 19),
                     .w = rnd_in(s, 5, 19),
                     .kh = rnd_in(s, 1, 4),
                     .kw = rnd_in(s, 1, 4)};
    f.group = grouped ? rnd_in(s, 1, 4) : 1;
    f.c = f.group * rnd_in(s, 1, 9);
    f.o = f.group * rnd_in(s, 1, 14);
    f.sh = rnd_in(s, 1, 3), f.sw = rnd_in(s, 1, 3);
    f.dh = rnd_in(s, 1, 2), f.dw = rnd_in(s, 1, 2);
    if ((f.kh - 1) * f.dh >= f.h) f.dh = 1;
    if ((f.kw - 1) * f.dw >= f.w) f.dw = 1;
    for (int i = 0; i < 4; i++)
        f.pads[i] = rnd_in(s, 0, 2);
    f.order = (int)(rnd(s) % 3);
    return f;
}

static const char *text(struct arena *a, const char *op, const struct form *f, uint32_t seed) {
    return arena_printf(a,
                        "%s seed %u: [%lld,%lld,%lld,%lld] -> %lld, group %lld, %lldx%lld stride "
                        "%lldx%lld dilation %lldx%lld pads %lld %lld %lld %lld order %d",
                        op, seed, (long long)f->n, (long long)f->c, (long long)f->h,
                        (long long)f->w, (long long)f->o, (long long)f->group, (long long)f->kh,
                        (long long)f->kw, (long long)f->sh, (long long)f->sw, (long long)f->dh,
                        (long long)f->dw, (long long)f->pads[0], (long long)f->pads[1],
                        (long long)f->pads[2], (long long)f->pads[3], f->order);
}

static void run(enum graph_op op, struct form f, enum isa_dtype t, bool chain, uint32_t seed) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t s = seed;
    struct graph_value *x = input(g, "x", t, 4, (int64_t[]){f.n, f.c, f.h, f.w});
    struct graph_value *in[2] = {reordered(g, x, f.order, &s), NULL};
    if (op == GRAPH_CONV)
        in[1] = constant(g, "w", t, 4, (int64_t[]){f.o, f.c / f.group, f.kh, f.kw}, &s);
    if (op == GRAPH_CONVT)
        in[1] = constant(g, "w", t, 4, (int64_t[]){f.c, f.o / f.group, f.kh, f.kw}, &s);
    struct graph_node *n = graph_add_node(g, op, "node", in[1] ? 2 : 1, in, NULL);
    graph_set_ints(g, n, GRAPH_ATTR_STRIDES, 2, (int64_t[]){f.sh, f.sw});
    graph_set_ints(g, n, GRAPH_ATTR_DILATIONS, 2, (int64_t[]){f.dh, f.dw});
    graph_set_ints(g, n, GRAPH_ATTR_PADS, 4, f.pads);
    if (op == GRAPH_POOL) {
        static const char *const modes[] = {"max", "avg", "avgpad"};
        graph_set_word(g, n, GRAPH_ATTR_MODE, modes[rnd(&s) % 3]);
        graph_set_ints(g, n, GRAPH_ATTR_KERNEL, 2, (int64_t[]){f.kh, f.kw});
    } else {
        graph_set_int(g, n, GRAPH_ATTR_GROUP, f.group);
    }
    if (op == GRAPH_CONVT)
        graph_set_ints(g, n, GRAPH_ATTR_OUTPUT_PADS, 2, (int64_t[]){f.sh - 1, 0});
    npu_status st = graph_infer(g, n, "y");
    const char *what = text(a, graph_ops[op].text, &f, seed);
    cr_assert(!st, "%s: %s", what, npu_status_message(st));
    if (f.order) set_order(n->outputs[0], f.order, &s);
    if (chain) add_chain(g, n, ISA_F32, 1, rnd(&s) % 2, &s);
    // The model's output is row-major.
    struct graph_node *back = graph_add_node(g, GRAPH_COPY, "back", 1, &n->outputs[0], NULL);
    finish(g, back);
    back->outputs[0]->has_order = false;
    check_everywhere(g, t == ISA_F32 ? 1e-5 : 6e-3, what);
    arena_free(a);
}

Test(lower_conv, random_windows) {
    for (uint32_t s = 1; s <= 14; s++) {
        uint32_t seed = s;
        run(GRAPH_CONV, random_form(&seed, false), s % 4 ? ISA_F32 : ISA_F16, s % 2, s);
    }
}

Test(lower_conv, groups) {
    for (uint32_t s = 51; s <= 60; s++) {
        uint32_t seed = s;
        run(GRAPH_CONV, random_form(&seed, true), ISA_F32, s % 2, s);
    }
}

Test(lower_conv, depthwise) {
    for (uint32_t s = 71; s <= 80; s++) {
        uint32_t seed = s;
        struct form f = random_form(&seed, false);
        f.c = f.group = rnd_in(&seed, 2, 20);
        f.o = f.group * rnd_in(&seed, 1, 2);
        run(GRAPH_CONV, f, s % 3 ? ISA_F32 : ISA_F16, s % 2, s);
    }
}

Test(lower_conv, one_by_one) {
    for (int order = 0; order < 3; order++)
        for (int64_t stride = 1; stride <= 2; stride++)
            run(GRAPH_CONV,
                (struct form){.n = 2,
                              .c = 20,
                              .h = 9,
                              .w = 7,
                              .o = 33,
                              .group = 1,
                              .kh = 1,
                              .kw = 1,
                              .sh = stride,
                              .sw = stride,
                              .dh = 1,
                              .dw = 1,
                              .order = order},
                ISA_F32, true, 5);
}

Test(lower_conv, many_channels_in_little_memory) {
    run(GRAPH_CONV,
        (struct form){.n = 1,
                      .c = 300,
                      .h = 6,
                      .w = 6,
                      .o = 20,
                      .group = 1,
                      .kh = 3,
                      .kw = 3,
                      .sh = 1,
                      .sw = 1,
                      .dh = 1,
                      .dw = 1,
                      .pads = {1, 1, 1, 1},
                      .order = 1},
        ISA_F32, true, 5);
    run(GRAPH_CONV,
        (struct form){.n = 1,
                      .c = 1500,
                      .h = 3,
                      .w = 5,
                      .o = 9,
                      .group = 1,
                      .kh = 2,
                      .kw = 3,
                      .sh = 1,
                      .sw = 1,
                      .dh = 1,
                      .dw = 1,
                      .pads = {1, 1, 1, 1},
                      .order = 1},
        ISA_F32, true, 5);
}

Test(lower_conv, wide_rows_in_little_memory) {
    run(GRAPH_CONV,
        (struct form){.n = 1,
                      .c = 3,
                      .h = 4,
                      .w = 3000,
                      .o = 8,
                      .group = 1,
                      .kh = 3,
                      .kw = 3,
                      .sh = 1,
                      .sw = 2,
                      .dh = 1,
                      .dw = 1,
                      .pads = {1, 1, 1, 1},
                      .order = 1},
        ISA_F32, true, 5);
    run(GRAPH_POOL,
        (struct form){.n = 1,
                      .c = 3,
                      .h = 4,
                      .w = 3000,
                      .o = 8,
                      .group = 1,
                      .kh = 2,
                      .kw = 3,
                      .sh = 1,
                      .sw = 2,
                      .dh = 1,
                      .dw = 1,
                      .order = 1},
        ISA_F32, true, 5);
}

Test(lower_conv, long_kernel) {
    run(GRAPH_CONV,
        (struct form){.n = 1,
                      .c = 1,
                      .h = 1,
                      .w = 700,
                      .o = 40,
                      .group = 1,
                      .kh = 1,
                      .kw = 256,
                      .sh = 1,
                      .sw = 64,
                      .dh = 1,
                      .dw = 1},
        ISA_F32, false, 5);
    run(GRAPH_CONV,
        (struct form){.n = 1,
                      .c = 2,
                      .h = 1,
                      .w = 700,
                      .o = 10,
                      .group = 1,
                      .kh = 1,
                      .kw = 400,
                      .sh = 1,
                      .sw = 64,
                      .dh = 1,
                      .dw = 1},
        ISA_F32, false, 5);
}

Test(lower_conv, transposed) {
    for (uint32_t s = 91; s <= 104; s++) {
        uint32_t seed = s;
        struct form f = random_form(&seed, s % 2);
        f.h = rnd_in(&seed, 3, 8);
        f.w = rnd_in(&seed, 3, 8);
        for (int i = 0; i < 4; i++)
            f.pads[i] = rnd_in(&seed, 0, 1);
        if (s % 3) f.dh = f.dw = 1;
        run(GRAPH_CONVT, f, ISA_F32, s % 2, s);
    }
}

Test(lower_conv, pooling) {
    for (uint32_t s = 111; s <= 122; s++) {
        uint32_t seed = s;
        struct form f = random_form(&seed, false);
        for (int i = 0; i < 4; i++)
            if (f.pads[i] >= (i % 2 ? f.kw : f.kh)) f.pads[i] = 0;
        f.dh = f.dw = 1;
        run(GRAPH_POOL, f, s % 3 ? ISA_F32 : ISA_F16, s % 2, s);
    }
}

// A kernel that is a multiple of the strides: all phases are columns of one product.
Test(lower_conv, transposed_merged) {
    struct form f = {.n = 2,
                     .c = 12,
                     .h = 7,
                     .w = 9,
                     .o = 3,
                     .group = 1,
                     .kh = 2,
                     .kw = 2,
                     .sh = 2,
                     .sw = 2,
                     .dh = 1,
                     .dw = 1};
    for (int order = 0; order < 3; order++) {
        f.order = order;
        run(GRAPH_CONVT, f, ISA_F32, true, 5);
    }
    struct form g = {.n = 1,
                     .c = 8,
                     .h = 6,
                     .w = 5,
                     .o = 4,
                     .group = 2,
                     .kh = 4,
                     .kw = 6,
                     .sh = 2,
                     .sw = 3,
                     .dh = 1,
                     .dw = 1,
                     .pads = {1, 2, 1, 1},
                     .order = 1};
    run(GRAPH_CONVT, g, ISA_F32, true, 6);
    g.c = 300;
    g.group = 1;
    run(GRAPH_CONVT, g, ISA_F32, true, 7);
}

// A kernel as large as its stride over many channels: chunks of one kernel row load only the rows
// that they meet.
Test(lower_conv, patches_in_little_memory) {
    run(GRAPH_CONV,
        (struct form){.n = 1,
                      .c = 3,
                      .h = 64,
                      .w = 64,
                      .o = 30,
                      .group = 1,
                      .kh = 16,
                      .kw = 16,
                      .sh = 16,
                      .sw = 16,
                      .dh = 1,
                      .dw = 1,
                      .order = 1},
        ISA_F32, true, 5);
    run(GRAPH_CONV,
        (struct form){.n = 1,
                      .c = 200,
                      .h = 12,
                      .w = 11,
                      .o = 9,
                      .group = 1,
                      .kh = 5,
                      .kw = 3,
                      .sh = 3,
                      .sw = 2,
                      .dh = 2,
                      .dw = 1,
                      .pads = {2, 1, 3, 1},
                      .order = 1},
        ISA_F32, true, 6);
}
