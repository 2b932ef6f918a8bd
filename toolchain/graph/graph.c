// SPDX-License-Identifier: Apache-2.0
//
// Building and editing the graph: values with unique names, nodes in a doubly linked list, use
// counts by walking.

#include "toolchain/graph/graph.h"

#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/map.h"
#include "toolchain/graph/shape.h"

const struct graph_attr_desc graph_attrs[GRAPH_ATTRS] = {
#define GRAPH_ATTR(N, text, kind, doc) [GRAPH_ATTR_##N] = {text, doc, GRAPH_##kind},
#include "toolchain/graph/attr.def"
};

int graph_attr_parse(const char *text) {
    for (int k = 0; k < GRAPH_ATTRS; k++)
        if (!strcmp(graph_attrs[k].text, text)) return k;
    return -1;
}

int graph_op_parse(const char *text) {
    for (int k = 0; k < GRAPH_OPS; k++)
        if (!strcmp(graph_ops[k].text, text)) return k;
    return -1;
}

struct graph *graph_new(struct arena *a, const char *name) {
    struct graph *g = ARENA_NEW(a, struct graph);
    g->arena = a;
    g->name = arena_strdup(a, name ? name : "");
    g->names = ARENA_NEW(a, struct map);
    map_init(g->names, a);
    return g;
}

// ---- values ----------------------------------------------------------------------------------

static void copy_values(struct graph_value **to, struct graph_value *const *from, int count) {
    for (int k = 0; k < count; k++)
        to[k] = from[k];
}

struct graph_value *graph_find_value(const struct graph *g, const char *name) {
    return map_get(g->names, name);
}

// `name`, or with a suffix _1 .. _8; after that the count of values, which is nearly always free at
// once.
static const char *free_name(struct graph *g, const char *name) {
    if (!map_get(g->names, name)) return arena_strdup(g->arena, name);
    for (int k = 1;; k = k == 8 ? g->nvalue + 9 : k + 1) {
        const char *tried = arena_printf(g->arena, "%s_%d", name, k);
        if (!map_get(g->names, tried)) return tried;
    }
}

struct graph_value *graph_add_value(struct graph *g, const char *name, enum isa_dtype dtype,
                                    int rank, const int64_t *dims) {
    NPU_ASSERT(rank >= 0 && rank <= GRAPH_MAX_RANK);
    struct graph_value *v = ARENA_NEW(g->arena, struct graph_value);
    if (g->nvalue == g->cap_value) {
        int cap = g->cap_value ? 2 * g->cap_value : 64;
        struct graph_value **grown = ARENA_ARRAY(g->arena, struct graph_value *, (size_t)cap);
        copy_values(grown, g->values, g->nvalue);
        g->values = grown;
        g->cap_value = cap;
    }
    v->id = g->nvalue;
    g->values[g->nvalue++] = v;
    char made[24];
    if (!name || !*name) {
        size_t at = sizeof made;
        made[--at] = 0;
        for (int k = v->id; k || at == sizeof made - 1; k /= 10)
            made[--at] = (char)('0' + k % 10);
        made[--at] = 'v';
        name = made + at;
    }
    v->name = free_name(g, name);
    map_put(g->names, v->name, v);
    v->dtype = dtype;
    v->rank = rank;
    if (rank && dims) memcpy(v->dims, dims, (size_t)rank * sizeof *dims);
    return v;
}

struct graph_value *graph_add_const(struct graph *g, const char *name, enum isa_dtype dtype,
                                    int rank, const int64_t *dims, const void *data) {
    NPU_ASSERT(data != NULL);
    struct graph_value *v = graph_add_value(g, name, dtype, rank, dims);
    v->data = data;
    return v;
}

enum isa_dtype graph_data_dtype(const struct graph_value *v) {
    return v->data_dtype == ISA_DTYPE_NONE ? v->dtype : v->data_dtype;
}

const void *graph_constant(const struct graph_value *v, struct arena *a) {
    if (graph_data_dtype(v) == v->dtype) return v->data;
    void *own = arena_alloc(a, (size_t)graph_value_bytes(v));
    num_convert(v->dtype, own, v->data_dtype, v->data, (size_t)graph_value_elems(v));
    return own;
}

