// SPDX-License-Identifier: Apache-2.0
//
// Elementwise operators that are more than one row of the table.

#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/common/functions.h"
#include "toolchain/frontend/pt2/import.h"

static bool starts(const struct pt2_node *n, const char *text) {
    return !strncmp(n->target, text, strlen(text));
}

static npu_status bind_map(struct pt2_node *n, const char *chain, const double *params, int nin,
                           struct graph_value *const *in) {
    struct graph_value *y;
    if (n->failed) return NULL;
    NPU_TRY(build_map(&n->b, pt2_out_dtype(n, 0), chain, params, nin, in, &y));
    return pt2_bind(n, 0, y);
}

// Integers wrap.
static npu_status bind_wrapped(struct pt2_node *n, const char *chain, const double *params, int nin,
                               struct graph_value *const *in) {
    struct graph_value *y;
    if (n->failed) return NULL;
    NPU_TRY(pt2_map(n, pt2_out_dtype(n, 0), chain, params, nin, in, &y));
    return pt2_bind(n, 0, y);
}

// ---- arithmetic ------------------------------------------------------------------------------

npu_status aten_add(struct pt2_node *n) {
    struct graph_value *in[2] = {pt2_need(n, "self"), pt2_need(n, "other")};
    double alpha = pt2_float(n, "alpha");
    bool sub = starts(n, "sub");
    if (!sub && pt2_out_dtype(n, 0) == ISA_BOOL) return bind_map(n, "or in1", NULL, 2, in);
    if (alpha == 1) return bind_wrapped(n, sub ? "sub in1" : "add in1", NULL, 2, in);
    return bind_wrapped(n, sub ? "mov in1; mul $0; rsub in0" : "mov in1; mul $0; add in0", &alpha,
                        2, in);
}

npu_status aten_rsub(struct pt2_node *n) {
    struct graph_value *in[2] = {pt2_need(n, "self"), pt2_need(n, "other")};
    double alpha = pt2_float(n, "alpha");
    if (alpha == 1) return bind_wrapped(n, "rsub in1", NULL, 2, in);
    return bind_wrapped(n, "mul $0; rsub in1", &alpha, 2, in);
}

static bool integers(struct graph_value *const *in, int count) {
    bool ints = true;
    for (int k = 0; k < count; k++)
        ints &= isa_dtype_is_int(in[k]->dtype);
    return ints;
}

// Rounded towards minus infinity, or towards zero.
static npu_status rounded_quotient(struct pt2_node *n, bool down) {
    struct graph_value *in[2] = {pt2_need(n, "self"), pt2_need(n, "other")}, *y;
    if (n->failed) return NULL;
    if (!down) return bind_map(n, integers(in, 2) ? "div in1" : "div in1; trunc", NULL, 2, in);
    if (!integers(in, 2)) {
        NPU_TRY(build_floor_division(&n->b, in[0], in[1], &y));
        NPU_TRY(build_cast(&n->b, y, pt2_out_dtype(n, 0), &y));
        return pt2_bind(n, 0, y);
    }
    if (pt2_out_dtype(n, 0) != ISA_I64)
        return bind_map(n, "mod in1; rsub in0; div in1", NULL, 2, in);
    // The remainder cannot be taken off the lowest number: one less where signs differ instead.
    NPU_TRY(build_map(&n->b, ISA_I64,
                      "lt 0 =tmp; mov in1; lt 0; ne tmp =tmp; mov in0; mod in1; "
                      "ne 0; mul tmp",
                      NULL, 2, in, &y));
    return bind_map(n, "div in1; sub in2", NULL, 3, (struct graph_value *[]){in[0], in[1], y});
}

npu_status aten_div(struct pt2_node *n) {
    struct graph_value *in[2] = {pt2_need(n, "self"), pt2_need(n, "other")};
    const char *mode =
        strstr(n->row->args, "rounding_mode") ? pt2_string(n, "rounding_mode") : NULL;
    if (!mode) return bind_map(n, "div in1", NULL, 2, in);
    if (strcmp(mode, "floor") != 0 && strcmp(mode, "trunc") != 0)
        return npu_fail(BAD_INPUT, "rounding_mode '%s', expected floor or trunc", mode);
    return rounded_quotient(n, *mode == 'f');
}

npu_status aten_floor_divide(struct pt2_node *n) {
    return rounded_quotient(n, true);
}

