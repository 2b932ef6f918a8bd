// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops that are more than one row of a table: arithmetic with wrapping, operand lists,
// casts, powers.

#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/onnx/import.h"

static bool is(const struct onnx_node *n, const char *op) {
    return !strcmp(n->op, op);
}

static npu_status bind_map(struct onnx_node *n, enum isa_dtype dtype, const char *chain,
                           const double *params, int nin, struct graph_value *const *in) {
    struct graph_value *y;
    NPU_TRY(onnx_map(n, dtype, chain, params, nin, in, &y));
    return onnx_bind(n, 0, y);
}

// Unsigned results wrap around in ONNX; the vector engine would saturate. Bits of the type, 0 when
// nothing is to be done.
static double wrap_mask(enum isa_dtype t) {
    return t == ISA_U8 ? 255 : t == ISA_U16 ? 65535 : 0;
}

npu_status import_arithmetic(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    const char *chain = is(n, "Add")   ? "add in1"
                        : is(n, "Sub") ? "sub in1"
                        : is(n, "Mul") ? "mul in1"
                                       : "div in1";
    const char *wrapped = is(n, "Add")   ? "add in1; and $0"
                          : is(n, "Sub") ? "sub in1; and $0"
                                         : "mul in1; and $0";
    double mask = wrap_mask(n->in[0]->dtype);
    bool wraps = mask > 0 && !is(n, "Div") && n->in[1]->dtype == n->in[0]->dtype;
    return bind_map(n, ISA_DTYPE_NONE, wraps ? wrapped : chain, &mask, 2, n->in);
}

npu_status import_bitshift(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    const char *direction = onnx_string(n, "direction", "");
    double mask = wrap_mask(n->in[0]->dtype);
    if (!strcmp(direction, "RIGHT")) return bind_map(n, ISA_DTYPE_NONE, "shr in1", NULL, 2, n->in);
    if (strcmp(direction, "LEFT") != 0)
        return npu_fail(BAD_INPUT, "attribute direction is '%s', expected LEFT or RIGHT",
                        direction);
    return bind_map(n, ISA_DTYPE_NONE, mask > 0 ? "shl in1; and $0" : "shl in1", &mask, 2, n->in);
}

npu_status import_bitwise_not(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    double mask = wrap_mask(n->in[0]->dtype);
    if (mask <= 0) mask = -1;
    return bind_map(n, ISA_DTYPE_NONE, "xor $0", &mask, 1, n->in);
}

// fmod = 0: the divisor's sign (Python); fmod = 1: the dividend's (C).
npu_status import_mod(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    if (!onnx_int(n, "fmod", 0)) return bind_map(n, ISA_DTYPE_NONE, "mod in1", NULL, 2, n->in);
    const char *chain = isa_dtype_is_int(n->in[0]->dtype) ? "div in1; mul in1; rsub in0"
                                                          : "div in1; trunc; mul in1; rsub in0";
    return bind_map(n, ISA_DTYPE_NONE, chain, NULL, 2, n->in);
}

npu_status import_variadic(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1 << 16));
    for (int k = 0; k < n->nin; k++)
        if (!n->in[k]) return npu_fail(BAD_INPUT, "input %d is missing", k);
    bool sum = is(n, "Sum") || is(n, "Mean");
    const char *two = sum ? "add in1" : is(n, "Max") ? "max in1" : "min in1";
    const char *three = sum            ? "add in1; add in2"
                        : is(n, "Max") ? "max in1; max in2"
                                       : "min in1; min in2";
    struct graph_value *acc = n->in[0];
    for (int k = 1; k < n->nin;) {
        bool pair = k + 1 == n->nin;
        struct graph_value *in[3] = {acc, n->in[k], pair ? NULL : n->in[k + 1]};
        NPU_TRY(onnx_map(n, ISA_DTYPE_NONE, pair ? two : three, NULL, pair ? 2 : 3, in, &acc));
        k += pair ? 1 : 2;
    }
    if (is(n, "Mean") && n->nin > 1) {
        double count = n->nin;
        NPU_TRY(onnx_map(n, ISA_DTYPE_NONE, "div $0", &count, 1, &acc, &acc));
    }
    return onnx_bind(n, 0, acc);
}

npu_status import_where(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 3, 3));
    if (n->in[0]->dtype != ISA_BOOL)
        return npu_fail(BAD_INPUT, "the condition '%s' is %s, expected bool", n->in[0]->name,
                        isa_dtype_name(n->in[0]->dtype));
    return bind_map(n, n->in[1]->dtype, "sel in1 in2", NULL, 3, n->in);
}

