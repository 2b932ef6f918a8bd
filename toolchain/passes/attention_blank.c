// SPDX-License-Identifier: Apache-2.0
// Queries that see no key under a finite fill, for attention with a window and a mask of the keys
// that is known at run time only. All keys of such a query weigh the same, also those outside the
// window: its result is the mean of the values. So the node may leave out what the window hides,
// give 0 for such queries, and the mean takes the place of the 0:
//
//   seen = keep [.., 1, S] x window [S, M]  > 0         once for all layers
//   y = seen ? attention : mean of v over the keys
//
// The fill has to be so low that a hidden key weighs nothing beside one that is seen.
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/attention.h"

#define LIMIT_ELEMS (INT64_C(1) << 22)

static bool fits(const struct graph_value *mask, const struct graph_value *q, int64_t m,
                 int64_t s) {
    if (!mask || !isa_dtype_is_int((int)mask->dtype) || m > LIMIT_ELEMS / s) return false;
    int r = mask->rank, more = q->rank - r;
    bool row = r >= 1 && mask->dims[r - 1] == s;
    for (int d = 0; d < r - 1; d++) // nothing but batches beside the keys, so no heads and rows
        row = row && (mask->dims[d] == 1 || d + more < q->rank - 3);
    return row;
}

// [S, M]: 1 where query m sees key s. Layers with the same window share it.
static struct graph_value *window_columns(struct match *m, int64_t rows, int64_t keys) {
    const int64_t *w = m->mask.window;
    struct attention_columns *list = m->columns;
    for (int k = 0; k < list->n; k++)
        if (!memcmp(list->window[k], w, sizeof list->window[k]) &&
            list->value[k]->dims[0] == keys && list->value[k]->dims[1] == rows)
            return list->value[k];
    float *see = ARENA_ARRAY(m->c->g->arena, float, (size_t)(rows * keys));
    for (int64_t j = 0; j < keys; j++)
        for (int64_t i = 0; i < rows; i++)
            see[j * rows + i] =
                (w[0] < 0 || j >= i + w[2] - w[0]) && (w[1] < 0 || j <= i + w[2] + w[1]);
    struct graph_value *v =
        graph_add_const(m->c->g, "window", ISA_F32, 2, (int64_t[]){keys, rows}, see);
    if (list->n < ATTENTION_COLUMNS) {
        memcpy(list->window[list->n], w, sizeof list->window[0]);
        list->value[list->n++] = v;
    }
    return v;
}

static npu_status stage(struct match *m, const char *name, int nin, struct graph_value *const *in,
                        struct isa_stage st, enum isa_dtype dtype, struct graph_value **out) {
    struct isa_chain c = {.st = {st}};
    return graph_add_map(m->c->g, name, nin, in, &c, dtype, m->value, out);
}

static npu_status shaped(struct match *m, const char *name, int rank, const int64_t *dims,
                         struct graph_value **v) {
    if ((*v)->rank == rank && !memcmp((*v)->dims, dims, (size_t)rank * sizeof *dims)) return NULL;
    struct graph_node *n = graph_add_node(m->c->g, GRAPH_RESHAPE, name, 1, v, m->value);
    graph_set_ints(m->c->g, n, GRAPH_ATTR_SHAPE, rank, dims);
    NPU_TRY(graph_infer(m->c->g, n, name));
    *v = n->outputs[0];
    return NULL;
}

