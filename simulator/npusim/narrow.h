// SPDX-License-Identifier: Apache-2.0
// From a layer that departs to the instruction: which instruction stored each element of the
// layer's result, and which of them stored wrong ones.
#ifndef NPUSIM_NARROW_H
#define NPUSIM_NARROW_H

#include "simulator/npusim/snapshot.h"
#include "simulator/npusim/writes.h"

// A layer's result as it was compared, both row-major in f64, and how far they may be apart.
struct narrow_result {
    const struct snapshot *stored; // of `n` elements
    const double *got, *want;
    uint64_t n;
    double rtol, atol;
    uint64_t worst; // element
};

struct narrow_found {
    size_t write;           // index of the first write that stored a wrong element, SIZE_MAX: none
    uint64_t wrong, stored; // elements of the result that it stored last, and the wrong ones
    uint64_t first;         // the first wrong one
    uint64_t worst;         // the one furthest off
    size_t writers, wrong_writers; // writes that stored elements; those that stored wrong ones
};

// Finds who stored what. Of several writes to one element the last counts. NO_MEMORY.
NPU_MUST_USE npu_status narrow_find(const struct writes *w, const struct narrow_result *r,
                                    struct narrow_found *out);

// Says it, in lines that begin with four blanks. `log` has the run's events, or none.
void narrow_print(struct str *out, const struct npu_program_image *image, const struct writes *w,
                  const struct trace_log *log, const struct narrow_result *r,
                  const struct narrow_found *f);

#endif
