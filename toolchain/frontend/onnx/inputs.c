// SPDX-License-Identifier: Apache-2.0
//
// Shapes of inputs. A named dimension gets its size from --dim, or from the first --shape or
// --const of an input that has it; every later mention must agree. What no option fixes is gathered
// and reported at once, and so are options that name nothing.

#include "toolchain/frontend/onnx/inputs.h"

#include <inttypes.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/text.h"

struct named_dim {
    const char *name;
    int64_t size; // -1: open
    const char *from;
    bool given; // by --dim
};

struct inputs {
    struct importer *m;
    struct scope *s;
    struct map dims; // name -> struct named_dim *
    struct diag open, usage;
    bool *shape_used, *const_used;
};

// "?" and the empty name are no names: exporters write them for any unknown size.
static const char *dim_name(const Onnx__TensorShapeProto__Dimension *d) {
    if (d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM || !d->dim_param)
        return NULL;
    return *d->dim_param && strcmp(d->dim_param, "?") != 0 ? d->dim_param : NULL;
}

// The size in the file, -1 when it is open.
static int64_t dim_size(const Onnx__TensorShapeProto__Dimension *d) {
    if (d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) return -1;
    return d->dim_value < 0 ? -1 : d->dim_value;
}

static const Onnx__TypeProto__Tensor *tensor_type(const Onnx__ValueInfoProto *p) {
    const Onnx__TypeProto *t = p->type;
    return t && t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? t->tensor_type : NULL;
}

static const struct import_shape *shape_option(struct inputs *in, const char *name) {
    const struct import_options *o = in->m->options;
    const struct import_shape *found = NULL;
    for (int k = 0; k < o->nshape; k++) {
        if (strcmp(o->shapes[k].name, name) != 0) continue;
        in->shape_used[k] = true;
        if (found) diag_fail(&in->usage, USAGE, "--shape %s stands twice", name);
        found = &o->shapes[k];
    }
    return found;
}

static const struct import_const *const_option(struct inputs *in, const char *name) {
    const struct import_options *o = in->m->options;
    const struct import_const *found = NULL;
    for (int k = 0; k < o->nconst; k++) {
        if (strcmp(o->consts[k].name, name) != 0) continue;
        in->const_used[k] = true;
        if (found) diag_fail(&in->usage, USAGE, "--const %s stands twice", name);
        found = &o->consts[k];
    }
    return found;
}

// ---- first walk: sizes of named dimensions ---------------------------------------------------

static void settle_dim(struct inputs *in, const char *name, int64_t size, const char *from) {
    struct named_dim *d = map_get(&in->dims, name);
    if (!d) {
        d = ARENA_NEW(in->m->arena, struct named_dim);
        *d = (struct named_dim){name, -1, NULL, false};
        map_put(&in->dims, name, d);
    }
    if (size < 0) return;
    if (d->size >= 0 && d->size != size)
        diag_fail(&in->usage, USAGE, "dimension '%s' is %" PRId64 " by %s and %" PRId64 " by %s",
                  name, d->size, d->from, size, from);
    d->size = size;
    d->from = from;
}

// What an option says about an input, against what the file says.
static void apply_option(struct inputs *in, const Onnx__ValueInfoProto *p, const char *flag,
                         int rank, const int64_t *dims) {
    const Onnx__TypeProto__Tensor *t = tensor_type(p);
    const char *from = arena_printf(in->m->arena, "%s %s", flag, p->name);
    if (!t || !t->shape) return;
    if ((size_t)rank != t->shape->n_dim) {
        diag_fail(&in->usage, USAGE, "%s has %d dimensions, the model's input has %zu", from, rank,
                  t->shape->n_dim);
        return;
    }
    for (int d = 0; d < rank; d++) {
        const Onnx__TensorShapeProto__Dimension *dim = t->shape->dim[d];
        int64_t fixed = dim_size(dim);
        if (fixed > 0 && fixed != dims[d])
            diag_fail(&in->usage, USAGE,
                      "%s gives dimension %d as %" PRId64 ", the model fixes it to %" PRId64, from,
                      d, dims[d], fixed);
        if (dim_name(dim)) settle_dim(in, dim_name(dim), dims[d], from);
    }
}

