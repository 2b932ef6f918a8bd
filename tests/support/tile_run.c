// SPDX-License-Identifier: Apache-2.0
//
// Sequential interpreter of tile programs (tile_run.h).
#include "tests/support/tile_run.h"

#include <stdlib.h>
#include <string.h>

#include "simulator/exec/val.h"

struct memory {
    uint8_t *bytes[3]; // SPM, PSUM, DRAM
    int64_t size[3];
};

static int which(enum isa_space space) {
    return space == ISA_SPM ? 0 : space == ISA_PSUM ? 1 : 2;
}

static uint8_t *dram(void *ctx, uint64_t addr, uint64_t bytes, bool write) {
    struct memory *m = ctx;
    (void)bytes;
    (void)write;
    return m->bytes[2] + addr;
}

// Places every slot after the one before; returns the addresses, 8 per buffer.
static int64_t *layout(const struct tile_program *p, struct memory *m) {
    int64_t *addr = calloc((size_t)p->nbuf + 1, 8 * sizeof *addr), align = hw_psum_row_bytes(p->hw);
    for (int i = 0; i < p->nbuf; i++)
        for (int s = 0; s < p->bufs[i]->slots; s++) {
            int w = which(p->bufs[i]->space);
            int64_t unit = w == 1 ? align : 64;
            addr[8 * i + s] = m->size[w];
            m->size[w] += (p->bufs[i]->bytes + unit - 1) / unit * unit;
        }
    for (int w = 0; w < 3; w++) {
        m->bytes[w] = malloc((size_t)m->size[w] + 64);
        memset(m->bytes[w], 0xff, (size_t)m->size[w] + 64);
    }
    return addr;
}

static const struct tile_buf *buffer_of(const struct tile_program *p, const struct graph_value *v) {
    for (int i = 0; i < p->nbuf; i++)
        if (p->bufs[i]->value == v &&
            (p->bufs[i]->kind == TILE_INPUT || p->bufs[i]->kind == TILE_OUTPUT))
            return p->bufs[i];
    return NULL;
}

static npu_status run_op(const struct tile_program *p, int i, const int64_t *addr,
                         const struct val_mem *mem) {
    struct isa_insn in = p->ops[i]->insn;
    for (int k = 0; k < p->ops[i]->npat; k++)
        if (p->ops[i]->operand[k].buf >= 0)
            isa_pat_at(&in, k)->base +=
                addr[8 * p->ops[i]->operand[k].buf + p->ops[i]->operand[k].slot];
    struct val_fault fault;
    memset(&fault, 0, sizeof fault);
    if (val_exec(mem, &in, &fault)) return NULL;
    return npu_fail(UNSUPPORTED, "operation %d: %s", i, fault.text);
}

npu_status tile_run(const struct tile_program *p, const struct graph *g, const void *const *inputs,
                    void *const *outputs) {
    struct memory m;
    memset(&m, 0, sizeof m);
    int64_t *addr = layout(p, &m);
    for (int i = 0; i < p->nbuf; i++)
        if (p->bufs[i]->data || p->bufs[i]->nblock) tile_fill(p->bufs[i], m.bytes[2] + addr[8 * i]);
    for (int i = 0; i < g->ninput; i++) {
        const struct tile_buf *b = buffer_of(p, g->inputs[i]);
        if (b)
            memcpy(m.bytes[2] + addr[8 * b->id], inputs[i],
                   (size_t)graph_value_bytes(g->inputs[i]));
    }
    struct val_mem mem = {.spm = m.bytes[0],
                          .psum = m.bytes[1],
                          .dram = dram,
                          .dram_ctx = &m,
                          .work = val_work_new()};
    npu_status st = NULL;
    for (int i = 0; i < p->nop && !st; i++)
        st = run_op(p, i, addr, &mem);
    for (int i = 0; i < g->noutput && !st; i++) {
        const struct tile_buf *b = buffer_of(p, g->outputs[i]);
        if (b)
            memcpy(outputs[i], m.bytes[2] + addr[8 * b->id],
                   (size_t)graph_value_bytes(g->outputs[i]));
        else
            st = npu_fail(UNSUPPORTED, "output '%s' has no buffer", g->outputs[i]->name);
    }
    val_work_free(mem.work);
    for (int w = 0; w < 3; w++)
        free(m.bytes[w]);
    free(addr);
    return st;
}
