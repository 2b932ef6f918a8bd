// SPDX-License-Identifier: Apache-2.0
// Layers against the reference kernels.
//
// The graph is walked once behind the run, node after node, with two values for each result:
//
//   alone         what the reference kernel makes of what the program's layer really read: results
//                 of the program, caught as they were stored
//   accumulated   what it makes of its own earlier results: how far the error has grown
//
// A layer departs when it is too far from `alone`: its bound follows from its type and the length
// of its sums and holds at any depth, and a wrong layer does not drag along those behind it.
// Results that are no layer's (fused away, views) are evaluated from their inputs.
#include "simulator/npusim/layers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/progress.h"
#include "runtime/base/str.h"
#include "runtime/include/npu/simulator.h"
#include "simulator/device.h"
#include "simulator/npusim/compare.h"
#include "simulator/npusim/fresh.h"
#include "simulator/npusim/layer_bound.h"
#include "simulator/npusim/narrow.h"
#include "simulator/npusim/snapshot.h"
#include "toolchain/npuc/record.h"

// A value of the graph while it is needed.
struct slot {
    const void *alone, *accumulated; // elements, row-major; the same when they agree bit for bit
    void *owned[2];
    int uses;
    struct snapshot *stored; // NULL: no layer stores it
};

struct layers {
    struct graph *g;
    const struct npu_program_image *image;
    struct snapshots snapshots;
    struct slot *slot; // by value id
    struct arena *scratch;
    struct str lines;
    size_t checked, departed, missing;
    struct str first;            // about the first that departs
    const struct writes *writes; // of every instruction
    const struct trace_log *log; // when they ran
};

static npu_status find_results(struct layers *l) {
    for (size_t i = 0; i < l->snapshots.n; i++) {
        struct snapshot *s = &l->snapshots.item[i];
        const struct npu_image_result *r = s->result;
        const struct graph_value *v = graph_find_value(l->g, r->name);
        bool fits = v && v->producer && (int)v->dtype == r->dtype && v->rank == r->rank;
        for (int d = 0; fits && d < r->rank; d++)
            fits = v->dims[d] == r->dims[d];
        if (!fits)
            return npu_fail(BAD_INPUT,
                            "record: the graph has no result '%s' of that type and shape", r->name);
        l->slot[v->id].stored = s;
    }
    return NULL;
}

npu_status layers_begin(struct npusim *s, struct layers **out) {
    struct layers *l = ARENA_NEW(s->a, struct layers);
    *out = l;
    l->image = npu_program_image_of(s->program);
    NPU_TRY(npuc_remake(l->image, s->o->program, s->o->model, s->a, &l->g));
    l->slot = ARENA_ARRAY(s->a, struct slot, (size_t)l->g->nvalue + 1);
    l->scratch = arena_try_new();
    if (!l->scratch) return npu_fail(NO_MEMORY, "scratch memory");
    struct sim_device *d = sim_device_of(s->device);
    NPU_TRY(snapshots_init(&l->snapshots, l->image->record, sim_device_hw(d)));
    NPU_TRY(find_results(l));
    s->writes->next = snapshots_write;
    s->writes->next_ctx = &l->snapshots;
    return NULL;
}

void layers_free(struct layers *l) {
    if (!l) return;
    for (int i = 0; l->slot && i < l->g->nvalue; i++)
        for (int k = 0; k < 2; k++)
            base_free(l->slot[i].owned[k]);
    snapshots_deinit(&l->snapshots);
    arena_free(l->scratch);
    str_free(&l->lines);
    str_free(&l->first);
}

// ---- values -------------------------------------------------------------------------------------

static npu_status new_block(struct slot *to, int which, const struct graph_value *v, void **out) {
    *out = to->owned[which] = base_alloc((size_t)graph_value_bytes(v) + 1);
    return *out ? NULL
                : npu_fail(NO_MEMORY, "%" PRId64 " bytes for '%s'", graph_value_bytes(v), v->name);
}

static void drop(struct slot *s) {
    for (int k = 0; k < 2; k++) {
        base_free(s->owned[k]);
        s->owned[k] = NULL;
    }
    s->alone = s->accumulated = NULL;
}

