// SPDX-License-Identifier: Apache-2.0
//
// Image to text. Instructions first get labels: one pass marks where instructions start, the next
// where branches, calls, entry points and launches lead; only marked starts become labels.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "isa/insn_text.h"
#include "runtime/base/alloc.h"
#include "runtime/base/hw_yaml.h"
#include "toolchain/asm/internal.h"

enum { SPELLED_BYTES = 4096, HEX_PER_LINE = 32 };
enum { MARK_START = 1, MARK_TARGET = 2 };

static void put_string(struct str *out, const char *text, size_t n) {
    str_putc(out, '"');
    for (size_t i = 0; i < n;) {
        char at[5] = {0};
        memcpy(at, text + i, n - i < 4 ? n - i : 4);
        const size_t plain = str_plain_char(at);
        if (*at == '"' || *at == '\\')
            str_printf(out, "\\%c", *at);
        else if (*at == '\n')
            str_puts(out, "\\n");
        else if (plain)
            str_append(out, at, plain);
        else
            str_printf(out, "\\x%02x", (unsigned)(unsigned char)*at);
        i += plain ? plain : 1;
    }
    str_putc(out, '"');
}

static void put_text(struct str *out, const char *text) {
    put_string(out, text ? text : "", text ? strlen(text) : 0);
}

static void put_key_text(struct str *out, const char *key, const char *text) {
    if (!text || !*text) return;
    str_printf(out, " %s=", key);
    put_text(out, text);
}

static void put_key(struct str *out, const char *key, uint64_t value) {
    if (value) str_printf(out, " %s=%" PRIu64, key, value);
}

// ---- code

// Granule that a branch or call leads to; SIZE_MAX for other instructions.
static size_t branch_target(const struct isa_insn *in, size_t granule, size_t granules) {
    int64_t offset;
    if (in->h.opcode == ISA_OP_BR)
        offset = in->u.BR.offset;
    else if (in->h.opcode == ISA_OP_CALL)
        offset = in->u.CALL.offset;
    else
        return SIZE_MAX;
    const int64_t to = (int64_t)granule + offset;
    return to >= 0 && to < (int64_t)granules ? (size_t)to : SIZE_MAX;
}

static void mark_code(struct span code, uint8_t *mark) {
    const size_t granules = code.size / ISA_GRANULE_BYTES;
    struct isa_insn in;
    const char *why;
    for (size_t g = 0; g < granules;) {
        const size_t at = g * ISA_GRANULE_BYTES;
        mark[g] |= MARK_START;
        const int n = isa_decode(code.data + at, code.size - at, &in, &why);
        const size_t to = n ? branch_target(&in, g, granules) : SIZE_MAX;
        if (to != SIZE_MAX) mark[to] |= MARK_TARGET;
        g += n ? (size_t)n : 1;
    }
}

static bool is_label(const uint8_t *mark, size_t granule) {
    return mark[granule] == (MARK_START | MARK_TARGET);
}

static void print_code(struct span code, const uint8_t *mark, struct str *out) {
    const size_t granules = code.size / ISA_GRANULE_BYTES;
    char line[ISA_TEXT_BYTES], label[32];
    struct isa_insn in;
    const char *why;
    int depth = 0;
    for (size_t g = 0; g < granules;) {
        const uint8_t *p = code.data + g * ISA_GRANULE_BYTES;
        if (is_label(mark, g)) str_printf(out, "L%zu:\n", g);
        const int n = isa_decode(p, code.size - g * ISA_GRANULE_BYTES, &in, &why);
        if (!n) {
            uint64_t word[2] = {0};
            for (int i = 0; i < ISA_GRANULE_BYTES; i++)
                word[i / 8] |= (uint64_t)p[i] << (8 * (i % 8));
            str_printf(out, ".granule 0x%016" PRIx64 " 0x%016" PRIx64 " // %s\n", word[0], word[1],
                       why);
            g++;
            continue;
        }
        if (in.h.opcode == ISA_OP_ENDL && depth > 0) depth--;
        const size_t to = branch_target(&in, g, granules);
        const bool named = to != SIZE_MAX && is_label(mark, to);
        if (named) (void)snprintf(label, sizeof label, "L%zu", to);
        isa_print(&in, named ? label : NULL, line, sizeof line);
        str_printf(out, "%*s%s\n", 2 + 2 * depth, "", line);
        if (in.h.opcode == ISA_OP_LOOP && depth < 8) depth++;
        g += (size_t)n;
    }
}

npu_status asm_print_code(struct span code, struct str *out) {
    uint8_t *mark = base_alloc_array(code.size / ISA_GRANULE_BYTES + 1, 1);
    if (!mark) return npu_fail(NO_MEMORY, "out of memory printing the code");
    memset(mark, 0, code.size / ISA_GRANULE_BYTES + 1);
    mark_code(code, mark);
    print_code(code, mark, out);
    base_free(mark);
    return str_status(out);
}

