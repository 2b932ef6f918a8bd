// SPDX-License-Identifier: Apache-2.0
//
// Ops that move data: reshapes, slices, joins, pads.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/onnx/import.h"

// ---- reshapes --------------------------------------------------------------------------------

// 0 keeps a dimension (unless allowzero), one -1 takes what is left.
npu_status import_reshape(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    struct graph_value *x = n->in[0], *y;
    int64_t dims[GRAPH_MAX_RANK], known = 1;
    int rank, open = -1;
    NPU_TRY(onnx_const_ints(n, 1, dims, GRAPH_MAX_RANK, &rank));
    bool allow_zero = onnx_int(n, "allowzero", 0) != 0;
    for (int d = 0; d < rank; d++) {
        if (dims[d] == 0 && !allow_zero) {
            if (d >= x->rank)
                return npu_fail(BAD_INPUT, "shape[%d] is 0, but '%s' has rank %d", d, x->name,
                                x->rank);
            dims[d] = x->dims[d];
        }
        if (dims[d] < -1 || dims[d] > (int64_t)1 << 43)
            return npu_fail(BAD_INPUT, "shape[%d] is %lld, expected -1 or more", d,
                            (long long)dims[d]);
        if (dims[d] == -1) {
            if (open >= 0)
                return npu_fail(BAD_INPUT, "shape[%d] and shape[%d] are both -1", open, d);
            open = d;
        } else if (dims[d] && known > ((int64_t)1 << 43) / dims[d]) {
            return npu_fail(BAD_INPUT, "the shape has more than 2^43 elements");
        } else {
            known *= dims[d];
        }
    }
    int64_t elems = graph_value_elems(x);
    if (open >= 0) {
        if (!known || elems % known)
            return npu_fail(BAD_INPUT,
                            "'%s' has %lld elements: they do not divide by %lld, the product of "
                            "the other dimensions",
                            x->name, (long long)elems, (long long)known);
        dims[open] = elems / known;
    }
    NPU_TRY(onnx_reshape(n, x, rank, dims, &y));
    return onnx_bind(n, 0, y);
}

npu_status import_flatten(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *x = n->in[0], *y;
    int64_t axis = onnx_int(n, "axis", 1), dims[2] = {1, 1};
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis > x->rank)
        return npu_fail(BAD_INPUT, "axis %lld of a tensor of rank %d", (long long)axis, x->rank);
    for (int d = 0; d < x->rank; d++)
        dims[d >= axis] *= x->dims[d];
    NPU_TRY(onnx_reshape(n, x, 2, dims, &y));
    return onnx_bind(n, 0, y);
}

// Axes as attribute (before opset 13) or as input 1; -1: not given.
static npu_status axes_of(struct onnx_node *n, int rank, int64_t *sorted, int *count,
                          unsigned *mask) {
    int64_t axes[GRAPH_MAX_RANK];
    *count = onnx_ints_into(n, "axes", axes, GRAPH_MAX_RANK);
    if (onnx_given(n, 1)) NPU_TRY(onnx_const_ints(n, 1, axes, GRAPH_MAX_RANK, count));
    *mask = 0;
    if (*count < 0) return NULL;
    return onnx_axes(n, axes, *count, rank + (!strcmp(n->op, "Unsqueeze") ? *count : 0), sorted,
                     mask);
}

npu_status import_squeeze(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 2));
    struct graph_value *x = n->in[0], *y;
    int64_t axes[GRAPH_MAX_RANK], dims[GRAPH_MAX_RANK];
    int count, rank = 0;
    unsigned mask;
    NPU_TRY(axes_of(n, x->rank, axes, &count, &mask));
    for (int d = 0; d < x->rank; d++) {
        bool goes = count < 0 ? x->dims[d] == 1 : (mask >> d & 1) != 0;
        if (goes && x->dims[d] != 1)
            return npu_fail(BAD_INPUT, "dimension %d of '%s' has size %lld, only 1 can be squeezed",
                            d, x->name, (long long)x->dims[d]);
        if (!goes) dims[rank++] = x->dims[d];
    }
    NPU_TRY(onnx_reshape(n, x, rank, dims, &y));
    return onnx_bind(n, 0, y);
}

