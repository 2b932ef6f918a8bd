// SPDX-License-Identifier: Apache-2.0
//
// Directives: each fills one row of the image's tables.

#include <string.h>
#include <zlib.h>

#include "isa/insn.h"
#include "toolchain/asm/internal.h"

uint32_t asm_crc(struct span bytes) {
    uLong crc = crc32(0, NULL, 0);
    for (size_t done = 0; done < bytes.size;) {
        const size_t n = bytes.size - done < (1u << 30) ? bytes.size - done : 1u << 30;
        crc = crc32(crc, bytes.data + done, (uInt)n);
        done += n;
    }
    return (uint32_t)crc;
}

static void text_into(struct asm_state *s, struct asm_line *line, const char **field) {
    const char *text;
    if (asm_string(s, line, &text, NULL) && asm_end(s, line)) *field = text;
}

// "[N,N,...]", at most CONTAINER_MAX_RANK of them.
static bool numbers(struct asm_state *s, struct asm_line *line, const char *what, int *count,
                    int64_t *out) {
    *count = 0;
    if (!asm_eat(line, '[')) {
        asm_fault(s, line, line->p, "'[' and the %s are expected", what);
        return false;
    }
    if (asm_eat(line, ']')) return true;
    do {
        if (*count == CONTAINER_MAX_RANK) {
            asm_fault(s, line, line->p, "more than %d %s", CONTAINER_MAX_RANK, what);
            return false;
        }
        if (!asm_i64(s, line, &out[(*count)++])) return false;
    } while (asm_eat(line, ','));
    if (asm_eat(line, ']')) return true;
    asm_fault(s, line, line->p, "',' or ']' is expected");
    return false;
}

static bool dims(struct asm_state *s, struct asm_line *line, int *dtype, int *rank, int64_t *out) {
    const char *at;
    const size_t n = asm_word(line, &at);
    char name[16] = {0};
    if (n < sizeof name) memcpy(name, at, n);
    *dtype = isa_dtype_parse(name);
    if (!*dtype) {
        asm_fault(s, line, at, "an element type is expected: f32 f16 bf16 i8 i32 i64 ...");
        return false;
    }
    return numbers(s, line, "dimensions", rank, out);
}

// Bytes of a contiguous tensor; what is absurd becomes 0 and is then refused by container_check.
static uint64_t tensor_bytes(int dtype, int rank, const int64_t *d) {
    uint64_t n = (uint64_t)isa_dtype_bits(dtype);
    for (int i = 0; i < rank; i++) {
        if (d[i] < 0 || (d[i] > 0 && n > (UINT64_C(1) << 60) / (uint64_t)d[i])) return 0;
        n *= (uint64_t)d[i];
    }
    return (n + 7) / 8;
}

static void tensor(struct asm_state *s, struct asm_line *line, enum container_role role) {
    struct npu_image_tensor t = {.role = role};
    struct asm_arg args[] = {{.key = "at", .type = ASM_U64, .out = &t.dram_offset},
                             {.key = "model", .type = ASM_DTYPE, .out = &t.model_dtype},
                             {.key = "limit", .type = ASM_I64, .out = &t.index_limit}};
    if (!asm_string(s, line, &t.name, NULL) || !dims(s, line, &t.dtype, &t.rank, t.dims)) return;
    if (!asm_args(s, line, args, 3)) return;
    if (!args[0].given) {
        asm_fault(s, line, line->end, "at=BYTES is missing");
        return;
    }
    if (!t.model_dtype) t.model_dtype = t.dtype;
    t.bytes = tensor_bytes(t.dtype, t.rank, t.dims);
    VEC_PUSH(s->arena, &s->tensors, t);
}

static void segment(struct asm_state *s, struct asm_line *line) {
    struct npu_image_segment g = {.alignment = 64};
    const char *at;
    const size_t n = asm_word(line, &at);
    for (int kind = CONTAINER_SEGMENT_CODE; kind <= CONTAINER_SEGMENT_STATE; kind++) {
        const char *name = container_segment_name((enum container_segment_kind)kind);
        if (strlen(name) == n && memcmp(name, at, n) == 0)
            g.kind = (enum container_segment_kind)kind;
    }
    if (!g.kind) {
        asm_fault(s, line, at, "a kind of segment is expected: code weights io scratch state");
        return;
    }
    struct asm_arg args[] = {{.key = "at", .type = ASM_U64, .out = &g.dram_offset},
                             {.key = "bytes", .type = ASM_U64, .out = &g.bytes},
                             {.key = "align", .type = ASM_U64, .out = &g.alignment},
                             {.key = "offset", .type = ASM_U64, .out = &g.section_offset},
                             {.key = "initial", .type = ASM_U64, .out = &g.initial_bytes}};
    if (!asm_args(s, line, args, 5)) return;
    if (!args[0].given || (!args[1].given && g.kind != CONTAINER_SEGMENT_CODE)) {
        asm_fault(s, line, line->end, "%s is missing", args[0].given ? "bytes=N" : "at=BYTES");
        return;
    }
    if (g.kind == CONTAINER_SEGMENT_CODE) s->code_bytes_given = args[1].given;
    VEC_PUSH(s->arena, &s->segments, g);
}

