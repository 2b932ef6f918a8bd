// SPDX-License-Identifier: Apache-2.0
// Semaphores keep every dependence, whatever the speed of the engines: random tile programs are run
// with random interleavings of engines that obey only their own order, waits and signals; each
// operation must find its predecessors complete.
#include <criterion/criterion.h>
#include <string.h>

#include "toolchain/schedule/schedule.h"

static uint64_t seed;
static uint32_t draw(uint32_t n) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)(seed >> 11) % n;
}

#define BUFS 5

// Random operations over a few overlapping places: loads, vector work, stores.
static struct tile_program *random_program(struct arena *a, const struct hw *hw, int n) {
    struct tile_program *p = tile_program_new(a, hw);
    tile_kernel_begin(p, "k", "map", "k", NULL, 0);
    for (int b = 0; b < BUFS; b++) {
        int id = tile_add_spm(p, "b", 256, 1);
        p->bufs[id]->addr[0] = b * 192; // neighbours overlap
    }
    int dram = tile_add_dram(p, "d", TILE_SCRATCH, 4096, NULL, NULL);
    p->dram_bytes = 4096;
    for (int i = 0; i < n; i++) {
        int kind = (int)draw(4);
        int64_t size = 16 + draw(48), stride = 1, offset = draw(64) * 4, far = draw(900) * 4;
        struct tile_op *t;
        if (kind == 0) {
            t = tile_emit(p, ISA_OP_COPY, TILE_LOAD);
            tile_operand(t, 0, p, (struct tile_place){dram, 0, ISA_F32, far}, 1, &size, &stride);
            tile_operand(t, 1, p, (struct tile_place){(int)draw(BUFS), 0, ISA_F32, 0}, 1, &size,
                         &stride);
            t->insn.h.engine = ISA_ENGINE_DMA0 + draw(2);
        } else if (kind == 1) {
            t = tile_emit(p, ISA_OP_COPY, TILE_STORE);
            tile_operand(t, 0, p, (struct tile_place){(int)draw(BUFS), 0, ISA_F32, 0}, 1, &size,
                         &stride);
            tile_operand(t, 1, p, (struct tile_place){dram, 0, ISA_F32, far}, 1, &size, &stride);
            t->insn.h.engine = ISA_ENGINE_DMA0 + 2 + draw(2);
        } else {
            // The MXU's queue stands in for a second vector engine: order and waits are all that
            // matters here.
            t = tile_emit(p, ISA_OP_VMAP, TILE_COMPUTE);
            size = size > 32 ? 32 : size;
            tile_operand(t, 0, p, (struct tile_place){(int)draw(BUFS), 0, ISA_F32, offset % 128}, 1,
                         &size, &stride);
            tile_operand(t, 1, p, (struct tile_place){(int)draw(BUFS), 0, ISA_F32, 0}, 1, &size,
                         &stride);
            if (draw(2)) t->insn.h.engine = ISA_ENGINE_MXU;
        }
    }
    return p;
}

struct engine {
    int queue[2000], n, next, read;
    bool busy;
};

// Some byte of one block is one of the other: element by element.
static bool shares_bytes(const struct isa_pat *a, int64_t a_at, const struct isa_pat *b,
                         int64_t b_at) {
    bool rows = a->size[1] > 1 || b->size[1] > 1 || a->size[2] > 1 || b->size[2] > 1;
    if (!rows && a->stride[0] <= 1 && b->stride[0] <= 1) return true; // their extents meet
    for (int64_t i = 0; i < isa_pat_elems(a); i++)
        for (int64_t j = 0; j < isa_pat_elems(b); j++) {
            int64_t x = i, y = j, at = a_at + a->base, bt = b_at + b->base;
            for (int d = 0; d < ISA_DIMS; x /= a->size[d], y /= b->size[d], d++) {
                at += x % a->size[d] * a->stride[d] * 4;
                bt += y % b->size[d] * b->stride[d] * 4;
            }
            if (at < bt + 4 && bt < at + 4) return true;
        }
    return false;
}

static bool touches(const struct tile_program *p, int y, int x, bool *only_reads) {
    int64_t alo, ahi, blo, bhi;
    enum isa_access aa, ba;
    bool found = false;
    *only_reads = true;
    for (int i = 0; i < p->ops[y]->npat; i++)
        for (int j = 0; j < p->ops[x]->npat; j++) {
            if (!tile_access(p->ops[y], i, &alo, &ahi, &aa) ||
                !tile_access(p->ops[x], j, &blo, &bhi, &ba))
                continue;
            const struct tile_buf *s = p->bufs[p->ops[y]->operand[i].buf],
                                  *t = p->bufs[p->ops[x]->operand[j].buf];
            if (s->space != t->space || !((aa | ba) & ISA_W)) continue;
            if (alo + s->addr[0] >= bhi + t->addr[0] || blo + t->addr[0] >= ahi + s->addr[0])
                continue;
            if (!shares_bytes(isa_pat_get(&p->ops[y]->insn, i), s->addr[0],
                              isa_pat_get(&p->ops[x]->insn, j), t->addr[0]))
                continue;
            found = true;
            if (aa & ISA_W) *only_reads = false;
        }
    return found;
}

