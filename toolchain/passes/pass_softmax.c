// SPDX-License-Identifier: Apache-2.0
// Softmax written in pieces becomes one node:
//
//   e = exp(x - max(x))  or  exp(x);   y = e / sum(e)  or  e * (1 / sum(e))
//
// along one dimension, where nobody else reads what lies in between. The node subtracts the maximum
// in any case: where the pieces do not overflow it gives the same.
#include <string.h>

#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

// A MAP of one stage.
static bool is_stage(const struct graph_node *n, enum isa_vop op) {
    return n && n->op == GRAPH_MAP && chain_length(&n->chain) == 1 && n->chain.st[0].op == op;
}

// The operand that the stage combines with IN0; NULL when it is none.
static struct graph_value *other(const struct graph_node *n) {
    int64_t src = n->chain.st[0].a;
    if (src != ISA_SRC_IN1 || n->chain_in[1] < 0) return NULL;
    return n->inputs[n->chain_in[1]];
}

// Behind a reshape that only puts the reduced dimension back.
static struct graph_value *behind_reshape(const struct graph_value *v) {
    const struct graph_node *n = v->producer;
    return n && n->op == GRAPH_RESHAPE && !n->has_chain ? n->inputs[0] : NULL;
}

// The REDUCE of x along one dimension that v is, with that dimension of size 1; NULL otherwise.
static struct graph_node *reduced(const struct graph_value *v, const struct graph_value *x,
                                  const char *mode, int *axis) {
    if (!v || v->rank != x->rank) return NULL;
    const struct graph_value *direct = behind_reshape(v) ? behind_reshape(v) : v;
    struct graph_node *n = direct->producer;
    const struct graph_attr *axes = n ? graph_attr(n, GRAPH_ATTR_AXES) : NULL;
    if (!n || n->op != GRAPH_REDUCE || n->has_chain || n->inputs[0] != x || !axes || axes->n != 1 ||
        strcmp(graph_word(n, GRAPH_ATTR_MODE, ""), mode) != 0)
        return NULL;
    *axis = (int)axes->ints[0];
    for (int d = 0; d < x->rank; d++)
        if (v->dims[d] != (d == *axis ? 1 : x->dims[d])) return NULL;
    return n;
}

struct pieces {
    struct graph_node *last; // makes y
    struct graph_value *e, *x;
    struct graph_node *exp, *shift, *sum, *max;
    int axis;
};

// e / s, or e * recip(s).
static bool read_quotient(struct pieces *p) {
    struct graph_node *n = p->last;
    struct graph_value *s = NULL;
    if (is_stage(n, ISA_VOP_DIV)) {
        p->e = n->inputs[n->chain_in[0]];
        s = other(n);
    } else if (is_stage(n, ISA_VOP_MUL) && other(n)) {
        for (int k = 0; k < 2 && !s; k++) {
            struct graph_value *r = n->inputs[n->chain_in[k]];
            if (!is_stage(r->producer, ISA_VOP_RECIP)) continue;
            s = r->producer->inputs[0];
            p->e = n->inputs[n->chain_in[1 - k]];
        }
    }
    if (!s || !p->e || !isa_dtype_is_float((int)p->e->dtype)) return false;
    p->sum = reduced(s, p->e, "sum", &p->axis);
    return p->sum != NULL;
}

// exp(x - max(x)), in one MAP or in two, or exp(x).
static bool read_power(struct pieces *p) {
    struct graph_node *n = p->e->producer;
    if (!n || n->op != GRAPH_MAP || p->e->is_output) return false;
    int stages = chain_length(&n->chain), axis = -1;
    if (stages < 1 || n->chain.st[stages - 1].op != ISA_VOP_EXP) return false;
    p->exp = n;
    p->x = n->inputs[n->chain_in[0]];
    p->shift = stages == 2 ? n : is_stage(p->x->producer, ISA_VOP_SUB) ? p->x->producer : NULL;
    if (stages > 2 || (stages == 2 && n->chain.st[0].op != ISA_VOP_SUB)) return false;
    if (!p->shift) return true;
    struct graph_value *x = p->shift->inputs[p->shift->chain_in[0]];
    p->max = reduced(other(p->shift), x, "max", &axis);
    if (!p->max || axis != p->axis) {
        p->shift = NULL; // exp of whatever it is
        return stages == 1;
    }
    p->x = x;
    return true;
}

static bool match(const struct graph *g, struct graph_node *n, struct pieces *p) {
    *p = (struct pieces){.last = n};
    if (n->op != GRAPH_MAP || !read_quotient(p) || !read_power(p)) return false;
    const struct graph_value *y = n->outputs[0], *x = p->x;
    bool same = x->rank == y->rank && x->dtype == y->dtype && x->dtype == p->e->dtype &&
                !memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims);
    return same && graph_count_uses(g, p->e) == 2;
}

npu_status pass_softmax(struct pass_context *c) {
    struct graph *g = c->g;
    bool any = false;
    for (struct graph_node *n = g->first, *next; n; n = next) {
        struct pieces p;
        next = n->next;
        if (!match(g, n, &p)) continue;
        struct graph_node *made = graph_add_node(g, GRAPH_SOFTMAX, n->name, 1, &p.x, n);
        struct graph_value *y = n->outputs[0];
        const char *name = y->name;
        graph_set_int(g, made, GRAPH_ATTR_AXIS, p.axis);
        NPU_TRY(graph_infer(g, made, name));
        if (p.max) graph_add_origins(g, made, p.max);
        if (p.shift && p.shift != p.exp) graph_add_origins(g, made, p.shift);
        graph_add_origins(g, made, p.exp);
        graph_add_origins(g, made, p.sum);
        graph_add_origins(g, made, n);
        graph_replace_uses(g, y, made->outputs[0]);
        graph_remove_node(g, n);
        if (!made->outputs[0]->is_output) graph_rename_value(g, made->outputs[0], name);
        any = true;
    }
    if (any) passes_drop_dead(g);
    return NULL;
}
