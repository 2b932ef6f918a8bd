// SPDX-License-Identifier: Apache-2.0
//
// Hardware parameters, with the general presets beside each other, and the memory standards.

#include <stdio.h>
#include <string.h>

#include "docs/generate/pages.h"
#include "runtime/base/hw_yaml.h"

enum { SHOWN = 4 };
static const char *const shown[SHOWN] = {"tiny", "edge", "mid", "server"};

static const char *unit_text(enum hw_unit unit) {
    static const char *const names[] = {"count", "cycles", "bytes", "MHz", "percent",
                                        "flag",  "bits",   "ps",    "word"};
    return names[unit];
}

static void put_range(struct str *out, const struct hw_param_desc *p) {
    if (p->words) {
        put_cell(out, p->words);
    } else if (p->unit == HW_FLAG) {
        str_puts(out, "false, true");
    } else {
        hw_print_value(p, p->lo, out);
        str_puts(out, " to ");
        hw_print_value(p, p->hi, out);
    }
}

static void put_parameters(struct str *out, const struct hw *hw) {
    const char *group = NULL;
    for (int i = 0; i < hw_nparam; i++) {
        const struct hw_param_desc *p = &hw_params[i];
        if (hw_group_title(p) != group) {
            group = hw_group_title(p);
            str_printf(out, "%s### %s\n\n| parameter | unit | class | range |", i ? "\n" : "",
                       group);
            for (int k = 0; k < SHOWN; k++)
                str_printf(out, " %s |", shown[k]);
            str_puts(out, " meaning |\n|---|---|---|---|---|---|---|---|---|\n");
        }
        str_printf(out, "| `%s` | %s | %s | ", p->key, unit_text(p->unit),
                   p->cls == HW_PROGRAM ? "program" : "timing");
        put_range(out, p);
        for (int k = 0; k < SHOWN; k++) {
            str_puts(out, " | ");
            hw_print_value(p, hw_get(&hw[k], p), out);
        }
        str_puts(out, " | ");
        put_cell(out, p->doc);
        str_puts(out, " |\n");
    }
}

static void put_standards(struct str *out) {
    str_puts(out,
             "\n## Memory standards\n\nRows of isa/dram.def; command clocks unless noted.\n\n"
             "| `dram.standard` | MT/s | tCK ps | burst | CL/CWL | RCD read/write | RP | RAS | FAW "
             "| RRD S/L | CCD S/L | WTR S/L | WR | RTP | groups x banks | page B | RFC ns (bank) | "
             "REFI ns | source |\n"
             "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
// clang-format off
#define DRAM_STANDARD(NAME, word, mt, tck, burst, cl, cwl, rcd_rd, rcd_wr, rp, ras, faw, \
                      rrd_s, rrd_l, ccd_s, ccd_l, wtr_s, wtr_l, wr, rtp, groups, banks, page, rfc, \
                      rfc_bank, refi, source) \
    str_printf(out, "| `%s` | %d | %d | %d | %d/%d | %d/%d | %d | %d | %d | %d/%d | " \
               "%d/%d | %d/%d " \
               "| %d | %d | %d x %d | %d | %d (%d) | %d | %s |\n", word, mt, tck, burst, cl, cwl, \
               rcd_rd, rcd_wr, rp, ras, faw, rrd_s, rrd_l, ccd_s, ccd_l, wtr_s, wtr_l, wr, rtp, \
               groups, banks, page, (rfc) / 1000, (rfc_bank) / 1000, (refi) / 1000, source);
#include "isa/dram.def"
    // clang-format on
    str_puts(out, "| `ideal` | answers at once and without limit |\n");
}

npu_status page_hardware(const char *source, struct str *out) {
    (void)source;
    struct hw hw[SHOWN];
    for (int k = 0; k < SHOWN; k++)
        NPU_TRY(hw_load(shown[k], &hw[k]));
    put_head(out, "Hardware description", "isa/hw.def, isa/dram.def and isa/presets");
    str_puts(
        out,
        "A machine is a YAML file, or the name of a preset (`npuc --target`):\n\n```yaml\n"
        "base: server            # optional, first: a preset to start from; else the defaults\n"
        "mxu: {rows: 64, overlap: true}\nspm:\n  bytes: 16 MiB         # bytes, frequencies and "
        "times carry a unit\n```\n\nWhat is unknown, repeated, fractional or out of range is "
        "refused with its line. A parameter of class *program* changes what a legal\nprogram is: "
        "`npuc --set` takes it, `npusim --set` takes only those of class *timing*. The defaults "
        "are those of preset server.\n\n## Presets\n\n");
    for (int i = 0; i < hw_npreset; i++) {
        const char *line = hw_presets[i].text + strspn(hw_presets[i].text, "# ");
        str_printf(out, "- `%s`: %.*s\n", hw_presets[i].name, (int)strcspn(line, "\n"), line);
    }
    str_puts(out, "\n## Parameters\n\n");
    put_parameters(out, hw);
    str_puts(out, "\n## Derived values\n\n");
    for (int k = 0; k < SHOWN; k++) {
        str_printf(out, "%s:\n\n```\n", shown[k]);
        hw_print_derived(&hw[k], out);
        str_puts(out, "```\n\n");
    }
    // The list before ended in a blank line already.
    out->data[--out->len] = '\0';
    put_standards(out);
    return NULL;
}
