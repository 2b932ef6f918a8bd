// SPDX-License-Identifier: Apache-2.0
//
// Open dimensions and the options that fix them.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/toolchain/frontend/onnx/model.h"

static struct arena *arena;
static struct model m;

static void setup(void) {
    arena = arena_new();
    model_init(&m, arena, 18);
    model_input(&m, "x", 1, "batch 3 width");
    model_input(&m, "z", 1, "batch ? 3 2");
    model_node(&m, "Relu", "x", "y");
    model_node(&m, "Relu", "z", "t");
    model_output(&m, "y");
    model_output(&m, "t");
}

static void teardown(void) {
    arena_free(arena);
}

TestSuite(inputs, .init = setup, .fini = teardown);

static const struct import_shape x_shape = {"x", 3, {2, 3, 4}}, z_shape = {"z", 4, {2, 5, 3, 2}};

static void refused(const struct import_options *o, const char *part) {
    const char *why;
    cr_assert_null(model_import(&m, o, &why), "accepted, expected: %s", part);
    cr_expect_not_null(strstr(why, part), "'%s' lacks '%s'", why, part);
}

Test(inputs, every_open_dimension_is_named) {
    refused(
        NULL,
        "dimension 0 of input 'x' is open ('batch'): fix it with --dim batch=N or --shape x=N,3,N");
    refused(NULL, "dimension 2 of input 'x' is open ('width')");
    refused(NULL, "dimension 1 of input 'z' is open: fix it with --shape z=N,N,3,2");
}

Test(inputs, dims_and_shapes_fix_them) {
    struct import_dim dims[] = {{"batch", 2}, {"width", 4}};
    struct import_options o = {.dims = dims, .ndim = 2, .shapes = &z_shape, .nshape = 1};
    const char *why;
    struct graph *g = model_import(&m, &o, &why);
    cr_assert_not_null(g, "%s", why);
    cr_assert(g->inputs[0]->dims[0] == 2 && g->inputs[0]->dims[2] == 4 &&
              g->inputs[1]->dims[1] == 5);
}

Test(inputs, a_shape_fixes_names_elsewhere) {
    struct import_shape both[] = {x_shape, z_shape};
    both[1].dims[0] = 3;
    refused(&(struct import_options){.shapes = both, .nshape = 2},
            "dimension 'batch' is 2 by --shape x and 3 by --shape z");
}

Test(inputs, options_must_name_something) {
    struct import_dim dim = {"batsh", 2};
    refused(&(struct import_options){.dims = &dim, .ndim = 1},
            "--dim batsh names no dimension of the model's inputs (did you mean 'batch'?)");
    struct import_shape shape = {"q", 1, {1}};
    refused(&(struct import_options){.shapes = &shape, .nshape = 1}, "--shape q names no input");
    struct import_const c = {.name = "q"};
    refused(&(struct import_options){.consts = &c, .nconst = 1}, "--const q names no input");
    struct import_shape twice[] = {x_shape, x_shape};
    refused(&(struct import_options){.shapes = twice, .nshape = 2}, "--shape x stands twice");
}

Test(inputs, fixed_dimensions_stay) {
    struct import_shape shape = x_shape;
    shape.dims[1] = 4;
    refused(&(struct import_options){.shapes = &shape, .nshape = 1}, "the model fixes it to 3");
    shape.rank = 2;
    refused(&(struct import_options){.shapes = &shape, .nshape = 1},
            "has 2 dimensions, the model's input has 3");
}

Test(inputs, initializers_are_no_inputs) {
    m.graph->n_input = 0;
    model_input(&m, "x", 1, "2");
    model_input(&m, "z", 1, "2");
    model_floats(&m, "z", 1, (int64_t[]){2}, (float[]){1, 2});
    const char *why;
    struct graph *g = model_import(&m, NULL, &why);
    cr_assert_not_null(g, "%s", why);
    cr_assert_eq(g->ninput, 1);
}

Test(inputs, other_kinds_are_refused) {
    m.graph->input[0]->type->tensor_type->elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
    refused(NULL, "element type string is not supported");
    m.graph->input[0]->type->tensor_type->elem_type = 77;
    refused(NULL, "unknown element type number 77");
    m.graph->input[0]->type = NULL;
    refused(NULL, "input 'x' is not a tensor");
}
