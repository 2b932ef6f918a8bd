// SPDX-License-Identifier: Apache-2.0
// Interpolation of the last two dimensions.
//
//   nearest, whole factors   one affine map: each input element repeats, stride 0 along the copies
//   nearest, other           rows chosen by a constant index vector, then columns
//   linear                   per axis: both neighbours chosen by index, then lower + (upper - lower) * weight
#include "toolchain/lower/internal.h"

#include <math.h>
#include <string.h>

struct axis_table { int32_t *lo, *hi; float *weight; };

static double source(const char *coord, int64_t i, double scale, int64_t in, int64_t out) {
    if (!strcmp(coord, "asymmetric")) return (double)i / scale;
    if (!strcmp(coord, "align_corners")) return out > 1 ? (double)i * (double)(in - 1) / (double)(out - 1) : 0;
    if (!strcmp(coord, "pytorch_half_pixel") && out <= 1) return 0;
    return ((double)i + 0.5) / scale - 0.5;
}

static double within(double v, int64_t size) { return v < 0 ? 0 : v > (double)(size - 1) ? (double)(size - 1) : v; }

static struct axis_table table(struct lower *L, const struct graph_node *n, int axis, bool linear) {
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    int d = x->rank - 2 + axis;
    int64_t in = x->dims[d], out = y->dims[d];
    const struct graph_attr *scales = graph_attr(n, GRAPH_ATTR_SCALES);
    double scale = scales ? scales->floats[axis] : (double)out / (double)in;
    const char *coord = graph_word(n, GRAPH_ATTR_COORD, "half_pixel"), *nearest = graph_word(n, GRAPH_ATTR_NEAREST, "round_prefer_floor");
    struct axis_table t = {ARENA_ARRAY(L->a, int32_t, (size_t)out), ARENA_ARRAY(L->a, int32_t, (size_t)out), ARENA_ARRAY(L->a, float, (size_t)out)};
    for (int64_t i = 0; i < out; i++) {
        double p = source(coord, i, scale, in, out);
        if (linear) {
            double at = within(p, in);
            t.lo[i] = (int32_t)floor(at);
            t.hi[i] = (int32_t)within(floor(at) + 1, in);
            t.weight[i] = (float)(at - floor(at));
            continue;
        }
        double at = !strcmp(nearest, "floor") ? floor(p) : !strcmp(nearest, "ceil") ? ceil(p) : !strcmp(nearest, "round_prefer_ceil") ? floor(p + 0.5) : ceil(p - 0.5);
        t.lo[i] = t.hi[i] = (int32_t)within(at, in);
    }
    return t;
}

// f when output i takes input i / f throughout; 0 otherwise.
static int64_t factor(const struct axis_table *t, int64_t in, int64_t out) {
    int64_t f = out / in;
    if (f < 1 || f * in != out) return 0;
    for (int64_t i = 0; i < out; i++)
        if (t->lo[i] != i / f) return 0;
    return f;
}

static struct lower_view constant(struct lower *L, const char *name, const void *data, int64_t count, enum isa_dtype dtype) {
    return (struct lower_view){.buf = tile_add_dram(L->p, name, TILE_WEIGHT, count * 4, data, NULL), .dtype = dtype, .stride = {1}};
}

// Scratch for an intermediate of the given sizes, dimensions stored in the order of `like`.
static struct lower_view scratch(struct lower *L, const char *name, const struct lower_view *like, int rank, const int64_t *dims) {
    struct lower_view v = *like;
    int64_t elems = lower_pack(like, rank, dims, v.stride);
    for (int d = 0; d < rank; d++)
        if (v.stride[d] == 0 && dims[d] > 1) {   // size 1 in `like`
            v.stride[d] = elems;
            elems *= dims[d];
        }
    v.offset = 0;
    v.buf = tile_add_dram(L->p, name, TILE_SCRATCH, elems * lower_dtype_bytes(v.dtype), NULL, NULL);
    return v;
}

static npu_status pick(struct lower *L, int rank, const int64_t *dims, int axis, const struct lower_view *x, const int32_t *index, int64_t count,
                       const struct lower_view *out) {
    struct lower_pick g = {.rank = rank, .axis = axis, .x = *x, .out = *out, .count = count, .index = constant(L, "index", index, count, ISA_I32)};
    memcpy(g.dims, dims, (size_t)rank * sizeof *dims);
    return lower_pick_run(L, &g);
}

