// SPDX-License-Identifier: Apache-2.0
#include "simulator/trace/occupancy.h"

#include <stdlib.h>

#include "runtime/base/alloc.h"

#define LINES 65536
#define LINE_BYTES 64

// A touch at its time, in lines.
struct access {
    uint64_t from, to; // cycles
    uint64_t lo, hi;   // lines [lo, hi)
    bool write;
};

struct line {
    uint64_t last; // until then it lives, as far as known
    bool live, was_read;
};

struct builder {
    uint64_t line_bytes, nline;
    struct line *line;
    struct occupancy_change *change;
    size_t n, cap;
    bool failed;
};

static void add(struct builder *b, uint64_t cycle, uint64_t lines, bool ends) {
    if (!lines || b->failed) return;
    if (b->n == b->cap) {
        const size_t cap = b->cap ? b->cap * 2 : 1024;
        struct occupancy_change *grown = base_realloc(b->change, cap * sizeof *grown);
        if (!grown) {
            b->failed = true;
            return;
        }
        b->change = grown;
        b->cap = cap;
    }
    const int64_t bytes = (int64_t)(lines * b->line_bytes);
    b->change[b->n++] = (struct occupancy_change){cycle, ends ? -bytes : bytes};
}

// Ends what lives in [lo, hi) and was read, or all of it; neighbours that end at one time are one
// change. Not later than at `limit`.
static void end(struct builder *b, uint64_t lo, uint64_t hi, bool all, uint64_t limit) {
    uint64_t lines = 0, cycle = 0;
    for (uint64_t i = lo; i < hi; i++) {
        struct line *l = &b->line[i];
        if (!l->live || !(all || l->was_read)) continue;
        const uint64_t at = l->last < limit ? l->last : limit;
        if (at != cycle) {
            add(b, cycle, lines, true);
            lines = 0;
        }
        cycle = at;
        lines++;
        l->live = false;
    }
    add(b, cycle, lines, true);
}

static void apply(struct builder *b, const struct access *a) {
    if (a->write) end(b, a->lo, a->hi, false, a->from); // something new takes its place
    uint64_t begin = 0;
    for (uint64_t i = a->lo; i < a->hi; i++) {
        struct line *l = &b->line[i];
        if (a->write && !l->live) {
            *l = (struct line){.live = true};
            begin++;
        }
        if (a->to > l->last) l->last = a->to;
        l->was_read |= !a->write;
    }
    add(b, a->from, begin, false);
}

static int by_time(const void *a, const void *b) {
    const struct access *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (int)x->write - (int)y->write; // reads first: they mean what lies there already
}

struct numbered {
    uint64_t seq;
    size_t index;
};

static int by_seq(const void *a, const void *b) {
    const struct numbered *x = a, *y = b;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

// Touches with the times of their instructions; NULL: out of memory.
static struct access *accesses(const struct builder *b, const struct trace_log *log,
                               size_t *count) {
    struct numbered *event = base_alloc_array(log->count + 1, sizeof *event);
    struct access *out = base_alloc_array(log->touches + 1, sizeof *out);
    size_t n = 0;
    *count = 0;
    if (!event || !out) {
        base_free(event);
        base_free(out);
        return NULL;
    }
    for (size_t i = 0; i < log->count; i++)
        if (log->event[i].kind == TRACE_EVENT_INSN)
            event[n++] = (struct numbered){log->event[i].seq, i};
    qsort(event, n, sizeof *event, by_seq);
    for (size_t i = 0; i < log->touches; i++) {
        const struct trace_touch *t = &log->touch[i];
        const struct numbered wanted = {t->seq, 0},
                              *at = bsearch(&wanted, event, n, sizeof *event, by_seq);
        if (!at) continue; // it did not end
        const struct trace_event *e = &log->event[at->index];
        const uint64_t hi = ((uint64_t)t->hi + b->line_bytes - 1) / b->line_bytes;
        out[(*count)++] = (struct access){.from = t->write ? e->start : e->read,
                                          .to = t->write ? e->done : e->read,
                                          .lo = t->lo / b->line_bytes,
                                          .hi = hi < b->nline ? hi : b->nline,
                                          .write = t->write};
    }
    base_free(event);
    if (*count) qsort(out, *count, sizeof *out, by_time);
    return out;
}

npu_status trace_occupancy(const struct trace_run *run, const struct trace_log *log,
                           struct occupancy_change **out, size_t *count) {
    const uint64_t bytes = (uint64_t)run->hw->spm_bytes;
    struct builder b = {.line_bytes = bytes / LINES > LINE_BYTES ? bytes / LINES : LINE_BYTES};
    size_t n = 0;
    *out = NULL;
    *count = 0;
    if (!log->touches) return NULL;
    b.nline = (bytes + b.line_bytes - 1) / b.line_bytes;
    b.line = base_alloc_array((size_t)b.nline + 1, sizeof *b.line);
    struct access *list = b.line ? accesses(&b, log, &n) : NULL;
    for (size_t i = 0; list && i < n; i++)
        apply(&b, &list[i]);
    if (list) end(&b, 0, b.nline, true, UINT64_MAX);
    b.failed |= !list;
    base_free(list);
    base_free(b.line);
    if (b.failed) {
        base_free(b.change);
        return npu_fail(NO_MEMORY, "no memory for the scratchpad over time");
    }
    *out = b.change;
    *count = b.n;
    return NULL;
}
