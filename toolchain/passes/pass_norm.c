// SPDX-License-Identifier: Apache-2.0
// Normalisations of rows written as reductions and elementwise nodes become one node:
//
//   x / sqrt(mean(x^2) + e) * scale                         ->   RMSNORM
//   (x - mean(x)) / sqrt(var(x) + e) * scale + bias         ->   LAYERNORM
//   x / max(sqrt(sum(x^2)), e), x / sqrt(sum(x^2))          ->   RMSNORM with a floor
//
// For each REDUCE: the MAPs behind it are tried as the end of a normalisation, the group behind
// each grown until all comes from one value (probe.h) and run on rows of numbers. Scale and bias
// are read off rows so large that epsilon does not count, epsilon off rows so small that only it
// does; then the formula has to agree with the group for rows of all sizes. So every way to write
// it is found (powers, sums of squares, reciprocals, variance as mean(x^2) - mean(x)^2, casts,
// scale within the factor), and the statistics are those of the node, which are exact for f16 rows.
// The longest group that agrees wins.
#include <math.h>
#include <string.h>

#include "toolchain/passes/chain.h"
#include "toolchain/passes/norm.h"
#include "toolchain/passes/pass.h"
#include "toolchain/passes/probe.h"

enum { MAX_ROW = 1 << 16, MAX_ROOTS = 24, SCAN_NODES = 1 << 12 };

struct norm {
    bool centred, floored;
    double epsilon;
    double *scale, *bias; // of a row
    bool scaled, biased;
};

// ---- reading a normalisation off its numbers -------------------------------------------------

// Rows without symmetry, none of whose elements is near the row's mean or near 0.
static void row(double *x, int64_t n, int which, double size) {
    uint64_t s = UINT64_C(88172645463325252) + (uint64_t)which * 7919;
    for (int64_t i = 0; i < n; i++) {
        s ^= s << 13, s ^= s >> 7, s ^= s << 17;
        double u = 0.7 + 0.6 * (double)(s >> 11) / 9007199254740992.0;
        x[i] = size * (((uint64_t)i + (s >> 40)) % 2 ? u + 0.25 : 0.25 - u);
    }
}

struct row_sums {
    double mean, square; // mean square, of x - mean when centred
};

static struct row_sums sums(const double *x, int64_t n, bool centred) {
    struct row_sums r = {0};
    for (int64_t i = 0; i < n && centred; i++)
        r.mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        r.square += (x[i] - r.mean) * (x[i] - r.mean) / (double)n;
    return r;
}

static double factor(const struct norm *m, double square) {
    return 1 / sqrt(m->floored ? fmax(square, m->epsilon) : square + m->epsilon);
}

static bool finite_row(const double *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(y[i])) return false;
    return true;
}

// Scale and bias from two rows, one the other's negative, so large that epsilon is nothing.
static bool read_affine(const struct probe *p, struct norm *m, struct arena *a) {
    int64_t n = p->length;
    double *x = ARENA_ARRAY(a, double, (size_t)n),
           *y[2] = {ARENA_ARRAY(a, double, (size_t)n), ARENA_ARRAY(a, double, (size_t)n)};
    row(x, n, 1, 1e5);
    if (!probe_run(p, x, n, y[0], a)) return false;
    struct row_sums r = sums(x, n, m->centred);
    for (int64_t i = 0; i < n; i++)
        x[i] = -x[i];
    if (!probe_run(p, x, n, y[1], a) || !finite_row(y[0], n) || !finite_row(y[1], n)) return false;
    for (int64_t i = 0; i < n; i++) {
        double base = (-x[i] - r.mean) / sqrt(r.square);
        m->scale[i] = (y[0][i] - y[1][i]) / (2 * base);
        m->bias[i] = (y[0][i] + y[1][i]) / 2;
        if (fabs(m->bias[i]) < 1e-9 * fabs(m->scale[i])) m->bias[i] = 0;
    }
    // A row of zeros gives the bias alone, unless epsilon is 0.
    memset(x, 0, (size_t)n * sizeof *x);
    if (probe_run(p, x, n, y[0], a) && finite_row(y[0], n))
        memcpy(m->bias, y[0], (size_t)n * sizeof *x);
    return true;
}