npu_status import_unsqueeze(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 2));
    struct graph_value *x = n->in[0], *y;
    int64_t axes[GRAPH_MAX_RANK], dims[GRAPH_MAX_RANK];
    int count;
    unsigned mask;
    if (onnx_given(n, 1) && graph_value_elems(n->in[1]) + x->rank > GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "the result has more than %d dimensions", GRAPH_MAX_RANK);
    NPU_TRY(axes_of(n, x->rank, axes, &count, &mask));
    if (count < 0) return npu_fail(BAD_INPUT, "the axes are missing");
    if (x->rank + count > GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "the result has more than %d dimensions", GRAPH_MAX_RANK);
    for (int d = 0, from = 0; d < x->rank + count; d++)
        dims[d] = mask >> d & 1 ? 1 : x->dims[from++];
    NPU_TRY(onnx_reshape(n, x, x->rank + count, dims, &y));
    return onnx_bind(n, 0, y);
}

npu_status import_transpose(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *x = n->in[0], *y;
    int64_t perm[GRAPH_MAX_RANK];
    unsigned seen = 0;
    int count = onnx_ints_into(n, "perm", perm, GRAPH_MAX_RANK);
    if (count >= 0 && count != x->rank)
        return npu_fail(BAD_INPUT, "attribute perm has %d items, '%s' has rank %d", count, x->name,
                        x->rank);
    for (int d = 0; d < x->rank; d++) {
        if (count < 0) perm[d] = x->rank - 1 - d;
        if (perm[d] >= 0 && perm[d] < x->rank) seen |= 1u << perm[d];
    }
    if (seen + 1 != 1u << x->rank)
        return npu_fail(BAD_INPUT, "attribute perm is no permutation of %d dimensions", x->rank);
    NPU_TRY(onnx_transpose(n, x, perm, &y));
    return onnx_bind(n, 0, y);
}

// ---- parts and joins -------------------------------------------------------------------------

// One dimension of a slice by ONNX's rules: indices from the end when negative, clamped to what is
// there.
static npu_status slice_one(int64_t size, int64_t start, int64_t end, int64_t step, int64_t *first,
                            int64_t *count) {
    if (step == 0) return npu_fail(BAD_INPUT, "a step of 0");
    if (step == INT64_MIN) step++;
    if (start < 0) start = start < -size ? -1 : start + size;
    if (end < 0) end = end < -size ? -1 : end + size;
    if (step > 0) {
        start = num_clamp_i64(start, 0, size);
        end = num_clamp_i64(end, 0, size);
        *count = end > start ? (end - start - 1) / step + 1 : 0;
    } else {
        start = num_clamp_i64(start, 0, size - 1);
        end = num_clamp_i64(end, -1, size - 1);
        *count = start > end && size ? (start - end - 1) / -step + 1 : 0;
    }
    *first = *count ? start : 0;
    return NULL;
}

struct slice_lists {
    int count;
    int64_t starts[GRAPH_MAX_RANK], ends[GRAPH_MAX_RANK], axes[GRAPH_MAX_RANK],
        steps[GRAPH_MAX_RANK];
};

static npu_status slice_lists(struct onnx_node *n, struct slice_lists *s) {
    int ends, axes = -1, steps = -1;
    if (n->opset < 10) {
        s->count = onnx_ints_into(n, "starts", s->starts, GRAPH_MAX_RANK);
        ends = onnx_ints_into(n, "ends", s->ends, GRAPH_MAX_RANK);
        axes = onnx_ints_into(n, "axes", s->axes, GRAPH_MAX_RANK);
        if (s->count < 0 || ends < 0)
            return npu_fail(BAD_INPUT, "attributes starts and ends are needed");
    } else {
        NPU_TRY(onnx_need(n, 3, 5));
        NPU_TRY(onnx_const_ints(n, 1, s->starts, GRAPH_MAX_RANK, &s->count));
        NPU_TRY(onnx_const_ints(n, 2, s->ends, GRAPH_MAX_RANK, &ends));
        if (onnx_given(n, 3)) NPU_TRY(onnx_const_ints(n, 3, s->axes, GRAPH_MAX_RANK, &axes));
        if (onnx_given(n, 4)) NPU_TRY(onnx_const_ints(n, 4, s->steps, GRAPH_MAX_RANK, &steps));
    }
    if (ends != s->count || (axes >= 0 && axes != s->count) || (steps >= 0 && steps != s->count))
        return npu_fail(BAD_INPUT, "%d starts, %d ends, %d axes, %d steps: expected equal numbers",
                        s->count, ends, axes, steps);
    for (int k = 0; k < s->count; k++) {
        if (axes < 0) s->axes[k] = k;
        if (steps < 0) s->steps[k] = 1;
    }
    return NULL;
}

