// SPDX-License-Identifier: Apache-2.0
//
// lstm, gru, rnn_tanh and rnn_relu: layers of one or two directions, whose cells are those of
// common/recurrent.c once the gates stand in its order; and lstm_cell and so on, one step.

#include <string.h>

#include "toolchain/frontend/common/recurrent.h"
#include "toolchain/frontend/pt2/import.h"

struct stack {
    int gates, layers, directions;
    bool biased, batch_first;
    struct graph_value **params;
    int nparams;
    const char *chain[3];
};

// Rows of [gates * H, ..] in the order of common/recurrent.h: torch has i, f, g, o and r, z, n.
static npu_status reorder(struct pt2_node *n, const struct stack *s, struct graph_value *w,
                          struct graph_value **out) {
    static const int lstm[4] = {0, 3, 1, 2}, gru[3] = {1, 0, 2};
    struct graph_value *parts[4];
    *out = w;
    if (s->gates == 1) return NULL;
    if (w->rank < 1 || w->dims[0] % s->gates)
        return npu_fail(BAD_INPUT, "'%s' does not split into %d gates", w->name, s->gates);
    int64_t rows = w->dims[0] / s->gates;
    for (int k = 0; k < s->gates; k++)
        NPU_TRY(recurrent_rows(&n->b, w, rows * (s->gates == 4 ? lstm : gru)[k], rows, false,
                               &parts[k]));
    return build_concat(&n->b, s->gates, parts, 0, out);
}

static struct stack kind_of(const char *target) {
    struct stack s = {.gates = !strncmp(target, "lstm", 4)  ? 4
                               : !strncmp(target, "gru", 3) ? 3
                                                            : 1,
                      .chain = {"sigmoid", "tanh", "tanh"}};
    if (s.gates == 1) s.chain[0] = strstr(target, "relu") ? "max 0" : "tanh";
    return s;
}

static npu_status read_stack(struct pt2_node *n, struct stack *s) {
    *s = kind_of(n->target);
    s->nparams = pt2_tensors(n, "params", &s->params);
    int64_t layers = pt2_int(n, "num_layers");
    s->layers = layers < 0 || layers > 1000 ? 0 : (int)layers;
    s->directions = pt2_bool(n, "bidirectional") ? 2 : 1;
    s->biased = pt2_bool(n, "has_biases");
    s->batch_first = pt2_bool(n, "batch_first");
    if (pt2_bool(n, "train") && pt2_float(n, "dropout") != 0)
        return npu_fail(UNSUPPORTED, "dropout in training mode: export the model after eval()");
    int each = s->biased ? 4 : 2;
    if (s->nparams != s->layers * s->directions * each)
        return npu_fail(UNSUPPORTED,
                        "%d weights, expected %d for each of %d directions in %d "
                        "layers (projections are not supported)",
                        s->nparams, each, s->directions, s->layers);
    for (int k = 0; k < s->nparams; k++)
        if (!s->params[k]) return npu_fail(BAD_INPUT, "weight %d is None", k);
    return NULL;
}

// State number k of [layers * directions, B, H].
static npu_status state_of(struct pt2_node *n, struct graph_value *all, int k,
                           struct graph_value **out) {
    if (all->rank != 3)
        return npu_fail(BAD_INPUT, "the state '%s' has rank %d, expected 3", all->name, all->rank);
    return recurrent_rows(&n->b, all, k, 1, true, out);
}

// One direction of one layer over x [T,B,I]; ys[t] in one column of `columns`.
static npu_status walk(struct pt2_node *n, const struct stack *s, int number, bool backward,
                       struct graph_value *x, struct graph_value **h, struct graph_value **c,
                       struct graph_value **ys) {
    struct graph_value *const *p = s->params + number * (s->biased ? 4 : 2);
    struct recurrent_weights w = {.chain = {s->chain[0], s->chain[1], s->chain[2]},
                                  .backward = backward};
    NPU_TRY(reorder(n, s, p[0], &w.w));
    NPU_TRY(reorder(n, s, p[1], &w.rec));
    if (s->biased) NPU_TRY(reorder(n, s, p[2], &w.wb));
    if (s->biased) NPU_TRY(reorder(n, s, p[3], &w.rb));
    if (w.w->rank != 2 || w.rec->rank != 2 || w.w->dims[1] != x->dims[2] ||
        w.rec->dims[0] != s->gates * w.rec->dims[1] || w.w->dims[0] != w.rec->dims[0])
        return npu_fail(BAD_INPUT, "the weights '%s' and '%s' do not fit", p[0]->name, p[1]->name);
    struct recurrent r = {.gates = s->gates,
                          .before_reset = true,
                          .steps = x->dims[0],
                          .batch = x->dims[1],
                          .in = x->dims[2],
                          .hidden = w.rec->dims[1]};
    if (r.steps < 1 || r.steps > RECURRENT_STEPS_MAX)
        return npu_fail(UNSUPPORTED, "%lld steps, expected 1 to %d", (long long)r.steps,
                        RECURRENT_STEPS_MAX);
    if ((*h)->dims[0] != r.batch || (*h)->dims[1] != r.hidden)
        return npu_fail(BAD_INPUT, "the state '%s' does not fit", (*h)->name);
    return recurrent_walk(&n->b, &r, x, &w, h, c, ys);
}

