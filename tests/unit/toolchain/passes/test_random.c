// SPDX-License-Identifier: Apache-2.0
//
// Random graphs of all kinds of nodes compute the same before and after all passes: to the last bit
// where no pass changes the order of roundings, within a tolerance otherwise.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "pass_run.h"
#include "runtime/base/str.h"

enum { MAX_VALUES = 64, MAX_ELEMS = 600 };

// What a graph may be made of.
struct recipe {
    bool smooth; // no steps: a small change of a value makes a small change of the result
    bool norms;  // batch normalisation
    int nodes;
};

struct maker {
    struct graph *g;
    struct recipe r;
    uint64_t state;
    struct graph_value *v[MAX_VALUES];
    int n;
};

static int draw(struct maker *m, int n) {
    m->state ^= m->state << 13, m->state ^= m->state >> 7, m->state ^= m->state << 17;
    return (int)((m->state >> 11) % (uint64_t)n);
}

static float number(struct maker *m) {
    return (float)(draw(m, 2001) - 1000) / 512.0f;
}

static int64_t bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static struct graph_value *constant(struct maker *m, int rank, const int64_t *dims, bool positive) {
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dims[d];
    float *data = ARENA_ARRAY(m->g->arena, float, (size_t)n);
    bool same = !positive && draw(m, 4) == 0;
    for (int64_t k = 0; k < n; k++)
        data[k] = same && k ? data[0] : positive ? 0.5f + fabsf(number(m)) : number(m);
    return graph_add_const(m->g, "c", ISA_F32, rank, dims, data);
}

static bool is_float(const struct graph_value *v) {
    return isa_dtype_is_float((int)v->dtype);
}

// Some floating value of this rank (0: any); NULL when there is none.
static struct graph_value *pick(struct maker *m, int rank) {
    for (int tries = 0; tries < 20; tries++) {
        int back = draw(m, 2) ? draw(m, m->n) : draw(m, m->n < 2 ? m->n : 2);
        struct graph_value *v = m->v[m->n - 1 - back]; // often one of the last
        if (is_float(v) && (!rank || v->rank == rank)) return v;
    }
    return NULL;
}

// Infers the node and keeps its result; too large or too small ones are dropped again.
static void keep(struct maker *m, struct graph_node *n) {
    npu_status st = graph_infer(m->g, n, graph_ops[n->op].text);
    cr_assert_null(st, "%s", npu_status_message(st));
    int64_t elems = graph_value_elems(n->outputs[0]);
    if (elems < 1 || elems > MAX_ELEMS || m->n == MAX_VALUES)
        graph_remove_node(m->g, n);
    else
        m->v[m->n++] = n->outputs[0];
}

static struct graph_node *node(struct maker *m, enum graph_op op, int nin,
                               struct graph_value *const *in) {
    return graph_add_node(m->g, op, draw(m, 2) ? "node" : NULL, nin, in, NULL);
}

// ---- elementwise

// An operand that broadcasts with x: a value, or a constant with some dimensions 1 or missing.
static struct graph_value *operand(struct maker *m, const struct graph_value *x) {
    if (draw(m, 2)) {
        struct graph_value *v = pick(m, 0);
        bool fits = v && v->rank <= x->rank;
        for (int d = 0; fits && d < v->rank; d++) {
            int64_t a = v->dims[d], b = x->dims[x->rank - v->rank + d];
            fits = a == b || a == 1 || b == 1;
        }
        if (fits) return v;
    }
    int skip = draw(m, x->rank + 1);
    int64_t dims[GRAPH_MAX_RANK];
    for (int d = skip; d < x->rank; d++)
        dims[d - skip] = draw(m, 2) ? x->dims[d] : 1;
    return constant(m, x->rank - skip, dims, false);
}

