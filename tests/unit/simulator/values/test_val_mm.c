// SPDX-License-Identifier: Apache-2.0
//
// mm and mm.conv on every code path against the naive loops: random shapes, strides, types, special
// values.

#include "naive.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct naive_mem start;

static const int float_types[] = {ISA_F16, ISA_BF16, ISA_F32, ISA_F8E4M3, ISA_F8E5M2};
static const int int_types[] = {ISA_I8, ISA_U8, ISA_I4, ISA_U4, ISA_I16};

// Types of the two operands, and zero points of integers.
static void pick_types(struct naive_rng *r, int *a, int *b, int64_t *za, int64_t *zb) {
    *za = *zb = 0;
    if (naive_pick(r, 0, 2)) {
        *a = float_types[naive_pick(r, 0, 4)];
        *b = naive_pick(r, 0, 2) ? *a : float_types[naive_pick(r, 0, 4)];
        return;
    }
    *a = int_types[naive_pick(r, 0, 4)];
    *b = int_types[naive_pick(r, 0, 4)];
    if (naive_pick(r, 0, 1)) *za = naive_pick(r, -128, 255), *zb = naive_pick(r, -128, 255);
    if (naive_pick(r, 0, 9) == 0) *za = 32767;
}

static void random_mm(struct naive_rng *r, struct isa_insn *in) {
    struct isa_MM *v = &in->u.MM;
    int a, b;
    isa_init(in, ISA_OP_MM);
    pick_types(r, &a, &b, &v->zero_a, &v->zero_b);
    bool thin = naive_pick(r, 0, 3) == 0; // few rows take a way of their own
    int64_t m1 = naive_pick(r, 1, thin ? 4 : 9), m2 = thin ? 1 : naive_pick(r, 1, 5),
            n = naive_pick(r, 1, 70);
    int64_t k = naive_pick(r, 0, 3) ? naive_pick(r, 1, 40) : naive_pick(r, 250, 300);
    if (k > 100) m2 = 1, n = naive_pick(r, 1, 34);
    v->init = naive_pick(r, 0, 1);
    v->a = naive_pat(r, ISA_SPM, a, (int64_t[]){k, m1, m2, 1, 1}, false, 0, NAIVE_SPM / 2);
    v->b = naive_pat(r, ISA_SPM, b, (int64_t[]){n, k, 1, 1, 1}, false, NAIVE_SPM / 2, NAIVE_SPM);
    v->d = naive_pat(r, ISA_PSUM, isa_dtype_is_float(a) ? ISA_F32 : ISA_I32,
                     (int64_t[]){n, m1, m2, 1, 1}, false, 0, NAIVE_PSUM);
    naive_fill_pat(r, &start, &v->a, naive_pick(r, 0, 3) == 0);
    naive_fill_pat(r, &start, &v->b, naive_pick(r, 0, 3) == 0);
}

static void random_conv(struct naive_rng *r, struct isa_insn *in) {
    struct isa_MMCONV *v = &in->u.MMCONV;
    int a, b;
    isa_init(in, ISA_OP_MMCONV);
    pick_types(r, &a, &b, &v->zero_a, &v->zero_b);
    int64_t cin = naive_pick(r, 0, 4) ? naive_pick(r, 1, 12) : naive_pick(r, 60, 70);
    int64_t h = naive_pick(r, 1, 9), w = naive_pick(r, 1, 9), n = naive_pick(r, 1, 40);
    v->kh = naive_pick(r, 1, 4);
    v->kw = naive_pick(r, 1, 4);
    v->sh = naive_pick(r, 1, 3);
    v->sw = naive_pick(r, 1, 3);
    v->dh = naive_pick(r, 1, 2);
    v->dw = naive_pick(r, 1, 2);
    v->pad_top = naive_pick(r, -2, 4);
    v->pad_left = naive_pick(r, -2, 4);
    v->init = naive_pick(r, 0, 1);
    int64_t k = v->kh * v->kw * cin;
    v->a = naive_pat(r, ISA_SPM, a, (int64_t[]){cin, w, h, 1, 1}, false, 0, NAIVE_SPM / 2);
    if (k * n > 14000) n = 14000 / k;
    v->b = naive_pat(r, ISA_SPM, b, (int64_t[]){n, k, 1, 1, 1}, false, NAIVE_SPM / 2, NAIVE_SPM);
    v->d = naive_pat(r, ISA_PSUM, isa_dtype_is_float(a) ? ISA_F32 : ISA_I32,
                     (int64_t[]){n, naive_pick(r, 1, 8), naive_pick(r, 1, 8), 1, 1}, false, 0,
                     NAIVE_PSUM);
    naive_fill_pat(r, &start, &v->a, naive_pick(r, 0, 3) == 0);
    naive_fill_pat(r, &start, &v->b, naive_pick(r, 0, 3) == 0);
}

Test(val_mm, random_products) {
    struct naive_rng r = {.state = 0x1234567};
    naive_fill(&r, &start);
    for (int i = 0; i < 400; i++) {
        struct isa_insn in;
        random_mm(&r, &in);
        naive_check(&start, &in);
    }
}

