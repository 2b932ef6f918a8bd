// SPDX-License-Identifier: Apache-2.0
// A reduction across rows: the reduced dimension is not the contiguous one, so that V.RED would
// walk across the banks.
//
//   t[i] = x[i] op x[i + n/2], a left over x is added to t[0]; then the same within t until one row
//   is left, or so few that one V.RED across the banks is faster than the steps that remain
//
// Each step is a V.MAP along the contiguous dimensions.
#include "isa/timing.h"
#include "toolchain/lower/internal.h"

#include <string.h>

static struct isa_chain two(enum isa_red red) {
    static const enum isa_vop ops[ISA_REDS] = {[ISA_RED_SUM] = ISA_VOP_ADD,
                                               [ISA_RED_MAX] = ISA_VOP_MAX,
                                               [ISA_RED_MIN] = ISA_VOP_MIN,
                                               [ISA_RED_SUMSQ] = ISA_VOP_ADD,
                                               [ISA_RED_PROD] = ISA_VOP_MUL};
    struct isa_chain c;
    memset(&c, 0, sizeof c);
    c.st[0] = (struct isa_stage){.op = ops[red], .a = ISA_SRC_IN1};
    return c;
}

// in0^2, in0^2 + in1^2, or in0^2 + in1.
static struct isa_chain squares(int squared, bool add) {
    struct isa_chain c;
    memset(&c, 0, sizeof c);
    if (squared == 1 && add) {
        c.st[0] = (struct isa_stage){.op = ISA_VOP_FMA, .a = ISA_SRC_IN0, .b = ISA_SRC_IN1};
        return c;
    }
    c.st[0] = (struct isa_stage){.op = ISA_VOP_MUL, .a = ISA_SRC_IN0, .save = 1};
    if (squared == 1) return c;
    c.st[1] = (struct isa_stage){.op = ISA_VOP_MOV, .a = ISA_SRC_IN1};
    c.st[2] = (struct isa_stage){.op = ISA_VOP_FMA, .a = ISA_SRC_IN1, .b = ISA_SRC_TMP};
    return c;
}

struct tree {
    struct lower *L;
    enum isa_red red;
    int rank; // the last dimension is reduced
    int64_t size[LOWER_DIMS];
};

// out[0 .. n) = a[..] op b[..] along the reduced dimension; raw: how many of a, b are elements of x
// (for squares).
static void combine(struct tree *t, int64_t n, int raw, const struct lower_view *a,
                    const struct lower_view *b, const struct lower_view *out) {
    struct isa_chain c = two(t->red);
    if (t->red == ISA_RED_SUMSQ && raw) c = squares(raw, b != NULL);
    t->size[t->rank - 1] = n;
    lower_map(t->L, t->rank, t->size, b || raw ? &c : NULL,
              (const struct lower_view *[]){a, b, NULL}, out);
}

static struct lower_view row(const struct tree *t, const struct lower_view *v, int64_t i) {
    int64_t at[LOWER_DIMS] = {0};
    at[t->rank - 1] = i;
    return lower_at(v, t->rank, at);
}

// Cycles of one V.RED of n rows that lie as those of v.
static double at_once(const struct tree *t, const struct lower_view *v, int64_t n) {
    const struct hw *hw = t->L->hw;
    int64_t kept = lower_elems(t->rank - 1, t->size);
    struct isa_pat p = {.dtype = v->dtype,
                        .size = {n, 1, 1, 1, 1},
                        .stride = {v->stride[t->rank - 1]}};
    int at = 1;
    for (int d = t->rank - 2; d >= 0 && at < ISA_DIMS; d--) {
        if (t->size[d] == 1) continue;
        p.size[at] = t->size[d];
        p.stride[at++] = v->stride[d];
    }
    struct isa_vec_shape s = {.elems = kept * n, .steps = 1, .rows = kept, .row = n};
    s.in[0] = (struct isa_vec_port){kept * n, isa_time_bank_rate(hw, &p)};
    return (double)isa_time_vec(hw, &s).done_cycles;
}

// Cycles of the fastest way from n rows to one.
static double fastest(const struct tree *t, const struct lower_view *v, int64_t n) {
    if (n < 2) return 0;
    const struct hw *hw = t->L->hw;
    int64_t half = n / 2, kept = lower_elems(t->rank - 1, t->size);
    double steps = n % 2 && n > 2 ? 2 : 1, one = at_once(t, v, n),
           on = steps * (double)(hw->vec_start + hw->vec_latency) +
                2 * (double)lower_ceil(kept * half, hw->vec_lanes) + fastest(t, v, half);
    return on < one ? on : one;
}

static bool short_enough(const struct tree *t, const struct lower_view *v, int64_t n) {
    return n > 2 && at_once(t, v, n) <= fastest(t, v, n);
}

// The rest by one instruction; square: the rows are still to be squared.
static void finish(struct tree *t, const struct lower_red *red, int64_t n, bool square,
                   const struct lower_view *from, const struct lower_view *to) {
    struct lower_red how = {red->red, red->accumulate, 1, NULL};
    if (red->red == ISA_RED_SUMSQ && !square) how.red = ISA_RED_SUM;
    t->size[t->rank - 1] = n;
    const struct lower_view *in[3] = {from, NULL, NULL};
    lower_reduce_block(t->L, &how, t->rank, t->size, in, to);
}

void lower_reduce_tree(struct lower *L, const struct lower_red *red, int rank, const int64_t *size,
                       const struct lower_view *x, const struct lower_view *temp,
                       const struct lower_view *result) {
    struct tree t = {.L = L, .red = red->red, .rank = rank};
    memcpy(t.size, size, (size_t)rank * sizeof *size);
    int64_t n = size[rank - 1];
    struct lower_view to = *result;
    to.stride[rank - 1] = 0;
    bool square = red->red == ISA_RED_SUMSQ, accumulate = red->accumulate;
    if (n == 1) {
        if (accumulate)
            combine(&t, 1, square, x, &to, &to);
        else if (square)
            combine(&t, 1, 1, x, NULL, &to);
        else
            combine(&t, 1, 0, x, NULL, &to);
        return;
    }
    const struct lower_view *from = x;
    for (int raw = square ? 2 : 0; n > 1; raw = 0, from = temp) {
        if (short_enough(&t, from, n)) {
            finish(&t, red, n, raw > 0, from, &to);
            return;
        }
        int64_t half = n / 2;
        struct lower_view upper = row(&t, from, half), last = row(&t, from, n - 1),
                          first = row(&t, temp, 0);
        bool end = half == 1 && n == 2 && !accumulate;
        combine(&t, half, raw, from, &upper, end ? &to : temp);
        if (n % 2) combine(&t, 1, raw ? 1 : 0, &last, &first, &first);
        if (end) return;
        n = half;
    }
    if (accumulate)
        combine(&t, 1, 0, temp, &to, &to);
    else
        combine(&t, 1, 0, temp, NULL, &to);
}
