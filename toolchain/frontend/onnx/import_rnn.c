// SPDX-License-Identifier: Apache-2.0
//
// RNN, GRU and LSTM: attributes and inputs of each direction, which common/recurrent.c walks.
// Sequences must all be of full length.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/common/recurrent.h"
#include "toolchain/frontend/onnx/import.h"

struct rnn {
    int gates, nact; // gates of the cell; activation functions of a direction
    int64_t steps, batch, in, hidden;
    int directions;
    bool reverse_first, batch_first, before_reset;
    const char *chain[2 * 3]; // activations as chains, per direction
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
    if (r->steps > RECURRENT_STEPS_MAX || r->steps < 1)
        return npu_fail(UNSUPPORTED, "%lld steps, expected 1 to %d", (long long)r->steps,
                        RECURRENT_STEPS_MAX);
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

static npu_status initial(struct onnx_node *n, const struct rnn *r, int input, int direction,
                          struct graph_value **out) {
    if (onnx_given(n, input)) {
        struct graph_value *h = n->in[input];
        if (h->rank != 3)
            return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 3", h->name, h->rank);
        if (r->batch_first) NPU_TRY(onnx_transpose(n, h, (int64_t[]){1, 0, 2}, &h));
        if (h->dims[1] != r->batch || h->dims[2] != r->hidden)
            return npu_fail(BAD_INPUT, "the initial state '%s' does not fit", h->name);
        return recurrent_rows(&n->b, h, direction, 1, true, out);
    }
    *out = NULL;
    return NULL;
}

static npu_status read_weights(struct onnx_node *n, const struct rnn *r, int direction,
                               struct recurrent_weights *w) {
    int64_t width = r->gates * r->hidden;
    struct graph_value *bias;
    NPU_TRY(recurrent_rows(&n->b, n->in[1], direction, 1, true, &w->w));
    NPU_TRY(recurrent_rows(&n->b, n->in[2], direction, 1, true, &w->rec));
    if (onnx_given(n, 3)) {
        if (n->in[3]->rank != 2)
            return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 2", n->in[3]->name,
                            n->in[3]->rank);
        NPU_TRY(recurrent_rows(&n->b, n->in[3], direction, 1, true, &bias));
        NPU_TRY(recurrent_rows(&n->b, bias, 0, width, false, &w->wb));
        NPU_TRY(recurrent_rows(&n->b, bias, width, width, false, &w->rb));
    }
    if (r->gates == 4 && onnx_given(n, 7)) {
        if (n->in[7]->rank != 2)
            return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 2", n->in[7]->name,
                            n->in[7]->rank);
        NPU_TRY(recurrent_rows(&n->b, n->in[7], direction, 1, true, &w->peep));
    }
    for (int k = 0; k < r->nact; k++)
        w->chain[k] = r->chain[direction * r->nact + k];
    w->backward = r->reverse_first || direction == 1;
    return NULL;
}

static npu_status run_direction(struct onnx_node *n, const struct rnn *r, int direction,
                                struct graph_value **h, struct graph_value **c,
                                struct graph_value **ys) {
    struct recurrent_weights w = {.w = NULL};
    struct recurrent all = {r->gates, r->before_reset, r->steps, r->batch, r->in, r->hidden};
    struct graph_value *x = n->in[0];
    struct graph_value **own = ARENA_ARRAY(n->m->arena, struct graph_value *, (size_t)r->steps);
    if (r->batch_first) NPU_TRY(onnx_transpose(n, x, (int64_t[]){1, 0, 2}, &x));
    NPU_TRY(read_weights(n, r, direction, &w));
    NPU_TRY(initial(n, r, 5, direction, h));
    if (r->gates == 4) NPU_TRY(initial(n, r, 6, direction, c));
    NPU_TRY(recurrent_walk(&n->b, &all, x, &w, h, c, own));
    for (int64_t t = 0; t < r->steps; t++)
        NPU_TRY(onnx_reshape(n, own[t], 4, (int64_t[]){1, 1, r->batch, r->hidden},
                             &ys[t * r->directions + direction]));
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

static npu_status recurrent(struct onnx_node *n, int gates, int nact) {
    struct rnn r;
    NPU_TRY(read_rnn(n, gates, nact, &r));
    struct graph_value **ys =
        ARENA_ARRAY(n->m->arena, struct graph_value *, (size_t)(r.steps * r.directions));
    struct graph_value *h[2] = {NULL}, *c[2] = {NULL};
    for (int d = 0; d < r.directions; d++) {
        NPU_TRY(run_direction(n, &r, d, &h[d], &c[d], ys));
    }
    NPU_TRY(bind_sequence(n, &r, ys));
    NPU_TRY(bind_state(n, &r, 1, h));
    return gates == 4 ? bind_state(n, &r, 2, c) : NULL;
}

npu_status import_rnn(struct onnx_node *n) {
    return recurrent(n, 1, 1);
}

npu_status import_gru(struct onnx_node *n) {
    return recurrent(n, 3, 2);
}

npu_status import_lstm(struct onnx_node *n) {
    return recurrent(n, 4, 3);
}
