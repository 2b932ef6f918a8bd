// SPDX-License-Identifier: Apache-2.0
//
// RNN, GRU and LSTM, step after step. The inputs' part of all steps is one product:
//
//   P = X W' + Wb + Rb                      [T, B, gates * H]
//   for each step t: G = P[t] + h R'        [B, gates * H], then the gates' maps
//
// Backward directions walk from the last step. Sequences must all be of full length.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/onnx/import.h"

enum { STEPS_MAX = 4096, GATES_MAX = 4 };

struct rnn {
    int gates, nact; // gates of the cell; activation functions of a direction
    int64_t steps, batch, in, hidden;
    int directions;
    bool reverse_first, batch_first, before_reset;
    const char *chain[2 * 3]; // activations as chains, per direction
};

// One direction's state while it is walked.
struct walk {
    const struct rnn *r;
    int direction;
    struct graph_value *p;   // [T, B, gates * H]
    struct graph_value *rec; // [gates * H, H]
    struct graph_value *rb;  // GRU, linear_before_reset: R's bias of the hidden gate [H], else NULL
    struct graph_value *peep;  // LSTM: [3, H] or NULL
    struct graph_value *h, *c; // [B, H]
};

static const char *activation(const char *name) {
    static const struct {
        const char *name, *chain;
    } known[] = {{"sigmoid", "sigmoid"},
                 {"tanh", "tanh"},
                 {"relu", "max 0"},
                 {"Sigmoid", "sigmoid"},
                 {"Tanh", "tanh"},
                 {"Relu", "max 0"},
                 {"Softsign", "abs; add 1; rdiv in0"}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(known[k].name, name)) return known[k].chain;
    return NULL;
}

static npu_status read_activations(struct onnx_node *n, struct rnn *r) {
    static const char *const defaults[3][3] = {{"tanh"},
                                               {"sigmoid", "tanh"},
                                               {"sigmoid", "tanh", "tanh"}};
    const Onnx__AttributeProto *a = onnx_attr(n, "activations");
    int wanted = r->nact * r->directions;
    if (a && a->n_strings && a->n_strings != (size_t)wanted)
        return npu_fail(BAD_INPUT, "%zu activations, expected %d", a->n_strings, wanted);
    for (int k = 0; k < wanted; k++) {
        const char *name = defaults[r->nact - 1][k % r->nact];
        if (a && a->n_strings)
            name = arena_strndup(n->m->arena, (const char *)a->strings[k].data, a->strings[k].len);
        r->chain[k] = activation(name);
        if (!r->chain[k]) return npu_fail(UNSUPPORTED, "activation %s", name);
    }
    return NULL;
}

static npu_status read_rnn(struct onnx_node *n, int gates, int nact, struct rnn *r) {
    NPU_TRY(onnx_need(n, 3, 8));
    const struct graph_value *x = n->in[0], *w = n->in[1], *rec = n->in[2];
    const char *direction = onnx_string(n, "direction", "forward");
    bool both = !strcmp(direction, "bidirectional");
    *r = (struct rnn){.gates = gates, .nact = nact, .directions = both ? 2 : 1};
    r->reverse_first = !strcmp(direction, "reverse");
    r->batch_first = onnx_int(n, "layout", 0) != 0;
    r->before_reset = onnx_int(n, "linear_before_reset", 0) != 0;
    if (x->rank != 3 || w->rank != 3 || rec->rank != 3)
        return npu_fail(BAD_INPUT, "ranks %d, %d and %d of x, W and R, expected 3", x->rank,
                        w->rank, rec->rank);
    r->steps = x->dims[r->batch_first];
    r->batch = x->dims[!r->batch_first];
    r->in = x->dims[2];
    r->hidden = rec->dims[2];
    if (w->dims[0] != r->directions || rec->dims[0] != r->directions || w->dims[2] != r->in ||
        w->dims[1] != gates * r->hidden || rec->dims[1] != gates * r->hidden)
        return npu_fail(BAD_INPUT, "W and R do not fit %d directions, %d gates, %lld inputs",
                        r->directions, gates, (long long)r->in);
    if (onnx_int(n, "hidden_size", r->hidden) != r->hidden)
        return npu_fail(BAD_INPUT, "attribute hidden_size does not fit R");
    if (r->steps > STEPS_MAX || r->steps < 1)
        return npu_fail(UNSUPPORTED, "%lld steps, expected 1 to %d", (long long)r->steps,
                        STEPS_MAX);
    if (onnx_has(n, "clip")) return npu_fail(UNSUPPORTED, "attribute clip");
    if (onnx_int(n, "input_forget", 0)) return npu_fail(UNSUPPORTED, "attribute input_forget");
    if (onnx_given(n, 4)) {
        NPU_TRY(onnx_need_const(n, 4));
        for (int64_t k = 0; k < graph_value_elems(n->in[4]); k++)
            if (num_load_i64(n->in[4]->dtype, n->in[4]->data, k) != r->steps)
                return npu_fail(UNSUPPORTED, "sequences shorter than the input");
    }
    return read_activations(n, r);
}

