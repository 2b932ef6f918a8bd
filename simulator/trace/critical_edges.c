// SPDX-License-Identifier: Apache-2.0
#include "simulator/trace/critical_edges.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"

#define RESULTS 4 // so many instructions back a result may be waited for

// What an instruction's header says about semaphores, and its length.
struct header {
    bool known;
    uint8_t granules, acquire;
    uint8_t wait_sem[2], sig_sem[2], sig_inc[2], sig_when[2];
    uint16_t wait_value[2];
};

// What a node is. Of one launch and one time, in this order.
enum rank { ORIGIN, MADE, STARTED, ENTER, BEGIN };

// A moment of an instruction or a launch, for sorting.
struct moment {
    uint64_t time, order; // order: job and number in program order
    uint32_t of;
    enum rank rank;
};

// A signal of a semaphore in the order of its signaller: the count with it, who, when.
struct signal {
    uint64_t count;
    uint32_t insn;
    enum isa_when when;
};
struct signals {
    struct signal *item;
    size_t n, capacity;
    uint64_t taken; // by waits that subtract
};

struct builder {
    struct critical_graph *g;
    struct header *header; // per granule of the code
    size_t granules;
    uint64_t *order;    // per instruction: job * 2^40 + seq
    uint32_t *sequence; // instructions in that order
    struct signals sem[ISA_SEMS];
};

static bool on_cp(const struct trace_event *e) {
    return e->engine == ISA_ENGINE_CP;
}

static npu_status no_memory(size_t n) {
    return npu_fail(NO_MEMORY, "no memory for the critical path of %zu instructions", n);
}

// ---- instructions ------------------------------------------------------------------------------

static const struct header *header_of(struct builder *b, uint32_t pc) {
    static const struct header none;
    if (pc >= b->granules) return &none;
    struct header *h = &b->header[pc];
    if (h->known) return h;
    struct isa_insn in;
    const char *why;
    const size_t at = (size_t)pc * ISA_GRANULE_BYTES;
    const int n = isa_decode(b->g->run->code.data + at, b->g->run->code.size - at, &in, &why);
    if (!n) return &none;
    *h = (struct header){
        .known = true,
        .granules = (uint8_t)n,
        .acquire = (uint8_t)in.h.acquire,
        .wait_sem = {(uint8_t)in.h.wait0_sem, (uint8_t)in.h.wait1_sem},
        .wait_value = {(uint16_t)in.h.wait0_value, (uint16_t)in.h.wait1_value},
        .sig_sem = {(uint8_t)in.h.sig0_sem, (uint8_t)in.h.sig1_sem},
        .sig_inc = {(uint8_t)in.h.sig0_inc, (uint8_t)in.h.sig1_inc},
        .sig_when = {(uint8_t)in.h.sig0_when, (uint8_t)in.h.sig1_when},
    };
    return h;
}

// Cycles from leaving the command processor before it to leaving it.
static int64_t decode_cycles(struct builder *b, const struct trace_event *e) {
    const struct hw *hw = b->g->run->hw;
    const int64_t granules = header_of(b, e->pc)->granules;
    const int64_t decode = hw->cp_insn + hw->cp_granule * (granules ? granules - 1 : 0);
    const int64_t fetch =
        (granules * ISA_GRANULE_BYTES + hw->cp_fetch_bytes - 1) / hw->cp_fetch_bytes;
    return decode > fetch ? decode : fetch;
}

static uint64_t enter_time(const struct trace_event *e) {
    return on_cp(e) ? e->start : e->dispatched;
}
static uint64_t begin_time(const struct trace_event *e) {
    return on_cp(e) ? e->done : e->start;
}

// ---- nodes -------------------------------------------------------------------------------------

static int by_moment(const void *a, const void *b) {
    const struct moment *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return (int)x->rank - (int)y->rank;
}

