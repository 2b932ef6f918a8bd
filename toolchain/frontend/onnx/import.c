// SPDX-License-Identifier: Apache-2.0
//
// From the model to a graph:
//
//   opset versions; functions by name
//   initializers -> constants; inputs -> inputs with static shapes (inputs.c) or constants bound by
//   the user for each node in order: gather inputs -> its row's importer, or its function's body in
//   a scope of its own
//       a node that is not supported is noted, its outputs are marked missing, what depends on it
//       is passed over
//   fail once with all that was noted, else mark the outputs

#include "toolchain/frontend/onnx/import.h"

#include <string.h>

#include "toolchain/frontend/onnx/inputs.h"

enum { NODES_MAX = 200000, CALL_DEPTH_MAX = 64, LISTED_MAX = 100 };

struct graph_value onnx_missing = {.name = "(not supported)"};

static bool is_default(const char *domain) {
    return !domain || !*domain || !strcmp(domain, "ai.onnx");
}

// ---- opsets and functions --------------------------------------------------------------------

static npu_status read_opsets(struct scope *s, Onnx__OperatorSetIdProto *const *sets,
                              size_t count) {
    for (size_t k = 0; k < count; k++) {
        int64_t version = sets[k]->has_version ? sets[k]->version : 0;
        if (is_default(sets[k]->domain)) s->opset = version;
        if (sets[k]->domain && !strcmp(sets[k]->domain, "com.microsoft"))
            s->contrib_opset = version;
    }
    if (s->opset && (s->opset < ONNX_OPSET_MIN || s->opset > ONNX_OPSET_MAX))
        return npu_fail(UNSUPPORTED, "the model is of opset %lld, opsets %d to %d are accepted",
                        (long long)s->opset, ONNX_OPSET_MIN, ONNX_OPSET_MAX);
    return NULL;
}

static const char *function_key(struct arena *a, const char *domain, const char *name) {
    return arena_printf(a, "%s:%s", is_default(domain) ? "" : domain, name);
}

static npu_status read_functions(struct importer *m) {
    const Onnx__ModelProto *model = m->r->model;
    for (size_t k = 0; k < model->n_functions; k++) {
        Onnx__FunctionProto *f = model->functions[k];
        if (!f->name || !*f->name) return npu_fail(BAD_INPUT, "function %zu has no name", k);
        if (map_put(&m->functions, function_key(m->arena, f->domain, f->name), f))
            return npu_fail(BAD_INPUT, "function '%s' is defined twice", f->name);
    }
    return NULL;
}

// ---- one node --------------------------------------------------------------------------------

static struct graph_value *lookup(const struct scope *s, const char *name) {
    for (; s; s = s->outer) {
        struct graph_value *v = map_get(&s->values, name);
        if (v) return v;
    }
    return NULL;
}

static npu_status gather_inputs(struct onnx_node *n, bool *missing) {
    *missing = false;
    n->in = ARENA_ARRAY(n->m->arena, struct graph_value *, (size_t)n->nin);
    for (int k = 0; k < n->nin; k++) {
        const char *name = n->p->input[k];
        if (!*name) continue;
        n->in[k] = lookup(n->s, name);
        if (!n->in[k])
            return npu_fail(
                BAD_INPUT,
                "input %d ('%s') is not an input, an initializer or the output of a node before", k,
                name);
        *missing |= n->in[k] == &onnx_missing;
    }
    return NULL;
}

static void mark_missing(struct onnx_node *n) {
    for (int k = 0; k < n->nout; k++)
        if (onnx_used(n, k)) map_put(&n->s->values, n->p->output[k], &onnx_missing);
}

static npu_status import_nodes(struct importer *m, struct scope *s, Onnx__NodeProto *const *nodes,
                               size_t count);

