// SPDX-License-Identifier: Apache-2.0
// Storage orders. Convolutions, pooling and resizing read and write channels innermost (N, H, W,
// C); matrix products, softmax, normalisation, reshape and gather are row-major; elementwise and
// data-moving nodes follow their inputs. Where a kernel needs an order that a value does not have,
// a COPY goes between. Orders that differ only in dimensions of size 1 are the same.
#include <string.h>

#include "toolchain/passes/pass.h"

static const int channels_last[GRAPH_MAX_RANK] = {0, 2, 3, 1};

static void set_order(struct graph_value *v, const int *order) {
    v->has_order = order != NULL;
    if (order) memcpy(v->order, order, (size_t)v->rank * sizeof *order);
}

// The dimensions larger than 1 in storage order.
static int significant(const struct graph_value *v, const int *order, int out[GRAPH_MAX_RANK]) {
    int n = 0;
    for (int i = 0; i < v->rank; i++) {
        int d = order ? order[i] : i;
        if (v->dims[d] > 1) out[n++] = d;
    }
    return n;
}

static bool lies_as(const struct graph_value *v, const int *order) {
    int a[GRAPH_MAX_RANK], b[GRAPH_MAX_RANK];
    int n = significant(v, v->has_order ? v->order : NULL, a);
    significant(v, order, b);
    return !memcmp(a, b, (size_t)n * sizeof *a);
}

// Makes input i of n lie in `order` (NULL: row-major). Copies of one value in one order are shared.
static npu_status want(struct pass_context *c, struct graph_node *n, int i, const int *order,
                       struct graph_value **copies) {
    struct graph_value *v = n->inputs[i];
    if (v->data || lies_as(v, order)) return NULL;
    struct graph_value *known = copies[v->id];
    if (known && lies_as(known, order)) {
        n->inputs[i] = known;
        return NULL;
    }
    struct graph_value *in[] = {v};
    const char *name = arena_printf(c->g->arena, "%s.order", v->name);
    struct graph_node *copy = graph_add_node(c->g, GRAPH_COPY, name, 1, in, n);
    NPU_TRY(graph_infer(c->g, copy, name));
    if (v->producer) graph_add_origins(c->g, copy, v->producer);
    set_order(copy->outputs[0], order);
    copies[v->id] = copy->outputs[0];
    n->inputs[i] = copy->outputs[0];
    return NULL;
}

// The order that elementwise work follows: that of the first operand with the output's shape that
// has one of its own.
static const int *common_order(const struct graph_node *n) {
    const struct graph_value *y = n->outputs[0];
    for (int i = 0; i < n->nin; i++) {
        const struct graph_value *v = n->inputs[i];
        if (!v->data && v->has_order && v->rank == y->rank && !lies_as(v, NULL)) return v->order;
    }
    return NULL;
}

static npu_status follow(struct pass_context *c, struct graph_node *n,
                         struct graph_value **copies) {
    struct graph_value *y = n->outputs[0];
    const int *order = common_order(n);
    for (int i = 0; i < n->nin; i++)
        if (n->inputs[i]->rank == y->rank &&
            graph_value_elems(n->inputs[i]) == graph_value_elems(y))
            NPU_TRY(want(c, n, i, order, copies));
    set_order(y, order);
    return NULL;
}

static npu_status windowed(struct pass_context *c, struct graph_node *n,
                           struct graph_value **copies) {
    NPU_TRY(want(c, n, 0, channels_last, copies));
    for (int i = n->nown; i < n->nin; i++)
        if (n->inputs[i]->rank == 4 &&
            graph_value_elems(n->inputs[i]) == graph_value_elems(n->outputs[0]))
            NPU_TRY(want(c, n, i, channels_last, copies));
    set_order(n->outputs[0], channels_last);
    return NULL;
}

static npu_status row_major(struct pass_context *c, struct graph_node *n,
                            struct graph_value **copies) {
    for (int i = 0; i < n->nin; i++)
        NPU_TRY(want(c, n, i, NULL, copies));
    return NULL;
}

static npu_status place(struct pass_context *c, struct graph_node *n, struct graph_value **copies) {
    switch (n->op) {
    case GRAPH_CONV:
    case GRAPH_CONVT:
    case GRAPH_POOL:
    case GRAPH_RESIZE:
        return n->outputs[0]->rank == 4 ? windowed(c, n, copies) : row_major(c, n, copies);
    case GRAPH_MAP:
    case GRAPH_SLICE:
    case GRAPH_CONCAT:
    case GRAPH_PAD:
    case GRAPH_GROUPNORM:
        return n->outputs[0]->rank == 4 ? follow(c, n, copies) : row_major(c, n, copies);
    case GRAPH_REDUCE: // any order of the input; the result, and what a chain adds to it, row-major
        for (int i = n->nown; i < n->nin; i++)
            NPU_TRY(want(c, n, i, NULL, copies));
        return NULL;
    case GRAPH_TRANSPOSE:
    case GRAPH_ROTARY: // any strides
    case GRAPH_COPY: return NULL;
    case GRAPH_MATMUL:
    case GRAPH_SOFTMAX:
    case GRAPH_ATTENTION:
    case GRAPH_LAYERNORM:
    case GRAPH_GLU:
    case GRAPH_GLU_MLP:
    case GRAPH_RMSNORM:
    case GRAPH_BATCHNORM:
    case GRAPH_RESHAPE:
    case GRAPH_EXPAND:
    case GRAPH_GATHER:
    case GRAPH_RANGE:
    case GRAPH_OPS: return row_major(c, n, copies);
    }
    return NULL;
}

// The model's outputs are row-major.
static npu_status outputs(struct pass_context *c) {
    for (int i = 0; i < c->g->noutput; i++) {
        struct graph_value *v = c->g->outputs[i];
        if (!v->has_order) continue;
        if (lies_as(v, NULL)) {
            set_order(v, NULL);
            continue;
        }
        struct graph_value *in[] = {v};
        const char *name = arena_printf(c->g->arena, "%s.row_major", v->name);
        struct graph_node *copy = graph_add_node(c->g, GRAPH_COPY, name, 1, in, NULL);
        NPU_TRY(graph_infer(c->g, copy, name));
        struct graph_value *fresh = copy->outputs[0];
        graph_replace_uses(c->g, v, fresh);
        // Only the model's output is the copy; nodes go on reading the original, which stands
        // before them.
        for (struct graph_node *n = c->g->first; n; n = n->next)
            for (int k = 0; k < n->nin; k++)
                if (n->inputs[k] == fresh) n->inputs[k] = v;
        if (v->producer) graph_add_origins(c->g, copy, v->producer);
    }
    return NULL;
}

npu_status pass_layout(struct pass_context *c) {
    for (int i = 0; i < c->g->nvalue; i++) // a graph read from text may have orders already
        if (c->g->values[i]) set_order(c->g->values[i], NULL);
    // A copy is added for a value that exists now; copies themselves are never copied again, but
    // may be looked up.
    struct graph_value **copies =
        ARENA_ARRAY(c->scratch, struct graph_value *, 4 * (size_t)c->g->nvalue + 64);
    int limit = 4 * c->g->nvalue + 64;
    for (struct graph_node *n = c->g->first; n; n = n->next) {
        NPU_ASSERT(c->g->nvalue + n->nin < limit);
        NPU_TRY(place(c, n, copies));
    }
    return outputs(c);
}
