// SPDX-License-Identifier: Apache-2.0
//
// Everything that must hold in an image, whoever made it: ranges, overlaps, alignments, duplicate
// names. Faults are gathered, at most MAX_FAULTS of them. Duplicates and overlaps are found by
// sorting pointers, so a table of n rows costs n log n.

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "isa/insn.h"
#include "runtime/base/alloc.h"
#include "runtime/base/diag.h"
#include "runtime/base/str.h"
#include "runtime/container_internal.h"

enum { MAX_FAULTS = 20 };

struct check {
    const struct npu_program_image *image;
    const char *where;
    struct diag faults;
};

static bool full(const struct check *c) {
    return c->faults.count >= MAX_FAULTS;
}

// Adds "WHERE: message".
__attribute__((format(printf, 2, 3))) static void fault(struct check *c, const char *format, ...) {
    if (full(c)) return;
    struct str s = {0};
    va_list args;
    va_start(args, format);
    str_vprintf(&s, format, args);
    va_end(args);
    diag_fail(&c->faults, BAD_INPUT, "%s: %s", c->where, str_text(&s));
    str_free(&s);
}

static const char *text(const char *s) {
    return s ? s : "";
}

static bool is_power_of_two(uint64_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

// Whether [start, start + bytes) lies in [0, end).
static bool in_range(uint64_t start, uint64_t bytes, uint64_t end) {
    return start <= end && bytes <= end - start;
}

// Sorted pointers to the items of a table; NULL when empty or out of memory (which is a fault).
static const void **sorted(struct check *c, const void *items, size_t count, size_t item_bytes,
                           int (*compare)(const void *, const void *)) {
    if (count == 0) return NULL;
    const void **list = base_alloc_array(count, sizeof *list);
    if (!list) {
        diag_fail(&c->faults, NO_MEMORY, "%s: out of memory", c->where);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        list[i] = (const char *)items + i * item_bytes;
    qsort(list, count, sizeof *list, compare);
    return list;
}

static int compare_u64(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

// ---- names
// -----------------------------------------------------------------------------------------

static int by_role_and_name(const void *a, const void *b) {
    const struct npu_image_tensor *x = *(const struct npu_image_tensor *const *)a;
    const struct npu_image_tensor *y = *(const struct npu_image_tensor *const *)b;
    if (x->role != y->role) return x->role < y->role ? -1 : 1;
    return strcmp(text(x->name), text(y->name));
}

static int by_entry_name(const void *a, const void *b) {
    return strcmp(text((*(const struct npu_image_entry *const *)a)->name),
                  text((*(const struct npu_image_entry *const *)b)->name));
}

static int by_stat_name(const void *a, const void *b) {
    return strcmp(text((*(const struct npu_image_stat *const *)a)->name),
                  text((*(const struct npu_image_stat *const *)b)->name));
}

static void check_names(struct check *c) {
    const struct npu_program_image *m = c->image;
    const void **list = sorted(c, m->tensors, m->ntensors, sizeof *m->tensors, by_role_and_name);
    for (size_t i = 1; list && i < m->ntensors; i++)
        if (by_role_and_name(&list[i - 1], &list[i]) == 0)
            fault(c, "two %s tensors are named '%s'",
                  container_role_name(((const struct npu_image_tensor *)list[i])->role),
                  text(((const struct npu_image_tensor *)list[i])->name));
    base_free(list);
    list = sorted(c, m->entries, m->nentries, sizeof *m->entries, by_entry_name);
    for (size_t i = 1; list && i < m->nentries; i++)
        if (by_entry_name(&list[i - 1], &list[i]) == 0)
            fault(c, "two entry points are named '%s'",
                  text(((const struct npu_image_entry *)list[i])->name));
    base_free(list);
    list = sorted(c, m->stats, m->nstats, sizeof *m->stats, by_stat_name);
    for (size_t i = 1; list && i < m->nstats; i++)
        if (by_stat_name(&list[i - 1], &list[i]) == 0)
            fault(c, "two statistics are named '%s'",
                  text(((const struct npu_image_stat *)list[i])->name));
    base_free(list);
}

// ---- segments
// --------------------------------------------------------------------------------------

// Where a segment's first bytes come from: inside its section, or nowhere.
static void check_segment_source(struct check *c, size_t index, uint64_t weights_bytes) {
    const struct npu_image_segment *s = &c->image->segments[index];
    if (s->kind == CONTAINER_SEGMENT_CODE) {
        if (s->section_offset != 0 || s->bytes != c->image->code.size)
            fault(c,
                  "segment %zu (code): %" PRIu64 " bytes from offset %" PRIu64
                  " of section CODE, expected all of its %zu bytes",
                  index, s->bytes, s->section_offset, c->image->code.size);
        if (s->alignment < 16)
            fault(c, "segment %zu (code): alignment %" PRIu64 ", at least 16", index, s->alignment);
    } else if (s->kind == CONTAINER_SEGMENT_WEIGHTS) {
        if (!in_range(s->section_offset, s->bytes, weights_bytes))
            fault(c,
                  "segment %zu (weights): %" PRIu64 " bytes from offset %" PRIu64
                  " of section WEIGHTS, which has %" PRIu64,
                  index, s->bytes, s->section_offset, weights_bytes);
    } else if (s->kind == CONTAINER_SEGMENT_STATE && s->initial_bytes != 0) {
        if (s->initial_bytes > s->bytes ||
            !in_range(s->section_offset, s->initial_bytes, weights_bytes))
            fault(c,
                  "segment %zu (state): its first %" PRIu64 " of %" PRIu64
                  " bytes from offset %" PRIu64 " of section WEIGHTS, which has %" PRIu64,
                  index, s->initial_bytes, s->bytes, s->section_offset, weights_bytes);
    } else if (s->section_offset != 0) {
        fault(
            c,
            "segment %zu (%s): an offset into a section, only code, weights and states with first "
            "values have one",
            index, container_segment_name(s->kind));
    }
    if (s->kind != CONTAINER_SEGMENT_STATE && s->initial_bytes != 0)
        fault(c, "segment %zu (%s): first values, only states have them", index,
              container_segment_name(s->kind));
}

static void check_segments(struct check *c) {
    const struct npu_program_image *m = c->image;
    if (m->dram_bytes > UINT64_C(1) << CONTAINER_DRAM_LIMIT_BITS)
        fault(c, "%" PRIu64 " bytes of DRAM, at most 2^%d", m->dram_bytes,
              CONTAINER_DRAM_LIMIT_BITS);
    uint64_t weights_bytes = container_weights_bytes(m), end = 0;
    size_t ncode = 0;
    for (size_t i = 0; i < m->nsegments && !full(c); i++) {
        const struct npu_image_segment *s = &m->segments[i];
        const char *kind = container_segment_name(s->kind);
        if (kind[0] == '?') {
            fault(c, "segment %zu: unknown kind %d", i, (int)s->kind);
            continue;
        }
        if (!is_power_of_two(s->alignment) || s->alignment > 1 << 30)
            fault(c, "segment %zu (%s): alignment %" PRIu64 ", expected a power of two up to 2^30",
                  i, kind, s->alignment);
        else if (s->dram_offset % s->alignment != 0)
            fault(c, "segment %zu (%s): DRAM offset %" PRIu64 " is no multiple of %" PRIu64, i,
                  kind, s->dram_offset, s->alignment);
        if (s->bytes == 0) fault(c, "segment %zu (%s): empty", i, kind);
        if (!in_range(s->dram_offset, s->bytes, m->dram_bytes))
            fault(c,
                  "segment %zu (%s): %" PRIu64 " bytes at DRAM offset %" PRIu64
                  ", outside the program's %" PRIu64,
                  i, kind, s->bytes, s->dram_offset, m->dram_bytes);
        else if (s->dram_offset < end)
            fault(c,
                  "segment %zu (%s): DRAM offset %" PRIu64 " is before the end of the segment "
                  "before it, %" PRIu64,
                  i, kind, s->dram_offset, end);
        else
            end = s->dram_offset + s->bytes;
        check_segment_source(c, i, weights_bytes);
        ncode += s->kind == CONTAINER_SEGMENT_CODE;
    }
    if (ncode != 1 && !full(c)) fault(c, "%zu code segments, expected one", ncode);
}

// ---- tensors
// ---------------------------------------------------------------------------------------

// Bytes of a contiguous tensor; false when the type is unknown, a dimension negative, or the size
// absurd.
static bool tensor_bytes(int dtype, int rank, const int64_t *dims, uint64_t *bytes) {
    const uint64_t limit = UINT64_C(1) << CONTAINER_DRAM_LIMIT_BITS;
    uint64_t bits = (uint64_t)isa_dtype_bits(dtype), elements = 1;
    if (bits == 0) return false;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0 || (uint64_t)dims[i] > limit) return false;
        if (dims[i] == 0) {
            empty = true;
        } else if (elements > limit / (uint64_t)dims[i]) {
            return false;
        } else {
            elements *= (uint64_t)dims[i];
        }
    }
    *bytes = empty ? 0 : (elements * bits + 7) / 8; // below 2^48 * 64: no overflow
    return true;
}

static void check_tensor(struct check *c, const struct npu_image_tensor *t) {
    const char *role = container_role_name(t->role), *name = text(t->name);
    if (role[0] == '?') {
        fault(c, "tensor '%s': unknown role %d", name, (int)t->role);
        return;
    }
    if (t->rank < 0 || t->rank > CONTAINER_MAX_RANK) {
        fault(c, "%s '%s': rank %d, expected 0..%d", role, name, t->rank, CONTAINER_MAX_RANK);
        return;
    }
    if (isa_dtype_bits(t->model_dtype) == 0)
        fault(c, "%s '%s': the model's type %d is unknown", role, name, t->model_dtype);
    uint64_t bytes;
    if (!tensor_bytes(t->dtype, t->rank, t->dims, &bytes)) {
        fault(c, "%s '%s': type %d is unknown, or its shape too large", role, name, t->dtype);
        return;
    }
    if (bytes != t->bytes)
        fault(c, "%s '%s': %" PRIu64 " bytes, its shape and type make %" PRIu64, role, name,
              t->bytes, bytes);
    if (t->index_limit < 0 || (t->index_limit > 0 && !isa_dtype_is_int(t->dtype)))
        fault(c, "%s '%s': index limit %" PRId64 ", only integer tensors have one", role, name,
              t->index_limit);
    if (bytes == 0) return;
    const struct npu_image_segment *s = container_find_segment(c->image, t->dram_offset);
    bool kind_fits = s && (s->kind == CONTAINER_SEGMENT_STATE ||
                           (s->kind == CONTAINER_SEGMENT_IO && t->role != CONTAINER_ROLE_STATE));
    if (!kind_fits || !in_range(t->dram_offset - s->dram_offset, t->bytes, s->bytes))
        fault(c, "%s '%s': %" PRIu64 " bytes at DRAM offset %" PRIu64 " lie in no %s segment", role,
              name, t->bytes, t->dram_offset, t->role == CONTAINER_ROLE_STATE ? "state" : "io");
}

static int by_role_and_offset(const void *a, const void *b) {
    const struct npu_image_tensor *x = *(const struct npu_image_tensor *const *)a;
    const struct npu_image_tensor *y = *(const struct npu_image_tensor *const *)b;
    if (x->role != y->role) return x->role < y->role ? -1 : 1;
    int order = compare_u64(x->dram_offset, y->dram_offset);
    return order ? order : compare_u64(x->bytes, y->bytes);
}

static void check_tensors(struct check *c) {
    const struct npu_program_image *m = c->image;
    for (size_t i = 0; i < m->ntensors && !full(c); i++)
        check_tensor(c, &m->tensors[i]);
    if (c->faults.count > 0) return; // overlap means something only for ranges that are in range
    const void **list = sorted(c, m->tensors, m->ntensors, sizeof *m->tensors, by_role_and_offset);
    const struct npu_image_tensor *before = NULL; // the last that is not empty
    for (size_t i = 0; list && i < m->ntensors; i++) {
        const struct npu_image_tensor *t = list[i];
        if (t->bytes == 0) continue;
        bool overlap = before && before->role == t->role &&
                       t->dram_offset - before->dram_offset < before->bytes;
        bool same = overlap && t->dram_offset == before->dram_offset && t->bytes == before->bytes;
        if (overlap && !(same && t->role == CONTAINER_ROLE_OUTPUT))
            fault(c, "%s tensors '%s' and '%s' overlap in DRAM", container_role_name(t->role),
                  text(before->name), text(t->name));
        before = t;
    }
    base_free(list);
}

// ---- code, entry points, debug tables
// --------------------------------------------------------------

static bool is_code_offset(const struct check *c, uint64_t offset) {
    return offset % 16 == 0 && offset < c->image->code.size;
}

static void check_views(struct check *c, const struct npu_image_entry *e) {
    const char *name = text(e->name);
    for (size_t i = 0; i < e->nlaunches && !full(c); i++)
        if (e->launches[i].views > CONTAINER_MAX_VIEWS)
            fault(c,
                  "entry point '%s': launch %zu: %" PRIu32
                  " calls before it that launch nothing, at most %d are accepted",
                  name, i, e->launches[i].views, CONTAINER_MAX_VIEWS);
    if (e->views > CONTAINER_MAX_VIEWS)
        fault(c,
              "entry point '%s': %" PRIu32
              " calls at the end that launch nothing, at most %d are accepted",
              name, e->views, CONTAINER_MAX_VIEWS);
    else if (e->views && !e->nlaunches)
        fault(c, "entry point '%s': calls that launch nothing, but no launches", name);
}

static void check_entry(struct check *c, const struct npu_image_entry *e) {
    const char *name = text(e->name);
    if (!is_code_offset(c, e->code_offset))
        fault(c, "entry point '%s': code offset %" PRIu64 ", expected a multiple of 16 below %zu",
              name, e->code_offset, c->image->code.size);
    for (size_t i = 0; i < e->ntensors && !full(c); i++)
        if (e->tensors[i] >= c->image->ntensors)
            fault(c, "entry point '%s': tensor number %" PRIu32 ", there are %zu", name,
                  e->tensors[i], c->image->ntensors);
    check_views(c, e);
    for (size_t i = 0; i < e->nlaunches && !full(c); i++)
        if (!is_code_offset(c, e->launches[i].code_offset))
            fault(c,
                  "entry point '%s': launch %zu: code offset %" PRIu64
                  ", expected a multiple of 16 below %zu",
                  name, i, e->launches[i].code_offset, c->image->code.size);
    if (e->nlaunches > 0 && e->launches[0].code_offset != e->code_offset)
        fault(c, "entry point '%s': its first launch does not start at its code offset", name);
}

static void check_code(struct check *c) {
    const struct npu_program_image *m = c->image;
    if (m->code.size == 0 || m->code.size % 16 != 0)
        fault(c, "%zu bytes of code, expected whole 16-byte granules", m->code.size);
    if (m->nentries == 0) fault(c, "no entry point");
    for (size_t i = 0; i < m->nentries && !full(c); i++)
        check_entry(c, &m->entries[i]);
    if (text(m->hw_yaml)[0] == '\0') fault(c, "no hardware description");
    uint64_t end = 0, limit = container_rows[CONTAINER_ROW_WEIGHTS].limit_bytes;
    for (size_t i = 0; i < m->nweights && !full(c); i++) {
        const struct npu_image_weights *w = &m->weights[i];
        if (w->offset < end || !in_range(w->offset, w->bytes.size, limit))
            fault(c,
                  "weights chunk %zu at offset %" PRIu64 " overlaps the one before, or ends "
                  "beyond 2^40",
                  i, w->offset);
        else
            end = w->offset + w->bytes.size;
    }
}

static void check_debug(struct check *c) {
    const struct npu_program_image *m = c->image;
    for (size_t i = 0; i < m->ntags && !full(c); i++)
        if (m->tags[i].tag == 0 || (i > 0 && m->tags[i].tag <= m->tags[i - 1].tag))
            fault(c, "tag %" PRIu32 " (row %zu): expected unique tags over 0, ascending",
                  m->tags[i].tag, i);
    for (size_t i = 1; i < m->nspans && !full(c); i++)
        if (m->spans[i].id <= m->spans[i - 1].id)
            fault(c, "span %" PRIu32 " (row %zu): expected unique numbers, ascending",
                  m->spans[i].id, i);
    for (size_t i = 0; i < m->nbuffers && !full(c); i++) {
        const struct npu_image_buffer *b = &m->buffers[i];
        uint64_t bytes;
        if (b->rank < 0 || b->rank > CONTAINER_MAX_RANK ||
            !tensor_bytes(b->dtype, b->rank, b->dims, &bytes) ||
            !in_range(b->dram_offset, b->bytes, m->dram_bytes))
            fault(c, "buffer '%s': unknown type, shape too large, or outside the program's DRAM",
                  text(b->name));
    }
}

npu_status container_check(const struct npu_program_image *image, const char *where) {
    struct check c = {.image = image, .where = where};
    check_code(&c);
    check_segments(&c);
    if (c.faults.count == 0) check_tensors(&c); // looks segments up: they must be in order
    check_names(&c);
    check_debug(&c);
    diag_add(&c.faults, container_check_record(image, where));
    return diag_finish(&c.faults);
}
