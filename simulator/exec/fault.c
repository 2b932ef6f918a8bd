// SPDX-License-Identifier: Apache-2.0
// Faults as text: where in time and in the program, which instruction, what was found, which rule,
// and the other side.
#include "simulator/exec/fault.h"

#include <inttypes.h>
#include <string.h>

#include "isa/insn_text.h"
#include "runtime/base/str.h"

static const struct {
    const char *text, *rule;
} kinds[] = {
    {"none", "no fault"},
#define EXEC_FAULT(NAME, text, rule) {(text), (rule)},
#include "simulator/exec/fault.def"
};

const char *fault_kind_text(enum exec_fault_kind kind) {
    return kinds[kind].text;
}
const char *fault_kind_rule(enum exec_fault_kind kind) {
    return kinds[kind].rule;
}

static void print_place(const struct exec_place *p, struct span code, exec_tag_name *name,
                        void *ctx, struct str *out) {
    struct isa_insn in;
    char line[ISA_TEXT_BYTES];
    const char *why;
    const size_t byte = (size_t)p->pc_granule * ISA_GRANULE_BYTES;
    str_printf(out, "    %s, instruction %" PRIu64 ", granule %" PRIu32, isa_engine_name(p->engine),
               p->seq, p->pc_granule);
    for (int i = 0; i < p->loop_depth; i++)
        str_printf(out, "%s%" PRIu32, i ? "," : ", loop index ", p->loop_index[i]);
    if (byte < code.size && isa_decode(code.data + byte, code.size - byte, &in, &why) > 0) {
        isa_print(&in, NULL, line, sizeof line);
        str_printf(out, "\n    %s", line);
    }
    str_printf(out, "\n    tag %" PRIu32, p->tag);
    const char *node = name ? name(ctx, p->tag) : NULL;
    if (node) str_printf(out, ": %s", node);
}

void fault_print(const struct exec_fault *f, struct span code, exec_tag_name *name, void *ctx,
                 struct str *out) {
    str_printf(out, "%s: %s", fault_kind_text(f->kind), f->what);
    if (f->has_cycle) str_printf(out, "\n  at cycle %" PRIu64, f->cycle);
    str_puts(out, "\n  in\n");
    print_place(&f->at, code, name, ctx, out);
    if (f->has_bytes)
        str_printf(out, "\n  %s bytes 0x%" PRIx64 " to 0x%" PRIx64, isa_space_name(f->space),
                   (uint64_t)f->address, (uint64_t)(f->address + f->bytes - 1));
    if (f->has_other) {
        str_puts(out, "\n  against\n");
        print_place(&f->other, code, name, ctx, out);
    }
    str_printf(out, "\n  rule: %s", fault_kind_rule(f->kind));
}
