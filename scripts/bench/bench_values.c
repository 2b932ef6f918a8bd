// SPDX-License-Identifier: Apache-2.0
//
// Host speed of the value kernels: best of several runs of one instruction, on each code path of
// this processor. Prints a table. Usage: bench_values [filter]
#define _POSIX_C_SOURCE 200809L

#include "isa/numeric.h"
#include "runtime/base/alloc.h"
#include "simulator/exec/val.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SPM = 16 << 20, PSUM = 8 << 20 };

struct bench {
    struct val_mem mem;
    const char *filter;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Best time of one instruction, in seconds.
static double best(const struct bench *b, const struct isa_insn *in) {
    double least = 1e9, spent = 0.0;
    for (int i = 0; i < 2000 && (i < 3 || spent < 0.3); i++) {
        struct val_fault fault;
        double t = now();
        if (!val_exec(&b->mem, in, &fault)) fprintf(stderr, "%s\n", fault.text);
        t = now() - t;
        spent += t;
        if (t < least) least = t;
    }
    return least;
}

static void report(const struct bench *b, const char *name, const struct isa_insn *in, double work,
                   const char *unit) {
    if (b->filter && !strstr(name, b->filter)) return;
    printf("%-34s", name);
    for (enum val_isa isa = VAL_SSE2; isa <= VAL_AVX512; isa++) {
        if (!val_set_isa(isa)) continue;
        double t = best(b, in);
        printf("  %s %8.2f us %7.2f", val_isa_name(isa), t * 1e6, work / t * 1e-9);
    }
    printf("  %s\n", unit);
}

static struct isa_pat pat(int space, int dtype, int64_t base, int64_t n0, int64_t n1, int64_t n2) {
    struct isa_pat p = {.space = space,
                        .dtype = dtype,
                        .base = base,
                        .size = {n0, n1, n2, 1, 1},
                        .stride = {1, n0, n0 * n1, 0, 0}};
    return p;
}

static uint32_t rnd(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 24);
}

static void fill(struct bench *b, const struct isa_pat *p) {
    uint8_t *base = (p->space == ISA_PSUM ? b->mem.psum : b->mem.spm) + p->base;
    for (int64_t i = 0; i < isa_pat_elems(p); i++)
        num_store_f32((int)p->dtype, base, i, (float)((int)(rnd() % 2001u) - 1000) / 500.0f);
}

static void mm(struct bench *b, int dtype, int64_t m, int64_t n, int64_t k, bool transposed) {
    struct isa_insn in;
    char name[64];
    isa_init(&in, ISA_OP_MM);
    struct isa_MM *v = &in.u.MM;
    v->init = 1;
    v->a = pat(ISA_SPM, dtype, 0, k, m, 1);
    v->b = pat(ISA_SPM, dtype, SPM / 2, n, k, 1);
    v->d = pat(ISA_PSUM, isa_dtype_is_float(dtype) ? ISA_F32 : ISA_I32, 0, n, m, 1);
    if (transposed) v->b.stride[0] = k, v->b.stride[1] = 1;
    fill(b, &v->a);
    fill(b, &v->b);
    snprintf(name, sizeof name, "mm %s %dx%dx%d%s", isa_dtype_name(dtype), (int)m, (int)n, (int)k,
             transposed ? " B^T" : "");
    report(b, name, &in, 2.0 * (double)(m * n * k), "GFLOP/s");
}

static void conv(struct bench *b, int dtype, int64_t hw, int64_t cin, int64_t cout, int64_t kernel,
                 int64_t stride) {
    struct isa_insn in;
    char name[64];
    isa_init(&in, ISA_OP_MMCONV);
    struct isa_MMCONV *v = &in.u.MMCONV;
    int64_t out = hw / stride, k = kernel * kernel * cin;
    v->init = 1;
    v->kh = v->kw = kernel;
    v->sh = v->sw = stride;
    v->pad_top = v->pad_left = kernel / 2;
    v->a = pat(ISA_SPM, dtype, 0, cin, hw, hw);
    v->b = pat(ISA_SPM, dtype, SPM / 2, cout, k, 1);
    v->d = pat(ISA_PSUM, isa_dtype_is_float(dtype) ? ISA_F32 : ISA_I32, 0, cout, out, out);
    fill(b, &v->a);
    fill(b, &v->b);
    snprintf(name, sizeof name, "conv %s %dx%dx%d k%d s%d -> %d", isa_dtype_name(dtype), (int)hw,
             (int)hw, (int)cin, (int)kernel, (int)stride, (int)cout);
    report(b, name, &in, 2.0 * (double)(out * out * cout * k), "GFLOP/s");
}