static npu_status repeat(struct lower *L, const struct graph_node *n, int64_t fh, int64_t fw) {
    const struct graph_value *x = n->inputs[0];
    int rank = x->rank;
    struct lower_affine a = {.rank = rank + 2, .has = {true, false, false}, .in = {L->place[x->id]}, .out = L->place[n->outputs[0]->id]};
    const struct lower_view in = a.in[0], out = a.out;
    memcpy(a.size, x->dims, sizeof x->dims);
    int h = rank - 2, w = rank - 1;
    a.size[rank - 2] = x->dims[h], a.in[0].stride[rank - 2] = in.stride[h], a.out.stride[rank - 2] = out.stride[h] * fh;
    a.size[rank - 1] = fh, a.in[0].stride[rank - 1] = 0, a.out.stride[rank - 1] = out.stride[h];
    a.size[rank] = x->dims[w], a.in[0].stride[rank] = in.stride[w], a.out.stride[rank] = out.stride[w] * fw;
    a.size[rank + 1] = fw, a.in[0].stride[rank + 1] = 0, a.out.stride[rank + 1] = out.stride[w];
    return lower_affine_run(L, &a);
}

// One axis of a linear resize from x to out.
static npu_status linear_axis(struct lower *L, int rank, const int64_t *dims, int axis, const struct lower_view *x, const struct axis_table *t,
                              int64_t count, const struct lower_view *out) {
    int64_t odims[LOWER_DIMS];
    memcpy(odims, dims, (size_t)rank * sizeof *dims);
    odims[axis] = count;
    struct lower_view lo = scratch(L, "lower", out, rank, odims), hi = scratch(L, "upper", out, rank, odims);
    NPU_TRY(pick(L, rank, dims, axis, x, t->lo, count, &lo));
    NPU_TRY(pick(L, rank, dims, axis, x, t->hi, count, &hi));
    struct isa_chain c;
    memset(&c, 0, sizeof c);
    c.st[0] = (struct isa_stage){.op = ISA_VOP_SUB, .a = ISA_SRC_IN1};
    c.st[1] = (struct isa_stage){.op = ISA_VOP_FMA, .a = ISA_SRC_IN2, .b = ISA_SRC_IN1};
    struct lower_affine a = {.rank = rank, .chain = &c, .has = {true, true, true}, .in = {hi, lo}, .out = *out};
    a.in[2] = constant(L, "weight", t->weight, count, ISA_F32);
    a.in[2].stride[0] = 0;
    a.in[2].stride[axis] = 1;
    memcpy(a.size, odims, (size_t)rank * sizeof *odims);
    return lower_affine_run(L, &a);
}

npu_status lower_resize(struct lower *L, const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    bool linear = !strcmp(graph_word(n, GRAPH_ATTR_MODE, "nearest"), "linear");
    if (linear && isa_dtype_is_int((int)x->dtype))
        return npu_fail(UNSUPPORTED, "linear interpolation of %s elements; convert to a floating type first", isa_dtype_name((int)x->dtype));
    int rank = x->rank, h = rank - 2, w = rank - 1;
    struct axis_table down = table(L, n, 0, linear), across = table(L, n, 1, linear);
    int64_t fh = factor(&down, x->dims[h], y->dims[h]), fw = factor(&across, x->dims[w], y->dims[w]);
    if (!linear && fh && fw) {
        lower_kernel(L, n, "resize_repeat");
        return repeat(L, n, fh, fw);
    }
    lower_kernel(L, n, linear ? "resize_linear" : "resize_gather");
    int64_t middle[LOWER_DIMS];
    memcpy(middle, x->dims, sizeof x->dims);
    middle[h] = y->dims[h];
    struct lower_view out = L->place[y->id], mid = scratch(L, "rows", &out, rank, middle);
    if (linear) mid.dtype = x->dtype;
    if (!linear) {
        NPU_TRY(pick(L, rank, x->dims, h, &L->place[x->id], down.lo, y->dims[h], &mid));
        return pick(L, rank, middle, w, &mid, across.lo, y->dims[w], &out);
    }
    NPU_TRY(linear_axis(L, rank, x->dims, h, &L->place[x->id], &down, y->dims[h], &mid));
    return linear_axis(L, rank, middle, w, &mid, &across, y->dims[w], &out);
}