// Whether each query sees a key: [batch.., 1 (heads), 1, M, 1] with `rank` dimensions.
static npu_status seen(struct match *m, int rank, int64_t rows, int64_t keys,
                       struct graph_value **out) {
    struct graph *g = m->c->g;
    struct graph_value *keep = m->mask.operand, *in[2];
    int64_t dims[GRAPH_MAX_RANK], batches = graph_value_elems(keep) / keys;
    struct isa_stage test = {ISA_VOP_NE, ISA_SRC_IMM0, 0, 0};
    NPU_TRY(stage(m, "seen", 1, &keep, test, ISA_F32, &in[0]));
    NPU_TRY(shaped(m, "seen", 2, (int64_t[]){batches, keys}, &in[0]));
    in[1] = window_columns(m, rows, keys);
    struct graph_node *n = graph_add_node(g, GRAPH_MATMUL, "seen", 2, in, m->value);
    NPU_TRY(graph_infer(g, n, "seen"));
    NPU_TRY(stage(m, "seen", 1, &n->outputs[0], test, ISA_BOOL, out));
    for (int d = 0; d < rank; d++) {
        int at = d - (rank - keep->rank);
        dims[d] = at < 0 || d >= rank - 2 ? 1 : keep->dims[at];
    }
    dims[rank - 2] = rows;
    return shaped(m, "seen", rank, dims, out);
}

// The window hides a quarter of the scores or more.
static bool pays(const int64_t w[3], int64_t rows, int64_t keys) {
    double seen = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t from = w[0] < 0 ? 0 : i + w[2] - w[0], to = w[1] < 0 ? keys : i + w[2] + w[1] + 1;
        if (from < 0) from = 0;
        if (to > keys) to = keys;
        if (to > from) seen += (double)(to - from);
    }
    return 4 * seen <= 3 * (double)rows * (double)keys;
}

bool attention_may_leave_out(const struct match *m, const struct graph_value *q,
                             const struct graph_value *k) {
    int r = q->rank;
    return m->mask.windowed && m->mask.filled && !m->mask.sees_all && isfinite(m->mask.fill) &&
           m->mask.fill <= (q->dtype == ISA_F16 ? -65504.0 : -1e30) && r < GRAPH_MAX_RANK &&
           pays(m->mask.window, q->dims[r - 2], k->dims[r - 2]) &&
           fits(m->mask.operand, q, q->dims[r - 2], k->dims[r - 2]);
}

npu_status attention_add_means(struct match *m, struct graph_node *n, struct graph_value **y) {
    struct graph *g = m->c->g;
    const struct graph_value *q = n->inputs[0], *k = n->inputs[1];
    struct graph_value *v = n->inputs[2], *in[3];
    int r = q->rank;
    int64_t rows = q->dims[r - 2], keys = k->dims[r - 2], axis = r - 2, heads = k->dims[r - 3];
    int64_t dims[GRAPH_MAX_RANK], out[GRAPH_MAX_RANK];
    struct graph_node *mean = graph_add_node(g, GRAPH_REDUCE, "mean", 1, &v, m->value);
    graph_set_word(g, mean, GRAPH_ATTR_MODE, "mean");
    graph_set_ints(g, mean, GRAPH_ATTR_AXES, 1, &axis);
    graph_set_int(g, mean, GRAPH_ATTR_KEEPDIMS, 1);
    NPU_TRY(graph_infer(g, mean, "mean"));
    NPU_TRY(seen(m, r, rows, keys, &in[0]));
    in[1] = *y;
    in[2] = mean->outputs[0];
    memcpy(out, (*y)->dims, sizeof out);
    if (heads != q->dims[r - 3]) { // [.., heads of keys, query heads of each, rows, depth]
        memcpy(dims, (*y)->dims, sizeof dims);
        dims[r - 3] = heads;
        dims[r - 2] = q->dims[r - 3] / heads;
        dims[r - 1] = rows;
        dims[r] = out[r - 1];
        NPU_TRY(shaped(m, n->name, r + 1, dims, &in[1]));
        dims[r - 2] = dims[r - 1] = 1;
        NPU_TRY(shaped(m, "mean", r + 1, dims, &in[2]));
        memcpy(dims, in[0]->dims, sizeof dims);
        dims[r - 2] = 1;
        dims[r - 1] = rows;
        dims[r] = 1;
        NPU_TRY(shaped(m, "seen", r + 1, dims, &in[0]));
    }
    NPU_TRY(stage(m, n->name, 3, in, (struct isa_stage){ISA_VOP_SEL, ISA_SRC_IN1, ISA_SRC_IN2, 0},
                  in[1]->dtype, y));
    return shaped(m, n->name, r, out, y);
}
