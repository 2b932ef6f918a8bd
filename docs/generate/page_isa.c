// SPDX-License-Identifier: Apache-2.0
//
// The instruction set's manual. Bit pictures draw one 64-bit word per box line, highest bit left;
// operand patterns and chains are drawn once and then only named.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "docs/generate/pages.h"
#include "isa/insn_text.h"
#include "isa/timing.h"
#include "runtime/base/hw_yaml.h"

struct cell {
    const char *name;
    int lo, width;
};

// Draws the fields of one word; `prefix` is cut from their names.
static void put_word(struct str *out, int word, const struct cell *cells, int n) {
    struct str top = {0}, rule = {0}, middle = {0};
    for (int i = n - 1; i >= 0; i--) {
        char range[24];
        const int hi = cells[i].lo + cells[i].width - 1;
        if (cells[i].width == 1)
            (void)snprintf(range, sizeof range, "%d", cells[i].lo);
        else
            (void)snprintf(range, sizeof range, "%d:%d", hi, cells[i].lo);
        size_t w = strlen(cells[i].name);
        if (strlen(range) > w) w = strlen(range);
        str_printf(&top, "  %-*s", (int)w + 1, range);
        str_printf(&middle, "| %-*s ", (int)w, cells[i].name);
        str_putc(&rule, '+');
        for (size_t k = 0; k < w + 2; k++)
            str_putc(&rule, '-');
    }
    str_printf(out, "word %-3d", word);
    while (top.len && top.data[top.len - 1] == ' ')
        top.data[--top.len] = 0;
    str_printf(out, "%s\n        %s+\n        %s|\n        %s+\n", str_text(&top), str_text(&rule),
               str_text(&middle), str_text(&rule));
    str_free(&top);
    str_free(&rule);
    str_free(&middle);
}

// Draws fields in ascending order from bit `base`; `skip` bytes of each name are left out.
static void put_picture(struct str *out, const struct isa_field_desc *f, int n, int base,
                        size_t skip) {
    struct cell cells[64];
    int count = 0, word = -1;
    bool drawn[128] = {0};
    str_puts(out, "```\n");
    for (int done = 0; done < n;) {
        int next = -1;
        for (int i = 0; i < n; i++)
            if (!drawn[i] && (next < 0 || f[i].lo < f[next].lo)) next = i;
        drawn[next] = true;
        done++;
        if ((f[next].lo - base) / 64 != word) {
            if (count) put_word(out, word, cells, count);
            word = (f[next].lo - base) / 64;
            count = 0;
        }
        const char *name = f[next].kind == ISA_KIND_RSV ? "0" : f[next].name + skip;
        cells[count++] = (struct cell){name, (f[next].lo - base) % 64, f[next].width};
    }
    if (count) put_word(out, word, cells, count);
    str_puts(out, "```\n\n");
}

static const char *kind_text(enum isa_kind kind) {
    switch (kind) {
    case ISA_KIND_UINT: return "unsigned";
    case ISA_KIND_SINT: return "signed";
    case ISA_KIND_SIZE: return "size, stored minus one";
    case ISA_KIND_REG: return "register";
    case ISA_KIND_F32: return "binary32 bits";
    case ISA_KIND_RSV: return "zero";
    }
    return "";
}

static void put_field_rows(struct str *out, const struct isa_field_desc *f, int n, int base,
                           size_t skip) {
    str_puts(out, "| field | bits | kind | meaning |\n|---|---|---|---|\n");
    for (int i = 0; i < n; i++) {
        if (f[i].kind == ISA_KIND_RSV) continue;
        const int lo = f[i].lo - base;
        str_printf(out, "| `%s` | %d:%d | %s | ", f[i].name + skip, lo + f[i].width - 1, lo,
                   kind_text(f[i].kind));
        put_cell(out, f[i].doc);
        str_puts(out, " |\n");
    }
    str_putc(out, '\n');
}

// The fields of one pattern or chain: those whose names start with "NAME.".
static int find_run(const struct isa_insn_desc *d, const char *name, int *count) {
    const size_t n = strlen(name);
    int first = -1;
    *count = 0;
    for (int i = 0; i < d->nfield; i++) {
        if (strncmp(d->field[i].name, name, n) != 0 || d->field[i].name[n] != '.') continue;
        if (first < 0) first = i;
        ++*count;
    }
    return first;
}

static void put_common(struct str *out, const char *title, const char *text, int op,
                       const char *operand) {
    const struct isa_insn_desc *d = isa_find((unsigned)op);
    int n;
    const int first = find_run(d, operand, &n);
    str_printf(out, "### %s\n\n%s\n\n", title, text);
    const struct isa_field_desc *f = d->field + first;
    put_picture(out, f, n, f->lo, strlen(operand) + 1);
    put_field_rows(out, f, n, f->lo, strlen(operand) + 1);
}

