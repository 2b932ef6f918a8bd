// SPDX-License-Identifier: Apache-2.0
// Runs the rows of passes.def in order.
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>

#include "runtime/base/progress.h"
#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

const struct pass_desc passes[PASS_COUNT] = {
#define PASS(name, level, skippable, scope, doc, post) \
    {#name, doc, post, level, skippable, PASS_SCOPE_##scope, pass_##name},
#include "toolchain/passes/passes.def"
};

int pass_find(const char *name) {
    for (int i = 0; i < PASS_COUNT; i++)
        if (!strcmp(passes[i].name, name)) return i;
    return -1;
}

void pass_options_init(struct pass_options *o) {
    *o = (struct pass_options){.level = 2, .stop_after = -1, .dump_to = stderr};
}

// Nodes, and bytes of values that nodes write.
static void measure(const struct graph *g, int *nodes, int64_t *bytes) {
    *nodes = 0;
    *bytes = 0;
    for (const struct graph_node *n = g->first; n; n = n->next) {
        ++*nodes;
        for (int i = 0; i < n->nout; i++)
            *bytes += graph_value_bytes(n->outputs[i]);
    }
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static npu_status run_one(struct pass_context *c, int id) {
    const struct pass_desc *d = &passes[id];
    struct pass_stat *s = &c->log->stat[id];
    int nodes;
    int64_t bytes;
    measure(c->g, &nodes, &bytes);
    s->nodes_before += nodes;
    s->bytes_before += bytes;
    double start = now_ms();
    NPU_TRY_NOTE(d->run(c), "pass %s", d->name);
    s->ms += now_ms() - start;
    s->ran = true;
    measure(c->g, &nodes, &bytes);
    s->nodes_after += nodes;
    s->bytes_after += bytes;
    return graph_verify(c->g, d->name);
}

npu_status passes_run_rows(struct pass_context *c, int first, int end, bool shows) {
    const struct pass_options *o = c->options;
    for (int i = first; i < end; i++) {
        if (passes[i].level > o->level || o->skip[i]) continue;
        const int percent = 10 + 30 * i / PASS_COUNT;
        if (shows) progress_stage(passes[i].name, 0, percent, percent);
        NPU_TRY(run_one(c, i));
        arena_reset(c->scratch);
        if (shows && o->dump[i]) NPU_TRY(pass_print_graph(c->g, &passes[i], o->dump_to));
    }
    return NULL;
}

static npu_status run_eager(struct pass_context *c, int end) {
    int first = 0, behind;
    while (first < end && passes[first].scope == PASS_SCOPE_GRAPH)
        first++;
    for (behind = first; behind < end && passes[behind].scope == PASS_SCOPE_CALL;)
        behind++;
    NPU_TRY(passes_run_rows(c, 0, first, true));
    NPU_TRY(passes_run_calls(c, first, behind));
    NPU_TRY(passes_run_rows(c, behind, end, true));
    passes_adopt(c->g);
    return NULL;
}

npu_status passes_run(struct graph *g, const struct pass_options *options, struct pass_log *log) {
    struct arena *scratch = arena_scratch(g->arena);
    struct pass_context c = {.g = g, .scratch = scratch, .options = options, .log = log};
    const int end = options->stop_after >= 0 ? options->stop_after + 1 : PASS_COUNT;
    for (struct graph_node *n = g->first; n; n = n->next)
        chain_normalise(n);
    npu_status st = options->eager ? run_eager(&c, end) : passes_run_rows(&c, 0, end, true);
    arena_free(scratch);
    if (!st && options->stats) pass_print_stats(log, options->dump_to);
    return st;
}