void graph_rename_value(struct graph *g, struct graph_value *v, const char *name) {
    if (!strcmp(v->name, name)) return;
    struct graph_value *other = map_get(g->names, name);
    if (other) {
        other->name = free_name(g, name);
        map_put(g->names, other->name, other);
    }
    map_put(g->names, v->name, NULL);
    v->name = arena_strdup(g->arena, name);
    map_put(g->names, v->name, v);
}

static void append(struct graph *g, struct graph_value ***list, int *count, int *cap,
                   struct graph_value *v) {
    if (*count == *cap) {
        int room = *cap ? 2 * *cap : 8;
        struct graph_value **grown = ARENA_ARRAY(g->arena, struct graph_value *, (size_t)room);
        copy_values(grown, *list, *count);
        *list = grown;
        *cap = room;
    }
    (*list)[(*count)++] = v;
}

void graph_add_input(struct graph *g, struct graph_value *v) {
    v->is_input = true;
    if (v->file_dtype == ISA_DTYPE_NONE) v->file_dtype = v->dtype;
    append(g, &g->inputs, &g->ninput, &g->cap_input, v);
}

void graph_add_output(struct graph *g, struct graph_value *v) {
    v->is_output = true;
    if (v->file_dtype == ISA_DTYPE_NONE) v->file_dtype = v->dtype;
    append(g, &g->outputs, &g->noutput, &g->cap_output, v);
}

int64_t graph_value_elems(const struct graph_value *v) {
    int64_t n = 1;
    for (int d = 0; d < v->rank; d++)
        n *= v->dims[d];
    return n;
}

int64_t graph_value_bytes(const struct graph_value *v) {
    return (graph_value_elems(v) * isa_dtype_bits(v->dtype) + 7) / 8;
}

void graph_value_strides(const struct graph_value *v, int64_t strides[GRAPH_MAX_RANK]) {
    int64_t stride = 1;
    for (int k = v->rank - 1; k >= 0; k--) {
        int d = v->has_order ? v->order[k] : k;
        strides[d] = stride;
        stride *= v->dims[d];
    }
    for (int d = v->rank; d < GRAPH_MAX_RANK; d++)
        strides[d] = 0;
}

// ---- nodes -----------------------------------------------------------------------------------

static void link_before(struct graph *g, struct graph_node *n, struct graph_node *before) {
    n->next = before;
    n->prev = before ? before->prev : g->last;
    if (n->prev)
        n->prev->next = n;
    else
        g->first = n;
    if (before)
        before->prev = n;
    else
        g->last = n;
}

struct graph_node *graph_add_node(struct graph *g, enum graph_op op, const char *name, int nin,
                                  struct graph_value *const *in, struct graph_node *before) {
    struct graph_node *n = ARENA_NEW(g->arena, struct graph_node);
    n->id = g->next_node_id++;
    n->op = op;
    n->name = name && *name ? arena_strdup(g->arena, name)
                            : arena_printf(g->arena, "%s_%d", graph_ops[op].text, n->id);
    n->inputs = ARENA_ARRAY(g->arena, struct graph_value *, (size_t)nin);
    copy_values(n->inputs, in, nin);
    n->nin = n->nown = nin;
    for (int k = 0; k < 3; k++)
        n->chain_in[k] = op == GRAPH_MAP && k < nin ? k : -1;
    link_before(g, n, before);
    return n;
}

// NOLINTNEXTLINE(readability-function-size): all of a map at once
npu_status graph_add_map(struct graph *g, const char *name, int nin, struct graph_value *const *in,
                         const struct isa_chain *chain, enum isa_dtype dtype,
                         struct graph_node *before, struct graph_value **out) {
    struct graph_node *n = graph_add_node(g, GRAPH_MAP, name, nin, in, before);
    n->has_chain = true;
    n->chain = *chain;
    if (dtype != ISA_DTYPE_NONE) graph_set_int(g, n, GRAPH_ATTR_DTYPE, dtype);
    NPU_TRY(graph_infer(g, n, name));
    *out = n->outputs[0];
    return NULL;
}

