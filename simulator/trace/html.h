// SPDX-License-Identifier: Apache-2.0
//
// Inside of the HTML report: what its parts share. The page (html/) is data-free; everything about
// a run stands in script elements that no browser executes:
//
//   id="report"   report.json, as trace_report_text writes it, with 0 for what the host took
//   id="tables"   JSON: words, peaks, tags, what is computed for the page only
//   id="c-SET-NAME"  a column: a number per instruction, state or step of the critical path
//                 (pack.h, html_column.def)
//   id="c-spm"    cells of the map of the scratchpad, row by row (spm_map.h), plain numbers
//   id="c-assembly"  a line of assembly per place in the code, packed
//
// In JSON, '<', '>' and '&' are written \u003c, \u003e and \u0026: no name from a model can end an
// element.
#ifndef SIMULATOR_TRACE_HTML_H
#define SIMULATOR_TRACE_HTML_H

#include "simulator/trace/critical.h"
#include "simulator/trace/out.h"
#include "simulator/trace/spm_map.h"
#include "simulator/trace/trace.h"

/// The page before and after its data; generated from html/ (cmake/embed_page.cmake).
extern const char trace_html_head[], trace_html_tail[];
extern const size_t trace_html_head_bytes, trace_html_tail_bytes;

/// What the parts write into.
struct trace_html {
    const struct trace_run *run;
    const struct trace_log *log; // finished
    struct trace_out *out;
    const struct trace_layer *layer; // in order of start
    size_t nlayer;
    struct critical *critical; // NULL: the code is not known
    int *layer_of_tag;         // index of the layer of each tag of the run, -1: none
    struct spm_map spm;        // without rows: not known
};

/// The columns and the assembly. NO_MEMORY.
NPU_MUST_USE npu_status trace_html_columns(const struct trace_html *h);

/// JSON of id="tables".
NPU_MUST_USE npu_status trace_html_tables(const struct trace_html *h, struct str *json);

#endif
