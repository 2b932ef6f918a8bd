// SPDX-License-Identifier: Apache-2.0
//
// RNN, GRU and LSTM, step after step. The inputs' part of all steps is one product:
//
//   P = X W' + Wb + Rb                      [T, B, gates * H]
//   for each step t: G = P[t] + h R'        [B, gates * H], then the gates' maps
//
// Backward directions walk from the last step. Where sequences are shorter than the input, a step
// that does not count for a sequence leaves its state as it was.

#include "toolchain/frontend/common/recurrent.h"

#include <stddef.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/common/functions.h"

// One direction's state while it is walked.
struct walk {
    const struct recurrent *r;
    const struct recurrent_weights *w;
    struct graph_value *p;  // [T, B, gates * H]
    struct graph_value *rb; // GRU, before_reset: R's bias of the hidden gate [H], else NULL
    struct graph_value *h, *c;
    struct graph_value *lengths; // [B, 1], or NULL
};

// Part of x along its first dimension: x[at .. at + count), the dimension dropped when count is 1
// and `drop`.
npu_status recurrent_rows(const struct build *b, struct graph_value *x, int64_t at, int64_t count,
                          bool drop, struct graph_value **out) {
    int64_t starts[GRAPH_MAX_RANK] = {at}, sizes[GRAPH_MAX_RANK], steps[GRAPH_MAX_RANK];
    for (int d = 0; d < x->rank; d++) {
        sizes[d] = d ? x->dims[d] : count;
        steps[d] = 1;
    }
    if (at + count > x->dims[0])
        return npu_fail(BAD_INPUT, "'%s' has %lld rows, %lld are needed", x->name,
                        (long long)x->dims[0], (long long)(at + count));
    NPU_TRY(build_slice(b, x, starts, sizes, steps, out));
    return drop ? build_reshape(b, *out, x->rank - 1, x->dims + 1, out) : NULL;
}

// Gate number k of g [B, gates * H].
static npu_status gate(const struct build *b, const struct recurrent *r, struct graph_value *g,
                       int k, int count, struct graph_value **out) {
    return build_slice(b, g, (int64_t[]){0, k * r->hidden},
                       (int64_t[]){r->batch, count * r->hidden}, (int64_t[]){1, 1}, out);
}

// P = X W' + biases. For GRU with before_reset the hidden gate's R bias stays apart.
static npu_status project(const struct build *b, struct graph_value *x, struct walk *w) {
    const struct recurrent *r = w->r;
    struct graph_value *bias, *rb = w->w->rb;
    int64_t width = r->gates * r->hidden;
    NPU_TRY(build_reshape(b, x, 2, (int64_t[]){r->steps * r->batch, r->in}, &x));
    NPU_TRY(build_matmul(b, x, w->w->w, false, true, &w->p));
    if (w->w->wb) {
        if (r->gates == 3 && r->before_reset) {
            struct graph_value *parts[2], *zero;
            NPU_TRY(recurrent_rows(b, rb, 0, 2 * r->hidden, false, &parts[0]));
            NPU_TRY(recurrent_rows(b, rb, 2 * r->hidden, r->hidden, false, &w->rb));
            zero = build_new_scalar(b, rb->dtype, 0);
            NPU_TRY(build_expand(b, zero, 1, &r->hidden, &parts[1]));
            NPU_TRY(build_concat(b, 2, parts, 0, &rb));
        }
        NPU_TRY(build_map2(b, "add in1", w->w->wb, rb, &bias));
        NPU_TRY(build_map(b, w->p->dtype, "add in1", NULL, 2, (struct graph_value *[]){w->p, bias},
                          &w->p));
    }
    return build_reshape(b, w->p, 3, (int64_t[]){r->steps, r->batch, width}, &w->p);
}

static npu_status apply(const struct build *b, const struct walk *w, int which,
                        struct graph_value *x, struct graph_value **out) {
    // The cell's own activation is not of a gate.
    const double limits[2] = {-w->w->clip, w->w->clip};
    if (w->w->clip > 0 && which < 2)
        NPU_TRY(build_map(b, ISA_DTYPE_NONE, "max $0; min $1", limits, 1, &x, &x));
    if (!strcmp(w->w->chain[which], "softplus")) return build_softplus(b, x, out);
    return build_map1(b, w->w->chain[which], x, out);
}

