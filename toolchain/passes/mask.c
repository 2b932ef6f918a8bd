// SPDX-License-Identifier: Apache-2.0
// Taking a model's mask apart. Each step is followed back through moves, repetitions and
// elementwise functions of one value. Where that value is a truth value, the whole function is
// known from its results for 0 and 1: Where(m, 0, lowest), (1 - m) * lowest, a cast, a negation are
// all the same to this. Conjunctions fall apart into leaves. What cannot be followed is a leaf as
// it stands.
#include "toolchain/passes/mask.h"

#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/chain.h"
#include "toolchain/passes/views.h"

// ---- following a value back

struct trail {
    struct graph_node *via[MASK_VIA]; // nodes passed, the one that makes the value first
    int n;
    struct graph_value *root;
};

// The value that a node is an elementwise function of, beside constants of one element; NULL.
static struct graph_value *only_input(const struct graph_node *n) {
    struct graph_value *x = NULL;
    if (n->op != GRAPH_MAP) return NULL;
    for (int k = 0; k < n->nin; k++) {
        struct graph_value *v = n->inputs[k];
        if (v->data && graph_value_elems(v) == 1 && v->rank <= n->outputs[0]->rank) continue;
        if (x && x != v) return NULL;
        x = v;
    }
    return x;
}

static bool moves(const struct graph_node *n) {
    return !n->has_chain &&
           (n->op == GRAPH_RESHAPE || n->op == GRAPH_TRANSPOSE || n->op == GRAPH_EXPAND);
}

static struct trail follow(struct graph_value *v) {
    struct trail t = {.root = v};
    while (t.n < MASK_VIA && t.root->producer) {
        struct graph_node *p = t.root->producer;
        struct graph_value *x = moves(p) ? p->inputs[0] : only_input(p);
        if (!x) break;
        t.via[t.n++] = p;
        t.root = x;
    }
    return t;
}

// Cuts the trail at the truth value that is farthest back; false: there is none.
static bool cut_at_bool(struct trail *t) {
    if (t->root->dtype == ISA_BOOL) return true;
    for (int k = t->n - 1; k >= 0; k--) {
        if (t->via[k]->outputs[0]->dtype != ISA_BOOL) continue;
        t->root = t->via[k]->outputs[0];
        t->n = k;
        return true;
    }
    return false;
}

// What a node gives for one element of its input.
static bool value_at(struct mask *m, const struct graph_node *n, float x, float *y) {
    struct graph_value in = *only_input(n), out = *n->outputs[0], *outs[1] = {&out}, *ins[3];
    struct graph_node one = *n;
    const void *data[3];
    uint64_t from = 0, to = 0;
    void *result = &to;
    out.rank = in.rank = n->outputs[0]->rank;
    for (int d = 0; d < out.rank; d++)
        out.dims[d] = in.dims[d] = 1;
    num_store_f32((int)in.dtype, &from, 0, x);
    for (int k = 0; k < n->nin; k++) {
        bool same = n->inputs[k] == only_input(n);
        ins[k] = same ? &in : n->inputs[k];
        data[k] = same ? (const void *)&from : n->inputs[k]->data;
    }
    one.inputs = ins;
    one.outputs = outs;
    npu_status failed = graph_eval_node(&one, data, &result, m->c->scratch);
    npu_status_free(failed);
    *y = num_load_f32((int)out.dtype, &to, 0);
    return !failed;
}

// The function along the trail, for the root's values 0 and 1.
static bool two_values(struct mask *m, const struct trail *t, float value[2]) {
    for (int b = 0; b < 2; b++) {
        value[b] = (float)b;
        for (int k = t->n - 1; k >= 0; k--)
            if (!moves(t->via[k]) && !value_at(m, t->via[k], value[b], &value[b])) return false;
    }
    return true;
}