// Part of x along its first dimension: x[at .. at + count), the dimension dropped when count is 1
// and `drop`.
static npu_status rows(struct onnx_node *n, struct graph_value *x, int64_t at, int64_t count,
                       bool drop, struct graph_value **out) {
    int64_t starts[GRAPH_MAX_RANK] = {at}, sizes[GRAPH_MAX_RANK], steps[GRAPH_MAX_RANK];
    for (int d = 0; d < x->rank; d++) {
        sizes[d] = d ? x->dims[d] : count;
        steps[d] = 1;
    }
    if (at + count > x->dims[0])
        return npu_fail(BAD_INPUT, "'%s' has %lld rows, %lld are needed", x->name,
                        (long long)x->dims[0], (long long)(at + count));
    NPU_TRY(onnx_slice(n, x, starts, sizes, steps, out));
    return drop ? onnx_reshape(n, *out, x->rank - 1, x->dims + 1, out) : NULL;
}

// Gate number k of g [B, gates * H].
static npu_status gate(struct onnx_node *n, const struct rnn *r, struct graph_value *g, int k,
                       int count, struct graph_value **out) {
    return onnx_slice(n, g, (int64_t[]){0, k * r->hidden}, (int64_t[]){r->batch, count * r->hidden},
                      (int64_t[]){1, 1}, out);
}

static npu_status initial(struct onnx_node *n, const struct rnn *r, int input, int direction,
                          struct graph_value **out) {
    if (onnx_given(n, input)) {
        struct graph_value *h = n->in[input];
        if (h->rank != 3)
            return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 3", h->name, h->rank);
        if (r->batch_first) NPU_TRY(onnx_transpose(n, h, (int64_t[]){1, 0, 2}, &h));
        if (h->dims[1] != r->batch || h->dims[2] != r->hidden)
            return npu_fail(BAD_INPUT, "the initial state '%s' does not fit", h->name);
        return rows(n, h, direction, 1, true, out);
    }
    struct graph_value *zero = onnx_new_scalar(n, n->in[0]->dtype, 0);
    return onnx_expand(n, zero, 2, (int64_t[]){r->batch, r->hidden}, out);
}

// P = X W' + biases. For GRU with linear_before_reset the hidden gate's R bias stays apart.
static npu_status project(struct onnx_node *n, struct walk *w) {
    const struct rnn *r = w->r;
    struct graph_value *x = n->in[0], *weights, *bias, *wb, *rb;
    int64_t width = r->gates * r->hidden;
    if (r->batch_first) NPU_TRY(onnx_transpose(n, x, (int64_t[]){1, 0, 2}, &x));
    NPU_TRY(rows(n, n->in[1], w->direction, 1, true, &weights));
    NPU_TRY(rows(n, n->in[2], w->direction, 1, true, &w->rec));
    NPU_TRY(onnx_reshape(n, x, 2, (int64_t[]){r->steps * r->batch, r->in}, &x));
    NPU_TRY(onnx_matmul(n, x, weights, false, true, &w->p));
    if (onnx_given(n, 3)) {
        if (n->in[3]->rank != 2)
            return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 2", n->in[3]->name,
                            n->in[3]->rank);
        NPU_TRY(rows(n, n->in[3], w->direction, 1, true, &bias));
        NPU_TRY(rows(n, bias, 0, width, false, &wb));
        NPU_TRY(rows(n, bias, width, width, false, &rb));
        if (r->gates == 3 && r->before_reset) {
            struct graph_value *parts[2], *zero;
            NPU_TRY(rows(n, rb, 0, 2 * r->hidden, false, &parts[0]));
            NPU_TRY(rows(n, rb, 2 * r->hidden, r->hidden, false, &w->rb));
            zero = onnx_new_scalar(n, rb->dtype, 0);
            NPU_TRY(onnx_expand(n, zero, 1, &r->hidden, &parts[1]));
            NPU_TRY(onnx_concat(n, 2, parts, 0, &rb));
        }
        NPU_TRY(onnx_map2(n, "add in1", wb, rb, &bias));
        NPU_TRY(onnx_map(n, w->p->dtype, "add in1", NULL, 2, (struct graph_value *[]){w->p, bias},
                         &w->p));
    }
    return onnx_reshape(n, w->p, 3, (int64_t[]){r->steps, r->batch, width}, &w->p);
}

