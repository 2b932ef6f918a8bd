// SPDX-License-Identifier: Apache-2.0
//
// Tile programs built by hand: what verification accepts and refuses, dependence, live ranges,
// text.
#include <criterion/criterion.h>
#include <string.h>

#include "runtime/base/str.h"
#include "toolchain/tile/tile.h"

struct fixture {
    struct arena *a;
    struct hw *hw;
    struct tile_program *p;
    int in, out, x, y, psum;
    struct tile_op *load, *map, *store;
};

static const int64_t n64[1] = {64}, unit[1] = {1};

// load 64 f32, relu, store.
static struct fixture relu(void) {
    struct fixture f = {.a = arena_new()};
    f.hw = ARENA_NEW(f.a, struct hw);
    hw_defaults(f.hw);
    f.hw->mxu_cols = 8;
    f.p = tile_program_new(f.a, f.hw);
    f.in = tile_add_dram(f.p, "in", TILE_INPUT, 256, NULL, NULL);
    f.out = tile_add_dram(f.p, "out", TILE_OUTPUT, 256, NULL, NULL);
    tile_kernel_begin(f.p, "relu", "max", "map", NULL, 0);
    f.x = tile_add_spm(f.p, "x", 256, 2);
    f.y = tile_add_spm(f.p, "y", 256, 2);
    f.psum = tile_add_psum(f.p, "psum", 1024, 1);
    tile_step(f.p);
    f.load = tile_emit(f.p, ISA_OP_COPY, TILE_LOAD);
    tile_operand(f.load, 0, f.p, (struct tile_place){f.in, 0, ISA_F32, 0}, 1, n64, unit);
    tile_operand(f.load, 1, f.p, (struct tile_place){f.x, 0, ISA_F32, 0}, 1, n64, unit);
    f.map = tile_emit(f.p, ISA_OP_VMAP, TILE_COMPUTE);
    tile_operand(f.map, 0, f.p, (struct tile_place){f.y, 0, ISA_F32, 0}, 1, n64, unit);
    tile_operand(f.map, 1, f.p, (struct tile_place){f.x, 0, ISA_F32, 0}, 1, n64, unit);
    f.store = tile_emit(f.p, ISA_OP_COPY, TILE_STORE);
    tile_operand(f.store, 0, f.p, (struct tile_place){f.y, 0, ISA_F32, 0}, 1, n64, unit);
    tile_operand(f.store, 1, f.p, (struct tile_place){f.out, 0, ISA_F32, 0}, 1, n64, unit);
    return f;
}

static void refused(struct fixture *f, const char *part) {
    npu_status st = tile_verify(f->p, "test");
    cr_assert(st, "accepted; expected '%s'", part);
    struct str text = {0};
    npu_status_print(st, NULL, &text);
    cr_assert(strstr(str_text(&text), part), "expected '%s' in: %s", part, str_text(&text));
    cr_assert(strstr(str_text(&text), "kernel 'relu'"), "%s", str_text(&text));
    str_free(&text);
    npu_status_free(st);
    arena_free(f->a);
}

Test(tile, a_valid_program) {
    struct fixture f = relu();
    cr_assert(!tile_verify(f.p, "test"));
    cr_assert_eq(f.p->nop, 3);
    cr_assert_eq(f.p->kernels[0]->spm_bytes, 1024);
    cr_assert_eq(f.p->kernels[0]->psum_bytes, 1024);
    cr_assert_eq(f.load->insn.h.tag, 1);
    arena_free(f.a);
}

Test(tile, beyond_the_buffer) {
    struct fixture f = relu();
    isa_pat_at(&f.map->insn, 1)->base = 4;
    refused(&f, "touches bytes [4, 260)");
}

Test(tile, before_the_buffer) {
    struct fixture f = relu();
    isa_pat_at(&f.map->insn, 0)->stride[0] = -1;
    refused(&f, "touches bytes [-252");
}

Test(tile, unaligned_base) {
    struct fixture f = relu();
    struct isa_pat *p = isa_pat_at(&f.map->insn, 1);
    p->base = 2;
    p->size[0] = 8;
    isa_pat_at(&f.map->insn, 0)->size[0] = 8;
    refused(&f, "no multiple");
}

Test(tile, slot_that_nothing_wrote) {
    struct fixture f = relu();
    f.map->operand[1].slot = 1;
    refused(&f, "which nothing wrote");
}

Test(tile, slot_that_does_not_exist) {
    struct fixture f = relu();
    f.map->operand[1].slot = 2;
    refused(&f, "uses slot 2");
}

Test(tile, sizes_that_differ) {
    struct fixture f = relu();
    isa_pat_at(&f.map->insn, 0)->size[0] = 32;
    refused(&f, "different sizes");
}

Test(tile, vector_engine_in_dram) {
    struct fixture f = relu();
    tile_operand(f.map, 1, f.p, (struct tile_place){f.in, 0, ISA_F32, 0}, 1, n64, unit);
    refused(&f, "which only DMA reaches");
}

