// SPDX-License-Identifier: Apache-2.0
// Collecting what instructions write.
#include "simulator/npusim/writes.h"

#include <inttypes.h>
#include <zlib.h>

#include "isa/insn_text.h"
#include "runtime/base/alloc.h"

static uint32_t crc_of(const struct exec_foot *foot, const uint8_t *bytes) {
    struct exec_foot_walk w;
    uint32_t crc = 0;
    foot_first(foot, &w);
    do {
        crc = (uint32_t)crc32_z(crc, bytes + (w.lo - foot->lo), (size_t)(w.hi - w.lo));
    } while (foot_next(foot, &w));
    return crc;
}

void writes_add(void *ctx, const struct exec_place *at, int space, const struct exec_foot *foot,
                const uint8_t *bytes) {
    struct writes *w = ctx;
    if (w->next) w->next(w->next_ctx, at, space, foot, bytes);
    if (w->n == w->cap) {
        const size_t cap = w->cap ? w->cap * 2 : 1024;
        struct write *grown = base_realloc(w->item, cap * sizeof *grown);
        if (!grown) {
            w->failed = true;
            return;
        }
        w->item = grown;
        w->cap = cap;
    }
    const struct sim_totals *before = w->device ? sim_device_totals(w->device) : NULL;
    w->item[w->n++] = (struct write){.at = *at,
                                     .job = before ? before->jobs : 0,
                                     .seq = at->seq + (before ? before->instructions : 0),
                                     .space = space,
                                     .foot = *foot,
                                     .crc = crc_of(foot, bytes)};
}

void writes_deinit(struct writes *w) {
    base_free(w->item);
    *w = (struct writes){0};
}

void writes_print_place(struct str *out, const struct npu_program_image *image,
                        const struct exec_place *at) {
    struct isa_insn in;
    char line[ISA_TEXT_BYTES];
    const char *why;
    const size_t byte = (size_t)at->pc_granule * ISA_GRANULE_BYTES;
    str_printf(out, "%s at granule %" PRIu32 ", instruction %" PRIu64, isa_engine_name(at->engine),
               at->pc_granule, at->seq);
    for (int i = 0; i < at->loop_depth; i++)
        str_printf(out, "%s%" PRIu32, i ? "," : ", loop index ", at->loop_index[i]);
    const struct npu_image_tag *tag = container_find_tag(image, at->tag);
    str_printf(out, ", tag %" PRIu32, at->tag);
    if (tag && *tag->layer) {
        str_puts(out, " '");
        str_shown(out, tag->layer);
        str_putc(out, '\'');
    }
    if (byte < image->code.size &&
        isa_decode(image->code.data + byte, image->code.size - byte, &in, &why) > 0) {
        isa_print(&in, NULL, line, sizeof line);
        str_printf(out, "\n    %s", line);
    }
}

bool writes_cycles(const struct trace_log *log, const struct write *w, uint64_t *start,
                   uint64_t *done) {
    for (size_t i = 0; i < log->count; i++) {
        const struct trace_event *e = &log->event[i];
        if (e->kind != TRACE_EVENT_INSN || e->seq != w->seq || e->engine != w->at.engine) continue;
        *start = e->start;
        *done = e->done;
        return true;
    }
    return false;
}