npu_status aten_fmod(struct pt2_node *n) {
    struct graph_value *in[2] = {pt2_need(n, "self"), pt2_need(n, "other")}, *y;
    if (n->failed) return NULL;
    if (integers(in, 2)) return bind_map(n, "div in1; mul in1; rsub in0", NULL, 2, in);
    NPU_TRY(build_fmod(&n->b, in[0], in[1], &y));
    NPU_TRY(build_cast(&n->b, y, pt2_out_dtype(n, 0), &y));
    return pt2_bind(n, 0, y);
}

// Squares and products, which wrap.
static npu_status integer_power(struct pt2_node *n, struct graph_value *x, struct graph_value *y) {
    enum isa_dtype type = pt2_out_dtype(n, 0);
    struct graph_value *power = build_new_scalar(&n->b, ISA_I64, 1);
    int64_t e = y->data && graph_value_elems(y) == 1 ? num_load_i64(y->dtype, y->data, 0) : -1;
    if (e < 0)
        return npu_fail(UNSUPPORTED,
                        "integers to a power that is %s; expected floats, or one "
                        "constant exponent of 0 or more",
                        y->data ? "negative or several" : "computed");
    NPU_TRY(pt2_cast(n, x, type, &x));
    NPU_TRY(pt2_widen(n, x, &x));
    NPU_TRY(build_expand(&n->b, power, x->rank, x->dims, &power));
    for (; e; e /= 2) {
        if (e % 2) NPU_TRY(build_map2(&n->b, "mul in1", power, x, &power));
        if (e > 1) NPU_TRY(build_map1(&n->b, "mul acc", x, &x));
    }
    NPU_TRY(pt2_cast(n, power, type, &power));
    return pt2_bind(n, 0, power);
}

npu_status aten_pow(struct pt2_node *n) {
    enum isa_dtype type = pt2_out_dtype(n, 0);
    struct graph_value *x = pt2_need(n, "self"), *y = pt2_need(n, "exponent"), *z;
    if (n->failed) return NULL;
    if (isa_dtype_is_int(type)) return integer_power(n, x, y);
    if (!strcmp(n->target, "pow.Scalar") && pt2_float(n, "self") > 0) {
        double factor = log(pt2_float(n, "self"));
        return bind_map(n, "mul $0; exp", &factor, 1, &y);
    }
    NPU_TRY(build_cast(&n->b, x, type, &x));
    NPU_TRY(build_pow(&n->b, x, y, &z));
    return pt2_bind(n, 0, z);
}

npu_status aten_addcmul(struct pt2_node *n) {
    struct graph_value *in[3] = {pt2_need(n, "self"), pt2_need(n, "tensor1"),
                                 pt2_need(n, "tensor2")};
    double value = pt2_float(n, "value");
    return bind_wrapped(n,
                        value == 1 ? "mov in1; mul in2; add in0"
                                   : "mov in1; mul in2; mul $0; add in0",
                        &value, 3, in);
}

npu_status aten_addcdiv(struct pt2_node *n) {
    struct graph_value *in[3] = {pt2_need(n, "self"), pt2_need(n, "tensor1"),
                                 pt2_need(n, "tensor2")};
    double value = pt2_float(n, "value");
    return bind_map(n, "mov in1; div in2; mul $0; add in0", &value, 3, in);
}

npu_status aten_hypot(struct pt2_node *n) {
    struct graph_value *in[2] = {pt2_need(n, "self"), pt2_need(n, "other")};
    return bind_map(n, "mul acc =tmp; mov in1; mul acc; add tmp; sqrt", NULL, 2, in);
}

npu_status aten_round_decimals(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self");
    double factor = pow(10, (double)pt2_int(n, "decimals"));
    return bind_map(n, "mul $0; round; div $0", &factor, 1, &x);
}

// max(a, b) + log(1 + exp(-|a - b|))
npu_status aten_logaddexp(struct pt2_node *n) {
    struct graph_value *in[3] = {NULL, pt2_need(n, "self"), pt2_need(n, "other")};
    if (n->failed) return NULL;
    NPU_TRY(build_map(&n->b, ISA_F32, "sub in1; abs; neg; exp; add 1", NULL, 2, in + 1, &in[0]));
    return bind_map(n, "log =tmp; mov in1; max in2; add tmp", NULL, 3, in);
}

npu_status aten_atan2(struct pt2_node *n) {
    struct graph_value *y = pt2_need(n, "self"), *x = pt2_need(n, "other"), *angle;
    if (n->failed) return NULL;
    NPU_TRY(build_atan2(&n->b, y, x, &angle));
    NPU_TRY(build_cast(&n->b, angle, pt2_out_dtype(n, 0), &angle));
    return pt2_bind(n, 0, angle);
}

// ---- selections ------------------------------------------------------------------------------