static bool leaf(struct mask_leaf *list, int *n, struct graph_value *v, bool keep,
                 struct graph_node *const *via, int nvia, const struct graph_value *score) {
    if (*n == MASK_LEAVES || nvia > MASK_VIA) return false;
    struct mask_leaf *l = &list[(*n)++];
    *l = (struct mask_leaf){.v = v, .keep = keep, .nvia = nvia, .rank = score->rank};
    if (nvia) memcpy(l->via, via, (size_t)nvia * sizeof(struct graph_node *));
    memcpy(l->dims, score->dims, sizeof l->dims);
    return true;
}

// ---- hiding

// A chain that is one stage, acc = IN0, with IN1 as its operand.
static bool is_single(const struct graph_node *n, enum isa_vop op) {
    return n && n->op == GRAPH_MAP && n->nin == 2 && chain_length(&n->chain) == 1 &&
           n->chain.st[0].op == op && n->chain.st[0].a == ISA_SRC_IN1;
}

// A key is seen where v, reached through via, is not 0 (keep) or is 0.
static bool keep_where(struct mask *m, struct graph_value *v, bool keep,
                       struct graph_node *const *via, int nvia, const struct graph_value *score) {
    struct graph_node *all[MASK_VIA];
    struct trail t = follow(v);
    float value[2];
    bool known = cut_at_bool(&t) && two_values(m, &t, value);
    if (!known || nvia + t.n + 2 > MASK_VIA)
        return leaf(m->hide, &m->nhide, v, keep, via, nvia, score);
    bool at0 = (value[0] != 0) == keep, at1 = (value[1] != 0) == keep;
    if (at0 && at1) return true;
    if (!at0 && !at1) return false; // all hidden: nothing to gain
    if (nvia) memcpy(all, via, (size_t)nvia * sizeof *all);
    if (t.n) memcpy(all + nvia, t.via, (size_t)t.n * sizeof *all);
    nvia += t.n;
    struct graph_node *p = t.root->producer;
    bool both = is_single(p, at1 ? ISA_VOP_AND : ISA_VOP_OR) || (at1 && is_single(p, ISA_VOP_MUL));
    both = both && p->inputs[0]->dtype == ISA_BOOL && p->inputs[1]->dtype == ISA_BOOL;
    if (both) {
        all[nvia++] = p;
        return keep_where(m, p->inputs[0], at1, all, nvia, score) &&
               keep_where(m, p->inputs[1], at1, all, nvia, score);
    }
    // A cast of an integer, x != 0: the integer itself will do.
    if (at1 && p && p->op == GRAPH_MAP && only_input(p) && isa_dtype_is_int(only_input(p)->dtype) &&
        only_input(p)->dtype != ISA_BOOL && chain_length(&p->chain) == 1 &&
        p->chain.st[0].op == ISA_VOP_NE && p->chain.st[0].a == ISA_SRC_IMM0 && !p->chain.imm[0]) {
        all[nvia++] = p;
        struct trail moved = follow(only_input(p));
        int k = 0;
        while (k < moved.n && nvia < MASK_VIA && moves(moved.via[k]))
            all[nvia++] = moved.via[k++];
        struct graph_value *root = k < moved.n ? moved.via[k]->outputs[0] : moved.root;
        return leaf(m->hide, &m->nhide, root, true, all, nvia, score);
    }
    return leaf(m->hide, &m->nhide, t.root, at1, all, nvia, score);
}

static bool set_fill(struct mask *m, double fill) {
    if (m->filled && (fill < m->fill || fill > m->fill)) return false;
    m->filled = true;
    m->fill = fill;
    return !isnan(fill);
}

bool mask_hide(struct mask *m, struct graph_value *cond, bool hides, double fill,
               const struct graph_value *score) {
    return set_fill(m, fill) && keep_where(m, cond, !hides, NULL, 0, score);
}

// ---- adding

// An addend so low that the sum is that addend, in the type that the model computes in; far: one
// whose exponential is 0 beside that of any sensible score.
static bool is_lowest(enum isa_dtype t, double v) {
    return v <= (t == ISA_F16 ? -65504.0 : -1e30);
}

