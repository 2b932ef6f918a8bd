// SPDX-License-Identifier: Apache-2.0
//
// Model files: map, walk (wire.c), unpack with protobuf-c into the arena.

#define _XOPEN_SOURCE 700

#include "toolchain/frontend/onnx/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "toolchain/frontend/onnx/onnx.h"
#include "toolchain/frontend/onnx/wire.h"

static void *arena_take(void *arena, size_t size) {
    return arena_alloc(arena, size);
}

static void arena_keep(void *arena, void *block) {
    (void)arena;
    (void)block;
}

static ProtobufCAllocator allocator_of(struct arena *a) {
    return (ProtobufCAllocator){.alloc = arena_take, .free = arena_keep, .allocator_data = a};
}

static npu_status unpack(struct reader *r) {
    struct span slim = {0};
    NPU_TRY(wire_slim(r->bytes, WIRE_MODEL, &slim));
    ProtobufCAllocator allocator = allocator_of(r->arena);
    r->model = onnx__model_proto__unpack(&allocator, slim.size, slim.data);
    base_free((void *)slim.data);
    if (!r->model) return npu_fail(BAD_INPUT, "not a valid ONNX model: a field has the wrong type");
    if (!r->model->graph) return npu_fail(BAD_INPUT, "the model has no graph");
    return NULL;
}

npu_status reader_bytes(struct reader *r, struct span bytes, struct arena *arena) {
    *r = (struct reader){.arena = arena, .bytes = bytes};
    map_init(&r->externals, arena);
    return unpack(r);
}

npu_status reader_open(struct reader *r, const char *path, struct span bytes, struct arena *arena) {
    *r = (struct reader){.arena = arena, .path = arena_strdup(arena, path), .bytes = bytes};
    map_init(&r->externals, arena);
    const char *slash = strrchr(path, '/');
    const char *folder = slash ? arena_strndup(arena, path, (size_t)(slash - path) + 1) : ".";
    errno = 0;
    char *real = realpath(folder, NULL);
    if (!real && errno == ENOMEM) return npu_fail(NO_MEMORY, "reading '%s'", path);
    if (real) {
        r->folder = arena_strdup(arena, real);
        free(real);
    }
    return npu_note(unpack(r), "reading '%s'", path);
}

Onnx__AttributeProto *reader_attribute(struct reader *r, size_t size, const uint8_t *bytes) {
    ProtobufCAllocator allocator = allocator_of(r->arena);
    return onnx__attribute_proto__unpack(&allocator, size, bytes);
}

bool onnx_probe(struct span bytes) {
    static const struct {
        uint32_t field;
        int type;
    } fields[] = {{1, 0}, {2, 2}, {3, 2},  {4, 2},  {5, 0},  {6, 2},
                  {7, 2}, {8, 2}, {14, 2}, {20, 2}, {25, 2}, {26, 2}};
    size_t at = 0;
    bool typical = false; // a version, an opset or a graph was seen
    while (at < bytes.size) {
        uint64_t tag, value;
        size_t start = at;
        if (!wire_varint(bytes, &at, &tag)) return typical;
        bool known = false;
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
            known |= tag == ((uint64_t)fields[k].field << 3 | (uint64_t)fields[k].type);
        if (!known) return false;
        uint32_t field;
        int type;
        at = start;
        if (!wire_next(bytes, &at, &field, &type,
                       &value)) // truncated: still a model, the reader says where
            return typical || field == 7 || field == 8;
        if (field == 1 && value > 1000) return false;
        typical |= field == 1 || field == 7 || field == 8;
        if (type == 2) at += (size_t)value;
    }
    return typical;
}

npu_status onnx_tensor_parse(struct arena *arena, struct span bytes, struct tensor_data *out,
                             const char **name) {
    struct reader r = {.arena = arena, .bytes = bytes};
    map_init(&r.externals, arena);
    struct span slim = {0};
    NPU_TRY(wire_slim(bytes, WIRE_TENSOR, &slim));
    ProtobufCAllocator allocator = allocator_of(arena);
    Onnx__TensorProto *p = onnx__tensor_proto__unpack(&allocator, slim.size, slim.data);
    base_free((void *)slim.data);
    if (!p) return npu_fail(BAD_INPUT, "not a valid ONNX tensor: a field has the wrong type");
    struct onnx_tensor t;
    NPU_TRY(reader_tensor(&r, p, &t));
    *out = (struct tensor_data){.dtype = t.dtype, .rank = t.rank, .data = t.data};
    int64_t elems = 1;
    for (int d = 0; d < t.rank; d++)
        elems *= out->dims[d] = t.dims[d];
    out->size_bytes = (size_t)((elems * isa_dtype_bits(t.dtype) + 7) / 8);
    if (name) *name = p->name ? p->name : "";
    return NULL;
}
