// SPDX-License-Identifier: Apache-2.0
//
// Functions of several maps: inverse trigonometry, powers, activations.

#include "toolchain/frontend/common/functions.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "isa/numeric.h"

// x / 2 * (1 + tanh(u)) = x * sigmoid(2u), u = sqrt(2 / pi) * (x + 0.044715 x^3)
npu_status build_tanh_gelu(const struct build *b, struct graph_value *x, struct graph_value **out) {
    static const double params[2] = {1.5957691216057308 * 0.044715, 1.5957691216057308};
    return build_map(b, ISA_DTYPE_NONE, "mul acc; mul $0; add $1; mul in0; sigmoid; mul in0",
                     params, 1, &x, out);
}

npu_status build_tan(const struct build *b, struct graph_value *x, struct graph_value **out) {
    struct graph_value *cosine;
    NPU_TRY(build_map1(b, "cos", x, &cosine));
    return build_map2(b, "sin; div in1", x, cosine, out);
}

// atan by Cephes' reduction: t = min(|x|, 1/|x|), then u = (t - 1) / (t + 1) above tan(pi/8).
npu_status build_atan(const struct build *b, struct graph_value *x, struct graph_value **out) {
    static const double edge = 0.41421356237309503, quarter = 0.78539816339744831,
                        half = 1.5707963267948966;
    static const double poly[4] = {8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1,
                                   -3.33329491539e-1};
    struct graph_value *t, *u, *p;
    NPU_TRY(build_map(b, ISA_F32, "abs =tmp; rdiv 1; min tmp", NULL, 1, &x, &t));
    NPU_TRY(build_map(b, ISA_F32,
                      "add 1 =tmp; mov in0; sub 1; div tmp =tmp; mov in0; gt $0; sel tmp in0",
                      &edge, 1, &t, &u));
    NPU_TRY(build_map(b, ISA_F32, "mul acc =tmp; mul $0; add $1; mul tmp; add $2; mul tmp; add $3",
                      poly, 1, &u, &p));
    NPU_TRY(build_map(b, ISA_F32, "mul in1; mul in1; mul in1; add in1", NULL, 2,
                      (struct graph_value *[]){p, u}, &p));
    NPU_TRY(build_map(b, ISA_F32, "gt $0; mul $1; add in1", (double[]){edge, quarter}, 2,
                      (struct graph_value *[]){t, p}, &p));
    NPU_TRY(build_map(b, ISA_F32, "mov in1; rsub $0 =tmp; mov in0; abs; gt 1; sel tmp in1", &half,
                      2, (struct graph_value *[]){x, p}, &p));
    return build_map(b, x->dtype, "mov in1; neg =tmp; mov in0; lt 0; sel tmp in1", NULL, 2,
                     (struct graph_value *[]){x, p}, out);
}

// atan(|y| / |x|), mirrored by the signs, of zeros too. Limits keep the quotient a number.
npu_status build_atan2(const struct build *b, struct graph_value *y, struct graph_value *x,
                       struct graph_value **out) {
    static const double limits[2] = {0x1p-149, 0x1.fffffep127}, half_turn = 3.141592653589793;
    struct graph_value *in[2] = {y, x};
    NPU_TRY(build_map(b, ISA_F32,
                      "mov in1; abs; max $0; min $1 =tmp; mov in0; abs; min $1; div tmp", limits, 2,
                      in, &in[1]));
    NPU_TRY(build_atan(b, in[1], &in[1]));
    in[0] = x;
    NPU_TRY(build_map(b, ISA_F32,
                      "mov in1; rsub $0 =tmp; mov in0; rdiv 1; min in0; lt 0; sel tmp in1",
                      &half_turn, 2, in, &in[1]));
    in[0] = y;
    return build_map(b, ISA_F32, "mov in1; neg =tmp; mov in0; rdiv 1; min in0; lt 0; sel tmp in1",
                     NULL, 2, in, out);
}

// x / sqrt(1 - x^2), 1 - x^2 as (1 - x)(1 + x).
static npu_status arc_sine(const struct build *b, struct graph_value *x, struct graph_value **out) {
    struct graph_value *t;
    NPU_TRY(build_map(b, ISA_F32, "add 1 =tmp; mov in0; rsub 1; mul tmp; rsqrt; mul in0", NULL, 1,
                      &x, &t));
    return build_atan(b, t, out);
}

