// SPDX-License-Identifier: Apache-2.0
// Closed forms against the reference tables of two other simulators, a brute-force event model of
// the matrix engine and one of the scratchpad's banks.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "isa/timing.h"

static void scalesim_hw(struct hw *hw, int dataflow, int rows, int cols) {
    hw_defaults(hw);
    hw->mxu_rows = rows;
    hw->mxu_cols = cols;
    hw->mxu_dataflow = dataflow;
    hw->mxu_load_rows = 1;
    hw->mxu_drain_rows = 0;
    hw->mxu_overlap = 0;
    hw->mxu_pipeline = 0;
    hw->mxu_min_ii = 1;
}

Test(timing, scalesim_table_is_met_exactly) {
    FILE *f = fopen(NPU_TEST_DATA "/scalesim_reference.csv", "r");
    cr_assert(f != NULL);
    char line[256];
    int rows = 0;
    cr_assert(fgets(line, sizeof line, f) != NULL);
    while (fgets(line, sizeof line, f)) {
        int m, n, k, r, c;
        char flow[8];
        long cycles;
        cr_assert(sscanf(line, "%d,%d,%d,%d,%d,%7[a-z],%ld", &m, &n, &k, &r, &c, flow, &cycles) ==
                  7);
        struct hw hw;
        scalesim_hw(&hw,
                    strcmp(flow, "ws") == 0   ? HW_WS
                    : strcmp(flow, "os") == 0 ? HW_OS
                                              : HW_IS,
                    r, c);
        const struct isa_mm_shape s = {
            .m = m, .n = n, .k = k, .dtype_a = ISA_F16, .dtype_b = ISA_F16};
        const struct isa_cost cost = isa_time_mm(&hw, &s);
        cr_expect(cost.done_cycles == cycles && cost.issue_cycles == cycles, "%s", line);
        rows++;
    }
    fclose(f);
    cr_assert(rows == 126);
}

// ONNXim: issue gap max(l, 4, H), latency of a pass after its load H + W - 2 + max(l, 4).
Test(timing, onnxim_form) {
    struct hw hw;
    hw_defaults(&hw);
    hw.mxu_load_rows = 1;
    hw.mxu_pipeline = 1;
    hw.mxu_min_ii = 4;
    for (int l = 1; l <= 600; l++) {
        const struct isa_mm_shape s = {
            .m = l, .n = 128, .k = 128, .dtype_a = ISA_F16, .dtype_b = ISA_F16};
        const struct isa_cost c = isa_time_mm(&hw, &s);
        cr_assert(c.issue_cycles == (l > 128 ? l : 128), "l = %d", l);
        if (l >= 128) cr_assert(c.done_cycles - c.load_cycles == 128 + 128 - 2 + l, "l = %d", l);
    }
}

// One pass after another, each as early as the rules allow: array free, stationary block loaded,
// and the partial sums of the previous pass on the same rows written. Returns when the last result
// is visible; *issue when the next product's load may begin.
static int64_t event_model(const struct hw *hw, const struct isa_mm_shape *s, int64_t *issue) {
    const int64_t r = hw->mxu_rows, c = hw->mxu_cols;
    const int64_t kb = (s->k + r - 1) / r, nb = (s->n + c - 1) / c;
    const int64_t load = (r + hw->mxu_load_rows - 1) / hw->mxu_load_rows;
    const int64_t busy = s->m > hw->mxu_min_ii ? s->m : hw->mxu_min_ii;
    int64_t written[64] = {0}, array_free = 0, loaded = load;
    cr_assert(nb <= 64);
    for (int64_t i = 0; i < kb; i++) {
        for (int64_t j = 0; j < nb; j++) {
            int64_t start = array_free > loaded ? array_free : loaded;
            if (start < written[j]) start = written[j];
            written[j] = start + r + hw->mxu_pipeline;
            array_free = start + busy;
            loaded = start + load; // the next block loads into the second buffer meanwhile
        }
    }
    const int64_t end = array_free > loaded ? array_free : loaded;
    *issue = end - load;
    return end - 1 + r + c - 2 + hw->mxu_pipeline;
}

