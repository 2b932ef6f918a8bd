// SPDX-License-Identifier: Apache-2.0
//
// Nodes of a graph in order: each by its row's importer. One that is not supported is noted, its
// results are marked missing, what depends on them is passed over.

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

// A call of an operator of the library; Python's own operators on sizes and lists are none, and
// neither are the checks that torch.export writes down. Nodes of subgraphs are calls of their own:
// whatever contains them is one only for what it adds.
static void note_call(const struct pt2_node *n, struct graph_node *last, int calls) {
    struct graph *g = n->m->g;
    const char *target = json_string_value(json_object_get(n->json, "target"));
    bool adds = g->ncall == calls && !strncmp(target, "torch.ops.aten.", 15) &&
                strncmp(n->target, "sym_", 4) != 0 && strncmp(n->target, "_assert_", 8) != 0;
    for (const struct graph_node *k = last ? last->next : g->first; k && !adds; k = k->next)
        adds = !k->call;
    if (!adds) return;
    const char *op = arena_printf(n->m->arena, "%.*s", (int)strcspn(n->target, "."), n->target);
    graph_add_call(g, n->b.name, op, last);
}

static npu_status import_node(struct importer *m, struct scope *s, const json_t *json,
                              size_t index) {
    struct pt2_node n;
    const char *name = "";
    if (++m->nodes > NODES_MAX)
        return npu_fail(UNSUPPORTED, "the model has more than %d nodes", NODES_MAX);
    NPU_TRY(start_node(m, s, json, index, &n, &name));
    struct graph_node *last = m->g->last;
    const int calls = m->g->ncall;
    if (depends_on_missing(&n)) return pt2_all_missing(&n);
    npu_status failed = run(&n);
    if (n.failed) {
        npu_status_free(failed);
        failed = n.failed;
    }
    if (!failed) {
        note_call(&n, last, calls);
        return NULL;
    }
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

npu_status pt2_nodes(struct importer *m, struct scope *s, const json_t *graph) {
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
        NPU_TRY(pt2_cast(n, v, old->dtype, &v));
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
    if (n->failed) return NULL;
    if (n->in_place) return npu_fail(UNSUPPORTED, "it changes the shape of its argument in place");
    if (!pt2_used(n, k)) return NULL;
    NPU_TRY(tensor_view(&n->b, of, view, &t));
    rename_value(n, k, t->v);
    return bind_tensor(n, k, t);
}

npu_status pt2_bind_beside(struct pt2_node *n, int k, struct pt2_tensor *of,
                           struct graph_value *v) {
    if (n->failed || !pt2_used(n, k)) return NULL;
    struct pt2_tensor *t = tensor_new(n->m->arena, v);
    if (of) tensor_beside(of, t);
    rename_value(n, k, v);
    return bind_tensor(n, k, t);
}

npu_status pt2_bind_same(struct pt2_node *n, int k, struct pt2_tensor *t) {
    struct graph_value *now;
    if (n->failed || !pt2_used(n, k)) return NULL;
    NPU_TRY(tensor_read(&n->b, t, &now));
    return bind_tensor(n, k, t);
}

npu_status pt2_bind_inner(struct pt2_node *n, int k, struct pt2_tensor *t) {
    struct graph_value *now;
    if (n->failed || !pt2_used(n, k)) return NULL;
    NPU_TRY(tensor_read(&n->b, t, &now));
    rename_value(n, k, now);
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
                        struct pt2_tensor *const *args) {
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
            v->tensor = args[k];
        } else { // a size
            const struct graph_value *size = args[k]->v;
            name =
                json_string_value(json_object_get(json_object_get(input, "as_sym_int"), "as_name"));
            NPU_TRY(pt2_need_const(size, "a size of the subgraph"));
            v->number = (double)*(const int64_t *)size->data;
            v->is_int = size->dtype == ISA_I64;
        }
        if (!name || (!v->tensor && !v->is_int))
            return npu_fail(BAD_INPUT, "input %d of the subgraph is no tensor", k);
        map_put(&body->names, name, v);
    }
    return NULL;
}

static npu_status leave(struct pt2_node *n, const json_t *sub, struct scope *body, int nresult,
                        struct pt2_tensor **results, bool *missing) {
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
            results[k] = v->tensor;
        } else if (json_is_integer(number)) {
            int64_t i = json_integer_value(number);
            results[k] = tensor_new(n->m->arena, build_new_ints(&n->b, 0, NULL, &i));
        } else {
            return npu_fail(BAD_INPUT, "the subgraph does not compute its output %d", k);
        }
    }
    return NULL;
}

npu_status pt2_call_shared(struct pt2_node *n, const json_t *sub, const char *prefix, int nargs,
                           struct pt2_tensor *const *args, int nresult, struct pt2_tensor **results,
                           bool *missing) {
    struct importer *m = n->m;
    struct scope body = {.prefix = prefix};
    if (!sub) return NULL; // noted
    if (m->depth >= CALL_DEPTH_MAX)
        return npu_fail(BAD_INPUT, "subgraphs nested more than %d deep", CALL_DEPTH_MAX);
    NPU_TRY(enter(n, sub, &body, nargs, args));
    m->depth++;
    npu_status failed = pt2_nodes(m, &body, sub);
    m->depth--;
    NPU_TRY(failed);
    return leave(n, sub, &body, nresult, results, missing);
}

npu_status pt2_call_graph(struct pt2_node *n, const json_t *sub, const char *prefix, int nargs,
                          struct graph_value *const *args, int nresult,
                          struct graph_value **results, bool *missing) {
    struct pt2_tensor **in = ARENA_ARRAY(n->m->arena, struct pt2_tensor *, (size_t)nargs + 1),
                      **out = ARENA_ARRAY(n->m->arena, struct pt2_tensor *, (size_t)nresult + 1);
    for (int k = 0; k < nargs; k++)
        in[k] = tensor_new(n->m->arena, args[k]);
    NPU_TRY(pt2_call_shared(n, sub, prefix, nargs, in, nresult, out, missing));
    for (int k = 0; k < nargs; k++)
        if (in[k]->version)
            return npu_fail(UNSUPPORTED, "the subgraph changes its input %d in place", k);
    for (int k = 0; sub && !*missing && k < nresult; k++)
        NPU_TRY(tensor_read(&n->b, out[k], &results[k]));
    return NULL;
}