// ---- directives

static void put_shape(struct str *out, int dtype, int rank, const int64_t *dims) {
    str_printf(out, " %s[", isa_dtype_name(dtype));
    for (int i = 0; i < rank; i++)
        str_printf(out, "%s%" PRId64, i ? "," : "", dims[i]);
    str_putc(out, ']');
}

// Every line of the description as a string; and hashes that are not its own.
static npu_status put_machine(struct str *out, const struct npu_program_image *m) {
    const char *p = m->hw_yaml ? m->hw_yaml : "";
    struct hw hw;
    npu_status st = hw_parse(p, strlen(p), "description", &hw);
    if (npu_status_code(st) == NPU_NO_MEMORY) return st;
    if (st || hw_hash(&hw, HW_PROGRAM) != m->hw_program_hash ||
        hw_hash(&hw, HW_TIMING) != m->hw_timing_hash)
        str_printf(out, ".hash program=0x%" PRIx64 " timing=0x%" PRIx64 "\n", m->hw_program_hash,
                   m->hw_timing_hash);
    npu_status_free(st);
    while (*p) {
        const size_t n = strcspn(p, "\n") + (strchr(p, '\n') ? 1 : 0);
        str_puts(out, ".yaml ");
        put_string(out, p, n);
        str_putc(out, '\n');
        p += n;
    }
    return NULL;
}

static void put_tensors(struct str *out, const struct npu_program_image *m) {
    for (size_t i = 0; i < m->ntensors; i++) {
        const struct npu_image_tensor *t = &m->tensors[i];
        str_printf(out, ".%s ", container_role_name(t->role));
        put_text(out, t->name);
        put_shape(out, t->dtype, t->rank, t->dims);
        str_printf(out, " at=0x%" PRIx64, t->dram_offset);
        if (t->model_dtype != t->dtype)
            str_printf(out, " model=%s", isa_dtype_name(t->model_dtype));
        put_key(out, "limit", (uint64_t)t->index_limit);
        str_putc(out, '\n');
    }
    for (size_t i = 0; i < m->nsegments; i++) {
        const struct npu_image_segment *g = &m->segments[i];
        str_printf(out, ".segment %s at=0x%" PRIx64 " bytes=%" PRIu64 " align=%" PRIu64,
                   container_segment_name(g->kind), g->dram_offset, g->bytes, g->alignment);
        put_key(out, "offset", g->section_offset);
        put_key(out, "initial", g->initial_bytes);
        str_putc(out, '\n');
    }
    str_printf(out, ".dram %" PRIu64 "\n", m->dram_bytes);
    str_printf(out, ".peak spm=%" PRIu64 " psum=%" PRIu64 "\n", m->spm_peak_bytes,
               m->psum_peak_bytes);
}

static void put_address(struct str *out, const uint8_t *mark, uint64_t bytes) {
    if (is_label(mark, bytes / ISA_GRANULE_BYTES))
        str_printf(out, " at=L%" PRIu64, bytes / ISA_GRANULE_BYTES);
    else
        str_printf(out, " at=%" PRIu64, bytes);
}

static void put_entries(struct str *out, const struct npu_program_image *m, const uint8_t *mark) {
    for (size_t i = 0; i < m->nentries; i++) {
        const struct npu_image_entry *e = &m->entries[i];
        str_puts(out, ".entry ");
        put_text(out, e->name);
        put_address(out, mark, e->code_offset);
        for (size_t k = 0; k < e->ntensors; k++)
            str_printf(out, "%s%" PRIu32, k ? "," : " tensors=", e->tensors[k]);
        put_key(out, "views", e->views);
        str_putc(out, '\n');
        for (size_t k = 0; k < e->nlaunches; k++) {
            str_puts(out, "  .launch");
            put_address(out, mark, e->launches[k].code_offset);
            put_key(out, "tag", e->launches[k].tag);
            put_key(out, "views", e->launches[k].views);
            put_key_text(out, "op", e->launches[k].op);
            put_key_text(out, "graph", e->launches[k].graph_op);
            str_putc(out, '\n');
        }
    }
}

