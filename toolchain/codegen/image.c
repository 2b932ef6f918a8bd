// SPDX-License-Identifier: Apache-2.0
// The program image: what the container stores about a compiled model.
//
// DRAM of a program: weights, states, inputs, outputs, scratch (toolchain/plan), then the code.
#include <string.h>

#include "runtime/base/hw_yaml.h"
#include "runtime/base/str.h"
#include "toolchain/codegen/codegen.h"
#include "toolchain/plan/plan.h"
#include "toolchain/schedule/schedule.h"

#define CODE_ALIGN 64

static void add_tensor(struct tile_program *p, const struct graph_value *v,
                       enum container_role role, enum tile_kind kind,
                       struct npu_image_tensor *out) {
    bool renamed = role != CONTAINER_ROLE_INPUT && v->file_name;
    *out = (struct npu_image_tensor){.name = renamed ? v->file_name : v->name,
                                     .dtype = (int)v->dtype,
                                     .model_dtype = (int)(v->file_dtype ? v->file_dtype : v->dtype),
                                     .rank = v->rank,
                                     .role = role,
                                     .index_limit = v->index_limit};
    for (int d = 0; d < v->rank; d++)
        out->dims[d] = v->dims[d];
    out->bytes = (uint64_t)graph_value_bytes(v);
    const struct tile_buf *found = NULL;
    for (int i = 0; i < p->nbuf && !found; i++)
        if (p->bufs[i]->value == v && p->bufs[i]->kind == kind) found = p->bufs[i];
    NPU_ASSERT(found); // lowering gives every input and output a buffer
    out->dram_offset = (uint64_t)found->addr[0];
}

static void tensors(struct tile_program *p, const struct graph *g,
                    struct npu_program_image *image) {
    struct npu_image_tensor *t =
        ARENA_ARRAY(p->arena, struct npu_image_tensor, (size_t)(g->ninput + g->noutput) + 1);
    size_t n = 0;
    for (int i = 0; i < g->ninput; i++)
        if (!g->inputs[i]->is_state)
            add_tensor(p, g->inputs[i], CONTAINER_ROLE_INPUT, TILE_INPUT, &t[n++]);
    for (int i = 0; i < g->noutput; i++)
        if (!g->outputs[i]->state)
            add_tensor(p, g->outputs[i], CONTAINER_ROLE_OUTPUT, TILE_OUTPUT, &t[n++]);
    for (int i = 0; i < g->ninput; i++)
        if (g->inputs[i]->is_state)
            add_tensor(p, g->inputs[i], CONTAINER_ROLE_STATE, TILE_STATE, &t[n++]);
    image->tensors = t;
    image->ntensors = n;
}

static enum container_segment_kind segment_kind(enum tile_kind kind) {
    switch (kind) {
    case TILE_WEIGHT: return CONTAINER_SEGMENT_WEIGHTS;
    case TILE_SCRATCH: return CONTAINER_SEGMENT_SCRATCH;
    case TILE_STATE: return CONTAINER_SEGMENT_STATE;
    case TILE_ONCHIP:
    case TILE_INPUT:
    case TILE_OUTPUT: break;
    }
    return CONTAINER_SEGMENT_IO;
}

static bool has_initial(const struct tile_buf *b) {
    return b->kind == TILE_STATE && b->nblock > 0;
}

// Section WEIGHTS: constants where they lie in DRAM, from its start; behind them, as in DRAM, what
// states start as.
static uint64_t initial_offset(const struct tile_program *p) {
    int64_t end = 0;
    for (int i = 0; i < p->nbuf; i++) {
        const struct tile_buf *b = p->bufs[i];
        if (b->kind == TILE_WEIGHT && b->first_op >= 0 && b->addr[0] + b->bytes > end)
            end = b->addr[0] + b->bytes;
    }
    return (uint64_t)(end + CODE_ALIGN - 1) / CODE_ALIGN * CODE_ALIGN;
}

