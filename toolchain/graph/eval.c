// SPDX-License-Identifier: Apache-2.0
//
// Running nodes and graphs with the reference kernels. graph_eval() walks the nodes in order, keeps
// a buffer per live value, frees it after its last use, and gives every node a fresh scratch arena.

#include "toolchain/graph/eval.h"

#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/alloc.h"

static bool aligned(const void *p, size_t to) {
    return (uintptr_t)p % to == 0;
}

const float *eval_floats(struct graph_eval *e, int k) {
    const struct graph_value *v = e->n->inputs[k];
    if (v->dtype == ISA_F32 && aligned(e->in[k], sizeof(float))) return e->in[k];
    size_t n = (size_t)graph_value_elems(v);
    float *wide = ARENA_ARRAY(e->scratch, float, n);
    num_read_f32(v->dtype, e->in[k], 0, 1, wide, n);
    return wide;
}

const int64_t *eval_ints(struct graph_eval *e, int k) {
    const struct graph_value *v = e->n->inputs[k];
    if (v->dtype == ISA_I64 && aligned(e->in[k], sizeof(int64_t))) return e->in[k];
    size_t n = (size_t)graph_value_elems(v);
    int64_t *wide = ARENA_ARRAY(e->scratch, int64_t, n);
    num_read_i64(v->dtype, e->in[k], 0, 1, wide, n);
    return wide;
}

npu_status graph_eval_node(const struct graph_node *n, const void *const *in, void *const *out,
                           struct arena *scratch) {
    const struct graph_value *v = n->outputs[0];
    size_t elems = (size_t)graph_value_elems(v);
    if (!elems) return NULL;
    struct graph_eval e = {.n = n, .scratch = scratch, .in = in, .out = out[0], .ints = true};
    for (int k = 0; k < n->nown; k++)
        e.ints &= isa_dtype_is_int(n->inputs[k]->dtype);
    if (n->op == GRAPH_MAP) {
        eval_chain(&e);
        return NULL;
    }
    e.own_int = isa_dtype_is_int(graph_own_dtype(n));
    if (e.own_int)
        e.i = ARENA_ARRAY(scratch, int64_t, elems);
    else if (!n->has_chain && v->dtype == ISA_F32 && aligned(e.out, sizeof(float)))
        e.f = e.out;
    else
        e.f = ARENA_ARRAY(scratch, float, elems);
    NPU_TRY_NOTE(graph_ops[n->op].eval(&e), "node '%s' (%s)", n->name, graph_ops[n->op].text);
    if (e.done || (void *)e.f == e.out) return NULL;
    if (n->has_chain)
        eval_chain(&e);
    else if (e.own_int)
        num_write_i64(v->dtype, e.out, 0, 1, e.i, elems);
    else
        num_write_f32(v->dtype, e.out, 0, 1, e.f, elems);
    return NULL;
}

npu_status eval_map(struct graph_eval *e) {
    eval_chain(e);
    e->done = true;
    return NULL;
}

// ---- whole graphs ----------------------------------------------------------------------------

struct live {
    void *owned;       // buffer to free after the last use
    const void *bytes; // where the value is: owned, a constant, or the caller's
    int uses;
};

static void *buffer_for(const struct graph_value *v) {
    return base_alloc((size_t)graph_value_bytes(v) + 1);
}

static npu_status run_node(const struct graph_node *n, struct live *live, struct arena *temp) {
    const void **in = ARENA_ARRAY(temp, const void *, (size_t)n->nin);
    for (int k = 0; k < n->nin; k++)
        in[k] =
            n->inputs[k]->data ? graph_constant(n->inputs[k], temp) : live[n->inputs[k]->id].bytes;
    struct live *out = &live[n->outputs[0]->id];
    out->owned = buffer_for(n->outputs[0]);
    if (!out->owned)
        return npu_fail(NO_MEMORY, "node '%s': %lld bytes for '%s'", n->name,
                        (long long)graph_value_bytes(n->outputs[0]), n->outputs[0]->name);
    out->bytes = out->owned;
    NPU_TRY(graph_eval_node(n, in, &out->owned, temp));
    for (int k = 0; k < n->nin; k++) {
        struct live *used = &live[n->inputs[k]->id];
        if (--used->uses > 0 || !used->owned) continue;
        base_free(used->owned);
        *used = (struct live){0};
    }
    return NULL;
}

static npu_status run_graph(const struct graph *g, struct live *live, struct arena *temp) {
    for (const struct graph_node *n = g->first; n; n = n->next) {
        NPU_TRY(run_node(n, live, temp));
        arena_reset(temp);
    }
    return NULL;
}

npu_status graph_eval(const struct graph *g, const void *const *inputs, void *const *outputs,
                      struct arena *scratch) {
    struct live *live = ARENA_ARRAY(scratch, struct live, (size_t)g->nvalue + 1);
    for (int k = 0; k < g->nvalue; k++)
        if (g->values[k]) live[k].bytes = g->values[k]->data;
    for (int k = 0; k < g->ninput; k++)
        live[g->inputs[k]->id].bytes = inputs[k];
    for (const struct graph_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nin; k++)
            live[n->inputs[k]->id].uses++;
    for (int k = 0; k < g->noutput; k++)
        live[g->outputs[k]->id].uses++;
    struct arena *temp = arena_try_new();
    npu_status failed = temp ? run_graph(g, live, temp) : npu_fail(NO_MEMORY, "scratch memory");
    arena_free(temp);
    for (int k = 0; k < g->noutput && !failed; k++) {
        const struct graph_value *v = g->outputs[k];
        memcpy(outputs[k], live[v->id].bytes, (size_t)graph_value_bytes(v));
    }
    for (int k = 0; k < g->nvalue; k++)
        base_free(live[k].owned);
    return failed;
}
