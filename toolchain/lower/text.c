// SPDX-License-Identifier: Apache-2.0
// A kernel as one line of `npuc --info`: "%y = conv+add+max %x, const[64,3,7,7], const[64,1,1] ->
// f16[1,64,112,112]".
#include "toolchain/lower/internal.h"

static const char *shape(struct arena *a, const struct graph_value *v) {
    const char *text = "[";
    for (int d = 0; d < v->rank; d++)
        text = arena_printf(a, "%s%s%lld", text, d ? "," : "", (long long)v->dims[d]);
    return arena_printf(a, "%s]", text);
}

const char *lower_node_text(const struct lower *L, const struct graph_node *n, const char *op) {
    struct arena *a = L->a;
    const struct graph_value *y = n->outputs[0];
    const char *text = arena_printf(a, "%%%s = %s", y->name, op);
    for (int i = 0; i < n->nin; i++) {
        const struct graph_value *v = n->inputs[i];
        const char *comma = i ? "," : "";
        if (v->data)
            text = arena_printf(a, "%s%s const%s", text, comma, shape(a, v));
        else
            text = arena_printf(a, "%s%s %%%s", text, comma, v->name);
    }
    return arena_printf(a, "%s -> %s%s", text, isa_dtype_name((int)y->dtype), shape(a, y));
}
