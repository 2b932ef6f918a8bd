// SPDX-License-Identifier: Apache-2.0
// Convolution nodes: from the graph's attributes to the core of conv.c.
//
//   depthwise                          window.c
//   1x1 over contiguous pixels         a matrix product (matmul.c)
//   transposed                         one phase per output position modulo the strides; the taps
//   that reach it, reversed. When
//                                      all phases read the same inputs they are columns of one
//                                      product
#include "toolchain/lower/conv.h"
#include "toolchain/lower/matmul.h"

#include <string.h>

static void shapes(const struct lower *L, const struct graph_node *n, struct lower_conv *c) {
    const struct graph_value *x = n->inputs[0], *w = n->inputs[1], *out = n->outputs[0];
    memset(c, 0, sizeof *c);
    c->batch = x->dims[0], c->h = x->dims[2], c->w = x->dims[3];
    c->p = out->dims[2], c->q = out->dims[3];
    c->group = graph_int(n, GRAPH_ATTR_GROUP, 1);
    c->cg = x->dims[1] / c->group;
    c->og = out->dims[1] / c->group;
    c->sh = c->sw = c->os_h = c->os_w = 1;
    c->merge = 1;
    c->x = L->place[x->id];
    c->out = L->place[out->id];
    c->e = lower_epilogue_of(L, n);
    c->data = w->data;
    c->data_name = w->name;
    c->data_dtype = graph_data_dtype(w);
    c->dtype = w->dtype;
}

static npu_status constant_weights(const struct graph_node *n) {
    if (n->inputs[1]->data) return NULL;
    return npu_fail(UNSUPPORTED,
                    "weights '%s' are computed by the model; constant weights are needed",
                    n->inputs[1]->name);
}

// A 1x1 convolution over contiguous pixels is a matrix product.
static bool as_matmul(const struct lower_conv *c, const struct conv_phase *ph,
                      struct lower_mm *mm) {
    if (c->group != 1 || ph->kh != 1 || ph->kw != 1 || c->sh != 1 || c->sw != 1 || c->p != c->h ||
        c->q != c->w || ph->pt || ph->pl)
        return false;
    const struct lower_view *views[] = {&c->x, &c->out, &c->e.in[1], &c->e.in[2]};
    struct lower_view *to[] = {&mm->a, &mm->out, &mm->e.in[1], &mm->e.in[2]};
    memset(mm, 0, sizeof *mm);
    mm->e = c->e;
    for (int i = 0; i < 4; i++) {
        const int64_t *s = views[i]->stride;
        if (i >= 2 && !c->e.has[i - 1]) continue;
        if (c->w > 1 && c->h > 1 && s[CONV_Y] != s[CONV_X] * c->w) return false;
        *to[i] = *views[i];
        int64_t strides[4] = {s[CONV_N], s[CONV_Y], s[CONV_X], s[CONV_C]};
        memcpy(to[i]->stride, strides, sizeof strides);
    }
    mm->nbatch = 2;
    mm->batch[0] = c->batch;
    mm->batch[1] = c->h;
    mm->m = c->w;
    mm->k = c->cg;
    mm->n = c->og;
    mm->b = (struct lower_view){.buf = -1, .dtype = c->dtype, .stride = {0, 0, c->ws[2], c->ws[1]}};
    mm->data = c->data;
    mm->data_dtype = c->data_dtype;
    mm->data_name = c->data_name;
    return true;
}

