// SPDX-License-Identifier: Apache-2.0
// A fault of the simulated program: which rule, which instruction, which bytes, and for a race the
// other side.
#ifndef NPU_SIMULATOR_EXEC_FAULT_H
#define NPU_SIMULATOR_EXEC_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/insn.h"
#include "runtime/base/file.h"
#include "simulator/exec/dyn.h"

struct str;

enum exec_fault_kind {
    EXEC_FAULT_NONE,
#define EXEC_FAULT(NAME, text, rule) EXEC_FAULT_##NAME,
#include "simulator/exec/fault.def"
    EXEC_FAULT_KINDS
};

// A dynamic instruction, small enough to keep one for every instruction of a run.
struct exec_place {
    uint64_t seq;
    uint32_t pc_granule, tag;
    int engine;
    int loop_depth;
    uint32_t loop_index[EXEC_NEST];
};

struct exec_fault {
    enum exec_fault_kind kind;
    struct exec_place at;
    bool has_bytes; // the following three mean something
    int space;      // enum isa_space
    int64_t address, bytes;
    bool has_other; // the other side of a race, the other owner of a semaphore
    struct exec_place other;
    bool has_cycle; // filled in by whoever knows time
    uint64_t cycle;
    char what[320]; // what was found
};

const char *fault_kind_text(enum exec_fault_kind kind); // "race"
const char *fault_kind_rule(enum exec_fault_kind kind); // "two accesses ..."

// Name of the model's node behind a tag, NULL when unknown. Lives as long as the run.
typedef const char *exec_tag_name(void *ctx, uint32_t tag);

// Everything known, over several lines, without a newline at the end. `code` is the program's code;
// `name` may be NULL.
void fault_print(const struct exec_fault *f, struct span code, exec_tag_name *name, void *ctx,
                 struct str *out);

#endif
