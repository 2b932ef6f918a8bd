// SPDX-License-Identifier: Apache-2.0
//
// Control flow becomes straight-line code: the branch of a cond (both and a selection when the
// condition is not known), the turns of a while_loop one after another while the condition is
// known.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/pt2/import.h"

enum { TURNS_MAX = 4096 };

static npu_status bind_all(struct pt2_node *n, struct graph_value **results) {
    for (int k = 0; k < n->nout; k++)
        NPU_TRY(pt2_bind(n, k, results[k]));
    return NULL;
}

// A condition that is not known: nothing in a graph has effects, so both branches are computed.
static npu_status selected(struct pt2_node *n, struct graph_value *condition,
                           struct graph_value **then, struct graph_value **otherwise) {
    NPU_TRY(build_reshape(&n->b, condition, 0, NULL, &condition));
    for (int k = 0; k < n->nout; k++) {
        struct graph_value *a = then[k], *b = otherwise[k];
        if (a->dtype != b->dtype || a->rank != b->rank ||
            memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0)
            return npu_fail(UNSUPPORTED,
                            "the condition '%s' is computed at run time, and result %d "
                            "has another shape or type in each branch",
                            condition->name, k);
        if (a == b) continue;
        NPU_TRY(build_map(&n->b, a->dtype, "sel in1 in2", NULL, 3,
                          (struct graph_value *[]){condition, a, b}, &then[k]));
    }
    return bind_all(n, then);
}

static npu_status known_flag(const struct graph_value *v, bool *out) {
    if (graph_value_elems(v) != 1)
        return npu_fail(BAD_INPUT, "the condition '%s' is no scalar", v->name);
    if (!v->data)
        return npu_fail(
            UNSUPPORTED,
            "the condition '%s' depends on the inputs, and the loop is unrolled when it "
            "is compiled; expected turns that can be counted without them",
            v->name);
    *out = isa_dtype_is_int(v->dtype) ? num_load_i64(v->dtype, v->data, 0) != 0
                                      : num_load_f32(v->dtype, v->data, 0) != 0;
    return NULL;
}

// Condition, true branch, false branch, operands of both.
npu_status aten_cond(struct pt2_node *n) {
    static const char *const names[2] = {"false", "true"};
    struct graph_value **condition, **args, **results[2];
    int nargs = pt2_operands(n, 3, &args);
    bool missing = false;
    if (pt2_operands(n, 0, &condition) != 1 || nargs < 0) {
        if (n->failed) return NULL;
        return npu_fail(BAD_INPUT, "expected a condition, two branches and operands");
    }
    if (graph_value_elems(condition[0]) != 1)
        return npu_fail(BAD_INPUT, "the condition '%s' is no scalar", condition[0]->name);
    for (int k = 0; k < 2; k++)
        results[k] = ARENA_ARRAY(n->m->arena, struct graph_value *, (size_t)n->nout + 1);
    for (int k = 0; k < 2; k++) {
        bool taken = true;
        if (condition[0]->data) NPU_TRY(known_flag(condition[0], &taken));
        if (condition[0]->data && taken != (k == 1)) continue;
        const json_t *body = pt2_graph(n, k ? 1 : 2);
        const char *prefix = arena_printf(n->m->arena, "%s/%s/", n->b.label, names[k]);
        NPU_TRY(pt2_call_graph(n, body, prefix, nargs, args, n->nout, results[k], &missing));
        if (n->failed) return NULL;
        if (missing) return pt2_all_missing(n);
        if (condition[0]->data) return bind_all(n, results[k]);
    }
    return selected(n, condition[0], results[1], results[0]);
}

// Condition graph, body graph, carried values, further operands of both.
npu_status aten_while_loop(struct pt2_node *n) {
    struct graph_value **carried, **more, **args, **results, *go;
    int ncarried = pt2_operands(n, 2, &carried), nmore = pt2_operands(n, 3, &more);
    const json_t *test = pt2_graph(n, 0), *body = pt2_graph(n, 1);
    bool missing = false, again;
    if (n->failed) return NULL;
    if (nmore < 0) nmore = 0;
    if (ncarried < 1 || ncarried != n->nout)
        return npu_fail(BAD_INPUT, "%d carried values and %d results", ncarried, n->nout);
    args = ARENA_ARRAY(n->m->arena, struct graph_value *, (size_t)(ncarried + nmore));
    results = ARENA_ARRAY(n->m->arena, struct graph_value *, (size_t)ncarried);
    for (int k = 0; k < ncarried + nmore; k++)
        args[k] = k < ncarried ? carried[k] : more[k - ncarried];
    for (int turn = 0;; turn++) {
        const char *prefix = arena_printf(n->m->arena, "%s/%d/", n->b.label, turn);
        if (turn > TURNS_MAX)
            return npu_fail(UNSUPPORTED, "more than %d turns, which are unrolled", TURNS_MAX);
        NPU_TRY(pt2_call_graph(n, test, prefix, ncarried + nmore, args, 1, &go, &missing));
        if (missing) return pt2_all_missing(n);
        NPU_TRY(known_flag(go, &again));
        if (!again) break;
        prefix = arena_printf(n->m->arena, "%s/%d/body/", n->b.label, turn);
        NPU_TRY(
            pt2_call_graph(n, body, prefix, ncarried + nmore, args, ncarried, results, &missing));
        if (missing) return pt2_all_missing(n);
        memcpy(args, results, (size_t)ncarried * sizeof *args);
    }
    return bind_all(n, args);
}

// no_grad() and autocast(): settings, the body, its operands one by one.
npu_status aten_wrapped(struct pt2_node *n) {
    size_t count = json_array_size(n->inputs), at = 0;
    bool missing = false;
    while (at < count &&
           !json_object_get(json_object_get(json_array_get(n->inputs, at), "arg"), "as_graph"))
        at++;
    if (at == count) return npu_fail(BAD_INPUT, "no body");
    if (count - at > 1 << 16 || n->nout < 1) return npu_fail(BAD_INPUT, "too many operands");
    int nargs = (int)(count - at) - 1;
    struct pt2_tensor **args = ARENA_ARRAY(n->m->arena, struct pt2_tensor *, (size_t)nargs + 1);
    struct pt2_tensor **results = ARENA_ARRAY(n->m->arena, struct pt2_tensor *, (size_t)n->nout);
    for (int k = 0; k < nargs; k++) {
        struct graph_value **one;
        const json_t *operand =
            json_object_get(json_array_get(n->inputs, at + 1 + (size_t)k), "arg");
        const char *name = schema_name(operand);
        const struct pt2_name *known = name ? map_get(&n->s->names, name) : NULL;
        if (pt2_operands(n, at + 1 + (size_t)k, &one) != 1) {
            if (n->failed) return NULL;
            return npu_fail(BAD_INPUT, "operand %d is no tensor", k);
        }
        args[k] = known && known->tensor ? known->tensor : tensor_new(n->m->arena, one[0]);
    }
    const char *prefix = arena_printf(n->m->arena, "%s/", n->b.label);
    NPU_TRY(pt2_call_shared(n, pt2_graph(n, at), prefix, nargs, args, n->nout, results, &missing));
    if (n->failed) return NULL;
    if (missing) return pt2_all_missing(n);
    for (int k = 0; k < n->nout; k++)
        NPU_TRY(pt2_bind_inner(n, k, results[k]));
    return NULL;
}
