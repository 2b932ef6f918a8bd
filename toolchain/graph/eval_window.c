// SPDX-License-Identifier: Apache-2.0
//
// Reference kernels of MATMUL, CONV, CONVT and POOL. Products accumulate in f32, one fused
// multiply-add per k, k ascending (convolutions: kh, kw, then input channel; padding is skipped);
// integers accumulate modulo 2^64. Images are turned to channels-last for the work, so that
// channels are the vector dimension.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/graph/eval.h"

// ---- matrix product --------------------------------------------------------------------------

// out[c][r] = in[r][c]
static float *transposed(struct arena *a, const float *in, int64_t rows, int64_t cols) {
    float *out = ARENA_ARRAY(a, float, (size_t)(rows * cols));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            out[c * rows + r] = in[r * cols + c];
    return out;
}

struct product {
    int64_t m, n, k;
    bool ta, tb; // stored [K,M], [N,K]
};

// A panel of columns at a time, packed so that B's part stays in the cache over all rows.
static void product_f32(struct arena *scratch, const struct product *p, const float *a,
                        const float *b, float *out) {
    enum { PANEL = 64, FEW_ROWS = 8 };
    const size_t lda = p->ta ? (size_t)p->m : 1, row = p->ta ? 1 : (size_t)p->k, n = (size_t)p->n;
    float *packed = p->m < FEW_ROWS ? NULL : ARENA_ARRAY(scratch, float, (size_t)p->k *PANEL);
    for (size_t j = 0; j < n; j += PANEL) {
        const size_t width = n - j < PANEL ? n - j : PANEL;
        for (size_t k = 0; packed && k < (size_t)p->k; k++)
            memcpy(packed + k * PANEL, b + k * n + j, width * sizeof *b);
        eval_fma_block(out + j, n, (size_t)p->m, a, row, lda, packed ? packed : b + j,
                       packed ? PANEL : n, (size_t)p->k, width);
    }
}

static void product_i64(const struct product *p, const int64_t *a, const int64_t *b, int64_t *out) {
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            int64_t sum = 0;
            for (int64_t k = 0; k < p->k; k++)
                sum = num_vop_i64(ISA_VOP_FMA, p->ta ? a[k * p->m + i] : a[i * p->k + k],
                                  p->tb ? b[j * p->k + k] : b[k * p->n + j], sum);
            out[i * p->n + j] = sum;
        }
}

// The matrix of v that batch element `index` of `out` takes: dimensions of size 1 stay at 0.
static int64_t batch_of(const struct graph_value *v, const struct graph_value *out, int64_t index) {
    int64_t at = 0, step = 1;
    for (int d = out->rank - 3, s = v->rank - 3; d >= 0; d--, s--) {
        int64_t i = index % out->dims[d];
        index /= out->dims[d];
        if (s < 0) continue;
        if (v->dims[s] != 1) at += i * step;
        step *= v->dims[s];
    }
    return at;
}

npu_status eval_matmul(struct graph_eval *e) {
    const struct graph_value *a = e->n->inputs[0], *b = e->n->inputs[1], *out = e->n->outputs[0];
    struct product p = {.m = out->dims[out->rank - 2], .n = out->dims[out->rank - 1]};
    p.ta = graph_int(e->n, GRAPH_ATTR_TRANS_A, 0) != 0;
    p.tb = graph_int(e->n, GRAPH_ATTR_TRANS_B, 0) != 0;
    p.k = a->dims[a->rank - 1 - p.ta];
    int64_t batches = graph_value_elems(out) / (p.m * p.n);
    if (e->own_int) {
        const int64_t *x = eval_ints(e, 0), *y = eval_ints(e, 1);
        for (int64_t i = 0; i < batches; i++)
            product_i64(&p, x + batch_of(a, out, i) * p.m * p.k,
                        y + batch_of(b, out, i) * p.k * p.n, e->i + i * p.m * p.n);
        return NULL;
    }
    const float *x = eval_floats(e, 0), *y = eval_floats(e, 1);
    memset(e->f, 0, (size_t)graph_value_elems(out) * sizeof(float));
    int64_t turned = -1;
    const float *right = NULL;
    for (int64_t i = 0; i < batches; i++) {
        int64_t of_b = batch_of(b, out, i);
        if (of_b != turned) {
            right = y + of_b * p.k * p.n;
            if (p.tb) right = transposed(e->scratch, right, p.n, p.k);
            turned = of_b;
        }
        product_f32(e->scratch, &p, x + batch_of(a, out, i) * p.m * p.k, right,
                    e->f + i * p.m * p.n);
    }
    return NULL;
}

// ---- convolution -----------------------------------------------------------------------------

struct conv {
    int64_t n, c, h, w;        // input
    int64_t o, oh, ow, kh, kw; // output, kernel
    int64_t group, cg, og;     // channels of one group, in and out
    int64_t stride[2], dilation[2], pad[2];
    bool transpose;
};

