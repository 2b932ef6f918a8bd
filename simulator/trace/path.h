// SPDX-License-Identifier: Apache-2.0
//
// Longest paths through times that are known: nodes in the order of time, edges that say how long
// after one node another can come at the earliest. What no edge explains is a node's own rest:
//
//     at[j] = max over edges i -> j of (at[i] + lag) + rest[j]
//
//     path_init(&g, n, at); path_edge_add(&g, i, j, lag, kind) ...; path_settle(&g);
//     path_slack(&g, slack);  path_trace(&g, last, step, &nstep);  path_forward(&g, lag, when);
#ifndef SIMULATOR_TRACE_PATH_H
#define SIMULATOR_TRACE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

struct path_edge {
    uint32_t from, to; ///< from < to
    int64_t lag;       ///< cycles; after path_settle at[from] + lag <= at[to]
    uint32_t kind;     ///< the caller's
};

struct path_graph {
    size_t nodes;
    int64_t *at, *rest;     ///< owned; cycles
    struct path_edge *edge; ///< owned; after path_settle by `to`, in the order of adding
    size_t edges, capacity;
    size_t *first; ///< owned: edges first[j] .. first[j + 1] lead to node j
    size_t cut;    ///< edges whose lag said more than what happened; path_settle cuts them to it
    bool failed;   ///< out of memory
};

/// Graph of n nodes at ascending times, which are copied. NO_MEMORY. Release with path_deinit.
NPU_MUST_USE npu_status path_init(struct path_graph *g, size_t n, const uint64_t *at);
void path_deinit(struct path_graph *g);

/// An edge; one that does not lead forward is left out.
void path_edge_add(struct path_graph *g, size_t from, size_t to, int64_t lag, uint32_t kind);

/// Sorts edges and computes the rests. NO_MEMORY, also when an edge could not be added.
NPU_MUST_USE npu_status path_settle(struct path_graph *g);

/// Cycles by which each node could come later without moving a node that nothing follows. slack[n].
void path_slack(const struct path_graph *g, int64_t *slack);

/// The longest path that ends in `last`: its edges (index into edge), last one first; at most n - 1
/// of them. Of two that bind, the one that was added last.
void path_trace(const struct path_graph *g, size_t last, size_t *step, size_t *count);

/// Times with other lags (one per edge) and the same rests: when[n].
void path_forward(const struct path_graph *g, const int64_t *lag, int64_t *when);

#endif
