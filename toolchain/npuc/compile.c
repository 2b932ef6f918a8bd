// SPDX-License-Identifier: Apache-2.0
// The pipeline: the compiler's stages in order, nothing else.
//
//   front end -> passes -> lower -> order, queues -> plan -> semaphores -> select, roll, encode ->
//   image
#include "toolchain/npuc/compile.h"

#include "runtime/base/progress.h"
#include "toolchain/codegen/codegen.h"
#include "toolchain/lower/lower.h"
#include "toolchain/npuc/eager.h"
#include "toolchain/npuc/input.h"
#include "toolchain/npuc/record.h"
#include "toolchain/plan/plan.h"
#include "toolchain/schedule/schedule.h"

#ifndef NPU_VERSION
#define NPU_VERSION "0.1.0"
#endif

// Where the bar stands when these begin; passes are before, writing is behind.
enum { LOWER_PERCENT = 40, CODE_PERCENT = 85 };

// What a search tries: part of the scratchpad that a kernel fills, loads across the border of
// kernels, large loads cut over the DMA engines.
struct variant {
    int spm_percent;
    bool across_kernels, split;
};

static const struct variant variants[] = {
    {50, true, true}, {50, true, false}, {50, false, true},  {33, true, true},  {25, true, true},
    {12, true, true}, {75, true, true},  {100, false, true}, {33, true, false}, {25, false, true},
};

// Order, queues and addresses. When kernels overlapping each other do not fit into the scratchpad
// together, they do not overlap.
static npu_status place(const struct npuc_options *o, const struct variant *v,
                        struct tile_program *p) {
    bool ahead = npuc_step(o, STEP_prefetch),
         across = ahead && npuc_step(o, STEP_prefetch_across) && v->across_kernels;
    if (npuc_step(o, STEP_split) && v->split) schedule_split(p);
    int n = p->nop;
    struct tile_op **original = arena_copy(p->arena, p->ops, (size_t)n * sizeof *p->ops);
    struct schedule_options order = {.prefetch = ahead};
    npu_status st = NULL;
    static const int ahead_percent[] = {85, 60, 40, 0};
    for (int i = 0; i < 4; i++) {
        npu_status_free(st);
        p->ops = arena_copy(p->arena, original, (size_t)n * sizeof *original);
        p->nop = p->cap_op = n;
        order.ahead_percent = ahead_percent[i];
        order.across_kernels = across && ahead_percent[i];
        schedule_order(p, &order);
        st = plan_onchip(p);
        if (npu_status_code(st) != NPU_NO_FIT || !order.across_kernels) break;
    }
    NPU_TRY(st);
    schedule_queues(p);
    return plan_dram(p, &(struct plan_options){.reuse = npuc_step(o, STEP_reuse)});
}

static npu_status schedule_with(const struct npuc_options *o, const struct variant *v,
                                const struct npuc_result *r, int resident_percent,
                                struct tile_program *p) {
    NPU_TRY(lower_graph(r->graph, &r->hw,
                        &(struct lower_options){.level = o->pass.level,
                                                .one_slot = !npuc_step(o, STEP_double_buffer),
                                                .eager = o->pass.eager,
                                                .spm_percent = v->spm_percent,
                                                .resident_percent = resident_percent},
                        p));
    NPU_TRY(tile_verify(p, "lower"));
    NPU_TRY(place(o, v, p));
    return schedule_sync(p);
}

// Values that stay in the scratchpad may leave gaps that are too small for a kernel's tiles: then
// all values go through DRAM.
static npu_status schedule(const struct npuc_options *o, const struct variant *v,
                           const struct npuc_result *r, struct tile_program *p) {
    const struct tile_program empty = *p;
    if (!npuc_step(o, STEP_resident)) return schedule_with(o, v, r, -1, p);
    npu_status st = schedule_with(o, v, r, 0, p);
    if (npu_status_code(st) != NPU_NO_FIT) return st;
    npu_status_free(st);
    *p = empty;
    return schedule_with(o, v, r, -1, p);
}

// The first variant; when searching, the one with the shortest estimate.
static npu_status search(const struct npuc_options *o, struct arena *a, struct npuc_result *r) {
    size_t count = npuc_step(o, STEP_search) ? sizeof variants / sizeof *variants : 1;
    double best = 0;
    for (size_t i = 0; i < count; i++) {
        struct tile_program *p = tile_program_new(a, &r->hw);
        const int from = LOWER_PERCENT + (int)i * (CODE_PERCENT - LOWER_PERCENT) / (int)count;
        progress_stage("lowering and scheduling", 0, from, from);
        npu_status st = schedule(o, &variants[i], r, p);
        if (i > 0 && npu_status_code(st) == NPU_NO_FIT) {
            npu_status_free(st);
            continue;
        }
        NPU_TRY(st);
        double cycles = schedule_estimate(p);
        if (r->tiles && cycles >= best) continue;
        r->tiles = p;
        best = cycles;
    }
    r->estimated_cycles = best;
    return NULL;
}

struct span npuc_code(const struct npuc_options *o, struct arena *a, struct npuc_result *r,
                      int launch, double cycles) {
    struct codegen_stream code;
    codegen_select(r->tiles, launch, &code);
    if (npuc_step(o, STEP_roll)) codegen_roll(a, &code);
    if (npuc_step(o, STEP_call)) codegen_call(a, &r->hw, cycles, &code);
    r->instructions += code.n;
    return codegen_encode(a, &code);
}

npu_status npuc_back_end(const struct npuc_options *o, struct arena *a, struct npuc_result *r) {
    NPU_TRY(search(o, a, r));
    progress_stage("code", 0, CODE_PERCENT, CODE_PERCENT);
    struct codegen_options to = {.program_name = r->graph->name,
                                 .producer = "npuc " NPU_VERSION,
                                 .target = o->target,
                                 .dtype_mode = o->dtype,
                                 .record = npuc_record(o, a, r)};
    struct span code =
        o->pass.eager ? npuc_launch_code(o, a, r, &to) : npuc_code(o, a, r, 0, r->estimated_cycles);
    r->image = codegen_image(r->tiles, r->graph, code, &to);
    return NULL;
}

npu_status npuc_front_end(const struct npuc_options *o, struct arena *a, struct npuc_result *r) {
    progress_stage("reading", 0, 0, 0);
    NPU_TRY(npuc_read_input(o, a, r));
    return r->graph ? passes_run(r->graph, &o->pass, &r->passes) : NULL;
}

npu_status npuc_compile(const struct npuc_options *o, struct arena *a, struct npuc_result *r) {
    NPU_TRY(npuc_hardware(o, &r->hw));
    NPU_TRY(npuc_front_end(o, a, r));
    if (!r->graph || o->pass.stop_after >= 0) return NULL;
    return npuc_back_end(o, a, r);
}
