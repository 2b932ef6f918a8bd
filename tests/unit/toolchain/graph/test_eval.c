// SPDX-License-Identifier: Apache-2.0
//
// Reference kernels against plain loops written here, in the order that the numerics contract
// states, bit for bit where the contract fixes the order.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/graph/graph.h"

static struct arena *arena;
static struct graph *g;
static uint64_t seed;

static void setup(void) {
    arena = arena_new();
    g = graph_new(arena, "test");
    seed = 88172645463325252u;
}

static void teardown(void) {
    arena_free(arena);
}

TestSuite(eval, .init = setup, .fini = teardown);

static float number(void) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return ((float)(seed >> 40) - 8388608.0f) / 4194304.0f;
}

static struct graph_value *random_const(int rank, const int64_t *dims) {
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dims[d];
    float *f = ARENA_ARRAY(arena, float, (size_t)n);
    for (int64_t k = 0; k < n; k++)
        f[k] = number();
    return graph_add_const(g, "c", ISA_F32, rank, dims, f);
}
#define RANDOM(...) \
    random_const((int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})
#define INTS(n, key, ...)                                                               \
    graph_set_ints(g, n, GRAPH_ATTR_##key, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), \
                   (int64_t[]){__VA_ARGS__})

static void *run(struct graph_node *n) {
    npu_status st = graph_infer(g, n, "y");
    cr_assert_null(st, "%s", npu_status_message(st));
    const void *in[8];
    for (int k = 0; k < n->nin; k++)
        in[k] = n->inputs[k]->data;
    void *out = arena_alloc(arena, (size_t)graph_value_bytes(n->outputs[0]) + 1);
    st = graph_eval_node(n, in, &out, arena);
    cr_assert_null(st, "%s", npu_status_message(st));
    return out;
}

static bool same_bits(const float *a, const float *b, int64_t n) {
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

Test(eval, matmul_is_one_fma_per_k_in_order) {
    enum { M = 5, K = 67, N = 45 };
    struct graph_value *a = RANDOM(M, K), *b = RANDOM(K, N), *in[2] = {a, b};
    const float *x = a->data, *y = b->data,
                *got = run(graph_add_node(g, GRAPH_MATMUL, "n", 2, in, NULL));
    float want[M * N];
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float s = 0;
            for (int k = 0; k < K; k++)
                s = num_fma(x[i * K + k], y[k * N + j], s);
            want[i * N + j] = s;
        }
    cr_assert(same_bits(got, want, M * N));
}

Test(eval, matmul_transposed_operands_give_the_same_bits) {
    enum { M = 4, K = 9, N = 33 };
    struct graph_value *a = RANDOM(M, K), *b = RANDOM(K, N), *in[2] = {a, b};
    const float *want = run(graph_add_node(g, GRAPH_MATMUL, "n", 2, in, NULL));
    for (int k = 0; k < 2; k++) {
        struct graph_node *t = graph_add_node(g, GRAPH_TRANSPOSE, "t", 1, &in[k], NULL);
        INTS(t, PERM, 1, 0);
        const void *turned = run(t);
        in[k] = graph_add_const(g, "t", ISA_F32, 2, t->outputs[0]->dims, turned);
    }
    struct graph_node *n = graph_add_node(g, GRAPH_MATMUL, "n", 2, in, NULL);
    graph_set_int(g, n, GRAPH_ATTR_TRANS_A, 1);
    graph_set_int(g, n, GRAPH_ATTR_TRANS_B, 1);
    cr_assert(same_bits(run(n), want, M * N));
}

