// SPDX-License-Identifier: Apache-2.0
#include "simulator/trace/critical.h"

#include "runtime/base/alloc.h"
#include "simulator/trace/critical_edges.h"

struct critical {
    struct critical_graph g;
    int64_t *slack; // per node
    struct critical_step *step;
    size_t steps;
};

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// The step along an edge. What an instruction does itself belongs to it; decoding and what nothing
// explains to the one that comes.
static struct critical_step step_of(const struct critical_graph *g, size_t edge) {
    const struct path_edge *x = &g->path.edge[edge];
    const enum critical_kind kind = (enum critical_kind)x->kind;
    const bool of_from = kind == CRITICAL_ENGINE || kind == CRITICAL_RESULT ||
                         kind == CRITICAL_SIGNAL || kind == CRITICAL_BARRIER;
    struct critical_step s = {.insn = g->insn[of_from ? x->from : x->to],
                              .kind = kind,
                              .from = (uint64_t)g->path.at[x->from],
                              .to = (uint64_t)g->path.at[x->to]};
    const uint64_t lag = x->lag > 0 ? (uint64_t)x->lag : 0;
    if (kind == CRITICAL_SIGNAL) s.latency = least(lag, (uint64_t)g->run->hw->cp_semaphore);
    s.work = lag - s.latency;
    s.other = s.to - s.from - lag;
    return s;
}

static npu_status make_steps(struct critical *c) {
    const struct path_graph *p = &c->g.path;
    size_t last = 0, n;
    for (size_t j = 0; j < p->nodes; j++)
        if (p->at[j] >= p->at[last]) last = j;
    size_t *edge = base_alloc_array(p->nodes + 1, sizeof *edge);
    if (edge) {
        path_trace(p, last, edge, &n);
        c->step = base_alloc_array(n + 2, sizeof *c->step);
    }
    if (!c->step) {
        base_free(edge);
        return npu_fail(NO_MEMORY, "no memory for the critical path");
    }
    const size_t first = n ? p->edge[edge[n - 1]].from : last;
    if (p->at[first] > 0)
        c->step[c->steps++] = (struct critical_step){.insn = c->g.insn[first],
                                                     .kind = CRITICAL_DISPATCH,
                                                     .to = (uint64_t)p->at[first],
                                                     .other = (uint64_t)p->at[first]};
    for (size_t k = n; k-- > 0;) {
        const struct critical_step s = step_of(&c->g, edge[k]);
        if (s.to > s.from) c->step[c->steps++] = s;
    }
    base_free(edge);
    return NULL;
}

npu_status critical_new(const struct trace_run *run, const struct trace_log *log,
                        struct critical **out) {
    *out = NULL;
    if (!run->code.size || !log->count) return NULL;
    struct critical *c = base_alloc(sizeof *c);
    if (!c) return npu_fail(NO_MEMORY, "no memory for the critical path");
    npu_status st = critical_graph_init(&c->g, run, log);
    if (!st) {
        c->slack = base_alloc_array(c->g.path.nodes + 1, sizeof *c->slack);
        if (!c->slack) st = npu_fail(NO_MEMORY, "no memory for the critical path");
    }
    if (!st) {
        path_slack(&c->g.path, c->slack);
        st = make_steps(c);
    }
    if (st) {
        critical_free(c);
        return st;
    }
    *out = c;
    return NULL;
}

void critical_free(struct critical *c) {
    if (!c) return;
    critical_graph_deinit(&c->g);
    base_free(c->slack);
    base_free(c->step);
    base_free(c);
}

const struct critical_step *critical_steps(const struct critical *c, size_t *count) {
    *count = c->steps;
    return c->step;
}

uint64_t critical_slack(const struct critical *c, size_t insn) {
    const int64_t slack = c->slack[c->g.begin[insn]];
    return slack > 0 ? (uint64_t)slack : 0;
}

size_t critical_contradictions(const struct critical *c) {
    return c->g.path.cut;
}

// ---- other machines ----------------------------------------------------------------------------

static double factor(double f) {
    return f > 0 ? f : 1;
}

