// SPDX-License-Identifier: Apache-2.0
//
// One recursive walk over the serialized model. protobuf-c copies every byte and recurses without
// limit; so the walk first bounds the nesting, checks every length, and leaves the tensors' large
// data where it lies in the mapped file:
//
//   walk(message):
//     for each field: message-typed -> copy the tag, a 5-byte length to be filled in, walk(payload)
//                     large data of a tensor -> remember where it lies
//                     anything else -> copy
//     a tensor with remembered data -> append a doc_string that lists the places

#include "toolchain/frontend/onnx/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/str.h"

enum { DEPTH_LIMIT = 64, LENGTH_BYTES = 5 };

enum level {
    NOT_A_MESSAGE,
    MODEL,
    GRAPH,
    NODE,
    ATTRIBUTE,
    TENSOR,
    SPARSE,
    FUNCTION,
    TRAINING,
    VALUE_INFO,
    TYPE,
    TYPE_TENSOR,
    TYPE_LIST,
    TYPE_MAP,
    SHAPE,
    LEAF // messages without messages in them
};

// Every message-typed field of onnx.proto, newer ones included (FunctionProto.attribute_proto and
// value_info).
static const struct {
    enum level in;
    uint32_t field;
    enum level is;
} children[] = {
    {MODEL, 7, GRAPH},       {MODEL, 8, LEAF},          {MODEL, 14, LEAF},
    {MODEL, 20, TRAINING},   {MODEL, 25, FUNCTION},     {GRAPH, 1, NODE},
    {GRAPH, 5, TENSOR},      {GRAPH, 11, VALUE_INFO},   {GRAPH, 12, VALUE_INFO},
    {GRAPH, 13, VALUE_INFO}, {GRAPH, 14, LEAF},         {GRAPH, 15, SPARSE},
    {NODE, 5, ATTRIBUTE},    {ATTRIBUTE, 5, TENSOR},    {ATTRIBUTE, 6, GRAPH},
    {ATTRIBUTE, 10, TENSOR}, {ATTRIBUTE, 11, GRAPH},    {ATTRIBUTE, 14, TYPE},
    {ATTRIBUTE, 15, TYPE},   {ATTRIBUTE, 22, SPARSE},   {ATTRIBUTE, 23, SPARSE},
    {SPARSE, 1, TENSOR},     {SPARSE, 2, TENSOR},       {FUNCTION, 7, NODE},
    {FUNCTION, 9, LEAF},     {FUNCTION, 11, ATTRIBUTE}, {FUNCTION, 12, VALUE_INFO},
    {TRAINING, 1, GRAPH},    {TRAINING, 2, GRAPH},      {TRAINING, 3, LEAF},
    {TRAINING, 4, LEAF},     {VALUE_INFO, 2, TYPE},     {TYPE, 1, TYPE_TENSOR},
    {TYPE, 4, TYPE_LIST},    {TYPE, 5, TYPE_MAP},       {TYPE, 8, TYPE_TENSOR},
    {TYPE, 9, TYPE_LIST},    {TYPE_LIST, 1, TYPE},      {TYPE_MAP, 2, TYPE},
    {TYPE_TENSOR, 2, SHAPE}, {SHAPE, 1, LEAF},          {TENSOR, 3, LEAF},
    {TENSOR, 13, LEAF},
};

static enum level child_of(enum level in, uint32_t field) {
    for (size_t k = 0; k < sizeof children / sizeof *children; k++)
        if (children[k].in == in && children[k].field == field) return children[k].is;
    return NOT_A_MESSAGE;
}

bool wire_varint(struct span bytes, size_t *at, uint64_t *value) {
    uint64_t v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (*at >= bytes.size) return false;
        uint8_t byte = bytes.data[(*at)++];
        if (shift < 64) v |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128)) {
            *value = v;
            return true;
        }
    }
    return false;
}

