// SPDX-License-Identifier: Apache-2.0
// How far a layer's result may lie from what the reference kernel makes of the same inputs.
#ifndef NPUSIM_LAYER_BOUND_H
#define NPUSIM_LAYER_BOUND_H

#include "toolchain/graph/graph.h"

// |got - want| <= atol + rtol * |want|. Both 0: equal.
struct layer_bound {
    double rtol, atol;
};

// range: largest magnitude of the expected result. The derivation is in docs/check-layers.md.
struct layer_bound layer_bound_of(const struct graph_node *n, double range);

// What rounding behind a floating mask of attention adds to atol. mask: rows of keys; score: no
// score before the mask is larger.
double layer_bound_of_mask(const double *mask, int64_t rows, int64_t keys, double score,
                           double range);

// What a hidden key adds to attention is 0 times its value: NaN where that value is an infinity or
// NaN. Whether it is added at all depends on the tiling, since keys that a whole tile hides are
// skipped. So where got is NaN and its column of v holds such a value, got becomes want. got, want:
// [heads, rows, columns]; v: [key_heads, keys, columns], heads a multiple of key_heads.
void layer_bound_hidden(const double *v, int64_t key_heads, int64_t keys, int64_t columns,
                        int64_t heads, int64_t rows, double *got, const double *want);

// Largest Euclidean length of rows of d elements.
double layer_bound_length(const double *x, int64_t rows, int64_t d);

#endif
