// SPDX-License-Identifier: Apache-2.0
// CRCs of instructions: text with a line per write, read back from any bytes, and two runs side by
// side.
#include "simulator/npusim/crc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"

// A line of the file.
struct line {
    uint64_t job, seq;
    uint32_t pc, tag, crc;
    int engine, space;
    int64_t lo, hi, bytes;
    size_t order; // in its own run
};

struct lines {
    struct line *item; // owned
    size_t n;
    uint64_t code_bytes;
    uint32_t code_crc;
};

static const char head[] = "# npusim-crc 1";

static npu_status no_memory(void) {
    return npu_fail(NO_MEMORY, "CRCs of instructions");
}

static npu_status lines_of(const struct npu_program_image *image, const struct writes *w,
                           struct lines *out) {
    *out =
        (struct lines){.code_bytes = image->code.size, .code_crc = container_crc(0, image->code)};
    out->item = base_alloc_array(w->n + 1, sizeof *out->item);
    if (!out->item || w->failed) return no_memory();
    for (size_t i = 0; i < w->n; i++) {
        const struct write *from = &w->item[i];
        out->item[out->n++] = (struct line){.job = from->job,
                                            .seq = from->at.seq,
                                            .pc = from->at.pc_granule,
                                            .tag = from->at.tag,
                                            .crc = from->crc,
                                            .engine = from->at.engine,
                                            .space = from->space,
                                            .lo = from->foot.lo,
                                            .hi = from->foot.hi,
                                            .bytes = foot_bytes(&from->foot),
                                            .order = i};
    }
    return NULL;
}

// ---- the file -----------------------------------------------------------------------------------

static const char *op_at(const struct npu_program_image *image, uint32_t pc) {
    const size_t byte = (size_t)pc * ISA_GRANULE_BYTES;
    const struct isa_insn_desc *d =
        byte < image->code.size ? isa_find(image->code.data[byte]) : NULL;
    return d ? d->text : "?";
}

npu_status crc_write(const struct npu_program_image *image, const struct writes *w,
                     const char *path) {
    struct str s = {0};
    if (w->failed) return no_memory();
    str_printf(&s,
               "%s code=%zu:0x%08" PRIx32 " program=%s\n"
               "job,seq,granule,engine,op,tag,loop,space,first,last,bytes,crc32\n",
               head, image->code.size, container_crc(0, image->code), image->name);
    for (size_t i = 0; i < w->n; i++) {
        const struct write *e = &w->item[i];
        str_printf(&s, "%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%s,%s,%" PRIu32 ",", e->job, e->at.seq,
                   e->at.pc_granule, isa_engine_name(e->at.engine), op_at(image, e->at.pc_granule),
                   e->at.tag);
        for (int d = 0; d < e->at.loop_depth; d++)
            str_printf(&s, "%s%" PRIu32, d ? ":" : "", e->at.loop_index[d]);
        str_printf(&s, ",%s,0x%" PRIx64 ",0x%" PRIx64 ",%" PRId64 ",0x%08" PRIx32 "\n",
                   isa_space_name(e->space), (uint64_t)e->foot.lo, (uint64_t)e->foot.hi - 1,
                   foot_bytes(&e->foot), e->crc);
    }
    npu_status st = str_status(&s);
    if (!st) st = file_write_atomic(path, (struct span){(const uint8_t *)s.data, s.len});
    str_free(&s);
    return st;
}

// The next field of a line, up to `end` ('\n' or ',').
static bool field(const char **at, const char *end, char *out, size_t room) {
    size_t n = 0;
    while (*at + n < end && (*at)[n] != ',' && (*at)[n] != '\n')
        n++;
    if (n >= room) return false;
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n;
    return true;
}

static bool number(const char *text, uint64_t most, uint64_t *out) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    *out = strtoull(text, &end, 0);
    return *end == '\0' && *out <= most;
}

static int word_index(const char *word, const char *(*name)(int), int count) {
    for (int i = 0; i < count; i++)
        if (name(i) && !strcmp(word, name(i))) return i;
    return -1;
}

static const char *engine_word(int i) {
    return isa_engine_name(i);
}

static const char *space_word(int i) {
    return isa_space_name(i);
}

enum { FIELDS = 12, SPACES = 8 };

