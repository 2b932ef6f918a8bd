// SPDX-License-Identifier: Apache-2.0
//
// Indices that are known and out of range are refused, by node; those of run time cannot reach
// another element's place.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/toolchain/frontend/onnx/model.h"

static struct arena *arena;
static struct model m;

static void setup(void) {
    arena = arena_new();
    model_init(&m, arena, 17);
    model_input(&m, "x", 1, "4 5");
    model_output(&m, "y");
}

static void teardown(void) {
    arena_free(arena);
}

TestSuite(index, .init = setup, .fini = teardown);

static void refused(const char *part) {
    const char *why;
    cr_assert_null(model_import(&m, NULL, &why), "accepted, expected: %s", part);
    cr_expect_not_null(strstr(why, part), "'%s' lacks '%s'", why, part);
}

// The indices as an initializer of two dimensions.
static void known(int64_t rows, int64_t cols, const int64_t *items) {
    Onnx__TensorProto *t = model_ints(&m, "i", (int)(rows * cols), items);
    t->n_dims = 2;
    t->dims = ARENA_ARRAY(arena, int64_t, 2);
    t->dims[0] = rows;
    t->dims[1] = cols;
}

Test(index, gather) {
    known(1, 2, (int64_t[]){-4, 4});
    Onnx__NodeProto *n = model_node(&m, "Gather", "x i", "y");
    n->name = arena_strdup(arena, "pick");
    refused("index 4 ('i'[1]), expected -4 to 3");
    refused("node 'pick' (Gather)");
}

Test(index, gather_elements) {
    known(1, 3, (int64_t[]){0, 1, -6});
    node_int(arena, model_node(&m, "GatherElements", "x i", "y"), "axis", 1);
    refused("index -6 ('i'[2]), expected -5 to 4");
}

Test(index, gather_nd) {
    known(1, 2, (int64_t[]){0, 5}); // row 1 when flat
    model_node(&m, "GatherND", "x i", "y");
    refused("index 5 (");
}

Test(index, scatter_elements) {
    known(1, 1, (int64_t[]){5});
    model_input(&m, "u", 1, "1 1");
    node_int(arena, model_node(&m, "ScatterElements", "x i u", "y"), "axis", 1);
    refused("index 5 ('i'[0]), expected -5 to 4");
}

Test(index, lengths_of_sequences) {
    model_init(&m, arena, 14);
    model_input(&m, "x", 1, "3 2 4");
    model_input(&m, "w", 1, "1 5 4");
    model_input(&m, "r", 1, "1 5 5");
    model_ints(&m, "lengths", 2, (int64_t[]){3, 4});
    model_node(&m, "RNN", "x w r - lengths", "y");
    model_output(&m, "y");
    refused("length 4 of sequence 1, expected 0 to 3");
}

// Each part of an index of run time is a chain that gives a number beyond the end for what is out
// of range.
Test(index, of_run_time_stays_out_of_range) {
    model_input(&m, "i", 7, "1 2");
    model_node(&m, "GatherND", "x i", "y");
    const char *why;
    struct graph *g = model_import(&m, NULL, &why);
    cr_assert_not_null(g, "%s", why);
    int limits = 0;
    for (const struct graph_node *n = g->first; n; n = n->next)
        for (int s = 0; n->op == GRAPH_MAP && s < ISA_STAGES; s++)
            limits += n->chain.st[s].op == ISA_VOP_GE;
    cr_expect(limits == 2, "%d", limits);
}
