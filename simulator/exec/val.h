// SPDX-License-Identifier: Apache-2.0
//
// Values of instructions: what an instruction computes, apart from when. Every function takes a
// *resolved* instruction: its patterns' bases are effective byte addresses (address register
// added), sizes are final (sreg taken), and the operand rules of the instruction set - spaces,
// dtypes, equal sizes, ranges - were checked by the caller. Addresses are byte offsets from the
// start of the memory (SPM, PSUM) or DRAM addresses. Nothing here allocates but val_work_new().
//
// Same bits on every host: the numerics contract of isa/numeric.h. The code paths (scalar baseline,
// AVX2 + FMA + F16C, AVX-512) differ in speed only.
#ifndef SIMULATOR_EXEC_VAL_H
#define SIMULATOR_EXEC_VAL_H

#include "isa/insn.h"

#include <stdbool.h>
#include <stdint.h>

// Code paths. AUTO is the best that the processor has.
enum val_isa { VAL_AUTO, VAL_SSE2, VAL_AVX2, VAL_AVX512 };

// Chooses the code path of the whole process; call before threads use this folder. False, and
// nothing changes, when the processor lacks it.
bool val_set_isa(enum val_isa isa);
// "sse2", "avx2", "avx512" or "auto": -1 when `text` is none of them.
int val_isa_parse(const char *text);
// The path in use, and its name.
enum val_isa val_isa_used(void);
const char *val_isa_name(enum val_isa isa);

// Scratch space of one thread: packed operands and blocks. About 2 MiB. NULL: out of memory.
struct val_work;
struct val_work *val_work_new(void);
void val_work_free(struct val_work *work);

// The memories. dram() translates `bytes` bytes from DRAM address `addr` for reading or writing;
// the result is valid until the next call for the same instruction's operand only as one contiguous
// run, and never NULL (the caller checked the range). dram may be NULL when no operand lies in
// DRAM.
struct val_mem {
    uint8_t *spm, *psum;
    uint8_t *(*dram)(void *ctx, uint64_t addr, uint64_t bytes, bool write);
    void *dram_ctx;
    struct val_work *work; // one per thread
};

// A fault that only the values show. text is one line without the instruction's place.
struct val_fault {
    char text[160];
    int64_t element; // row-major number of the index element or of the output position
    int64_t value;   // the index that is out of range
};

// MXU. Operands A and B in SPM, D in PSUM (f32 or i32).
void val_mm(const struct val_mem *mem, const struct isa_insn *in);
void val_mmconv(const struct val_mem *mem, const struct isa_insn *in);

// VEC.
void val_vmap(const struct val_mem *mem, const struct isa_insn *in);
void val_vred(const struct val_mem *mem, const struct isa_insn *in);
void val_vdw(const struct val_mem *mem, const struct isa_insn *in);
// False, with *fault filled and the outputs before it written: a window lies wholly in the padding.
bool val_vpool(const struct val_mem *mem, const struct isa_insn *in, struct val_fault *fault);

// DMA. SPM, PSUM and DRAM in any combination. Overlapping source and destination of one
// instruction: elements are copied in row-major order.
void val_copy(const struct val_mem *mem, const struct isa_insn *in);
void val_fill(const struct val_mem *mem, const struct isa_insn *in);
// False, with *fault filled and the rows before it copied: an index is out of range and mode is 0.
bool val_gather(const struct val_mem *mem, const struct isa_insn *in, struct val_fault *fault);

// Any of the above by opcode; SYNC does nothing. False: a fault, or an opcode that has no values
// here (command processor, rows of insn.def with SINCE 0), named in *fault.
bool val_exec(const struct val_mem *mem, const struct isa_insn *in, struct val_fault *fault);

// Reads a whole pattern of integers on chip (gather indices) as i64, row-major, into out.
void val_read_i64(const struct val_mem *mem, const struct isa_pat *pat, int64_t *out);

#endif
