// SPDX-License-Identifier: Apache-2.0
// Gated products: act(x W0 + b0) * (x W1 + b1) becomes one GLU node, for any activation of act.c.
//
//   MUL of two values: either may be the activated one
//     activated: MAPs of one value that together are the chain of an activation
//     both: perhaps + constant bias, perhaps part of the columns, then MATMUL by constant weights
//
// where nobody else reads what lies in between. The two are halves of one product, in either order,
// or two products of the same x. A bias may be added before the columns are parted or after.
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/graph/act.h"
#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

enum { PATH = 12 };

// One of the two factors.
struct side {
    struct graph_node *path[PATH]; // from the multiplication down to the product, without both
    int n;
    struct graph_node *product;
    int64_t start, columns;       // of the product's
    struct graph_value *bias;     // added before the part was taken (one number a column of the
    struct graph_value *own_bias; // product) or after; NULL: none
    int act;
};

struct gate {
    struct side side[2]; // activated, other
    int halves;
    bool turned;
};

static bool same_dims(const struct graph_value *a, const struct graph_value *b) {
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

// The factors of a MAP that only multiplies two different values of one shape.
static bool factors(const struct graph_node *n, struct graph_value *out[2]) {
    struct chain c = chain_of(n);
    if (chain_length(&c.c) != 1 || c.c.st[0].op != ISA_VOP_MUL || c.c.st[0].a != ISA_SRC_IN1 ||
        c.in[2])
        return false;
    out[0] = c.in[0];
    out[1] = c.in[1];
    return out[0] && out[1] && out[0] != out[1] && !out[0]->data && !out[1]->data &&
           same_dims(out[0], out[1]) && isa_dtype_is_float((int)n->outputs[0]->dtype);
}

// The constant vector along the last dimension that a MAP adds; *x: to what.
static struct graph_value *added(const struct graph_node *n, struct graph_value **x) {
    struct chain c = chain_of(n);
    if (chain_length(&c.c) != 1 || c.c.st[0].op != ISA_VOP_ADD || c.c.st[0].a != ISA_SRC_IN1)
        return NULL;
    for (int k = 0; k < 2; k++) {
        struct graph_value *b = c.in[k], *other = c.in[1 - k];
        const struct graph_value *y = n->outputs[0];
        if (!b || !other || !b->data || other->data || !same_dims(other, y) || b->rank < 1)
            continue;
        int64_t wide = y->dims[y->rank - 1];
        if (graph_value_elems(b) != wide || b->dims[b->rank - 1] != wide) continue;
        *x = other;
        return b;
    }
    return NULL;
}

// Part of the last dimension only.
static bool column_part(const struct graph_node *n, int64_t *start) {
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    int last = x->rank - 1;
    if (n->op != GRAPH_SLICE || x->rank < 1) return false;
    for (int d = 0; d < x->rank; d++)
        if (graph_ints_at(n, GRAPH_ATTR_STEPS, d, 1) != 1 ||
            (d < last && (x->dims[d] != y->dims[d] || graph_ints_at(n, GRAPH_ATTR_STARTS, d, 0))))
            return false;
    *start = graph_ints_at(n, GRAPH_ATTR_STARTS, last, 0);
    return true;
}

static bool weights_fit(const struct graph_node *n) {
    if (n->op != GRAPH_MATMUL) return false;
    const struct graph_value *w = n->inputs[1];
    return !n->has_chain && w->data && w->rank == 2 && isa_dtype_is_float((int)w->dtype) &&
           isa_dtype_bits((int)w->dtype) >= 16 && !graph_int(n, GRAPH_ATTR_TRANS_A, 0) &&
           n->inputs[0]->rank == n->outputs[0]->rank && n->outputs[0]->dtype == n->inputs[0]->dtype;
}

static bool push(struct side *s, struct graph_node *n) {
    if (s->n == PATH) return false;
    s->path[s->n++] = n;
    return true;
}

// Follows v back to the product: bias, part, bias. The part may be read together with another.
static bool trace_linear(const struct graph *g, struct graph_value *v, struct side *s) {
    s->columns = v->rank ? v->dims[v->rank - 1] : 0;
    bool parted = false;
    for (;;) {
        struct graph_node *n = v->producer;
        struct graph_value *x = NULL;
        if (!n || (!parted && graph_count_uses(g, v) != 1)) return false;
        if (weights_fit(n)) {
            s->product = n;
            return true;
        }
        struct graph_value *b = n->op == GRAPH_MAP ? added(n, &x) : NULL;
        if (b && !*(parted ? &s->bias : &s->own_bias)) {
            *(parted ? &s->bias : &s->own_bias) = b;
        } else if (!parted && column_part(n, &s->start)) {
            x = n->inputs[0];
            parted = true;
        } else {
            return false;
        }
        if (!push(s, n)) return false;
        v = x;
    }
}

// A MAP of one value and numbers.
static bool unary(const struct graph_node *n) {
    struct chain c = chain_of(n);
    return n->op == GRAPH_MAP && c.in[0] && !c.in[1] && !c.in[2] && !c.in[0]->data &&
           isa_dtype_is_float((int)c.in[0]->dtype) &&
           isa_dtype_is_float((int)n->outputs[0]->dtype) && same_dims(c.in[0], n->outputs[0]);
}

// Follows v back through the activation, then to the product. Every number of MAPs is tried, so
// that what stands before the activation may be a part of it or not.
static bool trace_activated(const struct graph *g, struct graph_value *v, struct side *s) {
    struct chain all;
    memset(&all, 0, sizeof all);
    for (;;) {
        int act = graph_act_find(&all.c);
        struct side tried = *s;
        if (act >= 0 && trace_linear(g, v, &tried)) {
            *s = tried;
            s->act = act;
            return true;
        }
        struct graph_node *n = v->producer;
        if (!n || !unary(n) || graph_count_uses(g, v) != 1 || !push(s, n)) return false;
        struct chain one = chain_of(n), joint;
        one.in[0] = all.in[0] = v;
        if (chain_length(&all.c) == 0)
            joint = one;
        else if (!chain_join(NULL, &one, &all, 0, &joint))
            return false;
        all = joint;
        v = n->inputs[0];
    }
}

// The value that the product's parts are taken from: its result, or that with the bias added.
static struct graph_value *whole_of(const struct side *s) {
    for (int i = s->n - 1; i >= 0; i--)
        if (s->path[i]->op == GRAPH_SLICE) return s->path[i]->inputs[0];
    return s->product->outputs[0];
}

// The two halves of one product, read by nobody else.
static bool halves_of(const struct graph *g, struct gate *t) {
    const struct side *a = &t->side[0], *b = &t->side[1];
    if (a->product != b->product || a->columns != b->columns || whole_of(a) != whole_of(b) ||
        a->bias != b->bias)
        return false;
    const struct graph_value *y = a->product->outputs[0];
    if (y->dims[y->rank - 1] != 2 * a->columns || graph_count_uses(g, whole_of(a)) != 2)
        return false;
    if (whole_of(a) != y && graph_count_uses(g, y) != 1) return false;
    t->halves = a->start == 0 && b->start == a->columns   ? 1
                : b->start == 0 && a->start == b->columns ? 2
                                                          : 0;
    return t->halves != 0;
}

// Two whole products of one value.
static bool two_products(const struct graph *g, const struct gate *t) {
    const struct side *a = &t->side[0], *b = &t->side[1];
    const struct graph_node *p = a->product, *q = b->product;
    return p != q && p->inputs[0] == q->inputs[0] && same_dims(p->inputs[1], q->inputs[1]) &&
           p->inputs[1]->dtype == q->inputs[1]->dtype &&
           !graph_int(p, GRAPH_ATTR_TRANS_B, 0) == !graph_int(q, GRAPH_ATTR_TRANS_B, 0) &&
           !a->bias && !b->bias && whole_of(a) == p->outputs[0] && whole_of(b) == q->outputs[0] &&
           graph_count_uses(g, p->outputs[0]) == 1 && graph_count_uses(g, q->outputs[0]) == 1;
}

static bool match(const struct graph *g, const struct graph_node *mul, struct gate *t) {
    struct graph_value *f[2];
    if (mul->op != GRAPH_MAP || !factors(mul, f)) return false;
    // First with a true activation on either side, then as the product of two plain ones.
    for (int plain = 0; plain < 2; plain++)
        for (int k = 0; k < 2; k++) {
            memset(t, 0, sizeof *t);
            if (!trace_activated(g, f[k], &t->side[0]) || (t->side[0].act == 0) != (plain == 1) ||
                !trace_linear(g, f[1 - k], &t->side[1]))
                continue;
            t->turned = graph_int(t->side[0].product, GRAPH_ATTR_TRANS_B, 0) != 0;
            if (halves_of(g, t) || two_products(g, t))
                return mul->outputs[0]->dtype == t->side[0].product->inputs[0]->dtype;
        }
    return false;
}

// ---- rewriting -------------------------------------------------------------------------------

// One vector of the biases of `n` columns from `start` on: before and after the parting, summed.
static void add_bias(float *to, const struct graph_value *b, int64_t start, int64_t n) {
    for (int64_t i = 0; b && i < n; i++)
        to[i] += num_load_f32((int)b->dtype, b->data, start + i);
}

static struct graph_value *vector(struct graph *g, const struct gate *t, const char *name,
                                  const int *sides, int count) {
    int64_t n = t->side[0].columns, dims[] = {n * count};
    float *data = ARENA_ARRAY(g->arena, float, (size_t)dims[0]);
    for (int i = 0; i < count; i++) {
        const struct side *s = &t->side[sides[i]];
        add_bias(data + i * n, s->bias, s->start, n);
        add_bias(data + i * n, s->own_bias, 0, n);
    }
    return graph_add_const(g, arena_printf(g->arena, "%s.bias", name), ISA_F32, 1, dims, data);
}

static npu_status rewrite(struct pass_context *c, struct graph_node *mul, const struct gate *t) {
    struct graph *g = c->g;
    const struct side *a = &t->side[0], *b = &t->side[1];
    struct graph_value *in[5] = {a->product->inputs[0], a->product->inputs[1]},
                       *y = mul->outputs[0];
    int nin = 2;
    if (!t->halves) in[nin++] = b->product->inputs[1];
    bool biased = a->bias || a->own_bias || b->bias || b->own_bias;
    if (biased && t->halves) {
        in[nin++] = vector(g, t, mul->name, t->halves == 1 ? (int[]){0, 1} : (int[]){1, 0}, 2);
    } else if (biased) {
        in[nin++] = vector(g, t, mul->name, (int[]){0}, 1);
        in[nin++] = vector(g, t, mul->name, (int[]){1}, 1);
    }
    struct graph_node *n = graph_add_node(g, GRAPH_GLU, mul->name, nin, in, mul);
    graph_set_word(g, n, GRAPH_ATTR_ACT, graph_acts[a->act].text);
    graph_set_int(g, n, GRAPH_ATTR_HALVES, t->halves);
    graph_set_int(g, n, GRAPH_ATTR_BIASED, biased);
    graph_set_int(g, n, GRAPH_ATTR_TRANS_B, t->turned);
    NPU_TRY(graph_infer(g, n, y->name));
    graph_add_origins(g, n, a->product);
    if (b->product != a->product) graph_add_origins(g, n, b->product);
    for (int i = 0; i < 2; i++)
        for (int k = t->side[i].n - 1; k >= 0; k--)
            graph_add_origins(g, n, t->side[i].path[k]);
    graph_add_origins(g, n, mul);
    graph_replace_uses(g, y, n->outputs[0]);
    const char *name = y->name;
    graph_remove_node(g, mul);
    if (!n->outputs[0]->is_output) graph_rename_value(g, n->outputs[0], name);
    c->log->fused += a->n + b->n + (t->halves ? 1 : 2);
    return NULL;
}

npu_status pass_glu(struct pass_context *c) {
    for (struct graph_node *n = c->g->first, *next; n; n = next) {
        struct gate t;
        next = n->next;
        if (match(c->g, n, &t)) NPU_TRY(rewrite(c, n, &t));
    }
    passes_drop_dead(c->g); // what the nodes were made of
    return NULL;
}