npu_status import_slice(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 5));
    struct graph_value *x = n->in[0], *y;
    struct slice_lists s = {.count = 0};
    NPU_TRY(slice_lists(n, &s));
    int64_t first[GRAPH_MAX_RANK] = {0}, count[GRAPH_MAX_RANK], step[GRAPH_MAX_RANK];
    unsigned seen = 0;
    for (int d = 0; d < x->rank; d++) {
        count[d] = x->dims[d];
        step[d] = 1;
    }
    for (int k = 0; k < s.count; k++) {
        int d;
        NPU_TRY(onnx_axis(n, s.axes[k], x->rank, &d));
        if (seen & 1u << d) return npu_fail(BAD_INPUT, "axis %d stands twice", d);
        seen |= 1u << d;
        NPU_TRY(slice_one(x->dims[d], s.starts[k], s.ends[k], s.steps[k], &first[d], &count[d]));
        step[d] = count[d] > 1 ? s.steps[k] : 1;
    }
    NPU_TRY(onnx_slice(n, x, first, count, step, &y));
    return onnx_bind(n, 0, y);
}

// Sizes as attribute or input; without: equal parts, the last one smaller (opset 18) when they do
// not divide.
static npu_status split_sizes(struct onnx_node *n, int64_t size, int64_t *sizes) {
    int count = onnx_ints_into(n, "split", sizes, n->nout);
    if (onnx_given(n, 1)) NPU_TRY(onnx_const_ints(n, 1, sizes, n->nout, &count));
    if (count < 0) {
        int64_t parts = onnx_int(n, "num_outputs", n->nout);
        if (parts != n->nout)
            return npu_fail(BAD_INPUT, "%lld parts for %d outputs", (long long)parts, n->nout);
        if (n->opset < 18 && size % parts)
            return npu_fail(BAD_INPUT, "%lld does not divide into %lld equal parts",
                            (long long)size, (long long)parts);
        int64_t each = (size + parts - 1) / parts;
        for (int k = 0; k < n->nout; k++)
            sizes[k] = num_clamp_i64(size - k * each, 0, each);
        return NULL;
    }
    if (count != n->nout) return npu_fail(BAD_INPUT, "%d parts for %d outputs", count, n->nout);
    int64_t left = size;
    for (int k = 0; k < count; k++) {
        if (sizes[k] < 0 || sizes[k] > left)
            return npu_fail(BAD_INPUT, "part %d has size %lld, %lld are left", k,
                            (long long)sizes[k], (long long)left);
        left -= sizes[k];
    }
    if (left)
        return npu_fail(BAD_INPUT, "the parts leave %lld of %lld", (long long)left,
                        (long long)size);
    return NULL;
}

npu_status import_split(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 2));
    struct graph_value *x = n->in[0], *y;
    int axis;
    if (n->nout < 1) return npu_fail(BAD_INPUT, "no outputs");
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", 0), x->rank, &axis));
    int64_t *parts = ARENA_ARRAY(n->m->arena, int64_t, (size_t)n->nout),
            first[GRAPH_MAX_RANK] = {0};
    int64_t count[GRAPH_MAX_RANK], step[GRAPH_MAX_RANK];
    NPU_TRY(split_sizes(n, x->dims[axis], parts));
    for (int d = 0; d < x->rank; d++) {
        count[d] = x->dims[d];
        step[d] = 1;
    }
    for (int k = 0; k < n->nout; k++) {
        int64_t start = first[axis];
        count[axis] = parts[k];
        if (!parts[k]) first[axis] = 0;
        if (onnx_used(n, k)) {
            NPU_TRY(onnx_slice(n, x, first, count, step, &y));
            NPU_TRY(onnx_bind(n, k, y));
        }
        first[axis] = start + parts[k];
    }
    return NULL;
}

