// SPDX-License-Identifier: Apache-2.0
//
// TensorProto to elements. The data of a tensor is in one of: raw_data, the typed field of its
// type, an external file; large data is found through the places that wire.c left in doc_string. It
// must be exactly as much as the dimensions say.

#define _XOPEN_SOURCE 700

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/npy.h"
#include "runtime/base/text.h"
#include "toolchain/frontend/onnx/reader.h"
#include "toolchain/frontend/onnx/wire.h"

// ---- types -----------------------------------------------------------------------------------

static const struct {
    const char *name;
    enum isa_dtype dtype; // NONE: there is nothing like it here
    int field;            // where typed data of this type stands
} types[] = {
    [1] = {"float", ISA_F32, 4},
    [2] = {"uint8", ISA_U8, 5},
    [3] = {"int8", ISA_I8, 5},
    [4] = {"uint16", ISA_U16, 5},
    [5] = {"int16", ISA_I16, 5},
    [6] = {"int32", ISA_I32, 5},
    [7] = {"int64", ISA_I64, 7},
    [8] = {"string", ISA_DTYPE_NONE, 6},
    [9] = {"bool", ISA_BOOL, 5},
    [10] = {"float16", ISA_F16, 5},
    [11] = {"double", ISA_F64, 10},
    [12] = {"uint32", ISA_U32, 11},
    [13] = {"uint64", ISA_U64, 11},
    [14] = {"complex64", ISA_DTYPE_NONE, 4},
    [15] = {"complex128", ISA_DTYPE_NONE, 10},
    [16] = {"bfloat16", ISA_BF16, 5},
    [17] = {"float8e4m3fn", ISA_F8E4M3, 5},
    [18] = {"float8e4m3fnuz", ISA_DTYPE_NONE, 5},
    [19] = {"float8e5m2", ISA_F8E5M2, 5},
    [20] = {"float8e5m2fnuz", ISA_DTYPE_NONE, 5},
    [21] = {"uint4", ISA_U4, 5},
    [22] = {"int4", ISA_I4, 5},
    [23] = {"float4e2m1", ISA_DTYPE_NONE, 5},
    [24] = {"float8e8m0", ISA_DTYPE_NONE, 5},
};
enum { TYPES = sizeof types / sizeof *types };

npu_status onnx_dtype(int64_t number, enum isa_dtype *out) {
    if (number < 1 || number >= TYPES)
        return npu_fail(BAD_INPUT, "unknown element type number %" PRId64, number);
    if (types[number].dtype == ISA_DTYPE_NONE)
        return npu_fail(UNSUPPORTED, "element type %s is not supported", types[number].name);
    *out = types[number].dtype;
    return NULL;
}

enum isa_dtype onnx_graph_dtype(enum isa_dtype file) {
    return file == ISA_F64 ? ISA_F32 : file == ISA_U64 ? ISA_I64 : file;
}

// ---- where the data is -----------------------------------------------------------------------

struct place {
    int field; // TensorProto's field number, 9: raw
    struct span bytes;
    const char *source;
    int64_t offset;
};

enum { PLACES = 32 };

// Parses what wire.c wrote: "FIELD:OFFSET:BYTES;...".
static int read_places(const struct reader *r, const char *text, struct place out[PLACES]) {
    int n = 0;
    while (*text && n < PLACES) {
        char *end;
        unsigned long long field = strtoull(text, &end, 10), offset = strtoull(end + 1, &end, 10);
        unsigned long long bytes = strtoull(end + 1, &end, 10);
        NPU_ASSERT(offset <= r->bytes.size && bytes <= r->bytes.size - offset && *end == ';');
        struct span where = {r->bytes.data + offset, (size_t)bytes};
        out[n++] = (struct place){(int)field, where, r->path, (int64_t)offset};
        text = end + 1;
    }
    return n;
}

static bool entry_number(const Onnx__StringStringEntryProto *e, uint64_t *out) {
    return e->value && text_parse_u64(e->value, out);
}