static void put_debug(struct str *out, const struct npu_program_image *m) {
    for (size_t i = 0; i < m->ntags; i++) {
        const struct npu_image_tag *t = &m->tags[i];
        str_printf(out, ".tag %" PRIu32, t->tag);
        put_key_text(out, "layer", t->layer);
        put_key_text(out, "op", t->op);
        put_key_text(out, "kernel", t->kernel);
        put_key_text(out, "text", t->text);
        put_key(out, "group", t->group);
        put_key(out, "macs", t->macs);
        put_key(out, "elems", t->vector_elems);
        put_key(out, "weights", t->weight_bytes);
        put_key(out, "inputs", t->input_bytes);
        put_key(out, "outputs", t->output_bytes);
        put_key(out, "m", t->m);
        put_key(out, "n", t->n);
        put_key(out, "k", t->k);
        put_key(out, "batch", t->batch);
        put_key(out, "type", (uint64_t)t->dtype);
        for (size_t k = 0; k < t->nnodes; k++) {
            str_puts(out, k ? "," : " nodes=");
            put_text(out, t->nodes[k]);
        }
        str_putc(out, '\n');
    }
    for (size_t i = 0; i < m->nspans; i++) {
        str_printf(out, ".span %" PRIu32 " ", m->spans[i].id);
        put_text(out, m->spans[i].name);
        str_putc(out, '\n');
    }
    for (size_t i = 0; i < m->nbuffers; i++) {
        const struct npu_image_buffer *b = &m->buffers[i];
        str_puts(out, ".buffer ");
        put_text(out, b->name);
        put_shape(out, b->dtype, b->rank, b->dims);
        str_printf(out, " at=0x%" PRIx64 " bytes=%" PRIu64, b->dram_offset, b->bytes);
        put_key(out, "tag", b->tag);
        str_putc(out, '\n');
    }
    for (size_t i = 0; i < m->nstats; i++) {
        str_puts(out, ".stat ");
        put_text(out, m->stats[i].name);
        str_printf(out, " %" PRId64 "\n", m->stats[i].value);
    }
}

static void put_record(struct str *out, const struct npu_image_record *r) {
    if (!r) return;
    str_puts(out, ".model ");
    put_text(out, r->model);
    str_printf(out, " bytes=%" PRIu64 " crc=0x%" PRIx32 " graph=0x%" PRIx64 "\n", r->model_bytes,
               r->model_crc, r->graph_hash);
    for (size_t i = 0; i < r->noptions; i++) {
        str_puts(out, ".option ");
        put_text(out, r->options[i].name);
        str_putc(out, ' ');
        put_text(out, r->options[i].value);
        str_putc(out, '\n');
    }
    for (size_t i = 0; i < r->nresults; i++) {
        const struct npu_image_result *v = &r->results[i];
        str_puts(out, ".result ");
        put_text(out, v->name);
        str_puts(out, v->space == ISA_SPM ? " spm" : " dram");
        put_shape(out, v->dtype, v->rank, v->dims);
        str_puts(out, " [");
        for (int d = 0; d < v->rank; d++)
            str_printf(out, "%s%" PRId64, d ? "," : "", v->strides[d]);
        str_printf(out, "] at=0x%" PRIx64 " first=%" PRIu32 " last=%" PRIu32 "\n", v->address,
                   v->first_tag, v->last_tag);
    }
}

// ---- constants

static void put_hex(struct str *out, struct span bytes) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.size; i++) {
        if (i % HEX_PER_LINE == 0) str_puts(out, i ? "\n.hex" : ".hex");
        const char text[3] = {' ', digits[bytes.data[i] >> 4], digits[bytes.data[i] & 15]};
        str_append(out, text, 3);
    }
    if (bytes.size) str_putc(out, '\n');
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && memcmp(text + n - k, end, k) == 0;
}

// Success for what is only no answer; out of memory stays.
static npu_status ignore(npu_status st) {
    if (npu_status_code(st) == NPU_NO_MEMORY) return st;
    npu_status_free(st);
    return NULL;
}

// Whether a file is a .npu that holds just these constants, and at which offset.
static npu_status find_in_program(const struct npu_program_image *m, const char *path, bool *found,
                                  uint64_t *offset) {
    struct span file;
    *found = false;
    if (m->nweights != 1 || m->weights[0].offset != 0) return NULL;
    npu_status st = file_map(path, &file);
    if (st) return ignore(st);
    struct container_section_info rows[CONTAINER_MAX_SECTIONS];
    size_t n = 0;
    st = container_sections(file, path, rows, &n);
    for (size_t i = 0; i < n && !st; i++) {
        if (rows[i].code != CONTAINER_WEIGHTS || rows[i].raw_bytes != rows[i].stored_bytes)
            continue;
        *found = rows[i].raw_bytes == m->weights[0].bytes.size &&
                 rows[i].crc == asm_crc(m->weights[0].bytes);
        *offset = rows[i].offset;
    }
    file_unmap(file);
    return ignore(st);
}

static void put_incbin(struct str *out, const char *file, uint64_t offset, struct span bytes) {
    str_puts(out, ".incbin ");
    put_text(out, file);
    str_printf(out, ", %" PRIu64 ", %zu, 0x%08" PRIx32 "\n", offset, bytes.size, asm_crc(bytes));
}

