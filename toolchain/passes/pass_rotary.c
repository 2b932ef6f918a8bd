// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding written out becomes one ROTARY node:
//
//   y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin   over pairs of elements of each row
//
// whether as x * cos + concat(-x2, x1) * sin, as two parts that are joined, with the halves of a
// row or neighbouring elements as pairs, with elements behind that stay as they are. All forms have
// a CONCAT along the row: from each the nodes behind it are tried as the end. The group behind an
// end is grown backwards through nodes that stay within rows; whenever it comes from three values,
// it is run on rows of random numbers (f64) and compared with the formula, for each role that the
// three can have. The longest group that agrees wins.
#include <math.h>
#include <string.h>

#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"
#include "toolchain/passes/probe.h"

enum { NODES = 24, LEAVES = 8, MAX_WIDTH = 1024, MAX_ENDS = 8, SCAN_NODES = 4096 };

// Rows: the dimensions from `lead` on of every value in the group, whose dimensions before are
// those of the result.
struct group {
    const struct graph *g;
    struct graph_node *end;
    int lead;
    struct graph_node *node[NODES]; // end first, each behind those that read it
    int n;
    struct graph_value *leaf[LEAVES];
    int nleaf;
};

struct rotary {
    struct graph_value *x, *cosine, *sine;
    int64_t dim; // elements that are rotated
    bool interleaved;
};

static int64_t width_of(const struct group *q, const struct graph_value *v) {
    int64_t n = 1;
    for (int d = q->lead; d < v->rank; d++)
        n *= v->dims[d];
    return n;
}

// The value's rows are the result's rows.
static bool rows_of_end(const struct group *q, const struct graph_value *v) {
    const struct graph_value *y = q->end->outputs[0];
    return v->rank > q->lead && isa_dtype_is_float((int)v->dtype) &&
           !memcmp(v->dims, y->dims, (size_t)q->lead * sizeof *v->dims);
}

// ---- growing ---------------------------------------------------------------------------------

// A node that makes rows from rows.
static bool within_rows(const struct group *q, const struct graph_node *n) {
    if (n->nout != 1 || n->nin == 0 || !rows_of_end(q, n->outputs[0])) return false;
    if (width_of(q, n->outputs[0]) > MAX_WIDTH) return false;
    if (n->op == GRAPH_MAP) return chain_is_float(n);
    if (n->has_chain) return false;
    if (n->op == GRAPH_CONCAT && graph_int(n, GRAPH_ATTR_AXIS, 0) < q->lead) return false;
    for (int d = 0; d < q->lead; d++) {
        if (n->op == GRAPH_SLICE && (graph_ints_at(n, GRAPH_ATTR_STARTS, d, 0) ||
                                     n->inputs[0]->dims[d] != n->outputs[0]->dims[d] ||
                                     graph_ints_at(n, GRAPH_ATTR_STEPS, d, 1) != 1))
            return false;
        if (n->op == GRAPH_TRANSPOSE && graph_ints_at(n, GRAPH_ATTR_PERM, d, d) != d) return false;
    }
    if (n->op != GRAPH_CONCAT && n->op != GRAPH_SLICE && n->op != GRAPH_TRANSPOSE &&
        n->op != GRAPH_RESHAPE)
        return false;
    return rows_of_end(q, n->inputs[0]);
}

static bool add_leaf(struct group *q, struct graph_value *v) {
    if (v->data && graph_value_elems(v) == 1) return true;
    for (int i = 0; i < q->nleaf; i++)
        if (q->leaf[i] == v) return true;
    if (q->nleaf == LEAVES) return false;
    q->leaf[q->nleaf++] = v;
    return true;
}

static bool take_in(struct group *q, struct graph_node *n) {
    if (q->n == NODES) return false;
    q->node[q->n++] = n;
    int kept = 0;
    for (int i = 0; i < q->nleaf; i++)
        if (q->leaf[i] != n->outputs[0]) q->leaf[kept++] = q->leaf[i];
    q->nleaf = kept;
    for (int k = 0; k < n->nin; k++)
        if (!add_leaf(q, n->inputs[k])) return false;
    return true;
}

static bool read_inside(const struct group *q, const struct graph_value *v) {
    int uses = 0;
    for (int i = 0; i < q->n; i++)
        for (int k = 0; k < q->node[i]->nin; k++)
            uses += q->node[i]->inputs[k] == v;
    return uses == graph_count_uses(q->g, v);
}