// Maps folder/location once. The real path must stay inside the model's folder.
static npu_status map_external(struct reader *r, const char *location, struct span *out,
                               const char **real_path) {
    if (!r->folder)
        return npu_fail(UNSUPPORTED, "external data '%s' of a model that is not in a file",
                        location);
    if (*location == '/' || !strcmp(location, "..") || !strncmp(location, "../", 3) ||
        strstr(location, "/../"))
        return npu_fail(BAD_INPUT, "external data '%s' is outside the model's folder", location);
    char *real = realpath(arena_printf(r->arena, "%s/%s", r->folder, location), NULL);
    if (!real && errno == ENOMEM) return npu_fail(NO_MEMORY, "external data '%s'", location);
    if (!real) return npu_fail(BAD_INPUT, "external data file '%s' is not there", location);
    char *path = arena_strdup(r->arena, real);
    free(real);
    size_t folder = strlen(r->folder);
    if (strncmp(path, r->folder, folder) != 0 ||
        (path[folder] != '/' && strcmp(r->folder, "/") != 0))
        return npu_fail(BAD_INPUT, "external data '%s' leads outside the model's folder, to '%s'",
                        location, path);
    struct span *mapped = map_get(&r->externals, path);
    if (!mapped) {
        mapped = ARENA_NEW(r->arena, struct span);
        NPU_TRY_NOTE(file_map_in(r->arena, path, mapped), "external data '%s'", location);
        map_put(&r->externals, path, mapped);
    }
    *out = *mapped;
    *real_path = path;
    return NULL;
}

static npu_status external_place(struct reader *r, const Onnx__TensorProto *p, uint64_t wanted,
                                 struct place *out) {
    const char *location = NULL;
    uint64_t offset = 0, length = wanted;
    for (size_t k = 0; k < p->n_external_data; k++) {
        const Onnx__StringStringEntryProto *e = p->external_data[k];
        const char *key = e->key ? e->key : "";
        bool ok = true;
        if (!strcmp(key, "location"))
            location = e->value;
        else if (!strcmp(key, "offset"))
            ok = entry_number(e, &offset);
        else if (!strcmp(key, "length"))
            ok = entry_number(e, &length);
        if (!ok)
            return npu_fail(BAD_INPUT, "external data: %s is '%s', expected a number", key,
                            e->value ? e->value : "");
    }
    if (!location || !*location) return npu_fail(BAD_INPUT, "external data without a location");
    struct span file = {0};
    const char *path;
    NPU_TRY(map_external(r, location, &file, &path));
    if (offset > file.size || length > file.size - offset)
        return npu_fail(BAD_INPUT,
                        "external data '%s' has %zu bytes, %" PRIu64 " at %" PRIu64 " are needed",
                        location, file.size, length, offset);
    *out = (struct place){9, {file.data + offset, (size_t)length}, path, (int64_t)offset};
    return NULL;
}

// ---- elements --------------------------------------------------------------------------------

// The one field that holds data, and how many pieces of it are elsewhere. 0: none.
static npu_status choose_field(const Onnx__TensorProto *p, const struct place *places, int nplaces,
                               int *field) {
    const struct {
        int field;
        bool present;
    } inline_data[] = {{4, p->n_float_data > 0},
                       {5, p->n_int32_data > 0},
                       {6, p->n_string_data > 0},
                       {7, p->n_int64_data > 0},
                       {9, p->has_raw_data && p->raw_data.len > 0},
                       {10, p->n_double_data > 0},
                       {11, p->n_uint64_data > 0}};
    int found = 0, count = 0;
    for (size_t k = 0; k < sizeof inline_data / sizeof *inline_data; k++)
        if (inline_data[k].present) found = inline_data[k].field, count++;
    for (int k = 0; k < nplaces; k++) {
        if (k && places[k].field == 9) return npu_fail(BAD_INPUT, "raw_data stands twice");
        if (!k || places[k].field != places[0].field) found = places[k].field, count++;
    }
    if (count > 1)
        return npu_fail(BAD_INPUT,
                        "the data is in %d fields, expected one of raw_data and typed data", count);
    *field = found;
    return NULL;
}

