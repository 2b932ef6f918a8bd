// SPDX-License-Identifier: Apache-2.0
//
// Data of constants: elements spelled out, or bytes of a file whose CRC-32 is checked.

#include <math.h>
#include <string.h>
#include <zlib.h>

#include "isa/numeric.h"
#include "toolchain/frontend/text/scan.h"

enum { MAX_REPEATED = 1 << 24 };

static bool is_unsigned(enum isa_dtype t) {
    return t == ISA_U4 || t == ISA_U8 || t == ISA_U16 || t == ISA_U32 || t == ISA_U64;
}

static bool read_integer(struct text_state *s, enum isa_dtype t, void *data, int64_t k) {
    if (t == ISA_U64) {
        uint64_t wide;
        if (!text_read_u64(s, &wide)) return false;
        memcpy((uint8_t *)data + k * 8, &wide, sizeof wide);
        return true;
    }
    int bits = t == ISA_BOOL ? 1 : isa_dtype_bits(t);
    bool positive = t == ISA_BOOL || is_unsigned(t);
    int64_t half = (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
    int64_t v, lo = positive ? 0 : -half - 1, hi = positive ? 2 * half + 1 : half;
    if (!text_read_int(s, lo, hi, &v)) return false;
    num_store_i64(t, data, k, v);
    return true;
}

static bool read_element(struct text_state *s, enum isa_dtype t, void *data, int64_t k) {
    if (isa_dtype_is_int(t)) return read_integer(s, t, data, k);
    struct text_place at = text_here(s);
    double v;
    if (!text_read_float(s, &v)) return false;
    if (t == ISA_F64) {
        memcpy((uint8_t *)data + k * 8, &v, sizeof v);
        return true;
    }
    float f = (float)v;
    if (isfinite(v) && !isfinite((double)num_round_to(t, f)))
        return text_fault(s, at, "%g is too large for %s", v, isa_dtype_name(t));
    num_store_f32(t, data, k, f);
    return true;
}

// Elements `have`, have + 1, ... are those from 0 on again.
static void repeat(const struct graph_value *v, void *data, int64_t have, int64_t n) {
    if (isa_dtype_bits(v->dtype) < 8) {
        for (int64_t k = have; k < n; k++)
            num_store_i64(v->dtype, data, k, num_load_i64(v->dtype, data, k - have));
        return;
    }
    size_t size = (size_t)isa_dtype_bits(v->dtype) / 8;
    uint8_t *at = data;
    for (int64_t k = have; k < n; k++)
        memcpy(at + (size_t)k * size, at + (size_t)(k - have) * size, size);
}

static bool eat_dots(struct text_state *s) {
    text_blank(s);
    if (s->end - s->p < 3 || memcmp(s->p, "...", 3) != 0) return false;
    s->p += 3;
    return true;
}

// A list of as many elements as the type has. Memory grows with the list, not with the type, so
// that a short text cannot ask for much.
static bool read_elements(struct text_state *s, struct graph_value *v) {
    struct text_place start = text_here(s);
    int64_t n = graph_value_elems(v), have = 0, room = 64;
    size_t size = 8; // bytes of the widest element
    uint8_t *data = arena_alloc(s->arena, (size_t)room * size);
    bool dots = false;
    if (!text_open(s, '{')) return false;
    while (!text_close(s, '}')) {
        if (have && !text_eat(s, ',')) return text_expected(s, "',' or '}'");
        if (have && eat_dots(s)) {
            dots = true;
            if (text_close(s, '}')) break;
            return text_expected(s, "'}' behind ...");
        }
        if (have == n)
            return text_fault(s, text_here(s), "more than the %lld elements of the type",
                              (long long)n);
        if (have == room) {
            uint8_t *grown = arena_alloc(s->arena, 2 * (size_t)room * size);
            memcpy(grown, data, (size_t)room * size);
            data = grown;
            room *= 2;
        }
        if (!read_element(s, v->dtype, data, have)) return false;
        have++;
    }
    if (dots && have < n) {
        if (n > MAX_REPEATED)
            return text_fault(s, start, "%lld elements are too many to repeat, at most %d",
                              (long long)n, MAX_REPEATED);
        uint8_t *all = arena_alloc(s->arena, (size_t)graph_value_bytes(v) + 1);
        memcpy(all, data, (size_t)((have * isa_dtype_bits(v->dtype) + 7) / 8));
        repeat(v, all, have, n);
        data = all;
        have = n;
    }
    if (have < n)
        return text_fault(s, start,
                          "%lld elements, expected %lld; \"...\" at the end repeats the list",
                          (long long)have, (long long)n);
    v->data = data;
    return true;
}

// A path beside the text or below: no leading '/', no "..".
static bool inside(const char *file) {
    if (*file == '/' || !*file) return false;
    for (const char *at = file; at; at = strchr(at, '/')) {
        if (*at == '/') at++;
        if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || !at[2])) return false;
        if (*at == '/') return false;
    }
    return true;
}

