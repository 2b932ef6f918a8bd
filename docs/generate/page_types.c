// SPDX-License-Identifier: Apache-2.0
//
// Small tables: element types, chain operations, engines, memories, words of fields.

#include "docs/generate/pages.h"
#include "isa/insn.h"

static void put_words(struct str *out, const char *title, const char *(*name)(int), int first,
                      const char *text) {
    str_printf(out, "\n## %s\n\n%s\n\n| code | name |\n|---|---|\n", title, text);
    for (int i = first; name(i); i++)
        str_printf(out, "| %d | `%s` |\n", i, name(i));
}

npu_status page_types(const char *source, struct str *out) {
    (void)source;
    put_head(out, "Types, operations, engines", "isa/dtype.def, isa/vop.def and isa/unit.def");
    str_puts(out, "## Element types\n\nTypes that engines do not take are found in files and "
                  "constants only.\n\n| code | name | bits | kind | engines | meaning |\n"
                  "|---|---|---|---|---|---|\n");
// clang-format off
#define ISA_DTYPE(N, text, code, bits, kind, on_chip, doc) \
    str_printf(out, "| %d | `%s` | %d | %s | %s | ", code, text, bits, #kind, \
               (on_chip) ? "yes" : "no"); \
    put_cell(out, doc); \
    str_puts(out, " |\n");
#include "isa/dtype.def"
    str_puts(out, "\n## Chain operations\n\n`acc` is the running value, `a` and `b` the "
                  "stage's operands. Special functions have their own lanes; a chain "
                  "holds one at most.\n\n"
                  "| code | name | operands | unit | types | result |\n"
                  "|---|---|---|---|---|---|\n");
#define ISA_VOP(N, text, code, operands, kind, types, doc) \
    str_printf(out, "| %d | `%s` | %d | %s | %s | ", code, text, operands, \
               #kind[0] == 'S' ? "special" : "ALU", \
               (types) == 0 ? "f32" : (types) == 1 ? "f32, integer" : "integer"); \
    put_cell(out, doc); \
    str_puts(out, " |\n");
#include "isa/vop.def"
    str_puts(out, "\n## Engines\n\n| number | name | class | meaning |\n|---|---|---|---|\n");
#define ISA_ENGINE(N, text, number, cls, doc) \
    str_printf(out, "| %d | `%s` | %s | %s |\n", number, text, #cls, doc);
#include "isa/unit.def"
    // clang-format on
    put_words(out, "Memories", isa_space_name, 0, "`none` marks an absent operand.");
    put_words(out, "Operands of a stage", isa_src_name, 0,
              "`row` and `col` are the indices of dimensions 1 and 0.");
    put_words(out, "Reductions", isa_red_name, 0, "Field `red` of v.map and v.red.");
    put_words(out, "Pooling", isa_pool_name, 1, "Field `kind` of v.pool.");
    put_words(out, "Conditions", isa_cond_name, 0, "Field `cond` of br and assert; signed.");
    put_words(out, "Scalar operations", isa_cpalu_name, 0, "Field `func` of alu.");
    put_words(out, "When a signal fires", isa_when_name, 0, "Of the instruction that carries it.");
    return NULL;
}
