// SPDX-License-Identifier: Apache-2.0
//
// mm and mm.conv. For columns in chunks of VAL_NC and k in blocks of VAL_KC (outer to inner): pack
// B's block into panels of nr columns; for rows in groups of mr: pack the rows of A, then one
// register tile per panel. The tile continues from D, so that the chain of fused steps per element
// is the whole ascending k.
//
// Padding of a convolution is skipped, not multiplied by zero: a group's k are cut into segments in
// which the same rows take part, and the rows that do not get a junk tile row to add to. (Integers:
// zeros, which is the same modulo 2^32.)

#include "simulator/exec/val_mm.h"

#include "isa/numeric.h"

#include <string.h>

static bool is_exact(int64_t dtype) {
    return dtype == ISA_F16 || dtype == ISA_F8E4M3 || dtype == ISA_F8E5M2;
}

// Do all values of dtype less the zero point fit in int16?
static bool fits_i16(int64_t dtype, int64_t zero) {
    int64_t lo = 0, hi = 0;
    if (dtype == ISA_I8 || dtype == ISA_I4)
        lo = -128, hi = 127;
    else if (dtype == ISA_U8 || dtype == ISA_U4 || dtype == ISA_BOOL)
        hi = 255;
    else
        return false;
    return lo - zero >= INT16_MIN && hi - zero <= INT16_MAX;
}

void val_product_init(struct val_product *p, const struct val_mem *mem, const struct isa_pat *a,
                      const struct isa_pat *b, const struct isa_pat *d, int64_t zero_a,
                      int64_t zero_b) {
    memset(p, 0, sizeof *p);
    p->work = mem->work;
    p->ops = val_ops();
    p->a = a;
    p->b = b;
    p->d = d;
    p->a_base = val_at(mem, a);
    p->b_base = val_at(mem, b);
    p->d_base = val_at(mem, d);
    p->n = d->size[0];
    p->m = isa_pat_elems(d) / p->n;
    p->k = b->size[1];
    p->integer = !isa_dtype_is_float((int)a->dtype);
    p->exact = is_exact(a->dtype) && is_exact(b->dtype);
    p->zero_a = zero_a;
    p->zero_b = zero_b;
    p->wide = p->integer && !(fits_i16(a->dtype, zero_a) && fits_i16(b->dtype, zero_b));
}

// Element offset of row m (row-major over dims 1..4).
static int64_t row_offset(const struct isa_pat *pat, int64_t m) {
    int64_t at = 0;
    for (int d = 1; d < ISA_DIMS; d++) {
        at += m % pat->size[d] * pat->stride[d];
        m /= pat->size[d];
    }
    return at;
}

void val_product_clear(const struct val_product *p) {
    for (int64_t m = 0; m < p->m; m++) {
        uint8_t *row = p->d_base + 4 * row_offset(p->d, m);
        if (p->d->stride[0] == 1)
            memset(row, 0, 4 * (size_t)p->n);
        else
            for (int64_t n = 0; n < p->n; n++)
                memset(row + 4 * n * p->d->stride[0], 0, 4);
    }
}

// A group of rows with its results: where each row of D starts; of a convolution what each sees,
// and whether all of them see no padding at all.
struct group {
    int rows;
    int64_t m0;
    uint8_t *d[VAL_MR_MAX];
    struct val_conv_row row[VAL_MR_MAX];
    bool whole;
};

// ---- packing: f32 words, or int16 with two consecutive k in a word
static void read_i16(int dtype, const uint8_t *base, int64_t first, int64_t stride, int64_t zero,
                     int16_t *out, int64_t n) {
    int32_t z = (int32_t)zero;
    if (dtype == ISA_I8)
        for (int64_t i = 0; i < n; i++)
            out[i] = (int16_t)((int8_t)base[first + i * stride] - z);
    else if (dtype == ISA_U8 || dtype == ISA_BOOL)
        for (int64_t i = 0; i < n; i++)
            out[i] = (int16_t)(base[first + i * stride] - z);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = (int16_t)(num_load_i64(dtype, base, first + i * stride) - z);
}

