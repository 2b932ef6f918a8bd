// SPDX-License-Identifier: Apache-2.0
// Building tile programs: kernels, buffers, operations; dependence between operations; live ranges.
#include "toolchain/tile/tile.h"

#include <string.h>

// Doubles a pointer array in the arena when it is full.
static void *grow(struct arena *a, void *old, int count, int *cap) {
    if (count < *cap) return old;
    int wider = *cap ? 2 * *cap : 64;
    void **fresh = ARENA_ARRAY(a, void *, (size_t)wider);
    if (count) memcpy(fresh, old, (size_t)count * sizeof(void *));
    *cap = wider;
    return fresh;
}

struct tile_program *tile_program_new(struct arena *a, const struct hw *hw) {
    struct tile_program *p = ARENA_NEW(a, struct tile_program);
    p->arena = a;
    p->hw = hw;
    p->nlaunch = 1;
    return p;
}

struct tile_kernel *tile_kernel_begin(struct tile_program *p, const char *name, const char *op,
                                      const char *kernel, const char *const *origins, int norigin) {
    struct tile_kernel *k = ARENA_NEW(p->arena, struct tile_kernel);
    k->id = p->nkernel;
    k->name = name;
    k->op = k->graph_op = op;
    k->kernel = kernel;
    k->origins = origins;
    k->norigin = norigin;
    k->first_step = p->next_step;
    k->last_step = p->next_step - 1;
    p->kernels = grow(p->arena, p->kernels, p->nkernel, &p->cap_kernel);
    p->kernels[p->nkernel++] = k;
    return k;
}

void tile_launches(struct tile_program *p) {
    for (int i = 0; i < p->nkernel; i++) {
        struct tile_kernel *k = p->kernels[i];
        const bool same = i > 0 && k->call && k->call == p->kernels[i - 1]->call;
        k->launch = i == 0 ? 0 : p->kernels[i - 1]->launch + !same;
        p->nlaunch = k->launch + 1;
    }
}

static struct tile_kernel *current(struct tile_program *p) {
    NPU_ASSERT(p->nkernel > 0);
    return p->kernels[p->nkernel - 1];
}

int tile_step(struct tile_program *p) {
    struct tile_kernel *k = current(p);
    k->last_step = p->next_step++;
    return k->last_step - k->first_step;
}

static struct tile_buf *add_buf(struct tile_program *p, const char *name, enum isa_space space,
                                int64_t bytes, int slots) {
    NPU_ASSERT(bytes > 0 && slots >= 1 && slots <= 8);
    struct tile_buf *b = ARENA_NEW(p->arena, struct tile_buf);
    b->id = p->nbuf;
    b->name = name;
    b->space = space;
    b->bytes = bytes;
    b->slots = slots;
    b->kernel = -1;
    b->first_op = -1;
    b->last_op = -1;
    p->bufs = grow(p->arena, p->bufs, p->nbuf, &p->cap_buf);
    p->bufs[p->nbuf++] = b;
    return b;
}

int tile_add_spm(struct tile_program *p, const char *name, int64_t bytes, int slots) {
    struct tile_buf *b = add_buf(p, name, ISA_SPM, bytes, slots);
    b->kernel = current(p)->id;
    current(p)->spm_bytes += bytes * slots;
    return b->id;
}

int tile_add_resident(struct tile_program *p, const char *name, int64_t bytes,
                      const struct graph_value *value) {
    struct tile_buf *b = add_buf(p, name, ISA_SPM, bytes, 1);
    b->value = value;
    return b->id;
}

int tile_add_psum(struct tile_program *p, const char *name, int64_t bytes, int slots) {
    struct tile_buf *b = add_buf(p, name, ISA_PSUM, bytes, slots);
    b->kernel = current(p)->id;
    current(p)->psum_bytes += bytes * slots;
    return b->id;
}

int tile_add_dram(struct tile_program *p, const char *name, enum tile_kind kind, int64_t bytes,
                  const void *data, const struct graph_value *value) {
    struct tile_buf *b = add_buf(p, name, ISA_DRAM, bytes, 1);
    b->kind = kind;
    b->data = data;
    b->value = value;
    return b->id;
}

