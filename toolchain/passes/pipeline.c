// SPDX-License-Identifier: Apache-2.0
// Runs the rows of passes.def in order.
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>

#include "runtime/base/progress.h"
#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

const struct pass_desc passes[PASS_COUNT] = {
#define PASS(name, level, skippable, doc, post) {#name, doc, post, level, skippable, pass_##name},
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
    measure(c->g, &s->nodes_before, &s->bytes_before);
    progress_stage(d->name, 0, 10 + 30 * id / PASS_COUNT, 10 + 30 * id / PASS_COUNT);
    double start = now_ms();
    NPU_TRY_NOTE(d->run(c), "pass %s", d->name);
    s->ms = now_ms() - start;
    s->ran = true;
    measure(c->g, &s->nodes_after, &s->bytes_after);
    return graph_verify(c->g, d->name);
}

npu_status passes_run(struct graph *g, const struct pass_options *options, struct pass_log *log) {
    struct arena *scratch = arena_scratch(g->arena);
    struct pass_context c = {.g = g, .scratch = scratch, .options = options, .log = log};
    npu_status st = NULL;
    for (struct graph_node *n = g->first; n; n = n->next)
        chain_normalise(n);
    for (int i = 0; i < PASS_COUNT && !st; i++) {
        if (passes[i].level <= options->level && !options->skip[i]) {
            st = run_one(&c, i);
            arena_reset(scratch);
            if (!st && options->dump[i]) st = pass_print_graph(g, &passes[i], options->dump_to);
        }
        if (options->stop_after == i) break;
    }
    arena_free(scratch);
    if (!st && options->stats) pass_print_stats(log, options->dump_to);
    return st;
}
