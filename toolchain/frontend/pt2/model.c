// SPDX-License-Identifier: Apache-2.0
//
// From the archive to a graph:
//
//   the user's inputs -> inputs with static shapes (inputs.c); parameters and buffers -> constants
//   (weights.c); the nodes (import.c)
//   fail once with all that is not supported, else mark the outputs: the user's, then what changed
//
// A buffer that is written to is a state: it is an input, and what it becomes an output. A plain
// export does not list such buffers; when one turns up the model is imported once more.

#include <string.h>

#include "toolchain/frontend/pt2/import.h"

// Kinds of input_specs that name a stored tensor.
static const struct stored {
    const char *kind, *name, *list;
} stored[] = {{"parameter", "parameter_name", "weights"},
              {"buffer", "buffer_name", "weights"},
              {"tensor_constant", "tensor_constant_name", "constants"}};

static bool all_zero(const struct graph_value *v) {
    const uint8_t *data = v->data;
    size_t bytes = (size_t)graph_value_elems(v) * (size_t)isa_dtype_bits((int)v->dtype) / 8;
    for (size_t k = 0; k < bytes; k++)
        if (data[k]) return false;
    return true;
}

// A buffer that is written to: a state, which starts as what is stored.
static npu_status keep(struct importer *m, struct pt2_tensor *t) {
    struct graph_value *first = t->v;
    if (t->kept) return NULL; // under another name
    if (!first->data)
        return npu_fail(UNSUPPORTED, "it is written to, and its elements share memory");
    t->kept = graph_add_value(m->g, t->state, first->dtype, first->rank, first->dims);
    const struct graph_value *holder = graph_find_value(m->g, t->state);
    if (holder && holder->is_input && holder != t->kept)
        t->kept->file_name = t->state;
    else
        graph_rename_value(m->g, t->kept, t->state);
    if (build_dtype(t->file) == first->dtype) t->kept->file_dtype = t->file;
    graph_add_input(m->g, t->kept);
    t->kept->is_state = true;
    t->kept->initial = all_zero(first) ? NULL : first;
    t->v = t->kept;
    return NULL;
}

static npu_status import_stored(struct importer *m, struct scope *s, const json_t *spec,
                                const struct stored *kind) {
    json_t *arg, *name;
    const char *list = kind->list;
    NPU_TRY(schema_need(spec, "arg", JSON_OBJECT, kind->kind, &arg));
    NPU_TRY(schema_need(spec, kind->name, JSON_STRING, kind->kind, &name));
    const char *own = schema_name(arg), *tensor = json_string_value(name);
    if (!own) return npu_fail(BAD_INPUT, "%s '%s' has no name in the graph", kind->kind, tensor);
    if (json_is_false(json_object_get(spec, "persistent"))) list = "constants";
    struct pt2_name *v = ARENA_NEW(m->arena, struct pt2_name);
    tensor = arena_strdup(m->arena, tensor);
    npu_status failed = pt2_weight(m, list, tensor, &v->tensor);
    if (npu_status_code(failed) == NPU_UNSUPPORTED) { // only those who use it are concerned
        diag_add(&m->unsupported, failed);
        v = &pt2_missing;
        failed = NULL;
    }
    NPU_TRY(failed);
    if (v->tensor && strcmp(kind->kind, "tensor_constant") != 0) { // a parameter may change too
        v->tensor->buffer = true;
        if (!v->tensor->state) v->tensor->state = tensor;
        map_put(&m->buffers, tensor, v->tensor);
        if (map_get(m->written, tensor) || map_get(m->written, v->tensor->state))
            NPU_TRY_NOTE(keep(m, v->tensor), "buffer '%s'", tensor);
    }
    if (map_put(&s->names, own, v)) return npu_fail(BAD_INPUT, "input '%s' stands twice", own);
    return NULL;
}

