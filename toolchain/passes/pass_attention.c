// SPDX-License-Identifier: Apache-2.0
// Fuses attention: softmax(Q K^T scaled and masked) V becomes one ATTENTION node, recognised from
// what the nodes compute:
//
//   MATMUL of two values
//     -> any order of: multiplication or division by a number, tanh between two of them (softcap),
//        a mask that is added or selected (mask.h), reshapes of the batch dimensions, casts
//     -> SOFTMAX over the last dimension
//     -> rows of NaN set to 0, casts, reshapes of the batch dimensions
//     -> MATMUL with a third value
//
// where nobody else reads what lies in between. Q, K and V are followed back through reshapes and
// transposes, so that whatever turns K goes away; through factors, which join the scale; and
// through repetitions of heads, which the node does not need (grouped queries).
#include <math.h>
#include <string.h>

#include "toolchain/passes/attention.h"
#include "toolchain/passes/views.h"

enum { TARGETS = 8 };

// ---- operands --------------------------------------------------------------------------------

// The factor of a MAP that only multiplies by numbers; 0 when it does something else.
static double factor_of(const struct graph_node *n) {
    struct chain c = chain_of(n);
    double by = 1, x;
    if (n->op != GRAPH_MAP || !chain_length(&c.c) || !c.in[0] || c.in[0]->data ||
        c.in[0]->dtype != n->outputs[0]->dtype || !isa_dtype_is_float((int)c.in[0]->dtype) ||
        graph_value_elems(c.in[0]) != graph_value_elems(n->outputs[0]) ||
        c.in[0]->rank != n->outputs[0]->rank)
        return 0;
    for (int i = 0; i < chain_length(&c.c); i++) {
        const struct isa_stage *st = &c.c.st[i];
        if (st->save || !attention_number(&c, st->a, &x) || !(fabs(x) > 0) || !isfinite(x))
            return 0;
        if (st->op == ISA_VOP_MUL)
            by *= x;
        else if (st->op == ISA_VOP_DIV)
            by /= x;
        else
            return 0;
    }
    return by;
}

static struct graph_value *through_factor(struct graph_node *n, void *arg) {
    (void)arg;
    return fabs(factor_of(n)) > 0 ? n->inputs[n->chain_in[0]] : NULL;
}

// Scores' batch dimensions, as the heads' last of them.
struct target {
    int rank; // with M and S
    int64_t dims[GRAPH_MAX_RANK];
};

// Operand k of a product as [batch of the target.., rows, columns]; batch: the product's result.
// turned: its last two dimensions change places. *factor collects the factors on the way.
static bool view_operand(const struct graph_node *n, int k, bool turned, bool repeats, bool factors,
                         const struct target *t, struct view *w, double *factor) {
    struct graph_value *v = n->inputs[k];
    const struct graph_value *y = n->outputs[0];
    int64_t dims[GRAPH_MAX_RANK];
    *w = view_trace(v, repeats, factors ? through_factor : NULL, NULL);
    for (int i = 0; i + 1 < w->npath; i++)
        if (w->path[i]->producer->op == GRAPH_MAP) *factor *= factor_of(w->path[i]->producer);
    if (turned) view_swap_last(w);
    int64_t rows = view_dim(w, w->rank - 2), columns = view_dim(w, w->rank - 1);
    memcpy(dims, y->dims, sizeof dims);
    dims[y->rank - 2] = rows;
    dims[y->rank - 1] = columns;
    if (w->root->data || !view_expand(w, y->rank, dims)) return false;
    memcpy(dims, t->dims, sizeof dims);
    dims[t->rank - 2] = rows;
    dims[t->rank - 1] = columns;
    return view_reshape(w, t->rank, dims);
}

struct operands {
    struct view q, k, v;
    double factor;
};

static bool plain(const struct view *w) {
    for (int d = 0; d < w->rank; d++)
        if (view_has_repeats(w, d)) return false;
    return true;
}

