// SPDX-License-Identifier: Apache-2.0
//
// Rotary embedding, group normalisation, gated products and gated MLPs: random shapes, storage
// orders and forms against the reference kernels, on machines of several sizes.
#include "tests/unit/toolchain/lower/lowered.h"
#include "toolchain/graph/act.h"

static enum isa_dtype type(uint32_t *s) {
    return rnd(s) % 3 ? ISA_F32 : ISA_F16;
}

static double tolerance(enum isa_dtype t) {
    return t == ISA_F32 ? 2e-5 : 6e-3;
}

static void rotary(uint32_t seed) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t s = seed;
    int rank = (int)rnd_in(&s, 2, 4), first = (int)rnd_in(&s, 0, rank - 2);
    enum isa_dtype t = type(&s);
    int64_t dims[4], table[4], half = rnd_in(&s, 1, 17), rest = rnd(&s) % 2 ? rnd_in(&s, 1, 7) : 0;
    for (int d = 0; d < rank - 1; d++)
        dims[d] = rnd_in(&s, 1, 9);
    dims[rank - 1] = 2 * half + rest;
    for (int d = first; d < rank - 1; d++)
        table[d] = rnd(&s) % 2 ? dims[d] : 1;
    table[rank - 1] = rnd(&s) % 2 ? half : 2 * half;
    struct graph_value *x = reordered(g, input(g, "x", t, rank, dims), (int)(rnd(&s) % 3), &s);
    struct graph_value *in[3] = {x};
    for (int k = 1; k < 3; k++)
        in[k] = rnd(&s) % 2 ? constant(g, k > 1 ? "sin" : "cos", t, rank - first, table + first, &s)
                            : input(g, k > 1 ? "sin" : "cos", t, rank - first, table + first);
    struct graph_node *n = graph_add_node(g, GRAPH_ROTARY, "rotary", 3, in, NULL);
    graph_set_int(g, n, GRAPH_ATTR_INTERLEAVED, rnd(&s) % 2);
    graph_set_int(g, n, GRAPH_ATTR_ROTARY_DIM, 2 * half);
    finish(g, n);
    check_everywhere(g, tolerance(t), arena_printf(a, "rotary seed %u", seed));
    arena_free(a);
}

Test(lower_block, rotary) {
    for (uint32_t s = 1; s <= 20; s++)
        rotary(s);
}

// A repeated row: x has no stride where the angles have one.
Test(lower_block, rotary_of_a_repeated_value) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t s = 5;
    struct graph_value *x = input(g, "x", ISA_F32, 3, (int64_t[]){1, 1, 24});
    struct graph_node *e = graph_add_node(g, GRAPH_EXPAND, "e", 1, &x, NULL);
    graph_set_ints(g, e, GRAPH_ATTR_SHAPE, 3, (int64_t[]){2, 31, 24});
    cr_assert_null(graph_infer(g, e, "e"));
    struct graph_value *in[3] = {e->outputs[0],
                                 constant(g, "cos", ISA_F32, 2, (int64_t[]){31, 12}, &s),
                                 constant(g, "sin", ISA_F32, 2, (int64_t[]){31, 12}, &s)};
    finish(g, graph_add_node(g, GRAPH_ROTARY, "rotary", 3, in, NULL));
    check_everywhere(g, 1e-6, "rotary of a repeated value");
    arena_free(a);
}

static void groupnorm(uint32_t seed) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t s = seed;
    int rank = rnd(&s) % 3 ? 4 : (int)rnd_in(&s, 2, 5);
    enum isa_dtype t = type(&s);
    int64_t dims[5], group = rnd_in(&s, 1, 4), each = rnd_in(&s, 1, 9);
    for (int d = 0; d < rank; d++)
        dims[d] = rnd_in(&s, 1, rank > 2 ? 9 : 20);
    dims[0] = rnd_in(&s, 1, 3);
    dims[1] = group * each;
    struct graph_value *x = reordered(g, input(g, "x", t, rank, dims), (int)(rnd(&s) % 3), &s);
    struct graph_value *in[3] = {x};
    int nin = 1, most = (int)(rnd(&s) % 3);
    for (; nin <= most; nin++)
        in[nin] = constant(g, nin > 1 ? "bias" : "scale", ISA_F32, 1, dims + 1, &s);
    struct graph_node *n = graph_add_node(g, GRAPH_GROUPNORM, "norm", nin, in, NULL);
    graph_set_int(g, n, GRAPH_ATTR_GROUP, group);
    graph_set_float(g, n, GRAPH_ATTR_EPSILON, 0.01);
    finish(g, n);
    if (rnd(&s) % 2) add_chain(g, n, t, 1, rnd(&s) % 2, &s);
    check_everywhere(g, tolerance(t), arena_printf(a, "groupnorm seed %u", seed));
    arena_free(a);
}

Test(lower_block, groupnorm) {
    for (uint32_t s = 1; s <= 24; s++)
        groupnorm(s);
}

