// SPDX-License-Identifier: Apache-2.0
// Eager programs: passes join what is of one call and nothing else.
#include <criterion/criterion.h>

#include "pass_run.h"

// The convolution and its bias are one call, the others one each.
static struct graph *of_calls(struct arena *a, const char *text) {
    struct graph *g = parse_graph(a, text);
    g->first->next->call = 1;
    return g;
}

static struct graph *eager(struct graph *g) {
    struct pass_options o;
    struct pass_log log = {0};
    pass_options_init(&o);
    o.eager = true;
    run_passes(g, &o, &log);
    return g;
}

static const char text[] = "graph \"net\"\n"
                           "in %x : f32[1,2,4,4]\n"
                           "const %w : f32[2,2,1,1] = {0.5, -0.25, 1, 0.75}\n"
                           "const %b : f32[2,1,1] = {1, 2}\n"
                           "const %g : f32[2] = {2, 0.5}\n"
                           "const %z : f32[2] = {0.5, 1}\n"
                           "const %m : f32[2] = {0.25, 0}\n"
                           "const %v : f32[2] = {1, 2}\n"
                           "%c = conv %x, %w strides=[1,1] pads=[0,0,0,0]\n"
                           "%d = map %c, %b chain=(add in1)\n"
                           "%n = batchnorm %d, %g, %z, %m, %v epsilon=0.00001\n"
                           "%r = map %n chain=(max imm0) imm0=0\n"
                           "%e = map %r, %x chain=(add in1)\n"
                           "out %e\n";

// Bias goes into its convolution; scale, relu and sum stay calls; none of the nodes changes sides.
Test(eager, joins_inside_calls_only) {
    struct arena *a = arena_new();
    struct graph *before = parse_graph(a, text), *g = eager(of_calls(a, text));
    static const enum graph_op ops[] = {GRAPH_COPY, GRAPH_CONV, GRAPH_MAP,
                                        GRAPH_MAP,  GRAPH_MAP,  GRAPH_COPY};
    static const int calls[] = {1, 1, 3, 4, 5, 5};
    int i = 0;
    for (const struct graph_node *n = g->first; n; n = n->next, i++) {
        cr_assert_lt(i, 6);
        cr_expect_eq(n->op, ops[i], "node %d", i);
        cr_expect_eq(n->call, calls[i], "node %d", i);
    }
    cr_expect_eq(i, 6);
    cr_expect(g->first->next->has_chain, "the bias went into the convolution");
    check_same(before, g, 1e-6, a, "eager");
    arena_free(a);
}

// The same nodes in one call become one.
Test(eager, one_call_is_one_kernel) {
    struct arena *a = arena_new();
    static const char gelu[] = "graph \"gelu\"\n"
                               "in %x : f32[4,4]\n"
                               "%a = map %x chain=(mul imm0) imm0=0.70710678\n"
                               "%b = map %a chain=(erf)\n"
                               "%c = map %b chain=(add imm0) imm0=1\n"
                               "%d = map %x, %c chain=(mul in1)\n"
                               "%e = map %d chain=(mul imm0) imm0=0.5\n"
                               "out %e\n";
    struct graph *g = parse_graph(a, gelu);
    for (struct graph_node *n = g->first; n; n = n->next)
        n->call = 1;
    cr_expect_eq(count_nodes(eager(g)), 1);
    cr_expect_eq(count_nodes(eager(parse_graph(a, gelu))), 5);
    arena_free(a);
}

// A constant that several calls read stays one, and names of values stay.
Test(eager, constants_are_shared) {
    struct arena *a = arena_new();
    struct graph *g = parse_graph(a, "graph \"tied\"\n"
                                     "in %x : f32[4,4]\n"
                                     "const %w : f32[4,4] = {1, 2, 3, ...}\n"
                                     "%a = matmul %x, %w\n"
                                     "%b = matmul %a, %w\n"
                                     "out %b\n");
    eager(g);
    cr_expect_eq(g->first->inputs[1], g->last->inputs[1]);
    cr_expect_str_eq(g->first->outputs[0]->name, "a");
    cr_expect_str_eq(g->outputs[0]->name, "b");
    arena_free(a);
}

// Nodes of graphs that name no calls are a call each.
Test(eager, every_node_gets_a_call) {
    struct arena *a = arena_new();
    struct graph *g = parse_graph(a, "graph \"plain\"\n"
                                     "in %x : f32[4,4]\n"
                                     "%a = map %x chain=(neg)\n"
                                     "%b = map %a chain=(abs)\n"
                                     "out %b\n");
    cr_assert_eq(g->ncall, 2);
    cr_expect_str_eq(g->calls[0].op, "map");
    cr_expect_str_eq(g->calls[1].name, "b");
    cr_expect_eq(count_nodes(eager(g)), 2);
    arena_free(a);
}
