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

#endif