// One convolution, with everything at once: order kh, kw, c, padding skipped.
static void check_conv(int64_t c, int64_t o, int64_t group, bool transpose) {
    enum { H = 6, W = 5, KH = 3, KW = 2, SH = 2, SW = 1, DH = 1, DW = 2, PT = 1, PL = 1 };
    struct graph_value *x = RANDOM(2, c, H, W);
    int64_t cg = c / group, og = o / group;
    struct graph_value *w = transpose ? RANDOM(c, og, KH, KW) : RANDOM(o, cg, KH, KW),
                       *in[2] = {x, w};
    struct graph_node *n =
        graph_add_node(g, transpose ? GRAPH_CONVT : GRAPH_CONV, "n", 2, in, NULL);
    INTS(n, STRIDES, SH, SW);
    INTS(n, DILATIONS, DH, DW);
    INTS(n, PADS, PT, PL, 1, 0);
    graph_set_int(g, n, GRAPH_ATTR_GROUP, group);
    const float *got = run(n), *xf = x->data, *wf = w->data;
    int64_t oh = n->outputs[0]->dims[2], ow = n->outputs[0]->dims[3], at = 0;
    for (int64_t b = 0; b < 2; b++)
        for (int64_t m = 0; m < o; m++)
            for (int64_t p = 0; p < oh; p++)
                for (int64_t q = 0; q < ow; q++, at++) {
                    float s = 0;
                    for (int64_t kh = 0; kh < KH; kh++)
                        for (int64_t kw = 0; kw < KW; kw++)
                            for (int64_t i = 0; i < cg; i++) {
                                int64_t h = p * SH - PT + kh * DH, v = q * SW - PL + kw * DW,
                                        ch = m / og * cg + i;
                                if (transpose) {
                                    h = p + PT - kh * DH;
                                    v = q + PL - kw * DW;
                                    if (h % SH || v % SW) continue;
                                    h /= SH;
                                    v /= SW;
                                }
                                if (h < 0 || h >= H || v < 0 || v >= W) continue;
                                int64_t row = transpose ? ch * og + m % og : m * cg + i;
                                s = num_fma(xf[((b * c + ch) * H + h) * W + v],
                                            wf[(row * KH + kh) * KW + kw], s);
                            }
                    cr_assert(same_bits(&got[at], &s, 1), "element %lld: %g, expected %g",
                              (long long)at, (double)got[at], (double)s);
                }
    cr_assert_eq(at, graph_value_elems(n->outputs[0]));
}

Test(eval, conv_order) {
    check_conv(3, 40, 1, false);
    check_conv(6, 4, 2, false);
    check_conv(7, 7, 7, false);
    check_conv(4, 8, 4, false);
}

Test(eval, convt_order) {
    check_conv(3, 10, 1, true);
    check_conv(6, 4, 2, true);
    check_conv(5, 5, 5, true);
}

Test(eval, chain_widens_once_and_rounds_once) {
    // f16 inputs: (x * 3 - y) in f32, rounded to f16 at the end only.
    enum { N = 700 };
    uint16_t *x = ARENA_ARRAY(arena, uint16_t, N), *y = ARENA_ARRAY(arena, uint16_t, 1);
    for (int k = 0; k < N; k++)
        x[k] = num_f32_to_f16(number());
    y[0] = num_f32_to_f16(0.1f);
    struct graph_value *in[2] = {graph_add_const(g, "x", ISA_F16, 1, (int64_t[]){N}, x),
                                 graph_add_const(g, "y", ISA_F16, 0, NULL, y)};
    struct graph_node *n = graph_add_node(g, GRAPH_MAP, "n", 2, in, NULL);
    n->has_chain = true;
    n->chain = (struct isa_chain){.st = {{ISA_VOP_MUL, ISA_SRC_IMM0, 0, 0},
                                         {ISA_VOP_SUB, ISA_SRC_IN1, 0, 0}},
                                  .imm = {num_bits(3.0f)}};
    const uint16_t *got = run(n);
    for (int k = 0; k < N; k++)
        cr_assert_eq(got[k], num_f32_to_f16(num_f16_to_f32(x[k]) * 3.0f - num_f16_to_f32(y[0])));
}

