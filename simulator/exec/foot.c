// SPDX-License-Identifier: Apache-2.0
// Footprints of patterns.
//
// foot_init: drop dimensions of size 1 and stride 0; a negative stride starts at its other end;
// sort by stride; while the innermost stride is within the run, the run grows over that dimension;
// a dimension that continues the one inside it joins it. What is left are gaps: each run is a
// maximal piece for every pattern whose strides nest.
//
// foot_hit: from the outermost dimension inwards, only the indices whose sub-box meets [lo, hi) are
// visited: for nested strides that is at most two per level.
#include "simulator/exec/foot.h"

#define FOOT_LIMIT ((int64_t)1 << 60)

// size * stride without leaving the limit; sizes are at least 1.
static bool foot_extent(int64_t stride, int64_t count, int64_t *out) {
    int64_t magnitude = stride < 0 ? -stride : stride;
    if (count > 0 && magnitude > FOOT_LIMIT / count) return false;
    *out = stride * count;
    return true;
}

void foot_run(struct exec_foot *f, int64_t lo, int64_t bytes) {
    *f = (struct exec_foot){.lo = lo, .hi = lo + bytes, .run = bytes};
}

// Dimensions that move, strides in elements made positive and ascending. Returns their number, -1
// beyond the limit.
static int foot_sort(const struct isa_pat *p, int64_t *size, int64_t *stride, int64_t *shift) {
    int n = 0;
    *shift = 0;
    for (int d = 0; d < ISA_DIMS; d++) {
        int64_t s = p->stride[d], extent;
        if (p->size[d] <= 1 || s == 0) continue;
        if (!foot_extent(s, p->size[d], &extent)) return -1;
        if (s < 0) {
            *shift += s * (p->size[d] - 1);
            s = -s;
        }
        int at = n++;
        for (; at > 0 && stride[at - 1] > s; at--) {
            stride[at] = stride[at - 1];
            size[at] = size[at - 1];
        }
        stride[at] = s;
        size[at] = p->size[d];
    }
    return n;
}

bool foot_init(struct exec_foot *f, const struct isa_pat *p) {
    int64_t size[ISA_DIMS], stride[ISA_DIMS], shift;
    const int bits = isa_dtype_bits((int)p->dtype);
    int n = foot_sort(p, size, stride, &shift);
    if (n < 0 || p->base > FOOT_LIMIT || p->base < -FOOT_LIMIT || shift < -FOOT_LIMIT / 8)
        return false;
    int64_t run = bits / 8;
    int from = 0;
    if (bits == 4) { // packed along one dimension of stride 1, everything else by whole bytes
        run = 1;
        if (n > 0 && stride[0] == 1) {
            run = (size[0] + 1) / 2;
            from = 1;
        }
        if (shift % 2 != 0) return false;
        for (int d = from; d < n; d++)
            if (stride[d] % 2 != 0) return false;
    }
    *f = (struct exec_foot){.run = run};
    for (int d = from; d < n; d++) {
        int64_t bytes, extent;
        if (!foot_extent(stride[d], bits, &bytes) || !foot_extent(bytes / 8, size[d], &extent))
            return false;
        bytes /= 8;
        if (f->dims == 0 && bytes <= f->run) {
            f->run += bytes * (size[d] - 1);
        } else if (f->dims > 0 && bytes == f->stride[f->dims - 1] * f->size[f->dims - 1]) {
            f->size[f->dims - 1] *= size[d];
        } else {
            f->size[f->dims] = size[d];
            f->stride[f->dims++] = bytes;
        }
    }
    f->lo = p->base + shift * bits / 8;
    f->hi = f->lo + f->run;
    for (int d = 0; d < f->dims; d++)
        f->hi += f->stride[d] * (f->size[d] - 1);
    return true;
}

int64_t foot_bytes(const struct exec_foot *f) {
    int64_t n = f->run;
    for (int d = 0; d < f->dims; d++)
        n *= f->size[d];
    return n;
}

void foot_first(const struct exec_foot *f, struct exec_foot_walk *w) {
    *w = (struct exec_foot_walk){.lo = f->lo, .hi = f->lo + f->run};
}

bool foot_next(const struct exec_foot *f, struct exec_foot_walk *w) {
    for (int d = 0; d < f->dims; d++) {
        w->lo += f->stride[d];
        if (++w->index[d] < f->size[d]) {
            w->hi = w->lo + f->run;
            return true;
        }
        w->lo -= f->stride[d] * f->size[d];
        w->index[d] = 0;
    }
    return false;
}

// The same for the part of `f` made of dimensions below `dims`, whose box starts at `base` and is
// `extent` bytes long.
static int64_t foot_hit_in(const struct exec_foot *f, int dims, int64_t base, int64_t extent,
                           int64_t lo, int64_t hi) {
    if (base >= hi || base + extent <= lo) return -1;
    if (dims == 0) return base > lo ? base : lo;
    const int64_t stride = f->stride[dims - 1], count = f->size[dims - 1];
    const int64_t inner = extent - stride * (count - 1);
    int64_t first = lo - base - inner + 1 > 0 ? (lo - base - inner + 1 + stride - 1) / stride : 0;
    int64_t last = (hi - 1 - base) / stride;
    if (last > count - 1) last = count - 1;
    for (int64_t i = first; i <= last; i++) {
        int64_t at = foot_hit_in(f, dims - 1, base + i * stride, inner, lo, hi);
        if (at >= 0) return at;
    }
    return -1;
}

int64_t foot_hit(const struct exec_foot *f, int64_t lo, int64_t hi) {
    return foot_hit_in(f, f->dims, f->lo, f->hi - f->lo, lo, hi);
}

static int64_t foot_runs(const struct exec_foot *f) {
    int64_t n = 1;
    for (int d = 0; d < f->dims; d++)
        n *= f->size[d];
    return n;
}

int64_t foot_overlap(const struct exec_foot *a, const struct exec_foot *b) {
    if (a->lo >= b->hi || b->lo >= a->hi) return -1;
    if (a->dims == 0) return foot_hit(b, a->lo, a->hi);
    if (b->dims == 0) return foot_hit(a, b->lo, b->hi);
    if (foot_runs(a) > foot_runs(b)) {
        const struct exec_foot *t = a;
        a = b;
        b = t;
    }
    struct exec_foot_walk w;
    foot_first(a, &w);
    do {
        if (w.hi <= b->lo || w.lo >= b->hi) continue;
        int64_t at = foot_hit(b, w.lo, w.hi);
        if (at >= 0) return at;
    } while (foot_next(a, &w));
    return -1;
}

bool foot_repeats(const struct isa_pat *p) {
    int64_t size[ISA_DIMS], stride[ISA_DIMS], shift;
    for (int d = 0; d < ISA_DIMS; d++)
        if (p->size[d] > 1 && p->stride[d] == 0) return true;
    int n = foot_sort(p, size, stride, &shift);
    if (n < 0) return true;
    int64_t extent = 1; // elements from the first to the last of the dimensions seen so far
    for (int d = 0; d < n; d++) {
        if (stride[d] < extent) return true;
        extent += stride[d] * (size[d] - 1);
    }
    return false;
}
