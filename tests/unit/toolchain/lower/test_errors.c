// SPDX-License-Identifier: Apache-2.0
//
// What lowering refuses, and what it says then.
#include <string.h>

#include "runtime/base/str.h"
#include "tests/unit/toolchain/lower/lowered.h"
#include "toolchain/lower/lower.h"

static void refused(struct graph *g, const struct hw *hw, enum npu_code code,
                    const char *const *parts, int n) {
    struct tile_program *p = tile_program_new(g->arena, hw);
    npu_status st = lower_graph(g, hw, &(struct lower_options){.level = 2}, p);
    cr_assert(st);
    cr_assert_eq(npu_status_code(st), code);
    struct str text = {0};
    npu_status_print(st, NULL, &text);
    for (int i = 0; i < n; i++)
        cr_assert(strstr(str_text(&text), parts[i]), "'%s' in: %s", parts[i], str_text(&text));
    str_free(&text);
    npu_status_free(st);
    arena_free(g->arena);
}

Test(lower_errors, every_op_without_a_kernel_is_named) {
    struct graph *g = graph_new(arena_new(), "g");
    uint32_t s = 1;
    struct graph_value *x = input(g, "x", ISA_F32, 4, (int64_t[]){1, 4, 3, 3}), *in[5] = {x};
    for (int i = 1; i < 5; i++)
        in[i] = constant(g, "p", ISA_F32, 1, (int64_t[]){4}, &s);
    struct graph_node *a = graph_add_node(g, GRAPH_BATCHNORM, "first", 5, in, NULL);
    cr_assert(!graph_infer(g, a, "a"));
    in[0] = a->outputs[0];
    finish(g, graph_add_node(g, GRAPH_BATCHNORM, "second", 5, in, NULL));
    struct hw hw = machine(MACHINE_TINY);
    refused(g, &hw, NPU_UNSUPPORTED, (const char *const[]){"'first'", "'second'", "batchnorm"}, 3);
}

Test(lower_errors, types_that_engines_do_not_take) {
    struct graph *g = graph_new(arena_new(), "g");
    struct graph_value *x = input(g, "wide", ISA_F64, 1, (int64_t[]){4});
    finish(g, graph_add_node(g, GRAPH_COPY, "copy", 1, &x, NULL));
    struct hw hw = machine(MACHINE_TINY);
    refused(g, &hw, NPU_UNSUPPORTED, (const char *const[]){"'wide'", "f64"}, 2);
}

Test(lower_errors, computed_convolution_weights) {
    struct graph *g = graph_new(arena_new(), "g");
    struct graph_value *in[2] = {input(g, "x", ISA_F32, 4, (int64_t[]){1, 2, 5, 5}),
                                 input(g, "weights", ISA_F32, 4, (int64_t[]){2, 2, 3, 3})};
    finish(g, graph_add_node(g, GRAPH_CONV, "conv", 2, in, NULL));
    struct hw hw = machine(MACHINE_TINY);
    refused(g, &hw, NPU_UNSUPPORTED,
            (const char *const[]){"'weights'", "node 'conv' (conv)", "constant weights are needed"},
            3);
}

Test(lower_errors, what_does_not_fit_is_listed) {
    struct graph *g = graph_new(arena_new(), "g");
    struct graph_value *x = input(g, "x", ISA_F32, 2, (int64_t[]){2, 3000});
    struct graph_node *n = graph_add_node(g, GRAPH_REDUCE, "largest", 1, &x, NULL);
    graph_set_word(g, n, GRAPH_ATTR_MODE, "argmax");
    graph_set_ints(g, n, GRAPH_ATTR_AXES, 1, (int64_t[]){1});
    finish(g, n);
    struct hw hw = machine(MACHINE_TINY);
    hw.spm_bytes = 8192;
    refused(g, &hw, NPU_NO_FIT,
            (const char *const[]){"kernel 'largest' (reduce)", "needs 12", "input (12032)",
                                  "the target has 8192", "too many"},
            5);
}
