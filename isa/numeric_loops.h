// SPDX-License-Identifier: Apache-2.0
//
// Array forms of numeric_bits.h and numeric_fn.h, as a template: a file that includes this defines
//   NUM_NAME(x)   the name given to function x
//   NUM_TARGET    the target attribute of its functions (may be empty)
// and gets static functions
//   read_f32 read_i64 write_f32 write_i64   strided runs of any dtype (numeric.h, num_read_f32 ...)
//   vops_f32 vops_i64                       one stage over an array (num_vops_f32 ...)
// The loops are the same C for every instruction set, so their results are too; included by
// isa/numeric_bulk.c and, for the wider instruction sets, by the simulator.

#include "isa/insn.h"
#include "isa/numeric_fn.h"

#include <stddef.h>

#ifndef NPU_ISA_NUMERIC_LOOPS_H
#define NPU_ISA_NUMERIC_LOOPS_H
// Unaligned elements.
#define NUM_UNALIGNED(name, type) \
    struct num_##name {           \
        type v;                   \
    } __attribute__((packed, may_alias))
NUM_UNALIGNED(s8, int8_t);
NUM_UNALIGNED(u8, uint8_t);
NUM_UNALIGNED(s16, int16_t);
NUM_UNALIGNED(u16, uint16_t);
NUM_UNALIGNED(s32, int32_t);
NUM_UNALIGNED(u32, uint32_t);
NUM_UNALIGNED(s64, int64_t);
NUM_UNALIGNED(u64, uint64_t);
NUM_UNALIGNED(f32, float);
NUM_UNALIGNED(f64, double);

// Element of a 4-bit array, 0..15.
NUM_INLINE uint32_t num_get_nibble(const uint8_t *base, int64_t index) {
    return ((uint32_t)base[index >> 1] >> ((index & 1) * 4)) & 15u;
}
NUM_INLINE void num_put_nibble(uint8_t *base, int64_t index, uint32_t v) {
    uint32_t shift = (uint32_t)(index & 1) * 4u;
    base[index >> 1] = (uint8_t)((base[index >> 1] & ~(15u << shift)) | ((v & 15u) << shift));
}
NUM_INLINE int32_t num_sign4(uint32_t nibble) {
    return (int32_t)(nibble ^ 8u) - 8;
}
NUM_INLINE int64_t num_u64_to_i64(uint64_t v) {
    return v > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)v;
}
NUM_INLINE float num_f64_to_f32(double v) {
    return num_canonical((float)v);
}
NUM_INLINE uint32_t num_f32_to_u32(float x) {
    return (uint32_t)num_clamp_i64(num_f32_to_i64(x), 0, UINT32_MAX);
}
NUM_INLINE uint64_t num_f32_to_u64(float x) {
    float r = num_fn_round(x);
    if (!(r > 0.0f)) return 0;
    return r >= 0x1p64f ? UINT64_MAX : (uint64_t)r;
}
#endif

// s (d when writing) is the array at `first`; the common stride of 1 has its own loop.
#define NUM_READ(name, expr)                                                  \
    {                                                                         \
        const struct num_##name *s = (const struct num_##name *)base + first; \
        if (stride == 1)                                                      \
            for (size_t i = 0; i < n; i++)                                    \
                out[i] = (expr(s[i].v));                                      \
        else                                                                  \
            for (size_t i = 0; i < n; i++)                                    \
                out[i] = (expr(s[(int64_t)i * stride].v));                    \
        break;                                                                \
    }
#define NUM_WRITE(name, type, expr)                               \
    {                                                             \
        struct num_##name *d = (struct num_##name *)base + first; \
        if (stride == 1)                                          \
            for (size_t i = 0; i < n; i++)                        \
                d[i].v = (type)(expr(in[i]));                     \
        else                                                      \
            for (size_t i = 0; i < n; i++)                        \
                d[(int64_t)i * stride].v = (type)(expr(in[i]));   \
        break;                                                    \
    }
#define NUM_AT(i) (first + (int64_t)(i)*stride)

