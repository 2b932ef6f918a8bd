// SPDX-License-Identifier: Apache-2.0
//
// RNN, GRU and LSTM: attributes and inputs of each direction, which common/recurrent.c walks.

#define _POSIX_C_SOURCE 200809L

#include <string.h>
#include <strings.h>

#include "toolchain/frontend/common/recurrent.h"
#include "toolchain/frontend/onnx/import.h"

struct rnn {
    int gates, nact; // gates of the cell; activation functions of a direction
    int64_t steps, batch, in, hidden;
    int directions;
    bool reverse_first, batch_first, before_reset, couple;
    double clip;
    const char *chain[2 * 3]; // activations as chains, per direction
};

// $0 and $1: alpha and beta, where an activation has them.
struct activation {
    const char *name, *chain;
    int params;
    double otherwise[2];
};

static const struct activation *find_activation(const char *name) {
    static const struct activation known[] = {
        {"sigmoid", "sigmoid", 0, {0}},
        {"tanh", "tanh", 0, {0}},
        {"relu", "max 0", 0, {0}},
        {"softsign", "abs; add 1; rdiv in0", 0, {0}},
        {"softplus", "softplus", 0, {0}},
        {"affine", "mul $0; add $1", 2, {1, 0}},
        {"leakyrelu", "mul $0 =tmp; mov in0; lt 0; sel tmp in0", 1, {0.01}},
        {"thresholdedrelu", "ge $0; sel in0 0", 1, {1}},
        {"scaledtanh", "mul $1; tanh; mul $0", 2, {1, 1}},
        {"hardsigmoid", "mul $0; add $1; max 0; min 1", 2, {0.2, 0.5}},
        {"elu", "min 0; exp; sub 1; mul $0 =tmp; mov in0; max 0; add tmp", 1, {1}},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcasecmp(known[k].name, name)) return &known[k];
    return NULL;
}

// The chain with numbers in the place of $0 and $1.
static const char *with_params(struct arena *a, const char *chain, const double params[2]) {
    const char *text = "";
    for (const char *at = chain; *at; at++) {
        if (*at == '$' && at[1])
            text = arena_printf(a, "%s%.9g", text, params[*++at - '0']);
        else
            text = arena_printf(a, "%s%c", text, *at);
    }
    return text;
}

// Attributes activation_alpha and activation_beta: taken in order by the activations that have
// them.
struct params {
    const Onnx__AttributeProto *list[2];
    size_t taken[2];
};

static const char *activation(struct onnx_node *n, const struct activation *f, struct params *p) {
    double values[2] = {f->otherwise[0], f->otherwise[1]};
    for (int k = 0; k < f->params; k++)
        if (p->list[k] && p->taken[k] < p->list[k]->n_floats)
            values[k] = (double)p->list[k]->floats[p->taken[k]++];
    return f->params ? with_params(n->m->arena, f->chain, values) : f->chain;
}

static npu_status read_activations(struct onnx_node *n, struct rnn *r) {
    static const char *const defaults[3][3] = {{"tanh"},
                                               {"sigmoid", "tanh"},
                                               {"sigmoid", "tanh", "tanh"}};
    const Onnx__AttributeProto *a = onnx_attr(n, "activations");
    struct params params = {{onnx_attr(n, "activation_alpha"), onnx_attr(n, "activation_beta")},
                            {0}};
    int wanted = r->nact * r->directions;
    if (a && a->n_strings && a->n_strings != (size_t)wanted)
        return npu_fail(BAD_INPUT, "%zu activations, expected %d", a->n_strings, wanted);
    for (int k = 0; k < wanted; k++) {
        const char *name = defaults[r->nact - 1][k % r->nact];
        if (a && a->n_strings)
            name = arena_strndup(n->m->arena, (const char *)a->strings[k].data, a->strings[k].len);
        const struct activation *f = find_activation(name);
        if (!f) return npu_fail(UNSUPPORTED, "activation %s", name);
        r->chain[k] = activation(n, f, &params);
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
    r->couple = onnx_int(n, "input_forget", 0) != 0;
    r->clip = onnx_float(n, "clip", 0);
    if (r->clip < 0)
        return npu_fail(BAD_INPUT, "attribute clip is %g, expected 0 or more", r->clip);
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
    w->clip = r->clip;
    w->couple = r->couple;
    w->lengths = onnx_given(n, 4) ? n->in[4] : NULL;
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
