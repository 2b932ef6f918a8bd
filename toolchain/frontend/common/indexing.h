// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/: choosing and replacing elements by index. Indices are integers, negative ones
// count from the end unless it says otherwise.
#ifndef NPU_FRONTEND_COMMON_INDEXING_H
#define NPU_FRONTEND_COMMON_INDEXING_H

#include "toolchain/frontend/common/build.h"

// index < 0 ? index + size : index, as i64.
NPU_MUST_USE npu_status index_from_end(const struct build *b, struct graph_value *index,
                                       int64_t size, struct graph_value **out);
// The same for an index that becomes a part of a flat one: what is out of range, which would be the
// place of another element there, becomes INDEX_NOWHERE, and stays beyond the end. BAD_INPUT: a
// known index out of range.
#define INDEX_NOWHERE 2147483647.0
NPU_MUST_USE npu_status index_within(const struct build *b, struct graph_value *index, int64_t size,
                                     struct graph_value **out);
// One number out of one index per dimension, of dimensions `sizes`; the indices broadcast.
NPU_MUST_USE npu_status index_flat(const struct build *b, int count,
                                   struct graph_value *const *index, const int64_t *sizes,
                                   struct graph_value **out);
// y[i0..] = x[i0.., index[i0..], ..]: index has the rank of x and is nowhere larger but on axis.
NPU_MUST_USE npu_status index_elements(const struct build *b, struct graph_value *x,
                                       struct graph_value *index, int axis,
                                       struct graph_value **out);
// Rows of `index` (its last dimension) choose slices of x.
NPU_MUST_USE npu_status index_rows(const struct build *b, struct graph_value *x,
                                   struct graph_value *index, struct graph_value **out);
// Their numbers among the first dimensions of x, as many as index's last dimension says.
NPU_MUST_USE npu_status index_row_numbers(const struct build *b, const struct graph_value *x,
                                          struct graph_value *index, struct graph_value **out);

// x with rows replaced by updates. Both are seen as [outer, rows, inner] and [outer, updates,
// inner].
struct scatter {
    struct graph_value *data, *updates;
    int64_t outer, rows, inner, count; // count: of updates
    const char *reduction;             // none, add, mul, max, min: how an update meets the old row
};
// index: count row numbers, none negative. Of equal ones without a reduction the last counts. The
// result has the shape of data.
NPU_MUST_USE npu_status scatter_rows(const struct build *b, const struct scatter *s,
                                     struct graph_value *index, struct graph_value **out);
// Element numbers, in x flattened, of index as in index_elements; x's dimensions are at least
// those of index.
NPU_MUST_USE npu_status scatter_positions(const struct build *b, const struct graph_value *x,
                                          struct graph_value *index, int axis,
                                          struct graph_value **out);

// Elements of the last two dimensions below (upper) or above the k-th diagonal become 0.
NPU_MUST_USE npu_status index_triangle(const struct build *b, struct graph_value *x, int64_t k,
                                       bool upper, struct graph_value **out);
// bool: a new dimension `axis` of size depth, true at the index.
NPU_MUST_USE npu_status index_one_hot(const struct build *b, struct graph_value *index,
                                      int64_t depth, int axis, struct graph_value **out);

#endif
