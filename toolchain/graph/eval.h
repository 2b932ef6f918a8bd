// SPDX-License-Identifier: Apache-2.0
//
// Inside graph/: what a reference kernel gets. Arithmetic runs on wide elements, f32 or i64,
// whatever the values' own types are: graph_eval_node() widens the inputs, the kernel fills the
// op's own result, then the chain runs and the one rounding to the output's type happens. Ops that
// only move elements get the narrow bytes instead.
#ifndef NPU_GRAPH_EVAL_H
#define NPU_GRAPH_EVAL_H

#include <stddef.h>

#include "toolchain/graph/graph.h"

// Input k as the kernel asks for it: eval_floats() or eval_ints() widen on first use.
struct graph_eval {
    const struct graph_node *n;
    struct arena *scratch;
    const void *const *in; // narrow, row-major, of the inputs' own types
    void *out;             // narrow, of the output's type
    bool ints;             // the op's own arithmetic is in i64: all its inputs are integers
    float
        *f; // the op's own result, dims of outputs[0], when own_int is false; filled by the kernel
    int64_t *i;   // the same when own_int is true
    bool own_int; // graph_own_dtype() is an integer type
    bool done;    // set by kernels that wrote `out` themselves (moves)
};

#define GRAPH_OP(N, text, min_in, max_in, outs, traits, shape, ref, doc) \
    npu_status eval_##ref(struct graph_eval *e);
#include "toolchain/graph/ops.def"

// Elements of input k, widened into scratch or as they lie.
const float *eval_floats(struct graph_eval *e, int k);
const int64_t *eval_ints(struct graph_eval *e, int k);

// Runs the chain of e->n over the op's own result (NULL pointers for MAP, which starts from its
// inputs) into e->out.
void eval_chain(struct graph_eval *e);

// acc[j] = fma(a[k * lda], b[k * ldb + j], acc[j]) for k = 0 .. count-1 in ascending order, each j
// < n: the matrix engine's step. The buffers do not overlap.
void eval_fma_rows(float *acc, const float *a, size_t lda, const float *b, size_t ldb, size_t count,
                   size_t n);
// The same for several rows: row i has acc + i * ldacc and a + i * arow.
void eval_fma_block(float *acc, size_t ldacc, size_t rows, const float *a, size_t arow, size_t lda,
                    const float *b, size_t ldb, size_t count, size_t n);
// acc[j] = fma(a[j], b[j], acc[j])
void eval_fma_each(float *acc, const float *a, const float *b, size_t n);

#endif
