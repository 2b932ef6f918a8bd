// SPDX-License-Identifier: Apache-2.0
//
// Reads the text form of a graph (.npt), the inverse of graph_print(). Grammar: README.md.
#ifndef NPU_FRONTEND_TEXT_TEXT_GRAPH_H
#define NPU_FRONTEND_TEXT_TEXT_GRAPH_H

#include "runtime/base/arena.h"
#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "toolchain/graph/graph.h"

/// The graph of `text`, which need not end in NUL. It lives in the arena and passes graph_verify();
/// `text` is not kept. `where` names the file in messages ("FILE:LINE:COLUMN: ..."); the files of
/// .incbin constants lie in its folder or below, and stay mapped as long as the arena lives.
/// BAD_INPUT with every fault that was found (at most 20), UNSUPPORTED, IO.
NPU_MUST_USE npu_status text_graph_parse(struct arena *a, struct span text, const char *where,
                                         struct graph **out);

#endif