// [T] of [B,H] per direction to [T, B, directions * H].
static npu_status sequence(struct pt2_node *n, const struct stack *s, int64_t steps,
                           struct graph_value **ys, struct graph_value **out) {
    for (int64_t t = 0; t < steps; t++) {
        struct graph_value *both[2] = {ys[t], s->directions == 2 ? ys[steps + t] : NULL}, *y;
        NPU_TRY(build_concat(&n->b, s->directions, both, 1, &y));
        NPU_TRY(build_reshape(&n->b, y, 3, (int64_t[]){1, y->dims[0], y->dims[1]}, &ys[t]));
    }
    return build_concat(&n->b, (int)steps, ys, 0, out);
}

static npu_status bind_states(struct pt2_node *n, int k, int count, struct graph_value **states) {
    struct graph_value *y;
    if (!pt2_used(n, k)) return NULL;
    for (int i = 0; i < count; i++)
        NPU_TRY(build_reshape(&n->b, states[i], 3,
                              (int64_t[]){1, states[i]->dims[0], states[i]->dims[1]}, &states[i]));
    NPU_TRY(build_concat(&n->b, count, states, 0, &y));
    return pt2_bind(n, k, y);
}

static npu_status layers(struct pt2_node *n, const struct stack *s, struct graph_value *x,
                         struct graph_value *h0, struct graph_value *c0) {
    int count = s->layers * s->directions;
    int64_t steps = x->dims[0];
    if (steps < 1 || steps > RECURRENT_STEPS_MAX || count < 1)
        return npu_fail(UNSUPPORTED, "%lld steps, expected 1 to %d", (long long)steps,
                        RECURRENT_STEPS_MAX);
    struct graph_value **h = ARENA_ARRAY(n->m->arena, struct graph_value *, (size_t)count),
                       **c = ARENA_ARRAY(n->m->arena, struct graph_value *, (size_t)count),
                       **ys = ARENA_ARRAY(n->m->arena, struct graph_value *, 2 * (size_t)steps);
    for (int layer = 0; layer < s->layers; layer++) {
        for (int d = 0; d < s->directions; d++) {
            int k = layer * s->directions + d;
            NPU_TRY(state_of(n, h0, k, &h[k]));
            if (c0) NPU_TRY(state_of(n, c0, k, &c[k]));
            NPU_TRY(walk(n, s, k, d == 1, x, &h[k], &c[k], ys + d * steps));
        }
        NPU_TRY(sequence(n, s, steps, ys, &x));
    }
    if (s->batch_first) NPU_TRY(build_transpose(&n->b, x, (int64_t[]){1, 0, 2}, &x));
    NPU_TRY(pt2_bind(n, 0, x));
    NPU_TRY(bind_states(n, 1, count, h));
    return c0 ? bind_states(n, 2, count, c) : NULL;
}

npu_status aten_recurrent(struct pt2_node *n) {
    struct stack s;
    struct graph_value *x = pt2_need(n, "input"), *h0, *c0 = NULL, **both;
    NPU_TRY(read_stack(n, &s));
    if (s.gates == 4) {
        int count = pt2_tensors(n, "hx", &both);
        if (!n->failed && (count != 2 || !both[0] || !both[1]))
            return npu_fail(BAD_INPUT, "%d states, expected 2", count);
        h0 = both[0];
        c0 = both[1];
    } else {
        h0 = pt2_need(n, "hx");
    }
    if (n->failed) return NULL;
    if (x->rank != 3)
        return npu_fail(UNSUPPORTED, "'%s' has rank %d, expected 3", x->name, x->rank);
    if (s.batch_first) NPU_TRY(build_transpose(&n->b, x, (int64_t[]){1, 0, 2}, &x));
    return layers(n, &s, x, h0, c0);
}

// One step of one layer: x [B,I] and the state [B,H], for lstm a list of two.
npu_status aten_cell(struct pt2_node *n) {
    struct stack s = kind_of(n->target);
    struct graph_value *params[4] = {pt2_need(n, "w_ih"), pt2_need(n, "w_hh"), pt2_in(n, "b_ih"),
                                     pt2_in(n, "b_hh")};
    struct graph_value *x = pt2_need(n, "input"), *state[2] = {NULL, NULL}, **both, *y;
    if (s.gates == 4) {
        int count = pt2_tensors(n, "hx", &both);
        if (!n->failed && (count != 2 || !both[0] || !both[1]))
            return npu_fail(BAD_INPUT, "%d states, expected 2", count);
        for (int k = 0; k < 2 && !n->failed; k++)
            state[k] = both[k];
    } else {
        state[0] = pt2_need(n, "hx");
    }
    if (n->failed) return NULL;
    if (!params[2] != !params[3]) return npu_fail(UNSUPPORTED, "one bias of two");
    s.biased = params[2] != NULL;
    s.params = params;
    for (int k = 0; k < (s.gates == 4 ? 2 : 1); k++)
        if (state[k]->rank != 2)
            return npu_fail(BAD_INPUT, "the state '%s' has rank %d, expected 2", state[k]->name,
                            state[k]->rank);
    if (x->rank != 2) return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 2", x->name, x->rank);
    NPU_TRY(build_reshape(&n->b, x, 3, (int64_t[]){1, x->dims[0], x->dims[1]}, &x));
    NPU_TRY(walk(n, &s, 0, false, x, &state[0], &state[1], &y));
    NPU_TRY(pt2_bind(n, 0, state[0]));
    return s.gates == 4 ? pt2_bind(n, 1, state[1]) : NULL;
}
