// SPDX-License-Identifier: Apache-2.0
//
// Shape rules: what each op gives, and that what is wrong is named.

#include <criterion/criterion.h>
#include <string.h>

#include "runtime/base/str.h"
#include "toolchain/graph/graph.h"

static struct arena *arena;
static struct graph *g;

static void setup(void) {
    arena = arena_new();
    g = graph_new(arena, "test");
}

static void teardown(void) {
    arena_free(arena);
}

TestSuite(infer, .init = setup, .fini = teardown);

static struct graph_value *value(enum isa_dtype t, int rank, const int64_t *dims) {
    return graph_add_value(g, "v", t, rank, dims);
}

#define F32(...) \
    value(ISA_F32, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})
#define INTS(n, key, ...)                                                               \
    graph_set_ints(g, n, GRAPH_ATTR_##key, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), \
                   (int64_t[]){__VA_ARGS__})

static struct graph_node *node(enum graph_op op, struct graph_value *a, struct graph_value *b) {
    struct graph_value *in[2] = {a, b};
    return graph_add_node(g, op, "n", b ? 2 : 1, in, NULL);
}

// The result's type in words.
static void gives(struct graph_node *n, const char *expected) {
    npu_status st = graph_infer(g, n, "y");
    cr_assert_null(st, "%s", npu_status_message(st));
    struct str s = {0};
    graph_print_type(n->outputs[0], &s);
    cr_expect_str_eq(str_text(&s), expected);
    str_free(&s);
}

static void refuses(struct graph_node *n, const char *part) {
    npu_status st = graph_infer(g, n, "y");
    cr_assert_not_null(st, "accepted, expected: %s", part);
    cr_expect_not_null(strstr(npu_status_message(st), part), "'%s' lacks '%s'",
                       npu_status_message(st), part);
    npu_status_free(st);
}

Test(infer, matmul_broadcasts_and_transposes) {
    gives(node(GRAPH_MATMUL, F32(5, 1, 2, 3), F32(4, 3, 7)), "f32[5,4,2,7]");
    struct graph_node *n = node(GRAPH_MATMUL, F32(3, 2), F32(7, 3));
    graph_set_int(g, n, GRAPH_ATTR_TRANS_A, 1);
    graph_set_int(g, n, GRAPH_ATTR_TRANS_B, 1);
    gives(n, "f32[2,7]");
    refuses(node(GRAPH_MATMUL, F32(2, 3), F32(4, 7)), "3 columns against 4 rows");
    refuses(node(GRAPH_MATMUL, F32(3), F32(3, 7)), "rank 1, expected 2 to 8");
    refuses(node(GRAPH_MATMUL, F32(2, 2, 3), F32(3, 3, 7)), "batch dimensions");
    gives(node(GRAPH_MATMUL, value(ISA_U8, 2, (int64_t[]){2, 3}),
               value(ISA_I8, 2, (int64_t[]){3, 2})),
          "i32[2,2]");
}

Test(infer, conv_slides) {
    struct graph_node *n = node(GRAPH_CONV, F32(1, 4, 7, 9), F32(6, 2, 3, 3));
    INTS(n, STRIDES, 2, 1);
    INTS(n, PADS, 1, 0, 1, 2);
    INTS(n, DILATIONS, 1, 2);
    graph_set_int(g, n, GRAPH_ATTR_GROUP, 2);
    gives(n, "f32[1,6,4,7]");
    refuses(node(GRAPH_CONV, F32(1, 4, 7, 9), F32(6, 2, 3, 3)),
            "expected 4 input channels a group");
    refuses(node(GRAPH_CONV, F32(1, 2, 2, 9), F32(6, 2, 3, 3)),
            "the window covers 3 positions down");
    n = node(GRAPH_CONV, F32(1, 2, 5, 5), F32(6, 2, 3, 3));
    INTS(n, PADS, 1, 1);
    refuses(n, "attribute pads has 2 items, expected 4");
    n = node(GRAPH_CONVT, F32(1, 4, 5, 5), F32(4, 3, 3, 3));
    INTS(n, STRIDES, 2, 2);
    INTS(n, OUTPUT_PADS, 1, 0);
    gives(n, "f32[1,3,12,11]");
}

Test(infer, pool_needs_a_mode) {
    struct graph_node *n = node(GRAPH_POOL, F32(1, 2, 4, 4), NULL);
    INTS(n, KERNEL, 2, 2);
    refuses(n, "attribute mode is missing, expected max|avg|avgpad");
    graph_set_word(g, n, GRAPH_ATTR_MODE, "median");
    refuses(n, "'median', expected");
    graph_set_word(g, n, GRAPH_ATTR_MODE, "avg");
    gives(n, "f32[1,2,3,3]");
}

Test(infer, reduce_keeps_or_drops) {
    struct graph_node *n = node(GRAPH_REDUCE, F32(2, 3, 4), NULL);
    graph_set_word(g, n, GRAPH_ATTR_MODE, "argmax");
    INTS(n, AXES, 1);
    gives(n, "i64[2,4]");
    graph_set_int(g, n, GRAPH_ATTR_KEEPDIMS, 1);
    gives(n, "i64[2,1,4]");
    INTS(n, AXES, 1, 0);
    refuses(n, "ascending");
    INTS(n, AXES, 0, 1);
    refuses(n, "argmax over 2 axes");
}

