// SPDX-License-Identifier: Apache-2.0
#include "naive.h"

#include "isa/numeric.h"
#include "isa/numeric_fn.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- elements of patterns ----
struct index {
    int64_t i[ISA_DIMS];
};

static bool next(struct index *x, const int64_t *size) {
    for (int d = 0; d < ISA_DIMS; d++) {
        if (++x->i[d] < size[d]) return true;
        x->i[d] = 0;
    }
    return false;
}

static uint8_t *base_of(struct naive_mem *m, const struct isa_pat *p) {
    if (p->space == ISA_DRAM) return m->dram + (p->base - NAIVE_DRAM_BASE);
    return (p->space == ISA_PSUM ? m->psum : m->spm) + p->base;
}

static int64_t offset(const struct isa_pat *p, struct index x) {
    int64_t at = 0;
    for (int d = 0; d < ISA_DIMS; d++)
        at += x.i[d] * p->stride[d];
    return at;
}

static float get(struct naive_mem *m, const struct isa_pat *p, struct index x) {
    return num_load_f32((int)p->dtype, base_of(m, p), offset(p, x));
}
static int64_t get_int(struct naive_mem *m, const struct isa_pat *p, struct index x) {
    return num_load_i64((int)p->dtype, base_of(m, p), offset(p, x));
}
static void put(struct naive_mem *m, const struct isa_pat *p, struct index x, float v) {
    num_store_f32((int)p->dtype, base_of(m, p), offset(p, x), v);
}
static void put_int(struct naive_mem *m, const struct isa_pat *p, struct index x, int64_t v) {
    num_store_i64((int)p->dtype, base_of(m, p), offset(p, x), v);
}
static bool present(const struct isa_pat *p) {
    return p->space != ISA_SPACE_NONE;
}
static bool is_float(const struct isa_pat *p) {
    return isa_dtype_is_float((int)p->dtype);
}

// ---- matrix engine ----
static void product(struct naive_mem *m, const struct isa_pat *a, const struct isa_pat *b,
                    const struct isa_pat *d, bool init, int64_t za, int64_t zb,
                    const struct isa_MMCONV *c) {
    struct index x = {{0}};
    do {
        float f = init ? 0.0f : get(m, d, x);
        int64_t s = init || is_float(a) ? 0 : get_int(m, d, x);
        for (int64_t k = 0; k < b->size[1]; k++) {
            struct index ai = x, bi = {{x.i[0], k}};
            ai.i[0] = k;
            if (c) {
                int64_t cin = a->size[0], tap = k / cin;
                int64_t y = x.i[2] * c->sh + tap / c->kw * c->dh - c->pad_top;
                int64_t z = x.i[1] * c->sw + tap % c->kw * c->dw - c->pad_left;
                if (y < 0 || y >= a->size[2] || z < 0 || z >= a->size[1]) continue;
                ai = (struct index){{k % cin, z, y}};
            }
            if (is_float(a))
                f = fmaf(get(m, a, ai), get(m, b, bi), f);
            else
                s = (int32_t)(uint32_t)((uint64_t)s + (uint64_t)(get_int(m, a, ai) - za) *
                                                          (uint64_t)(get_int(m, b, bi) - zb));
        }
        if (is_float(a))
            put(m, d, x, f);
        else
            put_int(m, d, x, s);
    } while (next(&x, d->size));
}

// ---- vector engine ----
struct chain_run {
    struct naive_mem *m;
    const struct isa_chain *chain;
    const struct isa_pat *in1, *in2;
    bool integer;
    int64_t pred_base, pred_row, pred_col;
};

static float source_f32(const struct chain_run *c, int64_t src, float acc, float in0, float tmp,
                        struct index x) {
    if (src == ISA_SRC_ACC) return acc;
    if (src == ISA_SRC_IN0) return in0;
    if (src == ISA_SRC_IN1) return get(c->m, c->in1, x);
    if (src == ISA_SRC_IN2) return get(c->m, c->in2, x);
    if (src == ISA_SRC_TMP) return tmp;
    if (src == ISA_SRC_ROW) return (float)x.i[1];
    if (src == ISA_SRC_COL) return (float)x.i[0];
    if (src == ISA_SRC_NONE) return 0;
    return num_float((uint32_t)c->chain->imm[src - ISA_SRC_IMM0]);
}

