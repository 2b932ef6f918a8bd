// SPDX-License-Identifier: Apache-2.0
//
// Distributions for people: a table of numbers with intervals, a histogram of each program on its
// own axis, the distribution functions on one axis, shares of the sources. A line is built in a
// buffer, so that columns line up whatever the bars are made of.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "simulator/npusim/runs.h"

#define SIDES 2
#define COLUMN 46 // of one program
#define BAR 24    // cells of the longest bar
#define CURVE 60  // cells of the axis of the distribution functions
#define LEVELS 10

struct side {
    const struct trace_runs *runs;
    const char *program;
    double *sorted; // owned
};

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void blanks(struct str *out, int n) {
    for (int i = 0; i < n; i++)
        str_putc(out, ' ');
}

// Text in a column; the last one is not padded.
static void cell(struct str *out, const char *text, bool last) {
    str_puts(out, text);
    if (!last) blanks(out, COLUMN - (int)strlen(text));
}

// ---- numbers -----------------------------------------------------------------------------------

// Intervals of runs that resemble the one before are wider than those of as many others.
static void correlated(const struct side *side, int sides, struct str *out) {
    for (int i = 0; i < sides; i++) {
        const struct noise_summary *s = side[i].runs->summary;
        if (s->block > 1)
            str_printf(out,
                       "  %s: consecutive runs are correlated (%.2f), so they are resampled in "
                       "blocks of %" PRIu64 "\n",
                       side[i].program, s->correlation, s->block);
    }
}

static double std_of(const struct side *side) {
    return side->runs->summary->stat[NOISE_STAT_STD].value;
}

// One run each, or runs that are all the same: a time and nothing to estimate.
static bool single(const struct side *side, int sides) {
    bool varies = false;
    for (int i = 0; i < sides; i++)
        varies |= side[i].runs->n > 1 && std_of(&side[i]) > 0;
    return !varies;
}

static void headings(const struct side *side, int sides, struct str *out) {
    str_puts(out, "         ");
    for (int i = 0; i < sides; i++)
        cell(out, side[i].program, i + 1 == sides);
    str_putc(out, '\n');
}

static void times(const struct side *side, int sides, struct str *out) {
    headings(side, sides, out);
    str_printf(out, "  %-7s", side[0].runs->n > 1 ? "all" : "time");
    for (int i = 0; i < sides; i++) {
        char text[80];
        snprintf(text, sizeof text, "%.3f us", side[i].runs->summary->stat[NOISE_STAT_MEAN].value);
        cell(out, text, i + 1 == sides);
    }
    str_putc(out, '\n');
}

static void table(const struct side *side, int sides, struct str *out) {
    headings(side, sides, out);
    for (int s = 0; s < NOISE_STATS; s++) {
        const enum noise_stat stat = (enum noise_stat)s;
        str_printf(out, "  %-7s", noise_stat_word(stat));
        for (int i = 0; i < sides; i++) {
            const struct noise_estimate *e = &side[i].runs->summary->stat[s];
            char text[80];
            if (noise_stat_is_time(stat))
                snprintf(text, sizeof text, "%.3f us [%.3f, %.3f]", e->value, e->lo, e->hi);
            else
                snprintf(text, sizeof text, "%.6f [%.6f, %.6f]", e->value, e->lo, e->hi);
            cell(out, text, i + 1 == sides);
        }
        str_putc(out, '\n');
    }
    str_printf(out, "  in brackets: %.0f %% bootstrap intervals, %d resamples\n", NOISE_LEVEL * 100,
               NOISE_RESAMPLES);
    correlated(side, sides, out);
}

// A ratio of deviations is one only when both are there.
static void ratios(const struct side *side, struct str *out) {
    const struct trace_runs *r = side[0].runs;
    const bool first = std_of(&side[0]) > 0, second = std_of(&side[1]) > 0;
    str_printf(out, "%s over %s: mean %.4f", side[1].program, side[0].program, r->mean_ratio.value);
    if (first || second) str_printf(out, " [%.4f, %.4f]", r->mean_ratio.lo, r->mean_ratio.hi);
    if (first && second)
        str_printf(out, ", std %.4f [%.4f, %.4f]\n", r->std_ratio.value, r->std_ratio.lo,
                   r->std_ratio.hi);
    else if (first || second)
        str_printf(out, "; only %s varies\n", side[first ? 0 : 1].program);
    else
        str_puts(out, r->n > 1 || !strcmp(r->noise, "off") ? "; neither varies\n" : "\n");
}