Test(eval, chain_broadcasts_each_operand) {
    enum { A = 3, B = 4, C = 5 };
    struct graph_value *in[3] = {RANDOM(B, 1), RANDOM(A, 1, C), RANDOM(C)};
    struct graph_node *n = graph_add_node(g, GRAPH_MAP, "n", 3, in, NULL);
    n->has_chain = true;
    n->chain = (struct isa_chain){
        .st = {{ISA_VOP_FMA, ISA_SRC_IN1, ISA_SRC_IN2, 1}, {ISA_VOP_ADD, ISA_SRC_TMP, 0, 0}}};
    const float *got = run(n), *x = in[0]->data, *y = in[1]->data, *z = in[2]->data;
    for (int a = 0; a < A; a++)
        for (int b = 0; b < B; b++)
            for (int c = 0; c < C; c++) {
                float want = num_fma(x[b], y[a * C + c], z[c]);
                want += want;
                cr_assert(same_bits(&got[(a * B + b) * C + c], &want, 1));
            }
}

Test(eval, chain_of_integers_is_exact_and_saturates) {
    int64_t x[3] = {(int64_t)1 << 40, -5, 200};
    struct graph_value *v = graph_add_const(g, "x", ISA_I64, 1, (int64_t[]){3}, x);
    struct graph_node *n = graph_add_node(g, GRAPH_MAP, "n", 1, &v, NULL);
    n->has_chain = true;
    n->chain = (struct isa_chain){.st = {{ISA_VOP_ADD, ISA_SRC_IMM0, 0, 0}}, .imm = {1}};
    const int64_t *wide = run(n);
    cr_assert(wide[0] == ((int64_t)1 << 40) + 1 && wide[1] == -4);
    graph_set_int(g, n, GRAPH_ATTR_DTYPE, ISA_I8);
    const int8_t *narrow = run(n);
    cr_assert(narrow[0] == 127 && narrow[1] == -4 && narrow[2] == 127);
}

Test(eval, matmul_with_a_chain_rounds_after_it) {
    struct graph_value *in[2] = {RANDOM(3, 8), RANDOM(8, 4)}, *bias = RANDOM(4);
    const float *plain = run(graph_add_node(g, GRAPH_MATMUL, "n", 2, in, NULL)), *b = bias->data;
    struct graph_node *n = graph_add_node(g, GRAPH_MATMUL, "n", 2, in, NULL);
    n->has_chain = true;
    n->chain = (struct isa_chain){
        .st = {{ISA_VOP_ADD, ISA_SRC_IN1, 0, 0}, {ISA_VOP_MAX, ISA_SRC_IMM0, 0, 0}}};
    graph_add_chain_input(g, n, bias);
    graph_set_int(g, n, GRAPH_ATTR_DTYPE, ISA_F16);
    const uint16_t *got = run(n);
    for (int k = 0; k < 12; k++)
        cr_assert_eq(got[k], num_f32_to_f16(num_fn_max(plain[k] + b[k % 4], 0.0f)));
}

static struct graph_node *reduce(struct graph_value *x, const char *mode, int n,
                                 const int64_t *axes) {
    struct graph_node *r = graph_add_node(g, GRAPH_REDUCE, "r", 1, &x, NULL);
    graph_set_word(g, r, GRAPH_ATTR_MODE, mode);
    graph_set_ints(g, r, GRAPH_ATTR_AXES, n, axes);
    return r;
}

Test(eval, reduce_uses_the_contract_s_partials) {
    enum { A = 3, B = 5, C = 130 };
    struct graph_value *x = RANDOM(A, B, C);
    const float *f = x->data;
    // Over the outer and inner dimension: element order is row-major over both.
    const float *got = run(reduce(x, "sum", 2, (int64_t[]){0, 2}));
    for (int b = 0; b < B; b++) {
        struct num_reduce r;
        num_reduce_begin(&r, ISA_RED_SUM);
        for (int a = 0; a < A; a++)
            num_reduce_add_f32(&r, f + (a * B + b) * C, C);
        float want = num_reduce_end_f32(&r);
        cr_assert(same_bits(&got[b], &want, 1));
    }
    // Over the middle one.
    got = run(reduce(x, "max", 1, (int64_t[]){1}));
    for (int a = 0; a < A; a++)
        for (int c = 0; c < C; c++) {
            float want = f[a * B * C + c];
            for (int b = 1; b < B; b++)
                want = fmaxf(want, f[(a * B + b) * C + c]);
            cr_assert_eq(got[a * C + c], want);
        }
}

