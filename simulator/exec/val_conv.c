// SPDX-License-Identifier: Apache-2.0
//
// Implicit im2col: the row of A that an output position of mm.conv sees is kh * kw taps of Cin
// elements, in the order (i, j, c). In kernel row i the taps j0 .. j1 are inside A: one run of
// memory when A's columns are packed and not dilated. Taps outside are zeros here (and skipped by
// the caller).

#include "simulator/exec/val_mm.h"

// Taps t with 0 <= start + t * step < size, of `taps`: lo <= t < hi.
static void inside_range(int64_t start, int64_t step, int64_t size, int64_t taps, int64_t *lo,
                         int64_t *hi) {
    *lo = start >= 0 ? 0 : (step - 1 - start) / step;
    *hi = start >= size ? 0 : (size - 1 - start) / step + 1;
    if (*hi > taps) *hi = taps;
    if (*lo > *hi) *lo = *hi;
}

struct val_conv_row val_conv_row(const struct val_product *p, int64_t pos) {
    const struct isa_MMCONV *v = p->conv;
    int64_t q = pos % p->d->size[1], line = pos / p->d->size[1] % p->d->size[2];
    struct val_conv_row r = {.y = line * v->sh - v->pad_top, .x = q * v->sw - v->pad_left};
    inside_range(r.y, v->dh, p->a->size[2], v->kh, &r.i0, &r.i1);
    inside_range(r.x, v->dw, p->a->size[1], v->kw, &r.j0, &r.j1);
    return r;
}

bool val_conv_inside(const struct val_product *p, const struct val_conv_row *row, int64_t tap) {
    int64_t i = tap / p->conv->kw, j = tap % p->conv->kw;
    return i >= row->i0 && i < row->i1 && j >= row->j0 && j < row->j1;
}

int64_t val_conv_at(const struct val_product *p, const struct val_conv_row *row, int64_t tap) {
    int64_t i = tap / p->conv->kw, j = tap % p->conv->kw;
    return (row->y + i * p->conv->dh) * p->a->stride[2] +
           (row->x + j * p->conv->dw) * p->a->stride[1];
}

// The part of [from, to) that lies in [lo, hi): start, and its length.
static int64_t overlap(int64_t from, int64_t to, int64_t lo, int64_t hi, int64_t *start) {
    *start = from > lo ? from : lo;
    int64_t end = to < hi ? to : hi;
    return end > *start ? end - *start : 0;
}

static void zero(const struct val_product *p, int i, int64_t from, int64_t to, int64_t k0,
                 int64_t end) {
    int64_t start, n = overlap(from, to, k0, end, &start);
    if (n) val_product_zero_a(p, i, start - k0, n);
}

// Elements from .. to of a kernel row, which start at the tap at offset `at` of A.
static void read(const struct val_product *p, int i, int64_t from, int64_t to, int64_t at,
                 int64_t k0, int64_t end) {
    int64_t start, n = overlap(from, to, k0, end, &start), step = p->a->stride[0];
    if (n) val_product_pack_a(p, i, start - k0, at + (start - from) * step, step, n);
}

void val_conv_pack(const struct val_product *p, int i, const struct val_conv_row *row, int64_t k0,
                   int64_t kc) {
    const struct isa_pat *a = p->a;
    const struct isa_MMCONV *v = p->conv;
    int64_t cin = a->size[0], line = v->kw * cin, end = k0 + kc;
    bool joined = a->stride[0] == 1 && a->stride[1] * v->dw == cin;
    for (int64_t ki = k0 / line; ki * line < end; ki++) {
        int64_t from = ki * line, lo = from + row->j0 * cin, hi = from + row->j1 * cin;
        if (ki < row->i0 || ki >= row->i1) lo = hi = from;
        zero(p, i, from, lo, k0, end);
        zero(p, i, hi, from + line, k0, end);
        if (lo == hi) continue;
        int64_t at = val_conv_at(p, row, ki * v->kw + row->j0);
        if (joined) {
            read(p, i, lo, hi, at, k0, end);
            continue;
        }
        for (int64_t k = lo; k < hi; k += cin, at += v->dw * a->stride[1])
            read(p, i, k, k + cin, at, k0, end);
    }
}
