// SPDX-License-Identifier: Apache-2.0
//
// Single cases in which a pass must do something, or must not.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "isa/numeric.h"
#include "pass_run.h"
#include "toolchain/passes/chain.h"

static struct arena *a;
static struct pass_options o;

static void begin(void) {
    a = arena_new();
    pass_options_init(&o);
}

static void end(void) {
    arena_free(a);
}

TestSuite(cases, .init = begin, .fini = end);

// All passes; the values stay to the last bit.
static struct graph *exact(const char *text) {
    return check_passes(a, text, &o, 0);
}

// ---- chains

Test(cases, chains_with_gaps_are_normalised) {
    struct graph *g =
        exact("graph \"g\"\nin %x : f32[2,3]\n"
              "%y = map %x chain=(nop; neg; nop =tmp; mul imm1; nop; add tmp) imm1=3\n"
              "%z = map %x chain=(nop =tmp; exp; mul tmp)\nout %y\nout %z\n");
    const struct isa_chain *c = &g->first->chain;
    cr_expect_eq(chain_length(c), 3);
    cr_expect_eq(c->st[0].save, 1);
    cr_expect_eq(c->st[1].save, 0);
    cr_expect_eq(g->last->chain.st[0].op, ISA_VOP_MOV);
}

// fma reads its own start: after the swap of the operands that is the other one.
Test(cases, mirrored_fma_keeps_its_addend) {
    struct graph *g = exact("graph \"g\"\nin %x : f32[2,3]\nin %y : f32[2,3]\n"
                            "%u = map %y chain=(abs)\n%v = map %x, %u chain=(fma in1 acc)\n"
                            "out %v\n");
    cr_expect_eq(count_nodes(g), 1);
}

Test(cases, a_chain_that_saves_is_not_joined_where_tmp_is_needed) {
    exact("graph \"g\"\nin %x : f32[2,3]\n%u = map %x chain=(abs)\n"
          "%v = map %u chain=(neg =tmp; mul imm0; add tmp; mul in0) imm0=2\nout %v\n");
}

Test(cases, four_immediates_are_joined) {
    struct graph *g =
        exact("graph \"g\"\nin %x : f32[2,3]\n"
              "%u = map %x chain=(mul imm1; add imm2; max imm3) imm1=2 imm2=3 imm3=4\n"
              "%v = map %u chain=(min imm0) imm0=5\nout %v\n");
    cr_expect_eq(count_nodes(g), 1);
    cr_expect_eq(g->first->nin, 1);
}

// To f32 and back: as one chain it would have integers around it and compute in integers.
Test(cases, float_work_between_integers_stays_float) {
    struct graph *g = exact("graph \"g\"\nin %i : i64[4]\n"
                            "%u = map %i dtype=f32 chain=(mul imm0) imm0=0.3\n"
                            "%v = map %u dtype=i64 chain=(floor)\n"
                            "%w = map %i dtype=f32 chain=()\n"
                            "%b = map %w dtype=bool chain=(lt imm0) imm0=0.5\nout %v\nout %b\n");
    cr_expect_eq(count_nodes(g), 4);
    // The same by a constant that is the only floating operand.
    exact("graph \"g\"\nin %i : i64[4]\nconst %c : f32[4] = {0.5, ...}\n"
          "%b = map %i, %c dtype=bool chain=(lt in1)\n"
          "%r = map %i, %c dtype=i64 chain=(mul in1)\nout %b\nout %r\n");
}

Test(cases, comparisons_join_what_selects_by_them) {
    struct graph *g = exact("graph \"g\"\nin %x : f32[4]\nin %y : f32[4]\n"
                            "%b = map %x dtype=bool chain=(lt imm0) imm0=0.5\n"
                            "%s = map %b, %x, %y dtype=f32 chain=(sel in1 in2)\nout %s\n");
    cr_expect_eq(count_nodes(g), 1);
}