NUM_TARGET static void NUM_NAME(read_f32)(int dtype, const uint8_t *base, int64_t first,
                                          int64_t stride, float *restrict out, size_t n) {
    switch ((enum isa_dtype)dtype) {
    case ISA_F32: NUM_READ(f32, )
    case ISA_F16: NUM_READ(u16, num_f16_to_f32)
    case ISA_BF16: NUM_READ(u16, num_bf16_to_f32)
    case ISA_F8E4M3: NUM_READ(u8, num_f8e4m3_to_f32)
    case ISA_F8E5M2: NUM_READ(u8, num_f8e5m2_to_f32)
    case ISA_I8: NUM_READ(s8, (float))
    case ISA_I16: NUM_READ(s16, (float))
    case ISA_I32: NUM_READ(s32, (float))
    case ISA_I64: NUM_READ(s64, (float))
    case ISA_BOOL:
    case ISA_U8: NUM_READ(u8, (float))
    case ISA_U16: NUM_READ(u16, (float))
    case ISA_U32: NUM_READ(u32, (float))
    case ISA_U64: NUM_READ(u64, (float))
    case ISA_F64: NUM_READ(f64, num_f64_to_f32)
    case ISA_I4:
        for (size_t i = 0; i < n; i++)
            out[i] = (float)num_sign4(num_get_nibble(base, NUM_AT(i)));
        break;
    case ISA_U4:
        for (size_t i = 0; i < n; i++)
            out[i] = (float)num_get_nibble(base, NUM_AT(i));
        break;
    case ISA_DTYPE_NONE: break;
    }
}

NUM_TARGET static void NUM_NAME(read_i64)(int dtype, const uint8_t *base, int64_t first,
                                          int64_t stride, int64_t *restrict out, size_t n) {
#define FROM_F16(v) num_f32_to_i64(num_f16_to_f32(v))
#define FROM_BF16(v) num_f32_to_i64(num_bf16_to_f32(v))
#define FROM_E4M3(v) num_f32_to_i64(num_f8e4m3_to_f32(v))
#define FROM_E5M2(v) num_f32_to_i64(num_f8e5m2_to_f32(v))
#define FROM_F64(v) num_f32_to_i64(num_f64_to_f32(v))
    switch ((enum isa_dtype)dtype) {
    case ISA_F32: NUM_READ(f32, num_f32_to_i64)
    case ISA_F16: NUM_READ(u16, FROM_F16)
    case ISA_BF16: NUM_READ(u16, FROM_BF16)
    case ISA_F8E4M3: NUM_READ(u8, FROM_E4M3)
    case ISA_F8E5M2: NUM_READ(u8, FROM_E5M2)
    case ISA_I8: NUM_READ(s8, (int64_t))
    case ISA_I16: NUM_READ(s16, (int64_t))
    case ISA_I32: NUM_READ(s32, (int64_t))
    case ISA_I64: NUM_READ(s64, (int64_t))
    case ISA_BOOL:
    case ISA_U8: NUM_READ(u8, (int64_t))
    case ISA_U16: NUM_READ(u16, (int64_t))
    case ISA_U32: NUM_READ(u32, (int64_t))
    case ISA_U64: NUM_READ(u64, num_u64_to_i64)
    case ISA_F64: NUM_READ(f64, FROM_F64)
    case ISA_I4:
        for (size_t i = 0; i < n; i++)
            out[i] = num_sign4(num_get_nibble(base, NUM_AT(i)));
        break;
    case ISA_U4:
        for (size_t i = 0; i < n; i++)
            out[i] = num_get_nibble(base, NUM_AT(i));
        break;
    case ISA_DTYPE_NONE: break;
    }
#undef FROM_F16
#undef FROM_BF16
#undef FROM_E4M3
#undef FROM_E5M2
#undef FROM_F64
}

