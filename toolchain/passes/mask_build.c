// SPDX-License-Identifier: Apache-2.0
// Putting a mask together from its leaves: constants into one matrix of 0 and 1, from which a
// window is taken; everything else into one operand whose repeated dimensions have size 1.
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/mask.h"
#include "toolchain/passes/views.h"

#define LIMIT_ELEMS (INT64_C(1) << 28)

static bool is_move(const struct graph_node *n) {
    return n->op == GRAPH_RESHAPE || n->op == GRAPH_TRANSPOSE || n->op == GRAPH_EXPAND;
}

// The leaf as it meets scores of dimensions dims, over its own elements.
static bool view_leaf(const struct mask_leaf *l, int rank, const int64_t *dims, struct view *w) {
    *w = view_of(l->v);
    for (int k = l->nvia - 1; k >= 0; k--) {
        const struct graph_node *p = l->via[k];
        const struct graph_value *y = p->outputs[0];
        if (!(is_move(p) ? view_apply(w, p) : view_expand(w, y->rank, y->dims))) return false;
    }
    return view_expand(w, l->rank, l->dims) && view_reshape(w, rank, dims);
}

// ---- constants -------------------------------------------------------------------------------

// All constant leaves together: see[batch][m][s].
struct matrix {
    int rank;
    const int64_t *dims;
    bool any, batched; // batched: it differs between batches or heads
    int64_t batch, m, s;
    uint8_t *see, *column; // column: keys that some query sees
    bool all, rows;        // everything is seen; every row sees something
};

// Offsets of the indices of dimensions d0 .. d1 - 1 counted as one.
static int64_t *offsets(struct arena *a, const struct view *w, int d0, int d1) {
    int64_t n = 1;
    for (int d = d0; d < d1; d++)
        n *= view_dim(w, d);
    int64_t *out = ARENA_ARRAY(a, int64_t, (size_t)n + 1);
    for (int64_t k = 0; k < n; k++) {
        int64_t rest = k;
        for (int i = w->first[d1] - 1; i >= w->first[d0]; i--) {
            out[k] += rest % w->size[i] * w->stride[i];
            rest /= w->size[i];
        }
    }
    return out;
}

static void apply_constant(struct arena *a, struct matrix *x, const struct mask_leaf *l,
                           const struct view *w) {
    const int64_t *b = offsets(a, w, 0, x->rank - 2), *i = offsets(a, w, x->rank - 2, x->rank - 1),
                  *j = offsets(a, w, x->rank - 1, x->rank);
    uint8_t *see = x->see;
    for (int64_t k = 0; k < x->batch * x->m; k++, see += x->s) {
        int64_t at = b[k / x->m] + i[k % x->m];
        for (int64_t c = 0; c < x->s; c++)
            see[c] &= (num_load_f32((int)l->v->dtype, l->v->data, at + j[c]) != 0) == l->keep;
    }
}

static void describe(struct arena *a, struct matrix *x) {
    x->column = arena_alloc(a, (size_t)x->s + 1);
    x->all = x->rows = true;
    const uint8_t *see = x->see;
    for (int64_t k = 0; k < x->batch * x->m; k++, see += x->s) {
        bool some = false;
        for (int64_t c = 0; c < x->s; c++) {
            x->all &= see[c];
            some |= see[c];
            x->column[c] |= see[c];
        }
        x->rows &= some;
    }
}

static bool gather_constants(struct mask *m, struct matrix *x) {
    x->all = x->rows = true;
    x->batch = 1;
    x->m = x->dims[x->rank - 2];
    x->s = x->dims[x->rank - 1];
    struct view w;
    for (int k = 0; k < m->nhide; k++) {
        if (!m->hide[k].v->data) continue;
        x->any = true;
        if (!view_leaf(&m->hide[k], x->rank, x->dims, &w)) return false;
        for (int d = 0; d < x->rank - 2; d++)
            x->batched |= !view_repeats(&w, d);
    }
    if (!x->any) return true;
    for (int d = 0; d < x->rank - 2 && x->batched; d++)
        x->batch *= x->dims[d];
    if (x->m * x->s > LIMIT_ELEMS / x->batch) return false;
    x->see = arena_alloc(m->c->scratch, (size_t)(x->batch * x->m * x->s) + 1);
    memset(x->see, 1, (size_t)(x->batch * x->m * x->s));
    for (int k = 0; k < m->nhide; k++)
        if (m->hide[k].v->data && view_leaf(&m->hide[k], x->rank, x->dims, &w))
            apply_constant(m->c->scratch, x, &m->hide[k], &w);
    describe(m->c->scratch, x);
    return true;
}