// Tensors that are stored. The user's are there already; a constant_input is an argument that is no
// tensor (a bool, None), which the export compiled in.
static npu_status import_specs(struct importer *m, struct scope *s) {
    json_t *specs;
    NPU_TRY(schema_need(m->schema.signature, "input_specs", JSON_ARRAY, "signature", &specs));
    for (size_t k = 0; k < json_array_size(specs); k++) {
        const char *kind;
        json_t *spec;
        const char *where = arena_printf(m->arena, "input_specs[%zu]", k);
        NPU_TRY(schema_tag(json_array_get(specs, k), where, &kind, &spec));
        const struct stored *row = NULL;
        for (size_t i = 0; i < sizeof stored / sizeof *stored; i++)
            if (!strcmp(stored[i].kind, kind)) row = &stored[i];
        if (row)
            NPU_TRY_NOTE(import_stored(m, s, spec, row), "%s", where);
        else if (strcmp(kind, "user_input") != 0 && strcmp(kind, "constant_input") != 0)
            return npu_fail(UNSUPPORTED, "%s is a %.40s, expected tensors", where, kind);
    }
    return NULL;
}

// A graph output is the result of a node, and of one output only: else it gets a copy.
static npu_status add_output(struct importer *m, struct graph_value *v, const char *name,
                             enum isa_dtype file) {
    if (!v->producer || v->is_output) {
        struct graph_node *copy = graph_add_node(m->g, GRAPH_COPY, name, 1, &v, NULL);
        NPU_TRY(graph_infer(m->g, copy, name));
        v = copy->outputs[0];
    }
    const struct graph_value *holder = graph_find_value(m->g, name);
    if (!holder || !holder->is_input) graph_rename_value(m->g, v, name);
    if (build_dtype(file) == v->dtype) v->file_dtype = file;
    graph_add_output(m->g, v);
    return NULL;
}

// What a state becomes. It may be what the user gets too.
static npu_status add_next(struct importer *m, struct graph_value *v, struct graph_value *state) {
    if (!v->producer || v->is_output) {
        struct graph_node *copy = graph_add_node(m->g, GRAPH_COPY, state->name, 1, &v, NULL);
        NPU_TRY(graph_infer(m->g, copy, state->name));
        v = copy->outputs[0];
    }
    v->file_dtype = state->file_dtype;
    v->state = state;
    graph_add_output(m->g, v);
    return NULL;
}

static npu_status named_output(struct importer *m, struct scope *s, const char *own,
                               const char *name) {
    struct pt2_name *v = own ? map_get(&s->names, own) : NULL;
    struct build b = {m->g, m->arena, m->temp, name, name};
    struct graph_value *value;
    if (!v) return npu_fail(BAD_INPUT, "output '%s' is not computed by any node", own ? own : name);
    if (v->tensor) {
        NPU_TRY(tensor_read(&b, v->tensor, &value));
        return add_output(m, value, name, v->tensor->file);
    }
    value = build_new_scalar(&b, v->is_int ? ISA_I64 : ISA_F32, v->number);
    return add_output(m, value, name, value->dtype);
}

// A user's output: a tensor, or a number that the export fixed; None is left out.
static npu_status user_output(struct importer *m, struct scope *s, const json_t *arg, int number) {
    const char *name = arena_printf(m->arena, "out%d", number), *tag;
    json_t *value;
    struct build b = {m->g, m->arena, m->temp, name, name};
    NPU_TRY(schema_tag(arg, name, &tag, &value));
    if (!strcmp(tag, "as_none")) return NULL;
    if (!strcmp(tag, "as_tensor")) return named_output(m, s, schema_name(arg), name);
    const char *symbol = json_string_value(json_object_get(value, "as_name"));
    if (symbol) return named_output(m, s, symbol, name);
    if (json_object_get(value, "as_int")) value = json_object_get(value, "as_int");
    if (json_is_integer(value))
        return add_output(m, build_new_ints(&b, 0, NULL, &(int64_t){json_integer_value(value)}),
                          name, ISA_I64);
    double v;
    if (!strcmp(tag, "as_string") || !schema_number(value, &v))
        return npu_fail(UNSUPPORTED, "output '%s' is %s, expected a tensor", name, tag);
    enum isa_dtype type = json_is_boolean(value) ? ISA_BOOL : ISA_F32;
    return add_output(m, build_new_scalar(&b, type, v), name, type);
}