// ---- histogram ---------------------------------------------------------------------------------

// A bar of eighths of a cell; returns the cells that it takes.
static int bar(struct str *out, double share, bool utf8) {
    static const char eighth[8][4] = {"",
                                      "\xe2\x96\x8f",
                                      "\xe2\x96\x8e",
                                      "\xe2\x96\x8d",
                                      "\xe2\x96\x8c",
                                      "\xe2\x96\x8b",
                                      "\xe2\x96\x8a",
                                      "\xe2\x96\x89"};
    int eighths = (int)(share * BAR * 8 + 0.5);
    if (share > 0 && eighths == 0) eighths = 1; // somebody is there
    if (!utf8) eighths = (eighths + 7) / 8 * 8;
    for (int i = 0; i < eighths / 8; i++)
        str_puts(out, utf8 ? "\xe2\x96\x88" : "#");
    str_puts(out, eighth[eighths % 8]);
    return (eighths + 7) / 8;
}

static void histogram(const struct side *side, int sides, bool utf8, struct str *out) {
    str_puts(out, "histogram (us, runs)\n");
    for (int b = 0; b < NOISE_BINS; b++) {
        for (int i = 0; i < sides; i++) {
            const struct noise_summary *s = side[i].runs->summary;
            uint64_t most = 1;
            for (int k = 0; k < NOISE_BINS; k++)
                if (s->bin[k] > most) most = s->bin[k];
            str_printf(out, "%s%12.3f ", i ? "" : "  ", s->from_us + b * s->width_us);
            const int used = bar(out, (double)s->bin[b] / (double)most, utf8);
            char count[24];
            const int digits = snprintf(count, sizeof count, " %" PRIu64, s->bin[b]);
            str_puts(out, count);
            if (i + 1 < sides) blanks(out, COLUMN - 13 - used - digits);
        }
        str_putc(out, '\n');
    }
}

// ---- distribution functions --------------------------------------------------------------------

// Distribution functions on one axis.
struct axis {
    const struct side *side;
    int sides, width; // cells
    double from, to;
};

static struct axis axis_of(const struct side *side, int sides, int width) {
    struct axis x = {side, sides, width, side[0].sorted[0], side[0].sorted[0]};
    for (int i = 0; i < sides; i++) {
        const double *t = side[i].sorted, last = t[side[i].runs->n - 1];
        if (t[0] < x.from) x.from = t[0];
        if (last > x.to) x.to = last;
    }
    return x;
}

// One level of an axis; returns the cells that it takes.
static int level_line(const struct axis *x, int level, struct str *out) {
    char line[CURVE + 2];
    int end = 0;
    memset(line, ' ', sizeof line);
    for (int i = 0; i < x->sides; i++) {
        const double t =
            noise_quantile(x->side[i].sorted, x->side[i].runs->n, (double)level / LEVELS);
        const int at =
            x->to > x->from ? (int)((t - x->from) / (x->to - x->from) * x->width + 0.5) : 0;
        line[at] = line[at] != ' ' || x->sides == 1 ? '*' : "ab"[i];
        if (at >= end) end = at + 1;
    }
    str_printf(out, "%4d %% |%.*s", level * 100 / LEVELS, end, line);
    return 8 + end;
}

static int scale_line(const struct axis *x, struct str *out) {
    char left[40], right[40];
    const int from = snprintf(left, sizeof left, "%.3f", x->from),
              to = snprintf(right, sizeof right, "%.3f us", x->to);
    str_printf(out, "        %s", left);
    blanks(out, x->width + 1 - from - to > 1 ? x->width + 1 - from - to : 1);
    str_puts(out, right);
    return 8 + (x->width + 1 > from + to + 1 ? x->width + 1 : from + to + 1);
}

