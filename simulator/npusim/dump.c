// SPDX-License-Identifier: Apache-2.0
// Pieces of memory: taking the option apart, and showing them.
#include "simulator/npusim/dump.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/str.h"
#include "runtime/base/text.h"
#include "simulator/device.h"
#include "simulator/npusim/dump_text.h"

static npu_status refuse(const char *text, const char *why) {
    return npu_fail(USAGE,
                    "--dump %s: %s; expected SPACE:ADDR:DTYPE[SHAPE] as spm:0x1000:f16[4,64], "
                    "SPACE:DTYPE+ADDR[SIZE:STRIDE,...] as instructions are printed, "
                    "SPACE:FIRST-LAST, SPACE:ADDR+BYTES or result:NAME, each with =FILE.npy or "
                    "without; SPACE is spm, psum or dram",
                    text, why);
}

static int space_of(const char *word) {
    static const int spaces[] = {ISA_SPM, ISA_PSUM, ISA_DRAM};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (!strcmp(word, isa_space_name(spaces[i]))) return spaces[i];
    return ISA_SPACE_NONE;
}

// A type that memory has whole bytes of.
static int dtype_of(const char *word) {
    for (int t = 1; t < 64; t++)
        if (isa_dtype_name(t) && !strcmp(word, isa_dtype_name(t)))
            return isa_dtype_bits(t) >= 8 ? t : 0;
    return 0;
}

// "[4,64]" or "[4:128,64:1]": sizes, and strides or dense ones. Ends the text before it.
static bool take_shape(char *text, struct dump *d) {
    char *open = strchr(text, '[');
    bool strided = false, dense = false;
    d->rank = 0;
    if (!open) return true;
    const size_t n = strlen(open);
    if (open[n - 1] != ']') return false;
    open[n - 1] = *open = '\0';
    for (char *item = open + 1, *next; item && *item; item = next) {
        next = strchr(item, ',');
        if (next) *next++ = '\0';
        if (next && !*next) return false;
        char *colon = strchr(item, ':');
        if (colon) *colon++ = '\0';
        if (d->rank == TENSOR_RANK_MAX || !text_parse_i64(item, &d->dims[d->rank]) ||
            d->dims[d->rank] < 1 || (colon && !text_parse_i64(colon, &d->strides[d->rank])))
            return false;
        strided |= colon != NULL;
        dense |= colon == NULL;
        d->rank++;
    }
    int64_t stride = 1;
    for (int k = d->rank - 1; k >= 0 && !strided; k--) {
        d->strides[k] = stride;
        if (d->dims[k] > ((int64_t)1 << 48) / stride) return false;
        stride *= d->dims[k];
    }
    return !(strided && dense);
}

// "FIRST-LAST", "ADDR+BYTES" or "ADDR": *bytes 0 for the last.
static bool take_range(char *text, int64_t *address, int64_t *bytes) {
    char *minus = strchr(text, '-'), *plus = strchr(text, '+');
    int64_t second = 0;
    *bytes = 0;
    if (minus && plus) return false;
    char *const sign = minus ? minus : plus;
    if (sign) *sign = '\0';
    if (!text_parse_i64(text, address) || *address < 0) return false;
    if (!sign) return true;
    if (!text_parse_i64(sign + 1, &second)) return false;
    *bytes = minus ? second - *address + 1 : second;
    return second >= 0 && *bytes >= 1;
}

// Of the record of the program.
static npu_status find_result(const char *text, const char *name,
                              const struct npu_program_image *image, struct dump *d) {
    const struct npu_image_record *r = image->record;
    for (size_t i = 0; r && i < r->nresults; i++) {
        const struct npu_image_result *v = &r->results[i];
        if (strcmp(v->name, name) != 0) continue;
        d->space = v->space;
        d->dtype = v->dtype;
        d->rank = v->rank;
        d->address = (int64_t)v->address;
        memcpy(d->dims, v->dims, sizeof *d->dims * (size_t)v->rank);
        memcpy(d->strides, v->strides, sizeof *d->strides * (size_t)v->rank);
        return NULL;
    }
    const char **names = NULL;
    const char *near = NULL;
    struct arena *a = arena_try_new();
    if (!a) return npu_fail(NO_MEMORY, "names of results");
    if (r) {
        names = ARENA_ARRAY(a, const char *, r->nresults + 1);
        for (size_t i = 0; i < r->nresults; i++)
            names[i] = r->results[i].name;
        near = text_did_you_mean(name, names, r->nresults);
    }
    npu_status st =
        r ? npu_fail(USAGE,
                     "--dump %s: no layer of the program stores a result of that name (of %zu)%s%s",
                     text, r->nresults, near ? "; did you mean " : "", near ? near : "")
          : npu_fail(USAGE, "--dump %s: the program has no record of its layers' results", text);
    arena_free(a);
    return st;
}