static bool view_operands(const struct match *m, const struct target *t, bool repeats,
                          struct operands *o) {
    bool ta = graph_int(m->product, GRAPH_ATTR_TRANS_A, 0) != 0;
    bool tb = graph_int(m->product, GRAPH_ATTR_TRANS_B, 0) != 0;
    bool tv = graph_int(m->value, GRAPH_ATTR_TRANS_B, 0) != 0;
    double none = 1;
    int heads = t->rank - 3;
    o->factor = 1;
    if (!view_operand(m->product, 0, ta, repeats, true, t, &o->q, &o->factor) ||
        !view_operand(m->product, 1, !tb, repeats, true, t, &o->k, &o->factor) ||
        !view_operand(m->value, 1, tv, repeats, false, t, &o->v, &none))
        return false;
    int64_t times = view_inner_repeats(&o->k, heads);
    if (times != view_inner_repeats(&o->v, heads) || times < 1) return false;
    view_drop_repeats(&o->k, heads);
    view_drop_repeats(&o->v, heads);
    enum isa_dtype type = o->q.root->dtype;
    return plain(&o->q) && plain(&o->k) && plain(&o->v) && o->k.root->dtype == type &&
           o->v.root->dtype == type && isa_dtype_is_float((int)type);
}

// ---- which dimensions are the heads ----------------------------------------------------------

static void add_target(struct target *list, int *n, int rank, const int64_t *dims) {
    if (*n == TARGETS || rank < 3) return;
    struct target t = {.rank = rank};
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    list[(*n)++] = t;
}

// Ways to divide the scores' batch dimensions, likeliest first: batch and heads as they occur on
// the way, more dimensions merged into two, one dimension divided where the queries come from two.
static int targets(const struct match *m, struct target list[TARGETS]) {
    const struct graph_value *best = m->product->outputs[0];
    int64_t dims[GRAPH_MAX_RANK];
    int n = 0;
    for (int k = -1; k < m->npath; k++) {
        const struct graph_value *y = k < 0 ? m->weights : m->path[k]->outputs[0];
        if (y->rank > best->rank) best = y;
    }
    int r = best->rank;
    memcpy(dims, best->dims, sizeof dims);
    if (r == 2) {
        add_target(list, &n, 3, (int64_t[]){1, dims[0], dims[1]});
        return n;
    }
    if (r > 4) { // [B, heads of keys, queries for each]
        int64_t merged[GRAPH_MAX_RANK];
        memcpy(merged, dims, sizeof merged);
        merged[r - 4] *= merged[r - 3];
        merged[r - 3] = merged[r - 2];
        merged[r - 2] = merged[r - 1];
        add_target(list, &n, r - 1, merged);
    }
    if (r == 3) {
        struct view q = view_trace(m->product->inputs[0], true, through_factor, NULL);
        if (q.rank == 3 && q.first[1] - q.first[0] > 1)
            add_target(list, &n, 4, (int64_t[]){q.size[0], dims[0] / q.size[0], dims[1], dims[2]});
    }
    add_target(list, &n, r, dims);
    return n;
}

// ---- the node --------------------------------------------------------------------------------

static void set_attributes(const struct match *m, const struct operands *o, struct graph_node *n) {
    struct graph *g = m->c->g;
    double scale = o->factor * (m->capped ? m->inner * m->factor : m->factor);
    graph_set_float(g, n, GRAPH_ATTR_SCALE, scale);
    if (m->capped) graph_set_float(g, n, GRAPH_ATTR_SOFTCAP, m->factor);
    if (m->mask.windowed) graph_set_ints(g, n, GRAPH_ATTR_WINDOW, 3, m->mask.window);
    bool skips = !m->mask.filled || (isinf(m->mask.fill) && m->mask.fill < 0);
    bool hides = m->mask.windowed || (m->mask.operand && m->mask.nhide);
    if (hides && !skips && !m->mask.sees_all) graph_set_float(g, n, GRAPH_ATTR_FILL, m->mask.fill);
    if (m->zero_rows && skips && !m->mask.sees_all) graph_set_int(g, n, GRAPH_ATTR_ZERO_ROWS, 1);
}

static void collect_origins(const struct match *m, struct graph_node *n) {
    graph_add_origins(m->c->g, n, m->product);
    for (int k = m->npath - 1; k >= 0; k--)
        graph_add_origins(m->c->g, n, m->path[k]);
    graph_add_origins(m->c->g, n, m->softmax);
    graph_add_origins(m->c->g, n, m->value);
}

