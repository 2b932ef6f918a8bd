// SPDX-License-Identifier: Apache-2.0
//
// Adds up jobs: engines by their number, tags by theirs, memory as a whole. The sum of an engine's
// classes stays the length of the run, since each job's does.
#include "simulator/totals.h"

#include "runtime/base/alloc.h"
#include "simulator/core/core.h"

static void add_engine(struct sim_totals *t, const struct trace_engine *e, uint64_t gap) {
    size_t i = 0;
    while (i < t->nengine && t->engine[i].engine != e->engine)
        i++;
    if (i == t->nengine) t->engine[t->nengine++] = (struct trace_engine){.engine = e->engine};
    for (int c = 0; c < TRACE_CLASSES; c++)
        t->engine[i].cycles[c] += e->cycles[c];
    for (int w = 0; w < ISA_ENGINES; w++)
        t->engine[i].wait_for[w] += e->wait_for[w];
    t->engine[i].cycles[TRACE_HOST] += gap;
    t->engine[i].instructions += e->instructions;
}

// Adds a tag's counters; launches of an eager run mostly bring tags of their own, so the newest are
// looked at first.
static bool add_tag(struct sim_totals *t, const struct trace_tag *from, size_t known,
                    uint64_t offset) {
    struct trace_tag moved = *from;
    moved.first += offset;
    moved.last += offset;
    moved.start += offset;
    moved.end += offset;
    for (size_t i = known; i-- > 0;) {
        struct trace_tag *to = &t->tag[i];
        if (to->tag != from->tag) continue;
        const bool had_work = to->start != to->end, has_work = from->start != from->end;
        if (moved.last > to->last) to->last = moved.last;
        if (has_work) {
            if (!had_work) to->start = moved.start;
            to->end = moved.end;
        }
        to->macs += from->macs;
        to->elems += from->elems;
        to->mxu_cycles += from->mxu_cycles;
        to->vec_cycles += from->vec_cycles;
        to->dma_cycles += from->dma_cycles;
        to->dram_read += from->dram_read;
        to->dram_write += from->dram_write;
        to->spm_bytes += from->spm_bytes;
        to->instructions += from->instructions;
        return true;
    }
    if (t->ntag == t->tag_cap) {
        size_t cap = t->tag_cap ? t->tag_cap * 2 : 256;
        struct trace_tag *grown = base_realloc(t->tag, cap * sizeof *grown);
        if (!grown) return false;
        t->tag = grown;
        t->tag_cap = cap;
    }
    t->tag[t->ntag++] = moved;
    return true;
}

static void add_dram(struct trace_dram *t, const struct trace_dram *d) {
    t->read_bytes += d->read_bytes;
    t->write_bytes += d->write_bytes;
    t->fetch_bytes += d->fetch_bytes;
    t->row_hits += d->row_hits;
    t->row_misses += d->row_misses;
    t->row_conflicts += d->row_conflicts;
    t->refreshes += d->refreshes;
    t->refresh_ps += d->refresh_ps;
    t->bus_ps += d->bus_ps;
    t->channels = d->channels;
}

bool sim_totals_add(struct sim_totals *t, const struct core_result *r, uint64_t gap) {
    const uint64_t offset = t->cycles + gap;
    const size_t known = t->ntag;
    for (size_t i = 0; i < r->timing.nengine; i++)
        add_engine(t, &r->timing.engine[i], gap);
    for (size_t i = 0; i < r->timing.ntag; i++)
        if (!add_tag(t, &r->timing.tag[i], known, offset)) return false;
    add_dram(&t->dram, &r->timing.dram);
    if (r->exec.spm_peak_bytes > t->spm_peak_bytes) t->spm_peak_bytes = r->exec.spm_peak_bytes;
    t->jobs++;
    t->cycles = offset + r->timing.cycles;
    t->instructions += r->timing.instructions;
    t->exec_seconds += r->exec_seconds;
    t->run_seconds += r->run_seconds;
    return true;
}

void sim_totals_clear(struct sim_totals *t) {
    struct trace_tag *tag = t->tag;
    const size_t cap = t->tag_cap;
    *t = (struct sim_totals){.tag = tag, .tag_cap = cap};
}

void sim_totals_deinit(struct sim_totals *t) {
    base_free(t->tag);
    *t = (struct sim_totals){0};
}
