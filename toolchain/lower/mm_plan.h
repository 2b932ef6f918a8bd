// SPDX-License-Identifier: Apache-2.0
// Tile sizes of a matrix product.
#ifndef NPU_LOWER_MM_PLAN_H
#define NPU_LOWER_MM_PLAN_H

#include "toolchain/lower/matmul.h"

struct mm_tile {
    int64_t tb, tm, tn, tk; // batch (last batch dimension), rows, columns, k chunk
    bool n_outer;           // n tiles outside, m tiles inside
    bool whole_a, whole_b;  // the operand is loaded once, as a whole
    int psum_slots;
    double cycles, score; // score: cycles, and a charge for what they do not show
    int64_t bytes;        // scratchpad, all slots
};
struct mm_streams {
    struct lower_stream a, b, out, extra[3];
};

// Columns of the product that a tile of tn columns of the result takes.
int64_t mm_columns(const struct lower_mm *mm, int64_t tn);
// A constant B in its packed form [batch...][n tile][k][columns]: strides over (batch..., n tile,
// k, column in tile).
struct lower_view mm_packed(const struct lower_mm *mm, int64_t tn);
void mm_streams_init(const struct lower *L, const struct lower_mm *mm, const struct mm_tile *t,
                     struct mm_streams *s);
// Merges batch dimensions into m where that is possible.
void mm_merge(struct lower_mm *mm);
// What the elementwise work after a tile of a gated product is: that of each product's own bias,
// and the one that multiplies them.
struct mm_gated {
    bool biased[2];
    struct isa_chain add, all; // add: second product + in1; all: in0 first product, in1 its bias
                               // when biased[0], the last operand the second product
};
struct mm_gated mm_gated_chains(const struct lower_mm *mm);
npu_status mm_choose(const struct lower *L, const struct lower_mm *mm, struct mm_tile *out);

// ---- matvec.c: one row on the vector engine
#define MATVEC_GAIN 0.9 // of the matrix engine's cycles: what it has to stay below to be worth it
struct matvec {
    int64_t tn; // columns of a tile
    double cycles;
    int64_t bytes; // scratchpad
};
// false when the product has another form, or no tile fits.
bool matvec_choose(const struct lower *L, const struct lower_mm *mm, struct matvec *out);
void matvec_run(struct lower *L, const struct lower_mm *mm, const struct matvec *t);

// A product with sizes that were chosen, its buffers open but for PSUM. A constant B is packed
// here. mm.m: rows of one block; all is copied, what mm points to is borrowed.
struct mm_work *mm_open(struct lower *L, const struct lower_mm *mm, const struct mm_tile *t);
// Gives a product its room in PSUM, and another, which runs when it does not, the same (b: or
// NULL). Before mm_block().
void mm_psum(struct lower *L, struct mm_work *a, struct mm_work *b);
// The product of `rows` rows, at most mm.m; A, the result and the chain's operands lie `shift` rows
// behind where mm has them, but for an operand on chip that is `fixed` there (bit 0: A, 1: result).
// What is held of B stays. next: another product whose first weights are loaded before this one
// ends, or NULL.
void mm_block(struct mm_work *w, int64_t rows, int64_t shift, int fixed, struct mm_work *next);
// Loads the first blocks of constant weights.
void mm_prefetch(struct mm_work *w);

#endif