static void entry(struct asm_state *s, struct asm_line *line) {
    struct npu_image_entry *e = ARENA_NEW(s->arena, struct npu_image_entry);
    struct asm_arg args[] = {
        {.key = "at", .type = ASM_ADDRESS, .out = &e->code_offset},
        {.key = "tensors", .type = ASM_U32S, .out = &e->tensors, .count = &e->ntensors},
        {.key = "views", .type = ASM_U32, .out = &e->views}};
    if (!asm_string(s, line, &e->name, NULL) || !asm_args(s, line, args, 3)) return;
    const struct asm_entry row = {e};
    VEC_PUSH(s->arena, &s->entries, row);
}

static void launch(struct asm_state *s, struct asm_line *line) {
    if (s->entries.len == 0) {
        asm_fault(s, line, line->p, ".launch stands behind an .entry");
        return;
    }
    struct npu_image_launch *l = ARENA_NEW(s->arena, struct npu_image_launch);
    struct asm_arg args[] = {{.key = "at", .type = ASM_ADDRESS, .out = &l->code_offset},
                             {.key = "tag", .type = ASM_U32, .out = &l->tag},
                             {.key = "views", .type = ASM_U32, .out = &l->views},
                             {.key = "op", .type = ASM_TEXT, .out = &l->op},
                             {.key = "graph", .type = ASM_TEXT, .out = &l->graph_op}};
    if (!asm_args(s, line, args, 5)) return;
    const struct asm_launch row = {l, s->entries.len - 1};
    VEC_PUSH(s->arena, &s->launches, row);
}

// A number below 2^32 and nothing behind it but what the caller reads.
static bool id(struct asm_state *s, struct asm_line *line, uint32_t *out) {
    uint64_t v;
    asm_blank(line);
    const char *at = line->p;
    if (!asm_u64(s, line, &v)) return false;
    *out = (uint32_t)v;
    if (v <= UINT32_MAX) return true;
    asm_fault(s, line, at, "a number below 2^32 is expected");
    return false;
}

static void tag(struct asm_state *s, struct asm_line *line) {
    struct npu_image_tag t = {0};
    uint32_t type = 0;
    struct asm_arg args[] = {
        {.key = "layer", .type = ASM_TEXT, .out = &t.layer},
        {.key = "op", .type = ASM_TEXT, .out = &t.op},
        {.key = "kernel", .type = ASM_TEXT, .out = &t.kernel},
        {.key = "text", .type = ASM_TEXT, .out = &t.text},
        {.key = "group", .type = ASM_U32, .out = &t.group},
        {.key = "macs", .type = ASM_U64, .out = &t.macs},
        {.key = "elems", .type = ASM_U64, .out = &t.vector_elems},
        {.key = "weights", .type = ASM_U64, .out = &t.weight_bytes},
        {.key = "inputs", .type = ASM_U64, .out = &t.input_bytes},
        {.key = "outputs", .type = ASM_U64, .out = &t.output_bytes},
        {.key = "m", .type = ASM_U32, .out = &t.m},
        {.key = "n", .type = ASM_U32, .out = &t.n},
        {.key = "k", .type = ASM_U32, .out = &t.k},
        {.key = "batch", .type = ASM_U32, .out = &t.batch},
        {.key = "type", .type = ASM_U32, .out = &type},
        {.key = "nodes", .type = ASM_TEXTS, .out = &t.nodes, .count = &t.nnodes}};
    bool good = id(s, line, &t.tag) && asm_args(s, line, args, sizeof args / sizeof args[0]);
    t.dtype = type <= 31 ? (int)type : 0;
    if (good) VEC_PUSH(s->arena, &s->tags, t);
}

static void span_row(struct asm_state *s, struct asm_line *line) {
    struct npu_image_span t = {0};
    if (id(s, line, &t.id) && asm_string(s, line, &t.name, NULL) && asm_end(s, line))
        VEC_PUSH(s->arena, &s->spans, t);
}

static void stat(struct asm_state *s, struct asm_line *line) {
    struct npu_image_stat t = {0};
    if (asm_string(s, line, &t.name, NULL) && asm_i64(s, line, &t.value) && asm_end(s, line))
        VEC_PUSH(s->arena, &s->stats, t);
}

