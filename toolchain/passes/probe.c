// SPDX-License-Identifier: Apache-2.0
// Running groups of nodes in f64.
//
// A group grows backwards from its root: of the values that it reads from outside, the one whose
// node stands last in the graph cannot lead to any of the others, so it is taken in next; when one
// value is left, it is the source. Only the root's result may be read from outside.
#include "toolchain/passes/probe.h"

#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/chain.h"

enum { SEARCH_NODES = 4096 };

static bool same_dims(const struct graph_value *a, const struct graph_value *b) {
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

// ---- growing ---------------------------------------------------------------------------------

static bool smooth(int64_t op) {
    switch (op) {
    case ISA_VOP_NOP:
    case ISA_VOP_MOV:
    case ISA_VOP_ADD:
    case ISA_VOP_SUB:
    case ISA_VOP_RSUB:
    case ISA_VOP_MUL:
    case ISA_VOP_DIV:
    case ISA_VOP_RDIV:
    case ISA_VOP_FMA:
    case ISA_VOP_NEG: return true;
    default: return isa_vop_is_sf((int)op);
    }
}

static bool trailing_axes(const struct graph_node *n, int *axis) {
    const struct graph_attr *axes = graph_attr(n, GRAPH_ATTR_AXES);
    int rank = n->inputs[0]->rank;
    if (!axes || axes->n < 1 || axes->ints[axes->n - 1] != rank - 1) return false;
    *axis = rank - axes->n;
    return axes->ints[0] == *axis;
}

// A node that can be run: floating work on rows.
static bool runs(const struct graph_node *n) {
    if (n->nout != 1) return false;
    enum isa_dtype t = n->outputs[0]->dtype;
    if (n->op == GRAPH_MAP)
        return chain_is_float(n) && (isa_dtype_is_float((int)t) || t == ISA_BOOL);
    if (!isa_dtype_is_float((int)t)) return false;
    if (n->op == GRAPH_RESHAPE) return true;
    if (n->op != GRAPH_REDUCE || n->has_chain) return false;
    int axis;
    const char *mode = graph_word(n, GRAPH_ATTR_MODE, "sum");
    return trailing_axes(n, &axis) &&
           (!strcmp(mode, "sum") || !strcmp(mode, "mean") || !strcmp(mode, "sumsq"));
}

static void drop_leaf(struct probe *p, const struct graph_value *v) {
    int n = 0;
    for (int i = 0; i < p->nleaf; i++)
        if (p->leaf[i] != v) p->leaf[n++] = p->leaf[i];
    p->nleaf = n;
}

static void add_leaf(struct probe *p, struct graph_value *v) {
    if (v->data) return;
    for (int i = 0; i < p->nleaf; i++)
        if (p->leaf[i] == v) return;
    p->leaf[p->nleaf++] = v;
}

static void take_in(struct probe *p, struct graph_node *n) {
    p->node[p->n++] = n;
    drop_leaf(p, n->outputs[0]);
    for (int k = 0; k < n->nin; k++)
        add_leaf(p, n->inputs[k]);
    for (int i = 0; n->op == GRAPH_MAP && i < chain_length(&n->chain); i++) {
        p->stages++;
        p->specials += isa_vop_is_sf((int)n->chain.st[i].op);
        p->smooth = p->smooth && smooth(n->chain.st[i].op);
    }
    if (n->op == GRAPH_REDUCE) p->reduces = true;
}

void probe_begin(struct probe *p, const struct graph *g, struct graph_node *root) {
    memset(p, 0, sizeof *p);
    p->g = g;
    p->root = root;
    p->smooth = true;
    take_in(p, root);
}

// The leaf's node that stands last; NULL when a leaf has none, or is too far away to be found.
static struct graph_node *last_producer(const struct probe *p) {
    int steps = 0;
    for (struct graph_node *n = p->root->prev; n && steps < SEARCH_NODES; n = n->prev, steps++)
        for (int i = 0; i < p->nleaf; i++)
            if (p->leaf[i]->producer == n) return n;
    return NULL;
}

// All who read the node's result are in the group.
static bool read_inside(const struct probe *p, const struct graph_node *n) {
    const struct graph_value *v = n->outputs[0];
    int uses = 0;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->node[i]->nin; k++)
            uses += p->node[i]->inputs[k] == v;
    return uses == graph_count_uses(p->g, v);
}

