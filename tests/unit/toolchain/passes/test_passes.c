// SPDX-License-Identifier: Apache-2.0
// Passes keep what a graph computes: random graphs are evaluated by the reference kernels before
// and after. Joining elementwise work in f32 changes no bit.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

static uint64_t seed;
static uint32_t draw(uint32_t n) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)(seed >> 11) % n;
}
static float number(void) {
    return ((float)draw(2000) - 1000.0f) / 250.0f;
}

enum { ROWS = 6, COLS = 10 };

static struct graph_value *constant(struct graph *g, int64_t rows, int64_t cols) {
    int64_t dims[] = {rows, cols};
    float *f = ARENA_ARRAY(g->arena, float, (size_t)(rows * cols));
    for (int64_t i = 0; i < rows * cols; i++)
        f[i] = number();
    return graph_add_const(g, "c", ISA_F32, 2, dims, f);
}

static int64_t bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static struct graph_value *any_operand(struct graph *g, struct graph_value **values, int n) {
    switch (draw(6)) {
    case 0: return constant(g, 1, COLS);
    case 1: return constant(g, ROWS, 1);
    case 2: return constant(g, 1, 1);
    default: return values[draw((uint32_t)n)];
    }
}

// A random graph of matmuls and maps over two inputs; always the same for the same seed.
static struct graph *random_graph(struct arena *a, uint64_t s) {
    static const int64_t binary[] = {ISA_VOP_ADD, ISA_VOP_SUB, ISA_VOP_RSUB, ISA_VOP_MUL,
                                     ISA_VOP_MAX, ISA_VOP_MIN, ISA_VOP_LT,   ISA_VOP_GE};
    static const int64_t unary[] = {ISA_VOP_ABS,  ISA_VOP_NEG,     ISA_VOP_FLOOR,
                                    ISA_VOP_TANH, ISA_VOP_SIGMOID, ISA_VOP_EXP};
    seed = s;
    struct graph *g = graph_new(a, "random");
    struct graph_value *v[40];
    int n = 0, nodes = 6 + (int)draw(16);
    int64_t dims[] = {ROWS, COLS};
    for (int i = 0; i < 2; i++)
        graph_add_input(g, v[n++] = graph_add_value(g, i ? "b" : "a", ISA_F32, 2, dims));
    for (int i = 0; i < nodes; i++) {
        struct isa_chain c = {.imm = {bits(number())}};
        struct graph_value *in[3] = {v[draw((uint32_t)n)]};
        int nin = 1;
        uint32_t kind = draw(5);
        if (kind == 0) {
            struct graph_value *mm[] = {in[0], constant(g, COLS, COLS)};
            struct graph_node *node = graph_add_node(g, GRAPH_MATMUL, "mm", 2, mm, NULL);
            cr_assert_null(graph_infer(g, node, "mm"));
            v[n++] = node->outputs[0];
            continue;
        }
        if (kind == 1) {
            c.st[0] = (struct isa_stage){unary[draw(6)], 0, 0, 0};
        } else if (kind == 2) {
            c.st[0] = (struct isa_stage){binary[draw(8)], ISA_SRC_IMM0, 0, 0};
        } else {
            in[nin++] = any_operand(g, v, n);
            if (draw(2)) {
                struct graph_value *t = in[0];
                in[0] = in[1];
                in[1] = t;
            }
            c.st[0] = (struct isa_stage){binary[draw(8)], ISA_SRC_IN1, 0, 0};
        }
        // The result must have the full shape.
        bool full = false;
        for (int k = 0; k < nin; k++)
            full |= graph_value_elems(in[k]) == ROWS * COLS;
        if (!full) continue;
        cr_assert_null(graph_add_map(g, "m", nin, in, &c, ISA_F32, NULL, &v[n++]));
    }
    graph_add_output(g, v[n - 1]);
    if (n > 3 && !v[n - 2]->is_input) graph_add_output(g, v[n - 2]);
    return g;
}

static void evaluate(const struct graph *g, float out[2][ROWS * COLS], struct arena *a) {
    static float in[2][ROWS * COLS];
    seed = 12345;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < ROWS * COLS; k++)
            in[i][k] = number();
    const void *inputs[] = {in[0], in[1]};
    void *outputs[] = {out[0], out[1]};
    cr_assert_null(graph_eval(g, inputs, outputs, a));
}

Test(passes, random_graphs_compute_the_same_bits) {
    int fused = 0;
    for (int round = 0; round < 150; round++) {
        struct arena *a = arena_new();
        static float before[2][ROWS * COLS], after[2][ROWS * COLS];
        memset(before, 0, sizeof before);
        memset(after, 0, sizeof after);
        evaluate(random_graph(a, 977u + (uint64_t)round * 31u), before, a);
        struct graph *g = random_graph(a, 977u + (uint64_t)round * 31u);
        struct pass_options o;
        struct pass_log log = {0};
        pass_options_init(&o);
        o.skip[PASS_affine] = o.skip[PASS_activation] = true; // they change roundings
        npu_status st = passes_run(g, &o, &log);
        cr_assert_null(st, "%s", npu_status_message(st));
        evaluate(g, after, a);
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < ROWS * COLS; k++)
                cr_assert(bits(before[i][k]) == bits(after[i][k]) ||
                              (before[i][k] != before[i][k] && after[i][k] != after[i][k]),
                          "graph %d, output %d, element %d: %g became %g", round, i, k,
                          (double)before[i][k], (double)after[i][k]);
        fused += log.fused;
        arena_free(a);
    }
    cr_assert_gt(fused, 300);
}