// Takes in the last node that makes a leaf and can be taken; false when there is none.
static bool extend(struct group *q) {
    int steps = 0;
    for (struct graph_node *n = q->end->prev; n && steps < SCAN_NODES; n = n->prev, steps++)
        for (int i = 0; i < q->nleaf; i++)
            if (q->leaf[i]->producer == n)
                if (within_rows(q, n) && read_inside(q, q->leaf[i])) return take_in(q, n);
    return false;
}

// ---- running ---------------------------------------------------------------------------------

struct row {
    const struct graph_value *v;
    int64_t width;
    double at[MAX_WIDTH];
};

struct run {
    const struct group *q;
    struct row *row[NODES + LEAVES];
    int n;
    struct arena *a;
};

static struct row *find_row(const struct run *r, const struct graph_value *v) {
    for (int i = 0; i < r->n; i++)
        if (r->row[i]->v == v) return r->row[i];
    return NULL;
}

static struct row *new_row(struct run *r, const struct graph_value *v, int64_t width) {
    struct row *w = ARENA_NEW(r->a, struct row);
    w->v = v;
    w->width = width;
    r->row[r->n++] = w;
    return w;
}

// Element of operand v's row that belongs to element i of a row of y: dimensions are aligned at the
// last one. -1 when it does not have such rows.
static int64_t aligned(const struct run *r, const struct graph_value *v,
                       const struct graph_value *y, int64_t i) {
    int64_t at = 0, step = 1;
    for (int d = y->rank - 1, s = v->rank - 1; d >= r->q->lead; d--, s--) {
        int64_t size = s >= 0 ? v->dims[s] : 1;
        if (size > 1) at += i % y->dims[d] * step;
        step *= size;
        i /= y->dims[d];
    }
    return step > MAX_WIDTH ? -1 : at;
}

static double number(const struct graph_value *v) {
    return v->dtype == ISA_F32 ? (double)*(const float *)v->data : (double)NAN;
}

static bool run_map(struct run *r, const struct graph_node *n, struct row *y) {
    struct chain c = chain_of(n);
    for (int64_t i = 0; i < y->width; i++) {
        double in[3] = {0};
        for (int k = 0; k < 3; k++) {
            const struct graph_value *v = c.in[k];
            if (!v) continue;
            const struct row *x = find_row(r, v);
            int64_t at = aligned(r, v, y->v, i);
            if (!x && !(v->data && graph_value_elems(v) == 1)) return false;
            if (at < 0 || (x && at >= x->width)) return false;
            in[k] = x ? x->at[at] : number(v);
        }
        y->at[i] = probe_chain(&c.c, in);
    }
    return true;
}

// Moves: element i of the result is element source(i) of input `which`.
static bool run_move(struct run *r, const struct graph_node *n, struct row *y) {
    const struct graph_value *out = n->outputs[0];
    int axis = (int)graph_int(n, GRAPH_ATTR_AXIS, 0);
    for (int64_t i = 0; i < y->width; i++) {
        int64_t index[GRAPH_MAX_RANK] = {0}, rest = i, at = 0, step = 1;
        int which = 0;
        for (int d = out->rank - 1; d >= r->q->lead; d--) {
            index[d] = rest % out->dims[d];
            rest /= out->dims[d];
        }
        int64_t from[GRAPH_MAX_RANK];
        memcpy(from, index, sizeof from);
        for (int d = r->q->lead; d < out->rank; d++) {
            if (n->op == GRAPH_SLICE)
                from[d] = graph_ints_at(n, GRAPH_ATTR_STARTS, d, 0) +
                          index[d] * graph_ints_at(n, GRAPH_ATTR_STEPS, d, 1);
            if (n->op == GRAPH_TRANSPOSE) from[graph_ints_at(n, GRAPH_ATTR_PERM, d, d)] = index[d];
        }
        while (n->op == GRAPH_CONCAT && from[axis] >= n->inputs[which]->dims[axis])
            from[axis] -= n->inputs[which++]->dims[axis];
        const struct graph_value *v = n->inputs[which];
        const struct row *x = find_row(r, v);
        for (int d = v->rank - 1; d >= r->q->lead; d--) {
            at += from[d] * step;
            step *= v->dims[d];
        }
        if (n->op == GRAPH_RESHAPE) at = i;
        if (!x || at >= x->width) return false;
        y->at[i] = x->at[at];
    }
    return true;
}

