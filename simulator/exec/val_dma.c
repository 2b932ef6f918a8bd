// SPDX-License-Identifier: Apache-2.0
//
// dma.copy, dma.fill, dma.gather: elements between memories in row-major order, a run of the
// innermost dimension at a time. Dimensions that continue one another on both sides are merged
// first, so a plain block is one memmove. Strided runs in DRAM are translated element by element:
// only the bytes touched are asked for.

#include "isa/numeric.h"
#include "simulator/exec/val_int.h"

#include <stdio.h>
#include <string.h>

// One side of a transfer.
struct side {
    const struct val_mem *mem;
    uint8_t *chip; // element 0 on chip; NULL: DRAM, at `base`
    int64_t base;
    bool write;
    int dtype, bits;
};

static struct side side_of(const struct val_mem *mem, const struct isa_pat *p, bool write) {
    struct side s = {mem, NULL, p->base, write, (int)p->dtype, isa_dtype_bits((int)p->dtype)};
    if (p->space != ISA_DRAM) s.chip = val_at(mem, p);
    return s;
}

// Address of n consecutive elements from element `first` on; *index is the first one's index there
// (not 0 for the high nibble of a byte).
static uint8_t *reach(const struct side *s, int64_t first, int64_t n, int64_t *index) {
    int64_t bit = first * s->bits;
    *index = s->bits == 4 ? first & 1 : 0;
    if (s->chip) return s->chip + (bit >> 3);
    int64_t bytes = (*index * s->bits + n * s->bits + 7) / 8;
    return s->mem->dram(s->mem->dram_ctx, (uint64_t)(s->base + (bit >> 3)), (uint64_t)bytes,
                        s->write);
}

// Both sides' dimensions, merged.
struct walk {
    int dims;
    int64_t size[ISA_DIMS], src[ISA_DIMS], dst[ISA_DIMS];
};

static struct walk merge(const struct isa_pat *sizes, const int64_t *src, const int64_t *dst) {
    struct walk w = {0};
    for (int d = 0; d < ISA_DIMS; d++) {
        if (sizes->size[d] == 1) continue;
        int last = w.dims - 1;
        if (last >= 0 && src[d] == w.src[last] * w.size[last] &&
            dst[d] == w.dst[last] * w.size[last]) {
            w.size[last] *= sizes->size[d];
        } else {
            w.size[w.dims] = sizes->size[d];
            w.src[w.dims] = src[d];
            w.dst[w.dims++] = dst[d];
        }
    }
    if (w.dims == 0) w.size[w.dims++] = 1;
    return w;
}

// Element `src` to element `dst`: the bits of equal dtypes, else as num_convert.
static void copy_one(const struct side *from, const struct side *to, int64_t src, int64_t dst) {
    int64_t si, di;
    uint8_t *s = reach(from, src, 1, &si), *d = reach(to, dst, 1, &di);
    if (from->dtype == to->dtype && from->bits >= 8)
        memmove(d, s, (size_t)from->bits / 8);
    else if (isa_dtype_is_float(from->dtype) || isa_dtype_is_float(to->dtype))
        num_store_f32(to->dtype, d, di, num_load_f32(from->dtype, s, si));
    else
        num_store_i64(to->dtype, d, di, num_load_i64(from->dtype, s, si));
}

// n elements with the given strides, at most VAL_BLOCK of them, through registers.
static void copy_block(const struct side *from, const struct side *to, int64_t src, int64_t dst,
                       int64_t src_stride, int64_t dst_stride, int64_t n) {
    const struct val_ops *ops = val_ops();
    int64_t si, di;
    // One address for the whole run: on chip, or contiguous.
    uint8_t *s = reach(from, src, src_stride == 1 ? n : 1, &si);
    uint8_t *d = reach(to, dst, dst_stride == 1 ? n : 1, &di);
    if (isa_dtype_is_float(from->dtype) || isa_dtype_is_float(to->dtype)) {
        float block[VAL_BLOCK];
        ops->read_f32(from->dtype, s, si, src_stride, block, (size_t)n);
        ops->write_f32(to->dtype, d, di, dst_stride, block, (size_t)n);
    } else {
        int64_t block[VAL_BLOCK];
        ops->read_i64(from->dtype, s, si, src_stride, block, (size_t)n);
        ops->write_i64(to->dtype, d, di, dst_stride, block, (size_t)n);
    }
}

// Strided elements of equal dtype: their bits. Each width has its own loop.
static void copy_strided(uint8_t *d, const uint8_t *s, int64_t d_step, int64_t s_step, int64_t n,
                         size_t bytes) {
    if (bytes == 1)
        for (int64_t i = 0; i < n; i++)
            d[i * d_step] = s[i * s_step];
    else if (bytes == 2)
        for (int64_t i = 0; i < n; i++)
            memmove(d + i * d_step, s + i * s_step, 2);
    else if (bytes == 4)
        for (int64_t i = 0; i < n; i++)
            memmove(d + i * d_step, s + i * s_step, 4);
    else
        for (int64_t i = 0; i < n; i++)
            memmove(d + i * d_step, s + i * s_step, bytes);
}

