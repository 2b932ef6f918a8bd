// SPDX-License-Identifier: Apache-2.0
//
// The table of importers, read from aten_ops.def: rows by target, defaults of arguments that an
// export leaves out, and the importer of rows that are one chain.

#include <stdlib.h>
#include <string.h>

#include "toolchain/frontend/pt2/import.h"

#define SAME ISA_DTYPE_NONE
#define BOOL ISA_BOOL
static const struct pt2_row rows[] = {
#define ATEN_OP(target, importer, args, meaning) {target, aten_##importer, 0, SAME, args, NULL},
#define ATEN_CHAIN(target, tensors, type, args, chain) {target, NULL, tensors, type, args, chain},
#define ATEN_REFUSED(target, why) {target, aten_refused, 0, SAME, "", why},
#include "toolchain/frontend/pt2/aten_ops.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static const struct pt2_op_info infos[] = {
#define ATEN_OP(target, importer, args, meaning) {target, args, meaning},
#define ATEN_CHAIN(target, tensors, type, args, chain) {target, args, "map " chain},
#define ATEN_REFUSED(target, why) {target, "", "refused: " why},
#include "toolchain/frontend/pt2/aten_ops.def"
};

int pt2_op_list(const struct pt2_op_info **list) {
    *list = infos;
    return ROWS;
}

void pt2_index_rows(struct map *map) {
    for (int k = 0; k < ROWS; k++)
        map_put(map, rows[k].target, (void *)(uintptr_t)&rows[k]);
}

// Word number `at` of the arguments: its name's length, and its default behind '='.
static const char *next_word(const char *text, size_t *length) {
    text += strspn(text, " ");
    *length = strcspn(text, " ");
    return text;
}

const char *pt2_default(const struct pt2_row *row, const char *name, char *text, size_t room) {
    size_t length, own = strlen(name);
    for (const char *word = next_word(row->args, &length); length;
         word = next_word(word + length, &length)) {
        if (strcspn(word, " =") != own || strncmp(word, name, own) != 0) continue;
        if (own == length) return NULL;
        NPU_ASSERT(length - own - 1 < room);
        memcpy(text, word + own + 1, length - own - 1);
        text[length - own - 1] = 0;
        return text;
    }
    bool row_lists_argument = false;
    NPU_ASSERT(row_lists_argument);
    return NULL;
}

// Whether integers can leave the range of their type.
static bool overflows(const char *chain) {
    static const char *const first[] = {"abs", "mul", "neg", "shl"};
    for (size_t k = 0; k < sizeof first / sizeof *first; k++)
        if (!strncmp(chain, first[k], 3)) return true;
    return false;
}

// The first `tensors` arguments are inputs, the rest $0, $1 .. of the chain.
static npu_status run_chain(struct pt2_node *n) {
    const struct pt2_row *row = n->row;
    struct graph_value *in[3], *y;
    double params[8];
    int count = 0;
    size_t length;
    for (const char *word = next_word(row->args, &length); length;
         word = next_word(word + length, &length), count++) {
        const char *name = arena_strndup(n->m->arena, word, strcspn(word, " ="));
        NPU_ASSERT(count < row->tensors + 8 && row->tensors <= 3);
        if (count < row->tensors)
            in[count] = pt2_need(n, name);
        else
            params[count - row->tensors] = pt2_float(n, name);
    }
    if (n->failed) return NULL;
    enum isa_dtype type = row->type == SAME ? pt2_out_dtype(n, 0) : row->type;
    if (n->in_place && type == ISA_DTYPE_NONE) type = in[0]->dtype;
    if (overflows(row->chain))
        NPU_TRY(pt2_map(n, type, row->chain, params, row->tensors, in, &y));
    else
        NPU_TRY(build_map(&n->b, type, row->chain, params, row->tensors, in, &y));
    return pt2_bind(n, 0, y);
}

npu_status pt2_run_row(struct pt2_node *n) {
    return n->row->importer ? n->row->importer(n) : run_chain(n);
}
