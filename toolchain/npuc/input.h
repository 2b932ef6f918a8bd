// SPDX-License-Identifier: Apache-2.0
// Which reader a file needs, by its content, and the options that go with it.
#ifndef NPUC_INPUT_H
#define NPUC_INPUT_H

#include "toolchain/npuc/compile.h"

// Fills r->graph (ONNX, graph text) or r->image (assembly, .npu). BAD_INPUT when the content is
// none of these; USAGE when an option does not go with the input.
NPU_MUST_USE npu_status npuc_read_input(const struct npuc_options *o, struct arena *a,
                                        struct npuc_result *r);

#endif