Test(timing, overlapped_form_is_that_of_an_event_model) {
    struct hw hw;
    hw_defaults(&hw);
    static const int sizes[][4] = {{128, 128, 2, 8}, {32, 32, 2, 4}, {16, 8, 1, 0}, {8, 64, 8, 30}};
    uint32_t x = 1;
    for (int i = 0; i < 4000; i++) {
        const int *z = sizes[i % 4];
        hw.mxu_rows = z[0];
        hw.mxu_cols = z[1];
        hw.mxu_load_rows = z[2];
        hw.mxu_pipeline = z[3];
        x = x * 1664525u + 1013904223u;
        const struct isa_mm_shape s = {.m = 1 + (x >> 8) % 300,
                                       .n = 1 + (x >> 13) % (32 * (unsigned)z[1]),
                                       .k = 1 + (x >> 5) % 1000,
                                       .dtype_a = ISA_F16,
                                       .dtype_b = ISA_F16};
        int64_t issue;
        const int64_t done = event_model(&hw, &s, &issue);
        const struct isa_cost c = isa_time_mm(&hw, &s);
        cr_assert(c.done_cycles == done, "%d: %ld, model %ld", i, (long)c.done_cycles, (long)done);
        cr_assert(c.issue_cycles == issue);
        cr_assert(c.accumulate_cycles >= c.issue_cycles && c.read_cycles <= c.done_cycles);
    }
}

// NKI's manual: nc_matmul max(min(64, Nstat), Nmov), 4 times in f32; reciprocal 8 N; activation
// with a reduction N + 64. The parameters are those of presets like-nki-*.
Test(timing, nki_costs) {
    struct hw hw;
    hw_defaults(&hw);
    hw.mxu_load_narrow = 1;
    hw.mxu_min_ii = hw.vec_min_ii = 1;
    for (int moving = 1; moving <= 512; moving += 7) {
        for (int stat = 1; stat <= 128; stat++) {
            struct isa_mm_shape s = {
                .m = moving, .n = stat, .k = 128, .dtype_a = ISA_BF16, .dtype_b = ISA_BF16};
            const int low = stat < 64 ? stat : 64, want = low > moving ? low : moving;
            cr_assert(isa_time_mm(&hw, &s).issue_cycles == want);
            s.dtype_a = s.dtype_b = ISA_F32;
            cr_assert(isa_time_mm(&hw, &s).issue_cycles == 4 * want);
        }
    }
    hw.vec_lanes = 128;
    hw.vec_sf_lanes = 16;
    struct isa_vec_shape v = {.elems = 128 * 300, .steps = 1, .stages = 1, .special = true};
    cr_expect(isa_time_vec(&hw, &v).issue_cycles == 8 * 300);
    hw.vec_sf_lanes = 128;
    hw.vec_start = hw.vec_sf_latency = 0;
    hw.vec_latency = 57;
    for (v.row = 64; v.row <= 1024; v.row += 64) { // whole sets of partial results
        v.rows = 128;
        v.elems = 128 * v.row;
        cr_expect(isa_time_vec(&hw, &v).done_cycles == v.row + 64);
    }
}

// The interleaving of result blocks hides R + pipeline: one block of 1 row pays it per pass of k.
Test(timing, accumulation_gap_is_hidden_by_other_blocks) {
    struct hw hw;
    hw_defaults(&hw);
    struct isa_mm_shape s = {.m = 1, .n = 128, .k = 1280, .dtype_a = ISA_F16, .dtype_b = ISA_F16};
    cr_expect(isa_time_mm(&hw, &s).issue_cycles == 9 * (128 + 8) + 64);
    s.n = 1280;
    cr_expect(isa_time_mm(&hw, &s).issue_cycles == 100 * 64);
    // A following instruction that accumulates waits for the last pass, any other does not.
    s = (struct isa_mm_shape){.m = 1, .n = 128, .k = 128, .dtype_a = ISA_F16, .dtype_b = ISA_F16};
    const struct isa_cost c = isa_time_mm(&hw, &s);
    cr_expect(c.issue_cycles == 64 && c.accumulate_cycles == 136);
}

Test(timing, rates_per_type) {
    struct hw hw;
    hw_defaults(&hw);
    struct isa_mm_shape s = {.m = 512, .n = 128, .k = 128, .dtype_a = ISA_F16, .dtype_b = ISA_F16};
    cr_expect(isa_time_mm(&hw, &s).issue_cycles == 512);
    s.dtype_b = ISA_F32; // the slower operand decides
    cr_expect(isa_time_mm(&hw, &s).issue_cycles == 2048);
    s.dtype_a = s.dtype_b = ISA_I4;
    cr_expect(isa_time_mm(&hw, &s).issue_cycles == 256);
    s.dtype_a = s.dtype_b = ISA_I8;
    cr_expect(isa_time_mm(&hw, &s).issue_cycles == 512);
    s.transposed_a = true; // 4 blocks of 128 x 128 in 16 cycles each: hidden
    cr_expect(isa_time_mm(&hw, &s).issue_cycles == 512);
    hw.mxu_transpose_rows = 1;
    s.m = 1;
    cr_expect(isa_time_mm(&hw, &s).issue_cycles == 128);
}