// One line of fields; false: it is no such line.
static bool parse_line(const char **at, const char *end, struct line *out) {
    char text[FIELDS][64];
    uint64_t v[FIELDS] = {0};
    for (int i = 0; i < FIELDS; i++) {
        if (!field(at, end, text[i], sizeof text[i])) return false;
        if (*at == end || **at != (i + 1 < FIELDS ? ',' : '\n')) return false;
        ++*at;
    }
    static const uint8_t numbers[] = {0, 1, 2, 5, 8, 9, 10, 11};
    for (size_t i = 0; i < sizeof numbers; i++) {
        const int k = numbers[i];
        const bool narrow = k == 2 || k == 5 || k == 11;
        if (!number(text[k], narrow ? UINT32_MAX : INT64_MAX, &v[k])) return false;
    }
    out->job = v[0];
    out->seq = v[1];
    out->pc = (uint32_t)v[2];
    out->engine = word_index(text[3], engine_word, ISA_ENGINES);
    out->tag = (uint32_t)v[5];
    out->space = word_index(text[7], space_word, SPACES);
    out->lo = (int64_t)v[8];
    out->hi = (int64_t)v[9] + 1;
    out->bytes = (int64_t)v[10];
    out->crc = (uint32_t)v[11];
    return out->engine >= 0 && out->space >= 0;
}

static npu_status bad_file(const char *path, size_t line) {
    return npu_fail(BAD_INPUT, "%s, line %zu: not what npusim --crc writes", path, line);
}

static npu_status parse(struct span bytes, const char *path, struct lines *out) {
    const char *at = (const char *)bytes.data, *end = at + bytes.size;
    char first[128];
    size_t line = 1, most = 0;
    for (size_t i = 0; i < bytes.size; i++)
        most += bytes.data[i] == '\n';
    *out = (struct lines){.item = base_alloc_array(most + 1, sizeof *out->item)};
    if (!out->item) return no_memory();
    unsigned long long code = 0;
    unsigned crc = 0;
    const size_t part = bytes.size < sizeof first - 1 ? bytes.size : sizeof first - 1;
    if (part) memcpy(first, at, part);
    first[part] = '\0';
    if (strncmp(first, head, sizeof head - 1) != 0 ||
        sscanf(first + sizeof head - 1, " code=%llu:%x", &code, &crc) != 2)
        return bad_file(path, 1);
    out->code_bytes = code;
    out->code_crc = crc;
    for (int skip = 0; skip < 2; skip++, line++) {
        const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (!newline) return bad_file(path, line);
        at = newline + 1;
    }
    for (; at < end; line++) {
        struct line *l = &out->item[out->n];
        *l = (struct line){.order = out->n};
        if (!parse_line(&at, end, l)) return bad_file(path, line);
        out->n++;
    }
    return NULL;
}

// ---- side by side -------------------------------------------------------------------------------

struct match {
    size_t same, differ, only_here, only_there;
    size_t first;   // index here of the first that differs or is only here; SIZE_MAX: none
    size_t theirs;  // its counterpart, SIZE_MAX: none
    size_t missing; // first index there that is only there; SIZE_MAX: none
};

