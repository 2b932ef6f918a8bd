// SPDX-License-Identifier: Apache-2.0
//
// Implicit im2col: the row of A that an output position of mm.conv sees is kh * kw taps of Cin
// elements, in the order (i, j, c); taps outside A are zeros here (and skipped by the caller).

#include "simulator/exec/val_mm.h"

// Place of a tap in A.
struct spot {
    int64_t y, x;
};

static struct spot place(const struct val_product *p, int64_t pos, int64_t tap) {
    const struct isa_MMCONV *v = p->conv;
    int64_t q = pos % p->d->size[1], row = pos / p->d->size[1] % p->d->size[2];
    int64_t i = tap / v->kw, j = tap % v->kw;
    struct spot s = {row * v->sh + i * v->dh - v->pad_top, q * v->sw + j * v->dw - v->pad_left};
    return s;
}

static bool inside(const struct val_product *p, struct spot s) {
    return s.y >= 0 && s.y < p->a->size[2] && s.x >= 0 && s.x < p->a->size[1];
}

bool val_conv_inside(const struct val_product *p, int64_t pos, int64_t tap) {
    return inside(p, place(p, pos, tap));
}

int64_t val_conv_at(const struct val_product *p, int64_t pos, int64_t tap) {
    struct spot s = place(p, pos, tap);
    return s.y * p->a->stride[2] + s.x * p->a->stride[1];
}

// Taps from `tap` on, at most `most`, that continue one another in A, all inside.
static int64_t joined(const struct val_product *p, int64_t pos, int64_t tap, int64_t most) {
    const struct isa_MMCONV *v = p->conv;
    const struct isa_pat *a = p->a;
    if (a->stride[0] != 1 || a->stride[1] * v->dw != a->size[0]) return 1;
    struct spot s = place(p, pos, tap);
    int64_t n = v->kw - tap % v->kw;
    int64_t room = (a->size[1] - 1 - s.x) / v->dw + 1;
    if (n > room) n = room;
    return n < most ? n : most;
}

void val_conv_pack(const struct val_product *p, int i, int64_t pos, int64_t k0, int64_t kc) {
    const struct isa_pat *a = p->a;
    int64_t cin = a->size[0], end = k0 + kc;
    for (int64_t k = k0; k < end;) {
        int64_t tap = k / cin, c = k % cin, taps = 1;
        bool in = val_conv_inside(p, pos, tap);
        if (in) taps = joined(p, pos, tap, (end - 1) / cin - tap + 1);
        int64_t n = (tap + taps) * cin - k;
        if (n > end - k) n = end - k;
        if (in)
            val_product_pack_a(p, i, k - k0, val_conv_at(p, pos, tap) + c * a->stride[0],
                               a->stride[0], n);
        else
            val_product_zero_a(p, i, k - k0, n);
        k += n;
    }
}
