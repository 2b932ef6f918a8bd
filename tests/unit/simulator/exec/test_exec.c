// SPDX-License-Identifier: Apache-2.0
// Whole programs against plain C: values, registers, loops, calls, predicates, the order of the
// sink, and the instructions that compute without values.
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"
#include "tests/unit/simulator/exec/prog.h"

static float noise(uint32_t *s) {
    *s = *s * 1664525u + 1013904223u;
    return (float)(int32_t)*s / 2147483648.0f;
}

static void run_ok(struct prog *p) {
    struct str s = {0};
    enum exec_fault_kind kind = prog_run(p);
    if (kind) fault_print(exec_fault_of(p->x), p->job.code, NULL, NULL, &s);
    cr_assert_eq(kind, EXEC_FAULT_NONE, "%s", str_text(&s));
    str_free(&s);
}

// C[16][8] = gelu(A[16][24] B[24][8]), two k blocks, f32.
Test(exec, matrix_product_and_gelu) {
    struct prog p;
    float a[16 * 24], b[24 * 8], c[16 * 8];
    uint32_t s = 7;
    for (int i = 0; i < 16 * 24; i++)
        a[i] = noise(&s);
    for (int i = 0; i < 24 * 8; i++)
        b[i] = noise(&s);
    prog_init(&p);
    prog_put_floats(&p, 0, a, 16 * 24);
    prog_put_floats(&p, 0x1000, b, 24 * 8);
    prog_text(
        &p, "dma.copy @dma0 src=dram:f32+0x0[384:1] dst=spm:f32+0x0[384:1]\n"
            "dma.copy @dma0 src=dram:f32+0x1000[192:1] dst=spm:f32+0x1000[192:1] signal=1:1:done\n"
            "mm init=1 a=spm:f32+0x0[16:24,12:1] b=spm:f32+0x1000[12:8,8:1] "
            "d=psum:f32+0x0[16:8,8:1] wait=1:1\n"
            "mm a=spm:f32+0x30[16:24,12:1] b=spm:f32+0x1180[12:8,8:1] d=psum:f32+0x0[16:8,8:1] "
            "signal=2:1:done\n"
            "v.map out=spm:f32+0x2000[16:8,8:1] in0=psum:f32+0x0[16:8,8:1] chain=(gelu) wait=2:1 "
            "signal=3:1:done\n"
            "dma.copy @dma1 src=spm:f32+0x2000[128:1] dst=dram:f32+0x2000[128:1] wait=3:1\nhalt");
    run_ok(&p);
    prog_get_floats(&p, 0x2000, c, 16 * 8);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 8; n++) {
            float acc = 0;
            for (int k = 0; k < 24; k++)
                acc = fmaf(a[m * 24 + k], b[k * 8 + n], acc);
            double want = (double)acc / 2 * (1 + erf((double)acc / sqrt(2)));
            cr_assert_lt(fabs((double)c[m * 8 + n] - want), 1e-6);
        }
    prog_deinit(&p);
}

// Softmax over rows of 20: maximum, exponentials with their sum, division.
Test(exec, softmax) {
    struct prog p;
    float x[6 * 20], y[6 * 20];
    uint32_t s = 9;
    for (int i = 0; i < 120; i++)
        x[i] = 8 * noise(&s);
    prog_init(&p);
    prog_put_floats(&p, 0, x, 120);
    prog_text(
        &p, "dma.copy @dma0 src=dram:f32+0x0[120:1] dst=spm:f32+0x0[120:1] signal=1:1:done\n"
            "v.red red=max red_dims=1 out=spm:f32+0x1000[6:1] in0=spm:f32+0x0[6:20,20:1] wait=1:1\n"
            "v.map red=sum red_dims=1 out=spm:f32+0x2000[6:20,20:1] in0=spm:f32+0x0[6:20,20:1] "
            "in1=spm:f32+0x1000[6:1,20:0] chain=(sub in1;exp) red_out=spm:f32+0x1100[6:1]\n"
            "v.map out=spm:f32+0x2000[6:20,20:1] in0=spm:f32+0x2000[6:20,20:1] "
            "in1=spm:f32+0x1100[6:1,20:0] "
            "chain=(div in1) signal=2:1:done\n"
            "dma.copy @dma1 src=spm:f32+0x2000[120:1] dst=dram:f32+0x2000[120:1] wait=2:1\nhalt");
    run_ok(&p);
    prog_get_floats(&p, 0x2000, y, 120);
    for (int r = 0; r < 6; r++) {
        double max = -1e9, sum = 0;
        for (int i = 0; i < 20; i++)
            max = fmax(max, (double)x[r * 20 + i]);
        for (int i = 0; i < 20; i++)
            sum += exp((double)x[r * 20 + i] - max);
        for (int i = 0; i < 20; i++)
            cr_assert_lt(fabs((double)y[r * 20 + i] - exp((double)x[r * 20 + i] - max) / sum),
                         1e-6);
    }
    prog_deinit(&p);
}

