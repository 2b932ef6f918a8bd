// SPDX-License-Identifier: Apache-2.0
// Footprints: which bytes a pattern touches, exactly. A pattern becomes nested repetitions of one
// contiguous run, sorted by stride and joined where they touch, so that a dense tile is one run
// whatever the order of its dimensions.
#ifndef NPU_SIMULATOR_EXEC_FOOT_H
#define NPU_SIMULATOR_EXEC_FOOT_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/insn.h"

// Bytes [lo + sum(i_d * stride[d]), + run) for all i_d < size[d]; strides ascend and are positive.
struct exec_foot {
    int64_t lo, hi; // bounding box, bytes
    int64_t run;    // bytes
    int dims;       // 0: one run, the box itself
    int64_t size[ISA_DIMS], stride[ISA_DIMS];
};

// Walks the runs in ascending order of the innermost index: foot_first(), then foot_next() until it
// is false.
struct exec_foot_walk {
    int64_t lo, hi; // the current run
    int64_t index[ISA_DIMS];
};

// Footprint of a resolved pattern (registers already added). false: addresses beyond +-2^60 bytes,
// or a 4-bit pattern whose rows do not start at whole bytes.
bool foot_init(struct exec_foot *f, const struct isa_pat *p);

// One contiguous run.
void foot_run(struct exec_foot *f, int64_t lo, int64_t bytes);

int64_t foot_bytes(const struct exec_foot *f); // run * number of runs; overlapping runs count twice
void foot_first(const struct exec_foot *f, struct exec_foot_walk *w);
bool foot_next(const struct exec_foot *f, struct exec_foot_walk *w);

// First byte of [lo, hi) that the footprint touches, or -1.
int64_t foot_hit(const struct exec_foot *f, int64_t lo, int64_t hi);

// A byte that both touch, or -1.
int64_t foot_overlap(const struct exec_foot *a, const struct exec_foot *b);

// Whether two different elements of the pattern may lie on the same byte (strides that do not nest,
// stride 0).
bool foot_repeats(const struct isa_pat *p);

#endif
