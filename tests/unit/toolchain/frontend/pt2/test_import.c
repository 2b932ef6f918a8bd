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