static npu_status set_inputs(struct npusim *s, struct layers *l) {
    const struct graph *g = l->g;
    for (int i = 0; i < g->ninput; i++) {
        const struct graph_value *v = g->inputs[i];
        const void *values = NULL;
        for (size_t k = 0; k < s->in.n; k++)
            if (!strcmp(s->in.item[k].info.name, v->name)) values = s->in.item[k].values;
        for (size_t k = 0; k < s->state.n && v->is_state; k++)
            if (!strcmp(s->state.item[k].info.name, v->file_name ? v->file_name : v->name))
                values = s->state.item[k].values;
        if (!values)
            return npu_fail(BAD_INPUT, "the program has no input '%s', which its model has",
                            v->name);
        l->slot[v->id].alone = l->slot[v->id].accumulated = values;
    }
    for (const struct graph_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nin; k++)
            l->slot[n->inputs[k]->id].uses++;
    return NULL;
}

// ---- one layer ----------------------------------------------------------------------------------

struct verdict {
    struct npusim_comparison alone, accumulated;
    double got, want, allowed;   // of the worst element
    struct narrow_result result; // got NULL: the same bits
    bool departs;
};

// All three the same, bit for bit: nothing to compute.
static bool same_bits(const struct slot *slot, const struct graph_value *v, const void *got) {
    return slot->alone == slot->accumulated &&
           !memcmp(got, slot->alone, (size_t)graph_value_bytes(v));
}

static const void *operand(const struct layers *l, const struct graph_value *v, bool accumulated) {
    const struct slot *s = &l->slot[v->id];
    return v->data ? graph_constant(v, l->scratch) : accumulated ? s->accumulated : s->alone;
}

// The bound of a node that reads what the program's layer read.
static npu_status bound_of(struct layers *l, const struct graph_node *n, double range,
                           struct layer_bound *out) {
    const int read[] = {0, 1, 3}; // q, k, mask
    double *x[3];
    *out = layer_bound_of(n, range);
    if (n->op != GRAPH_ATTENTION || n->nown < 4 || !isa_dtype_is_float((int)n->inputs[3]->dtype))
        return NULL;
    const struct graph_value *q = n->inputs[0], *k = n->inputs[1], *mask = n->inputs[3];
    for (int i = 0; i < 3; i++) {
        const struct graph_value *v = n->inputs[read[i]];
        NPU_TRY(npusim_to_f64(l->scratch, (enum npu_dtype)v->dtype, operand(l, v, false),
                              (uint64_t)graph_value_elems(v), &x[i]));
    }
    const int64_t d = q->dims[q->rank - 1], keys = mask->rank ? mask->dims[mask->rank - 1] : 1;
    const double score = fabs(graph_float(n, GRAPH_ATTR_SCALE, 1)) *
                         layer_bound_length(x[0], graph_value_elems(q) / d, d) *
                         layer_bound_length(x[1], graph_value_elems(k) / d, d);
    out->atol += layer_bound_of_mask(x[2], graph_value_elems(mask) / keys, keys, score, range);
    return NULL;
}

// Attention without a floating fill: NaN that hidden keys may bring.
static npu_status forgive_hidden(struct layers *l, const struct graph_node *n, double *got,
                                 const double *want) {
    if (n->op != GRAPH_ATTENTION) return NULL;
    const struct graph_value *q = n->inputs[0], *v = n->inputs[2];
    const int64_t keys = v->dims[v->rank - 2], columns = v->dims[v->rank - 1],
                  rows = q->dims[q->rank - 2];
    double *values;
    NPU_TRY(npusim_to_f64(l->scratch, (enum npu_dtype)v->dtype, operand(l, v, false),
                          (uint64_t)graph_value_elems(v), &values));
    layer_bound_hidden(values, graph_value_elems(v) / (keys * columns), keys, columns,
                       graph_value_elems(q) / (rows * q->dims[q->rank - 1]), rows, got, want);
    return NULL;
}

static npu_status compare(struct npusim *s, struct layers *l, const struct graph_node *n,
                          const struct graph_value *v, const void *got, struct verdict *out) {
    const struct slot *slot = &l->slot[v->id];
    const uint64_t count = (uint64_t)graph_value_elems(v);
    const enum npu_dtype t = (enum npu_dtype)v->dtype;
    double *a, *b, *c;
    if (same_bits(slot, v, got)) {
        out->alone = out->accumulated = (struct npusim_comparison){.cosine = 1, .snr_db = HUGE_VAL};
        return NULL;
    }
    NPU_TRY(npusim_to_f64(l->scratch, t, got, count, &a));
    NPU_TRY(npusim_to_f64(l->scratch, t, slot->alone, count, &b));
    NPU_TRY(npusim_to_f64(l->scratch, t, slot->accumulated, count, &c));
    NPU_TRY(forgive_hidden(l, n, a, b));
    struct layer_bound bound;
    NPU_TRY(bound_of(l, n, npusim_range(b, count), &bound));
    if (s->o->tolerance) bound = (struct layer_bound){s->o->rtol, s->o->atol};
    out->alone = npusim_compare_f64(a, b, count, bound.rtol, bound.atol);
    out->accumulated = npusim_compare_f64(a, c, count, bound.rtol, bound.atol);
    if (count) {
        out->got = a[out->alone.worst];
        out->want = b[out->alone.worst];
    }
    out->result = (struct narrow_result){.stored = slot->stored,
                                         .got = a,
                                         .want = b,
                                         .n = count,
                                         .rtol = bound.rtol,
                                         .atol = bound.atol,
                                         .worst = out->alone.worst};
    out->allowed = bound.atol + bound.rtol * fabs(out->want);
    out->departs = out->alone.wrong || (s->o->cosine && !(out->alone.cosine >= s->o->min_cosine));
    return NULL;
}