Test(timing, other_dataflows_overlapped) {
    struct hw hw;
    hw_defaults(&hw);
    struct isa_mm_shape s = {.m = 256, .n = 256, .k = 512, .dtype_a = ISA_F16, .dtype_b = ISA_F16};
    hw.mxu_dataflow = HW_OS; // 4 results of k = 512, drain 64
    cr_expect(isa_time_mm(&hw, &s).issue_cycles == 4 * 512);
    cr_expect(isa_time_mm(&hw, &s).done_cycles == 4 * 512 - 1 + 254 + 64 + 8);
    hw.mxu_dataflow = HW_IS; // 4 x 2 blocks of A, 256 moving columns
    cr_expect(isa_time_mm(&hw, &s).issue_cycles == 8 * 256);
    hw.mxu_dataflow = HW_DOT;
    cr_expect(isa_time_mm(&hw, &s).done_cycles == 64 + 8 * 256 - 1 + 8);
    s.m = 1000;
    const struct isa_conv_shape conv = {
        .p = 10, .q = 100, .cout = 256, .kh = 4, .kw = 4, .cin = 32, .dtype_a = 2, .dtype_b = 2};
    cr_expect(isa_time_conv(&hw, &conv).done_cycles == isa_time_mm(&hw, &s).done_cycles);
}

static struct isa_pat spm(int dtype, int64_t n1, int64_t s1, int64_t n0, int64_t s0) {
    return (struct isa_pat){.space = ISA_SPM,
                            .dtype = dtype,
                            .size = {n0, n1, 1, 1, 1},
                            .stride = {s0, s1, 0, 0, 0}};
}

static void map_insn(struct isa_insn *in, struct isa_pat out, struct isa_pat in0) {
    isa_init(in, ISA_OP_VMAP);
    in->u.VMAP.out = out;
    in->u.VMAP.in0 = in0;
}

Test(timing, vector_chain) {
    struct hw hw;
    hw_defaults(&hw);
    struct isa_insn in;
    const struct isa_pat a = spm(ISA_F16, 64, 1024, 1024, 1);
    map_insn(&in, a, a);
    struct isa_stage *st = in.u.VMAP.chain.st;
    for (int i = 0; i < 4; i++)
        st[i] = (struct isa_stage){ISA_VOP_ADD, ISA_SRC_IMM0, 0, 0};
    cr_expect(isa_time_insn(&hw, &in).issue_cycles == 128);
    st[4].op = ISA_VOP_ABS; // a fifth stage is a second turn
    cr_expect(isa_time_insn(&hw, &in).issue_cycles == 256);
    st[4].op = ISA_VOP_EXP; // 128 lanes of 512
    struct isa_cost c = isa_time_insn(&hw, &in);
    cr_expect(c.issue_cycles == 512 && c.read_cycles == 520 && c.done_cycles == 520 + 16 + 12);
    memset(st, 0, 5 * sizeof *st);
    in.u.VMAP.in1 = a; // two inputs share the port
    cr_expect(isa_time_insn(&hw, &in).issue_cycles == 256);
    in.u.VMAP.in1 = spm(ISA_F16, 64, 0, 1024, 1); // a row that repeats passes once
    cr_expect(isa_time_insn(&hw, &in).issue_cycles == 130);
    in.u.VMAP.in1.dtype = ISA_I64;
    cr_expect(isa_time_insn(&hw, &in).issue_cycles == 512);
    in.u.VMAP.in1 = (struct isa_pat){.size = {1, 1, 1, 1, 1}};
    in.u.VMAP.in0.space = ISA_PSUM; // 256 elements a cycle
    cr_expect(isa_time_insn(&hw, &in).issue_cycles == 256);
}

