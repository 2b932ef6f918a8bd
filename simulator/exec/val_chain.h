// SPDX-License-Identifier: Apache-2.0
//
// Chains of the vector engine, block by block: the caller gives the first `acc` of a block and its
// place in row-major order; the chain reads in1 and in2 (cursors), runs each stage over the block,
// and writes the output and the running reduction.
#ifndef SIMULATOR_EXEC_VAL_CHAIN_H
#define SIMULATOR_EXEC_VAL_CHAIN_H

#include "isa/numeric.h"
#include "simulator/exec/val_int.h"

struct val_chain {
    const struct val_mem *mem;
    const struct isa_chain *chain;
    bool integer;        // i64, else f32
    bool used[ISA_SRCS]; // sources that a stage names
    bool predicate;      // a stage is APRED
    int64_t pred_base, pred_row, pred_col;
    size_t splat;            // elements of the immediates' buffers that are filled
    int64_t cols, rows;      // sizes of dims 0 and 1: ROW and COL
    struct val_cursor in[3]; // in0 when the caller has none of its own, in1, in2
    bool has[3];             // present and used
    struct val_cursor out, red_out;
    bool writes;  // has an output pattern
    int red;      // reduction, 0 none
    bool red_acc; // combine with the old value
    int64_t span; // elements per reduction
    struct num_reduce reduce;
};

// Fills *c: patterns may be absent (space NONE); `sizes` gives ROW and COL. Reductions are added
// with val_chain_reduce.
void val_chain_init(struct val_chain *c, const struct val_mem *mem, const struct isa_chain *chain,
                    const struct isa_pat *out, const struct isa_pat *const in[3],
                    const struct isa_pat *sizes);
// Over the innermost `dims` dimensions of `sizes`.
void val_chain_reduce(struct val_chain *c, int red, int64_t dims, bool acc,
                      const struct isa_pat *red_out, const struct isa_pat *sizes);

// Next n <= VAL_BLOCK elements; pos is the row-major number of the first. acc0 is IN0's block, or
// NULL: read it from in0, 0 when that is absent. acc0 is f32; it may not be given in an integer
// chain.
void val_chain_block(struct val_chain *c, const float *acc0, int64_t pos, size_t n);

#endif
