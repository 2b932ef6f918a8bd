// SPDX-License-Identifier: Apache-2.0
//
// The blocked matrix product behind mm and mm.conv. The instruction supplies rows of A (packed on
// demand); the driver packs B once, walks k in ascending blocks and gives register tiles to the
// code path's kernels.
#ifndef SIMULATOR_EXEC_VAL_MM_H
#define SIMULATOR_EXEC_VAL_MM_H

#include "simulator/exec/val_int.h"

struct val_product {
    struct val_work *work;
    const struct val_ops *ops;
    const struct isa_pat *a, *b, *d;
    const uint8_t *a_base, *b_base;
    uint8_t *d_base;
    int64_t m, n, k;
    bool integer, wide; // wide: values that do not fit in int16 once the zero point is subtracted
    bool exact;         // products of this pair of types are exact in f32
    int64_t zero_a, zero_b;
    const struct isa_MMCONV *conv; // NULL: mm
};

// Fills *p from the common parts of both instructions.
void val_product_init(struct val_product *p, const struct val_mem *mem, const struct isa_pat *a,
                      const struct isa_pat *b, const struct isa_pat *d, int64_t zero_a,
                      int64_t zero_b);
// D = 0, in rows of any stride.
void val_product_clear(const struct val_product *p);
// D += A B.
void val_product_run(const struct val_product *p);

// Packs n elements of A from element `first` in steps of `stride` at position k of packed row i.
void val_product_pack_a(const struct val_product *p, int i, int64_t k, int64_t first,
                        int64_t stride, int64_t n);
// The same with zeros.
void val_product_zero_a(const struct val_product *p, int i, int64_t k, int64_t n);

// What an output position of mm.conv sees: tap (0, 0) lies at row y, column x of A; the taps i0 <=
// i < i1, j0 <= j < j1 are inside A, the others are padding.
struct val_conv_row {
    int64_t y, x, i0, i1, j0, j1;
};
struct val_conv_row val_conv_row(const struct val_product *p, int64_t pos);
// Packs elements k0.. of the position, kc of them, as row i; zeros for padding.
void val_conv_pack(const struct val_product *p, int i, const struct val_conv_row *row, int64_t k0,
                   int64_t kc);
// Element offset in A of channel 0 of a tap that is inside.
int64_t val_conv_at(const struct val_product *p, const struct val_conv_row *row, int64_t tap);
bool val_conv_inside(const struct val_product *p, const struct val_conv_row *row, int64_t tap);

#endif
