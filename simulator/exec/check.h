// SPDX-License-Identifier: Apache-2.0
// Operand rules of the instruction set: what can be told from one resolved instruction and the
// machine's sizes alone.
#ifndef NPU_SIMULATOR_EXEC_CHECK_H
#define NPU_SIMULATOR_EXEC_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/hw.h"
#include "isa/insn.h"
#include "simulator/exec/dram.h"
#include "simulator/exec/fault.h"
#include "simulator/exec/foot.h"

// Memories that the rules refer to.
struct check_machine {
    const struct hw *hw;
    int64_t spm_bytes, psum_bytes, psum_row_bytes;
    const struct exec_dram *dram;
    int64_t dram_base, dram_bytes; // the program's DRAM: device address of its 0, size
};

// One operand that is present, with what this instruction does to it (an accumulator that is
// overwritten is W only).
struct check_operand {
    const struct isa_pat *pat;
    const char *name;
    enum isa_access access;
    bool dram_capable;
    struct exec_foot foot;
};

enum { CHECK_OPERANDS = 6 };

struct check_operands {
    struct check_operand op[CHECK_OPERANDS];
    int n;
};

// Lists the operands that are present and their footprints. false: *f is RANGE or ALIGNMENT (kind,
// what and bytes set).
bool check_collect(const struct isa_insn *in, struct check_operands *ops, struct exec_fault *f);

// All rules: memories, types, sizes, alignment, layout, ranges. Calls check_collect. false: *f is
// filled but for `at`.
bool check_insn(const struct check_machine *m, const struct isa_insn *in,
                struct check_operands *ops, struct exec_fault *f);

// What only this instruction asks: operands present, their memories, types and sizes
// (check_rules.c).
bool check_rules(const struct check_machine *m, const struct isa_insn *in, struct exec_fault *f);

// Space, type, alignment and range of every operand that was collected.
bool check_memory(const struct check_machine *m, const struct check_operands *ops,
                  struct exec_fault *f);

// Range of one access; false: *f is RANGE, or READ_ONLY.
bool check_range(const struct check_machine *m, int space, int64_t lo, int64_t hi, bool write,
                 const char *name, struct exec_fault *f);

// Rules of vector chains; in0_given: IN0 is there whatever the operands say; integer: the chain's
// type.
bool check_chain(const struct isa_chain *c, const bool in[3], bool integer, struct exec_fault *f);

// Kind and formatted text; always false, so that a rule reads: return check_fail(f, KIND, "...").
bool check_fail(struct exec_fault *f, enum exec_fault_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
