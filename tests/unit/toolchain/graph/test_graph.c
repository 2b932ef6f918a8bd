// SPDX-License-Identifier: Apache-2.0
//
// Building and editing: names, uses, outputs that keep their identity, the verifier's view of it.

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

TestSuite(graph, .init = setup, .fini = teardown);

static struct graph_value *input(const char *name, int64_t rows, int64_t cols) {
    struct graph_value *v = graph_add_value(g, name, ISA_F32, 2, (int64_t[]){rows, cols});
    graph_add_input(g, v);
    return v;
}

static struct graph_value *relu(const char *name, struct graph_value *x) {
    struct graph_value *y;
    struct isa_chain c = {.st = {{ISA_VOP_MAX, ISA_SRC_IMM0, 0, 0}}};
    cr_assert_null(graph_add_map(g, name, 1, &x, &c, ISA_DTYPE_NONE, NULL, &y));
    return y;
}

static void holds(void) {
    npu_status st = graph_verify(g, "test");
    cr_assert_null(st, "%s", npu_status_message(st));
}

Test(graph, names_are_unique) {
    struct graph_value *a = input("x", 1, 2), *b = relu("x", a), *c = relu("x", b);
    cr_assert_str_eq(a->name, "x");
    cr_assert_str_eq(b->name, "x_1");
    cr_assert_str_eq(c->name, "x_2");
    cr_assert_eq(graph_find_value(g, "x_1"), b);
    graph_rename_value(g, c, "x_1");
    cr_assert_str_eq(c->name, "x_1");
    cr_assert_str_neq(b->name, "x_1");
    cr_assert_eq(graph_find_value(g, b->name), b);
    holds();
}

Test(graph, uses_count_outputs) {
    struct graph_value *x = input("x", 1, 2), *y = relu("y", x), *z = relu("z", y);
    graph_add_output(g, y);
    graph_add_output(g, z);
    cr_assert_eq(graph_count_uses(g, y), 2);
    cr_assert_null(graph_single_user(g, y));
    cr_assert_eq(graph_single_user(g, x), y->producer);
    holds();
}

Test(graph, output_keeps_its_name_when_replaced) {
    struct graph_value *x = input("x", 1, 2), *y = relu("y", x), *z = relu("z", y);
    graph_add_output(g, z);
    z->file_dtype = ISA_F64;
    graph_replace_uses(g, z, y);
    graph_remove_node(g, z->producer);
    cr_assert_eq(g->outputs[0], y);
    cr_assert_str_eq(y->name, "z");
    cr_assert_eq(y->file_dtype, ISA_F64);
    holds();
}

Test(graph, output_replaced_by_an_input_becomes_a_copy) {
    struct graph_value *x = input("x", 1, 2), *y = relu("y", x);
    graph_add_output(g, y);
    graph_replace_uses(g, y, x);
    graph_remove_node(g, y->producer);
    cr_assert_str_eq(g->outputs[0]->name, "y");
    cr_assert_eq(g->outputs[0]->producer->op, GRAPH_COPY);
    cr_assert_str_eq(x->name, "x");
    holds();
}

Test(graph, node_is_placed_before) {
    struct graph_value *x = input("x", 1, 2), *y = relu("y", x), *z;
    struct isa_chain c = {.st = {{ISA_VOP_NEG, 0, 0, 0}}};
    cr_assert_null(graph_add_map(g, "z", 1, &x, &c, ISA_DTYPE_NONE, y->producer, &z));
    cr_assert_eq(g->first, z->producer);
    y->producer->inputs[0] = z;
    graph_add_output(g, y);
    holds();
    // Reading a value that a later node computes is refused.
    z->producer->inputs[0] = y;
    npu_status st = graph_verify(g, "test");
    cr_assert_not_null(st);
    cr_assert_not_null(strstr(npu_status_message(st), "before it is computed"));
    npu_status_free(st);
}

