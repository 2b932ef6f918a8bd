// SPDX-License-Identifier: Apache-2.0
//
// Reductions, softmax and normalisation: random axes and storage orders; rows longer than the
// scratchpad.
#include "tests/unit/toolchain/lower/lowered.h"

static struct graph_value *tensor(struct graph *g, uint32_t *s, int rank, int64_t *dims,
                                  enum isa_dtype t) {
    for (int d = 0; d < rank; d++)
        dims[d] = rnd_in(s, 1, rank > 3 ? 9 : 40);
    struct graph_value *x = input(g, "x", t, rank, dims);
    return reordered(g, x, (int)(rnd(s) % 3), s);
}

static void reduce(const char *mode, uint32_t seed, bool chain) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t s = seed;
    int rank = (int)rnd_in(&s, 1, 4), naxes = 0;
    int64_t dims[5], axes[5];
    struct graph_value *x = tensor(g, &s, rank, dims, ISA_F32);
    for (int d = 0; d < rank; d++)
        if (rnd(&s) % 2) axes[naxes++] = d;
    if (!naxes || mode[0] == 'a') {
        axes[0] = rnd_in(&s, 0, rank - 1);
        naxes = 1;
    }
    struct graph_node *n = graph_add_node(g, GRAPH_REDUCE, "reduce", 1, &x, NULL);
    graph_set_word(g, n, GRAPH_ATTR_MODE, mode);
    graph_set_ints(g, n, GRAPH_ATTR_AXES, naxes, axes);
    graph_set_int(g, n, GRAPH_ATTR_KEEPDIMS, rnd(&s) % 2);
    finish(g, n);
    if (chain && n->outputs[0]->rank)
        add_chain(g, n, ISA_F32, n->outputs[0]->rank - 1, rnd(&s) % 2, &s);
    check_everywhere(g, 1e-5, arena_printf(a, "reduce %s seed %u", mode, seed));
    arena_free(a);
}

Test(lower_rows, reductions) {
    static const char *const modes[] = {"sum", "mean", "max", "min", "sumsq", "prod", "argmax"};
    for (uint32_t s = 1; s <= 35; s++)
        reduce(modes[s % 7], s, s % 2 && s % 7 != 6);
}

static void long_row(enum graph_op op, const char *mode) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t s = 1;
    int64_t n = 9001;
    struct graph_value *in[3] = {input(g, "x", ISA_F32, 2, (int64_t[]){3, n}), NULL, NULL};
    int nin = 1;
    if (op == GRAPH_LAYERNORM || op == GRAPH_RMSNORM)
        in[nin++] = constant(g, "scale", ISA_F32, 1, &n, &s);
    if (op == GRAPH_LAYERNORM) in[nin++] = constant(g, "bias", ISA_F32, 1, &n, &s);
    struct graph_node *node = graph_add_node(g, op, "row", nin, in, NULL);
    graph_set_int(g, node, GRAPH_ATTR_AXIS, 1);
    graph_set_float(g, node, GRAPH_ATTR_EPSILON, 1e-5);
    if (mode) {
        graph_set_word(g, node, GRAPH_ATTR_MODE, mode);
        graph_set_ints(g, node, GRAPH_ATTR_AXES, 1, (int64_t[]){1});
    }
    finish(g, node);
    check_everywhere(g, 1e-5, graph_ops[op].text);
    arena_free(a);
}

Test(lower_rows, longer_than_the_scratchpad) {
    long_row(GRAPH_SOFTMAX, NULL);
    long_row(GRAPH_LAYERNORM, NULL);
    long_row(GRAPH_RMSNORM, NULL);
    long_row(GRAPH_REDUCE, "mean");
    long_row(GRAPH_REDUCE, "max");
}

static void rows(enum graph_op op, uint32_t seed, enum isa_dtype t) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "g");
    uint32_t s = seed;
    int rank = (int)rnd_in(&s, 1, 4), axis = (int)rnd_in(&s, 0, rank - 1), nin = 1;
    int64_t dims[5];
    struct graph_value *x = tensor(g, &s, rank, dims, t), *in[3] = {x, NULL, NULL};
    if (op != GRAPH_SOFTMAX && rnd(&s) % 3)
        in[nin++] = constant(g, "scale", ISA_F32, rank - axis, dims + axis, &s);
    if (op == GRAPH_LAYERNORM && nin > 1 && rnd(&s) % 2)
        in[nin++] = constant(g, "bias", ISA_F32, rank - axis, dims + axis, &s);
    struct graph_node *n = graph_add_node(g, op, "rows", nin, in, NULL);
    graph_set_int(g, n, GRAPH_ATTR_AXIS, axis);
    graph_set_float(g, n, GRAPH_ATTR_EPSILON, 1e-5);
    if (op == GRAPH_SOFTMAX) graph_set_int(g, n, GRAPH_ATTR_LOG, rnd(&s) % 3 == 0);
    if (op == GRAPH_RMSNORM && rnd(&s) % 3 == 0) graph_set_float(g, n, GRAPH_ATTR_FLOOR, 0.25);
    finish(g, n);
    if (op != GRAPH_SOFTMAX && rnd(&s) % 2) add_chain(g, n, t, rank - 1, rnd(&s) % 2, &s);
    check_everywhere(g, t == ISA_F32 ? 2e-5 : 5e-3,
                     arena_printf(a, "%s seed %u", graph_ops[op].text, seed));
    arena_free(a);
}

Test(lower_rows, softmax) {
    for (uint32_t s = 1; s <= 14; s++)
        rows(GRAPH_SOFTMAX, s, s % 3 ? ISA_F32 : ISA_F16);
}

Test(lower_rows, layernorm) {
    for (uint32_t s = 21; s <= 32; s++)
        rows(GRAPH_LAYERNORM, s, s % 3 ? ISA_F32 : ISA_F16);
}

Test(lower_rows, rmsnorm) {
    for (uint32_t s = 41; s <= 50; s++)
        rows(GRAPH_RMSNORM, s, s % 3 ? ISA_F32 : ISA_F16);
}
