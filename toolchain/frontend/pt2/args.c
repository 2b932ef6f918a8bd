// SPDX-License-Identifier: Apache-2.0
//
// Arguments of a node: tagged unions by name, or the row's default.

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/text.h"
#include "toolchain/frontend/pt2/import.h"

// An argument as it was found: tag "as_none" also stands for a default of None.
struct arg {
    const char *tag;
    const json_t *value;
    const char *text; // the row's default; then tag is NULL
};

static void wrong(struct pt2_node *n, const char *name, const char *found, const char *expected) {
    if (!n->failed)
        n->failed = npu_fail(BAD_INPUT, "argument '%s' is %s, expected %s", name, found, expected);
}

static struct arg find(struct pt2_node *n, const char *name) {
    struct arg a = {.tag = "as_none"};
    size_t count = json_array_size(n->inputs);
    for (size_t k = 0; k < count; k++) {
        const json_t *input = json_array_get(n->inputs, k);
        const char *own = json_string_value(json_object_get(input, "name"));
        if (!own || strcmp(own, name) != 0) continue;
        json_t *value;
        npu_status failed = schema_tag(json_object_get(input, "arg"), name, &a.tag, &value);
        a.value = value;
        if (!failed) return a;
        if (n->failed)
            npu_status_free(failed);
        else
            n->failed = failed;
        return (struct arg){.tag = "as_none"};
    }
    char text[64];
    const char *fallback = pt2_default(n->row, name, text, sizeof text);
    if (!fallback) {
        wrong(n, name, "missing", "a value");
    } else if (strcmp(fallback, "None") != 0) {
        a.tag = NULL;
        a.text = arena_strdup(n->m->arena, fallback);
    }
    return a;
}

static bool is(const struct arg *a, const char *tag) {
    return a->tag && !strcmp(a->tag, tag);
}

static const char *found(const struct arg *a) {
    return a->tag ? a->tag : a->text;
}

static struct pt2_name *look_up(struct pt2_node *n, const char *argument, const char *name) {
    struct pt2_name *v = name ? map_get(&n->s->names, name) : NULL;
    if (v) return v;
    if (!n->failed)
        n->failed = npu_fail(BAD_INPUT,
                             "argument '%s' is '%.100s', which is no input and no result of a node "
                             "before",
                             argument, name ? name : "(no name)");
    return NULL;
}

bool pt2_given(struct pt2_node *n, const char *name) {
    struct arg a = find(n, name);
    return !is(&a, "as_none");
}

// ---- tensors ---------------------------------------------------------------------------------

static struct graph_value *read_tensor(struct pt2_node *n, struct pt2_tensor *t) {
    struct graph_value *v;
    npu_status failed = tensor_read(&n->b, t, &v);
    if (!failed) return v;
    if (n->failed)
        npu_status_free(failed);
    else
        n->failed = failed;
    return t->v;
}

static struct graph_value *integer(struct pt2_node *n, int64_t v) {
    return build_new_ints(&n->b, 0, NULL, &v);
}

// A name: a tensor's value, or a scalar.
static struct graph_value *named_value(struct pt2_node *n, const char *argument, const char *name) {
    struct pt2_name *v = look_up(n, argument, name);
    if (!v) return NULL;
    if (v->tensor) return read_tensor(n, v->tensor);
    return v->is_int ? integer(n, (int64_t)v->number) : build_new_scalar(&n->b, ISA_F32, v->number);
}

// {"name": ..}, {"as_tensor": {"name": ..}} or {"as_none": true}
static struct graph_value *listed_value(struct pt2_node *n, const char *argument,
                                        const json_t *item) {
    if (json_object_get(item, "as_none")) return NULL;
    return named_value(n, argument, schema_name(item));
}

struct graph_value *pt2_in(struct pt2_node *n, const char *name) {
    struct arg a = find(n, name);
    double number;
    if (is(&a, "as_none")) return NULL;
    if (is(&a, "as_tensor")) return named_value(n, name, schema_name(a.value));
    if (is(&a, "as_optional_tensor")) return listed_value(n, name, a.value);
    if (is(&a, "as_int")) return integer(n, json_integer_value(a.value));
    if (is(&a, "as_bool")) return build_new_scalar(&n->b, ISA_BOOL, json_is_true(a.value));
    if (is(&a, "as_float") && schema_number(a.value, &number))
        return build_new_scalar(&n->b, ISA_F32, number);
    const json_t *symbol = json_object_get(a.value, "as_name");
    if (symbol) return named_value(n, name, json_string_value(symbol));
    if (is(&a, "as_sym_int"))
        return integer(n, json_integer_value(json_object_get(a.value, "as_int")));
    if (!a.tag) {
        int64_t i;
        if (text_parse_i64(a.text, &i)) return integer(n, i);
        if (text_parse_f64(a.text, &number)) return build_new_scalar(&n->b, ISA_F32, number);
    }
    wrong(n, name, found(&a), "a tensor or a number");
    return NULL;
}

