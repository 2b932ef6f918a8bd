// SPDX-License-Identifier: Apache-2.0
//
// Reference kernels of the ops that move elements: they copy bytes whatever the type is (4-bit
// types are unpacked to bytes first), and RESIZE and RANGE, which compute.

#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/graph/eval.h"

// ---- bytes in, bytes out ---------------------------------------------------------------------

struct move {
    enum isa_dtype dtype; // of the bytes: the input's, or i8/u8 for i4/u4
    size_t size;          // bytes of an element
    uint8_t *out;         // the output's buffer, or a temporary that move_end() converts
};

static enum isa_dtype byte_type(enum isa_dtype t) {
    return t == ISA_I4 ? ISA_I8 : t == ISA_U4 ? ISA_U8 : t;
}

static struct move move_begin(struct graph_eval *e) {
    const struct graph_value *y = e->n->outputs[0];
    struct move m = {.dtype = byte_type(e->n->inputs[0]->dtype)};
    m.size = (size_t)isa_dtype_bits(m.dtype) / 8;
    m.out = m.dtype == y->dtype ? e->out
                                : arena_alloc(e->scratch, (size_t)graph_value_elems(y) * m.size);
    return m;
}

static const uint8_t *move_in(struct graph_eval *e, int k, const struct move *m) {
    const struct graph_value *v = e->n->inputs[k];
    if (v->dtype == m->dtype) return e->in[k];
    size_t n = (size_t)graph_value_elems(v);
    uint8_t *bytes = arena_alloc(e->scratch, n * m->size);
    num_convert(m->dtype, bytes, v->dtype, e->in[k], n);
    return bytes;
}

static npu_status move_end(struct graph_eval *e, const struct move *m) {
    const struct graph_value *y = e->n->outputs[0];
    if (m->out != e->out)
        num_convert(y->dtype, e->out, m->dtype, m->out, (size_t)graph_value_elems(y));
    e->done = true;
    return NULL;
}

static void row_strides(const struct graph_value *v, int64_t stride[GRAPH_MAX_RANK]) {
    int64_t step = 1;
    for (int d = v->rank - 1; d >= 0; d--) {
        stride[d] = step;
        step *= v->dims[d];
    }
}

#define COPY_LINE(TYPE)                                                                    \
    do {                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                    \
            memcpy(to + (size_t)i * sizeof(TYPE), from + i * step * (int64_t)sizeof(TYPE), \
                   sizeof(TYPE));                                                          \
    } while (0)

// n elements from `from`, `step` elements apart.
static void copy_line(uint8_t *to, const uint8_t *from, int64_t step, int64_t n, size_t size) {
    if (step == 1)
        memcpy(to, from, (size_t)n * size);
    else if (size == 8)
        COPY_LINE(uint64_t);
    else if (size == 4)
        COPY_LINE(uint32_t);
    else if (size == 2)
        COPY_LINE(uint16_t);
    else
        COPY_LINE(uint8_t);
}

// Output in row-major order; element (i0, i1, ..) comes from first + sum(i_d * stride[d]).
static void copy_strided(const struct move *m, const struct graph_value *y, const uint8_t *from,
                         int64_t first, const int64_t *stride) {
    int64_t at[GRAPH_MAX_RANK] = {0}, inner = y->rank ? y->dims[y->rank - 1] : 1;
    int64_t step = y->rank ? stride[y->rank - 1] : 1;
    for (uint8_t *to = m->out;; to += (size_t)inner * m->size) {
        copy_line(to, from + first * (int64_t)m->size, step, inner, m->size);
        int d = y->rank - 2;
        for (; d >= 0; d--) {
            first += stride[d];
            if (++at[d] < y->dims[d]) break;
            first -= stride[d] * y->dims[d];
            at[d] = 0;
        }
        if (d < 0) return;
    }
}

// ---- ops -------------------------------------------------------------------------------------

// RESHAPE, COPY: the same elements.
npu_status eval_copy(struct graph_eval *e) {
    struct move m = move_begin(e);
    memcpy(m.out, move_in(e, 0, &m), (size_t)graph_value_elems(e->n->outputs[0]) * m.size);
    return move_end(e, &m);
}

npu_status eval_transpose(struct graph_eval *e) {
    struct move m = move_begin(e);
    int64_t of_x[GRAPH_MAX_RANK], stride[GRAPH_MAX_RANK];
    row_strides(e->n->inputs[0], of_x);
    for (int d = 0; d < e->n->outputs[0]->rank; d++)
        stride[d] = of_x[graph_ints_at(e->n, GRAPH_ATTR_PERM, d, d)];
    copy_strided(&m, e->n->outputs[0], move_in(e, 0, &m), 0, stride);
    return move_end(e, &m);
}

