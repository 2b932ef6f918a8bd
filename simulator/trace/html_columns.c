// SPDX-License-Identifier: Apache-2.0
//
// The event log, states of engines and the critical path as columns: one stream per row of
// html_column.def, numbers that are small because they are differences. No column is held in
// memory.
#include <stdlib.h>
#include <string.h>

#include "isa/insn_text.h"
#include "runtime/base/alloc.h"
#include "simulator/trace/cause.h"
#include "simulator/trace/html.h"
#include "simulator/trace/pack.h"

// State of a walk over the log in order of start.
struct walk {
    const struct trace_html *h;
    size_t i;               // number among the instructions
    uint64_t start;         // of the one before
    int64_t code, tag;      // of the one before
    const uint32_t *cause;  // per instruction, as of trace_causes
    const uint32_t *tag_of; // per instruction: index of its tag
    const uint32_t *place;  // per instruction: line of `code` + 1, 0: unknown
};

static uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

static void column_engine(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)w;
    trace_pack_number(p, (uint64_t)e->engine);
}

static void column_opcode(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)w;
    trace_pack_number(p, (uint64_t)e->opcode);
}

static void column_seq(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    trace_pack_signed(p, (int64_t)e->seq - w->code);
    w->code = (int64_t)e->seq;
}

static void column_place(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)e;
    trace_pack_signed(p, (int64_t)w->place[w->i] - w->code);
    w->code = (int64_t)w->place[w->i];
}

static void column_tag(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)e;
    trace_pack_signed(p, (int64_t)w->tag_of[w->i] - w->tag);
    w->tag = w->tag_of[w->i];
}

static void column_start(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    trace_pack_number(p, e->start - w->start);
    w->start = e->start;
}

static void column_queued(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)w;
    trace_pack_number(p, less(e->ready, e->dispatched));
}

static void column_waited(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)w;
    trace_pack_number(p, less(e->start, e->ready));
}

static void column_read(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)w;
    trace_pack_number(p, less(e->read, e->start));
}

static void column_issued(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)w;
    trace_pack_number(p, less(e->issued, e->start));
}

static void column_done(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)w;
    trace_pack_number(p, less(e->done, e->start));
}

static void column_class(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)w;
    trace_pack_number(p, (uint64_t)e->wait_class);
}

static void column_waitfor(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)w;
    trace_pack_number(p, (uint64_t)(e->wait_engine + 1));
}

// Whether an engine was waited for longest: the page shows no other causes.
static bool caused(const struct walk *w, const struct trace_event *e) {
    return w->cause[w->i] && e->wait_engine >= 0;
}

static void column_cause(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    trace_pack_number(p, caused(w, e) ? w->i + 1 - w->cause[w->i] : 0);
}

static void column_signal(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    trace_pack_number(p, caused(w, e) ? less(e->start, e->cause_cycle) : 0);
}

static void column_work(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)w;
    trace_pack_number(p, e->work);
}

static void column_dramin(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)w;
    trace_pack_number(p, e->dram_read);
}

static void column_dramout(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)w;
    trace_pack_number(p, e->dram_write);
}

static void column_slack(struct walk *w, struct trace_pack *p, const struct trace_event *e) {
    (void)e;
    trace_pack_number(p, w->h->critical ? critical_slack(w->h->critical, w->i) : 0);
}

static const struct {
    const char *name;
    void (*put)(struct walk *w, struct trace_pack *p, const struct trace_event *e);
} columns[] = {
#define HTML_COLUMN(name, kind, meaning) {"insn-" #name, column_##name},
#include "simulator/trace/html_column.def"
};

static uint64_t state_engine(const struct trace_state *s) {
    return s->engine;
}
static uint64_t state_start(const struct trace_state *s) {
    return s->from;
}
static uint64_t state_cycles(const struct trace_state *s) {
    return s->to - s->from;
}
static uint64_t state_class(const struct trace_state *s) {
    return s->cls;
}
static uint64_t state_waitfor(const struct trace_state *s) {
    return (uint64_t)(s->wait_engine + 1);
}
static uint64_t step_insn(const struct critical_step *s) {
    return s->insn;
}
static uint64_t step_cycles(const struct critical_step *s) {
    return s->to - s->from;
}
static uint64_t step_kind(const struct critical_step *s) {
    return (uint64_t)s->kind;
}
static uint64_t step_latency(const struct critical_step *s) {
    return s->latency;
}
static uint64_t step_other(const struct critical_step *s) {
    return s->other;
}

static const struct {
    const char *name, *kind;
    uint64_t (*get)(const struct trace_state *s);
} state_columns[] = {
#define HTML_STATE(name, kind, meaning) {"state-" #name, #kind, state_##name},
#include "simulator/trace/html_column.def"
};

static const struct {
    const char *name, *kind;
    uint64_t (*get)(const struct critical_step *s);
} step_columns[] = {
#define HTML_STEP(name, kind, meaning) {"step-" #name, #kind, step_##name},
#include "simulator/trace/html_column.def"
};

static bool counts(const struct trace_event *e) {
    return e->kind == TRACE_EVENT_INSN;
}

static npu_status open_column(const struct trace_html *h, const char *name, struct trace_pack **p) {
    str_printf(trace_out_text(h->out), "<script type=\"text/plain\" id=\"c-%s\">", name);
    return trace_pack_open(h->out, p);
}

static void close_column(const struct trace_html *h, struct trace_pack *p) {
    trace_pack_close(p);
    str_puts(trace_out_text(h->out), "</script>\n");
}