static void buffer(struct asm_state *s, struct asm_line *line) {
    struct npu_image_buffer b = {0};
    struct asm_arg args[] = {{.key = "at", .type = ASM_U64, .out = &b.dram_offset},
                             {.key = "bytes", .type = ASM_U64, .out = &b.bytes},
                             {.key = "tag", .type = ASM_U32, .out = &b.tag}};
    if (asm_string(s, line, &b.name, NULL) && dims(s, line, &b.dtype, &b.rank, b.dims) &&
        asm_args(s, line, args, 3))
        VEC_PUSH(s->arena, &s->buffers, b);
}

// The record starts with .model; options and results may stand before it.
static void model(struct asm_state *s, struct asm_line *line) {
    struct npu_image_record *r = &s->record;
    struct asm_arg args[] = {{.key = "bytes", .type = ASM_U64, .out = &r->model_bytes},
                             {.key = "crc", .type = ASM_U32, .out = &r->model_crc},
                             {.key = "graph", .type = ASM_U64, .out = &r->graph_hash}};
    if (asm_string(s, line, &r->model, NULL) && asm_args(s, line, args, 3)) s->have_record = true;
}

static void option(struct asm_state *s, struct asm_line *line) {
    struct npu_image_option o;
    if (asm_string(s, line, &o.name, NULL) && asm_string(s, line, &o.value, NULL) &&
        asm_end(s, line))
        VEC_PUSH(s->arena, &s->options, o);
}

static void result(struct asm_state *s, struct asm_line *line) {
    struct npu_image_result r = {0};
    struct asm_arg args[] = {{.key = "at", .type = ASM_U64, .out = &r.address},
                             {.key = "first", .type = ASM_U32, .out = &r.first_tag},
                             {.key = "last", .type = ASM_U32, .out = &r.last_tag}};
    const char *at;
    int strides;
    if (!asm_string(s, line, &r.name, NULL)) return;
    const size_t n = asm_word(line, &at);
    r.space = n == 3 && !memcmp(at, "spm", 3)    ? ISA_SPM
              : n == 4 && !memcmp(at, "dram", 4) ? ISA_DRAM
                                                 : ISA_SPACE_NONE;
    if (!r.space) {
        asm_fault(s, line, at, "dram or spm is expected");
        return;
    }
    if (!dims(s, line, &r.dtype, &r.rank, r.dims) ||
        !numbers(s, line, "strides", &strides, r.strides))
        return;
    if (strides != r.rank)
        asm_fault(s, line, line->p, "%d strides for %d dimensions", strides, r.rank);
    else if (asm_args(s, line, args, 3))
        VEC_PUSH(s->arena, &s->results, r);
}

static void add_weights(struct asm_state *s, struct span bytes) {
    const struct npu_image_weights w = {.offset = s->weights_at, .bytes = bytes};
    VEC_PUSH(s->arena, &s->weights, w);
    s->weights_at += bytes.size;
}

// Lines that follow each other make one chunk.
static void add_hex(struct asm_state *s, const struct asm_bytes *bytes) {
    struct npu_image_weights *last = s->weights.len ? &VEC_LAST(&s->weights) : NULL;
    const bool joins = last && s->hex.len && last->bytes.data == s->hex.ptr &&
                       last->offset + last->bytes.size == s->weights_at;
    if (!joins) s->hex = (struct asm_bytes){0};
    VEC_EXTEND(s->arena, &s->hex, bytes->ptr, bytes->len);
    if (joins) {
        last->bytes = (struct span){s->hex.ptr, s->hex.len};
        s->weights_at += bytes->len;
    } else {
        add_weights(s, (struct span){s->hex.ptr, s->hex.len});
    }
}

static void hex(struct asm_state *s, struct asm_line *line) {
    struct asm_bytes bytes = {0};
    const char *at;
    for (;;) {
        const size_t n = asm_word(line, &at);
        if (n == 0) break;
        unsigned v = 256;
        if (n == 2) {
            v = 0;
            for (size_t i = 0; i < 2; i++) {
                const char *digits = "0123456789abcdef";
                const char *d = strchr(digits, at[i]);
                v = d ? v * 16 + (unsigned)(d - digits) : 256;
            }
        }
        if (v > 255) {
            asm_fault(s, line, at, "bytes of two hexadecimal digits, 0-9 a-f, are expected");
            return;
        }
        VEC_PUSH(s->arena, &bytes, (uint8_t)v);
    }
    if (asm_end(s, line)) add_hex(s, &bytes);
}

// The file beside the text, else in the current folder.
static npu_status map_beside(struct asm_state *s, const char *name, struct span *out) {
    const char *slash = strrchr(s->where, '/');
    if (name[0] != '/' && slash) {
        const char *path =
            arena_printf(s->arena, "%.*s/%s", (int)(slash - s->where), s->where, name);
        npu_status st = file_map_in(s->arena, path, out);
        if (!st || npu_status_code(st) == NPU_NO_MEMORY) return st;
        npu_status_free(st);
    }
    return file_map_in(s->arena, name, out);
}

