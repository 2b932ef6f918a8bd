// SPDX-License-Identifier: Apache-2.0
// Small programs for tests of the functional machine, written as assembly lines.
#ifndef TESTS_SIMULATOR_EXEC_PROG_H
#define TESTS_SIMULATOR_EXEC_PROG_H

#include "isa/insn.h"
#include "simulator/exec/exec.h"

enum { PROG_BYTES = 1 << 20, PROG_DRAM = 1 << 20 };

struct prog {
    uint8_t *code;
    size_t bytes;
    struct hw hw;
    struct exec_dram dram;
    struct exec *x;
    struct exec_job job;
};

// A small machine (8 x 8, 64 KiB, PSUM 8 KiB, two DMA engines) and PROG_DRAM bytes of DRAM at 0.
// prog_init_hw: another.
void prog_init(struct prog *p);
void prog_init_hw(struct prog *p, const struct hw *hw, int64_t dram_bytes);
void prog_deinit(struct prog *p);

// Appends lines of assembly (without labels, offsets are granules); a line may be empty. Returns
// the last line's granule.
uint32_t prog_text(struct prog *p, const char *lines);
uint32_t prog_add(struct prog *p, const struct isa_insn *in);

// Runs; the fault's kind, EXEC_FAULT_NONE when it ended well.
enum exec_fault_kind prog_run(struct prog *p);

// prog_init, prog_text, prog_run, prog_deinit; prints the fault when it is another than expected.
void prog_expect(const char *lines, enum exec_fault_kind want);

// n floats at an address of DRAM, written by the host; read back.
void prog_put_floats(struct prog *p, int64_t address, const float *v, int n);
void prog_get_floats(struct prog *p, int64_t address, float *v, int n);

#endif