static bool map_beside(struct text_state *s, struct text_place at, const char *file,
                       struct span *out) {
    if (!inside(file))
        return text_fault(
            s, at,
            "\"%.200s\" leaves the folder of this text; a relative path without .. is "
            "expected",
            file);
    const struct span *known = map_get(&s->files, file);
    if (known) {
        *out = *known;
        return true;
    }
    const char *slash = strrchr(s->where, '/');
    int folder = slash ? (int)(slash - s->where) + 1 : 0;
    const char *path = arena_printf(s->arena, "%.*s%s", folder, s->where, file);
    struct span *mapped = ARENA_NEW(s->arena, struct span);
    if (!text_status(s, at, file_map_in(s->arena, path, mapped))) return false;
    map_put(&s->files, file, mapped);
    *out = *mapped;
    return true;
}

static bool read_incbin(struct text_state *s, struct graph_value *v) {
    struct text_place at = text_here(s), size_at, crc_at;
    const char *file;
    struct span all = {NULL, 0};
    int64_t offset = 0, bytes = 0, crc = 0, needed = graph_value_bytes(v);
    if (!text_read_string(s, &file) || !text_need(s, ',') ||
        !text_read_int(s, 0, INT64_MAX, &offset) || !text_need(s, ','))
        return false;
    size_at = text_here(s);
    if (!text_read_int(s, 0, INT64_MAX, &bytes) || !text_need(s, ',')) return false;
    crc_at = text_here(s);
    if (!text_read_int(s, 0, UINT32_MAX, &crc)) return false;
    if (bytes != needed)
        return text_fault(s, size_at, "%lld bytes, but the type takes %lld", (long long)bytes,
                          (long long)needed);
    if (!map_beside(s, at, file, &all)) return false;
    if ((uint64_t)offset > all.size || (uint64_t)bytes > all.size - (uint64_t)offset)
        return text_fault(s, at, "\"%.200s\" has %zu bytes, fewer than %lld from %lld on", file,
                          all.size, (long long)bytes, (long long)offset);
    const uint8_t *data = bytes ? all.data + offset : NULL;
    uint32_t is = (uint32_t)crc32_z(0, data, (size_t)bytes);
    if (!data) is = 0; // as of no bytes
    if (is != (uint32_t)crc)
        return text_fault(s, crc_at,
                          "\"%.200s\" has changed: its bytes have CRC-32 0x%08x, "
                          "expected 0x%08x",
                          file, (unsigned)is, (unsigned)crc);
    int align = isa_dtype_bits(v->dtype) / 8;
    if (!data || (align && (uintptr_t)data % (uintptr_t)align != 0)) {
        void *copy = arena_alloc(s->arena, (size_t)bytes + 1);
        if (data) memcpy(copy, data, (size_t)bytes);
        v->data = copy;
    } else {
        v->data = data;
    }
    v->source = file;
    v->source_offset = offset;
    return true;
}

bool text_read_constant(struct text_state *s, struct graph_value *v) {
    struct text_place at = text_here(s);
    if (text_peek(s) == '{') return read_elements(s, v);
    const char *word = text_word(s);
    if (word && !strcmp(word, ".incbin")) return read_incbin(s, v);
    if (word && !strcmp(word, "crc"))
        return text_fault(s, at,
                          "this text was printed without the data of this constant; npuc --emit "
                          "graph=FILE writes it whole; { elements } or .incbin are accepted");
    return text_fault(s, at, "expected { elements } or .incbin \"FILE\", OFFSET, BYTES, CRC32");
}
