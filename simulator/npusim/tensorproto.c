// SPDX-License-Identifier: Apache-2.0
// ONNX TensorProto: the wire format is walked by hand, every length checked against what is left.
// Elements lie in raw_data, or in one of the typed fields, packed or one by one:
//     1 dims (int64)  2 data_type  4 float_data  5 int32_data  7 int64_data  9 raw_data  10
//     double_data  11 uint64_data 14 data_location (1: external)
#include "simulator/npusim/tensorproto.h"

#include <inttypes.h>
#include <string.h>

enum { TYPES = 24 };

// data_type numbers of ONNX; NONE: not taken.
static const enum isa_dtype dtype_of[TYPES] = {
    [1] = ISA_F32,  [2] = ISA_U8,   [3] = ISA_I8,    [4] = ISA_U16,     [5] = ISA_I16,
    [6] = ISA_I32,  [7] = ISA_I64,  [9] = ISA_BOOL,  [10] = ISA_F16,    [11] = ISA_F64,
    [12] = ISA_U32, [13] = ISA_U64, [16] = ISA_BF16, [17] = ISA_F8E4M3, [19] = ISA_F8E5M2,
    [21] = ISA_U4,  [22] = ISA_I4,
};

struct reader {
    const uint8_t *at, *end;
};

static bool varint(struct reader *r, uint64_t *out) {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (r->at == r->end) return false;
        const uint8_t b = *r->at++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            *out = v;
            return true;
        }
    }
    return false;
}

static bool fixed(struct reader *r, int bytes, uint64_t *out) {
    if (r->end - r->at < bytes) return false;
    *out = 0;
    for (int i = bytes; i-- > 0;)
        *out = *out << 8 | r->at[i];
    r->at += bytes;
    return true;
}

// One value of a field: number for wire types 0, 1, 5; bytes for 2.
struct field {
    uint32_t number;
    int wire;
    uint64_t value;
    struct reader bytes;
};

static bool next_field(struct reader *r, struct field *f) {
    uint64_t key, length;
    if (!varint(r, &key) || key >> 3 == 0 || key >> 3 > 536870911) return false;
    *f = (struct field){.number = (uint32_t)(key >> 3), .wire = (int)(key & 7)};
    switch (f->wire) {
    case 0: return varint(r, &f->value);
    case 1: return fixed(r, 8, &f->value);
    case 5: return fixed(r, 4, &f->value);
    case 2:
        if (!varint(r, &length) || length > (uint64_t)(r->end - r->at)) return false;
        f->bytes = (struct reader){r->at, r->at + length};
        r->at += length;
        return true;
    default: return false;
    }
}

struct proto {
    int64_t dims[TENSOR_RANK_MAX];
    int rank;
    uint64_t data_type;
    bool external, has_raw, too_deep;
    struct reader raw;
    uint64_t values; // in typed fields
};

// Calls take for every value of a repeated numeric field, packed or single.
static bool each_value(const struct field *f, void (*take)(void *, uint64_t), void *ctx) {
    if (f->wire != 2) {
        take(ctx, f->value);
        return true;
    }
    struct reader r = f->bytes;
    while (r.at < r.end) {
        uint64_t v;
        const bool ok = f->number == 4    ? fixed(&r, 4, &v)
                        : f->number == 10 ? fixed(&r, 8, &v)
                                          : varint(&r, &v);
        if (!ok) return false;
        take(ctx, v);
    }
    return true;
}

static void take_dim(void *ctx, uint64_t v) {
    struct proto *p = ctx;
    if (p->rank == TENSOR_RANK_MAX)
        p->too_deep = true;
    else
        p->dims[p->rank++] = (int64_t)v;
}

static void count_value(void *ctx, uint64_t v) {
    struct proto *p = ctx;
    (void)v;
    p->values++;
}

static bool is_values(uint32_t number) {
    return number == 4 || number == 5 || number == 7 || number == 10 || number == 11;
}

static bool scan(struct reader r, struct proto *p) {
    struct field f;
    while (r.at < r.end) {
        if (!next_field(&r, &f)) return false;
        if (f.number == 1 && !each_value(&f, take_dim, p)) return false;
        if (f.number == 2 && f.wire == 0) p->data_type = f.value;
        if (f.number == 14 && f.wire == 0) p->external = f.value == 1;
        if (f.number == 9 && f.wire == 2) {
            p->raw = f.bytes;
            p->has_raw = true;
        }
        if (is_values(f.number) && !each_value(&f, count_value, p)) return false;
    }
    return true;
}

// Stores typed values one after the other, cut to the element; 4-bit ones two to a byte, low nibble
// first.
struct store {
    uint8_t *out;
    size_t elem_bytes;
    uint64_t n, limit;
};

static void store_value(void *ctx, uint64_t v) {
    struct store *s = ctx;
    if (s->n >= s->limit) return;
    if (s->elem_bytes == 0) s->out[s->n / 2] |= (uint8_t)((v & 15) << (s->n % 2 * 4));
    for (size_t i = 0; i < s->elem_bytes; i++)
        s->out[s->n * s->elem_bytes + i] = (uint8_t)(v >> (8 * i));
    s->n++;
}

npu_status tensorproto_parse(struct arena *a, struct span bytes, struct tensor_data *out) {
    struct proto p = {0};
    const struct reader all = {bytes.data, bytes.data + bytes.size};
    if (!scan(all, &p))
        return npu_fail(BAD_INPUT,
                        "no ONNX TensorProto: the fields do not fit the file's %zu bytes",
                        bytes.size);
    if (p.too_deep) return npu_fail(UNSUPPORTED, "more than %d dimensions", TENSOR_RANK_MAX);
    if (p.external) return npu_fail(UNSUPPORTED, "the tensor's data lie in another file");
    const enum isa_dtype dtype = p.data_type < TYPES ? dtype_of[p.data_type] : ISA_DTYPE_NONE;
    if (dtype == ISA_DTYPE_NONE)
        return npu_fail(UNSUPPORTED, "ONNX data type %" PRIu64, p.data_type);
    const int bits = isa_dtype_bits((int)dtype);
    const size_t elem_bytes = (size_t)bits / 8;
    size_t count;
    if (!tensor_count(p.dims, p.rank, elem_bytes ? elem_bytes : 1, &count))
        return npu_fail(BAD_INPUT, "dimensions that are negative or too large");
    const size_t size = elem_bytes ? count * elem_bytes : (count + 1) / 2;
    const size_t given = p.has_raw ? (size_t)(p.raw.end - p.raw.at) : size;
    if (given != size || (!p.has_raw && p.values != count))
        return npu_fail(BAD_INPUT, "%zu elements of %s, and data for another number of them", count,
                        isa_dtype_name((int)dtype));
    uint8_t *data = arena_alloc(a, size ? size : 1);
    if (p.has_raw && size) memcpy(data, p.raw.at, size);
    struct store s = {data, elem_bytes, 0, count};
    struct reader r = all;
    struct field f;
    while (!p.has_raw && r.at < r.end && next_field(&r, &f))
        if (is_values(f.number)) each_value(&f, store_value, &s);
    *out = (struct tensor_data){.dtype = dtype, .rank = p.rank, .data = data, .size_bytes = size};
    memcpy(out->dims, p.dims, sizeof p.dims);
    return NULL;
}
