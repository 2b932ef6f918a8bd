// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a report or a trace for npusim --diff: read or refused; what was read does not
// differ from itself.
//
// links: npu_trace npu_base

#include <string.h>

#include "simulator/trace/diff.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *a = arena_new();
    struct diff d = {0};
    npu_status st = diff_parse(a, (struct span){data, size}, "a", &d.run[0]);
    if (!st) st = diff_parse(a, (struct span){data, size}, "b", &d.run[1]);
    if (!st) {
        diff_align(a, &d);
        size_t layers = 0;
        for (size_t i = 0; i < d.ngroup; i++) {
            const struct diff_group *g = &d.group[i];
            layers += g->n[0];
            NPU_ASSERT(g->sum[0].cycles == g->sum[1].cycles && g->n[0] == g->n[1]);
            NPU_ASSERT(g->match != DIFF_ALONE || d.too_many);
        }
        NPU_ASSERT(layers == d.run[0].nlayer);
        struct str s = {0};
        diff_text(&d, &s);
        NPU_ASSERT(s.failed || strstr(str_text(&s), "both take the same time"));
        diff_json(&d, &s);
        str_free(&s);
    }
    npu_status_free(st);
    arena_free(a);
    return 0;
}