static bool is_far(const struct mask *m, enum isa_dtype t, double v) {
    return is_lowest(t, v) || (m->weak && v <= -1e4);
}

// Constant addends with one far value and others: as an integer constant that keeps the others;
// NULL otherwise. *rest: the constant with 0 for the far value; NULL when nothing but 0 is left.
static struct graph_value *constant_keep(struct mask *m, const struct graph_value *v, double *fill,
                                         struct graph_value **rest) {
    int64_t n = graph_value_elems(v);
    uint8_t *keep = arena_alloc(m->c->g->arena, (size_t)n + 1);
    float *others = ARENA_ARRAY(m->c->g->arena, float, (size_t)n + 1);
    bool any = false, more = false;
    for (int64_t i = 0; i < n; i++) {
        float f = num_load_f32((int)v->dtype, v->data, i);
        double x = (double)f;
        keep[i] = !is_far(m, v->dtype, x);
        if (keep[i]) {
            others[i] = f;
            more |= x > 0 || x < 0 || isnan(x);
            continue;
        }
        if (any && (x < *fill || x > *fill)) return NULL;
        any = true;
        *fill = x;
    }
    if (!any) return NULL;
    m->used_weak |= !is_lowest(v->dtype, *fill);
    *rest = more ? graph_add_const(m->c->g, v->name, ISA_F32, v->rank, v->dims, others) : NULL;
    return graph_add_const(m->c->g, v->name, ISA_BOOL, v->rank, v->dims, keep);
}

static bool add_value(struct mask *m, struct graph_value *v, const struct graph_value *score);

// A step that only hides, or a sum with such a part: noted as hiding. false: neither.
static bool add_hides(struct mask *m, struct graph_value *v, const struct graph_value *score) {
    struct mask before = *m;
    double fill = 0;
    if (v->data) {
        struct graph_value *rest, *keep = constant_keep(m, v, &fill, &rest);
        if (keep && set_fill(m, fill) && leaf(m->hide, &m->nhide, keep, true, NULL, 0, score) &&
            (!rest || leaf(m->add, &m->nadd, rest, true, NULL, 0, score)))
            return true;
        *m = before;
        return false;
    }
    struct trail t = follow(v);
    float value[2];
    if (cut_at_bool(&t) && two_values(m, &t, value)) {
        int low = value[0] < value[1] ? 0 : 1;
        fill = (double)value[low];
        if (!(value[!low] < 0) && !(value[!low] > 0) && is_lowest(v->dtype, fill) &&
            set_fill(m, fill) && keep_where(m, t.root, low == 0, t.via, t.n, score))
            return true;
        *m = before;
        return false;
    }
    struct graph_node *p = v->producer;
    if (is_single(p, ISA_VOP_SEL) && p->chain.st[0].b == ISA_SRC_IMM0) {
        fill = (double)num_float((uint32_t)p->chain.imm[0]);
        if (is_lowest(v->dtype, fill) && set_fill(m, fill) &&
            keep_where(m, p->inputs[0], true, &p, 1, score) && add_value(m, p->inputs[1], score))
            return true;
        *m = before;
    }
    if (!is_single(p, ISA_VOP_ADD)) return false;
    struct graph_value *const *in = p->inputs;
    if ((add_hides(m, in[0], score) && add_value(m, in[1], score)) ||
        (*m = before, add_hides(m, in[1], score) && add_value(m, in[0], score)))
        return true;
    *m = before;
    return false;
}

static bool add_value(struct mask *m, struct graph_value *v, const struct graph_value *score) {
    if (!isa_dtype_is_float((int)v->dtype)) return false;
    if (add_hides(m, v, score)) return true;
    struct trail t = follow(v);
    return leaf(m->add, &m->nadd, t.root, true, t.via, t.n, score);
}

bool mask_add(struct mask *m, struct graph_value *v, bool negative,
              const struct graph_value *score) {
    return !negative && add_value(m, v, score);
}
