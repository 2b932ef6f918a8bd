// SPDX-License-Identifier: Apache-2.0
// Products of one row by constant weights on the vector engine: out[n] = chain(sum of a[k]
// w[n][k]).
//
// The matrix engine loads a block of weights for every row of its array to be used once, and its
// result comes a whole array later. The vector engine reads the weights as they stream in:
//
//   for each tile of columns: load w[tn][K]; V.RED of a * w along k into f32; V.MAP with the chain
//
// Gated products reduce both columns, then multiply. Which engine is faster is decided by price.
#include "toolchain/lower/matmul.h"
#include "toolchain/lower/mm_plan.h"

#include <string.h>

#include "isa/timing.h"

enum { LONGEST_K = 65536, FIRST, SECOND };

struct streams {
    struct lower_stream a, w[2], out, extra[3];
    int64_t acc_bytes;
};

// Weights as rows of k, one per column of the result.
static struct lower_view rows_view(const struct lower_mm *mm, int buf) {
    struct lower_view v = {.buf = buf, .dtype = mm->b.dtype};
    v.stride[0] = mm->k;
    v.stride[1] = 1;
    return v;
}

static void streams_init(const struct lower *L, const struct lower_mm *mm, int64_t tn,
                         struct streams *s) {
    int64_t full[2] = {mm->n, mm->k}, block[2] = {tn, mm->k};
    struct lower_grid grid = {2, full, block}, columns = {1, full, block};
    struct lower_view v = rows_view(mm, -1), a = mm->a, o = mm->out;
    memset(s, 0, sizeof *s);
    a.stride[0] = 0; // of columns, then k
    o.stride[0] = mm->out.stride[1];
    o.stride[1] = 0;
    lower_stream_init(&s->a, "a", &a, grid, L->slots, true);
    for (int i = 0; i < (mm->gate.on ? 2 : 1); i++)
        lower_stream_init(&s->w[i], i ? "w1" : "w", &v, grid, L->slots, false);
    lower_stream_init(&s->out, "out", &o, columns, L->slots, false);
    static const char *const names[3] = {"", "in1", "in2"};
    for (int i = 1; i < 3; i++) {
        if (!mm->e.has[i]) continue;
        struct lower_view e = mm->e.in[i];
        e.stride[0] = e.stride[1];
        e.stride[1] = 0;
        int64_t bytes = lower_dtype_bytes(e.dtype) * (e.stride[0] ? mm->n : 1);
        lower_stream_init(&s->extra[i], names[i], &e, columns, L->slots, bytes <= 16384);
    }
    s->acc_bytes = lower_ceil(tn * 4, 64) * 64;
}

static int64_t all_bytes(const struct streams *s) {
    int64_t n = lower_stream_bytes(&s->a) + lower_stream_bytes(&s->out) + 2 * s->acc_bytes;
    for (int i = 0; i < 2; i++)
        n += lower_stream_bytes(&s->w[i]) + lower_stream_bytes(&s->extra[1 + i]);
    return n;
}

static void price(const struct lower *L, const struct lower_mm *mm, struct matvec *t) {
    struct streams s;
    streams_init(L, mm, t->tn, &s);
    t->bytes = all_bytes(&s);
    int products = mm->gate.on ? 2 : 1;
    double steps = (double)lower_ceil(mm->n, t->tn);
    struct lower_step step = {.spm_bytes = t->bytes};
    step.dma_cycles = products * lower_dma_cycles(L, &s.w[0].src, 2, s.w[0].block) +
                      lower_dma_cycles(L, &s.out.src, 1, s.out.block);
    step.dma_bytes = products * lower_dma_bytes(L, &s.w[0].src, 2, s.w[0].block) +
                     lower_dma_bytes(L, &s.out.src, 1, s.out.block);
    struct isa_vec_shape red = {
        .elems = t->tn * mm->k, .steps = 1, .stages = 1, .rows = t->tn, .row = mm->k};
    red.in[0] = (struct isa_vec_port){red.elems, L->hw->vec_lanes};
    red.in[1] = (struct isa_vec_port){mm->k, L->hw->vec_lanes};
    struct isa_vec_shape end = {.elems = t->tn, .steps = 1, .stages = 4};
    double one = (double)isa_time_vec(L->hw, &red).issue_cycles,
           latency = 2 * (double)(L->hw->vec_start + L->hw->vec_latency + L->hw->cp_semaphore);
    step.vec_cycles = products * one + (double)isa_time_vec(L->hw, &end).issue_cycles + latency;
    t->cycles = lower_steps_cycles(L, steps, &step);
}

