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

// A constant B in its packed form [batch...][n tile][k][tn]: strides over (batch..., n tile, k, n
// in tile).
struct lower_view mm_packed(const struct lower_mm *mm, int64_t tn);
void mm_streams_init(const struct lower *L, const struct lower_mm *mm, const struct mm_tile *t,
                     struct mm_streams *s);
npu_status mm_choose(const struct lower *L, const struct lower_mm *mm, struct mm_tile *out);

#endif