static npu_status call_function(struct onnx_node *n, const Onnx__FunctionProto *f) {
    struct importer *m = n->m;
    if (m->depth >= CALL_DEPTH_MAX)
        return npu_fail(BAD_INPUT, "functions call each other more than %d deep", CALL_DEPTH_MAX);
    struct scope body = {.call = n,
                         .function = f,
                         .opset = n->s->opset,
                         .contrib_opset = n->s->contrib_opset};
    map_init(&body.values, m->arena);
    body.prefix = arena_printf(m->arena, "%s/", n->name);
    NPU_TRY(read_opsets(&body, f->opset_import, f->n_opset_import));
    if ((size_t)n->nin > f->n_input || (size_t)n->nout > f->n_output)
        return npu_fail(BAD_INPUT, "%d inputs and %d outputs, the function has %zu and %zu", n->nin,
                        n->nout, f->n_input, f->n_output);
    for (int k = 0; k < n->nin; k++)
        if (n->in[k]) map_put(&body.values, f->input[k], n->in[k]);
    m->depth++;
    npu_status failed = import_nodes(m, &body, f->node, f->n_node);
    m->depth--;
    NPU_TRY_NOTE(failed, "in function '%s'", f->name);
    for (int k = 0; k < n->nout; k++) {
        if (!onnx_used(n, k)) continue;
        struct graph_value *v = map_get(&body.values, f->output[k]);
        if (!v)
            return npu_fail(BAD_INPUT, "function '%s' does not compute its output '%s'", f->name,
                            f->output[k]);
        NPU_TRY(onnx_bind(n, k, v));
    }
    return NULL;
}

static npu_status import_one(struct onnx_node *n) {
    const char *domain = n->p->domain && !is_default(n->p->domain) ? n->p->domain : "";
    const Onnx__FunctionProto *f =
        map_get(&n->m->functions, function_key(n->m->arena, domain, n->op));
    if (f) return call_function(n, f);
    bool contrib = !strcmp(domain, "com.microsoft"), known;
    int64_t opset = contrib ? (n->s->contrib_opset ? n->s->contrib_opset : 1) : n->s->opset;
    const struct onnx_row *row = onnx_find_row(domain, n->op, opset, &known);
    if (row) return onnx_run_row(row, n);
    if (known)
        return npu_fail(UNSUPPORTED, "%s%s%s as of opset %lld is not supported", domain,
                        *domain ? "." : "", n->op, (long long)opset);
    return npu_fail(UNSUPPORTED, "%s%s%s is not supported (opset %lld)", domain, *domain ? "." : "",
                    n->op, (long long)opset);
}

// What a node leaves behind when it failed half way must not stay in the graph.
static void remove_since(struct graph *g, struct graph_node *last) {
    while (g->last != last)
        graph_remove_node(g, g->last);
}

// Nodes of functions and of subgraphs are calls of their own: whatever contains them is one only
// for what it adds around them.
static void note_call(const struct onnx_node *n, struct graph_node *last, int calls) {
    struct graph *g = n->m->g;
    bool adds = g->ncall == calls;
    for (const struct graph_node *k = last ? last->next : g->first; k && !adds; k = k->next)
        adds = !k->call;
    if (adds && strcmp(n->op, "Constant") != 0) graph_add_call(g, n->name, n->op, last);
}

static npu_status import_node(struct importer *m, struct scope *s, const Onnx__NodeProto *p,
                              size_t index) {
    if (++m->nodes > NODES_MAX)
        return npu_fail(UNSUPPORTED, "the model expands to more than %d nodes", NODES_MAX);
    struct onnx_node n = {
        .m = m, .s = s, .p = p, .op = p->op_type ? p->op_type : "", .opset = s->opset};
    if (p->n_input > 1 << 16 || p->n_output > 1 << 16)
        return npu_fail(BAD_INPUT, "node %zu has too many inputs", index);
    n.nin = (int)p->n_input;
    n.nout = (int)p->n_output;
    n.first_value = m->g->nvalue;
    n.name = p->name && *p->name ? arena_printf(m->arena, "%s%s", s->prefix, p->name)
                                 : arena_printf(m->arena, "%s%s_%zu", s->prefix, n.op, index);
    n.label = n.name;
    for (int k = 0; k < n.nout; k++)
        if (onnx_used(&n, k)) {
            n.label = arena_printf(m->arena, "%s%s.part", s->prefix, p->output[k]);
            break;
        }
    n.b = (struct build){m->g, m->arena, m->temp, n.name, n.label};
    struct graph_node *last = m->g->last;
    const int calls = m->g->ncall;
    bool missing = false;
    npu_status failed = gather_inputs(&n, &missing);
    if (!failed && missing) {
        mark_missing(&n);
        return NULL;
    }
    if (!failed) failed = import_one(&n);
    if (n.failed) {
        npu_status_free(failed);
        failed = n.failed;
    }
    if (!failed) {
        note_call(&n, last, calls);
        return NULL;
    }
    failed = npu_note(failed, "node '%s' (%s)", n.name, n.op);
    if (npu_status_code(failed) != NPU_UNSUPPORTED) return failed;
    remove_since(m->g, last);
    if (m->unsupported.count < LISTED_MAX)
        diag_add(&m->unsupported, failed);
    else
        npu_status_free(failed);
    mark_missing(&n);
    return NULL;
}