// 3x3 convolution of 4 channels, 6 x 7, stride 1, padding 1, 8 outputs.
Test(exec, convolution) {
    enum { H = 6, W = 7, C = 4, N = 8 };
    struct prog p;
    float x[H * W * C], w[9 * C * N], y[H * W * N];
    uint32_t s = 11;
    for (int i = 0; i < H * W * C; i++)
        x[i] = noise(&s);
    for (int i = 0; i < 9 * C * N; i++)
        w[i] = noise(&s);
    prog_init(&p);
    prog_put_floats(&p, 0, x, H * W * C);
    prog_put_floats(&p, 0x1000, w, 9 * C * N);
    prog_text(
        &p, "dma.copy @dma0 src=dram:f32+0x0[168:1] dst=spm:f32+0x0[168:1]\n"
            "dma.copy @dma0 src=dram:f32+0x1000[288:1] dst=spm:f32+0x1000[288:1] signal=1:1:done\n"
            "mm.conv init=1 kh=3 kw=3 sh=1 sw=1 dh=1 dw=1 pad_top=1 pad_left=1 "
            "a=spm:f32+0x0[6:28,7:4,4:1] "
            "b=spm:f32+0x1000[36:8,8:1] d=psum:f32+0x0[6:56,7:8,8:1] wait=1:1 signal=2:1:done\n"
            "dma.copy @dma1 src=psum:f32+0x0[336:1] dst=dram:f32+0x2000[336:1] wait=2:1\nhalt");
    run_ok(&p);
    prog_get_floats(&p, 0x2000, y, H * W * N);
    for (int o = 0; o < H * W * N; o++) {
        const int n = o % N, q = o / N % W, r = o / N / W;
        float acc = 0;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                for (int c = 0; c < C; c++) {
                    const int h = r + i - 1, v = q + j - 1;
                    if (h < 0 || h >= H || v < 0 || v >= W) continue;
                    acc = fmaf(x[(h * W + v) * C + c], w[((i * 3 + j) * C + c) * N + n], acc);
                }
        cr_assert_eq(y[o], acc);
    }
    prog_deinit(&p);
}

// y = 2 x over 20 tiles of 64, two buffers each way, in a loop whose registers move the addresses.
Test(exec, double_buffered_loop) {
    enum { N = 20 * 64 };
    struct prog p;
    float x[N], y[N];
    uint32_t s = 5;
    for (int i = 0; i < N; i++)
        x[i] = noise(&s);
    prog_init(&p);
    prog_put_floats(&p, 0, x, N);
    prog_text(
        &p,
        "sync @vec signal=1:2:read\nsync @dma1 signal=4:2:read\n"
        "seti rd=r2 imm=0\n"
        "loop count=10 a0=r1 inc0=512\n"
        "dma.copy @dma0 src=dram:f32+0x0+r1[64:1] dst=spm:f32+0x0[64:1] wait=1:1 signal=2:1:done\n"
        "v.map out=spm:f32+0x1000[64:1] in0=spm:f32+0x0[64:1] chain=(add acc) wait=2:1 wait=4:1 "
        "signal=1:1:read signal=3:1:done\n"
        "dma.copy @dma1 src=spm:f32+0x1000[64:1] dst=dram:f32+0x8000+r1[64:1] wait=3:1 "
        "signal=4:1:read\n"
        "dma.copy @dma0 src=dram:f32+0x100+r1[64:1] dst=spm:f32+0x100[64:1] wait=1:1 "
        "signal=2:1:done\n"
        "v.map out=spm:f32+0x1100[64:1] in0=spm:f32+0x100[64:1] chain=(add acc) wait=2:1 wait=4:1 "
        "signal=1:1:read signal=3:1:done\n"
        "dma.copy @dma1 src=spm:f32+0x1100[64:1] dst=dram:f32+0x8100+r1[64:1] wait=3:1 "
        "signal=4:1:read\n"
        "endl\nassert cond=eq rs1=r1 imm=0\nhalt");
    run_ok(&p);
    prog_get_floats(&p, 0x8000, y, N);
    for (int i = 0; i < N; i++)
        cr_assert_eq(y[i], x[i] + x[i]);
    prog_deinit(&p);
}

