// SPDX-License-Identifier: Apache-2.0
//
// Ops that move elements: every storage order, every kind of border, indices, interpolation.
#include "tests/unit/toolchain/lower/lowered.h"

#include <string.h>

struct subject {
    struct arena *a;
    struct graph *g;
    uint32_t s;
    int rank;
    int64_t dims[6];
    struct graph_value *x;
};

static struct subject start(uint32_t seed, int least_rank, enum isa_dtype t) {
    struct subject u = {.a = arena_new(), .s = seed};
    u.g = graph_new(u.a, "g");
    u.rank = (int)rnd_in(&u.s, least_rank, 4);
    for (int d = 0; d < u.rank; d++)
        u.dims[d] = rnd_in(&u.s, 1, u.rank > 3 ? 9 : 17);
    u.x = reordered(u.g, input(u.g, "x", t, u.rank, u.dims), (int)(rnd(&u.s) % 3), &u.s);
    return u;
}

// Infers, gives the result a storage order, and checks.
static void end(struct subject *u, struct graph_node *n, uint32_t seed) {
    npu_status st = graph_infer(u->g, n, "y");
    cr_assert(!st, "seed %u: %s", seed, npu_status_message(st));
    set_order(n->outputs[0], (int)(rnd(&u->s) % 3), &u->s);
    struct graph_node *back = graph_add_node(u->g, GRAPH_COPY, "back", 1, &n->outputs[0], NULL);
    finish(u->g, back);
    check_everywhere(u->g, 1e-5, arena_printf(u->a, "%s seed %u", graph_ops[n->op].text, seed));
    arena_free(u->a);
}

Test(lower_move, transpose) {
    for (uint32_t s = 1; s <= 20; s++) {
        struct subject u = start(s, 1, s % 2 ? ISA_F32 : ISA_F16);
        int64_t perm[6];
        for (int d = 0; d < u.rank; d++)
            perm[d] = d;
        for (int d = u.rank - 1; d > 0; d--) {
            int j = (int)rnd_in(&u.s, 0, d);
            int64_t t = perm[d];
            perm[d] = perm[j];
            perm[j] = t;
        }
        struct graph_node *n = graph_add_node(u.g, GRAPH_TRANSPOSE, "t", 1, &u.x, NULL);
        graph_set_ints(u.g, n, GRAPH_ATTR_PERM, u.rank, perm);
        end(&u, n, s);
    }
}

Test(lower_move, large_transpose) {
    struct subject u = start(1, 1, ISA_F32);
    struct graph_value *x = input(u.g, "big", ISA_F32, 2, (int64_t[]){300, 500});
    struct graph_node *n = graph_add_node(u.g, GRAPH_TRANSPOSE, "t", 1, &x, NULL);
    graph_set_ints(u.g, n, GRAPH_ATTR_PERM, 2, (int64_t[]){1, 0});
    end(&u, n, 1);
}

Test(lower_move, slice) {
    for (uint32_t s = 1; s <= 20; s++) {
        struct subject u = start(s, 1, s % 2 ? ISA_F32 : ISA_I64);
        int64_t starts[6], sizes[6], steps[6];
        for (int d = 0; d < u.rank; d++) {
            steps[d] = rnd_in(&u.s, 1, 3);
            sizes[d] = rnd_in(&u.s, 1, (u.dims[d] - 1) / steps[d] + 1);
            starts[d] = rnd_in(&u.s, 0, u.dims[d] - 1 - (sizes[d] - 1) * steps[d]);
            if (rnd(&u.s) % 3 == 0) {
                starts[d] += (sizes[d] - 1) * steps[d];
                steps[d] = -steps[d];
            }
        }
        struct graph_node *n = graph_add_node(u.g, GRAPH_SLICE, "s", 1, &u.x, NULL);
        graph_set_ints(u.g, n, GRAPH_ATTR_STARTS, u.rank, starts);
        graph_set_ints(u.g, n, GRAPH_ATTR_SIZES, u.rank, sizes);
        graph_set_ints(u.g, n, GRAPH_ATTR_STEPS, u.rank, steps);
        end(&u, n, s);
    }
}

Test(lower_move, concat) {
    for (uint32_t s = 1; s <= 12; s++) {
        struct subject u = start(s, 1, ISA_F32);
        int axis = (int)rnd_in(&u.s, 0, u.rank - 1);
        struct graph_value *in[3] = {u.x, NULL, NULL};
        for (int i = 1; i < 3; i++) {
            u.dims[axis] = rnd_in(&u.s, 1, 9);
            in[i] = i == 2 ? constant(u.g, "c", ISA_F32, u.rank, u.dims, &u.s)
                           : reordered(u.g, input(u.g, "b", ISA_F32, u.rank, u.dims),
                                       (int)(rnd(&u.s) % 3), &u.s);
        }
        struct graph_node *n = graph_add_node(u.g, GRAPH_CONCAT, "c", 3, in, NULL);
        graph_set_int(u.g, n, GRAPH_ATTR_AXIS, axis);
        end(&u, n, s);
    }
}

Test(lower_move, expand) {
    for (uint32_t s = 1; s <= 12; s++) {
        struct subject u = start(s, 1, ISA_F32);
        int64_t shape[6], small[6];
        for (int d = 0; d < u.rank; d++)
            small[d] = rnd(&u.s) % 2 ? 1 : u.dims[d];
        struct graph_value *x =
            reordered(u.g, input(u.g, "small", ISA_F32, u.rank, small), (int)(rnd(&u.s) % 3), &u.s);
        shape[0] = 3;
        memcpy(shape + 1, u.dims, sizeof u.dims - sizeof *u.dims);
        struct graph_node *n = graph_add_node(u.g, GRAPH_EXPAND, "e", 1, &x, NULL);
        graph_set_ints(u.g, n, GRAPH_ATTR_SHAPE, u.rank + 1, shape);
        end(&u, n, s);
    }
}