NUM_TARGET static void NUM_NAME(write_f32)(int dtype, uint8_t *base, int64_t first, int64_t stride,
                                           const float *restrict in, size_t n) {
#define TO_I8(x) num_f32_to_small(x, -128.0f, 127.0f)
#define TO_U8(x) num_f32_to_small(x, 0.0f, 255.0f)
#define TO_I16(x) num_f32_to_small(x, -32768.0f, 32767.0f)
#define TO_U16(x) num_f32_to_small(x, 0.0f, 65535.0f)
#define TO_BOOL(x) ((x) != 0.0f)
#define TO_F64(x) (double)num_canonical(x)
    switch ((enum isa_dtype)dtype) {
    case ISA_F32: NUM_WRITE(f32, float, num_canonical)
    case ISA_F16: NUM_WRITE(u16, uint16_t, num_f32_to_f16)
    case ISA_BF16: NUM_WRITE(u16, uint16_t, num_f32_to_bf16)
    case ISA_F8E4M3: NUM_WRITE(u8, uint8_t, num_f32_to_f8e4m3)
    case ISA_F8E5M2: NUM_WRITE(u8, uint8_t, num_f32_to_f8e5m2)
    case ISA_I8: NUM_WRITE(s8, int8_t, TO_I8)
    case ISA_I16: NUM_WRITE(s16, int16_t, TO_I16)
    case ISA_I32: NUM_WRITE(s32, int32_t, num_f32_to_i32)
    case ISA_I64: NUM_WRITE(s64, int64_t, num_f32_to_i64)
    case ISA_U8: NUM_WRITE(u8, uint8_t, TO_U8)
    case ISA_U16: NUM_WRITE(u16, uint16_t, TO_U16)
    case ISA_U32: NUM_WRITE(u32, uint32_t, num_f32_to_u32)
    case ISA_U64: NUM_WRITE(u64, uint64_t, num_f32_to_u64)
    case ISA_BOOL: NUM_WRITE(u8, uint8_t, TO_BOOL)
    case ISA_F64: NUM_WRITE(f64, double, TO_F64)
    case ISA_I4:
        for (size_t i = 0; i < n; i++)
            num_put_nibble(base, NUM_AT(i), (uint32_t)num_f32_to_small(in[i], -8.0f, 7.0f));
        break;
    case ISA_U4:
        for (size_t i = 0; i < n; i++)
            num_put_nibble(base, NUM_AT(i), (uint32_t)num_f32_to_small(in[i], 0.0f, 15.0f));
        break;
    case ISA_DTYPE_NONE: break;
    }
#undef TO_I8
#undef TO_U8
#undef TO_I16
#undef TO_U16
#undef TO_BOOL
#undef TO_F64
}

NUM_TARGET static void NUM_NAME(write_i64)(int dtype, uint8_t *base, int64_t first, int64_t stride,
                                           const int64_t *restrict in, size_t n) {
#define TO_F16(v) num_f32_to_f16((float)(v))
#define TO_BF16(v) num_f32_to_bf16((float)(v))
#define TO_E4M3(v) num_f32_to_f8e4m3((float)(v))
#define TO_E5M2(v) num_f32_to_f8e5m2((float)(v))
#define TO_I8(v) num_clamp_i64(v, -128, 127)
#define TO_I16(v) num_clamp_i64(v, -32768, 32767)
#define TO_I32(v) num_clamp_i64(v, INT32_MIN, INT32_MAX)
#define TO_U8(v) num_clamp_i64(v, 0, 255)
#define TO_U16(v) num_clamp_i64(v, 0, 65535)
#define TO_U32(v) num_clamp_i64(v, 0, UINT32_MAX)
#define TO_U64(v) num_clamp_i64(v, 0, INT64_MAX)
#define TO_BOOL(v) ((v) != 0)
    switch ((enum isa_dtype)dtype) {
    case ISA_F32: NUM_WRITE(f32, float, (float))
    case ISA_F16: NUM_WRITE(u16, uint16_t, TO_F16)
    case ISA_BF16: NUM_WRITE(u16, uint16_t, TO_BF16)
    case ISA_F8E4M3: NUM_WRITE(u8, uint8_t, TO_E4M3)
    case ISA_F8E5M2: NUM_WRITE(u8, uint8_t, TO_E5M2)
    case ISA_I8: NUM_WRITE(s8, int8_t, TO_I8)
    case ISA_I16: NUM_WRITE(s16, int16_t, TO_I16)
    case ISA_I32: NUM_WRITE(s32, int32_t, TO_I32)
    case ISA_I64: NUM_WRITE(s64, int64_t, )
    case ISA_U8: NUM_WRITE(u8, uint8_t, TO_U8)
    case ISA_U16: NUM_WRITE(u16, uint16_t, TO_U16)
    case ISA_U32: NUM_WRITE(u32, uint32_t, TO_U32)
    case ISA_U64: NUM_WRITE(u64, uint64_t, TO_U64)
    case ISA_BOOL: NUM_WRITE(u8, uint8_t, TO_BOOL)
    case ISA_F64: NUM_WRITE(f64, double, (double))
    case ISA_I4:
        for (size_t i = 0; i < n; i++)
            num_put_nibble(base, NUM_AT(i), (uint32_t)num_clamp_i64(in[i], -8, 7));
        break;
    case ISA_U4:
        for (size_t i = 0; i < n; i++)
            num_put_nibble(base, NUM_AT(i), (uint32_t)num_clamp_i64(in[i], 0, 15));
        break;
    case ISA_DTYPE_NONE: break;
    }
#undef TO_F16
#undef TO_BF16
#undef TO_E4M3
#undef TO_E5M2
#undef TO_I8
#undef TO_I16
#undef TO_I32
#undef TO_U8
#undef TO_U16
#undef TO_U32
#undef TO_U64
#undef TO_BOOL
}