void val_product_pack_a(const struct val_product *p, int i, int64_t k, int64_t first,
                        int64_t stride, int64_t n) {
    float *row = p->work->a + (ptrdiff_t)i * VAL_LDA;
    int dtype = (int)p->a->dtype;
    if (!p->integer)
        p->ops->read_f32(dtype, p->a_base, first, stride, row + k, (size_t)n);
    else
        read_i16(dtype, p->a_base, first, stride, p->zero_a, (int16_t *)(void *)row + k, n);
}

void val_product_zero_a(const struct val_product *p, int i, int64_t k, int64_t n) {
    float *row = p->work->a + (ptrdiff_t)i * VAL_LDA;
    if (!p->integer)
        memset(row + k, 0, (size_t)n * sizeof(float));
    else
        memset((int16_t *)(void *)row + k, 0, (size_t)n * sizeof(int16_t));
}

static void pack_row(const struct val_product *p, const struct group *g, int i, int64_t k0,
                     int64_t kc) {
    if (p->conv) {
        val_conv_pack(p, i, &g->row[i], k0, kc);
    } else {
        int64_t first = row_offset(p->a, g->m0 + i) + k0 * p->a->stride[0];
        val_product_pack_a(p, i, 0, first, p->a->stride[0], kc);
    }
    if (p->integer && kc % 2) val_product_zero_a(p, i, kc, 1);
}

static bool packs_direct(const struct val_product *p) {
    int64_t t = p->b->dtype;
    return p->ops->pack_b && p->b->stride[0] == 1 &&
           (t == ISA_F16 || t == ISA_BF16 || t == ISA_F32);
}

static void pack_b_f32(const struct val_product *p, int64_t k0, int64_t kc, int64_t n0,
                       int64_t nc) {
    const struct isa_pat *b = p->b;
    float *out = p->work->b, line[VAL_KC];
    int64_t nr = p->ops->nr;
    int dtype = (int)b->dtype;
    if (packs_direct(p)) {
        int64_t bytes = isa_dtype_bits(dtype) / 8;
        p->ops->pack_b(dtype, p->b_base + (k0 * b->stride[1] + n0) * bytes, b->stride[1], out,
                       (int)kc, (int)nc);
        return;
    }
    for (int64_t j0 = 0; j0 < nc; j0 += nr, out += kc * nr) {
        int64_t w = nc - j0 < nr ? nc - j0 : nr;
        int64_t first = k0 * b->stride[1] + (n0 + j0) * b->stride[0];
        if (w < nr) memset(out, 0, (size_t)(kc * nr) * sizeof *out);
        if (b->stride[1] == 1) { // transposed: a column of B is contiguous
            for (int64_t j = 0; j < w; j++) {
                p->ops->read_f32(dtype, p->b_base, first + j * b->stride[0], 1, line, (size_t)kc);
                for (int64_t k = 0; k < kc; k++)
                    out[k * nr + j] = line[k];
            }
            continue;
        }
        for (int64_t k = 0; k < kc; k++)
            p->ops->read_f32(dtype, p->b_base, first + k * b->stride[1], b->stride[0], out + k * nr,
                             (size_t)w);
    }
}

static void pack_b_i16(const struct val_product *p, int64_t k0, int64_t kc, int64_t n0,
                       int64_t nc) {
    const struct isa_pat *b = p->b;
    int16_t *out = p->work->b, line[VAL_NR_MAX];
    int64_t nr = p->ops->nr, pairs = (kc + 1) / 2;
    for (int64_t j0 = 0; j0 < nc; j0 += nr, out += pairs * nr * 2) {
        int64_t w = nc - j0 < nr ? nc - j0 : nr;
        if (w < nr || kc % 2) memset(out, 0, (size_t)(pairs * nr * 2) * sizeof *out);
        for (int64_t k = 0; k < kc; k++) {
            int64_t first = (k0 + k) * b->stride[1] + (n0 + j0) * b->stride[0];
            read_i16((int)b->dtype, p->b_base, first, b->stride[0], p->zero_b, line, w);
            int16_t *to = out + (k / 2) * nr * 2 + k % 2;
            for (int64_t j = 0; j < w; j++)
                to[2 * j] = line[j];
        }
    }
}

// ---- tiles
// Kernels exist for some numbers of rows only: the largest that is not over `rows`.
static int kernel_rows(const struct val_product *p, int64_t rows) {
    int r = rows < p->ops->mr ? (int)rows : p->ops->mr;
    while (!p->ops->i32[r])
        r--;
    return r;
}

