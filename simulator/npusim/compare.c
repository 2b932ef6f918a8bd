// SPDX-License-Identifier: Apache-2.0
// Comparing values in f64.
#include "simulator/npusim/compare.h"

#include <inttypes.h>
#include <math.h>

#include "isa/insn.h"

npu_status npusim_to_f64(struct arena *a, enum npu_dtype from, const void *data, uint64_t n,
                         double **out) {
    *out = ARENA_ARRAY(a, double, n ? n : 1);
    if (isa_dtype_is_float((int)from)) return npu_convert(NPU_F64, *out, from, data, n);
    const enum npu_dtype wide = from == NPU_U64 ? NPU_U64 : NPU_I64;
    int64_t *v = ARENA_ARRAY(a, int64_t, n ? n : 1);
    NPU_TRY(npu_convert(wide, v, from, data, n));
    for (uint64_t i = 0; i < n; i++)
        (*out)[i] = wide == NPU_U64 ? (double)(uint64_t)v[i] : (double)v[i];
    return NULL;
}

struct npusim_comparison npusim_compare_f64(const double *got, const double *want, uint64_t n,
                                            double rtol, double atol) {
    struct npusim_comparison c = {0};
    double dot = 0, gg = 0, ww = 0, dd = 0;
    c.ratio = -1;
    for (uint64_t i = 0; i < n; i++) {
        const double g = got[i], w = want[i], bound = atol + rtol * fabs(w);
        const bool same = g == w || (isnan(g) && isnan(w));
        const double d = same ? 0 : isfinite(w) && !isnan(g) ? fabs(g - w) : HUGE_VAL;
        const double ratio = d == 0 ? 0 : bound > 0 ? d / bound : HUGE_VAL;
        c.wrong += !(ratio <= 1);
        if (ratio > c.ratio) {
            c.ratio = ratio;
            c.worst = i;
        }
        if (!isfinite(g) || !isfinite(w)) continue;
        dot += g * w;
        gg += g * g;
        ww += w * w;
        dd += d * d;
    }
    if (c.ratio < 0) c.ratio = 0;
    c.cosine = gg > 0 && ww > 0 ? dot / sqrt(gg * ww) : gg == ww ? 1 : 0;
    c.snr_db = dd > 0 ? 10 * log10(ww / dd) : HUGE_VAL;
    return c;
}

double npusim_range(const double *v, uint64_t n) {
    double range = 0;
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(v[i]) && fabs(v[i]) > range) range = fabs(v[i]);
    return range;
}

void npusim_print_index(struct str *out, const int64_t *dims, int rank, uint64_t i) {
    uint64_t at[NPU_MAX_RANK] = {0};
    for (int d = rank; d-- > 0;) {
        at[d] = i % (uint64_t)dims[d];
        i /= (uint64_t)dims[d];
    }
    str_putc(out, '[');
    for (int d = 0; d < rank; d++)
        str_printf(out, "%s%" PRIu64, d ? "," : "", at[d]);
    str_putc(out, ']');
}
