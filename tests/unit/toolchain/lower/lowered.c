// SPDX-License-Identifier: Apache-2.0
//
// Random graphs and the comparison of lowered programs with the reference kernels.
#include "tests/unit/toolchain/lower/lowered.h"

#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/str.h"
#include "tests/support/tile_run.h"
#include "toolchain/lower/lower.h"
#include "toolchain/plan/plan.h"

struct hw machine(int which) {
    struct hw hw;
    hw_defaults(&hw);
    if (which == MACHINE_SERVER) return hw;
    if (which >= MACHINES) {
        uint32_t seed = (uint32_t)which;
        hw.mxu_rows = rnd_in(&seed, 1, 20);
        hw.mxu_cols = rnd_in(&seed, 1, 20);
        hw.psum_banks = rnd_in(&seed, 1, 5);
        hw.psum_rows = rnd_in(&seed, 8, 80);
        hw.spm_bytes = rnd_in(&seed, 9, 100) * 1024;
        hw.spm_banks = rnd_in(&seed, 1, 24);
        hw.spm_bank_bytes = (int64_t)4 << rnd_in(&seed, 0, 5);
        hw.vec_lanes = rnd_in(&seed, 1, 70);
        hw.dma_engines = rnd_in(&seed, 1, 4);
        return hw;
    }
    hw.mxu_rows = hw.mxu_cols = which == MACHINE_WIDE ? 24 : 8;
    hw.vec_lanes = 16;
    hw.vec_sf_lanes = 8;
    hw.psum_banks = 4;
    hw.psum_rows = which == MACHINE_MICRO ? 8 : 64;
    hw.spm_bytes = which == MACHINE_MICRO ? 16384 : which == MACHINE_TINY ? 65536 : 262144;
    hw.dma_engines = which == MACHINE_WIDE ? 3 : 1;
    return hw;
}

uint32_t rnd(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

int64_t rnd_in(uint32_t *seed, int64_t lo, int64_t hi) {
    return lo + (int64_t)(rnd(seed) % (uint32_t)(hi - lo + 1));
}

void *random_data(struct arena *a, const struct graph_value *v, uint32_t *seed, int64_t limit) {
    int64_t n = graph_value_elems(v);
    void *data = arena_alloc(a, (size_t)graph_value_bytes(v) + 8);
    for (int64_t i = 0; i < n; i++) {
        if (isa_dtype_is_int((int)v->dtype))
            num_store_i64((int)v->dtype, data, i, rnd_in(seed, 0, limit ? limit - 1 : 9));
        else
            num_store_f32((int)v->dtype, data, i, (float)rnd_in(seed, -1024, 1024) / 512.0f);
    }
    return data;
}

struct graph_value *input(struct graph *g, const char *name, enum isa_dtype t, int rank,
                          const int64_t *dims) {
    struct graph_value *v = graph_add_value(g, name, t, rank, dims);
    graph_add_input(g, v);
    return v;
}

struct graph_value *constant(struct graph *g, const char *name, enum isa_dtype t, int rank,
                             const int64_t *dims, uint32_t *seed) {
    struct graph_value shape = {.dtype = t, .rank = rank};
    memcpy(shape.dims, dims, (size_t)rank * sizeof *dims);
    return graph_add_const(g, name, t, rank, dims, random_data(g->arena, &shape, seed, 0));
}

void set_order(struct graph_value *v, int kind, uint32_t *seed) {
    static const int last[4] = {0, 2, 3, 1};
    if (!kind || v->rank < 2 || (kind == 1 && v->rank != 4)) return;
    v->has_order = true;
    for (int d = 0; d < v->rank; d++)
        v->order[d] = kind == 1 ? last[d] : d;
    for (int d = v->rank - 1; kind == 2 && d > 0; d--) {
        int j = (int)rnd_in(seed, 0, d), t = v->order[d];
        v->order[d] = v->order[j];
        v->order[j] = t;
    }
}

struct graph_value *reordered(struct graph *g, struct graph_value *v, int kind, uint32_t *seed) {
    if (!kind) return v;
    struct graph_node *n = graph_add_node(g, GRAPH_COPY, "order", 1, &v, NULL);
    npu_status st = graph_infer(g, n, "ordered");
    cr_assert(!st, "%s", npu_status_message(st));
    set_order(n->outputs[0], kind, seed);
    return n->outputs[0];
}

struct graph_value *finish(struct graph *g, struct graph_node *n) {
    if (!n->nout || !n->outputs[0]) {
        npu_status st = graph_infer(g, n, "y");
        cr_assert(!st, "%s", npu_status_message(st));
    }
    graph_add_output(g, n->outputs[0]);
    return n->outputs[0];
}

void add_chain(struct graph *g, struct graph_node *n, enum isa_dtype t, int channel_dim,
               bool residual, uint32_t *seed) {
    struct graph_value *y = n->outputs[0];
    int64_t dims[GRAPH_MAX_RANK];
    for (int d = 0; d < y->rank; d++)
        dims[d] = d == channel_dim ? y->dims[d] : 1;
    struct graph_value **in = ARENA_ARRAY(g->arena, struct graph_value *, (size_t)n->nin + 2);
    memcpy(in, n->inputs, (size_t)n->nin * sizeof *in);
    in[n->nin] = constant(g, "bias", t, y->rank, dims, seed);
    n->chain_in[0] = -1;
    n->chain_in[1] = n->nin++;
    n->chain_in[2] = -1;
    float half = 0.5f, zero = 0;
    uint32_t bits[2];
    memcpy(&bits[0], &half, 4);
    memcpy(&bits[1], &zero, 4);
    n->chain.imm[0] = bits[0];
    n->chain.imm[1] = bits[1];
    n->chain.st[0] = (struct isa_stage){.op = ISA_VOP_MUL, .a = ISA_SRC_IMM0};
    n->chain.st[1] = (struct isa_stage){.op = ISA_VOP_ADD, .a = ISA_SRC_IN1};
    n->chain.st[2] = (struct isa_stage){.op = ISA_VOP_MAX, .a = ISA_SRC_IMM1};
    if (residual) {
        in[n->nin] = input(g, "residual", t, y->rank, y->dims);
        n->chain_in[2] = n->nin++;
        n->chain.st[3] = (struct isa_stage){.op = ISA_VOP_ADD, .a = ISA_SRC_IN2};
    }
    n->inputs = in;
    n->has_chain = true;
}

static void *value_bytes(struct arena *a, const struct graph_value *v) {
    return arena_alloc(a, (size_t)graph_value_bytes(v) + 8);
}

static void compare(const struct graph_value *v, const void *got, const void *want, double tol,
                    const char *what, const char *how) {
    int64_t n = graph_value_elems(v);
    double largest = 0;
    bool integer = isa_dtype_is_int((int)v->dtype);
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(integer ? (double)num_load_i64((int)v->dtype, want, i)
                                             : (double)num_load_f32((int)v->dtype, want, i)));
    for (int64_t i = 0; i < n; i++) {
        double a = integer ? (double)num_load_i64((int)v->dtype, got, i)
                           : (double)num_load_f32((int)v->dtype, got, i);
        double b = integer ? (double)num_load_i64((int)v->dtype, want, i)
                           : (double)num_load_f32((int)v->dtype, want, i);
        if (fabs(a - b) <= (integer ? 0 : tol * (1 + largest))) continue;
        cr_assert_fail("%s (%s): element %lld of '%s' is %g, expected %g", what, how, (long long)i,
                       v->name, a, b);
    }
}

