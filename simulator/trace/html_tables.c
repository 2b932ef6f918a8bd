// SPDX-License-Identifier: Apache-2.0
//
// JSON of the HTML report that report.json does not have: words of the tables, peaks of the
// machine, tags, the program's marks.
#include <inttypes.h>

#include "simulator/trace/html.h"

static void separate(struct str *s, size_t i) {
    if (i) str_puts(s, ",");
}

// A list of words under a key.
static void words(struct str *s, const char *key, int n, const char *(*word)(int)) {
    str_printf(s, ",\n\"%s\":[", key);
    for (int i = 0; i < n; i++) {
        separate(s, (size_t)i);
        str_json(s, word(i) ? word(i) : "");
    }
    str_puts(s, "]");
}

static const char *class_key(int i) {
    return trace_class_key((enum trace_class)i);
}
static const char *class_title(int i) {
    return trace_class_title((enum trace_class)i);
}
static const char *class_meaning(int i) {
    return trace_class_meaning((enum trace_class)i);
}
static const char *opcode(int i) {
    const struct isa_insn_desc *d = isa_find((unsigned)i);
    return d ? d->text : "";
}

// Which columns there are and how long.
static void columns(const struct trace_html *h, size_t insns, struct str *s) {
    static const char *const column[][4] = {
#define HTML_COLUMN(name, kind, meaning) {"insn", #name, #kind, meaning},
#define HTML_STATE(name, kind, meaning) {"state", #name, #kind, meaning},
#define HTML_STEP(name, kind, meaning) {"step", #name, #kind, meaning},
#include "simulator/trace/html_column.def"
    };
    size_t steps = 0;
    if (h->critical) critical_steps(h->critical, &steps);
    str_puts(s, ",\n\"columns\":[");
    bool any = false;
    for (size_t i = 0; i < sizeof column / sizeof *column; i++) {
        const char set = column[i][0][2];
        if (set == 'e' && !h->critical) continue;
        str_printf(s,
                   "%s{\"set\":\"%s\",\"name\":\"%s\",\"kind\":\"%s\",\"meaning\":\"%s\","
                   "\"n\":%zu}",
                   any ? "," : "", column[i][0], column[i][1], column[i][2], column[i][3],
                   set == 's'   ? insns
                   : set == 'a' ? h->log->states
                                : steps);
        any = true;
    }
    str_puts(s, "]");
}

static void tags(const struct trace_html *h, struct str *s) {
    str_puts(s, ",\n\"tags\":[");
    for (size_t i = 0; i < h->run->ntag; i++)
        str_printf(s, "%s[%" PRIu32 ",%d]", i ? "," : "", h->run->tag[i].tag, h->layer_of_tag[i]);
    str_puts(s, "]");
}

static void spm(const struct spm_map *m, struct str *s) {
    if (!m->rows) return;
    str_printf(s,
               ",\n\"spm\":{\"rows\":%" PRIu32 ",\"columns\":%" PRIu32 ",\"row_bytes\":%" PRIu64
               ",\"peak_bytes\":%" PRIu64 ",\"peak_column\":%" PRIu32 "}",
               m->rows, m->columns, m->row_bytes, m->peak_bytes, m->peak_column);
}

// Rates of the machine: of every type that the program multiplies in, at least f16.
static void peaks(const struct trace_run *run, struct str *s) {
    bool used[256] = {false};
    for (size_t i = 0; i < run->nwork; i++)
        if (run->work[i].macs && run->work[i].dtype > 0 && run->work[i].dtype < 256)
            used[run->work[i].dtype] = true;
    bool any = false;
    for (int d = 1; d < 256; d++)
        any |= used[d];
    if (!any) used[ISA_F16] = true;
    str_puts(s, ",\n\"peaks\":[");
    any = false;
    for (int d = 1; d < 256; d++) {
        if (!used[d] || !isa_dtype_name(d)) continue;
        str_printf(s, "%s{\"dtype\":\"%s\",\"macs_per_s\":%.6e}", any ? "," : "", isa_dtype_name(d),
                   hw_peak_macs_per_s(run->hw, d));
        any = true;
    }
    str_printf(s, "],\n\"dram_bytes_per_cycle\":%.6f,\"vec_lanes\":%" PRId64,
               hw_dram_bytes_per_cycle(run->hw), run->hw->vec_lanes);
}

static void marks(const struct trace_html *h, struct str *s) {
    static const char *const kind[] = {
#define TRACE_EVENT(NAME, text, meaning) text,
#include "simulator/trace/event.def"
    };
    bool any = false;
    str_puts(s, ",\n\"marks\":[");
    for (size_t i = 0; i < h->log->count; i++) {
        const struct trace_event *e = &h->log->event[i];
        if (e->kind == TRACE_EVENT_INSN || e->kind == TRACE_EVENT_DISPATCH) continue;
        str_printf(s, "%s[\"%s\",%" PRIu32 ",%" PRIu64 "]", any ? "," : "", kind[e->kind], e->id,
                   e->start);
        any = true;
    }
    str_puts(s, "]");
}

// Launches in their order: tag, calls before that launch nothing, and the cycles at which the host
// begins it, has made it, and the device starts it.
static void dispatches(const struct trace_html *h, struct str *s) {
    bool any = false;
    str_puts(s, ",\n\"dispatches\":[");
    for (size_t i = 0; i < h->log->count; i++) {
        const struct trace_event *e = &h->log->event[i];
        if (e->kind != TRACE_EVENT_DISPATCH) continue;
        str_printf(s, "%s[%" PRIu32 ",%" PRId32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
                   any ? "," : "", e->tag, e->change, e->start, e->done, e->issued);
        any = true;
    }
    str_puts(s, "]");
}

static void whatifs(const struct trace_run *run, struct str *s) {
    str_puts(s, ",\n\"whatif\":[");
    for (size_t i = 0; i < run->nwhatif; i++) {
        const struct trace_whatif *w = &run->whatif[i];
        str_puts(s, i ? ",{\"title\":" : "{\"title\":");
        str_json(s, w->title);
        str_puts(s, ",\"change\":");
        str_json(s, w->change);
        str_printf(s, ",\"predicted_us\":%.6f,\"rerun_us\":%.6f}", w->predicted_us, w->rerun_us);
    }
    str_puts(s, "]");
}

npu_status trace_html_tables(const struct trace_html *h, struct str *s) {
    size_t n = 0;
    for (size_t i = 0; i < h->log->count; i++)
        n += h->log->event[i].kind == TRACE_EVENT_INSN;
    str_printf(s, "{\"version\":1,\"events\":%zu", n);
    columns(h, n, s);
    words(s, "class_keys", TRACE_CLASSES, class_key);
    words(s, "class_titles", TRACE_CLASSES, class_title);
    words(s, "class_meanings", TRACE_CLASSES, class_meaning);
    words(s, "engines", ISA_ENGINES, isa_engine_name);
    words(s, "opcodes", 256, opcode);
    tags(h, s);
    spm(&h->spm, s);
    peaks(h->run, s);
    marks(h, s);
    dispatches(h, s);
    whatifs(h->run, s);
    str_puts(s, "}");
    return NULL;
}
