// SPDX-License-Identifier: Apache-2.0
//
// From models to graphs: names, folding, functions, branches, and what is said about models that
// cannot be imported.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/toolchain/frontend/onnx/model.h"

static struct arena *arena;
static struct model m;

static void setup(void) {
    arena = arena_new();
    model_init(&m, arena, 18);
}

static void teardown(void) {
    arena_free(arena);
}

TestSuite(import, .init = setup, .fini = teardown);

static struct graph *imported(const struct import_options *o) {
    const char *why;
    struct graph *g = model_import(&m, o, &why);
    cr_assert_not_null(g, "%s", why);
    npu_status broken = graph_verify(g, "after import");
    cr_assert_null(broken, "%s", npu_status_message(broken));
    return g;
}

static void refused(const struct import_options *o, const char *part) {
    const char *why;
    cr_assert_null(model_import(&m, o, &why), "accepted, expected: %s", part);
    cr_expect_not_null(strstr(why, part), "'%s' lacks '%s'", why, part);
}

static int count_ops(const struct graph *g, enum graph_op op) {
    int n = 0;
    for (const struct graph_node *p = g->first; p; p = p->next)
        n += p->op == op;
    return n;
}

Test(import, names_of_the_model_are_kept) {
    model_input(&m, "x", 1, "2 3");
    model_floats(&m, "w", 2, (int64_t[]){3, 2}, (float[]){1, 2, 3, 4, 5, 6});
    model_floats(&m, "c", 1, (int64_t[]){2}, (float[]){1, 2});
    Onnx__NodeProto *n = model_node(&m, "Gemm", "x w c", "sum");
    n->name = arena_strdup(arena, "dense");
    node_float(arena, n, "alpha", 2);
    model_node(&m, "Relu", "sum", "y");
    model_output(&m, "y");
    struct graph *g = imported(NULL);
    cr_assert_str_eq(g->inputs[0]->name, "x");
    cr_assert_str_eq(g->outputs[0]->name, "y");
    const struct graph_value *sum = graph_find_value(g, "sum");
    cr_assert_not_null(sum);
    cr_assert_eq(sum->producer->op, GRAPH_MAP);
    cr_assert_str_eq(sum->producer->origins[0], "dense");
    cr_assert_str_eq(g->first->name, "dense");
    cr_assert_str_eq(g->last->name, "Relu_1");
}

Test(import, shape_arithmetic_is_folded) {
    model_input(&m, "x", 1, "batch 3 4");
    model_ints(&m, "zero", 1, (int64_t[]){0});
    model_ints(&m, "rest", 1, (int64_t[]){-1});
    model_node(&m, "Shape", "x", "shape");
    model_node(&m, "Gather", "shape zero", "first");
    Onnx__NodeProto *n = model_node(&m, "Concat", "first rest", "target");
    node_int(arena, n, "axis", 0);
    model_node(&m, "Reshape", "x target", "y");
    model_output(&m, "y");
    struct import_dim dim = {"batch", 5};
    struct graph *g = imported(&(struct import_options){.dims = &dim, .ndim = 1});
    cr_assert_eq(g->first, g->last);
    cr_assert_eq(g->first->op, GRAPH_RESHAPE);
    cr_assert(g->outputs[0]->dims[0] == 5 && g->outputs[0]->dims[1] == 12);
}

Test(import, scalars_become_immediates) {
    model_input(&m, "x", 1, "4");
    model_floats(&m, "one", 0, NULL, (float[]){1});
    model_floats(&m, "row", 1, (int64_t[]){4}, (float[]){1, 2, 3, 4});
    model_node(&m, "Sub", "one x", "a");
    model_node(&m, "Mul", "a row", "y");
    model_output(&m, "y");
    struct graph *g = imported(NULL);
    cr_assert_eq(g->first->nin, 1);
    cr_assert_eq(g->first->chain.st[0].op, ISA_VOP_RSUB);
    cr_assert_eq(g->first->chain.imm[0], 0x3f800000);
    cr_assert_eq(g->last->nin, 2);
}

