// SPDX-License-Identifier: Apache-2.0
//
// From the archive to a graph:
//
//   the user's inputs -> inputs with static shapes (inputs.c); parameters and buffers -> constants
//   for each node in order: its row's importer
//       one that is not supported is noted, its results are marked missing, what depends on them is
//       passed over
//   fail once with all that was noted, else mark the outputs: the user's, then what changed

#include "toolchain/frontend/pt2/import.h"

#include <inttypes.h>
#include <string.h>

#include "toolchain/frontend/pt2/place.h"

enum { NODES_MAX = 200000, CALL_DEPTH_MAX = 64, LISTED_MAX = 100, RESULTS_MAX = 1 << 16 };

struct pt2_name pt2_missing;

// ---- one node --------------------------------------------------------------------------------

// "torch.ops.aten.add.Tensor" -> "add.Tensor"; other namespaces keep theirs.
static const char *short_target(const char *target) {
    if (!strncmp(target, "torch.ops.aten.", 15)) return target + 15;
    return !strncmp(target, "torch.ops.", 10) ? target + 10 : target;
}

// "add_.Tensor" -> "add.Tensor": an in-place form of an operator; NULL when it is none.
static const char *functional(struct arena *a, const char *target) {
    size_t length = strcspn(target, ".");
    if (length < 2 || target[length - 1] != '_' || target[length - 2] == '_') return NULL;
    return arena_printf(a, "%.*s%s", (int)length - 1, target, target + length);
}

// Names of results; lists of tensors are flattened.
static npu_status read_results(struct pt2_node *n) {
    json_t *outputs;
    NPU_TRY(schema_need(n->json, "outputs", JSON_ARRAY, "the node", &outputs));
    size_t count = 0;
    for (size_t k = 0; k < json_array_size(outputs); k++) {
        const json_t *list = json_object_get(json_array_get(outputs, k), "as_tensors");
        count += list ? json_array_size(list) : 1;
    }
    if (count > RESULTS_MAX) return npu_fail(BAD_INPUT, "more than %d results", RESULTS_MAX);
    n->out = ARENA_ARRAY(n->m->arena, const char *, count + 1);
    for (size_t k = 0; k < json_array_size(outputs); k++) {
        const json_t *one = json_array_get(outputs, k);
        const json_t *list = json_object_get(one, "as_tensors");
        for (size_t i = 0; i < (list ? json_array_size(list) : 1); i++) {
            const char *name = schema_name(list ? json_array_get(list, i) : one);
            const char *tag;
            json_t *inner;
            if (!name) {
                NPU_TRY(schema_tag(one, "a result", &tag, &inner));
                name = json_string_value(json_object_get(inner, "as_name"));
            }
            n->out[n->nout++] = name ? arena_strdup(n->m->arena, name) : "";
        }
    }
    return NULL;
}

// Whether an argument is the result of a node that could not be imported.
static bool refers_to_missing(const struct scope *s, const json_t *value) {
    const char *key;
    json_t *inner;
    size_t k;
    if (json_is_object(value)) {
        json_object_foreach((json_t *)value, key, inner) {
            bool names = !strcmp(key, "name") || !strcmp(key, "as_name");
            if (!strcmp(key, "as_graph")) continue;
            if (names && json_is_string(inner) &&
                map_get(&s->names, json_string_value(inner)) == &pt2_missing)
                return true;
            if (refers_to_missing(s, inner)) return true;
        }
    }
    json_array_foreach(value, k, inner) {
        if (refers_to_missing(s, inner)) return true;
    }
    return false;
}

static bool depends_on_missing(struct pt2_node *n) {
    size_t k;
    json_t *input;
    json_array_foreach(n->inputs, k, input) {
        if (refers_to_missing(n->s, json_object_get(input, "arg"))) return true;
    }
    return false;
}

// Every name in an argument or an output.
static void note_names(struct scope *s, const json_t *value) {
    const char *key;
    json_t *inner;
    size_t k;
    if (json_is_object(value)) {
        json_object_foreach((json_t *)value, key, inner) {
            if (!strcmp(key, "as_graph")) continue;
            if (json_is_string(inner) && (!strcmp(key, "name") || !strcmp(key, "as_name")))
                map_put(&s->read, json_string_value(inner), s);
            note_names(s, inner);
        }
    }
    json_array_foreach(value, k, inner) {
        note_names(s, inner);
    }
}

