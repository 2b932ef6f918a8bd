// SPDX-License-Identifier: Apache-2.0
//
// Between an image and its protobuf messages (npu_program.proto). Packing builds the message
// structs in a scratch arena and serialises them; unpacking lets protobuf-c allocate in the image's
// arena, within a budget proportional to the bytes read, so that a short message cannot ask for
// gigabytes.

#include <stdlib.h>
#include <string.h>

#include "npu_program.pb-c.h"
#include "runtime/container_internal.h"

// NULL counts as "".
static char *text(const char *s) {
    return (char *)(s ? s : "");
}

void *container_new_messages(struct arena *a, size_t bytes, void (*init)(void *), size_t count) {
    void **list = ARENA_ARRAY(a, void *, count);
    for (size_t i = 0; i < count; i++) {
        list[i] = arena_alloc(a, bytes);
        init(list[i]);
    }
    return list;
}

#define INIT(function, initialiser)             \
    static void function##_any(void *message) { \
        initialiser(message);                   \
    }
INIT(tensor, npu__tensor__init)
INIT(segment, npu__segment__init)
INIT(launch, npu__launch__init)
INIT(entry, npu__entry__init)
INIT(tag, npu__tag__init)
INIT(span, npu__span__init)
INIT(buffer, npu__buffer__init)
INIT(stat, npu__stat__init)

static void put_tensor(const struct npu_image_tensor *from, Npu__Tensor *to) {
    to->name = text(from->name);
    to->dtype = (uint32_t)from->dtype;
    to->model_dtype = (uint32_t)from->model_dtype;
    to->n_dims = (size_t)from->rank;
    to->dims = (int64_t *)from->dims;
    to->role = (uint32_t)from->role;
    to->dram_offset = from->dram_offset;
    to->bytes = from->bytes;
    to->index_limit = from->index_limit;
}

static void put_entry(struct arena *a, const struct npu_image_entry *from, Npu__Entry *to) {
    to->name = text(from->name);
    to->code_offset = from->code_offset;
    to->n_tensors = from->ntensors;
    to->tensors = (uint32_t *)from->tensors;
    to->n_launches = from->nlaunches;
    to->views = from->views;
    to->launches = container_new_messages(a, sizeof(Npu__Launch), launch_any, from->nlaunches);
    for (size_t i = 0; i < from->nlaunches; i++) {
        to->launches[i]->code_offset = from->launches[i].code_offset;
        to->launches[i]->tag = from->launches[i].tag;
        to->launches[i]->views = from->launches[i].views;
        to->launches[i]->op = text(from->launches[i].op);
        to->launches[i]->graph_op = text(from->launches[i].graph_op);
    }
}

struct span container_pack_meta(const struct npu_program_image *image, struct arena *a) {
    Npu__Meta meta;
    npu__meta__init(&meta);
    meta.name = text(image->name);
    meta.producer = text(image->producer);
    meta.target = text(image->target);
    meta.dtype_mode = text(image->dtype_mode);
    meta.dram_bytes = image->dram_bytes;
    meta.spm_peak_bytes = image->spm_peak_bytes;
    meta.psum_peak_bytes = image->psum_peak_bytes;
    meta.n_tensors = image->ntensors;
    meta.tensors = container_new_messages(a, sizeof(Npu__Tensor), tensor_any, image->ntensors);
    for (size_t i = 0; i < image->ntensors; i++)
        put_tensor(&image->tensors[i], meta.tensors[i]);
    meta.n_segments = image->nsegments;
    meta.segments = container_new_messages(a, sizeof(Npu__Segment), segment_any, image->nsegments);
    for (size_t i = 0; i < image->nsegments; i++) {
        const struct npu_image_segment *from = &image->segments[i];
        Npu__Segment *to = meta.segments[i];
        to->kind = (uint32_t)from->kind;
        to->dram_offset = from->dram_offset;
        to->bytes = from->bytes;
        to->alignment = from->alignment;
        to->section_offset = from->section_offset;
        to->initial_bytes = from->initial_bytes;
    }
    meta.n_entries = image->nentries;
    meta.entries = container_new_messages(a, sizeof(Npu__Entry), entry_any, image->nentries);
    for (size_t i = 0; i < image->nentries; i++)
        put_entry(a, &image->entries[i], meta.entries[i]);
    size_t size = npu__meta__get_packed_size(&meta);
    uint8_t *bytes = arena_alloc(a, size);
    npu__meta__pack(&meta, bytes);
    return (struct span){bytes, size};
}

static void put_tag(struct arena *a, const struct npu_image_tag *from, Npu__Tag *to) {
    to->tag = from->tag;
    to->layer = text(from->layer);
    to->op = text(from->op);
    to->kernel = text(from->kernel);
    to->text = text(from->text);
    to->n_nodes = from->nnodes;
    to->nodes = ARENA_ARRAY(a, char *, from->nnodes);
    for (size_t i = 0; i < from->nnodes; i++)
        to->nodes[i] = text(from->nodes[i]);
    to->group = from->group;
    to->macs = from->macs;
    to->vector_elems = from->vector_elems;
    to->weight_bytes = from->weight_bytes;
    to->input_bytes = from->input_bytes;
    to->output_bytes = from->output_bytes;
    to->m = from->m;
    to->n = from->n;
    to->k = from->k;
    to->batch = from->batch;
    to->dtype = (uint32_t)from->dtype;
}

