// SPDX-License-Identifier: Apache-2.0
//
// Tables: one row per instruction in order of start, or one row per layer. Fields are quoted as RFC
// 4180 says; lines end in a line feed. The first row has the names of the columns. Other control
// characters of names, and bytes that are not valid UTF-8, are shown as str_shown does.
//
// A name comes from the model, which anybody may have made; a spreadsheet takes a cell that begins
// with = + - or @ (or a tab or carriage return before one) for a formula. Such a name gets an
// apostrophe in front, the spreadsheets' own mark of text.
#include <inttypes.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "simulator/trace/out.h"
#include "simulator/trace/trace.h"

// A field of text, quoted when it has to be; nothing for NULL.
static void field(struct str *s, const char *text) {
    if (!text) return;
    const bool formula = *text && strchr("=+-@\t\r", *text);
    if (!formula && !strpbrk(text, ",\"\n\r\t")) {
        str_shown(s, text);
        return;
    }
    str_puts(s, formula ? "\"'" : "\"");
    while (*text) {
        if (*text == '"') str_putc(s, '"');
        if (strchr("\n\r\t", *text))
            str_putc(s, *text++);
        else
            text = str_shown_char(s, text);
    }
    str_putc(s, '"');
}

static void row(const struct trace_run *run, const struct trace_event *e, struct str *s) {
    const struct trace_name name = trace_name_of(run, e->tag);
    const struct isa_insn_desc *d = isa_find((unsigned)e->opcode);
    str_printf(s, "%" PRIu64 ",%s,%s,%" PRIu32 ",", e->seq, isa_engine_name(e->engine),
               d ? d->text : "?", e->tag);
    field(s, name.name);
    str_putc(s, ',');
    field(s, name.node);
    str_printf(s,
               ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
               e->dispatched, e->ready, e->start, e->read, e->issued, e->done,
               e->start > e->ready ? e->start - e->ready : 0);
    str_printf(s, ",%s,%s,", e->wait_class == TRACE_BUSY ? "" : trace_class_key(e->wait_class),
               e->wait_engine >= 0 ? isa_engine_name(e->wait_engine) : "");
    if (e->cause_seq != TRACE_NO_SEQ) str_printf(s, "%" PRIu64, e->cause_seq);
    str_printf(s, ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 "\n", e->work, e->dram_read, e->dram_write);
}

npu_status trace_csv_write(const struct trace_run *run, const struct trace_log *log,
                           const char *path) {
    struct trace_out *o;
    NPU_TRY(trace_out_open(path, &o));
    struct str *s = trace_out_text(o);
    str_puts(s, "seq,engine,op,tag,layer,node,dispatched,ready,start,read,issued,done,wait_cycles,"
                "wait_class,wait_for,"
                "cause_seq,work,dram_read_bytes,dram_write_bytes\n");
    for (size_t i = 0; i < log->count; i++) {
        if (log->event[i].kind != TRACE_EVENT_INSN) continue;
        row(run, &log->event[i], s);
        trace_out_flush(o);
    }
    return trace_out_close(o);
}

static void layer(const struct trace_run *run, const struct trace_layer *l, struct str *s) {
    const struct trace_tag *t = &l->total;
    const char *const name[] = {l->name.name, l->name.op, l->name.kernel, l->name.node};
    str_printf(s, "%" PRIu32, l->tag);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        str_putc(s, ',');
        field(s, name[i]);
    }
    str_printf(s, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.3f", trace_tag_start(t), trace_tag_end(t),
               l->cycles, (double)l->cycles / (double)run->hw->clock_npu_mhz);
    str_printf(s, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, t->macs,
               t->elems, t->mxu_cycles, t->vec_cycles, t->dma_cycles, t->instructions);
    str_printf(s, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.6f,%s\n", t->dram_read, t->dram_write,
               t->spm_bytes, l->utilization, l->bound);
}

npu_status trace_layers_csv_write(const struct trace_run *run, const struct trace_log *log,
                                  const char *path) {
    (void)log;
    struct trace_layer *l;
    struct trace_out *o;
    size_t n;
    NPU_TRY(trace_layers(run, &l, &n));
    npu_status st = trace_out_open(path, &o);
    if (st) {
        base_free(l);
        return st;
    }
    struct str *s = trace_out_text(o);
    str_puts(s, "tag,layer,op,kernel,node,start,end,cycles,time_us,macs,vector_elements,mxu_cycles,"
                "vec_cycles,dma_cycles,instructions,dram_read_bytes,dram_write_bytes,spm_bytes,"
                "utilization,bound\n");
    for (size_t i = 0; i < n; i++) {
        layer(run, &l[i], s);
        trace_out_flush(o);
    }
    base_free(l);
    return trace_out_close(o);
}
