// SPDX-License-Identifier: Apache-2.0
//
// Results of importers: constants out of tensors, and values under the model's names.

#include <string.h>

#include "toolchain/frontend/onnx/import.h"

npu_status onnx_tensor_const(struct onnx_node *n, const Onnx__TensorProto *p,
                             struct graph_value **out) {
    struct onnx_tensor t;
    NPU_TRY(reader_tensor(n->m->r, p, &t));
    struct graph_value *v = graph_add_const(n->m->g, n->label, t.dtype, t.rank, t.dims, t.data);
    v->source = t.source;
    v->source_offset = t.source_offset;
    v->file_dtype = t.file_dtype;
    *out = v;
    return NULL;
}

npu_status onnx_bind(struct onnx_node *n, int k, struct graph_value *v) {
    if (!onnx_used(n, k)) return NULL;
    const char *name = n->p->output[k];
    if (map_get(&n->s->values, name))
        return npu_fail(BAD_INPUT, "output '%s' is computed twice", name);
    map_put(&n->s->values, name, v);
    if (v->id >= n->first_value && v != &onnx_missing && !v->is_input) {
        const char *full =
            *n->s->prefix ? arena_printf(n->m->arena, "%s%s", n->s->prefix, name) : name;
        graph_rename_value(n->m->g, v, full);
    }
    return NULL;
}
