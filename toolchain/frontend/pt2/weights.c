// SPDX-License-Identifier: Apache-2.0
//
// Parameters, buffers and constants: an entry of the archive is one storage, a tensor is sizes,
// strides and an offset into it.
//
//   row-major            -> a constant that points into the map
//   rows in other order  -> that constant, transposed: nothing is copied
//   anything else        -> gathered into memory, repeated dimensions (stride 0) expanded
//
// Tensors of the same storage and layout are one constant (tied weights). A storage may be longer
// than what its tensors reach: torch saves it whole also when the model keeps a part of it (a slice
// of a buffer), and does not say who else it was for. Shorter than a tensor is a fault.

#include <inttypes.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/npy.h"
#include "toolchain/frontend/pt2/import.h"

enum { GATHERED_MAX_BYTES = 1 << 28 };

struct weight {
    struct importer *m;
    struct build b;
    struct tensor_meta meta;
    struct span storage; // of meta.dtype
    int64_t offset;      // of the storage in the file
    size_t elem_bytes;
};

// Dimensions in the order of their strides, largest first; those of size 1 keep their places.
static void storage_order(const struct tensor_meta *t, int64_t *order) {
    for (int d = 0; d < t->rank; d++) {
        int k = d;
        while (k > 0 && t->sizes[d] > 1 && t->strides[d] > t->strides[order[k - 1]]) {
            order[k] = order[k - 1];
            k--;
        }
        order[k] = d;
    }
}

static bool dense(const struct tensor_meta *t, const int64_t *order) {
    int64_t stride = 1;
    for (int k = t->rank - 1; k >= 0; k--) {
        int64_t d = order[k];
        if (t->sizes[d] != 1 && t->strides[d] != stride) return false;
        stride *= t->sizes[d];
    }
    return true;
}

static npu_status check_range(const struct weight *w) {
    const struct tensor_meta *t = &w->meta;
    uint64_t last = (uint64_t)t->offset, elems = w->storage.size / w->elem_bytes;
    bool empty = false;
    if (!t->known || t->offset < 0) return npu_fail(BAD_INPUT, "a stored tensor of open size");
    for (int d = 0; d < t->rank; d++) {
        if (t->strides[d] < 0) return npu_fail(BAD_INPUT, "strides[%d] is not a size", d);
        empty |= !t->sizes[d];
        if (t->sizes[d] > 1 && t->strides[d] > SYMBOL_LIMIT / (t->sizes[d] - 1))
            return npu_fail(BAD_INPUT, "strides[%d] is %" PRId64, d, t->strides[d]);
        if (t->sizes[d] > 1) last += (uint64_t)((t->sizes[d] - 1) * t->strides[d]);
    }
    if (empty || last < elems) return NULL;
    return npu_fail(BAD_INPUT, "its last element is number %" PRIu64 ", the storage has %" PRIu64,
                    last, elems);
}

// Elements as the graph takes them: f64 becomes f32, u64 becomes i64, truths 0 or 1. Where nothing
// changes they stay in the map.
static npu_status constant(struct weight *w, int64_t first, int rank, const int64_t *dims,
                           const char *name, struct graph_value **out) {
    enum isa_dtype file = w->meta.dtype, dtype = build_dtype(file);
    const uint8_t *data =
        w->storage.size ? w->storage.data + (size_t)first * w->elem_bytes : (const uint8_t *)"";
    struct arena *a = w->m->arena;
    size_t elems;
    if (!tensor_count(dims, rank, 8, &elems)) return npu_fail(BAD_INPUT, "the sizes are too large");
    size_t bytes = elems * w->elem_bytes;
    bool inside = true;
    if (file == ISA_BOOL)
        for (size_t k = 0; k < bytes; k++)
            inside &= data[k] <= 1;
    struct graph_value *v = graph_add_const(w->m->g, name, dtype, rank, dims, data);
    v->file_dtype = file;
    if (!elems) {
        v->data = arena_alloc(a, 1);
    } else if (file == ISA_F64) {
        float *narrow = ARENA_ARRAY(a, float, elems);
        num_convert(ISA_F32, narrow, ISA_F64, arena_copy(w->m->temp, data, bytes), elems);
        arena_reset(w->m->temp);
        v->data = narrow;
    } else if (inside && (uintptr_t)data % w->elem_bytes == 0) {
        v->data = data;
        if (w->offset >= 0) {
            v->source = w->m->archive.path;
            v->source_offset = w->offset + (int64_t)((size_t)first * w->elem_bytes);
        }
    } else {
        uint8_t *copy = arena_copy(a, data, bytes);
        for (size_t k = 0; !inside && k < bytes; k++)
            copy[k] = copy[k] != 0;
        v->data = copy;
    }
    *out = v;
    return NULL;
}