void check_lowered(struct graph *g, const struct hw *hw, int level, double tol, const char *what) {
    struct arena *a = arena_new();
    uint32_t seed = 7;
    const void **in = ARENA_ARRAY(a, const void *, (size_t)g->ninput + 1);
    void **got = ARENA_ARRAY(a, void *, (size_t)g->noutput),
         **want = ARENA_ARRAY(a, void *, (size_t)g->noutput);
    for (int i = 0; i < g->ninput; i++)
        in[i] = random_data(a, g->inputs[i], &seed, g->inputs[i]->index_limit);
    for (int i = 0; i < g->noutput; i++) {
        got[i] = value_bytes(a, g->outputs[i]);
        want[i] = value_bytes(a, g->outputs[i]);
    }
    struct tile_program *p = tile_program_new(a, hw);
    char *how =
        arena_printf(a, "array %lldx%lld, PSUM %lldx%lld, SPM %lld, level %d",
                     (long long)hw->mxu_rows, (long long)hw->mxu_cols, (long long)hw->psum_banks,
                     (long long)hw->psum_rows, (long long)hw->spm_bytes, level);
    npu_status st = lower_graph(g, hw, &(struct lower_options){.level = level}, p);
    cr_assert(!st, "%s (%s): %s", what, how, npu_status_message(st));
    st = tile_verify(p, "lower");
    struct str text = {0};
    if (st) npu_status_print(st, NULL, &text);
    cr_assert(!st, "%s (%s): %s", what, how, str_text(&text));
    for (int i = 0; i < p->nkernel; i++) {
        int64_t psum = hw_psum_bytes(hw);
        cr_assert(p->kernels[i]->psum_bytes <= psum, "%s: %lld bytes of PSUM", what,
                  (long long)p->kernels[i]->psum_bytes);
    }
    st = plan_onchip(p);
    cr_assert(!st, "%s (%s): %s", what, how, npu_status_message(st));
    st = tile_run(p, g, in, got);
    cr_assert(!st, "%s (%s): %s", what, how, npu_status_message(st));
    st = graph_eval(g, in, want, a);
    cr_assert(!st, "%s: %s", what, npu_status_message(st));
    for (int i = 0; i < g->noutput; i++)
        compare(g->outputs[i], got[i], want[i], tol, what, how);
    str_free(&text);
    arena_free(a);
}

void check_everywhere(struct graph *g, double tol, const char *what) {
    static int drawn = MACHINES;
    for (int m = 0; m <= MACHINES; m++) {
        struct hw hw = machine(m < MACHINES ? m : ++drawn);
        for (int level = 1; level <= 2; level++)
            check_lowered(g, &hw, level, tol, what);
    }
}
