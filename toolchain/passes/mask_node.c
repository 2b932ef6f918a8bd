// SPDX-License-Identifier: Apache-2.0
// The mask of an attention node that a model brought along, taken apart as those that the pass
// attention finds: its window and its operand are the steps, and what comes out of them together
// takes their place.
#include <math.h>

#include "toolchain/passes/mask.h"

// The node's window as a matrix of 0 and 1; NULL: it has none.
static struct graph_value *window_matrix(struct graph *g, const struct graph_node *n, int64_t m,
                                         int64_t s) {
    int64_t left = graph_ints_at(n, GRAPH_ATTR_WINDOW, 0, -1);
    int64_t right = graph_ints_at(n, GRAPH_ATTR_WINDOW, 1, -1);
    int64_t shift = graph_ints_at(n, GRAPH_ATTR_WINDOW, 2, 0);
    if (left < 0 && right < 0) return NULL;
    uint8_t *keep = arena_alloc(g->arena, (size_t)(m * s) + 1);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < s; j++)
            keep[i * s + j] =
                (left < 0 || j >= i + shift - left) && (right < 0 || j <= i + shift + right);
    return graph_add_const(g, "window", ISA_BOOL, 2, (int64_t[]){m, s}, keep);
}

static npu_status replace(struct mask *m, struct graph_node *n, bool filled) {
    struct graph *g = m->c->g;
    struct graph_value *in[4] = {n->inputs[0], n->inputs[1], n->inputs[2], m->operand};
    struct graph_node *made =
        graph_add_node(g, GRAPH_ATTENTION, n->name, m->operand ? 4 : 3, in, n);
    double cap = graph_float(n, GRAPH_ATTR_SOFTCAP, 0);
    graph_set_float(g, made, GRAPH_ATTR_SCALE, graph_float(n, GRAPH_ATTR_SCALE, 1));
    if (cap > 0) graph_set_float(g, made, GRAPH_ATTR_SOFTCAP, cap);
    if (m->windowed) graph_set_ints(g, made, GRAPH_ATTR_WINDOW, 3, m->window);
    if (filled && (m->windowed || m->operand) && !m->sees_all)
        graph_set_float(g, made, GRAPH_ATTR_FILL, m->fill);
    if (graph_int(n, GRAPH_ATTR_ZERO_ROWS, 0) && !filled && !m->sees_all)
        graph_set_int(g, made, GRAPH_ATTR_ZERO_ROWS, 1);
    struct graph_value *y = n->outputs[0];
    const char *name = y->name;
    NPU_TRY(graph_infer(g, made, name));
    graph_add_origins(g, made, n);
    graph_replace_uses(g, y, made->outputs[0]);
    graph_remove_node(g, n);
    if (!made->outputs[0]->is_output) graph_rename_value(g, made->outputs[0], name);
    return NULL;
}

npu_status mask_simplify(struct pass_context *c, struct graph_node *n, bool *done) {
    const struct graph_value *q = n->inputs[0], *k = n->inputs[1];
    struct graph_value *operand = n->nown > 3 ? n->inputs[3] : NULL, score = *q;
    double fill = graph_float(n, GRAPH_ATTR_FILL, -HUGE_VAL);
    int r = q->rank;
    score.dims[r - 1] = k->dims[r - 2];
    *done = false;
    if (!operand) return NULL;
    int64_t rows = score.dims[r - 2], keys = score.dims[r - 1];
    if (!graph_value_elems(&score) || keys > (INT64_C(1) << 28) / rows) return NULL;
    struct mask m = {.c = c};
    struct graph_value *window = window_matrix(c->g, n, rows, keys);
    bool adds = isa_dtype_is_float((int)operand->dtype), fits = true;
    if (adds) fits = mask_add(&m, operand, false, &score);
    // An addend that hides has a fill of its own, which has to be the node's then.
    if (fits && (window || !adds))
        fits = mask_hide(&m, window ? window : operand, false, fill, &score);
    if (fits && window && !adds) fits = mask_hide(&m, operand, false, fill, &score);
    if (fits) NPU_TRY(mask_finish(&m, r, score.dims, n, &fits));
    *done = fits;
    return fits ? replace(&m, n, !(isinf(m.fill) && m.fill < 0) && m.filled) : NULL;
}