// Stores item number `at` of typed data.
static void put_item(enum isa_dtype t, uint8_t *out, size_t at, uint64_t item) {
    int bits = isa_dtype_bits(t);
    if (t == ISA_BOOL) item = item != 0;
    if (bits >= 8)
        memcpy(out + at * (size_t)bits / 8, &item, (size_t)bits / 8);
    else
        out[at] = (uint8_t)item; // 4-bit types come packed, a byte an item
}

// Items of typed data, in order: those beyond `room` are only counted.
struct items {
    enum isa_dtype dtype;
    uint8_t *out;
    size_t room, count;
};

static void take(struct items *to, uint64_t item) {
    if (to->count < to->room) put_item(to->dtype, to->out, to->count, item);
    to->count++;
}

static void take_inline(struct items *to, const Onnx__TensorProto *p, int field) {
    for (size_t k = 0; field == 4 && k < p->n_float_data; k++)
        take(to, num_bits(p->float_data[k]));
    for (size_t k = 0; field == 5 && k < p->n_int32_data; k++)
        take(to, (uint64_t)(int64_t)p->int32_data[k]);
    for (size_t k = 0; field == 7 && k < p->n_int64_data; k++)
        take(to, (uint64_t)p->int64_data[k]);
    for (size_t k = 0; field == 10 && k < p->n_double_data; k++)
        take(to, num_bits64(p->double_data[k]));
    for (size_t k = 0; field == 11 && k < p->n_uint64_data; k++)
        take(to, p->uint64_data[k]);
}

static npu_status take_place(struct items *to, const struct place *place) {
    struct span b = place->bytes;
    size_t at = 0, width = place->field == 4 ? 4 : place->field == 10 ? 8 : 0;
    while (at < b.size) {
        uint64_t item = 0;
        if (width && b.size - at >= width) {
            memcpy(&item, b.data + at, width);
            at += width;
        } else if (width || !wire_varint(b, &at, &item)) {
            return npu_fail(BAD_INPUT, "byte %" PRId64 ": damaged tensor data",
                            place->offset + (int64_t)at);
        }
        take(to, item);
    }
    return NULL;
}

static npu_status typed_items(const Onnx__TensorProto *p, int field, const struct place *places,
                              int nplaces, struct items *to) {
    take_inline(to, p, field);
    for (int k = 0; k < nplaces; k++)
        NPU_TRY(take_place(to, &places[k]));
    return NULL;
}

static npu_status from_typed(struct reader *r, const Onnx__TensorProto *p, int field,
                             const struct place *places, int nplaces, size_t elems,
                             struct onnx_tensor *out) {
    enum isa_dtype t = out->file_dtype;
    int expected = types[p->data_type].field;
    if (field != expected)
        return npu_fail(BAD_INPUT, "data of type %s in field %d, expected raw_data or field %d",
                        types[p->data_type].name, field, expected);
    size_t items = isa_dtype_bits(t) < 8 ? (elems + 1) / 2 : elems;
    // What is there is counted before memory for what should be there is taken.
    struct items counted = {.dtype = t};
    NPU_TRY(typed_items(p, field, places, nplaces, &counted));
    if (counted.count != items)
        return npu_fail(BAD_INPUT, "%zu items of data, the dimensions need %zu", counted.count,
                        items);
    size_t bits = (size_t)isa_dtype_bits(t);
    struct items stored = {t, arena_alloc(r->arena, items * (bits < 8 ? 8 : bits) / 8), items, 0};
    out->data = stored.out;
    return typed_items(p, field, places, nplaces, &stored);
}

