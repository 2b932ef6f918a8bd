// SPDX-License-Identifier: Apache-2.0
//
// Small ONNX models made by the tests themselves.
#ifndef TESTS_UNIT_FRONTEND_ONNX_MODEL_H
#define TESTS_UNIT_FRONTEND_ONNX_MODEL_H

#include <onnx/onnx.pb-c.h>

#include "toolchain/frontend/onnx/onnx.h"

// A model being made; everything lives in the arena. Strings are kept, not copied.
struct model {
    struct arena *arena;
    Onnx__ModelProto *proto;
    Onnx__GraphProto *graph;
};

void model_init(struct model *m, struct arena *a, int64_t opset);

// "Conv" of inputs "x w b" to outputs "y": names separated by blanks, "-" for one that is left out.
Onnx__NodeProto *model_node(struct model *m, const char *op, const char *inputs,
                            const char *outputs);
Onnx__NodeProto *model_node_in(struct arena *a, Onnx__GraphProto *g, const char *op,
                               const char *inputs, const char *outputs);
void node_int(struct arena *a, Onnx__NodeProto *n, const char *name, int64_t v);
void node_float(struct arena *a, Onnx__NodeProto *n, const char *name, float v);
void node_string(struct arena *a, Onnx__NodeProto *n, const char *name, const char *v);
Onnx__AttributeProto *node_attr(struct arena *a, Onnx__NodeProto *n, const char *name,
                                Onnx__AttributeProto__AttributeType type);

// Dimensions as text: "1 3 batch ?" - numbers, names.
Onnx__ValueInfoProto *model_input(struct model *m, const char *name, int type, const char *dims);
void model_output(struct model *m, const char *name);
Onnx__TensorProto *model_ints(struct model *m, const char *name, int count, const int64_t *items);
Onnx__TensorProto *model_floats(struct model *m, const char *name, int rank, const int64_t *dims,
                                const float *items);

// Appends to a repeated message field.
#define MODEL_PUSH(a, list, count, item) \
    ((list) = model_grow((a), (list), (count)), (list)[(count)++] = (item))
void *model_grow(struct arena *a, void *list, size_t count);

struct span model_bytes(struct model *m);

// Imports; the graph, or NULL with *why (in the arena) saying all that was wrong.
struct graph *model_import(struct model *m, const struct import_options *options, const char **why);

#endif
