// SPDX-License-Identifier: Apache-2.0
//
// Elementwise chains over broadcast operands in any storage order.
#include "tests/unit/toolchain/lower/lowered.h"

static void one(uint32_t seed) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t start = seed;
    int rank = (int)rnd_in(&seed, 1, 5);
    int64_t dims[5], other[5];
    for (int d = 0; d < rank; d++)
        dims[d] = rnd_in(&seed, 1, rank > 3 ? 9 : 24);
    struct graph_value *in[3];
    for (int k = 0; k < 3; k++) {
        int r = k ? (int)rnd_in(&seed, 1, rank) : rank;
        for (int d = 0; d < r; d++)
            other[d] = k && rnd(&seed) % 3 == 0 ? 1 : dims[rank - r + d];
        in[k] = k == 2 ? constant(g, "c", ISA_F32, r, other, &seed)
                       : input(g, k ? "b" : "a", k ? ISA_F16 : ISA_F32, r, other);
        if (k < 2)
            in[k] = reordered(g, in[k], in[k]->rank == rank ? (int)(rnd(&seed) % 3) : 0, &seed);
    }
    struct isa_chain c = {0};
    c.st[0] = (struct isa_stage){.op = ISA_VOP_ADD, .a = ISA_SRC_IN1};
    c.st[1] = (struct isa_stage){.op = ISA_VOP_MUL, .a = ISA_SRC_IN2};
    c.st[2] = (struct isa_stage){.op = ISA_VOP_SIGMOID};
    struct graph_value *y;
    npu_status st = graph_add_map(g, "map", 3, in, &c, ISA_F32, NULL, &y);
    cr_assert(!st, "%s", npu_status_message(st));
    graph_add_output(g, y);
    check_everywhere(g, 1e-6, arena_printf(a, "map, seed %u", start));
    arena_free(a);
}

Test(lower_map, random_broadcasts) {
    for (uint32_t s = 1; s <= 25; s++)
        one(s);
}

Test(lower_map, longer_than_the_scratchpad) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    struct graph_value *x = input(g, "x", ISA_F32, 1, (int64_t[]){200003}), *y;
    struct isa_chain c = {0};
    c.st[0] = (struct isa_stage){.op = ISA_VOP_ABS};
    cr_assert(!graph_add_map(g, "abs", 1, &x, &c, ISA_F32, NULL, &y));
    graph_add_output(g, y);
    check_everywhere(g, 0, "200003 elements");
    arena_free(a);
}