Test(val_mm, random_convolutions) {
    struct naive_rng r = {.state = 0x7654321};
    naive_fill(&r, &start);
    for (int i = 0; i < 400; i++) {
        struct isa_insn in;
        random_conv(&r, &in);
        naive_check(&start, &in);
    }
}

// Padding times infinity is not NaN, and adds nothing to -0.
Test(val_mm, padding_is_skipped) {
    struct naive_rng r = {.state = 99};
    naive_fill(&r, &start);
    struct isa_insn in;
    isa_init(&in, ISA_OP_MMCONV);
    struct isa_MMCONV *v = &in.u.MMCONV;
    v->kh = v->kw = 3;
    v->pad_top = v->pad_left = 1;
    v->a = (struct isa_pat){ISA_SPM, ISA_F16, 0, 0, 0, {2, 5, 5, 1, 1}, {1, 2, 10, 0, 0}};
    v->b = (struct isa_pat){ISA_SPM, ISA_F16, 0, 0, 4096, {8, 18, 1, 1, 1}, {1, 8, 0, 0, 0}};
    v->d = (struct isa_pat){ISA_PSUM, ISA_F32, 0, 0, 0, {8, 5, 5, 1, 1}, {1, 8, 40, 0, 0}};
    naive_fill_pat(&r, &start, &v->a, false);
    for (int k = 0; k < 18; k++)
        for (int n = 0; n < 8; n++) {
            uint16_t inf = 0x7c00;
            if (k < 2) memcpy(start.spm + 4096 + 2 * (8 * k + n), &inf, 2);
        }
    for (int i = 0; i < 200; i++) {
        uint32_t minus_zero = 0x80000000u;
        memcpy(start.psum + 4 * i, &minus_zero, 4);
    }
    naive_check(&start, &in);
    v->init = 1;
    naive_check(&start, &in);
}

// One product in two instructions over k is the product in one.
Test(val_mm, k_may_be_split_anywhere) {
    struct naive_rng r = {.state = 4242};
    struct naive_mem *one = malloc(sizeof *one), *two = malloc(sizeof *two);
    struct val_work *work = val_work_new();
    cr_assert(one && two && work);
    naive_fill(&r, &start);
    struct isa_insn in;
    isa_init(&in, ISA_OP_MM);
    struct isa_MM *v = &in.u.MM;
    v->init = 1;
    v->a = (struct isa_pat){ISA_SPM, ISA_BF16, 0, 0, 0, {100, 20, 1, 1, 1}, {1, 100, 0, 0, 0}};
    v->b = (struct isa_pat){ISA_SPM, ISA_BF16, 0, 0, 8192, {33, 100, 1, 1, 1}, {1, 33, 0, 0, 0}};
    v->d = (struct isa_pat){ISA_PSUM, ISA_F32, 0, 0, 0, {33, 20, 1, 1, 1}, {1, 33, 0, 0, 0}};
    naive_fill_pat(&r, &start, &v->a, false);
    naive_fill_pat(&r, &start, &v->b, false);
    for (int64_t cut = 1; cut < 100; cut += 7) {
        *one = start;
        *two = start;
        struct val_mem m1 = naive_val_mem(one, work), m2 = naive_val_mem(two, work);
        val_mm(&m1, &in);
        struct isa_insn part = in;
        part.u.MM.a.size[0] = part.u.MM.b.size[1] = cut;
        val_mm(&m2, &part);
        part.u.MM.init = 0;
        part.u.MM.a.size[0] = part.u.MM.b.size[1] = 100 - cut;
        part.u.MM.a.base += 2 * cut;
        part.u.MM.b.base += 2 * 33 * cut;
        val_mm(&m2, &part);
        cr_assert(memcmp(one, two, sizeof *one) == 0, "cut at %d", (int)cut);
    }
    val_work_free(work);
    free(one);
    free(two);
}

struct job {
    struct naive_mem mem;
    struct isa_insn in;
};

static void *run_job(void *arg) {
    struct job *job = arg;
    struct val_work *work = val_work_new();
    if (!work) return NULL;
    struct val_mem mem = naive_val_mem(&job->mem, work);
    for (int i = 0; i < 50; i++)
        val_mm(&mem, &job->in);
    val_work_free(work);
    return job;
}

Test(val_mm, threads_do_not_meet) {
    struct naive_rng r = {.state = 31};
    struct job *jobs = calloc(4, sizeof *jobs);
    pthread_t threads[4];
    cr_assert(jobs);
    naive_fill(&r, &start);
    struct isa_insn in;
    do
        random_mm(&r, &in);
    while (in.u.MM.a.dtype != ISA_F16);
    val_set_isa(VAL_AUTO);
    for (int i = 0; i < 4; i++) {
        jobs[i].mem = start;
        jobs[i].in = in;
        if (i) cr_assert(pthread_create(&threads[i], NULL, run_job, &jobs[i]) == 0);
    }
    run_job(&jobs[0]);
    for (int i = 1; i < 4; i++) {
        void *done = NULL;
        pthread_join(threads[i], &done);
        cr_assert(done == &jobs[i]);
        cr_assert(memcmp(&jobs[0].mem, &jobs[i].mem, sizeof start) == 0);
    }
    free(jobs);
}