npu_status aten_where(struct pt2_node *n) {
    struct graph_value *in[3] = {pt2_need(n, "condition"), pt2_need(n, "self"),
                                 pt2_need(n, "other")};
    if (n->failed) return NULL;
    if (!isa_dtype_is_int(in[0]->dtype))
        return npu_fail(BAD_INPUT, "the condition '%s' is %s, expected bool", in[0]->name,
                        isa_dtype_name(in[0]->dtype));
    return bind_map(n, "sel in1 in2", NULL, 3, in);
}

npu_status aten_masked_fill(struct pt2_node *n) {
    struct graph_value *in[3] = {pt2_need(n, "mask"), pt2_need(n, "value"), pt2_need(n, "self")};
    return bind_map(n, "sel in1 in2", NULL, 3, in);
}

// Integer bounds take the type of the result, in which they wrap.
npu_status aten_clamp(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    enum isa_dtype type = pt2_out_dtype(n, 0);
    if (n->failed) return NULL;
    NPU_TRY(build_map(&n->b, type, "nop", NULL, 1, &x, &y));
    for (int k = 0; k < 2; k++) {
        const char *name = k ? "max" : "min";
        struct graph_value *bound = strstr(n->row->args, name) ? pt2_in(n, name) : NULL;
        if (n->failed) return NULL;
        if (!bound) continue;
        if (isa_dtype_is_int(type)) NPU_TRY(pt2_cast(n, bound, type, &bound));
        NPU_TRY(build_map(&n->b, type, k ? "min in1" : "max in1", NULL, 2,
                          (struct graph_value *[]){y, bound}, &y));
    }
    return pt2_bind(n, 0, y);
}

// weight: one, or one per channel (dimension 1); _prelu_kernel's already broadcasts.
npu_status aten_prelu(struct pt2_node *n) {
    struct graph_value *in[2] = {pt2_need(n, "self"), pt2_need(n, "weight")};
    if (n->failed) return NULL;
    if (in[1]->rank == 1 && in[0]->rank > 1 && *n->target == 'p') {
        int64_t dims[GRAPH_MAX_RANK] = {in[1]->dims[0], 1, 1, 1, 1, 1, 1, 1};
        NPU_TRY(build_reshape(&n->b, in[1], in[0]->rank - 1, dims, &in[1]));
    }
    return bind_map(n, "mul in1 =tmp; mov in0; lt 0; sel tmp in0", NULL, 2, in);
}

static double largest(enum isa_dtype type) {
    return type == ISA_F16 ? 65504 : type == ISA_BF16 ? 0x1.fep127 : 0x1.fffffep127;
}

npu_status aten_nan_to_num(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self");
    if (n->failed) return NULL;
    if (isa_dtype_is_int(x->dtype)) return bind_map(n, "nop", NULL, 1, &x);
    double most = largest(x->dtype), nan = pt2_given(n, "nan") ? pt2_float(n, "nan") : 0;
    double p[3] = {nan, most, -most};
    bool replaced = false;
    for (int k = 1; k < 3; k++) {
        const char *name = k == 1 ? "posinf" : "neginf";
        if (!pt2_given(n, name)) continue;
        p[k] = pt2_float(n, name);
        replaced = true;
    }
    if (!replaced) return bind_map(n, "max $2; min $1 =tmp; ne tmp; sel $0 tmp", p, 1, &x);
    NPU_TRY(
        build_map(&n->b, x->dtype, "eq inf; sel $1 in0 =tmp; eq -inf; sel $2 tmp", p, 1, &x, &x));
    return bind_map(n, "ne in0; sel $0 in0", p, 1, &x);
}

// ---- truths ----------------------------------------------------------------------------------

npu_status aten_logical(struct pt2_node *n) {
    struct graph_value *in[2] = {pt2_need(n, "self"), pt2_need(n, "other")};
    if (n->failed) return NULL;
    for (int k = 0; k < 2; k++)
        NPU_TRY(build_cast(&n->b, in[k], ISA_BOOL, &in[k]));
    return bind_map(n,
                    starts(n, "logical_and")  ? "and in1"
                    : starts(n, "logical_or") ? "or in1"
                                              : "xor in1",
                    NULL, 2, in);
}

npu_status aten_bitwise_not(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self");
    double mask = x->dtype == ISA_U8 ? 255 : x->dtype == ISA_U16 ? 65535 : -1;
    return bind_map(n, x->dtype == ISA_BOOL ? "not" : "xor $0", &mask, 1, &x);
}

// ---- activations -----------------------------------------------------------------------------

typedef npu_status build_function(const struct build *b, struct graph_value *x,
                                  struct graph_value **out);

