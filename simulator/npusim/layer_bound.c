// SPDX-License-Identifier: Apache-2.0
// Bounds for layers: u is the unit roundoff of a type (half the distance of neighbours, relative).
//
//   rounding of the result    both sides round once: one unit in the last place, 2 u |want|; below
//                             the type's normal numbers, its smallest step
//   sums of the vector engine a sum over n terms in another order: each partial takes n / 64 + 7
//                             roundings in f32, relative to the result's range; 4 on top for means
//                             that cancel
//   products in another order each of n steps rounds a partial sum that is about as large as the
//                             result, up or down: 8 sqrt(n) u of f32 of the range. Only where the
//                             kernel sums otherwise than the reference: the windows of a transposed
//                             convolution, attention that rescales what it has, products of one
//                             row, which the vector engine may take
//   values inside a kernel    that are rounded to the operands' type before they are used again
//                             (attention's probabilities): 4 u of the range
//   scores behind a mask      that has something to add to every key of a row: both sides round the
//                             sum, one step of f32 at the mask's size apart, which moves the result
//                             by twice that of its range; nothing where the mask swallows scores
//
// Other products and convolutions sum in a fixed order (docs/numerics.md), chains round alike: they
// need the first term only.
#include "simulator/npusim/layer_bound.h"

#include <math.h>
#include <stdbool.h>

static double roundoff(enum isa_dtype t) {
    switch ((int)t) {
    case ISA_F16: return 0x1p-11;
    case ISA_BF16: return 0x1p-8;
    case ISA_F8E4M3: return 0x1p-4;
    case ISA_F8E5M2: return 0x1p-3;
    default: return 0x1p-24;
    }
}

static double smallest_step(enum isa_dtype t) {
    switch ((int)t) {
    case ISA_F16: return 0x1p-24;
    case ISA_F8E4M3: return 0x1p-9;
    case ISA_F8E5M2: return 0x1p-16;
    default: return 0x1p-133; // of bf16; f32's is smaller
    }
}

static int64_t axis_and_behind(const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    int64_t span = 1;
    for (int d = (int)graph_int(n, GRAPH_ATTR_AXIS, 0); d < x->rank; d++)
        span *= x->dims[d];
    return span;
}

static int64_t axis_alone(const struct graph_node *n) {
    return n->inputs[0]->dims[graph_int(n, GRAPH_ATTR_AXIS, 0)];
}

static int64_t per_result(const struct graph_node *n) {
    const int64_t out = graph_value_elems(n->outputs[0]);
    return graph_value_elems(n->inputs[0]) / (out > 0 ? out : 1);
}

static int64_t window(const struct graph_node *n) {
    return graph_ints_at(n, GRAPH_ATTR_KERNEL, 0, 1) * graph_ints_at(n, GRAPH_ATTR_KERNEL, 1, 1);
}

static int64_t weights(const struct graph_node *n) {
    (void)n;
    return 4; // bilinear interpolation
}

static int64_t taps(const struct graph_node *n) {
    const struct graph_value *w = n->inputs[1];
    return w->dims[0] * w->dims[2] * w->dims[3];
}

// Elements of a run of channels.
static int64_t group(const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    return graph_value_elems(x) / (x->dims[0] * graph_int(n, GRAPH_ATTR_GROUP, 1));
}

// Terms of a product of one row, 0 of others.
static int64_t one_row(const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    const int channels = n->op == GRAPH_CONV ? 1 : y->rank - 1;
    if (graph_value_elems(y) != y->dims[channels]) return 0;
    return graph_value_elems(x);
}

// Largest dimension of the inputs: for ops that are not listed.
static int64_t longest(const struct graph_node *n) {
    int64_t most = 1;
    for (int k = 0; k < n->nown; k++)
        for (int d = 0; d < n->inputs[k]->rank; d++)
            if (n->inputs[k]->dims[d] > most) most = n->inputs[k]->dims[d];
    return most;
}

// Terms that the vector engine sums for one result, terms of its product when that has another
// order (NULL: none), and how often a value inside the kernel is rounded to the operands' type.
struct row {
    enum graph_op op;
    int64_t (*terms)(const struct graph_node *n);
    int64_t (*products)(const struct graph_node *n);
    int rounded;
};