// Limits were attributes before opset 11; a limit that is left out does not apply.
npu_status import_clip(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 3));
    struct graph_value *x = n->in[0], *low = onnx_given(n, 1) ? n->in[1] : NULL,
                       *high = onnx_given(n, 2) ? n->in[2] : NULL;
    if (n->opset < 11 && onnx_has(n, "min"))
        low = onnx_new_scalar(n, x->dtype, onnx_float(n, "min", 0));
    if (n->opset < 11 && onnx_has(n, "max"))
        high = onnx_new_scalar(n, x->dtype, onnx_float(n, "max", 0));
    if (low && high)
        return bind_map(n, x->dtype, "max in1; min in2", NULL, 3,
                        (struct graph_value *[]){x, low, high});
    if (low) return bind_map(n, x->dtype, "max in1", NULL, 2, (struct graph_value *[]){x, low});
    if (high) return bind_map(n, x->dtype, "min in1", NULL, 2, (struct graph_value *[]){x, high});
    return onnx_bind(n, 0, x);
}

static npu_status cast_to(struct onnx_node *n, enum isa_dtype to) {
    struct graph_value *y;
    NPU_TRY(onnx_cast(n, n->in[0], to, &y));
    return onnx_bind(n, 0, y);
}

npu_status import_cast(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    enum isa_dtype to;
    NPU_TRY(onnx_dtype(onnx_int(n, "to", 0), &to));
    return cast_to(n, onnx_graph_dtype(to));
}

npu_status import_castlike(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    return cast_to(n, n->in[1]->dtype);
}

// ---- activations of several maps -------------------------------------------------------------

// x / 2 * (1 + tanh(u)) = x * sigmoid(2u), u = sqrt(2 / pi) * (x + 0.044715 x^3)
static const double tanh_gelu[2] = {1.5957691216057308 * 0.044715, 1.5957691216057308};
#define TANH_GELU "mul acc; mul $0; add $1; mul in0; sigmoid; mul in0"

npu_status import_gelu(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    const char *approximate = onnx_string(n, "approximate", "none");
    if (!strcmp(approximate, "none")) return bind_map(n, ISA_DTYPE_NONE, "gelu", NULL, 1, n->in);
    if (strcmp(approximate, "tanh") != 0)
        return npu_fail(BAD_INPUT, "attribute approximate is '%s', expected none or tanh",
                        approximate);
    return bind_map(n, ISA_DTYPE_NONE, TANH_GELU, tanh_gelu, 1, n->in);
}

npu_status import_fast_gelu(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 2));
    struct graph_value *x = n->in[0];
    if (onnx_given(n, 1)) NPU_TRY(onnx_map2(n, "add in1", x, n->in[1], &x));
    return bind_map(n, ISA_DTYPE_NONE, TANH_GELU, tanh_gelu, 1, &x);
}

npu_status import_bias_gelu(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    return bind_map(n, ISA_DTYPE_NONE, "add in1; gelu", NULL, 2, n->in);
}

npu_status import_swish(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    double alpha = onnx_float(n, "alpha", 1);
    if (alpha == 1) return bind_map(n, ISA_DTYPE_NONE, "silu", NULL, 1, n->in);
    return bind_map(n, ISA_DTYPE_NONE, "mul $0; sigmoid; mul in0", &alpha, 1, n->in);
}

npu_status import_tan(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *cosine;
    NPU_TRY(onnx_map1(n, "cos", n->in[0], &cosine));
    return bind_map(n, ISA_DTYPE_NONE, "sin; div in1", NULL, 2,
                    (struct graph_value *[]){n->in[0], cosine});
}

// atan by Cephes' reduction: t = min(|x|, 1/|x|), then u = (t - 1) / (t + 1) above tan(pi/8).
static npu_status arc_tangent(struct onnx_node *n, struct graph_value *x,
                              struct graph_value **out) {
    static const double edge = 0.41421356237309503, quarter = 0.78539816339744831,
                        half = 1.5707963267948966;
    static const double poly[4] = {8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1,
                                   -3.33329491539e-1};
    struct graph_value *t, *u, *p;
    NPU_TRY(onnx_map(n, ISA_F32, "abs =tmp; rdiv 1; min tmp", NULL, 1, &x, &t));
    NPU_TRY(onnx_map(n, ISA_F32,
                     "add 1 =tmp; mov in0; sub 1; div tmp =tmp; mov in0; gt $0; sel tmp in0", &edge,
                     1, &t, &u));
    NPU_TRY(onnx_map(n, ISA_F32, "mul acc =tmp; mul $0; add $1; mul tmp; add $2; mul tmp; add $3",
                     poly, 1, &u, &p));
    NPU_TRY(onnx_map(n, ISA_F32, "mul in1; mul in1; mul in1; add in1", NULL, 2,
                     (struct graph_value *[]){p, u}, &p));
    NPU_TRY(onnx_map(n, ISA_F32, "gt $0; mul $1; add in1", (double[]){edge, quarter}, 2,
                     (struct graph_value *[]){t, p}, &p));
    NPU_TRY(onnx_map(n, ISA_F32, "mov in1; rsub $0 =tmp; mov in0; abs; gt 1; sel tmp in1", &half, 2,
                     (struct graph_value *[]){x, p}, &p));
    return onnx_map(n, x->dtype, "mov in1; neg =tmp; mov in0; lt 0; sel tmp in1", NULL, 2,
                    (struct graph_value *[]){x, p}, out);
}

