// SPDX-License-Identifier: Apache-2.0
// The way from the first product of an attention through the softmax to the second one: which nodes
// may lie on it, and what they say. A value that somebody else reads ends it, but for the test that
// sets rows without keys to 0.
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/attention.h"

// ---- the way from the product to the softmax -------------------------------------------------

static bool same_matrix(const struct graph_value *a, const struct graph_value *b) {
    return a->rank >= 2 && b->rank >= 2 && graph_value_elems(a) == graph_value_elems(b) &&
           !memcmp(a->dims + a->rank - 2, b->dims + b->rank - 2, 2 * sizeof *a->dims);
}

// Finds the product that v is made of; path[] gets the nodes between, last one first.
static struct graph_node *find_product(struct match *m, const struct graph_value *v, int depth) {
    struct graph_node *p = v->producer;
    int uses = depth == 0 && m->guard ? 2 : 1;
    if (!p || depth == ATTENTION_PATH || graph_count_uses(m->c->g, v) != uses) return NULL;
    m->npath = depth;
    if (p->op == GRAPH_MATMUL) return p;
    if (p->op != GRAPH_MAP && (p->op != GRAPH_RESHAPE || p->has_chain)) return NULL;
    m->path[depth] = p;
    for (int k = 0; k < p->nin; k++) {
        if (p->inputs[k]->data || !same_matrix(p->inputs[k], v)) continue;
        struct graph_node *found = find_product(m, p->inputs[k], depth + 1);
        m->path[depth] = p;
        if (found) return found;
    }
    return NULL;
}

// A stage's operand that is one number.
bool attention_number(const struct chain *c, int64_t src, double *out) {
    if (src >= ISA_SRC_IMM0 && src <= ISA_SRC_IMM3) {
        *out = (double)num_float((uint32_t)c->c.imm[src - ISA_SRC_IMM0]);
        return true;
    }
    if (src < ISA_SRC_IN0 || src > ISA_SRC_IN2) return false;
    const struct graph_value *v = c->in[src - ISA_SRC_IN0];
    if (!v || !v->data || graph_value_elems(v) != 1) return false;
    *out = (double)num_load_f32((int)v->dtype, v->data, 0);
    return true;
}

static struct graph_value *operand(const struct chain *c, int64_t src) {
    return src >= ISA_SRC_IN0 && src <= ISA_SRC_IN2 ? c->in[src - ISA_SRC_IN0] : NULL;
}

static bool scale_by(struct match *m, double by) {
    m->factor *= by;
    return !m->masked && isfinite(by);
}

// One stage on the scores.
static bool score_stage(struct match *m, const struct chain *c, const struct isa_stage *st,
                        const struct graph_value *y) {
    double x = 0;
    bool known = attention_number(c, st->a, &x);
    struct graph_value *v = operand(c, st->a);
    switch ((int)st->op) {
    case ISA_VOP_NOP: return true;
    case ISA_VOP_MUL: return known && scale_by(m, x);
    case ISA_VOP_DIV: return known && scale_by(m, 1 / x);
    case ISA_VOP_MAX: return known && x <= (y->dtype == ISA_F16 ? -65504.0 : -1e30); // a clamp
    case ISA_VOP_TANH:
        if (m->capped || m->masked) return false;
        m->capped = true;
        m->inner = m->factor;
        m->factor = 1;
        return true;
    case ISA_VOP_ADD:
        if (known && !(x > 0) && !(x < 0)) return true;
        m->masked = true;
        return v && mask_add(&m->mask, v, false, y);
    default: return false;
    }
}

// One stage on another value, which the scores meet in this stage.
static bool other_stage(struct match *m, const struct chain *c, const struct isa_stage *st,
                        struct graph_value *v, bool keep, const struct graph_value *score,
                        const struct graph_value *y) {
    bool at_a = operand(c, st->a) == score, at_b = operand(c, st->b) == score;
    double x = 0;
    if (st->op == ISA_VOP_SEL) {
        if (at_a == at_b || !attention_number(c, at_a ? st->b : st->a, &x)) return false;
        m->masked = true;
        return mask_hide(&m->mask, v, at_a ? !keep : keep, x, y);
    }
    if (!at_a || !keep) return false;
    if (st->op == ISA_VOP_MUL && v->data && graph_value_elems(v) == 1)
        return scale_by(m, (double)num_load_f32((int)v->dtype, v->data, 0));
    m->masked = true;
    return st->op == ISA_VOP_ADD && mask_add(&m->mask, v, false, y);
}