static void collect_dims(struct inputs *in, const Onnx__ValueInfoProto *p) {
    const Onnx__TypeProto__Tensor *t = tensor_type(p);
    for (size_t d = 0; t && t->shape && d < t->shape->n_dim; d++)
        if (dim_name(t->shape->dim[d])) settle_dim(in, dim_name(t->shape->dim[d]), -1, NULL);
    const struct import_shape *shape = shape_option(in, p->name);
    if (shape) apply_option(in, p, "--shape", shape->rank, shape->dims);
    const struct import_const *bound = const_option(in, p->name);
    if (bound) apply_option(in, p, "--const", bound->value.rank, bound->value.dims);
    if (shape && bound)
        diag_fail(&in->usage, USAGE, "input '%s' has both --shape and --const", p->name);
}

static void apply_dim_options(struct inputs *in) {
    const struct import_options *o = in->m->options;
    for (int k = 0; k < o->ndim; k++) {
        struct named_dim *d = map_get(&in->dims, o->dims[k].name);
        if (!d) {
            const char **names = ARENA_ARRAY(in->m->arena, const char *, in->dims.len);
            for (size_t i = 0; i < in->dims.len; i++)
                names[i] = in->dims.entries[i].key;
            const char *near = text_did_you_mean(o->dims[k].name, names, in->dims.len);
            diag_fail(&in->usage, USAGE, "--dim %s names no dimension of the model's inputs%s%s%s",
                      o->dims[k].name, near ? " (did you mean '" : "", near ? near : "",
                      near ? "'?)" : "");
            continue;
        }
        if (d->given) diag_fail(&in->usage, USAGE, "--dim %s stands twice", d->name);
        d->given = true;
        settle_dim(in, d->name, o->dims[k].size, "--dim");
    }
}

// ---- second walk: values ---------------------------------------------------------------------

// Example for a message: the dimensions with the open ones as placeholders.
static const char *shape_example(struct arena *a, const Onnx__TypeProto__Tensor *t) {
    const char *text = "";
    for (size_t d = 0; t->shape && d < t->shape->n_dim; d++) {
        int64_t size = dim_size(t->shape->dim[d]);
        text = size >= 0 ? arena_printf(a, "%s%s%" PRId64, text, d ? "," : "", size)
                         : arena_printf(a, "%s%sN", text, d ? "," : "");
    }
    return *text ? text : "N,...";
}

static npu_status input_shape(struct inputs *in, const Onnx__ValueInfoProto *p, int *rank,
                              int64_t *dims) {
    const Onnx__TypeProto__Tensor *t = tensor_type(p);
    const struct import_shape *shape = NULL;
    for (int k = 0; k < in->m->options->nshape; k++)
        if (!strcmp(in->m->options->shapes[k].name, p->name)) shape = &in->m->options->shapes[k];
    if (shape) {
        *rank = shape->rank;
        memcpy(dims, shape->dims, sizeof shape->dims);
        return NULL;
    }
    if (!t->shape) {
        diag_fail(&in->open, BAD_INPUT, "input '%s' has no shape: fix it with --shape %s=N,...",
                  p->name, p->name);
        return NULL;
    }
    if (t->shape->n_dim > GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "input '%s' has %zu dimensions, at most %d", p->name,
                        t->shape->n_dim, GRAPH_MAX_RANK);
    *rank = (int)t->shape->n_dim;
    for (int d = 0; d < *rank; d++) {
        const char *name = dim_name(t->shape->dim[d]);
        const struct named_dim *named = name ? map_get(&in->dims, name) : NULL;
        dims[d] = named ? named->size : dim_size(t->shape->dim[d]);
        if (dims[d] >= 0) continue;
        dims[d] = 1;
        if (name)
            diag_fail(&in->open, BAD_INPUT,
                      "dimension %d of input '%s' is open ('%s'): fix it with --dim %s=N or "
                      "--shape %s=%s",
                      d, p->name, name, name, p->name, shape_example(in->m->arena, t));
        else
            diag_fail(&in->open, BAD_INPUT,
                      "dimension %d of input '%s' is open: fix it with --shape %s=%s", d, p->name,
                      p->name, shape_example(in->m->arena, t));
    }
    return NULL;
}

static npu_status check_elems(const char *name, int rank, const int64_t *dims) {
    size_t elems;
    for (int d = 0; d < rank; d++)
        if (dims[d] < 0)
            return npu_fail(USAGE, "input '%s': dimension %d is %" PRId64, name, d, dims[d]);
    if (!tensor_count(dims, rank, 1 << 20, &elems))
        return npu_fail(UNSUPPORTED, "input '%s' is too large", name);
    return NULL;
}

