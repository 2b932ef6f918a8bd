// SPDX-License-Identifier: Apache-2.0
//
// report.json: the run as data. Schema version 1; keys as in the reference.
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/file.h"
#include "simulator/trace/report_runs.h"
#include "simulator/trace/trace.h"

#define SCHEMA 1

// jansson's calls are not checked one by one: what it could not allocate is noted here.
static bool json_failed;

static void *json_alloc(size_t size) {
    void *block = base_alloc(size);
    json_failed |= !block;
    return block;
}

static json_t *number(uint64_t n) {
    return json_integer((json_int_t)n);
}

static json_t *text(const char *s) {
    json_t *t = s ? json_string(s) : NULL; // NULL when it is not UTF-8
    return t ? t : json_string(s ? "?" : "");
}

static json_t *hash(uint64_t h) {
    char hex[24];
    snprintf(hex, sizeof hex, "0x%016" PRIx64, h);
    return json_string(hex);
}

static json_t *engines(const struct trace_run *run) {
    json_t *list = json_array();
    for (size_t i = 0; i < run->nengine; i++) {
        const struct trace_engine *e = &run->engine[i];
        json_t *o = json_object(), *stalls = json_object(), *waits = json_object();
        json_object_set_new(o, "name", text(isa_engine_name(e->engine)));
        json_object_set_new(o, "busy_cycles", number(e->cycles[TRACE_BUSY]));
        for (int c = TRACE_BUSY + 1; c < TRACE_CLASSES; c++)
            json_object_set_new(stalls, trace_class_key((enum trace_class)c), number(e->cycles[c]));
        json_object_set_new(o, "stalls", stalls);
        for (int w = 0; w < ISA_ENGINES; w++)
            if (e->wait_for[w])
                json_object_set_new(waits, isa_engine_name(w), number(e->wait_for[w]));
        json_object_set_new(o, "wait_for", waits);
        json_object_set_new(o, "instructions", number(e->instructions));
        json_object_set_new(o, "utilization",
                            json_real(run->cycles
                                          ? (double)e->cycles[TRACE_BUSY] / (double)run->cycles
                                          : 0));
        json_array_append_new(list, o);
    }
    return list;
}

static npu_status layers(const struct trace_run *run, json_t **out) {
    struct trace_layer *l;
    size_t n;
    NPU_TRY(trace_layers(run, &l, &n));
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_object(), *bytes = json_object(), *nodes = json_array();
        const struct trace_tag *t = &l[i].total;
        const bool worked = t->end > t->start;
        json_object_set_new(o, "tag", number(l[i].tag));
        json_object_set_new(o, "name", text(l[i].name.name));
        json_object_set_new(o, "op", text(l[i].name.op));
        json_object_set_new(o, "kernel", text(l[i].name.kernel));
        json_object_set_new(o, "node", text(l[i].name.node));
        for (size_t k = 0; k < l[i].name.nnodes; k++)
            json_array_append_new(nodes, text(l[i].name.nodes[k]));
        json_object_set_new(o, "nodes", nodes);
        json_object_set_new(o, "start_cycle", number(worked ? t->start : t->first));
        json_object_set_new(o, "end_cycle", number(worked ? t->end : t->last));
        json_object_set_new(o, "cycles", number(l[i].cycles));
        json_object_set_new(o, "macs", number(t->macs));
        json_object_set_new(o, "vector_elements", number(t->elems));
        json_object_set_new(o, "mxu_cycles", number(t->mxu_cycles));
        json_object_set_new(o, "vec_cycles", number(t->vec_cycles));
        json_object_set_new(o, "dma_cycles", number(t->dma_cycles));
        json_object_set_new(bytes, "dram_read", number(t->dram_read));
        json_object_set_new(bytes, "dram_write", number(t->dram_write));
        json_object_set_new(bytes, "spm", number(t->spm_bytes));
        json_object_set_new(o, "bytes", bytes);
        json_object_set_new(o, "utilization", json_real(l[i].utilization));
        json_object_set_new(o, "bound", text(l[i].bound));
        json_object_set_new(o, "instructions", number(t->instructions));
        json_array_append_new(list, o);
    }
    base_free(l);
    *out = list;
    return NULL;
}

static json_t *memory(const struct trace_run *run) {
    const struct trace_dram *d = &run->dram;
    json_t *o = json_object();
    json_object_set_new(o, "read_bytes", number(d->read_bytes));
    json_object_set_new(o, "write_bytes", number(d->write_bytes));
    json_object_set_new(o, "fetch_bytes", number(d->fetch_bytes));
    json_object_set_new(o, "row_hits", number(d->row_hits));
    json_object_set_new(o, "row_misses", number(d->row_misses));
    json_object_set_new(o, "row_conflicts", number(d->row_conflicts));
    json_object_set_new(o, "refreshes", number(d->refreshes));
    return o;
}

static json_t *bounds(const struct trace_run *run, const struct trace_bounds *b) {
    json_t *o = json_object();
    const double cycles = (double)run->cycles;
    json_object_set_new(o, "mac_cycles", json_real(b->mac_cycles));
    json_object_set_new(o, "dram_cycles", json_real(b->dram_cycles));
    json_object_set_new(o, "vector_cycles", json_real(b->vector_cycles));
    json_object_set_new(o, "ideal_cycles", json_real(b->ideal_cycles));
    json_object_set_new(o, "mapped_cycles", json_real(b->mapped_cycles));
    json_object_set_new(o, "latency_over_ideal",
                        b->ideal_cycles > 0 ? json_real(cycles / b->ideal_cycles) : json_null());
    json_object_set_new(o, "latency_over_mapped",
                        b->mapped_cycles > 0 ? json_real(cycles / b->mapped_cycles) : json_null());
    return o;
}