static void incbin(struct asm_state *s, struct asm_line *line) {
    const char *name, *at = line->p;
    uint64_t offset, size, crc;
    struct span file;
    if (!asm_string(s, line, &name, NULL)) return;
    uint64_t *number[] = {&offset, &size, &crc};
    for (int i = 0; i < 3; i++) {
        if (!asm_eat(line, ',')) {
            asm_fault(s, line, line->p, "FILE, OFFSET, SIZE, CRC are expected");
            return;
        }
        if (!asm_u64(s, line, number[i])) return;
    }
    if (!asm_end(s, line)) return;
    npu_status st = map_beside(s, name, &file);
    if (st) {
        diag_add(&s->faults, npu_note(st, "%s:%d", s->where, line->number));
        return;
    }
    if (offset > file.size || size > file.size - offset) {
        asm_fault(s, line, at, "'%s' has %zu bytes, fewer than offset and size ask for", name,
                  file.size);
        return;
    }
    const struct span bytes = {file.data + offset, (size_t)size};
    if (asm_crc(bytes) != crc) {
        asm_fault(s, line, at, "'%s' has changed: CRC-32 0x%08x, expected 0x%08llx", name,
                  asm_crc(bytes), (unsigned long long)crc);
        return;
    }
    add_weights(s, bytes);
}

static void yaml(struct asm_state *s, struct asm_line *line) {
    const char *text;
    size_t n;
    if (asm_string(s, line, &text, &n) && asm_end(s, line)) str_append(&s->yaml, text, n);
}

static void set(struct asm_state *s, struct asm_line *line) {
    const char *text = NULL;
    text_into(s, line, &text);
    if (text) VEC_PUSH(s->arena, &s->sets, text);
}

static void hash(struct asm_state *s, struct asm_line *line) {
    struct asm_arg args[] = {{.key = "program", .type = ASM_U64, .out = &s->hash[0]},
                             {.key = "timing", .type = ASM_U64, .out = &s->hash[1]}};
    s->have_hash = asm_args(s, line, args, 2);
}

static void peak(struct asm_state *s, struct asm_line *line) {
    struct asm_arg args[] = {{.key = "spm", .type = ASM_U64, .out = &s->image.spm_peak_bytes},
                             {.key = "psum", .type = ASM_U64, .out = &s->image.psum_peak_bytes}};
    (void)asm_args(s, line, args, 2);
}

static void dram(struct asm_state *s, struct asm_line *line) {
    s->have_dram = asm_u64(s, line, &s->image.dram_bytes) && asm_end(s, line);
}

static void weights(struct asm_state *s, struct asm_line *line) {
    if (asm_u64(s, line, &s->weights_at)) (void)asm_end(s, line);
}

static void program(struct asm_state *s, struct asm_line *line) {
    text_into(s, line, &s->image.name);
}
static void producer(struct asm_state *s, struct asm_line *line) {
    text_into(s, line, &s->image.producer);
}
static void target(struct asm_state *s, struct asm_line *line) {
    text_into(s, line, &s->image.target);
}
static void dtype_mode(struct asm_state *s, struct asm_line *line) {
    text_into(s, line, &s->image.dtype_mode);
}
static void input(struct asm_state *s, struct asm_line *line) {
    tensor(s, line, CONTAINER_ROLE_INPUT);
}
static void output(struct asm_state *s, struct asm_line *line) {
    tensor(s, line, CONTAINER_ROLE_OUTPUT);
}
static void state(struct asm_state *s, struct asm_line *line) {
    tensor(s, line, CONTAINER_ROLE_STATE);
}

void asm_directive(struct asm_state *s, struct asm_line *line, const char *name, size_t len) {
    static const struct {
        const char *name;
        void (*read)(struct asm_state *, struct asm_line *);
    } rows[] = {
        {"program", program}, {"producer", producer}, {"target", target},   {"dtype", dtype_mode},
        {"set", set},         {"yaml", yaml},         {"hash", hash},       {"input", input},
        {"output", output},   {"state", state},       {"segment", segment}, {"dram", dram},
        {"peak", peak},       {"entry", entry},       {"launch", launch},   {"tag", tag},
        {"span", span_row},   {"stat", stat},         {"buffer", buffer},   {"weights", weights},
        {"hex", hex},         {"incbin", incbin},     {"model", model},     {"option", option},
        {"result", result},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strlen(rows[i].name) != len || memcmp(rows[i].name, name, len) != 0) continue;
        rows[i].read(s, line);
        return;
    }
    asm_fault(s, line, name, "there is no directive '.%.*s'", (int)len, name);
}