// A number of a plain or a delta column.
static void put_number(struct trace_pack *p, const char *kind, uint64_t value, uint64_t *before) {
    if (*kind == 'd')
        trace_pack_signed(p, (int64_t)(value - *before));
    else
        trace_pack_number(p, value);
    *before = value;
}

static npu_status put_states(const struct trace_html *h) {
    for (size_t c = 0; c < sizeof state_columns / sizeof *state_columns; c++) {
        struct trace_pack *p;
        uint64_t before = 0;
        NPU_TRY(open_column(h, state_columns[c].name, &p));
        for (size_t i = 0; i < h->log->states; i++)
            put_number(p, state_columns[c].kind, state_columns[c].get(&h->log->state[i]), &before);
        close_column(h, p);
    }
    return NULL;
}

static npu_status put_spm(const struct trace_html *h) {
    struct trace_pack *p;
    if (!h->spm.rows) return NULL;
    NPU_TRY(open_column(h, "spm", &p));
    for (size_t i = 0; i < (size_t)h->spm.rows * h->spm.columns; i++)
        trace_pack_number(p, h->spm.cell[i]);
    close_column(h, p);
    return NULL;
}

static npu_status put_steps(const struct trace_html *h) {
    size_t n;
    if (!h->critical) return NULL;
    const struct critical_step *step = critical_steps(h->critical, &n);
    for (size_t c = 0; c < sizeof step_columns / sizeof *step_columns; c++) {
        struct trace_pack *p;
        uint64_t before = 0;
        NPU_TRY(open_column(h, step_columns[c].name, &p));
        for (size_t i = 0; i < n; i++)
            put_number(p, step_columns[c].kind, step_columns[c].get(&step[i]), &before);
        close_column(h, p);
    }
    return NULL;
}

static npu_status put_column(struct walk *w, size_t c) {
    struct trace_pack *p;
    NPU_TRY(open_column(w->h, columns[c].name, &p));
    w->i = 0;
    w->start = 0;
    w->code = w->tag = 0;
    for (size_t k = 0; k < w->h->log->count; k++) {
        const struct trace_event *e = &w->h->log->event[k];
        if (!counts(e)) continue;
        columns[c].put(w, p, e);
        w->i++;
    }
    close_column(w->h, p);
    return NULL;
}

struct numbered {
    uint32_t key, index;
};

static int by_key(const void *a, const void *b) {
    const struct numbered *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static npu_status find_tags(const struct trace_html *h, uint32_t *tag_of) {
    struct numbered *known = base_alloc_array(h->run->ntag + 1, sizeof *known);
    if (!known) return npu_fail(NO_MEMORY, "no memory for %zu tags", h->run->ntag);
    for (size_t t = 0; t < h->run->ntag; t++)
        known[t] = (struct numbered){h->run->tag[t].tag, (uint32_t)t};
    qsort(known, h->run->ntag, sizeof *known, by_key);
    size_t i = 0;
    for (size_t k = 0; k < h->log->count; k++) {
        if (!counts(&h->log->event[k])) continue;
        const struct numbered key = {h->log->event[k].tag, 0};
        const struct numbered *at = bsearch(&key, known, h->run->ntag, sizeof *known, by_key);
        tag_of[i++] = at ? at->index + 1 : 0;
    }
    base_free(known);
    return NULL;
}

// A line of assembly per granule where an executed instruction starts, in order of address; its
// number into place[] of those that start there.
static npu_status put_code(const struct trace_html *h, uint32_t *place) {
    const struct span code = h->run->code;
    const size_t granules = code.size / ISA_GRANULE_BYTES;
    uint32_t *line = base_alloc_array(granules + 1, sizeof *line);
    if (!line) return npu_fail(NO_MEMORY, "no memory for %zu granules of code", granules);
    for (size_t k = 0; k < h->log->count; k++)
        if (counts(&h->log->event[k]) && h->log->event[k].pc < granules)
            line[h->log->event[k].pc] = 1;
    struct trace_pack *p;
    npu_status st = open_column(h, "assembly", &p);
    uint32_t n = 0;
    for (size_t g = 0; !st && g < granules; g++) {
        if (!line[g]) continue;
        struct isa_insn in;
        char text[ISA_TEXT_BYTES];
        const char *why;
        const size_t at = g * ISA_GRANULE_BYTES;
        if (isa_decode(code.data + at, code.size - at, &in, &why))
            isa_print(&in, NULL, text, sizeof text);
        else
            text[0] = 0;
        trace_pack_bytes(p, text, strlen(text));
        trace_pack_bytes(p, "\n", 1);
        line[g] = ++n;
    }
    if (!st) close_column(h, p);
    size_t i = 0;
    for (size_t k = 0; k < h->log->count; k++) {
        const struct trace_event *e = &h->log->event[k];
        if (counts(e)) place[i++] = e->pc < granules ? line[e->pc] : 0;
    }
    base_free(line);
    return st;
}

npu_status trace_html_columns(const struct trace_html *h) {
    const size_t n = h->log->count + 1;
    uint32_t *of = base_alloc_array(3 * n, sizeof *of);
    if (!of) return npu_fail(NO_MEMORY, "no memory for the trace of %zu events", h->log->count);
    struct walk w = {.h = h, .cause = of, .tag_of = of + n, .place = of + 2 * n};
    npu_status st = trace_causes(h->log, of);
    if (!st) st = find_tags(h, of + n);
    if (!st) st = put_code(h, of + 2 * n);
    for (size_t c = 0; !st && c < sizeof columns / sizeof *columns; c++)
        st = put_column(&w, c);
    if (!st) st = put_states(h);
    if (!st) st = put_steps(h);
    if (!st) st = put_spm(h);
    base_free(of);
    return st;
}
