// SPDX-License-Identifier: Apache-2.0
// The compiler's pipeline and what its stages leave behind.
#ifndef NPUC_COMPILE_H
#define NPUC_COMPILE_H

#include "runtime/base/file.h"
#include "runtime/container.h"
#include "toolchain/npuc/options.h"
#include "toolchain/tile/tile.h"

struct npuc_result {
    struct hw hw;
    struct span source;  // the input file, mapped
    bool from_program;   // the input was a .npu: there is nothing to compile
    struct graph *graph; // NULL when the input was assembly or a program
    struct pass_log passes;
    struct tile_program *tiles;      // NULL when the pipeline stopped before
    struct npu_program_image *image; // NULL when the pipeline stopped before
    double estimated_cycles;         // of the whole run, by schedule_estimate
    int instructions;                // in the code, loops counted once
};

// From the input file to a program image in memory.
NPU_MUST_USE npu_status npuc_compile(const struct npuc_options *o, struct arena *a,
                                     struct npuc_result *r);

// The first half alone, for r->hw: reads the input, and runs the passes when it is a model.
NPU_MUST_USE npu_status npuc_front_end(const struct npuc_options *o, struct arena *a,
                                       struct npuc_result *r);

// The second half alone: from r->graph, on which passes have run, for r->hw.
NPU_MUST_USE npu_status npuc_back_end(const struct npuc_options *o, struct arena *a,
                                      struct npuc_result *r);

// --emit, --report, --info: everything that is written besides the program.
NPU_MUST_USE npu_status npuc_emit(const struct npuc_options *o, struct npuc_result *r);
NPU_MUST_USE npu_status npuc_report(const struct npuc_options *o, const struct npuc_result *r);
void npuc_info(const struct npu_program_image *image, struct str *out);
NPU_MUST_USE npu_status npuc_list(const char *what);

#endif
