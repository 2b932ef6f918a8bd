// SPDX-License-Identifier: Apache-2.0
//
// From the archive to the list of operators:
//
//   the member whose name ends in models/model.json -> JSON -> graph_module.graph.nodes
//   for each node: its operator, counted; the first node of each is the one that is named

#include "toolchain/frontend/pt2/pt2.h"

#include <jansson.h>
#include <minizip/unzip.h>
#include <string.h>

#include "runtime/base/diag.h"
#include "runtime/base/map.h"

#define PROGRAM "models/model.json"

enum { MEMBER_MAX_BYTES = 1 << 28, NAME_ROOM = 512, LISTED_MAX = 100 };

bool pt2_probe(struct span bytes) {
    return bytes.size >= 4 && !memcmp(bytes.data, "PK\x03\x04", 4);
}

static bool is_program(const char *name) {
    size_t n = strlen(name), m = strlen(PROGRAM);
    return n >= m && !strcmp(name + n - m, PROGRAM) && (n == m || name[n - m - 1] == '/');
}

// Goes to the member that holds the program; *bytes is its size.
static npu_status find_program(unzFile zip, size_t *bytes) {
    for (int at = unzGoToFirstFile(zip); at == UNZ_OK; at = unzGoToNextFile(zip)) {
        char name[NAME_ROOM];
        unz_file_info64 info;
        if (unzGetCurrentFileInfo64(zip, &info, name, sizeof name, NULL, 0, NULL, 0) != UNZ_OK)
            break;
        name[NAME_ROOM - 1] = 0;
        if (!is_program(name)) continue;
        if (info.uncompressed_size > MEMBER_MAX_BYTES)
            return npu_fail(UNSUPPORTED, "%s has %llu bytes, at most %d are read", name,
                            (unsigned long long)info.uncompressed_size, MEMBER_MAX_BYTES);
        *bytes = (size_t)info.uncompressed_size;
        return NULL;
    }
    return npu_fail(BAD_INPUT, "a zip archive without " PROGRAM ": no program that torch.export "
                               "wrote");
}

static npu_status read_program(unzFile zip, struct arena *arena, struct span *out) {
    size_t bytes = 0, have = 0;
    NPU_TRY(find_program(zip, &bytes));
    char *data = arena_alloc(arena, bytes + 1);
    if (unzOpenCurrentFile(zip) != UNZ_OK)
        return npu_fail(BAD_INPUT, PROGRAM " cannot be unpacked");
    while (have < bytes) {
        int got = unzReadCurrentFile(zip, data + have, (unsigned)(bytes - have));
        if (got <= 0) break;
        have += (size_t)got;
    }
    // Closing checks the sum over what was read.
    if (unzCloseCurrentFile(zip) != UNZ_OK || have != bytes)
        return npu_fail(BAD_INPUT, PROGRAM " is damaged");
    *out = (struct span){.data = (const uint8_t *)data, .size = bytes};
    return NULL;
}

// The name of a node's first result, or "" when it has none.
static const char *result_name(const json_t *node) {
    const json_t *tensor =
        json_object_get(json_array_get(json_object_get(node, "outputs"), 0), "as_tensor");
    const char *name = json_string_value(json_object_get(tensor, "name"));
    return name ? name : "";
}

struct use {
    const char *op, *node;
    int64_t count;
    struct use *next;
};

// The operators in order of first use.
static npu_status count_operators(struct arena *arena, const json_t *nodes, struct use **first) {
    struct map seen;
    struct use **end = first;
    map_init(&seen, arena);
    for (size_t k = 0; k < json_array_size(nodes); k++) {
        const json_t *node = json_array_get(nodes, k);
        const char *op = json_string_value(json_object_get(node, "target"));
        if (!op) return npu_fail(BAD_INPUT, "node %zu has no target", k);
        struct use *use = map_get(&seen, op);
        if (!use) {
            use = *end = ARENA_NEW(arena, struct use);
            use->op = arena_strdup(arena, op);
            use->node = arena_strdup(arena, result_name(node));
            end = &use->next;
            map_put(&seen, use->op, use);
        }
        use->count++;
    }
    return NULL;
}

static npu_status list_operators(const json_t *program, struct arena *arena) {
    const json_t *nodes =
        json_object_get(json_object_get(json_object_get(program, "graph_module"), "graph"),
                        "nodes");
    struct use *first = NULL;
    struct diag all = {0};
    if (!json_is_array(nodes))
        return npu_fail(BAD_INPUT, PROGRAM " has no graph_module.graph.nodes");
    NPU_TRY(count_operators(arena, nodes, &first));
    for (const struct use *use = first; use && all.count < LISTED_MAX; use = use->next) {
        npu_status fault =
            npu_fail(UNSUPPORTED,
                     "%s (%lld of them): programs of torch.export are not compiled; expected "
                     "an ONNX model, as torch.onnx.export() writes it",
                     use->op, (long long)use->count);
        diag_add(&all, npu_note(fault, "node '%s'", use->node));
    }
    if (!first) diag_fail(&all, UNSUPPORTED, "a torch.export program without calls");
    return diag_finish(&all);
}

static npu_status look_into(unzFile zip, struct arena *arena) {
    struct span text;
    json_error_t fault;
    NPU_TRY(read_program(zip, arena, &text));
    json_t *program = json_loadb((const char *)text.data, text.size, 0, &fault);
    if (!program)
        return npu_fail(BAD_INPUT, PROGRAM ":%d:%d: %s", fault.line, fault.column, fault.text);
    npu_status refused = list_operators(program, arena);
    json_decref(program);
    return refused;
}

npu_status pt2_refuse(const char *path, struct arena *arena) {
    unzFile zip = unzOpen64(path);
    if (!zip) return npu_fail(BAD_INPUT, "%s is no zip archive that can be read", path);
    npu_status refused = look_into(zip, arena);
    unzClose(zip);
    return npu_note(refused, "model '%s'", path);
}