static const int64_t smooth_ops[] = {ISA_VOP_ADD,  ISA_VOP_SUB,  ISA_VOP_RSUB, ISA_VOP_MUL,
                                     ISA_VOP_MAX,  ISA_VOP_MIN,  ISA_VOP_FMA,  ISA_VOP_ABS,
                                     ISA_VOP_NEG,  ISA_VOP_TANH, ISA_VOP_GELU, ISA_VOP_SIGMOID,
                                     ISA_VOP_SILU, ISA_VOP_SIN,  ISA_VOP_MOV};
static const int64_t step_ops[] = {ISA_VOP_FLOOR, ISA_VOP_ROUND, ISA_VOP_LT,  ISA_VOP_GE,
                                   ISA_VOP_SEL,   ISA_VOP_DIV,   ISA_VOP_MOD, ISA_VOP_EQ,
                                   ISA_VOP_EXP,   ISA_VOP_RDIV,  ISA_VOP_NOT, ISA_VOP_RECIP};

static void random_stages(struct maker *m, struct isa_chain *c, int nin) {
    int length = draw(m, 6) ? 1 + draw(m, 3) : draw(m, 7);
    bool special = false, saved = false;
    for (int k = 0; k < length; k++) {
        struct isa_stage *st = &c->st[k];
        do
            st->op = m->r.smooth || draw(m, 2) ? smooth_ops[draw(m, 15)] : step_ops[draw(m, 12)];
        while (special && isa_vop_is_sf((int)st->op));
        special |= isa_vop_is_sf((int)st->op);
        int64_t *src[] = {&st->a, &st->b};
        for (int i = 0; i < isa_vop_operands((int)st->op); i++) {
            int which = draw(m, 8);
            *src[i] = which < 4 && nin > 1  ? ISA_SRC_IN1 + draw(m, nin - 1)
                      : which == 5          ? ISA_SRC_IN0
                      : which == 6 && saved ? ISA_SRC_TMP
                      : which == 7          ? ISA_SRC_ACC
                                            : ISA_SRC_IMM0 + draw(m, 4);
        }
        st->save = draw(m, 6) == 0;
        saved |= st->save != 0;
    }
    for (int k = 0; k < ISA_IMMS; k++)
        c->imm[k] = bits(number(m));
}

static void make_map(struct maker *m) {
    struct graph_value *x = pick(m, 0);
    if (!x) return;
    struct graph_value *in[3] = {x, operand(m, x), NULL};
    int nin = 1 + draw(m, 3);
    in[2] = operand(m, in[0]);
    if (nin > 1 && draw(m, 3) == 0) {
        struct graph_value *t = in[0];
        in[0] = in[1];
        in[1] = t;
    }
    int rank = 0; // three operands may not fit although each pair does
    for (int k = 0; k < nin; k++)
        rank = in[k]->rank > rank ? in[k]->rank : rank;
    for (int d = 1; d <= rank; d++) {
        int64_t size = 1;
        for (int k = 0; k < nin; k++) {
            int64_t has = d <= in[k]->rank ? in[k]->dims[in[k]->rank - d] : 1;
            if (has != 1 && size != 1 && has != size) return;
            if (has != 1) size = has;
        }
    }
    struct graph_node *n = node(m, GRAPH_MAP, nin, in);
    n->has_chain = true;
    random_stages(m, &n->chain, nin);
    if (!m->r.smooth && draw(m, 8) == 0) graph_set_int(m->g, n, GRAPH_ATTR_DTYPE, ISA_BOOL);
    if (!m->r.smooth && draw(m, 8) == 0) graph_set_int(m->g, n, GRAPH_ATTR_DTYPE, ISA_I64);
    keep(m, n);
}