Test(tile, written_input) {
    struct fixture f = relu();
    tile_operand(f.store, 1, f.p, (struct tile_place){f.in, 0, ISA_F32, 0}, 1, n64, unit);
    refused(&f, "read only");
}

Test(tile, wrong_phase) {
    struct fixture f = relu();
    f.map->phase = TILE_LOAD;
    refused(&f, "does not suit");
}

Test(tile, size_that_cannot_be_encoded) {
    struct fixture f = relu();
    struct isa_pat *p = isa_pat_at(&f.map->insn, 1);
    p->size[0] = 65537;
    p->stride[0] = 0;
    refused(&f, "cannot be encoded");
}

Test(tile, product_off_a_psum_row) {
    struct fixture f = relu();
    struct tile_op *mm = tile_emit(f.p, ISA_OP_MM, TILE_COMPUTE);
    mm->insn.u.MM.init = 1;
    tile_operand(mm, 0, f.p, (struct tile_place){f.x, 0, ISA_F32, 0}, 2, (int64_t[]){4, 4},
                 (int64_t[]){1, 4});
    tile_operand(mm, 1, f.p, (struct tile_place){f.y, 0, ISA_F32, 0}, 2, (int64_t[]){4, 4},
                 (int64_t[]){1, 4});
    tile_operand(mm, 2, f.p, (struct tile_place){f.psum, 0, ISA_F32, 0}, 2, (int64_t[]){4, 4},
                 (int64_t[]){1, 8});
    npu_status st = tile_verify(f.p, "test");
    cr_assert(!st, "%s", npu_status_message(st));
    isa_pat_at(&mm->insn, 2)->stride[1] = 4;
    refused(&f, "PSUM rows of 8 elements");
}

Test(tile, buffer_of_another_kernel) {
    struct fixture f = relu();
    tile_kernel_begin(f.p, "relu", "max", "map", NULL, 0);
    struct tile_op *t = tile_emit(f.p, ISA_OP_COPY, TILE_STORE);
    tile_operand(t, 0, f.p, (struct tile_place){f.y, 0, ISA_F32, 0}, 1, n64, unit);
    tile_operand(t, 1, f.p, (struct tile_place){f.out, 0, ISA_F32, 0}, 1, n64, unit);
    refused(&f, "of another kernel");
}

Test(tile, residents_belong_to_no_kernel) {
    struct fixture f = relu();
    int r = tile_add_resident(f.p, "value", 256, NULL);
    tile_operand(f.store, 1, f.p, (struct tile_place){r, 0, ISA_F32, 0}, 1, n64, unit);
    tile_kernel_begin(f.p, "next", "copy", "copy", NULL, 0);
    struct tile_op *t = tile_emit(f.p, ISA_OP_COPY, TILE_STORE);
    tile_operand(t, 0, f.p, (struct tile_place){r, 0, ISA_F32, 0}, 1, n64, unit);
    tile_operand(t, 1, f.p, (struct tile_place){f.out, 0, ISA_F32, 0}, 1, n64, unit);
    npu_status st = tile_verify(f.p, "test");
    cr_assert(!st, "%s", npu_status_message(st));
    tile_live_ranges(f.p);
    cr_assert_eq(f.p->bufs[r]->first_op, 2);
    cr_assert_eq(f.p->bufs[r]->last_op, 3);
    arena_free(f.a);
}

Test(tile, dependence) {
    struct fixture f = relu();
    cr_assert(tile_depends(f.load, f.map), "read after write");
    cr_assert(tile_depends(f.map, f.store));
    cr_assert(!tile_depends(f.load, f.store));
    f.map->operand[1].slot = 1;
    cr_assert(!tile_depends(f.load, f.map), "another slot");
    f.map->operand[1].slot = 0;
    isa_pat_at(&f.load->insn, 1)->size[0] = 32;
    isa_pat_at(&f.map->insn, 1)->size[0] = 32;
    isa_pat_at(&f.map->insn, 1)->base = 128;
    cr_assert(!tile_depends(f.load, f.map), "the other half");
    arena_free(f.a);
}

Test(tile, live_ranges) {
    struct fixture f = relu();
    tile_live_ranges(f.p);
    cr_assert_eq(f.p->bufs[f.x]->first_op, 0);
    cr_assert_eq(f.p->bufs[f.x]->last_op, 1);
    cr_assert_eq(f.p->bufs[f.y]->first_op, 1);
    cr_assert_eq(f.p->bufs[f.y]->last_op, 2);
    cr_assert_eq(f.p->bufs[f.psum]->first_op, -1);
    arena_free(f.a);
}

Test(tile, text) {
    struct fixture f = relu();
    f.map->insn.u.VMAP.chain.st[0].op = ISA_VOP_ABS;
    struct str s = {0};
    tile_print(f.p, &s);
    static const char *const parts[] = {"'in' 256 bytes",
                                        "kernel 0 'relu' max @map",
                                        "'x' 256 bytes x 2",
                                        "dma.copy",
                                        "v.map",
                                        "abs",
                                        "[64:1]"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cr_assert(strstr(str_text(&s), parts[i]), "'%s' in:\n%s", parts[i], str_text(&s));
    str_free(&s);
    arena_free(f.a);
}
