// SPDX-License-Identifier: Apache-2.0
//
// Reductions in the order of v.red: 64 strided partials, a halving tree, one combine. Pieces of a
// span may have any length: elements up to the next multiple of 64 one by one, whole groups of 64
// in a vectorisable loop, the rest one by one.

#include "isa/numeric.h"

static float combine_f32(int red, float p, float q) {
    switch ((enum isa_red)red) {
    case ISA_RED_SUM:
    case ISA_RED_SUMSQ: return p + q;
    case ISA_RED_MAX: return num_fn_max(p, q);
    case ISA_RED_MIN: return num_fn_min(p, q);
    case ISA_RED_PROD: return p * q;
    case ISA_RED_NONE:
    case ISA_RED_ARGMAX:
    case ISA_REDS: break;
    }
    return q;
}

static int64_t combine_i64(int red, int64_t p, int64_t q) {
    switch ((enum isa_red)red) {
    case ISA_RED_SUM:
    case ISA_RED_SUMSQ: return num_fn_iadd(p, q);
    case ISA_RED_MAX: return p > q ? p : q;
    case ISA_RED_MIN: return p < q ? p : q;
    case ISA_RED_PROD: return num_fn_imul(p, q);
    case ISA_RED_NONE:
    case ISA_RED_ARGMAX:
    case ISA_REDS: break;
    }
    return q;
}

void num_reduce_begin(struct num_reduce *r, int red) {
    r->red = red;
    r->count = 0;
}

// Is q larger, NaN counting as the largest?
static bool exceeds(float q, float p) {
    return q > p || (q != q && p == p);
}

static void add_one_f32(struct num_reduce *r, float x) {
    size_t j = (size_t)(r->count % 64);
    bool first = r->count < 64;
    if (r->red == ISA_RED_ARGMAX) {
        if (first || exceeds(x, r->f[j])) {
            r->f[j] = x;
            r->index[j] = (int64_t)r->count;
        }
    } else {
        float v = r->red == ISA_RED_SUMSQ ? x * x : x;
        r->f[j] = first ? v : combine_f32(r->red, r->f[j], v);
    }
    r->count++;
}

// The first 64 elements at once.
static void start_f32(struct num_reduce *r, const float *x) {
    for (size_t j = 0; j < 64; j++)
        r->f[j] = x[j];
    if (r->red == ISA_RED_SUMSQ)
        for (size_t j = 0; j < 64; j++)
            r->f[j] = x[j] * x[j];
    r->count = 64;
}

void num_reduce_add_f32(struct num_reduce *r, const float *x, size_t n) {
    if (r->count == 0 && n >= 64 && r->red != ISA_RED_ARGMAX) {
        start_f32(r, x);
        x += 64;
        n -= 64;
    }
    while (n > 0 && (r->count < 64 || r->count % 64 != 0)) {
        add_one_f32(r, *x++);
        n--;
    }
    if (r->red != ISA_RED_ARGMAX && n >= 64) {
        num_partials_f32(r->red, r->f, x, n / 64);
        r->count += n / 64 * 64;
        x += n / 64 * 64;
        n %= 64;
    }
    for (; n > 0; n--)
        add_one_f32(r, *x++);
}

void num_reduce_add_i64(struct num_reduce *r, const int64_t *x, size_t n) {
    for (size_t i = 0; i < n; i++, r->count++) {
        size_t j = (size_t)(r->count % 64);
        bool first = r->count < 64;
        if (r->red == ISA_RED_ARGMAX) {
            if (first || x[i] > r->i[j]) {
                r->i[j] = x[i];
                r->index[j] = (int64_t)r->count;
            }
        } else {
            int64_t v = r->red == ISA_RED_SUMSQ ? num_fn_imul(x[i], x[i]) : x[i];
            r->i[j] = first ? v : combine_i64(r->red, r->i[j], v);
        }
    }
}

// Partials that have a value.
static size_t present_partials(const struct num_reduce *r) {
    return r->count < 64 ? (size_t)r->count : 64;
}

// p[i] op p[i + w] for i < n; the common operations as loops of their own.
static void fold_f32(int red, float *p, size_t w, size_t n) {
    const float *q = p + w;
    if (red == ISA_RED_SUM || red == ISA_RED_SUMSQ)
        for (size_t i = 0; i < n; i++)
            p[i] += q[i];
    else if (red == ISA_RED_MAX)
        for (size_t i = 0; i < n; i++)
            p[i] = num_fn_max(p[i], q[i]);
    else
        for (size_t i = 0; i < n; i++)
            p[i] = combine_f32(red, p[i], q[i]);
}

float num_reduce_end_f32(struct num_reduce *r) {
    size_t present = present_partials(r);
    for (size_t w = 32; w > 0; w /= 2) {
        if (present <= w) continue;
        fold_f32(r->red, r->f, w, present - w);
        present = w;
    }
    return r->f[0];
}

int64_t num_reduce_end_i64(struct num_reduce *r) {
    size_t present = present_partials(r);
    for (size_t w = 32; w > 0; w /= 2) {
        for (size_t i = 0; i < w && i + w < present; i++)
            r->i[i] = combine_i64(r->red, r->i[i], r->i[i + w]);
        if (present > w) present = w;
    }
    return r->i[0];
}

int64_t num_reduce_end_index_f32(struct num_reduce *r) {
    size_t present = present_partials(r), best = 0;
    for (size_t i = 1; i < present; i++) {
        bool tie = !exceeds(r->f[i], r->f[best]) && !exceeds(r->f[best], r->f[i]);
        if (exceeds(r->f[i], r->f[best]) || (tie && r->index[i] < r->index[best])) best = i;
    }
    return r->index[best];
}

int64_t num_reduce_end_index_i64(struct num_reduce *r) {
    size_t present = present_partials(r), best = 0;
    for (size_t i = 1; i < present; i++) {
        bool tie = r->i[i] == r->i[best];
        if (r->i[i] > r->i[best] || (tie && r->index[i] < r->index[best])) best = i;
    }
    return r->index[best];
}

float num_combine_f32(int red, float running, float result) {
    return combine_f32(red, running, result);
}

int64_t num_combine_i64(int red, int64_t running, int64_t result) {
    return combine_i64(red, running, result);
}