static void note_readers(struct importer *m, struct scope *s, const json_t *graph) {
    size_t k, i;
    json_t *node, *input;
    map_init(&s->read, m->arena);
    json_array_foreach(json_object_get(graph, "nodes"), k, node) {
        json_array_foreach(json_object_get(node, "inputs"), i, input) {
            note_names(s, json_object_get(input, "arg"));
        }
    }
    note_names(s, json_object_get(graph, "outputs"));
}

npu_status pt2_all_missing(struct pt2_node *n) {
    for (int k = 0; k < n->nout; k++)
        if (*n->out[k]) map_put(&n->s->names, n->out[k], &pt2_missing);
    return NULL;
}

static npu_status run(struct pt2_node *n) {
    n->row = map_get(&n->m->rows, n->target);
    const char *plain = n->row ? NULL : functional(n->m->arena, n->target);
    if (plain) {
        n->row = map_get(&n->m->rows, plain);
        n->in_place = n->row != NULL;
    }
    if (!n->row) return npu_fail(UNSUPPORTED, "%s is not supported", n->target);
    return pt2_run_row(n);
}

// What a node leaves behind when it failed half way must not stay in the graph.
static void remove_since(struct graph *g, struct graph_node *last) {
    while (g->last != last)
        graph_remove_node(g, g->last);
}

static npu_status start_node(struct importer *m, struct scope *s, const json_t *json, size_t index,
                             struct pt2_node *n, const char **name) {
    json_t *target, *inputs;
    *n = (struct pt2_node){.m = m, .s = s, .json = json};
    const char *where = arena_printf(m->arena, "node %zu of the graph", index);
    if (!json_is_object(json)) return npu_fail(BAD_INPUT, "%s is no object", where);
    NPU_TRY(schema_need(json, "target", JSON_STRING, where, &target));
    NPU_TRY(schema_need(json, "inputs", JSON_ARRAY, where, &inputs));
    n->inputs = inputs;
    n->target = arena_strdup(m->arena, short_target(json_string_value(target)));
    NPU_TRY_NOTE(read_results(n), "%s", where);
    const char *own = json_string_value(json_object_get(json, "name"));
    if (!own) own = n->nout && *n->out[0] ? n->out[0] : arena_printf(m->arena, "node_%zu", index);
    *name = arena_printf(m->arena, "%s%s", s->prefix, own);
    const char *place = place_of(m->arena, json_object_get(json, "metadata"));
    n->b = (struct build){m->g, m->arena, m->temp, place ? place : *name,
                          arena_printf(m->arena, "%s.part", *name)};
    return NULL;
}

static npu_status import_node(struct importer *m, struct scope *s, const json_t *json,
                              size_t index) {
    struct pt2_node n;
    const char *name = "";
    if (++m->nodes > NODES_MAX)
        return npu_fail(UNSUPPORTED, "the model has more than %d nodes", NODES_MAX);
    NPU_TRY(start_node(m, s, json, index, &n, &name));
    struct graph_node *last = m->g->last;
    if (depends_on_missing(&n)) return pt2_all_missing(&n);
    npu_status failed = run(&n);
    if (n.failed) {
        npu_status_free(failed);
        failed = n.failed;
    }
    if (!failed) return NULL;
    failed = n.b.name == name || !strcmp(n.b.name, name)
                 ? npu_note(failed, "node '%s' (%s)", name, n.target)
                 : npu_note(failed, "node '%s' (%s) at %s", name, n.target, n.b.name);
    if (npu_status_code(failed) != NPU_UNSUPPORTED) return failed;
    remove_since(m->g, last);
    if (m->unsupported.count < LISTED_MAX)
        diag_add(&m->unsupported, failed);
    else
        npu_status_free(failed);
    return pt2_all_missing(&n);
}