Test(timing, windows_and_reductions) {
    struct hw hw;
    hw_defaults(&hw);
    struct isa_insn in;
    isa_init(&in, ISA_OP_VPOOL);
    in.u.VPOOL.kh = in.u.VPOOL.kw = 3;
    in.u.VPOOL.out = spm(ISA_F16, 16, 512, 512, 1);
    in.u.VPOOL.in0 = spm(ISA_F16, 34, 512, 512, 1);
    cr_expect(isa_time_insn(&hw, &in).issue_cycles == 16 * 9);

    isa_init(&in, ISA_OP_VRED);
    in.u.VRED.red = ISA_RED_SUM;
    in.u.VRED.red_dims = 1;
    in.u.VRED.in0 = spm(ISA_F32, 512, 512, 512, 1);
    in.u.VRED.out = spm(ISA_F32, 1, 0, 512, 1);
    struct isa_cost c = isa_time_insn(&hw, &in);
    cr_expect(c.issue_cycles == 512 && c.done_cycles == 8 + 512 + 16 + 7);
    in.u.VRED.in0 = spm(ISA_F32, 4096, 8, 8, 1); // short rows leave partials idle
    in.u.VRED.out = spm(ISA_F32, 1, 0, 4096, 1);
    c = isa_time_insn(&hw, &in);
    cr_expect(c.elems == 32768 && c.issue_cycles == 512);
}

// One access per bank and cycle, counted cycle by cycle over whole periods.
static double brute_rate(const struct hw *hw, int64_t step_bytes, int64_t n) {
    int64_t use[1024] = {0}, last = -1, most = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t word = i * step_bytes / hw->spm_bank_bytes;
        if (word != last) use[word % hw->spm_banks]++;
        last = word;
    }
    for (int b = 0; b < hw->spm_banks; b++)
        if (use[b] > most) most = use[b];
    return (double)n / (double)most;
}

Test(timing, bank_rate_is_that_of_counted_accesses) {
    struct hw hw;
    hw_defaults(&hw);
    for (int64_t banks = 8; banks <= 64; banks *= 2) {
        hw.spm_banks = banks;
        for (int64_t words = 1; words <= 130; words++) {
            struct isa_pat p = spm(ISA_F32, 1, 0, 4096, words * 16);
            const double brute = brute_rate(&hw, words * 64, 4096);
            const double ours = (double)isa_time_bank_rate(&hw, &p);
            cr_assert(ours > 0.98 * brute && ours < 1.02 * brute, "%ld banks, stride %ld: %g, %g",
                      (long)banks, (long)words, ours, brute);
        }
        for (int64_t e = 1; e <= 16; e *= 2) {
            struct isa_pat p = spm(ISA_F32, 1, 0, 65536, e);
            cr_assert((double)isa_time_bank_rate(&hw, &p) == brute_rate(&hw, 4 * e, 65536));
        }
    }
}

Test(timing, dma_decode_and_anything) {
    struct hw hw;
    hw_defaults(&hw);
    cr_expect(isa_time_decode(&hw, 1) == 1 && isa_time_decode(&hw, 14) == 14);
    // 100 rows of 100 bytes: two bursts each; 256 bytes a cycle from DRAM, 64 over the link.
    cr_expect(isa_time_dma_lower_bound(&hw, 100, 100, true).done_cycles == 64 + 100 + 157);
    hw.dma_row = 0;
    hw.dma_width_bytes = 4096;
    cr_expect(isa_time_dma_lower_bound(&hw, 100, 100, true).done_cycles == 64 + 50);
    cr_expect(isa_time_dma_lower_bound(&hw, 100, 100, false).done_cycles == 64 + 3);

    int64_t rows, bytes;
    struct isa_pat p = {.space = ISA_DRAM,
                        .dtype = ISA_F16,
                        .size = {64, 8, 4, 1, 3},
                        .stride = {1, 64, 1024, 0, 5}};
    isa_pat_runs(&p, &rows, &bytes);
    cr_expect(rows == 12 && bytes == 1024);
    p.stride[0] = 0;
    isa_pat_runs(&p, &rows, &bytes);
    cr_expect(rows == 64 * 8 * 4 * 3 && bytes == 2);

    // Saturated sizes stay defined.
    struct isa_insn in;
    for (int i = 0; i < isa_ninsn; i++) {
        isa_init(&in, isa_insns[i].op);
        for (int k = 0; k < isa_insns[i].npat; k++) {
            struct isa_pat *q = isa_pat_at(&in, k);
            q->space = ISA_SPM;
            for (int d = 0; d < ISA_DIMS; d++) {
                q->size[d] = 1 << 24;
                q->stride[d] = -(INT64_C(1) << 39);
            }
        }
        const struct isa_cost c = isa_time_insn(&hw, &in);
        cr_expect(c.issue_cycles > 0 && c.done_cycles >= c.read_cycles, "%s", isa_insns[i].name);
    }
}
