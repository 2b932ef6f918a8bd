// SPDX-License-Identifier: Apache-2.0
//
// Views: which nodes move nothing, and that values survive it.
#include "tests/unit/toolchain/lower/lowered.h"

#include "toolchain/lower/lower.h"

struct build {
    struct arena *a;
    struct graph *g;
    uint32_t s;
    int count;
};

static struct graph_value *node(struct build *b, enum graph_op op, int nin, struct graph_value *x,
                                struct graph_value *y, enum graph_attr_key key, int n,
                                const int64_t *ints) {
    struct graph_value *in[2] = {x, y};
    char *name = arena_printf(b->a, "%s%d", graph_ops[op].text, b->count++);
    struct graph_node *node = graph_add_node(b->g, op, name, nin, in, NULL);
    if (n == 1 && graph_attrs[key].kind == GRAPH_INT)
        graph_set_int(b->g, node, key, ints[0]);
    else if (n)
        graph_set_ints(b->g, node, key, n, ints);
    npu_status st = graph_infer(b->g, node, name);
    cr_assert(!st, "%s: %s", name, npu_status_message(st));
    return node->outputs[0];
}

static struct graph_value *heads(struct build *b, struct graph_value *x, int64_t start, int64_t s,
                                 int64_t h, int64_t d) {
    struct graph_node *slice =
        graph_add_node(b->g, GRAPH_SLICE, arena_printf(b->a, "slice%lld", (long long)start), 1, &x,
                       NULL);
    graph_set_ints(b->g, slice, GRAPH_ATTR_STARTS, 3, (int64_t[]){0, 0, start * h * d});
    graph_set_ints(b->g, slice, GRAPH_ATTR_SIZES, 3, (int64_t[]){x->dims[0], s, h * d});
    graph_set_ints(b->g, slice, GRAPH_ATTR_STEPS, 3, (int64_t[]){1, 1, 1});
    npu_status st = graph_infer(b->g, slice, slice->name);
    cr_assert(!st, "%s", npu_status_message(st));
    struct graph_value *r = node(b, GRAPH_RESHAPE, 1, slice->outputs[0], NULL, GRAPH_ATTR_SHAPE, 4,
                                 (int64_t[]){x->dims[0], s, h, d});
    return node(b, GRAPH_TRANSPOSE, 1, r, NULL, GRAPH_ATTR_PERM, 4, (int64_t[]){0, 2, 1, 3});
}

static int kernels(struct graph *g, const struct hw *hw) {
    struct arena *a = arena_new();
    struct tile_program *p = tile_program_new(a, hw);
    npu_status st = lower_graph(g, hw, &(struct lower_options){.level = 2}, p);
    cr_assert(!st, "%s", npu_status_message(st));
    int n = p->nkernel;
    arena_free(a);
    return n;
}

// qkv in one product, split into heads, attention, heads joined: only products and softmax are
// kernels.
Test(lower_storage, attention_moves_nothing) {
    struct build b = {.a = arena_new(), .s = 3};
    b.g = graph_new(b.a, "attention");
    int64_t n = 2, s = 12, h = 3, d = 16, c = h * d;
    struct graph_value *x = input(b.g, "x", ISA_F32, 3, (int64_t[]){n, s, c});
    struct graph_value *qkv =
        node(&b, GRAPH_MATMUL, 2, x, constant(b.g, "w", ISA_F32, 2, (int64_t[]){c, 3 * c}, &b.s),
             GRAPH_ATTR_AXIS, 0, NULL);
    struct graph_value *q = heads(&b, qkv, 0, s, h, d), *k = heads(&b, qkv, 1, s, h, d),
                       *v = heads(&b, qkv, 2, s, h, d);
    struct graph_value *kt =
        node(&b, GRAPH_TRANSPOSE, 1, k, NULL, GRAPH_ATTR_PERM, 4, (int64_t[]){0, 1, 3, 2});
    struct graph_value *p =
        node(&b, GRAPH_SOFTMAX, 1, node(&b, GRAPH_MATMUL, 2, q, kt, GRAPH_ATTR_AXIS, 0, NULL), NULL,
             GRAPH_ATTR_AXIS, 1, (int64_t[]){3});
    struct graph_value *y = node(&b, GRAPH_MATMUL, 2, p, v, GRAPH_ATTR_AXIS, 0, NULL);
    y = node(&b, GRAPH_TRANSPOSE, 1, y, NULL, GRAPH_ATTR_PERM, 4, (int64_t[]){0, 2, 1, 3});
    y = node(&b, GRAPH_RESHAPE, 1, y, NULL, GRAPH_ATTR_SHAPE, 3, (int64_t[]){n, s, c});
    y = node(&b, GRAPH_MATMUL, 2, y, constant(b.g, "o", ISA_F32, 2, (int64_t[]){c, c}, &b.s),
             GRAPH_ATTR_AXIS, 0, NULL);
    graph_add_output(b.g, y);
    struct hw hw = machine(MACHINE_SERVER);
    cr_assert_eq(kernels(b.g, &hw), 5, "%d kernels", kernels(b.g, &hw));
    check_everywhere(b.g, 1e-5, "attention");
    arena_free(b.a);
}