static npu_status import_nodes(struct importer *m, struct scope *s, const json_t *graph) {
    json_t *nodes;
    NPU_TRY(schema_need(graph, "nodes", JSON_ARRAY, "the graph", &nodes));
    note_readers(m, s, graph);
    for (size_t k = 0; k < json_array_size(nodes); k++)
        NPU_TRY(import_node(m, s, json_array_get(nodes, k), k));
    return NULL;
}

// ---- results ---------------------------------------------------------------------------------

bool pt2_used(struct pt2_node *n, int k) {
    return k < n->nout && map_get(&n->s->read, n->out[k]);
}

static npu_status declared(struct pt2_node *n, int k, struct tensor_meta *t) {
    const json_t *meta = json_object_get(n->s->tensor_values, n->out[k]);
    if (!meta)
        return npu_fail(BAD_INPUT, "result '%s' is not in the graph's tensor_values", n->out[k]);
    return schema_meta(meta, &n->m->symbols, arena_printf(n->m->arena, "result '%s'", n->out[k]),
                       t);
}

enum isa_dtype pt2_out_dtype(struct pt2_node *n, int k) {
    const json_t *meta = k < n->nout ? json_object_get(n->s->tensor_values, n->out[k]) : NULL;
    enum isa_dtype t = ISA_DTYPE_NONE;
    if (!meta) return ISA_DTYPE_NONE;
    npu_status odd = schema_dtype(json_integer_value(json_object_get(meta, "dtype")), &t);
    if (odd && n->failed)
        npu_status_free(odd);
    else if (odd)
        n->failed = odd;
    return build_dtype(t);
}

static const char *dims_text(struct arena *a, int rank, const int64_t *dims) {
    const char *text = "";
    for (int d = 0; d < rank; d++)
        text = dims[d] < 0 ? arena_printf(a, "%s%s?", text, d ? "," : "")
                           : arena_printf(a, "%s%s%" PRId64, text, d ? "," : "", dims[d]);
    return arena_printf(a, "[%s]", text);
}

// The graph says of every result what it is; an operator that gives something else is damage.
static npu_status agree(struct pt2_node *n, int k, const struct graph_value *v,
                        enum isa_dtype *file) {
    struct tensor_meta t;
    NPU_TRY(declared(n, k, &t));
    *file = t.dtype;
    bool same = v->rank == t.rank;
    for (int d = 0; same && d < t.rank; d++)
        same = t.sizes[d] < 0 || t.sizes[d] == v->dims[d];
    if (same && v->dtype == build_dtype(t.dtype)) return NULL;
    return npu_fail(BAD_INPUT, "the graph declares result '%s' as %s%s, its arguments make it %s%s",
                    n->out[k], isa_dtype_name(t.dtype), dims_text(n->m->arena, t.rank, t.sizes),
                    isa_dtype_name(v->dtype), dims_text(n->m->arena, v->rank, v->dims));
}

static npu_status put_name(struct pt2_node *n, const char *name, struct pt2_name *v) {
    if (map_put(&n->s->names, name, v))
        return npu_fail(BAD_INPUT, "result '%s' is computed twice", name);
    return NULL;
}

static npu_status bind_tensor(struct pt2_node *n, int k, struct pt2_tensor *t) {
    struct pt2_name *name = ARENA_NEW(n->m->arena, struct pt2_name);
    name->tensor = t;
    NPU_TRY(agree(n, k, t->v, &t->file));
    return put_name(n, n->out[k], name);
}

// The result of an in-place operator goes into its first argument.
static npu_status bind_in_place(struct pt2_node *n, struct graph_value *v) {
    const char *first = json_string_value(json_object_get(json_array_get(n->inputs, 0), "name"));
    struct pt2_tensor *self = first ? pt2_tensor(n, first) : NULL;
    struct graph_value *old;
    if (!self) return npu_fail(BAD_INPUT, "the first argument is no tensor to write into");
    NPU_TRY(tensor_read(&n->b, self, &old));
    if (v != old) {
        NPU_TRY(build_cast(&n->b, v, old->dtype, &v));
        NPU_TRY(build_expand(&n->b, v, old->rank, old->dims, &v));
        NPU_TRY(tensor_write(&n->b, self, v));
    }
    return pt2_used(n, 0) ? bind_tensor(n, 0, self) : NULL;
}

