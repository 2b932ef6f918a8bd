// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of matrix products and convolutions: fused multiply-adds in ascending k, many
// outputs at once. Hosts with FMA get it by dispatch at run time; the others use the exact software
// form, so the bits are the same.

#include "isa/numeric.h"
#include "toolchain/graph/eval.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { BLOCK = 32 };

// Blocks of outputs are held in a local array over the whole k loop.
#define FMA_BODY(FMA)                                   \
    size_t j = 0;                                       \
    for (; j + BLOCK <= n; j += BLOCK) {                \
        float sum[BLOCK];                               \
        for (int u = 0; u < BLOCK; u++)                 \
            sum[u] = acc[j + (size_t)u];                \
        for (size_t k = 0; k < count; k++) {            \
            float x = a[k * lda];                       \
            const float *row = b + k * ldb + j;         \
            for (int u = 0; u < BLOCK; u++)             \
                sum[u] = FMA(x, row[u], sum[u]);        \
        }                                               \
        for (int u = 0; u < BLOCK; u++)                 \
            acc[j + (size_t)u] = sum[u];                \
    }                                                   \
    for (; j + 8 <= n; j += 8) {                        \
        float sum[8];                                   \
        for (int u = 0; u < 8; u++)                     \
            sum[u] = acc[j + (size_t)u];                \
        for (size_t k = 0; k < count; k++) {            \
            float x = a[k * lda];                       \
            const float *row = b + k * ldb + j;         \
            for (int u = 0; u < 8; u++)                 \
                sum[u] = FMA(x, row[u], sum[u]);        \
        }                                               \
        for (int u = 0; u < 8; u++)                     \
            acc[j + (size_t)u] = sum[u];                \
    }                                                   \
    for (; j < n; j++) {                                \
        float sum = acc[j];                             \
        for (size_t k = 0; k < count; k++)              \
            sum = FMA(a[k * lda], b[k * ldb + j], sum); \
        acc[j] = sum;                                   \
    }

static void rows_soft(float *restrict acc, const float *restrict a, size_t lda,
                      const float *restrict b, size_t ldb, size_t count, size_t n) {
    FMA_BODY(num_fn_fma_soft)
}

static void each_soft(float *restrict acc, const float *restrict a, const float *restrict b,
                      size_t n) {
    for (size_t j = 0; j < n; j++)
        acc[j] = num_fn_fma_soft(a[j], b[j], acc[j]);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void rows_fma(float *restrict acc,
                                                         const float *restrict a, size_t lda,
                                                         const float *restrict b, size_t ldb,
                                                         size_t count, size_t n) {
    FMA_BODY(__builtin_fmaf)
}

__attribute__((target("avx2,fma"))) static void each_fma(float *restrict acc,
                                                         const float *restrict a,
                                                         const float *restrict b, size_t n) {
    for (size_t j = 0; j < n; j++)
        acc[j] = __builtin_fmaf(a[j], b[j], acc[j]);
}

// Four rows by sixteen columns in registers over the whole k loop; what is left over by rows.
__attribute__((target("avx2,fma"))) static void block_fma(float *restrict acc, size_t ldacc,
                                                          size_t rows, const float *restrict a,
                                                          size_t arow, size_t lda,
                                                          const float *restrict b, size_t ldb,
                                                          size_t count, size_t n) {
    enum { ROWS = 4, COLS = 16 };
    size_t i = 0, wide = n / COLS * COLS;
    for (; i + ROWS <= rows; i += ROWS)
        for (size_t j = 0; j < wide; j += COLS) {
            __m256 sum[ROWS][2];
            float *to = acc + i * ldacc + j;
            const float *x = a + i * arow, *row = b + j;
            for (size_t r = 0; r < ROWS; r++) {
                sum[r][0] = _mm256_loadu_ps(to + r * ldacc);
                sum[r][1] = _mm256_loadu_ps(to + r * ldacc + 8);
            }
            for (size_t k = 0; k < count; k++, x += lda, row += ldb) {
                const __m256 low = _mm256_loadu_ps(row), high = _mm256_loadu_ps(row + 8);
                for (size_t r = 0; r < ROWS; r++) {
                    const __m256 f = _mm256_broadcast_ss(x + r * arow);
                    sum[r][0] = _mm256_fmadd_ps(f, low, sum[r][0]);
                    sum[r][1] = _mm256_fmadd_ps(f, high, sum[r][1]);
                }
            }
            for (size_t r = 0; r < ROWS; r++) {
                _mm256_storeu_ps(to + r * ldacc, sum[r][0]);
                _mm256_storeu_ps(to + r * ldacc + 8, sum[r][1]);
            }
        }
    for (size_t r = 0; r < i && wide < n; r++)
        rows_fma(acc + r * ldacc + wide, a + r * arow, lda, b + wide, ldb, count, n - wide);
    for (; i < rows; i++)
        rows_fma(acc + i * ldacc, a + i * arow, lda, b, ldb, count, n);
}

static bool host_has_fma(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define rows_fma rows_soft
#define each_fma each_soft
static bool host_has_fma(void) {
    return false;
}
#endif

void eval_fma_rows(float *acc, const float *a, size_t lda, const float *b, size_t ldb, size_t count,
                   size_t n) {
    if (host_has_fma())
        rows_fma(acc, a, lda, b, ldb, count, n);
    else
        rows_soft(acc, a, lda, b, ldb, count, n);
}

void eval_fma_block(float *acc, size_t ldacc, size_t rows, const float *a, size_t arow, size_t lda,
                    const float *b, size_t ldb, size_t count, size_t n) {
#if defined(__x86_64__)
    if (host_has_fma()) {
        block_fma(acc, ldacc, rows, a, arow, lda, b, ldb, count, n);
        return;
    }
#endif
    for (size_t i = 0; i < rows; i++)
        rows_soft(acc + i * ldacc, a + i * arow, lda, b, ldb, count, n);
}

void eval_fma_each(float *acc, const float *a, const float *b, size_t n) {
    if (host_has_fma())
        each_fma(acc, a, b, n);
    else
        each_soft(acc, a, b, n);
}