int graph_add_chain_input(struct graph *g, struct graph_node *n, struct graph_value *v) {
    int k = n->op == GRAPH_MAP ? 0 : 1;
    while (k < 3 && n->chain_in[k] >= 0)
        k++;
    NPU_ASSERT(k < 3);
    struct graph_value **grown = ARENA_ARRAY(g->arena, struct graph_value *, (size_t)n->nin + 1);
    copy_values(grown, n->inputs, n->nin);
    n->inputs = grown;
    n->inputs[n->nin] = v;
    n->chain_in[k] = n->nin++;
    if (n->op == GRAPH_MAP) n->nown = n->nin;
    return ISA_SRC_IN0 + k;
}

void graph_remove_node(struct graph *g, struct graph_node *n) {
    if (n->prev)
        n->prev->next = n->next;
    else
        g->first = n->next;
    if (n->next)
        n->next->prev = n->prev;
    else
        g->last = n->prev;
    for (int k = 0; k < n->nout; k++) {
        struct graph_value *v = n->outputs[k];
        if (v->producer != n) continue; // taken over by another node or made a constant
        map_put(g->names, v->name, NULL);
        g->values[v->id] = NULL;
    }
    n->prev = n->next = NULL;
}

static int uses_by(const struct graph_node *n, const struct graph_value *v) {
    int uses = 0;
    for (int k = 0; k < n->nin; k++)
        uses += n->inputs[k] == v;
    return uses;
}

int graph_count_uses(const struct graph *g, const struct graph_value *v) {
    int uses = v->is_output;
    for (const struct graph_node *n = g->first; n; n = n->next)
        uses += uses_by(n, v);
    return uses;
}

struct graph_node *graph_single_user(const struct graph *g, const struct graph_value *v) {
    if (v->is_output) return NULL;
    struct graph_node *user = NULL;
    for (struct graph_node *n = g->first; n; n = n->next) {
        int uses = uses_by(n, v);
        if (uses > 1 || (uses && user)) return NULL;
        if (uses) user = n;
    }
    return user;
}

// Makes `with` the graph output that `old` was.
static void replace_output(struct graph *g, struct graph_value *old, struct graph_value *with) {
    const char *name = old->name, *file_name = old->file_name;
    struct graph_value *state = old->state;
    enum isa_dtype file_dtype = old->file_dtype;
    if (!with->producer || with->is_output) {
        struct graph_node *n = graph_add_node(g, GRAPH_COPY, name, 1, &with, NULL);
        npu_status failed = graph_infer(g, n, name);
        NPU_ASSERT(failed == NULL);
        with = n->outputs[0];
    }
    old->is_output = false;
    graph_rename_value(g, with, name);
    with->is_output = true;
    with->file_dtype = file_dtype;
    with->file_name = file_name;
    with->state = state;
    old->state = NULL;
    for (int k = 0; k < g->noutput; k++)
        if (g->outputs[k] == old) g->outputs[k] = with;
}

void graph_replace_uses(struct graph *g, struct graph_value *old, struct graph_value *new_value) {
    if (old == new_value) return;
    for (struct graph_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nin; k++)
            if (n->inputs[k] == old) n->inputs[k] = new_value;
    if (old->is_output) replace_output(g, old, new_value);
}

// ---- attributes ------------------------------------------------------------------------------

const struct graph_attr *graph_attr(const struct graph_node *n, enum graph_attr_key k) {
    for (int i = 0; i < n->nattr; i++)
        if (n->attrs[i].key == k) return &n->attrs[i];
    return NULL;
}