npu_status build_asin(const struct build *b, struct graph_value *x, struct graph_value **out) {
    struct graph_value *y;
    NPU_TRY(arc_sine(b, x, &y));
    return build_cast(b, y, x->dtype, out);
}

npu_status build_acos(const struct build *b, struct graph_value *x, struct graph_value **out) {
    double half = 1.5707963267948966;
    struct graph_value *y;
    NPU_TRY(arc_sine(b, x, &y));
    return build_map(b, x->dtype, "rsub $0", &half, 1, &y, out);
}

// log(1 + w) = log(u) + (w - (u - 1)) / u with u the rounded 1 + w.
static npu_status log_one_plus(const struct build *b, struct graph_value *w,
                               struct graph_value **out) {
    struct graph_value *in[2] = {w};
    NPU_TRY(build_map(b, ISA_F32, "add 1; log", NULL, 1, &w, &in[1]));
    return build_map(b, ISA_F32, "add 1; sub 1; rsub in0 =tmp; mov in0; add 1; rdiv tmp; add in1",
                     NULL, 2, in, out);
}

// Squares are of x up to 2^40; the rest of a larger x is a logarithm of its own.
static const double SQUARED_MAX = 0x1p40;

static npu_status add_large(const struct build *b, struct graph_value *x, struct graph_value *y,
                            struct graph_value **out) {
    return build_map(b, ISA_F32, "max $0; div $0; log; add in1", &SQUARED_MAX, 2,
                     (struct graph_value *[]){x, y}, out);
}

// log(1 + w), w = |x| + x^2 / (1 + sqrt(x^2 + 1)), with the sign of x.
npu_status build_asinh(const struct build *b, struct graph_value *x, struct graph_value **out) {
    struct graph_value *in[2], *size;
    NPU_TRY(build_map(b, ISA_F32, "abs", NULL, 1, &x, &size));
    NPU_TRY(build_map(b, ISA_F32, "min $0", &SQUARED_MAX, 1, &size, &in[0]));
    NPU_TRY(build_map(b, ISA_F32, "mul acc; add 1; sqrt; add 1", NULL, 1, in, &in[1]));
    NPU_TRY(build_map(b, ISA_F32, "mul acc; div in1; add in0", NULL, 2, in, &in[1]));
    NPU_TRY(log_one_plus(b, in[1], &in[1]));
    NPU_TRY(add_large(b, size, in[1], &in[1]));
    in[0] = x;
    return build_map(b, x->dtype, "mov in1; neg =tmp; mov in0; lt 0; sel tmp in1", NULL, 2, in,
                     out);
}

// log(1 + w), w = x - 1 + sqrt((x - 1)(x + 1)).
npu_status build_acosh(const struct build *b, struct graph_value *x, struct graph_value **out) {
    struct graph_value *in[2];
    NPU_TRY(build_map(b, ISA_F32, "min $0", &SQUARED_MAX, 1, &x, &in[0]));
    NPU_TRY(
        build_map(b, ISA_F32, "add 1 =tmp; mov in0; sub 1; mul tmp; sqrt", NULL, 1, in, &in[1]));
    NPU_TRY(build_map(b, ISA_F32, "sub 1; add in1", NULL, 2, in, &in[1]));
    NPU_TRY(log_one_plus(b, in[1], &in[1]));
    NPU_TRY(add_large(b, x, in[1], &in[1]));
    return build_cast(b, in[1], x->dtype, out);
}

npu_status build_softplus(const struct build *b, struct graph_value *x, struct graph_value **out) {
    struct graph_value *e;
    NPU_TRY(build_map1(b, "abs; neg; exp; add 1", x, &e));
    return build_map2(b, "log =tmp; mov in1; max 0; add tmp", e, x, out);
}

// ---- remainders ------------------------------------------------------------------------------

npu_status build_fmod(const struct build *b, struct graph_value *x, struct graph_value *y,
                      struct graph_value **out) {
    struct graph_value *in[2] = {x, y};
    NPU_TRY(build_map(b, ISA_F32, "mov in1; abs =tmp; mov in0; abs; mod tmp", NULL, 2, in, &in[1]));
    return build_map(b, ISA_F32, "mov in1; neg =tmp; mov in0; lt 0; sel tmp in1", NULL, 2, in, out);
}

