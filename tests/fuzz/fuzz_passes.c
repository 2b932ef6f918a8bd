// SPDX-License-Identifier: Apache-2.0
//
// Any graph that the reader of graph text accepts goes through the passes: each either fails with a
// message or leaves a graph that verifies. The first byte of the text chooses level and type;
// graphs whose evaluation would take long are left out.
//
// links: npu_passes npu_frontend_text npu_graph npu_base

#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"
#include "tests/fuzz/fuzz.h"
#include "toolchain/frontend/text/text_graph.h"
#include "toolchain/passes/pass.h"

enum { MAX_ELEMS = 4096, MAX_ATTR = 64 };

static bool small(const struct graph *g) {
    for (int k = 0; k < g->nvalue; k++)
        if (g->values[k] && graph_value_elems(g->values[k]) > MAX_ELEMS) return false;
    for (const struct graph_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nattr; k++)
            for (int i = 0; n->attrs[k].ints && i < n->attrs[k].n; i++)
                if (n->attrs[k].ints[i] > MAX_ATTR || n->attrs[k].ints[i] < -MAX_ATTR) return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *a = arena_new();
    struct graph *g = NULL;
    unsigned choice = size ? data[0] : 0;
    size_t skip = size && choice != 'g' && choice != '#';
    npu_status st = text_graph_parse(a, (struct span){data + skip, size - skip}, "fuzz.npt", &g);
    if (!st && small(g)) {
        struct pass_options o;
        struct pass_log log = {0};
        pass_options_init(&o);
        o.level = (int)(choice % 4);
        const enum isa_dtype dtypes[] = {ISA_DTYPE_NONE, ISA_F32, ISA_F16, ISA_BF16};
        o.dtype = dtypes[choice / 4 % 4];
        st = passes_run(g, &o, &log);
        struct str out = {0};
        npu_status_print(st, NULL, &out);
        if (strstr(str_text(&out), "graph check")) abort(); // a pass broke the graph
        str_free(&out);
    }
    npu_status_free(st);
    arena_free(a);
    return 0;
}