static npu_status import_nodes(struct importer *m, struct scope *s, Onnx__NodeProto *const *nodes,
                               size_t count) {
    for (size_t k = 0; k < count; k++)
        NPU_TRY(import_node(m, s, nodes[k], k));
    return NULL;
}

// ---- graphs ----------------------------------------------------------------------------------

static npu_status import_initializers(struct importer *m, struct scope *s,
                                      const Onnx__GraphProto *p) {
    if (p->n_sparse_initializer) return npu_fail(UNSUPPORTED, "sparse initializers");
    for (size_t k = 0; k < p->n_initializer; k++) {
        const Onnx__TensorProto *t = p->initializer[k];
        if (!t->name || !*t->name) return npu_fail(BAD_INPUT, "initializer %zu has no name", k);
        if (map_get(&s->values, t->name))
            return npu_fail(BAD_INPUT, "initializer '%s' stands twice", t->name);
        struct onnx_tensor read;
        npu_status failed = reader_tensor(m->r, t, &read);
        if (npu_status_code(failed) == NPU_UNSUPPORTED) { // only those who use it are concerned
            diag_add(&m->unsupported, failed);
            map_put(&s->values, t->name, &onnx_missing);
            continue;
        }
        NPU_TRY_NOTE(failed, "initializer %zu", k);
        const char *name =
            *s->prefix ? arena_printf(m->arena, "%s%s", s->prefix, t->name) : t->name;
        struct graph_value *v =
            graph_add_const(m->g, name, read.dtype, read.rank, read.dims, read.data);
        v->source = read.source;
        v->source_offset = read.source_offset;
        v->file_dtype = read.file_dtype;
        map_put(&s->values, t->name, v);
    }
    return NULL;
}

npu_status onnx_call_graph(struct onnx_node *n, const Onnx__GraphProto *sub, const char *prefix,
                           int nargs, struct graph_value *const *args, int nresult,
                           struct graph_value **results) {
    struct importer *m = n->m;
    if (m->depth >= CALL_DEPTH_MAX)
        return npu_fail(BAD_INPUT, "subgraphs nested more than %d deep", CALL_DEPTH_MAX);
    if ((size_t)nargs != sub->n_input || (size_t)nresult > sub->n_output)
        return npu_fail(BAD_INPUT,
                        "the subgraph has %zu inputs and %zu outputs, expected %d and %d",
                        sub->n_input, sub->n_output, nargs, nresult);
    struct scope body = {.outer = n->s,
                         .opset = n->s->opset,
                         .contrib_opset = n->s->contrib_opset,
                         .prefix = prefix};
    map_init(&body.values, m->arena);
    for (int k = 0; k < nargs; k++)
        map_put(&body.values, sub->input[k]->name ? sub->input[k]->name : "", args[k]);
    m->depth++;
    npu_status failed = import_initializers(m, &body, sub);
    if (!failed) failed = import_nodes(m, &body, sub->node, sub->n_node);
    m->depth--;
    NPU_TRY(failed);
    for (int k = 0; k < nresult; k++) {
        const char *name = sub->output[k]->name ? sub->output[k]->name : "";
        results[k] = lookup(&body, name);
        if (!results[k])
            return npu_fail(BAD_INPUT, "the subgraph does not compute its output '%s'", name);
    }
    return NULL;
}