Test(exec, scalars) {
    struct prog p;
    prog_init(&p);
    p.job.doorbell[3] = 41;
    prog_text(&p,
              "lddb rd=r1 index=3\nalu rd=r1 func=add rs1=r1 imm=1\nassert cond=eq rs1=r1 imm=42\n"
              "alu rd=r2 func=mul rs1=r1 rs2=r1\nassert cond=eq rs1=r2 imm=1764\n"
              "alu rd=r3 func=shl rs1=r1 imm=63\nassert cond=eq rs1=r3 imm=0\n"
              "alu rd=r3 func=shr rs1=r1 imm=64\nassert cond=eq rs1=r3 imm=0\n"
              "alu rd=r3 func=min rs1=r1 imm=-7\nassert cond=eq rs1=r3 imm=-7\n"
              "alu rd=r4 func=cmplt rs1=r3 rs2=r1\nassert cond=eq rs1=r4 imm=1\n"
              "sts rs2=r3 space=spm width=2 offset=0x20\nlds rd=r5 space=spm width=2 offset=0x20\n"
              "assert cond=eq rs1=r5 imm=0xfff9\nlds rd=r5 space=spm width=2 sext=1 offset=0x20\n"
              "assert cond=eq rs1=r5 imm=-7\nsts rs2=r2 space=dram width=8 offset=0x40\n"
              "lds rd=r6 space=dram width=8 offset=0x40\nassert cond=eq rs1=r6 imm=1764\n"
              "irq id=5\nhalt");
    run_ok(&p);
    cr_assert_eq(exec_stats_of(p.x)->irq_status, 1u << 5);
    prog_deinit(&p);
}

struct seen {
    uint64_t count;
    uint32_t pc[64], tag[64];
    int engine[64], depth[64];
    bool skipped[64];
    uint64_t rows;
};

static npu_status see(void *ctx, const struct exec_dyn *dyn) {
    struct seen *s = ctx;
    cr_assert_eq(dyn->seq, s->count);
    cr_assert_lt(s->count, 64u);
    s->pc[s->count] = dyn->pc_granule;
    s->tag[s->count] = dyn->tag;
    s->engine[s->count] = dyn->engine;
    s->depth[s->count] = dyn->loop_depth;
    s->skipped[s->count++] = dyn->skipped;
    return NULL;
}

static npu_status see_rows(void *ctx, uint64_t seq, const int64_t *row, int64_t nrow) {
    struct seen *s = ctx;
    cr_assert_lt(seq, s->count);
    for (int64_t i = 0; i < nrow; i++)
        s->rows = s->rows * 10 + (uint64_t)(row[i] + 1);
    return NULL;
}

Test(exec, the_sink_sees_dispatch_order_tags_and_predicates) {
    struct prog p;
    struct seen s = {0};
    prog_init(&p);
    p.job.sink = see;
    p.job.sink_ctx = &s;
    // vec waits for what mxu signals later: dispatched first, executed last.
    prog_text(&p, "sync @vec wait=1:1 tag=7\nloop count=2\ncall offset=6 tagbase=100\nsync @mxu "
                  "pred=r1\nendl\n"
                  "sync @mxu signal=1:1:done\nhalt\nsync @dma0 tag=3\nret");
    run_ok(&p);
    static const uint32_t pc[] = {0, 1, 3, 9, 10, 5, 6, 3, 9, 10, 5, 6, 7, 8};
    cr_assert_eq(s.count, sizeof pc / sizeof *pc);
    for (size_t i = 0; i < s.count; i++)
        cr_assert_eq(s.pc[i], pc[i], "entry %zu: %u", i, s.pc[i]);
    cr_assert_eq(s.tag[0], 7u);
    cr_assert_eq(s.tag[3], 103u);
    cr_assert_eq(s.depth[3], 1);
    cr_assert(s.skipped[5]);
    prog_deinit(&p);
}

