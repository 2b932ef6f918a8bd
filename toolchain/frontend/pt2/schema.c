// SPDX-License-Identifier: Apache-2.0
//
// JSON of an archive (jansson), checked as far as it is read: every member that is used must be
// there and of its type, messages say in which document and where in it.

#include "toolchain/frontend/pt2/schema.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SCHEMA_MAJOR = 8, DOCUMENT_MAX_BYTES = 256 << 20 };

// ---- documents -------------------------------------------------------------------------------

static npu_status parse(struct schema *s, const char *name, json_t **out) {
    struct span text;
    NPU_TRY(archive_get_below(s->archive, name, DOCUMENT_MAX_BYTES, &text));
    json_error_t error;
    *out = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, &error);
    if (*out) return NULL;
    if (json_error_code(&error) == json_error_out_of_memory)
        return npu_fail(NO_MEMORY, "parsing %s", name);
    return npu_fail(BAD_INPUT, "%s: byte %d: %s", name, error.position, error.text);
}

// The model's name: "models/NAME.json", of which there is one.
static npu_status model_name(struct schema *s, const char **out) {
    const struct map *m = &s->archive->entries;
    *out = NULL;
    for (size_t k = 0; k < m->len; k++) {
        const char *name = m->entries[k].key;
        size_t length = strlen(name);
        if (strncmp(name, "models/", 7) != 0 || length < 13 ||
            strcmp(name + length - 5, ".json") != 0 || strchr(name + 7, '/'))
            continue;
        if (*out)
            return npu_fail(UNSUPPORTED, "models '%s' and '%.*s' in one archive, expected one",
                            *out, (int)(length - 12), name + 7);
        *out = arena_strndup(s->arena, name + 7, length - 12);
    }
    if (!*out)
        return npu_fail(BAD_INPUT, "the archive has no entry '%s/models/NAME.json'",
                        s->archive->root);
    return NULL;
}

static npu_status check_version(const struct schema *s) {
    json_t *version, *major;
    NPU_TRY(schema_need(s->model, "schema_version", JSON_OBJECT, "the model", &version));
    NPU_TRY(schema_need(version, "major", JSON_INTEGER, "schema_version", &major));
    if (json_integer_value(major) == SCHEMA_MAJOR) return NULL;
    return npu_fail(UNSUPPORTED,
                    "schema version %" JSON_INTEGER_FORMAT ", expected %d (torch 2.8 "
                    "to 2.13)",
                    json_integer_value(major), SCHEMA_MAJOR);
}

static npu_status tensor_list(struct schema *s, const char *model, const char *what, json_t **out) {
    const char *name = arena_printf(s->arena, "data/%s/%s_%s_config.json", what, model, what);
    *out = NULL;
    if (!map_get(&s->archive->entries, name)) return NULL;
    return parse(s, name, out);
}

npu_status schema_open(struct schema *s, struct archive *archive, struct arena *arena) {
    const char *name;
    json_t *module, *part;
    *s = (struct schema){.arena = arena, .archive = archive};
    NPU_TRY(model_name(s, &name));
    NPU_TRY(parse(s, arena_printf(arena, "models/%s.json", name), &s->model));
    NPU_TRY(check_version(s));
    NPU_TRY(tensor_list(s, name, "weights", &s->weights));
    NPU_TRY(tensor_list(s, name, "constants", &s->constants));
    NPU_TRY(schema_need(s->model, "graph_module", JSON_OBJECT, "the model", &module));
    NPU_TRY(schema_need(module, "graph", JSON_OBJECT, "graph_module", &part));
    s->graph = part;
    NPU_TRY(schema_need(module, "signature", JSON_OBJECT, "graph_module", &part));
    s->signature = part;
    s->ranges = json_object_get(s->model, "range_constraints");
    return NULL;
}

void schema_close(struct schema *s) {
    json_decref(s->model);
    json_decref(s->weights);
    json_decref(s->constants);
    s->model = s->weights = s->constants = NULL;
}

// ---- members ---------------------------------------------------------------------------------

static const char *type_name(json_type t) {
    static const char *const names[] = {"an object", "a list",  "a string", "an integer",
                                        "a number",  "a truth", "a truth",  "nothing"};
    return names[t];
}

npu_status schema_need(const json_t *object, const char *key, json_type type, const char *where,
                       json_t **out) {
    *out = json_object_get(object, key);
    if (!*out) return npu_fail(BAD_INPUT, "%s has no member '%s'", where, key);
    if (json_typeof(*out) == type) return NULL;
    return npu_fail(BAD_INPUT, "member '%s' of %s is %s, expected %s", key, where,
                    type_name(json_typeof(*out)), type_name(type));
}

npu_status schema_tag(const json_t *object, const char *where, const char **tag, json_t **value) {
    void *only = json_is_object(object) ? json_object_iter((json_t *)object) : NULL;
    if (!only || json_object_size(object) != 1)
        return npu_fail(BAD_INPUT, "%s: expected an object with one member as_..", where);
    *tag = json_object_iter_key(only);
    *value = json_object_iter_value(only);
    return NULL;
}

const char *schema_name(const json_t *argument) {
    const json_t *inner = json_object_get(argument, "as_tensor");
    return json_string_value(json_object_get(inner ? inner : argument, "name"));
}