// All chunks one behind the other in a file beside the text.
static npu_status put_side_file(struct str *out, const struct npu_program_image *m,
                                const char *text_file) {
    struct str path = {0};
    str_printf(&path, "%s.weights", text_file);
    struct file_out *f;
    npu_status st = str_status(&path);
    if (!st) st = file_out_open(str_text(&path), &f);
    if (st) {
        str_free(&path);
        return st;
    }
    const char *slash = strrchr(str_text(&path), '/');
    const char *name = slash ? slash + 1 : str_text(&path);
    uint64_t at = 0;
    for (size_t i = 0; i < m->nweights && !st; i++) {
        const struct npu_image_weights *w = &m->weights[i];
        str_printf(out, ".weights %" PRIu64 "\n", w->offset);
        put_incbin(out, name, at, w->bytes);
        st = file_out_write(f, w->bytes);
        at += w->bytes.size;
    }
    str_free(&path);
    if (!st) return file_out_commit(f);
    file_out_abort(f);
    return st;
}

static npu_status put_chunks(struct str *out, const struct npu_program_image *m,
                             const char *program, const char *file) {
    uint64_t bytes = 0, offset = 0;
    bool found = false;
    for (size_t i = 0; i < m->nweights; i++)
        bytes += m->weights[i].bytes.size;
    if (bytes == 0) return NULL;
    if (program && bytes > SPELLED_BYTES) NPU_TRY(find_in_program(m, program, &found, &offset));
    if (found) {
        put_incbin(out, program, offset, m->weights[0].bytes);
        return NULL;
    }
    if (file && bytes > SPELLED_BYTES && ends_with(file, ".nps"))
        return put_side_file(out, m, file);
    for (size_t i = 0; i < m->nweights; i++) {
        str_printf(out, ".weights %" PRIu64 "\n", m->weights[i].offset);
        put_hex(out, m->weights[i].bytes);
    }
    return NULL;
}

static npu_status put_weights(struct str *out, const struct npu_program_image *m,
                              const char *program, const char *file) {
    struct arena *a = arena_try_new();
    if (!a) return npu_fail(NO_MEMORY, "out of memory printing the constants");
    jmp_buf out_of_memory;
    if (setjmp(out_of_memory)) {
        arena_free(a);
        return npu_fail(NO_MEMORY, "out of memory printing the constants");
    }
    arena_set_oom(a, &out_of_memory);
    struct npu_image_weights *made = ARENA_ARRAY(a, struct npu_image_weights, m->nweights);
    for (size_t i = 0; i < m->nweights; i++)
        made[i] = (struct npu_image_weights){.offset = m->weights[i].offset,
                                             .bytes = container_chunk(&m->weights[i], a)};
    struct npu_program_image all = *m;
    all.weights = made;
    npu_status st = put_chunks(out, &all, program, file);
    arena_free(a);
    return st;
}

const char *asm_side_file(struct arena *a, const char *file) {
    return ends_with(file, ".nps") ? arena_printf(a, "%s.weights", file) : NULL;
}

npu_status asm_print_image(const struct npu_program_image *m, const char *program, const char *file,
                           struct str *out) {
    const size_t granules = m->code.size / ISA_GRANULE_BYTES;
    uint8_t *mark = base_alloc_array(granules + 1, 1);
    if (!mark) return npu_fail(NO_MEMORY, "out of memory printing the program");
    memset(mark, 0, granules + 1);
    mark_code(m->code, mark);
    for (size_t i = 0; i < m->nentries; i++) {
        const struct npu_image_entry *e = &m->entries[i];
        if (e->code_offset < m->code.size) mark[e->code_offset / ISA_GRANULE_BYTES] |= MARK_TARGET;
        for (size_t k = 0; k < e->nlaunches; k++)
            if (e->launches[k].code_offset < m->code.size)
                mark[e->launches[k].code_offset / ISA_GRANULE_BYTES] |= MARK_TARGET;
    }
    static const char *const names[] = {"program", "producer", "target", "dtype"};
    const char *const texts[] = {m->name, m->producer, m->target, m->dtype_mode};
    for (int i = 0; i < 4; i++) {
        str_printf(out, ".%s ", names[i]);
        put_text(out, texts[i]);
        str_putc(out, '\n');
    }
    npu_status st = put_machine(out, m);
    put_tensors(out, m);
    put_entries(out, m, mark);
    put_debug(out, m);
    put_record(out, m->record);
    if (!st) st = put_weights(out, m, program, file);
    str_putc(out, '\n');
    if (!st) print_code(m->code, mark, out);
    base_free(mark);
    if (!st) st = str_status(out);
    return st;
}