// One row of vop.def: x is acc, y and z the operands.
#define NUM_ROW0(N, T, expr)             \
    case ISA_VOP_##N:                    \
        for (size_t i = 0; i < n; i++) { \
            T x = acc[i];                \
            out[i] = (expr);             \
        }                                \
        break;
#define NUM_ROW1(N, T, expr)             \
    case ISA_VOP_##N:                    \
        for (size_t i = 0; i < n; i++) { \
            T x = acc[i], y = a[i];      \
            out[i] = (expr);             \
        }                                \
        break;
#define NUM_ROW2(N, T, expr)                  \
    case ISA_VOP_##N:                         \
        for (size_t i = 0; i < n; i++) {      \
            T x = acc[i], y = a[i], z = b[i]; \
            out[i] = (expr);                  \
        }                                     \
        break;
#define NUM_INTEGER_ROWS \
    case ISA_VOP_SHL:    \
    case ISA_VOP_SHR:    \
    case ISA_VOP_AND:    \
    case ISA_VOP_OR:     \
    case ISA_VOP_XOR:
#define NUM_SPECIAL_ROWS  \
    case ISA_VOP_EXP:     \
    case ISA_VOP_LOG:     \
    case ISA_VOP_RECIP:   \
    case ISA_VOP_RSQRT:   \
    case ISA_VOP_SQRT:    \
    case ISA_VOP_TANH:    \
    case ISA_VOP_SIGMOID: \
    case ISA_VOP_ERF:     \
    case ISA_VOP_GELU:    \
    case ISA_VOP_SILU:    \
    case ISA_VOP_SIN:     \
    case ISA_VOP_COS:

NUM_TARGET static void NUM_NAME(special_f32)(int op, float *restrict out, const float *acc,
                                             size_t n) {
    switch (op) {
        NUM_ROW0(EXP, float, num_fn_exp(x))
        NUM_ROW0(LOG, float, num_fn_log(x))
        NUM_ROW0(RECIP, float, 1.0f / x)
        NUM_ROW0(RSQRT, float, 1.0f / num_fn_sqrt(x))
        NUM_ROW0(SQRT, float, num_fn_sqrt(x))
        NUM_ROW0(TANH, float, num_fn_tanh(x))
        NUM_ROW0(SIGMOID, float, num_fn_sigmoid(x))
        NUM_ROW0(ERF, float, num_fn_erf(x))
        NUM_ROW0(GELU, float, num_fn_gelu(x))
        NUM_ROW0(SILU, float, num_fn_silu(x))
        NUM_ROW0(SIN, float, num_fn_sin(x))
        NUM_ROW0(COS, float, num_fn_cos(x))
    default: break;
    }
    // The few arguments that the vector form cannot reduce.
    if (op == ISA_VOP_SIN || op == ISA_VOP_COS)
        for (size_t i = 0; i < n; i++)
            if (num_fn_trig_is_large(acc[i]))
                out[i] = op == ISA_VOP_SIN ? num_fn_sin_any(acc[i]) : num_fn_cos_any(acc[i]);
}