Test(import, outputs_of_inputs_and_twice_are_copies) {
    model_input(&m, "x", 1, "4");
    model_node(&m, "Identity", "x", "a");
    model_node(&m, "Identity", "x", "b");
    model_node(&m, "Relu", "x", "c");
    model_node(&m, "Identity", "c", "d");
    for (int k = 0; k < 4; k++)
        model_output(&m, (const char *[]){"a", "b", "c", "d"}[k]);
    struct graph *g = imported(NULL);
    cr_assert_eq(g->noutput, 4);
    cr_assert_eq(count_ops(g, GRAPH_COPY), 3);
    for (int k = 0; k < 4; k++)
        cr_assert_str_eq(g->outputs[k]->name, ((const char *[]){"a", "b", "c", "d"})[k]);
}

Test(import, doubles_become_f32) {
    model_input(&m, "x", ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE, "4");
    model_node(&m, "Relu", "x", "y");
    model_output(&m, "y");
    struct graph *g = imported(NULL);
    cr_assert_eq(g->inputs[0]->dtype, ISA_F32);
    cr_assert_eq(g->inputs[0]->file_dtype, ISA_F64);
}

Test(import, index_inputs_know_their_limit) {
    model_input(&m, "ids", 7, "1 6");
    float table[20] = {0};
    model_floats(&m, "table", 2, (int64_t[]){10, 2}, table);
    model_ints(&m, "flat", 1, (int64_t[]){-1});
    model_node(&m, "Reshape", "ids flat", "i");
    model_node(&m, "Gather", "table i", "y");
    model_output(&m, "y");
    cr_assert_eq(imported(NULL)->inputs[0]->index_limit, 10);
}

// ---- functions and branches ------------------------------------------------------------------

// my.Scaled(a; factor) = LeakyRelu(a, alpha = @factor)
static void add_function(const char *calls) {
    Onnx__FunctionProto *f = ARENA_NEW(arena, Onnx__FunctionProto);
    onnx__function_proto__init(f);
    f->name = arena_strdup(arena, "Scaled");
    f->domain = arena_strdup(arena, "my");
    MODEL_PUSH(arena, f->input, f->n_input, arena_strdup(arena, "a"));
    MODEL_PUSH(arena, f->output, f->n_output, arena_strdup(arena, "b"));
    Onnx__GraphProto body;
    onnx__graph_proto__init(&body);
    Onnx__NodeProto *n = model_node_in(arena, &body, calls, "a", "b");
    if (!strcmp(calls, "Scaled")) n->domain = f->domain;
    node_attr(arena, n, "alpha", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT)->ref_attr_name =
        arena_strdup(arena, "factor");
    f->node = body.node;
    f->n_node = body.n_node;
    MODEL_PUSH(arena, m.proto->functions, m.proto->n_functions, f);
}

static Onnx__NodeProto *call_function(const char *x, const char *y) {
    Onnx__NodeProto *n = model_node(&m, "Scaled", x, y);
    n->domain = arena_strdup(arena, "my");
    return n;
}

Test(import, functions_take_the_caller_s_attributes) {
    model_input(&m, "x", 1, "4");
    add_function("LeakyRelu");
    node_float(arena, call_function("x", "y"), "factor", 0.5f);
    call_function("y", "z"); // no attribute: the op's own default
    model_output(&m, "z");
    struct graph *g = imported(NULL);
    float x[4] = {-4, -2, 0, 3}, z[4];
    cr_assert_null(graph_eval(g, (const void *[]){x}, (void *[]){z}, arena));
    cr_assert_float_eq(z[0], -0.02f, 1e-6f);
    cr_assert_eq(z[3], 3);
}

Test(import, recursive_functions_end) {
    model_input(&m, "x", 1, "4");
    add_function("Scaled");
    call_function("x", "y");
    model_output(&m, "y");
    refused(NULL, "functions call each other more than 64 deep");
}