// "ADDR:DTYPE[SHAPE]", "RANGE", "RANGE:DTYPE" or "DTYPE+ADDR[...]" behind the space.
static npu_status parse_place(const char *text, char *rest, struct dump *d) {
    char *open = strchr(rest, '['), *colon = strchr(rest, ':');
    int64_t bytes;
    if (colon && open && colon > open) colon = NULL; // of a stride
    if (*rest >= '0' && *rest <= '9') {
        if (colon) *colon++ = '\0';
        if (!colon && open) return refuse(text, "a shape needs a type");
        if (colon && !take_shape(colon, d)) return refuse(text, "bad shape");
        if (colon && !(d->dtype = dtype_of(colon)))
            return refuse(text, "no type of whole bytes has that name");
        if (!take_range(rest, &d->address, &bytes)) return refuse(text, "bad address or range");
        if (!bytes && !colon) return refuse(text, "how many bytes?");
        if (!bytes) return NULL;
        const int64_t size = d->dtype ? isa_dtype_bits(d->dtype) / 8 : 1;
        if (d->rank) return refuse(text, "a range and a shape");
        if (bytes % size) return refuse(text, "the range is no whole number of elements");
        d->rank = 1;
        d->dims[0] = bytes / size;
        d->strides[0] = 1;
        return NULL;
    }
    if (!take_shape(rest, d)) return refuse(text, "bad shape");
    char *plus = strchr(rest, '+');
    if (!plus) return refuse(text, "no address");
    *plus++ = '\0';
    if (!(d->dtype = dtype_of(rest))) return refuse(text, "no type of whole bytes has that name");
    if (!take_range(plus, &d->address, &bytes) || bytes) return refuse(text, "bad address");
    return NULL;
}

npu_status dump_parse(struct arena *a, const char *text, const struct npu_program_image *image,
                      struct dump *out) {
    char *copy = arena_strdup(a, text), *file = strrchr(copy, '=');
    *out = (struct dump){.text = text};
    if (file) {
        const size_t n = strlen(file + 1);
        if (n < 5 || strcmp(file + 1 + n - 4, ".npy") != 0)
            return refuse(text, "the file behind = is no .npy");
        *file = '\0';
        out->file = file + 1;
        out->text = arena_strdup(a, copy);
    }
    char *colon = strchr(copy, ':');
    if (!colon) return refuse(text, "no ':'");
    *colon = '\0';
    if (!strcmp(copy, "result")) return image ? find_result(text, colon + 1, image, out) : NULL;
    out->space = space_of(copy);
    if (out->space == ISA_SPACE_NONE) return refuse(text, "unknown memory");
    return parse_place(text, colon + 1, out);
}

// ---- memory -------------------------------------------------------------------------------------

static int64_t elem_bytes(const struct dump *d) {
    return d->dtype ? isa_dtype_bits(d->dtype) / 8 : 1;
}

static uint64_t elements(const struct dump *d) {
    uint64_t n = 1;
    for (int k = 0; k < d->rank; k++)
        n *= (uint64_t)d->dims[k];
    return n;
}

