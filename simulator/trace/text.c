// SPDX-License-Identifier: Apache-2.0
//
// The cycle report for people: what ran, where each engine's cycles went, layer by layer, memory,
// bounds, and the largest losses in words.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/text.h"
#include "simulator/trace/trace.h"

static void right(struct str *s, int width, uint64_t n) {
    char text[TEXT_NUMBER_BYTES];
    str_printf(s, "%*s", width, text_format_grouped(text, n));
}

static double percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static double micros(const struct trace_run *run, double cycles) {
    return cycles / (double)run->hw->clock_npu_mhz;
}

// The host's part of an eager program.
static void eager(const struct trace_run *run, struct str *s) {
    const struct trace_host *h = &run->launches;
    char bubble[TEXT_NUMBER_BYTES];
    str_printf(s, "eager    %" PRIu64 " launches, %" PRIu64 " calls that launch nothing\n",
               h->launches, h->views);
    if (!h->source) {
        str_puts(s, "host     takes no time\n");
        return;
    }
    str_printf(s,
               "host     %.2f us in launches, %.2f us in other calls, %.2f us before a full queue; "
               "the device waits %s cycles for it\n",
               h->launch_us, h->view_us, h->full_us, text_format_grouped(bubble, h->bubble_cycles));
    str_printf(s, "         latency %.2f us; times of the host are medians of a model: ",
               h->latency_us);
    str_shown(s, h->source);
    str_putc(s, '\n');
}

static void header(const struct trace_run *run, const struct trace_bounds *b, struct str *s) {
    char a[TEXT_NUMBER_BYTES], i[TEXT_NUMBER_BYTES];
    str_puts(s, "program  ");
    str_shown(s, run->program ? run->program : "(unnamed)");
    str_puts(s, "\ntarget   ");
    str_shown(s, run->target ? run->target : "(unnamed)");
    str_printf(s, ", %" PRId64 " MHz\n", run->hw->clock_npu_mhz);
    for (size_t k = 0; k < run->ninput; k++) {
        str_puts(s, k ? "         " : "inputs   ");
        str_shown(s, run->input[k].name);
        str_puts(s, ": ");
        str_shown(s, run->input[k].source);
        str_putc(s, '\n');
    }
    if (run->fault) {
        str_puts(s, "fault    ");
        str_shown_lines(s, run->fault);
        str_putc(s, '\n');
    }
    if (run->stopped) str_printf(s, "stopped  %s\n", run->stopped);
    str_printf(s, "run      %s cycles, %.2f us, %s instructions\n",
               text_format_grouped(a, run->cycles), micros(run, (double)run->cycles),
               text_format_grouped(i, run->instructions));
    if (run->launches.launches) eager(run, s);
    if (b->ideal_cycles > 0)
        str_printf(s, "bounds   %.2f x ideal, %.2f x mapped\n",
                   (double)run->cycles / b->ideal_cycles,
                   b->mapped_cycles > 0 ? (double)run->cycles / b->mapped_cycles : 0.0);
}

// Losses of one engine, largest first, as "wait-dma 12.3"; which classes were named.
static void losses(const struct trace_run *run, const struct trace_engine *e,
                   bool named[TRACE_CLASSES], struct str *s) {
    bool printed[TRACE_CLASSES] = {false};
    for (int n = 0; n < 4; n++) {
        int best = -1;
        for (int c = TRACE_BUSY_PARTIAL + 1; c < TRACE_CLASSES; c++)
            if (!printed[c] && e->cycles[c] * 1000 >= run->cycles && e->cycles[c] &&
                (best < 0 || e->cycles[c] > e->cycles[best]))
                best = c;
        if (best < 0) break;
        printed[best] = named[best] = true;
        str_printf(s, "%s%s %.1f", n ? ", " : "  ", trace_class_title((enum trace_class)best),
                   percent(e->cycles[best], run->cycles));
    }
    str_putc(s, '\n');
}