// A value that this node made gets the name of the result.
static void rename_value(struct pt2_node *n, int k, struct graph_value *v) {
    const char *full = arena_printf(n->m->arena, "%s%s", n->s->prefix, n->out[k]);
    bool own = v->producer ? v->producer->outputs[0] == v : v->data != NULL;
    if (own && !v->is_input && !strncmp(v->name, n->b.label, strlen(n->b.label)))
        graph_rename_value(n->m->g, v, full);
}

npu_status pt2_bind(struct pt2_node *n, int k, struct graph_value *v) {
    if (n->failed) return NULL; // the driver reports it
    if (n->in_place && k == 0) return bind_in_place(n, v);
    if (!pt2_used(n, k)) return NULL;
    rename_value(n, k, v);
    return bind_tensor(n, k, tensor_new(n->m->arena, v));
}

npu_status pt2_bind_view(struct pt2_node *n, int k, struct pt2_tensor *of,
                         const struct view *view) {
    struct pt2_tensor *t;
    if (n->failed || !pt2_used(n, k)) return NULL;
    if (n->in_place) return npu_fail(UNSUPPORTED, "it changes the shape of its argument in place");
    NPU_TRY(tensor_view(&n->b, of, view, &t));
    rename_value(n, k, t->v);
    return bind_tensor(n, k, t);
}

npu_status pt2_bind_same(struct pt2_node *n, int k, struct pt2_tensor *t) {
    struct graph_value *now;
    if (n->failed || !pt2_used(n, k)) return NULL;
    NPU_TRY(tensor_read(&n->b, t, &now));
    return bind_tensor(n, k, t);
}

npu_status pt2_bind_number(struct pt2_node *n, double v, bool is_int) {
    if (n->failed || !n->nout || !*n->out[0]) return NULL;
    struct pt2_name *name = ARENA_NEW(n->m->arena, struct pt2_name);
    *name = (struct pt2_name){NULL, v, is_int};
    return put_name(n, n->out[0], name);
}

// ---- subgraphs -------------------------------------------------------------------------------

static npu_status enter(struct pt2_node *n, const json_t *sub, struct scope *body, int nargs,
                        struct graph_value *const *args) {
    json_t *inputs, *values;
    NPU_TRY(schema_need(sub, "inputs", JSON_ARRAY, "the subgraph", &inputs));
    NPU_TRY(schema_need(sub, "tensor_values", JSON_OBJECT, "the subgraph", &values));
    if (json_array_size(inputs) != (size_t)nargs)
        return npu_fail(BAD_INPUT, "the subgraph has %zu inputs, it is given %d",
                        json_array_size(inputs), nargs);
    body->tensor_values = values;
    map_init(&body->names, n->m->arena);
    for (int k = 0; k < nargs; k++) {
        const json_t *input = json_array_get(inputs, (size_t)k);
        const char *name = schema_name(input);
        struct pt2_name *v = ARENA_NEW(n->m->arena, struct pt2_name);
        if (name) {
            v->tensor = tensor_new(n->m->arena, args[k]);
        } else { // a size
            name =
                json_string_value(json_object_get(json_object_get(input, "as_sym_int"), "as_name"));
            NPU_TRY(pt2_need_const(args[k], "a size of the subgraph"));
            v->number = (double)*(const int64_t *)args[k]->data;
            v->is_int = args[k]->dtype == ISA_I64;
        }
        if (!name || (!v->tensor && !v->is_int))
            return npu_fail(BAD_INPUT, "input %d of the subgraph is no tensor", k);
        map_put(&body->names, name, v);
    }
    return NULL;
}

static npu_status leave(struct pt2_node *n, const json_t *sub, struct scope *body, int nresult,
                        struct graph_value **results, bool *missing) {
    json_t *outputs;
    NPU_TRY(schema_need(sub, "outputs", JSON_ARRAY, "the subgraph", &outputs));
    if (json_array_size(outputs) < (size_t)nresult)
        return npu_fail(BAD_INPUT, "the subgraph has %zu outputs, %d are used",
                        json_array_size(outputs), nresult);
    for (int k = 0; k < nresult; k++) {
        const json_t *output = json_array_get(outputs, (size_t)k);
        const char *name = schema_name(output);
        const json_t *number = json_object_get(output, "as_int");
        struct pt2_name *v = name ? map_get(&body->names, name) : NULL;
        if (v == &pt2_missing) {
            *missing = true;
        } else if (v && v->tensor) {
            NPU_TRY(tensor_read(&n->b, v->tensor, &results[k]));
        } else if (json_is_integer(number)) {
            results[k] = build_new_ints(&n->b, 0, NULL, &(int64_t){json_integer_value(number)});
        } else {
            return npu_fail(BAD_INPUT, "the subgraph does not compute its output %d", k);
        }
    }
    return NULL;
}