static npu_status bind_function(struct pt2_node *n, build_function *function) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    if (n->failed) return NULL;
    if (pt2_out_dtype(n, 0) != ISA_DTYPE_NONE)
        NPU_TRY(build_cast(&n->b, x, pt2_out_dtype(n, 0), &x));
    NPU_TRY(function(&n->b, x, &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_tan(struct pt2_node *n) {
    return bind_function(n, build_tan);
}

npu_status aten_atan(struct pt2_node *n) {
    return bind_function(n, build_atan);
}

npu_status aten_asin(struct pt2_node *n) {
    return bind_function(n, build_asin);
}

npu_status aten_acos(struct pt2_node *n) {
    return bind_function(n, build_acos);
}

npu_status aten_asinh(struct pt2_node *n) {
    return bind_function(n, build_asinh);
}

npu_status aten_acosh(struct pt2_node *n) {
    return bind_function(n, build_acosh);
}

npu_status aten_gelu(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self");
    const char *approximate = pt2_string(n, "approximate");
    if (!approximate || !strcmp(approximate, "none")) return bind_map(n, "gelu", NULL, 1, &x);
    if (strcmp(approximate, "tanh") != 0)
        return npu_fail(BAD_INPUT, "approximate '%s', expected none or tanh", approximate);
    return bind_function(n, build_tanh_gelu);
}

// scale * (max(0, x) + min(0, alpha * (exp(input_scale * x) - 1)))
npu_status aten_elu(struct pt2_node *n) {
    double p[3] = {pt2_float(n, "alpha"), pt2_float(n, "scale"), pt2_float(n, "input_scale")};
    struct graph_value *x = pt2_need(n, "self"), *y;
    if (n->failed) return NULL;
    if (p[1] == 1 && p[2] == 1)
        return bind_map(n, "min 0; exp; sub 1; mul $0 =tmp; mov in0; max 0; add tmp", p, 1, &x);
    NPU_TRY(build_map(&n->b, ISA_F32, "min 0; mul $2; exp; sub 1; mul $0; mul $1", p, 1, &x, &y));
    return bind_map(n, "max 0; mul $1; add in1", p, 2, (struct graph_value *[]){x, y});
}

npu_status aten_softplus(struct pt2_node *n) {
    double beta = pt2_float(n, "beta");
    struct graph_value *x = pt2_need(n, "self");
    if (n->failed) return NULL;
    if (beta != 1) NPU_TRY(build_map(&n->b, ISA_DTYPE_NONE, "mul $0", &beta, 1, &x, &x));
    NPU_TRY(build_softplus(&n->b, x, &x));
    if (beta != 1) NPU_TRY(build_map(&n->b, ISA_DTYPE_NONE, "div $0", &beta, 1, &x, &x));
    return pt2_bind(n, 0, x);
}

npu_status aten_log_sigmoid(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self");
    if (n->failed) return NULL;
    NPU_TRY(build_map1(&n->b, "neg", x, &x));
    NPU_TRY(build_softplus(&n->b, x, &x));
    return bind_map(n, "neg", NULL, 1, &x);
}

// x < -lambd: x + lambd; x > lambd: x - lambd; else 0.
npu_status aten_softshrink(struct pt2_node *n) {
    double lambd = pt2_float(n, "lambd");
    const double p[2] = {lambd, -lambd};
    struct graph_value *x = pt2_need(n, "self"), *low;
    if (n->failed) return NULL;
    NPU_TRY(build_map(&n->b, x->dtype, "add $0 =tmp; mov in0; ge $1; sel 0 tmp", p, 1, &x, &low));
    return bind_map(n, "sub $0 =tmp; mov in0; gt $0; sel tmp in1", p, 2,
                    (struct graph_value *[]){x, low});
}

// The first half of dim times the sigmoid of the second.
npu_status aten_glu(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *half[2];
    int axis = pt2_axis(n, "dim", x->rank);
    int64_t starts_at[GRAPH_MAX_RANK] = {0}, sizes[GRAPH_MAX_RANK], steps[GRAPH_MAX_RANK];
    if (n->failed) return NULL;
    for (int d = 0; d < x->rank; d++) {
        sizes[d] = d == axis ? x->dims[d] / 2 : x->dims[d];
        steps[d] = 1;
    }
    for (int k = 0; k < 2; k++) {
        starts_at[axis] = k * sizes[axis];
        NPU_TRY(build_slice(&n->b, x, starts_at, sizes, steps, &half[k]));
    }
    return bind_map(n, "mov in1; sigmoid; mul in0", NULL, 2, half);
}
