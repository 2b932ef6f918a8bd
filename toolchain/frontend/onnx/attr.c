// SPDX-License-Identifier: Apache-2.0
//
// Attributes and inputs as importers read them. A getter that meets the wrong type notes it in
// n->failed and gives the default; the driver looks there after the importer returned.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/frontend/onnx/import.h"

// ---- attributes ------------------------------------------------------------------------------

// A function's default for an attribute: field 11 of FunctionProto, which the packaged schema keeps
// as an unknown field.
static const Onnx__AttributeProto *default_of(struct onnx_node *n, const Onnx__FunctionProto *f,
                                              const char *name) {
    for (unsigned k = 0; k < f->base.n_unknown_fields; k++) {
        const ProtobufCMessageUnknownField *u = &f->base.unknown_fields[k];
        if (u->tag != 11 || u->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) continue;
        // The bytes start with the length, as they stood in the message (a 5-byte varint from
        // wire.c).
        size_t at = 0;
        while (at < u->len && u->data[at] & 128)
            at++;
        if (at++ >= u->len) continue;
        const Onnx__AttributeProto *a = reader_attribute(n->m->r, u->len - at, u->data + at);
        if (a && a->name && !strcmp(a->name, name)) return a;
    }
    return NULL;
}

static const Onnx__AttributeProto *find(struct onnx_node *n, const char *name) {
    for (size_t k = 0; k < n->p->n_attribute; k++) {
        const Onnx__AttributeProto *a = n->p->attribute[k];
        if (!a->name || strcmp(a->name, name) != 0) continue;
        if (!a->ref_attr_name || !*a->ref_attr_name) return a;
        // Inside a function: the calling node's attribute of that name, or the function's default.
        const struct scope *s = n->s;
        while (s && !s->call)
            s = s->outer;
        if (!s) return NULL;
        const Onnx__AttributeProto *given = find(s->call, a->ref_attr_name);
        return given ? given : default_of(n, s->function, a->ref_attr_name);
    }
    return NULL;
}

const Onnx__AttributeProto *onnx_attr(struct onnx_node *n, const char *name) {
    return find(n, name);
}

bool onnx_has(struct onnx_node *n, const char *name) {
    return find(n, name) != NULL;
}

static void wrong_type(struct onnx_node *n, const char *name, const char *expected) {
    if (!n->failed)
        n->failed =
            npu_fail(BAD_INPUT, "attribute %s has the wrong type, expected %s", name, expected);
}

int64_t onnx_int(struct onnx_node *n, const char *name, int64_t otherwise) {
    const Onnx__AttributeProto *a = find(n, name);
    if (!a) return otherwise;
    if (a->has_i) return a->i;
    if (a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT)
        wrong_type(n, name, "an integer");
    return a->has_type && !n->failed ? 0 : otherwise; // proto2 writers may leave a zero out
}

double onnx_float(struct onnx_node *n, const char *name, double otherwise) {
    const Onnx__AttributeProto *a = find(n, name);
    if (!a) return otherwise;
    if (a->has_f) return (double)a->f;
    if (a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT)
        wrong_type(n, name, "a float");
    return a->has_type && !n->failed ? 0 : otherwise;
}

const char *onnx_string(struct onnx_node *n, const char *name, const char *otherwise) {
    const Onnx__AttributeProto *a = find(n, name);
    if (!a) return otherwise;
    if (a->has_s)
        return arena_strndup(n->m->arena, a->s.data ? (const char *)a->s.data : "", a->s.len);
    wrong_type(n, name, "a string");
    return otherwise;
}

int onnx_ints(struct onnx_node *n, const char *name, const int64_t **items) {
    const Onnx__AttributeProto *a = find(n, name);
    *items = NULL;
    if (!a) return -1;
    if (a->n_ints > 1 << 24 ||
        (!a->n_ints && a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS)) {
        wrong_type(n, name, "integers");
        return -1;
    }
    *items = a->ints;
    return (int)a->n_ints;
}