// Bytes of the segment that have a first value other than zero.
static uint64_t initial_bytes(const struct tile_program *p, int64_t from) {
    int64_t end = from;
    for (int i = 0; i < p->nbuf; i++)
        if (has_initial(p->bufs[i]) && p->bufs[i]->addr[0] + p->bufs[i]->bytes > end)
            end = p->bufs[i]->addr[0] + p->bufs[i]->bytes;
    return (uint64_t)(end - from);
}

static void segments(struct tile_program *p, struct npu_program_image *image) {
    struct plan_segment plan[PLAN_SEGMENTS];
    int n = plan_segments(p, plan);
    struct npu_image_segment *s =
        ARENA_ARRAY(p->arena, struct npu_image_segment, PLAN_SEGMENTS + 2);
    size_t out = 0;
    uint64_t end = 0;
    for (int i = 0; i < n; i++) {
        enum container_segment_kind kind = segment_kind(plan[i].kind);
        end = (uint64_t)(plan[i].offset + plan[i].bytes);
        if (kind == CONTAINER_SEGMENT_IO && out && s[out - 1].kind == kind) {
            s[out - 1].bytes = end - s[out - 1].dram_offset;
            continue;
        }
        s[out++] = (struct npu_image_segment){.kind = kind,
                                              .dram_offset = (uint64_t)plan[i].offset,
                                              .bytes = (uint64_t)plan[i].bytes,
                                              .alignment = CODE_ALIGN};
        if (kind != CONTAINER_SEGMENT_STATE) continue;
        s[out - 1].initial_bytes = initial_bytes(p, plan[i].offset);
        if (s[out - 1].initial_bytes) s[out - 1].section_offset = initial_offset(p);
    }
    end = (end + CODE_ALIGN - 1) / CODE_ALIGN * CODE_ALIGN;
    s[out++] = (struct npu_image_segment){.kind = CONTAINER_SEGMENT_CODE,
                                          .dram_offset = end,
                                          .bytes = image->code.size,
                                          .alignment = CODE_ALIGN};
    image->segments = s;
    image->nsegments = out;
    image->dram_bytes = end + image->code.size;
}

static void make_constant(const void *of, uint8_t *to) {
    tile_fill(of, to);
}

// A constant that lies somewhere as the program has it is lent, any other made when it is written.
static void weights(struct tile_program *p, struct npu_program_image *image) {
    struct npu_image_weights *w =
        ARENA_ARRAY(p->arena, struct npu_image_weights, (size_t)p->nbuf + 1);
    size_t n = 0;
    int64_t states = -1; // address of the first; they stand in the order of their addresses
    uint64_t behind = initial_offset(p);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < p->nbuf; i++) {
            const struct tile_buf *b = p->bufs[i];
            bool constant = b->kind == TILE_WEIGHT && b->first_op >= 0;
            if (b->kind == TILE_STATE && states < 0) states = b->addr[0];
            if (pass == 0 ? !constant : !has_initial(b)) continue;
            const void *lent = tile_lent(b);
            uint64_t at = (uint64_t)(pass == 0 ? b->addr[0] : b->addr[0] - states);
            w[n++] = (struct npu_image_weights){.offset = pass == 0 ? at : behind + at,
                                                .bytes = {.data = lent, .size = (size_t)b->bytes},
                                                .make = lent ? NULL : make_constant,
                                                .of = b};
        }
    image->weights = w;
    image->nweights = n;
}

static void tags(struct tile_program *p, struct npu_program_image *image) {
    struct npu_image_tag *t = ARENA_ARRAY(p->arena, struct npu_image_tag, (size_t)p->nkernel + 1);
    for (int i = 0; i < p->nkernel; i++) {
        const struct tile_kernel *k = p->kernels[i];
        t[i] = (struct npu_image_tag){.tag = (uint32_t)i + 1,
                                      .layer = k->name,
                                      .op = k->op,
                                      .kernel = k->kernel,
                                      .text = k->text ? k->text : "",
                                      .nodes = k->origins,
                                      .nnodes = (size_t)k->norigin,
                                      .group = (uint32_t)i,
                                      .macs = (uint64_t)k->macs,
                                      .vector_elems = (uint64_t)k->vector_elems,
                                      .m = (uint32_t)k->m,
                                      .n = (uint32_t)k->n,
                                      .k = (uint32_t)k->k,
                                      .batch = (uint32_t)k->batch,
                                      .dtype = (int)k->dtype,
                                      .weight_bytes = (uint64_t)k->weight_bytes,
                                      .input_bytes = (uint64_t)k->input_bytes,
                                      .output_bytes = (uint64_t)k->output_bytes};
    }
    image->tags = t;
    image->ntags = (size_t)p->nkernel;
}