static void put_buffer(const struct npu_image_buffer *from, Npu__Buffer *to) {
    to->name = text(from->name);
    to->dtype = (uint32_t)from->dtype;
    to->n_dims = (size_t)from->rank;
    to->dims = (int64_t *)from->dims;
    to->dram_offset = from->dram_offset;
    to->bytes = from->bytes;
    to->tag = from->tag;
}

struct span container_pack_debug(const struct npu_program_image *image, struct arena *a) {
    Npu__Debug debug;
    npu__debug__init(&debug);
    debug.n_tags = image->ntags;
    debug.tags = container_new_messages(a, sizeof(Npu__Tag), tag_any, image->ntags);
    for (size_t i = 0; i < image->ntags; i++)
        put_tag(a, &image->tags[i], debug.tags[i]);
    debug.n_spans = image->nspans;
    debug.spans = container_new_messages(a, sizeof(Npu__Span), span_any, image->nspans);
    for (size_t i = 0; i < image->nspans; i++) {
        debug.spans[i]->id = image->spans[i].id;
        debug.spans[i]->name = text(image->spans[i].name);
    }
    debug.n_buffers = image->nbuffers;
    debug.buffers = container_new_messages(a, sizeof(Npu__Buffer), buffer_any, image->nbuffers);
    for (size_t i = 0; i < image->nbuffers; i++)
        put_buffer(&image->buffers[i], debug.buffers[i]);
    debug.n_stats = image->nstats;
    debug.stats = container_new_messages(a, sizeof(Npu__Stat), stat_any, image->nstats);
    for (size_t i = 0; i < image->nstats; i++) {
        debug.stats[i]->name = text(image->stats[i].name);
        debug.stats[i]->value = image->stats[i].value;
    }
    size_t size = npu__debug__get_packed_size(&debug);
    uint8_t *bytes = arena_alloc(a, size);
    npu__debug__pack(&debug, bytes);
    return (struct span){bytes, size};
}

// ---- unpacking
// -------------------------------------------------------------------------------------

struct budget {
    struct arena *arena;
    size_t left; // bytes
    bool exceeded;
};

static void *budget_alloc(void *data, size_t size) {
    struct budget *b = data;
    if (size > b->left) {
        b->exceeded = true;
        return NULL;
    }
    b->left -= size;
    return arena_alloc(b->arena, size);
}

static void budget_free(void *data, void *block) {
    (void)data; // the arena's
    (void)block;
}

npu_status container_unpack_message(struct arena *a, struct span bytes,
                                    const ProtobufCMessageDescriptor *descriptor, void **out) {
    // The least that a launch or a segment takes is 7 bytes, for some 150 of structs and scanning.
    struct budget budget = {a, (size_t)64 * 1024 + bytes.size * 40, false};
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};
    *out = protobuf_c_message_unpack(descriptor, &allocator, bytes.size, bytes.data);
    if (*out) return NULL;
    if (budget.exceeded)
        return npu_fail(BAD_INPUT, "%zu bytes of %s hold too many items", bytes.size,
                        descriptor->name);
    return npu_fail(BAD_INPUT, "not a %s message", descriptor->name);
}

// Copies the dimensions; false when there are too many.
static bool get_dims(const int64_t *from, size_t count, int64_t *to, int *rank) {
    if (count > CONTAINER_MAX_RANK) return false;
    if (count > 0) memcpy(to, from, count * sizeof *to);
    *rank = (int)count;
    return true;
}

static npu_status get_tensor(const Npu__Tensor *from, struct npu_image_tensor *to) {
    to->name = from->name;
    if (!get_dims(from->dims, from->n_dims, to->dims, &to->rank))
        return npu_fail(BAD_INPUT, "tensor '%s' has rank %zu, at most %d", from->name, from->n_dims,
                        CONTAINER_MAX_RANK);
    // Codes too large for an int become -1, which no table knows.
    to->dtype = from->dtype <= 255 ? (int)from->dtype : -1;
    to->model_dtype = from->model_dtype <= 255 ? (int)from->model_dtype : -1;
    to->role = (enum container_role)(from->role <= 255 ? from->role : 0);
    to->dram_offset = from->dram_offset;
    to->bytes = from->bytes;
    to->index_limit = from->index_limit;
    return NULL;
}

static void get_entry(struct arena *a, const Npu__Entry *from, struct npu_image_entry *to) {
    to->name = from->name;
    to->code_offset = from->code_offset;
    to->tensors = from->tensors;
    to->ntensors = from->n_tensors;
    struct npu_image_launch *launches = ARENA_ARRAY(a, struct npu_image_launch, from->n_launches);
    for (size_t i = 0; i < from->n_launches; i++)
        launches[i] = (struct npu_image_launch){from->launches[i]->code_offset,
                                                from->launches[i]->tag, from->launches[i]->views,
                                                from->launches[i]->op, from->launches[i]->graph_op};
    to->launches = launches;
    to->nlaunches = from->n_launches;
    to->views = from->views;
}