// x * clip(x + 3, 0, 6) / 6 after a matrix product and a bias is one kernel: the chain keeps x as
// TMP.
Test(passes, hard_swish_joins_its_matmul) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "hswish");
    int64_t dims[] = {ROWS, COLS};
    seed = 5;
    struct graph_value *x = graph_add_value(g, "x", ISA_F32, 2, dims), *v, *y;
    graph_add_input(g, x);
    struct graph_value *mm[] = {x, constant(g, COLS, COLS)};
    struct graph_node *n = graph_add_node(g, GRAPH_MATMUL, "mm", 2, mm, NULL);
    cr_assert_null(graph_infer(g, n, "mm"));
    struct isa_chain add = {.st = {{ISA_VOP_ADD, ISA_SRC_IN1, 0, 0}}},
                     three = {.st = {{ISA_VOP_ADD, ISA_SRC_IMM0, 0, 0}}, .imm = {bits(3)}};
    struct isa_chain clip = {.st = {{ISA_VOP_MAX, ISA_SRC_IMM0, 0, 0},
                                    {ISA_VOP_MIN, ISA_SRC_IMM1, 0, 0}},
                             .imm = {0, bits(6)}};
    struct isa_chain mul = {.st = {{ISA_VOP_MUL, ISA_SRC_IN1, 0, 0}}},
                     six = {.st = {{ISA_VOP_DIV, ISA_SRC_IMM0, 0, 0}}, .imm = {bits(6)}};
    struct graph_value *in[2] = {n->outputs[0], constant(g, 1, COLS)};
    cr_assert_null(graph_add_map(g, "bias", 2, in, &add, ISA_F32, NULL, &v));
    cr_assert_null(graph_add_map(g, "plus3", 1, &v, &three, ISA_F32, NULL, &y));
    cr_assert_null(graph_add_map(g, "clip", 1, &y, &clip, ISA_F32, NULL, &y));
    struct graph_value *both[2] = {v, y};
    cr_assert_null(graph_add_map(g, "mul", 2, both, &mul, ISA_F32, NULL, &y));
    cr_assert_null(graph_add_map(g, "div", 1, &y, &six, ISA_F32, NULL, &y));
    graph_add_output(g, y);
    for (n = g->first; n; n = n->next)
        graph_add_origin(g, n, n->name);
    struct pass_options o;
    struct pass_log log = {0};
    pass_options_init(&o);
    cr_assert_null(passes_run(g, &o, &log));
    cr_assert_eq(g->first, g->last);
    cr_expect_eq(g->first->op, GRAPH_MATMUL);
    cr_expect_eq(chain_length(&g->first->chain), 6);
    cr_expect_eq(g->first->norigin, 6);
    arena_free(a);
}

Test(passes, skipped_passes_do_not_run) {
    struct arena *a = arena_new();
    struct graph *g = random_graph(a, 4242);
    struct pass_options o;
    struct pass_log log = {0};
    pass_options_init(&o);
    o.skip[PASS_fuse_map] = o.skip[PASS_fuse_epilogue] = true;
    cr_assert_null(passes_run(g, &o, &log));
    cr_expect_eq(log.fused, 0);
    cr_expect_not(log.stat[PASS_fuse_map].ran);
    arena_free(a);
}

// f16: constants are folded in f32 and rounded once; what overflows stays f32 and is listed; masks
// become the lowest value.
Test(passes, constants_meet_the_program_type) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "t");
    int64_t dims[] = {1, 4}, wide[] = {4, 4};
    static float mask[] = {0, -3.0e38f, -INFINITY, 0}, big[16] = {1.0e6f};
    struct graph_value *x = graph_add_value(g, "x", ISA_F32, 2, dims), *y;
    graph_add_input(g, x);
    struct isa_chain add = {.st = {{ISA_VOP_ADD, ISA_SRC_IN1, 0, 0}}};
    struct graph_value *in[] = {x, graph_add_const(g, "mask", ISA_F32, 2, dims, mask)};
    cr_assert_null(graph_add_map(g, "masked", 2, in, &add, ISA_F32, NULL, &y));
    struct graph_value *mm[] = {y, graph_add_const(g, "w", ISA_F32, 2, wide, big)};
    struct graph_node *n = graph_add_node(g, GRAPH_MATMUL, "mm", 2, mm, NULL);
    cr_assert_null(graph_infer(g, n, "z"));
    graph_add_output(g, n->outputs[0]);
    struct pass_options o;
    struct pass_log log = {0};
    pass_options_init(&o);
    o.dtype = ISA_F16;
    npu_status st = passes_run(g, &o, &log);
    cr_assert_null(st, "%s", npu_status_message(st));
    cr_assert_eq(log.kept_f32, 1);
    cr_expect_str_eq(log.kept_names[0], "mm");
    cr_expect_eq(g->inputs[0]->dtype, ISA_F16);
    cr_expect_eq(g->outputs[0]->dtype, ISA_F16);
    const struct graph_value *m = g->first->inputs[1];
    cr_assert_eq(m->dtype, ISA_F16);
    const uint16_t *h = m->data;
    cr_expect_eq(h[1], 0xfbff);
    cr_expect_eq(h[2], 0xfbff);
    cr_expect_eq(h[0], 0);
    arena_free(a);
}