static const struct row table[] = {
    {GRAPH_MAP, NULL, NULL, 0},
    {GRAPH_MATMUL, NULL, one_row, 0},
    {GRAPH_CONV, NULL, one_row, 0},
    {GRAPH_CONVT, NULL, taps, 0},
    {GRAPH_POOL, window, NULL, 0},
    {GRAPH_REDUCE, per_result, NULL, 0},
    {GRAPH_SOFTMAX, axis_alone, NULL, 0},
    {GRAPH_ATTENTION, longest, longest, 1},
    {GRAPH_LAYERNORM, axis_and_behind, NULL, 0},
    {GRAPH_RMSNORM, axis_and_behind, NULL, 0},
    {GRAPH_GROUPNORM, group, NULL, 0},
    {GRAPH_ROTARY, NULL, NULL, 0},
    {GRAPH_GLU, NULL, one_row, 0},
    {GRAPH_GLU_MLP, NULL, longest, 1},
    {GRAPH_RESHAPE, NULL, NULL, 0},
    {GRAPH_TRANSPOSE, NULL, NULL, 0},
    {GRAPH_SLICE, NULL, NULL, 0},
    {GRAPH_CONCAT, NULL, NULL, 0},
    {GRAPH_EXPAND, NULL, NULL, 0},
    {GRAPH_PAD, NULL, NULL, 0},
    {GRAPH_GATHER, NULL, NULL, 0},
    {GRAPH_RESIZE, weights, NULL, 0},
    {GRAPH_COPY, NULL, NULL, 0},
};
static const struct row other = {GRAPH_OPS, longest, longest, 1};

struct layer_bound layer_bound_of(const struct graph_node *n, double range) {
    const enum isa_dtype out = n->outputs[0]->dtype;
    const struct row *row = &other;
    double inner = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == n->op) row = &table[i];
    if (!isa_dtype_is_float((int)out)) return (struct layer_bound){0};
    for (int k = 0; k < n->nown; k++)
        if (isa_dtype_is_float((int)n->inputs[k]->dtype))
            inner = fmax(inner, roundoff(n->inputs[k]->dtype));
    struct layer_bound b = {.rtol = 2 * roundoff(out), .atol = smallest_step(out)};
    if (row->terms) b.atol += 4 * ((double)row->terms(n) / 64 + 7) * 2 * roundoff(ISA_F32) * range;
    if (row->products) b.atol += 8 * sqrt((double)row->products(n)) * roundoff(ISA_F32) * range;
    b.atol += 4 * row->rounded * inner * range;
    return b;
}

double layer_bound_of_mask(const double *mask, int64_t rows, int64_t keys, double score,
                           double range) {
    const double u = roundoff(ISA_F32);
    double most = 0; // of the rows' least
    for (int64_t i = 0; i < rows; i++) {
        double least = HUGE_VAL;
        for (int64_t j = 0; j < keys; j++)
            least = fmin(least, fabs(mask[i * keys + j]));
        if (least < HUGE_VAL && score > u * least / 2) most = fmax(most, least);
    }
    return fmin(4 * u * most, 2) * range;
}

double layer_bound_length(const double *x, int64_t rows, int64_t d) {
    double most = 0;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < d; j++)
            sum += x[i * d + j] * x[i * d + j];
        if (isfinite(sum)) most = fmax(most, sum);
    }
    return sqrt(most);
}

static bool column_is_finite(const double *v, int64_t keys, int64_t columns) {
    for (int64_t k = 0; k < keys; k++)
        if (!isfinite(v[k * columns])) return false;
    return true;
}

void layer_bound_hidden(const double *v, int64_t key_heads, int64_t keys, int64_t columns,
                        int64_t heads, int64_t rows, double *got, const double *want) {
    for (int64_t h = 0; h < heads; h++)
        for (int64_t c = 0; c < columns; c++) {
            const double *column = v + h / (heads / key_heads) * keys * columns + c;
            if (column_is_finite(column, keys, columns)) continue;
            for (int64_t r = 0; r < rows; r++) {
                const int64_t i = (h * rows + r) * columns + c;
                if (isnan(got[i])) got[i] = want[i];
            }
        }
}