Test(infer, moves) {
    struct graph_node *n = node(GRAPH_RESHAPE, F32(2, 6), NULL);
    INTS(n, SHAPE, 3, 5);
    refuses(n, "12 elements, which do not fill [3,5]");
    INTS(n, SHAPE, 3, 4);
    gives(n, "f32[3,4]");
    n = node(GRAPH_TRANSPOSE, F32(2, 6), NULL);
    INTS(n, PERM, 1, 1);
    refuses(n, "no permutation");
    n = node(GRAPH_SLICE, F32(5), NULL);
    INTS(n, STARTS, 4);
    INTS(n, SIZES, 3);
    INTS(n, STEPS, -2);
    gives(n, "f32[3]");
    INTS(n, STEPS, -3);
    refuses(n, "3 elements from 4 by -3 leave it");
    n = node(GRAPH_CONCAT, F32(2, 3), F32(4, 3));
    graph_set_int(g, n, GRAPH_ATTR_AXIS, 0);
    gives(n, "f32[6,3]");
    graph_set_int(g, n, GRAPH_ATTR_AXIS, 1);
    refuses(n, "does not join");
    n = node(GRAPH_EXPAND, F32(3, 1), NULL);
    INTS(n, SHAPE, 2, 3, 4);
    gives(n, "f32[2,3,4]");
    INTS(n, SHAPE, 2, 4);
    refuses(n, "does not expand to [2,4]");
    n = node(GRAPH_PAD, F32(3), NULL);
    INTS(n, PADS_BEFORE, 3);
    INTS(n, PADS_AFTER, -1);
    gives(n, "f32[5]");
    graph_set_word(g, n, GRAPH_ATTR_MODE, "reflect");
    refuses(n, "each must be smaller");
    n = node(GRAPH_GATHER, F32(3, 4), value(ISA_I32, 2, (int64_t[]){2, 2}));
    graph_set_int(g, n, GRAPH_ATTR_AXIS, 1);
    gives(n, "f32[3,2,2]");
    refuses(node(GRAPH_GATHER, F32(3, 4), value(ISA_I32, 1, (int64_t[]){2})),
            "attribute axis is missing");
    n = node(GRAPH_GATHER, F32(3, 4), F32(2));
    graph_set_int(g, n, GRAPH_ATTR_AXIS, 0);
    refuses(n, "expected integers");
}

Test(infer, sizes_beyond_the_limit_are_refused) {
    struct graph_node *n = node(GRAPH_EXPAND, F32(1), NULL);
    INTS(n, SHAPE, 1 << 20, 1 << 20, 1 << 20);
    refuses(n, "more than 2^43 elements");
}

static struct graph_node *chained(enum graph_op op, struct graph_value *a, struct graph_value *b,
                                  struct isa_chain c) {
    struct graph_node *n = node(op, a, b);
    n->has_chain = true;
    n->chain = c;
    return n;
}

Test(infer, chains_obey_the_engine) {
    struct graph_value *x = F32(2, 3), *k = value(ISA_I32, 1, (int64_t[]){3});
    gives(chained(GRAPH_MAP, x, k, (struct isa_chain){.st = {{ISA_VOP_ADD, ISA_SRC_IN1, 0, 0}}}),
          "f32[2,3]");
    refuses(chained(GRAPH_MAP, x, NULL,
                    (struct isa_chain){.st = {{ISA_VOP_ADD, ISA_SRC_IN1, 0, 0}}}),
            "reads in1");
    refuses(chained(GRAPH_MAP, x, NULL,
                    (struct isa_chain){.st = {{ISA_VOP_ADD, ISA_SRC_TMP, 0, 0}}}),
            "reads tmp");
    refuses(chained(GRAPH_MAP, x, NULL,
                    (struct isa_chain){.st = {{ISA_VOP_EXP, 0, 0, 0}, {ISA_VOP_LOG, 0, 0, 0}}}),
            "second special function");
    refuses(chained(GRAPH_MAP, k, NULL, (struct isa_chain){.st = {{ISA_VOP_EXP, 0, 0, 0}}}),
            "does not exist for integers");
    refuses(chained(GRAPH_MAP, x, NULL,
                    (struct isa_chain){.st = {{ISA_VOP_SHL, ISA_SRC_IMM0, 0, 0}}}),
            "does not exist for f32");
    refuses(chained(GRAPH_MAP, x, NULL, (struct isa_chain){.st = {{39, 0, 0, 0}}}),
            "unknown operation 39");
    refuses(chained(GRAPH_SOFTMAX, x, NULL, (struct isa_chain){.st = {{0}}}),
            "attribute axis is missing");
    refuses(node(GRAPH_MAP, x, NULL), "needs a chain");
}

Test(infer, chain_operands_broadcast_to_the_result) {
    struct graph_node *n = node(GRAPH_MATMUL, F32(2, 3), F32(3, 4));
    n->has_chain = true;
    n->chain = (struct isa_chain){.st = {{ISA_VOP_ADD, ISA_SRC_IN1, 0, 0}}};
    cr_assert_eq(graph_add_chain_input(g, n, F32(4)), ISA_SRC_IN1);
    gives(n, "f32[2,4]");
    n->inputs[2] = F32(5, 2, 4);
    refuses(n, "does not broadcast to [2,4]");
}