static bool run_group(struct run *r) {
    for (int i = r->q->n - 1; i >= 0; i--) {
        const struct graph_node *n = r->q->node[i];
        struct row *y = new_row(r, n->outputs[0], width_of(r->q, n->outputs[0]));
        if (!(n->op == GRAPH_MAP ? run_map(r, n, y) : run_move(r, n, y))) return false;
    }
    return true;
}

// ---- comparing -------------------------------------------------------------------------------

static void randomise(struct row *w, uint64_t *s) {
    for (int64_t i = 0; i < w->width; i++) {
        *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
        w->at[i] = 0.25 + (double)(*s >> 12) / 4503599627370496.0;
    }
}

// Width of the rows that a table has beside rows of x: its last dimensions other than those before
// `lead`. A table [.., R / 2, 1] of pairs counts as well.
static int64_t table_width(const struct graph_value *v) {
    int64_t n = v->rank ? v->dims[v->rank - 1] : 1;
    return n == 1 && v->rank > 1 ? v->dims[v->rank - 2] : n;
}

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

static bool formula(const struct row *y, const struct row *x, const struct row *c,
                    const struct row *s, struct rotary *f) {
    f->dim = x->width;
    while (f->dim > 0 && near(y->at[f->dim - 1], x->at[f->dim - 1]))
        f->dim--;
    int64_t half = f->dim / 2;
    if (f->dim % 2 || half < 1 || (c->width != f->dim && c->width != half) || s->width != c->width)
        return false;
    for (int inter = 0; inter < 2; inter++) {
        bool same = true;
        for (int64_t i = 0; i < half && same; i++) {
            int64_t a = inter ? 2 * i : i, b = inter ? 2 * i + 1 : i + half;
            bool wide = c->width == f->dim;
            double c1 = c->at[wide ? a : i], c2 = c->at[wide ? b : i];
            double s1 = s->at[wide ? a : i], s2 = s->at[wide ? b : i];
            same = near(y->at[a], x->at[a] * c1 - x->at[b] * s1) &&
                   near(y->at[b], x->at[b] * c2 + x->at[a] * s2);
        }
        f->interleaved = inter;
        if (same) return true;
    }
    return false;
}

static bool broadcasts(const struct graph_value *v, const struct graph_value *x) {
    int gap = x->rank - v->rank;
    if (v->rank && v->dims[v->rank - 1] == 1) gap--; // [.., R / 2, 1]
    if (gap < -1) return false;
    for (int d = 0; d + gap + 1 < x->rank && d < v->rank; d++)
        if (d + gap >= 0 && v->dims[d] != 1 && v->dims[d] != x->dims[d + gap]) return false;
    return true;
}

// The three leaves in some role; false when the group is no rotation of them.
static bool recognise(const struct group *q, struct rotary *f, struct arena *temp) {
    if (q->nleaf != 3) return false;
    for (int role = 0; role < 6; role++) {
        static const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        struct graph_value *x = q->leaf[order[role][0]], *c = q->leaf[order[role][1]],
                           *s = q->leaf[order[role][2]];
        const struct graph_value *y = q->end->outputs[0];
        if (x->rank != y->rank || x->dtype != y->dtype || x->rank != q->lead + 1 ||
            memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) != 0)
            continue;
        if (x->dims[q->lead] > MAX_WIDTH || table_width(c) > MAX_WIDTH || !broadcasts(c, x) ||
            !broadcasts(s, x) || table_width(s) != table_width(c))
            continue;
        arena_reset(temp);
        struct run r = {.q = q, .a = temp};
        uint64_t seed = 0x9e3779b97f4a7c15u;
        struct row *rx = new_row(&r, x, x->dims[q->lead]), *rc = new_row(&r, c, table_width(c)),
                   *rs = new_row(&r, s, table_width(s));
        randomise(rx, &seed);
        randomise(rc, &seed);
        randomise(rs, &seed);
        if (!run_group(&r)) return false;
        *f = (struct rotary){.x = x, .cosine = c, .sine = s};
        if (formula(find_row(&r, y), rx, rc, rs, f)) return true;
    }
    return false;
}

// ---- rewriting -------------------------------------------------------------------------------

