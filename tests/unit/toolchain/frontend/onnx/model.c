// SPDX-License-Identifier: Apache-2.0

#define _POSIX_C_SOURCE 200809L

#include "tests/unit/toolchain/frontend/onnx/model.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"

void *model_grow(struct arena *a, void *list, size_t count) {
    void **grown = ARENA_ARRAY(a, void *, count + 1);
    if (count) memcpy(grown, list, count * sizeof *grown);
    return grown;
}

#define NEW(a, type, init) init_##init(ARENA_NEW(a, type))
#define INIT(type, init)                \
    static type *init_##init(type *p) { \
        onnx__##init##__init(p);        \
        return p;                       \
    }
INIT(Onnx__ModelProto, model_proto)
INIT(Onnx__GraphProto, graph_proto)
INIT(Onnx__NodeProto, node_proto)
INIT(Onnx__AttributeProto, attribute_proto)
INIT(Onnx__TensorProto, tensor_proto)
INIT(Onnx__ValueInfoProto, value_info_proto)
INIT(Onnx__TypeProto, type_proto)
INIT(Onnx__TypeProto__Tensor, type_proto__tensor)
INIT(Onnx__TensorShapeProto, tensor_shape_proto)
INIT(Onnx__TensorShapeProto__Dimension, tensor_shape_proto__dimension)
INIT(Onnx__OperatorSetIdProto, operator_set_id_proto)

void model_init(struct model *m, struct arena *a, int64_t opset) {
    m->arena = a;
    m->proto = NEW(a, Onnx__ModelProto, model_proto);
    m->graph = m->proto->graph = NEW(a, Onnx__GraphProto, graph_proto);
    m->proto->has_ir_version = 1;
    m->proto->ir_version = 8;
    Onnx__OperatorSetIdProto *set = NEW(a, Onnx__OperatorSetIdProto, operator_set_id_proto);
    set->has_version = 1;
    set->version = opset;
    MODEL_PUSH(a, m->proto->opset_import, m->proto->n_opset_import, set);
}

static void push_names(struct arena *a, char ***list, size_t *count, const char *names) {
    char *copy = arena_strdup(a, names), *end = NULL;
    for (char *word = strtok_r(copy, " ", &end); word; word = strtok_r(NULL, " ", &end))
        MODEL_PUSH(a, *list, *count, !strcmp(word, "-") ? arena_strdup(a, "") : word);
}

Onnx__NodeProto *model_node_in(struct arena *a, Onnx__GraphProto *g, const char *op,
                               const char *inputs, const char *outputs) {
    Onnx__NodeProto *n = NEW(a, Onnx__NodeProto, node_proto);
    n->op_type = arena_strdup(a, op);
    push_names(a, &n->input, &n->n_input, inputs);
    push_names(a, &n->output, &n->n_output, outputs);
    MODEL_PUSH(a, g->node, g->n_node, n);
    return n;
}

Onnx__NodeProto *model_node(struct model *m, const char *op, const char *inputs,
                            const char *outputs) {
    return model_node_in(m->arena, m->graph, op, inputs, outputs);
}

Onnx__AttributeProto *node_attr(struct arena *a, Onnx__NodeProto *n, const char *name,
                                Onnx__AttributeProto__AttributeType type) {
    Onnx__AttributeProto *p = NEW(a, Onnx__AttributeProto, attribute_proto);
    p->name = arena_strdup(a, name);
    p->has_type = 1;
    p->type = type;
    MODEL_PUSH(a, n->attribute, n->n_attribute, p);
    return p;
}