static int by_number(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

static int by_seq(const void *a, const void *b) {
    const struct line *x = a, *y = b;
    int c = by_number(x->job, y->job);
    if (!c) c = by_number(x->seq, y->seq);
    return c ? c : by_number(x->order, y->order);
}

static int by_tag(const void *a, const void *b) {
    const struct line *x = a, *y = b;
    int c = by_number(x->job, y->job);
    if (!c) c = by_number(x->tag, y->tag);
    if (!c) c = by_number((uint64_t)x->engine, (uint64_t)y->engine);
    return c ? c : by_number(x->order, y->order);
}

// Order of what belongs together, 0: the same instruction, or the same tag and engine.
static int group(const struct line *x, const struct line *y, bool same_code) {
    int c = by_number(x->job, y->job);
    if (same_code) return c ? c : by_number(x->seq, y->seq);
    if (!c) c = by_number(x->tag, y->tag);
    return c ? c : by_number((uint64_t)x->engine, (uint64_t)y->engine);
}

static void note_first(struct match *m, size_t here, size_t there) {
    if (here >= m->first) return;
    m->first = here;
    m->theirs = there;
}

static bool equal(const struct line *x, const struct line *y, bool places) {
    return x->crc == y->crc && x->bytes == y->bytes &&
           (!places ||
            (x->pc == y->pc && x->space == y->space && x->lo == y->lo && x->hi == y->hi));
}

// Sorts both.
static struct match match(struct lines *a, struct lines *b) {
    const bool same_code = a->code_bytes == b->code_bytes && a->code_crc == b->code_crc,
               places = a->code_bytes == b->code_bytes;
    struct match m = {.first = SIZE_MAX, .theirs = SIZE_MAX, .missing = SIZE_MAX};
    if (a->n) qsort(a->item, a->n, sizeof *a->item, same_code ? by_seq : by_tag);
    if (b->n) qsort(b->item, b->n, sizeof *b->item, same_code ? by_seq : by_tag);
    size_t i = 0, k = 0;
    while (i < a->n || k < b->n) {
        const struct line *x = i < a->n ? &a->item[i] : NULL, *y = k < b->n ? &b->item[k] : NULL;
        const int c = !x ? 1 : !y ? -1 : group(x, y, same_code);
        if (c < 0) {
            m.only_here++;
            note_first(&m, x->order, SIZE_MAX);
        } else if (c > 0) {
            m.only_there++;
            if (y->order < m.missing) m.missing = y->order;
        } else if (equal(x, y, places)) {
            m.same++;
        } else {
            m.differ++;
            note_first(&m, x->order, y->order);
        }
        i += c <= 0;
        k += c >= 0;
    }
    return m;
}

static const struct line *find(const struct lines *l, size_t order) {
    for (size_t i = 0; i < l->n; i++)
        if (l->item[i].order == order) return &l->item[i];
    return NULL;
}

static void print_bytes(struct str *s, int space, int64_t lo, int64_t hi, int64_t bytes,
                        uint32_t crc) {
    str_printf(s, "%" PRId64 " bytes in %s 0x%" PRIx64 " to 0x%" PRIx64 ", crc 0x%08" PRIx32, bytes,
               isa_space_name(space), (uint64_t)lo, (uint64_t)hi - 1, crc);
}

static npu_status differ(struct npusim *s, const struct writes *w, const struct trace_log *log,
                         const struct lines *there, const struct match *m, const char *path) {
    struct str text = {0};
    uint64_t start, done;
    if (m->first == SIZE_MAX) {
        const struct line *y = find(there, m->missing);
        str_printf(&text,
                   "the first that only %s has: granule %" PRIu32 " of %s, tag %" PRIu32 ", ", path,
                   y->pc, isa_engine_name(y->engine), y->tag);
        print_bytes(&text, y->space, y->lo, y->hi, y->bytes, y->crc);
    } else {
        const struct write *e = &w->item[m->first];
        str_puts(&text, "the first:\n    ");
        writes_print_place(&text, npu_program_image_of(s->program), &e->at);
        if (writes_cycles(log, e, &start, &done))
            str_printf(&text, "\n    cycles %" PRIu64 " to %" PRIu64, start, done);
        str_puts(&text, "\n    here:  ");
        print_bytes(&text, e->space, e->foot.lo, e->foot.hi, foot_bytes(&e->foot), e->crc);
        const struct line *y = m->theirs == SIZE_MAX ? NULL : find(there, m->theirs);
        str_puts(&text, "\n    there: ");
        if (y)
            print_bytes(&text, y->space, y->lo, y->hi, y->bytes, y->crc);
        else
            str_puts(&text, "no such instruction");
    }
    npu_status st = text.failed
                        ? no_memory()
                        : npu_fail(DIFFER, "%zu writes of instructions differ from %s; %s",
                                   m->differ + m->only_here + m->only_there, path, str_text(&text));
    str_free(&text);
    return st;
}

npu_status crc_compare(struct npusim *s, const struct writes *w, const struct trace_log *log,
                       const char *path) {
    struct span bytes;
    struct lines here = {0}, there = {0};
    NPU_TRY_NOTE(file_map_in(s->a, path, &bytes), "--crc-against");
    npu_status st = lines_of(npu_program_image_of(s->program), w, &here);
    if (!st) st = parse(bytes, path, &there);
    if (!st) {
        const struct match m = match(&here, &there);
        if (m.differ + m.only_here + m.only_there)
            st = differ(s, w, log, &there, &m, path);
        else if (!s->o->quiet)
            printf("%zu writes of instructions are the same as in %s\n", m.same, path);
    }
    base_free(here.item);
    base_free(there.item);
    return st;
}

npu_status crc_first_difference(const struct npu_program_image *image, const struct writes *w,
                                const struct npu_program_image *their_image, const struct writes *v,
                                size_t *first, size_t *theirs) {
    struct lines here = {0}, there = {0};
    *first = *theirs = SIZE_MAX;
    npu_status st = lines_of(image, w, &here);
    if (!st) st = lines_of(their_image, v, &there);
    if (!st) {
        const struct match m = match(&here, &there);
        *first = m.first;
        *theirs = m.theirs;
    }
    base_free(here.item);
    base_free(there.item);
    return st;
}
