// SPDX-License-Identifier: Apache-2.0
// Launches of an eager program: which of the model's calls they are, and what the host calls
// between them.
//
// A call whose nodes have kernels is a launch. Every other call launches nothing: it is a view
// (reshape, transpose, slice that its readers follow), or it was computed when the program was made
// because it depends on no input, or nothing needs it. The host still makes it, so it is counted
// for the next launch, or for the end.
#include "toolchain/npuc/eager.h"

#include <string.h>

struct counter {
    const struct graph *g;
    bool *launched; // by call
    int at;         // calls up to this one are counted
};

// Calls behind the last counted one and before `call` that launch nothing.
static uint32_t views_before(struct counter *c, int call) {
    uint32_t n = 0;
    for (int i = c->at + 1; i < call; i++)
        n += !c->launched[i];
    if (call > c->at) c->at = call;
    return n;
}

// The first kernel of every launch.
static const struct tile_kernel **heads(const struct tile_program *p) {
    const struct tile_kernel **head =
        ARENA_ARRAY(p->arena, const struct tile_kernel *, (size_t)p->nlaunch + 1);
    for (int i = p->nkernel - 1; i >= 0; i--)
        head[p->kernels[i]->launch] = p->kernels[i];
    return head;
}

static double cycles_of(const struct tile_program *p, int launch) {
    double cycles = 0;
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernels[i]->launch == launch) cycles += p->kernels[i]->estimate_cycles;
    return cycles;
}

struct span npuc_launch_code(const struct npuc_options *o, struct arena *a, struct npuc_result *r,
                             struct codegen_options *to) {
    const struct tile_program *p = r->tiles;
    const size_t count = (size_t)p->nlaunch;
    struct counter c = {r->graph, ARENA_ARRAY(a, bool, (size_t)r->graph->ncall + 1), 0};
    struct npu_image_launch *launch = ARENA_ARRAY(a, struct npu_image_launch, count + 1);
    struct span *part = ARENA_ARRAY(a, struct span, count + 1);
    const struct tile_kernel **head = heads(p);
    size_t size = 0;
    for (int i = 0; i < p->nkernel; i++)
        c.launched[p->kernels[i]->call] = true;
    for (size_t i = 0; i < count; i++) {
        const int call = head[i]->call;
        part[i] = npuc_code(o, a, r, (int)i, cycles_of(p, (int)i));
        launch[i] = (struct npu_image_launch){.code_offset = size,
                                              .tag = (uint32_t)head[i]->id + 1,
                                              .views = views_before(&c, call),
                                              .op = call ? r->graph->calls[call - 1].op : "copy",
                                              .graph_op = head[i]->graph_op};
        size += part[i].size;
    }
    to->launches = launch;
    to->nlaunches = count;
    to->views = views_before(&c, r->graph->ncall + 1);
    uint8_t *code = arena_alloc(a, size);
    for (size_t i = 0; i < count; i++)
        memcpy(code + launch[i].code_offset, part[i].data, part[i].size);
    return (struct span){.data = code, .size = size};
}
