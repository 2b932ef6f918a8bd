// SPDX-License-Identifier: Apache-2.0
// A report of N made-up instructions under 200 layers, or as many as are given, one of which has a
// name that tries to be HTML: browser_synth OUT.html N [LAYERS]. Loads, products and vector
// instructions take turns and let each other go through two semaphores.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "isa/insn.h"
#include "simulator/trace/trace.h"

enum { MOST = 100000, INSNS = 4 };

static uint32_t layers = 200;

static const char *nasty = "</script><img src=x onerror=\"window.harmed = 1\">&lt;b&gt; 'layer'";

static bool lookup(void *ctx, uint32_t tag, struct trace_name *out) {
    static char name[MOST][24];
    (void)ctx;
    if (tag >= layers) return false;
    snprintf(name[tag], sizeof name[tag], "layer %" PRIu32, tag);
    *out = (struct trace_name){.layer = (int)tag,
                               .name = tag == 3 ? nasty : name[tag],
                               .op = "matmul",
                               .kernel = tag % 3 ? "mm_ws" : "map",
                               .node = tag == 3 ? nasty : "node"};
    return true;
}

struct code {
    uint8_t bytes[64 * ISA_GRANULE_BYTES];
    uint32_t pc[INSNS], granules;
};

static bool put(struct code *c, int at, enum isa_op op, int engine, int wait, int signal) {
    struct isa_insn in;
    const char *field;
    isa_init(&in, op);
    in.h.engine = engine;
    if (wait) in.h.wait0_sem = wait, in.h.wait0_value = 1, in.h.acquire = 1;
    if (signal) in.h.sig0_sem = signal, in.h.sig0_inc = 1, in.h.sig0_when = ISA_AT_DONE;
    c->pc[at] = c->granules;
    const int n = isa_encode(&in, c->bytes + (size_t)c->granules * ISA_GRANULE_BYTES, &field);
    c->granules += (uint32_t)n;
    return n > 0;
}

// Three engines in a pipeline: instruction i of kind k starts when its turn has come.
static void add(struct trace_log *log, const struct code *c, uint64_t i, uint64_t n) {
    static const int engine[] = {ISA_ENGINE_DMA0, ISA_ENGINE_MXU, ISA_ENGINE_VEC};
    static const uint64_t length[] = {80, 100, 30};
    const uint64_t turn = i / 3, k = i % 3, start = 100 + turn * 104 + k * 104;
    trace_log_add(log, &(struct trace_event){.engine = engine[k],
                                             .opcode = ISA_OP_SYNC,
                                             .tag = (uint32_t)(turn * layers / (n / 3 + 1)),
                                             .pc = c->pc[k],
                                             .seq = i,
                                             .dispatched = 2 * i < start ? 2 * i : start,
                                             .ready = start > 24 ? start - (k ? 4 : 24) : 0,
                                             .start = start,
                                             .read = start + length[k] / 2,
                                             .issued = start + length[k],
                                             .done = start + length[k] + i % 7,
                                             .wait_class = k ? TRACE_WAIT_DMA : TRACE_BUSY,
                                             .wait_engine = k ? engine[k - 1] : -1,
                                             .cause_seq = k ? i - 1 : TRACE_NO_SEQ,
                                             .cause_cycle = start - 4,
                                             .work = k == 0 ? 4096 : 1000 + i % 100,
                                             .dram_read = k == 0 ? 4096 : 0});
}

int main(int argc, char **argv) {
    const uint64_t n = argc == 3 || argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    static struct code c;
    static struct trace_tag tag[MOST];
    struct hw hw;
    struct trace_log log = {0};
    struct trace_engine engine[4] = {{.engine = ISA_ENGINE_CP},
                                     {.engine = ISA_ENGINE_DMA0},
                                     {.engine = ISA_ENGINE_MXU},
                                     {.engine = ISA_ENGINE_VEC}};
    if (argc == 4) layers = (uint32_t)strtoul(argv[3], NULL, 10);
    if (n < 1000 || layers < 4 || layers > MOST || layers > n) {
        fprintf(stderr,
                "usage: browser_synth OUT.html N [LAYERS] (N 1000 and up, LAYERS 4 to %d)\n", MOST);
        return 2;
    }
    hw_defaults(&hw);
    if (!put(&c, 0, ISA_OP_SYNC, ISA_ENGINE_DMA0, 0, 1) ||
        !put(&c, 1, ISA_OP_SYNC, ISA_ENGINE_MXU, 1, 2) ||
        !put(&c, 2, ISA_OP_SYNC, ISA_ENGINE_VEC, 2, 0) ||
        !put(&c, 3, ISA_OP_HALT, ISA_ENGINE_CP, 0, 0))
        return 1;
    for (uint64_t i = 0; i < n; i++)
        add(&log, &c, i, n);
    const uint64_t cycles = 100 + n / 3 * 104 + 600;
    trace_log_add(&log, &(struct trace_event){.engine = ISA_ENGINE_CP,
                                              .opcode = ISA_OP_HALT,
                                              .pc = c.pc[3],
                                              .seq = n,
                                              .tag = layers - 1,
                                              .dispatched = cycles - 1,
                                              .ready = cycles - 1,
                                              .start = cycles - 1,
                                              .read = cycles,
                                              .issued = cycles,
                                              .done = cycles,
                                              .wait_engine = -1,
                                              .cause_seq = TRACE_NO_SEQ});
    for (uint32_t t = 0; t < layers; t++)
        tag[t] = (struct trace_tag){.tag = t,
                                    .first = cycles * t / layers,
                                    .start = cycles * t / layers,
                                    .last = cycles * (t + 1) / layers,
                                    .end = cycles * (t + 1) / layers,
                                    .macs = UINT64_C(1000000) * (t + 1),
                                    .elems = 1000,
                                    .dram_read = UINT64_C(4096) * (1 + t % 17),
                                    .mxu_cycles = 5000,
                                    .instructions = n / layers};
    for (int e = 0; e < 4; e++)
        engine[e].cycles[TRACE_BUSY] = cycles, engine[e].instructions = n / 3;
    const struct trace_run run = {.program = nasty,
                                  .target = "server",
                                  .hw = &hw,
                                  .cycles = cycles,
                                  .instructions = n + 1,
                                  .engine = engine,
                                  .nengine = 4,
                                  .tag = tag,
                                  .ntag = layers,
                                  .code = {c.bytes, (size_t)c.granules * ISA_GRANULE_BYTES},
                                  .lookup = lookup};
    npu_status st = trace_log_finish(&log);
    if (!st) st = trace_write(&run, &log, argv[1]);
    if (st) fprintf(stderr, "browser_synth: %s\n", npu_status_message(st));
    const int status = st != NULL;
    npu_status_free(st);
    trace_log_free(&log);
    return status;
}
