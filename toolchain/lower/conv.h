// SPDX-License-Identifier: Apache-2.0
// The core of convolutions on the matrix engine.
#ifndef NPU_LOWER_CONV_H
#define NPU_LOWER_CONV_H

#include "toolchain/lower/internal.h"

// One plain convolution whose results lie os_h rows and os_w columns apart in the output: a
// convolution has one phase, a transposed one has one per position modulo its strides.
//   out row  y = os_h * u + ry - crop_h;  input row of tap a: u * sh + a * dh - pt;  weight row i0
//   + a * istep
// and the same across.
struct conv_phase {
    int64_t kh, kw, dh, dw, pt, pl;
    int64_t i0, istep, j0, jstep;
    int64_t ry, rx;
    bool zero;    // no tap reaches these outputs: one tap of weight 0
    int64_t k_at; // first k of its weights among all phases
};

struct lower_conv {
    int64_t batch, h, w, p, q;
    int64_t group, cg, og; // groups; input and output channels of one
    int64_t sh, sw;        // strides of the input
    int64_t os_h, os_w, crop_h, crop_w;
    int64_t u0, u1, v0, v1; // range of u and v
    int nphase;
    struct conv_phase *phase;
    int merge;                // phases of one form, side by side in one product's columns; else 1
    int64_t k_total;          // sum over phases of kh * kw * cg
    struct lower_view x, out; // over (n, c, h, w) and (n, o, p, q)
    struct lower_epilogue e;  // over (n, o, p, q)
    const void *data; // weight element of (group, o in group, c in group, i, j) at sum(index * ws)
    const char *data_name;
    enum isa_dtype data_dtype, dtype; // of those elements, and of the packed ones
    int64_t ws[5];
};

enum { CONV_N, CONV_C, CONV_Y, CONV_X, CONV_RANK }; // dimensions of x and out

struct conv_tile {
    int64_t tu, tv, to, tg; // rows and columns in u and v, output channels, groups
    int64_t ti, tj,
        tc; // taps and channels of one k chunk; chunked: the whole k does not stay on chip
    bool chunked, o_outer, whole_x, whole_w;
    int psum_slots;
    double cycles, score; // score: cycles, and a charge for what they do not show
    int64_t bytes;
};
struct conv_streams {
    struct lower_stream x, w, out, extra[3];
};

// Packed weights [group][o tile][k][to]: strides over (group, o tile, k, o in tile); buf not set.
struct lower_view conv_packed(const struct lower_conv *c, int64_t to);
void conv_streams_init(const struct lower *L, const struct lower_conv *c,
                       const struct lower_view *w, const struct conv_tile *t,
                       struct conv_streams *s);
// Input rows (axis 0) or columns (1) that some taps of a phase need for results `u`: clipped to the
// input, at least one.
struct lower_range conv_needs(const struct lower_conv *c, const struct conv_phase *ph, int axis,
                              struct lower_range u, struct lower_range taps);
// True when chunks of one kernel row load only the input rows that its stride meets: the stream of
// x then has a fifth dimension, the row modulo the stride, and CONV_Y counts whole strides.
bool conv_stepped(const struct lower_conv *c, const struct conv_tile *t);
npu_status conv_choose(const struct lower *L, const struct lower_conv *c, struct conv_tile *out);
npu_status lower_conv_run(struct lower *L, const struct lower_conv *c);

// Depthwise convolutions and pooling on the vector engine (window.c).
npu_status lower_depthwise(struct lower *L, const struct graph_node *n);

#endif
