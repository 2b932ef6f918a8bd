// SPDX-License-Identifier: Apache-2.0
// From the graph to the tile program: every node becomes one kernel of tiled, double-buffered
// loads, computing and stores for the machine at hand.
#ifndef NPU_LOWER_LOWER_H
#define NPU_LOWER_LOWER_H

#include "isa/hw.h"
#include "runtime/base/status.h"
#include "toolchain/graph/graph.h"
#include "toolchain/tile/tile.h"

struct lower_options {
    int level;     // 0, 1: one slot per buffer (nothing overlaps); 2, 3: two slots
    bool one_slot; // never two slots
    bool eager; // what a node writes does not depend on the nodes of other calls that read it, and
                // kernels are grouped into launches
    int resident_percent; // of the scratchpad that values may keep between kernels; 0: chosen from
                          // level 2 on, else none; -1: none
    int spm_percent;      // of the scratchpad that a kernel's buffers should stay within; 0: 50
};

// Appends the kernels of g to *out (new, same hw). The graph is static, folded, and lives as long
// as *out: constants, names and origins are borrowed. UNSUPPORTED names every node that has no
// kernel; NO_FIT says which buffers of a kernel's smallest tile exceed the scratchpad.
NPU_MUST_USE npu_status lower_graph(const struct graph *g, const struct hw *hw,
                                    const struct lower_options *opt, struct tile_program *out);

#endif
