// SPDX-License-Identifier: Apache-2.0
//
// Names behind debug tags. Tags stand in ascending order; those with the same layer name are one
// layer, numbered in the order of first appearance.
#include "simulator/core/names.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/map.h"

static const char *or_null(const char *text) {
    return text && *text ? text : NULL;
}

// "a", "a, b", "a, b and 3 more".
static const char *join_nodes(struct arena *a, const struct npu_image_tag *t) {
    if (t->nnodes == 0) return NULL;
    if (t->nnodes == 1) return t->nodes[0];
    if (t->nnodes == 2) return arena_printf(a, "%s, %s", t->nodes[0], t->nodes[1]);
    return arena_printf(a, "%s, %s and %zu more", t->nodes[0], t->nodes[1], t->nnodes - 2);
}

npu_status core_names_init(struct core_names *n, const struct npu_program_image *image) {
    *n = (struct core_names){.image = image};
    if (!image || image->ntags == 0) return NULL;
    n->arena = arena_try_new();
    if (!n->arena) return npu_fail(NO_MEMORY, "names of layers");
    jmp_buf oom;
    if (setjmp(oom)) {
        core_names_deinit(n);
        return npu_fail(NO_MEMORY, "names of layers");
    }
    arena_set_oom(n->arena, &oom);
    struct map numbers;
    map_init(&numbers, n->arena);
    n->layer = ARENA_ARRAY(n->arena, int, image->ntags);
    n->node = ARENA_ARRAY(n->arena, const char *, image->ntags);
    for (size_t i = 0; i < image->ntags; i++) {
        const struct npu_image_tag *t = &image->tags[i];
        int *number = map_get(&numbers, t->layer);
        if (!number) {
            number = ARENA_NEW(n->arena, int);
            *number = n->nlayer++;
            map_put(&numbers, t->layer, number);
        }
        n->layer[i] = *number;
        n->node[i] = join_nodes(n->arena, t);
    }
    arena_set_oom(n->arena, NULL);
    return NULL;
}

void core_names_deinit(struct core_names *n) {
    arena_free(n->arena);
    *n = (struct core_names){0};
}

bool core_names_lookup(void *ctx, uint32_t tag, struct trace_name *out) {
    const struct core_names *n = ctx;
    const struct npu_image_tag *t = n->arena ? container_find_tag(n->image, tag) : NULL;
    if (!t) return false;
    const size_t i = (size_t)(t - n->image->tags);
    *out = (struct trace_name){.layer = n->layer[i],
                               .name = or_null(t->layer),
                               .op = or_null(t->op),
                               .kernel = or_null(t->kernel),
                               .node = n->node[i],
                               .nodes = t->nodes,
                               .nnodes = t->nnodes};
    return true;
}

const char *core_tag_node(void *ctx, uint32_t tag) {
    static _Thread_local char text[256];
    const struct npu_image_tag *t = ctx ? container_find_tag(ctx, tag) : NULL;
    if (!t) return NULL;
    if (t->nnodes == 0) return or_null(t->layer);
    snprintf(text, sizeof text, "%s%s%s%s%s", t->layer, *t->layer ? ", node " : "node ",
             t->nodes[0], t->nnodes > 1 ? " and others" : "", "");
    for (char *c = text; *c; c++) // of a message, which is a line
        if ((unsigned char)*c < ' ') *c = '?';
    return text;
}

struct trace_work *core_names_work(const struct core_names *n, struct arena *a, size_t *count) {
    *count = 0;
    if (!n->arena) return NULL;
    struct trace_work *work = ARENA_ARRAY(a, struct trace_work, (size_t)n->nlayer);
    for (size_t i = 0; i < n->image->ntags; i++) {
        const struct npu_image_tag *t = &n->image->tags[i];
        struct trace_work *w = &work[n->layer[i]];
        if (!w->name) w->name = t->layer;
        w->macs += t->macs;
        w->elems += t->vector_elems;
        w->weight_bytes += t->weight_bytes;
        w->m = t->m;
        w->n = t->n;
        w->k = t->k;
        w->batch = t->batch;
        w->dtype = t->dtype;
    }
    *count = (size_t)n->nlayer;
    return work;
}
