// SPDX-License-Identifier: Apache-2.0
//
// One row per instruction, in order of start.
#include <inttypes.h>
#include <string.h>

#include "simulator/trace/out.h"
#include "simulator/trace/trace.h"

// A field, quoted when it has to be.
static void field(struct str *s, const char *text) {
    if (!text) return;
    if (!strpbrk(text, ",\"\n\r")) {
        str_puts(s, text);
        return;
    }
    str_putc(s, '"');
    for (; *text; text++) {
        if (*text == '"') str_putc(s, '"');
        str_putc(s, *text);
    }
    str_putc(s, '"');
}

static void row(const struct trace_run *run, const struct trace_event *e, struct str *s) {
    struct trace_name name = {.layer = -1};
    if (run->lookup && !run->lookup(run->lookup_ctx, e->tag, &name))
        name = (struct trace_name){.layer = -1};
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