static Onnx__GraphProto *branch(const char *op) {
    Onnx__GraphProto *g = ARENA_NEW(arena, Onnx__GraphProto);
    onnx__graph_proto__init(g);
    model_node_in(arena, g, op, "x", "r");
    Onnx__ValueInfoProto *v = ARENA_NEW(arena, Onnx__ValueInfoProto);
    onnx__value_info_proto__init(v);
    v->name = arena_strdup(arena, "r");
    MODEL_PUSH(arena, g->output, g->n_output, v);
    return g;
}

static void add_if(const char *condition) {
    Onnx__NodeProto *n = model_node(&m, "If", condition, "y");
    node_attr(arena, n, "then_branch", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g =
        branch("Neg");
    node_attr(arena, n, "else_branch", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g =
        branch("NonZero");
    model_output(&m, "y");
}

Test(import, known_branch_is_taken) {
    model_input(&m, "x", 1, "4");
    model_ints(&m, "two", 1, (int64_t[]){2});
    model_ints(&m, "three", 1, (int64_t[]){3});
    model_node(&m, "Less", "two three", "c");
    add_if("c");
    struct graph *g = imported(NULL);
    cr_assert_eq(g->first->chain.st[0].op, ISA_VOP_NEG);
    cr_assert_str_eq(g->outputs[0]->name, "y");
}

Test(import, unknown_branch_needs_both) {
    model_input(&m, "x", 1, "4");
    model_input(&m, "c", 9, "");
    add_if("c"); // its else branch has a NonZero
    refused(NULL, "NonZero is not supported");
    m.graph->node[0]->attribute[1]->g = branch("Abs");
    struct graph *g = imported(NULL);
    float x[4] = {-4, -2, 0, 3}, y[4];
    uint8_t c = 1;
    cr_assert_null(graph_eval(g, (const void *[]){x, &c}, (void *[]){y}, arena));
    cr_assert(y[0] == 4 && y[3] == -3);
    c = 0;
    cr_assert_null(graph_eval(g, (const void *[]){x, &c}, (void *[]){y}, arena));
    cr_assert(y[0] == 4 && y[3] == 3);
}

// for i in 0 .. trips - 1 while go: acc = acc + x; scan acc
static void add_loop(const char *trips) {
    Onnx__GraphProto *body = ARENA_NEW(arena, Onnx__GraphProto);
    onnx__graph_proto__init(body);
    model_node_in(arena, body, "Identity", "go", "still");
    model_node_in(arena, body, "Add", "acc x", "sum");
    static const char *const names[] = {"i", "go", "acc", "still", "sum", "sum"};
    for (int k = 0; k < 6; k++) {
        Onnx__ValueInfoProto *v = ARENA_NEW(arena, Onnx__ValueInfoProto);
        onnx__value_info_proto__init(v);
        v->name = arena_strdup(arena, names[k]);
        if (k < 3)
            MODEL_PUSH(arena, body->input, body->n_input, v);
        else
            MODEL_PUSH(arena, body->output, body->n_output, v);
    }
    Onnx__NodeProto *n = model_node(&m, "Loop", arena_printf(arena, "%s - x", trips), "last all");
    node_attr(arena, n, "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = body;
    model_output(&m, "last");
    model_output(&m, "all");
}

Test(import, loops_of_known_length_are_unrolled) {
    model_input(&m, "x", 1, "2");
    model_ints(&m, "three", 1, (int64_t[]){3});
    add_loop("three");
    struct graph *g = imported(NULL);
    float x[2] = {1, 10}, last[2], all[6];
    cr_assert_eq(graph_value_elems(g->outputs[1]), 6);
    cr_assert_null(graph_eval(g, (const void *[]){x}, (void *[]){last, all}, arena));
    cr_assert(last[0] == 4 && last[1] == 40 && all[0] == 2 && all[3] == 30);
}

Test(import, loops_of_unknown_length_are_refused) {
    model_input(&m, "x", 1, "2");
    model_input(&m, "trips", 7, "");
    add_loop("trips");
    refused(NULL, "bind it with --const trips=FILE");
}

// ---- what is wrong ---------------------------------------------------------------------------

Test(import, all_unsupported_nodes_are_named) {
    model_input(&m, "x", 1, "4");
    model_node(&m, "NonZero", "x", "a");
    model_node(&m, "Relu", "a", "b");
    model_node(&m, "Unique", "x", "c");
    Onnx__NodeProto *n = model_node(&m, "Strange", "b c", "y");
    n->domain = arena_strdup(arena, "com.microsoft");
    model_node(&m, "Fancy", "x", "z")->domain = arena_strdup(arena, "my.own");
    model_output(&m, "y");
    const char *why;
    cr_assert_null(model_import(&m, NULL, &why));
    cr_expect_not_null(strstr(why, "NonZero is not supported (opset 18)"));
    cr_expect_not_null(strstr(why, "'NonZero_0'"));
    cr_expect_not_null(strstr(why, "Unique is not supported"));
    cr_expect_not_null(strstr(why, "my.own.Fancy is not supported"));
    cr_expect_null(strstr(why, "Relu")); // depends on the others only
    cr_expect_null(strstr(why, "Strange"));
}

Test(import, opsets_have_limits) {
    m.proto->opset_import[0]->version = 99;
    model_input(&m, "x", 1, "4");
    model_node(&m, "Relu", "x", "y");
    model_output(&m, "y");
    refused(NULL, "opset 99, opsets 1 to 24 are accepted");
}

Test(import, damaged_graphs_are_refused) {
    model_input(&m, "x", 1, "4");
    model_node(&m, "Add", "x b", "a");
    model_node(&m, "Add", "x a", "b");
    model_output(&m, "b");
    refused(NULL, "input 1 ('b') is not an input, an initializer or the output of a node before");
    m.graph->node[0]->input[1] = arena_strdup(arena, "x");
    m.graph->node[1]->output[0] = arena_strdup(arena, "a");
    refused(NULL, "output 'a' is computed twice");
    m.graph->node[1]->output[0] = arena_strdup(arena, "c");
    refused(NULL, "output 0 ('b') is not computed by any node");
    m.graph->output[0]->name = arena_strdup(arena, "c");
    imported(NULL);
    m.graph->n_output = 0;
    refused(NULL, "no outputs");
}

Test(import, shapes_that_do_not_fit_name_the_node) {
    model_input(&m, "x", 1, "2 3");
    model_input(&m, "z", 1, "4");
    model_node(&m, "Add", "x z", "y")->name = arena_strdup(arena, "sum");
    model_output(&m, "y");
    refused(NULL, "does not broadcast");
    refused(NULL, "node 'sum' (Add)");
}

Test(import, wrong_attribute_types_are_refused) {
    model_input(&m, "x", 1, "2 3");
    node_float(arena, model_node(&m, "Softmax", "x", "y"), "axis", 1);
    model_output(&m, "y");
    refused(NULL, "attribute axis has the wrong type, expected an integer");
}

Test(import, run_time_shapes_say_how_to_bind) {
    model_input(&m, "x", 1, "2 3");
    model_input(&m, "s", 7, "2");
    model_node(&m, "Reshape", "x s", "y");
    model_output(&m, "y");
    refused(NULL, "bind it with --const s=FILE");
    int64_t shape[2] = {3, 2};
    struct import_const c = {
        "s", {.dtype = ISA_I64, .rank = 1, .dims = {2}, .data = shape, .size_bytes = sizeof shape}};
    struct graph *g = imported(&(struct import_options){.consts = &c, .nconst = 1});
    cr_assert_eq(g->ninput, 1);
    cr_assert_eq(g->outputs[0]->dims[0], 3);
}

Test(import, probe_knows_a_model) {
    model_input(&m, "x", 1, "4");
    model_node(&m, "Relu", "x", "y");
    model_output(&m, "y");
    struct span b = model_bytes(&m);
    cr_assert(onnx_probe(b));
    cr_assert(onnx_probe((struct span){b.data, b.size - 3}));
    cr_assert_not(onnx_probe((struct span){(const uint8_t *)"graph \"x\"\n", 10}));
    cr_assert_not(onnx_probe((struct span){(const uint8_t *)"PK\3\4 and so on", 15}));
    cr_assert_not(onnx_probe((struct span){NULL, 0}));
}