// Integer and boolean values as operands of integer chains, or back to f32.
static void make_integer_map(struct maker *m) {
    static const int64_t ops[] = {ISA_VOP_ADD, ISA_VOP_MUL, ISA_VOP_SUB, ISA_VOP_AND, ISA_VOP_XOR,
                                  ISA_VOP_MAX, ISA_VOP_DIV, ISA_VOP_MOD, ISA_VOP_LT,  ISA_VOP_SHR};
    for (int tries = 0; tries < 10; tries++) {
        struct graph_value *v = m->v[draw(m, m->n)], *in[] = {v, v};
        if (is_float(v)) continue;
        bool back = draw(m, 3) == 0;
        struct graph_node *n = node(m, GRAPH_MAP, back ? 1 : 1 + draw(m, 2), in);
        n->has_chain = true;
        if (back) {
            graph_set_int(m->g, n, GRAPH_ATTR_DTYPE, ISA_F32);
            if (draw(m, 2)) n->chain.st[0] = (struct isa_stage){ISA_VOP_MUL, ISA_SRC_IMM0, 0, 0};
            n->chain.imm[0] = bits(number(m));
        } else {
            for (int k = 0; k <= draw(m, 3); k++)
                n->chain.st[k] =
                    (struct isa_stage){ops[draw(m, 10)],
                                       n->nin == 2 && draw(m, 2) ? ISA_SRC_IN1 : ISA_SRC_IMM1, 0,
                                       0};
            n->chain.imm[1] = (int64_t)(uint32_t)(draw(m, 20) - 10);
            if (draw(m, 4) == 0) graph_set_int(m->g, n, GRAPH_ATTR_DTYPE, ISA_BOOL);
        }
        keep(m, n);
        return;
    }
}

// ---- kernels

static void make_conv(struct maker *m) {
    struct graph_value *x = pick(m, 4);
    if (!x || x->dims[2] < 2 || x->dims[3] < 2) return;
    bool transposed = draw(m, 4) == 0;
    int64_t group = x->dims[1] % 2 == 0 && draw(m, 3) == 0 ? 2 : 1, k = 1 + draw(m, 2);
    int64_t out = group * (1 + draw(m, 2)), strides[] = {1 + draw(m, 2), 1 + draw(m, 2)};
    int64_t w[] = {out, x->dims[1] / group, k, k}, pads[] = {draw(m, 2), 0, draw(m, 2), 1};
    if (transposed) w[0] = x->dims[1], w[1] = out / group, pads[0] = pads[2] = pads[3] = 0;
    struct graph_value *in[] = {x, constant(m, 4, w, false)};
    struct graph_node *n = node(m, transposed ? GRAPH_CONVT : GRAPH_CONV, 2, in);
    graph_set_ints(m->g, n, GRAPH_ATTR_STRIDES, 2, strides);
    graph_set_ints(m->g, n, GRAPH_ATTR_PADS, 4, pads);
    graph_set_int(m->g, n, GRAPH_ATTR_GROUP, group);
    keep(m, n);
}

static void make_norm(struct maker *m) {
    struct graph_value *x = pick(m, draw(m, 2) ? 4 : 0);
    if (!x || x->rank < 2) return;
    int64_t c[] = {x->dims[1]};
    struct graph_value *in[] = {x, constant(m, 1, c, false), constant(m, 1, c, false),
                                constant(m, 1, c, false), constant(m, 1, c, true)};
    struct graph_node *n = node(m, GRAPH_BATCHNORM, 5, in);
    graph_set_float(m->g, n, GRAPH_ATTR_EPSILON, 1e-3);
    keep(m, n);
}

static void make_pool(struct maker *m) {
    static const char *const modes[] = {"max", "avg", "avgpad"};
    struct graph_value *x = pick(m, 4);
    if (!x || x->dims[2] < 2 || x->dims[3] < 2) return;
    struct graph_node *n = node(m, GRAPH_POOL, 1, &x);
    int64_t kernel[] = {2, 1 + draw(m, 2)}, strides[] = {1 + draw(m, 2), 1};
    graph_set_word(m->g, n, GRAPH_ATTR_MODE, modes[draw(m, 3)]);
    graph_set_ints(m->g, n, GRAPH_ATTR_KERNEL, 2, kernel);
    graph_set_ints(m->g, n, GRAPH_ATTR_STRIDES, 2, strides);
    keep(m, n);
}