// The chain of a node whose scores are `score`: NULL, the node's own result.
static bool read_chain(struct match *m, const struct graph_node *n,
                       const struct graph_value *score) {
    const struct graph_value *y = n->outputs[0];
    struct chain c = chain_of(n);
    struct graph_value *other = score && c.in[0] != score ? c.in[0] : NULL;
    bool keep = true;
    if (!isa_dtype_is_float((int)y->dtype)) return false;
    for (int i = 0; i < chain_length(&c.c); i++) {
        const struct isa_stage *st = &c.c.st[i];
        if (st->save) return false;
        if (other && st->op == ISA_VOP_NOT) {
            keep = !keep;
            continue;
        }
        if (other) {
            if (!other_stage(m, &c, st, other, keep, score, y)) return false;
            other = NULL;
            continue;
        }
        if (operand(&c, st->a) && operand(&c, st->a) == score) return false;
        if (!score_stage(m, &c, st, y)) return false;
    }
    return !other;
}

bool attention_read_path(struct match *m) {
    m->factor = 1;
    m->capped = m->masked = false;
    if (m->product->has_chain && !read_chain(m, m->product, NULL)) return false;
    const struct graph_value *score = m->product->outputs[0];
    for (int k = m->npath - 1; k >= 0; k--) {
        const struct graph_node *n = m->path[k];
        if (n->op == GRAPH_MAP && !read_chain(m, n, score)) return false;
        score = n->outputs[0];
    }
    return true;
}

// ---- from the softmax on ---------------------------------------------------------------------

// Nodes that read v, at most `room`; an output counts as one more.
static int readers(const struct graph *g, const struct graph_value *v, struct graph_node **list,
                   int room) {
    int n = v->is_output;
    for (struct graph_node *p = g->first; p; p = p->next)
        for (int k = 0; k < p->nin; k++) {
            if (p->inputs[k] != v) continue;
            if (n < room) list[n] = p;
            n++;
            break;
        }
    return n;
}

static bool is_nan_test(const struct graph_node *n, const struct graph_value *v) {
    return n->op == GRAPH_MAP && n->nin == 1 && n->inputs[0] == v && chain_length(&n->chain) == 1 &&
           n->chain.st[0].op == ISA_VOP_NE &&
           (n->chain.st[0].a == ISA_SRC_IN0 || n->chain.st[0].a == ISA_SRC_ACC);
}

// sel(NaN?, 0, v), in one MAP or in two.
static bool zeroes_nan(const struct match *m, struct graph_node *const *by, int n,
                       const struct graph_value *v, struct graph_value **out) {
    for (int k = 0; k < n; k++) {
        struct chain c = chain_of(by[k]);
        int stages = by[k]->op == GRAPH_MAP ? chain_length(&c.c) : 0;
        const struct isa_stage *st = &c.c.st[n == 1 ? 1 : 0];
        double zero;
        if (stages != (n == 1 ? 2 : 1) || st->op != ISA_VOP_SEL || operand(&c, st->b) != v ||
            !attention_number(&c, st->a, &zero) || zero > 0 || zero < 0)
            continue;
        const struct graph_node *test = n == 1 ? by[k] : by[1 - k];
        bool tested = n == 1
                          ? c.c.st[0].op == ISA_VOP_NE && c.c.st[0].a == ISA_SRC_IN0 && c.in[0] == v
                          : is_nan_test(test, v) && c.in[0] == test->outputs[0] &&
                                graph_single_user(m->c->g, test->outputs[0]);
        if (!tested) continue;
        *out = by[k]->outputs[0];
        return true;
    }
    return false;
}

// Truth along one MAP of truth values: v becomes what the MAP gives for it.
static bool follow_truth(const struct graph_node *n, bool *v) {
    int stages = chain_length(&n->chain);
    const struct isa_stage *st = &n->chain.st[0];
    if (n->op != GRAPH_MAP || n->nin != 1 || stages > 1) return false;
    if (!stages) return true;
    bool zero = st->a == ISA_SRC_IMM0 && !n->chain.imm[0];
    if (st->op == ISA_VOP_NOT || (st->op == ISA_VOP_EQ && zero))
        *v = !*v;
    else if (st->op != ISA_VOP_NE || !zero)
        return false;
    return true;
}