// A graph output is the result of a node, and of one output only: else it gets a copy.
static npu_status mark_outputs(struct importer *m, struct scope *s) {
    const Onnx__GraphProto *p = m->r->model->graph;
    if (!p->n_output) return npu_fail(BAD_INPUT, "the graph has no outputs");
    for (size_t k = 0; k < p->n_output; k++) {
        const char *name = p->output[k]->name ? p->output[k]->name : "";
        struct graph_value *v = map_get(&s->values, name);
        if (!v)
            return npu_fail(BAD_INPUT, "output %zu ('%s') is not computed by any node", k, name);
        if (!v->producer || v->is_output) {
            struct graph_node *copy = graph_add_node(m->g, GRAPH_COPY, name, 1, &v, NULL);
            NPU_TRY(graph_infer(m->g, copy, name));
            v = copy->outputs[0];
        }
        const struct graph_value *holder = graph_find_value(m->g, name);
        if (!holder || !holder->is_input)
            graph_rename_value(m->g, v, name);
        else
            v->file_name = holder->name;
        const Onnx__TypeProto *type = p->output[k]->type;
        if (type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
            type->tensor_type->has_elem_type) {
            enum isa_dtype declared;
            npu_status unknown = onnx_dtype(type->tensor_type->elem_type, &declared);
            if (npu_status_code(unknown) == NPU_NO_MEMORY) return unknown;
            if (!unknown && onnx_graph_dtype(declared) == v->dtype) v->file_dtype = declared;
            npu_status_free(unknown);
        }
        graph_add_output(m->g, v);
    }
    return NULL;
}

static npu_status import_model(struct importer *m) {
    const Onnx__ModelProto *model = m->r->model;
    struct scope *s = ARENA_NEW(m->arena, struct scope);
    s->prefix = "";
    map_init(&s->values, m->arena);
    NPU_TRY(read_opsets(s, model->opset_import, model->n_opset_import));
    if (!s->opset && !model->n_opset_import) return npu_fail(BAD_INPUT, "the model names no opset");
    NPU_TRY(read_functions(m));
    NPU_TRY(import_initializers(m, s, model->graph));
    NPU_TRY(inputs_import(m, s));
    NPU_TRY(import_nodes(m, s, model->graph->node, model->graph->n_node));
    NPU_TRY(diag_finish(&m->unsupported));
    return mark_outputs(m, s);
}

static npu_status import_from(struct reader *r, const struct import_options *options,
                              struct arena *arena, struct graph **out) {
    static const struct import_options none;
    const char *name = r->model->graph->name;
    struct importer m = {.r = r, .arena = arena, .options = options ? options : &none};
    m.temp = arena_try_new();
    if (!m.temp) return npu_fail(NO_MEMORY, "importing the model");
    m.g = graph_new(arena, name);
    map_init(&m.functions, arena);
    npu_status failed = import_model(&m);
    failed = npu_status_join(failed, diag_finish(&m.unsupported));
    arena_free(m.temp);
    if (!failed) *out = m.g;
    return failed;
}

npu_status onnx_import(const char *path, const struct import_options *options, struct arena *arena,
                       struct graph **out) {
    struct span bytes;
    NPU_TRY(file_map_in(arena, path, &bytes));
    return onnx_import_mapped(path, bytes, options, arena, out);
}

npu_status onnx_import_mapped(const char *path, struct span bytes,
                              const struct import_options *options, struct arena *arena,
                              struct graph **out) {
    struct reader *r = ARENA_NEW(arena, struct reader);
    NPU_TRY(reader_open(r, path, bytes, arena));
    return npu_note(import_from(r, options, arena, out), "model '%s'", path);
}

npu_status onnx_import_bytes(struct span bytes, const struct import_options *options,
                             struct arena *arena, struct graph **out) {
    struct reader *r = ARENA_NEW(arena, struct reader);
    NPU_TRY(reader_bytes(r, bytes, arena));
    return import_from(r, options, arena, out);
}