// One tile: rows with a clear bit in `mask` are left alone.
static void run_tile(const struct val_product *p, const struct group *g, const void *b, int64_t k,
                     int64_t kc, int64_t n, uint32_t mask) {
    struct val_work *w = p->work;
    int64_t nr = p->ops->nr, step = p->d->stride[0], cols = p->n - n < nr ? p->n - n : nr;
    bool in_place = step == 1 && cols == nr;
    size_t line = (size_t)(step == 1 ? cols : 1) * 4; // bytes that lie together
    float *c[VAL_MR_MAX];
    for (int i = 0; i < g->rows; i++) {
        c[i] = w->tile + (ptrdiff_t)i * VAL_NR_MAX;
        if (!(mask >> i & 1u))
            c[i] = w->junk;
        else if (in_place)
            c[i] = (float *)(void *)(g->d[i] + 4 * n);
        else
            for (int64_t j = 0; j < cols; j += (int64_t)line / 4)
                memcpy(c[i] + j, g->d[i] + 4 * (n + j) * step, line);
    }
    if (p->integer) {
        int32_t *ci[VAL_MR_MAX];
        for (int i = 0; i < g->rows; i++)
            ci[i] = (int32_t *)(void *)c[i];
        p->ops->i32[g->rows]((const int32_t *)(const void *)w->a, b, ci, (int)((kc + 1) / 2), true);
    } else {
        val_kernel_f32 *f = p->exact ? p->ops->f32_exact[g->rows] : p->ops->f32[g->rows];
        f(w->a + k, b, c, (int)kc, true);
    }
    if (in_place) return;
    for (int i = 0; i < g->rows; i++)
        for (int64_t j = 0; j < cols && (mask >> i & 1u); j += (int64_t)line / 4)
            memcpy(g->d[i] + 4 * (n + j) * step, c[i] + j, line);
}

// Rows of the group that tap `tap` of a convolution reads inside A.
static uint32_t tap_mask(const struct val_product *p, const struct group *g, int64_t tap) {
    uint32_t mask = 0;
    for (int i = 0; i < g->rows; i++)
        mask |= (uint32_t)val_conv_inside(p, &g->row[i], tap) << i;
    return mask;
}

// End of the segment that starts at k: the same rows take part in all of it.
static int64_t segment_end(const struct val_product *p, const struct group *g, int64_t k,
                           int64_t end, uint32_t *mask) {
    *mask = (1u << g->rows) - 1u;
    if (g->whole || p->integer) return end;
    int64_t cin = p->a->size[0], tap = k / cin;
    *mask = tap_mask(p, g, tap);
    do
        tap++;
    while (tap * cin < end && tap_mask(p, g, tap) == *mask);
    return tap * cin < end ? tap * cin : end;
}

static void run_group(const struct val_product *p, const struct group *g, int64_t k0, int64_t kc,
                      int64_t n0, int64_t nc) {
    int64_t nr = p->ops->nr;
    for (int i = 0; i < g->rows; i++)
        pack_row(p, g, i, k0, kc);
    for (int64_t k = k0; k < k0 + kc;) {
        uint32_t mask;
        int64_t end = segment_end(p, g, k, k0 + kc, &mask);
        int64_t words = p->integer ? (kc + 1) / 2 : kc; // of a panel's column
        for (int64_t n = 0; n < nc && mask; n += nr) {
            const float *b = (const float *)p->work->b + n * words + (k - k0) * nr;
            run_tile(p, g, b, k - k0, end - k, n0 + n, mask);
        }
        k = end;
    }
}