static struct conv conv_of(const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0], *w = n->inputs[1], *y = n->outputs[0];
    struct conv c = {.n = x->dims[0], .c = x->dims[1], .h = x->dims[2], .w = x->dims[3]};
    c.o = y->dims[1];
    c.oh = y->dims[2];
    c.ow = y->dims[3];
    c.kh = w->dims[2];
    c.kw = w->dims[3];
    c.group = graph_int(n, GRAPH_ATTR_GROUP, 1);
    c.cg = c.c / c.group;
    c.og = c.o / c.group;
    c.transpose = n->op == GRAPH_CONVT;
    for (int d = 0; d < 2; d++) {
        c.stride[d] = graph_ints_at(n, GRAPH_ATTR_STRIDES, d, 1);
        c.dilation[d] = graph_ints_at(n, GRAPH_ATTR_DILATIONS, d, 1);
        c.pad[d] = graph_ints_at(n, GRAPH_ATTR_PADS, d, 0);
    }
    return c;
}

// Input row (d = 0) or column (d = 1) that kernel position k of output position `out` meets; -1
// when it meets none.
static int64_t meets(const struct conv *c, int d, int64_t out, int64_t k) {
    int64_t size = d ? c->w : c->h, at;
    if (c->transpose) {
        at = out + c->pad[d] - k * c->dilation[d];
        if (at % c->stride[d]) return -1;
        at /= c->stride[d];
    } else {
        at = out * c->stride[d] - c->pad[d] + k * c->dilation[d];
    }
    return at >= 0 && at < size ? at : -1;
}

// Weights as [group][kh][kw][cg][og], from [O][cg][kh][kw], or from [C][og][kh][kw] when
// transposed.
// NOLINTBEGIN(bugprone-macro-parentheses): TYPE is a type
#define PACK(SUFFIX, TYPE)                                                                    \
    static TYPE *pack_##SUFFIX(struct arena *a, const struct conv *c, const TYPE *w) {        \
        TYPE *out = ARENA_ARRAY(a, TYPE, (size_t)(c->group * c->kh * c->kw * c->cg * c->og)); \
        TYPE *to = out;                                                                       \
        for (int64_t g = 0; g < c->group; g++)                                                \
            for (int64_t k = 0; k < c->kh * c->kw; k++)                                       \
                for (int64_t i = 0; i < c->cg; i++)                                           \
                    for (int64_t o = 0; o < c->og; o++) {                                     \
                        int64_t row = c->transpose ? (g * c->cg + i) * c->og + o              \
                                                   : (g * c->og + o) * c->cg + i;             \
                        *to++ = w[row * c->kh * c->kw + k];                                   \
                    }                                                                         \
        return out;                                                                           \
    }
// NOLINTEND(bugprone-macro-parentheses)
PACK(f32, float)
PACK(i64, int64_t)

// One output pixel: acc[O], all groups. x is one image, [H][W][C].
static void pixel_f32(const struct conv *c, const float *x, const float *w, int64_t p, int64_t q,
                      float *acc) {
    int64_t taps = c->kh * c->kw;
    for (int64_t t = 0; t < taps; t++) {
        int64_t i = meets(c, 0, p, t / c->kw), j = meets(c, 1, q, t % c->kw);
        if (i < 0 || j < 0) continue;
        const float *from = x + (i * c->w + j) * c->c;
        if (c->cg == 1 &&
            c->og == 1) { // depthwise: w is [C][taps], turned by the caller to [taps][C]
            eval_fma_each(acc, from, w + t * c->c, (size_t)c->c);
            continue;
        }
        for (int64_t g = 0; g < c->group; g++)
            eval_fma_rows(acc + g * c->og, from + g * c->cg, 1, w + (g * taps + t) * c->cg * c->og,
                          (size_t)c->og, (size_t)c->cg, (size_t)c->og);
    }
}

static void conv_f32(struct graph_eval *e, const struct conv *c) {
    const float *x = eval_floats(e, 0);
    const float *w = pack_f32(e->scratch, c, eval_floats(e, 1));
    if (c->cg == 1 && c->og == 1) w = transposed(e->scratch, w, c->group, c->kh * c->kw);
    float *acc = ARENA_ARRAY(e->scratch, float, (size_t)c->o);
    float *image = ARENA_ARRAY(e->scratch, float, (size_t)(c->c * c->h * c->w));
    for (int64_t b = 0; b < c->n; b++) {
        for (int64_t ch = 0; ch < c->c; ch++)
            for (int64_t s = 0; s < c->h * c->w; s++)
                image[s * c->c + ch] = x[(b * c->c + ch) * c->h * c->w + s];
        for (int64_t p = 0; p < c->oh; p++)
            for (int64_t q = 0; q < c->ow; q++) {
                memset(acc, 0, (size_t)c->o * sizeof *acc);
                pixel_f32(c, image, w, p, q, acc);
                for (int64_t o = 0; o < c->o; o++)
                    e->f[((b * c->o + o) * c->oh + p) * c->ow + q] = acc[o];
            }
    }
}