static npu_status build(struct match *m, struct operands *o) {
    struct graph *g = m->c->g;
    struct graph_value *in[4], *y = m->value->outputs[0];
    const char *name = m->value->name;
    NPU_TRY(view_emit(g, &o->q, arena_printf(g->arena, "%s.q", name), m->value, &in[0]));
    NPU_TRY(view_emit(g, &o->k, arena_printf(g->arena, "%s.k", name), m->value, &in[1]));
    NPU_TRY(view_emit(g, &o->v, arena_printf(g->arena, "%s.v", name), m->value, &in[2]));
    in[3] = m->mask.operand;
    struct graph_node *n = graph_add_node(g, GRAPH_ATTENTION, name, in[3] ? 4 : 3, in, m->value);
    set_attributes(m, o, n);
    NPU_TRY(graph_infer(g, n, y->name));
    collect_origins(m, n);
    struct graph_value *out = n->outputs[0];
    const char *text = y->name;
    if (out->dtype != y->dtype) {
        struct isa_chain none = {.imm = {0}};
        NPU_TRY(graph_add_map(g, name, 1, &out, &none, y->dtype, m->value, &out));
    }
    if (out->rank != y->rank ||
        memcmp(out->dims, y->dims, (size_t)y->rank * sizeof *y->dims) != 0) {
        struct graph_node *r = graph_add_node(g, GRAPH_RESHAPE, name, 1, &out, m->value);
        graph_set_ints(g, r, GRAPH_ATTR_SHAPE, y->rank, y->dims);
        NPU_TRY(graph_infer(g, r, y->name));
        out = r->outputs[0];
    }
    graph_replace_uses(g, y, out);
    graph_remove_node(g, m->value);
    if (!out->is_output) graph_rename_value(g, out, text);
    return NULL;
}

// Tries one division of the dimensions. *done: the node was built.
static npu_status attempt(struct match *m, const struct target *t, bool weak, bool *done) {
    struct operands o;
    if (!view_operands(m, t, true, &o) && !view_operands(m, t, false, &o)) return NULL;
    m->mask = (struct mask){.c = m->c, .weak = weak};
    if (!attention_read_path(m) || (m->capped && !(m->factor > 0))) return NULL;
    NPU_TRY(mask_finish(&m->mask, t->rank, t->dims, m->value, done));
    return *done ? build(m, &o) : NULL;
}

static npu_status fuse(struct pass_context *c, struct graph_node *softmax, bool *done) {
    const struct graph_value *x = softmax->inputs[0];
    struct match m = {.c = c, .softmax = softmax};
    struct target list[TARGETS];
    *done = false;
    if (graph_int(softmax, GRAPH_ATTR_LOG, 0) || x->rank < 2 || !graph_value_elems(x) ||
        graph_int(softmax, GRAPH_ATTR_AXIS, 0) != x->rank - 1)
        return NULL;
    if (!attention_find_value(&m) || !attention_find_product(&m)) return NULL;
    const struct graph_value *y = m.value->outputs[0], *w = m.weights;
    if (y->rank != w->rank || !isa_dtype_is_float((int)y->dtype) ||
        memcmp(y->dims, w->dims, (size_t)(y->rank - 1) * sizeof *y->dims) != 0)
        return NULL;
    int n = targets(&m, list);
    for (int k = 0; k < 2 * n && !*done; k++)
        NPU_TRY(attempt(&m, &list[k % n], k < n, done));
    return NULL;
}

npu_status pass_attention(struct pass_context *c) {
    bool any = false;
    for (struct graph_node *n = c->g->first, *next; n; n = next) {
        bool done = false;
        next = n->next;
        if (n->op == GRAPH_ATTENTION) {
            NPU_TRY_NOTE(mask_simplify(c, n, &done), "node '%s'", n->name);
        } else if (n->op == GRAPH_SOFTMAX) {
            NPU_TRY_NOTE(fuse(c, n, &done), "node '%s'", n->name);
            if (done) next = n->next; // the node that came next may be gone
        }
        any |= done;
    }
    passes_drop_dead(c->g);
    return any && !c->options->skip[PASS_simplify] ? pass_simplify(c) : NULL;
}
