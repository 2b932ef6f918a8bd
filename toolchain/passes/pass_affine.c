// SPDX-License-Identifier: Apache-2.0
// Scales and shifts by constants after a convolution or matrix product with constant weights:
//
//   y = op(x, w);  y + b, y * s, y + t, fma(y, s, t), ... one after the other, each the only user
//   of the last
//       ->   op(x, w * S) + T
//
// S and T per output channel, computed in f64 and rounded once. Only when some scale is among them:
// shifts alone are joined by fuse_epilogue.
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

enum { MAX_MAPS = 16 };

struct fold {
    struct graph_node *op;
    int64_t channels;
    int channel_dim; // of the result
    double *scale, *shift;
    bool scaled;
    struct graph_node *map[MAX_MAPS]; // that are folded
    int n;
};

// Output channels of the kernel; 0 when its weights are not constant or have another form.
static int64_t channels_of(const struct graph_node *n, int *dim) {
    if (n->has_chain || n->nin != 2 || n->nout != 1) return 0;
    const struct graph_value *w = n->inputs[1], *y = n->outputs[0];
    if (!w->data || w->dtype != ISA_F32 || y->dtype != ISA_F32) return 0;
    if (n->op == GRAPH_CONV || (n->op == GRAPH_CONVT && graph_int(n, GRAPH_ATTR_GROUP, 1) == 1)) {
        *dim = 1;
        return y->dims[1];
    }
    if (n->op == GRAPH_MATMUL && w->rank == 2 && !graph_int(n, GRAPH_ATTR_TRANS_B, 0) &&
        y->rank > 0) {
        *dim = y->rank - 1;
        return y->dims[*dim];
    }
    return 0;
}

// The constant behind a stage's operand: an immediate, or an operand that is one number or one per
// channel. false: it is something else.
static bool per_channel(const struct fold *f, const struct graph_value *y, const struct chain *ch,
                        int64_t src, double *out) {
    float imm;
    const void *data = &imm;
    int64_t n = 1;
    if (src >= ISA_SRC_IMM0 && src <= ISA_SRC_IMM3) {
        uint32_t bits = (uint32_t)ch->c.imm[src - ISA_SRC_IMM0];
        memcpy(&imm, &bits, sizeof imm);
    } else {
        if (src != ISA_SRC_IN1 && src != ISA_SRC_IN2) return false;
        const struct graph_value *v = ch->in[src - ISA_SRC_IN0];
        if (!v || !v->data || v->dtype != ISA_F32 || v->rank > y->rank) return false;
        int at = f->channel_dim - (y->rank - v->rank);
        n = graph_value_elems(v);
        if (n != 1 && (n != f->channels || at < 0 || v->dims[at] != n)) return false;
        data = v->data;
    }
    for (int64_t i = 0; i < f->channels; i++)
        out[i] = (double)num_load_f32(ISA_F32, data, n == 1 ? 0 : i);
    return true;
}

// One stage applied to scale and shift; false when it is not affine.
static bool stage(struct fold *f, enum isa_vop op, const double *a, const double *b) {
    for (int64_t i = 0; i < f->channels; i++) {
        double s = 1, t = 0;
        if (op == ISA_VOP_FMA)
            s = a[i], t = b[i];
        else if (op == ISA_VOP_MUL)
            s = a[i];
        else if (op == ISA_VOP_DIV)
            s = 1 / a[i];
        else if (op == ISA_VOP_ADD)
            t = a[i];
        else if (op == ISA_VOP_SUB)
            t = -a[i];
        else
            return false;
        if (!isfinite(s) || !isfinite(t)) return false;
        f->scale[i] *= s;
        f->shift[i] = f->shift[i] * s + t;
    }
    f->scaled |= op != ISA_VOP_ADD && op != ISA_VOP_SUB;
    return true;
}

