// SPDX-License-Identifier: Apache-2.0
//
// Operators: the core vocabulary, and what each front end makes of its own.

#include "docs/generate/pages.h"

static void row3(struct str *out, const char *a, const char *b, const char *c) {
    str_printf(out, "| `%s` | ", a);
    put_cell(out, b);
    str_puts(out, " | ");
    put_cell(out, c);
    str_puts(out, " |\n");
}

static void put_core(struct str *out) {
    str_puts(out, "## Core ops\n\n| op | meaning |\n|---|---|\n");
#define GRAPH_OP(name, text, min_in, max_in, outs, traits, shape, ref, doc) \
    str_puts(out, "| `" text "` | ");                                       \
    put_cell(out, doc);                                                     \
    str_puts(out, " |\n");
#include "toolchain/graph/ops.def"
}

static void put_onnx(struct str *out) {
    str_puts(out,
             "\n## ONNX\n\nOpsets are inclusive; 99: no later version is known. `MS_` stands for "
             "the domain com.microsoft.\n\n| op | opsets | becomes |\n|---|---|---|\n");
#define ONNX_OP(op, since, until, importer, meaning) row3(out, #op, #since " to " #until, meaning);
#define ONNX_CHAIN(op, since, until, inputs, type, attrs, chain) \
    row3(out, #op, #since " to " #until, "map " chain);
#include "toolchain/frontend/onnx/onnx_ops.def"
}

static void put_aten(struct str *out) {
    str_puts(out, "\n## ATen (torch.export)\n\nTargets without `torch.ops.aten.`; an in-place form "
                  "(`add_.Tensor`) is read as `add.Tensor`. Arguments with the defaults of what an "
                  "export leaves out.\n\n| target | arguments | becomes |\n|---|---|---|\n");
#define ATEN_OP(target, importer, args, meaning) row3(out, target, args, meaning);
#define ATEN_CHAIN(target, tensors, type, args, chain) row3(out, target, args, "map " chain);
#define ATEN_REFUSED(target, why) row3(out, target, "", "refused: " why);
#include "toolchain/frontend/pt2/aten_ops.def"
}

npu_status page_ops(const char *source, struct str *out) {
    (void)source;
    put_head(out, "Operators",
             "toolchain/graph/ops.def, toolchain/frontend/onnx/onnx_ops.def and "
             "toolchain/frontend/pt2/aten_ops.def");
    str_puts(out, "`npuc --list ops` prints the same. A model with others is refused with all of "
                  "them named.\n\n");
    put_core(out);
    put_onnx(out);
    put_aten(out);
    return NULL;
}