// State of operation i: 0 waiting, 1 started, 2 operands read, 3 complete.
static void run(const struct tile_program *p) {
    struct engine e[ISA_ENGINES] = {0};
    int sem[ISA_SEMS] = {0}, state[2000] = {0}, done = 0;
    for (int i = 0; i < p->nop; i++)
        e[p->ops[i]->insn.h.engine].queue[e[p->ops[i]->insn.h.engine].n++] = i;
    for (long turns = 0; done < p->nop; turns++) {
        cr_assert_lt(turns, 2000000, "deadlock");
        struct engine *x = &e[draw(ISA_ENGINES)];
        if (x->next == x->n) continue;
        int i = x->queue[x->next];
        const struct isa_header *h = &p->ops[i]->insn.h;
        if (state[i] == 0) {
            if (h->wait0_sem && sem[h->wait0_sem] < h->wait0_value) continue;
            if (h->wait1_sem && sem[h->wait1_sem] < h->wait1_value) continue;
            if (h->wait0_sem) sem[h->wait0_sem] -= (int)h->wait0_value;
            if (h->wait1_sem) sem[h->wait1_sem] -= (int)h->wait1_value;
            for (int y = 0; y < i; y++) {
                bool only_reads;
                if (!touches(p, y, i, &only_reads)) continue;
                cr_assert_geq(state[y], only_reads ? 2 : 3, "operation %d starts before %d", i, y);
            }
        }
        state[i]++;
        int reached = state[i] == 1 ? ISA_AT_START : state[i] == 2 ? ISA_AT_READ : ISA_AT_DONE;
        if (h->sig0_sem && h->sig0_when == reached) sem[h->sig0_sem] += (int)h->sig0_inc;
        if (h->sig1_sem && h->sig1_when == reached) sem[h->sig1_sem] += (int)h->sig1_inc;
        if (state[i] == 3) {
            x->next++;
            done++;
        }
    }
    for (int s = 0; s < ISA_SEMS; s++)
        cr_assert_eq(sem[s], 0, "semaphore %d ends at %d", s, sem[s]);
}

Test(sync, every_dependence_holds_at_any_speed) {
    struct hw hw;
    hw_defaults(&hw);
    for (int round = 0; round < 40; round++) {
        seed = 7919u * (uint64_t)(round + 1);
        struct arena *a = arena_new();
        struct tile_program *p = random_program(a, &hw, 60 + (int)draw(100));
        cr_assert_null(schedule_sync(p));
        for (int k = 0; k < 5; k++)
            run(p);
        arena_free(a);
    }
}

// Loads and stores of blocks whose rows lie far apart: these are found row by row.
static struct tile_program *strided_program(struct arena *a, const struct hw *hw, int n) {
    struct tile_program *p = tile_program_new(a, hw);
    tile_kernel_begin(p, "k", "copy", "k", NULL, 0);
    int spm = tile_add_spm(p, "b", 65536, 1),
        dram = tile_add_dram(p, "d", TILE_SCRATCH, 1 << 20, NULL, NULL);
    p->dram_bytes = 1 << 20;
    for (int i = 0; i < n; i++) {
        bool load = draw(2);
        struct tile_op *t = tile_emit(p, ISA_OP_COPY, load ? TILE_LOAD : TILE_STORE);
        int64_t size[3] = {1 + draw(4), 1 + draw(4), 1 + draw(4)},
                far[3] = {draw(4) ? 1 : 3, 2000 + 8 * draw(3), 40000 + 2000 * draw(3)},
                near[3] = {1, 4, 16};
        int64_t at = (draw(20) + 2000 * draw(5)) * 4;
        tile_operand(t, load ? 0 : 1, p, (struct tile_place){dram, 0, ISA_F32, at}, 3, size, far);
        tile_operand(t, load ? 1 : 0, p, (struct tile_place){spm, 0, ISA_F32, 256 * (i % 200)}, 3,
                     size, near);
        t->insn.h.engine = ISA_ENGINE_DMA0 + draw(4);
    }
    return p;
}