int onnx_ints_into(struct onnx_node *n, const char *name, int64_t *items, int room) {
    const int64_t *list;
    int count = onnx_ints(n, name, &list);
    if (count > room) {
        if (!n->failed)
            n->failed =
                npu_fail(BAD_INPUT, "attribute %s has %d items, at most %d", name, count, room);
        return -1;
    }
    if (count > 0) memcpy(items, list, (size_t)count * sizeof *items);
    return count;
}

// ---- inputs ----------------------------------------------------------------------------------

bool onnx_given(const struct onnx_node *n, int k) {
    return k < n->nin && n->in[k];
}

bool onnx_used(const struct onnx_node *n, int k) {
    return k < n->nout && n->p->output[k][0];
}

npu_status onnx_need(struct onnx_node *n, int least, int most) {
    if (n->nin > most) return npu_fail(BAD_INPUT, "%d inputs, at most %d", n->nin, most);
    for (int k = 0; k < least; k++)
        if (!onnx_given(n, k)) return npu_fail(BAD_INPUT, "input %d is missing", k);
    return NULL;
}

npu_status onnx_need_const(struct onnx_node *n, int k) {
    const struct graph_value *v = n->in[k];
    if (v->data) return NULL;
    if (v->is_input)
        return npu_fail(
            UNSUPPORTED,
            "input %d ('%s') must be known at compile time: bind it with --const %s=FILE", k,
            v->name, v->name);
    return npu_fail(UNSUPPORTED, "input %d ('%s') is computed at run time, expected a constant", k,
                    v->name);
}

// A constant of at most one dimension and `room` elements.
static npu_status const_list(struct onnx_node *n, int k, int room, int *count) {
    const struct graph_value *v = n->in[k];
    NPU_TRY(onnx_need_const(n, k));
    int64_t elems = graph_value_elems(v);
    if (v->rank > 1 || elems > room)
        return npu_fail(
            BAD_INPUT,
            "input %d ('%s') has %lld elements in %d dimensions, expected a list of at most %d", k,
            v->name, (long long)elems, v->rank, room);
    *count = (int)elems;
    return NULL;
}

npu_status onnx_const_ints(struct onnx_node *n, int k, int64_t *items, int room, int *count) {
    const struct graph_value *v = n->in[k];
    if (!isa_dtype_is_int(v->dtype))
        return npu_fail(BAD_INPUT, "input %d ('%s') is %s, expected integers", k, v->name,
                        isa_dtype_name(v->dtype));
    NPU_TRY(const_list(n, k, room, count));
    num_read_i64(v->dtype, v->data, 0, 1, items, (size_t)*count);
    return NULL;
}

npu_status onnx_const_floats(struct onnx_node *n, int k, float *items, int room, int *count) {
    const struct graph_value *v = n->in[k];
    NPU_TRY(const_list(n, k, room, count));
    num_read_f32(v->dtype, v->data, 0, 1, items, (size_t)*count);
    return NULL;
}

bool onnx_all_zero(const struct graph_value *v) {
    bool zeros = !v || v->data != NULL;
    for (int64_t k = 0; v && zeros && k < graph_value_elems(v); k++)
        zeros = num_load_f32(v->dtype, v->data, k) == 0.0f;
    return zeros;
}

npu_status onnx_axis(struct onnx_node *n, int64_t axis, int rank, int *out) {
    (void)n;
    int64_t a = axis < 0 ? axis + rank : axis;
    if (a < 0 || a >= rank)
        return npu_fail(BAD_INPUT, "axis %lld of a tensor of rank %d, expected %d to %d",
                        (long long)axis, rank, -rank, rank - 1);
    *out = (int)a;
    return NULL;
}

npu_status onnx_axes(struct onnx_node *n, const int64_t *axes, int count, int rank, int64_t *sorted,
                     unsigned *mask) {
    *mask = 0;
    for (int k = 0; k < count; k++) {
        int axis;
        NPU_TRY(onnx_axis(n, axes[k], rank, &axis));
        if (*mask & 1u << axis) return npu_fail(BAD_INPUT, "axis %d stands twice", axis);
        *mask |= 1u << axis;
    }
    for (int d = 0, k = 0; d < rank; d++)
        if (*mask & 1u << d) sorted[k++] = d;
    return NULL;
}
