// SPDX-License-Identifier: Apache-2.0
// The record that a program carries of the model it was compiled from, and back: from the record to
// the graph behind the last pass, for whoever compares a run with it.
#ifndef NPUC_RECORD_H
#define NPUC_RECORD_H

#include "toolchain/npuc/compile.h"

// What goes into the program about its model, without results; in the arena. r->graph is behind the
// last pass. NULL when the graph is from no file.
const struct npu_image_record *npuc_record(const struct npuc_options *o, struct arena *a,
                                           const struct npuc_result *r);

// Hash of a graph: its values and nodes with names, types, attributes and chains, and the first and
// last 4 KiB of each constant.
uint64_t npuc_graph_hash(const struct graph *g);

// Makes the graph of a program again: finds the model (`model`, or when that is NULL the file of
// the recorded name beside `program` or in the current folder), reads it and runs the passes with
// the recorded options. The graph lives in the arena. USAGE when the program has no record or the
// model is another one, BAD_INPUT when this version makes another graph of it, IO.
NPU_MUST_USE npu_status npuc_remake(const struct npu_program_image *image, const char *program,
                                    const char *model, struct arena *a, struct graph **out);

// The same, and compiles that graph for the program's machine with the recorded options: the
// program as this version makes it. As npuc_remake, and NO_FIT.
NPU_MUST_USE npu_status npuc_recompile(const struct npu_program_image *image, const char *program,
                                       const char *model, struct arena *a,
                                       const struct npu_program_image **out);

#endif