static int64_t source_i64(const struct chain_run *c, int64_t src, int64_t acc, int64_t in0,
                          int64_t tmp, struct index x) {
    if (src == ISA_SRC_ACC) return acc;
    if (src == ISA_SRC_IN0) return in0;
    if (src == ISA_SRC_IN1) return get_int(c->m, c->in1, x);
    if (src == ISA_SRC_IN2) return get_int(c->m, c->in2, x);
    if (src == ISA_SRC_TMP) return tmp;
    if (src == ISA_SRC_ROW) return x.i[1];
    if (src == ISA_SRC_COL) return x.i[0];
    if (src == ISA_SRC_NONE) return 0;
    return (int32_t)(uint32_t)c->chain->imm[src - ISA_SRC_IMM0];
}

static bool predicate(const struct chain_run *c, struct index x) {
    return x.i[1] * c->pred_row + x.i[0] * c->pred_col + c->pred_base >= 0;
}

static float chain_f32(const struct chain_run *c, float in0, struct index x) {
    float acc = in0, tmp = 0;
    for (int s = 0; s < ISA_STAGES; s++) {
        const struct isa_stage *st = &c->chain->st[s];
        float a = source_f32(c, st->a, acc, in0, tmp, x);
        float b = source_f32(c, st->b, acc, in0, tmp, x);
        if (st->op == ISA_VOP_APRED) b = predicate(c, x);
        acc = num_vop_f32((int)st->op, acc, a, b);
        if (st->save) tmp = acc;
    }
    return acc;
}

static int64_t chain_i64(const struct chain_run *c, int64_t in0, struct index x) {
    int64_t acc = in0, tmp = 0;
    for (int s = 0; s < ISA_STAGES; s++) {
        const struct isa_stage *st = &c->chain->st[s];
        int64_t a = source_i64(c, st->a, acc, in0, tmp, x);
        int64_t b = source_i64(c, st->b, acc, in0, tmp, x);
        if (st->op == ISA_VOP_APRED) b = predicate(c, x);
        acc = num_vop_i64((int)st->op, acc, a, b);
        if (st->save) tmp = acc;
    }
    return acc;
}

// Index in the reduction's result of element x.
static struct index outer(struct index x, int64_t dims) {
    struct index o = {{0}};
    for (int64_t d = dims; d < ISA_DIMS; d++)
        o.i[d - dims] = x.i[d];
    return o;
}

static void map(struct chain_run *c, const struct isa_pat *sizes, const struct isa_pat *in0,
                const struct isa_pat *out, int red, int64_t dims, bool red_acc,
                const struct isa_pat *red_out) {
    struct num_reduce r;
    struct index x = {{0}};
    int64_t span = 1;
    for (int64_t d = 0; d < dims && d < ISA_DIMS; d++)
        span *= sizes->size[d];
    num_reduce_begin(&r, red);
    for (bool more = true; more;) {
        struct index at = x;
        if (c->integer) {
            int64_t v = chain_i64(c, present(in0) ? get_int(c->m, in0, x) : 0, x);
            if (out) put_int(c->m, out, x, v);
            num_reduce_add_i64(&r, &v, 1);
        } else {
            float v = chain_f32(c, present(in0) ? get(c->m, in0, x) : 0, x);
            if (out) put(c->m, out, x, v);
            num_reduce_add_f32(&r, &v, 1);
        }
        more = next(&x, sizes->size);
        if (red == ISA_RED_NONE || (int64_t)r.count < span) continue;
        struct index o = outer(at, dims);
        if (red == ISA_RED_ARGMAX) {
            put_int(c->m, red_out, o,
                    c->integer ? num_reduce_end_index_i64(&r) : num_reduce_end_index_f32(&r));
        } else if (c->integer) {
            int64_t v = num_reduce_end_i64(&r);
            put_int(c->m, red_out, o,
                    red_acc ? num_combine_i64(red, get_int(c->m, red_out, o), v) : v);
        } else {
            float v = num_reduce_end_f32(&r);
            put(c->m, red_out, o, red_acc ? num_combine_f32(red, get(c->m, red_out, o), v) : v);
        }
        num_reduce_begin(&r, red);
    }
}