npu_status eval_slice(struct graph_eval *e) {
    struct move m = move_begin(e);
    int64_t stride[GRAPH_MAX_RANK], first = 0;
    row_strides(e->n->inputs[0], stride);
    for (int d = 0; d < e->n->outputs[0]->rank; d++) {
        first += graph_ints_at(e->n, GRAPH_ATTR_STARTS, d, 0) * stride[d];
        stride[d] *= graph_ints_at(e->n, GRAPH_ATTR_STEPS, d, 1);
    }
    copy_strided(&m, e->n->outputs[0], move_in(e, 0, &m), first, stride);
    return move_end(e, &m);
}

npu_status eval_expand(struct graph_eval *e) {
    struct move m = move_begin(e);
    const struct graph_value *x = e->n->inputs[0], *y = e->n->outputs[0];
    int64_t of_x[GRAPH_MAX_RANK], stride[GRAPH_MAX_RANK] = {0};
    row_strides(x, of_x);
    for (int s = 0; s < x->rank; s++)
        stride[y->rank - x->rank + s] = x->dims[s] == 1 ? 0 : of_x[s];
    copy_strided(&m, y, move_in(e, 0, &m), 0, stride);
    return move_end(e, &m);
}

npu_status eval_concat(struct graph_eval *e) {
    struct move m = move_begin(e);
    const struct graph_value *y = e->n->outputs[0];
    int axis = (int)graph_int(e->n, GRAPH_ATTR_AXIS, 0);
    int64_t outer = 1, block = (int64_t)m.size;
    for (int d = 0; d < axis; d++)
        outer *= y->dims[d];
    for (int d = axis + 1; d < y->rank; d++)
        block *= y->dims[d];
    uint8_t *to = m.out;
    for (int k = 0; k < e->n->nown; k++) {
        int64_t run = e->n->inputs[k]->dims[axis] * block;
        const uint8_t *from = move_in(e, k, &m);
        for (int64_t o = 0; o < outer && run; o++)
            memcpy(to + o * y->dims[axis] * block, from + o * run, (size_t)run);
        to += run;
    }
    return move_end(e, &m);
}

// Where output index i of a padded dimension comes from; -1: the constant.
static int64_t pad_source(int64_t i, int64_t before, int64_t size, char mode) {
    int64_t at = i - before;
    if (at >= 0 && at < size) return at;
    if (mode == 'c') return -1;
    if (mode == 'e') return at < 0 ? 0 : size - 1;
    return at < 0 ? -at : 2 * (size - 1) - at; // reflect, the edge not repeated
}

npu_status eval_pad(struct graph_eval *e) {
    struct move m = move_begin(e);
    const struct graph_value *x = e->n->inputs[0], *y = e->n->outputs[0];
    char mode = graph_word(e->n, GRAPH_ATTR_MODE, "constant")[0];
    double value = graph_float(e->n, GRAPH_ATTR_VALUE, 0);
    uint8_t constant[8] = {0};
    if (isa_dtype_is_int(m.dtype))
        num_store_i64(m.dtype, constant, 0,
                      fabs(value) < 9e18 ? (int64_t)value
                      : value < 0        ? INT64_MIN
                                         : INT64_MAX);
    else
        num_store_f32(m.dtype, constant, 0, (float)value);
    int64_t stride[GRAPH_MAX_RANK] = {0}, at[GRAPH_MAX_RANK] = {0}, elems = graph_value_elems(y);
    row_strides(x, stride);
    const uint8_t *from = move_in(e, 0, &m);
    for (int64_t k = 0; k < elems; k++) {
        int64_t source = 0;
        for (int d = 0; d < y->rank && source >= 0; d++) {
            int64_t s = pad_source(at[d], graph_ints_at(e->n, GRAPH_ATTR_PADS_BEFORE, d, 0),
                                   x->dims[d], mode);
            source = s < 0 ? -1 : source + s * stride[d];
        }
        memcpy(m.out + (size_t)k * m.size, source < 0 ? constant : from + (size_t)source * m.size,
               m.size);
        for (int d = y->rank - 1; d >= 0 && ++at[d] == y->dims[d]; d--)
            at[d] = 0;
    }
    return move_end(e, &m);
}

npu_status eval_gather(struct graph_eval *e) {
    struct move m = move_begin(e);
    const struct graph_value *x = e->n->inputs[0], *index = e->n->inputs[1];
    int axis = (int)graph_int(e->n, GRAPH_ATTR_AXIS, 0);
    int64_t outer = 1, block = (int64_t)m.size, size = x->dims[axis],
            count = graph_value_elems(index);
    for (int d = 0; d < axis; d++)
        outer *= x->dims[d];
    for (int d = axis + 1; d < x->rank; d++)
        block *= x->dims[d];
    const uint8_t *from = move_in(e, 0, &m);
    const int64_t *indices = eval_ints(e, 1);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < count; k++) {
            int64_t i = indices[k] < 0 ? indices[k] + size : indices[k];
            if (i < 0 || i >= size)
                return npu_fail(
                    BAD_INPUT,
                    "index %lld ('%s'[%lld]) into dimension %d of '%s', which has size %lld",
                    (long long)indices[k], index->name, (long long)k, axis, x->name,
                    (long long)size);
            memcpy(m.out + (o * count + k) * block, from + (o * size + i) * block, (size_t)block);
        }
    return move_end(e, &m);
}

