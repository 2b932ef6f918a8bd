// SPDX-License-Identifier: Apache-2.0
//
// Which code path runs: the best that the processor has, or the one asked for. And the scratch
// space.

#include "runtime/base/alloc.h"
#include "simulator/exec/val_int.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const struct val_ops *chosen; // set before threads start; NULL: not yet

static bool has(enum val_isa isa) {
    if (isa == VAL_SSE2 || isa == VAL_AUTO) return true;
#if defined(__x86_64__)
    unsigned a, b, c = 0, d;
    bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    __builtin_cpu_init();
    bool avx2 = f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (isa == VAL_AVX2) return avx2;
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
#else
    return false;
#endif
}

bool val_set_isa(enum val_isa isa) {
    if (!has(isa)) return false;
    if (isa == VAL_AUTO) isa = has(VAL_AVX512) ? VAL_AVX512 : has(VAL_AVX2) ? VAL_AVX2 : VAL_SSE2;
#if defined(__x86_64__)
    chosen = isa == VAL_AVX512 ? &val_ops_avx512 : isa == VAL_AVX2 ? &val_ops_avx2 : &val_ops_sse2;
#else
    chosen = &val_ops_sse2;
#endif
    return true;
}

int val_isa_parse(const char *text) {
    for (int i = VAL_AUTO; i <= VAL_AVX512; i++)
        if (strcmp(text, val_isa_name((enum val_isa)i)) == 0) return i;
    return -1;
}

const char *val_isa_name(enum val_isa isa) {
    static const char *const names[] = {"auto", "sse2", "avx2", "avx512"};
    return names[isa];
}

enum val_isa val_isa_used(void) {
    return (enum val_isa)val_isa_parse(val_ops()->name);
}

const struct val_ops *val_ops(void) {
    if (!chosen) val_set_isa(VAL_AUTO);
    return chosen;
}

struct val_work *val_work_new(void) {
    struct val_work *w = base_alloc(sizeof *w);
    if (!w) return NULL;
    val_ops();
    w->b = base_alloc_array((size_t)VAL_KC * VAL_NC, sizeof(float));
    w->blocks = base_alloc_array((size_t)VAL_BLOCK_BUFFERS * VAL_BLOCK, sizeof(int64_t));
    if (w->b && w->blocks) return w;
    val_work_free(w);
    return NULL;
}

void val_work_free(struct val_work *work) {
    if (!work) return;
    base_free(work->b);
    base_free(work->blocks);
    base_free(work);
}
