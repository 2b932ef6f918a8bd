// SPDX-License-Identifier: Apache-2.0
//
// The table of importers, read from onnx_ops.def: finding the row of a node, and the importer of
// rows that are one chain.

#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <string.h>

#include "toolchain/frontend/onnx/import.h"

struct onnx_row {
    const char *op; // MS_ before com.microsoft's
    int since, until;
    onnx_importer *importer; // NULL: the chain
    int inputs;
    enum isa_dtype type; // NONE: that of the inputs
    const char *attrs, *chain;
};

#define SAME ISA_DTYPE_NONE
#define BOOL ISA_BOOL
static const struct onnx_row rows[] = {
#define ONNX_OP(op, since, until, importer, meaning) \
    {#op, since, until, import_##importer, 0, SAME, NULL, NULL},
#define ONNX_CHAIN(op, since, until, inputs, type, attrs, chain) \
    {#op, since, until, NULL, inputs, type, attrs, chain},
#include "toolchain/frontend/onnx/onnx_ops.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static const struct onnx_op_info infos[] = {
#define ONNX_OP(op, since, until, importer, meaning) {#op, since, until, meaning},
#define ONNX_CHAIN(op, since, until, inputs, type, attrs, chain) {#op, since, until, "map " chain},
#include "toolchain/frontend/onnx/onnx_ops.def"
};

int onnx_op_list(const struct onnx_op_info **list) {
    *list = infos;
    return ROWS;
}

const struct onnx_row *onnx_find_row(const char *domain, const char *op, int64_t opset,
                                     bool *known_op) {
    bool contrib = !strcmp(domain, "com.microsoft");
    *known_op = false;
    if (!contrib && *domain && strcmp(domain, "ai.onnx") != 0) return NULL;
    for (int k = 0; k < ROWS; k++) {
        const char *name = rows[k].op;
        bool ms = !strncmp(name, "MS_", 3);
        if (ms != contrib || strcmp(ms ? name + 3 : name, op) != 0) continue;
        *known_op = true;
        if (opset >= rows[k].since && opset <= rows[k].until) return &rows[k];
    }
    return NULL;
}

npu_status onnx_import_chain(struct onnx_node *n, enum isa_dtype dtype, int nin, const char *attrs,
                             const char *chain) {
    double params[8];
    int nparam = 0;
    char copy[128], *end = NULL;
    NPU_ASSERT(strlen(attrs) < sizeof copy);
    memcpy(copy, attrs, strlen(attrs) + 1);
    for (char *word = strtok_r(copy, " ", &end); word; word = strtok_r(NULL, " ", &end)) {
        char *equals = strchr(word, '=');
        NPU_ASSERT(equals && nparam < 8);
        *equals = 0;
        params[nparam++] = onnx_float(n, word, strtod(equals + 1, NULL));
    }
    NPU_TRY(onnx_need(n, nin, nin));
    struct graph_value *out;
    NPU_TRY(onnx_map(n, dtype, chain, params, nin, n->in, &out));
    return onnx_bind(n, 0, out);
}

npu_status onnx_run_row(const struct onnx_row *row, struct onnx_node *n) {
    if (row->importer) return row->importer(n);
    return onnx_import_chain(n, row->type, row->inputs, row->attrs, row->chain);
}
