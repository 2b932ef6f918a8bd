// SPDX-License-Identifier: Apache-2.0
#include "simulator/trace/path.h"

#include <string.h>

#include "runtime/base/alloc.h"

static npu_status no_memory(const struct path_graph *g) {
    return npu_fail(NO_MEMORY, "no memory for the critical path of %zu nodes", g->nodes);
}

npu_status path_init(struct path_graph *g, size_t n, const uint64_t *at) {
    *g = (struct path_graph){.nodes = n};
    g->at = base_alloc_array(n + 1, sizeof *g->at);
    g->rest = base_alloc_array(n + 1, sizeof *g->rest);
    g->first = base_alloc_array(n + 2, sizeof *g->first);
    if (!g->at || !g->rest || !g->first) {
        npu_status st = no_memory(g);
        path_deinit(g);
        return st;
    }
    for (size_t i = 0; i < n; i++)
        g->at[i] = (int64_t)at[i];
    return NULL;
}

void path_deinit(struct path_graph *g) {
    base_free(g->at);
    base_free(g->rest);
    base_free(g->first);
    base_free(g->edge);
    *g = (struct path_graph){0};
}

void path_edge_add(struct path_graph *g, size_t from, size_t to, int64_t lag, uint32_t kind) {
    if (from >= to || to >= g->nodes || g->failed) return;
    if (g->edges == g->capacity) {
        const size_t capacity = g->capacity ? g->capacity * 2 : 4096;
        struct path_edge *grown = base_realloc(g->edge, capacity * sizeof *grown);
        if (!grown) {
            g->failed = true;
            return;
        }
        g->edge = grown;
        g->capacity = capacity;
    }
    g->edge[g->edges++] = (struct path_edge){(uint32_t)from, (uint32_t)to, lag, kind};
}

// By `to`, keeping the order of adding: a counting sort.
static npu_status sort(struct path_graph *g) {
    struct path_edge *sorted = base_alloc_array(g->edges + 1, sizeof *sorted);
    if (!sorted) return no_memory(g);
    for (size_t e = 0; e < g->edges; e++)
        g->first[g->edge[e].to + 1]++;
    for (size_t j = 0; j < g->nodes; j++)
        g->first[j + 1] += g->first[j];
    for (size_t e = 0; e < g->edges; e++)
        sorted[g->first[g->edge[e].to]++] = g->edge[e];
    memmove(g->first + 1, g->first, g->nodes * sizeof *g->first);
    g->first[0] = 0;
    base_free(g->edge);
    g->edge = sorted;
    g->capacity = g->edges + 1;
    return NULL;
}

npu_status path_settle(struct path_graph *g) {
    if (g->failed) return no_memory(g);
    NPU_TRY(sort(g));
    for (size_t j = 0; j < g->nodes; j++) {
        int64_t base = 0;
        for (size_t e = g->first[j]; e < g->first[j + 1]; e++) {
            struct path_edge *x = &g->edge[e];
            if (g->at[x->from] + x->lag > g->at[j]) {
                x->lag = g->at[j] - g->at[x->from];
                g->cut++;
            }
            if (g->at[x->from] + x->lag > base) base = g->at[x->from] + x->lag;
        }
        g->rest[j] = g->at[j] - base;
    }
    return NULL;
}

void path_slack(const struct path_graph *g, int64_t *slack) {
    // slack[j] holds the latest time first; edges to later nodes are done before those to j.
    for (size_t j = 0; j < g->nodes; j++)
        slack[j] = INT64_MAX;
    for (size_t j = g->nodes; j-- > 0;) {
        if (slack[j] == INT64_MAX) slack[j] = g->at[j]; // nothing follows
        for (size_t e = g->first[j]; e < g->first[j + 1]; e++) {
            const struct path_edge *x = &g->edge[e];
            const int64_t latest = slack[j] - g->rest[j] - x->lag;
            if (latest < slack[x->from]) slack[x->from] = latest;
        }
    }
    for (size_t j = 0; j < g->nodes; j++)
        slack[j] -= g->at[j];
}

void path_trace(const struct path_graph *g, size_t last, size_t *step, size_t *count) {
    *count = 0;
    for (size_t j = last;;) {
        size_t best = SIZE_MAX;
        int64_t latest = INT64_MIN;
        for (size_t e = g->first[j]; e < g->first[j + 1]; e++) {
            const int64_t t = g->at[g->edge[e].from] + g->edge[e].lag;
            if (t < latest) continue;
            latest = t;
            best = e;
        }
        if (best == SIZE_MAX) return;
        step[(*count)++] = best;
        j = g->edge[best].from;
    }
}

void path_forward(const struct path_graph *g, const int64_t *lag, int64_t *when) {
    for (size_t j = 0; j < g->nodes; j++) {
        int64_t base = 0;
        for (size_t e = g->first[j]; e < g->first[j + 1]; e++) {
            const int64_t t = when[g->edge[e].from] + lag[e];
            if (t > base) base = t;
        }
        when[j] = base + g->rest[j];
    }
}
