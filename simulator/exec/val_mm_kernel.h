// SPDX-License-Identifier: Apache-2.0
//
// Register tiles of the matrix product, as a template. The includer defines
//
//   V, VI                      vector of W f32, of W i32; a tile has 2 W columns
//   LOAD STORE SET1 ZERO       of f32: (p) (p, v) (x) ()
//   LOADI STOREI SET1I ZEROI   of i32
//   MADD(acc, a, b)            acc plus the two int16 products of each word
//   FMA(a, b, acc)             one fused step
//   CANON(v)                   NaN lanes replaced by the canonical NaN
//   TILE                       target attribute
//   KF(r) KI(r)                names of the kernels with r rows
//
// A kernel keeps its tile in registers, walks k in ascending order, one fused step per k and
// element.

#ifndef VAL_UNROLL
#if defined(__clang__)
#define VAL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define VAL_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

#define F32_KERNEL(rows)                                                               \
    TILE static void KF(rows)(const float *a, const float *b, float *const *c, int kc, \
                              bool load) {                                             \
        V acc[rows][2];                                                                \
        VAL_UNROLL for (int i = 0; i < (rows); i++) {                                  \
            acc[i][0] = load ? LOAD(c[i]) : ZERO();                                    \
            acc[i][1] = load ? LOAD(c[i] + W) : ZERO();                                \
        }                                                                              \
        for (int k = 0; k < kc; k++, a++, b += (ptrdiff_t)2 * W) {                     \
            V b0 = LOAD(b), b1 = LOAD(b + W);                                          \
            VAL_UNROLL for (int i = 0; i < (rows); i++) {                              \
                V s = SET1(a[(ptrdiff_t)i * VAL_LDA]);                                 \
                acc[i][0] = FMA(s, b0, acc[i][0]);                                     \
                acc[i][1] = FMA(s, b1, acc[i][1]);                                     \
            }                                                                          \
        }                                                                              \
        VAL_UNROLL for (int i = 0; i < (rows); i++) {                                  \
            STORE(c[i], CANON(acc[i][0]));                                             \
            STORE(c[i] + W, CANON(acc[i][1]));                                         \
        }                                                                              \
    }
#define I32_KERNEL(rows)                                                                           \
    TILE static void KI(rows)(const int32_t *a, const int32_t *b, int32_t *const *c, int pairs,    \
                              bool load) {                                                         \
        VI acc[rows][2];                                                                           \
        VAL_UNROLL for (int i = 0; i < (rows); i++) {                                              \
            acc[i][0] = load ? LOADI(c[i]) : ZEROI();                                              \
            acc[i][1] = load ? LOADI(c[i] + W) : ZEROI();                                          \
        }                                                                                          \
        for (int k = 0; k < pairs; k++, a++, b += (ptrdiff_t)2 * W) {                              \
            VI b0 = LOADI(b), b1 = LOADI(b + W);                                                   \
            VAL_UNROLL for (int i = 0; i < (rows); i++) {                                          \
                VI s = SET1I(((const struct num_s32 *)(const void *)a)[(ptrdiff_t)i * VAL_LDA].v); \
                acc[i][0] = MADD(acc[i][0], s, b0);                                                \
                acc[i][1] = MADD(acc[i][1], s, b1);                                                \
            }                                                                                      \
        }                                                                                          \
        VAL_UNROLL for (int i = 0; i < (rows); i++) {                                              \
            STOREI(c[i], acc[i][0]);                                                               \
            STOREI(c[i] + W, acc[i][1]);                                                           \
        }                                                                                          \
    }
