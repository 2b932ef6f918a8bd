// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/toolchain/frontend/text/cases.h"

#include <stdlib.h>
#include <string.h>

npu_status cases_parse(struct arena *a, const char *text, struct graph **g) {
    size_t n = strlen(text);
    uint8_t *bytes = memcpy(malloc(n + 1), text, n);
    npu_status st = text_graph_parse(a, (struct span){bytes, n}, "g.npt", g);
    free(bytes);
    return st;
}