static bool integer_chain(const struct isa_pat *out, const struct isa_pat *a,
                          const struct isa_pat *b, const struct isa_pat *c) {
    return !is_float(out) && !(present(a) && is_float(a)) && !(present(b) && is_float(b)) &&
           !(present(c) && is_float(c));
}

// v.dw when w is given, else v.pool; the two have the same field names.
static bool window(struct naive_mem *m, const struct isa_VPOOL *v, const struct isa_pat *w) {
    struct chain_run c = {m, &v->chain, &v->in1, &v->in2, false, 0, 0, 0};
    struct index x = {{0}};
    do {
        float acc = 0;
        int64_t taps = 0;
        for (int64_t i = 0; i < v->kh; i++)
            for (int64_t j = 0; j < v->kw; j++) {
                int64_t y = x.i[2] * v->sh + i * v->dh - v->pad_top;
                int64_t z = x.i[1] * v->sw + j * v->dw - v->pad_left;
                if (y < 0 || y >= v->in0.size[2] || z < 0 || z >= v->in0.size[1]) continue;
                float e = get(m, &v->in0, (struct index){{x.i[0], z, y}});
                if (w)
                    acc = fmaf(e, get(m, w, (struct index){{x.i[0], i * v->kw + j}}), acc);
                else if (taps == 0)
                    acc = e;
                else
                    acc =
                        num_vop_f32(v->kind == ISA_POOL_MAX ? ISA_VOP_MAX : ISA_VOP_ADD, acc, e, 0);
                taps++;
            }
        if (!w && taps == 0) return false;
        if (!w && v->kind == ISA_POOL_AVG) acc /= (float)taps;
        if (!w && v->kind == ISA_POOL_AVGPAD) acc /= (float)(v->kh * v->kw);
        put(m, &v->out, x, chain_f32(&c, acc, x));
    } while (next(&x, v->out.size));
    return true;
}

// ---- DMA ----
static void copy_element(struct naive_mem *m, const struct isa_pat *s, struct index si,
                         const struct isa_pat *d, struct index di) {
    if (s->dtype == d->dtype && isa_dtype_bits((int)s->dtype) >= 8) {
        int64_t bytes = isa_dtype_bits((int)s->dtype) / 8;
        memmove(base_of(m, d) + offset(d, di) * bytes, base_of(m, s) + offset(s, si) * bytes,
                (size_t)bytes);
    } else if (is_float(s) || is_float(d)) {
        put(m, d, di, get(m, s, si));
    } else {
        put_int(m, d, di, get_int(m, s, si));
    }
}

static bool gather(struct naive_mem *m, const struct isa_GATHER *g) {
    struct index x = {{0}};
    int64_t number = 0;
    for (bool more = true; more; number++) {
        int64_t row = get_int(m, &g->idx, x);
        more = next(&x, g->idx.size);
        if (g->neg && row < 0) row += g->src.size[1];
        bool in = row >= 0 && row < g->src.size[1];
        if (!in && g->mode == 0) return false;
        if (!in && g->mode == 1) continue;
        struct index di = {{0}};
        int64_t left = number;
        for (int d = 1; d < ISA_DIMS; d++) {
            di.i[d] = left % g->dst.size[d];
            left /= g->dst.size[d];
        }
        for (int64_t e = 0; e < g->dst.size[0]; e++) {
            di.i[0] = e;
            if (in)
                copy_element(m, &g->src, (struct index){{e, row}}, &g->dst, di);
            else
                put(m, &g->dst, di, 0.0f);
        }
    }
    return true;
}