// Two branches write into their parts of the concatenated result; a third, a constant, is copied.
Test(lower_storage, concat_parts_are_written_in_place) {
    struct build b = {.a = arena_new(), .s = 3};
    b.g = graph_new(b.a, "concat");
    struct graph_value *x = input(b.g, "x", ISA_F32, 3, (int64_t[]){4, 20, 32});
    struct graph_value *in[3];
    in[0] = node(&b, GRAPH_SOFTMAX, 1, x, NULL, GRAPH_ATTR_AXIS, 1, (int64_t[]){2});
    in[1] =
        node(&b, GRAPH_MATMUL, 2, in[0], constant(b.g, "w", ISA_F32, 2, (int64_t[]){32, 24}, &b.s),
             GRAPH_ATTR_AXIS, 0, NULL);
    in[2] = constant(b.g, "c", ISA_F32, 3, (int64_t[]){4, 20, 8}, &b.s);
    struct graph_node *concat = graph_add_node(b.g, GRAPH_CONCAT, "concat", 3, in, NULL);
    graph_set_int(b.g, concat, GRAPH_ATTR_AXIS, 2);
    finish(b.g, concat);
    struct hw hw = machine(MACHINE_SERVER);
    cr_assert_eq(kernels(b.g, &hw), 3);
    check_everywhere(b.g, 1e-5, "concat");
    arena_free(b.a);
}

// A constant and a computed operand in channels-last order, broadcast dimensions and all.
Test(lower_storage, expanded_and_reordered_operands) {
    struct build b = {.a = arena_new(), .s = 5};
    b.g = graph_new(b.a, "expand");
    struct graph_value *x = input(b.g, "x", ISA_F32, 4, (int64_t[]){1, 1, 6, 20}),
                       *c = constant(b.g, "c", ISA_F32, 4, (int64_t[]){2, 5, 6, 20}, &b.s), *y;
    set_order(c, 1, &b.s);
    struct graph_value *e =
        node(&b, GRAPH_EXPAND, 1, x, NULL, GRAPH_ATTR_SHAPE, 4, (int64_t[]){2, 5, 6, 20});
    struct isa_chain chain = {0};
    chain.st[0] = (struct isa_stage){.op = ISA_VOP_MUL, .a = ISA_SRC_IN1};
    cr_assert(
        !graph_add_map(b.g, "mul", 2, (struct graph_value *[]){e, c}, &chain, ISA_F32, NULL, &y));
    y = node(&b, GRAPH_MATMUL, 2, y,
             node(&b, GRAPH_TRANSPOSE, 1, e, NULL, GRAPH_ATTR_PERM, 4, (int64_t[]){0, 1, 3, 2}),
             GRAPH_ATTR_AXIS, 0, NULL);
    graph_add_output(b.g, y);
    check_everywhere(b.g, 1e-5, "expand");
    arena_free(b.a);
}