// (x - r) / y with r = fmod(x, y), rounded to the whole number that it nearly is; one less where r
// and y have different signs.
npu_status build_floor_division(const struct build *b, struct graph_value *x, struct graph_value *y,
                                struct graph_value **out) {
    struct graph_value *rest, *less;
    NPU_TRY(build_fmod(b, x, y, &rest));
    NPU_TRY(build_map(b, ISA_F32, "lt 0 =tmp; mov in1; lt 0; ne tmp =tmp; mov in0; ne 0; mul tmp",
                      NULL, 2, (struct graph_value *[]){rest, y}, &less));
    NPU_TRY(build_map(b, ISA_F32, "sub in1; div in2", NULL, 3, (struct graph_value *[]){x, rest, y},
                      out));
    NPU_TRY(build_map(b, ISA_F32, "sub in1; round", NULL, 2, (struct graph_value *[]){*out, less},
                      out));
    if (y->data && graph_value_elems(y) == 1 && num_load_f32(y->dtype, y->data, 0) != 0)
        return NULL;
    return build_map(b, ISA_F32, "div in1 =tmp; mov in1; eq 0; sel tmp in2", NULL, 3,
                     (struct graph_value *[]){x, y, *out}, out);
}

// ---- powers ----------------------------------------------------------------------------------

// Chains for the exponents that models have.
static const char *power_chain(double y) {
    static const struct {
        double y;
        const char *chain;
    } known[] = {{0, "mov 1"},
                 {1, "nop"},
                 {2, "mul acc"},
                 {3, "mul in0; mul in0"},
                 {4, "mul acc; mul acc"},
                 {0.5, "sqrt"},
                 {-1, "recip"},
                 {-0.5, "rsqrt"},
                 {-2, "mul acc; recip"},
                 {6, "mul in0; mul in0; mul acc"},
                 {8, "mul acc; mul acc; mul acc"},
                 {5, "mul acc; mul acc; mul in0"}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k].y == y) return known[k].chain;
    return NULL;
}

static bool plain_exponents(const struct graph_value *y) {
    for (int64_t i = 0; y->data && i < graph_value_elems(y); i++) {
        float v = num_load_f32(y->dtype, y->data, i);
        if (v == 0 || !isfinite(v)) return false;
    }
    return y->data != NULL;
}

// What |x|^y becomes for negative x: of whole exponents (sign 1 or -1) that times (-1)^y; of others
// (sign 0) not a number, but for infinity.
static npu_status of_negative(const struct build *b, struct graph_value *x,
                              struct graph_value *power, struct graph_value *sign,
                              struct graph_value **out) {
    struct graph_value *in[3] = {x, power, sign}, *whole = NULL, *other = NULL;
    bool one = sign->data && graph_value_elems(sign) == 1;
    float known = one ? num_load_f32(sign->dtype, sign->data, 0) : 0;
    if (!one || known != 0)
        NPU_TRY(build_map(b, ISA_F32, "mov in1; mul in2 =tmp; mov in0; lt 0; sel tmp in1", NULL, 3,
                          in, &whole));
    if (!one || known == 0)
        NPU_TRY(build_map(b, ISA_F32, "lt 0 =tmp; mov in0; eq -inf; rsub tmp; sel nan in1", NULL, 2,
                          in, &other));
    *out = whole ? whole : other;
    if (one) return NULL;
    return build_map(b, ISA_F32, "ne 0; sel in1 in2", NULL, 3,
                     (struct graph_value *[]){sign, whole, other}, out);
}

// |x|^y = exp(y log |x|), 1 for y = 0 and |x| = 1.
static npu_status general_power(const struct build *b, struct graph_value *x, struct graph_value *y,
                                struct graph_value **out) {
    struct graph_value *sign, *in[2];
    NPU_TRY(build_map(b, ISA_F32,
                      "mod 2; eq 1; mul -2; add 1 =tmp; mov in0; floor; eq in0; mul tmp", NULL, 1,
                      &y, &sign));
    NPU_TRY(build_map(b, ISA_F32, "abs; log", NULL, 1, &x, &in[0]));
    in[1] = y;
    bool plain = plain_exponents(y);
    if (!plain) NPU_TRY(build_map(b, ISA_F32, "eq 0; sel 0 in1", NULL, 2, in, &in[1]));
    NPU_TRY(build_map(b, ISA_F32,
                      plain ? "mul in1; exp" : "mul in1; exp =tmp; mov in1; ne 0; sel tmp 1", NULL,
                      2, in, &in[0]));
    return of_negative(b, x, in[0], sign, out);
}