npu_status container_unpack_meta(struct arena *a, struct span bytes,
                                 struct npu_program_image *image) {
    void *message;
    NPU_TRY(container_unpack_message(a, bytes, &npu__meta__descriptor, &message));
    const Npu__Meta *meta = message;
    image->name = meta->name;
    image->producer = meta->producer;
    image->target = meta->target;
    image->dtype_mode = meta->dtype_mode;
    image->dram_bytes = meta->dram_bytes;
    image->spm_peak_bytes = meta->spm_peak_bytes;
    image->psum_peak_bytes = meta->psum_peak_bytes;
    struct npu_image_tensor *tensors = ARENA_ARRAY(a, struct npu_image_tensor, meta->n_tensors);
    for (size_t i = 0; i < meta->n_tensors; i++)
        NPU_TRY(get_tensor(meta->tensors[i], &tensors[i]));
    struct npu_image_segment *segments = ARENA_ARRAY(a, struct npu_image_segment, meta->n_segments);
    for (size_t i = 0; i < meta->n_segments; i++) {
        const Npu__Segment *from = meta->segments[i];
        segments[i] = (struct npu_image_segment){(enum container_segment_kind)(
                                                     from->kind <= 255 ? from->kind : 0),
                                                 from->dram_offset,
                                                 from->bytes,
                                                 from->alignment,
                                                 from->section_offset,
                                                 from->initial_bytes};
    }
    struct npu_image_entry *entries = ARENA_ARRAY(a, struct npu_image_entry, meta->n_entries);
    for (size_t i = 0; i < meta->n_entries; i++)
        get_entry(a, meta->entries[i], &entries[i]);
    image->tensors = tensors;
    image->ntensors = meta->n_tensors;
    image->segments = segments;
    image->nsegments = meta->n_segments;
    image->entries = entries;
    image->nentries = meta->n_entries;
    return NULL;
}

static struct npu_image_tag *get_tags(struct arena *a, const Npu__Debug *debug) {
    struct npu_image_tag *tags = ARENA_ARRAY(a, struct npu_image_tag, debug->n_tags);
    for (size_t i = 0; i < debug->n_tags; i++) {
        const Npu__Tag *t = debug->tags[i];
        tags[i] = (struct npu_image_tag){
            .tag = t->tag,
            .layer = t->layer,
            .op = t->op,
            .kernel = t->kernel,
            .text = t->text,
            .nodes = (const char *const *)t->nodes,
            .nnodes = t->n_nodes,
            .group = t->group,
            .macs = t->macs,
            .vector_elems = t->vector_elems,
            .weight_bytes = t->weight_bytes,
            .input_bytes = t->input_bytes,
            .output_bytes = t->output_bytes,
            .m = t->m,
            .n = t->n,
            .k = t->k,
            .batch = t->batch,
            .dtype = t->dtype <= 31 ? (int)t->dtype : 0,
        };
    }
    return tags;
}

npu_status container_unpack_debug(struct arena *a, struct span bytes,
                                  struct npu_program_image *image) {
    void *message;
    NPU_TRY(container_unpack_message(a, bytes, &npu__debug__descriptor, &message));
    const Npu__Debug *debug = message;
    struct npu_image_span *spans = ARENA_ARRAY(a, struct npu_image_span, debug->n_spans);
    for (size_t i = 0; i < debug->n_spans; i++)
        spans[i] = (struct npu_image_span){debug->spans[i]->id, debug->spans[i]->name};
    struct npu_image_buffer *buffers = ARENA_ARRAY(a, struct npu_image_buffer, debug->n_buffers);
    for (size_t i = 0; i < debug->n_buffers; i++) {
        const Npu__Buffer *b = debug->buffers[i];
        buffers[i] = (struct npu_image_buffer){
            .name = b->name,
            .dtype = b->dtype <= 255 ? (int)b->dtype : -1,
            .dram_offset = b->dram_offset,
            .bytes = b->bytes,
            .tag = b->tag,
        };
        if (!get_dims(b->dims, b->n_dims, buffers[i].dims, &buffers[i].rank))
            return npu_fail(BAD_INPUT, "buffer '%s' has rank %zu, at most %d", b->name, b->n_dims,
                            CONTAINER_MAX_RANK);
    }
    struct npu_image_stat *stats = ARENA_ARRAY(a, struct npu_image_stat, debug->n_stats);
    for (size_t i = 0; i < debug->n_stats; i++)
        stats[i] = (struct npu_image_stat){debug->stats[i]->name, debug->stats[i]->value};
    image->tags = get_tags(a, debug);
    image->ntags = debug->n_tags;
    image->spans = spans;
    image->nspans = debug->n_spans;
    image->buffers = buffers;
    image->nbuffers = debug->n_buffers;
    image->stats = stats;
    image->nstats = debug->n_stats;
    return NULL;
}