static npu_status apply(struct onnx_node *n, const struct walk *w, int which, struct graph_value *x,
                        struct graph_value **out) {
    return onnx_map1(n, w->r->chain[w->direction * w->r->nact + which], x, out);
}

static npu_status step_rnn(struct onnx_node *n, struct walk *w, struct graph_value *p) {
    struct graph_value *g;
    NPU_TRY(onnx_matmul(n, w->h, w->rec, false, true, &g));
    NPU_TRY(onnx_map2(n, "add in1", g, p, &g));
    return apply(n, w, 0, g, &w->h);
}

// Gates z, r, h. h' = (1 - z) * hh + z * h
static npu_status step_gru(struct onnx_node *n, struct walk *w, struct graph_value *p) {
    const struct rnn *r = w->r;
    struct graph_value *upper, *lower, *g, *part, *zr, *z, *reset, *hidden;
    NPU_TRY(rows(n, w->rec, 0, 2 * r->hidden, false, &upper));
    NPU_TRY(rows(n, w->rec, 2 * r->hidden, r->hidden, false, &lower));
    NPU_TRY(gate(n, r, p, 0, 2, &part));
    NPU_TRY(onnx_matmul(n, w->h, upper, false, true, &g));
    NPU_TRY(onnx_map2(n, "add in1", g, part, &g));
    NPU_TRY(apply(n, w, 0, g, &zr));
    NPU_TRY(gate(n, r, zr, 0, 1, &z));
    NPU_TRY(gate(n, r, zr, 1, 1, &reset));
    NPU_TRY(gate(n, r, p, 2, 1, &part));
    if (r->before_reset) {
        NPU_TRY(onnx_matmul(n, w->h, lower, false, true, &g));
        if (w->rb) NPU_TRY(onnx_map2(n, "add in1", g, w->rb, &g));
        NPU_TRY(onnx_map(n, g->dtype, "mul in1; add in2", NULL, 3,
                         (struct graph_value *[]){g, reset, part}, &g));
    } else {
        NPU_TRY(onnx_map2(n, "mul in1", w->h, reset, &g));
        NPU_TRY(onnx_matmul(n, g, lower, false, true, &g));
        NPU_TRY(onnx_map2(n, "add in1", g, part, &g));
    }
    NPU_TRY(apply(n, w, 1, g, &hidden));
    // hh + z * (h - hh)
    return onnx_map(n, hidden->dtype, "rsub in1; mul in2; add in0", NULL, 3,
                    (struct graph_value *[]){hidden, w->h, z}, &w->h);
}

// The gate's sum plus its peephole: peep row k times the cell.
static npu_status peephole(struct onnx_node *n, struct walk *w, struct graph_value *g, int k,
                           struct graph_value **out) {
    *out = g;
    if (!w->peep) return NULL;
    struct graph_value *row;
    NPU_TRY(rows(n, w->peep, k * w->r->hidden, w->r->hidden, false, &row));
    return onnx_map(n, g->dtype, "mul in1; add in2", NULL, 3,
                    (struct graph_value *[]){w->c, row, g}, out);
}

// Gates i, o, f, c. c' = f * c + i * g(c~), h' = o * h(c')
static npu_status step_lstm(struct onnx_node *n, struct walk *w, struct graph_value *p) {
    const struct rnn *r = w->r;
    struct graph_value *g, *i, *o, *f, *cell, *t;
    NPU_TRY(onnx_matmul(n, w->h, w->rec, false, true, &g));
    NPU_TRY(onnx_map2(n, "add in1", g, p, &g));
    NPU_TRY(gate(n, r, g, 3, 1, &cell));
    if (w->peep) {
        NPU_TRY(gate(n, r, g, 0, 1, &i));
        NPU_TRY(gate(n, r, g, 1, 1, &o));
        NPU_TRY(gate(n, r, g, 2, 1, &f));
        NPU_TRY(peephole(n, w, i, 0, &i));
        NPU_TRY(peephole(n, w, f, 2, &f));
        NPU_TRY(apply(n, w, 0, i, &i));
        NPU_TRY(apply(n, w, 0, f, &f));
    } else {
        NPU_TRY(gate(n, r, g, 0, 3, &t));
        NPU_TRY(apply(n, w, 0, t, &t));
        NPU_TRY(gate(n, r, t, 0, 1, &i));
        NPU_TRY(gate(n, r, t, 1, 1, &o));
        NPU_TRY(gate(n, r, t, 2, 1, &f));
    }
    NPU_TRY(apply(n, w, 1, cell, &cell));
    NPU_TRY(onnx_map2(n, "mul in1", i, cell, &t));
    NPU_TRY(onnx_map(n, f->dtype, "mul in1; add in2", NULL, 3, (struct graph_value *[]){f, w->c, t},
                     &w->c));
    if (w->peep) {
        NPU_TRY(peephole(n, w, o, 1, &o));
        NPU_TRY(apply(n, w, 0, o, &o));
    }
    NPU_TRY(apply(n, w, 2, w->c, &t));
    return onnx_map2(n, "mul in1", o, t, &w->h);
}