static void put_db(struct str *out, double db, int width) {
    if (isinf(db) && db > 0)
        str_printf(out, "%*s", width, "exact");
    else
        str_printf(out, "%*.1f", width, db);
}

static void print_line(struct layers *l, const struct graph_value *v, const struct verdict *c,
                       uint64_t missing) {
    const struct npu_image_result *r = l->slot[v->id].stored->result;
    const struct npu_image_tag *tag = container_find_tag(l->image, r->last_tag);
    struct str at = {0}, *out = &l->lines;
    npusim_print_index(&at, v->dims, v->rank, c->alone.worst);
    str_printf(out, "%5" PRIu32 "  %-7s ", r->last_tag, c->departs ? "DEPARTS" : "agrees");
    put_db(out, c->alone.snr_db, 8);
    str_printf(out, " %11.8f %10.3g  ", c->alone.cosine, c->alone.ratio);
    if (c->alone.ratio > 0)
        str_printf(out, "%13.6g %13.6g  %-16s", c->got, c->want, str_text(&at));
    else
        str_printf(out, "%13s %13s  %-16s", "", "", "");
    put_db(out, c->accumulated.snr_db, 8);
    str_printf(out, " %11.8f  ", c->accumulated.cosine);
    str_shown(out, tag->op);
    str_puts(out, " @");
    str_shown(out, tag->kernel);
    str_putc(out, ' ');
    str_shown(out, tag->layer);
    if (missing) str_printf(out, " (%" PRIu64 " elements were not stored)", missing);
    str_putc(out, '\n');
    str_free(&at);
}

static npu_status describe_first(struct layers *l, const struct graph_value *v,
                                 const struct verdict *c, uint64_t missing) {
    const struct npu_image_result *r = l->slot[v->id].stored->result;
    const struct npu_image_tag *tag = container_find_tag(l->image, r->last_tag);
    struct str *s = &l->first;
    str_printf(s, "first layer that departs: tag %" PRIu32 " '", r->last_tag);
    str_shown(s, tag->layer);
    str_puts(s, "' (");
    str_shown(s, tag->op);
    str_puts(s, " @");
    str_shown(s, tag->kernel);
    str_puts(s, "), value '");
    str_shown(s, v->name);
    str_printf(s, "'; %" PRIu64 " of %" PRId64 " elements, worst ", c->alone.wrong,
               graph_value_elems(v));
    npusim_print_index(s, v->dims, v->rank, c->alone.worst);
    str_printf(s, " is %.9g, expected %.9g (allowed %.3g)", c->got, c->want, c->allowed);
    if (tag->nnodes) str_puts(s, "; made from the model's nodes");
    for (size_t i = 0; i < tag->nnodes && i < 8; i++) {
        str_puts(s, i ? ", " : " ");
        str_shown(s, tag->nodes[i]);
    }
    if (tag->nnodes > 8) str_printf(s, " and %zu more", tag->nnodes - 8);
    if (missing) str_printf(s, "\n  %" PRIu64 " elements are stored by no instruction", missing);
    if (!c->result.got) return NULL;
    struct narrow_found found;
    NPU_TRY(narrow_find(l->writes, &c->result, &found));
    narrow_print(s, l->image, l->writes, l->log, &c->result, &found);
    return NULL;
}