npu_status build_pow(const struct build *b, struct graph_value *x, struct graph_value *y,
                     struct graph_value **out) {
    struct graph_value *z;
    bool ints = isa_dtype_is_int(x->dtype);
    if (y->data && graph_value_elems(y) == 1 && y->rank <= x->rank) {
        double exponent = (double)num_load_f32(y->dtype, y->data, 0);
        const char *chain = power_chain(exponent);
        if (chain && (!ints || (exponent >= 0 && exponent == floor(exponent))))
            return build_map(b, x->dtype, chain, NULL, 1, &x, out);
    }
    NPU_TRY(general_power(b, x, y, &z));
    if (ints) return build_map(b, x->dtype, "round", NULL, 1, &z, out);
    return build_cast(b, z, x->dtype, out);
}

// ---- sums and products -----------------------------------------------------------------------

// log(sum(exp(x - m))) + m with m = max(x); an infinite m counts as 0 so that inf - inf does not
// appear.
npu_status build_log_sum_exp(const struct build *b, struct graph_value *x, int count,
                             const int64_t *axes, bool keepdims, struct graph_value **out) {
    struct graph_value *most, *e;
    double largest = 3.4028234663852886e38;
    NPU_TRY(build_reduce(b, x, "max", count, axes, true, &most));
    NPU_TRY(build_map(b, ISA_DTYPE_NONE, "abs; le $0; sel in0 0", &largest, 1, &most, &most));
    NPU_TRY(build_map(b, ISA_F32, "sub in1; exp", NULL, 2, (struct graph_value *[]){x, most}, &e));
    NPU_TRY(build_reduce(b, e, "sum", count, axes, true, &e));
    NPU_TRY(
        build_map(b, x->dtype, "log; add in1", NULL, 2, (struct graph_value *[]){e, most}, out));
    if (keepdims) return NULL;
    int64_t dims[GRAPH_MAX_RANK];
    int rank = 0;
    for (int d = 0, k = 0; d < x->rank; d++) {
        if (k < count && axes[k] == d)
            k++;
        else
            dims[rank++] = x->dims[d];
    }
    return build_reshape(b, *out, rank, dims, out);
}

// Vectors become a row (left) or a column (right); the dimension goes again afterwards.
npu_status build_product(const struct build *b, struct graph_value *x, struct graph_value *w,
                         struct graph_value **out) {
    if (!x->rank || !w->rank) return npu_fail(BAD_INPUT, "a scalar in a matrix product");
    bool row = x->rank == 1, column = w->rank == 1;
    if (row) NPU_TRY(build_reshape(b, x, 2, (int64_t[]){1, x->dims[0]}, &x));
    if (column) NPU_TRY(build_reshape(b, w, 2, (int64_t[]){w->dims[0], 1}, &w));
    struct graph_value *y;
    NPU_TRY(build_matmul(b, x, w, false, false, &y));
    int64_t dims[GRAPH_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < y->rank; d++)
        if (!(row && d == y->rank - 2) && !(column && d == y->rank - 1)) dims[rank++] = y->dims[d];
    return build_reshape(b, y, rank, dims, out);
}

// [.., M, K] and [.., K, N]: the sum over K of [.., M, K, 1] times [.., 1, K, N].
npu_status build_integer_product(const struct build *b, struct graph_value *x,
                                 struct graph_value *w, struct graph_value **out) {
    enum { MOST = 1 << 20 };
    struct graph_value *in[2] = {x, w};
    int rank = (x->rank > w->rank ? x->rank : w->rank) + 1;
    int64_t dims[GRAPH_MAX_RANK], count = 1;
    if (x->rank < 2 || w->rank < 2 || rank > GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "integer matrices of ranks %d and %d", x->rank, w->rank);
    for (int k = 0; k < 2; k++) {
        int own = in[k]->rank;
        memcpy(dims, in[k]->dims, (size_t)own * sizeof *dims);
        if (k) dims[own] = dims[own - 1], dims[own - 1] = dims[own - 2];
        dims[k ? own - 2 : own] = 1;
        NPU_TRY(build_cast(b, in[k], ISA_I64, &in[k]));
        NPU_TRY(build_reshape(b, in[k], own + 1, dims, &in[k]));
    }
    for (int d = 1; d <= rank; d++) {
        int64_t left = d <= in[0]->rank ? in[0]->dims[in[0]->rank - d] : 1;
        int64_t right = d <= in[1]->rank ? in[1]->dims[in[1]->rank - d] : 1;
        count = count > MOST ? count : count * (left > right ? left : right);
    }
    if (count > MOST)
        return npu_fail(UNSUPPORTED,
                        "a product of integers of more than 8 bits with more than %d "
                        "multiplications; expected floats, or i8",
                        MOST);
    NPU_TRY(build_map(b, ISA_I64, "mul in1", NULL, 2, in, out));
    return build_reduce(b, *out, "sum", 1, (int64_t[]){(*out)->rank - 2}, false, out);
}