typedef npu_status rnn_step(struct onnx_node *n, struct walk *w, struct graph_value *p);

static npu_status run_direction(struct onnx_node *n, struct walk *w, rnn_step *step,
                                struct graph_value **ys) {
    const struct rnn *r = w->r;
    bool backward = r->reverse_first || w->direction == 1;
    NPU_TRY(project(n, w));
    NPU_TRY(initial(n, r, 5, w->direction, &w->h));
    if (r->gates == 4) {
        NPU_TRY(initial(n, r, 6, w->direction, &w->c));
        if (onnx_given(n, 7)) {
            if (n->in[7]->rank != 2)
                return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 2", n->in[7]->name,
                                n->in[7]->rank);
            NPU_TRY(rows(n, n->in[7], w->direction, 1, true, &w->peep));
        }
    }
    for (int64_t k = 0; k < r->steps; k++) {
        int64_t t = backward ? r->steps - 1 - k : k;
        struct graph_value *p;
        NPU_TRY(rows(n, w->p, t, 1, true, &p));
        NPU_TRY(step(n, w, p));
        NPU_TRY(onnx_reshape(n, w->h, 4, (int64_t[]){1, 1, r->batch, r->hidden},
                             &ys[t * r->directions + w->direction]));
    }
    return NULL;
}

// ys: [T][directions] of [1, 1, B, H] to Y.
static npu_status bind_sequence(struct onnx_node *n, const struct rnn *r, struct graph_value **ys) {
    if (!onnx_used(n, 0)) return NULL;
    struct graph_value *y;
    for (int64_t t = 0; t < r->steps; t++)
        NPU_TRY(onnx_concat(n, r->directions, ys + t * r->directions, 1, &ys[t]));
    NPU_TRY(onnx_concat(n, (int)r->steps, ys, 0, &y));
    if (r->batch_first) NPU_TRY(onnx_transpose(n, y, (int64_t[]){2, 0, 1, 3}, &y));
    return onnx_bind(n, 0, y);
}

static npu_status bind_state(struct onnx_node *n, const struct rnn *r, int output,
                             struct graph_value **h) {
    if (!onnx_used(n, output)) return NULL;
    struct graph_value *y;
    for (int d = 0; d < r->directions; d++)
        NPU_TRY(onnx_reshape(n, h[d], 3, (int64_t[]){1, r->batch, r->hidden}, &h[d]));
    NPU_TRY(onnx_concat(n, r->directions, h, 0, &y));
    if (r->batch_first) NPU_TRY(onnx_transpose(n, y, (int64_t[]){1, 0, 2}, &y));
    return onnx_bind(n, output, y);
}

static npu_status recurrent(struct onnx_node *n, int gates, int nact, rnn_step *step) {
    struct rnn r;
    NPU_TRY(read_rnn(n, gates, nact, &r));
    struct graph_value **ys =
        ARENA_ARRAY(n->m->arena, struct graph_value *, (size_t)(r.steps * r.directions));
    struct graph_value *h[2] = {NULL}, *c[2] = {NULL};
    for (int d = 0; d < r.directions; d++) {
        struct walk w = {.r = &r, .direction = d};
        NPU_TRY(run_direction(n, &w, step, ys));
        h[d] = w.h;
        c[d] = w.c;
    }
    NPU_TRY(bind_sequence(n, &r, ys));
    NPU_TRY(bind_state(n, &r, 1, h));
    return gates == 4 ? bind_state(n, &r, 2, c) : NULL;
}

npu_status import_rnn(struct onnx_node *n) {
    return recurrent(n, 1, 1, step_rnn);
}

npu_status import_gru(struct onnx_node *n) {
    return recurrent(n, 3, 2, step_gru);
}

npu_status import_lstm(struct onnx_node *n) {
    return recurrent(n, 4, 3, step_lstm);
}