bool probe_extend(struct probe *p) {
    struct graph_node *n = last_producer(p);
    if (!n || p->n == PROBE_NODES || !runs(n) || !read_inside(p, n)) return false;
    take_in(p, n);
    return true;
}

// ---- shapes ----------------------------------------------------------------------------------

// Sets axis and length; false when the reductions do not agree.
static bool rows_of(struct probe *p) {
    p->axis = p->source->rank;
    p->length = 1;
    for (int i = 0; i < p->n; i++) {
        int axis;
        if (p->node[i]->op != GRAPH_REDUCE) continue;
        const struct graph_value *x = p->node[i]->inputs[0];
        if (!trailing_axes(p->node[i], &axis) || !same_dims(x, p->source)) return false;
        if (p->length > 1 && axis != p->axis) return false;
        p->axis = axis;
        p->length = 1;
        for (int d = axis; d < x->rank; d++)
            p->length *= x->dims[d];
    }
    return !p->reduces || p->length > 1;
}

static bool full(const struct probe *p, const struct graph_value *v) {
    return same_dims(v, p->source);
}

// One number for each row, whatever its rank.
static bool per_row(const struct probe *p, const struct graph_value *v) {
    return p->reduces && graph_value_elems(v) * p->length == graph_value_elems(p->source);
}

// Dimensions of the source with 1 from axis on: what broadcasts along rows.
static bool kept_dims(const struct probe *p, const struct graph_value *v) {
    if (v->rank != p->source->rank) return false;
    for (int d = 0; d < v->rank; d++)
        if (v->dims[d] != (d < p->axis ? p->source->dims[d] : 1)) return false;
    return true;
}

// A constant that is the same for every row: one number, or one for each element of a row.
static bool row_constant(const struct probe *p, const struct graph_value *v) {
    int64_t n = graph_value_elems(v);
    if (n == 1) return v->rank <= p->source->rank;
    if (!p->reduces || n != p->length || v->rank > p->source->rank) return false;
    for (int d = 0; d < v->rank; d++) {
        int to = p->source->rank - v->rank + d;
        if (v->dims[d] != (to < p->axis ? 1 : p->source->dims[to])) return false;
    }
    return true;
}

static bool map_fits(const struct probe *p, const struct graph_node *n) {
    const struct graph_value *y = n->outputs[0];
    bool wide = full(p, y);
    if (!wide && !per_row(p, y)) return false;
    for (int k = 0; k < n->nin; k++) {
        const struct graph_value *v = n->inputs[k];
        if (v->data) {
            if (isa_dtype_bits((int)v->dtype) < 8 || v->dtype == ISA_F64) return false;
            if (wide ? !row_constant(p, v) : graph_value_elems(v) != 1) return false;
        } else if (wide ? !full(p, v) && !kept_dims(p, v) : !same_dims(v, y)) {
            return false;
        }
    }
    return true;
}

static bool shapes_fit(const struct probe *p) {
    if (!full(p, p->root->outputs[0])) return false;
    for (int i = 0; i < p->n; i++) {
        const struct graph_node *n = p->node[i];
        if (n->op == GRAPH_MAP && !map_fits(p, n)) return false;
        if (n->op == GRAPH_RESHAPE &&
            (!per_row(p, n->inputs[0]) || full(p, n->inputs[0]) || !per_row(p, n->outputs[0])))
            return false;
    }
    return true;
}