bool naive_exec(struct naive_mem *m, const struct isa_insn *in) {
    struct index x = {{0}};
    if (in->h.opcode == ISA_OP_MM) {
        const struct isa_MM *v = &in->u.MM;
        product(m, &v->a, &v->b, &v->d, v->init, v->zero_a, v->zero_b, NULL);
    } else if (in->h.opcode == ISA_OP_MMCONV) {
        const struct isa_MMCONV *v = &in->u.MMCONV;
        product(m, &v->a, &v->b, &v->d, v->init, v->zero_a, v->zero_b, v);
    } else if (in->h.opcode == ISA_OP_VMAP) {
        const struct isa_VMAP *v = &in->u.VMAP;
        struct chain_run c = {m,
                              &v->chain,
                              &v->in1,
                              &v->in2,
                              integer_chain(&v->out, &v->in0, &v->in1, &v->in2),
                              v->pred_base,
                              v->pred_row,
                              v->pred_col};
        map(&c, &v->out, &v->in0, &v->out, (int)v->red, v->red_dims, v->red_acc, &v->red_out);
    } else if (in->h.opcode == ISA_OP_VRED) {
        const struct isa_VRED *v = &in->u.VRED;
        struct chain_run c = {m,
                              &v->chain,
                              &v->in1,
                              &v->in2,
                              integer_chain(&v->out, &v->in0, &v->in1, &v->in2),
                              v->pred_base,
                              v->pred_row,
                              v->pred_col};
        map(&c, &v->in0, &v->in0, NULL, (int)v->red, v->red_dims, v->red_acc, &v->out);
    } else if (in->h.opcode == ISA_OP_VPOOL) {
        return window(m, &in->u.VPOOL, NULL);
    } else if (in->h.opcode == ISA_OP_VDW) {
        const struct isa_VDW *v = &in->u.VDW;
        struct isa_VPOOL p = {.kh = v->kh,
                              .kw = v->kw,
                              .sh = v->sh,
                              .sw = v->sw,
                              .dh = v->dh,
                              .dw = v->dw,
                              .pad_top = v->pad_top,
                              .pad_left = v->pad_left,
                              .chain = v->chain,
                              .out = v->out,
                              .in0 = v->in0,
                              .in1 = v->in1,
                              .in2 = v->in2};
        return window(m, &p, &v->w);
    } else if (in->h.opcode == ISA_OP_COPY) {
        const struct isa_COPY *v = &in->u.COPY;
        do
            copy_element(m, &v->src, x, &v->dst, x);
        while (next(&x, v->dst.size));
    } else if (in->h.opcode == ISA_OP_FILL) {
        const struct isa_FILL *v = &in->u.FILL;
        do
            put(m, &v->dst, x, num_float((uint32_t)v->value));
        while (next(&x, v->dst.size));
    } else if (in->h.opcode == ISA_OP_GATHER) {
        return gather(m, &in->u.GATHER);
    }
    return true;
}

// ---- memories and random instructions ----
static uint8_t *translate(void *ctx, uint64_t addr, uint64_t bytes, bool write) {
    struct naive_mem *m = ctx;
    (void)write;
    cr_assert(addr >= NAIVE_DRAM_BASE && addr + bytes <= NAIVE_DRAM_BASE + NAIVE_DRAM);
    return m->dram + (addr - NAIVE_DRAM_BASE);
}

struct val_mem naive_val_mem(struct naive_mem *mem, struct val_work *work) {
    return (struct val_mem){mem->spm, mem->psum, translate, mem, work};
}

uint32_t naive_rnd(struct naive_rng *r) {
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return (uint32_t)(r->state >> 20);
}

int64_t naive_pick(struct naive_rng *r, int64_t lo, int64_t hi) {
    return lo + (int64_t)(naive_rnd(r) % (uint64_t)(hi - lo + 1));
}

void naive_fill(struct naive_rng *r, struct naive_mem *mem) {
    for (size_t i = 0; i < NAIVE_SPM; i++)
        mem->spm[i] = (uint8_t)naive_rnd(r);
    for (size_t i = 0; i < NAIVE_DRAM; i++)
        mem->dram[i] = (uint8_t)naive_rnd(r);
    for (size_t i = 0; i < NAIVE_PSUM; i += 4) {
        float f = (float)naive_pick(r, -4000, 4000) / 64.0f;
        memcpy(mem->psum + i, &f, 4);
    }
}

static float special_value(struct naive_rng *r) {
    static const float values[] = {NAN,       INFINITY, -INFINITY, 0.0f,  -0.0f,
                                   0x1p-149f, 3e38f,    -3e38f,    65504, 0x1p-24f};
    return values[naive_pick(r, 0, 9)];
}

