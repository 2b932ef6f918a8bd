// SPDX-License-Identifier: Apache-2.0
// Comparing values in f64: outputs with files, layers with the reference kernels.
#ifndef NPUSIM_COMPARE_H
#define NPUSIM_COMPARE_H

#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/base/str.h"
#include "runtime/include/npu/npu.h"

// An element agrees when |got - want| <= atol + rtol * |want|, both are NaN, or both are the same
// infinity.
struct npusim_comparison {
    uint64_t wrong; // elements that do not agree
    uint64_t worst; // the element furthest beyond its own bound, or nearest to it
    double ratio;   // of its difference to its bound; 0: all are equal
    double cosine;  // <got, want> / (|got| |want|)
    double snr_db;  // 10 log10(sum want^2 / sum (got - want)^2); infinite when equal
};

struct npusim_comparison npusim_compare_f64(const double *got, const double *want, uint64_t n,
                                            double rtol, double atol);

// n elements of that type as f64, in the arena; u64 and i64 rounded.
NPU_MUST_USE npu_status npusim_to_f64(struct arena *a, enum npu_dtype from, const void *data,
                                      uint64_t n, double **out);

// Largest finite magnitude.
double npusim_range(const double *v, uint64_t n);

// "[0,3,7]": index of element i of a row-major tensor.
void npusim_print_index(struct str *out, const int64_t *dims, int rank, uint64_t i);

#endif
