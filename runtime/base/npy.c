// SPDX-License-Identifier: Apache-2.0
//
// A .npy file is magic, version, the length of a header and the header: a Python dictionary literal
// with the keys descr, fortran_order and shape, padded so that the data is aligned to 64 bytes (16
// in old files). The literal is read with a cursor that never passes its end.

#include "runtime/base/npy.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/str.h"

static const struct {
    enum isa_dtype dtype;
    unsigned bits;
    const char *name;
} dtypes[] = {
#define ISA_DTYPE(NAME, text, code, bits, kind, on_chip, doc) {ISA_##NAME, bits, text},
#include "isa/dtype.def"
};

static const struct {
    const char *descr; // without the byte order
    enum isa_dtype dtype;
} descrs[] = {
    {"f4", ISA_F32}, {"f2", ISA_F16}, {"V2", ISA_BF16}, {"f8", ISA_F64}, {"i1", ISA_I8},
    {"i2", ISA_I16}, {"i4", ISA_I32}, {"i8", ISA_I64},  {"u1", ISA_U8},  {"u2", ISA_U16},
    {"u4", ISA_U32}, {"u8", ISA_U64}, {"b1", ISA_BOOL},
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes, DESCRS = sizeof descrs / sizeof *descrs };

static bool host_is_little(void) {
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

size_t tensor_elem_bytes(enum isa_dtype dtype) {
    for (size_t i = 0; i < DTYPES; i++)
        if (dtypes[i].dtype == dtype) return dtypes[i].bits / 8;
    return 0;
}

bool tensor_count(const int64_t *dims, int rank, size_t elem_bytes, size_t *count) {
    uint64_t n = 1, limit = (uint64_t)INT64_MAX / (elem_bytes ? elem_bytes : 1);
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) return false;
        if (dims[i] == 0) {
            empty = true;
        } else if (n > limit / (uint64_t)dims[i]) {
            return false;
        } else {
            n *= (uint64_t)dims[i];
        }
    }
    *count = empty ? 0 : (size_t)n;
    return true;
}

// What is left of the header's text.
struct cursor {
    const char *p, *end;
};

static void skip_blanks(struct cursor *c) {
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r'))
        c->p++;
}

static bool take(struct cursor *c, char wanted) {
    skip_blanks(c);
    if (c->p == c->end || *c->p != wanted) return false;
    c->p++;
    return true;
}

static bool take_word(struct cursor *c, const char *word) {
    size_t n = strlen(word);
    skip_blanks(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0) return false;
    c->p += n;
    return true;
}

// A quoted string without escapes, into `text`; false when it is none or too long.
static bool take_string(struct cursor *c, char *text, size_t room) {
    skip_blanks(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"')) return false;
    char quote = *c->p++;
    size_t n = 0;
    for (; c->p < c->end && *c->p != quote; c->p++) {
        if (n + 1 >= room || *c->p < ' ' || *c->p > '~' || *c->p == '\\') return false;
        text[n++] = *c->p;
    }
    if (c->p == c->end) return false;
    c->p++;
    text[n] = '\0';
    return true;
}

static bool take_size(struct cursor *c, int64_t *out) {
    skip_blanks(c);
    int64_t value = 0;
    const char *start = c->p;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++) {
        if (value > (INT64_MAX - 9) / 10) return false;
        value = value * 10 + (*c->p - '0');
    }
    if (c->p == start) return false;
    if (c->p < c->end && *c->p == 'L') c->p++; // Python 2 wrote 3L
    *out = value;
    return true;
}

struct header {
    char descr[32];
    bool has_descr, has_order, has_shape, fortran;
};