// Large weights stay as the model has them: they get the program's type and say what they hold.
// Their range is looked at all the same.
Test(passes, weights_are_not_copied) {
    enum { SIDE = 256 };
    for (int large = 0; large < 2; large++) {
        struct arena *a = arena_new();
        struct graph *g = graph_new(a, "net");
        int64_t dims[] = {2, SIDE}, square[] = {SIDE, SIDE};
        struct graph_value *x = graph_add_value(g, "x", ISA_F32, 2, dims);
        graph_add_input(g, x);
        float *w = ARENA_ARRAY(a, float, SIDE *SIDE);
        for (int i = 0; i < SIDE * SIDE; i++)
            w[i] = (float)(i % 97) / 7.0f;
        w[5000] = large ? 1e6f : 65519.0f; // the largest that rounds to a finite f16
        struct graph_value *in[] = {x, graph_add_const(g, "w", ISA_F32, 2, square, w)};
        struct graph_node *n = graph_add_node(g, GRAPH_MATMUL, "mm", 2, in, NULL);
        cr_assert_null(graph_infer(g, n, "y"));
        graph_add_output(g, n->outputs[0]);
        struct pass_options o;
        struct pass_log log = {0};
        pass_options_init(&o);
        o.dtype = ISA_F16;
        cr_assert_null(passes_run(g, &o, &log));
        cr_assert_eq(log.kept_f32, large);
        for (n = g->first; n->op != GRAPH_MATMUL;)
            n = n->next;
        const struct graph_value *got = n->inputs[1];
        cr_expect_eq(got->data, w);
        cr_assert_eq(got->dtype, large ? ISA_F32 : ISA_F16);
        cr_assert_eq(graph_data_dtype(got), ISA_F32);
        if (!large) {
            uint16_t want[SIDE];
            num_f32_to_f16_n(w + 5000, want, SIDE);
            const uint16_t *h = graph_constant(got, a);
            cr_expect_eq(memcmp(h + 5000, want, sizeof want), 0);
        }
        arena_free(a);
    }
}

// Constant scales and shifts after a product go into its weights and one bias.
Test(passes, scales_and_shifts_fold_into_weights) {
    struct arena *a = arena_new();
    static float before[2][ROWS * COLS], after[2][ROWS * COLS];
    for (int round = 0; round < 2; round++) {
        struct graph *g = graph_new(a, "affine");
        int64_t dims[] = {ROWS, COLS};
        seed = 77;
        struct graph_value *x = graph_add_value(g, "x", ISA_F32, 2, dims), *y;
        graph_add_input(g, x);
        graph_add_input(g, graph_add_value(g, "unused", ISA_F32, 2, dims));
        struct graph_value *mm[] = {x, constant(g, COLS, COLS)};
        struct graph_node *n = graph_add_node(g, GRAPH_MATMUL, "mm", 2, mm, NULL);
        cr_assert_null(graph_infer(g, n, "mm"));
        y = n->outputs[0];
        struct isa_chain fma = {.st = {{ISA_VOP_FMA, ISA_SRC_IN1, ISA_SRC_IN2, 0}}};
        struct isa_chain mul = {.st = {{ISA_VOP_MUL, ISA_SRC_IN1, 0, 0},
                                       {ISA_VOP_ADD, ISA_SRC_IMM0, 0, 0}},
                                .imm = {bits(0.75f)}};
        struct graph_value *in[3] = {y, constant(g, 1, COLS), constant(g, 1, COLS)};
        cr_assert_null(graph_add_map(g, "fma", 3, in, &fma, ISA_F32, NULL, &y));
        struct graph_value *scaled[2] = {constant(g, 1, 1), y};
        cr_assert_null(graph_add_map(g, "scale", 2, scaled, &mul, ISA_F32, NULL, &y));
        graph_add_output(g, y);
        if (round) {
            struct pass_options o;
            struct pass_log log = {0};
            pass_options_init(&o);
            cr_assert_null(passes_run(g, &o, &log));
            cr_assert_eq(g->first, g->last);
            cr_expect_eq(chain_length(&g->first->chain), 1);
        }
        evaluate(g, round ? after : before, a);
    }
    for (int i = 0; i < ROWS * COLS; i++)
        cr_assert_float_eq(before[0][i], after[0][i], 1e-4f * (1 + fabsf(before[0][i])));
    arena_free(a);
}
