// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops that are more than one row of a table: arithmetic with wrapping, operand lists,
// casts, powers.

#include <math.h>
#include <string.h>

#include "toolchain/frontend/common/functions.h"
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

typedef npu_status build_function(const struct build *b, struct graph_value *x,
                                  struct graph_value **out);

static npu_status bind_function(struct onnx_node *n, build_function *function,
                                struct graph_value *x) {
    struct graph_value *y;
    NPU_TRY(function(&n->b, x, &y));
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
    if (isa_dtype_is_int(n->in[0]->dtype))
        return bind_map(n, ISA_DTYPE_NONE, "div in1; mul in1; rsub in0", NULL, 2, n->in);
    struct graph_value *y;
    NPU_TRY(build_fmod(&n->b, n->in[0], n->in[1], &y));
    NPU_TRY(build_cast(&n->b, y, n->in[0]->dtype, &y));
    return onnx_bind(n, 0, y);
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

npu_status import_gelu(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    const char *approximate = onnx_string(n, "approximate", "none");
    if (!strcmp(approximate, "none")) return bind_map(n, ISA_DTYPE_NONE, "gelu", NULL, 1, n->in);
    if (strcmp(approximate, "tanh") != 0)
        return npu_fail(BAD_INPUT, "attribute approximate is '%s', expected none or tanh",
                        approximate);
    return bind_function(n, build_tanh_gelu, n->in[0]);
}

npu_status import_fast_gelu(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 2));
    struct graph_value *x = n->in[0];
    if (onnx_given(n, 1)) NPU_TRY(onnx_map2(n, "add in1", x, n->in[1], &x));
    return bind_function(n, build_tanh_gelu, x);
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
    return bind_function(n, build_tan, n->in[0]);
}

npu_status import_atan(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    return bind_function(n, build_atan, n->in[0]);
}

npu_status import_asin(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    return bind_function(n, build_asin, n->in[0]);
}

npu_status import_acos(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    return bind_function(n, build_acos, n->in[0]);
}

npu_status import_asinh(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    return bind_function(n, build_asinh, n->in[0]);
}

npu_status import_acosh(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    return bind_function(n, build_acosh, n->in[0]);
}

npu_status import_softplus(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    return bind_function(n, build_softplus, n->in[0]);
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

npu_status import_pow(struct onnx_node *n) {
    struct graph_value *y;
    NPU_TRY(onnx_need(n, 2, 2));
    NPU_TRY(build_pow(&n->b, n->in[0], n->in[1], &y));
    return onnx_bind(n, 0, y);
}