static npu_status parse_shape(struct cursor *c, struct tensor_data *out) {
    if (!take(c, '(')) return npu_fail(BAD_INPUT, "the .npy header's shape is not a tuple");
    out->rank = 0;
    while (!take(c, ')')) {
        int64_t size;
        if (!take_size(c, &size))
            return npu_fail(BAD_INPUT, "the .npy header's shape is not of sizes");
        if (out->rank == TENSOR_RANK_MAX)
            return npu_fail(UNSUPPORTED, "an array of more than %d dimensions", TENSOR_RANK_MAX);
        out->dims[out->rank++] = size;
        if (take(c, ',')) continue;
        if (!take(c, ')')) return npu_fail(BAD_INPUT, "the .npy header's shape does not end");
        break;
    }
    return NULL;
}

static npu_status parse_header(struct cursor *c, struct header *h, struct tensor_data *out) {
    if (!take(c, '{')) return npu_fail(BAD_INPUT, "the .npy header is not a dictionary");
    while (!take(c, '}')) {
        char key[32];
        if (!take_string(c, key, sizeof key) || !take(c, ':'))
            return npu_fail(BAD_INPUT, "the .npy header is damaged");
        if (strcmp(key, "descr") == 0) {
            h->has_descr = true;
            if (take(c, '['))
                return npu_fail(UNSUPPORTED, "a structured array (the fields of a record)");
            if (!take_string(c, h->descr, sizeof h->descr))
                return npu_fail(BAD_INPUT, "the .npy header's descr is not a type");
        } else if (strcmp(key, "fortran_order") == 0) {
            h->has_order = true;
            h->fortran = take_word(c, "True");
            if (!h->fortran && !take_word(c, "False"))
                return npu_fail(BAD_INPUT,
                                "the .npy header's fortran_order is neither True nor False");
        } else if (strcmp(key, "shape") == 0) {
            h->has_shape = true;
            NPU_TRY(parse_shape(c, out));
        } else {
            return npu_fail(BAD_INPUT, "the .npy header has an unknown key '%s'", key);
        }
        if (!take(c, ',')) {
            if (!take(c, '}')) return npu_fail(BAD_INPUT, "the .npy header does not end");
            break;
        }
    }
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return npu_fail(BAD_INPUT, "the .npy header lacks descr, fortran_order or shape");
    return NULL;
}

static npu_status find_dtype(const char *descr, enum isa_dtype *dtype, bool *swapped) {
    char order = descr[0];
    const char *name = strchr("<>|=", order) && order ? descr + 1 : descr;
    *swapped = order == '>' ? host_is_little() : order == '<' ? !host_is_little() : false;
    for (size_t i = 0; i < DESCRS; i++) {
        if (strcmp(descrs[i].descr, name) != 0) continue;
        *dtype = descrs[i].dtype;
        return NULL;
    }
    return npu_fail(
        UNSUPPORTED,
        "elements of type '%s'; accepted are float16/32/64, int8..64, uint8..64, bool and "
        "bfloat16 (V2)",
        descr);
}

// Copies what cannot be used in place: swapped bytes, data that is not aligned, bools that are not
// 0 or 1.
static const void *usable(struct arena *a, const uint8_t *data, const struct tensor_data *t,
                          size_t elem_bytes, bool swapped) {
    bool copy = (swapped && elem_bytes > 1) || (uintptr_t)data % elem_bytes != 0;
    for (size_t i = 0; t->dtype == ISA_BOOL && i < t->size_bytes && !copy; i++)
        copy = data[i] > 1;
    if (!copy) return data;
    uint8_t *own = arena_copy(a, data, t->size_bytes);
    if (swapped) {
        for (size_t i = 0; i < t->size_bytes; i += elem_bytes) {
            for (size_t j = 0; j < elem_bytes; j++)
                own[i + j] = data[i + elem_bytes - 1 - j];
        }
    }
    for (size_t i = 0; t->dtype == ISA_BOOL && i < t->size_bytes; i++)
        own[i] = own[i] != 0;
    return own;
}