static int64_t pixel_i64(const struct conv *c, const int64_t *x, const int64_t *w, int64_t o,
                         int64_t p, int64_t q) {
    int64_t g = o / c->og, sum = 0;
    for (int64_t t = 0; t < c->kh * c->kw; t++) {
        int64_t i = meets(c, 0, p, t / c->kw), j = meets(c, 1, q, t % c->kw);
        if (i < 0 || j < 0) continue;
        for (int64_t ch = 0; ch < c->cg; ch++)
            sum = num_vop_i64(ISA_VOP_FMA, x[((g * c->cg + ch) * c->h + i) * c->w + j],
                              w[((g * c->kh * c->kw + t) * c->cg + ch) * c->og + o % c->og], sum);
    }
    return sum;
}

static void conv_i64(struct graph_eval *e, const struct conv *c) {
    const int64_t *x = eval_ints(e, 0);
    const int64_t *w = pack_i64(e->scratch, c, eval_ints(e, 1));
    int64_t *to = e->i;
    for (int64_t b = 0; b < c->n; b++)
        for (int64_t o = 0; o < c->o; o++)
            for (int64_t p = 0; p < c->oh; p++)
                for (int64_t q = 0; q < c->ow; q++)
                    *to++ = pixel_i64(c, x + b * c->c * c->h * c->w, w, o, p, q);
}

npu_status eval_conv(struct graph_eval *e) {
    struct conv c = conv_of(e->n);
    if (e->own_int)
        conv_i64(e, &c);
    else
        conv_f32(e, &c);
    return NULL;
}

npu_status eval_convt(struct graph_eval *e) {
    return eval_conv(e);
}

// ---- pooling ---------------------------------------------------------------------------------

struct window {
    int64_t lo[2], step[2], count[2]; // rows and columns inside the image
};

static struct window window_of(const struct graph_node *n, int64_t p, int64_t q) {
    const struct graph_value *x = n->inputs[0];
    struct window w;
    for (int d = 0; d < 2; d++) {
        int64_t size = x->dims[2 + d], kernel = graph_ints_at(n, GRAPH_ATTR_KERNEL, d, 1);
        int64_t start = (d ? q : p) * graph_ints_at(n, GRAPH_ATTR_STRIDES, d, 1) -
                        graph_ints_at(n, GRAPH_ATTR_PADS, d, 0);
        w.step[d] = graph_ints_at(n, GRAPH_ATTR_DILATIONS, d, 1);
        int64_t skip = start < 0 ? (-start + w.step[d] - 1) / w.step[d] : 0;
        w.lo[d] = start + skip * w.step[d];
        int64_t fit = w.lo[d] < size ? (size - 1 - w.lo[d]) / w.step[d] + 1 : 0;
        w.count[d] = kernel - skip < fit ? kernel - skip : fit;
        if (w.count[d] < 0) w.count[d] = 0;
    }
    return w;
}

// max: the largest inside the image, the lowest value where the window is wholly outside; avg:
// divided by the positions inside; avgpad: divided by the kernel's area.
static float pool_f32(const struct window *w, const float *x, int64_t width, bool max, float area) {
    float acc = max ? -num_float(NUM_INF_F32) : 0.0f;
    for (int64_t i = 0; i < w->count[0]; i++)
        for (int64_t j = 0; j < w->count[1]; j++) {
            float v = x[(w->lo[0] + i * w->step[0]) * width + w->lo[1] + j * w->step[1]];
            acc = max ? num_fn_max(acc, v) : acc + v;
        }
    return max ? acc : acc / area;
}

npu_status eval_pool(struct graph_eval *e) {
    const struct graph_node *n = e->n;
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    const char *mode = graph_word(n, GRAPH_ATTR_MODE, "");
    bool max = !strcmp(mode, "max"), avgpad = !strcmp(mode, "avgpad");
    float kernel = (float)(graph_ints_at(n, GRAPH_ATTR_KERNEL, 0, 1) *
                           graph_ints_at(n, GRAPH_ATTR_KERNEL, 1, 1));
    const float *from = eval_floats(e, 0);
    int64_t to = 0;
    for (int64_t image = 0; image < x->dims[0] * x->dims[1];
         image++, from += x->dims[2] * x->dims[3])
        for (int64_t p = 0; p < y->dims[2]; p++)
            for (int64_t q = 0; q < y->dims[3]; q++, to++) {
                struct window w = window_of(n, p, q);
                int64_t inside = w.count[0] * w.count[1];
                float r = pool_f32(&w, from, x->dims[3], max,
                                   avgpad ? kernel : (float)(inside ? inside : 1));
                if (e->own_int)
                    e->i[to] = num_f32_to_i64(r);
                else
                    e->f[to] = r;
            }
    return NULL;
}
