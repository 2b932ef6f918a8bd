// SPDX-License-Identifier: Apache-2.0
//
// The closed forms as isa/timing.h states them, and what they give for a few products.

#include <inttypes.h>
#include <string.h>

#include "docs/generate/pages.h"
#include "isa/timing.h"
#include "runtime/base/hw_yaml.h"

// The comment block of a header, from its second line to its guard, without the slashes.
static npu_status quote_header(const char *source, const char *name, struct str *out) {
    struct str path = {0};
    struct span text;
    str_printf(&path, "%s/%s", source, name);
    npu_status st = str_status(&path);
    if (!st) st = file_map(str_text(&path), &text);
    str_free(&path);
    NPU_TRY(st);
    str_puts(out, "```\n");
    const char *p = (const char *)text.data, *end = p + text.size;
    for (int line = 1; p < end; line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop) stop = end;
        if (stop - p < 2 || memcmp(p, "//", 2) != 0) break;
        const char *at = p + 2 + (stop - p > 2 && p[2] == ' ');
        if (line > 1) {
            str_append(out, at, (size_t)(stop - at));
            str_putc(out, '\n');
        }
        p = stop + 1;
    }
    str_puts(out, "```\n");
    file_unmap(text);
    return NULL;
}

static void put_products(struct str *out, const char *const *machines, int nmachine) {
    static const struct {
        int64_t m, n, k;
        int dtype;
    } rows[] = {
        {128, 128, 128, ISA_F16}, {512, 512, 512, ISA_F16}, {512, 512, 512, ISA_F32},
        {512, 512, 512, ISA_I8},  {1, 768, 768, ISA_F16},   {1, 128, 768, ISA_F16},
        {512, 64, 64, ISA_F16},
    };
    str_puts(out, "\n## Products on the presets\n\nCycles until the result is there (and until the "
                  "next instruction may start), operands in the scratchpad.\n\n| M x N x K |");
    for (int k = 0; k < nmachine; k++)
        str_printf(out, " %s |", machines[k]);
    str_puts(out, "\n|---|");
    for (int k = 0; k < nmachine; k++)
        str_puts(out, "---|");
    str_putc(out, '\n');
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        str_printf(out, "| %" PRId64 " x %" PRId64 " x %" PRId64 " %s |", rows[i].m, rows[i].n,
                   rows[i].k, isa_dtype_name(rows[i].dtype));
        for (int k = 0; k < nmachine; k++) {
            struct hw hw;
            npu_status st = hw_load(machines[k], &hw);
            npu_status_free(st);
            const struct isa_mm_shape s = {.m = rows[i].m,
                                           .n = rows[i].n,
                                           .k = rows[i].k,
                                           .dtype_a = rows[i].dtype,
                                           .dtype_b = rows[i].dtype};
            const struct isa_cost c = isa_time_mm(&hw, &s);
            str_printf(out, " %" PRId64 " (%" PRId64 ") |", c.done_cycles, c.issue_cycles);
        }
        str_putc(out, '\n');
    }
}

npu_status page_timing(const char *source, struct str *out) {
    static const char *const machines[] = {
        "tiny", "edge", "mid", "server", "like-scalesim-ws-128", "like-onnxim"};
    put_head(out, "Timing of instructions", "isa/timing.h and isa/presets");
    NPU_TRY(quote_header(source, "isa/timing.h", out));
    put_products(out, machines, (int)(sizeof machines / sizeof machines[0]));
    return NULL;
}