// The window of the matrix; what it leaves over, as a constant operand (NULL: nothing).
static struct graph_value *constant_part(struct mask *m, const struct matrix *x) {
    struct graph *g = m->c->g;
    int64_t dims[GRAPH_MAX_RANK];
    for (int d = 0; d < x->rank; d++)
        dims[d] = x->batched ? x->dims[d] : 1;
    if (!x->any || x->all) return NULL;
    bool columns = memchr(x->column, 0, (size_t)x->s) != NULL;
    dims[x->rank - 1] = x->s;
    if (!x->batched) {
        bool band = mask_band(x->see, NULL, x->m, x->s, m->window);
        m->windowed = band;
        if (band) return NULL;
        if (columns && mask_band(x->see, x->column, x->m, x->s, m->window)) {
            m->windowed = m->window[0] >= 0 || m->window[1] >= 0;
            return graph_add_const(g, "keys", ISA_BOOL, x->rank, dims,
                                   arena_copy(g->arena, x->column, (size_t)x->s));
        }
    }
    dims[x->rank - 2] = x->m;
    return graph_add_const(g, "mask", ISA_BOOL, x->rank, dims,
                           arena_copy(g->arena, x->see, (size_t)(x->batch * x->m * x->s)));
}

// ---- the operand -----------------------------------------------------------------------------

// The leaf's view without repetitions; false when a dimension repeats in part.
static bool narrow_view(const struct mask_leaf *l, int rank, const int64_t *dims, struct view *w) {
    if (!view_leaf(l, rank, dims, w)) return false;
    for (int d = 0; d < rank; d++) {
        if (!view_repeats(w, d) && view_has_repeats(w, d)) return false;
        view_drop_repeats(w, d);
    }
    return true;
}

// A value with the narrow view's elements that broadcasts as the view does.
static npu_status emit(struct mask *m, const struct view *w, struct graph_node *before,
                       struct graph_value **out) {
    struct graph_value *v = w->root;
    bool same = view_in_order(w) && v->rank <= w->rank;
    for (int d = 0; d < w->rank && same; d++) {
        int at = d - (w->rank - v->rank);
        same = view_dim(w, d) == (at < 0 ? 1 : v->dims[at]);
    }
    *out = v;
    return same ? NULL : view_emit(m->c->g, w, v->name, before, out);
}

static npu_status map(struct mask *m, const char *name, int nin, struct graph_value *const *in,
                      enum isa_vop op, int64_t b, const float *imm, enum isa_dtype dtype,
                      struct graph_node *before, struct graph_value **out) {
    struct isa_chain chain = {.imm = {0}};
    chain.st[0] = (struct isa_stage){.op = op,
                                     .a = nin > 1             ? ISA_SRC_IN1
                                          : op == ISA_VOP_NOT ? 0
                                                              : ISA_SRC_IMM0,
                                     .b = b};
    if (imm) {
        uint32_t bits;
        memcpy(&bits, imm, sizeof bits);
        chain.imm[0] = (int64_t)bits;
    }
    return graph_add_map(m->c->g, name, nin, in, &chain, dtype, before, out);
}

// 1 where a key is seen.
static npu_status truth(struct mask *m, struct graph_value *v, bool keep, struct graph_node *before,
                        struct graph_value **out) {
    *out = v;
    if (keep && v->dtype == ISA_BOOL) return NULL;
    return map(m, "keep", 1, &v, keep ? ISA_VOP_NE : ISA_VOP_NOT, 0, NULL, ISA_BOOL, before, out);
}

