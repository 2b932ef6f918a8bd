// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/pt2: the JSON documents of an archive, and what its tensors are described by.
#ifndef NPU_FRONTEND_PT2_SCHEMA_H
#define NPU_FRONTEND_PT2_SCHEMA_H

#include <jansson.h>

#include "toolchain/frontend/pt2/archive.h"
#include "toolchain/frontend/pt2/symbols.h"
#include "toolchain/graph/graph.h"

struct schema {
    struct arena *arena;
    struct archive *archive;
    json_t *model, *weights, *constants;      // owned until schema_close
    const json_t *graph, *signature, *ranges; // parts of model
};

// Parses the graph and the two lists of tensors. BAD_INPUT says where in which document.
NPU_MUST_USE npu_status schema_open(struct schema *s, struct archive *archive, struct arena *arena);
// Frees the documents; nothing that was taken from them may be used any more.
void schema_close(struct schema *s);

// A member that must be there and of that type; `where` is cited.
NPU_MUST_USE npu_status schema_need(const json_t *object, const char *key, json_type type,
                                    const char *where, json_t **out);
// The one member of a tagged union {"as_int": 3}.
NPU_MUST_USE npu_status schema_tag(const json_t *object, const char *where, const char **tag,
                                   json_t **value);
// The name in {"as_tensor": {"name": "x"}} or {"name": "x"}; NULL when it has none.
const char *schema_name(const json_t *argument);
// A number of torch's serialisation, also "Infinity", "-Infinity" and "NaN".
bool schema_number(const json_t *value, double *out);

// Element types by torch's number. UNSUPPORTED: there is nothing like it here.
NPU_MUST_USE npu_status schema_dtype(int64_t number, enum isa_dtype *out);

// A size: {"as_int": 3} or {"as_expr": {..}}; -1 when symbols in it are open.
NPU_MUST_USE npu_status schema_size(const json_t *value, const struct symbols *s, const char *where,
                                    int64_t *out);

struct tensor_meta {
    enum isa_dtype dtype; // in the file
    int rank;
    int64_t sizes[GRAPH_MAX_RANK];   // -1: open
    int64_t strides[GRAPH_MAX_RANK]; // elements; -1: open
    int64_t offset;                  // elements from the start of the storage
    bool known;                      // no size is open
};
NPU_MUST_USE npu_status schema_meta(const json_t *meta, const struct symbols *s, const char *where,
                                    struct tensor_meta *out);

#endif