// Compares a node's result with what its layer stored, which is what later layers read.
static npu_status check_result(struct npusim *s, struct layers *l, const struct graph_node *n,
                               const struct graph_value *v) {
    struct slot *slot = &l->slot[v->id];
    struct verdict c = {0};
    void *got = base_alloc((size_t)graph_value_bytes(v) + 1);
    if (!got) return npu_fail(NO_MEMORY, "a result of %" PRId64 " bytes", graph_value_bytes(v));
    const uint64_t missing = snapshot_unpack(slot->stored, got);
    if (missing == (uint64_t)graph_value_elems(v)) { // it did not run, or keeps it elsewhere
        base_free(got);
        l->missing++;
        return NULL;
    }
    npu_status st = compare(s, l, n, v, got, &c);
    c.departs |= missing > 0;
    l->checked++;
    if (!st && c.departs && !l->departed++) st = describe_first(l, v, &c, missing);
    if (st) {
        base_free(got);
        return st;
    }
    if (c.departs || !s->o->quiet) print_line(l, v, &c, missing);
    const size_t bytes = (size_t)graph_value_bytes(v);
    if (slot->accumulated == slot->alone && memcmp(got, slot->alone, bytes)) {
        slot->owned[1] = slot->owned[0]; // from here on the two differ
        slot->owned[0] = got;
        slot->alone = got;
    } else if (slot->accumulated != slot->alone) {
        base_free(slot->owned[0]);
        slot->owned[0] = got;
        slot->alone = got;
    } else {
        base_free(got);
    }
    snapshot_drop(slot->stored);
    return NULL;
}

// ---- the walk -----------------------------------------------------------------------------------

static npu_status eval(struct layers *l, const struct graph_node *n, bool accumulated) {
    const void **in = ARENA_ARRAY(l->scratch, const void *, (size_t)n->nin + 1);
    void **out = ARENA_ARRAY(l->scratch, void *, (size_t)n->nout + 1);
    for (int k = 0; k < n->nin; k++)
        in[k] = operand(l, n->inputs[k], accumulated);
    for (int k = 0; k < n->nout; k++) {
        struct slot *s = &l->slot[n->outputs[k]->id];
        NPU_TRY(new_block(s, accumulated, n->outputs[k], &out[k]));
        if (accumulated)
            s->accumulated = out[k];
        else
            s->alone = out[k];
    }
    return graph_eval_node(n, in, out, l->scratch);
}

static npu_status check_node(struct npusim *s, struct layers *l, const struct graph_node *n) {
    bool same = true;
    for (int k = 0; k < n->nin; k++)
        same &= l->slot[n->inputs[k]->id].alone == l->slot[n->inputs[k]->id].accumulated;
    NPU_TRY(eval(l, n, false));
    if (!same) NPU_TRY(eval(l, n, true));
    for (int k = 0; k < n->nout; k++) {
        struct slot *out = &l->slot[n->outputs[k]->id];
        if (same) out->accumulated = out->alone;
        if (out->stored) NPU_TRY(check_result(s, l, n, n->outputs[k]));
        if (!out->uses) drop(out);
    }
    for (int k = 0; k < n->nin; k++) {
        struct slot *in = &l->slot[n->inputs[k]->id];
        if (--in->uses == 0) drop(in);
    }
    return NULL;
}

static void print_head(struct npusim *s, struct layers *l) {
    if (s->o->quiet) return;
    str_printf(&l->lines,
               "layers against the reference kernels; alone: fed with what the layer read, "
               "accumulated: with their own results\n"
               "%5s  %-7s %8s %11s %10s  %13s %13s  %-16s%8s %11s  %s\n",
               "tag", "", "SNR dB", "cosine", "of allowed", "got", "want", "at", "acc. dB",
               "cosine", "layer");
}

npu_status layers_check(struct npusim *s, struct layers *l, const struct trace_log *log) {
    l->writes = s->writes;
    l->log = log;
    print_head(s, l);
    NPU_TRY(set_inputs(s, l));
    uint64_t nodes = 0, done = 0;
    for (const struct graph_node *n = l->g->first; n; n = n->next)
        nodes++;
    progress_stage("reference kernels: layers", nodes, 0, 100);
    for (const struct graph_node *n = l->g->first; n; n = n->next) {
        progress_at(done++);
        NPU_TRY(check_node(s, l, n));
        arena_reset(l->scratch);
    }
    NPU_TRY(str_status(&l->lines));
    progress_end();
    fputs(str_text(&l->lines), stdout);
    if (l->departed) NPU_TRY(fresh_compare(s, l->writes, log, &l->first));
    NPU_TRY(str_status(&l->first));
    if (l->departed)
        return npu_fail(DIFFER, "%zu of %zu layers depart from the reference kernels; %s",
                        l->departed, l->checked, str_text(&l->first));
    if (!s->o->quiet) {
        printf("%zu layers agree with the reference kernels", l->checked);
        if (l->missing) printf(", %zu were not compared: they store no result", l->missing);
        printf("\n");
    }
    return NULL;
}