static npu_status step_rnn(const struct build *b, struct walk *w, struct graph_value *p) {
    struct graph_value *g;
    NPU_TRY(build_matmul(b, w->h, w->w->rec, false, true, &g));
    NPU_TRY(build_map2(b, "add in1", g, p, &g));
    return apply(b, w, 0, g, &w->h);
}

// Gates z, r, h. h' = (1 - z) * hh + z * h
static npu_status step_gru(const struct build *b, struct walk *w, struct graph_value *p) {
    const struct recurrent *r = w->r;
    struct graph_value *upper, *lower, *g, *part, *zr, *z, *reset, *hidden;
    NPU_TRY(recurrent_rows(b, w->w->rec, 0, 2 * r->hidden, false, &upper));
    NPU_TRY(recurrent_rows(b, w->w->rec, 2 * r->hidden, r->hidden, false, &lower));
    NPU_TRY(gate(b, r, p, 0, 2, &part));
    NPU_TRY(build_matmul(b, w->h, upper, false, true, &g));
    NPU_TRY(build_map2(b, "add in1", g, part, &g));
    NPU_TRY(apply(b, w, 0, g, &zr));
    NPU_TRY(gate(b, r, zr, 0, 1, &z));
    NPU_TRY(gate(b, r, zr, 1, 1, &reset));
    NPU_TRY(gate(b, r, p, 2, 1, &part));
    if (r->before_reset) {
        NPU_TRY(build_matmul(b, w->h, lower, false, true, &g));
        if (w->rb) NPU_TRY(build_map2(b, "add in1", g, w->rb, &g));
        NPU_TRY(build_map(b, g->dtype, "mul in1; add in2", NULL, 3,
                          (struct graph_value *[]){g, reset, part}, &g));
    } else {
        NPU_TRY(build_map2(b, "mul in1", w->h, reset, &g));
        NPU_TRY(build_matmul(b, g, lower, false, true, &g));
        NPU_TRY(build_map2(b, "add in1", g, part, &g));
    }
    NPU_TRY(apply(b, w, 1, g, &hidden));
    // hh + z * (h - hh)
    return build_map(b, hidden->dtype, "rsub in1; mul in2; add in0", NULL, 3,
                     (struct graph_value *[]){hidden, w->h, z}, &w->h);
}

// The gate's sum plus its peephole: peep row k times the cell.
static npu_status peephole(const struct build *b, struct walk *w, struct graph_value *g, int k,
                           struct graph_value **out) {
    *out = g;
    if (!w->w->peep) return NULL;
    struct graph_value *row;
    NPU_TRY(recurrent_rows(b, w->w->peep, k * w->r->hidden, w->r->hidden, false, &row));
    return build_map(b, g->dtype, "mul in1; add in2", NULL, 3,
                     (struct graph_value *[]){w->c, row, g}, out);
}

// Gates i, o, f, c. c' = f * c + i * g(c~), h' = o * h(c')
static npu_status step_lstm(const struct build *b, struct walk *w, struct graph_value *p) {
    const struct recurrent *r = w->r;
    struct graph_value *g, *i, *o, *f, *cell, *t;
    NPU_TRY(build_matmul(b, w->h, w->w->rec, false, true, &g));
    NPU_TRY(build_map2(b, "add in1", g, p, &g));
    NPU_TRY(gate(b, r, g, 3, 1, &cell));
    if (w->w->peep) {
        NPU_TRY(gate(b, r, g, 0, 1, &i));
        NPU_TRY(gate(b, r, g, 1, 1, &o));
        NPU_TRY(gate(b, r, g, 2, 1, &f));
        NPU_TRY(peephole(b, w, i, 0, &i));
        NPU_TRY(peephole(b, w, f, 2, &f));
        NPU_TRY(apply(b, w, 0, i, &i));
        NPU_TRY(apply(b, w, 0, f, &f));
    } else {
        NPU_TRY(gate(b, r, g, 0, 3, &t));
        NPU_TRY(apply(b, w, 0, t, &t));
        NPU_TRY(gate(b, r, t, 0, 1, &i));
        NPU_TRY(gate(b, r, t, 1, 1, &o));
        NPU_TRY(gate(b, r, t, 2, 1, &f));
    }
    if (w->w->couple) NPU_TRY(build_map1(b, "rsub 1", i, &f));
    NPU_TRY(apply(b, w, 1, cell, &cell));
    NPU_TRY(build_map2(b, "mul in1", i, cell, &t));
    NPU_TRY(build_map(b, f->dtype, "mul in1; add in2", NULL, 3,
                      (struct graph_value *[]){f, w->c, t}, &w->c));
    if (w->w->peep) {
        NPU_TRY(peephole(b, w, o, 1, &o));
        NPU_TRY(apply(b, w, 0, o, &o));
    }
    NPU_TRY(apply(b, w, 2, w->c, &t));
    return build_map2(b, "mul in1", o, t, &w->h);
}