NUM_TARGET static void NUM_NAME(vops_f32)(int op, float *restrict out, const float *acc,
                                          const float *a, const float *b, size_t n) {
    switch ((enum isa_vop)op) {
        NUM_ROW1(MOV, float, ((void)x, y))
        NUM_ROW1(ADD, float, x + y)
        NUM_ROW1(SUB, float, x - y)
        NUM_ROW1(RSUB, float, y - x)
        NUM_ROW1(MUL, float, x *y)
        NUM_ROW1(DIV, float, x / y)
        NUM_ROW1(RDIV, float, y / x)
        NUM_ROW2(FMA, float, NUM_FMA(x, y, z))
        NUM_ROW1(MAX, float, num_fn_max(x, y))
        NUM_ROW1(MIN, float, num_fn_min(x, y))
        NUM_ROW2(SEL, float, x != 0.0f ? y : z)
        NUM_ROW1(EQ, float, x == y ? 1.0f : 0.0f)
        NUM_ROW1(NE, float, x != y ? 1.0f : 0.0f)
        NUM_ROW1(LT, float, x < y ? 1.0f : 0.0f)
        NUM_ROW1(LE, float, x <= y ? 1.0f : 0.0f)
        NUM_ROW1(GT, float, x > y ? 1.0f : 0.0f)
        NUM_ROW1(GE, float, x >= y ? 1.0f : 0.0f)
        NUM_ROW0(ABS, float, num_fn_abs(x))
        NUM_ROW0(NEG, float, -x)
        NUM_ROW0(FLOOR, float, num_fn_floor(x))
        NUM_ROW0(CEIL, float, num_fn_ceil(x))
        NUM_ROW0(ROUND, float, num_fn_round(x))
        NUM_ROW0(TRUNC, float, num_fn_trunc(x))
        NUM_ROW1(MOD, float, num_fn_mod(x, y))
        NUM_ROW0(NOT, float, x == 0.0f ? 1.0f : 0.0f)
        NUM_ROW2(APRED, float, z != 0.0f ? x : y)
        NUM_SPECIAL_ROWS
        NUM_NAME(special_f32)(op, out, acc, n);
        break;
        NUM_INTEGER_ROWS
    case ISA_VOP_NOP:
        for (size_t i = 0; i < n; i++)
            out[i] = acc[i];
        break;
    }
}

NUM_TARGET static void NUM_NAME(vops_i64)(int op, int64_t *restrict out, const int64_t *acc,
                                          const int64_t *a, const int64_t *b, size_t n) {
    switch ((enum isa_vop)op) {
        NUM_ROW1(MOV, int64_t, ((void)x, y))
        NUM_ROW1(ADD, int64_t, num_fn_iadd(x, y))
        NUM_ROW1(SUB, int64_t, num_fn_isub(x, y))
        NUM_ROW1(RSUB, int64_t, num_fn_isub(y, x))
        NUM_ROW1(MUL, int64_t, num_fn_imul(x, y))
        NUM_ROW1(DIV, int64_t, num_fn_idiv(x, y))
        NUM_ROW1(RDIV, int64_t, num_fn_idiv(y, x))
        NUM_ROW2(FMA, int64_t, num_fn_iadd(num_fn_imul(x, y), z))
        NUM_ROW1(MAX, int64_t, x > y ? x : y)
        NUM_ROW1(MIN, int64_t, x < y ? x : y)
        NUM_ROW2(SEL, int64_t, x != 0 ? y : z)
        NUM_ROW1(EQ, int64_t, x == y)
        NUM_ROW1(NE, int64_t, x != y)
        NUM_ROW1(LT, int64_t, x < y)
        NUM_ROW1(LE, int64_t, x <= y)
        NUM_ROW1(GT, int64_t, x > y)
        NUM_ROW1(GE, int64_t, x >= y)
        NUM_ROW0(ABS, int64_t, x < 0 ? num_fn_isub(0, x) : x)
        NUM_ROW0(NEG, int64_t, num_fn_isub(0, x))
        NUM_ROW1(MOD, int64_t, num_fn_imod(x, y))
        NUM_ROW1(SHL, int64_t, num_fn_ishl(x, y))
        NUM_ROW1(SHR, int64_t, num_fn_ishr(x, y))
        NUM_ROW1(AND, int64_t, x & y)
        NUM_ROW1(OR, int64_t, x | y)
        NUM_ROW1(XOR, int64_t, x ^ y)
        NUM_ROW0(NOT, int64_t, x == 0)
        NUM_ROW2(APRED, int64_t, z != 0 ? x : y)
        NUM_SPECIAL_ROWS
    case ISA_VOP_FLOOR:
    case ISA_VOP_CEIL:
    case ISA_VOP_ROUND:
    case ISA_VOP_TRUNC:
    case ISA_VOP_NOP:
        for (size_t i = 0; i < n; i++)
            out[i] = acc[i];
        break;
    }
}

#undef NUM_ROW0
#undef NUM_ROW1
#undef NUM_ROW2
#undef NUM_INTEGER_ROWS
#undef NUM_SPECIAL_ROWS
#undef NUM_READ
#undef NUM_WRITE
#undef NUM_AT
