// SPDX-License-Identifier: Apache-2.0
#include "simulator/trace/spm_map.h"

#include <stdlib.h>

#include "runtime/base/alloc.h"

// A touch at its time, in rows.
struct access {
    uint64_t from, to; // cycles
    uint32_t lo, hi;   // rows [lo, hi)
    uint32_t layer;    // + 1
    bool write;
};

// What lies in a row.
struct row {
    uint64_t from, last; // written; last written or read
    uint32_t layer;
    bool live, was_read;
};

struct builder {
    struct spm_map *m;
    uint64_t cycles;
    struct row row[SPM_MAP_ROWS];
};

static npu_status no_memory(void) {
    return npu_fail(NO_MEMORY, "no memory for the map of the scratchpad");
}

static uint32_t column(const struct builder *b, uint64_t cycle) {
    const uint64_t at = cycle * b->m->columns / (b->cycles ? b->cycles : 1);
    return at < b->m->columns ? (uint32_t)at : b->m->columns - 1;
}

// What lay in a row is over: into the cells.
static void end(struct builder *b, uint32_t r) {
    struct row *x = &b->row[r];
    if (!x->live) return;
    const uint32_t to = column(b, x->last);
    for (uint32_t c = column(b, x->from); c <= to; c++)
        b->m->cell[(size_t)r * b->m->columns + c] = x->layer;
    x->live = false;
}

// Writing after somebody has read, or under another layer, begins something new.
static void apply(struct builder *b, const struct access *a) {
    for (uint32_t r = a->lo; r < a->hi; r++) {
        struct row *x = &b->row[r];
        if (a->write && (!x->live || x->was_read || x->layer != a->layer)) {
            end(b, r);
            *x = (struct row){.from = a->from, .last = a->to, .layer = a->layer, .live = true};
        }
        if (!x->live) continue; // read before the log began
        if (a->to > x->last) x->last = a->to;
        x->was_read |= !a->write;
    }
}

static int by_time(const void *a, const void *b) {
    const struct access *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (int)x->write - (int)y->write; // reads first: they mean what lies there already
}

struct numbered {
    uint64_t key;
    uint32_t index;
};

static int by_key(const void *a, const void *b) {
    const struct numbered *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static uint32_t find(const struct numbered *list, size_t n, uint64_t key) {
    const struct numbered wanted = {key, 0}, *at = bsearch(&wanted, list, n, sizeof *list, by_key);
    return at ? at->index : UINT32_MAX;
}

// Touches with the times of their instructions. *count of them.
static npu_status accesses(const struct spm_map *m, const struct trace_run *run,
                           const struct trace_log *log, const int *layer_of_tag, struct access *out,
                           size_t *count) {
    struct numbered *event = base_alloc_array(log->count + 1, sizeof *event);
    struct numbered *tag = base_alloc_array(run->ntag + 1, sizeof *tag);
    size_t n = 0;
    npu_status st = event && tag ? NULL : no_memory();
    *count = 0;
    for (size_t i = 0; !st && i < log->count; i++)
        if (log->event[i].kind == TRACE_EVENT_INSN)
            event[n++] = (struct numbered){log->event[i].seq, (uint32_t)i};
    for (size_t i = 0; !st && i < run->ntag; i++)
        tag[i] = (struct numbered){run->tag[i].tag, (uint32_t)i};
    if (!st) qsort(event, n, sizeof *event, by_key);
    if (!st) qsort(tag, run->ntag, sizeof *tag, by_key);
    for (size_t i = 0; !st && i < log->touches; i++) {
        const struct trace_touch *t = &log->touch[i];
        const uint32_t k = find(event, n, t->seq);
        if (k == UINT32_MAX) continue; // it did not end
        const struct trace_event *e = &log->event[k];
        const uint32_t of = find(tag, run->ntag, e->tag);
        const uint64_t hi = (t->hi + m->row_bytes - 1) / m->row_bytes;
        out[(*count)++] =
            (struct access){.from = t->write ? e->start : e->read,
                            .to = t->write ? e->done : e->read,
                            .lo = (uint32_t)(t->lo / m->row_bytes),
                            .hi = (uint32_t)(hi < m->rows ? hi : m->rows),
                            .layer = of == UINT32_MAX ? 0 : (uint32_t)(layer_of_tag[of] + 1),
                            .write = t->write};
    }
    base_free(event);
    base_free(tag);
    return st;
}

static void count_live(struct spm_map *m) {
    for (uint32_t c = 0; c < m->columns; c++) {
        for (uint32_t r = 0; r < m->rows; r++)
            if (m->cell[(size_t)r * m->columns + c]) m->live[c] += m->row_bytes;
        if (m->live[c] <= m->peak_bytes) continue;
        m->peak_bytes = m->live[c];
        m->peak_column = c;
    }
}

npu_status spm_map_init(struct spm_map *m, const struct trace_run *run, const struct trace_log *log,
                        const int *layer_of_tag) {
    *m = (struct spm_map){0};
    if (!log->touches || run->hw->spm_bytes < SPM_MAP_ROWS) return NULL;
    m->rows = SPM_MAP_ROWS;
    m->columns = SPM_MAP_COLUMNS;
    const uint64_t used = run->spm_peak_bytes ? run->spm_peak_bytes : (uint64_t)run->hw->spm_bytes;
    m->row_bytes = (used + SPM_MAP_ROWS - 1) / SPM_MAP_ROWS;
    m->cell = base_alloc_array((size_t)m->rows * m->columns, sizeof *m->cell);
    m->live = base_alloc_array(m->columns, sizeof *m->live);
    struct access *list = base_alloc_array(log->touches, sizeof *list);
    struct builder *b = base_alloc(sizeof *b);
    size_t n = 0;
    npu_status st = m->cell && m->live && list && b ? NULL : no_memory();
    if (!st) st = accesses(m, run, log, layer_of_tag, list, &n);
    if (!st) {
        qsort(list, n, sizeof *list, by_time);
        b->m = m;
        b->cycles = run->cycles;
        for (size_t i = 0; i < n; i++)
            apply(b, &list[i]);
        for (uint32_t r = 0; r < m->rows; r++)
            end(b, r);
        count_live(m);
    }
    base_free(list);
    base_free(b);
    if (st) spm_map_deinit(m);
    return st;
}

void spm_map_deinit(struct spm_map *m) {
    base_free(m->cell);
    base_free(m->live);
    *m = (struct spm_map){0};
}