// What v, a truth value for each row, is for a row of which all scores are -infinity and for one of
// which none is, when all that matters is that: comparisons of x with -infinity, any or all of a
// row, negations. *test: the node that reads x.
static bool row_truth(const struct graph *g, const struct graph_value *v,
                      const struct graph_value *x, bool truth[2], struct graph_node **test) {
    struct graph_node *steps[8], *n = v->producer;
    int count = 0;
    bool any = false, all = false;
    for (;; n = steps[count - 1]->inputs[0]->producer) {
        if (!n || count == 8 || !graph_single_user(g, n->outputs[0])) return false;
        steps[count++] = n;
        if (n->inputs[0] == x) break;
        const char *mode = n->op == GRAPH_REDUCE ? graph_word(n, GRAPH_ATTR_MODE, "") : "";
        any |= !strcmp(mode, "max");
        all |= !strcmp(mode, "min");
        if (n->op == GRAPH_REDUCE &&
            (n->has_chain || graph_attr(n, GRAPH_ATTR_AXES)->n != 1 ||
             graph_ints_at(n, GRAPH_ATTR_AXES, 0, 0) != n->inputs[0]->rank - 1))
            return false;
    }
    struct chain c = chain_of(n);
    double low;
    *test = n;
    if (n->op != GRAPH_MAP || n->nin > 2 || chain_length(&c.c) != 1 ||
        !attention_number(&c, c.c.st[0].a, &low) || !isinf(low) || low > 0 ||
        (c.c.st[0].op != ISA_VOP_EQ && c.c.st[0].op != ISA_VOP_NE) || any == all)
        return false;
    for (int row = 0; row < 2; row++) {
        truth[row] = (c.c.st[0].op == ISA_VOP_EQ) == (row == 0);
        for (int k = count - 2; k >= 0; k--) {
            // A row with one other score than -infinity has to count as one without any.
            if (steps[k]->op == GRAPH_REDUCE && truth[row] != (row == 0 ? all : any)) return false;
            if (steps[k]->op != GRAPH_REDUCE && steps[k]->op != GRAPH_RESHAPE &&
                !follow_truth(steps[k], &truth[row]))
                return false;
        }
    }
    return true;
}

// sel(all scores -infinity?, 0, v), or sel(some other?, v, 0).
static bool zeroes_empty(struct match *m, struct graph_node *n, const struct graph_value *v,
                         struct graph_value **out) {
    struct chain c = chain_of(n);
    const struct isa_stage *st = &c.c.st[0];
    bool truth[2];
    double zero;
    if (n->op != GRAPH_MAP || chain_length(&c.c) != 1 || st->op != ISA_VOP_SEL || !c.in[0] ||
        v != m->softmax->outputs[0])
        return false;
    bool at_a = operand(&c, st->a) == v, at_b = operand(&c, st->b) == v;
    if (at_a == at_b || !attention_number(&c, at_a ? st->b : st->a, &zero) || zero > 0 || zero < 0)
        return false;
    if (!row_truth(m->c->g, c.in[0], m->softmax->inputs[0], truth, &m->guard) || truth[0] != at_b ||
        truth[1] != at_a) {
        m->guard = NULL;
        return false;
    }
    *out = n->outputs[0];
    return true;
}

bool attention_find_value(struct match *m) {
    struct graph_value *v = m->softmax->outputs[0];
    for (int steps = 0; steps < ATTENTION_PATH; steps++) {
        struct graph_node *by[2];
        int n = readers(m->c->g, v, by, 2);
        if (n < 1 || n > 2 || v->is_output) return false;
        if (zeroes_nan(m, by, n, v, &v) || (n == 1 && zeroes_empty(m, by[0], v, &v))) {
            m->zero_rows = true;
            continue;
        }
        if (n != 1) return false;
        const struct graph_value *y = by[0]->outputs[0];
        if (by[0]->op == GRAPH_MATMUL) {
            m->value = by[0];
            m->weights = v;
            return by[0]->inputs[0] == v && by[0]->inputs[1] != v && !by[0]->has_chain &&
                   !graph_int(by[0], GRAPH_ATTR_TRANS_A, 0) && y->rank >= 2;
        }
        bool cast = by[0]->op == GRAPH_MAP && by[0]->nin == 1 && !chain_length(&by[0]->chain) &&
                    isa_dtype_is_float((int)y->dtype);
        if (!cast && (by[0]->op != GRAPH_RESHAPE || !same_matrix(v, y))) return false;
        v = by[0]->outputs[0];
    }
    return false;
}

bool attention_find_product(struct match *m) {
    m->product = find_product(m, m->softmax->inputs[0], 0);
    return m->product && isa_dtype_is_float((int)graph_own_dtype(m->product));
}
