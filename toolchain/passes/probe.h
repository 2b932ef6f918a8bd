// SPDX-License-Identifier: Apache-2.0
// What a group of nodes computes of one value, found by running it: elementwise chains, and
// reductions of rows of that value, in f64. A pass that looks for a function (an activation, a
// normalisation) compares the numbers with the function's own; so it finds every form in which the
// function can be written, in any order of operands, with casts between, and nothing else.
#ifndef NPU_PASSES_PROBE_H
#define NPU_PASSES_PROBE_H

#include "toolchain/graph/graph.h"

#define PROBE_NODES 24

// The nodes that lead from `source` to the root's result. A value in it is `full` (dimensions of
// the source) or one number for each row.
struct probe {
    const struct graph *g;
    struct graph_node *root;
    struct graph_value *source;           // set when probe_closed()
    struct graph_node *node[PROBE_NODES]; // root first, each behind those that read it
    int n;
    struct graph_value *leaf[4 * PROBE_NODES]; // what they read from outside, constants left out
    int nleaf;
    int stages;     // of all chains
    int specials;   // special functions among them
    bool smooth;    // no stage has a corner: sums, products, quotients and special functions only
    bool reduces;   // some node is a REDUCE
    int axis;       // its first dimension (then all from there on): a row; no REDUCE: rank
    int64_t length; // elements of a row; 1 without REDUCE
};

// Starts with the root alone.
void probe_begin(struct probe *p, const struct graph *g, struct graph_node *root);
// Everything comes from one value: it is the source.
bool probe_closed(struct probe *p);
// Takes in the node that makes the last of the leaves; false when that is no node that can be run,
// or one whose result others read too.
bool probe_extend(struct probe *p);
// The root's result for one row x of `length` elements; without REDUCE, for `length` numbers on
// their own. false: a node of the group cannot be run after all.
bool probe_run(const struct probe *p, const double *x, int64_t length, double *y,
               struct arena *scratch);

// One stage in f64: its result for acc and operands. NaN for a stage of integers.
double probe_stage(enum isa_vop op, double acc, double a, double b);
// A chain in f64, its operands in[].
double probe_chain(const struct isa_chain *c, const double in[3]);

#endif