struct graph_value *pt2_need(struct pt2_node *n, const char *name) {
    struct graph_value *v = pt2_in(n, name);
    if (v) return v;
    wrong(n, name, "None", "a tensor");
    return build_new_scalar(&n->b, ISA_F32, 0);
}

struct pt2_tensor *pt2_tensor(struct pt2_node *n, const char *name) {
    struct arg a = find(n, name);
    const char *own =
        is(&a, "as_tensor") || is(&a, "as_optional_tensor") ? schema_name(a.value) : NULL;
    struct pt2_name *v = own ? look_up(n, name, own) : NULL;
    return v ? v->tensor : NULL;
}

int pt2_tensors(struct pt2_node *n, const char *name, struct graph_value ***list) {
    struct arg a = find(n, name);
    bool items = is(&a, "as_tensors") || is(&a, "as_optional_tensors") ||
                 (is(&a, "as_ints") && !json_array_size(a.value));
    if (!items && !is(&a, "as_none")) wrong(n, name, found(&a), "a list of tensors");
    size_t count = items ? json_array_size(a.value) : 0;
    if (count > 1 << 16) count = 0;
    *list = ARENA_ARRAY(n->m->arena, struct graph_value *, count + 1);
    for (size_t k = 0; k < count; k++)
        (*list)[k] = listed_value(n, name, json_array_get(a.value, k));
    return (int)count;
}

struct pt2_tensor *pt2_listed(struct pt2_node *n, const char *name, size_t k) {
    struct arg a = find(n, name);
    const char *own = a.tag ? schema_name(json_array_get(a.value, k)) : NULL;
    struct pt2_name *v = own ? look_up(n, name, own) : NULL;
    return v ? v->tensor : NULL;
}

// ---- numbers ---------------------------------------------------------------------------------

// A number of any kind: as_int, as_float, {"as_name": ..}, {"as_int": ..}, a bare number.
static bool number_of(struct pt2_node *n, const char *argument, const json_t *value, double *out) {
    if (json_is_object(value)) {
        const json_t *inner = json_object_get(value, "as_name");
        if (inner) {
            struct pt2_name *v = look_up(n, argument, json_string_value(inner));
            if (!v) return false;
            *out = v->number;
            return !v->tensor;
        }
        inner = json_object_get(value, "as_int");
        if (!inner) inner = json_object_get(value, "as_float");
        if (!inner) inner = json_object_get(value, "as_bool");
        value = inner;
    }
    return schema_number(value, out);
}

double pt2_float(struct pt2_node *n, const char *name) {
    struct arg a = find(n, name);
    double v = 0;
    if (!a.tag) {
        if (text_parse_f64(a.text, &v)) return v;
        if (!strcmp(a.text, "True") || !strcmp(a.text, "False")) return *a.text == 'T';
    } else if (number_of(n, name, a.value, &v)) {
        return v;
    } else if (is(&a, "as_tensor")) { // a tensor where a number is enough: known ones are taken
        const struct graph_value *t = named_value(n, name, schema_name(a.value));
        if (t && t->data && graph_value_elems(t) == 1)
            return (double)num_load_f32(t->dtype, t->data, 0);
    }
    wrong(n, name, found(&a), "a number known at compile time");
    return 0;
}

int64_t pt2_int(struct pt2_node *n, const char *name) {
    struct arg a = find(n, name);
    if (is(&a, "as_int") && json_is_integer(a.value)) return json_integer_value(a.value);
    double v = pt2_float(n, name);
    if (v == floor(v) && fabs(v) < 9e15) return (int64_t)v;
    wrong(n, name, found(&a), "an integer");
    return 0;
}

bool pt2_bool(struct pt2_node *n, const char *name) {
    return pt2_float(n, name) != 0;
}

const char *pt2_string(struct pt2_node *n, const char *name) {
    struct arg a = find(n, name);
    if (is(&a, "as_none")) return NULL;
    if (!a.tag) return a.text;
    const char *text = json_string_value(a.value);
    if (text && is(&a, "as_string")) return arena_strdup(n->m->arena, text);
    wrong(n, name, found(&a), "a string");
    return NULL;
}

int pt2_floats(struct pt2_node *n, const char *name, double *items, int room) {
    struct arg a = find(n, name);
    if (is(&a, "as_none")) return -1;
    if (!a.tag || !json_is_array(a.value)) {
        items[0] = pt2_float(n, name);
        return 1;
    }
    size_t count = json_array_size(a.value);
    if (count > (size_t)room) {
        if (!n->failed)
            n->failed =
                npu_fail(BAD_INPUT, "argument '%s' has %zu items, at most %d", name, count, room);
        return -1;
    }
    for (size_t k = 0; k < count; k++)
        if (!number_of(n, name, json_array_get(a.value, k), &items[k])) {
            wrong(n, name, found(&a), "a list of numbers");
            return -1;
        }
    return (int)count;
}

