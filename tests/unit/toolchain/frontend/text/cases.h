// SPDX-License-Identifier: Apache-2.0
//
// What the tests of graph text share.
#ifndef TESTS_UNIT_TOOLCHAIN_FRONTEND_TEXT_CASES_H
#define TESTS_UNIT_TOOLCHAIN_FRONTEND_TEXT_CASES_H

#include "toolchain/frontend/text/text_graph.h"

/// Reads `text` as file g.npt, from a copy of its exact size: reading behind it is found by the
/// sanitizer. The graph lives in the arena.
npu_status cases_parse(struct arena *a, const char *text, struct graph **g);

#endif