static npu_status bind_constant(struct inputs *in, const Onnx__ValueInfoProto *p,
                                const struct import_const *bound, enum isa_dtype file_dtype) {
    struct importer *m = in->m;
    const struct tensor_data *t = &bound->value;
    enum isa_dtype dtype = onnx_graph_dtype(file_dtype);
    if (t->dtype != file_dtype && t->dtype != dtype)
        return npu_fail(USAGE, "--const %s is %s, the model's input is %s", p->name,
                        isa_dtype_name(t->dtype), isa_dtype_name(file_dtype));
    NPU_TRY(check_elems(p->name, t->rank, t->dims));
    const void *data = t->data;
    int64_t elems = 1;
    for (int d = 0; d < t->rank; d++)
        elems *= t->dims[d];
    if (t->dtype != dtype) {
        void *converted = arena_alloc(m->arena, (size_t)elems * 8);
        num_convert(dtype, converted, t->dtype, t->data, (size_t)elems);
        data = converted;
    }
    if (!elems) data = arena_alloc(m->arena, 1);
    struct graph_value *v = graph_add_const(m->g, p->name, dtype, t->rank, t->dims, data);
    v->file_dtype = file_dtype;
    map_put(&in->s->values, p->name, v);
    return NULL;
}

static npu_status import_input(struct inputs *in, const Onnx__ValueInfoProto *p) {
    struct importer *m = in->m;
    const Onnx__TypeProto__Tensor *t = tensor_type(p);
    if (!t)
        return npu_fail(
            UNSUPPORTED,
            "input '%s' is not a tensor (sequence, map, optional and sparse are not supported)",
            p->name);
    enum isa_dtype file_dtype;
    NPU_TRY_NOTE(onnx_dtype(t->has_elem_type ? t->elem_type : 0, &file_dtype), "input '%s'",
                 p->name);
    for (int k = 0; k < m->options->nconst; k++)
        if (!strcmp(m->options->consts[k].name, p->name))
            return bind_constant(in, p, &m->options->consts[k], file_dtype);
    int rank = 0;
    int64_t dims[GRAPH_MAX_RANK] = {0};
    NPU_TRY(input_shape(in, p, &rank, dims));
    NPU_TRY(check_elems(p->name, rank, dims));
    struct graph_value *v =
        graph_add_value(m->g, p->name, onnx_graph_dtype(file_dtype), rank, dims);
    v->file_dtype = file_dtype;
    graph_add_input(m->g, v);
    map_put(&in->s->values, p->name, v);
    return NULL;
}

static void unused_options(struct inputs *in) {
    const struct import_options *o = in->m->options;
    for (int k = 0; k < o->nshape; k++)
        if (!in->shape_used[k])
            diag_fail(&in->usage, USAGE, "--shape %s names no input of the model",
                      o->shapes[k].name);
    for (int k = 0; k < o->nconst; k++)
        if (!in->const_used[k])
            diag_fail(&in->usage, USAGE, "--const %s names no input of the model",
                      o->consts[k].name);
}

static npu_status walk(struct inputs *in) {
    const Onnx__GraphProto *p = in->m->r->model->graph;
    struct map seen;
    map_init(&seen, in->m->arena);
    for (size_t k = 0; k < p->n_input; k++) {
        if (!p->input[k]->name || !*p->input[k]->name)
            return npu_fail(BAD_INPUT, "input %zu has no name", k);
        if (map_put(&seen, p->input[k]->name, p->input[k]))
            return npu_fail(BAD_INPUT, "input '%s' stands twice", p->input[k]->name);
        if (!map_get(&in->s->values, p->input[k]->name)) collect_dims(in, p->input[k]);
    }
    apply_dim_options(in);
    unused_options(in);
    NPU_TRY(diag_finish(&in->usage));
    for (size_t k = 0; k < p->n_input; k++)
        if (!map_get(&in->s->values, p->input[k]->name)) NPU_TRY(import_input(in, p->input[k]));
    return diag_finish(&in->open);
}

npu_status inputs_import(struct importer *m, struct scope *s) {
    struct inputs in = {.m = m, .s = s};
    map_init(&in.dims, m->arena);
    in.shape_used = ARENA_ARRAY(m->arena, bool, (size_t)m->options->nshape);
    in.const_used = ARENA_ARRAY(m->arena, bool, (size_t)m->options->nconst);
    npu_status failed = walk(&in);
    // When something else failed first, what was gathered is not lost.
    failed = npu_status_join(failed, diag_finish(&in.usage));
    return npu_status_join(failed, diag_finish(&in.open));
}
