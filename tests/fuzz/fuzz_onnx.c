// SPDX-License-Identifier: Apache-2.0
// links: npu_frontend_onnx npu_graph npu_base
//
// The ONNX importer: any bytes end in a graph that the verifier accepts, or in a status. A graph
// that came out small is also run on zeros, so that the reference kernels meet whatever shapes and
// attributes got through.

#include <string.h>

#include "runtime/base/str.h"
#include "tests/fuzz/fuzz.h"
#include "toolchain/frontend/onnx/onnx.h"

enum { VALUES = 32, ELEMS_MAX = 4096 };

static bool is_small(const struct graph *g) {
    int64_t work = 0;
    for (int k = 0; k < g->nvalue; k++) {
        if (!g->values[k]) continue;
        if (graph_value_elems(g->values[k]) > ELEMS_MAX) return false;
        work += graph_value_elems(g->values[k]);
    }
    for (const struct graph_node *n = g->first; n; n = n->next)
        if (n->op == GRAPH_CONV || n->op == GRAPH_CONVT || n->op == GRAPH_POOL)
            for (int d = 0; d < 2; d++)
                if (graph_ints_at(n, GRAPH_ATTR_KERNEL, d, 1) > 64) return false;
    return work <= 16 * ELEMS_MAX && g->ninput <= VALUES && g->noutput <= VALUES;
}

static npu_status run(const struct graph *g, struct arena *a) {
    const void *in[VALUES];
    void *out[VALUES];
    for (int k = 0; k < g->ninput; k++)
        in[k] = arena_alloc(a, (size_t)graph_value_bytes(g->inputs[k]) + 1);
    for (int k = 0; k < g->noutput; k++)
        out[k] = arena_alloc(a, (size_t)graph_value_bytes(g->outputs[k]) + 1);
    return graph_eval(g, in, out, a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *a = arena_new();
    struct graph *g = NULL;
    struct span bytes = {data, size};
    (void)onnx_probe(bytes);
    npu_status failed = onnx_import_bytes(bytes, NULL, a, &g);
    if (!failed) {
        npu_status broken = graph_verify(g, "after import");
        NPU_ASSERT(broken == NULL);
        struct str text = {0};
        graph_print(g, &text);
        str_free(&text);
        if (is_small(g)) failed = run(g, a);
    }
    npu_status_free(failed);
    struct tensor_data t;
    const char *name;
    npu_status_free(onnx_tensor_parse(a, bytes, &t, &name));
    arena_free(a);
    return 0;
}