// Epsilon from a row so small that its mean square is nothing beside it; with a bias, from the
// smallest row whose result still has digits beside the bias.
static bool read_epsilon(const struct probe *p, struct norm *m, struct arena *a) {
    int64_t n = p->length, at = 0;
    double *x = ARENA_ARRAY(a, double, (size_t)n), *y = ARENA_ARRAY(a, double, (size_t)n);
    for (int64_t i = 1; i < n; i++)
        if (fabs(m->scale[i]) > fabs(m->scale[at])) at = i;
    bool biased = m->bias[at] < 0 || m->bias[at] > 0;
    double square = 0;
    m->epsilon = (double)NAN;
    for (double size = biased ? 1e-8 : 1e-30; size < 1; size *= 10) {
        row(x, n, 2, size);
        if (!probe_run(p, x, n, y, a)) return false;
        struct row_sums r = sums(x, n, m->centred);
        double base = (x[at] - r.mean) * m->scale[at], got = y[at] - m->bias[at];
        square = r.square;
        m->epsilon = base / got * (base / got) - square;
        if (!biased || fabs(got) > 1e-3 * fabs(m->bias[at])) break;
    }
    if (fabs(m->epsilon) < 1e-6 * square) m->epsilon = 0;
    m->epsilon = (double)(float)m->epsilon;
    return isfinite(m->epsilon) && m->epsilon >= 0;
}

// The formula and the group give the same for rows of many sizes.
static bool agrees(const struct probe *p, const struct norm *m, struct arena *a) {
    int64_t n = p->length;
    double *x = ARENA_ARRAY(a, double, (size_t)n), *y = ARENA_ARRAY(a, double, (size_t)n);
    double edge = m->epsilon > 0 ? sqrt(m->epsilon) : 1e-3;
    const double size[] = {1, edge / 2, edge, 1.5 * edge, 30 * edge, 1e3, 1e-3, 60000};
    for (int k = 0; k < (int)(sizeof size / sizeof *size); k++) {
        row(x, n, 3 + k, size[k]);
        if (!probe_run(p, x, n, y, a)) return false;
        struct row_sums r = sums(x, n, m->centred);
        double f = factor(m, r.square);
        for (int64_t i = 0; i < n; i++) {
            double part = (x[i] - r.mean) * f * m->scale[i], want = part + m->bias[i];
            if (!(fabs(y[i] - want) <= 2e-6 * (fabs(part) + fabs(m->bias[i]) + 1e-30)))
                return false;
        }
    }
    return true;
}

static bool plain(const double *v, int64_t n, double value) {
    for (int64_t i = 0; i < n; i++)
        if ((double)(float)v[i] < value || (double)(float)v[i] > value) return false;
    return true;
}

// Could it be one? A mean takes a reduction of its own, a floor a stage with a corner.
static bool possible(const struct probe *p, const struct norm *m) {
    int reductions = 0;
    for (int i = 0; i < p->n; i++)
        reductions += p->node[i]->op == GRAPH_REDUCE;
    return m->centred == (reductions > 1) && !(m->floored && p->smooth);
}

// What normalisation the group is, if it is one. All is in `a`, which is emptied first.
static bool recognise(const struct probe *p, struct norm *m, struct arena *a) {
    int64_t n = p->length;
    for (int kind = 0; kind < 3; kind++) {
        arena_reset(a);
        memset(m, 0, sizeof *m);
        m->centred = kind == 2;
        m->floored = kind == 1;
        if (!possible(p, m)) continue;
        m->scale = ARENA_ARRAY(a, double, (size_t)n);
        m->bias = ARENA_ARRAY(a, double, (size_t)n);
        if (!read_affine(p, m, a) || !read_epsilon(p, m, a)) continue;
        m->scaled = !plain(m->scale, n, 1);
        m->biased = !plain(m->bias, n, 0);
        if ((m->biased && !m->centred) || (m->floored && m->epsilon <= 0)) continue;
        if (agrees(p, m, a)) return true;
    }
    return false;
}

// ---- rewriting -------------------------------------------------------------------------------

// The model's own constant of these numbers in the group, or a new one.
static struct graph_value *parameter(struct graph *g, const struct probe *p, const char *suffix,
                                     const double *v) {
    int rank = p->source->rank - p->axis;
    const int64_t *dims = p->source->dims + p->axis;
    float *data = ARENA_ARRAY(g->arena, float, (size_t)p->length);
    for (int64_t i = 0; i < p->length; i++)
        data[i] = (float)v[i];
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->node[i]->nin; k++) {
            struct graph_value *c = p->node[i]->inputs[k];
            if (c->data && c->dtype == ISA_F32 && c->rank == rank &&
                !memcmp(c->dims, dims, (size_t)rank * sizeof *dims) &&
                !memcmp(c->data, data, (size_t)p->length * sizeof *data))
                return c;
        }
    return graph_add_const(g, arena_printf(g->arena, "%s.%s", p->root->outputs[0]->name, suffix),
                           ISA_F32, rank, dims, data);
}

