// SPDX-License-Identifier: Apache-2.0
//
// What npuc does to a program and says about it: passes and steps, fields of its report.

#include <string.h>

#include "docs/generate/pages.h"

npu_status page_passes(const char *source, struct str *out) {
    (void)source;
    put_head(out, "Passes and steps", "toolchain/passes/passes.def and toolchain/npuc/steps.def");
    str_puts(out,
             "`npuc --list passes` prints the same. `-O` is the lowest level at which it is done; "
             "`--skip NAME` leaves one out. With `--eager` a pass sees the whole graph, or each "
             "call of the model alone.\n\n## Passes over the graph, in order\n\n"
             "| pass | -O | --skip | --eager | what it does | afterwards |\n"
             "|---|---|---|---|---|---|\n");
#define PASS(name, level, skippable, scope, doc, post)                                        \
    str_printf(out, "| `%s` | %d | %s | %s | ", #name, level, (skippable) ? "yes" : "needed", \
               strcmp(#scope, "CALL") ? "graph" : "call");                                    \
    put_cell(out, doc);                                                                       \
    str_puts(out, " | ");                                                                     \
    put_cell(out, post);                                                                      \
    str_puts(out, " |\n");
#include "toolchain/passes/passes.def"
    str_puts(out, "\n## Steps of the back end\n\n"
                  "| step | -O | --eager | what it does |\n|---|---|---|---|\n");
#define STEP(name, level, eager, doc)                                                     \
    str_printf(out, "| `%s` | %d | %s | ", #name, level, (eager) ? "taken" : "left out"); \
    put_cell(out, doc);                                                                   \
    str_puts(out, " |\n");
#include "toolchain/npuc/steps.def"
    return NULL;
}

npu_status page_compile_report(const char *source, struct str *out) {
    (void)source;
    put_head(out, "The report of npuc", "toolchain/npuc/report.def");
    str_puts(out, "`npuc MODEL --report FILE.json` writes one JSON object. `[]` stands for every "
                  "element of a list.\n\n| field | type | meaning |\n|---|---|---|\n");
#define REPORT_FIELD(path, type, meaning)          \
    str_printf(out, "| `%s` | %s | ", path, type); \
    put_cell(out, meaning);                        \
    str_puts(out, " |\n");
#include "toolchain/npuc/report.def"
    return NULL;
}
