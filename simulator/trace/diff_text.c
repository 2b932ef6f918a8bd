// SPDX-License-Identifier: Apache-2.0
//
// The comparison of two runs for people: totals, what each engine's cycles moved from and to,
// layers.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/text.h"
#include "simulator/trace/diff.h"

#define MOST_ROWS 40

// Numbers are cycles when both clocks are the same, else nanoseconds.
static double unit(const struct diff *d, int side) {
    return d->run[0].clock_mhz == d->run[1].clock_mhz ? 1 : 1000.0 / (double)d->run[side].clock_mhz;
}

static const char *unit_name(const struct diff *d) {
    return d->run[0].clock_mhz == d->run[1].clock_mhz ? "cycles" : "ns";
}

static void plain(struct str *s, int width, double n) {
    char text[TEXT_NUMBER_BYTES];
    str_printf(s, "%*s", width, text_format_grouped(text, (uint64_t)llround(fabs(n))));
}

static void change(struct str *s, int width, double n) {
    char digits[TEXT_NUMBER_BYTES], text[TEXT_NUMBER_BYTES + 1];
    const int64_t whole = llround(n);
    snprintf(text, sizeof text, "%s%s",
             whole > 0   ? "+"
             : whole < 0 ? "-"
                         : "",
             text_format_grouped(digits, (uint64_t)(whole < 0 ? -whole : whole)));
    str_printf(s, "%*s", width, text);
}

static double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

static void verdict(struct str *s, double a, double b) {
    if (b < a && b > 0)
        str_printf(s, "B takes %.3f us less than A (%.1f %%): %.2f times as fast\n", a - b,
                   percent(b - a, a), a / b);
    else if (b > a && a > 0)
        str_printf(s, "B takes %.3f us more than A (+%.1f %%): %.2f times as long\n", b - a,
                   percent(b - a, a), b / a);
    else
        str_puts(s, "both take the same time\n");
}

// Like is compared with like: an eager program's cycles have the waits for its host, a compiled
// one's have none.
static void headline(const struct diff *d, struct str *s) {
    const struct diff_run *r = d->run;
    double us[2];
    for (int side = 0; side < 2; side++)
        us[side] = diff_us(&r[side], r[side].cycles);
    if (diff_mixed(d) && diff_latencies(d)) {
        str_printf(s, "latency as the host sees it: A %.3f us, B %.3f us\n", r[0].latency_us,
                   r[1].latency_us);
        us[0] = r[0].latency_us;
        us[1] = r[1].latency_us;
    } else if (diff_mixed(d)) {
        const int side = r[0].host_cycles ? 0 : 1;
        const double waits = diff_us(&r[side], r[side].host_cycles);
        str_printf(s,
                   "%c's time includes %.3f us of waiting for its host, %c's has no host in it "
                   "(npusim --versus gives both one)\nwithout these waits ",
                   'A' + side, waits, 'B' - side);
        us[side] -= waits;
    }
    verdict(s, us[0], us[1]);
}

static void header(const struct diff *d, struct str *s) {
    for (int side = 0; side < 2; side++) {
        const struct diff_run *r = &d->run[side];
        char n[TEXT_NUMBER_BYTES];
        str_printf(s, "%c  %s: ", 'A' + side, r->file);
        str_shown(s, *r->program ? r->program : "(unnamed)");
        str_puts(s, ", ");
        str_shown(s, *r->target ? r->target : "(unnamed)");
        str_printf(s, ", %" PRIu64 " MHz: %s cycles, %.3f us\n", r->clock_mhz,
                   text_format_grouped(n, r->cycles), diff_us(r, r->cycles));
    }
    headline(d, s);
    if (strcmp(d->run[0].program, d->run[1].program))
        str_puts(s, "the two are different programs\n");
}

static const struct diff_engine *find(const struct diff_run *r, const char *name) {
    for (size_t i = 0; i < r->nengine; i++)
        if (strcmp(r->engine[i].name, name) == 0) return &r->engine[i];
    return NULL;
}

// Engines of both runs: those of A, then those that only B has.
static size_t columns(const struct diff *d, const char *name[2 * ISA_ENGINES]) {
    size_t n = 0;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < d->run[side].nengine && n < 2 * ISA_ENGINES; i++)
            if (!side || !find(&d->run[0], d->run[1].engine[i].name))
                name[n++] = d->run[side].engine[i].name;
    return n;
}

static double moved(const struct diff *d, const char *engine, int cls) {
    const struct diff_engine *a = find(&d->run[0], engine), *b = find(&d->run[1], engine);
    return (b ? (double)b->cycles[cls] * unit(d, 1) : 0) -
           (a ? (double)a->cycles[cls] * unit(d, 0) : 0);
}

// A word of a file, to the right of `width` bytes.
static void shown(struct str *s, int width, const char *text) {
    struct str word = {0};
    str_shown(&word, text);
    str_printf(s, "%*s", width, str_text(&word));
    s->failed |= word.failed;
    str_free(&word);
}