npu_status import_concat(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1 << 16));
    struct graph_value *y;
    int axis;
    if (!onnx_has(n, "axis")) return npu_fail(BAD_INPUT, "attribute axis is missing");
    NPU_TRY(onnx_axis(n, onnx_int(n, "axis", 0), n->in[0]->rank, &axis));
    for (int k = 0; k < n->nin; k++) {
        if (!n->in[k]) return npu_fail(BAD_INPUT, "input %d is missing", k);
        if (n->in[k]->rank != n->in[0]->rank)
            return npu_fail(BAD_INPUT, "input %d ('%s') has rank %d, input 0 has %d", k,
                            n->in[k]->name, n->in[k]->rank, n->in[0]->rank);
    }
    NPU_TRY(onnx_concat(n, n->nin, n->in, axis, &y));
    return onnx_bind(n, 0, y);
}

// The result is the broadcast of both shapes.
npu_status import_expand(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    struct graph_value *x = n->in[0], *y;
    int64_t wanted[GRAPH_MAX_RANK], dims[GRAPH_MAX_RANK];
    int count;
    NPU_TRY(onnx_const_ints(n, 1, wanted, GRAPH_MAX_RANK, &count));
    int rank = count > x->rank ? count : x->rank;
    for (int d = 0; d < rank; d++) {
        int from_x = d - (rank - x->rank), from_shape = d - (rank - count);
        int64_t a = from_x >= 0 ? x->dims[from_x] : 1, b = from_shape >= 0 ? wanted[from_shape] : 1;
        if (b < 0 || (a != b && a != 1 && b != 1))
            return npu_fail(BAD_INPUT, "dimension %d of size %lld does not expand to %lld", d,
                            (long long)a, (long long)b);
        dims[d] = a == 1 ? b : a;
    }
    NPU_TRY(onnx_expand(n, x, rank, dims, &y));
    return onnx_bind(n, 0, y);
}

// x repeated r times along d: [.., 1, s, ..] expanded to [.., r, s, ..], for as many dimensions at
// once as the rank allows.
npu_status import_tile(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    struct graph_value *x = n->in[0], *y = x;
    int64_t repeats[GRAPH_MAX_RANK];
    int count;
    NPU_TRY(onnx_const_ints(n, 1, repeats, GRAPH_MAX_RANK, &count));
    if (count != x->rank)
        return npu_fail(BAD_INPUT, "%d repeats, '%s' has rank %d", count, x->name, x->rank);
    for (int d = 0; d < x->rank; d++) {
        if (repeats[d] < 0 || (x->dims[d] && repeats[d] > ((int64_t)1 << 43) / x->dims[d]))
            return npu_fail(BAD_INPUT, "repeats[%d] is %lld", d, (long long)repeats[d]);
        if (repeats[d] == 1) continue;
        // Dimensions before and after d are merged: [outer, 1, inner].
        int64_t outer = 1, inner = 1, dims[GRAPH_MAX_RANK];
        for (int k = 0; k < x->rank; k++)
            *(k < d ? &outer : &inner) *= y->dims[k];
        memcpy(dims, y->dims, sizeof dims);
        dims[d] *= repeats[d];
        NPU_TRY(onnx_reshape(n, y, 3, (int64_t[]){outer, 1, inner}, &y));
        NPU_TRY(onnx_expand(n, y, 3, (int64_t[]){outer, repeats[d], inner}, &y));
        NPU_TRY(onnx_reshape(n, y, x->rank, dims, &y));
    }
    return onnx_bind(n, 0, y);
}

// ---- pads ------------------------------------------------------------------------------------

