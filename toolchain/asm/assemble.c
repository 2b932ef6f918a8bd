// SPDX-License-Identifier: Apache-2.0
//
// Assembler: text to image in one pass over the lines.
//
//   line: strip the comment; label? remember its granule; directive? directive.c; else an
//   instruction: parse, encode, append.
// A branch or call to a label that is still unknown is encoded with offset 1 and remembered: its
// length does not depend on the offset, as only an offset of 0 (a label at the instruction itself,
// which is known) could shorten it. At the end those lines are read again and overwritten.

#include <string.h>

#include "isa/insn_text.h"
#include "toolchain/asm/internal.h"

enum { MAX_CODE_BYTES = 1 << 30 };

// State of the label callback for one instruction.
struct resolve {
    struct asm_state *s;
    size_t granule; // of the instruction
    bool unknown;   // a label was not there yet
};

static bool find_label(struct asm_state *s, const char *word, size_t len, size_t *granule) {
    const size_t *value = map_get_n(&s->labels, word, len);
    if (!value) return false;
    *granule = *value;
    return true;
}

static bool label_offset(void *ctx, const char *word, size_t len, int64_t *offset) {
    struct resolve *r = ctx;
    size_t target;
    *offset = 1;
    if (find_label(r->s, word, len, &target))
        *offset = (int64_t)target - (int64_t)r->granule;
    else
        r->unknown = true;
    return true;
}

// Encodes one instruction line at a granule; 0 after a fault.
static int encode_line(struct asm_state *s, const struct asm_line *line, struct resolve *r,
                       uint8_t *bytes) {
    struct isa_insn in;
    struct isa_text_error err;
    const char *field;
    if (!isa_parse(line->p, (size_t)(line->end - line->p), label_offset, r, &in, &err)) {
        asm_fault(s, line, line->p + err.pos, "%s", err.what);
        return 0;
    }
    const int granules = isa_encode(&in, bytes, &field);
    if (granules == 0) asm_fault(s, line, line->p, "%s is out of range", field);
    return granules;
}

static void instruction(struct asm_state *s, struct asm_line *line) {
    uint8_t bytes[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
    struct resolve r = {s, s->code.len / ISA_GRANULE_BYTES, false};
    const int granules = encode_line(s, line, &r, bytes);
    if (r.unknown) {
        const struct asm_fixup f = {.line = *line, .granule = r.granule};
        VEC_PUSH(s->arena, &s->fixups, f);
    }
    if (s->code.len > MAX_CODE_BYTES) {
        asm_fault(s, line, line->p, "more than 2^30 bytes of code");
        return;
    }
    const size_t size = (size_t)granules * ISA_GRANULE_BYTES;
    VEC_EXTEND(s->arena, &s->code, bytes, size);
}

static void granule(struct asm_state *s, struct asm_line *line) {
    uint64_t word[2];
    uint8_t bytes[ISA_GRANULE_BYTES];
    if (!asm_u64(s, line, &word[0]) || !asm_u64(s, line, &word[1]) || !asm_end(s, line)) return;
    for (int i = 0; i < ISA_GRANULE_BYTES; i++)
        bytes[i] = (uint8_t)(word[i / 8] >> (8 * (i % 8)));
    VEC_EXTEND(s->arena, &s->code, bytes, ISA_GRANULE_BYTES);
}

// NAME: at the start of a line; the cursor goes behind it.
static bool label(struct asm_state *s, struct asm_line *line) {
    struct asm_line l = *line;
    const char *at;
    const size_t n = asm_word(&l, &at);
    if (n == 0 || l.p >= l.end || *l.p != ':') return false;
    l.p++;
    *line = l;
    if (*at >= '0' && *at <= '9') {
        asm_fault(s, line, at, "a label starts with a letter or '_'");
        return true;
    }
    size_t *value = ARENA_NEW(s->arena, size_t);
    *value = s->code.len / ISA_GRANULE_BYTES;
    if (map_put_n(&s->labels, at, n, value))
        asm_fault(s, line, at, "label '%.*s' is already defined", (int)n, at);
    return true;
}

// Cuts "// ..." that stands outside strings.
static void strip_comment(struct asm_line *line) {
    bool quoted = false;
    for (const char *p = line->p; p < line->end; p++) {
        if (quoted && *p == '\\')
            p++;
        else if (*p == '"')
            quoted = !quoted;
        else if (!quoted && *p == '/' && p + 1 < line->end && p[1] == '/')
            line->end = p;
    }
}

static void read_line(struct asm_state *s, struct asm_line *line) {
    strip_comment(line);
    asm_blank(line);
    while (line->p < line->end && label(s, line))
        asm_blank(line);
    if (line->p >= line->end) return;
    if (*line->p != '.') {
        instruction(s, line);
        return;
    }
    line->p++;
    const char *name;
    const size_t n = asm_word(line, &name);
    if (n == 7 && memcmp(name, "granule", 7) == 0)
        granule(s, line);
    else if (s->code_only)
        asm_fault(s, line, name, "only instructions, labels and .granule are expected here");
    else
        asm_directive(s, line, name, n);
}

static void read_text(struct asm_state *s, struct span text) {
    const char *p = (const char *)text.data, *end = p + text.size;
    for (int number = 1; p < end; number++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop) stop = end;
        struct asm_line line = {p, p, stop, number};
        read_line(s, &line);
        p = stop + 1;
    }
}

static void fix_up(struct asm_state *s) {
    for (size_t i = 0; i < s->fixups.len; i++) {
        struct asm_fixup *f = &s->fixups.ptr[i];
        if (f->bytes) {
            const char *at;
            size_t target = 0;
            struct asm_line l = f->line;
            const size_t n = asm_word(&l, &at);
            if (!find_label(s, at, n, &target))
                asm_fault(s, &f->line, at, "label '%.*s' is not defined", (int)n, at);
            *f->bytes = (uint64_t)target * ISA_GRANULE_BYTES;
            continue;
        }
        uint8_t bytes[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
        struct resolve r = {s, f->granule, false};
        const int granules = encode_line(s, &f->line, &r, bytes);
        if (r.unknown)
            asm_fault(s, &f->line, f->line.p, "its label is not defined");
        else if (granules)
            memcpy(s->code.ptr + f->granule * ISA_GRANULE_BYTES, bytes,
                   (size_t)granules * ISA_GRANULE_BYTES);
    }
}

static void start(struct asm_state *s, struct arena *a, const char *where) {
    *s = (struct asm_state){.arena = a, .where = where};
    map_init(&s->labels, a);
}

npu_status asm_parse_code(struct arena *a, struct span text, const char *where, struct span *code) {
    struct asm_state s;
    start(&s, a, where);
    s.code_only = true;
    read_text(&s, text);
    fix_up(&s);
    NPU_TRY(diag_finish(&s.faults));
    *code = (struct span){s.code.ptr, s.code.len};
    return NULL;
}

npu_status asm_assemble(struct arena *a, struct span text, const char *where,
                        const struct asm_machine *machine, struct npu_program_image **out) {
    struct asm_state s;
    start(&s, a, where);
    read_text(&s, text);
    fix_up(&s);
    npu_status st = diag_finish(&s.faults);
    if (!st) st = asm_finish(&s, machine);
    str_free(&s.yaml);
    NPU_TRY(st);
    *out = arena_copy(a, &s.image, sizeof s.image);
    return container_check(*out, where);
}