npu_status eval_range(struct graph_eval *e) {
    int64_t count = e->n->outputs[0]->dims[0];
    if (e->own_int) {
        int64_t start = num_load_i64(e->n->inputs[0]->dtype, e->in[0], 0);
        int64_t delta = num_load_i64(e->n->inputs[2]->dtype, e->in[2], 0);
        for (int64_t k = 0; k < count; k++)
            e->i[k] = num_vop_i64(ISA_VOP_FMA, k, delta, start);
        return NULL;
    }
    float start = num_load_f32(e->n->inputs[0]->dtype, e->in[0], 0);
    float delta = num_load_f32(e->n->inputs[2]->dtype, e->in[2], 0);
    for (int64_t k = 0; k < count; k++)
        e->f[k] = start + (float)k * delta;
    return NULL;
}

// ---- resize ----------------------------------------------------------------------------------

// For each output position of one dimension: the two source positions and the weight of the second.
struct taps {
    int64_t *lo, *hi;
    float *weight;
};

static double source_position(const char *coord, int64_t i, double scale, int64_t in, int64_t out) {
    if (!strcmp(coord, "asymmetric")) return (double)i / scale;
    if (!strcmp(coord, "align_corners"))
        return out > 1 ? (double)i * (double)(in - 1) / (double)(out - 1) : 0;
    if (!strcmp(coord, "pytorch_half_pixel") && out <= 1) return 0;
    return ((double)i + 0.5) / scale - 0.5;
}

static int64_t clamp(double v, int64_t size) {
    return v < 0 ? 0 : v > (double)(size - 1) ? size - 1 : (int64_t)v;
}

static struct taps taps_of(struct graph_eval *e, int axis) {
    const struct graph_node *n = e->n;
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    int d = x->rank - 2 + axis;
    int64_t in = x->dims[d], out = y->dims[d];
    const struct graph_attr *scales = graph_attr(n, GRAPH_ATTR_SCALES);
    double scale = scales ? scales->floats[axis] : (double)out / (double)in;
    const char *coord = graph_word(n, GRAPH_ATTR_COORD, "half_pixel");
    const char *nearest = graph_word(n, GRAPH_ATTR_NEAREST, "round_prefer_floor");
    bool linear = !strcmp(graph_word(n, GRAPH_ATTR_MODE, ""), "linear");
    struct taps t = {ARENA_ARRAY(e->scratch, int64_t, (size_t)out),
                     ARENA_ARRAY(e->scratch, int64_t, (size_t)out),
                     ARENA_ARRAY(e->scratch, float, (size_t)out)};
    for (int64_t i = 0; i < out; i++) {
        double p = source_position(coord, i, scale, in, out), low = floor(p);
        if (linear) {
            double inside = p < 0 ? 0 : p > (double)(in - 1) ? (double)(in - 1) : p;
            t.lo[i] = clamp(floor(inside), in);
            t.hi[i] = clamp(floor(inside) + 1, in);
            t.weight[i] = (float)(inside - floor(inside));
            continue;
        }
        double at = !strcmp(nearest, "floor")               ? low
                    : !strcmp(nearest, "ceil")              ? ceil(p)
                    : !strcmp(nearest, "round_prefer_ceil") ? floor(p + 0.5)
                                                            : ceil(p - 0.5);
        t.lo[i] = t.hi[i] = clamp(at, in);
    }
    return t;
}

npu_status eval_resize(struct graph_eval *e) {
    const struct graph_value *x = e->n->inputs[0], *y = e->n->outputs[0];
    int64_t h = x->dims[x->rank - 2], w = x->dims[x->rank - 1], oh = y->dims[x->rank - 2],
            ow = y->dims[x->rank - 1];
    int64_t images = graph_value_elems(y) / (oh * ow), k = 0;
    struct taps down = taps_of(e, 0), across = taps_of(e, 1);
    const float *from = eval_floats(e, 0);
    for (int64_t b = 0; b < images; b++, from += h * w)
        for (int64_t i = 0; i < oh; i++)
            for (int64_t j = 0; j < ow; j++, k++) {
                const float *upper = from + down.lo[i] * w, *lower = from + down.hi[i] * w;
                float u = upper[across.lo[j]], v = lower[across.lo[j]];
                u += (upper[across.hi[j]] - u) * across.weight[j];
                v += (lower[across.hi[j]] - v) * across.weight[j];
                float r = u + (v - u) * down.weight[i];
                if (e->own_int)
                    e->i[k] = num_f32_to_i64(num_fn_trunc(r));
                else
                    e->f[k] = r;
            }
    return NULL;
}