Test(graph, verifier_finds_a_wrong_shape) {
    struct graph_value *y = relu("y", input("x", 1, 2));
    graph_add_output(g, y);
    y->dims[1] = 3;
    npu_status st = graph_verify(g, "test");
    cr_assert_not_null(st);
    cr_assert_not_null(strstr(npu_status_message(st), "shape rule gives f32[1,2]"));
    npu_status_free(st);
}

Test(graph, strides_follow_the_storage_order) {
    struct graph_value *v = graph_add_value(g, "v", ISA_F16, 3, (int64_t[]){2, 3, 4});
    int64_t s[GRAPH_MAX_RANK];
    graph_value_strides(v, s);
    cr_assert(s[0] == 12 && s[1] == 4 && s[2] == 1);
    v->has_order = true;
    memcpy(v->order, (int[]){0, 2, 1}, 3 * sizeof(int));
    graph_value_strides(v, s);
    cr_assert(s[0] == 12 && s[1] == 1 && s[2] == 3);
    cr_assert_eq(graph_value_bytes(v), 48);
}

Test(graph, attributes_are_set_and_replaced) {
    struct graph_value *x = input("x", 2, 3);
    struct graph_node *n = graph_add_node(g, GRAPH_TRANSPOSE, NULL, 1, &x, NULL);
    graph_set_ints(g, n, GRAPH_ATTR_PERM, 2, (int64_t[]){0, 1});
    graph_set_ints(g, n, GRAPH_ATTR_PERM, 2, (int64_t[]){1, 0});
    cr_assert_eq(n->nattr, 1);
    cr_assert_eq(graph_ints_at(n, GRAPH_ATTR_PERM, 0, -1), 1);
    cr_assert_eq(graph_ints_at(n, GRAPH_ATTR_PERM, 2, -1), -1);
    cr_assert_eq(graph_int(n, GRAPH_ATTR_AXIS, 7), 7);
    cr_assert_null(graph_infer(g, n, "y"));
    cr_assert_eq(n->outputs[0]->dims[0], 3);
    graph_set_ints(g, n, GRAPH_ATTR_PERM, 2, (int64_t[]){0, 1});
    cr_assert_null(graph_infer(g, n, NULL));
    cr_assert_eq(n->outputs[0]->dims[0], 2);
    graph_add_output(g, n->outputs[0]);
    holds();
}

Test(graph, every_op_and_attribute_has_its_name) {
    for (int k = 0; k < GRAPH_OPS; k++) {
        cr_assert_eq(graph_op_parse(graph_ops[k].text), k);
        cr_assert_not_null(graph_ops[k].shape);
        cr_assert_not_null(graph_ops[k].eval);
    }
    for (int k = 0; k < GRAPH_ATTRS; k++)
        cr_assert_eq(graph_attr_parse(graph_attrs[k].text), k);
    cr_assert_eq(graph_op_parse("nonsense"), -1);
}

Test(graph, print_spells_out_what_is_small) {
    struct graph_value *x = input("x", 1, 2);
    struct graph_value *w =
        graph_add_const(g, "odd name", ISA_F32, 1, (int64_t[]){2}, (float[]){0.1f, -2});
    struct graph_value *in[2] = {x, w}, *y;
    struct isa_chain c = {.st = {{ISA_VOP_MUL, ISA_SRC_IN1, 0, 1},
                                 {ISA_VOP_FMA, ISA_SRC_TMP, ISA_SRC_IMM0, 0}},
                          .imm = {0x3f000000}};
    cr_assert_null(graph_add_map(g, "y", 2, in, &c, ISA_F16, NULL, &y));
    graph_add_output(g, y);
    struct str s = {0};
    graph_print(g, &s);
    cr_assert_str_eq(
        str_text(&s),
        "graph \"test\"\n"
        "in %x : f32[1,2]\n"
        "const %\"odd name\" : f32[2] = {0.1, -2}\n"
        "%y : f16[1,2] = map %x, %\"odd name\" dtype=f16 chain=(mul in1 =tmp; fma tmp imm0) "
        "imm0=0.5 node=\"y\"\n"
        "out %y\n");
    str_free(&s);
}
