// SPDX-License-Identifier: Apache-2.0
//
// What an archive becomes: its inputs, and what is said when it is refused.
#include <criterion/criterion.h>
#include <string.h>

#include "runtime/base/str.h"
#include "toolchain/frontend/pt2/pt2.h"

static struct arena *arena;

static void setup(void) {
    arena = arena_new();
}

static void teardown(void) {
    arena_free(arena);
}

static struct graph *imported(const char *path) {
    struct graph *g = NULL;
    npu_status failed = pt2_import(path, NULL, arena, &g);
    cr_assert_null(failed);
    npu_status broken = graph_verify(g, "after import");
    cr_assert_null(broken);
    return g;
}

// None, bool, int, float and string were compiled in by the export: tensors alone are inputs.
Test(import, arguments_that_are_no_tensors, .init = setup, .fini = teardown) {
    static const char *const paths[] = {NPU_TEST_DATA "/pt2/plain-arguments/model.pt2",
                                        NPU_TEST_DATA "/pt2/plain-arguments/model.core.pt2"};
    for (int k = 0; k < 2; k++) {
        struct graph *g = imported(paths[k]);
        cr_assert_eq(g->ninput, 2);
        cr_expect_str_eq(g->inputs[0]->name, "x");
        cr_expect_str_eq(g->inputs[1]->name, "mask");
        cr_expect_eq(g->noutput, 1);
    }
}

// Sizes that follow from 's27', 2 to 10: y has s27 * s27 rows, z has 2 * s27 + 1.
Test(import, derived_sizes, .init = setup, .fini = teardown) {
    static const struct {
        struct import_shape shape;
        int64_t rows; // of x; 0: a usage error with the text
        const char *text;
    } rows[] = {
        {{"y", 1, {9}}, 3, NULL},
        {{"z", 2, {21, 1}}, 10, NULL},
        {{"y", 1, {8}}, 0, "--shape y gives dimension 0 as 8"},
        {{"y", 1, {8}}, 0, "computes it of 's27'; expected 4, 9, 16, .. 100"},
        {{"y", 1, {121}}, 0, "expected 4, 9, 16, .. 100"},
        {{"z", 2, {8, 1}}, 0, "the model makes it 2*s27+1; expected 5, 7, 9, .. 21"},
        {{"z", 2, {23, 1}}, 0, "expected 5, 7, 9, .. 21"},
        {{"z", 2, {INT64_MAX, 1}}, 0, "expected 5, 7, 9, .. 21"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct import_options options = {.shapes = &rows[k].shape, .nshape = 1};
        struct graph *g = NULL;
        struct str said = {0};
        npu_status failed =
            pt2_import(NPU_TEST_DATA "/pt2/derived-sizes/model.pt2", &options, arena, &g);
        npu_status_print(failed, NULL, &said);
        if (rows[k].rows) {
            cr_assert_null(failed, "%s", str_text(&said));
            cr_expect_eq(g->inputs[0]->dims[0], rows[k].rows);
        } else {
            cr_expect_eq(npu_status_code(failed), NPU_USAGE, "%s", str_text(&said));
            cr_expect(strstr(str_text(&said), rows[k].text), "%s", str_text(&said));
        }
        str_free(&said);
        npu_status_free(failed);
    }
}