// Indices are computed from an input (shifted by one) even when nobody wants values; the table is
// not touched.
Test(exec, without_values_only_what_feeds_addresses_is_computed) {
    struct prog p;
    struct seen s = {0};
    static const int32_t index[4] = {1, 0, 2, 1};
    static const float table[16] = {1, 2, 3};
    prog_init(&p);
    cr_assert_null(
        exec_dram_write(&p.dram, 0, (struct span){(const uint8_t *)index, sizeof index}));
    prog_put_floats(&p, 64, table, 16);
    p.job.values = false;
    p.job.sink = see;
    p.job.rows = see_rows;
    p.job.sink_ctx = &s;
    prog_text(
        &p, "dma.copy @dma0 src=dram:i32+0x0[4:1] dst=spm:i32+0x0[4:1] signal=1:1:done\n"
            "v.map out=spm:i32+0x40[4:1] in0=spm:i32+0x0[4:1] chain=(add imm0) imm0=1 wait=1:1 "
            "signal=2:1:done\n"
            "dma.gather @dma0 src=dram:f32+0x40[4:4,4:1] dst=spm:f32+0x100[4:4,4:1] "
            "idx=spm:i32+0x40[4:1] wait=2:1 signal=3:1:done\n"
            "v.map out=spm:f32+0x800[16:1] in0=spm:f32+0x100[16:1] chain=(exp) wait=3:1\n"
            "barrier\nlds rd=r1 space=spm width=4 offset=0x40\nassert cond=eq rs1=r1 imm=2\nhalt");
    run_ok(&p);
    cr_assert_eq(s.rows, 3u * 1000 + 2 * 100 + 4 * 10 + 3); // rows 2 1 3 2, plus one each
    float out;
    memcpy(&out, exec_spm(p.x) + 0x800, sizeof out);
    cr_assert_eq(out, 0.0f);
    prog_deinit(&p);
}

// The sum that is read accumulates over a loop: both reductions and both fills have to be computed.
Test(exec, without_values_accumulation_is_followed) {
    struct prog p;
    prog_init(&p);
    p.job.values = false;
    prog_text(
        &p,
        "loop count=5\n"
        "dma.fill @dma0 value=1 dst=spm:f32+0x0[64:1] signal=2:1:done\n"
        "v.red red=sum red_dims=1 out=spm:f32+0x800[1:0] in0=spm:f32+0x0[64:1] wait=2:1\n"
        "barrier\n"
        "dma.fill @dma0 value=2 dst=spm:f32+0x0[64:1] signal=2:1:done\n"
        "v.red red=sum red_dims=1 red_acc=1 out=spm:f32+0x800[1:0] in0=spm:f32+0x0[64:1] wait=2:1\n"
        "barrier\nendl\n"
        "lds rd=r1 space=spm width=4 offset=0x800\nassert cond=eq rs1=r1 imm=0x43400000\nhalt");
    run_ok(&p); // 64 + 128 = 192
    cr_assert_gt(exec_stats_of(p.x)->passes, 1u);
    prog_deinit(&p);
}

// The same bytes of memory with other code, granule 1 entered: in the middle of a product, then
// the second of several halts.
static enum exec_fault_kind entered(struct prog *p, const char *lines, uint64_t version) {
    p->bytes = 0;
    prog_text(p, lines);
    p->job.entry_bytes = ISA_GRANULE_BYTES;
    p->job.code_version = version;
    return prog_run(p);
}

Test(exec, the_code_is_looked_at_again_unless_its_version_is_known) {
    static const char product[] =
        "mm init=1 a=spm:f32+0x0[16:24,12:1] b=spm:f32+0x1000[12:8,8:1] d=psum:f32+0x0[16:8,8:1]";
    struct prog p;
    struct str halts = {0};
    prog_init(&p);
    prog_text(&p, product);
    for (size_t i = 0; i < p.bytes / ISA_GRANULE_BYTES; i++)
        str_puts(&halts, "halt\n");
    const struct {
        uint64_t product, halts;
        enum exec_fault_kind want; // of the halts
    } at[] = {{0, 0, EXEC_FAULT_NONE},
              {1, 2, EXEC_FAULT_NONE},
              {3, 0, EXEC_FAULT_NONE},
              {0, 4, EXEC_FAULT_NONE},
              {5, 5, EXEC_FAULT_BRANCH}}; // said to be the same
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        cr_assert_eq(entered(&p, product, at[i].product), EXEC_FAULT_BRANCH, "%zu", i);
        cr_assert_eq(entered(&p, str_text(&halts), at[i].halts), at[i].want, "%zu", i);
    }
    p.bytes -= ISA_GRANULE_BYTES; // another span
    cr_assert_eq(prog_run(&p), EXEC_FAULT_NONE);
    str_free(&halts);
    prog_deinit(&p);
}

Test(exec, constants_that_come_or_go_are_another_version) {
    static const uint8_t bytes[64];
    struct exec_dram d;
    exec_dram_init(&d);
    cr_assert_null(exec_dram_add(&d, 0, 4096));
    const uint64_t first = d.version;
    cr_assert_null(exec_dram_map(&d, 0, (struct span){bytes, sizeof bytes}));
    const uint64_t mapped = d.version;
    exec_dram_remove(&d, 0);
    cr_assert(first != mapped && mapped != d.version && mapped != 0);
    exec_dram_deinit(&d);
}