static void put_introduction(struct str *out) {
    str_puts(
        out,
        "An instruction is 1 to 16 granules of 128 bits, little-endian: a header, then the payload "
        "in the order of its fields.\nTrailing granules that are zero are not stored, so an absent "
        "operand at the end costs nothing and every instruction\nhas exactly one encoding; "
        "anything "
        "else is refused when it is decoded. The line form is described in\n"
        "[isa/insn_text.h](../../isa/insn_text.h), program text in "
        "[toolchain/asm/asm.h](../../toolchain/asm/asm.h).\n\n## Common parts\n\n### Header\n\n"
        "Granule 0 of every instruction. Waits are fulfilled before the instruction starts; "
        "signals fire at its start, when its\noperands have been read, or when it is "
        "complete.\n\n");
    put_picture(out, isa_header_fields, isa_nheader_field, 0, 0);
    put_field_rows(out, isa_header_fields, isa_nheader_field, 0, 0);
    put_common(out, "On-chip pattern (2 granules)",
               "A strided block in SPM or PSUM: element (i0..i4) lies at base + register + the sum "
               "of i*stride elements. Dimension 0 is\nthe innermost.",
               ISA_OP_MM, "a");
    put_common(out, "DRAM pattern (3 granules)", "The same for any memory, with wide fields.",
               ISA_OP_COPY, "src");
    put_common(out, "Chain (2 granules)",
               "Up to 8 stages that each replace the running value acc, which starts as IN0, and 4 "
               "immediates. Operations:\n[types.md](types.md#chain-operations).",
               ISA_OP_VMAP, "chain");
}

static void put_contents(struct str *out) {
    static const char *const pages[] = {"cp", "dma", "mxu", "vec", "cp"}; // by class
    str_puts(out, "## Instructions\n\n| opcode | instruction | engine | |\n|---|---|---|---|\n");
    for (int i = 0; i < isa_ninsn; i++) {
        const struct isa_insn_desc *d = &isa_insns[i];
        char anchor[32];
        (void)snprintf(anchor, sizeof anchor, "%s", d->name);
        for (char *c = anchor; *c; c++)
            if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
        str_printf(out, "| 0x%02x | [%s](isa-%s.md#%s) | %s | %s%s |\n", (unsigned)d->op, d->text,
                   pages[d->cls], anchor, isa_class_name(d->cls), d->summary,
                   d->implemented ? "" : " *Reserved: executing it is a fault.*");
    }
    str_putc(out, '\n');
}

// MNEMONIC field=... operand=... in the order of insn.def.
static void put_syntax(struct str *out, const struct isa_insn_desc *d) {
    str_printf(out, "```\n%s", d->text);
    if (d->cls == ISA_CLASS_DMA) str_puts(out, " @dmaN");
    if (d->cls == ISA_CLASS_ANY) str_puts(out, " @ENGINE");
    for (int i = 0; i < d->nfield; i++)
        if (d->field[i].kind != ISA_KIND_RSV && !strchr(d->field[i].name, '.'))
            str_printf(out, " %s=%s", d->field[i].name,
                       d->field[i].kind == ISA_KIND_REG ? "rN" : "N");
    for (int k = 0; k < d->npat; k++)
        str_printf(out, " %s=PATTERN", d->pat[k].name);
    if (d->chain_offset >= 0) str_puts(out, " chain=(STAGE;...) imm0..imm3=N");
    str_puts(out, "\n```\n\n");
}

// Where each operand lies, and the picture of the plain fields.
static void put_encoding(struct str *out, const struct isa_insn_desc *d) {
    struct isa_field_desc plain[64];
    int n = 0;
    for (int i = 0; i < d->nfield; i++)
        if (!strchr(d->field[i].name, '.')) plain[n++] = d->field[i];
    if (n) {
        put_picture(out, plain, n, 0, 0);
        put_field_rows(out, plain, n, 0, 0);
    }
    if (d->npat == 0 && d->chain_offset < 0) return;
    str_puts(out, "| operand | granules | form | access | meaning |\n|---|---|---|---|---|\n");
    for (int i = 0; i < d->nfield; i++) {
        const char *dot = strchr(d->field[i].name, '.');
        if (!dot) continue;
        const size_t len = (size_t)(dot - d->field[i].name);
        const int g = d->field[i].lo / 128;
        if (strcmp(dot, ".s0.op") == 0)
            str_printf(out, "| `chain` | %d-%d | chain | | stages and immediates |\n", g, g + 1);
        if (strcmp(dot, ".space") != 0) continue;
        for (int k = 0; k < d->npat; k++) {
            const struct isa_pat_desc *p = &d->pat[k];
            if (strlen(p->name) != len || memcmp(p->name, d->field[i].name, len) != 0) continue;
            str_printf(out, "| `%s` | %d-%d | %s | %s | ", p->name, g, g + (p->dram ? 2 : 1),
                       p->dram ? "DRAM" : "on-chip",
                       p->access == ISA_RW  ? "read, written"
                       : p->access == ISA_W ? "written"
                                            : "read");
            put_cell(out, p->doc);
            str_puts(out, " |\n");
        }
    }
    str_putc(out, '\n');
}

