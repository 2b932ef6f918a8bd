// SPDX-License-Identifier: Apache-2.0
//
// The compiler as a call: a model file becomes a program file, in the caller's process. Linked from
// the library npu_compile (CMake: npu::compile, pkg-config: npu-compile).
//
//     const char *options[] = {"--target", "edge", "--dtype=f16", "-O3"};
//     npu_status st = npu_compile("model.onnx", "model.npu", options, 4);
#ifndef NPU_COMPILER_H
#define NPU_COMPILER_H

#include "npu/npu.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Compiles the model in file `input` (recognised by content, as npuc does) and writes the program
/// to `output`, whole or not at all. `options`: `count` words of npuc's command line that describe
/// the compilation ("--target=edge", "--dtype", "f16", "-O3", "--report=FILE"); USAGE for one that
/// is unknown or asks for something to be printed. BAD_INPUT and UNSUPPORTED list every fault of
/// the model, NO_FIT, IO, NO_MEMORY. Prints nothing. Calls from several threads at once must be
/// serialised by the caller.
NPU_CHECKED npu_status npu_compile(const char *input, const char *output,
                                   const char *const *options, size_t count);

#ifdef __cplusplus
}
#endif

#endif