int pt2_ints(struct pt2_node *n, const char *name, int64_t *items, int room) {
    double *wide = ARENA_ARRAY(n->m->arena, double, (size_t)room + 1);
    int count = pt2_floats(n, name, wide, room);
    for (int k = 0; k < count; k++) {
        bool fits = wide[k] == floor(wide[k]) && fabs(wide[k]) < 9.3e18;
        if (!fits) wrong(n, name, "a list with fractions", "integers");
        // 2^63 - 1, "to the end", is not a double
        items[k] = !fits ? 0 : wide[k] >= 9.2233720368547758e18 ? INT64_MAX : (int64_t)wide[k];
    }
    return count;
}

void pt2_repeated(struct pt2_node *n, const char *name, int count, int64_t otherwise,
                  int64_t *items) {
    int64_t list[GRAPH_MAX_RANK] = {0};
    int given = pt2_ints(n, name, list, GRAPH_MAX_RANK);
    if (given > 1 && given != count)
        wrong(n, name, "a list of another length", "one per dimension");
    for (int k = 0; k < count; k++)
        items[k] = given <= 0 ? otherwise : given == 1 ? list[0] : list[k];
}

enum isa_dtype pt2_dtype(struct pt2_node *n, const char *name, enum isa_dtype otherwise) {
    struct arg a = find(n, name);
    enum isa_dtype t = otherwise;
    if (is(&a, "as_none")) return otherwise;
    if (!is(&a, "as_scalar_type")) {
        wrong(n, name, found(&a), "a type");
        return otherwise;
    }
    npu_status failed = schema_dtype(json_integer_value(a.value), &t);
    if (failed && n->failed)
        npu_status_free(failed);
    else if (failed)
        n->failed = failed;
    return build_dtype(t);
}

// ---- dimensions ------------------------------------------------------------------------------

static int axis_of(struct pt2_node *n, const char *name, int64_t axis, int rank) {
    int span = rank ? rank : 1;
    int64_t a = axis < 0 ? axis + span : axis;
    if (a >= 0 && a < span) return (int)a;
    if (!n->failed)
        n->failed = npu_fail(BAD_INPUT,
                             "argument '%s' is %" PRId64 " for a tensor of rank %d, "
                             "expected %d to %d",
                             name, axis, rank, -span, span - 1);
    return 0;
}

int pt2_axis(struct pt2_node *n, const char *name, int rank) {
    return axis_of(n, name, pt2_int(n, name), rank);
}

int pt2_axes(struct pt2_node *n, const char *name, int rank, int64_t *sorted) {
    int64_t axes[GRAPH_MAX_RANK];
    int given = pt2_ints(n, name, axes, GRAPH_MAX_RANK), count = 0;
    unsigned mask = given > 0 ? 0 : (1u << rank) - 1;
    for (int k = 0; k < given; k++)
        mask |= 1u << axis_of(n, name, axes[k], rank);
    for (int d = 0; d < rank; d++)
        if (mask >> d & 1) sorted[count++] = d;
    return count;
}

// ---- higher-order operators ------------------------------------------------------------------

static const json_t *positional(struct pt2_node *n, size_t position) {
    return json_object_get(json_array_get(n->inputs, position), "arg");
}

const json_t *pt2_graph(struct pt2_node *n, size_t position) {
    const json_t *graph =
        json_object_get(json_object_get(positional(n, position), "as_graph"), "graph");
    if (!json_is_object(graph)) wrong(n, "graph", "not one", "a subgraph");
    return graph;
}

int pt2_operands(struct pt2_node *n, size_t position, struct graph_value ***list) {
    const char *tag;
    json_t *value;
    *list = NULL;
    if (position >= json_array_size(n->inputs)) return -1;
    npu_status failed = schema_tag(positional(n, position), "an operand", &tag, &value);
    if (failed) {
        npu_status_free(failed);
        return -1;
    }
    bool single = !json_is_array(value);
    size_t count = single ? 1 : json_array_size(value);
    if (count > 1 << 16) return -1;
    *list = ARENA_ARRAY(n->m->arena, struct graph_value *, count + 1);
    for (size_t k = 0; k < count; k++) {
        const json_t *item = single ? positional(n, position) : json_array_get(value, k);
        double number;
        if (schema_name(item))
            (*list)[k] = named_value(n, "operand", schema_name(item));
        else if (number_of(n, "operand", item, &number))
            (*list)[k] = number == floor(number) && fabs(number) < 9e15
                             ? integer(n, (int64_t)number)
                             : build_new_scalar(&n->b, ISA_F32, number);
        if (!(*list)[k]) wrong(n, "operand", "of another kind", "a tensor or a number");
    }
    return n->failed ? -1 : (int)count;
}

npu_status pt2_need_const(const struct graph_value *v, const char *name) {
    if (v->data) return NULL;
    if (v->is_input)
        return npu_fail(UNSUPPORTED,
                        "argument '%s' ('%s') must be known at compile time: bind it "
                        "with --const %s=FILE",
                        name, v->name, v->name);
    return npu_fail(UNSUPPORTED,
                    "argument '%s' ('%s') is computed at run time, expected a constant", name,
                    v->name);
}
