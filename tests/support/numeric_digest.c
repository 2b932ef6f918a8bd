// SPDX-License-Identifier: Apache-2.0
//
// Prints a checksum per part of the numerics contract: conversions, special functions, stage
// operations, fused multiply-add, reductions, and whole instructions on every code path of the
// processor, which must agree among themselves. Two builds - another compiler, another optimisation
// level, another host - must print the same text. Exit status 1 when code paths differ.

#include "isa/numeric.h"
#include "runtime/base/alloc.h"
#include "simulator/exec/val.h"

#include <stdio.h>
#include <string.h>

enum { SPM = 1 << 18, PSUM = 1 << 16, DRAM = 1 << 16, QUARTER = SPM / 4 };

static const int types[] = {ISA_F32, ISA_F16, ISA_BF16, ISA_F8E4M3, ISA_F8E5M2, ISA_I4,
                            ISA_I8,  ISA_I16, ISA_I32,  ISA_I64,    ISA_U4,     ISA_U8,
                            ISA_U16, ISA_U32, ISA_BOOL, ISA_F64,    ISA_U64};
enum { TYPES = sizeof types / sizeof *types, ON_CHIP = TYPES - 2 };

// FNV-1a.
static uint64_t hash(uint64_t h, const void *data, size_t n) {
    const uint8_t *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}
static const uint64_t hash_start = 0xcbf29ce484222325u;

static uint64_t state;
static uint32_t rnd(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 24);
}

static void print(const char *part, const char *name, uint64_t h) {
    printf("%-12s %-10s %016llx\n", part, name, (unsigned long long)h);
}

// ---- isa/numeric
static void conversions(void) {
    for (int t = 0; t < TYPES; t++) {
        uint64_t h = hash_start;
        for (uint64_t u = 0; u < 0x100000000u; u += 65521) {
            uint64_t room = 0;
            num_store_f32(types[t], &room, 0, num_float((uint32_t)u));
            h = hash(h, &room, sizeof room);
            float f = num_canonical(num_load_f32(types[t], &room, 0));
            h = hash(h, &f, sizeof f);
            num_store_i64(types[t], &room, 0, (int64_t)(u * 0x9e3779b97f4a7c15u) >> (u % 61));
            h = hash(h, &room, sizeof room);
            int64_t i = num_load_i64(types[t], &room, 0);
            h = hash(h, &i, sizeof i);
        }
        for (uint32_t c = 0; c < 65536; c++) {
            uint64_t code = c;
            float f = num_canonical(num_load_f32(types[t], &code, 0));
            h = hash(h, &f, sizeof f);
        }
        print("convert", isa_dtype_name(types[t]), h);
    }
}

// Every stage operation, special functions among them, over arrays of all kinds of numbers.
static void operations(void) {
    static float x[4096], y[4096], z[4096], out[4096];
    static int64_t ix[4096], iy[4096], iout[4096];
    for (int op = 0; op < 64; op++) {
        if (!isa_vop_name(op)) continue;
        uint64_t h = hash_start;
        state = 0x1234567;
        for (int round = 0; round < 16; round++) {
            for (int i = 0; i < 4096; i++) {
                x[i] = round < 8 ? num_float(rnd() << 8 ^ rnd()) : (float)rnd() / 4e7f - 50;
                y[i] = i % 3 ? (float)rnd() / 4e8f - 5 : x[i];
                z[i] = num_float(rnd() << 8 ^ rnd());
                ix[i] = (int64_t)(((uint64_t)rnd() << 40) ^ rnd()) >> (i % 60);
                iy[i] = (int64_t)rnd() % 70 - 3;
            }
            if (num_vop_has(op, false)) {
                num_vops_f32(op, out, x, y, z, 4096);
                for (int i = 0; i < 4096; i++)
                    out[i] = num_canonical(out[i]);
                h = hash(h, out, sizeof out);
            }
            if (num_vop_has(op, true)) {
                num_vops_i64(op, iout, ix, iy, ix, 4096);
                h = hash(h, iout, sizeof iout);
            }
        }
        print("operation", isa_vop_name(op), h);
    }
}

