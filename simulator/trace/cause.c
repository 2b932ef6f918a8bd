// SPDX-License-Identifier: Apache-2.0
//
// A signaller starts before who waits for it, so it stands before it in the log.
#include "simulator/trace/cause.h"

#include "runtime/base/alloc.h"

size_t trace_instructions(const struct trace_log *log) {
    size_t n = 0;
    for (size_t k = 0; k < log->count; k++)
        n += log->event[k].kind == TRACE_EVENT_INSN;
    return n;
}

npu_status trace_causes(const struct trace_log *log, uint32_t *cause) {
    uint64_t seqs = 0;
    for (size_t k = 0; k < log->count; k++) {
        const struct trace_event *e = &log->event[k];
        if (e->kind == TRACE_EVENT_INSN && e->seq >= seqs) seqs = e->seq + 1;
    }
    uint32_t *last = base_alloc_array((size_t)seqs + 1, sizeof *last), i = 0;
    if (!last) return npu_fail(NO_MEMORY, "no memory for the trace of %zu events", log->count);
    for (size_t k = 0; k < log->count; k++) {
        const struct trace_event *e = &log->event[k];
        if (e->kind != TRACE_EVENT_INSN) continue;
        cause[i++] = e->cause_seq < seqs ? last[e->cause_seq] : 0;
        last[e->seq] = i;
    }
    base_free(last);
    return NULL;
}
