// SPDX-License-Identifier: Apache-2.0
// What the user asked npuc for.
#ifndef NPUC_OPTIONS_H
#define NPUC_OPTIONS_H

#include <stdbool.h>

#include "isa/hw.h"
#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "toolchain/npuc/step.h"
#include "toolchain/passes/pass.h"

enum npuc_emit {
    NPUC_EMIT_GRAPH,
    NPUC_EMIT_TILES,
    NPUC_EMIT_PLAN,
    NPUC_EMIT_ASM,
    NPUC_EMIT_LAYERS,
    NPUC_EMITS
};

// A list of arguments of one repeatable option, as given: "NAME=VALUE".
struct npuc_list {
    const char **item;
    int n;
};

struct npuc_emission {
    enum npuc_emit kind;
    const char *file; // NULL: standard output
};

struct npuc_options {
    const char *input, *output, *report, *list;
    const char *target; // name or path, "server" by default
    bool target_given;
    struct npuc_list set, shape, dim, constant;
    const char *dtype;        // "auto", ...
    struct pass_options pass; // level, skip, dump, stop, stats
    bool skip_step[STEP_COUNT];
    struct npuc_emission *emit; // --emit, in their order
    int nemit;
    bool info, disassemble, quiet, verbose;
};

extern const char *const npuc_emit_names[NPUC_EMITS];

// Parses the command line; lists live in the arena. Wrong usage ends the program with status 2,
// --help and --version with 0.
NPU_MUST_USE npu_status npuc_options_parse(int argc, char **argv, struct arena *a,
                                           struct npuc_options *o);

// Options alone, for a compilation in the caller's process: neither prints nor ends the program.
// `words` are lent as long as the options; a later value replaces an earlier one, so that defaults
// may stand in front. USAGE for a word that is no option of the compilation:
// unknown, an input or output file, or one that asks for text on standard output.
NPU_MUST_USE npu_status npuc_options_words(size_t count, const char *const *words, struct arena *a,
                                           struct npuc_options *o);

// Defaults, as without any option.
void npuc_options_init(struct npuc_options *o);
// Values of --dtype, -O and --skip. USAGE.
NPU_MUST_USE npu_status npuc_options_dtype(struct npuc_options *o, const char *text);
NPU_MUST_USE npu_status npuc_options_level(struct npuc_options *o, const char *text);
NPU_MUST_USE npu_status npuc_options_skip(struct npuc_options *o, const char *name);
void npuc_list_add(struct arena *a, struct npuc_list *l, const char *text);

// Whether a step of the back end is taken: by level and --skip.
bool npuc_step(const struct npuc_options *o, enum step_id id);

// The hardware description: target, then --set in order.
NPU_MUST_USE npu_status npuc_hardware(const struct npuc_options *o, struct hw *hw);

#endif