static void stats(struct tile_program *p, struct npu_program_image *image) {
    struct npu_image_stat *s = ARENA_ARRAY(p->arena, struct npu_image_stat, 8);
    s[0] = (struct npu_image_stat){"estimated_cycles", (int64_t)schedule_estimate(p)};
    s[1] = (struct npu_image_stat){"scratch.bound_bytes", p->scratch_bound_bytes};
    s[2] = (struct npu_image_stat){"scratch.peak_bytes", p->scratch_peak_bytes};
    s[3] = (struct npu_image_stat){"spm.bound_bytes", p->spm_bound_bytes};
    s[4] = (struct npu_image_stat){"spm.peak_bytes", p->spm_peak_bytes};
    image->stats = s;
    image->nstats = 5;
}

// Where layers leave their results, added to what is known about the model.
static void record(struct tile_program *p, const struct npu_image_record *made_from,
                   struct npu_program_image *image) {
    if (!made_from) return;
    struct npu_image_record *r = arena_copy(p->arena, made_from, sizeof *made_from);
    struct npu_image_result *to =
        ARENA_ARRAY(p->arena, struct npu_image_result, (size_t)p->nresult + 1);
    r->results = to;
    for (int i = 0; i < p->nresult; i++) {
        const struct tile_result *from = p->results[i];
        const struct tile_buf *b = p->bufs[from->buf];
        if (b->first_op < 0) continue;
        struct npu_image_result *v = &to[r->nresults++];
        *v = (struct npu_image_result){.name = from->value->name,
                                       .first_tag = (uint32_t)from->first_kernel + 1,
                                       .last_tag = (uint32_t)from->last_kernel + 1,
                                       .space = (int)b->space,
                                       .dtype = (int)from->value->dtype,
                                       .rank = from->value->rank,
                                       .address = (uint64_t)(b->addr[from->slot] + from->offset)};
        for (int d = 0; d < v->rank; d++) {
            v->dims[d] = from->value->dims[d];
            v->strides[d] = from->stride[d];
        }
    }
    image->record = r;
}

// Names of a role must differ; the graph's values have unique names, so nothing is left to do here.
struct npu_program_image *codegen_image(struct tile_program *p, const struct graph *g,
                                        struct span code, const struct codegen_options *o) {
    struct npu_program_image *image = ARENA_NEW(p->arena, struct npu_program_image);
    struct str yaml = {0};
    hw_print_yaml(p->hw, &yaml);
    image->hw_yaml = str_move(&yaml, p->arena);
    image->hw_program_hash = hw_hash(p->hw, HW_PROGRAM);
    image->hw_timing_hash = hw_hash(p->hw, HW_TIMING);
    image->name = o->program_name;
    image->producer = o->producer;
    image->target = o->target;
    image->dtype_mode = o->dtype_mode;
    image->code = code;
    image->spm_peak_bytes = (uint64_t)p->spm_peak_bytes;
    image->psum_peak_bytes = (uint64_t)p->psum_peak_bytes;
    tensors(p, g, image);
    segments(p, image);
    weights(p, image);
    tags(p, image);
    stats(p, image);
    record(p, o->record, image);
    struct npu_image_entry *e = ARENA_NEW(p->arena, struct npu_image_entry);
    e->name = "main";
    if (o->nlaunches) {
        e->code_offset = o->launches[0].code_offset;
        e->launches = o->launches;
        e->nlaunches = o->nlaunches;
        e->views = o->views;
    }
    image->entries = e;
    image->nentries = 1;
    return image;
}