// The result's shape comes from an operand that is not read, or not any more.
Test(cases, shapes_survive_operands) {
    exact("graph \"g\"\nin %x : f32[1,3]\nin %big : f32[2,3]\n%u = map %x, %big chain=(neg)\n"
          "%v = map %u chain=(abs)\nout %v\n");
    exact("graph \"g\"\nin %x : f32[1,3]\nconst %c : f32[2,3] = {1, ...}\n"
          "const %d : f32[2,3] = {2, ...}\n%u = map %x, %c, %d chain=(fma in1 in2)\nout %u\n");
    exact("graph \"g\"\nin %x : f32[3]\nconst %c : f32[1,1,1] = {2}\n"
          "%u = map %x, %c chain=(mul in1)\nout %u\n");
    exact("graph \"g\"\nin %x : f32[]\nconst %c : f32[] = {2}\n%u = map %x, %c chain=(mul in1)\n"
          "out %u\n");
}

Test(cases, values_read_twice) {
    exact(
        "graph \"g\"\nin %x : f32[2,2]\n%u = map %x chain=(abs)\n%v = map %u, %u chain=(mul in1)\n"
        "%m = matmul %v, %v\n%n = map %m, %m chain=(add in1)\n%k = concat %n, %n axis=0\n"
        "out %k\n");
}

Test(cases, integer_chains) {
    struct graph *g =
        exact("graph \"g\"\nin %i : i64[4]\nconst %c : i64[4] = {3, ...}\n"
              "const %d : i64[1] = {5000000000}\n%u = map %i, %c chain=(mul in1)\n"
              "%v = map %u, %d chain=(add in1)\n%w = map %v dtype=i32 chain=(shr imm0) "
              "imm0=2\nout %w\n");
    cr_expect_eq(g->first->nin, 1);
    cr_expect_eq(g->first->next->nin, 2); // does not fit an immediate
}

// ---- inputs and outputs

Test(cases, outputs_that_are_used_inside) {
    struct graph *g =
        exact("graph \"g\"\nin %x : f32[1,2,4,4]\nconst %w : f32[2,2,1,1] = {1, 2, 3, 4}\n"
              "%c = conv %x, %w\n%r = map %c chain=(max imm0) imm0=0\n"
              "%q = conv %r, %w\nout %c\nout %r\nout %q\n");
    cr_expect_eq(count_ops(g, GRAPH_CONV), 2);
}

Test(cases, inputs_and_constants_as_outputs) {
    exact("graph \"g\"\nin %x : f32[2,3]\nin %y : f32[2,3]\nconst %c : f32[2] = {1, 2}\n"
          "%u = map %x chain=()\n%v = reshape %y shape=[2,3]\n%w = map %c chain=(neg)\n"
          "%k = copy %c\nout %x\nout %u\nout %v\nout %w\nout %c\nout %k\n");
}

Test(cases, equal_outputs_stay_two) {
    exact("graph \"g\"\nin %x : f32[2,3]\n%u = map %x chain=(neg)\n%v = map %x chain=(neg)\n"
          "%w = map %x chain=(neg)\n%z = map %w chain=(exp)\nout %u\nout %v\nout %z\n");
}

Test(cases, nodes_without_users_stop_no_fusion) {
    struct graph *g = exact("graph \"g\"\nin %x : f32[2,2]\n%m = matmul %x, %x\n"
                            "%dead = map %m chain=(exp)\n%dead2 = map %dead chain=(neg)\n"
                            "%t = transpose %m perm=[1,0]\n%b = transpose %t perm=[1,0]\n"
                            "%r = map %b chain=(max imm0) imm0=0\nout %r\n");
    cr_expect_eq(count_nodes(g), 1);
    cr_expect_eq(g->inputs[0]->id, 0);
}

// ---- fusion into kernels

// Two branches whose activations stand behind both kernels.
Test(cases, every_kernel_takes_its_epilogue) {
    struct graph *g = exact("graph \"g\"\nin %x : f32[2,2]\n%a = matmul %x, %x\n"
                            "%b = matmul %x, %x trans_b=1\n%c = matmul %x, %x trans_a=1\n"
                            "%ra = map %a chain=(max imm0) imm0=0\n%rb = map %b chain=(exp)\n"
                            "%rc = map %c, %rb chain=(add in1)\nout %ra\nout %rb\nout %rc\n");
    cr_expect_eq(count_nodes(g), 3);
    cr_expect_eq(count_ops(g, GRAPH_MAP), 0);
}