bool schema_number(const json_t *value, double *out) {
    const char *text = json_string_value(value);
    if (text) {
        bool minus = *text == '-';
        if (!strcmp(text + minus, "Infinity"))
            *out = minus ? -HUGE_VAL : HUGE_VAL;
        else if (!strcmp(text, "NaN"))
            *out = (double)NAN;
        else
            return false;
        return true;
    }
    if (!json_is_number(value) && !json_is_boolean(value)) return false;
    *out = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
    return true;
}

// ---- tensors ---------------------------------------------------------------------------------

static const struct {
    const char *name;
    enum isa_dtype dtype; // NONE: there is nothing like it here
} types[] = {
    [1] = {"uint8", ISA_U8},
    [2] = {"int8", ISA_I8},
    [3] = {"int16", ISA_I16},
    [4] = {"int32", ISA_I32},
    [5] = {"int64", ISA_I64},
    [6] = {"float16", ISA_F16},
    [7] = {"float32", ISA_F32},
    [8] = {"float64", ISA_F64},
    [9] = {"complex32", ISA_DTYPE_NONE},
    [10] = {"complex64", ISA_DTYPE_NONE},
    [11] = {"complex128", ISA_DTYPE_NONE},
    [12] = {"bool", ISA_BOOL},
    [13] = {"bfloat16", ISA_BF16},
    [28] = {"uint16", ISA_U16},
    [29] = {"float8_e4m3fn", ISA_F8E4M3},
    [30] = {"float8_e5m2", ISA_F8E5M2},
    [31] = {"float8_e4m3fnuz", ISA_DTYPE_NONE},
    [32] = {"float8_e5m2fnuz", ISA_DTYPE_NONE},
    [33] = {"float8_e8m0fnu", ISA_DTYPE_NONE},
    [34] = {"uint32", ISA_U32},
    [35] = {"uint64", ISA_U64},
};
enum { TYPES = sizeof types / sizeof *types };

npu_status schema_dtype(int64_t number, enum isa_dtype *out) {
    if (number < 1 || number >= TYPES || !types[number].name)
        return npu_fail(BAD_INPUT, "unknown element type number %" PRId64, number);
    if (types[number].dtype == ISA_DTYPE_NONE)
        return npu_fail(UNSUPPORTED, "element type %s is not supported", types[number].name);
    *out = types[number].dtype;
    return NULL;
}

npu_status schema_size(const json_t *value, const struct symbols *s, const char *where,
                       int64_t *out) {
    const char *tag, *text;
    json_t *inner;
    NPU_TRY(schema_tag(value, where, &tag, &inner));
    if (!strcmp(tag, "as_int") && json_is_integer(inner)) {
        *out = json_integer_value(inner);
        if (*out >= 0 && *out <= SYMBOL_LIMIT) return NULL;
        return npu_fail(BAD_INPUT, "%s: a size of %" PRId64, where, *out);
    }
    text = json_string_value(json_object_get(inner, "expr_str"));
    if (strcmp(tag, "as_expr") != 0 || !text)
        return npu_fail(BAD_INPUT, "%s: expected as_int or as_expr, found %s", where, tag);
    switch (symbol_eval(s, text, out)) {
    case SYMBOL_KNOWN:
        if (*out >= 0) return NULL;
        return npu_fail(BAD_INPUT, "%s: size '%.100s' is %" PRId64, where, text, *out);
    case SYMBOL_OPEN: *out = -1; return NULL;
    case SYMBOL_STRANGE: break;
    }
    return npu_fail(UNSUPPORTED, "%s: size '%.100s' is not understood", where, text);
}

static npu_status sizes(const json_t *meta, const char *key, const struct symbols *s,
                        const char *where, int64_t *out, int *count) {
    json_t *list;
    NPU_TRY(schema_need(meta, key, JSON_ARRAY, where, &list));
    if (json_array_size(list) > GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "%s has %zu dimensions, at most %d", where,
                        json_array_size(list), GRAPH_MAX_RANK);
    *count = (int)json_array_size(list);
    for (int d = 0; d < *count; d++)
        NPU_TRY(schema_size(json_array_get(list, (size_t)d), s, where, &out[d]));
    return NULL;
}

// Strides of computed tensors may be expressions that nobody needs.
static void strides(const json_t *meta, const struct symbols *s, struct tensor_meta *out) {
    const json_t *list = json_object_get(meta, "strides");
    for (int d = 0; d < out->rank; d++) {
        out->strides[d] = -1;
        npu_status odd = schema_size(json_array_get(list, (size_t)d), s, "", &out->strides[d]);
        if (odd) out->strides[d] = -1;
        npu_status_free(odd);
    }
}

npu_status schema_meta(const json_t *meta, const struct symbols *s, const char *where,
                       struct tensor_meta *out) {
    json_t *part;
    *out = (struct tensor_meta){.known = true};
    NPU_TRY(schema_need(meta, "dtype", JSON_INTEGER, where, &part));
    NPU_TRY_NOTE(schema_dtype(json_integer_value(part), &out->dtype), "%s", where);
    NPU_TRY(sizes(meta, "sizes", s, where, out->sizes, &out->rank));
    for (int d = 0; d < out->rank; d++)
        out->known &= out->sizes[d] >= 0;
    strides(meta, s, out);
    part = json_object_get(meta, "storage_offset");
    if (part) NPU_TRY(schema_size(part, s, where, &out->offset));
    part = json_object_get(meta, "layout");
    if (part && json_integer_value(part) != 7)
        return npu_fail(UNSUPPORTED, "%s has layout %" JSON_INTEGER_FORMAT ", expected 7 (strided)",
                        where, json_integer_value(part));
    return NULL;
}