static void glu(uint32_t seed, bool mlp) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t s = seed;
    int rank = (int)rnd_in(&s, 1, 4), nin = 1, act = (int)(rnd(&s) % (uint32_t)graph_act_count);
    enum isa_dtype t = type(&s);
    int64_t dims[4], k = rnd_in(&s, 1, 60), n = rnd_in(&s, 1, 70), m = rnd_in(&s, 1, 50);
    for (int d = 0; d < rank - 1; d++)
        dims[d] = rnd_in(&s, 1, rank > 2 ? 6 : 60);
    dims[rank - 1] = k;
    int halves = (int)(rnd(&s) % 3), turned = (int)(rnd(&s) % 2), down = (int)(rnd(&s) % 2);
    bool biased = rnd(&s) % 2;
    struct graph_value *x = reordered(g, input(g, "x", t, rank, dims), (int)(rnd(&s) % 3), &s);
    struct graph_value *in[6] = {x};
    int64_t wide = halves ? 2 * n : n, w[2] = {turned ? wide : k, turned ? k : wide};
    for (int i = 0; i < (halves ? 1 : 2); i++)
        in[nin++] = constant(g, i ? "w1" : "w0", t, 2, w, &s);
    for (int i = 0; biased && i < (halves ? 1 : 2); i++)
        in[nin++] = constant(g, i ? "b1" : "b0", ISA_F32, 1, &wide, &s);
    if (mlp)
        in[nin++] = constant(g, "down", t, 2, down ? (int64_t[]){m, n} : (int64_t[]){n, m}, &s);
    struct graph_node *node =
        graph_add_node(g, mlp ? GRAPH_GLU_MLP : GRAPH_GLU, "glu", nin, in, NULL);
    graph_set_word(g, node, GRAPH_ATTR_ACT, graph_acts[act].text);
    graph_set_int(g, node, GRAPH_ATTR_HALVES, halves);
    graph_set_int(g, node, GRAPH_ATTR_BIASED, biased);
    graph_set_int(g, node, GRAPH_ATTR_TRANS_B, turned);
    if (mlp) graph_set_int(g, node, GRAPH_ATTR_TRANS_DOWN, down);
    finish(g, node);
    if (mlp && rnd(&s) % 2) add_chain(g, node, t, rank - 1, rnd(&s) % 2, &s);
    check_everywhere(g, tolerance(t),
                     arena_printf(a, "%s %s seed %u", graph_ops[node->op].text,
                                  graph_acts[act].text, seed));
    arena_free(a);
}

Test(lower_block, gated_products) {
    for (uint32_t s = 1; s <= 24; s++)
        glu(s, false);
}

Test(lower_block, gated_mlps) {
    for (uint32_t s = 101; s <= 124; s++)
        glu(s, true);
}

// The intermediate of all rows is larger than the scratchpad of the small machines.
Test(lower_block, mlp_in_blocks_of_rows) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t s = 9;
    struct graph_value *in[4] = {input(g, "x", ISA_F16, 2, (int64_t[]){301, 24}),
                                 constant(g, "w0", ISA_F16, 2, (int64_t[]){24, 200}, &s),
                                 constant(g, "w1", ISA_F16, 2, (int64_t[]){24, 200}, &s),
                                 constant(g, "down", ISA_F16, 2, (int64_t[]){200, 24}, &s)};
    struct graph_node *n = graph_add_node(g, GRAPH_GLU_MLP, "mlp", 4, in, NULL);
    graph_set_word(g, n, GRAPH_ATTR_ACT, "silu");
    finish(g, n);
    add_chain(g, n, ISA_F16, 1, true, &s);
    check_everywhere(g, 6e-3, "mlp of 301 rows");
    arena_free(a);
}

// The same of rows that do not follow each other in memory: no blocks, so two kernels.
Test(lower_block, mlp_of_batches_apart) {
    for (uint32_t seed = 1; seed <= 4; seed++) {
        struct arena *a = arena_new();
        struct graph *g = graph_new(a, "g");
        uint32_t s = seed;
        struct graph_value *x = input(g, "x", ISA_F16, 3, (int64_t[]){5, 60, 24});
        struct graph_value *in[3] = {reordered(g, x, 2, &s),
                                     constant(g, "w", ISA_F16, 2, (int64_t[]){24, 400}, &s),
                                     constant(g, "down", ISA_F16, 2, (int64_t[]){200, 24}, &s)};
        struct graph_node *n = graph_add_node(g, GRAPH_GLU_MLP, "mlp", 3, in, NULL);
        graph_set_word(g, n, GRAPH_ATTR_ACT, "gelu");
        graph_set_int(g, n, GRAPH_ATTR_HALVES, 1);
        finish(g, n);
        check_everywhere(g, 6e-3, arena_printf(a, "mlp of batches, seed %u", seed));
        arena_free(a);
    }
}