static void engines(const struct trace_run *run, struct str *s) {
    bool named[TRACE_CLASSES] = {[TRACE_BUSY] = true, [TRACE_BUSY_PARTIAL] = true};
    str_puts(s, "\nengine  instructions          busy       %       partial       %  where the "
                "rest went (% of the run)\n");
    for (size_t i = 0; i < run->nengine; i++) {
        const struct trace_engine *e = &run->engine[i];
        str_printf(s, "%-6s", isa_engine_name(e->engine));
        right(s, 14, e->instructions);
        right(s, 14, e->cycles[TRACE_BUSY]);
        str_printf(s, "%8.1f", percent(e->cycles[TRACE_BUSY], run->cycles));
        right(s, 14, e->cycles[TRACE_BUSY_PARTIAL]);
        str_printf(s, "%8.1f", percent(e->cycles[TRACE_BUSY_PARTIAL], run->cycles));
        losses(run, e, named, s);
    }
    str_puts(s, "Every cycle of an engine is in one class:\n");
    for (int c = 0; c < TRACE_CLASSES; c++)
        if (named[c])
            str_printf(s, "  %-10s %s\n", trace_class_title((enum trace_class)c),
                       trace_class_meaning((enum trace_class)c));
}

// A name in at most `width` bytes, its end being what tells names apart.
static void name(struct str *s, int width, const char *text) {
    struct str shown = {0};
    str_shown(&shown, text);
    const char *from = str_text(&shown);
    if (shown.len > (size_t)width) {
        from += shown.len - (size_t)(width - 2);
        while (((unsigned char)*from & 0xc0) == 0x80) // no half of a character
            from++;
        str_printf(s, "..%-*s", width - 2, from);
    } else {
        str_printf(s, "%-*s", width, from);
    }
    s->failed |= shown.failed;
    str_free(&shown);
}

static void layer(const struct trace_run *run, const struct trace_layer *l, struct str *s) {
    const uint64_t from = l->total.end > l->total.start ? l->total.start : l->total.first;
    const uint64_t to = l->total.end > l->total.start ? l->total.end : l->total.last;
    name(s, 28, l->name.name ? l->name.name : "(no layer)");
    str_puts(s, "  ");
    name(s, 14, l->name.kernel ? l->name.kernel : l->name.op ? l->name.op : "-");
    right(s, 13, from);
    right(s, 13, to);
    right(s, 12, l->cycles);
    str_printf(s, "%7.2f", percent(l->cycles, run->cycles));
    str_printf(s, "%10.2f", (double)l->total.macs / 1e6);
    str_printf(s, "%7.1f", 100 * l->utilization);
    str_printf(s, "%10.1f%10.1f", (double)l->total.dram_read / 1024,
               (double)l->total.dram_write / 1024);
    str_printf(s, "  %-8s", l->bound);
    str_shown(s, l->name.node ? l->name.node : "");
    str_putc(s, '\n');
}

static npu_status layers(const struct trace_run *run, struct str *s) {
    struct trace_layer *l;
    size_t n;
    NPU_TRY(trace_layers(run, &l, &n));
    if (n) {
        str_puts(s, "\nlayer                         kernel                start          end      "
                    "cycles  share"
                    "      MMAC  util%   KiB in   KiB out  bound   model node\n");
        for (size_t i = 0; i < n; i++)
            layer(run, &l[i], s);
        str_puts(
            s,
            "  start, end  first and last cycle of its matrix and vector work; neighbours overlap\n"
            "  cycles      by how much the layer moves the end of the run on: these add up to the "
            "run; share: in % of it\n"
            "  MMAC        millions of multiply-adds; util%: in % of what the array could do in "
            "these cycles at 16 bits\n"
            "  KiB in, out bytes from and to external memory\n"
            "  bound       what was busy for most of the cycles: mxu, vec or dram; latency: none "
            "of "
            "them for half\n");
    }
    base_free(l);
    return NULL;
}

