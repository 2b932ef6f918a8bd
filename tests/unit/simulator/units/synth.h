// SPDX-License-Identifier: Apache-2.0
//
// Programs for the timing machine without a functional pass: instructions as the sink would get
// them.
#ifndef TESTS_UNITS_SYNTH_H
#define TESTS_UNITS_SYNTH_H

#include "isa/hw.h"
#include "simulator/units/units.h"

struct synth {
    struct hw hw;
    struct units_program *p;
    uint64_t seq;
    uint32_t pc, tag;
};

/// Waits and signals of the next instruction; all 0: none.
struct synth_sync {
    int wait0, value0, wait1, value1, acquire;
    int sig0, inc0, when0, sig1, inc1, when1;
};

void synth_init(struct synth *s, const struct hw *hw);
void synth_deinit(struct synth *s);

/// Any instruction, header filled from sync; returns its seq.
uint64_t synth_add(struct synth *s, int engine, struct isa_insn *in, struct synth_sync sync);

/// rows runs of row_bytes, pitch apart in DRAM, dense in SPM at spm. write: SPM to DRAM.
uint64_t synth_copy(struct synth *s, int engine, bool write, int64_t dram, int64_t spm,
                    int64_t rows, int64_t row_bytes, int64_t pitch, bool fence,
                    struct synth_sync sync);
/// f16 product m x n x k.
uint64_t synth_mm(struct synth *s, int64_t m, int64_t n, int64_t k, bool init,
                  struct synth_sync sync);
/// out = in0 + in1 over n f32 elements in SPM.
uint64_t synth_vec(struct synth *s, int64_t n, int64_t in, int64_t out, struct synth_sync sync);
uint64_t synth_sync(struct synth *s, int engine, struct synth_sync sync);
uint64_t synth_cp(struct synth *s, enum isa_op op);

/// New machine, one run, machine freed; the result's arrays are copied into static memory.
struct units_result synth_run(struct synth *s);

/// Cycles of a class of an engine.
uint64_t synth_class(const struct units_result *r, int engine, enum trace_class cls);

#endif
