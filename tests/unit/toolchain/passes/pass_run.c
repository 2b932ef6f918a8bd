// SPDX-License-Identifier: Apache-2.0
//
// Runs passes over graphs and compares what the reference kernels make of them before and after.

#include "pass_run.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/str.h"

static void must(npu_status st, const char *what) {
    struct str out = {0};
    npu_status_print(st, NULL, &out);
    cr_assert_null(st, "%s\n%s", what, str_text(&out));
    str_free(&out);
}

struct graph *parse_graph(struct arena *a, const char *text) {
    struct graph *g = NULL;
    must(text_graph_parse(a, (struct span){(const uint8_t *)text, strlen(text)}, "test.npt", &g),
         text);
    return g;
}

void run_passes(struct graph *g, const struct pass_options *o, struct pass_log *log) {
    struct str text = {0};
    graph_print(g, &text);
    must(passes_run(g, o, log), str_text(&text));
    str_free(&text);
}

void skip_rounding(struct pass_options *o) {
    static const enum pass_id ids[] = {PASS_affine, PASS_activation, PASS_norm, PASS_rotary,
                                       PASS_glu};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        o->skip[ids[i]] = true;
}

static double drawn(uint64_t *state, const struct graph_value *v) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    int64_t whole = (int64_t)((*state >> 20) % 2001) - 1000;
    if (v->dtype == ISA_BOOL) return (double)(whole & 1);
    if (v->index_limit) return (double)((whole + 1000) % v->index_limit);
    return isa_dtype_is_int((int)v->dtype) ? (double)(whole % 50) : (double)whole / 256.0;
}

static double element(const struct graph_value *v, const void *data, int64_t k) {
    if (isa_dtype_is_int((int)v->dtype)) return (double)num_load_i64((int)v->dtype, data, k);
    return (double)num_load_f32((int)v->dtype, data, k);
}

void evaluate_graph(const struct graph *g, const struct graph *like, uint64_t seed, struct arena *a,
                    double **outputs) {
    const void **in = ARENA_ARRAY(a, const void *, (size_t)g->ninput + 1);
    void **out = ARENA_ARRAY(a, void *, (size_t)g->noutput + 1);
    for (int i = 0; i < g->ninput; i++) {
        const struct graph_value *v = g->inputs[i];
        uint64_t state = seed * 7919 + (uint64_t)i * 104729 + 1;
        uint8_t *data = arena_alloc(a, (size_t)graph_value_bytes(v) + 1);
        for (int64_t k = 0; k < graph_value_elems(v); k++) {
            double x = drawn(&state, v);
            if (isa_dtype_is_int((int)v->dtype)) {
                num_store_i64((int)v->dtype, data, k, (int64_t)x);
                continue;
            }
            float f = (float)x;
            if (like) f = num_round_to((int)like->inputs[i]->dtype, f);
            num_store_f32((int)v->dtype, data, k, f);
        }
        in[i] = data;
    }
    for (int i = 0; i < g->noutput; i++)
        out[i] = arena_alloc(a, (size_t)graph_value_bytes(g->outputs[i]) + 1);
    must(graph_eval(g, in, out, a), g->name);
    for (int i = 0; i < g->noutput; i++) {
        int64_t n = graph_value_elems(g->outputs[i]);
        outputs[i] = ARENA_ARRAY(a, double, (size_t)n + 1);
        for (int64_t k = 0; k < n; k++)
            outputs[i][k] = element(g->outputs[i], out[i], k);
    }
}

static bool close(double a, double b, double tolerance) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b || (tolerance > 0.01 && fabs(a) > 60000); // f16
    return fabs(a - b) <= tolerance * (1 + fabs(a));
}

void check_same(const struct graph *before, const struct graph *after, double tolerance,
                struct arena *a, const char *what) {
    cr_assert_eq(before->ninput, after->ninput);
    cr_assert_eq(before->noutput, after->noutput);
    double **x = ARENA_ARRAY(a, double *, (size_t)before->noutput);
    double **y = ARENA_ARRAY(a, double *, (size_t)before->noutput);
    evaluate_graph(before, after, 3, a, x);
    evaluate_graph(after, before, 3, a, y);
    for (int i = 0; i < before->noutput; i++) {
        const struct graph_value *u = before->outputs[i], *v = after->outputs[i];
        cr_assert_str_eq(v->name, u->name);
        cr_assert_eq(v->rank, u->rank);
        cr_assert_eq(v->file_dtype, u->file_dtype);
        for (int d = 0; d < u->rank; d++)
            cr_assert_eq(v->dims[d], u->dims[d]);
        for (int64_t k = 0; k < graph_value_elems(u); k++)
            cr_assert(close(x[i][k], y[i][k], tolerance),
                      "%s\noutput %s, element %lld: %.9g became %.9g", what, u->name, (long long)k,
                      x[i][k], y[i][k]);
    }
}

struct graph *check_passes(struct arena *a, const char *text, const struct pass_options *o,
                           double tolerance) {
    struct graph *before = parse_graph(a, text), *after = parse_graph(a, text);
    struct pass_log log = {0};
    run_passes(after, o, &log);
    struct str out = {0};
    graph_print(after, &out);
    check_same(before, after, tolerance, a, str_text(&out));
    str_free(&out);
    return after;
}

int count_nodes(const struct graph *g) {
    int n = 0;
    for (const struct graph_node *at = g->first; at; at = at->next)
        n++;
    return n;
}

int count_ops(const struct graph *g, enum graph_op op) {
    int n = 0;
    for (const struct graph_node *at = g->first; at; at = at->next)
        n += at->op == op;
    return n;
}