Test(lower_move, pad) {
    static const char *const modes[] = {"constant", "edge", "reflect"};
    for (uint32_t s = 1; s <= 24; s++) {
        struct subject u = start(s, 1, ISA_F32);
        int64_t before[6], after[6];
        for (int d = 0; d < u.rank; d++) {
            int64_t most = s % 3 == 2 ? u.dims[d] - 1 : 3;
            before[d] = rnd_in(&u.s, 0, most < 3 ? most : 3);
            after[d] = rnd_in(&u.s, s % 3 == 0 && u.dims[d] > 3 ? -2 : 0, most < 3 ? most : 3);
        }
        struct graph_node *n = graph_add_node(u.g, GRAPH_PAD, "p", 1, &u.x, NULL);
        graph_set_ints(u.g, n, GRAPH_ATTR_PADS_BEFORE, u.rank, before);
        graph_set_ints(u.g, n, GRAPH_ATTR_PADS_AFTER, u.rank, after);
        graph_set_word(u.g, n, GRAPH_ATTR_MODE, modes[s % 3]);
        graph_set_float(u.g, n, GRAPH_ATTR_VALUE, 1.5);
        end(&u, n, s);
    }
}

Test(lower_move, reshape) {
    for (uint32_t s = 1; s <= 24; s++) {
        struct subject u = start(s, 1, ISA_F32);
        int64_t n = 1, shape[3] = {1, 1, 1};
        for (int d = 0; d < u.rank; d++)
            n *= u.dims[d];
        for (int64_t f = 2; f <= n; f++)
            while (n % f == 0) {
                shape[rnd(&u.s) % 3] *= f;
                n /= f;
            }
        struct graph_node *node = graph_add_node(u.g, GRAPH_RESHAPE, "r", 1, &u.x, NULL);
        graph_set_ints(u.g, node, GRAPH_ATTR_SHAPE, 3, shape);
        end(&u, node, s);
    }
}

Test(lower_move, gather) {
    for (uint32_t s = 1; s <= 24; s++) {
        struct subject u = start(s, 1, s % 2 ? ISA_F32 : ISA_F16);
        int axis = (int)rnd_in(&u.s, 0, u.rank - 1), r = (int)rnd_in(&u.s, 0, 2);
        int64_t dims[2] = {rnd_in(&u.s, 1, 5), rnd_in(&u.s, 1, 6)};
        struct graph_value *in[2] = {u.x, input(u.g, "i", s % 3 ? ISA_I64 : ISA_I32, r, dims)};
        in[1]->index_limit = u.dims[axis];
        struct graph_node *n = graph_add_node(u.g, GRAPH_GATHER, "g", 2, in, NULL);
        graph_set_int(u.g, n, GRAPH_ATTR_AXIS, axis);
        end(&u, n, s);
    }
}

Test(lower_move, resize) {
    static const char *const coords[] = {"half_pixel", "asymmetric", "align_corners",
                                         "pytorch_half_pixel"};
    static const char *const nearest[] = {"floor", "ceil", "round_prefer_floor",
                                          "round_prefer_ceil"};
    for (uint32_t s = 1; s <= 24; s++) {
        struct subject u = start(s, 4, ISA_F32);
        int64_t shape[4] = {u.dims[0], u.dims[1], u.dims[2], u.dims[3]};
        for (int d = 2; d < 4; d++)
            shape[d] = s % 2 ? u.dims[d] * rnd_in(&u.s, 1, 3) : rnd_in(&u.s, 1, 20);
        struct graph_node *n = graph_add_node(u.g, GRAPH_RESIZE, "r", 1, &u.x, NULL);
        graph_set_ints(u.g, n, GRAPH_ATTR_SHAPE, 4, shape);
        graph_set_word(u.g, n, GRAPH_ATTR_MODE, s % 3 ? "nearest" : "linear");
        graph_set_word(u.g, n, GRAPH_ATTR_COORD, s % 4 == 1 ? "asymmetric" : coords[rnd(&u.s) % 4]);
        graph_set_word(u.g, n, GRAPH_ATTR_NEAREST, s % 4 == 1 ? "floor" : nearest[rnd(&u.s) % 4]);
        end(&u, n, s);
    }
}

Test(lower_move, outputs_that_are_inputs_or_constants) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t s = 1;
    struct graph_value *x = input(g, "x", ISA_F32, 2, (int64_t[]){3, 5}),
                       *c = constant(g, "c", ISA_F32, 1, (int64_t[]){7}, &s);
    graph_add_output(g, x);
    graph_add_output(g, c);
    check_everywhere(g, 0, "copies");
    arena_free(a);
}

Test(lower_move, scalars) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    struct graph_value *x = input(g, "x", ISA_F32, 0, NULL), *y;
    struct isa_chain c = {0};
    c.st[0] = (struct isa_stage){.op = ISA_VOP_EXP};
    cr_assert(!graph_add_map(g, "exp", 1, &x, &c, ISA_F32, NULL, &y));
    graph_add_output(g, y);
    check_everywhere(g, 1e-6, "scalar");
    arena_free(a);
}