// The attribute, made if absent.
static struct graph_attr *attr_slot(struct graph *g, struct graph_node *n, enum graph_attr_key k,
                                    enum graph_attr_kind kind) {
    NPU_ASSERT(graph_attrs[k].kind == kind);
    for (int i = 0; i < n->nattr; i++)
        if (n->attrs[i].key == k) return &n->attrs[i];
    struct graph_attr *grown = ARENA_ARRAY(g->arena, struct graph_attr, (size_t)n->nattr + 1);
    if (n->nattr) memcpy(grown, n->attrs, (size_t)n->nattr * sizeof *grown);
    n->attrs = grown;
    n->attrs[n->nattr].key = k;
    return &n->attrs[n->nattr++];
}

void graph_set_int(struct graph *g, struct graph_node *n, enum graph_attr_key k, int64_t v) {
    attr_slot(g, n, k, GRAPH_INT)->i = v;
}

void graph_set_float(struct graph *g, struct graph_node *n, enum graph_attr_key k, double v) {
    attr_slot(g, n, k, GRAPH_FLOAT)->f = v;
}

void graph_set_word(struct graph *g, struct graph_node *n, enum graph_attr_key k, const char *w) {
    attr_slot(g, n, k, GRAPH_WORD)->word = arena_strdup(g->arena, w);
}

void graph_set_ints(struct graph *g, struct graph_node *n, enum graph_attr_key k, int count,
                    const int64_t *v) {
    struct graph_attr *a = attr_slot(g, n, k, GRAPH_INTS);
    a->n = count;
    a->ints = count ? arena_copy(g->arena, v, (size_t)count * sizeof *v) : NULL;
}

void graph_set_floats(struct graph *g, struct graph_node *n, enum graph_attr_key k, int count,
                      const double *v) {
    struct graph_attr *a = attr_slot(g, n, k, GRAPH_FLOATS);
    a->n = count;
    a->floats = count ? arena_copy(g->arena, v, (size_t)count * sizeof *v) : NULL;
}

int64_t graph_int(const struct graph_node *n, enum graph_attr_key k, int64_t otherwise) {
    const struct graph_attr *a = graph_attr(n, k);
    return a ? a->i : otherwise;
}

double graph_float(const struct graph_node *n, enum graph_attr_key k, double otherwise) {
    const struct graph_attr *a = graph_attr(n, k);
    return a ? a->f : otherwise;
}

const char *graph_word(const struct graph_node *n, enum graph_attr_key k, const char *otherwise) {
    const struct graph_attr *a = graph_attr(n, k);
    return a ? a->word : otherwise;
}

int64_t graph_ints_at(const struct graph_node *n, enum graph_attr_key k, int i, int64_t otherwise) {
    const struct graph_attr *a = graph_attr(n, k);
    return a && i < a->n ? a->ints[i] : otherwise;
}

// ---- origins ---------------------------------------------------------------------------------

void graph_add_origin(struct graph *g, struct graph_node *n, const char *name) {
    for (int k = 0; k < n->norigin; k++)
        if (!strcmp(n->origins[k], name)) return;
    const char **grown = ARENA_ARRAY(g->arena, const char *, (size_t)n->norigin + 1);
    for (int k = 0; k < n->norigin; k++)
        grown[k] = n->origins[k];
    grown[n->norigin++] = arena_strdup(g->arena, name);
    n->origins = grown;
}

void graph_add_origins(struct graph *g, struct graph_node *n, const struct graph_node *from) {
    for (int k = 0; k < from->norigin; k++)
        graph_add_origin(g, n, from->origins[k]);
}

int graph_add_call(struct graph *g, const char *name, const char *op, struct graph_node *last) {
    if (g->ncall == g->cap_call) {
        int room = g->cap_call ? 2 * g->cap_call : 64;
        struct graph_call *grown = ARENA_ARRAY(g->arena, struct graph_call, (size_t)room);
        for (int i = 0; i < g->ncall; i++)
            grown[i] = g->calls[i];
        g->calls = grown;
        g->cap_call = room;
    }
    g->calls[g->ncall++] =
        (struct graph_call){arena_strdup(g->arena, name), arena_strdup(g->arena, op)};
    for (struct graph_node *n = last ? last->next : g->first; n; n = n->next)
        if (!n->call) n->call = g->ncall;
    return g->ncall;
}