// Share of refresh in what the DMA engines wait for memory.
static double refresh_share(const struct trace_run *run) {
    uint64_t refresh = 0, all = 0;
    for (size_t i = 0; i < run->nengine; i++) {
        if (isa_engine_class(run->engine[i].engine) != ISA_CLASS_DMA) continue;
        const uint64_t *cycles = run->engine[i].cycles;
        refresh += cycles[TRACE_REFRESH];
        all += cycles[TRACE_REFRESH] + cycles[TRACE_WAIT_DRAM] + cycles[TRACE_DRAM_CONFLICT] +
               cycles[TRACE_BUSY];
    }
    return all ? (double)refresh / (double)all : 0;
}

// A transfer takes as long as the slower of its link and the memory.
static int64_t transfer(const struct critical_graph *g, const struct trace_event *e,
                        const struct critical_change *c, int64_t part) {
    const struct hw *hw = g->run->hw;
    const double all = (double)part;
    double link = (double)e->work / (double)hw->dma_width_bytes + (double)hw->dma_start;
    if (link > all) link = all;
    if (!e->dram_read && !e->dram_write) return (int64_t)(all * factor(c->link));
    double memory = all * factor(c->memory);
    if (c->no_refresh) memory *= 1 - refresh_share(g->run);
    memory -= c->earlier_ps * (double)hw->clock_npu_mhz / 1e6;
    if (c->no_memory) memory = 0;
    link *= factor(c->link);
    return (int64_t)(memory > link ? memory : link);
}

// What an instruction's first `part` cycles take after the change.
static int64_t scaled(const struct critical_graph *g, const struct trace_event *e,
                      const struct critical_change *c, int64_t part) {
    double issue = (double)(e->issued - e->start), f = 1;
    switch (isa_engine_class(e->engine)) {
    case ISA_CLASS_MXU: f = factor(c->compute); break;
    case ISA_CLASS_VEC: f = factor(c->vector); break;
    case ISA_CLASS_DMA: return transfer(g, e, c, part);
    case ISA_CLASS_CP: f = factor(c->decode); break;
    case ISA_CLASS_ANY: break;
    }
    if (issue > (double)part || isa_engine_class(e->engine) == ISA_CLASS_CP) issue = (double)part;
    return (int64_t)(issue * f + ((double)part - issue));
}

static int64_t changed_lag(const struct critical_graph *g, const struct path_edge *x,
                           const struct critical_change *c) {
    const struct trace_event *from = g->event[g->insn[x->from]];
    switch ((enum critical_kind)x->kind) {
    case CRITICAL_DISPATCH:
    case CRITICAL_QUEUE: return (int64_t)((double)x->lag * factor(c->decode));
    case CRITICAL_HOST: return (int64_t)((double)x->lag * factor(c->host));
    case CRITICAL_SLOT: return c->no_queue ? INT64_MIN / 2 : x->lag;
    case CRITICAL_SIGNAL: {
        const int64_t wanted = g->run->hw->cp_semaphore;
        const int64_t latency = x->lag < wanted ? x->lag : wanted;
        return scaled(g, from, c, x->lag - latency) + (c->no_latency ? 0 : latency);
    }
    case CRITICAL_ENGINE:
    case CRITICAL_RESULT:
    case CRITICAL_BARRIER: break;
    }
    return scaled(g, from, c, x->lag);
}

npu_status critical_predict(const struct critical *c, const struct critical_change *change,
                            double *cycles) {
    const struct path_graph *p = &c->g.path;
    int64_t *lag = base_alloc_array(p->edges + 1, sizeof *lag);
    int64_t *when = base_alloc_array(p->nodes + 1, sizeof *when);
    npu_status st = lag && when ? NULL : npu_fail(NO_MEMORY, "no memory for a what-if");
    if (!st) {
        for (size_t e = 0; e < p->edges; e++)
            lag[e] = changed_lag(&c->g, &p->edge[e], change);
        path_forward(p, lag, when);
        *cycles = 0;
        for (size_t j = 0; j < p->nodes; j++)
            if ((double)when[j] > *cycles) *cycles = (double)when[j];
    }
    base_free(lag);
    base_free(when);
    return st;
}
