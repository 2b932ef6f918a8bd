// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests of lowering: machines, random graphs, and the check that a lowered graph
// computes what the reference kernels compute.
#ifndef TESTS_UNIT_TOOLCHAIN_LOWER_LOWERED_H
#define TESTS_UNIT_TOOLCHAIN_LOWER_LOWERED_H

#include <criterion/criterion.h>

#include "isa/hw.h"
#include "toolchain/graph/graph.h"
#include "toolchain/tile/tile.h"

enum { MACHINE_SERVER, MACHINE_TINY, MACHINE_MICRO, MACHINE_WIDE, MACHINES };

// From MACHINES on: a machine drawn from the number.
struct hw machine(int which);
uint32_t rnd(uint32_t *seed);
int64_t rnd_in(uint32_t *seed, int64_t lo, int64_t hi); // inclusive

// Elements of `v` between -2 and 2, or integers of [0, limit).
void *random_data(struct arena *a, const struct graph_value *v, uint32_t *seed, int64_t limit);
struct graph_value *input(struct graph *g, const char *name, enum isa_dtype t, int rank,
                          const int64_t *dims);
struct graph_value *constant(struct graph *g, const char *name, enum isa_dtype t, int rank,
                             const int64_t *dims, uint32_t *seed);
// Storage order of a value: channels last for rank 4 (kind 1), a random permutation (2).
void set_order(struct graph_value *v, int kind, uint32_t *seed);
// A copy of v in a storage order (as set_order): what a layout pass puts before a node.
struct graph_value *reordered(struct graph *g, struct graph_value *v, int kind, uint32_t *seed);
// Ends a graph: infers n, makes its output the graph's.
struct graph_value *finish(struct graph *g, struct graph_node *n);
// Makes the output of n chain-able: adds chain `relu(IN0 * 0.5 + IN1)` with a constant per channel,
// and residual IN2 when asked.
void add_chain(struct graph *g, struct graph_node *n, enum isa_dtype t, int channel_dim,
               bool residual, uint32_t *seed);

// Lowers g for hw, runs it, and compares with graph_eval: error <= tol * (1 + largest |reference|).
// Frees nothing but itself.
void check_lowered(struct graph *g, const struct hw *hw, int level, double tol, const char *what);
// The same over all machines, a drawn one, and levels 1 and 2.
void check_everywhere(struct graph *g, double tol, const char *what);

#endif
