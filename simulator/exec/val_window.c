// SPDX-License-Identifier: Apache-2.0
//
// v.dw and v.pool: windows of kh x kw positions sliding over an image tile, one channel at a time.
// Outputs are taken in row-major order (c, q, p) in blocks; within a block, every run of channels
// of one output position accumulates its taps in ascending (i, j), then the chain finishes the
// block.

#include "simulator/exec/val_chain.h"

#include <stdio.h>

struct window {
    const struct val_ops *ops;
    const struct isa_pat *image, *out, *weights; // weights: NULL for v.pool
    const uint8_t *image_base, *weights_base;
    int64_t kh, kw, sh, sw, dh, dw, pad_top, pad_left;
    int64_t kind; // v.pool's
};

static void window_init(struct window *w, const struct val_mem *mem) {
    w->ops = val_ops();
    w->image_base = val_at(mem, w->image);
    if (w->weights) w->weights_base = val_at(mem, w->weights);
}

// Adds the taps of n channels from c on of output position (q, p) to acc; returns how many there
// were.
static int64_t accumulate(const struct window *w, int64_t c, int64_t q, int64_t p, float *acc,
                          size_t n) {
    float x[VAL_BLOCK], f[VAL_BLOCK], sum[VAL_BLOCK];
    const struct isa_pat *im = w->image;
    int64_t taps = 0;
    for (int64_t i = 0; i < w->kh; i++) {
        int64_t y = p * w->sh + i * w->dh - w->pad_top;
        if (y < 0 || y >= im->size[2]) continue;
        for (int64_t j = 0; j < w->kw; j++) {
            int64_t col = q * w->sw + j * w->dw - w->pad_left;
            if (col < 0 || col >= im->size[1]) continue;
            int64_t at = y * im->stride[2] + col * im->stride[1] + c * im->stride[0];
            float *to = !w->weights && taps == 0 ? acc : x;
            w->ops->read_f32((int)im->dtype, w->image_base, at, im->stride[0], to, n);
            taps++;
            if (to == acc) continue; // the first of a pool starts it
            if (w->weights) {
                const struct isa_pat *k = w->weights;
                at = (i * w->kw + j) * k->stride[1] + c * k->stride[0];
                w->ops->read_f32((int)k->dtype, w->weights_base, at, k->stride[0], f, n);
                w->ops->vops_f32(ISA_VOP_FMA, sum, x, f, acc, n);
            } else {
                int op = w->kind == ISA_POOL_MAX ? ISA_VOP_MAX : ISA_VOP_ADD;
                w->ops->vops_f32(op, sum, acc, x, NULL, n);
            }
            for (size_t e = 0; e < n; e++)
                acc[e] = sum[e];
        }
    }
    return taps;
}

// Divides n sums by their count.
static void average(const struct window *w, float *acc, int64_t taps, size_t n) {
    if (w->kind != ISA_POOL_AVG && w->kind != ISA_POOL_AVGPAD) return;
    float count = (float)(w->kind == ISA_POOL_AVG ? taps : w->kh * w->kw);
    for (size_t e = 0; e < n; e++)
        acc[e] /= count;
}

// All outputs. False, with *fault filled, at a pool's empty window.
static bool run(const struct window *w, struct val_chain *chain, struct val_fault *fault) {
    float acc[VAL_BLOCK];
    const struct isa_pat *out = w->out;
    int64_t elems = isa_pat_elems(out), channels = out->size[0];
    for (int64_t pos = 0; pos < elems;) {
        int64_t start = pos;
        size_t have = 0;
        while (pos < elems && have < VAL_BLOCK) {
            int64_t c = pos % channels, q = pos / channels % out->size[1];
            int64_t p = pos / channels / out->size[1] % out->size[2];
            int64_t room = VAL_BLOCK - (int64_t)have;
            size_t n = (size_t)(channels - c < room ? channels - c : room);
            for (size_t e = 0; e < n; e++)
                acc[have + e] = 0.0f;
            int64_t taps = accumulate(w, c, q, p, acc + have, n);
            if (!w->weights && taps == 0) {
                snprintf(
                    fault->text, sizeof fault->text,
                    "the pooling window of output row %lld, column %lld lies wholly in the padding",
                    (long long)p, (long long)q);
                fault->element = pos;
                fault->value = 0;
                return false;
            }
            if (!w->weights) average(w, acc + have, taps, n);
            have += n;
            pos += (int64_t)n;
        }
        val_chain_block(chain, acc, start, have);
    }
    return true;
}

void val_vdw(const struct val_mem *mem, const struct isa_insn *in) {
    const struct isa_VDW *v = &in->u.VDW;
    const struct isa_pat *const inputs[3] = {NULL, &v->in1, &v->in2};
    struct val_chain chain;
    struct window w = {.image = &v->in0,
                       .out = &v->out,
                       .weights = &v->w,
                       .kh = v->kh,
                       .kw = v->kw,
                       .sh = v->sh,
                       .sw = v->sw,
                       .dh = v->dh,
                       .dw = v->dw,
                       .pad_top = v->pad_top,
                       .pad_left = v->pad_left};
    window_init(&w, mem);
    val_chain_init(&chain, mem, &v->chain, &v->out, inputs, &v->out);
    chain.integer = false;
    run(&w, &chain, NULL);
}

bool val_vpool(const struct val_mem *mem, const struct isa_insn *in, struct val_fault *fault) {
    const struct isa_VPOOL *v = &in->u.VPOOL;
    const struct isa_pat *const inputs[3] = {NULL, &v->in1, &v->in2};
    struct val_chain chain;
    struct window w = {.image = &v->in0,
                       .out = &v->out,
                       .kind = v->kind,
                       .kh = v->kh,
                       .kw = v->kw,
                       .sh = v->sh,
                       .sw = v->sw,
                       .dh = v->dh,
                       .dw = v->dw,
                       .pad_top = v->pad_top,
                       .pad_left = v->pad_left};
    window_init(&w, mem);
    val_chain_init(&chain, mem, &v->chain, &v->out, inputs, &v->out);
    chain.integer = false;
    return run(&w, &chain, fault);
}
