// SPDX-License-Identifier: Apache-2.0
// Group and instance normalisation: rows of a reshaped image are runs of its channels.
//
//   reshape x[N,C,...] to rows of C / G channels, layernorm of them, reshape back, perhaps through
//   other shapes, with constant factors and addends per channel or group between
//       ->   groupnorm x, scale, bias   group=G
//
// where nobody else reads what lies in between. Factors and addends are read off the chains by
// evaluating them for each channel (probe.h); what is not affine, as an activation, stays behind.
#include "toolchain/passes/norm.h"

#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/chain.h"
#include "toolchain/passes/probe.h"

enum { PATH = 12, MAX_CHANNELS = 1 << 16 };

struct group {
    struct graph_node *norm, *last; // last: the end of what is taken
    struct graph_value *x;
    int64_t groups, channels, inner; // inner: elements of a channel
    double *scale, *bias;            // per channel, up to `last`
    struct graph_node *path[PATH];
    int n;
};

static bool same_dims(const struct graph_value *a, const struct graph_value *b) {
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

// Rows of the norm are runs of whole channels of the image behind the reshape.
static bool starts(const struct graph *g, struct graph_node *n, struct group *t) {
    const struct graph_node *reshape = n->inputs[0]->producer;
    if (n->op != GRAPH_LAYERNORM || n->nin != 1 || !reshape || reshape->op != GRAPH_RESHAPE)
        return false;
    struct graph_value *x = reshape->inputs[0];
    if (x->rank < 3 || x->dims[0] < 1 || x->dims[1] > MAX_CHANNELS) return false;
    int64_t rows = 1;
    for (int d = 0; d < (int)graph_int(n, GRAPH_ATTR_AXIS, 0); d++)
        rows *= n->inputs[0]->dims[d];
    *t = (struct group){.norm = n, .x = x, .channels = x->dims[1]};
    t->groups = rows / x->dims[0];
    t->inner = graph_value_elems(x) / (x->dims[0] * x->dims[1]);
    return rows % x->dims[0] == 0 && t->groups > 0 && t->channels % t->groups == 0 &&
           graph_count_uses(g, n->inputs[0]) == 1;
}

// Element of operand v that belongs to element `flat` of a value with the dimensions of y.
static int64_t element_of(const struct graph_value *v, const struct graph_value *y, int64_t flat) {
    int64_t at = 0, step = 1;
    for (int d = y->rank - 1, s = v->rank - 1; d >= 0; d--, s--) {
        int64_t size = s >= 0 ? v->dims[s] : 1;
        if (size > 1) at += flat % y->dims[d] * step;
        step *= size;
        flat /= y->dims[d];
    }
    return at;
}

// A constant that is one number for each channel of the image, whatever shape y gives it.
static bool per_channel(const struct group *t, const struct graph_value *v,
                        const struct graph_value *y, double *out) {
    if (!v->data || !isa_dtype_is_float((int)v->dtype) || v->dtype == ISA_F64 ||
        isa_dtype_bits((int)v->dtype) < 16 || graph_value_elems(v) > t->channels)
        return false;
    int64_t span = t->channels * t->inner, all = graph_value_elems(y);
    for (int64_t c = 0; c < t->channels; c++) {
        int64_t at = element_of(v, y, c * t->inner);
        out[c] = (double)num_load_f32((int)v->dtype, v->data, at);
        // The corners of each channel: dimensions are walked in whole steps.
        for (int64_t n = 0; n < all; n += span)
            if (element_of(v, y, n + c * t->inner) != at ||
                element_of(v, y, n + (c + 1) * t->inner - 1) != at ||
                element_of(v, y, n + c * t->inner + t->inner / 2) != at)
                return false;
    }
    return true;
}

// scale and bias followed by the MAP; false when it does more than that.
static bool absorb(const struct group *t, const struct graph_node *map, const struct graph_value *x,
                   double *scale, double *bias, struct arena *a) {
    const struct graph_value *y = map->outputs[0];
    struct chain c = chain_of(map);
    double *operand[3] = {NULL};
    if (!same_dims(x, y) || y->dtype != x->dtype || x->dtype != t->x->dtype) return false;
    for (int k = 0; k < 3; k++) {
        if (!c.in[k] || c.in[k] == x) continue;
        operand[k] = ARENA_ARRAY(a, double, (size_t)t->channels);
        if (!per_channel(t, c.in[k], y, operand[k])) return false;
    }
    for (int64_t i = 0; i < t->channels; i++) {
        double at[4];
        for (int p = 0; p < 4; p++) {
            double in[3];
            for (int k = 0; k < 3; k++)
                in[k] = operand[k] ? operand[k][i] : p == 3 ? -1.0 : (double)p;
            at[p] = probe_chain(&c.c, in);
        }
        double s = at[1] - at[0], size = fabs(at[0]) + fabs(s);
        if (!isfinite(size) || fabs(at[2] - at[0] - 2 * s) > 1e-9 * size ||
            fabs(at[3] - at[0] + s) > 1e-9 * size)
            return false;
        scale[i] *= s;
        bias[i] = bias[i] * s + at[0];
    }
    return true;
}

// Follows the result as far as it is an affine function per channel, in the image's shape at the
// end.
static bool follow(const struct graph *g, struct group *t, struct arena *a) {
    size_t n = (size_t)t->channels;
    double *scale = ARENA_ARRAY(a, double, n), *bias = ARENA_ARRAY(a, double, n);
    struct graph_value *v = t->norm->outputs[0];
    int taken = 0;
    for (size_t i = 0; i < n; i++)
        scale[i] = 1;
    while (t->n < PATH) {
        struct graph_node *user = graph_single_user(g, v);
        if (!user || user->has_chain != (user->op == GRAPH_MAP)) break;
        if (user->op != GRAPH_RESHAPE &&
            (user->op != GRAPH_MAP || !absorb(t, user, v, scale, bias, a)))
            break;
        t->path[t->n++] = user;
        v = user->outputs[0];
        if (!same_dims(v, t->x)) continue;
        t->last = user;
        taken = t->n;
        t->scale = arena_copy(a, scale, n * sizeof *scale);
        t->bias = arena_copy(a, bias, n * sizeof *bias);
    }
    t->n = taken;
    return t->last != NULL;
}

static struct graph_value *vector(struct graph *g, const struct group *t, const char *suffix,
                                  const double *v) {
    float *data = ARENA_ARRAY(g->arena, float, (size_t)t->channels);
    for (int64_t i = 0; i < t->channels; i++)
        data[i] = (float)v[i];
    return graph_add_const(g, arena_printf(g->arena, "%s.%s", t->last->outputs[0]->name, suffix),
                           ISA_F32, 1, &t->channels, data);
}

static bool all_are(const double *v, int64_t n, double value) {
    for (int64_t i = 0; i < n; i++)
        if (v[i] < value || v[i] > value) return false;
    return true;
}

static npu_status rewrite(struct pass_context *c, const struct group *t) {
    struct graph *g = c->g;
    struct graph_value *in[3] = {t->x}, *y = t->last->outputs[0];
    bool biased = !all_are(t->bias, t->channels, 0);
    int nin = 1;
    if (biased || !all_are(t->scale, t->channels, 1)) in[nin++] = vector(g, t, "scale", t->scale);
    if (biased) in[nin++] = vector(g, t, "bias", t->bias);
    struct graph_node *n = graph_add_node(g, GRAPH_GROUPNORM, t->last->name, nin, in, t->last);
    graph_set_int(g, n, GRAPH_ATTR_GROUP, t->groups);
    graph_set_float(g, n, GRAPH_ATTR_EPSILON, graph_float(t->norm, GRAPH_ATTR_EPSILON, 1e-5));
    NPU_TRY(graph_infer(g, n, y->name));
    graph_add_origins(g, n, t->norm);
    for (int i = 0; i < t->n; i++)
        graph_add_origins(g, n, t->path[i]);
    graph_replace_uses(g, y, n->outputs[0]);
    const char *name = y->name;
    for (int i = t->n - 1; i >= 0; i--)
        graph_remove_node(g, t->path[i]);
    graph_remove_node(g, t->norm);
    if (!n->outputs[0]->is_output) graph_rename_value(g, n->outputs[0], name);
    c->log->fused += t->n;
    return NULL;
}

npu_status pass_norm_groups(struct pass_context *c) {
    for (struct graph_node *n = c->g->first, *next; n; n = next) {
        struct group t;
        next = n->next;
        if (!starts(c->g, n, &t) || !follow(c->g, &t, c->scratch)) continue;
        for (int i = 0; i < t.n; i++) // what goes away may stand next
            if (next == t.path[i]) next = next->next, i = -1;
        NPU_TRY(rewrite(c, &t));
    }
    passes_drop_dead(c->g); // the reshapes before
    return NULL;
}