void naive_fill_pat(struct naive_rng *r, struct naive_mem *mem, const struct isa_pat *p,
                    bool special) {
    struct index x = {{0}};
    if (!present(p)) return;
    do {
        float v = (float)naive_pick(r, -32768, 32767) / 8192.0f;
        if (special && naive_pick(r, 0, 40) == 0) v = special_value(r);
        if (is_float(p))
            put(mem, p, x, v);
        else
            put_int(mem, p, x, naive_pick(r, -300, 300));
    } while (next(&x, p->size));
}

// Strides for *p; returns the bytes spanned and how far below the base they reach.
static int64_t lay_out(struct naive_rng *r, struct isa_pat *p, const int64_t *size, bool broadcast,
                       bool loose, int64_t *down) {
    int order[ISA_DIMS] = {0, 1, 2, 3, 4};
    for (int i = 0; loose && i < ISA_DIMS; i++) { // any order of dimensions
        int j = (int)naive_pick(r, 0, ISA_DIMS - 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    int64_t extent = 1, low = 0, bits = isa_dtype_bits((int)p->dtype);
    for (int i = 0; i < ISA_DIMS; i++) {
        int d = order[i];
        p->size[d] = size[d];
        p->stride[d] = 0;
        if (size[d] == 1) continue;
        if (broadcast && naive_pick(r, 0, 4) == 0) continue;
        p->stride[d] = extent + (loose ? naive_pick(r, 0, 2) : 0);
        extent = p->stride[d] * size[d];
        if (loose && naive_pick(r, 0, 6) == 0) {
            p->stride[d] = -p->stride[d];
            low += p->stride[d] * (size[d] - 1);
        }
    }
    *down = (-low * bits + 7) / 8;
    return (extent * bits + 7) / 8 + *down;
}

struct isa_pat naive_pat(struct naive_rng *r, int space, int dtype, const int64_t *size,
                         bool broadcast, int64_t base, int64_t limit) {
    struct isa_pat p = {.space = space, .dtype = dtype};
    int64_t down, bytes = lay_out(r, &p, size, broadcast, naive_pick(r, 0, 1), &down);
    if (bytes > limit - base - 8) bytes = lay_out(r, &p, size, broadcast, false, &down);
    int64_t room = limit - base - bytes - 8;
    cr_assert(room >= 0, "test's own pattern does not fit: %lld bytes", (long long)bytes);
    int64_t bits = isa_dtype_bits(dtype), align = space == ISA_PSUM ? 4 : bits < 8 ? 1 : bits / 8;
    if (naive_pick(r, 0, 3) == 0 && space != ISA_PSUM) align = 1;
    int64_t at = base + down + naive_pick(r, 0, room < 64 ? room : 64);
    p.base = (at + align - 1) / align * align;
    return p;
}

void naive_check(const struct naive_mem *start, const struct isa_insn *in) {
    struct naive_mem *want = malloc(sizeof *want), *got = malloc(sizeof *got);
    struct val_work *work = val_work_new();
    cr_assert(want && got && work);
    *want = *start;
    bool ok = naive_exec(want, in);
    for (enum val_isa isa = VAL_SSE2; isa <= VAL_AVX512; isa++) {
        struct val_fault fault = {.text = ""};
        if (!val_set_isa(isa)) continue;
        *got = *start;
        const struct val_mem mem = naive_val_mem(got, work);
        cr_assert(val_exec(&mem, in, &fault) == ok, "%s: %s", val_isa_name(isa), fault.text);
        if (!ok) continue;
        if (memcmp(want, got, sizeof *got) == 0) continue;
        for (size_t i = 0; i < sizeof *got; i++) {
            const uint8_t *w = (const uint8_t *)want, *g = (const uint8_t *)got;
            cr_assert(w[i] == g[i], "%s, %s: byte 0x%zx of %s: %02x, expected %02x",
                      isa_find((unsigned)in->h.opcode)->text, val_isa_name(isa),
                      i < NAIVE_SPM ? i : (i - NAIVE_SPM) % NAIVE_PSUM,
                      i < NAIVE_SPM                ? "spm"
                      : i < NAIVE_SPM + NAIVE_PSUM ? "psum"
                                                   : "dram",
                      g[i], w[i]);
        }
    }
    val_work_free(work);
    free(want);
    free(got);
}