Test(eval, argmax_takes_the_first) {
    int32_t x[6] = {1, 7, 7, -3, -3, -9};
    struct graph_value *v = graph_add_const(g, "x", ISA_I32, 2, (int64_t[]){2, 3}, x);
    const int64_t *got = run(reduce(v, "argmax", 1, (int64_t[]){1}));
    cr_assert(got[0] == 1 && got[1] == 0);
}

Test(eval, softmax_and_norms_are_close) {
    enum { R = 4, N = 100 };
    struct graph_value *x = RANDOM(R, N), *scale = RANDOM(N), *bias = RANDOM(N),
                       *in[3] = {x, scale, bias};
    const float *f = x->data, *s = scale->data, *b = bias->data;
    struct graph_node *n = graph_add_node(g, GRAPH_SOFTMAX, "s", 1, in, NULL);
    graph_set_int(g, n, GRAPH_ATTR_AXIS, 1);
    const float *soft = run(n);
    n = graph_add_node(g, GRAPH_LAYERNORM, "l", 3, in, NULL);
    graph_set_int(g, n, GRAPH_ATTR_AXIS, 1);
    const float *norm = run(n);
    n = graph_add_node(g, GRAPH_RMSNORM, "r", 2, in, NULL);
    graph_set_int(g, n, GRAPH_ATTR_AXIS, 1);
    const float *rms = run(n);
    for (int r = 0; r < R; r++) {
        double sum = 0, mean = 0, var = 0, sq = 0;
        for (int k = 0; k < N; k++) {
            double v = (double)f[r * N + k];
            sum += exp(v);
            mean += v / N;
            sq += v * v / N;
        }
        for (int k = 0; k < N; k++)
            var += pow((double)f[r * N + k] - mean, 2) / N;
        for (int k = 0; k < N; k++) {
            double v = (double)f[r * N + k];
            cr_assert_float_eq((double)soft[r * N + k], exp(v) / sum, 1e-7);
            cr_assert_float_eq((double)norm[r * N + k],
                               (v - mean) / sqrt(var + 1e-5) * (double)s[k] + (double)b[k], 1e-5);
            cr_assert_float_eq((double)rms[r * N + k], v / sqrt(sq + 1e-5) * (double)s[k], 1e-5);
        }
    }
}

Test(eval, pools_count_what_is_inside) {
    float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct graph_value *v = graph_add_const(g, "x", ISA_F32, 4, (int64_t[]){1, 1, 3, 3}, x);
    static const struct {
        const char *mode;
        float corner;
    } modes[] = {{"max", 5}, {"avg", 3}, {"avgpad", 12.0f / 9.0f}};
    for (int k = 0; k < 3; k++) {
        struct graph_node *n = graph_add_node(g, GRAPH_POOL, "p", 1, &v, NULL);
        graph_set_word(g, n, GRAPH_ATTR_MODE, modes[k].mode);
        INTS(n, KERNEL, 3, 3);
        INTS(n, PADS, 1, 1, 1, 1);
        const float *got = run(n);
        cr_assert_eq(got[0], modes[k].corner);
        cr_assert_eq(got[4], k ? 5.0f : 9.0f);
    }
}