bool matvec_choose(const struct lower *L, const struct lower_mm *mm, struct matvec *out) {
    bool any = false;
    if (!mm->data || mm->nbatch || mm->m != 1 || mm->k > LONGEST_K || mm->k < 2 ||
        !isa_dtype_is_float((int)mm->a.dtype) || !isa_dtype_is_float((int)mm->b.dtype))
        return false;
    for (int64_t parts = 1; parts <= 128; parts *= 2) {
        struct matvec t = {.tn = lower_min(lower_ceil(mm->n, parts), 65536)};
        if (parts > mm->n) break;
        price(L, mm, &t);
        if (t.bytes > lower_spm(L, true) || (any && t.cycles >= out->cycles)) continue;
        *out = t;
        any = true;
    }
    return any;
}

static int pack(struct lower *L, const struct lower_mm *mm, int which) {
    struct tile_block b = {.from = which ? mm->gate.data : mm->data,
                           .from_dtype = which ? mm->gate.data_dtype : mm->data_dtype,
                           .dtype = mm->b.dtype,
                           .from_at = mm->gate.on ? mm->gate.at[which] : 0,
                           .rank = 2,
                           .size = {mm->n, mm->k},
                           .from_stride = {mm->b.stride[1], mm->b.stride[0]},
                           .to_stride = {mm->k, 1}};
    return tile_add_weight(L->p, mm->data_name, mm->n * mm->k * lower_dtype_bytes(mm->b.dtype), &b,
                           1);
}

// The elementwise work after the sums.
static void finish(struct lower *L, const struct lower_mm *mm, int64_t n,
                   const struct lower_view acc[2], const struct lower_view *const extra[3],
                   const struct lower_view *out) {
    if (!mm->gate.on) {
        lower_map(L, 1, &n, &mm->e.chain,
                  (const struct lower_view *[]){&acc[0], extra[1], extra[2]}, out);
        return;
    }
    struct mm_gated g = mm_gated_chains(mm);
    if (g.biased[1])
        lower_map(L, 1, &n, &g.add, (const struct lower_view *[]){&acc[1], extra[2], NULL},
                  &acc[1]);
    const struct lower_view *plain[3] = {&acc[0], &acc[1], NULL},
                            *with[3] = {&acc[0], extra[1], &acc[1]};
    lower_map(L, 1, &n, &g.all, g.biased[0] ? with : plain, out);
}

void matvec_run(struct lower *L, const struct lower_mm *mm, const struct matvec *t) {
    int products = mm->gate.on ? 2 : 1;
    struct streams s;
    struct lower_view acc[2];
    streams_init(L, mm, t->tn, &s);
    for (int i = 0; i < products; i++)
        s.w[i].src.buf = pack(L, mm, i);
    lower_stream_open(L, &s.a);
    for (int i = 0; i < products; i++)
        lower_stream_open(L, &s.w[i]);
    for (int i = 1; i < 3; i++)
        lower_stream_open(L, &s.extra[i]);
    lower_stream_open(L, &s.out);
    for (int i = 0; i < 2; i++)
        acc[i] = (struct lower_view){.buf = i < products ? tile_add_spm(L->p, "acc", s.acc_bytes, 1)
                                                         : -1,
                                     .dtype = ISA_F32,
                                     .stride = {1}};
    L->kernel->macs += products * mm->n * mm->k;
    L->kernel->vector_elems += products * mm->n * mm->k;
    L->kernel->estimate_cycles += t->cycles;
    struct isa_chain mul;
    memset(&mul, 0, sizeof mul);
    mul.st[0] = (struct isa_stage){.op = ISA_VOP_MUL, .a = ISA_SRC_IN1};
    struct lower_red sum = {ISA_RED_SUM, false, 1, &mul};
    for (int64_t at = 0; at < mm->n; at += t->tn) {
        int64_t start[LOWER_DIMS] = {at}, size[LOWER_DIMS] = {lower_min(t->tn, mm->n - at), mm->k};
        struct lower_view v[3];
        const struct lower_view *extra[3] = {NULL};
        tile_step(L->p);
        struct lower_view a = lower_stream_fetch(L, &s.a, start, size);
        for (int i = 0; i < products; i++) {
            struct lower_view w = lower_stream_fetch(L, &s.w[i], start, size);
            lower_reduce_block(L, &sum, 2, size, (const struct lower_view *[]){&w, &a, NULL},
                               &acc[i]);
        }
        for (int i = 1; i < 3; i++) {
            if (!mm->e.has[i]) continue;
            v[i] = lower_stream_fetch(L, &s.extra[i], start, size);
            extra[i] = &v[i];
        }
        struct lower_view out = lower_sink_tile(&s.out, start);
        finish(L, mm, size[0], acc, extra, &out);
        lower_sink_store(L, &s.out, &out, start, size);
    }
}