static void reductions(void) {
    static const char *const names[] = {"none", "sum", "max", "min", "sumsq", "argmax", "prod"};
    static float x[3000];
    for (int red = ISA_RED_SUM; red < ISA_REDS; red++) {
        uint64_t h = hash_start;
        state = 0x7654321;
        for (size_t n = 1; n < 3000; n = n * 5 / 4 + 1) {
            struct num_reduce r;
            for (size_t i = 0; i < n; i++)
                x[i] = (float)rnd() / 1e8f - 5;
            num_reduce_begin(&r, red);
            num_reduce_add_f32(&r, x, n / 3);
            num_reduce_add_f32(&r, x + n / 3, n - n / 3);
            float f = red == ISA_RED_ARGMAX ? (float)num_reduce_end_index_f32(&r)
                                            : num_reduce_end_f32(&r);
            h = hash(h, &f, sizeof f);
        }
        print("reduce", names[red], h);
    }
}

// ---- instructions
struct machine {
    struct val_mem mem;
    uint8_t *dram;
    bool agree;
};

static uint8_t *translate(void *ctx, uint64_t addr, uint64_t bytes, bool write) {
    struct machine *m = ctx;
    (void)bytes;
    (void)write;
    return m->dram + addr;
}

// The same memory before every run: small floats in f32, f16 by quarter of SPM, any bits in DRAM.
static void refill(struct machine *m) {
    state = 0x31415926;
    for (int i = 0; i < SPM; i += 2) {
        uint16_t v = num_f32_to_f16((float)(int32_t)(rnd() % 4001u) / 500.0f - 4.0f);
        memcpy(m->mem.spm + i, &v, 2);
    }
    for (int i = 0; i < PSUM; i += 4) {
        float v = (float)(int32_t)(rnd() % 4001u) / 500.0f - 4.0f;
        memcpy(m->mem.psum + i, &v, 4);
    }
    for (int i = 0; i < DRAM; i++)
        m->dram[i] = (uint8_t)rnd();
}

// All memory after the instruction, on every code path; reports when they differ.
static uint64_t run(struct machine *m, const struct isa_insn *in) {
    uint64_t first = 0;
    for (enum val_isa isa = VAL_SSE2; isa <= VAL_AVX512; isa++) {
        struct val_fault fault = {.text = ""};
        if (!val_set_isa(isa)) continue;
        refill(m);
        if (!val_exec(&m->mem, in, &fault)) printf("fault: %s\n", fault.text);
        uint64_t h = hash(hash_start, m->mem.spm, SPM);
        h = hash(hash(h, m->mem.psum, PSUM), m->dram, DRAM);
        if (isa == VAL_SSE2) first = h;
        if (h == first) continue;
        printf("code path %s differs\n", val_isa_name(isa));
        m->agree = false;
    }
    return first;
}

static struct isa_pat pat(int space, int dtype, int base, int64_t n0, int64_t n1, int64_t n2) {
    struct isa_pat p = {.space = space,
                        .dtype = dtype,
                        .base = base,
                        .size = {n0, n1, n2, 1, 1},
                        .stride = {1, n0, n0 * n1, 0, 0}};
    return p;
}

static void products(struct machine *m) {
    static const int kinds[] = {ISA_F16, ISA_BF16, ISA_F32, ISA_F8E4M3, ISA_F8E5M2,
                                ISA_I8,  ISA_U8,   ISA_I4,  ISA_U4};
    for (size_t t = 0; t < sizeof kinds / sizeof *kinds; t++) {
        bool is_float = isa_dtype_is_float(kinds[t]);
        struct isa_insn in;
        isa_init(&in, ISA_OP_MM);
        struct isa_MM *v = &in.u.MM;
        v->zero_a = is_float ? 0 : 3;
        v->a = pat(ISA_SPM, kinds[t], 0, 301, 29, 1);
        v->b = pat(ISA_SPM, kinds[t], 2 * QUARTER, 75, 301, 1);
        v->d = pat(ISA_PSUM, is_float ? ISA_F32 : ISA_I32, 0, 75, 29, 1);
        print("mm", isa_dtype_name(kinds[t]), run(m, &in));
        isa_init(&in, ISA_OP_MMCONV);
        struct isa_MMCONV *c = &in.u.MMCONV;
        c->kh = c->kw = 3;
        c->sw = 2;
        c->pad_top = c->pad_left = 1;
        c->a = pat(ISA_SPM, kinds[t], 0, 33, 17, 12);
        c->b = pat(ISA_SPM, kinds[t], 2 * QUARTER, 40, 297, 1);
        c->d = pat(ISA_PSUM, is_float ? ISA_F32 : ISA_I32, 0, 40, 9, 12);
        print("mm.conv", isa_dtype_name(kinds[t]), run(m, &in));
    }
}

