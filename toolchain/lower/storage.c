// SPDX-License-Identifier: Apache-2.0
// Where each value lies in DRAM.
//
//   graph inputs and outputs   a buffer each, row-major, in the program's type
//   constants                  weight buffers of the model's bytes, made when a kernel reads them
//   results                    scratch buffers in the value's storage order
//   views                      an alias of another value's buffer with its own strides
#include "toolchain/lower/internal.h"

#include <string.h>

static struct lower_view strided(const struct graph_value *v, int buf) {
    struct lower_view p = {.buf = buf, .dtype = v->dtype};
    graph_value_strides(v, p.stride);
    for (int d = 0; d < v->rank; d++)
        if (v->dims[d] == 1) p.stride[d] = 0;
    return p;
}

static void put(struct lower *L, const struct graph_value *v, struct lower_view place) {
    L->place[v->id] = place;
    L->placed[v->id] = true;
}

static void own(struct lower *L, const struct graph_value *v, enum tile_kind kind, const void *data) {
    put(L, v, strided(v, tile_add_dram(L->p, v->name, kind, lower_max(graph_value_bytes(v), 1), data, v)));
}

// Strides of `to` (row-major order of the same elements) over the memory of `from`; false when they do not exist.
static bool reshaped(const struct graph_value *from, const struct lower_view *place, const struct graph_value *to, struct lower_view *out) {
    int64_t size[LOWER_DIMS], stride[LOWER_DIMS];
    int n = 0;
    *out = *place;
    memset(out->stride, 0, sizeof out->stride);
    for (int d = 0; d < from->rank; d++) {
        if (from->dims[d] == 1) continue;
        if (n && stride[n - 1] == place->stride[d] * from->dims[d]) {
            size[n - 1] *= from->dims[d];
            stride[n - 1] = place->stride[d];
        } else {
            size[n] = from->dims[d];
            stride[n++] = place->stride[d];
        }
    }
    int at = n - 1;
    int64_t done = 1;
    for (int d = to->rank - 1; d >= 0; d--) {
        if (to->dims[d] == 1) continue;
        if (at < 0 || size[at] % (done * to->dims[d])) return false;
        out->stride[d] = stride[at] * done;
        done *= to->dims[d];
        if (done == size[at]) {
            at--;
            done = 1;
        }
    }
    return true;
}

static bool is_constant(const struct graph_value *v) { return v->data != NULL; }

npu_status lower_storage(struct lower *L) {
    const struct graph *g = L->g;
    L->place = ARENA_ARRAY(L->a, struct lower_view, (size_t)g->nvalue + 1);
    L->placed = ARENA_ARRAY(L->a, bool, (size_t)g->nvalue + 1);
    for (int i = 0; i < g->ninput; i++) own(L, g->inputs[i], TILE_INPUT, NULL);
    for (int i = 0; i < g->nvalue; i++) {
        const struct graph_value *v = g->values[i];
        if (v && is_constant(v) && !L->placed[i]) own(L, v, TILE_WEIGHT, v->data);
    }
    for (int i = 0; i < g->noutput; i++)
        if (!L->placed[g->outputs[i]->id]) own(L, g->outputs[i], TILE_OUTPUT, NULL);
    for (const struct graph_node *n = g->first; n; n = n->next) {
        for (int k = 0; k < n->nout; k++) {
            const struct graph_value *v = n->outputs[k];
            struct lower_view view;
            if (L->placed[v->id]) continue;
            if (n->op == GRAPH_RESHAPE && !v->has_order && reshaped(n->inputs[0], &L->place[n->inputs[0]->id], v, &view))
                put(L, v, view);
            else
                own(L, v, TILE_SCRATCH, NULL);
        }
    }
    return NULL;
}

bool lower_is_alias(const struct lower *L, const struct graph_node *n) {
    return (graph_ops[n->op].traits & GRAPH_VIEW) && L->place[n->outputs[0]->id].buf == L->place[n->inputs[0]->id].buf;
}