// Element by element into row-major order, dimensions of stride 0 once.
static npu_status gathered(struct weight *w, const char *name, struct graph_value **out) {
    const struct tensor_meta *t = &w->meta;
    int64_t dims[GRAPH_MAX_RANK], at[GRAPH_MAX_RANK] = {0};
    size_t elems;
    for (int d = 0; d < t->rank; d++)
        dims[d] = t->strides[d] ? t->sizes[d] : 1;
    if (!tensor_count(dims, t->rank, w->elem_bytes, &elems) ||
        elems * w->elem_bytes > GATHERED_MAX_BYTES)
        return npu_fail(UNSUPPORTED, "strides that need a copy of more than %d bytes",
                        GATHERED_MAX_BYTES);
    uint8_t *copy = arena_alloc(w->m->arena, elems * w->elem_bytes + 1);
    for (size_t k = 0; k < elems; k++) {
        int64_t from = t->offset;
        for (int d = 0; d < t->rank; d++)
            from += at[d] * t->strides[d];
        memcpy(copy + k * w->elem_bytes, w->storage.data + (size_t)from * w->elem_bytes,
               w->elem_bytes);
        for (int d = t->rank - 1; d >= 0 && ++at[d] == dims[d]; d--)
            at[d] = 0;
    }
    struct weight own = *w;
    own.storage = (struct span){copy, elems * w->elem_bytes};
    NPU_TRY(constant(&own, 0, t->rank, dims, name, out));
    (*out)->source = NULL;
    return build_expand(&w->b, *out, t->rank, t->sizes, out);
}

static npu_status make(struct weight *w, const char *name, struct graph_value **out) {
    const struct tensor_meta *t = &w->meta;
    int64_t order[GRAPH_MAX_RANK], dims[GRAPH_MAX_RANK], back[GRAPH_MAX_RANK];
    size_t elems;
    NPU_TRY(check_range(w));
    storage_order(t, order);
    if (!tensor_count(t->sizes, t->rank, 8, &elems))
        return npu_fail(BAD_INPUT, "the sizes are too large");
    if (elems && !dense(t, order)) return gathered(w, name, out);
    for (int k = 0; k < t->rank; k++) {
        dims[k] = t->sizes[order[k]];
        back[order[k]] = k;
    }
    if (!elems) return constant(w, 0, t->rank, t->sizes, name, out);
    NPU_TRY(constant(w, t->offset, t->rank, dims, name, out));
    return build_transpose(&w->b, *out, back, out);
}

static const char *layout_key(struct arena *a, const char *entry, const struct tensor_meta *t) {
    const char *key = arena_printf(a, "%s:%d:%" PRId64, entry, (int)t->dtype, t->offset);
    for (int d = 0; d < t->rank; d++)
        key = arena_printf(a, "%s:%" PRId64 "*%" PRId64, key, t->sizes[d], t->strides[d]);
    return key;
}

static npu_status load(struct importer *m, const char *list, const json_t *config, const char *name,
                       struct pt2_tensor **out) {
    json_t *path, *meta;
    struct weight w = {.m = m, .b = {m->g, m->arena, m->temp, name, name}};
    NPU_TRY(schema_need(config, "path_name", JSON_STRING, "its entry", &path));
    NPU_TRY(schema_need(config, "tensor_meta", JSON_OBJECT, "its entry", &meta));
    if (json_is_true(json_object_get(config, "use_pickle")))
        return npu_fail(UNSUPPORTED, "it is stored as a pickle");
    NPU_TRY(schema_meta(meta, &m->symbols, "its tensor_meta", &w.meta));
    const char *entry = arena_printf(m->arena, "data/%s/%s", list, json_string_value(path));
    const char *key = layout_key(m->arena, entry, &w.meta);
    struct pt2_tensor *same = map_get(&m->weights, key);
    if (same) {
        *out = same;
        return NULL;
    }
    NPU_TRY(archive_get(&m->archive, entry, &w.storage));
    w.offset = archive_offset(&m->archive, w.storage);
    w.elem_bytes = (size_t)isa_dtype_bits(w.meta.dtype) / 8;
    struct graph_value *v;
    NPU_TRY(make(&w, name, &v));
    *out = tensor_new(m->arena, v);
    (*out)->file = w.meta.dtype;
    map_put(&m->weights, key, *out);
    return NULL;
}

npu_status pt2_weight(struct importer *m, const char *list, const char *name,
                      struct pt2_tensor **out) {
    const json_t *document = !strcmp(list, "weights") ? m->schema.weights : m->schema.constants;
    const json_t *config = json_object_get(json_object_get(document, "config"), name);
    if (!config)
        return npu_fail(BAD_INPUT, "tensor '%s' is not in data/%s of the archive", name, list);
    return npu_note(load(m, list, config, name, out), "tensor '%s'", name);
}