void tile_add_result(struct tile_program *p, const struct tile_result *r) {
    NPU_ASSERT(r->first_kernel <= r->last_kernel && r->last_kernel < p->nkernel && r->buf >= 0);
    p->results = grow(p->arena, p->results, p->nresult, &p->cap_result);
    p->results[p->nresult++] = arena_copy(p->arena, r, sizeof *r);
}

struct tile_op *tile_emit(struct tile_program *p, enum isa_op op, enum tile_phase phase) {
    struct tile_kernel *k = current(p);
    struct tile_op *t = ARENA_NEW(p->arena, struct tile_op);
    isa_init(&t->insn, op);
    const struct isa_insn_desc *d = isa_find(op);
    t->npat = d->npat;
    for (int i = 0; i < TILE_OPERANDS; i++)
        t->operand[i].buf = -1;
    switch (d->cls) {
    case ISA_CLASS_MXU: t->insn.h.engine = ISA_ENGINE_MXU; break;
    case ISA_CLASS_VEC: t->insn.h.engine = ISA_ENGINE_VEC; break;
    case ISA_CLASS_DMA: t->insn.h.engine = ISA_ENGINE_DMA0; break;
    case ISA_CLASS_CP:
    case ISA_CLASS_ANY: t->insn.h.engine = ISA_ENGINE_CP; break;
    }
    t->insn.h.tag = k->id + 1;
    t->kernel = k->id;
    if (k->last_step < k->first_step) tile_step(p);
    t->step = k->last_step;
    t->phase = phase;
    p->ops = grow(p->arena, p->ops, p->nop, &p->cap_op);
    p->ops[p->nop++] = t;
    return t;
}

void tile_operand(struct tile_op *t, int k, const struct tile_program *p, struct tile_place at,
                  int ndim, const int64_t *size, const int64_t *stride) {
    NPU_ASSERT(k < t->npat && at.buf >= 0 && at.buf < p->nbuf && at.slot < p->bufs[at.buf]->slots &&
               ndim <= ISA_DIMS);
    struct isa_pat *pat = isa_pat_at(&t->insn, k);
    t->operand[k].buf = at.buf;
    t->operand[k].slot = at.slot;
    pat->space = p->bufs[at.buf]->space;
    pat->dtype = at.dtype;
    pat->base = at.offset;
    for (int d = 0; d < ISA_DIMS; d++) {
        pat->size[d] = d < ndim ? size[d] : 1;
        pat->stride[d] = d < ndim && size[d] > 1 ? stride[d] : 0;
    }
}

bool tile_access(const struct tile_op *t, int k, int64_t *lo, int64_t *hi,
                 enum isa_access *access) {
    if (k >= t->npat || t->operand[k].buf < 0) return false;
    isa_pat_extent(isa_pat_get(&t->insn, k), lo, hi);
    *access = isa_find((unsigned)t->insn.h.opcode)->pat[k].access;
    return true;
}

bool tile_depends(const struct tile_op *earlier, const struct tile_op *later) {
    int64_t elo, ehi, llo, lhi;
    enum isa_access ea, la;
    for (int i = 0; i < earlier->npat; i++) {
        if (!tile_access(earlier, i, &elo, &ehi, &ea)) continue;
        for (int j = 0; j < later->npat; j++) {
            if (!tile_access(later, j, &llo, &lhi, &la)) continue;
            if (earlier->operand[i].buf != later->operand[j].buf ||
                earlier->operand[i].slot != later->operand[j].slot)
                continue;
            if (((ea | la) & ISA_W) && elo < lhi && llo < ehi) return true;
        }
    }
    return false;
}

void tile_live_ranges(struct tile_program *p) {
    for (int i = 0; i < p->nbuf; i++)
        p->bufs[i]->first_op = p->bufs[i]->last_op = -1;
    for (int i = 0; i < p->nop; i++) {
        for (int k = 0; k < p->ops[i]->npat; k++) {
            int id = p->ops[i]->operand[k].buf;
            if (id < 0) continue;
            struct tile_buf *b = p->bufs[id];
            if (b->first_op < 0) b->first_op = i;
            b->last_op = i;
        }
    }
}