bool probe_closed(struct probe *p) {
    if (p->nleaf != 1) return false;
    p->source = p->leaf[0];
    return isa_dtype_is_float((int)p->source->dtype) && rows_of(p) && shapes_fit(p);
}

// ---- running ---------------------------------------------------------------------------------

double probe_stage(enum isa_vop op, double acc, double a, double b) {
    switch (op) {
    case ISA_VOP_NOP: return acc;
    case ISA_VOP_MOV: return a;
    case ISA_VOP_ADD: return acc + a;
    case ISA_VOP_SUB: return acc - a;
    case ISA_VOP_RSUB: return a - acc;
    case ISA_VOP_MUL: return acc * a;
    case ISA_VOP_DIV: return acc / a;
    case ISA_VOP_RDIV: return a / acc;
    case ISA_VOP_FMA: return acc * a + b;
    case ISA_VOP_MAX: return isnan(acc) ? acc : isnan(a) ? a : fmax(acc, a);
    case ISA_VOP_MIN: return isnan(acc) ? acc : isnan(a) ? a : fmin(acc, a);
    case ISA_VOP_SEL: return acc < 0 || acc > 0 || isnan(acc) ? a : b;
    case ISA_VOP_EQ: return acc <= a && acc >= a;
    case ISA_VOP_NE: return !(acc <= a && acc >= a);
    case ISA_VOP_LT: return acc < a;
    case ISA_VOP_LE: return acc <= a;
    case ISA_VOP_GT: return acc > a;
    case ISA_VOP_GE: return acc >= a;
    case ISA_VOP_ABS: return fabs(acc);
    case ISA_VOP_NEG: return -acc;
    case ISA_VOP_FLOOR: return floor(acc);
    case ISA_VOP_CEIL: return ceil(acc);
    case ISA_VOP_ROUND: return nearbyint(acc);
    case ISA_VOP_TRUNC: return trunc(acc);
    case ISA_VOP_MOD: return acc - a * floor(acc / a);
    case ISA_VOP_NOT: return !(acc < 0 || acc > 0 || isnan(acc));
    case ISA_VOP_EXP: return exp(acc);
    case ISA_VOP_LOG: return log(acc);
    case ISA_VOP_RECIP: return 1 / acc;
    case ISA_VOP_RSQRT: return 1 / sqrt(acc);
    case ISA_VOP_SQRT: return sqrt(acc);
    case ISA_VOP_TANH: return tanh(acc);
    case ISA_VOP_SIGMOID: return 1 / (1 + exp(-acc));
    case ISA_VOP_ERF: return erf(acc);
    case ISA_VOP_GELU: return acc / 2 * erfc(-acc / 1.4142135623730951);
    case ISA_VOP_SILU: return acc / (1 + exp(-acc));
    case ISA_VOP_SIN: return sin(acc);
    case ISA_VOP_COS: return cos(acc);
    case ISA_VOP_SHL:
    case ISA_VOP_SHR:
    case ISA_VOP_AND:
    case ISA_VOP_OR:
    case ISA_VOP_XOR:
    case ISA_VOP_APRED: break;
    }
    return (double)NAN;
}

// A value of the group while it runs: one number or one per element.
struct lane {
    const struct graph_value *v;
    double *at;
    bool one;
};

struct run {
    const struct probe *p;
    struct arena *scratch;
    int64_t length;
    struct lane lane[PROBE_NODES + 1];
    int n;
};

static double immediate(int64_t bits) {
    uint32_t u = (uint32_t)bits;
    float f;
    memcpy(&f, &u, sizeof f);
    return (double)f;
}

static const struct lane *find(const struct run *r, const struct graph_value *v) {
    for (int i = 0; i < r->n; i++)
        if (r->lane[i].v == v) return &r->lane[i];
    return NULL;
}