static void map(struct bench *b, const char *name, int from, int to, struct isa_chain chain,
                int red) {
    struct isa_insn in;
    isa_init(&in, ISA_OP_VMAP);
    struct isa_VMAP *v = &in.u.VMAP;
    v->in0 = pat(ISA_SPM, from, 0, 512, 512, 1);
    v->in1 = pat(ISA_SPM, from, SPM / 4, 512, 512, 1);
    v->in1.stride[1] = 0;
    v->out = pat(ISA_SPM, to, SPM / 2, 512, 512, 1);
    v->chain = chain;
    v->red = red;
    v->red_dims = 1;
    if (red) v->red_out = pat(ISA_SPM, ISA_F32, SPM - 65536, 512, 1, 1);
    fill(b, &v->in0);
    fill(b, &v->in1);
    report(b, name, &in, 512.0 * 512.0, "G elements/s");
}

static struct isa_chain one(int op) {
    struct isa_chain c = {.st = {{op, ISA_SRC_IN1, 0, 0}}};
    return c;
}

static void maps(struct bench *b) {
    struct isa_chain softmax = {.st = {{ISA_VOP_SUB, ISA_SRC_IN1, 0, 0}, {ISA_VOP_EXP, 0, 0, 0}}};
    struct isa_chain bias = {.st = {{ISA_VOP_ADD, ISA_SRC_IN1, 0, 0}, {ISA_VOP_GELU, 0, 0, 0}}};
    struct isa_chain mask = {
        .st = {{ISA_VOP_MUL, ISA_SRC_IMM0, 0, 0}, {ISA_VOP_APRED, ISA_SRC_IMM1, 0, 0}}};
    map(b, "v.map f16 copy", ISA_F16, ISA_F16, one(ISA_VOP_NOP), 0);
    map(b, "v.map f16 add", ISA_F16, ISA_F16, one(ISA_VOP_ADD), 0);
    map(b, "v.map f32 to f16 add", ISA_F32, ISA_F16, one(ISA_VOP_ADD), 0);
    map(b, "v.map f16 exp", ISA_F16, ISA_F16, one(ISA_VOP_EXP), 0);
    map(b, "v.map f16 sub exp, sum", ISA_F16, ISA_F16, softmax, ISA_RED_SUM);
    map(b, "v.map f32 add gelu to f16", ISA_F32, ISA_F16, bias, 0);
    map(b, "v.map f32 mul mask, max", ISA_F32, ISA_F16, mask, ISA_RED_MAX);
    map(b, "v.map f16 erf", ISA_F16, ISA_F16, one(ISA_VOP_ERF), 0);
    map(b, "v.map f16 tanh", ISA_F16, ISA_F16, one(ISA_VOP_TANH), 0);
    map(b, "v.map f16 silu", ISA_F16, ISA_F16, one(ISA_VOP_SILU), 0);
    map(b, "v.map f16 log", ISA_F16, ISA_F16, one(ISA_VOP_LOG), 0);
    map(b, "v.map f16 sin", ISA_F16, ISA_F16, one(ISA_VOP_SIN), 0);
    map(b, "v.map f16 rsqrt", ISA_F16, ISA_F16, one(ISA_VOP_RSQRT), 0);
    map(b, "v.map bf16 add", ISA_BF16, ISA_BF16, one(ISA_VOP_ADD), 0);
    map(b, "v.map i8 add", ISA_I8, ISA_I8, one(ISA_VOP_ADD), 0);
    map(b, "v.map f32 to i8", ISA_F32, ISA_I8, one(ISA_VOP_NOP), 0);
    map(b, "v.map f8e4m3 add", ISA_F8E4M3, ISA_F8E4M3, one(ISA_VOP_ADD), 0);
}