// Every byte inside its memory.
static npu_status check_range(const struct npusim *s, const struct dump *d) {
    const struct hw *hw = &s->program->machine;
    const int64_t size = d->space == ISA_SPM ? hw->spm_bytes
                         : d->space == ISA_PSUM
                             ? hw_psum_bytes(hw)
                             : (int64_t)npu_program_image_of(s->program)->dram_bytes;
    double lo = (double)d->address, hi = lo;
    for (int k = 0; k < d->rank; k++) {
        const double reach =
            (double)(d->dims[k] - 1) * (double)d->strides[k] * (double)elem_bytes(d);
        lo += reach < 0 ? reach : 0;
        hi += reach > 0 ? reach : 0;
    }
    hi += (double)(elem_bytes(d) - 1);
    if (lo >= 0 && hi < (double)size) return NULL;
    return npu_fail(USAGE,
                    "--dump %s: bytes %.0f to %.0f lie outside %s, which has %" PRId64
                    " bytes (0x0 to 0x%" PRIx64 ")%s",
                    d->text, lo, hi, isa_space_name(d->space), size,
                    (uint64_t)(size ? size - 1 : 0),
                    d->space == ISA_DRAM ? " for this program" : "");
}

// Address of element i in row-major order.
static int64_t address_of(const struct dump *d, uint64_t i) {
    int64_t at = d->address;
    for (int k = d->rank - 1; k >= 0; k--) {
        at += (int64_t)(i % (uint64_t)d->dims[k]) * d->strides[k] * elem_bytes(d);
        i /= (uint64_t)d->dims[k];
    }
    return at;
}

// One element; false: not all of it was written.
static bool element(void *ctx, uint64_t i, void *out) {
    const struct dump_source *src = ctx;
    bool written[16];
    const int64_t size = elem_bytes(src->dump);
    NPU_ASSERT(sim_device_peek(src->device, src->dump->space, address_of(src->dump, i), size, out,
                               written));
    for (int64_t k = 0; k < size; k++)
        if (!written[k]) return false;
    return true;
}

static npu_status write_npy(struct npusim *s, const struct dump_source *src) {
    const struct dump *d = src->dump;
    const uint64_t n = elements(d);
    const size_t size = (size_t)elem_bytes(d);
    int dtype = d->dtype ? d->dtype : ISA_U8;
    uint8_t *data = arena_alloc_array(s->a, (size_t)n, size);
    uint64_t missing = 0;
    struct dump_source copy = *src;
    for (uint64_t i = 0; i < n; i++)
        if (!element(&copy, i, data + i * size)) {
            memset(data + i * size, 0, size);
            missing++;
        }
    struct tensor_data t = {.rank = d->rank, .data = data, .size_bytes = (size_t)n * size};
    memcpy(t.dims, d->dims, sizeof t.dims);
    if (dtype == ISA_F8E4M3 || dtype == ISA_F8E5M2) { // .npy has no name for them
        float *wide = ARENA_ARRAY(s->a, float, (size_t)n);
        num_read_f32(dtype, data, 0, 1, wide, (size_t)n);
        dtype = ISA_F32;
        t.data = wide;
        t.size_bytes = (size_t)n * sizeof *wide;
    }
    t.dtype = (enum isa_dtype)dtype;
    NPU_TRY_NOTE(npy_write(d->file, &t), "--dump %s", d->text);
    if (missing)
        fprintf(stderr,
                "npusim: --dump %s: %" PRIu64 " of %" PRIu64
                " elements were not written; they are 0 in %s\n",
                d->text, missing, n, d->file);
    return NULL;
}

static npu_status parse_all(struct npusim *s, struct dump **out) {
    const int n = s->o->dump.n;
    *out = ARENA_ARRAY(s->a, struct dump, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        struct dump *d = &(*out)[i];
        NPU_TRY(dump_parse(s->a, s->o->dump.item[i].value, npu_program_image_of(s->program), d));
        NPU_TRY(check_range(s, d));
    }
    return NULL;
}

npu_status dumps_check(struct npusim *s) {
    struct dump *d;
    return parse_all(s, &d);
}

npu_status dumps_show(struct npusim *s) {
    struct dump *dumps;
    struct str text = {0};
    NPU_TRY(parse_all(s, &dumps));
    npu_status st = NULL;
    for (int i = 0; i < s->o->dump.n && !st; i++) {
        struct dump_source src = {&dumps[i], sim_device_of(s->device)};
        if (dumps[i].file)
            st = write_npy(s, &src);
        else
            dump_print(&text, &dumps[i], element, &src);
    }
    if (!st) st = str_status(&text);
    if (!st) fputs(str_text(&text), stdout);
    str_free(&text);
    return st;
}