// What the export lists as changed: after run_decompositions() only.
static npu_status listed_change(struct importer *m, struct scope *s, const char *kind,
                                const json_t *spec) {
    bool buffer = !strcmp(kind, "buffer_mutation");
    const char *key = buffer ? "buffer_name" : "user_input_name";
    const char *target = json_string_value(json_object_get(spec, key));
    if (!target) return npu_fail(BAD_INPUT, "%s has no %s", kind, key);
    const struct pt2_tensor *t = buffer ? map_get(&m->buffers, target) : NULL;
    const char *own = schema_name(json_object_get(spec, "arg"));
    const struct pt2_name *next = own ? map_get(&s->names, own) : NULL;
    if (t && t->kept && next && next->tensor) {
        struct build b = {m->g, m->arena, m->temp, target, target};
        struct graph_value *value;
        NPU_TRY(tensor_read(&b, next->tensor, &value));
        return add_next(m, value, t->kept);
    }
    const char *name = arena_printf(m->arena, buffer ? "%s" : "%s.out", target);
    return named_output(m, s, own, name);
}

static npu_status mark_outputs(struct importer *m, struct scope *s) {
    json_t *specs;
    NPU_TRY(schema_need(m->schema.signature, "output_specs", JSON_ARRAY, "signature", &specs));
    int number = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < json_array_size(specs); k++) {
            const char *kind, *where = arena_printf(m->arena, "output_specs[%zu]", k);
            json_t *spec;
            NPU_TRY(schema_tag(json_array_get(specs, k), where, &kind, &spec));
            bool user = !strcmp(kind, "user_output");
            if (user == (pass == 1)) continue;
            if (user)
                NPU_TRY_NOTE(user_output(m, s, json_object_get(spec, "arg"), number++), "%s",
                             where);
            else if (!strcmp(kind, "buffer_mutation") || !strcmp(kind, "user_input_mutation"))
                NPU_TRY_NOTE(listed_change(m, s, kind, spec), "%s", where);
            else
                return npu_fail(UNSUPPORTED, "%s is a %.40s", where, kind);
        }
    // Writes of a plain export: storages with a new version.
    for (size_t k = 0; k < s->names.len; k++) {
        struct pt2_tensor *t = ((struct pt2_name *)s->names.entries[k].value)->tensor;
        if (!t || t->parent || !t->version || !t->state) continue;
        if (t->kept)
            NPU_TRY(add_next(m, t->v, t->kept));
        else
            NPU_TRY(add_output(m, t->v, t->state, t->file));
        t->state = NULL;
    }
    if (!m->g->noutput) return npu_fail(BAD_INPUT, "the model has no outputs");
    return NULL;
}

// Buffers that the export lists as changed.
static void list_written(struct importer *m) {
    const json_t *specs = json_object_get(m->schema.signature, "output_specs");
    for (size_t k = 0; k < json_array_size(specs); k++) {
        const json_t *spec = json_object_get(json_array_get(specs, k), "buffer_mutation");
        const char *name = json_string_value(json_object_get(spec, "buffer_name"));
        if (name) map_put(m->written, arena_strdup(m->arena, name), m);
    }
}

// Buffers that turned out to be written to, in a plain export, which does not list them.
static bool found_written(struct importer *m, const struct scope *s) {
    bool found = false;
    for (size_t k = 0; k < s->names.len; k++) {
        const struct pt2_tensor *t = ((struct pt2_name *)s->names.entries[k].value)->tensor;
        if (!t || t->parent || !t->version || !t->buffer || t->kept) continue;
        map_put(m->written, t->state, m);
        found = true;
    }
    return found;
}