static bool operand(struct run *r, const struct graph_value *v, struct lane *out) {
    if (!v->data) {
        const struct lane *known = find(r, v);
        if (known) *out = *known;
        return known != NULL;
    }
    int64_t n = graph_value_elems(v);
    *out = (struct lane){v, ARENA_ARRAY(r->scratch, double, (size_t)n), n == 1};
    for (int64_t i = 0; i < n; i++)
        out->at[i] = (double)num_load_f32((int)v->dtype, v->data, i);
    return true;
}

static double stage_operand(const struct isa_chain *c, int64_t src, const double in[3], double acc,
                            double tmp) {
    if (src == ISA_SRC_TMP) return tmp;
    if (src >= ISA_SRC_IN0 && src <= ISA_SRC_IN2) return in[src - ISA_SRC_IN0];
    if (src >= ISA_SRC_IMM0 && src <= ISA_SRC_IMM3) return immediate(c->imm[src - ISA_SRC_IMM0]);
    return acc;
}

double probe_chain(const struct isa_chain *c, const double in[3]) {
    double acc = in[0], tmp = 0;
    for (int i = 0; i < ISA_STAGES; i++) {
        const struct isa_stage *st = &c->st[i];
        acc = probe_stage((enum isa_vop)st->op, acc, stage_operand(c, st->a, in, acc, tmp),
                          stage_operand(c, st->b, in, acc, tmp));
        if (st->save) tmp = acc;
    }
    return acc;
}

static bool run_map(struct run *r, const struct graph_node *n, struct lane *out) {
    struct lane in[3] = {{0}};
    struct chain c = chain_of(n);
    for (int k = 0; k < 3; k++) {
        if (!c.in[k]) continue;
        if (!operand(r, c.in[k], &in[k])) return false;
        if (!in[k].one) out->one = false;
    }
    int64_t count = out->one ? 1 : r->length;
    for (int64_t i = 0; i < count; i++) {
        double x[3];
        for (int k = 0; k < 3; k++)
            x[k] = !in[k].at ? 0 : in[k].at[in[k].one ? 0 : i];
        out->at[i] = probe_chain(&c.c, x);
    }
    return true;
}

static bool run_reduce(struct run *r, const struct graph_node *n, struct lane *out) {
    struct lane in;
    if (!operand(r, n->inputs[0], &in)) return false;
    const char *mode = graph_word(n, GRAPH_ATTR_MODE, "sum");
    bool squares = !strcmp(mode, "sumsq");
    double sum = 0;
    for (int64_t i = 0; i < r->length; i++) {
        double x = in.at[in.one ? 0 : i];
        sum += squares ? x * x : x;
    }
    out->at[0] = !strcmp(mode, "mean") ? sum / (double)r->length : sum;
    return true;
}

bool probe_run(const struct probe *p, const double *x, int64_t length, double *y,
               struct arena *scratch) {
    struct run r = {.p = p, .scratch = scratch, .length = length};
    double *copy = ARENA_ARRAY(scratch, double, (size_t)length);
    memcpy(copy, x, (size_t)length * sizeof *x);
    r.lane[r.n++] = (struct lane){p->source, copy, false};
    // Nodes stand behind those that read them: backwards.
    for (int i = p->n - 1; i >= 0; i--) {
        const struct graph_node *n = p->node[i];
        struct lane out = {n->outputs[0], ARENA_ARRAY(scratch, double, (size_t)length), true};
        bool ok;
        if (n->op == GRAPH_MAP) {
            ok = run_map(&r, n, &out);
        } else if (n->op == GRAPH_REDUCE) {
            ok = run_reduce(&r, n, &out);
        } else {
            struct lane in;
            ok = operand(&r, n->inputs[0], &in);
            if (ok) out.at = in.at, out.one = in.one;
        }
        if (!ok) return false;
        r.lane[r.n++] = out;
    }
    const struct lane *result = find(&r, p->root->outputs[0]);
    if (!result || result->one) return false;
    memcpy(y, result->at, (size_t)length * sizeof *y);
    return true;
}