npu_status import_atan(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *y;
    NPU_TRY(arc_tangent(n, n->in[0], &y));
    return onnx_bind(n, 0, y);
}

// x / sqrt(1 - x^2), 1 - x^2 as (1 - x)(1 + x).
static npu_status arc_sine(struct onnx_node *n, struct graph_value *x, struct graph_value **out) {
    struct graph_value *t;
    NPU_TRY(onnx_map(n, ISA_F32, "add 1 =tmp; mov in0; rsub 1; mul tmp; rsqrt; mul in0", NULL, 1,
                     &x, &t));
    return arc_tangent(n, t, out);
}

npu_status import_asin(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *y;
    NPU_TRY(arc_sine(n, n->in[0], &y));
    NPU_TRY(onnx_cast(n, y, n->in[0]->dtype, &y));
    return onnx_bind(n, 0, y);
}

npu_status import_acos(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    double half = 1.5707963267948966;
    struct graph_value *y;
    NPU_TRY(arc_sine(n, n->in[0], &y));
    return bind_map(n, n->in[0]->dtype, "rsub $0", &half, 1, &y);
}

// log(|x| + sqrt(x^2 + 1)) with the sign of x.
npu_status import_asinh(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *x = n->in[0], *root;
    NPU_TRY(onnx_map1(n, "mul acc; add 1; sqrt", x, &root));
    return bind_map(n, ISA_DTYPE_NONE,
                    "abs; add in1; log =tmp; mov in0; lt 0; mul -2; add 1; mul tmp", NULL, 2,
                    (struct graph_value *[]){x, root});
}

npu_status import_acosh(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *root;
    NPU_TRY(onnx_map1(n, "mul acc; sub 1; sqrt", n->in[0], &root));
    return bind_map(n, ISA_DTYPE_NONE, "add in1; log", NULL, 2,
                    (struct graph_value *[]){n->in[0], root});
}

npu_status import_softplus(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    struct graph_value *e;
    NPU_TRY(onnx_map1(n, "abs; neg; exp; add 1", n->in[0], &e));
    return bind_map(n, ISA_DTYPE_NONE, "log =tmp; mov in1; max 0; add tmp", NULL, 2,
                    (struct graph_value *[]){e, n->in[0]});
}

// x < -lambd: x + bias; x > lambd: x - bias; else 0.
npu_status import_shrink(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    double bias = onnx_float(n, "bias", 0), lambd = onnx_float(n, "lambd", 0.5);
    struct graph_value *x = n->in[0], *low;
    NPU_TRY(onnx_map(n, x->dtype, "add $0 =tmp; mov in0; lt $1; sel tmp 0",
                     (double[]){bias, -lambd}, 1, &x, &low));
    return bind_map(n, x->dtype, "sub $0 =tmp; mov in0; gt $1; sel tmp in1",
                    (double[]){bias, lambd}, 2, (struct graph_value *[]){x, low});
}

npu_status import_isinf(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    bool negative = onnx_int(n, "detect_negative", 1) != 0,
         positive = onnx_int(n, "detect_positive", 1) != 0;
    double infinity = negative && !positive ? -HUGE_VAL : HUGE_VAL;
    if (!negative && !positive) // never
        return bind_map(n, ISA_BOOL, "ne in0; mul 0", NULL, 1, n->in);
    return bind_map(n, ISA_BOOL, negative && positive ? "abs; eq $0" : "eq $0", &infinity, 1,
                    n->in);
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

// |x|^y = exp(y log |x|); negative x with odd y negates. log 0 is kept finite so that 0^0 = 1.
static npu_status general_power(struct onnx_node *n, struct graph_value *x, struct graph_value *y,
                                struct graph_value **out) {
    struct graph_value *logarithm, *power;
    double lowest = -3.4028234663852886e38;
    NPU_TRY(onnx_map(n, ISA_F32, "abs; log; max $0", &lowest, 1, &x, &logarithm));
    NPU_TRY(onnx_map(n, ISA_F32, "mul in1; exp", NULL, 2, (struct graph_value *[]){logarithm, y},
                     &power));
    return onnx_map(n, ISA_F32,
                    "mod 2; eq 1; mul -2; add 1; mul in2 =tmp; mov in1; lt 0; sel tmp in2", NULL, 3,
                    (struct graph_value *[]){y, x, power}, out);
}

npu_status import_pow(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 2, 2));
    struct graph_value *x = n->in[0], *y = n->in[1], *z;
    bool ints = isa_dtype_is_int(x->dtype);
    if (y->data && graph_value_elems(y) == 1 && y->rank <= x->rank) {
        double exponent = (double)num_load_f32(y->dtype, y->data, 0);
        const char *chain = power_chain(exponent);
        if (chain && (!ints || (exponent >= 0 && exponent == floor(exponent))))
            return bind_map(n, x->dtype, chain, NULL, 1, &x);
    }
    NPU_TRY(general_power(n, x, y, &z));
    if (ints) return bind_map(n, x->dtype, "round", NULL, 1, &z);
    NPU_TRY(onnx_cast(n, z, x->dtype, &z));
    return onnx_bind(n, 0, z);
}
