// SPDX-License-Identifier: Apache-2.0
// The core of matrix products, also used for 1x1 convolutions.
#ifndef NPU_LOWER_MATMUL_H
#define NPU_LOWER_MATMUL_H

#include "toolchain/lower/internal.h"

// out[b..., m, n] = chain(sum over k of a[b..., m, k] * b[b..., k, n]). Views have one stride per
// batch dimension, then the two named. A constant B is given by its elements (data, strides in
// elements over b..., k, n; of data_dtype, rounded to b's type) and is packed into blocks.
//
// Gated: out = act(a w0 + e.in[1]) * (a w1 + e.in[2]), both products of the same columns in one
// tile. w0 is data, w1 gate.data, both of the strides of b; each begins gate.at elements behind.
struct lower_gate {
    bool on;
    const void *data;
    enum isa_dtype data_dtype;
    int64_t at[2];
    struct isa_chain act;
};
struct lower_mm {
    int nbatch;
    int64_t batch[LOWER_DIMS], m, n, k;
    struct lower_view a, b, out; // b.buf < 0: constant
    const void *data;
    enum isa_dtype data_dtype;
    const char *data_name;
    struct lower_epilogue e; // views over (b..., m, n)
    struct lower_gate gate;
};
npu_status lower_mm_run(struct lower *L, const struct lower_mm *given);

#endif
