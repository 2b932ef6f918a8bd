// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/simulator/trace/made_up.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool lookup(void *ctx, uint32_t tag, struct trace_name *out) {
    (void)ctx;
    if (tag >= 100) return false;
    static const char *const name[] = {"embed", "block \"0\", attention", "head"};
    *out = (struct trace_name){.layer = (int)tag / 10 % 3,
                               .name = name[tag / 10 % 3],
                               .op = "matmul",
                               .kernel = "mm_fused",
                               .node = "/m/MatMul,1"};
    return true;
}

static void event(struct fixture *f, int engine, int opcode, uint32_t tag, uint64_t seq,
                  uint64_t ready, uint64_t start, uint64_t done, uint64_t cause) {
    struct trace_event e = {.engine = engine,
                            .opcode = opcode,
                            .tag = tag,
                            .seq = seq,
                            .dispatched = ready,
                            .ready = ready,
                            .start = start,
                            .read = done,
                            .issued = done,
                            .done = done,
                            .wait_engine = -1,
                            .cause_seq = cause};
    if (start > ready) {
        e.wait_class = TRACE_WAIT_DMA;
        e.wait_engine = ISA_ENGINE_DMA0;
        e.cause_cycle = start - 4;
    }
    if (engine == ISA_ENGINE_DMA0) e.dram_read = 6400, e.work = 6400;
    trace_log_add(&f->log, &e);
}

void fixture_init(struct fixture *f) {
    memset(f, 0, sizeof *f);
    hw_defaults(&f->hw);
    f->engine[0].engine = ISA_ENGINE_DMA0;
    f->engine[0].cycles[TRACE_BUSY] = 200;
    f->engine[0].cycles[TRACE_IDLE] = 800;
    f->engine[1].engine = ISA_ENGINE_MXU;
    f->engine[1].cycles[TRACE_BUSY] = 700;
    f->engine[1].cycles[TRACE_WAIT_DMA] = 200;
    f->engine[1].cycles[TRACE_IDLE] = 100;
    f->engine[1].wait_for[ISA_ENGINE_DMA0] = 200;
    f->tag[0] = (struct trace_tag){.tag = 0,
                                   .first = 0,
                                   .last = 400,
                                   .start = 100,
                                   .end = 400,
                                   .macs = 300 * 16384,
                                   .mxu_cycles = 300,
                                   .instructions = 3};
    f->tag[1] = (struct trace_tag){.tag = 10,
                                   .first = 50,
                                   .last = 600,
                                   .start = 400,
                                   .end = 600,
                                   .macs = 200 * 16384,
                                   .mxu_cycles = 200,
                                   .dram_read = 6400,
                                   .instructions = 2};
    f->tag[2] = (struct trace_tag){.tag = 11,
                                   .first = 600,
                                   .last = 900,
                                   .start = 600,
                                   .end = 900,
                                   .macs = 100 * 16384,
                                   .mxu_cycles = 200,
                                   .instructions = 1};
    f->tag[3] = (struct trace_tag){.tag = 20,
                                   .first = 900,
                                   .last = 1000,
                                   .start = 900,
                                   .end = 900,
                                   .dram_write = 25600,
                                   .dma_cycles = 100,
                                   .instructions = 1};
    f->tag[4] = (struct trace_tag){.tag = 100}; // nothing ended under it
    f->run = (struct trace_run){
        .program = "a \"quoted\" name.npu",
        .target = "server",
        .hw = &f->hw,
        .cycles = 1000,
        .instructions = 7,
        .engine = f->engine,
        .nengine = 2,
        .tag = f->tag,
        .ntag = 5,
        .lookup = lookup,
        .host_seconds = 0.5,
        .dram = {.read_bytes = 6400,
                 .write_bytes = 25600,
                 .row_hits = 90,
                 .row_misses = 10,
                 .channels = 16},
        .spm_peak_bytes = 1 << 20,
    };
    event(f, ISA_ENGINE_MXU, ISA_OP_MM, 0, 1, 0, 100, 400, 0);
    event(f, ISA_ENGINE_DMA0, ISA_OP_COPY, 0, 0, 0, 0, 96, TRACE_NO_SEQ);
    event(f, ISA_ENGINE_MXU, ISA_OP_MM, 10, 2, 400, 400, 600, TRACE_NO_SEQ);
    event(f, ISA_ENGINE_MXU, ISA_OP_MM, 11, 3, 600, 600, 900, TRACE_NO_SEQ);
    event(f, ISA_ENGINE_DMA0, ISA_OP_COPY, 20, 4, 100, 900, 1000, 3);
    struct trace_event mark = {.kind = TRACE_EVENT_OPEN,
                               .engine = ISA_ENGINE_CP,
                               .opcode = ISA_OP_MARK,
                               .id = 5,
                               .seq = 5,
                               .start = 10,
                               .wait_engine = -1,
                               .cause_seq = TRACE_NO_SEQ};
    trace_log_add(&f->log, &mark);
    mark.kind = TRACE_EVENT_CLOSE;
    mark.start = 20;
    trace_log_add(&f->log, &mark);
    const struct trace_state states[] = {
        {0, 100, ISA_ENGINE_MXU, TRACE_WAIT_DMA, ISA_ENGINE_DMA0},
        {100, 900, ISA_ENGINE_MXU, TRACE_BUSY, -1},
        {0, 1000, ISA_ENGINE_DMA0, TRACE_IDLE, -1},
    };
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        const struct trace_event e = {.kind = TRACE_EVENT_STATE,
                                      .engine = states[i].engine,
                                      .start = states[i].from,
                                      .done = states[i].to,
                                      .wait_class = (enum trace_class)states[i].cls,
                                      .wait_engine = states[i].wait_engine};
        trace_log_add(&f->log, &e);
    }
    for (int i = 0; i < 2; i++) {
        const struct trace_event e = {.kind = TRACE_EVENT_SEMAPHORE,
                                      .engine = ISA_ENGINE_CP,
                                      .id = 7,
                                      .start = i ? 100 : 96,
                                      .change = i ? -1 : 1};
        trace_log_add(&f->log, &e);
    }
    cr_assert_null(trace_log_finish(&f->log));
}

char *temporary(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "trace_%d_%s", (int)getpid(), name);
    return path;
}