static void make_matmul(struct maker *m) {
    struct graph_value *x = pick(m, 0);
    if (!x || x->rank < 2) return;
    int64_t w[] = {x->dims[x->rank - 1], 1 + draw(m, 5)};
    struct graph_value *in[] = {x, draw(m, 3) ? constant(m, 2, w, false) : x};
    struct graph_node *n = node(m, GRAPH_MATMUL, 2, in);
    if (in[1] == x) graph_set_int(m->g, n, GRAPH_ATTR_TRANS_B, 1);
    keep(m, n);
}

static void make_reduction(struct maker *m) {
    static const char *const modes[] = {"sum", "mean", "max", "min", "argmax"};
    struct graph_value *x = pick(m, 0);
    if (!x || x->rank < 1) return;
    int64_t axis = draw(m, x->rank);
    if (draw(m, 3) == 0) {
        struct graph_node *s = node(m, GRAPH_SOFTMAX, 1, &x);
        graph_set_int(m->g, s, GRAPH_ATTR_AXIS, axis);
        keep(m, s);
        return;
    }
    struct graph_node *n = node(m, GRAPH_REDUCE, 1, &x);
    graph_set_word(m->g, n, GRAPH_ATTR_MODE, modes[draw(m, m->r.smooth ? 4 : 5)]);
    graph_set_ints(m->g, n, GRAPH_ATTR_AXES, 1, &axis);
    graph_set_int(m->g, n, GRAPH_ATTR_KEEPDIMS, draw(m, 2));
    keep(m, n);
}

// ---- moves

static void make_transpose(struct maker *m, struct graph_value *x) {
    int64_t perm[GRAPH_MAX_RANK];
    for (int d = 0; d < x->rank; d++) {
        int at = draw(m, d + 1);
        perm[d] = perm[at];
        perm[at] = d;
    }
    struct graph_node *n = node(m, GRAPH_TRANSPOSE, 1, &x);
    graph_set_ints(m->g, n, GRAPH_ATTR_PERM, x->rank, perm);
    keep(m, n);
}

static void make_slice(struct maker *m, struct graph_value *x) {
    int64_t starts[GRAPH_MAX_RANK], sizes[GRAPH_MAX_RANK], steps[GRAPH_MAX_RANK];
    for (int d = 0; d < x->rank; d++) {
        bool whole = draw(m, 3) > 0, back = draw(m, 4) == 0;
        sizes[d] = whole ? x->dims[d] : 1 + draw(m, (int)x->dims[d]);
        steps[d] = back ? -1 : 1;
        starts[d] = back ? sizes[d] - 1 : x->dims[d] - sizes[d];
    }
    struct graph_node *n = node(m, GRAPH_SLICE, 1, &x);
    graph_set_ints(m->g, n, GRAPH_ATTR_STARTS, x->rank, starts);
    graph_set_ints(m->g, n, GRAPH_ATTR_SIZES, x->rank, sizes);
    graph_set_ints(m->g, n, GRAPH_ATTR_STEPS, x->rank, steps);
    keep(m, n);
}

static void make_pad(struct maker *m, struct graph_value *x) {
    int64_t before[GRAPH_MAX_RANK], after[GRAPH_MAX_RANK];
    bool none = draw(m, 3) == 0;
    for (int d = 0; d < x->rank; d++) {
        before[d] = none ? 0 : draw(m, 2);
        after[d] = none ? 0 : draw(m, 2);
    }
    struct graph_node *n = node(m, GRAPH_PAD, 1, &x);
    graph_set_ints(m->g, n, GRAPH_ATTR_PADS_BEFORE, x->rank, before);
    graph_set_ints(m->g, n, GRAPH_ATTR_PADS_AFTER, x->rank, after);
    graph_set_float(m->g, n, GRAPH_ATTR_VALUE, 0.5);
    keep(m, n);
}