bool wire_next(struct span bytes, size_t *at, uint32_t *field, int *type, uint64_t *value) {
    uint64_t tag;
    if (!wire_varint(bytes, at, &tag) || tag >> 32) return false;
    *field = (uint32_t)(tag >> 3);
    *type = (int)(tag & 7);
    if (!*field) return false;
    size_t fixed = *type == 1 ? 8 : *type == 5 ? 4 : 0;
    if (fixed) {
        if (bytes.size - *at < fixed) return false;
        *value = 0;
        memcpy(value, bytes.data + *at, fixed);
        *at += fixed;
        return true;
    }
    if (*type != 0 && *type != 2) return false; // groups are not used by ONNX
    if (!wire_varint(bytes, at, value)) return false;
    return *type == 0 || *value <= bytes.size - *at;
}

static void put_length(char *to, uint64_t length) {
    for (int i = 0; i < LENGTH_BYTES; i++)
        to[i] = (char)((length >> (7 * i) & 127) | (i < LENGTH_BYTES - 1 ? 128 : 0));
}

static void put_varint(struct str *out, uint64_t v) {
    for (; v >= 128; v >>= 7)
        str_putc(out, (char)((v & 127) | 128));
    str_putc(out, (char)v);
}

static bool is_data(uint32_t field) {
    return field == 4 || field == 5 || field == 7 || field == 9 || field == 10 || field == 11;
}

// Places of a tensor's large data, as text.
struct places {
    char text[512];
    size_t len;
};

static npu_status remember(struct places *p, uint32_t field, size_t offset, uint64_t bytes) {
    int len = snprintf(p->text + p->len, sizeof p->text - p->len, "%" PRIu32 ":%zu:%" PRIu64 ";",
                       field, offset, bytes);
    if (len < 0 || (size_t)len >= sizeof p->text - p->len)
        return npu_fail(BAD_INPUT, "byte %zu: a tensor whose data is split into too many pieces",
                        offset);
    p->len += (size_t)len;
    return NULL;
}

static npu_status walk(struct span bytes, size_t at, size_t end, enum level level, int depth,
                       struct str *out) {
    if (depth > DEPTH_LIMIT)
        return npu_fail(BAD_INPUT, "byte %zu: messages nested deeper than %d", at, DEPTH_LIMIT);
    struct span message = {bytes.data, end};
    struct places places = {.len = 0};
    while (at < end) {
        size_t start = at;
        uint32_t field;
        int type;
        uint64_t value;
        if (!wire_next(message, &at, &field, &type, &value))
            return npu_fail(BAD_INPUT, "byte %zu: truncated or damaged (not a protobuf field)",
                            start);
        if (type != 2) {
            str_append(out, bytes.data + start, at - start);
            continue;
        }
        size_t length = (size_t)value, payload = at;
        at += length;
        enum level child = child_of(level, field);
        if (level == TENSOR && is_data(field) && length >= WIRE_LARGE) {
            NPU_TRY(remember(&places, field, payload, value));
        } else if (level == TENSOR && field == 12) {
            continue; // doc_string: its place is taken
        } else if (child != NOT_A_MESSAGE) {
            put_varint(out, (uint64_t)field << 3 | 2);
            size_t where = out->len;
            str_append(out, "\0\0\0\0\0", LENGTH_BYTES);
            NPU_TRY(walk(bytes, payload, at, child, depth + 1, out));
            NPU_TRY(str_status(out));
            put_length(out->data + where, out->len - where - LENGTH_BYTES);
        } else {
            str_append(out, bytes.data + start, at - start);
        }
    }
    if (places.len) {
        put_varint(out, 12 << 3 | 2);
        put_varint(out, places.len);
        str_append(out, places.text, places.len);
    }
    return NULL;
}

npu_status wire_slim(struct span bytes, enum wire_root root, struct span *out) {
    struct str text = {0};
    npu_status failed = walk(bytes, 0, bytes.size, root == WIRE_MODEL ? MODEL : TENSOR, 0, &text);
    if (!failed) failed = str_status(&text);
    if (failed) {
        str_free(&text);
        return failed;
    }
    *out = (struct span){(const uint8_t *)str_text(&text), text.len};
    if (!text.data) *out = (struct span){0};
    return NULL;
}