static json_t *host(const struct trace_run *run) {
    json_t *o = json_object();
    const double n = run->runs.n > 1 ? (double)run->runs.n : 1;
    json_object_set_new(o, "wall_s", json_real(run->host_seconds));
    json_object_set_new(o, "cycles_per_s",
                        run->host_seconds > 0
                            ? json_real((double)run->cycles * n / run->host_seconds)
                            : json_null());
    json_object_set_new(o, "peak_rss_bytes", number(run->peak_rss_bytes));
    return o;
}

static json_t *inputs(const struct trace_run *run) {
    json_t *list = json_array();
    for (size_t i = 0; i < run->ninput; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "name", text(run->input[i].name));
        json_object_set_new(o, "from", text(run->input[i].source));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *launches(const struct trace_host *h) {
    json_t *o = json_object();
    json_object_set_new(o, "launches", number(h->launches));
    json_object_set_new(o, "views", number(h->views));
    json_object_set_new(o, "host_model", h->source ? text(h->source) : json_null());
    json_object_set_new(o, "launch_us", json_real(h->launch_us));
    json_object_set_new(o, "view_us", json_real(h->view_us));
    json_object_set_new(o, "queue_full_us", json_real(h->full_us));
    json_object_set_new(o, "bubble_cycles", number(h->bubble_cycles));
    json_object_set_new(o, "latency_us", json_real(h->latency_us));
    return o;
}

static json_t *outputs(const struct trace_run *run) {
    json_t *list = json_array();
    for (size_t i = 0; i < run->noutput; i++) {
        const struct trace_output *t = &run->output[i];
        json_t *o = json_object(), *shape = json_array();
        char crc[16];
        for (int d = 0; d < t->rank; d++)
            json_array_append_new(shape, json_integer(t->shape[d]));
        snprintf(crc, sizeof crc, "%08" PRIx32, t->crc32);
        json_object_set_new(o, "name", text(t->name));
        json_object_set_new(o, "dtype", text(t->dtype));
        json_object_set_new(o, "shape", shape);
        json_object_set_new(o, "crc32", json_string(crc));
        json_array_append_new(list, o);
    }
    return list;
}

static int append(const char *buffer, size_t size, void *out) {
    str_append(out, buffer, size);
    return ((struct str *)out)->failed ? -1 : 0;
}

npu_status trace_report_text(const struct trace_run *run, struct str *out) {
    struct trace_bounds b;
    NPU_TRY(trace_bounds(run, &b));
    json_failed = false;
    json_set_alloc_funcs(json_alloc, base_free);
    json_t *o = json_object(), *hashes = json_object(), *spm = json_object(), *list = NULL,
           *distribution = NULL;
    npu_status st = layers(run, &list);
    if (!st) st = trace_report_runs(run, &distribution);
    if (st) {
        json_decref(list);
        json_decref(o);
        json_decref(hashes);
        json_decref(spm);
        return st;
    }
    json_object_set_new(o, "schema", number(SCHEMA));
    json_object_set_new(o, "program", text(run->program));
    json_object_set_new(o, "target", text(run->target));
    json_object_set_new(hashes, "program", hash(hw_hash(run->hw, HW_PROGRAM)));
    json_object_set_new(hashes, "timing", hash(hw_hash(run->hw, HW_TIMING)));
    json_object_set_new(o, "hardware_hash", hashes);
    json_object_set_new(o, "clock_mhz", json_integer(run->hw->clock_npu_mhz));
    json_object_set_new(o, "cycles", number(run->cycles));
    json_object_set_new(o, "time_us",
                        json_real((double)run->cycles / (double)run->hw->clock_npu_mhz));
    json_object_set_new(o, "instructions", number(run->instructions));
    if (run->fault) json_object_set_new(o, "fault", text(run->fault));
    if (run->stopped) json_object_set_new(o, "stopped", text(run->stopped));
    json_object_set_new(o, "engines", engines(run));
    json_object_set_new(o, "layers", list);
    json_object_set_new(o, "dram", memory(run));
    json_object_set_new(spm, "capacity_bytes", json_integer(run->hw->spm_bytes));
    json_object_set_new(spm, "peak_bytes", number(run->spm_peak_bytes));
    json_object_set_new(o, "spm", spm);
    json_object_set_new(o, "bounds", bounds(run, &b));
    json_object_set_new(o, "runs", distribution);
    if (run->launches.launches) json_object_set_new(o, "eager", launches(&run->launches));
    json_object_set_new(o, "host", host(run));
    json_object_set_new(o, "inputs", inputs(run));
    json_object_set_new(o, "outputs", outputs(run));
    if (json_dump_callback(o, append, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) || json_failed)
        out->failed = true;
    str_putc(out, '\n');
    json_decref(o);
    return str_status(out);
}

npu_status trace_report_write(const struct trace_run *run, const char *path) {
    struct str s = {0};
    npu_status st = trace_report_text(run, &s);
    if (!st) st = file_write_atomic(path, (struct span){(const uint8_t *)str_text(&s), s.len});
    str_free(&s);
    return st;
}
