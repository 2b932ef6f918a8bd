// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as graph text: refused, or a graph whose print is read back as the same print.
//
// links: npu_frontend_text npu_graph npu_base

#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"
#include "tests/fuzz/fuzz.h"
#include "toolchain/frontend/text/text_graph.h"

static bool has_large_constant(const struct graph *g) {
    for (int k = 0; k < g->nvalue; k++)
        if (g->values[k]->data && graph_value_elems(g->values[k]) > 64) return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *a = arena_new();
    struct graph *g = NULL, *back = NULL;
    npu_status st = text_graph_parse(a, (struct span){data, size}, "fuzz/graph.npt", &g);
    if (!st && !has_large_constant(g)) {
        struct str first = {0}, second = {0};
        graph_print(g, &first);
        st = text_graph_parse(a, (struct span){(const uint8_t *)str_text(&first), first.len},
                              "fuzz/graph.npt", &back);
        if (st) abort();
        graph_print(back, &second);
        if (first.len != second.len || memcmp(str_text(&first), str_text(&second), first.len) != 0)
            abort();
        str_free(&first);
        str_free(&second);
    }
    npu_status_free(st);
    arena_free(a);
    return 0;
}
