// SPDX-License-Identifier: Apache-2.0
//
// Control flow becomes straight-line code: the branch of an If (both and a selection when the
// condition is not known), the turns of a Loop or Scan one after another. Every turn is imported
// anew with its inputs as constants or values.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/onnx/import.h"

enum { TURNS_MAX = 4096, VALUES_MAX = 256 };

static npu_status body_of(struct onnx_node *n, const char *attribute,
                          const Onnx__GraphProto **out) {
    const Onnx__AttributeProto *a = onnx_attr(n, attribute);
    if (!a || !a->g) return npu_fail(BAD_INPUT, "attribute %s is missing", attribute);
    *out = a->g;
    return NULL;
}

static void copy_values(struct graph_value **to, struct graph_value *const *from, int count) {
    for (int k = 0; k < count; k++)
        to[k] = from[k];
}

static bool any_missing(struct graph_value *const *v, int count) {
    for (int k = 0; k < count; k++)
        if (v[k] == &onnx_missing) return true;
    return false;
}

// When a part could not be imported, neither can what comes out of it.
static npu_status all_missing(struct onnx_node *n) {
    for (int k = 0; k < n->nout; k++)
        NPU_TRY(onnx_bind(n, k, &onnx_missing));
    return NULL;
}

static npu_status branch(struct onnx_node *n, const char *attribute, struct graph_value **results) {
    const Onnx__GraphProto *body;
    NPU_TRY(body_of(n, attribute, &body));
    const char *prefix = arena_printf(n->m->arena, "%s/%s/", n->name, attribute);
    return onnx_call_graph(n, body, prefix, 0, NULL, n->nout, results);
}

// A condition that is not known: both branches are computed and the result is selected, which is
// the same because nothing in a graph has effects.
static npu_status select_branch(struct onnx_node *n, struct graph_value **then,
                                struct graph_value **otherwise) {
    for (int k = 0; k < n->nout; k++) {
        struct graph_value *y, *a = then[k], *b = otherwise[k];
        if (a->dtype != b->dtype || a->rank != b->rank ||
            memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0)
            return npu_fail(UNSUPPORTED,
                            "the condition '%s' is computed at run time, and output %d has another "
                            "shape or type in each branch",
                            n->in[0]->name, k);
        struct graph_value *in[3] = {n->in[0], a, b};
        NPU_TRY(onnx_map(n, a->dtype, "sel in1 in2", NULL, 3, in, &y));
        NPU_TRY(onnx_bind(n, k, y));
    }
    return NULL;
}

npu_status import_if(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 1, 1));
    const struct graph_value *condition = n->in[0];
    if (graph_value_elems(condition) != 1 || condition->dtype != ISA_BOOL)
        return npu_fail(BAD_INPUT, "the condition '%s' is no scalar bool", condition->name);
    struct graph_value **results[2];
    const char *const attributes[2] = {"else_branch", "then_branch"};
    for (int k = 0; k < 2; k++)
        results[k] = ARENA_ARRAY(n->m->arena, struct graph_value *, (size_t)n->nout);
    if (condition->data) {
        int taken = num_load_i64(condition->dtype, condition->data, 0) != 0;
        NPU_TRY(branch(n, attributes[taken], results[taken]));
        for (int k = 0; k < n->nout; k++)
            NPU_TRY(onnx_bind(n, k, results[taken][k]));
        return NULL;
    }
    NPU_TRY(onnx_reshape(n, n->in[0], 0, NULL, &n->in[0]));
    for (int k = 0; k < 2; k++) {
        NPU_TRY(branch(n, attributes[k], results[k]));
        if (any_missing(results[k], n->nout)) return all_missing(n);
    }
    return select_branch(n, results[1], results[0]);
}

// What a turn adds to each scan output, along a dimension of its own.
struct gathered {
    int count; // turns
    struct graph_value **turns;
};