static npu_status check_order(const struct header *h, const struct tensor_data *t) {
    int wide = 0;
    for (int i = 0; i < t->rank; i++)
        wide += t->dims[i] > 1;
    if (h->fortran && wide > 1)
        return npu_fail(UNSUPPORTED, "the array is in Fortran order; save np.ascontiguousarray(x)");
    return NULL;
}

npu_status npy_parse(struct arena *a, struct span bytes, struct tensor_data *out) {
    *out = (struct tensor_data){0};
    const uint8_t *p = bytes.data;
    if (bytes.size < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
        return npu_fail(BAD_INPUT, "this is not a .npy file");
    if (p[6] < 1 || p[6] > 3 || p[7] != 0)
        return npu_fail(BAD_INPUT, ".npy version %d.%d; 1.0, 2.0 and 3.0 are known", p[6], p[7]);
    size_t start = p[6] == 1 ? 10 : 12;
    size_t length = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[6] > 1 && bytes.size >= 12) length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (bytes.size < start || bytes.size - start < length)
        return npu_fail(BAD_INPUT, "the .npy header is cut off");
    struct cursor c = {(const char *)p + start, (const char *)p + start + length};
    struct header h = {0};
    bool swapped = false;
    NPU_TRY(parse_header(&c, &h, out));
    NPU_TRY(find_dtype(h.descr, &out->dtype, &swapped));
    NPU_TRY(check_order(&h, out));
    size_t elem_bytes = tensor_elem_bytes(out->dtype), count, have = bytes.size - start - length;
    if (!tensor_count(out->dims, out->rank, elem_bytes, &count) || count * elem_bytes > have)
        return npu_fail(BAD_INPUT,
                        "the .npy file holds %zu bytes of data, less than its shape needs", have);
    out->size_bytes = count * elem_bytes;
    out->data = usable(a, p + start + length, out, elem_bytes, swapped);
    return NULL;
}

npu_status npy_read(struct arena *a, const char *path, struct tensor_data *out) {
    struct span bytes;
    *out = (struct tensor_data){0};
    NPU_TRY(file_map_in(a, path, &bytes));
    NPU_TRY_NOTE(npy_parse(a, bytes, out), "%s", path);
    return NULL;
}

static npu_status format_header(const struct tensor_data *t, struct str *s) {
    const char *descr = NULL;
    for (size_t i = 0; i < DESCRS; i++)
        if (descrs[i].dtype == t->dtype) descr = descrs[i].descr;
    if (!descr) {
        const char *name = "unknown";
        for (size_t i = 0; i < DTYPES; i++)
            if (dtypes[i].dtype == t->dtype) name = dtypes[i].name;
        return npu_fail(UNSUPPORTED, "the .npy format has no type for %s", name);
    }
    char order = tensor_elem_bytes(t->dtype) == 1 ? '|' : host_is_little() ? '<' : '>';
    str_append(s, "\x93NUMPY\x01\x00\x00\x00", 10);
    str_printf(s, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order, descr);
    for (int i = 0; i < t->rank; i++)
        str_printf(s, "%s%lld", i ? ", " : "", (long long)t->dims[i]);
    str_puts(s, t->rank == 1 ? ",), }" : "), }");
    while (!s->failed && s->len % 64 != 63)
        str_putc(s, ' ');
    str_putc(s, '\n');
    NPU_TRY(str_status(s));
    s->data[8] = (char)((s->len - 10) & 0xff);
    s->data[9] = (char)((s->len - 10) >> 8);
    return NULL;
}

npu_status npy_write(const char *path, const struct tensor_data *t) {
    struct str header = {0};
    struct file_out *f = NULL;
    npu_status st = format_header(t, &header);
    if (!st) st = file_out_open(path, &f);
    if (!st) st = file_out_write(f, (struct span){(const uint8_t *)header.data, header.len});
    if (!st) st = file_out_write(f, (struct span){t->data, t->size_bytes});
    str_free(&header);
    if (!st) return file_out_commit(f);
    file_out_abort(f);
    return npu_note(st, "%s", path);
}