npu_status pt2_call_graph(struct pt2_node *n, const json_t *sub, const char *prefix, int nargs,
                          struct graph_value *const *args, int nresult,
                          struct graph_value **results, bool *missing) {
    struct importer *m = n->m;
    struct scope body = {.prefix = prefix};
    if (!sub) return NULL; // noted
    if (m->depth >= CALL_DEPTH_MAX)
        return npu_fail(BAD_INPUT, "subgraphs nested more than %d deep", CALL_DEPTH_MAX);
    NPU_TRY(enter(n, sub, &body, nargs, args));
    m->depth++;
    npu_status failed = import_nodes(m, &body, sub);
    m->depth--;
    NPU_TRY(failed);
    return leave(n, sub, &body, nresult, results, missing);
}

// ---- the model -------------------------------------------------------------------------------

// Kinds of input_specs that name a stored tensor.
static const struct stored {
    const char *kind, *name, *list;
} stored[] = {{"parameter", "parameter_name", "weights"},
              {"buffer", "buffer_name", "weights"},
              {"tensor_constant", "tensor_constant_name", "constants"}};

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
    if (v->tensor && !strcmp(kind->kind, "buffer") && !v->tensor->state) v->tensor->state = tensor;
    if (map_put(&s->names, own, v)) return npu_fail(BAD_INPUT, "input '%s' stands twice", own);
    return NULL;
}

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
        else if (strcmp(kind, "user_input") != 0)
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
    const char *name = arena_printf(m->arena, buffer ? "%s" : "%s.out", target);
    return named_output(m, s, schema_name(json_object_get(spec, "arg")), name);
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
        NPU_TRY(add_output(m, t->v, t->state, t->file));
        t->state = NULL;
    }
    if (!m->g->noutput) return npu_fail(BAD_INPUT, "the model has no outputs");
    return NULL;
}

static npu_status import_model(struct importer *m, struct span bytes, const char *path) {
    json_t *values;
    struct scope *s = ARENA_NEW(m->arena, struct scope);
    s->prefix = "";
    map_init(&s->names, m->arena);
    map_init(&m->weights, m->arena);
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
    NPU_TRY(import_specs(m, s));
    NPU_TRY(import_nodes(m, s, m->schema.graph));
    NPU_TRY(diag_finish(&m->unsupported));
    return mark_outputs(m, s);
}

static void close_schema(void *schema) {
    schema_close(schema);
}

npu_status pt2_import_bytes(struct span bytes, const char *path,
                            const struct import_options *options, struct arena *arena,
                            struct graph **out) {
    static const struct import_options none;
    struct importer *m = ARENA_NEW(arena, struct importer);
    m->arena = arena;
    m->options = options ? options : &none;
    m->temp = arena_try_new();
    if (!m->temp) return npu_fail(NO_MEMORY, "importing the model");
    // The documents are freed below; this is for leaving by the arena's end of memory.
    arena_defer(arena, close_schema, &m->schema);
    m->g = graph_new(arena, "main");
    npu_status failed = import_model(m, bytes, path);
    failed = npu_status_join(failed, diag_finish(&m->unsupported));
    schema_close(&m->schema);
    arena_free(m->temp);
    if (!failed) *out = m->g;
    return failed;
}

npu_status pt2_import(const char *path, const struct import_options *options, struct arena *arena,
                      struct graph **out) {
    struct span bytes;
    NPU_TRY(file_map_in(arena, path, &bytes));
    return npu_note(pt2_import_bytes(bytes, arena_strdup(arena, path), options, arena, out),
                    "model '%s'", path);
}