// [a, b, ..] of equal shapes to one value with a new dimension `axis`. No turns: unknown shape.
static npu_status stack(struct onnx_node *n, const struct gathered *s, int axis, bool reverse,
                        struct graph_value **out) {
    if (!s->count) return npu_fail(UNSUPPORTED, "a scan output of no turns");
    int rank = s->turns[0]->rank + 1;
    if (rank > GRAPH_MAX_RANK) return npu_fail(UNSUPPORTED, "a scan output of rank %d", rank);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return npu_fail(BAD_INPUT, "scan output axis %d", axis);
    struct graph_value **parts = ARENA_ARRAY(n->m->arena, struct graph_value *, (size_t)s->count);
    for (int k = 0; k < s->count; k++) {
        struct graph_value *v = s->turns[reverse ? s->count - 1 - k : k];
        int64_t dims[GRAPH_MAX_RANK];
        if (v->rank != rank - 1) return npu_fail(BAD_INPUT, "a scan output of different ranks");
        for (int d = 0; d < rank; d++)
            dims[d] = d < axis ? v->dims[d] : d == axis ? 1 : v->dims[d - 1];
        NPU_TRY(onnx_reshape(n, v, rank, dims, &parts[k]));
    }
    return onnx_concat(n, s->count, parts, axis, out);
}

static npu_status known_flag(const struct graph_value *v, bool *out) {
    if (!v->data)
        return npu_fail(UNSUPPORTED, "the condition '%s' is computed at run time", v->name);
    if (graph_value_elems(v) != 1)
        return npu_fail(BAD_INPUT, "the condition '%s' is no scalar", v->name);
    *out = num_load_i64(v->dtype, v->data, 0) != 0;
    return NULL;
}

// Inputs: trip count (optional), condition (optional), carried values. The body takes turn number,
// condition, carried values and gives condition, carried values, scan outputs.
npu_status import_loop(struct onnx_node *n) {
    struct arena *a = n->m->arena;
    const Onnx__GraphProto *body;
    NPU_TRY(body_of(n, "body", &body));
    int carried = n->nin - 2, scans = n->nout - carried, count;
    if (carried < 0 || scans < 0 || n->nout > VALUES_MAX)
        return npu_fail(BAD_INPUT, "%d inputs and %d outputs", n->nin, n->nout);
    int64_t trips = INT64_MAX;
    bool go = true;
    if (onnx_given(n, 0)) NPU_TRY(onnx_const_ints(n, 0, &trips, 1, &count));
    if (onnx_given(n, 1)) NPU_TRY(known_flag(n->in[1], &go));
    struct graph_value **args = ARENA_ARRAY(a, struct graph_value *, (size_t)carried + 2);
    struct graph_value **results = ARENA_ARRAY(a, struct graph_value *, (size_t)n->nout + 1);
    struct gathered *scan = ARENA_ARRAY(a, struct gathered, (size_t)scans);
    for (int k = 0; k < scans; k++)
        scan[k].turns = ARENA_ARRAY(a, struct graph_value *, TURNS_MAX);
    for (int k = 0; k < carried; k++) {
        args[2 + k] = n->in[2 + k];
        if (!args[2 + k]) return npu_fail(BAD_INPUT, "input %d is missing", 2 + k);
    }
    for (int64_t turn = 0; turn < trips && go; turn++) {
        if (turn == TURNS_MAX) return npu_fail(UNSUPPORTED, "more than %d turns", TURNS_MAX);
        args[0] = onnx_new_ints(n, 0, NULL, &turn);
        args[1] = onnx_new_scalar(n, ISA_BOOL, 1);
        const char *prefix = arena_printf(a, "%s/%lld/", n->name, (long long)turn);
        NPU_TRY(onnx_call_graph(n, body, prefix, carried + 2, args, n->nout + 1, results));
        if (any_missing(results, n->nout + 1)) return all_missing(n);
        NPU_TRY(known_flag(results[0], &go));
        copy_values(args + 2, results + 1, carried);
        for (int k = 0; k < scans; k++)
            scan[k].turns[scan[k].count++] = results[1 + carried + k];
    }
    for (int k = 0; k < carried; k++)
        NPU_TRY(onnx_bind(n, k, args[2 + k]));
    for (int k = 0; k < scans; k++) {
        struct graph_value *y;
        if (!onnx_used(n, carried + k)) continue;
        NPU_TRY(stack(n, &scan[k], 0, false, &y));
        NPU_TRY(onnx_bind(n, carried + k, y));
    }
    return NULL;
}