// The hiding leaves that are no constants, and `constant`, as one value; NULL when there are none.
static npu_status hidden(struct mask *m, struct graph_value *constant, int rank,
                         const int64_t *dims, struct graph_node *before, struct graph_value **out) {
    struct graph_value *all = constant;
    for (int k = 0; k < m->nhide; k++) {
        const struct mask_leaf *l = &m->hide[k];
        struct graph_value *v, *both[2];
        struct view w;
        if (l->v->data || !narrow_view(l, rank, dims, &w)) continue;
        NPU_TRY(emit(m, &w, before, &v));
        if (!l->keep || isa_dtype_is_float((int)v->dtype))
            NPU_TRY(truth(m, v, l->keep, before, &v));
        if (all) {
            NPU_TRY(truth(m, all, true, before, &both[0]));
            NPU_TRY(truth(m, v, true, before, &both[1]));
            NPU_TRY(map(m, "keep", 2, both, ISA_VOP_AND, 0, NULL, ISA_BOOL, before, &v));
        }
        all = v;
    }
    *out = all;
    return NULL;
}

// A MAP of one value again, of another.
static npu_status again(struct mask *m, const struct graph_node *n, struct graph_node *before,
                        struct graph_value **v) {
    struct graph_value *in[3];
    for (int k = 0; k < n->nin; k++)
        in[k] = n->inputs[k]->data && graph_value_elems(n->inputs[k]) == 1 ? n->inputs[k] : *v;
    return graph_add_map(m->c->g, n->name, n->nin, in, &n->chain, n->outputs[0]->dtype, before, v);
}

// The addends, as one value; NULL when there are none.
static npu_status added(struct mask *m, int rank, const int64_t *dims, struct graph_node *before,
                        struct graph_value **out) {
    struct graph_value *all = NULL;
    for (int k = 0; k < m->nadd; k++) {
        const struct mask_leaf *l = &m->add[k];
        struct graph_value *v;
        struct view w;
        if (!narrow_view(l, rank, dims, &w)) continue;
        NPU_TRY(emit(m, &w, before, &v));
        for (int i = l->nvia - 1; i >= 0; i--)
            if (!is_move(l->via[i])) NPU_TRY(again(m, l->via[i], before, &v));
        if (all)
            NPU_TRY(map(m, "bias", 2, (struct graph_value *[]){all, v}, ISA_VOP_ADD, 0, NULL,
                        ISA_DTYPE_NONE, before, &v));
        all = v;
    }
    *out = all;
    return NULL;
}

// Constant addends without an infinity cannot hide a row.
static bool harmless(const struct mask *m) {
    for (int k = 0; k < m->nadd; k++) {
        const struct graph_value *v = m->add[k].v;
        if (!v->data) return false;
        for (int64_t i = 0; i < graph_value_elems(v); i++)
            if (!(num_load_f32((int)v->dtype, v->data, i) > -1e30f)) return false;
    }
    return true;
}

npu_status mask_finish(struct mask *m, int rank, const int64_t *dims, struct graph_node *before,
                       bool *fits) {
    struct matrix x = {.rank = rank, .dims = dims};
    struct view w;
    *fits = gather_constants(m, &x);
    m->sees_all = x.rows && harmless(m);
    for (int k = 0; k < m->nhide && *fits; k++) {
        if (m->hide[k].v->data) continue;
        m->sees_all = false;
        *fits = narrow_view(&m->hide[k], rank, dims, &w);
    }
    for (int k = 0; k < m->nadd && *fits; k++)
        *fits = narrow_view(&m->add[k], rank, dims, &w);
    *fits = *fits && (m->sees_all || !m->used_weak);
    if (!*fits) return NULL;
    struct graph_value *keep, *add;
    NPU_TRY(hidden(m, constant_part(m, &x), rank, dims, before, &keep));
    NPU_TRY(added(m, rank, dims, before, &add));
    m->operand = add ? add : keep;
    if (!keep || !add) return NULL;
    float fill = (float)m->fill;
    return map(m, "bias", 2, (struct graph_value *[]){keep, add}, ISA_VOP_SEL, ISA_SRC_IMM0, &fill,
               add->dtype, before, &m->operand);
}