// The example, its bytes, and what it takes on preset server.
static npu_status put_example(struct str *out, const struct isa_insn_desc *d, const struct hw *hw) {
    struct isa_insn in;
    struct isa_text_error err;
    uint8_t bytes[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
    const char *field;
    if (!isa_parse(d->example, strlen(d->example), NULL, NULL, &in, &err))
        return npu_fail(BAD_INPUT, "insn.def: example of %s: column %zu: %s", d->name, err.pos + 1,
                        err.what);
    const int granules = isa_encode(&in, bytes, &field);
    str_printf(out, "Example:\n\n```\n%s\n\n", d->example);
    for (int g = 0; g < granules; g++) {
        for (int i = 0; i < ISA_GRANULE_BYTES; i++)
            str_printf(out, "%s%02x", i ? " " : "", bytes[ISA_GRANULE_BYTES * g + i]);
        str_putc(out, '\n');
    }
    str_puts(out, "```\n\n");
    if (!d->implemented || d->cls == ISA_CLASS_CP || d->cls == ISA_CLASS_ANY) return NULL;
    const struct isa_cost c = isa_time_insn(hw, &in);
    str_printf(out, "On preset server: %" PRId64 " cycles to decode",
               isa_time_decode(hw, granules));
    if (d->cls == ISA_CLASS_DMA)
        str_printf(out, ", at least %" PRId64 " to complete.\n\n", c.done_cycles);
    else
        str_printf(out,
                   "; the next instruction may start after %" PRId64
                   ", the operands are read after %" PRId64 ", the result is there after %" PRId64
                   ".\n\n",
                   c.issue_cycles, c.read_cycles, c.done_cycles);
    return NULL;
}

npu_status page_isa(const char *source, struct str *out) {
    (void)source;
    put_head(out, "Instruction set", "isa/insn.def and isa/header.def");
    put_introduction(out);
    put_contents(out);
    return NULL;
}

// The instructions of a class; ANY stands with CP.
static npu_status put_class(enum isa_class cls, const char *title, struct str *out) {
    struct hw hw;
    hw_defaults(&hw);
    put_head(out, title, "isa/insn.def");
    str_puts(out, "Common parts and all instructions: [isa.md](isa.md). Bits count from the start "
                  "of the instruction.\n\n");
    for (int i = 0; i < isa_ninsn; i++) {
        const struct isa_insn_desc *d = &isa_insns[i];
        if (d->cls != cls && !(cls == ISA_CLASS_CP && d->cls == ISA_CLASS_ANY)) continue;
        str_printf(out, "## %s\n\n`%s`, opcode 0x%02x, %s%s. %s\n\n", d->name, d->text,
                   (unsigned)d->op, isa_class_name(d->cls),
                   d->cls == ISA_CLASS_ANY ? " queue" : " engine", d->summary);
        if (!d->implemented)
            str_puts(out, "**Reserved**: the encoding is fixed, executing it is a fault on this "
                          "revision.\n\n");
        put_syntax(out, d);
        put_encoding(out, d);
        str_printf(out, "Semantics: %s\n\nTiming: %s\n\n", d->semantics, d->timing);
        if (d->faults[0]) str_printf(out, "Faults: %s\n\n", d->faults);
        NPU_TRY(put_example(out, d, &hw));
    }
    out->data[--out->len] = '\0'; // one blank line less at the end
    return str_status(out);
}

npu_status page_isa_cp(const char *source, struct str *out) {
    (void)source;
    return put_class(ISA_CLASS_CP, "Instructions of the command processor", out);
}

npu_status page_isa_dma(const char *source, struct str *out) {
    (void)source;
    return put_class(ISA_CLASS_DMA, "Instructions of the DMA engines", out);
}

npu_status page_isa_mxu(const char *source, struct str *out) {
    (void)source;
    return put_class(ISA_CLASS_MXU, "Instructions of the matrix engine", out);
}

npu_status page_isa_vec(const char *source, struct str *out) {
    (void)source;
    return put_class(ISA_CLASS_VEC, "Instructions of the vector engine", out);
}