// One instruction reduces up to 65536 elements. More are rows of a matrix, its last one filled with
// the last element, which then comes after itself: the largest of each row, then the row.
npu_status build_argmax(const struct build *b, struct graph_value *x, int axis, bool keepdims,
                        struct graph_value **out) {
    enum { MOST = 65536, PART = 4096 };
    struct graph_value *most, *where, *number;
    int64_t dims[GRAPH_MAX_RANK], outer = 1, inner = 1, axes[1] = {axis};
    const int64_t size = x->dims[axis], count = (size + PART - 1) / PART,
                  part = (size + count - 1) / (count ? count : 1);
    if (size <= MOST) return build_reduce(b, x, "argmax", 1, axes, keepdims, out);
    int rank = 0;
    for (int d = 0; d < x->rank; d++) {
        *(d < axis ? &outer : &inner) *= d == axis ? 1 : x->dims[d];
        if (d != axis || keepdims) dims[rank++] = d == axis ? 1 : x->dims[d];
    }
    NPU_TRY(build_reshape(b, x, 3, (int64_t[]){outer, size, inner}, &x));
    if (count * part > size)
        NPU_TRY(build_pad(b, x, (int64_t[]){0, 0, 0}, (int64_t[]){0, count * part - size, 0},
                          "edge", 0, &x));
    NPU_TRY(build_reshape(b, x, 4, (int64_t[]){outer, count, part, inner}, &x));
    NPU_TRY(build_reduce(b, x, "max", 1, (int64_t[]){2}, true, &most));
    NPU_TRY(build_reduce(b, x, "argmax", 1, (int64_t[]){2}, true, &where));
    NPU_TRY(build_argmax(b, most, 1, true, &most));
    int64_t *numbers = ARENA_ARRAY(b->arena, int64_t, (size_t)count);
    for (int64_t k = 0; k < count; k++)
        numbers[k] = k;
    number = build_new_ints(b, 3, (int64_t[]){count, 1, 1}, numbers);
    double length = (double)part;
    NPU_TRY(build_map(b, ISA_I64, "mul $0; add in2 =tmp; mov in0; eq in1; mul tmp", &length, 3,
                      (struct graph_value *[]){number, most, where}, &where));
    NPU_TRY(build_reduce(b, where, "sum", 1, (int64_t[]){1}, true, &where));
    return build_reshape(b, where, rank, dims, out);
}

// Each element and the one before it, then two more, four more: y[i] += y[i - 2^k]. An element that
// is not finite reaches those after it only.
npu_status build_cumsum(const struct build *b, struct graph_value *x, int axis, bool exclusive,
                        bool reverse, struct graph_value **out) {
    int64_t starts[GRAPH_MAX_RANK] = {0}, steps[GRAPH_MAX_RANK], sizes[GRAPH_MAX_RANK];
    int64_t before[GRAPH_MAX_RANK] = {0}, after[GRAPH_MAX_RANK] = {0};
    const int64_t size = x->dims[axis];
    enum isa_dtype result = x->dtype, type = isa_dtype_is_int(x->dtype) ? ISA_I64 : x->dtype;
    NPU_TRY(build_cast(b, x, type, out));
    for (int d = 0; d < x->rank; d++) {
        steps[d] = 1;
        sizes[d] = x->dims[d];
    }
    if (exclusive && size == 1) NPU_TRY(build_map(b, type, "mov 0", NULL, 1, out, out));
    for (int64_t k = 1; k < size;) {
        struct graph_value *in[2] = {*out};
        sizes[axis] = size - k;
        if (reverse) starts[axis] = k;
        (reverse ? after : before)[axis] = k;
        NPU_TRY(build_slice(b, *out, starts, sizes, steps, &in[1]));
        NPU_TRY(build_pad(b, in[1], before, after, "constant", 0, &in[1]));
        if (exclusive) {
            *out = in[1]; // one place further, once
            exclusive = false;
            continue;
        }
        NPU_TRY(build_map(b, type, "add in1", NULL, 2, in, out));
        k *= 2;
    }
    return build_cast(b, *out, result, out);
}
