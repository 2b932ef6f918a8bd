// SPDX-License-Identifier: Apache-2.0
// The pipeline: the compiler's stages in order, nothing else.
//
//   front end -> passes -> lower -> order, queues -> plan -> semaphores -> select, roll, encode ->
//   image
#include "toolchain/npuc/compile.h"

#include "toolchain/codegen/codegen.h"
#include "toolchain/lower/lower.h"
#include "toolchain/npuc/input.h"
#include "toolchain/plan/plan.h"
#include "toolchain/schedule/schedule.h"

#ifndef NPU_VERSION
#define NPU_VERSION "0.1.0"
#endif

// Order, queues and addresses. When kernels overlapping each other do not fit into the scratchpad
// together, they do not overlap.
static npu_status place(const struct npuc_options *o, struct tile_program *p) {
    if (o->pass.level >= 2) schedule_split(p);
    int n = p->nop;
    struct tile_op **original = arena_copy(p->arena, p->ops, (size_t)n * sizeof *p->ops + 1);
    struct schedule_options order = {.prefetch = o->pass.level >= 2,
                                     .across_kernels = o->pass.level >= 2};
    schedule_order(p, &order);
    npu_status st = plan_onchip(p);
    if (npu_status_code(st) == NPU_NO_FIT && order.across_kernels) {
        npu_status_free(st);
        p->ops = original;
        p->nop = p->cap_op = n;
        order.across_kernels = false;
        schedule_order(p, &order);
        st = plan_onchip(p);
    }
    NPU_TRY(st);
    schedule_queues(p);
    return plan_dram(p, &(struct plan_options){.reuse = o->pass.level >= 1});
}

npu_status npuc_back_end(const struct npuc_options *o, struct arena *a, struct npuc_result *r) {
    struct tile_program *p = tile_program_new(a, &r->hw);
    NPU_TRY(lower_graph(r->graph, &r->hw, &(struct lower_options){.level = o->pass.level}, p));
    NPU_TRY(tile_verify(p, "lower"));
    NPU_TRY(place(o, p));
    NPU_TRY(schedule_sync(p));
    r->tiles = p;
    struct codegen_stream code;
    codegen_select(p, &code);
    if (o->pass.level >= 1) codegen_roll(a, &code);
    r->instructions = code.n;
    r->image = codegen_image(p, r->graph, codegen_encode(a, &code),
                             &(struct codegen_options){.program_name = r->graph->name,
                                                       .producer = "npuc " NPU_VERSION,
                                                       .target = o->target,
                                                       .dtype_mode = o->dtype});
    return NULL;
}

npu_status npuc_compile(const struct npuc_options *o, struct arena *a, struct npuc_result *r) {
    NPU_TRY(npuc_hardware(o, &r->hw));
    NPU_TRY(npuc_read_input(o, a, r));
    if (!r->graph) return NULL;
    NPU_TRY(passes_run(r->graph, &o->pass, &r->passes));
    if (o->pass.stop_after >= 0) return NULL;
    return npuc_back_end(o, a, r);
}