npu_status lower_conv(struct lower *L, const struct graph_node *n) {
    struct lower_conv c;
    NPU_TRY(constant_weights(n));
    shapes(L, n, &c);
    if (c.group > 1 && c.cg == 1) return lower_depthwise(L, n);
    int64_t kh = n->inputs[1]->dims[2], kw = n->inputs[1]->dims[3];
    struct conv_phase ph = {.kh = kh, .kw = kw, .istep = 1, .jstep = 1};
    ph.dh = graph_ints_at(n, GRAPH_ATTR_DILATIONS, 0, 1),
    ph.dw = graph_ints_at(n, GRAPH_ATTR_DILATIONS, 1, 1);
    ph.pt = graph_ints_at(n, GRAPH_ATTR_PADS, 0, 0),
    ph.pl = graph_ints_at(n, GRAPH_ATTR_PADS, 1, 0);
    c.sh = graph_ints_at(n, GRAPH_ATTR_STRIDES, 0, 1),
    c.sw = graph_ints_at(n, GRAPH_ATTR_STRIDES, 1, 1);
    c.nphase = 1;
    c.phase = &ph;
    c.u1 = c.p, c.v1 = c.q;
    c.k_total = kh * kw * c.cg;
    int64_t ws[5] = {c.og * c.k_total, c.k_total, kh * kw, kw, 1};
    memcpy(c.ws, ws, sizeof ws);
    // One tap and a stride: only the rows, or pixels, that count are loaded.
    if (kh == 1 && ph.pt == 0 && c.sh > 1 && (c.p - 1) * c.sh < c.h) {
        c.x.stride[CONV_Y] *= c.sh;
        c.h = c.p;
        c.sh = 1;
    }
    if (kw == 1 && ph.pl == 0 && c.sw > 1 && (c.q - 1) * c.sw < c.w && c.x.stride[CONV_C] == 1 &&
        c.cg * lower_dtype_bytes(c.x.dtype) >= L->hw->dma_burst_bytes) {
        c.x.stride[CONV_X] *= c.sw;
        c.w = c.q;
        c.sw = 1;
    }
    if (c.sh > 256 || c.sw > 256 || ph.dh > 256 || ph.dw > 256)
        return npu_fail(UNSUPPORTED, "strides %lldx%lld, dilations %lldx%lld: at most 256 each",
                        (long long)c.sh, (long long)c.sw, (long long)ph.dh, (long long)ph.dw);
    struct lower_mm mm;
    if (as_matmul(&c, &ph, &mm)) {
        lower_kernel(L, n, "conv_1x1");
        return lower_mm_run(L, &mm);
    }
    lower_kernel(L, n, "conv_nhwc");
    return lower_conv_run(L, &c);
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

// Taps i of [0, k) with i * d = s * q + r: the first and its q, their distances, how many.
struct tap_set {
    int64_t first, step, count, q, dq;
};

static struct tap_set taps(int64_t k, int64_t s, int64_t d, int64_t r) {
    int64_t g = gcd(s, d);
    struct tap_set t = {.step = s / g, .dq = d / g};
    for (t.first = 0; t.first < k && t.first < s; t.first++) {
        if (t.first * d % s != r) continue;
        t.q = (t.first * d - r) / s;
        t.count = (k - 1 - t.first) / t.step + 1;
        return t;
    }
    return t;
}

static struct conv_phase phase_of(const struct tap_set *a, const struct tap_set *b, int64_t ry,
                                  int64_t rx, int64_t k_at) {
    struct conv_phase none = {
        .kh = 1, .kw = 1, .dh = 1, .dw = 1, .ry = ry, .rx = rx, .zero = true, .k_at = k_at};
    if (!a->count || !b->count) return none;
    return (struct conv_phase){.kh = a->count,
                               .kw = b->count,
                               .dh = a->dq,
                               .dw = b->dq,
                               .pt = a->q + (a->count - 1) * a->dq,
                               .pl = b->q + (b->count - 1) * b->dq,
                               .i0 = a->first + (a->count - 1) * a->step,
                               .istep = -a->step,
                               .j0 = b->first + (b->count - 1) * b->step,
                               .jstep = -b->step,
                               .ry = ry,
                               .rx = rx,
                               .k_at = k_at};
}

// Phases that read the same inputs (the kernel is a multiple of the strides) are one product with
// all their channels as columns.
static void merge(const struct lower *L, struct lower_conv *c) {
    const struct conv_phase *a = &c->phase[0];
    if (c->nphase == 1 || a->zero || c->nphase * c->og > 4 * L->hw->mxu_cols) return;
    for (int i = 1; i < c->nphase; i++) {
        const struct conv_phase *b = &c->phase[i];
        if (b->zero || a->kh != b->kh || a->kw != b->kw || a->pt != b->pt || a->pl != b->pl ||
            a->dh != b->dh || a->dw != b->dw)
            return;
    }
    c->merge = c->nphase;
    c->k_total = a->kh * a->kw * c->cg;
    for (int i = 0; i < c->nphase; i++)
        c->phase[i].k_at = 0;
}

npu_status lower_convt(struct lower *L, const struct graph_node *n) {
    struct lower_conv c;
    NPU_TRY(constant_weights(n));
    shapes(L, n, &c);
    int64_t kh = n->inputs[1]->dims[2], kw = n->inputs[1]->dims[3];
    int64_t dh = graph_ints_at(n, GRAPH_ATTR_DILATIONS, 0, 1),
            dw = graph_ints_at(n, GRAPH_ATTR_DILATIONS, 1, 1);
    c.os_h = graph_ints_at(n, GRAPH_ATTR_STRIDES, 0, 1),
    c.os_w = graph_ints_at(n, GRAPH_ATTR_STRIDES, 1, 1);
    c.crop_h = graph_ints_at(n, GRAPH_ATTR_PADS, 0, 0),
    c.crop_w = graph_ints_at(n, GRAPH_ATTR_PADS, 1, 0);
    c.u0 = c.crop_h / c.os_h, c.u1 = lower_ceil(c.crop_h + c.p, c.os_h);
    c.v0 = c.crop_w / c.os_w, c.v1 = lower_ceil(c.crop_w + c.q, c.os_w);
    int64_t ws[5] = {c.cg * c.og * kh * kw, kh * kw, c.og * kh * kw, kw, 1};
    memcpy(c.ws, ws, sizeof ws);
    c.phase = ARENA_ARRAY(L->a, struct conv_phase, (size_t)(c.os_h * c.os_w));
    for (int64_t ry = 0; ry < c.os_h; ry++)
        for (int64_t rx = 0; rx < c.os_w; rx++) {
            struct tap_set a = taps(kh, c.os_h, dh, ry), b = taps(kw, c.os_w, dw, rx);
            struct conv_phase *ph = &c.phase[c.nphase++];
            *ph = phase_of(&a, &b, ry, rx, c.k_total);
            c.k_total += ph->kh * ph->kw * c.cg;
        }
    merge(L, &c);
    lower_kernel(L, n, c.merge > 1 ? "convt_merged" : "convt_phases");
    return lower_conv_run(L, &c);
}
