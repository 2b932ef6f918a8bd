// SPDX-License-Identifier: Apache-2.0
//
// Value change dump (IEEE 1364-2005, 18.2): variables and changes in any order, written in the
// order of time. Times are cycles on the way in and picoseconds in the file.
//
//     struct vcd v = {0};
//     vcd_scope(&v, "mxu");
//     const size_t busy = vcd_bits(&v, "busy", 1);
//     vcd_set(&v, 10, busy, 1);
//     vcd_write(&v, o, clock_mhz, end);
//     vcd_deinit(&v);
//
// Out of memory is kept in `failed` and given back by vcd_write.
#ifndef SIMULATOR_TRACE_VCD_OUT_H
#define SIMULATOR_TRACE_VCD_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simulator/trace/out.h"

enum vcd_kind { VCD_BITS, VCD_TEXT, VCD_REAL };

struct vcd_var {
    const char *scope, *name; // lent
    enum vcd_kind kind;
    unsigned width; // bits; of TEXT grown to the longest
};

struct vcd_change {
    uint64_t cycle, order;
    uint32_t var;
    bool unknown;
    union {
        uint64_t bits;
        const char *text; // lent
        double real;
    } value;
};

struct vcd {
    struct vcd_var *var;
    size_t nvar, var_cap;
    struct vcd_change *change;
    size_t nchange, change_cap;
    const char *scope;
    bool failed;
};

/// Variables made from here on are in this scope; equal ones stand together. Lent.
void vcd_scope(struct vcd *v, const char *name);

/// New variables; names are identifiers of Verilog, lent. They begin unknown; a real one at 0.
/// Texts are ASCII codes side by side, as viewers show them; at most 255 bytes.
size_t vcd_bits(struct vcd *v, const char *name, unsigned width);
size_t vcd_text(struct vcd *v, const char *name);
size_t vcd_real(struct vcd *v, const char *name);

/// Values from a cycle on. Of several at one cycle the last counts.
void vcd_set(struct vcd *v, uint64_t cycle, size_t var, uint64_t bits);
void vcd_set_text(struct vcd *v, uint64_t cycle, size_t var, const char *text); // NULL: unknown
void vcd_set_real(struct vcd *v, uint64_t cycle, size_t var, double value);
void vcd_set_unknown(struct vcd *v, uint64_t cycle, size_t var);

/// Declarations and changes up to the end, which is the file's last time. `comment` is what stands
/// before them; "$" in it is written as "_".
void vcd_write(struct vcd *v, struct trace_out *o, const char *comment, uint64_t clock_mhz,
               uint64_t end_cycle);
void vcd_deinit(struct vcd *v);

#endif