static void memory(const struct trace_run *run, struct str *s) {
    const struct trace_dram *d = &run->dram;
    const double bytes = (double)(d->read_bytes + d->write_bytes),
                 peak = hw_dram_bytes_per_cycle(run->hw);
    str_printf(s, "\ndram     %.2f MiB read, %.2f MiB written, of it instructions %.2f MiB;",
               (double)d->read_bytes / 1048576, (double)d->write_bytes / 1048576,
               (double)d->fetch_bytes / 1048576);
    if (run->cycles) {
        str_printf(s, " %.1f B/cycle", bytes / (double)run->cycles);
        if (peak > 0)
            str_printf(s, " of %.1f (%.1f %%)", peak, 100 * bytes / (double)run->cycles / peak);
    }
    str_putc(s, '\n');
    if (d->row_hits + d->row_misses) {
        const double time =
            (double)run->cycles * 1e6 / (double)run->hw->clock_npu_mhz * d->channels;
        str_printf(s,
                   "         rows %.1f %% hit, %.1f %% opened (%.1f %% after closing another); "
                   "refresh %.2f %% of the time\n",
                   percent(d->row_hits, d->row_hits + d->row_misses),
                   percent(d->row_misses, d->row_hits + d->row_misses),
                   percent(d->row_conflicts, d->row_hits + d->row_misses),
                   time > 0 ? 100 * (double)d->refresh_ps / time : 0.0);
    }
    char cap[TEXT_NUMBER_BYTES], used[TEXT_NUMBER_BYTES];
    str_printf(s, "spm      %s", text_format_bytes(cap, (uint64_t)run->hw->spm_bytes));
    if (run->spm_peak_bytes)
        str_printf(s, ", at most %s used (%.1f %%)", text_format_bytes(used, run->spm_peak_bytes),
                   percent(run->spm_peak_bytes, (uint64_t)run->hw->spm_bytes));
    str_putc(s, '\n');
}

static void bounds(const struct trace_run *run, const struct trace_bounds *b, struct str *s) {
    if (b->ideal_cycles <= 0) return;
    const double cycles = (double)run->cycles;
    str_printf(s, "\nbounds   multiply-adds %.0f, memory %.0f, vector elements %.0f cycles\n",
               b->mac_cycles, b->dram_cycles, b->vector_cycles);
    str_printf(
        s, "         ideal  %.0f cycles: the largest of them; this run takes %.2f times as long\n",
        b->ideal_cycles, cycles / b->ideal_cycles);
    if (b->mapped_cycles > 0)
        str_printf(s,
                   "         mapped %.0f cycles: with each layer's fit to the array, refresh, and "
                   "constants fetched ahead; %.2f times\n",
                   b->mapped_cycles, cycles / b->mapped_cycles);
}

// Who signals what an engine waited for, as " (dma0 3.1 %, dma1 0.2 %)".
static void signallers(const struct trace_run *run, const struct trace_engine *e,
                       enum trace_class cls, struct str *s) {
    const char *lead = " (";
    for (int w = 0; w < ISA_ENGINES; w++) {
        const bool dma = isa_engine_class(w) == ISA_CLASS_DMA;
        if (!e->wait_for[w] || dma != (cls == TRACE_WAIT_DMA)) continue;
        str_printf(s, "%s%s %.1f %%", lead, isa_engine_name(w),
                   percent(e->wait_for[w], run->cycles));
        lead = ", ";
    }
    if (*lead == ',') str_putc(s, ')');
}

// What keeps the busiest engine from work, in words, the largest first.
static void top(const struct trace_run *run, struct str *s) {
    const struct trace_engine *e = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < run->nengine; i++) {
        const uint64_t busy =
            run->engine[i].cycles[TRACE_BUSY] + run->engine[i].cycles[TRACE_BUSY_PARTIAL];
        if (run->engine[i].engine == ISA_ENGINE_CP || busy <= most) continue;
        most = busy;
        e = &run->engine[i];
    }
    if (!e) return;
    str_printf(s, "\nwhat keeps %s, the busiest engine, from full speed\n",
               isa_engine_name(e->engine));
    bool printed[TRACE_CLASSES] = {false};
    for (int n = 0; n < 8; n++) {
        int best = -1;
        for (int c = TRACE_BUSY_PARTIAL; c < TRACE_CLASSES; c++)
            if (!printed[c] && e->cycles[c] && (best < 0 || e->cycles[c] > e->cycles[best]))
                best = c;
        if (best < 0) break;
        const enum trace_class cls = (enum trace_class)best;
        printed[best] = true;
        right(s, 14, e->cycles[best]);
        str_printf(s, "%6.1f %%  %-10s %s", percent(e->cycles[best], run->cycles),
                   trace_class_title(cls), trace_class_meaning(cls));
        if (cls == TRACE_WAIT_SEMAPHORE || cls == TRACE_WAIT_DMA) signallers(run, e, cls, s);
        str_putc(s, '\n');
    }
}

npu_status trace_text(const struct trace_run *run, struct str *out) {
    struct trace_bounds b;
    NPU_TRY(trace_bounds(run, &b));
    header(run, &b, out);
    engines(run, out);
    NPU_TRY(layers(run, out));
    memory(run, out);
    bounds(run, &b, out);
    top(run, out);
    return str_status(out);
}