Test(eval, moves_of_every_width) {
    static const enum isa_dtype types[] = {ISA_I4, ISA_U8, ISA_F16, ISA_I32, ISA_I64};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        uint8_t *x = arena_alloc(arena, 6 * 8);
        for (int k = 0; k < 6; k++)
            num_store_i64(types[t], x, k, k);
        struct graph_value *v = graph_add_const(g, "x", types[t], 2, (int64_t[]){2, 3}, x),
                           *both[2] = {v, v};
        struct graph_node *n = graph_add_node(g, GRAPH_TRANSPOSE, "t", 1, &v, NULL);
        INTS(n, PERM, 1, 0);
        const void *y = run(n);
        for (int k = 0; k < 6; k++)
            cr_assert_eq(num_load_i64(types[t], y, k), k / 2 + k % 2 * 3);
        n = graph_add_node(g, GRAPH_CONCAT, "c", 2, both, NULL);
        graph_set_int(g, n, GRAPH_ATTR_AXIS, 1);
        y = run(n);
        for (int k = 0; k < 12; k++)
            cr_assert_eq(num_load_i64(types[t], y, k), k / 6 * 3 + k % 3);
        n = graph_add_node(g, GRAPH_SLICE, "s", 1, &v, NULL);
        INTS(n, STARTS, 1, 2);
        INTS(n, SIZES, 1, 2);
        INTS(n, STEPS, 1, -2);
        y = run(n);
        cr_assert(num_load_i64(types[t], y, 0) == 5 && num_load_i64(types[t], y, 1) == 3);
        n = graph_add_node(g, GRAPH_PAD, "p", 1, &v, NULL);
        INTS(n, PADS_BEFORE, 0, 2);
        INTS(n, PADS_AFTER, 0, -1);
        graph_set_word(g, n, GRAPH_ATTR_MODE, "reflect");
        y = run(n);
        const int64_t mirrored[4] = {2, 1, 0, 1};
        for (int k = 0; k < 4; k++)
            cr_assert_eq(num_load_i64(types[t], y, k), mirrored[k]);
    }
}

Test(eval, gather_checks_its_indices) {
    struct graph_value *x = RANDOM(3, 2);
    int64_t index[2] = {-1, 1};
    struct graph_value *in[2] = {x, graph_add_const(g, "i", ISA_I64, 1, (int64_t[]){2}, index)};
    struct graph_node *n = graph_add_node(g, GRAPH_GATHER, "n", 2, in, NULL);
    graph_set_int(g, n, GRAPH_ATTR_AXIS, 0);
    const float *got = run(n), *f = x->data;
    cr_assert(same_bits(got, f + 4, 2) && same_bits(got + 2, f + 2, 2));
    index[0] = 3;
    void *out = arena_alloc(arena, 64);
    npu_status st = graph_eval_node(n, (const void *[]){x->data, index}, &out, arena);
    cr_assert_not_null(st);
    cr_assert_not_null(strstr(npu_status_message(st), "index 3"));
    npu_status_free(st);
}

Test(eval, whole_graph_with_shared_values) {
    struct graph_value *x = graph_add_value(g, "x", ISA_F32, 1, (int64_t[]){4}), *y, *z;
    graph_add_input(g, x);
    struct isa_chain twice = {.st = {{ISA_VOP_ADD, ISA_SRC_ACC, 0, 0}}},
                     sum = {.st = {{ISA_VOP_ADD, ISA_SRC_IN1, 0, 0}}};
    cr_assert_null(graph_add_map(g, "y", 1, &x, &twice, ISA_DTYPE_NONE, NULL, &y));
    cr_assert_null(
        graph_add_map(g, "z", 2, (struct graph_value *[]){y, x}, &sum, ISA_DTYPE_NONE, NULL, &z));
    graph_add_output(g, y);
    graph_add_output(g, z);
    float in[4] = {1, 2, 3, 4}, a[4], b[4];
    cr_assert_null(graph_eval(g, (const void *[]){in}, (void *[]){a, b}, arena));
    cr_assert(a[3] == 8 && b[0] == 3 && b[3] == 12);
}
