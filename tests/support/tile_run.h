// SPDX-License-Identifier: Apache-2.0
//
// Runs a tile program without a scheduler: operations in their order, every buffer slot at an
// address of its own, values by simulator/exec. Memory that nobody wrote holds 0xff bytes (NaN), so
// that a missing load shows in the results.
#ifndef TESTS_SUPPORT_TILE_RUN_H
#define TESTS_SUPPORT_TILE_RUN_H

#include "toolchain/tile/tile.h"

// inputs and outputs in graph order, row-major, in the values' types. UNSUPPORTED with the
// operation when an instruction faults.
npu_status tile_run(const struct tile_program *p, const struct graph *g, const void *const *inputs,
                    void *const *outputs);

#endif