// Known lengths have to be within the steps; those that are all of them are dropped.
static npu_status take_lengths(const struct build *b, struct walk *w) {
    struct graph_value *v = w->w->lengths;
    const struct recurrent *r = w->r;
    if (!v) return NULL;
    if (v->rank != 1 || v->dims[0] != r->batch || !isa_dtype_is_int(v->dtype))
        return npu_fail(BAD_INPUT, "the lengths '%s' are not %lld integers", v->name,
                        (long long)r->batch);
    bool whole = v->data;
    for (int64_t k = 0; v->data && k < r->batch; k++) {
        int64_t length = num_load_i64(v->dtype, v->data, k);
        if (length < 0 || length > r->steps)
            return npu_fail(BAD_INPUT, "length %lld of sequence %lld, expected 0 to %lld",
                            (long long)length, (long long)k, (long long)r->steps);
        whole = whole && length == r->steps;
    }
    return whole ? NULL : build_reshape(b, v, 2, (int64_t[]){r->batch, 1}, &w->lengths);
}

// Whether every element of a constant is true.
static bool all_true(const struct graph_value *v) {
    for (int64_t k = 0; v->data && k < graph_value_elems(v); k++)
        if (!num_load_i64(v->dtype, v->data, k)) return false;
    return v->data != NULL;
}

// State and result of step t, where `before` is the state before it.
static npu_status keep(const struct build *b, struct walk *w, const struct walk *before, int64_t t,
                       struct graph_value **y) {
    struct graph_value *counts;
    double step = (double)t;
    *y = w->h;
    if (!w->lengths) return NULL;
    NPU_TRY(build_map(b, ISA_BOOL, "gt $0", &step, 1, &w->lengths, &counts));
    if (all_true(counts)) return NULL;
    NPU_TRY(
        build_map(b, w->h->dtype, "sel in1 0", NULL, 2, (struct graph_value *[]){counts, w->h}, y));
    NPU_TRY(build_map(b, w->h->dtype, "sel in1 in2", NULL, 3,
                      (struct graph_value *[]){counts, w->h, before->h}, &w->h));
    if (w->r->gates != 4) return NULL;
    return build_map(b, w->c->dtype, "sel in1 in2", NULL, 3,
                     (struct graph_value *[]){counts, w->c, before->c}, &w->c);
}

npu_status recurrent_walk(const struct build *b, const struct recurrent *r, struct graph_value *x,
                          const struct recurrent_weights *weights, struct graph_value **h,
                          struct graph_value **c, struct graph_value **ys) {
    struct walk w = {.r = r, .w = weights, .h = *h, .c = r->gates == 4 ? *c : NULL};
    struct graph_value *zero = NULL;
    if (!w.h || (r->gates == 4 && !w.c)) {
        zero = build_new_scalar(b, x->dtype, 0);
        NPU_TRY(build_expand(b, zero, 2, (int64_t[]){r->batch, r->hidden}, &zero));
    }
    if (!w.h) w.h = zero;
    if (!w.c) w.c = zero;
    NPU_TRY(take_lengths(b, &w));
    NPU_TRY(project(b, x, &w));
    for (int64_t k = 0; k < r->steps; k++) {
        int64_t t = weights->backward ? r->steps - 1 - k : k;
        const struct walk before = w;
        struct graph_value *p;
        NPU_TRY(recurrent_rows(b, w.p, t, 1, true, &p));
        if (r->gates == 1) NPU_TRY(step_rnn(b, &w, p));
        if (r->gates == 3) NPU_TRY(step_gru(b, &w, p));
        if (r->gates == 4) NPU_TRY(step_lstm(b, &w, p));
        NPU_TRY(keep(b, &w, &before, t, &ys[t]));
    }
    *h = w.h;
    if (r->gates == 4) *c = w.c;
    return NULL;
}