// Pads as attribute (before opset 11) or input 1: all begins, then all ends; input 3 says for which
// dimensions.
static npu_status read_pads(struct onnx_node *n, int rank, int64_t *before, int64_t *after) {
    int64_t pads[2 * GRAPH_MAX_RANK] = {0}, axes[GRAPH_MAX_RANK];
    int count = -1, naxes = rank;
    if (n->opset < 11)
        count = onnx_ints_into(n, "pads", pads, 2 * GRAPH_MAX_RANK);
    else if (onnx_given(n, 1))
        NPU_TRY(onnx_const_ints(n, 1, pads, 2 * GRAPH_MAX_RANK, &count));
    for (int d = 0; d < rank; d++)
        axes[d] = d;
    if (onnx_given(n, 3)) NPU_TRY(onnx_const_ints(n, 3, axes, GRAPH_MAX_RANK, &naxes));
    if (count != 2 * naxes) return npu_fail(BAD_INPUT, "%d pads, expected %d", count, 2 * naxes);
    for (int k = 0; k < naxes; k++) {
        int d;
        NPU_TRY(onnx_axis(n, axes[k], rank, &d));
        before[d] = pads[k];
        after[d] = pads[naxes + k];
    }
    return NULL;
}

npu_status import_pad(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 4));
    struct graph_value *x = n->in[0], *y;
    int64_t before[GRAPH_MAX_RANK] = {0}, after[GRAPH_MAX_RANK] = {0};
    const char *mode = onnx_string(n, "mode", "constant");
    double value = onnx_float(n, "value", 0);
    NPU_TRY(read_pads(n, x->rank, before, after));
    if (onnx_given(n, 2)) {
        NPU_TRY(onnx_need_const(n, 2));
        if (graph_value_elems(n->in[2]) != 1)
            return npu_fail(BAD_INPUT, "input 2 ('%s') is no scalar", n->in[2]->name);
        value = (double)num_load_f32(n->in[2]->dtype, n->in[2]->data, 0);
    }
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0)
        return npu_fail(UNSUPPORTED, "mode '%s', expected constant, reflect or edge", mode);
    NPU_TRY(onnx_pad(n, x, before, after, mode, value, &y));
    return onnx_bind(n, 0, y);
}

// ---- blocks of pixels ------------------------------------------------------------------------

static npu_status block_op(struct onnx_node *n, const int64_t split[6], const int64_t perm[6],
                           const int64_t *dims) {
    struct graph_value *y;
    NPU_TRY(onnx_reshape(n, n->in[0], 6, split, &y));
    NPU_TRY(onnx_transpose(n, y, perm, &y));
    NPU_TRY(onnx_reshape(n, y, 4, dims, &y));
    return onnx_bind(n, 0, y);
}

npu_status import_depth_to_space(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    const struct graph_value *x = n->in[0];
    int64_t b = onnx_int(n, "blocksize", 0);
    const char *mode = onnx_string(n, "mode", "DCR");
    if (x->rank != 4 || b < 1 || b > 1 << 15 || x->dims[1] % (b * b))
        return npu_fail(BAD_INPUT, "blocksize %lld for '%s' of rank %d and %lld channels",
                        (long long)b, x->name, x->rank, (long long)(x->rank > 1 ? x->dims[1] : 0));
    int64_t c = x->dims[1] / (b * b), h = x->dims[2], w = x->dims[3],
            dims[4] = {x->dims[0], c, h * b, w * b};
    if (!strcmp(mode, "CRD"))
        return block_op(n, (int64_t[]){x->dims[0], c, b, b, h, w}, (int64_t[]){0, 1, 4, 2, 5, 3},
                        dims);
    return block_op(n, (int64_t[]){x->dims[0], b, b, c, h, w}, (int64_t[]){0, 3, 4, 1, 5, 2}, dims);
}

npu_status import_space_to_depth(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    const struct graph_value *x = n->in[0];
    int64_t b = onnx_int(n, "blocksize", 0);
    if (x->rank != 4 || b < 1 || b > 1 << 15 || x->dims[2] % b || x->dims[3] % b)
        return npu_fail(BAD_INPUT, "blocksize %lld does not divide the last two dimensions of '%s'",
                        (long long)b, x->name);
    int64_t c = x->dims[1], h = x->dims[2] / b, w = x->dims[3] / b;
    return block_op(n, (int64_t[]){x->dims[0], c, h, b, w, b}, (int64_t[]){0, 3, 5, 1, 2, 4},
                    (int64_t[]){x->dims[0], c * b * b, h, w});
}
