// SPDX-License-Identifier: Apache-2.0
//
// From tags to layers: sums of tags of one layer, the cycles by which each layer moves the end of
// the run on (sorted by end; they add up to the run's length), and what bounds it.
#include <stdlib.h>
#include <string.h>

#include "isa/timing.h"
#include "runtime/base/alloc.h"
#include "simulator/trace/trace.h"

struct trace_name trace_name_of(const struct trace_run *run, uint32_t tag) {
    struct trace_name name = {.layer = -1};
    if (run->lookup && run->lookup(run->lookup_ctx, tag, &name)) return name;
    return (struct trace_name){.layer = -1};
}

uint64_t trace_tag_start(const struct trace_tag *t) {
    return t->end > t->start ? t->start : t->first;
}

uint64_t trace_tag_end(const struct trace_tag *t) {
    return t->end > t->start ? t->end : t->last;
}

static void add(struct trace_tag *sum, const struct trace_tag *t) {
    if (!sum->instructions || t->first < sum->first) sum->first = t->first;
    if (t->last > sum->last) sum->last = t->last;
    if (t->end > t->start) {
        if (sum->end == sum->start || t->start < sum->start) sum->start = t->start;
        if (t->end > sum->end) sum->end = t->end;
    }
    sum->macs += t->macs;
    sum->elems += t->elems;
    sum->mxu_cycles += t->mxu_cycles;
    sum->vec_cycles += t->vec_cycles;
    sum->dma_cycles += t->dma_cycles;
    sum->dram_read += t->dram_read;
    sum->dram_write += t->dram_write;
    sum->spm_bytes += t->spm_bytes;
    sum->instructions += t->instructions;
}

// The resource that was busy for the largest part of the layer's cycles.
static const char *bound(const struct trace_run *run, const struct trace_layer *l) {
    const double bytes = (double)(l->total.dram_read + l->total.dram_write);
    const double rate = hw_dram_bytes_per_cycle(run->hw);
    const double dram = rate > 0 ? bytes / rate : 0;
    const double mxu = (double)l->total.mxu_cycles, vec = (double)l->total.vec_cycles;
    const double most = mxu > vec ? (mxu > dram ? mxu : dram) : (vec > dram ? vec : dram);
    if (most * 2 < (double)l->cycles || most == 0) return "latency";
    return most == mxu ? "mxu" : most == vec ? "vec" : "dram";
}

static int by_end(const void *a, const void *b) {
    const struct trace_layer *x = a, *y = b;
    const uint64_t p = trace_tag_end(&x->total);
    const uint64_t q = trace_tag_end(&y->total);
    if (p != q) return p < q ? -1 : 1;
    return x->tag < y->tag ? -1 : x->tag > y->tag;
}

static int by_start(const void *a, const void *b) {
    const struct trace_layer *x = a, *y = b;
    const uint64_t p = trace_tag_start(&x->total);
    const uint64_t q = trace_tag_start(&y->total);
    if (p != q) return p < q ? -1 : 1;
    return x->tag < y->tag ? -1 : x->tag > y->tag;
}

// Peak multiply-adds of the array over the layer's cycles, at the rate of a 16-bit type; the text
// report says so.
static double utilization(const struct hw *hw, const struct trace_layer *l) {
    const double peak = hw_peak_macs_per_s(hw, ISA_F16) / ((double)hw->clock_npu_mhz * 1e6);
    return l->cycles ? (double)l->total.macs / (peak * (double)l->cycles) : 0;
}

// What had begun when a run ended early would have ended later.
static void cut(struct trace_tag *t, uint64_t end) {
    uint64_t *const at[] = {&t->first, &t->last, &t->start, &t->end};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        if (*at[i] > end) *at[i] = end;
}

static void finish(const struct trace_run *run, struct trace_layer *l, size_t n) {
    for (size_t i = 0; i < n; i++)
        cut(&l[i].total, run->cycles);
    qsort(l, n, sizeof *l, by_end);
    uint64_t front = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t end = trace_tag_end(&l[i].total);
        if (i + 1 == n) end = run->cycles; // what ends the run belongs to the last
        l[i].cycles = end > front ? end - front : 0;
        if (end > front) front = end;
        l[i].utilization = utilization(run->hw, &l[i]);
        l[i].bound = bound(run, &l[i]);
    }
    qsort(l, n, sizeof *l, by_start);
}

npu_status trace_layers(const struct trace_run *run, struct trace_layer **out, size_t *count) {
    struct trace_layer *l = base_alloc_array(run->ntag + 1, sizeof *l);
    *out = NULL;
    *count = 0;
    if (!l) return npu_fail(NO_MEMORY, "no memory for %zu layers", run->ntag);
    size_t n = 0;
    for (size_t i = 0; i < run->ntag; i++) {
        const struct trace_tag *t = &run->tag[i];
        if (!t->instructions) continue;
        const struct trace_name name = trace_name_of(run, t->tag);
        size_t at = n;
        if (name.layer >= 0)
            for (at = 0; at < n; at++)
                if (l[at].name.layer == name.layer) break;
        if (at == n) l[n++] = (struct trace_layer){.name = name, .tag = t->tag};
        add(&l[at].total, t);
    }
    finish(run, l, n);
    *out = l;
    *count = n;
    return NULL;
}
