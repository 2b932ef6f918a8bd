// SPDX-License-Identifier: Apache-2.0
//
// The comparison as JSON, schema 1: a and b are the two runs, all differences are b - a.
#include <inttypes.h>
#include <string.h>

#include "simulator/trace/diff.h"

static void text(struct str *s, const char *key, const char *value) {
    str_printf(s, "\"%s\": ", key);
    str_json(s, value);
}

static void run(const struct diff_run *r, const char *key, struct str *s) {
    str_printf(s, " \"%s\": {", key);
    text(s, "file", r->file);
    str_puts(s, ", ");
    text(s, "program", r->program);
    str_puts(s, ", ");
    text(s, "target", r->target);
    str_printf(s, ", \"clock_mhz\": %" PRIu64 ", \"cycles\": %" PRIu64 ", \"time_us\": %.6f",
               r->clock_mhz, r->cycles, diff_us(r, r->cycles));
    str_printf(s, ", \"host\": %s, \"host_wait_cycles\": %" PRIu64 ", \"latency_us\": ",
               r->host ? "true" : "false", r->host_cycles);
    if (r->latency_us > 0)
        str_printf(s, "%.6f},\n", r->latency_us);
    else
        str_puts(s, "null},\n");
}

static void engine(const struct diff_engine *a, const struct diff_engine *b, struct str *s) {
    str_puts(s, "  {");
    text(s, "name", a ? a->name : b->name);
    str_puts(s, ", \"classes\": {");
    for (int c = 0; c < TRACE_CLASSES; c++) {
        str_printf(s, "%s\"%s\": ", c ? ", " : "", trace_class_key((enum trace_class)c));
        const uint64_t x = a ? a->cycles[c] : 0, y = b ? b->cycles[c] : 0;
        str_printf(s, "{\"a\": %" PRIu64 ", \"b\": %" PRIu64 ", \"difference\": %" PRId64 "}", x, y,
                   (int64_t)y - (int64_t)x);
    }
    str_puts(s, "}}");
}

static const struct diff_engine *find(const struct diff_run *r, const char *name) {
    for (size_t i = 0; i < r->nengine; i++)
        if (strcmp(r->engine[i].name, name) == 0) return &r->engine[i];
    return NULL;
}

static void side(const struct diff *d, const struct diff_group *g, int which, struct str *s) {
    const struct diff_layer *sum = &g->sum[which];
    str_printf(s, "\"%c\": {\"layers\": [", 'a' + which);
    for (size_t i = 0; i < g->n[which]; i++) {
        if (i) str_puts(s, ", ");
        str_json(s, d->run[which].layer[g->layer[which][i]].name);
    }
    str_printf(s,
               "], \"cycles\": %" PRIu64 ", \"macs\": %" PRIu64 ", \"mxu_cycles\": %" PRIu64
               ", \"vec_cycles\": %" PRIu64 ", \"dma_cycles\": %" PRIu64 ", \"dram_read\": %" PRIu64
               ", \"dram_write\": %" PRIu64 ", ",
               sum->cycles, sum->macs, sum->mxu_cycles, sum->vec_cycles, sum->dma_cycles,
               sum->dram_read, sum->dram_write);
    text(s, "bound", sum->bound ? sum->bound : "");
    str_putc(s, '}');
}

void diff_json(const struct diff *d, struct str *out) {
    const struct diff_run *a = &d->run[0], *b = &d->run[1];
    str_puts(out, "{\n \"schema\": 1,\n \"kind\": \"npusim diff\",\n");
    run(a, "a", out);
    run(b, "b", out);
    str_printf(out, " \"difference_us\": %.6f,\n \"engines\": [",
               diff_us(b, b->cycles) - diff_us(a, a->cycles));
    bool any = false;
    for (int which = 0; which < 2; which++)
        for (size_t i = 0; i < d->run[which].nengine; i++) {
            const char *name = d->run[which].engine[i].name;
            if (which && find(a, name)) continue;
            str_puts(out, any ? ",\n" : "\n");
            any = true;
            engine(find(a, name), find(b, name), out);
        }
    str_puts(out, "\n ],\n \"layers\": [");
    for (size_t i = 0; i < d->ngroup; i++) {
        const struct diff_group *g = &d->group[i];
        str_printf(out, "%s\n  {\"matched_by\": \"%s\", \"difference_us\": %.6f,\n   ",
                   i ? "," : "", diff_match_name(g->match), diff_group_us(d, g));
        side(d, g, 0, out);
        str_puts(out, ",\n   ");
        side(d, g, 1, out);
        str_putc(out, '}');
    }
    str_puts(out, "\n ]\n}\n");
}