static void windows(struct bench *b) {
    struct isa_insn in;
    isa_init(&in, ISA_OP_VDW);
    struct isa_VDW *d = &in.u.VDW;
    d->kh = d->kw = 3;
    d->pad_top = d->pad_left = 1;
    d->in0 = pat(ISA_SPM, ISA_F16, 0, 96, 56, 56);
    d->w = pat(ISA_SPM, ISA_F16, SPM / 2, 96, 9, 1);
    d->out = pat(ISA_SPM, ISA_F16, SPM / 4, 96, 56, 56);
    fill(b, &d->in0);
    fill(b, &d->w);
    report(b, "v.dw f16 56x56x96 k3", &in, 2.0 * 56 * 56 * 96 * 9, "GFLOP/s");
    isa_init(&in, ISA_OP_VPOOL);
    struct isa_VPOOL *p = &in.u.VPOOL;
    p->kind = ISA_POOL_MAX;
    p->kh = p->kw = 3;
    p->sh = p->sw = 2;
    p->pad_top = p->pad_left = 1;
    p->in0 = pat(ISA_SPM, ISA_F16, 0, 64, 112, 112);
    p->out = pat(ISA_SPM, ISA_F16, SPM / 2, 64, 56, 56);
    fill(b, &p->in0);
    report(b, "v.pool f16 112x112x64 max k3 s2", &in, 56.0 * 56 * 64 * 9, "G taps/s");
}

static void copies(struct bench *b) {
    struct isa_insn in;
    isa_init(&in, ISA_OP_COPY);
    struct isa_COPY *c = &in.u.COPY;
    c->src = pat(ISA_SPM, ISA_F16, 0, 512, 512, 1);
    c->dst = pat(ISA_SPM, ISA_F16, SPM / 2, 512, 512, 1);
    report(b, "dma.copy f16", &in, 2.0 * 512 * 512, "GB/s");
    c->src.stride[1] = 600;
    report(b, "dma.copy f16 rows", &in, 2.0 * 512 * 512, "GB/s");
    c->src.stride[0] = 512, c->src.stride[1] = 1;
    report(b, "dma.copy f16 transposed", &in, 2.0 * 512 * 512, "GB/s");
    c->src = pat(ISA_SPM, ISA_F32, 0, 512, 512, 1);
    report(b, "dma.copy f32 to f16", &in, 4.0 * 512 * 512, "GB/s");
}

int main(int argc, char *argv[]) {
    struct bench b = {.filter = argc > 1 ? argv[1] : NULL};
    b.mem.spm = base_alloc(SPM);
    b.mem.psum = base_alloc(PSUM);
    b.mem.work = val_work_new();
    if (!b.mem.spm || !b.mem.psum || !b.mem.work) return 6;
    mm(&b, ISA_F16, 128, 128, 128, false);
    mm(&b, ISA_F16, 128, 128, 128, true);
    mm(&b, ISA_F16, 512, 768, 768, false);
    mm(&b, ISA_F16, 512, 512, 64, true);
    mm(&b, ISA_F16, 512, 64, 512, false);
    mm(&b, ISA_F16, 1, 768, 768, false);
    mm(&b, ISA_F16, 8, 8, 8, false);
    mm(&b, ISA_F16, 32, 32, 32, false);
    mm(&b, ISA_BF16, 128, 128, 128, false);
    mm(&b, ISA_F32, 128, 128, 128, false);
    mm(&b, ISA_F8E4M3, 128, 128, 128, false);
    mm(&b, ISA_I8, 128, 128, 128, false);
    mm(&b, ISA_I8, 512, 768, 768, false);
    conv(&b, ISA_F16, 56, 64, 64, 3, 1);
    conv(&b, ISA_F16, 224, 3, 64, 7, 2);
    conv(&b, ISA_F16, 14, 256, 256, 3, 1);
    conv(&b, ISA_F16, 56, 64, 256, 1, 1);
    conv(&b, ISA_I8, 56, 64, 64, 3, 1);
    maps(&b);
    windows(&b);
    copies(&b);
    val_work_free(b.mem.work);
    base_free(b.mem.spm);
    base_free(b.mem.psum);
    return 0;
}
