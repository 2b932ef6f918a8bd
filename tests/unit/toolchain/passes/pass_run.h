// SPDX-License-Identifier: Apache-2.0
//
// For tests of passes: graphs from text, passes over them, values before and after.
#ifndef TESTS_PASSES_PASS_RUN_H
#define TESTS_PASSES_PASS_RUN_H

#include "toolchain/frontend/text/text_graph.h"
#include "toolchain/passes/pass.h"

/// The graph of a text without faults.
struct graph *parse_graph(struct arena *a, const char *text);

/// Runs the passes; a fault fails the test.
void run_passes(struct graph *g, const struct pass_options *o, struct pass_log *log);

/// Leaves out the passes that change the order of roundings.
void skip_rounding(struct pass_options *o);

/// Evaluates with inputs that depend on the seed and the inputs' positions only. outputs[k] has the
/// elements of output k as f64, in the arena. Inputs are made as `in_dtypes` of another graph are
/// when `like` is given: values exist in both types.
void evaluate_graph(const struct graph *g, const struct graph *like, uint64_t seed, struct arena *a,
                    double **outputs);

/// Parses the text twice, runs the passes over one, and compares the outputs: names, shapes and
/// elements, within |difference| <= tolerance * (1 + |value|). Returns the graph after the passes.
struct graph *check_passes(struct arena *a, const char *text, const struct pass_options *o,
                           double tolerance);

/// The same of two graphs that were built alike; `after` has run through the passes.
void check_same(const struct graph *before, const struct graph *after, double tolerance,
                struct arena *a, const char *what);

/// Nodes of the graph; of one op.
int count_nodes(const struct graph *g);
int count_ops(const struct graph *g, enum graph_op op);

#endif