// Values too wide for int16: element by element, modulo 2^32.
static void run_wide(const struct val_product *p) {
    const struct isa_pat *a = p->a, *b = p->b;
    int64_t cin = a->size[0];
    struct val_conv_row row = {0};
    for (int64_t m = 0; m < p->m; m++) {
        if (p->conv) row = val_conv_row(p, m);
        for (int64_t n = 0; n < p->n; n++) {
            uint32_t sum = 0;
            for (int64_t k = 0; k < p->k; k++) {
                int64_t at = 0;
                if (!p->conv)
                    at = row_offset(a, m) + k * a->stride[0];
                else if (!val_conv_inside(p, &row, k / cin))
                    continue;
                else
                    at = val_conv_at(p, &row, k / cin) + k % cin * a->stride[0];
                int64_t x = num_load_i64((int)a->dtype, p->a_base, at) - p->zero_a;
                int64_t y =
                    num_load_i64((int)b->dtype, p->b_base, k * b->stride[1] + n * b->stride[0]) -
                    p->zero_b;
                sum += (uint32_t)((uint64_t)x * (uint64_t)y);
            }
            int64_t at = row_offset(p->d, m) + n * p->d->stride[0];
            int64_t old = num_load_i64(ISA_I32, p->d_base, at);
            num_store_i64(ISA_I32, p->d_base, at, (int32_t)((uint32_t)old + sum));
        }
    }
}

// The group that starts at row m0.
static void start_group(const struct val_product *p, struct group *g) {
    g->rows = kernel_rows(p, p->m - g->m0);
    g->whole = true;
    for (int i = 0; i < g->rows; i++) {
        g->d[i] = p->d_base + 4 * row_offset(p->d, g->m0 + i);
        if (!p->conv) continue;
        struct val_conv_row *r = &g->row[i];
        *r = val_conv_row(p, g->m0 + i);
        bool all = r->i0 == 0 && r->i1 == p->conv->kh && r->j0 == 0 && r->j1 == p->conv->kw;
        g->whole = g->whole && all;
    }
}

// Few rows: packing B would cost more than the product.
static bool is_thin(const struct val_product *p) {
    return p->m <= VAL_LINE_ROWS && p->ops->line && !p->conv && packs_direct(p) &&
           p->d->stride[0] == 1;
}

static void run_thin(const struct val_product *p) {
    int64_t bytes = isa_dtype_bits((int)p->b->dtype) / 8, k_step = p->a->stride[0];
    for (int64_t m = 0; m < p->m; m++) {
        float *c = (float *)(void *)(p->d_base + 4 * row_offset(p->d, m));
        for (int64_t k0 = 0; k0 < p->k; k0 += VAL_KC) {
            int64_t kc = p->k - k0 < VAL_KC ? p->k - k0 : VAL_KC;
            val_product_pack_a(p, 0, 0, row_offset(p->a, m) + k0 * k_step, k_step, kc);
            p->ops->line((int)p->b->dtype, p->b_base + k0 * p->b->stride[1] * bytes,
                         p->b->stride[1], p->work->a, c, (int)kc, p->n);
        }
    }
}

void val_product_run(const struct val_product *p) {
    if (p->wide) {
        run_wide(p);
        return;
    }
    if (!p->integer && is_thin(p)) {
        run_thin(p);
        return;
    }
    for (int64_t n0 = 0; n0 < p->n; n0 += VAL_NC) {
        int64_t nc = p->n - n0 < VAL_NC ? p->n - n0 : VAL_NC;
        for (int64_t k0 = 0; k0 < p->k; k0 += VAL_KC) {
            int64_t kc = p->k - k0 < VAL_KC ? p->k - k0 : VAL_KC;
            if (p->integer)
                pack_b_i16(p, k0, kc, n0, nc);
            else
                pack_b_f32(p, k0, kc, n0, nc);
            struct group g = {.m0 = 0};
            for (; g.m0 < p->m; g.m0 += g.rows) {
                start_group(p, &g);
                run_group(p, &g, k0, kc, n0, nc);
            }
        }
    }
}

void val_mm(const struct val_mem *mem, const struct isa_insn *in) {
    const struct isa_MM *mm = &in->u.MM;
    struct val_product p;
    val_product_init(&p, mem, &mm->a, &mm->b, &mm->d, mm->zero_a, mm->zero_b);
    if (mm->init) val_product_clear(&p);
    val_product_run(&p);
}

void val_mmconv(const struct val_mem *mem, const struct isa_insn *in) {
    const struct isa_MMCONV *mm = &in->u.MMCONV;
    struct val_product p;
    val_product_init(&p, mem, &mm->a, &mm->b, &mm->d, mm->zero_a, mm->zero_b);
    p.conv = mm;
    if (mm->init) val_product_clear(&p);
    val_product_run(&p);
}