static void copy_run(const struct side *from, const struct side *to, int64_t src, int64_t dst,
                     int64_t src_stride, int64_t dst_stride, int64_t n) {
    bool plain = src_stride == 1 && dst_stride == 1;
    bool same = from->dtype == to->dtype;
    bool bytes = from->bits >= 8 || ((src | dst | n) & 1) == 0;
    if (plain && same && bytes) {
        int64_t si, di;
        const uint8_t *s = reach(from, src, n, &si);
        memmove(reach(to, dst, n, &di), s, (size_t)(n * from->bits / 8));
        return;
    }
    bool apart = (!from->chip && src_stride != 1) || (!to->chip && dst_stride != 1);
    if (apart) {
        for (int64_t i = 0; i < n; i++)
            copy_one(from, to, src + i * src_stride, dst + i * dst_stride);
        return;
    }
    if (same && from->bits >= 8) {
        int64_t si, di, size = from->bits / 8;
        const uint8_t *s = reach(from, src, n, &si);
        uint8_t *d = reach(to, dst, n, &di);
        copy_strided(d, s, dst_stride * size, src_stride * size, n, (size_t)size);
        return;
    }
    for (int64_t i = 0; i < n; i += VAL_BLOCK) {
        int64_t part = n - i < VAL_BLOCK ? n - i : VAL_BLOCK;
        copy_block(from, to, src + i * src_stride, dst + i * dst_stride, src_stride, dst_stride,
                   part);
    }
}

// The whole walk, from element offsets src0 and dst0.
static void copy_walk(const struct side *from, const struct side *to, const struct walk *w,
                      int64_t src0, int64_t dst0) {
    int64_t index[ISA_DIMS] = {0}, src = src0, dst = dst0;
    for (;;) {
        copy_run(from, to, src, dst, w->src[0], w->dst[0], w->size[0]);
        int d = 1;
        for (; d < w->dims; d++) {
            src += w->src[d];
            dst += w->dst[d];
            if (++index[d] < w->size[d]) break;
            src -= w->src[d] * w->size[d];
            dst -= w->dst[d] * w->size[d];
            index[d] = 0;
        }
        if (d >= w->dims) return;
    }
}

void val_copy(const struct val_mem *mem, const struct isa_insn *in) {
    const struct isa_COPY *c = &in->u.COPY;
    struct side from = side_of(mem, &c->src, false), to = side_of(mem, &c->dst, true);
    struct walk w = merge(&c->dst, c->src.stride, c->dst.stride);
    copy_walk(&from, &to, &w, 0, 0);
}

void val_fill(const struct val_mem *mem, const struct isa_insn *in) {
    const struct isa_FILL *f = &in->u.FILL;
    // The constant in the destination's dtype, in a byte for each nibble pair; then a copy with
    // stride 0.
    uint8_t room[8] = {0};
    float value = num_float((uint32_t)f->value);
    num_store_f32((int)f->dst.dtype, room, 0, value);
    struct side to = side_of(mem, &f->dst, true), from = to;
    from.chip = room;
    static const int64_t still[ISA_DIMS] = {0};
    struct walk w = merge(&f->dst, still, f->dst.stride);
    copy_walk(&from, &to, &w, 0, 0);
}

static bool out_of_range(struct val_fault *fault, int64_t element, int64_t value, int64_t rows) {
    snprintf(fault->text, sizeof fault->text,
             "index %lld (element %lld) is outside the table's %lld rows", (long long)value,
             (long long)element, (long long)rows);
    fault->element = element;
    fault->value = value;
    return false;
}

// Offset of row-major number i over dims 1..4.
static int64_t row_offset(const struct isa_pat *p, int64_t i) {
    int64_t at = 0;
    for (int d = 1; d < ISA_DIMS; d++) {
        at += i % p->size[d] * p->stride[d];
        i /= p->size[d];
    }
    return at;
}

bool val_gather(const struct val_mem *mem, const struct isa_insn *in, struct val_fault *fault) {
    const struct isa_GATHER *g = &in->u.GATHER;
    struct side from = side_of(mem, &g->src, false), to = side_of(mem, &g->dst, true);
    uint8_t zero[8] = {0};
    struct side nothing = {mem, zero, 0, false, to.dtype, to.bits};
    struct val_cursor idx;
    val_cursor_init(&idx, mem, &g->idx);
    int64_t count = isa_pat_elems(&g->idx), rows = g->src.size[1], n = g->dst.size[0];
    for (int64_t i = 0; i < count; i++) {
        int64_t row = num_load_i64(idx.dtype, idx.base, val_cursor_next(&idx)), given = row;
        if (g->neg && row < 0) row += rows;
        bool in_range = row >= 0 && row < rows;
        if (!in_range && g->mode == 0) return out_of_range(fault, i, given, rows);
        if (!in_range && g->mode == 1) continue;
        int64_t dst = row_offset(&g->dst, i);
        if (in_range)
            copy_run(&from, &to, row * g->src.stride[1], dst, g->src.stride[0], g->dst.stride[0],
                     n);
        else
            copy_run(&nothing, &to, 0, dst, 0, g->dst.stride[0], n);
    }
    return true;
}

void val_read_i64(const struct val_mem *mem, const struct isa_pat *pat, int64_t *out) {
    struct val_cursor c;
    val_cursor_init(&c, mem, pat);
    val_cursor_read_i64(&c, out, (size_t)isa_pat_elems(pat));
}
