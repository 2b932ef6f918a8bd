// SPDX-License-Identifier: Apache-2.0
// What --stats and --dump-after print.
#include "runtime/base/str.h"
#include "toolchain/passes/pass.h"

void pass_print_stats(const struct pass_log *log, FILE *to) {
    fprintf(to, "%-15s %8s %8s %14s %14s %9s\n", "pass", "nodes", "after", "bytes", "after", "ms");
    for (int i = 0; i < PASS_COUNT; i++) {
        const struct pass_stat *s = &log->stat[i];
        if (!s->ran) continue;
        fprintf(to, "%-15s %8d %8d %14lld %14lld %9.3f\n", passes[i].name, s->nodes_before,
                s->nodes_after, (long long)s->bytes_before, (long long)s->bytes_after, s->ms);
    }
}

npu_status pass_print_graph(const struct graph *g, const struct pass_desc *d, FILE *to) {
    struct str text = {0};
    graph_print(g, &text);
    npu_status st = str_status(&text);
    if (!st) fprintf(to, "# after %s\n%s\n", d->name, str_text(&text));
    str_free(&text);
    return st;
}
