// SPDX-License-Identifier: Apache-2.0
//
// Matrix products: random shapes, batches, transposes, constant and computed operands, chains.
#include "tests/unit/toolchain/lower/lowered.h"

static void one(uint32_t seed, bool constant_b, bool chain, enum isa_dtype t) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    int nb = (int)rnd_in(&seed, 0, 2), ra = nb + 2, rb = rnd(&seed) % 2 ? nb + 2 : 2;
    int64_t m = rnd_in(&seed, 1, 70), n = rnd_in(&seed, 1, 70), k = rnd_in(&seed, 1, 90), da[4],
            db[4];
    bool ta = rnd(&seed) % 2, tb = rnd(&seed) % 2;
    for (int d = 0; d < nb; d++) {
        da[d] = rnd_in(&seed, 1, 4);
        if (rb > 2) db[d] = rnd(&seed) % 3 ? da[d] : 1;
    }
    da[ra - 2] = ta ? k : m, da[ra - 1] = ta ? m : k;
    db[rb - 2] = tb ? n : k, db[rb - 1] = tb ? k : n;
    struct graph_value *in[2] = {input(g, "a", t, ra, da), NULL};
    in[1] = constant_b ? constant(g, "b", t, rb, db, &seed) : input(g, "b", t, rb, db);
    struct graph_node *node = graph_add_node(g, GRAPH_MATMUL, "mm", 2, in, NULL);
    graph_set_int(g, node, GRAPH_ATTR_TRANS_A, ta);
    graph_set_int(g, node, GRAPH_ATTR_TRANS_B, tb);
    finish(g, node);
    if (chain) add_chain(g, node, ISA_F32, node->outputs[0]->rank - 1, rnd(&seed) % 2, &seed);
    char *what =
        arena_printf(a, "%lldx%lldx%lld, %d batch dims, seed %u, ta %d tb %d const %d",
                     (long long)m, (long long)n, (long long)k, nb, seed, ta, tb, constant_b);
    check_everywhere(g, t == ISA_F32 ? 1e-5 : 4e-3, what);
    arena_free(a);
}

Test(lower_matmul, computed_operands) {
    for (uint32_t s = 1; s <= 12; s++)
        one(s, false, s % 2, ISA_F32);
}

Test(lower_matmul, constant_operand) {
    for (uint32_t s = 101; s <= 112; s++)
        one(s, true, s % 2, s % 3 ? ISA_F32 : ISA_F16);
}

Test(lower_matmul, long_k_in_little_memory) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t seed = 3;
    struct graph_value *in[2] = {input(g, "a", ISA_F32, 2, (int64_t[]){3, 3000}),
                                 constant(g, "b", ISA_F32, 2, (int64_t[]){3000, 20}, &seed)};
    finish(g, graph_add_node(g, GRAPH_MATMUL, "mm", 2, in, NULL));
    check_everywhere(g, 1e-5, "3x20x3000");
    arena_free(a);
}

// One row by constant weights, which the vector engine may take: long and short, in tiles, chains.
static void one_row(uint32_t seed) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t s = seed;
    enum isa_dtype t = rnd(&s) % 3 ? ISA_F32 : ISA_F16;
    bool tb = rnd(&s) % 2;
    int64_t n = rnd_in(&s, 1, 300), k = rnd_in(&s, 1, 400), db[2] = {tb ? n : k, tb ? k : n};
    struct graph_value *x = input(g, "a", t, 3, (int64_t[]){1, 1, k});
    struct graph_value *in[2] = {reordered(g, x, (int)(rnd(&s) % 3), &s),
                                 constant(g, "b", t, 2, db, &s)};
    struct graph_node *node = graph_add_node(g, GRAPH_MATMUL, "mm", 2, in, NULL);
    graph_set_int(g, node, GRAPH_ATTR_TRANS_B, tb);
    finish(g, node);
    if (rnd(&s) % 2) add_chain(g, node, ISA_F32, 2, rnd(&s) % 2, &s);
    check_everywhere(g, t == ISA_F32 ? 1e-5 : 4e-3,
                     arena_printf(a, "one row %lldx%lld seed %u", (long long)n, (long long)k,
                                  seed));
    arena_free(a);
}

Test(lower_matmul, rows_by_constants) {
    for (uint32_t s = 201; s <= 216; s++)
        one_row(s);
}
