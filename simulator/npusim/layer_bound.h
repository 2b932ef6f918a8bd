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

// Largest Euclidean length of rows of d elements.
double layer_bound_length(const double *x, int64_t rows, int64_t d);

#endif