static void engines(const struct diff *d, struct str *s) {
    const char *name[2 * ISA_ENGINES];
    const size_t n = columns(d, name);
    if (!n) return;
    str_printf(s, "\nwhere the %s of each engine went, B - A\n%-10s", unit_name(d), "");
    for (size_t i = 0; i < n; i++)
        shown(s, 12, name[i]);
    str_putc(s, '\n');
    double sum[2 * ISA_ENGINES] = {0};
    bool named[TRACE_CLASSES] = {false};
    for (int c = 0; c < TRACE_CLASSES; c++) {
        bool any = false;
        for (size_t i = 0; i < n; i++) {
            any |= fabs(moved(d, name[i], c)) >= 0.5;
            sum[i] += moved(d, name[i], c);
        }
        if (!any) continue;
        str_printf(s, "%-10s", trace_class_title((enum trace_class)c));
        for (size_t i = 0; i < n; i++)
            change(s, 12, moved(d, name[i], c));
        str_putc(s, '\n');
        named[c] = true;
    }
    str_printf(s, "%-10s", "sum");
    for (size_t i = 0; i < n; i++)
        change(s, 12, sum[i]);
    str_putc(s, '\n');
    for (int c = 0; c < TRACE_CLASSES; c++)
        if (named[c])
            str_printf(s, "  %-10s %s\n", trace_class_title((enum trace_class)c),
                       trace_class_meaning((enum trace_class)c));
}

static void label(struct str *s, const struct diff_layer *l) {
    str_shown(s, *l->name ? l->name : "(no layer)");
}

// Names of a group: the longest layer of B, or of A when B has none, and how many there are.
static void names(const struct diff_group *g, struct str *s) {
    str_puts(s, "  ");
    label(s, &g->sum[g->n[1] ? 1 : 0]);
    if (g->match == DIFF_ALONE)
        str_printf(s, " (only in %c)", g->n[0] ? 'A' : 'B');
    else if (g->n[0] != 1 || g->n[1] != 1)
        str_printf(s, " (%zu layer%s of A, %zu of B)", g->n[0], g->n[0] == 1 ? "" : "s", g->n[1]);
    else if (strcmp(g->sum[0].name, g->sum[1].name)) {
        str_puts(s, " (");
        label(s, &g->sum[0]);
        str_puts(s, " in A)");
    }
    str_putc(s, '\n');
}

static void kib(struct str *s, const struct diff_layer *l, bool there) {
    if (there)
        str_printf(s, "%10.1f", (double)(l->dram_read + l->dram_write) / 1024);
    else
        str_printf(s, "%10s", "-");
}

static void row(const struct diff *d, const struct diff_group *g, struct str *s) {
    for (int side = 0; side < 2; side++)
        if (g->n[side])
            plain(s, 13, (double)g->sum[side].cycles * unit(d, side));
        else
            str_printf(s, "%13s", "-");
    const double all = diff_us(&d->run[0], d->run[0].cycles);
    change(s, 13, (double)g->sum[1].cycles * unit(d, 1) - (double)g->sum[0].cycles * unit(d, 0));
    str_printf(s, "%+8.1f", percent(diff_group_us(d, g), all));
    kib(s, &g->sum[0], g->n[0]);
    kib(s, &g->sum[1], g->n[1]);
    const char *a = g->n[0] ? g->sum[0].bound : "-", *b = g->n[1] ? g->sum[1].bound : "-";
    const size_t from = s->len;
    str_puts(s, "  ");
    shown(s, 0, a);
    if (strcmp(a, b)) {
        str_puts(s, " > ");
        shown(s, 0, b);
    }
    while (!s->failed && s->len < from + 19)
        str_putc(s, ' ');
    names(g, s);
}

static void layers(const struct diff *d, struct str *s) {
    if (!d->ngroup) return;
    str_printf(s,
               "\nlayers, the largest change first (%s; %% of A's run)\n"
               "            A            B        B - A       %%     KiB A     KiB B  bound"
               "              layer\n",
               unit_name(d));
    size_t rows = 0, same = 0, more = 0;
    double rest = 0;
    for (size_t i = 0; i < d->ngroup; i++) {
        const struct diff_group *g = &d->group[i];
        const double us = diff_group_us(d, g);
        if (g->match != DIFF_ALONE && fabs(us) < 1e-6) {
            same++;
        } else if (rows < MOST_ROWS) {
            row(d, g, s);
            rows++;
        } else {
            rest += us;
            more++;
        }
    }
    if (more) str_printf(s, "%zu more change by %+.3f us together; --report has all\n", more, rest);
    if (same) str_printf(s, "%zu did not change\n", same);
    if (d->too_many)
        str_puts(s, "too many layers without common names: these were not aligned by order\n");
    str_puts(
        s, "A layer's cycles: by how much it moves the end of the run on; they add up to the run. "
           "KiB: bytes from\nand to external memory. bound: what the layer is limited by, in A > "
           "in B.\n");
}

void diff_text(const struct diff *d, struct str *out) {
    header(d, out);
    engines(d, out);
    layers(d, out);
}