static void make_shape(struct maker *m, struct graph_value *x) {
    int64_t flat[] = {graph_value_elems(x)}, dims[GRAPH_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    bool expand = draw(m, 3) == 0;
    struct graph_node *n = node(m, expand ? GRAPH_EXPAND : GRAPH_RESHAPE, 1, &x);
    if (expand) {
        for (int d = 0; d < x->rank; d++)
            if (dims[d] == 1) dims[d] = 1 + draw(m, 3);
        graph_set_ints(m->g, n, GRAPH_ATTR_SHAPE, x->rank, dims);
    } else if (draw(m, 3) == 0 || x->rank < 2) {
        graph_set_ints(m->g, n, GRAPH_ATTR_SHAPE, 1, flat);
    } else {
        int64_t t = dims[0];
        dims[0] = dims[x->rank - 1];
        dims[x->rank - 1] = t;
        graph_set_ints(m->g, n, GRAPH_ATTR_SHAPE, x->rank, draw(m, 2) ? x->dims : dims);
    }
    keep(m, n);
}

static void make_join(struct maker *m, struct graph_value *x) {
    struct graph_value *in[3] = {x, x, x};
    int64_t axis = draw(m, x->rank);
    for (int k = 1; k < 3; k++) {
        struct graph_value *v = pick(m, x->rank);
        bool fits = v && v->dtype == x->dtype;
        for (int d = 0; fits && d < x->rank; d++)
            fits = d == axis || v->dims[d] == x->dims[d];
        if (fits) in[k] = v;
    }
    struct graph_node *n = node(m, GRAPH_CONCAT, 1 + draw(m, 3), in);
    graph_set_int(m->g, n, GRAPH_ATTR_AXIS, axis);
    keep(m, n);
}

static void make_move(struct maker *m) {
    struct graph_value *x = draw(m, 4) ? pick(m, 0) : m->v[draw(m, m->n)];
    if (!x || x->rank < 1) return;
    int which = draw(m, 7);
    if (which < 2) {
        make_transpose(m, x);
    } else if (which == 2) {
        make_slice(m, x);
    } else if (which == 3) {
        make_pad(m, x);
    } else if (which == 4) {
        make_shape(m, x);
    } else if (which == 5) {
        make_join(m, x);
    } else {
        int64_t dims[] = {2}, *index = ARENA_ARRAY(m->g->arena, int64_t, 2);
        index[0] = draw(m, (int)x->dims[0]);
        index[1] = -1;
        struct graph_value *in[] = {x, graph_add_const(m->g, "i", ISA_I64, 1, dims, index)};
        struct graph_node *n = node(m, draw(m, 2) ? GRAPH_GATHER : GRAPH_COPY, 1, in);
        if (n->op == GRAPH_GATHER) {
            graph_remove_node(m->g, n);
            n = node(m, GRAPH_GATHER, 2, in);
            graph_set_int(m->g, n, GRAPH_ATTR_AXIS, 0);
        }
        keep(m, n);
    }
}

// ---- whole graphs

static struct graph *random_graph(struct arena *a, uint64_t seed, struct recipe r) {
    struct maker m = {.g = graph_new(a, "random"),
                      .r = r,
                      .state = seed * 2654435761u + 88172645463325252u};
    const int64_t image[] = {1 + draw(&m, 2), 1 + draw(&m, 4), 4, 3}, rows[] = {4, 5};
    graph_add_input(m.g, m.v[m.n++] = graph_add_value(m.g, "image", ISA_F32, 4, image));
    graph_add_input(m.g, m.v[m.n++] = graph_add_value(m.g, "rows", ISA_F32, 2, rows));
    if (!r.smooth)
        graph_add_input(m.g, m.v[m.n++] = graph_add_value(m.g, "ints", ISA_I64, 2, rows));
    if (draw(&m, 4) == 0) m.v[m.n++] = constant(&m, 2, rows, false);
    for (int k = 0; k < r.nodes && m.n < MAX_VALUES; k++) {
        int which = draw(&m, 16);
        if (which < 6)
            make_map(&m);
        else if (which < 8)
            make_conv(&m);
        else if (which == 8)
            make_pool(&m);
        else if (which == 9)
            make_matmul(&m);
        else if (which == 10)
            make_reduction(&m);
        else if (which == 11 && r.norms)
            make_norm(&m);
        else if (which == 12 && !r.smooth)
            make_integer_map(&m);
        else
            make_move(&m);
    }
    for (int k = 0; k < m.n; k++)
        if (k == m.n - 1 || draw(&m, 8) == 0) graph_add_output(m.g, m.v[k]);
    return m.g;
}

// Calls of one to four nodes.
static void number_calls(struct graph *g, uint64_t seed) {
    int left = 0, call = 0;
    graph_add_call(g, "all", "op", NULL);
    for (struct graph_node *n = g->first; n; n = n->next) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if (left == 0) {
            left = 1 + (int)(seed >> 40 & 3);
            call = g->ncall > 1 || call ? graph_add_call(g, n->name, "op", g->last) : 1;
        }
        n->call = call;
        left--;
    }
}