// Raw little-endian data: borrowed when nothing has to change. Small data is aligned for its type.
static npu_status from_raw(struct reader *r, const struct place *place, size_t bytes,
                           struct onnx_tensor *out) {
    if (place->bytes.size != bytes)
        return npu_fail(BAD_INPUT, "%zu bytes of data, the dimensions need %zu", place->bytes.size,
                        bytes);
    size_t align = (size_t)(isa_dtype_bits(out->file_dtype) + 7) / 8;
    bool clean = true;
    if (out->file_dtype == ISA_BOOL)
        for (size_t k = 0; k < bytes; k++)
            clean &= place->bytes.data[k] <= 1;
    if (clean && (bytes > GRAPH_ALIGNED_BYTES || (uintptr_t)place->bytes.data % align == 0)) {
        out->data = place->bytes.data;
        out->source = place->source;
        out->source_offset = place->offset;
        return NULL;
    }
    uint8_t *copy = arena_copy(r->arena, place->bytes.data, bytes);
    for (size_t k = 0; !clean && k < bytes; k++)
        copy[k] = copy[k] != 0;
    out->data = copy;
    return NULL;
}

// f64 to f32, u64 to i64: the graph does not compute in those.
static npu_status to_graph_type(struct reader *r, size_t elems, struct onnx_tensor *t) {
    t->dtype = onnx_graph_dtype(t->file_dtype);
    if (t->dtype == t->file_dtype) return NULL;
    if (t->file_dtype == ISA_U64) {
        for (size_t k = 0; k < elems; k++) {
            uint64_t v;
            memcpy(&v, (const uint8_t *)t->data + k * sizeof v, sizeof v);
            if (v > INT64_MAX)
                return npu_fail(UNSUPPORTED, "element %zu is %" PRIu64 ", at most 2^63 - 1", k, v);
        }
        return NULL; // the same bits
    }
    float *narrow = ARENA_ARRAY(r->arena, float, elems);
    num_convert(t->dtype, narrow, t->file_dtype, t->data, elems);
    t->data = narrow;
    t->source = NULL;
    return NULL;
}

static npu_status read_dims(const Onnx__TensorProto *p, struct onnx_tensor *out, size_t *elems) {
    if (p->n_dims > GRAPH_MAX_RANK)
        return npu_fail(UNSUPPORTED, "%zu dimensions, at most %d", p->n_dims, GRAPH_MAX_RANK);
    out->rank = (int)p->n_dims;
    for (int d = 0; d < out->rank; d++) {
        out->dims[d] = p->dims[d];
        if (p->dims[d] < 0) return npu_fail(BAD_INPUT, "dimension %d is %" PRId64, d, p->dims[d]);
    }
    if (!tensor_count(out->dims, out->rank, 8, elems))
        return npu_fail(BAD_INPUT, "the dimensions are too large");
    return NULL;
}

static npu_status load(struct reader *r, const Onnx__TensorProto *p, struct onnx_tensor *out) {
    size_t elems;
    *out = (struct onnx_tensor){.dtype = ISA_DTYPE_NONE};
    NPU_TRY(onnx_dtype(p->has_data_type ? p->data_type : 0, &out->file_dtype));
    NPU_TRY(read_dims(p, out, &elems));
    if (p->segment) return npu_fail(UNSUPPORTED, "a tensor in segments");
    size_t bytes = (elems * (size_t)isa_dtype_bits(out->file_dtype) + 7) / 8;
    struct place places[PLACES];
    int nplaces = 0, field = 0;
    if (p->has_data_location && p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
        NPU_TRY(external_place(r, p, bytes, &places[0]));
        nplaces = 1;
    } else if (p->doc_string) {
        nplaces = read_places(r, p->doc_string, places);
    }
    NPU_TRY(choose_field(p, places, nplaces, &field));
    if (!elems && !field) {
        out->data = arena_alloc(r->arena, 1);
    } else if (!field) {
        return npu_fail(BAD_INPUT, "no data, the dimensions need %zu bytes", bytes);
    } else if (field == 9) {
        struct place own = {9, {p->raw_data.data, p->raw_data.len}, NULL, 0};
        NPU_TRY(from_raw(r, nplaces ? &places[0] : &own, bytes, out));
    } else {
        NPU_TRY(from_typed(r, p, field, places, nplaces, elems, out));
    }
    return to_graph_type(r, elems, out);
}

npu_status reader_tensor(struct reader *r, const Onnx__TensorProto *p, struct onnx_tensor *out) {
    return npu_note(load(r, p, out), "tensor '%s'", p->name ? p->name : "");
}
