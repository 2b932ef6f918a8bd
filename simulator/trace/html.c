// SPDX-License-Identifier: Apache-2.0
//
// The HTML report: one file that a browser opens without a network. Order: the page's head with
// style and scripts, the data, the page's body of scripts that runs when all of it is there.
#include "simulator/trace/html.h"

#include <string.h>

#include "runtime/base/alloc.h"

// JSON inside an element: the three characters that HTML could read are escapes.
static void put_json(struct trace_out *o, const char *id, const struct str *json) {
    struct str *s = trace_out_text(o);
    str_printf(s, "<script type=\"application/json\" id=\"%s\">", id);
    const char *text = str_text(json);
    for (size_t at = 0; at < json->len;) {
        const size_t plain = strcspn(text + at, "<>&");
        str_append(s, text + at, plain);
        at += plain;
        if (at >= json->len) break;
        str_printf(s, "\\u00%02x", (unsigned)text[at++]);
        trace_out_flush(o);
    }
    str_puts(s, "</script>\n");
    trace_out_flush(o);
}

static npu_status put_text(const struct trace_html *h, const char *id,
                           npu_status (*make)(const struct trace_html *, struct str *)) {
    struct str json = {0};
    npu_status st = make(h, &json);
    if (!st) st = str_status(&json);
    if (!st) put_json(h->out, id, &json);
    str_free(&json);
    return st;
}

// Without what the host took for it: the same run twice is the same page.
static npu_status report(const struct trace_html *h, struct str *json) {
    struct trace_run run = *h->run;
    run.host_seconds = 0;
    run.peak_rss_bytes = 0;
    return trace_report_text(&run, json);
}

static npu_status tag_layers(struct trace_html *h) {
    h->layer_of_tag = base_alloc_array(h->run->ntag + 1, sizeof *h->layer_of_tag);
    if (!h->layer_of_tag) return npu_fail(NO_MEMORY, "no memory for %zu tags", h->run->ntag);
    for (size_t i = 0; i < h->run->ntag; i++) {
        const uint32_t tag = h->run->tag[i].tag;
        const struct trace_name name = trace_name_of(h->run, tag);
        h->layer_of_tag[i] = -1;
        for (size_t l = 0; l < h->nlayer && h->layer_of_tag[i] < 0; l++)
            if (name.layer >= 0 ? h->layer[l].name.layer == name.layer : h->layer[l].tag == tag)
                h->layer_of_tag[i] = (int)l;
    }
    return NULL;
}

// What is computed before anything is written.
static npu_status prepare(struct trace_html *h, struct trace_layer **layer) {
    NPU_TRY(trace_layers(h->run, layer, &h->nlayer));
    h->layer = *layer;
    NPU_TRY(tag_layers(h));
    NPU_TRY(spm_map_init(&h->spm, h->run, h->log, h->layer_of_tag));
    return critical_new(h->run, h->log, &h->critical);
}

npu_status trace_html_write(const struct trace_run *run, const struct trace_log *log,
                            const char *path) {
    struct trace_layer *layer = NULL;
    struct trace_html h = {.run = run, .log = log};
    npu_status st = prepare(&h, &layer);
    if (!st) st = trace_out_open(path, &h.out);
    if (!st) {
        str_append(trace_out_text(h.out), trace_html_head, trace_html_head_bytes);
        st = put_text(&h, "report", report);
        if (!st) st = put_text(&h, "tables", trace_html_tables);
        if (!st) st = trace_html_columns(&h);
        str_append(trace_out_text(h.out), trace_html_tail, trace_html_tail_bytes);
        trace_out_fail(h.out, st);
        st = trace_out_close(h.out);
    }
    critical_free(h.critical);
    spm_map_deinit(&h.spm);
    base_free(h.layer_of_tag);
    base_free(layer);
    return st;
}