static void compare(struct recipe r, const struct pass_options *o, int rounds, uint64_t seed,
                    double tolerance) {
    int fused = 0;
    for (int round = 0; round < rounds; round++) {
        struct arena *a = arena_new();
        struct graph *before = random_graph(a, seed + (uint64_t)round, r);
        struct graph *after = random_graph(a, seed + (uint64_t)round, r);
        struct pass_log log = {0};
        cr_assert_null(graph_verify(before, "random"));
        if (o->eager) number_calls(after, seed + (uint64_t)round);
        run_passes(after, o, &log);
        fused += log.fused;
        struct str text = {0};
        str_printf(&text, "round %d\n", round);
        graph_print(before, &text);
        str_puts(&text, "became\n");
        graph_print(after, &text);
        check_same(before, after, tolerance, a, str_text(&text));
        str_free(&text);
        arena_free(a);
    }
    cr_expect(o->level == 0 || fused > rounds / 10, "%d fusions in %d graphs", fused, rounds);
}

Test(random_graphs, keep_every_bit) {
    struct pass_options o;
    pass_options_init(&o);
    skip_rounding(&o);
    compare((struct recipe){.nodes = 24}, &o, 400, 1, 0);
}

Test(random_graphs, keep_every_bit_without_optimisation) {
    struct pass_options o;
    pass_options_init(&o);
    o.level = 0;
    compare((struct recipe){.nodes = 24}, &o, 100, 100000, 0);
}

Test(random_graphs, keep_every_bit_call_by_call) {
    struct pass_options o;
    pass_options_init(&o);
    skip_rounding(&o);
    o.eager = true;
    compare((struct recipe){.nodes = 24}, &o, 400, 300000, 0);
    o.level = 0;
    compare((struct recipe){.nodes = 24}, &o, 50, 310000, 0);
}

// Each skippable pass may be left out.
Test(random_graphs, keep_every_bit_without_one_pass) {
    for (int id = 0; id < PASS_COUNT; id++) {
        if (!passes[id].skippable) continue;
        struct pass_options o;
        pass_options_init(&o);
        skip_rounding(&o);
        o.skip[id] = true;
        if (id == PASS_fuse_map || id == PASS_fuse_epilogue) o.level = 0;
        compare((struct recipe){.nodes = 24}, &o, 30, 200000 + 1000u * (unsigned)id, 0);
    }
}

Test(random_graphs, with_scales_folded) {
    struct pass_options o;
    pass_options_init(&o);
    compare((struct recipe){.smooth = true, .norms = true, .nodes = 16}, &o, 300, 300000, 1e-3);
}

Test(random_graphs, in_f16) {
    struct pass_options o;
    pass_options_init(&o);
    o.dtype = ISA_F16;
    compare((struct recipe){.smooth = true, .nodes = 7}, &o, 300, 400000, 0.06);
}