static npu_status rewrite(struct pass_context *c, const struct probe *p, const struct norm *m) {
    struct graph *g = c->g;
    struct graph_value *y = p->root->outputs[0], *in[3] = {p->source}, *fresh;
    int nin = 1;
    if (m->scaled || m->biased) in[nin++] = parameter(g, p, "scale", m->scale);
    if (m->biased) in[nin++] = parameter(g, p, "bias", m->bias);
    struct graph_node *n = graph_add_node(g, m->centred ? GRAPH_LAYERNORM : GRAPH_RMSNORM,
                                          p->root->name, nin, in, p->root);
    graph_set_float(g, n, GRAPH_ATTR_EPSILON, m->floored ? 0 : m->epsilon);
    if (m->floored) graph_set_float(g, n, GRAPH_ATTR_FLOOR, m->epsilon);
    graph_set_int(g, n, GRAPH_ATTR_AXIS, p->axis);
    NPU_TRY(graph_infer(g, n, y->name));
    for (int i = p->n - 1; i >= 0; i--)
        graph_add_origins(g, n, p->node[i]);
    fresh = n->outputs[0];
    if (fresh->dtype != y->dtype) {
        struct isa_chain none;
        memset(&none, 0, sizeof none);
        NPU_TRY(graph_add_map(g, p->root->name, 1, &fresh, &none, y->dtype, p->root, &fresh));
        graph_add_origins(g, fresh->producer, p->root);
    }
    graph_replace_uses(g, y, fresh);
    const char *name = y->name;
    for (int i = 0; i < p->n; i++)
        graph_remove_node(g, p->node[i]);
    if (!fresh->is_output) graph_rename_value(g, fresh, name);
    c->log->fused += p->n - 1;
    return NULL;
}

// The largest group that ends with `root` and is a normalisation.
static bool match(struct pass_context *c, struct graph_node *root, struct probe *best,
                  struct norm *m, struct arena *temp) {
    struct probe p;
    struct norm found = {0};
    bool any = false;
    probe_begin(&p, c->g, root);
    do {
        if (!probe_closed(&p) || !p.reduces || p.length > MAX_ROW || !recognise(&p, &found, temp))
            continue;
        size_t bytes = (size_t)p.length * sizeof(double);
        *best = p;
        *m = found;
        m->scale = arena_copy(c->scratch, found.scale, bytes);
        m->bias = arena_copy(c->scratch, found.bias, bytes);
        any = true;
    } while (probe_extend(&p));
    return any;
}

static bool reads(const struct graph_node *n, struct graph_node *const *from, int count) {
    for (int k = 0; k < n->nin; k++)
        for (int i = 0; i < count; i++)
            if (n->inputs[k] == from[i]->outputs[0]) return true;
    return false;
}

static bool in_group(const struct probe *p, const struct graph_node *n) {
    for (int i = 0; i < p->n; i++)
        if (p->node[i] == n) return true;
    return false;
}

static bool same_dims(const struct graph_value *a, const struct graph_value *b) {
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

// Tries the elementwise nodes that come from this reduction. *after: where to go on.
static npu_status try_reduce(struct pass_context *c, struct graph_node *reduce, struct arena *temp,
                             struct graph_node **after) {
    struct graph_node *from[MAX_ROOTS] = {reduce};
    struct probe best = {0};
    struct norm m = {0};
    int count = 1, steps = 0;
    bool any = false;
    for (struct graph_node *n = reduce->next; n && steps < SCAN_NODES && count < MAX_ROOTS;
         n = n->next, steps++) {
        if (n->nout != 1 || !reads(n, from, count)) continue;
        if (n->op != GRAPH_MAP && n->op != GRAPH_RESHAPE && n->op != GRAPH_REDUCE) continue;
        from[count++] = n;
        if (n->op != GRAPH_MAP || !same_dims(n->outputs[0], reduce->inputs[0])) continue;
        struct probe p;
        struct norm found = {0};
        if (match(c, n, &p, &found, temp)) {
            best = p;
            m = found;
            any = true;
        } else if (any) {
            break;
        }
    }
    if (!any) return NULL;
    // Other reductions may stand between this one and the end of its group.
    for (*after = reduce->next; *after && in_group(&best, *after);)
        *after = (*after)->next;
    return rewrite(c, &best, &m);
}

npu_status pass_norm(struct pass_context *c) {
    struct arena *temp = arena_scratch(c->scratch);
    npu_status st = NULL;
    for (struct graph_node *n = c->g->first, *next; n && !st; n = next) {
        next = n->next;
        if (n->op == GRAPH_REDUCE && isa_dtype_is_float((int)n->inputs[0]->dtype))
            st = try_reduce(c, n, temp, &next);
    }
    arena_free(temp);
    return st ? st : pass_norm_groups(c);
}