Test(cases, residuals_and_their_order) {
    struct graph *g = exact("graph \"g\"\nin %x : f32[2,2]\n%a = matmul %x, %x\n%s = map %x "
                            "chain=(sigmoid)\n%b = map %s, %a chain=(sub in1)\nout %b\n");
    cr_expect_eq(count_ops(g, GRAPH_MAP), 1); // the sigmoid; the difference is mirrored
    exact("graph \"g\"\nin %x : f32[2,2]\nin %y : f32[3,2,2]\n%a = matmul %x, %x\n"
          "%b = map %a, %y chain=(add in1)\nout %b\n"); // broadcasts the product: stays
}

Test(cases, integer_products_keep_their_type) {
    exact(
        "graph \"g\"\nin %x : i8[2,2]\n%m = matmul %x, %x\n%f = map %m dtype=f32 chain=(mul imm0) "
        "imm0=0.25\n%q = map %f dtype=i8 chain=(round)\nout %q\n");
    exact("graph \"g\"\nin %x : f32[2,3]\n%m = reduce %x mode=argmax axes=[1]\n"
          "%f = map %m dtype=f32 chain=(mul imm0) imm0=0.25\nout %f\n");
}

// ---- batch normalisation

#define NORM                                                                                     \
    "const %s : f32[2] = {0.5, 2}\nconst %b : f32[2] = {1, -1}\nconst %m : f32[2] = {0.25, 3}\n" \
    "const %v : f32[2] = {1, 4}\n"

Test(cases, batchnorm_folds_with_its_bias) {
    struct graph *g = check_passes(
        a,
        "graph \"g\"\nin %x : f32[1,3,4,4]\nconst %w : f32[2,3,1,1] = {1, 2, 3, 4, 5, 6}\n"
        "const %k : f32[2,1,1] = {7, 8}\n" NORM
        "%c = conv %x, %w\n%d = map %c, %k chain=(add in1)\n"
        "%n = batchnorm %d, %s, %b, %m, %v epsilon=0\n%r = map %n chain=(max imm0) imm0=0\n"
        "out %r\n",
        &o, 1e-5);
    cr_expect_eq(count_nodes(g), 3); // with copies to and from channels last
    cr_expect_eq(count_ops(g, GRAPH_CONV), 1);
}

// A bias that makes channels out of one is no bias of the convolution.
Test(cases, batchnorm_and_a_bias_that_broadcasts) {
    check_passes(a,
                 "graph \"g\"\nin %x : f32[1,3,2,2]\nconst %w : f32[1,3,1,1] = {1, 2, 3}\n"
                 "const %k : f32[2,1,1] = {7, 8}\n" NORM
                 "%c = conv %x, %w\n%d = map %c, %k chain=(add in1)\n"
                 "%n = batchnorm %d, %s, %b, %m, %v epsilon=0\nout %n\n",
                 &o, 1e-5);
}

Test(cases, batchnorm_elsewhere) {
    check_passes(a,
                 "graph \"g\"\nin %x : f32[3,2]\nin %y : f32[1,2,2,2]\n" NORM
                 "const %w : f32[2,2,2,2] = {1, 2, 3, ...}\n"
                 "%n = batchnorm %x, %s, %b, %m, %v epsilon=0.5\n"
                 "%t = convt %y, %w strides=[2,2]\n%u = batchnorm %t, %s, %b, %m, %v\n"
                 "%p = conv %y, %w\n%q = batchnorm %p, %s, %b, %m, %v\n"
                 "out %n\nout %u\nout %p\nout %q\n",
                 &o, 1e-5);
}

Test(cases, batchnorm_in_f16) {
    check_passes(a,
                 "graph \"g\"\nin %x : f16[1,2,4,4]\nconst %w : f16[2,2,1,1] = {1, 2, 3, 4}\n"
                 "const %s : f16[2] = {0.5, 2}\nconst %b : f16[2] = {1, -1}\n"
                 "const %m : f16[2] = {0.25, 3}\nconst %v : f16[2] = {1, 4}\n"
                 "%c = conv %x, %w\n%n = batchnorm %c, %s, %b, %m, %v epsilon=0\n"
                 "%q = batchnorm %x, %s, %b, %m, %v epsilon=0\nout %n\nout %q\n",
                 &o, 1e-2);
}

