// SPDX-License-Identifier: Apache-2.0
//
// Choosing elements by index. The core has one gather along one dimension; the others flatten their
// tensors and compute flat indices.

#include "toolchain/frontend/common/indexing.h"

#include "isa/numeric.h"

// index < 0 ? index + size : index
npu_status index_from_end(const struct build *b, struct graph_value *index, int64_t size,
                          struct graph_value **out) {
    if (!isa_dtype_is_int(index->dtype))
        return npu_fail(BAD_INPUT, "the indices '%s' are no integers", index->name);
    if (size > INT32_MAX)
        return npu_fail(UNSUPPORTED, "indices into a dimension of %lld", (long long)size);
    double s = (double)size;
    return build_map(b, ISA_I64, "add $0 =tmp; mov in0; lt 0; sel tmp in0", &s, 1, &index, out);
}

npu_status index_within(const struct build *b, struct graph_value *index, int64_t size,
                        struct graph_value **out) {
    const double params[2] = {(double)size, INDEX_NOWHERE};
    if (!isa_dtype_is_int(index->dtype) || size > INT32_MAX)
        return index_from_end(b, index, size, out); // says what is wrong
    NPU_TRY(build_check_index(index, size));
    if (index->data) return index_from_end(b, index, size, out);
    return build_map(b, ISA_I64,
                     "add $0 =tmp; mov in0; lt 0; sel tmp in0 =tmp; lt 0; sel $1 tmp =tmp; ge $0; "
                     "sel $1 tmp",
                     params, 1, &index, out);
}

npu_status index_elements(const struct build *b, struct graph_value *x, struct graph_value *index,
                          int axis, struct graph_value **out) {
    int64_t total = graph_value_elems(x);
    NPU_TRY(scatter_positions(b, x, index, axis, &index));
    NPU_TRY(build_reshape(b, x, 1, &total, &x));
    return build_gather(b, x, index, 0, out);
}

npu_status index_flat(const struct build *b, int count, struct graph_value *const *index,
                      const int64_t *sizes, struct graph_value **out) {
    struct graph_value *flat = NULL, *part;
    int64_t stride = 1;
    for (int k = count - 1; k >= 0; k--) {
        double factor = (double)stride;
        NPU_TRY((count > 1 ? index_within : index_from_end)(b, index[k], sizes[k], &part));
        if (stride != 1) NPU_TRY(build_map(b, ISA_I64, "mul $0", &factor, 1, &part, &part));
        if (flat) NPU_TRY(build_map2(b, "add in1", flat, part, &part));
        flat = part;
        if (sizes[k] && stride > INT32_MAX / sizes[k])
            return npu_fail(UNSUPPORTED, "indices into more than 2^31 elements");
        stride *= sizes[k];
    }
    *out = flat;
    return NULL;
}

// Flat row numbers of `index` [.., depth] into the first `depth` dimensions of x: [..].
static npu_status flat_rows(const struct build *b, const struct graph_value *x,
                            struct graph_value *index, struct graph_value **out) {
    int last = index->rank - 1;
    int64_t starts[GRAPH_MAX_RANK] = {0}, steps[GRAPH_MAX_RANK], sizes[GRAPH_MAX_RANK];
    struct graph_value *parts[GRAPH_MAX_RANK];
    for (int d = 0; d < index->rank; d++) {
        steps[d] = 1;
        sizes[d] = index->dims[d];
    }
    sizes[last] = 1;
    for (int d = 0; d < index->dims[last]; d++) {
        starts[last] = d;
        NPU_TRY(build_slice(b, index, starts, sizes, steps, &parts[d]));
        NPU_TRY(build_reshape(b, parts[d], last, index->dims, &parts[d]));
    }
    return index_flat(b, (int)index->dims[last], parts, x->dims, out);
}

npu_status index_rows(const struct build *b, struct graph_value *x, struct graph_value *index,
                      struct graph_value **out) {
    struct graph_value *flat;
    if (index->rank < 1 || x->rank < 1)
        return npu_fail(BAD_INPUT, "a scalar where a tensor is needed");
    int64_t depth = index->dims[index->rank - 1];
    if (depth < 1 || depth > x->rank)
        return npu_fail(BAD_INPUT, "the last dimension of '%s' is %lld, expected 1 to %d",
                        index->name, (long long)depth, x->rank);
    int64_t merged[GRAPH_MAX_RANK] = {1};
    int rank = 1;
    for (int d = 0; d < x->rank; d++) {
        if (d < depth)
            merged[0] *= x->dims[d];
        else
            merged[rank++] = x->dims[d];
    }
    if (depth == 1) // the gather counts from the end itself
        NPU_TRY(build_reshape(b, index, index->rank - 1, index->dims, &flat));
    else
        NPU_TRY(flat_rows(b, x, index, &flat));
    NPU_TRY(build_reshape(b, x, rank, merged, &x));
    return build_gather(b, x, flat, 0, out);
}

npu_status index_row_numbers(const struct build *b, const struct graph_value *x,
                             struct graph_value *index, struct graph_value **out) {
    int64_t depth = index->rank ? index->dims[index->rank - 1] : 0;
    if (depth < 1 || depth > x->rank)
        return npu_fail(BAD_INPUT, "indices '%s' of depth %lld into rank %d", index->name,
                        (long long)depth, x->rank);
    return flat_rows(b, x, index, out);
}

// ---- masks -----------------------------------------------------------------------------------

npu_status index_triangle(const struct build *b, struct graph_value *x, int64_t k, bool upper,
                          struct graph_value **out) {
    if (x->rank < 2)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 2 or more", x->name, x->rank);
    int64_t rows = x->dims[x->rank - 2], cols = x->dims[x->rank - 1];
    if (rows && cols > (1 << 26) / rows)
        return npu_fail(UNSUPPORTED, "a mask of %lld x %lld", (long long)rows, (long long)cols);
    uint8_t *keep = arena_alloc(b->arena, (size_t)(rows * cols) + 1);
    k = num_clamp_i64(k, -rows - 1, cols + 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            keep[i * cols + j] = upper ? j - i >= k : j - i <= k;
    struct graph_value *mask =
        graph_add_const(b->g, b->label, ISA_BOOL, 2, (int64_t[]){rows, cols}, keep);
    return build_map(b, x->dtype, "sel in1 0", NULL, 2, (struct graph_value *[]){mask, x}, out);
}

npu_status index_one_hot(const struct build *b, struct graph_value *index, int64_t depth, int axis,
                         struct graph_value **out) {
    int rank = index->rank + 1;
    int64_t dims[GRAPH_MAX_RANK], shape[GRAPH_MAX_RANK],
        *numbers = ARENA_ARRAY(b->arena, int64_t, (size_t)depth);
    for (int d = 0; d < rank; d++) {
        dims[d] = d < axis ? index->dims[d] : d == axis ? 1 : index->dims[d - 1];
        shape[d] = d == axis ? depth : 1;
    }
    for (int64_t k = 0; k < depth; k++)
        numbers[k] = k;
    struct graph_value *range = graph_add_const(b->g, b->label, ISA_I64, rank, shape, numbers);
    NPU_TRY(build_cast(b, index, ISA_I64, &index));
    NPU_TRY(index_from_end(b, index, depth, &index));
    NPU_TRY(build_reshape(b, index, rank, dims, &index));
    return build_map(b, ISA_BOOL, "eq in1", NULL, 2, (struct graph_value *[]){index, range}, out);
}
