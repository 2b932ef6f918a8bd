// SPDX-License-Identifier: Apache-2.0
// The back end end to end: small graphs are compiled for several machines and levels, run on the
// functional machine (which checks races, unwritten reads and ranges), and compared with the
// reference kernels.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/hw_yaml.h"
#include "simulator/exec/exec.h"
#include "toolchain/npuc/compile.h"
#include "toolchain/passes/pass.h"

static uint64_t seed = 1;
static float number(void) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (float)(seed >> 40) / (float)(1 << 23) - 1.0f;
}

static struct graph_value *weights(struct graph *g, int rank, const int64_t *dims) {
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dims[d];
    float *f = ARENA_ARRAY(g->arena, float, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        f[i] = number();
    return graph_add_const(g, "w", ISA_F32, rank, dims, f);
}

static struct graph_value *node(struct graph *g, enum graph_op op, int nin, struct graph_value **in,
                                struct graph_node **out) {
    struct graph_node *n = graph_add_node(g, op, graph_ops[op].text, nin, in, NULL);
    if (out) {
        *out = n;
        return NULL;
    }
    npu_status st = graph_infer(g, n, graph_ops[op].text);
    cr_assert_null(st, "%s", npu_status_message(st));
    return n->outputs[0];
}

static struct graph_value *finish(struct graph *g, struct graph_node *n) {
    npu_status st = graph_infer(g, n, graph_ops[n->op].text);
    cr_assert_null(st, "%s", npu_status_message(st));
    return n->outputs[0];
}

static struct graph_value *map(struct graph *g, int nin, struct graph_value **in, int64_t op,
                               int64_t a, float imm) {
    struct isa_chain c = {.st = {{op, a, 0, 0}}};
    uint32_t u;
    memcpy(&u, &imm, sizeof u);
    c.imm[0] = u;
    struct graph_value *out;
    npu_status st = graph_add_map(g, "map", nin, in, &c, ISA_DTYPE_NONE, NULL, &out);
    cr_assert_null(st, "%s", npu_status_message(st));
    return out;
}

static struct graph_value *conv(struct graph *g, struct graph_value *x, int64_t out, int64_t k,
                                int64_t stride, int64_t group) {
    int64_t wd[] = {out, x->dims[1] / group, k, k}, pads[] = {k / 2, k / 2, k / 2, k / 2},
            st[] = {stride, stride};
    struct graph_value *in[] = {x, weights(g, 4, wd)};
    struct graph_node *n;
    node(g, GRAPH_CONV, 2, in, &n);
    graph_set_ints(g, n, GRAPH_ATTR_PADS, 4, pads);
    graph_set_ints(g, n, GRAPH_ATTR_STRIDES, 2, st);
    graph_set_int(g, n, GRAPH_ATTR_GROUP, group);
    return finish(g, n);
}

static struct graph *resnet_block(struct arena *a) {
    struct graph *g = graph_new(a, "block");
    int64_t dims[] = {1, 8, 14, 14};
    struct graph_value *x = graph_add_value(g, "x", ISA_F32, 4, dims), *y, *z;
    graph_add_input(g, x);
    y = conv(g, x, 16, 3, 2, 1);
    int64_t bd[] = {16, 1, 1};
    y = map(g, 2, (struct graph_value *[]){y, weights(g, 3, bd)}, ISA_VOP_ADD, ISA_SRC_IN1, 0);
    y = map(g, 1, &y, ISA_VOP_MAX, ISA_SRC_IMM0, 0);
    z = conv(g, x, 16, 1, 2, 1);
    z = map(g, 2, (struct graph_value *[]){z, y}, ISA_VOP_ADD, ISA_SRC_IN1, 0);
    z = conv(g, z, 16, 3, 1, 16);
    struct graph_node *n;
    node(g, GRAPH_REDUCE, 1, &z, &n);
    int64_t axes[] = {2, 3};
    graph_set_ints(g, n, GRAPH_ATTR_AXES, 2, axes);
    graph_set_word(g, n, GRAPH_ATTR_MODE, "mean");
    graph_set_int(g, n, GRAPH_ATTR_KEEPDIMS, 0);
    z = finish(g, n);
    int64_t wd[] = {16, 10};
    struct graph_value *mm[] = {z, weights(g, 2, wd)};
    graph_add_output(g, node(g, GRAPH_MATMUL, 2, mm, NULL));
    return g;
}

static struct graph *attention(struct arena *a) {
    struct graph *g = graph_new(a, "attention");
    int64_t dims[] = {2, 19, 24}, wd[] = {24, 24}, split[] = {2, 19, 3, 8}, perm[] = {0, 2, 1, 3},
            perm_t[] = {0, 2, 3, 1}, join[] = {2, 19, 24};
    struct graph_value *x = graph_add_value(g, "x", ISA_F32, 3, dims), *h[3], *s;
    graph_add_input(g, x);
    struct graph_node *n;
    node(g, GRAPH_LAYERNORM, 3, (struct graph_value *[]){x, weights(g, 1, wd), weights(g, 1, wd)},
         &n);
    graph_set_int(g, n, GRAPH_ATTR_AXIS, 2);
    graph_set_float(g, n, GRAPH_ATTR_EPSILON, 1e-5);
    struct graph_value *ln = finish(g, n);
    for (int i = 0; i < 3; i++) {
        h[i] = node(g, GRAPH_MATMUL, 2, (struct graph_value *[]){ln, weights(g, 2, wd)}, NULL);
        node(g, GRAPH_RESHAPE, 1, &h[i], &n);
        graph_set_ints(g, n, GRAPH_ATTR_SHAPE, 4, split);
        h[i] = finish(g, n);
        node(g, GRAPH_TRANSPOSE, 1, &h[i], &n);
        graph_set_ints(g, n, GRAPH_ATTR_PERM, 4, i == 1 ? perm_t : perm);
        h[i] = finish(g, n);
    }
    s = node(g, GRAPH_MATMUL, 2, (struct graph_value *[]){h[0], h[1]}, NULL);
    s = map(g, 1, &s, ISA_VOP_DIV, ISA_SRC_IMM0, 2.5f);
    node(g, GRAPH_SOFTMAX, 1, &s, &n);
    graph_set_int(g, n, GRAPH_ATTR_AXIS, 3);
    s = finish(g, n);
    s = node(g, GRAPH_MATMUL, 2, (struct graph_value *[]){s, h[2]}, NULL);
    node(g, GRAPH_TRANSPOSE, 1, &s, &n);
    graph_set_ints(g, n, GRAPH_ATTR_PERM, 4, perm);
    s = finish(g, n);
    node(g, GRAPH_RESHAPE, 1, &s, &n);
    graph_set_ints(g, n, GRAPH_ATTR_SHAPE, 3, join);
    s = finish(g, n);
    s = map(g, 2, (struct graph_value *[]){s, x}, ISA_VOP_ADD, ISA_SRC_IN1, 0);
    graph_add_output(g, s);
    return g;
}

// Squeeze-excite, pooling, resize, concat, transposed convolution, sigmoid: what text detectors are
// made of.
static struct graph *detector(struct arena *a) {
    struct graph *g = graph_new(a, "detector");
    int64_t dims[] = {1, 3, 24, 32}, two[] = {2, 2}, big[] = {1, 12, 12, 16}, axes[] = {2, 3},
            wt[] = {24, 4, 2, 2};
    struct graph_value *x = graph_add_value(g, "x", ISA_F32, 4, dims), *y, *s, *u;
    struct graph_node *n;
    graph_add_input(g, x);
    y = conv(g, x, 12, 3, 2, 1);
    s = map(g, 1, &y, ISA_VOP_ADD, ISA_SRC_IMM0, 3.0f);
    s = map(g, 1, &s, ISA_VOP_MAX, ISA_SRC_IMM0, 0.0f);
    s = map(g, 1, &s, ISA_VOP_MIN, ISA_SRC_IMM0, 6.0f);
    s = map(g, 2, (struct graph_value *[]){y, s}, ISA_VOP_MUL, ISA_SRC_IN1, 0);
    y = map(g, 1, &s, ISA_VOP_DIV, ISA_SRC_IMM0, 6.0f);
    node(g, GRAPH_REDUCE, 1, &y, &n);
    graph_set_ints(g, n, GRAPH_ATTR_AXES, 2, axes);
    graph_set_word(g, n, GRAPH_ATTR_MODE, "mean");
    graph_set_int(g, n, GRAPH_ATTR_KEEPDIMS, 1);
    s = finish(g, n);
    s = conv(g, s, 4, 1, 1, 1);
    s = map(g, 1, &s, ISA_VOP_MAX, ISA_SRC_IMM0, 0.0f);
    s = conv(g, s, 12, 1, 1, 1);
    s = map(g, 1, &s, ISA_VOP_SIGMOID, 0, 0);
    y = map(g, 2, (struct graph_value *[]){y, s}, ISA_VOP_MUL, ISA_SRC_IN1, 0);
    node(g, GRAPH_POOL, 1, &y, &n);
    graph_set_word(g, n, GRAPH_ATTR_MODE, "max");
    graph_set_ints(g, n, GRAPH_ATTR_KERNEL, 2, two);
    graph_set_ints(g, n, GRAPH_ATTR_STRIDES, 2, two);
    u = finish(g, n);
    u = conv(g, u, 12, 5, 1, 12);
    double scales[] = {2, 2};
    node(g, GRAPH_RESIZE, 1, &u, &n);
    graph_set_word(g, n, GRAPH_ATTR_MODE, "nearest");
    graph_set_word(g, n, GRAPH_ATTR_COORD, "asymmetric");
    graph_set_word(g, n, GRAPH_ATTR_NEAREST, "floor");
    graph_set_ints(g, n, GRAPH_ATTR_SHAPE, 4, big);
    graph_set_floats(g, n, GRAPH_ATTR_SCALES, 2, scales);
    u = finish(g, n);
    node(g, GRAPH_CONCAT, 2, (struct graph_value *[]){u, y}, &n);
    graph_set_int(g, n, GRAPH_ATTR_AXIS, 1);
    u = finish(g, n);
    node(g, GRAPH_CONVT, 2, (struct graph_value *[]){u, weights(g, 4, wt)}, &n);
    graph_set_ints(g, n, GRAPH_ATTR_STRIDES, 2, two);
    u = finish(g, n);
    u = map(g, 1, &u, ISA_VOP_SIGMOID, 0, 0);
    graph_add_output(g, u);
    return g;
}

// Runs the image on the functional machine: inputs and outputs in graph order, in the program's
// types.
static void execute(const struct npuc_result *r, const void *const *in, void *const *out) {
    struct arena *a = arena_new();
    struct exec *x;
    struct exec_dram dram;
    exec_dram_init(&dram);
    cr_assert_null(exec_new(&r->hw, &x));
    cr_assert_null(exec_dram_add(&dram, 0, (int64_t)r->image->dram_bytes));
    for (size_t i = 0; i < r->image->nweights; i++)
        cr_assert_null(exec_dram_write(&dram,
                                       (int64_t)r->image->weights[i].offset +
                                           (int64_t)r->image->segments[0].dram_offset,
                                       container_chunk(&r->image->weights[i], a)));
    int ni = 0, no = 0;
    for (size_t i = 0; i < r->image->ntensors; i++) {
        const struct npu_image_tensor *t = &r->image->tensors[i];
        if (t->role == CONTAINER_ROLE_INPUT)
            cr_assert_null(exec_dram_write(&dram, (int64_t)t->dram_offset,
                                           (struct span){.data = in[ni++], .size = t->bytes}));
    }
    struct exec_job job = {.code = r->image->code,
                           .dram = &dram,
                           .dram_bytes = (int64_t)r->image->dram_bytes,
                           .values = true};
    npu_status st = exec_run(x, &job);
    cr_assert_null(st, "%s: %s", r->image->name, npu_status_message(st));
    for (size_t i = 0; i < r->image->ntensors; i++) {
        const struct npu_image_tensor *t = &r->image->tensors[i];
        if (t->role == CONTAINER_ROLE_OUTPUT)
            cr_assert_null(
                exec_dram_read(&dram, (int64_t)t->dram_offset, out[no++], (int64_t)t->bytes));
    }
    exec_free(x);
    exec_dram_deinit(&dram);
    arena_free(a);
}

static void check(struct graph *(*make)(struct arena *), const char *target, int level,
                  enum isa_dtype dtype, double tolerance) {
    struct arena *a = arena_new();
    static float input[8192], want[8192];
    static unsigned char narrow[32768], got[32768];
    seed = 99;
    struct graph *g = make(a);
    int64_t n = graph_value_elems(g->inputs[0]), m = graph_value_elems(g->outputs[0]);
    for (int64_t i = 0; i < n; i++)
        input[i] = number();
    cr_assert_null(graph_eval(g, (const void *[]){input}, (void *[]){want}, a));
    struct npuc_options o = {.target = target, .dtype = "auto"};
    pass_options_init(&o.pass);
    o.pass.level = level;
    o.pass.dtype = dtype;
    struct npuc_result r = {.graph = g};
    cr_assert_null(hw_load(target, &r.hw));
    npu_status st = passes_run(g, &o.pass, &r.passes);
    cr_assert_null(st, "%s", npu_status_message(st));
    st = npuc_back_end(&o, a, &r);
    cr_assert_null(st, "%s -O%d: %s", target, level, npu_status_message(st));
    enum isa_dtype t = g->inputs[0]->dtype;
    for (int64_t i = 0; i < n; i++)
        num_store_f32((int)t, narrow, i, input[i]);
    execute(&r, (const void *[]){narrow}, (void *[]){got});
    for (int64_t i = 0; i < m; i++) {
        double y = (double)num_load_f32((int)g->outputs[0]->dtype, got, i);
        cr_assert(fabs(y - (double)want[i]) <= tolerance * (1 + fabs((double)want[i])),
                  "%s %s -O%d %s element %lld: %g, expected %g", g->name, target, level,
                  isa_dtype_name((int)t), (long long)i, y, (double)want[i]);
    }
    arena_free(a);
}

Test(path, residual_block) {
    static const char *const targets[] = {"tiny", "edge", "mid", "server"};
    for (int t = 0; t < 4; t++)
        for (int level = 0; level <= 3; level++)
            check(resnet_block, targets[t], level, ISA_DTYPE_NONE, 1e-5);
    for (int t = 0; t < 4; t++)
        check(resnet_block, targets[t], 2, ISA_F16, 1e-2);
}

Test(path, attention_block) {
    static const char *const targets[] = {"tiny", "edge", "mid", "server"};
    for (int t = 0; t < 4; t++)
        for (int level = 0; level <= 3; level++)
            check(attention, targets[t], level, ISA_DTYPE_NONE, 1e-5);
    for (int t = 0; t < 4; t++)
        check(attention, targets[t], 2, ISA_F16, 2e-2);
}

Test(path, detector_block) {
    static const char *const targets[] = {"tiny", "edge", "mid", "server"};
    for (int t = 0; t < 4; t++)
        for (int level = 0; level <= 3; level++)
            check(detector, targets[t], level, ISA_DTYPE_NONE, 1e-5);
    for (int t = 0; t < 4; t++)
        check(detector, targets[t], 2, ISA_F16, 2e-2);
}