// A table of pairs [.., R / 2, 1] without its last dimension.
static npu_status as_rows(struct graph *g, struct graph_value *v, struct graph_node *before,
                          struct graph_value **out) {
    *out = v;
    if (v->rank < 2 || v->dims[v->rank - 1] != 1) return NULL;
    if (v->data) {
        *out = graph_add_const(g, v->name, v->dtype, v->rank - 1, v->dims, v->data);
        return NULL;
    }
    struct graph_node *n = graph_add_node(g, GRAPH_RESHAPE, v->name, 1, &v, before);
    graph_set_ints(g, n, GRAPH_ATTR_SHAPE, v->rank - 1, v->dims);
    NPU_TRY(graph_infer(g, n, v->name));
    if (v->producer) graph_add_origins(g, n, v->producer);
    *out = n->outputs[0];
    return NULL;
}

static npu_status rewrite(struct pass_context *c, const struct group *q, const struct rotary *f) {
    struct graph *g = c->g;
    struct graph_value *y = q->end->outputs[0], *in[3] = {f->x};
    NPU_TRY(as_rows(g, f->cosine, q->end, &in[1]));
    NPU_TRY(as_rows(g, f->sine, q->end, &in[2]));
    struct graph_node *n = graph_add_node(g, GRAPH_ROTARY, q->end->name, 3, in, q->end);
    graph_set_int(g, n, GRAPH_ATTR_INTERLEAVED, f->interleaved);
    graph_set_int(g, n, GRAPH_ATTR_ROTARY_DIM, f->dim);
    NPU_TRY(graph_infer(g, n, y->name));
    for (int i = q->n - 1; i >= 0; i--)
        graph_add_origins(g, n, q->node[i]);
    graph_replace_uses(g, y, n->outputs[0]);
    const char *name = y->name;
    for (int i = 0; i < q->n; i++)
        graph_remove_node(g, q->node[i]);
    if (!n->outputs[0]->is_output) graph_rename_value(g, n->outputs[0], name);
    c->log->fused += q->n - 1;
    return NULL;
}

static bool match(const struct graph *g, struct graph_node *end, struct group *best,
                  struct rotary *f, struct arena *temp) {
    struct group q = {.g = g, .end = end, .lead = end->outputs[0]->rank - 1};
    struct rotary found;
    bool any = false;
    if (q.lead < 1 || !within_rows(&q, end) || !take_in(&q, end)) return false;
    do {
        if (!recognise(&q, &found, temp)) continue;
        *best = q;
        *f = found;
        any = true;
    } while (extend(&q));
    return any;
}

static bool inside(const struct group *q, const struct graph_node *n) {
    for (int i = 0; i < q->n; i++)
        if (q->node[i] == n) return true;
    return false;
}

static npu_status try_concat(struct pass_context *c, struct graph_node *concat, struct arena *temp,
                             struct graph_node **after) {
    struct graph_node *from[MAX_ENDS] = {concat};
    struct group best = {0};
    struct rotary f = {0};
    int count = 0, steps = 0;
    bool any = false;
    for (struct graph_node *n = concat; n && steps < SCAN_NODES; n = n->next, steps++) {
        bool reads = n == concat;
        for (int k = 0; k < n->nin; k++)
            for (int i = 0; i < count; i++)
                reads = reads || n->inputs[k] == from[i]->outputs[0];
        if (!reads || n->nout != 1) continue;
        if (n->op != GRAPH_MAP && n->op != GRAPH_CONCAT && n->op != GRAPH_RESHAPE) continue;
        if (count == MAX_ENDS) break;
        from[count++] = n;
        struct group q;
        struct rotary found;
        if (!match(c->g, n, &q, &found, temp)) continue;
        best = q;
        f = found;
        any = true;
    }
    if (!any) return NULL;
    // Other joins may stand between this one and the end of its group.
    for (*after = concat->next; *after && inside(&best, *after);)
        *after = (*after)->next;
    return rewrite(c, &best, &f);
}

npu_status pass_rotary(struct pass_context *c) {
    struct arena *temp = arena_scratch(c->scratch);
    npu_status st = NULL;
    for (struct graph_node *n = c->g->first, *next; n && !st; n = next) {
        next = n->next;
        const struct graph_value *y = n->nout == 1 ? n->outputs[0] : NULL;
        if (n->op == GRAPH_CONCAT && graph_int(n, GRAPH_ATTR_AXIS, 0) >= y->rank - 2)
            st = try_concat(c, n, temp, &next);
    }
    arena_free(temp);
    return st;
}
