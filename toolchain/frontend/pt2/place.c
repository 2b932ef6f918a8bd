// SPDX-License-Identifier: Apache-2.0
//
// nn_module_stack is "KEY,PATH,CLASS;KEY,PATH,CLASS;..", the innermost module last. stack_trace is
// Python's: lines `File "PATH", line N, in F`, the innermost call last; there torch's own files
// (torch/nn/modules/linear.py) and generated code (<eval_with_key>) say nothing to the user.

#include "toolchain/frontend/pt2/place.h"

#include <stdbool.h>
#include <string.h>

// The path of the innermost module, "" for the model itself.
static const char *module_path(struct arena *a, const char *stack) {
    if (!stack || !*stack) return "";
    const char *last = strrchr(stack, ';');
    const char *entry = last ? last + 1 : stack, *comma = strchr(entry, ',');
    if (!comma || !strncmp(entry, "_empty_nn_module_stack", 22)) return "";
    return arena_strndup(a, comma + 1, strcspn(comma + 1, ",;"));
}

static bool contains(const char *text, size_t length, const char *part) {
    size_t n = strlen(part);
    for (size_t k = 0; k + n <= length; k++)
        if (!strncmp(text + k, part, n)) return true;
    return false;
}

static bool is_torch(const char *path, size_t length) {
    return contains(path, length, "-packages/torch/") || !strncmp(path, "torch/", 6);
}

// "modeling.py:312", NULL without a line.
static const char *source_line(struct arena *a, const char *trace) {
    const char *best = NULL, *fallback = NULL;
    size_t best_length = 0;
    for (const char *at = trace; at && (at = strstr(at, "File \"")); at++) {
        const char *path = at + 6;
        size_t length = strcspn(path, "\"\n");
        if (*path == '<' || strncmp(path + length, "\", line ", 8) != 0) continue;
        if (!is_torch(path, length)) best = path;
        fallback = path;
    }
    if (!best) best = fallback;
    if (!best) return NULL;
    best_length = strcspn(best, "\"");
    const char *number = best + best_length + 8, *name = best;
    for (size_t k = 0; k < best_length; k++)
        if (best[k] == '/' || best[k] == '\\') name = best + k + 1;
    return arena_printf(a, "%.*s:%.*s", (int)(best_length - (size_t)(name - best)), name,
                        (int)strspn(number, "0123456789"), number);
}

const char *place_of(struct arena *a, const json_t *metadata) {
    const char *path =
        module_path(a, json_string_value(json_object_get(metadata, "nn_module_stack")));
    const char *line = source_line(a, json_string_value(json_object_get(metadata, "stack_trace")));
    if (*path && line) return arena_printf(a, "%s, %s", path, line);
    return *path ? path : line;
}
