// SPDX-License-Identifier: Apache-2.0
//
// Names behind debug tags, from the program's DEBUG section.
#ifndef SIMULATOR_CORE_NAMES_H
#define SIMULATOR_CORE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/container.h"
#include "simulator/trace/trace.h"

/// Lookup of one program; zero-initialised: knows nothing.
struct core_names {
    const struct npu_program_image *image; // lent
    int *layer;                            // owned: number of the layer of each tag
    int nlayer;
    const char **node;   // owned: "a, b and 3 more" of each tag, NULL: none
    struct arena *arena; // owned
};

/// Prepares lookups; `image` may be NULL. NO_MEMORY. Release with core_names_deinit.
NPU_MUST_USE npu_status core_names_init(struct core_names *n,
                                        const struct npu_program_image *image);
void core_names_deinit(struct core_names *n);

/// A trace_lookup; ctx is the struct core_names.
bool core_names_lookup(void *ctx, uint32_t tag, struct trace_name *out);

/// An exec_tag_name; ctx is the program image: the model's nodes, else the layer. The text is lent
/// until the next call.
const char *core_tag_node(void *ctx, uint32_t tag);

/// What each layer has to do at least, in order of the tags: the input of the bounds. In the arena.
struct trace_work *core_names_work(const struct core_names *n, struct arena *a, size_t *count);

#endif
