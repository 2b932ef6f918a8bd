// SPDX-License-Identifier: Apache-2.0
// Passes over the graph: one file each, pass_<name>.c, one row each in passes.def.
#ifndef NPU_PASSES_PASS_H
#define NPU_PASSES_PASS_H

#include <stdio.h>

#include "runtime/base/status.h"
#include "toolchain/graph/graph.h"

enum pass_id {
#define PASS(name, level, skippable, scope, doc, post) PASS_##name,
#include "toolchain/passes/passes.def"
    PASS_COUNT
};

struct pass_options {
    int level;             // -O0 .. -O3
    bool eager;            // passes of scope CALL see each call of the model alone
    enum isa_dtype dtype;  // program type of floating values; NONE: as in the model
    bool skip[PASS_COUNT]; // --skip
    bool dump[PASS_COUNT]; // --dump-after: the graph's text goes to dump_to
    int stop_after;        // --stop-after: a pass_id, or -1
    bool stats;            // --stats: a table goes to dump_to
    FILE *dump_to;
};

// What passes tell the report.
struct pass_log {
    int fused;    // MAPs that disappeared into other nodes
    int kept_f32; // nodes that keep f32 because a constant overflows the program's type
    const char **kept_names;
    struct pass_stat {
        double ms;
        int nodes_before, nodes_after;
        int64_t bytes_before, bytes_after;
        bool ran;
    } stat[PASS_COUNT];
};

struct pass_context {
    struct graph *g;
    struct arena *scratch; // emptied by the pipeline after each pass
    const struct pass_options *options;
    struct pass_log *log;
};

enum pass_scope { PASS_SCOPE_GRAPH, PASS_SCOPE_CALL };

struct pass_desc {
    const char *name, *doc, *post;
    int level;
    bool skippable;
    enum pass_scope scope;
    npu_status (*run)(struct pass_context *c);
};
extern const struct pass_desc passes[PASS_COUNT];

int pass_find(const char *name); // -1 when there is none
void pass_options_init(struct pass_options *o);
// Runs the passes of the level in order, verifying the graph after each. log may not be NULL.
NPU_MUST_USE npu_status passes_run(struct graph *g, const struct pass_options *options,
                                   struct pass_log *log);

// Runs the passes from `first` up to and without `end` that the level and --skip leave, verifying
// after each: what passes_run and passes_run_calls are made of. shows: progress, --dump-after.
NPU_MUST_USE npu_status passes_run_rows(struct pass_context *c, int first, int end, bool shows);
// The rows of scope CALL: on a graph of each stretch of nodes that belong to one call, which is
// then put back. Every node has a call afterwards.
NPU_MUST_USE npu_status passes_run_calls(struct pass_context *c, int first, int end);
// Nodes that passes put before others belong to the call of those.
void passes_adopt(struct graph *g);

// Removes nodes that lead to no output. A pass that leaves such nodes behind calls it: they would
// count as users of their inputs.
void passes_drop_dead(struct graph *g);

// --stats: nodes, bytes and time of each pass that ran. --dump-after: the graph behind a pass.
void pass_print_stats(const struct pass_log *log, FILE *to);
NPU_MUST_USE npu_status pass_print_graph(const struct graph *g, const struct pass_desc *d,
                                         FILE *to);

#define PASS(name, level, skippable, scope, doc, post) \
    npu_status pass_##name(struct pass_context *c);
#include "toolchain/passes/passes.def"

#endif