void node_int(struct arena *a, Onnx__NodeProto *n, const char *name, int64_t v) {
    Onnx__AttributeProto *p = node_attr(a, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    p->has_i = 1;
    p->i = v;
}

void node_float(struct arena *a, Onnx__NodeProto *n, const char *name, float v) {
    Onnx__AttributeProto *p = node_attr(a, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    p->has_f = 1;
    p->f = v;
}

void node_string(struct arena *a, Onnx__NodeProto *n, const char *name, const char *v) {
    Onnx__AttributeProto *p = node_attr(a, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    p->has_s = 1;
    p->s = (ProtobufCBinaryData){strlen(v), (uint8_t *)arena_strdup(a, v)};
}

Onnx__ValueInfoProto *model_input(struct model *m, const char *name, int type, const char *dims) {
    struct arena *a = m->arena;
    Onnx__ValueInfoProto *v = NEW(a, Onnx__ValueInfoProto, value_info_proto);
    v->name = arena_strdup(a, name);
    v->type = NEW(a, Onnx__TypeProto, type_proto);
    v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    Onnx__TypeProto__Tensor *t = v->type->tensor_type =
        NEW(a, Onnx__TypeProto__Tensor, type_proto__tensor);
    t->has_elem_type = 1;
    t->elem_type = type;
    if (dims) t->shape = NEW(a, Onnx__TensorShapeProto, tensor_shape_proto);
    char *copy = dims ? arena_strdup(a, dims) : NULL, *end = NULL;
    for (char *word = copy ? strtok_r(copy, " ", &end) : NULL; word;
         word = strtok_r(NULL, " ", &end)) {
        Onnx__TensorShapeProto__Dimension *d =
            NEW(a, Onnx__TensorShapeProto__Dimension, tensor_shape_proto__dimension);
        if (strchr("0123456789-", *word)) {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            d->dim_value = strtoll(word, NULL, 10);
        } else {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            d->dim_param = word;
        }
        MODEL_PUSH(a, t->shape->dim, t->shape->n_dim, d);
    }
    MODEL_PUSH(a, m->graph->input, m->graph->n_input, v);
    return v;
}

void model_output(struct model *m, const char *name) {
    Onnx__ValueInfoProto *v = NEW(m->arena, Onnx__ValueInfoProto, value_info_proto);
    v->name = arena_strdup(m->arena, name);
    MODEL_PUSH(m->arena, m->graph->output, m->graph->n_output, v);
}

static Onnx__TensorProto *tensor(struct model *m, const char *name, int type, int rank,
                                 const int64_t *dims, const void *data, size_t bytes) {
    Onnx__TensorProto *t = NEW(m->arena, Onnx__TensorProto, tensor_proto);
    t->name = arena_strdup(m->arena, name);
    t->has_data_type = 1;
    t->data_type = type;
    t->n_dims = (size_t)rank;
    t->dims = arena_copy(m->arena, dims, (size_t)rank * sizeof *dims);
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){bytes, arena_copy(m->arena, data, bytes)};
    MODEL_PUSH(m->arena, m->graph->initializer, m->graph->n_initializer, t);
    return t;
}

Onnx__TensorProto *model_ints(struct model *m, const char *name, int count, const int64_t *items) {
    return tensor(m, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, 1, (int64_t[]){count}, items,
                  (size_t)count * sizeof *items);
}

Onnx__TensorProto *model_floats(struct model *m, const char *name, int rank, const int64_t *dims,
                                const float *items) {
    size_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= (size_t)dims[d];
    return tensor(m, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, rank, dims, items,
                  n * sizeof *items);
}

struct span model_bytes(struct model *m) {
    size_t size = onnx__model_proto__get_packed_size(m->proto);
    uint8_t *bytes = arena_alloc(m->arena, size);
    onnx__model_proto__pack(m->proto, bytes);
    return (struct span){bytes, size};
}

struct graph *model_import(struct model *m, const struct import_options *options,
                           const char **why) {
    struct graph *g = NULL;
    npu_status failed = onnx_import_bytes(model_bytes(m), options, m->arena, &g);
    *why = "";
    if (!failed) return g;
    struct str s = {0};
    npu_status_print(failed, NULL, &s);
    *why = arena_strdup(m->arena, str_text(&s));
    str_free(&s);
    npu_status_free(failed);
    return NULL;
}