// One more MAP: false, and f as before, when it is not made of constant scales and shifts of y.
static bool absorb(struct pass_context *c, struct fold *f, const struct graph_node *map,
                   const struct graph_value *y) {
    const struct graph_value *z = map->outputs[0];
    struct chain ch = chain_of(map);
    struct fold old = *f;
    size_t n = (size_t)f->channels;
    if (z->dtype != ISA_F32 || z->rank != y->rank || memcmp(z->dims, y->dims, sizeof y->dims) != 0)
        return false;
    for (int k = 1; k < 3 && ch.in[0] != y; k++)
        if (ch.in[k] == y) chain_start_from(&ch, k);
    if (ch.in[0] != y || chain_length(&ch.c) == 0) return false;
    double *a = ARENA_ARRAY(c->scratch, double, n), *b = ARENA_ARRAY(c->scratch, double, n);
    f->scale = arena_copy(c->scratch, old.scale, n * sizeof(double));
    f->shift = arena_copy(c->scratch, old.shift, n * sizeof(double));
    for (int i = 0; i < chain_length(&ch.c); i++) {
        const struct isa_stage *st = &ch.c.st[i];
        if (st->save || !per_channel(f, y, &ch, st->a, a) ||
            (st->op == ISA_VOP_FMA && !per_channel(f, y, &ch, st->b, b)) ||
            !stage(f, (enum isa_vop)st->op, a, b)) {
            *f = old;
            return false;
        }
    }
    return true;
}

// Element i of the weights belongs to this output channel.
static int64_t channel_at(const struct graph_node *n, int64_t i) {
    const struct graph_value *w = n->inputs[1];
    int64_t inner = graph_value_elems(w) / w->dims[0];
    if (n->op == GRAPH_MATMUL) return i % w->dims[1];
    return n->op == GRAPH_CONV ? i / inner : i / (inner / w->dims[1]) % w->dims[1];
}

// `with` takes the place of the last map's result.
static void drop_maps(struct graph *g, const struct fold *f, struct graph_value *with) {
    graph_replace_uses(g, f->map[f->n - 1]->outputs[0], with);
    for (int i = f->n - 1; i >= 0; i--)
        graph_remove_node(g, f->map[i]);
}

static npu_status rewrite(struct pass_context *c, const struct fold *f) {
    struct graph *g = c->g;
    const struct graph_value *w = f->op->inputs[1];
    int64_t n = graph_value_elems(w), dims[GRAPH_MAX_RANK];
    float *data = ARENA_ARRAY(g->arena, float, (size_t)n);
    float *shift = ARENA_ARRAY(g->arena, float, (size_t)f->channels);
    for (int64_t i = 0; i < n; i++)
        data[i] =
            (float)((double)num_load_f32(ISA_F32, w->data, i) * f->scale[channel_at(f->op, i)]);
    for (int64_t i = 0; i < f->channels; i++)
        shift[i] = (float)f->shift[i];
    f->op->inputs[1] = graph_add_const(g, arena_printf(g->arena, "%s.scaled", w->name), ISA_F32,
                                       w->rank, w->dims, data);
    struct graph_node *last = f->map[f->n - 1];
    bool shifted = false;
    for (int64_t i = 0; i < f->channels; i++)
        shifted |= shift[i] != 0;
    if (!shifted) {
        for (int i = 0; i < f->n; i++)
            graph_add_origins(g, f->op, f->map[i]);
        drop_maps(g, f, f->op->outputs[0]);
        return NULL;
    }
    int rank = f->op->outputs[0]->rank - f->channel_dim;
    for (int d = 0; d < rank; d++)
        dims[d] = d ? 1 : f->channels;
    struct graph_value *in[] = {f->op->outputs[0],
                                graph_add_const(g, arena_printf(g->arena, "%s.shift", last->name),
                                                ISA_F32, rank, dims, shift)};
    struct isa_chain add = {.st = {{ISA_VOP_ADD, ISA_SRC_IN1, 0, 0}}};
    struct graph_value *fresh;
    NPU_TRY(graph_add_map(g, last->name, 2, in, &add, ISA_F32, last, &fresh));
    for (int i = 0; i < f->n; i++)
        graph_add_origins(g, fresh->producer, f->map[i]);
    drop_maps(g, f, fresh);
    return NULL;
}

npu_status pass_affine(struct pass_context *c) {
    for (struct graph_node *n = c->g->first; n; n = n->next) {
        struct fold f = {.op = n};
        f.channels = channels_of(n, &f.channel_dim);
        if (!f.channels) continue;
        f.scale = ARENA_ARRAY(c->scratch, double, (size_t)f.channels);
        f.shift = ARENA_ARRAY(c->scratch, double, (size_t)f.channels);
        for (int64_t i = 0; i < f.channels; i++)
            f.scale[i] = 1;
        struct graph_value *y = n->outputs[0];
        while (f.n < MAX_MAPS) {
            struct graph_node *user = graph_single_user(c->g, y);
            if (!user || user->op != GRAPH_MAP || !absorb(c, &f, user, y)) break;
            f.map[f.n++] = user;
            y = user->outputs[0];
        }
        if (f.scaled) NPU_TRY(rewrite(c, &f));
    }
    return NULL;
}
