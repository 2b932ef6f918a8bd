// SPDX-License-Identifier: Apache-2.0
//
// ATTENTION: what its shape rule refuses, and its reference kernel against plain loops in f64.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "toolchain/graph/graph.h"

static struct arena *arena;
static struct graph *g;
static uint64_t seed;

static void begin(void) {
    arena = arena_new();
    g = graph_new(arena, "test");
    seed = 88172645463325252u;
}

static void end(void) {
    arena_free(arena);
}

TestSuite(attention, .init = begin, .fini = end);

static int draw(int n) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (int)((seed >> 11) % (uint64_t)n);
}

static struct graph_value *input(enum isa_dtype t, int rank, const int64_t *dims) {
    struct graph_value *v = graph_add_value(g, "x", t, rank, dims);
    graph_add_input(g, v);
    return v;
}
#define IN(t, ...) \
    input(ISA_##t, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})

static struct graph_node *node(int n, struct graph_value *const *in) {
    struct graph_node *a = graph_add_node(g, GRAPH_ATTENTION, "a", n, in, NULL);
    graph_set_float(g, a, GRAPH_ATTR_SCALE, 0.5);
    return a;
}

static void refuses(struct graph_node *n, const char *part) {
    npu_status st = graph_infer(g, n, "y");
    cr_assert_not_null(st, "accepted, expected: %s", part);
    cr_expect(strstr(npu_status_message(st), part), "'%s' lacks '%s'", npu_status_message(st),
              part);
    npu_status_free(st);
}

Test(attention, shapes) {
    struct graph_value *q = IN(F16, 2, 6, 3, 4), *k = IN(F16, 2, 2, 5, 4), *v = IN(F16, 2, 2, 5, 7);
    struct graph_node *n = node(3, (struct graph_value *[]){q, k, v});
    npu_status st = graph_infer(g, n, "y");
    cr_assert_null(st, "%s", npu_status_message(st));
    const struct graph_value *y = n->outputs[0];
    cr_assert(y->rank == 4 && y->dims[0] == 2 && y->dims[1] == 6 && y->dims[2] == 3 &&
              y->dims[3] == 7 && y->dtype == ISA_F16);
    refuses(node(3, (struct graph_value *[]){q, k, IN(F32, 2, 2, 5, 7)}), "one type");
    refuses(node(3, (struct graph_value *[]){IN(I32, 2, 6, 3, 4), k, v}), "floating operands");
    refuses(node(3, (struct graph_value *[]){q, k, IN(F16, 2, 2, 6, 7)}), "are no queries");
    refuses(node(3, (struct graph_value *[]){q, IN(F16, 2, 2, 5, 3), v}), "are no queries");
    refuses(node(3, (struct graph_value *[]){q, IN(F16, 2, 5, 4), v}), "are no queries");
    refuses(node(3, (struct graph_value *[]){q, IN(F16, 2, 4, 5, 4), IN(F16, 2, 4, 5, 7)}),
            "6 query heads are no multiple of 4");
    refuses(node(3, (struct graph_value *[]){q, IN(F16, 2, 2, 0, 4), IN(F16, 2, 2, 0, 7)}),
            "over no keys");
    refuses(node(4, (struct graph_value *[]){q, k, v, IN(BOOL, 4, 5)}), "does not broadcast");
    refuses(node(4, (struct graph_value *[]){q, k, v, IN(BOOL, 3, 1, 1, 1, 5)}),
            "does not broadcast");
}

Test(attention, attributes) {
    struct graph_value *q = IN(F32, 1, 3, 4), *in[3] = {q, q, q};
    struct graph_node *n = graph_add_node(g, GRAPH_ATTENTION, "a", 3, in, NULL);
    refuses(n, "scale is missing");
    n = node(3, in);
    graph_set_ints(g, n, GRAPH_ATTR_WINDOW, 2, (int64_t[]){1, 1});
    refuses(n, "window has 2 items");
    n = node(3, in);
    graph_set_ints(g, n, GRAPH_ATTR_WINDOW, 3, (int64_t[]){1, -2, 0});
    refuses(n, "window[1] is -2");
    n = node(3, in);
    graph_set_float(g, n, GRAPH_ATTR_SOFTCAP, -1);
    refuses(n, "softcap is -1");
    n = node(3, in);
    graph_set_float(g, n, GRAPH_ATTR_FILL, (double)NAN);
    refuses(n, "fill is");
}

// ---- the kernel

struct problem {
    int64_t b, h, hk, m, s, d, dv, mask[4];
    int window, kind; // window: which sides; kind: no mask, integers, floats
    int64_t w[3];
    double fill, cap;
    bool zero;
};

static struct problem any_problem(void) {
    struct problem p = {.b = 1 + draw(2), .hk = 1 + draw(2), .m = 1 + draw(6), .s = 1 + draw(9)};
    p.h = p.hk * (1 + draw(3));
    p.d = 1 + draw(5);
    p.dv = 1 + draw(5);
    p.window = draw(4);
    p.kind = draw(3);
    for (int k = 0; k < 2; k++)
        p.w[k] = p.window >> k & 1 ? draw(4) : -1;
    p.w[2] = draw(7) - 3;
    p.fill = draw(2) ? -HUGE_VAL : -3;
    p.cap = draw(3) ? 0 : 1.5;
    p.zero = draw(2);
    int64_t full[4] = {p.b, p.h, p.m, p.s};
    for (int k = 0; k < 4; k++)
        p.mask[k] = draw(2) ? full[k] : 1;
    return p;
}

static float *numbers(int64_t n) {
    float *f = ARENA_ARRAY(arena, float, (size_t)n);
    for (int64_t k = 0; k < n; k++)
        f[k] = (float)(draw(2001) - 1000) / 500.0f;
    return f;
}

static struct graph_value *floats(int64_t a, int64_t b, int64_t c, int64_t d) {
    return graph_add_const(g, "c", ISA_F32, 4, (int64_t[]){a, b, c, d}, numbers(a * b * c * d));
}

static struct graph_value *any_mask(const struct problem *p) {
    int64_t n = p->mask[0] * p->mask[1] * p->mask[2] * p->mask[3];
    if (p->kind == 2) return floats(p->mask[0], p->mask[1], p->mask[2], p->mask[3]);
    int16_t *keep = ARENA_ARRAY(arena, int16_t, (size_t)n);
    for (int64_t k = 0; k < n; k++)
        keep[k] = (int16_t)(draw(3) * 300);
    return graph_add_const(g, "m", ISA_I16, 4, p->mask, keep);
}

static double at(const struct graph_value *v, int64_t a, int64_t b, int64_t c, int64_t d) {
    int64_t x[4] = {a, b, c, d}, i = 0;
    for (int k = 0; k < 4; k++)
        i = i * v->dims[k] + (v->dims[k] == 1 ? 0 : x[k]);
    return v->dtype == ISA_I16 ? (double)((const int16_t *)v->data)[i]
                               : (double)((const float *)v->data)[i];
}

// The score of one key; *hidden says whether it is.
static double score(const struct problem *p, struct graph_value *const *in, const int64_t x[4],
                    int64_t key_head, bool *hidden) {
    double s = 0;
    int64_t i = x[2] + p->w[2], j = x[3];
    for (int64_t d = 0; d < p->d; d++)
        s += at(in[0], x[0], x[1], x[2], d) * at(in[1], x[0], key_head, j, d);
    s *= 0.5;
    if (p->cap > 0) s = p->cap * tanh(s / p->cap);
    if (p->kind == 2) s += at(in[3], x[0], x[1], x[2], j);
    *hidden = (p->kind == 1 && !(fabs(at(in[3], x[0], x[1], x[2], j)) > 0)) ||
              (p->w[0] >= 0 && j < i - p->w[0]) || (p->w[1] >= 0 && j > i + p->w[1]);
    return *hidden ? p->fill : s;
}

static void check_row(const struct problem *p, struct graph_value *const *in, const float *got,
                      int64_t b, int64_t h, int64_t m) {
    double s[16], top = -HUGE_VAL, sum = 0;
    bool seen = false, hidden;
    int64_t key_head = h / (p->h / p->hk);
    for (int64_t j = 0; j < p->s; j++) {
        s[j] = score(p, in, (int64_t[]){b, h, m, j}, key_head, &hidden);
        seen |= !hidden;
        top = fmax(top, s[j]);
    }
    for (int64_t j = 0; j < p->s; j++)
        sum += exp(s[j] - top);
    for (int64_t e = 0; e < p->dv; e++) {
        double want = 0;
        for (int64_t j = 0; j < p->s; j++)
            want += exp(s[j] - top) / sum * at(in[2], b, key_head, j, e);
        if (!seen && p->zero) want = 0;
        double y = (double)got[((b * p->h + h) * p->m + m) * p->dv + e];
        cr_assert(isnan(want) ? isnan(y) : fabs(y - want) < 2e-6,
                  "[%lld,%lld,%lld,%lld] %g, not %g", (long long)b, (long long)h, (long long)m,
                  (long long)e, y, want);
    }
}

static void check_problem(const struct problem *p) {
    struct graph_value *in[4] = {floats(p->b, p->h, p->m, p->d), floats(p->b, p->hk, p->s, p->d),
                                 floats(p->b, p->hk, p->s, p->dv), p->kind ? any_mask(p) : NULL};
    struct graph_node *n = node(p->kind ? 4 : 3, in);
    if (p->window || draw(2)) graph_set_ints(g, n, GRAPH_ATTR_WINDOW, 3, p->w);
    if (!isinf(p->fill)) graph_set_float(g, n, GRAPH_ATTR_FILL, p->fill);
    if (p->cap > 0) graph_set_float(g, n, GRAPH_ATTR_SOFTCAP, p->cap);
    if (p->zero) graph_set_int(g, n, GRAPH_ATTR_ZERO_ROWS, 1);
    npu_status st = graph_infer(g, n, "y");
    cr_assert_null(st, "%s", npu_status_message(st));
    const void *data[4];
    for (int k = 0; k < n->nin; k++)
        data[k] = in[k]->data;
    void *out = arena_alloc(arena, (size_t)graph_value_bytes(n->outputs[0]) + 1);
    st = graph_eval_node(n, data, &out, arena);
    cr_assert_null(st, "%s", npu_status_message(st));
    for (int64_t row = 0; row < p->b * p->h * p->m; row++)
        check_row(p, in, out, row / p->m / p->h, row / p->m % p->h, row % p->m);
}

Test(attention, kernel_is_softmax_of_masked_scores_times_values) {
    for (int k = 0; k < 400; k++) {
        struct problem p = any_problem();
        check_problem(&p);
    }
}

// Keys outside the window are not even read.
Test(attention, nan_of_hidden_keys_does_not_count) {
    float k[2] = {1, NAN}, v[2] = {3, NAN}, q[1] = {1};
    struct graph_value *in[3] = {graph_add_const(g, "q", ISA_F32, 3, (int64_t[]){1, 1, 1}, q),
                                 graph_add_const(g, "k", ISA_F32, 3, (int64_t[]){1, 2, 1}, k),
                                 graph_add_const(g, "v", ISA_F32, 3, (int64_t[]){1, 2, 1}, v)};
    struct graph_node *n = node(3, in);
    graph_set_ints(g, n, GRAPH_ATTR_WINDOW, 3, (int64_t[]){-1, 0, 0});
    cr_assert_null(graph_infer(g, n, "y"));
    float y = 0;
    void *out = &y;
    cr_assert_null(graph_eval_node(n, (const void *[]){q, k, v}, &out, arena));
    cr_assert(y > 2.999f && y < 3.001f);
}