static void curves(const struct side *side, int sides, struct str *out) {
    struct axis axis[SIDES] = {axis_of(side, sides, CURVE)};
    int axes = 1;
    str_puts(out, "distribution function: at each mark, so many of the runs are as fast");
    if (sides > 1) {
        const struct axis a = axis_of(side, 1, COLUMN - 11), b = axis_of(side + 1, 1, COLUMN - 11);
        if (a.to < b.from || b.to < a.from) { // far from each other: an axis each
            axis[0] = a;
            axis[1] = b;
            axes = 2;
        } else {
            str_puts(out, " (a: left, b: right, *: both)");
        }
    }
    for (int level = LEVELS; level >= -2; level--) {
        str_puts(out, "\n  ");
        for (int i = 0, used = 0; i < axes; i++) {
            if (i) blanks(out, COLUMN - used);
            if (level >= 0) {
                used = level_line(&axis[i], level, out);
            } else if (level == -2) {
                used = scale_line(&axis[i], out);
            } else {
                str_puts(out, "       +");
                for (int k = 0; k <= axis[i].width; k++)
                    str_putc(out, '-');
                used = 9 + axis[i].width;
            }
        }
    }
    str_putc(out, '\n');
}

// ---- sources -----------------------------------------------------------------------------------

// In percent; what rounds to zero has no sign.
static double percent(double share) {
    return fabs(share) < 0.0005 ? 0 : share * 100;
}

static void sources(const struct side *side, int sides, struct str *out) {
    const struct trace_runs *r = side[0].runs;
    if (!r->nsource) return;
    str_printf(out,
               "share of the variance that goes when a source alone is off (first %" PRIu64
               " runs; sources meet, so shares need not add up)\n",
               r->source_runs);
    for (size_t k = 0; k < r->nsource; k++) {
        str_printf(out, "  %-11s", r->source[k].name);
        for (int i = 0; i < sides; i++) {
            const struct trace_source *s = &side[i].runs->source[k];
            char text[80];
            snprintf(text, sizeof text, "%.1f %% [%.1f, %.1f], std without %.3f us",
                     percent(s->share.value), percent(s->share.lo), percent(s->share.hi),
                     s->std_us);
            cell(out, text, i + 1 == sides);
        }
        str_putc(out, '\n');
    }
}

static void parts(const struct side *side, int sides, bool alone, struct str *out) {
    for (int i = 0; i < sides; i++) {
        const struct trace_runs *r = side[i].runs;
        const double mean = r->summary->stat[NOISE_STAT_MEAN].value;
        str_printf(out, "%s: %.3f us%s are simulated", side[i].program, mean - r->sampled_us,
                   alone ? "" : " of the mean");
        if (r->sampled_us > 0)
            str_printf(out, ", %.3f us sampled from a fitted model of the host\n", r->sampled_us);
        else
            str_puts(out, ", nothing is sampled from a fitted model\n");
    }
}

static bool sort_times(struct side *side) {
    const size_t n = (size_t)side->runs->n;
    side->sorted = base_alloc_array(n, sizeof *side->sorted);
    if (!side->sorted) return false;
    memcpy(side->sorted, side->runs->time_us, n * sizeof *side->sorted);
    qsort(side->sorted, n, sizeof *side->sorted, ascending);
    return true;
}

void npusim_runs_print(const struct trace_runs *runs, bool utf8, struct str *out) {
    struct side side[SIDES] = {{.runs = runs, .program = runs->program}};
    const int sides = runs->versus ? 2 : 1;
    if (runs->versus)
        side[1] = (struct side){.runs = runs->versus, .program = runs->versus->program};
    bool sorted = true;
    for (int i = 0; i < sides; i++)
        sorted = sorted && sort_times(&side[i]);
    if (sorted) {
        const bool alone = single(side, sides);
        str_printf(out,
                   "latency of %" PRIu64 " run%s from number %" PRIu64 ", noise %s, seed %" PRIu64
                   "\n",
                   runs->n, runs->n == 1 ? "" : "s", runs->first, runs->noise, runs->seed);
        (alone ? times : table)(side, sides, out);
        if (sides > 1) ratios(side, out);
        if (!alone) {
            histogram(side, sides, utf8, out);
            curves(side, sides, out);
        }
        sources(side, sides, out);
        parts(side, sides, alone, out);
    } else {
        out->failed = true;
    }
    for (int i = 0; i < sides; i++)
        base_free(side[i].sorted);
}