Test(sync, blocks_of_far_rows) {
    struct hw hw;
    hw_defaults(&hw);
    for (int round = 0; round < 30; round++) {
        seed = 104729u * (uint64_t)(round + 1);
        struct arena *a = arena_new();
        struct tile_program *p = strided_program(a, &hw, 40 + (int)draw(60));
        cr_assert_null(schedule_sync(p));
        for (int k = 0; k < 2; k++)
            run(p);
        arena_free(a);
    }
}

// A large image of four planes stored strip by strip: what is compared grows with the strips, not
// with their square.
static int64_t work_of_strips(int strips) {
    struct hw hw;
    hw_defaults(&hw);
    struct arena *a = arena_new();
    struct tile_program *p = tile_program_new(a, &hw);
    tile_kernel_begin(p, "k", "copy", "k", NULL, 0);
    int64_t plane = (int64_t)strips * 1024, size[2] = {1024, 4}, near[2] = {1, 1024},
            far[2] = {1, plane};
    int spm = tile_add_spm(p, "b", 16384, 1),
        dram = tile_add_dram(p, "d", TILE_SCRATCH, 16 * plane, NULL, NULL);
    p->dram_bytes = 16 * plane;
    for (int i = 0; i < strips; i++) {
        struct tile_op *t = tile_emit(p, ISA_OP_COPY, TILE_STORE);
        tile_operand(t, 0, p, (struct tile_place){spm, 0, ISA_F32, 0}, 2, size, near);
        tile_operand(t, 1, p, (struct tile_place){dram, 0, ISA_F32, 4096 * (int64_t)i}, 2, size,
                     far);
        t->insn.h.engine = ISA_ENGINE_DMA0 + (unsigned)i % 2;
    }
    cr_assert_null(schedule_sync(p));
    int64_t work = p->sync_work;
    arena_free(a);
    return work;
}

Test(sync, work_grows_with_the_program) {
    int64_t some = work_of_strips(2000), twice = work_of_strips(4000);
    cr_expect_lt(twice, 5 * some / 2, "%lld comparisons, then %lld", (long long)some,
                 (long long)twice);
}

Test(sync, one_queue_needs_a_fence_and_no_semaphore) {
    struct hw hw;
    hw_defaults(&hw);
    struct arena *a = arena_new();
    struct tile_program *p = tile_program_new(a, &hw);
    tile_kernel_begin(p, "k", "copy", "k", NULL, 0);
    int spm = tile_add_spm(p, "b", 256, 1),
        dram = tile_add_dram(p, "d", TILE_SCRATCH, 4096, NULL, NULL);
    p->dram_bytes = 4096;
    int64_t size = 64, stride = 1;
    for (int i = 0; i < 2; i++) {
        struct tile_op *t = tile_emit(p, ISA_OP_COPY, i ? TILE_STORE : TILE_LOAD);
        tile_operand(t, 0, p, (struct tile_place){i ? spm : dram, 0, ISA_F32, 0}, 1, &size,
                     &stride);
        tile_operand(t, 1, p, (struct tile_place){i ? dram : spm, 0, ISA_F32, 0}, 1, &size,
                     &stride);
    }
    cr_assert_null(schedule_sync(p));
    cr_expect_eq(p->nop, 2);
    cr_expect_eq(p->ops[0]->insn.u.COPY.fence, 0);
    cr_expect_eq(p->ops[1]->insn.u.COPY.fence, 1);
    cr_expect_eq(p->ops[1]->insn.h.wait0_sem, 0);
    arena_free(a);
}

// Two stores whose rows interleave in memory do not wait for each other.
Test(sync, interleaved_blocks_do_not_depend) {
    struct hw hw;
    hw_defaults(&hw);
    struct arena *a = arena_new();
    struct tile_program *p = tile_program_new(a, &hw);
    tile_kernel_begin(p, "k", "copy", "k", NULL, 0);
    int dram = tile_add_dram(p, "d", TILE_SCRATCH, 65536, NULL, NULL);
    p->dram_bytes = 65536;
    int64_t size[2] = {32, 16}, from[2] = {1, 32}, to[2] = {1, 64};
    for (int i = 0; i < 2; i++) {
        int spm = tile_add_spm(p, "b", 2048, 1);
        p->bufs[spm]->addr[0] = i * 2048;
        struct tile_op *t = tile_emit(p, ISA_OP_COPY, TILE_STORE);
        tile_operand(t, 0, p, (struct tile_place){spm, 0, ISA_F32, 0}, 2, size, from);
        tile_operand(t, 1, p, (struct tile_place){dram, 0, ISA_F32, i * 128}, 2, size, to);
        t->insn.h.engine = ISA_ENGINE_DMA0 + i;
    }
    cr_assert_null(schedule_sync(p));
    cr_expect_eq(p->ops[0]->insn.h.sig0_sem, 0);
    cr_expect_eq(p->ops[1]->insn.h.wait0_sem, 0);
    arena_free(a);
}