// *again: buffers are written to that were taken for constants; they are in m->written now.
static npu_status import_model(struct importer *m, struct span bytes, const char *path,
                               bool *again) {
    json_t *values;
    struct scope *s = ARENA_NEW(m->arena, struct scope);
    s->prefix = "";
    map_init(&s->names, m->arena);
    map_init(&m->weights, m->arena);
    map_init(&m->buffers, m->arena);
    map_init(&m->symbols.table, m->arena);
    map_init(&m->rows, m->arena);
    pt2_index_rows(&m->rows);
    NPU_TRY(archive_open(&m->archive, bytes, path, m->arena));
    NPU_TRY(schema_open(&m->schema, &m->archive, m->arena));
    NPU_TRY(schema_need(m->schema.graph, "tensor_values", JSON_OBJECT, "the graph", &values));
    s->tensor_values = values;
    NPU_TRY(pt2_inputs(m, s));
    for (size_t k = 0; k < s->names.len; k++) { // an input that is written to leaves as NAME.out
        struct pt2_name *v = s->names.entries[k].value;
        v->tensor->state = arena_printf(m->arena, "%s.out", s->names.entries[k].key);
    }
    list_written(m);
    NPU_TRY(import_specs(m, s));
    NPU_TRY(pt2_nodes(m, s, m->schema.graph));
    NPU_TRY(diag_finish(&m->unsupported));
    *again = found_written(m, s);
    return *again ? NULL : mark_outputs(m, s);
}

static void close_schema(void *schema) {
    schema_close(schema);
}

// "model" of "folder/model.pt2": what torch calls the graph is always the same.
static const char *stem(struct arena *a, const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *name = slash ? slash + 1 : path ? path : "";
    const char *dot = strrchr(name, '.');
    if (!*name) return "main";
    return dot && dot > name ? arena_strndup(a, name, (size_t)(dot - name)) : arena_strdup(a, name);
}

static npu_status attempt(struct span bytes, const char *path, const struct import_options *options,
                          struct arena *arena, struct map *written, struct graph **out) {
    static const struct import_options none;
    struct importer *m = ARENA_NEW(arena, struct importer);
    bool again = false;
    m->arena = arena;
    m->written = written;
    m->options = options ? options : &none;
    m->temp = arena_try_new();
    if (!m->temp) return npu_fail(NO_MEMORY, "importing the model");
    // The documents are freed below; this is for leaving by the arena's end of memory.
    arena_defer(arena, close_schema, &m->schema);
    m->g = graph_new(arena, stem(arena, path));
    npu_status failed = import_model(m, bytes, path, &again);
    failed = npu_status_join(failed, diag_finish(&m->unsupported));
    schema_close(&m->schema);
    arena_free(m->temp);
    if (!failed) *out = again ? NULL : m->g;
    return failed;
}

npu_status pt2_import_bytes(struct span bytes, const char *path,
                            const struct import_options *options, struct arena *arena,
                            struct graph **out) {
    struct map *written = ARENA_NEW(arena, struct map);
    map_init(written, arena);
    *out = NULL;
    for (int k = 0; !*out; k++) { // once more when a buffer is no constant
        size_t known = written->len;
        NPU_TRY(attempt(bytes, path, options, arena, written, out));
        NPU_ASSERT(*out || written->len > known);
    }
    return NULL;
}

npu_status pt2_import(const char *path, const struct import_options *options, struct arena *arena,
                      struct graph **out) {
    struct span bytes;
    NPU_TRY(file_map_in(arena, path, &bytes));
    return npu_note(pt2_import_bytes(bytes, arena_strdup(arena, path), options, arena, out),
                    "model '%s'", path);
}
