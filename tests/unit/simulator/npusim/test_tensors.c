// SPDX-License-Identifier: Apache-2.0
// Names, positions and shapes of tensors; values that are drawn.
#define _GNU_SOURCE // mkdtemp
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/include/npu/simulator.h"
#include "simulator/npusim/tensors.h"
#include "toolchain/asm/asm.h"

static const char text[] =
    ".program \"p\"\n.target \"tiny\"\n"
    ".input \"layer/a:0\" f16[2,3] at=0\n.input \"ids\" i32[4] at=0x40 limit=5\n"
    ".input \"layer_a_0\" bool[4] at=0x80\n.output \"y\" f32[6] at=0x100\n"
    ".state \"cache\" f32[2] at=0x140\n"
    "dma.copy @dma0 src=dram:f16+0x0[6:1] dst=dram:f32+0x100[6:1]\nhalt\n";

struct rig {
    struct npusim s;
    struct npusim_options o;
};

static void init(struct rig *r) {
    *r = (struct rig){.o = {.quiet = true, .tag = "t"}};
    struct arena *a = arena_new();
    struct npu_program_image *image;
    struct span file;
    r->s = (struct npusim){.o = &r->o, .a = a};
    cr_assert_null(
        asm_assemble(a, (struct span){(const uint8_t *)text, strlen(text)}, "test", NULL, &image));
    cr_assert_null(container_write_memory(image, a, &file));
    cr_assert_null(npu_program_load_memory(file.data, file.size, &r->s.program));
    const struct npu_simulator_config config = {.machine = npu_program_machine(r->s.program)};
    cr_assert_null(npu_device_open(npu_simulator_ops(), &config, &r->s.device));
    cr_assert_null(npu_session_new(r->s.device, r->s.program, &r->s.session));
    cr_assert_null(npusim_tensors_list(&r->s));
}

static void deinit(struct rig *r) {
    npu_session_free(r->s.session);
    npu_device_close(r->s.device);
    npu_program_free(r->s.program);
    arena_free(r->s.a);
}

Test(tensors, are_found_by_name_or_position) {
    struct rig r;
    size_t at = 99;
    init(&r);
    cr_assert_eq(r.s.in.n, 3);
    cr_assert_eq(r.s.out.n, 1);
    cr_assert_eq(r.s.state.n, 1);
    cr_assert_null(npusim_tensors_find(&r.s.in, "input", "ids", &at));
    cr_assert_eq(at, 1);
    cr_assert_null(npusim_tensors_find(&r.s.in, "input", "2", &at));
    cr_assert_eq(at, 2);
    npu_status st = npusim_tensors_find(&r.s.in, "input", "3", &at);
    cr_assert_eq(npu_status_code(st), NPU_USAGE);
    cr_assert(strstr(npu_status_message(st), "'layer/a:0', 'ids'"));
    npu_status_free(st);
    deinit(&r);
}

Test(tensors, names_that_collide_in_a_folder_are_refused) {
    struct rig r;
    init(&r);
    cr_assert_str_eq(r.s.in.item[0].file, "layer_a_0");
    npu_status st = npusim_tensors_distinct(&r.s.in, "input");
    cr_assert_eq(npu_status_code(st), NPU_USAGE);
    npu_status_free(st);
    cr_assert_null(npusim_tensors_distinct(&r.s.out, "output"));
    deinit(&r);
}

Test(tensors, shapes_agree_but_for_leading_ones) {
    struct rig r;
    init(&r);
    const struct npusim_tensor *t = &r.s.in.item[0];
    struct tensor_data f = {.dtype = ISA_F16, .rank = 2, .dims = {2, 3}};
    cr_assert_null(npusim_check_shape(t, &f));
    f = (struct tensor_data){.dtype = ISA_F16, .rank = 3, .dims = {1, 2, 3}};
    cr_assert_null(npusim_check_shape(t, &f));
    f = (struct tensor_data){.dtype = ISA_F16, .rank = 2, .dims = {3, 2}};
    npu_status st = npusim_check_shape(t, &f);
    cr_assert_eq(npu_status_code(st), NPU_BAD_INPUT);
    npu_status_free(st);
    deinit(&r);
}

static void run_drawn(uint64_t seed, float y[6]) {
    struct rig r;
    init(&r);
    r.o.seed = seed;
    cr_assert_null(npusim_set_inputs(&r.s));
    cr_assert_null(npu_session_run(r.s.session, NULL));
    cr_assert_null(npu_session_read(r.s.session, NPU_OUTPUT, 0, NPU_F32, y, 6 * sizeof *y));
    deinit(&r);
}

Test(tensors, drawn_values_depend_on_the_seed_alone) {
    float a[6], b[6], c[6];
    run_drawn(1, a);
    run_drawn(1, b);
    run_drawn(2, c);
    cr_assert_arr_eq(a, b, sizeof a);
    cr_assert(memcmp(a, c, sizeof a) != 0);
    for (int i = 0; i < 6; i++)
        cr_assert(a[i] >= -1 && a[i] <= 1);
}

Test(tensors, files_of_a_folder_are_found_in_order) {
    struct rig r;
    char folder[] = "/tmp/npusim_test_XXXXXX", path[64];
    init(&r);
    cr_assert(mkdtemp(folder));
    const struct npusim_tensor *y = &r.s.out.item[0];
    static const char *const names[] = {"output_0.pb", "out_y.t.npy", "out_y.npy", "y.npy"};
    cr_assert_null(npusim_find_file(r.s.a, folder, y, 0, "out_", "t", "output"));
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *f = fopen(path, "w");
        cr_assert(f);
        fclose(f);
        cr_assert_str_eq(npusim_find_file(r.s.a, folder, y, 0, "out_", "t", "output"), path);
    }
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    deinit(&r);
}