// Element `at` of x along axis, without that dimension.
static npu_status slice_at(struct onnx_node *n, struct graph_value *x, int axis, int64_t at,
                           struct graph_value **out) {
    int64_t starts[GRAPH_MAX_RANK] = {0}, sizes[GRAPH_MAX_RANK], steps[GRAPH_MAX_RANK];
    int64_t dims[GRAPH_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < x->rank; d++) {
        steps[d] = 1;
        sizes[d] = d == axis ? 1 : x->dims[d];
        if (d != axis) dims[rank++] = x->dims[d];
    }
    starts[axis] = at;
    NPU_TRY(onnx_slice(n, x, starts, sizes, steps, out));
    return onnx_reshape(n, *out, rank, dims, out);
}

struct scan {
    int states, inputs, outputs;
    int64_t axes[VALUES_MAX], directions[VALUES_MAX], out_axes[VALUES_MAX], out_dirs[VALUES_MAX];
    int64_t turns;
};

static npu_status read_scan(struct onnx_node *n, struct scan *s) {
    int64_t inputs = onnx_int(n, "num_scan_inputs", 0);
    if (inputs < 1 || inputs > n->nin || n->nin > VALUES_MAX || n->nout > VALUES_MAX)
        return npu_fail(BAD_INPUT, "num_scan_inputs %lld of %d inputs", (long long)inputs, n->nin);
    NPU_TRY(onnx_need(n, n->nin, n->nin));
    s->inputs = (int)inputs;
    s->states = n->nin - s->inputs;
    s->outputs = n->nout - s->states;
    if (s->outputs < 0) return npu_fail(BAD_INPUT, "%d outputs for %d states", n->nout, s->states);
    onnx_ints_into(n, "scan_input_axes", s->axes, VALUES_MAX);
    onnx_ints_into(n, "scan_input_directions", s->directions, VALUES_MAX);
    onnx_ints_into(n, "scan_output_axes", s->out_axes, VALUES_MAX);
    onnx_ints_into(n, "scan_output_directions", s->out_dirs, VALUES_MAX);
    for (int k = 0; k < s->inputs; k++) {
        const struct graph_value *x = n->in[s->states + k];
        int axis;
        NPU_TRY(onnx_axis(n, s->axes[k], x->rank, &axis));
        s->axes[k] = axis;
        if (k && x->dims[axis] != s->turns)
            return npu_fail(BAD_INPUT, "'%s' has %lld slices, the first scan input %lld", x->name,
                            (long long)x->dims[axis], (long long)s->turns);
        s->turns = x->dims[axis];
    }
    if (s->turns > TURNS_MAX) return npu_fail(UNSUPPORTED, "more than %d turns", TURNS_MAX);
    return NULL;
}

npu_status import_scan(struct onnx_node *n) {
    struct arena *a = n->m->arena;
    const Onnx__GraphProto *body;
    struct scan *s = ARENA_NEW(a, struct scan);
    NPU_TRY(body_of(n, "body", &body));
    NPU_TRY(read_scan(n, s));
    struct graph_value **args = ARENA_ARRAY(a, struct graph_value *, (size_t)n->nin);
    struct graph_value **results = ARENA_ARRAY(a, struct graph_value *, (size_t)n->nout);
    struct gathered *out = ARENA_ARRAY(a, struct gathered, (size_t)s->outputs);
    for (int k = 0; k < s->outputs; k++)
        out[k].turns = ARENA_ARRAY(a, struct graph_value *, (size_t)s->turns);
    copy_values(args, n->in, s->states);
    for (int64_t turn = 0; turn < s->turns; turn++) {
        for (int k = 0; k < s->inputs; k++)
            NPU_TRY(slice_at(n, n->in[s->states + k], (int)s->axes[k],
                             s->directions[k] ? s->turns - 1 - turn : turn, &args[s->states + k]));
        const char *prefix = arena_printf(a, "%s/%lld/", n->name, (long long)turn);
        NPU_TRY(onnx_call_graph(n, body, prefix, n->nin, args, n->nout, results));
        if (any_missing(results, n->nout)) return all_missing(n);
        copy_values(args, results, s->states);
        for (int k = 0; k < s->outputs; k++)
            out[k].turns[out[k].count++] = results[s->states + k];
    }
    for (int k = 0; k < s->states; k++)
        NPU_TRY(onnx_bind(n, k, args[k]));
    for (int k = 0; k < s->outputs; k++) {
        struct graph_value *y;
        if (!onnx_used(n, s->states + k)) continue;
        NPU_TRY(stack(n, &out[k], (int)s->out_axes[k], s->out_dirs[k] != 0, &y));
        NPU_TRY(onnx_bind(n, s->states + k, y));
    }
    return NULL;
}