// First instruction of a launch in program order; g->n: none ran.
static size_t first_of(const struct builder *b, const struct trace_event *launch) {
    const struct critical_graph *g = b->g;
    size_t lo = 0, hi = g->n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (g->event[b->sequence[mid]]->seq < launch->seq)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

// The instruction that stands for a launch: the first one of its layer.
static uint32_t insn_of(const struct builder *b, size_t launch) {
    const struct critical_graph *g = b->g;
    const size_t first = first_of(b, g->launch[launch].event),
                 end = launch + 1 < g->nlaunch ? first_of(b, g->launch[launch + 1].event) : g->n;
    for (size_t k = first; k < end; k++)
        if (g->event[b->sequence[k]]->tag == g->launch[launch].event->tag) return b->sequence[k];
    return b->sequence[first < g->n ? first : g->n - 1];
}

// Moments of the host: the start of the run, and of each launch two.
static size_t host_moments(const struct builder *b, struct moment *m) {
    const struct critical_graph *g = b->g;
    size_t n = 0;
    if (g->nlaunch) m[n++] = (struct moment){0};
    for (uint32_t i = 0; i < g->nlaunch; i++) {
        const struct trace_event *e = g->launch[i].event;
        const size_t first = first_of(b, e);
        const uint64_t order = first < g->n ? b->order[b->sequence[first]] : UINT64_MAX;
        m[n++] = (struct moment){e->done, order, i, MADE};
        m[n++] = (struct moment){e->issued, order, i, STARTED};
    }
    return n;
}

static size_t node_count(const struct critical_graph *g) {
    return 2 * g->n + 2 * g->nlaunch + (g->nlaunch != 0);
}

static npu_status make_nodes(struct builder *b) {
    struct critical_graph *g = b->g;
    const size_t most = node_count(g);
    size_t n = 0;
    struct moment *m = base_alloc_array(most + 1, sizeof *m);
    uint64_t *at = base_alloc_array(most + 1, sizeof *at);
    npu_status st = m && at ? NULL : no_memory(g->n);
    for (size_t i = 0; !st && i < g->n; i++) {
        m[n++] = (struct moment){enter_time(g->event[i]), b->order[i], (uint32_t)i, ENTER};
        m[n++] = (struct moment){begin_time(g->event[i]), b->order[i], (uint32_t)i, BEGIN};
    }
    if (!st) {
        n += host_moments(b, m + n);
        qsort(m, n, sizeof *m, by_moment);
    }
    for (size_t k = 0; !st && k < n; k++) {
        uint32_t *const node[] = {
            [MADE] = g->made, [STARTED] = g->started, [ENTER] = g->enter, [BEGIN] = g->begin};
        at[k] = m[k].time;
        g->insn[k] = m[k].rank >= ENTER ? m[k].of : insn_of(b, m[k].of);
        if (m[k].rank != ORIGIN) node[m[k].rank][m[k].of] = (uint32_t)k;
    }
    if (!st) st = path_init(&g->path, n, at);
    base_free(m);
    base_free(at);
    return st;
}

struct numbered {
    uint64_t order;
    uint32_t insn;
};

static int by_order(const void *a, const void *b) {
    const struct numbered *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

// Program order over all submissions: each ends with a HALT, before which all of it is over.
static npu_status make_order(struct builder *b) {
    const struct critical_graph *g = b->g;
    struct numbered *list = base_alloc_array(g->n + 1, sizeof *list);
    if (!list) return no_memory(g->n);
    uint64_t job = 0, end = UINT64_MAX;
    for (size_t i = 0; i < g->n; i++) {
        const struct trace_event *e = g->event[i];
        if (e->start >= end) {
            job++;
            end = UINT64_MAX;
        }
        if (e->opcode == ISA_OP_HALT) end = e->done;
        b->order[i] = job << 40 | e->seq;
        list[i] = (struct numbered){b->order[i], (uint32_t)i};
    }
    qsort(list, g->n, sizeof *list, by_order);
    for (size_t k = 0; k < g->n; k++)
        b->sequence[k] = list[k].insn;
    base_free(list);
    return NULL;
}

// ---- edges -------------------------------------------------------------------------------------

static void edge(struct builder *b, uint32_t from, uint32_t to, int64_t lag,
                 enum critical_kind kind) {
    path_edge_add(&b->g->path, from, to, lag, (uint32_t)kind);
}

// Along the command processor, from the instruction before in program order.
static void dispatch_edge(struct builder *b, uint32_t before, uint32_t insn) {
    const struct critical_graph *g = b->g;
    const struct trace_event *e = g->event[insn], *p = g->event[before];
    const uint32_t from = on_cp(p) ? g->begin[before] : g->enter[before];
    edge(b, from, g->enter[insn], on_cp(e) ? 0 : decode_cycles(b, e), CRITICAL_DISPATCH);
}

// What follows from the queue and the engine that it shares with those before it. `own`: those of
// its engine in this submission, `n` of them.
static void engine_edges(struct builder *b, const uint32_t *own, size_t n, uint32_t insn) {
    const struct critical_graph *g = b->g;
    const struct trace_event *e = g->event[insn];
    const size_t depth = (size_t)g->run->hw->cp_queue_depth;
    edge(b, g->enter[insn], g->begin[insn], 0, CRITICAL_QUEUE);
    if (n >= depth) edge(b, g->begin[own[n - depth]], g->enter[insn], 0, CRITICAL_SLOT);
    if (!n) return;
    const struct trace_event *p = g->event[own[n - 1]];
    // A DMA engine takes the next before the result of the one before is there: when, is known
    // only if the next one was waiting.
    const bool dma = isa_engine_class(e->engine) == ISA_CLASS_DMA;
    const uint64_t free_at = dma ? (e->ready > e->dispatched ? e->ready : p->start) : p->issued;
    edge(b, g->begin[own[n - 1]], g->begin[insn], (int64_t)(free_at - p->start), CRITICAL_ENGINE);
    for (size_t k = 0; k < RESULTS && k < n && !dma; k++) {
        const struct trace_event *q = g->event[own[n - 1 - k]];
        if (q->done == e->start && q->done > p->issued)
            edge(b, g->begin[own[n - 1 - k]], g->begin[insn], (int64_t)(q->done - q->start),
                 CRITICAL_RESULT);
    }
}

static bool add_signals(struct builder *b, uint32_t insn) {
    const struct header *h = header_of(b, b->g->event[insn]->pc);
    for (int k = 0; k < 2; k++) {
        if (!h->sig_sem[k]) continue;
        struct signals *s = &b->sem[h->sig_sem[k]];
        if (s->n == s->capacity) {
            const size_t capacity = s->capacity ? s->capacity * 2 : 256;
            struct signal *grown = base_realloc(s->item, capacity * sizeof *grown);
            if (!grown) return false;
            s->item = grown;
            s->capacity = capacity;
        }
        const uint64_t before = s->n ? s->item[s->n - 1].count : 0;
        s->item[s->n++] =
            (struct signal){before + h->sig_inc[k], insn, (enum isa_when)h->sig_when[k]};
    }
    return true;
}

static void signal_edges(struct builder *b, uint32_t insn) {
    const struct critical_graph *g = b->g;
    const struct header *h = header_of(b, g->event[insn]->pc);
    for (int k = 0; k < 2; k++) {
        if (!h->wait_sem[k]) continue;
        struct signals *s = &b->sem[h->wait_sem[k]];
        const uint64_t count = s->taken + h->wait_value[k];
        if (h->acquire >> k & 1) s->taken = count;
        size_t lo = 0, hi = s->n;
        while (lo < hi) {
            const size_t mid = (lo + hi) / 2;
            if (s->item[mid].count < count)
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo == s->n) continue;
        const struct trace_event *p = g->event[s->item[lo].insn];
        const uint64_t when = on_cp(p)                           ? p->done
                              : s->item[lo].when == ISA_AT_START ? p->start
                              : s->item[lo].when == ISA_AT_READ  ? p->read
                                                                 : p->done;
        edge(b, g->begin[s->item[lo].insn], g->begin[insn],
             (int64_t)(when - begin_time(p)) + g->run->hw->cp_semaphore, CRITICAL_SIGNAL);
    }
}

// The host makes one launch after the other, as far as its queue has room; the device starts a
// launch that is made when the one before is over.
static void host_edges(struct builder *b) {
    const struct critical_graph *g = b->g;
    for (size_t i = 0; i < g->nlaunch; i++) {
        const struct critical_launch *l = &g->launch[i];
        const size_t first = first_of(b, l->event);
        edge(b, i ? g->made[i - 1] : 0, g->made[i], l->lag, CRITICAL_HOST);
        if (l->place < i) edge(b, g->started[l->place], g->made[i], 0, CRITICAL_HOST);
        if (first && first <= g->n)
            edge(b, g->begin[b->sequence[first - 1]], g->started[i], 0, CRITICAL_BARRIER);
        edge(b, g->made[i], g->started[i], 0, CRITICAL_HOST);
        if (first >= g->n) continue;
        const uint32_t insn = b->sequence[first];
        const struct trace_event *e = g->event[insn];
        edge(b, g->started[i], g->enter[insn], on_cp(e) ? 0 : decode_cycles(b, e),
             CRITICAL_DISPATCH);
    }
}

// One submission: sequence[from .. to).
static bool job_edges(struct builder *b, size_t from, size_t to, uint32_t *const own[]) {
    const struct critical_graph *g = b->g;
    size_t n[ISA_ENGINES] = {0};
    for (int s = 0; s < ISA_SEMS; s++)
        b->sem[s].n = 0, b->sem[s].taken = 0;
    for (size_t k = from; k < to; k++)
        if (!add_signals(b, b->sequence[k])) return false;
    for (size_t k = from; k < to; k++) {
        const uint32_t insn = b->sequence[k];
        const struct trace_event *e = g->event[insn];
        if (k > from || (k && !g->nlaunch)) dispatch_edge(b, b->sequence[k - 1], insn);
        if (!on_cp(e)) {
            engine_edges(b, own[e->engine], n[e->engine], insn);
            own[e->engine][n[e->engine]++] = insn;
        } else {
            edge(b, g->enter[insn], g->begin[insn], decode_cycles(b, e), CRITICAL_QUEUE);
            if (e->opcode == ISA_OP_BARRIER || e->opcode == ISA_OP_HALT)
                for (int x = 1; x < ISA_ENGINES; x++)
                    if (n[x]) {
                        const uint32_t last = own[x][n[x] - 1];
                        edge(b, g->begin[last], g->begin[insn],
                             (int64_t)(g->event[last]->done - g->event[last]->start),
                             CRITICAL_BARRIER);
                    }
        }
        signal_edges(b, insn);
    }
    return true;
}

static npu_status make_edges(struct builder *b) {
    struct critical_graph *g = b->g;
    uint32_t *own[ISA_ENGINES] = {0};
    size_t count[ISA_ENGINES] = {0};
    for (size_t i = 0; i < g->n; i++)
        count[g->event[i]->engine]++;
    bool ok = true;
    for (int x = 0; x < ISA_ENGINES; x++)
        ok &= (own[x] = base_alloc_array(count[x] + 1, sizeof *own[x])) != NULL;
    for (size_t from = 0; ok && from < g->n;) {
        size_t to = from;
        while (to < g->n && b->order[b->sequence[to]] >> 40 == b->order[b->sequence[from]] >> 40)
            to++;
        ok = job_edges(b, from, to, own);
        from = to;
    }
    for (int x = 0; x < ISA_ENGINES; x++)
        base_free(own[x]);
    if (ok) host_edges(b);
    return ok ? path_settle(&g->path) : no_memory(g->n);
}

// ---- all of it ---------------------------------------------------------------------------------

static npu_status build(struct builder *b) {
    NPU_TRY(make_order(b));
    NPU_TRY(make_nodes(b));
    return make_edges(b);
}

npu_status critical_graph_init(struct critical_graph *g, const struct trace_run *run,
                               const struct trace_log *log) {
    *g = (struct critical_graph){.run = run};
    for (size_t i = 0; i < log->count; i++)
        g->n += log->event[i].kind == TRACE_EVENT_INSN;
    g->event = base_alloc_array(g->n + 1, sizeof *g->event);
    g->enter = base_alloc_array(g->n + 1, sizeof *g->enter);
    g->begin = base_alloc_array(g->n + 1, sizeof *g->begin);
    NPU_TRY(critical_launches(run, log, &g->launch, &g->nlaunch));
    if (!g->n) g->nlaunch = 0; // stopped before the first instruction
    g->made = base_alloc_array(g->nlaunch + 1, sizeof *g->made);
    g->started = base_alloc_array(g->nlaunch + 1, sizeof *g->started);
    g->insn = base_alloc_array(node_count(g) + 1, sizeof *g->insn);
    struct builder *b = base_alloc(sizeof *b);
    npu_status st = NULL;
    if (b && g->event && g->enter && g->begin && g->insn && g->made && g->started) {
        size_t n = 0;
        for (size_t i = 0; i < log->count; i++)
            if (log->event[i].kind == TRACE_EVENT_INSN) g->event[n++] = &log->event[i];
        b->g = g;
        b->granules = run->code.size / ISA_GRANULE_BYTES;
        b->header = base_alloc_array(b->granules + 1, sizeof *b->header);
        b->order = base_alloc_array(g->n + 1, sizeof *b->order);
        b->sequence = base_alloc_array(g->n + 1, sizeof *b->sequence);
        st = b->header && b->order && b->sequence ? build(b) : no_memory(g->n);
        base_free(b->header);
        base_free(b->order);
        base_free(b->sequence);
        for (int s = 0; s < ISA_SEMS; s++)
            base_free(b->sem[s].item);
    } else {
        st = no_memory(g->n);
    }
    base_free(b);
    return st;
}

void critical_graph_deinit(struct critical_graph *g) {
    base_free(g->event);
    base_free(g->enter);
    base_free(g->begin);
    base_free(g->insn);
    base_free(g->launch);
    base_free(g->made);
    base_free(g->started);
    path_deinit(&g->path);
    *g = (struct critical_graph){0};
}