static void maps(struct machine *m) {
    for (int op = 0; op < 64; op++) {
        if (!isa_vop_name(op)) continue;
        for (int integer = 0; integer < 2; integer++) {
            if (!num_vop_has(op, integer)) continue;
            struct isa_insn in;
            isa_init(&in, ISA_OP_VMAP);
            struct isa_VMAP *v = &in.u.VMAP;
            int dtype = integer ? ISA_I16 : ISA_F16;
            v->in0 = pat(ISA_SPM, dtype, 0, 333, 21, 1);
            v->in1 = pat(ISA_SPM, dtype, QUARTER, 333, 21, 1);
            v->in2 = pat(ISA_SPM, dtype, 2 * QUARTER, 333, 21, 1);
            v->in1.stride[1] = 0;
            v->out = pat(ISA_SPM, integer ? ISA_I32 : ISA_F16, 3 * QUARTER, 333, 21, 1);
            v->red_out = pat(ISA_PSUM, integer ? ISA_I32 : ISA_F32, 0, 21, 1, 1);
            v->red = ISA_RED_SUM;
            v->red_dims = 1;
            v->pred_base = 30;
            v->pred_row = 7;
            v->pred_col = -1;
            v->chain.st[0] = (struct isa_stage){op, ISA_SRC_IN1, ISA_SRC_IN2, 1};
            v->chain.st[1] = (struct isa_stage){ISA_VOP_SUB, ISA_SRC_COL, 0, 0};
            print(integer ? "v.map i" : "v.map f", isa_vop_name(op), run(m, &in));
        }
    }
}

static void rest(struct machine *m) {
    struct isa_insn in;
    isa_init(&in, ISA_OP_VRED);
    struct isa_VRED *r = &in.u.VRED;
    for (r->red = 1; r->red < ISA_REDS; r->red++) {
        r->red_dims = 2;
        r->in0 = pat(ISA_SPM, ISA_F16, 0, 77, 13, 20);
        r->out = pat(ISA_SPM, ISA_F32, QUARTER, 20, 1, 1);
        print("v.red", "f16", run(m, &in));
    }
    isa_init(&in, ISA_OP_VDW);
    struct isa_VDW *d = &in.u.VDW;
    d->kh = d->kw = 3;
    d->pad_top = d->pad_left = 1;
    d->in0 = pat(ISA_SPM, ISA_BF16, 0, 70, 12, 12);
    d->w = pat(ISA_SPM, ISA_BF16, QUARTER, 70, 9, 1);
    d->out = pat(ISA_SPM, ISA_F16, 2 * QUARTER, 70, 12, 12);
    print("v.dw", "bf16", run(m, &in));
    isa_init(&in, ISA_OP_VPOOL);
    struct isa_VPOOL *p = &in.u.VPOOL;
    for (p->kind = 1; p->kind <= 4; p->kind++) {
        p->kh = p->kw = 3;
        p->pad_top = p->pad_left = 1;
        p->in0 = pat(ISA_SPM, ISA_F16, 0, 70, 12, 12);
        p->out = pat(ISA_SPM, ISA_F16, 2 * QUARTER, 70, 12, 12);
        print("v.pool", "f16", run(m, &in));
    }
    for (int from = 0; from < ON_CHIP; from++) {
        uint64_t h = hash_start;
        for (int to = 0; to < ON_CHIP; to++) {
            isa_init(&in, ISA_OP_COPY);
            struct isa_COPY *c = &in.u.COPY;
            c->src = pat(ISA_DRAM, types[from], 0, 250, 30, 1);
            c->dst = pat(ISA_SPM, types[to], 64, 250, 30, 1);
            uint64_t one = run(m, &in);
            h = hash(h, &one, sizeof one);
        }
        print("dma.copy", isa_dtype_name(types[from]), h);
    }
}

int main(void) {
    struct machine m = {.agree = true};
    m.mem = (struct val_mem){base_alloc(SPM), base_alloc(PSUM), translate, &m, val_work_new()};
    m.dram = base_alloc(DRAM);
    if (!m.mem.spm || !m.mem.psum || !m.mem.work || !m.dram) return 6;
    conversions();
    operations();
    reductions();
    products(&m);
    maps(&m);
    rest(&m);
    val_work_free(m.mem.work);
    base_free(m.mem.spm);
    base_free(m.mem.psum);
    base_free(m.dram);
    return m.agree ? 0 : 1;
}