// ---- the program's type

Test(cases, types_of_every_node) {
    o.dtype = ISA_F16;
    struct graph *g = check_passes(
        a,
        "graph \"g\"\nin %x : f32[2,4]\nin %i : i64[2] limit=4\nconst %w : f32[4,4] = {0.5, 0.25, "
        "...}\n%m = matmul %x, %w dtype=f32\n%s = softmax %m axis=1\n%g = gather %w, %i axis=0\n"
        "%k = concat %s, %g axis=0\n%z = reduce %k mode=argmax axes=[1]\n%f = map %z dtype=f32 "
        "chain=(mul imm0) imm0=0.1\nout %k\nout %f\n",
        &o, 1e-2);
    for (int k = 0; k < g->noutput; k++)
        cr_expect_eq(g->outputs[k]->dtype, ISA_F16);
}

Test(cases, f16_models_as_f32) {
    o.dtype = ISA_F32;
    struct graph *g =
        check_passes(a,
                     "graph \"g\"\nin %x : f16[2,4]\nconst %w : f16[4,4] = {0.5, 0.25, "
                     "...}\n%m = matmul %x, %w\n%y = map %m chain=(tanh)\nout %y\n",
                     &o, 1e-2);
    for (const struct graph_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nin; k++)
            cr_expect_eq(n->inputs[k]->dtype, ISA_F32);
    cr_expect_eq(g->outputs[0]->dtype, ISA_F32);
    cr_expect_eq(g->outputs[0]->file_dtype, ISA_F16);
}

// A constant that is added and also a factor is no mask.
Test(cases, masks_are_only_added) {
    o.dtype = ISA_F16;
    struct graph *g =
        exact("graph \"g\"\nin %x : f32[2]\nconst %m : f32[2] = {-100000, 0}\n"
              "%y = map %x, %m dtype=i64 chain=(add in1; mul in1; min imm0) imm0=1000\nout %y\n");
    cr_expect_eq(g->first->inputs[1]->dtype, ISA_F32);
}

// ---- storage orders

Test(cases, orders_in_the_text_are_chosen_anew) {
    struct graph *g = exact("graph \"g\"\nin %x : f32[2,3] order=[1,0]\n"
                            "%y : f32[2,3] order=[1,0] = copy %x\n"
                            "%z : f32[2,3] = copy %x\n%m = matmul %y, %z trans_b=1\n"
                            "%t : f32[2,2] order=[1,0] = map %m chain=(neg)\nout %t\nout %z\n");
    for (int k = 0; k < g->nvalue; k++)
        if (g->values[k]) cr_expect_not(g->values[k]->has_order);
}

Test(cases, what_is_added_to_a_reduction_lies_as_its_result) {
    struct graph *g = exact(
        "graph \"g\"\nin %x : f32[3,2,2,2]\nconst %w : f32[2,2,1,1] = {1, 2, 3, 4}\n"
        "in %y : f32[1,2,2,2]\n%c = conv %y, %w\n%r = reduce %x mode=sum axes=[0] keepdims=1\n"
        "%s = map %r, %c chain=(add in1)\nout %s\n");
    for (const struct graph_node *n = g->first; n; n = n->next)
        if (n->op == GRAPH_REDUCE)
            for (int k = 0; k < n->nin; k++)
                cr_expect_not(n->inputs[k]->has_order);
}

// Every row of passes.def has an example with its expected result.
Test(cases, every_pass_has_a_golden_file) {
    for (int id = 0; id < PASS_COUNT; id++) {
        char path[512];
        struct span bytes;
        (void)snprintf(path, sizeof path, "%s/tests/golden/passes/%s.npt", NPU_SOURCE_DIR,
                       passes[id].name);
        npu_status st = file_map(path, &bytes);
        cr_expect_null(st, "%s", npu_status_message(st));
        if (!st) file_unmap(bytes);
        npu_status_free(st);
    }
}
