// SPDX-License-Identifier: Apache-2.0
// --list: tables as text.
#include <stdio.h>
#include <string.h>

#include "runtime/base/hw_yaml.h"
#include "runtime/base/str.h"
#include "toolchain/frontend/onnx/onnx.h"
#include "toolchain/frontend/pt2/pt2.h"
#include "toolchain/npuc/compile.h"

static void list_ops(struct str *out) {
    str_puts(out, "# core ops of the graph\n");
    for (int i = 0; i < GRAPH_OPS; i++)
        str_printf(out, "%-10s %s\n", graph_ops[i].text, graph_ops[i].doc);
    str_puts(out, "\n# ONNX ops, and the opsets in which they are read; all run on the NPU, none "
                  "on the host\n");
    const struct onnx_op_info *rows;
    int n = onnx_op_list(&rows);
    for (int i = 0; i < n; i++)
        str_printf(out, "%-24s %2d..%-2d %s\n", rows[i].op, rows[i].since, rows[i].until,
                   rows[i].meaning);
    str_puts(out, "\n# ATen operators of torch.export (.pt2); add_.Tensor is read as add.Tensor\n");
    const struct pt2_op_info *aten;
    n = pt2_op_list(&aten);
    for (int i = 0; i < n; i++)
        str_printf(out, "%-40s %s\n", aten[i].target, aten[i].meaning);
}

static void list_passes(struct str *out) {
    str_puts(out, "# passes over the graph, in order; skip: --skip may leave it out\n");
    for (int i = 0; i < PASS_COUNT; i++)
        str_printf(out, "%-15s -O%d  %-4s %s Afterwards: %s\n", passes[i].name, passes[i].level,
                   passes[i].skippable ? "skip" : "", passes[i].doc, passes[i].post);
    str_puts(out, "\n# steps of the back end, behind the passes\n");
    for (int i = 0; i < STEP_COUNT; i++)
        str_printf(out, "%-15s -O%d  skip %s\n", steps[i].name, steps[i].level, steps[i].doc);
}

static void list_instructions(struct str *out) {
    for (int i = 0; i < isa_ninsn; i++)
        str_printf(out, "0x%02x %-12s %s%s\n", (unsigned)isa_insns[i].op, isa_insns[i].text,
                   isa_insns[i].summary, isa_insns[i].implemented ? "" : " (reserved)");
}

npu_status npuc_list(const char *what) {
    struct str out = {0};
    if (!strcmp(what, "ops"))
        list_ops(&out);
    else if (!strcmp(what, "passes"))
        list_passes(&out);
    else if (!strcmp(what, "targets"))
        hw_print_presets(&out);
    else if (!strcmp(what, "parameters"))
        hw_print_parameters(&out);
    else if (!strcmp(what, "instructions"))
        list_instructions(&out);
    else
        return npu_fail(USAGE,
                        "--list %s: expected ops, passes, targets, parameters or instructions",
                        what);
    npu_status st = str_status(&out);
    if (!st) fwrite(str_text(&out), 1, out.len, stdout);
    str_free(&out);
    return st;
}
